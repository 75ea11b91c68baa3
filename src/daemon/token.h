/* token.h - the secret that whoever calls over TCP has to know. */
#pragma once

#include <stddef.h>

struct error;

#define TOKEN_CHARS 64

/*
 * The token in DIR/token, made with mode 0600 if there is none.  -EPERM if the file is
 * not ours alone: others have read it, or put it there.
 */
int http_token_load(const char *dir, char token[static TOKEN_CHARS + 1],
                    struct error *err);
