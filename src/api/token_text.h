/*
 * token_text.h - the text of a token: which one it is, its secret, and the key of its berthd.
 *
 *     bt1.17.Zm9v….q8Kd…
 *     │   │  │     └ fingerprint: SHA-256 of the public key in berthd's certificate
 *     │   │  └ secret: 32 random bytes, of which berthd keeps only a digest
 *     │   └ number, by which a token is listed and revoked
 *     └ form
 *
 * Secret and fingerprint are 32 bytes each in base64url, which needs no quoting in a shell, a
 * URL or a header.  The fingerprint is that of the public key and not of the certificate, so
 * that a certificate that was renewed for the same key keeps working.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_TEXT_BYTES 32 /* of a secret, and of a fingerprint */
#define TOKEN_TEXT_PART 43  /* characters of either              */
#define TOKEN_TEXT_MAX 128  /* bytes of a whole text, NUL included */
#define TOKEN_TEXT_PIN_MAX 64

struct token_text {
    uint64_t id;
    char secret[TOKEN_TEXT_PART + 1];
    char fingerprint[TOKEN_TEXT_PART + 1]; /* "": not said */
};

/* False if it is no token of this form; 0.1's tokens are not. */
bool token_text_parse(struct token_text *ret_token, const char *text);

void token_text_print(const struct token_text *token, char ret_text[TOKEN_TEXT_MAX]);

/* 32 bytes as text. */
void token_text_encode(const unsigned char bytes[TOKEN_TEXT_BYTES],
                       char ret_part[TOKEN_TEXT_PART + 1]);

/* Is this a secret or a fingerprint by its form? */
bool token_text_is_part(const char *text);

/* A fingerprint in the form that libcurl pins: "sha256//" and plain base64. */
void token_text_pin(const char *fingerprint, char ret_pin[TOKEN_TEXT_PIN_MAX]);
