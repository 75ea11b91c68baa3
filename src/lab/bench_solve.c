/*
 * bench_solve.c - berth bench solve: shares by prices, beside the general solver.
 *
 * Drawn programmes (solve/random_programme.h), four jobs per accelerator unless a row says otherwise.
 * A row is the best of a few cold runs, each from jobs put into an empty market to every
 * job's share read.  Every answer comes with a proof that it is within 1e-7.  CLP solves the
 * same programme where that takes seconds; its time excludes building the programme.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "solve/lp/lp.h"
#include "solve/prices/batch.h"
#include "solve/maxmin/market.h"
#include "solve/maxmin/water_filling.h"
#include "solve/random_programme.h"

#define MANY 100000
#define SOME 4096
#define TIMES 5
#define CLP_TIMES 3
#define TOLERANCE 1e-7
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
        r = bench_solve_sums(bench, err);
    return r;
}

const struct bench_suite bench_solve = {
    .name = "solve",
    .brief = "shares by prices, beside the general solver",
    .run = bench_solve_run,
};
