/*
 * rng.c - seeded random numbers, one stream per purpose.
 *
 * xoshiro256** (Blackman and Vigna, public domain), seeded by splitmix64 from the seed
 * and a hash of the purpose's name.
 */
#include "base/rng.h"

#include <math.h>

#include "base/hash.h"

static uint64_t splitmix64_next(uint64_t *x)
{
    return hash_mix(*x += 0x9e3779b97f4a7c15u);
}

void rng_init(struct rng *rng, uint64_t seed, const char *purpose)
{
    uint64_t x = hash_text(purpose) ^ splitmix64_next(&seed);
    for (int i = 0; i < 4; i++)
        rng->s[i] = splitmix64_next(&x);
}

uint64_t rng_u64(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t r = s[1] * 5;
    r = (r << 7 | r >> 57) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return r;
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

double rng_between(struct rng *rng, double min, double max)
{
    return min + (max - min) * rng_unit(rng);
}

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    uint32_t limit = UINT32_MAX - UINT32_MAX % bound;
    for (;;) {
        uint32_t x = (uint32_t)(rng_u64(rng) >> 32);
        if (x < limit)
            return x % bound;
    }
}

double rng_exponential(struct rng *rng, double mean)
{
    return -mean * log1p(-rng_unit(rng));
}

double rng_normal(struct rng *rng)
{
    double u = 1.0 - rng_unit(rng); /* in (0, 1] */
    double v = rng_unit(rng);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/* Marsaglia and Tsang; below shape 1 by the usual boost. */
double rng_gamma(struct rng *rng, double shape)
{
    if (shape < 1.0)
        return rng_gamma(rng, shape + 1.0) * pow(1.0 - rng_unit(rng), 1.0 / shape);
    double d = shape - 1.0 / 3.0;
    double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = rng_normal(rng);
        double v = 1.0 + c * x;
        if (v <= 0.0)
            continue;
        v = v * v * v;
        double u = 1.0 - rng_unit(rng);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}
