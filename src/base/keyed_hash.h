/*
 * keyed_hash.h - hashes of texts that say nothing of the text to those who do not have the key
 * (SipHash-2-4).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct keyed_hash {
    uint64_t key[2];
};

/* A key that no other program has. */
void keyed_hash_init(struct keyed_hash *hash);

uint64_t keyed_hash_bytes(const struct keyed_hash *hash, const void *bytes,
                          size_t count);
