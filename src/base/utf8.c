/* utf8.c - text from outside may not be UTF-8; what people and programs are shown is. */
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

size_t utf8_length(const char *at)
{
    /* The smallest character of each length: longer forms of smaller ones are wrong. */
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *bytes = (const unsigned char *)at;
    size_t count = bytes[0] < 0x80             ? 1
                   : (bytes[0] & 0xe0) == 0xc0 ? 2
                   : (bytes[0] & 0xf0) == 0xe0 ? 3
                   : (bytes[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    uint32_t value = count > 1 ? bytes[0] & (0x7fu >> count) : bytes[0];
    for (size_t i = 1; i < count; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0; /* also at the end of the text */
        value = value << 6 | (bytes[i] & 0x3f);
    }
    bool surrogate = value >= 0xd800 && value <= 0xdfff;
    return count > 1 && (value < smallest[count] || value > 0x10ffff || surrogate)
               ? 0
               : count;
}

char *utf8_clean(const char *text)
{
    size_t size = strlen(text) * strlen(UTF8_REPLACEMENT) + 1;
    char *clean = memory_checked(malloc(size));
    size_t count = 0;
    while (*text) {
        size_t length = utf8_length(text);
        size_t bytes = length ? length : strlen(UTF8_REPLACEMENT);
        memcpy(clean + count, length ? text : UTF8_REPLACEMENT, bytes);
        count += bytes;
        text += length ? length : 1;
    }
    clean[count] = '\0';
    return clean;
}
