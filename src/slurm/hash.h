/* hash.h - a number for some bytes: FNV-1a, 64 bits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_of(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}
