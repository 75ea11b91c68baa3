/* rng.h - seeded random numbers, one stream per purpose. */
#pragma once

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* Streams of one seed with different purposes do not depend on each other. */
void rng_init(struct rng *rng, uint64_t seed, const char *purpose);

uint64_t rng_u64(struct rng *rng);
double rng_unit(struct rng *rng); /* in [0, 1)                 */
double rng_between(struct rng *rng, double min, double max); /* in [min, max)      */
uint32_t rng_below(struct rng *rng, uint32_t bound); /* in [0, bound), unbiased  */
double rng_exponential(struct rng *rng, double mean);
double rng_normal(struct rng *rng);              /* mean 0, deviation 1        */
double rng_gamma(struct rng *rng, double shape); /* scale 1                    */
