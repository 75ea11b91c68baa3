/*
 * bench_fit.c - berth bench fit: fits of learning curves, and forecasts from them.
 *
 * Histories of 100 points are drawn from the families themselves with 1 % noise, each
 * point weighing 0.98 of the next.  Cold is a fit from nothing; warm starts from the fit
 * of the same history without its last two points.  Floating point is strict.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "policy/shared/gains.h"
#include "predict/curve.h"

#define HISTORIES 2000
#define POINTS 100
#define NEWER 2
#define JOBS 4000
#define GPUS 16000
#define REPEATS 9
#define LONG_POINTS 1000000

struct fit_histories {
    double step[POINTS + NEWER], weight[POINTS + NEWER];
    double value[HISTORIES][POINTS + NEWER];
    struct family_fit fits[HISTORIES];
};

typedef struct family_fit (*fit_function)(const struct family_points *points,
                                          const struct family_fit *warm);

static void draw_histories(struct fit_histories *h, enum family family)
{
    struct rng rng;
    rng_init(&rng, 1, "fit");
    for (uint32_t i = 0; i < POINTS + NEWER; i++) {
        h->step[i] = i;
        h->weight[i] = pow(0.98, POINTS + NEWER - 1.0 - i);
    }
    for (uint32_t n = 0; n < HISTORIES; n++) {
        double a = 0.002 + 0.02 * rng_unit(&rng);
        double b = 0.1 + 0.4 * rng_unit(&rng);
        double mu = 0.8 + 0.18 * rng_unit(&rng);
        for (uint32_t i = 0; i < POINTS + NEWER; i++) {
            double k = i;
            double value =
                family == FAMILY_INV ? 1 / (a * k * k + b * k + 1) : pow(mu, k);
            h->value[n][i] = value + 0.01 * rng_normal(&rng);
        }
    }
}

/* Microseconds of a fit, the best of several runs.  A cold run leaves its fits in 'h'. */
static double time_fit_us(struct fit_histories *h, fit_function fit, uint32_t count,
                          bool warm)
{
    double best_us = HUGE_VAL;
    double seen = 0; /* uses every result, so that the compiler leaves nothing out */
    for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
        double begin_s = clock_cpu_s();
        for (uint32_t n = 0; n < HISTORIES; n++) {
            struct family_points points = { .step = h->step,
                                            .value = h->value[n],
                                            .weight = h->weight,
                                            .count = count,
                                            .sign = 1 };
            struct family_fit found = fit(&points, warm ? &h->fits[n] : NULL);
            if (!warm)
                h->fits[n] = found;
            seen += found.sse;
        }
        double us = (clock_cpu_s() - begin_s) * 1e6 / HISTORIES;
        best_us = us < best_us ? us : best_us;
    }
    return isfinite(seen) ? best_us : NAN;
}

static void measure_family(struct bench *bench, struct fit_histories *h,
                           enum family family, fit_function fit, const char *cold,
                           const char *warm)
{
    draw_histories(h, family);
    bench_row(bench, time_fit_us(h, fit, POINTS, false), "us", POINTS, "%s", cold);
    bench_row(bench, time_fit_us(h, fit, POINTS + NEWER, true), "us", POINTS, "%s",
              warm);
}

/* Many jobs, both families, as a policy would fit them at every decision. */
static void measure_jobs(struct bench *bench, struct fit_histories *h,
                         struct arena *arena)
{
    struct curve *curves = arena_array(arena, struct curve, JOBS);
    double cold_ms = HUGE_VAL;
    double warm_ms = HUGE_VAL;
    for (uint32_t repeat = 0; repeat < 3; repeat++) {
        for (uint32_t n = 0; n < JOBS; n++) {
            curve_init(&curves[n], NULL);
            for (uint32_t i = 0; i < POINTS; i++)
                curve_add(&curves[n], h->step[i], h->value[n % HISTORIES][i]);
        }
        double begin_s = clock_cpu_s();
        for (uint32_t n = 0; n < JOBS; n++)
            curve_fit(&curves[n]);
        double cold_s = clock_cpu_s();
        for (uint32_t n = 0; n < JOBS; n++) {
            curve_add(&curves[n], h->step[POINTS], h->value[n % HISTORIES][POINTS]);
            curve_fit(&curves[n]);
        }
        double warm_s = clock_cpu_s();
        cold_ms = fmin(cold_ms, (cold_s - begin_s) * 1e3);
        warm_ms = fmin(warm_ms, (warm_s - cold_s) * 1e3);
    }
    bench_row(bench, cold_ms, "ms", JOBS, "jobs_4000_both_cold");
    bench_row(bench, warm_ms, "ms", JOBS, "jobs_4000_both_warm");
}

/* As many jobs at random points of curves of both families; GPUs are shared out by gain. */
static void measure_gains(struct bench *bench, struct arena *arena)
{
    struct gains_job *drawn = arena_array(arena, struct gains_job, JOBS);
    struct gains_job *jobs = arena_array(arena, struct gains_job, JOBS);
    struct gains_heap *heap = arena_array(arena, struct gains_heap, JOBS);
    struct rng rng;
    rng_init(&rng, 1, "gains");
    for (uint32_t n = 0; n < JOBS; n++) {
        double k = 100 * rng_unit(&rng);
        double a = 0.002 + 0.02 * rng_unit(&rng);
        double b = 0.1 + 0.4 * rng_unit(&rng);
        double rate = 0.05 + 0.15 * rng_unit(&rng);
        drawn[n] = (struct gains_job){ .least = 1,
                                       .most = 640,
                                       .ahead.family = n % 2 ? FAMILY_EXP : FAMILY_INV,
                                       .ahead.height = exp(-rate * k),
                                       .ahead.rate = rate,
                                       .ahead.a = a,
                                       .ahead.b = 2 * a * k + b,
                                       .ahead.c = (a * k + b) * k + 1,
                                       .ahead.scale = 1,
                                       .ahead.left = 200 - k,
                                       .work_s = 18 + 84 * rng_unit(&rng),
                                       .fixed_s = 1 };
    }
    double best_ms = HUGE_VAL;
    for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
        memcpy(jobs, drawn, JOBS * sizeof *jobs);
        double begin_s = clock_cpu_s();
        gains_share(jobs, JOBS, GPUS, 3, heap);
        best_ms = fmin(best_ms, (clock_cpu_s() - begin_s) * 1e3);
    }
    bench_row(bench, best_ms, "ms", JOBS, "slaq_4000_jobs_16000_units");
}

static void measure_forecast(struct bench *bench, struct fit_histories *h,
                             struct arena *arena)
{
    struct curve *curve = arena_new(arena, struct curve);
    bool predictable;
    double begin_s = clock_cpu_s();
    for (uint32_t n = 0; n < HISTORIES / 10; n++) {
        curve_init(curve, NULL);
        for (uint32_t i = 0; i < POINTS; i++)
            curve_add(curve, h->step[i], h->value[n][i]);
        curve_forecast(curve, 10, &predictable);
    }
    double us = (clock_cpu_s() - begin_s) * 1e6 / (HISTORIES / 10.0);
    bench_row(bench, us, "us", POINTS, "forecast_100");

    begin_s = clock_cpu_s();
    curve_init(curve, NULL);
    for (uint32_t i = 0; i < LONG_POINTS; i++)
        curve_add(curve, i, 1 / (1 + 0.001 * i));
    double add_ns = (clock_cpu_s() - begin_s) * 1e9 / LONG_POINTS;
    bench_row(bench, add_ns, "ns", LONG_POINTS, "add_point");
}

static int bench_fit_run(struct bench *bench, struct error *err)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct fit_histories *h = arena_new(&arena, struct fit_histories);
    measure_family(bench, h, FAMILY_EXP, family_fit_exp, "exp_100_cold",
                   "exp_100_warm");
    measure_family(bench, h, FAMILY_INV, family_fit_inv, "inv_100_cold",
                   "inv_100_warm");
    measure_jobs(bench, h, &arena);
    measure_gains(bench, &arena);
    measure_forecast(bench, h, &arena);
    arena_release(&arena);
    return 0;
}

const struct bench_suite bench_fit = {
    .name = "fit",
    .brief = "learning curves, fitted and foretold",
    .run = bench_fit_run,
};
