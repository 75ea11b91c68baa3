/* token_text.c - the text of a token, taken apart and put together. */
#include "api/token_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM "bt1."

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789-_";

void token_text_encode(const unsigned char bytes[TOKEN_TEXT_BYTES],
                       char ret_part[TOKEN_TEXT_PART + 1])
{
    for (int i = 0; i < TOKEN_TEXT_PART; i++) {
        int bit = 6 * i, at = bit / 8;
        unsigned next = at + 1 < TOKEN_TEXT_BYTES ? bytes[at + 1] : 0;
        unsigned both = (unsigned)bytes[at] << 8 | next;
        ret_part[i] = digits[both >> (10 - bit % 8) & 63];
    }
    ret_part[TOKEN_TEXT_PART] = '\0';
}

static bool is_part(const char *text, size_t count)
{
    return count == TOKEN_TEXT_PART && strspn(text, digits) >= count;
}

bool token_text_is_part(const char *text)
{
    return is_part(text, strlen(text));
}

/* The number, without sign or leading zeros; the text after its dot, or NULL. */
static const char *read_id(const char *text, uint64_t *ret_id)
{
    char *end;
    if (*text < '1' || *text > '9')
        return NULL;
    errno = 0;
    *ret_id = strtoull(text, &end, 10);
    return errno || *end != '.' || *ret_id > INT64_MAX ? NULL : end + 1;
}

bool token_text_parse(struct token_text *ret_token, const char *text)
{
    struct token_text token = { 0 };
    if (strncmp(text, FORM, strlen(FORM)) != 0)
        return false;
    const char *secret = read_id(text + strlen(FORM), &token.id);
    size_t count = secret ? strcspn(secret, ".") : 0;
    if (!secret || !is_part(secret, count))
        return false;
    memcpy(token.secret, secret, count);
    if (secret[count] == '.') {
        if (!token_text_is_part(secret + count + 1))
            return false;
        memcpy(token.fingerprint, secret + count + 1, TOKEN_TEXT_PART);
    }
    *ret_token = token;
    return true;
}

void token_text_print(const struct token_text *token, char ret_text[TOKEN_TEXT_MAX])
{
    snprintf(ret_text, TOKEN_TEXT_MAX, FORM "%" PRIu64 ".%s%s%s", token->id,
             token->secret, token->fingerprint[0] ? "." : "", token->fingerprint);
}

void token_text_pin(const char *fingerprint, char ret_pin[TOKEN_TEXT_PIN_MAX])
{
    snprintf(ret_pin, TOKEN_TEXT_PIN_MAX, "sha256//%.*s=", TOKEN_TEXT_PART,
             fingerprint);
    for (char *at = ret_pin + strlen("sha256//"); *at; at++)
        *at = *at == '-' ? '+' : *at == '_' ? '/' : *at;
}
