/* random_programme.c - random programmes of any size, for benchmarks and tests. */
#include "solve/random_programme.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "solve/maxmin/market.h"

#define KINDS 26
#define TYPES_MAX 16

struct kinds {
    double rate[KINDS][TYPES_MAX];
};

/* From slowest to fastest along the types, with bumps; every sixth kind turned round. */
static void draw_kinds(struct kinds *kinds, uint32_t type_count, struct rng *rng)
{
    for (uint32_t c = 0; c < KINDS; c++) {
        double base = exp(log(0.5) + rng_unit(rng) * log(40));
        double gain = exp(log(1.5) + rng_unit(rng) * log(10 / 1.5));
        for (uint32_t t = 0; t < type_count; t++) {
            double along = type_count > 1 ? (double)t / (double)(type_count - 1) : 1;
            double bump = 1 + 0.2 * (rng_unit(rng) - 0.5);
            kinds->rate[c][t] = base * pow(gain, along) * bump;
        }
        if (c % 6 == 5 && type_count > 1) {
            uint32_t other = rng_below(rng, type_count - 1);
            double last = kinds->rate[c][type_count - 1];
            kinds->rate[c][type_count - 1] = kinds->rate[c][other];
            kinds->rate[c][other] = last;
        }
    }
}

static double draw_gang(struct rng *rng)
{
    uint32_t percent = rng_below(rng, 100);
    if (percent < 70)
        return 1;
    return percent < 80 ? 2 : percent < 95 ? 4 : 8;
}

/* Steps per second on an equal part of the cluster. */
static double rate_alone(const struct random_programme *drawn, uint32_t job)
{
    double sum = 0, parts = 0;
    for (uint32_t t = 0; t < drawn->type_count; t++) {
        double part = drawn->capacity[t] / drawn->job_count / drawn->gang[job];
        sum += part * drawn->rate[(uint64_t)job * drawn->type_count + t];
        parts += part;
    }
    return parts > 1 ? sum / parts : sum;
}

void random_programme_make(struct random_programme *drawn, struct arena *arena,
                           const struct random_programme_setup *setup)
{
    uint32_t n = setup->job_count, k = setup->type_count;
    struct kinds kinds;
    struct rng rng;
    rng_init(&rng, setup->seed, "drawn programme");
    draw_kinds(&kinds, k, &rng);
    *drawn = (struct random_programme){ .job_count = n, .type_count = k };
    drawn->capacity = arena_array(arena, double, k);
    drawn->gang = arena_array(arena, double, n);
    drawn->rate = arena_array(arena, double, (uint64_t)n *k);
    drawn->weight = arena_array(arena, double, n);
    drawn->steps = arena_array(arena, double, n);
    drawn->age_s = arena_array(arena, double, n);
    drawn->alone_s = arena_array(arena, double, n);
    for (uint32_t t = 0; t < k; t++)
        drawn->capacity[t] = fmax(1, round(n / setup->jobs_per_gpu / k));
    for (uint32_t j = 0; j < n; j++) {
        uint32_t kind = rng_below(&rng, KINDS);
        double *rate = drawn->rate + (uint64_t)j * k;
        for (uint32_t t = 0; t < k; t++)
            rate[t] =
                kinds.rate[kind][t] * (1 + setup->noise * (2 * rng_unit(&rng) - 1));
        drawn->gang[j] = draw_gang(&rng);
        drawn->weight[j] = rng_below(&rng, 5) ? 1 : 2;
        double minutes = pow(10, rng_below(&rng, 5) ? 1.5 + 1.5 * rng_unit(&rng)
                                                    : 3 + rng_unit(&rng));
        double done = 0.5 * rng_unit(&rng);
        double total = minutes * 60 * kinds.rate[kind][k - 1];
        drawn->steps[j] = total * (1 - done);
        drawn->alone_s[j] = total * done / rate_alone(drawn, j);
        drawn->age_s[j] = drawn->alone_s[j] * (0.2 + 0.4 * rng_unit(&rng));
    }
}

static double rate_equal(const struct random_programme *drawn, const double *rate)
{
    double sum = 0, all = 0;
    for (uint32_t t = 0; t < drawn->type_count; t++) {
        sum += rate[t] * drawn->capacity[t];
        all += drawn->capacity[t];
    }
    return sum / all;
}

struct buyer random_programme_buyer(const struct random_programme *drawn,
                                    enum random_goal goal, uint32_t job,
                                    double *ret_rate)
{
    const double *rate = drawn->rate + (uint64_t)job * drawn->type_count;
    for (uint32_t t = 0; t < drawn->type_count; t++)
        ret_rate[t] = rate[t];
    struct buyer buyer = { .rate = ret_rate, .gang = drawn->gang[job] };
    double alone_s = drawn->alone_s[job] + drawn->steps[job] / rate_alone(drawn, job);
    switch (goal) {
    case RANDOM_MAX_MIN:
        buyer.need = drawn->weight[job] * rate_equal(drawn, rate) / drawn->gang[job];
        break;
    case RANDOM_MAKESPAN:
        buyer.need = drawn->steps[job];
        break;
    case RANDOM_FINISH_TIME:
        buyer.need = drawn->steps[job] / alone_s;
        buyer.ahead = drawn->age_s[job] / alone_s;
        break;
    }
    return buyer;
}
