/* Any bytes as a token: what is taken is printed again as it was. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/token_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[600], again[TOKEN_TEXT_MAX], pin[TOKEN_TEXT_PIN_MAX];
    struct token_text token;
    size = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!token_text_parse(&token, text))
        return 0;
    assert(token.id > 0 && token.id <= INT64_MAX);
    assert(token_text_is_part(token.secret));
    token_text_print(&token, again);
    assert(strcmp(again, text) == 0);
    if (token.fingerprint[0]) {
        assert(token_text_is_part(token.fingerprint));
        token_text_pin(token.fingerprint, pin);
        assert(
            strspn(
                pin + strlen("sha256//"),
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") ==
            TOKEN_TEXT_PART);
    }
    return 0;
}
