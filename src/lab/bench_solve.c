/*
 * bench_solve.c - berth bench solve: shares by prices, beside the general solver.
 *
 * Drawn programmes (solve/random_programme.h), four jobs per accelerator unless a row says otherwise.
 * A row is the best of a few cold runs, each from jobs put into an empty market to every
 * job's share read.  Every answer comes with a proof that it is within 1e-7.  CLP solves the
 * same programme where that takes seconds; its time excludes building the programme.
 *
 * Sums, floors, ratios and pairs have four jobs per accelerator of three types, and a proof
 * that they are within 1e-6.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "solve/lp/lp.h"
#include "solve/prices/batch.h"
#include "solve/maxmin/market.h"
#include "solve/maxmin/water_filling.h"
#include "solve/random_programme.h"
#include "solve/solve.h"
#include "solve/sums/auction.h"

#define MANY 100000
#define SOME 4096
#define TIMES 5
#define CLP_TIMES 3
#define TOLERANCE 1e-7
#define SUM_TOLERANCE 1e-6
#define SUM_TYPES 3
#define CHANGES 2000   /* jobs that are replaced, one at a time */
#define CLP_CHANGES 12 /* of them, those that CLP follows         */

/* Jobs as buyers; the last 'spare' of them arrive later. */
struct solve_market {
    struct arena arena;
    struct random_programme drawn;
    uint32_t job_count, type_count;
    struct buyer *buyer; /* [job, then spare] */
    double *x;           /* [job][type]       */
};

static void solve_market_make(struct solve_market *c, uint32_t job_count,
                              uint32_t type_count, double jobs_per_gpu,
                              enum random_goal goal, uint32_t spare)
{
    uint32_t all = job_count + spare;
    struct random_programme_setup setup = { .job_count = all,
                                            .type_count = type_count,
                                            .jobs_per_gpu =
                                                jobs_per_gpu * all / job_count,
                                            .noise = 0.15,
                                            .seed = 1 };
    arena_init(&c->arena, 0);
    random_programme_make(&c->drawn, &c->arena, &setup);
    c->job_count = job_count;
    c->type_count = type_count;
    c->buyer = arena_array(&c->arena, struct buyer, all);
    c->x = arena_array(&c->arena, double, (size_t)job_count *type_count);
    for (uint32_t j = 0; j < all; j++)
        c->buyer[j] = random_programme_buyer(
            &c->drawn, goal, j, arena_array(&c->arena, double, type_count));
}

static void solve_market_release(struct solve_market *c)
{
    arena_release(&c->arena);
}

/* Solve from an empty market to every job's share. */
static int solve_once(struct solve_market *c, struct error *err)
{
    struct market_answer answer;
    struct market *market = market_new(c->type_count, c->drawn.capacity, c->job_count);
    for (uint32_t j = 0; j < c->job_count; j++)
        market_put(market, j, &c->buyer[j]);
    int r = market_solve(market, TOLERANCE, &answer, err);
    for (uint32_t j = 0; j < c->job_count; j++)
        market_share(market, j, c->x + (uint64_t)j * c->type_count);
    market_free(market);
    return r;
}

static int time_solutions(struct solve_market *c, uint32_t times, double *ret_s,
                          struct error *err)
{
    *ret_s = INFINITY;
    for (uint32_t i = 0; i < times; i++) {
        double begin_s = clock_cpu_s();
        int r = solve_once(c, err);
        if (r < 0)
            return r;
        *ret_s = fmin(*ret_s, clock_cpu_s() - begin_s);
    }
    return 0;
}

/*
 * The programme as the papers write it: shares and the level as columns; a row per type, and
 * two per job.  A job that is absent has neither shares nor a bound on the level.
 */
struct solve_clp {
    struct lp *lp;
    uint32_t due, first; /* of job 0: its row, its column for type 0 */
    uint32_t type_count;
};

static void solve_clp_set_job(struct solve_clp *g, uint32_t job, bool here)
{
    for (uint32_t t = 0; t < g->type_count; t++)
        lp_set_column(g->lp, g->first + job * g->type_count + t, 0,
                      here ? LP_INFINITY : 0);
    lp_set_row(g->lp, g->due + job, here ? 0 : -LP_INFINITY, LP_INFINITY);
}

static void solve_clp_make(struct solve_clp *g, const struct solve_market *c,
                           uint32_t all)
{
    uint32_t k = c->type_count, budget = 0;
    uint32_t *rows = memory_checked(calloc(all, sizeof *rows));
    double *takes = memory_checked(calloc(all, sizeof *takes));
    *g = (struct solve_clp){ .lp = lp_new(), .type_count = k };
    for (uint32_t t = 0; t < k; t++)
        lp_add_row(g->lp, -LP_INFINITY, c->drawn.capacity[t]);
    for (uint32_t j = 0; j < all; j++) {
        rows[j] = lp_add_row(g->lp, 0, LP_INFINITY);
        takes[j] = -1;
    }
    g->due = rows[0];
    budget = g->due + all;
    for (uint32_t j = 0; j < all; j++)
        lp_add_row(g->lp, -LP_INFINITY, 1);
    for (uint32_t j = 0; j < all; j++) {
        const struct buyer *buyer = &c->buyer[j];
        for (uint32_t t = 0; t < k; t++) {
            uint32_t column = lp_add_column(
                g->lp, 0, 0, LP_INFINITY, 3, (uint32_t[]){ t, rows[j], budget + j },
                (double[]){ buyer->gang, buyer->rate[t] / buyer->need, 1 });
            if (j == 0 && t == 0)
                g->first = column;
        }
    }
    lp_add_column(g->lp, 1, 0, LP_INFINITY, all, rows, takes);
    for (uint32_t j = c->job_count; j < all; j++)
        solve_clp_set_job(g, j, false);
    free(rows);
    free(takes);
}

static double time_clp_s(const struct solve_clp *g)
{
    double begin_s = clock_cpu_s();
    lp_maximise(g->lp, LP_DUAL);
    return clock_cpu_s() - begin_s;
}

static int measure_cold(struct bench *bench, const char *id, uint32_t job_count,
                        uint32_t type_count, double jobs_per_gpu, enum random_goal goal,
                        bool beside_clp, struct error *err)
{
    struct solve_market c;
    double ours_s, clp_s = INFINITY;
    solve_market_make(&c, job_count, type_count, jobs_per_gpu, goal, 0);
    int r = time_solutions(&c, job_count < MANY ? 10 * TIMES : TIMES, &ours_s, err);
    for (uint32_t i = 0; r == 0 && beside_clp && i < CLP_TIMES; i++) {
        struct solve_clp g;
        solve_clp_make(&g, &c, job_count);
        clp_s = fmin(clp_s, time_clp_s(&g));
        lp_free(g.lp);
    }
    if (r == 0)
        bench_row_versus(bench, id, ours_s * 1e3, "ms", job_count,
                         beside_clp ? "CLP dual" : NULL,
                         beside_clp ? clp_s / ours_s : 0);
    solve_market_release(&c);
    return r;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Replace one job by another and solve again, many times; return the median time. */
static int time_changes(struct solve_market *c, double *ret_median_s, struct error *err)
{
    double *seconds = arena_array(&c->arena, double, CHANGES);
    struct market_answer answer;
    struct rng rng;
    rng_init(&rng, 1, "bench");
    struct market *market = market_new(c->type_count, c->drawn.capacity, c->job_count);
    for (uint32_t j = 0; j < c->job_count; j++)
        market_put(market, j, &c->buyer[j]);
    int r = market_solve(market, TOLERANCE, &answer, err);
    for (uint32_t i = 0; r == 0 && i < CHANGES; i++) {
        uint32_t slot = rng_below(&rng, c->job_count);
        double begin_s = clock_cpu_s();
        market_drop(market, slot);
        market_put(market, slot, &c->buyer[c->job_count + i]);
        r = market_solve(market, TOLERANCE, &answer, err);
        seconds[i] = clock_cpu_s() - begin_s;
    }
    market_free(market);
    qsort(seconds, CHANGES, sizeof *seconds, compare_numbers);
    *ret_median_s = seconds[CHANGES / 2];
    return r;
}

/* The same with CLP, which continues from its last basis. */
static double time_clp_changes_s(const struct solve_market *c)
{
    struct solve_clp g;
    double seconds[CLP_CHANGES];
    solve_clp_make(&g, c, c->job_count + CLP_CHANGES);
    time_clp_s(&g);
    for (uint32_t i = 0; i < CLP_CHANGES; i++) {
        solve_clp_set_job(&g, i, false);
        solve_clp_set_job(&g, c->job_count + i, true);
        seconds[i] = time_clp_s(&g);
    }
    lp_free(g.lp);
    qsort(seconds, CLP_CHANGES, sizeof *seconds, compare_numbers);
    return seconds[CLP_CHANGES / 2];
}

static int measure_warm(struct bench *bench, const char *id, uint32_t job_count,
                        bool beside_clp, struct error *err)
{
    struct solve_market c;
    double ours_s, clp_s = 0;
    solve_market_make(&c, job_count, 3, 4, RANDOM_MAX_MIN, CHANGES);
    int r = time_changes(&c, &ours_s, err);
    if (r == 0 && beside_clp)
        clp_s = time_clp_changes_s(&c);
    if (r == 0)
        bench_row_versus(bench, id, ours_s * 1e6, "us", job_count,
                         beside_clp ? "CLP warm" : NULL,
                         beside_clp ? clp_s / ours_s : 0);
    solve_market_release(&c);
    return r;
}

static int measure_filling(struct bench *bench, const char *id, double jobs_per_gpu,
                           struct error *err)
{
    struct solve_market c;
    struct water_filling_answer answer;
    int r = 0;
    double best_s = INFINITY;
    solve_market_make(&c, MANY, 3, jobs_per_gpu, RANDOM_MAX_MIN, 0);
    double *rate = arena_array(&c.arena, double, (size_t)MANY * 3);
    double *level = arena_array(&c.arena, double, MANY);
    for (uint32_t j = 0; j < MANY; j++)
        for (uint32_t t = 0; t < 3; t++)
            rate[j * 3 + t] = c.buyer[j].rate[t] / c.buyer[j].need;
    struct water_filling filling = { MANY, 3, c.drawn.capacity, c.drawn.gang, rate };
    for (uint32_t i = 0; r == 0 && i < 3; i++) {
        double begin_s = clock_cpu_s();
        r = water_filling_solve(&filling, TOLERANCE, level, c.x, &answer, err);
        best_s = fmin(best_s, clock_cpu_s() - begin_s);
    }
    if (r == 0)
        bench_row(bench, best_s * 1e3, "ms", MANY, "%s", id);
    solve_market_release(&c);
    return r;
}

/* Ten types, with each width of vectors that the machine has. */
static int measure_vectors(struct bench *bench, struct error *err)
{
    static const char *const ids[] = { "maxmin_10_types_100k_portable",
                                       "maxmin_10_types_100k_avx2",
                                       "maxmin_10_types_100k_avx512" };
    int r = 0;
    for (enum vectors v = VECTORS_PORTABLE; r == 0 && v < VECTORS_WIDEST; v++)
        if (batch_use_vectors(v) == v)
            r = measure_cold(bench, ids[v], MANY, 10, 4, RANDOM_MAX_MIN, false, err);
    batch_use_vectors(VECTORS_WIDEST);
    return r;
}

/* ---- sums ------------------------------------------------------------------------ */

struct sum_instance {
    struct arena arena;
    struct random_programme drawn;
    struct auction auction;
    double *x;
};

static const double prices[SUM_TYPES] = { 0.135, 0.43, 0.74 };

static void sum_instance_make(struct sum_instance *sums, uint32_t job_count)
{
    struct random_programme_setup setup = { .job_count = job_count,
                                            .type_count = SUM_TYPES,
                                            .jobs_per_gpu = 4,
                                            .noise = 0.15,
                                            .seed = 1 };
    struct random_programme *drawn = &sums->drawn;
    arena_init(&sums->arena, 0);
    random_programme_make(drawn, &sums->arena, &setup);
    sums->x = arena_array(&sums->arena, double, (size_t)job_count *SUM_TYPES);
    sums->auction = (struct auction){ .job_count = job_count,
                                      .type_count = SUM_TYPES,
                                      .capacity = drawn->capacity,
                                      .gang = drawn->gang,
                                      .value = drawn->rate,
                                      .rate = drawn->rate };
}

/* A part of the jobs gets a floor of up to a third of its mean rate. */
static void set_random_floors(struct sum_instance *sums, double part)
{
    const struct random_programme *drawn = &sums->drawn;
    struct rng rng;
    rng_init(&rng, 1, "floors");
    double *floor = arena_array(&sums->arena, double, drawn->job_count);
    for (uint32_t j = 0; j < drawn->job_count; j++) {
        double mean = 0;
        for (uint32_t t = 0; t < SUM_TYPES; t++)
            mean += drawn->rate[(size_t)j * SUM_TYPES + t] / SUM_TYPES;
        if (rng_unit(&rng) < part)
            floor[j] = mean * rng_unit(&rng) / 3;
    }
    sums->auction.floor = floor;
}

/* Every job's floor is the largest level that all can have: nothing is left over. */
static int set_level_floors(struct sum_instance *sums, struct error *err)
{
    struct random_programme *drawn = &sums->drawn;
    uint32_t n = drawn->job_count;
    struct market *market = market_new(SUM_TYPES, drawn->capacity, n);
    double *rate = arena_array(&sums->arena, double, (size_t)n *SUM_TYPES);
    double *floor = arena_array(&sums->arena, double, n);
    for (uint32_t j = 0; j < n; j++) {
        double *own = rate + (size_t)j * SUM_TYPES;
        struct buyer buyer = random_programme_buyer(drawn, RANDOM_MAX_MIN, j, own);
        for (uint32_t t = 0; t < SUM_TYPES; t++)
            own[t] /= buyer.need;
        buyer.rate = own;
        buyer.need = 1;
        market_put(market, j, &buyer);
    }
    struct market_answer answer;
    int r = market_solve(market, 1e-7, &answer, err);
    market_free(market);
    for (uint32_t j = 0; j < n; j++)
        floor[j] = answer.level;
    sums->auction.floor = floor;
    sums->auction.rate = rate;
    sums->auction.value = rate;
    return r;
}

static int time_sums(struct sum_instance *sums, double *ret_s, struct error *err)
{
    *ret_s = INFINITY;
    for (uint32_t i = 0; i < CLP_TIMES; i++) {
        struct auction_answer answer;
        double begin_s = clock_cpu_s();
        int r = auction_solve(&sums->auction, SUM_TOLERANCE, sums->x, &answer, err);
        *ret_s = fmin(*ret_s, clock_cpu_s() - begin_s);
        if (r < 0)
            return r;
        if (!answer.feasible)
            return error_set(err, -EDOM, "the floors of the bench do not fit");
    }
    return 0;
}

/* Seconds that CLP takes to solve it, without building the programme. */
static double time_sums_clp_s(const struct sum_instance *sums)
{
    const struct auction *a = &sums->auction;
    struct lp *lp = lp_new();
    for (uint32_t t = 0; t < SUM_TYPES; t++)
        lp_add_row(lp, -LP_INFINITY, a->capacity[t]);
    for (uint32_t j = 0; j < a->job_count; j++)
        lp_add_row(lp, -LP_INFINITY, 1);
    for (uint32_t j = 0; a->floor && j < a->job_count; j++)
        lp_add_row(lp, a->floor[j], LP_INFINITY);
    for (uint32_t j = 0; j < a->job_count; j++)
        for (uint32_t t = 0; t < SUM_TYPES; t++) {
            size_t cell = (size_t)j * SUM_TYPES + t;
            const uint32_t rows[] = { t, SUM_TYPES + j, SUM_TYPES + a->job_count + j };
            const double coefficients[] = { a->gang[j], 1, a->rate[cell] };
            lp_add_column(lp, a->value[cell], 0, LP_INFINITY, a->floor ? 3 : 2, rows,
                          coefficients);
        }
    double begin_s = clock_cpu_s();
    lp_maximise(lp, LP_DUAL);
    double s = clock_cpu_s() - begin_s;
    lp_free(lp);
    return s;
}

static int write_sums_row(struct bench *bench, const char *id,
                          struct sum_instance *sums, struct error *err)
{
    double s;
    int r = time_sums(sums, &s, err);
    if (r < 0)
        return r;
    if (sums->auction.job_count > SOME || sums->auction.cost)
        bench_row(bench, s * 1e3, "ms", sums->auction.job_count, "%s", id);
    else {
        double clp_s = INFINITY;
        for (uint32_t i = 0; i < CLP_TIMES; i++)
            clp_s = fmin(clp_s, time_sums_clp_s(sums));
        bench_row_versus(bench, id, s * 1e3, "ms", sums->auction.job_count, "CLP dual",
                         clp_s / s);
    }
    return 0;
}

static int measure_sums(struct bench *bench, uint32_t job_count, const char *size,
                        struct error *err)
{
    struct sum_instance sums;
    char id[64];
    sum_instance_make(&sums, job_count);
    snprintf(id, sizeof id, "sum_%s", size);
    int r = write_sums_row(bench, id, &sums, err);
    set_random_floors(&sums, 0.1);
    snprintf(id, sizeof id, "sum_floors_%s", size);
    if (r == 0)
        r = write_sums_row(bench, id, &sums, err);
    set_random_floors(&sums, 0.3);
    sums.auction.cost = prices;
    snprintf(id, sizeof id, "cost_ratio_%s", size);
    if (r == 0)
        r = write_sums_row(bench, id, &sums, err);
    sums.auction.cost = NULL;
    snprintf(id, sizeof id, "ties_%s", size);
    if (r == 0)
        r = set_level_floors(&sums, err);
    if (r == 0)
        r = write_sums_row(bench, id, &sums, err);
    arena_release(&sums.arena);
    return r;
}

/* ---- pairs ----------------------------------------------------------------------- */

struct pairs_instance {
    struct arena arena;
    struct random_programme drawn;
    struct pairs_input pairing;
    double *count; /* [class]; NULL: classes are jobs */
    double *need, *x;
};

/* A job's rate per unit of the level, on average over the accelerators. */
static double compute_need(const struct random_programme *drawn, uint32_t job)
{
    double rate[SUM_TYPES], all = 0, even = 0;
    for (uint32_t t = 0; t < SUM_TYPES; t++) {
        rate[t] = drawn->rate[(size_t)job * SUM_TYPES + t];
        even += rate[t] * drawn->capacity[t];
        all += drawn->capacity[t];
    }
    return drawn->weight[job] * even / all / drawn->gang[job];
}

/* Two jobs of a pair run at 35 to 95 % of their speed; a third of the pairs cannot run. */
static void add_pair(struct pairs_instance *s, struct rng *rng, uint32_t first,
                     uint32_t second)
{
    struct pairs_input *in = &s->pairing;
    uint32_t pair = in->pair_count++;
    ((struct programme_pair *)in->pairs)[pair] =
        (struct programme_pair){ first, second };
    for (uint32_t t = 0; t < SUM_TYPES; t++) {
        double *rates = (double *)in->pair_rate + ((size_t)pair * SUM_TYPES + t) * 2;
        bool fits = rng_unit(rng) >= 1.0 / 3;
        double part = 0.35 + 0.6 * rng_unit(rng);
        double other = first == second ? part : 0.35 + 0.6 * rng_unit(rng);
        rates[0] = fits ? part * in->rate[(size_t)first * SUM_TYPES + t] : 0;
        rates[1] = fits ? other * in->rate[(size_t)second * SUM_TYPES + t] : 0;
    }
}

static void pairs_instance_begin(struct pairs_instance *s, uint32_t job_count,
                                 double noise, uint32_t class_max, uint32_t pair_max)
{
    struct random_programme_setup setup = { .job_count = job_count,
                                            .type_count = SUM_TYPES,
                                            .jobs_per_gpu = 4,
                                            .noise = noise,
                                            .seed = 1 };
    *s = (struct pairs_instance){ 0 };
    arena_init(&s->arena, 0);
    random_programme_make(&s->drawn, &s->arena, &setup);
    s->need = arena_array(&s->arena, double, class_max);
    s->x = arena_array(&s->arena, double, ((size_t)class_max + pair_max) * SUM_TYPES);
    s->pairing = (struct pairs_input){
        .type_count = SUM_TYPES,
        .capacity = s->drawn.capacity,
        .pairs = arena_array(&s->arena, struct programme_pair, pair_max),
        .pair_rate = arena_array(&s->arena, double, (size_t)pair_max *SUM_TYPES * 2),
    };
}

/* A class per job, with about ten partners each. */
static void pairs_instance_of_jobs(struct pairs_instance *s, uint32_t job_count)
{
    struct rng rng;
    rng_init(&rng, 1, "partners");
    pairs_instance_begin(s, job_count, 0.15, job_count, job_count * 5);
    s->pairing.class_count = job_count;
    s->pairing.gang = s->drawn.gang;
    s->pairing.rate = s->drawn.rate;
    for (uint32_t j = 0; j < job_count; j++) {
        s->need[j] = compute_need(&s->drawn, j);
        uint32_t step = 1 + rng_below(&rng, 7);
        uint32_t found = 0;
        for (uint32_t k = j + step; k < job_count && found < 5; k += step) {
            if (s->drawn.gang[k] != s->drawn.gang[j])
                continue;
            add_pair(s, &rng, j, k);
            found++;
        }
    }
}

#define CLASSES_MAX 512

static bool is_in_class(const struct pairs_instance *s, uint32_t job, uint32_t class,
                        const double *weight)
{
    const struct random_programme *drawn = &s->drawn;
    bool same = s->pairing.gang[class] == drawn->gang[job] &&
                weight[class] == drawn->weight[job];
    for (uint32_t t = 0; same && t < SUM_TYPES; t++)
        same = s->pairing.rate[(size_t) class * SUM_TYPES + t] ==
               drawn->rate[(size_t)job * SUM_TYPES + t];
    return same;
}

static uint32_t find_class(const struct pairs_instance *s, uint32_t job,
                           const double *weight)
{
    uint32_t c = 0;
    while (c < s->pairing.class_count && !is_in_class(s, job, c, weight))
        c++;
    return c;
}

/* Equal jobs share a class; all classes of equal gang size are paired. */
static void pairs_instance_of_classes(struct pairs_instance *s, uint32_t job_count)
{
    struct rng rng;
    double weight[CLASSES_MAX] = { 0 };
    rng_init(&rng, 1, "classes");
    pairs_instance_begin(s, job_count, 0, CLASSES_MAX, CLASSES_MAX * CLASSES_MAX / 2);
    struct pairs_input *in = &s->pairing;
    double *gang = arena_array(&s->arena, double, CLASSES_MAX);
    double *rate = arena_array(&s->arena, double, CLASSES_MAX *SUM_TYPES);
    s->count = arena_array(&s->arena, double, CLASSES_MAX);
    in->gang = gang;
    in->rate = rate;
    in->count = s->count;
    for (uint32_t j = 0; j < job_count; j++) {
        uint32_t c = find_class(s, j, weight);
        if (c == in->class_count) {
            if (in->class_count == CLASSES_MAX)
                continue;
            in->class_count++;
            gang[c] = s->drawn.gang[j];
            weight[c] = s->drawn.weight[j];
            memcpy(rate + (size_t)c * SUM_TYPES, s->drawn.rate + (size_t)j * SUM_TYPES,
                   SUM_TYPES * sizeof *rate);
            s->need[c] = compute_need(&s->drawn, j);
        }
        s->count[c]++;
    }
    for (uint32_t a = 0; a < in->class_count; a++)
        for (uint32_t b = a; b < in->class_count; b++)
            if (gang[a] == gang[b])
                add_pair(s, &rng, a, b);
}

static int time_pairs(struct pairs_instance *s, struct pairs_solver *pairs,
                      double *ret_s, struct error *err)
{
    struct pairs_answer answer;
    double begin_s = clock_cpu_s();
    int r = pairs_level(pairs, &s->pairing, s->need, NULL, SUM_TOLERANCE, s->x, &answer,
                        err);
    *ret_s = fmin(*ret_s, clock_cpu_s() - begin_s);
    return r;
}

static int time_pairs_cold(struct pairs_instance *s, double *ret_s, struct error *err)
{
    int r = 0;
    *ret_s = INFINITY;
    for (uint32_t i = 0; r == 0 && i < CLP_TIMES; i++) {
        struct pairs_solver *pairs = pairs_solver_new();
        r = time_pairs(s, pairs, ret_s, err);
        pairs_solver_free(pairs);
    }
    return r;
}

/* Solve again after each arrival and departure. */
static int time_pairs_warm(struct pairs_instance *s, double *ret_s, struct error *err)
{
    struct pairs_solver *pairs = pairs_solver_new();
    double cold_s = INFINITY;
    int r = time_pairs(s, pairs, &cold_s, err);
    *ret_s = INFINITY;
    for (uint32_t i = 0; r == 0 && i < 10; i++) {
        s->count[i]++;
        s->count[i + 10]--;
        r = time_pairs(s, pairs, ret_s, err);
    }
    pairs_solver_free(pairs);
    return r;
}

static double time_pairs_clp_once_s(const struct pairs_instance *s)
{
    const struct pairs_input *in = &s->pairing;
    uint32_t n = in->class_count;
    struct lp *lp = lp_new();
    for (uint32_t t = 0; t < SUM_TYPES; t++)
        lp_add_row(lp, -LP_INFINITY, in->capacity[t]);
    for (uint32_t c = 0; c < n; c++)
        lp_add_row(lp, -LP_INFINITY, in->count ? in->count[c] : 1);
    for (uint32_t c = 0; c < n; c++)
        lp_add_row(lp, 0, LP_INFINITY);
    uint32_t level = lp_add_column(lp, 1, 0, LP_INFINITY, 0, NULL, NULL);
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t t = 0; t < SUM_TYPES; t++) {
            const uint32_t rows[] = { t, SUM_TYPES + c, SUM_TYPES + n + c };
            const double coefficients[] = { in->gang[c], 1,
                                            in->rate[(size_t)c * SUM_TYPES + t] };
            lp_add_column(lp, 0, 0, LP_INFINITY, 3, rows, coefficients);
        }
    for (uint32_t i = 0; i < in->pair_count; i++)
        for (uint32_t t = 0; t < SUM_TYPES; t++) {
            const double *rate = in->pair_rate + ((size_t)i * SUM_TYPES + t) * 2;
            uint32_t a = in->pairs[i].first, b = in->pairs[i].second;
            const uint32_t rows[] = { t, SUM_TYPES + a, SUM_TYPES + n + a,
                                      SUM_TYPES + b, SUM_TYPES + n + b };
            const double two[] = { in->gang[a], 1, rate[0], 1, rate[1] };
            const double one[] = { in->gang[a], 2, rate[0] + rate[1] };
            bool alone = a == b && in->count && in->count[a] < 2;
            if (rate[0] > 0 && !alone)
                lp_add_column(lp, 0, 0, LP_INFINITY, a == b ? 3 : 5, rows,
                              a == b ? one : two);
        }
    for (uint32_t c = 0; c < n; c++)
        lp_set_coefficient(lp, SUM_TYPES + n + c, level,
                           -s->need[c] * (in->count ? in->count[c] : 1));
    double begin_s = clock_cpu_s();
    lp_maximise(lp, LP_PRIMAL);
    double seconds = clock_cpu_s() - begin_s;
    lp_free(lp);
    return seconds;
}

/* The best of as many solutions as of our own. */
static double time_pairs_clp_s(const struct pairs_instance *s)
{
    double best_s = INFINITY;
    for (uint32_t i = 0; i < CLP_TIMES; i++)
        best_s = fmin(best_s, time_pairs_clp_once_s(s));
    return best_s;
}

static int measure_classes(struct bench *bench, struct error *err)
{
    struct pairs_instance s;
    double seconds;
    pairs_instance_of_classes(&s, MANY);
    int r = time_pairs_cold(&s, &seconds, err);
    if (r == 0)
        bench_row_versus(bench, "pairs_of_classes_100k", seconds * 1e3, "ms", MANY,
                         "CLP primal", time_pairs_clp_s(&s) / seconds);
    if (r == 0)
        r = time_pairs_warm(&s, &seconds, err);
    if (r == 0)
        bench_row(bench, seconds * 1e3, "ms", MANY, "pairs_of_classes_again_100k");
    arena_release(&s.arena);
    return r;
}

static int measure_job_pairs(struct bench *bench, const char *id, uint32_t job_count,
                             struct error *err)
{
    struct pairs_instance s;
    double seconds;
    pairs_instance_of_jobs(&s, job_count);
    int r = time_pairs_cold(&s, &seconds, err);
    if (r == 0)
        bench_row_versus(bench, id, seconds * 1e3, "ms", job_count, "CLP primal",
                         time_pairs_clp_s(&s) / seconds);
    arena_release(&s.arena);
    return r;
}

static int measure_all_sums(struct bench *bench, struct error *err)
{
    int r = measure_sums(bench, SOME, "4096", err);
    if (r == 0)
        r = measure_sums(bench, MANY, "100k", err);
    if (r == 0)
        r = measure_classes(bench, err);
    if (r == 0)
        r = measure_job_pairs(bench, "pairs_of_jobs_512", 512, err);
    if (r == 0)
        r = measure_job_pairs(bench, "pairs_of_jobs_2048", 2048, err);
    return r;
}

static int bench_solve_run(struct bench *bench, struct error *err)
{
    static const struct {
        const char *id;
        uint32_t job_count;
        double jobs_per_gpu;
        enum random_goal goal;
        bool beside_clp;
    } colds[] = {
        { "maxmin_1k", 1024, 4, RANDOM_MAX_MIN, true },
        { "maxmin_4k", SOME, 4, RANDOM_MAX_MIN, true },
        { "maxmin_100k", MANY, 4, RANDOM_MAX_MIN, false },
        { "makespan_4k", SOME, 4, RANDOM_MAKESPAN, true },
        { "makespan_100k", MANY, 4, RANDOM_MAKESPAN, false },
        { "makespan_12_per_gpu_100k", MANY, 12, RANDOM_MAKESPAN, false },
        { "finish_time_100k", MANY, 4, RANDOM_FINISH_TIME, false },
    };
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < sizeof colds / sizeof *colds; i++)
        r = measure_cold(bench, colds[i].id, colds[i].job_count, 3,
                         colds[i].jobs_per_gpu, colds[i].goal, colds[i].beside_clp,
                         err);
    if (r == 0)
        r = measure_vectors(bench, err);
    if (r == 0)
        r = measure_warm(bench, "maxmin_again_4k", SOME, true, err);
    if (r == 0)
        r = measure_warm(bench, "maxmin_again_100k", MANY, false, err);
    if (r == 0)
        r = measure_filling(bench, "water_filling_100k", 4, err);
    if (r == 0)
        r = measure_filling(bench, "water_filling_half_per_gpu_100k", 0.5, err);
    if (r == 0)
        r = measure_all_sums(bench, err);
    return r;
}

const struct bench_suite bench_solve = {
    .name = "solve",
    .brief = "shares by prices, beside the general solver",
    .run = bench_solve_run,
};
