/* mt19937.c - the Mersenne Twister, with CPython's ways of using it. */
#include "base/mt19937.h"

#include <assert.h>

#define MIDDLE 397
#define UPPER 0x80000000u
#define LOWER 0x7fffffffu

static void fill_words(struct mt19937 *mt, uint32_t seed)
{
    mt->words[0] = seed;
    for (uint32_t i = 1; i < MT_WORDS; i++) {
        uint32_t last = mt->words[i - 1];
        mt->words[i] = 1812433253u * (last ^ (last >> 30)) + i;
    }
    mt->used = MT_WORDS;
}

/* The seed as 32-bit words, lowest first, as many as it needs, are stirred in. */
void mt_init(struct mt19937 *mt, uint64_t seed)
{
    const uint32_t keys[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t key_count = keys[1] ? 2 : 1;
    uint32_t *w = mt->words;
    fill_words(mt, 19650218u);
    uint32_t at = 1;
    uint32_t key = 0;
    for (uint32_t n = MT_WORDS; n > 0; n--) {
        w[at] =
            (w[at] ^ ((w[at - 1] ^ (w[at - 1] >> 30)) * 1664525u)) + keys[key] + key;
        if (++at == MT_WORDS) {
            w[0] = w[MT_WORDS - 1];
            at = 1;
        }
        key = key + 1 < key_count ? key + 1 : 0;
    }
    for (uint32_t n = MT_WORDS - 1; n > 0; n--) {
        w[at] = (w[at] ^ ((w[at - 1] ^ (w[at - 1] >> 30)) * 1566083941u)) - at;
        if (++at == MT_WORDS) {
            w[0] = w[MT_WORDS - 1];
            at = 1;
        }
    }
    w[0] = UPPER;
}

static void twist_words(struct mt19937 *mt)
{
    for (uint32_t i = 0; i < MT_WORDS; i++) {
        uint32_t both =
            (mt->words[i] & UPPER) | (mt->words[(i + 1) % MT_WORDS] & LOWER);
        uint32_t odd = both & 1 ? 0x9908b0dfu : 0;
        mt->words[i] = mt->words[(i + MIDDLE) % MT_WORDS] ^ (both >> 1) ^ odd;
    }
    mt->used = 0;
}

uint32_t mt_u32(struct mt19937 *mt)
{
    if (mt->used == MT_WORDS)
        twist_words(mt);
    uint32_t y = mt->words[mt->used++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

double mt_random(struct mt19937 *mt)
{
    uint32_t high = mt_u32(mt) >> 5;
    uint32_t low = mt_u32(mt) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

double mt_uniform(struct mt19937 *mt, double from, double to)
{
    return from + (to - from) * mt_random(mt);
}

/* As many bits as the bound has, drawn again until they are below it. */
uint32_t mt_below(struct mt19937 *mt, uint32_t bound)
{
    assert(bound > 0);
    int spare = __builtin_clz(bound);
    uint32_t drawn;
    do
        drawn = mt_u32(mt) >> spare;
    while (drawn >= bound);
    return drawn;
}

void mt_shuffle(struct mt19937 *mt, uint32_t *items, uint32_t count)
{
    for (uint32_t i = count; i-- > 1;) {
        uint32_t other = mt_below(mt, i + 1);
        uint32_t item = items[i];
        items[i] = items[other];
        items[other] = item;
    }
}

/* Up to this many are drawn from a list that shrinks; of more, again until they differ. */
#define SAMPLE_LIST_MAX 21

void mt_sample2(struct mt19937 *mt, uint32_t count, uint32_t ret_places[2])
{
    assert(count >= 2);
    uint32_t first = mt_below(mt, count);
    uint32_t second;
    if (count <= SAMPLE_LIST_MAX) {
        second = mt_below(mt, count - 1);
        if (second == first)
            second = count - 1; /* the last took the place of the first */
    } else {
        do
            second = mt_below(mt, count);
        while (second == first);
    }
    ret_places[0] = first;
    ret_places[1] = second;
}
