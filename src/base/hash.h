/*
 * hash.h - 64-bit hashes of bytes, texts and numbers.
 *
 * They are the same on every machine and in every run: some decide ties, seeds of random
 * streams and names of files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BYTES_START UINT64_C(0xcbf29ce484222325)
#define HASH_WORDS_START UINT64_C(0x9e3779b97f4a7c15)

/* FNV-1a.  Begin with HASH_BYTES_START; a result may be continued with more bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t hash_text(const char *text)
{
    return hash_bytes(HASH_BYTES_START, text, strlen(text));
}

/* One number more.  Begin with HASH_WORDS_START. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

static inline uint64_t hash_doubles(const double *numbers, uint32_t count)
{
    uint64_t hash = HASH_WORDS_START;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        hash = hash_word(hash, bits);
    }
    return hash;
}

/* Every bit of the result depends on every bit of 'word': the mixer of splitmix64. */
static inline uint64_t hash_mix(uint64_t word)
{
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}
