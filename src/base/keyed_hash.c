/* keyed_hash.c - SipHash-2-4, by its description (Aumasson and Bernstein, 2012). */
#include "base/keyed_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t turn_left(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix_rounds(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turn_left(v[1], 13) ^ v[0];
        v[3] = turn_left(v[3], 16) ^ v[2];
        v[0] = turn_left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = turn_left(v[1], 17) ^ v[2];
        v[3] = turn_left(v[3], 21) ^ v[0];
        v[2] = turn_left(v[2], 32);
    }
}

static void add_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix_rounds(v, 2);
    v[0] ^= word;
}

void keyed_hash_init(struct keyed_hash *hash)
{
    ssize_t count;
    do
        count = getrandom(hash->key, sizeof hash->key, 0);
    while (count < 0 && errno == EINTR);
    if (count != sizeof hash->key)
        abort(); /* Linux has them since 3.17 */
}

uint64_t keyed_hash_bytes(const struct keyed_hash *hash, const void *bytes,
                          size_t count)
{
    const unsigned char *at = bytes;
    uint64_t v[4] = { hash->key[0] ^ UINT64_C(0x736f6d6570736575),
                      hash->key[1] ^ UINT64_C(0x646f72616e646f6d),
                      hash->key[0] ^ UINT64_C(0x6c7967656e657261),
                      hash->key[1] ^ UINT64_C(0x7465646279746573) };
    uint64_t last = (uint64_t)count << 56;
    for (size_t left = count; left >= 8; left -= 8, at += 8) {
        uint64_t word = 0;
        for (int i = 7; i >= 0; i--)
            word = word << 8 | at[i];
        add_word(v, word);
    }
    for (size_t i = 0; i < count % 8; i++)
        last |= (uint64_t)at[i] << 8 * i;
    add_word(v, last);
    v[2] ^= 0xff;
    mix_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
