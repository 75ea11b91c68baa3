/* Sums, floors and ratios by prices against the general solver, in random auctions. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "solve/sums/auction.h"
#include "solve/lp/lp.h"

#ifndef SEEDS
#define SEEDS 600
#endif

#define JOBS 300
#define TYPES 8

struct scene {
    uint32_t n, k;
    double capacity[TYPES], cost[TYPES];
    double gang[JOBS], floor[JOBS];
    double value[JOBS * TYPES], rate[JOBS * TYPES], x[JOBS * TYPES];
    struct auction auction;
    struct auction_answer answer;
};

static struct rng rng;

static double between(double low, double high)
{
    return low + (high - low) * rng_unit(&rng);
}

static bool chance(double p)
{
    return rng_unit(&rng) < p;
}

/* ---- the reference, by CLP ---- */

enum form { SUM, LEVEL, RATIO };

/* Rows: capacities, budgets, floors, and for a ratio its denominator. */
static double judge(const struct scene *s, enum form form, double slack,
                    enum lp_status *ret_status, double *ret_x)
{
    struct lp *lp = lp_new();
    uint32_t budget = s->k, floor = s->k + s->n, whole = floor + s->n;
    for (uint32_t t = 0; t < s->k; t++)
        lp_add_row(lp, -LP_INFINITY, form == RATIO ? 0 : s->capacity[t]);
    for (uint32_t j = 0; j < s->n; j++)
        lp_add_row(lp, -LP_INFINITY, form == RATIO ? 0 : 1);
    for (uint32_t j = 0; j < s->n; j++) {
        double least = form == SUM ? s->floor[j] * (1 - slack) : 0;
        lp_add_row(lp, least, LP_INFINITY);
    }
    double dear =
        0; /* all there is: a denominator of that order keeps the judge exact */
    for (uint32_t t = 0; t < s->k; t++)
        dear += s->capacity[t] * s->cost[t];
    if (form == RATIO)
        lp_add_row(lp, dear, dear);
    for (uint32_t j = 0; j < s->n; j++)
        for (uint32_t t = 0; t < s->k; t++) {
            uint32_t rows[4] = { t, budget + j, floor + j, whole };
            double coefficients[4] = { s->gang[j], 1, s->rate[j * s->k + t],
                                       s->cost[t] * s->gang[j] };
            lp_add_column(lp, form == LEVEL ? 0 : s->value[j * s->k + t], 0,
                          LP_INFINITY, form == RATIO ? 4 : 3, rows, coefficients);
        }
    if (form != SUM) {
        static uint32_t rows[2 * JOBS + TYPES];
        static double coefficients[2 * JOBS + TYPES];
        for (uint32_t r = 0; r < whole; r++) {
            rows[r] = r;
            if (r >= floor)
                coefficients[r] = -s->floor[r - floor] * (1 - slack);
            else if (form == LEVEL)
                coefficients[r] = 0;
            else
                coefficients[r] = r < s->k ? -s->capacity[r] : -1;
        }
        lp_add_column(lp, form == LEVEL, 0, LP_INFINITY, whole, rows, coefficients);
    }
    *ret_status = lp_maximise(lp, LP_DUAL);
    double objective = lp_objective(lp);
    for (uint32_t i = 0; ret_x && i < s->n * s->k; i++)
        ret_x[i] = fmax(lp_columns(lp)[i], 0);
    lp_free(lp);
    return form == RATIO ? objective / dear : objective;
}

/* ---- scenes ---- */

static void make_scene(struct scene *s, uint32_t jobs_max)
{
    s->n = 1 + rng_below(&rng, chance(0.5) ? 12 : jobs_max);
    s->k = 1 + rng_below(&rng, TYPES);
    bool alike = chance(0.2), negative = chance(0.2), whole = chance(0.2);
    double zeros = chance(0.5) ? 0 : between(0, 0.7);
    double load = exp(between(log(0.3), log(12)));
    double gangs = 0;
    for (uint32_t j = 0; j < s->n; j++) {
        s->gang[j] = (double)(1u << rng_below(&rng, 4));
        s->floor[j] = 0;
        double size = exp(between(-3, 3));
        for (uint32_t t = 0; t < s->k; t++) {
            uint32_t i = j * s->k + t;
            s->rate[i] = chance(zeros) ? 0 : size * between(0.1, 2) * (1 + t);
            if (whole)
                s->rate[i] = floor(s->rate[i]);
            s->value[i] = chance(0.3) ? between(0, 5) : s->rate[i];
            if (negative && chance(0.3))
                s->value[i] = -s->value[i];
            if (alike && j > 0) {
                s->rate[i] = s->rate[i % (3 * s->k)];
                s->value[i] = s->value[i % (3 * s->k)];
            }
        }
        gangs += s->gang[j];
    }
    for (uint32_t t = 0; t < s->k; t++) {
        s->capacity[t] = chance(0.1) ? 0 : ceil(gangs / load / s->k * between(0.3, 2));
        s->cost[t] = between(0.1, 3);
    }
    s->auction = (struct auction){ .job_count = s->n,
                                   .type_count = s->k,
                                   .capacity = s->capacity,
                                   .gang = s->gang,
                                   .value = s->value };
}

static void add_floors(struct scene *s, double share, double height)
{
    for (uint32_t j = 0; j < s->n; j++) {
        double most = 0;
        for (uint32_t t = 0; t < s->k; t++)
            if (s->capacity[t] > 0)
                most = fmax(most, s->rate[j * s->k + t]);
        s->floor[j] = chance(share) ? most * height * rng_unit(&rng) : 0;
    }
    s->auction.rate = s->rate;
    s->auction.floor = s->floor;
}

static double reached_by(const struct scene *s, uint32_t job)
{
    double sum = 0;
    for (uint32_t t = 0; t < s->k; t++)
        sum += s->rate[job * s->k + t] * s->x[job * s->k + t];
    return sum;
}

static void assert_keeps_its_rows(const struct scene *s)
{
    double usage[TYPES] = { 0 };
    for (uint32_t j = 0; j < s->n; j++) {
        double time = 0;
        for (uint32_t t = 0; t < s->k; t++) {
            double x = s->x[j * s->k + t];
            assert_true(x >= 0);
            time += x;
            usage[t] += x * s->gang[j];
        }
        assert_true(time <= 1 + 1e-9);
        if (s->auction.floor)
            assert_true(reached_by(s, j) >= s->floor[j] * (1 - 3e-9) - 1e-300);
    }
    for (uint32_t t = 0; t < s->k; t++)
        assert_true(usage[t] <= s->capacity[t] * (1 + 1e-9));
}

/* Sum of absolute values: what a difference is relative to. */
static double size_of(const struct scene *s)
{
    double sum = 1e-3;
    for (uint32_t i = 0; i < s->n * s->k; i++)
        sum += fabs(s->value[i] * s->x[i]);
    return sum;
}

/* Prices to begin near, right or wrong, change nothing but the time it takes. */
static void solve(struct scene *s)
{
    struct error err = { "" };
    double near[TYPES];
    for (uint32_t t = 0; t < s->k; t++)
        near[t] = chance(0.5) ? s->answer.price[t] * between(0.8, 1.2) : between(0, 2);
    s->auction.near = chance(0.5) ? near : NULL;
    int r = auction_solve(&s->auction, 1e-6, s->x, &s->answer, &err);
    s->auction.near = NULL;
    if (r < 0)
        print_error("%s\n", err.text);
    assert_int_equal(r, 0);
    if (s->answer.feasible)
        assert_keeps_its_rows(s);
}

/*
 * Make the reference's shares feasible to the last bit; returns the level that they
 * reach.
 */
static double scale_down(struct scene *s)
{
    double usage[TYPES] = { 0 };
    double over = 1;
    for (uint32_t j = 0; j < s->n; j++) {
        double time = 0;
        for (uint32_t t = 0; t < s->k; t++) {
            if (s->capacity[t] <= 0)
                s->x[j * s->k + t] = 0;
            time += s->x[j * s->k + t];
            usage[t] += s->x[j * s->k + t] * s->gang[j];
        }
        over = fmax(over, time);
    }
    for (uint32_t t = 0; t < s->k; t++)
        if (s->capacity[t] > 0)
            over = fmax(over, usage[t] / s->capacity[t]);
    double level = INFINITY;
    for (uint32_t j = 0; j < s->n; j++)
        level = fmin(level, reached_by(s, j) / over / s->floor[j]);
    return level;
}

/* ---- what holds ---- */

static void compare_sum(struct scene *s)
{
    enum lp_status status;
    solve(s);
    double solved_by_clp = judge(s, SUM, 0, &status, NULL);
    if ((status == LP_OPTIMAL) != s->answer.feasible) { /* on the edge: either may be */
        enum lp_status strict, lax;
        judge(s, SUM, -1e-7, &strict, NULL);
        judge(s, SUM, 1e-7, &lax, NULL);
        assert_int_not_equal(strict, LP_OPTIMAL);
        assert_int_equal(lax, LP_OPTIMAL);
        return;
    }
    if (!s->answer.feasible)
        return;
    assert_near(s->answer.objective, solved_by_clp, 1e-6 * size_of(s));
    assert_true(s->answer.bound >= solved_by_clp - 1e-6 * size_of(s));
}

static void sums_are_largest(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS)
    {
        rng_init(&rng, seed.now, "sums");
        make_scene(&s, seed.now % 20 == 0 ? JOBS : 40);
        compare_sum(&s);
    }
}

static void sums_with_floors_are_largest_or_cannot_be(void **state)
{
    static struct scene s;
    uint32_t kept = 0;
    FOR_EACH_SEED(seed, 2 * SEEDS)
    {
        rng_init(&rng, seed.now, "floors");
        make_scene(&s, seed.now % 20 == 0 ? JOBS : 40);
        add_floors(&s, chance(0.3) ? 1 : rng_unit(&rng), between(0.02, 1.02));
        compare_sum(&s);
        kept += s.answer.feasible;
    }
    print_message("# floors kept: %u\n", kept);
}

/* Floors as they come from a solved max-min: nothing above them can be reached. */
static void floors_at_the_edge_are_kept(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS)
    {
        enum lp_status status;
        rng_init(&rng, seed.now, "edge");
        make_scene(&s, seed.now % 20 == 0 ? JOBS : 40);
        add_floors(&s, 1, 1);
        judge(&s, LEVEL, 0, &status, s.x);
        double level = scale_down(&s);
        if (status != LP_OPTIMAL || !(level > 1e-6))
            continue; /* a job that can run nowhere */
        level *= chance(0.5) ? 1 : 1 - 1e-9;
        for (uint32_t j = 0; j < s.n; j++) {
            s.floor[j] *= level;
            for (uint32_t t = 0; t < s.k; t++)
                s.value[j * s.k + t] =
                    s.floor[j] > 0 ? s.rate[j * s.k + t] / s.floor[j] : 0;
        }
        solve(&s);
        double least = judge(&s, SUM, 1e-8, &status, NULL);
        if (status != LP_OPTIMAL)
            continue;
        assert_true(s.answer.feasible);
        assert_true(s.answer.objective <= least + 1e-6 * size_of(&s));
        double most = judge(&s, SUM, 0, &status, NULL);
        if (status == LP_OPTIMAL)
            assert_true(s.answer.bound >= most - 1e-6 * size_of(&s));
    }
}

static void ratios_are_largest(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS)
    {
        enum lp_status status, alone;
        rng_init(&rng, seed.now, "ratios");
        make_scene(&s, seed.now % 20 == 0 ? JOBS : 40);
        add_floors(&s, chance(0.3) ? 1 : rng_unit(&rng), between(0.02, 0.6));
        s.floor[rng_below(&rng, s.n)] += 1e-3;
        s.auction.cost = s.cost;
        solve(&s);
        judge(&s, SUM, 0, &alone, NULL);
        double solved_by_clp = judge(&s, RATIO, 0, &status, NULL);
        assert_int_equal(alone == LP_OPTIMAL, s.answer.feasible);
        if (!s.answer.feasible)
            continue;
        assert_near(s.answer.objective, solved_by_clp,
                    2e-6 * fabs(solved_by_clp) + 1e-9);
    }
}

RUN_CASES(TEST(sums_are_largest), TEST(sums_with_floors_are_largest_or_cannot_be),
          TEST(floors_at_the_edge_are_kept), TEST(ratios_are_largest));
