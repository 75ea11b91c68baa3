/*
 * mt19937.h - the Mersenne Twister, with CPython's ways of using it.
 *
 * For experiments that were published with a seed: the same seed gives the numbers that
 * Python's random.Random(seed) gives.  For everything else there is rng.h.
 */
#pragma once

#include <stdint.h>

#define MT_WORDS 624

/* Matsumoto and Nishimura, ACM TOMACS 8 (1998). */
struct mt19937 {
    uint32_t words[MT_WORDS];
    uint32_t used;
};

void mt_init(struct mt19937 *mt, uint64_t seed);

uint32_t mt_u32(struct mt19937 *mt);
double mt_random(struct mt19937 *mt); /* in [0, 1), 53 bits              */
double mt_uniform(struct mt19937 *mt, double from, double to);
uint32_t mt_below(struct mt19937 *mt,
                  uint32_t bound); /* in [0, bound): choice, randrange */
void mt_shuffle(struct mt19937 *mt, uint32_t *items, uint32_t count);

/* Two different places in [0, count), as random.sample(…, 2) takes them; count >= 2. */
void mt_sample2(struct mt19937 *mt, uint32_t count, uint32_t ret_places[2]);
