/* token.h - the secret that clients over TCP must send. */
#pragma once

#include <stdbool.h>

struct error;

#define TOKEN_CHARS 64

/*
 * The token in DIR/token, created with mode 0600 if there is none.  -EPERM if the file
 * belongs to another user or others can read it.
 */
int token_load(const char *dir, char token[static TOKEN_CHARS + 1], struct error *err);

/* A random secret: hexadecimal digits and a NUL. */
int token_generate(char token[static TOKEN_CHARS + 1], struct error *err);

/* Takes the same time however much of it is right; an empty token equals nothing. */
bool token_equals(const char *given, const char *token);
