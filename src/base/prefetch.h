/* prefetch.h - ask for memory that is needed soon, so that it is in the cache by then. */
#pragma once

#include <stddef.h>

#define PREFETCH_LINE 64

static inline void prefetch_bytes(const void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PREFETCH_LINE)
        __builtin_prefetch((const char *)memory + at, 1);
}
