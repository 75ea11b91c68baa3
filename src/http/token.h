/* token.h - the secret that whoever calls over TCP has to know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

#define TOKEN_CHARS 64

/*
 * The token in DIR/token, made with mode 0600 if there is none.  -EPERM if the file is
 * not ours alone: others have read it, or put it there.
 */
int token_load(const char *dir, char token[static TOKEN_CHARS + 1], struct error *err);

/* A secret nobody has seen: hexadecimal digits and a NUL. */
int token_generate(char token[static TOKEN_CHARS + 1], struct error *err);

/* Takes as long however much of it is right; an empty token is nobody's. */
bool token_equals(const char *given, const char *token);
