/* utf8.h - text from outside may not be UTF-8; what people and programs are shown is. */
#pragma once

#include <stddef.h>

#define UTF8_REPLACEMENT \
    "\xef\xbf\xbd" /* U+FFFD, for each byte that belongs to nothing */

/* Bytes of the character that begins here: 1 to 4; 0 if none of UTF-8 does. */
size_t utf8_length(const char *at);

/* A copy with each such byte replaced; to be freed. */
char *utf8_clean(const char *text);
