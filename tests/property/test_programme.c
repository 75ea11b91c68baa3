/* Programmes of every goal: prices and the general solver agree, and both prove it. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "solve/problem.h"
#include "solve/lp/lp.h"
#include "solve/solve.h"

#define JOBS_MAX 48
#define SAME 1e-6

/* A random programme of any goal. */
struct world {
    struct programme programme;
    double capacity[SOLVE_TYPES_MAX], price[SOLVE_TYPES_MAX];
    double gang[JOBS_MAX], weight[JOBS_MAX], steps[JOBS_MAX], age_s[JOBS_MAX];
    double alone_s[JOBS_MAX], floor[JOBS_MAX];
    double rate[JOBS_MAX * SOLVE_TYPES_MAX];
    uint32_t group[JOBS_MAX];
    struct programme_group groups[4];
    struct programme_pair pairs[JOBS_MAX * JOBS_MAX / 2];
    double pair_rate[JOBS_MAX * JOBS_MAX / 2 * 6 * 2];
};

static double from(struct rng *rng, double low, double high)
{
    return low + (high - low) * rng_unit(rng);
}

static bool chance(struct rng *rng, double share)
{
    return rng_unit(rng) < share;
}

static void draw_types(struct rng *rng, struct world *w)
{
    struct programme *p = &w->programme;
    double load = exp(from(rng, log(0.2), log(12)));
    double workers = p->job_count / load + 1;
    for (uint32_t t = 0; t < p->type_count; t++) {
        w->capacity[t] = ceil(from(rng, 0, 2) * workers / p->type_count);
        if (chance(rng, 0.08))
            w->capacity[t] = 0;
        w->price[t] = from(rng, 0.1, 3);
    }
}

static void draw_job(struct rng *rng, struct world *w, uint32_t job)
{
    uint32_t types = w->programme.type_count;
    double *row = &w->rate[job * types];
    double base = exp(from(rng, -2, 5));
    w->gang[job] = chance(rng, 0.7) ? 1 : 1u << rng_below(rng, 4);
    w->weight[job] = chance(rng, 0.04) ? 0 : chance(rng, 0.2) ? 5 : 1;
    w->steps[job] = chance(rng, 0.03) ? 0 : exp(from(rng, 3, 12));
    w->age_s[job] = chance(rng, 0.3) ? 0 : exp(from(rng, 1, 10));
    w->alone_s[job] = chance(rng, 0.6) ? 0 : exp(from(rng, 1, 9));
    w->group[job] = rng_below(rng, w->programme.group_count);
    for (uint32_t t = 0; t < types; t++)
        row[t] = chance(rng, 0.08) ? 0 : base * from(rng, 0.3, 4);
    if (chance(rng, 0.25) && job > 0) { /* identical to another job */
        uint32_t other = rng_below(rng, job);
        memcpy(row, &w->rate[other * types], types * sizeof *row);
        w->gang[job] = w->gang[other];
    }
    if (chance(rng, 0.02))
        memset(row, 0, types * sizeof *row);
}

/* A part of what the job could have alone. */
static double drawn_floor(struct rng *rng, const struct world *w, uint32_t job,
                          double most)
{
    const struct programme *p = &w->programme;
    double best = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        if (w->capacity[t] > 0)
            best = fmax(best, w->rate[job * p->type_count + t]);
    return chance(rng, 0.7) ? 0 : best * from(rng, 0, most);
}

static void draw_pairs(struct rng *rng, struct world *w)
{
    struct programme *p = &w->programme;
    for (uint32_t a = 0; a < p->job_count; a++)
        for (uint32_t b = a + 1; b < p->job_count; b++) {
            if (w->gang[a] != w->gang[b] || chance(rng, 0.4))
                continue;
            uint32_t i = p->pair_count++;
            w->pairs[i] = (struct programme_pair){ a, b };
            for (uint32_t t = 0; t < p->type_count; t++) {
                double *cell = &w->pair_rate[(i * p->type_count + t) * 2];
                bool fits = chance(rng, 0.6);
                cell[0] = fits ? w->rate[a * p->type_count + t] * from(rng, 0.2, 1) : 0;
                cell[1] = fits ? w->rate[b * p->type_count + t] * from(rng, 0.2, 1) : 0;
            }
        }
}

static void draw(struct rng *rng, enum goal goal, bool sharing, struct world *w)
{
    uint32_t most = sharing ? 12 : JOBS_MAX;
    w->programme = (struct programme){
        .goal = goal,
        .job_count = 1 + rng_below(rng, most),
        .type_count = 1 + rng_below(rng, 6),
        .group_count = 1 + rng_below(rng, 4),
        .capacity = w->capacity,
        .gang = w->gang,
        .rate = w->rate,
        .weight = w->weight,
        .steps = w->steps,
        .age_s = w->age_s,
        .alone_s = w->alone_s,
        .price = goal == GOAL_COST_RATIO || chance(rng, 0.5) ? w->price : NULL,
        .group = w->group,
        .groups = w->groups,
        .pairs = w->pairs,
        .pair_rate = w->pair_rate,
        .tidy = chance(rng, 0.3),
    };
    struct programme *p = &w->programme;
    draw_types(rng, w);
    for (uint32_t g = 0; g < p->group_count; g++)
        w->groups[g] =
            (struct programme_group){ chance(rng, 0.1) ? 0 : 1 + rng_below(rng, 3),
                                      chance(rng, 0.4) };
    for (uint32_t j = 0; j < p->job_count; j++)
        draw_job(rng, w, j);
    if (chance(rng, 0.6)) {
        double part = chance(rng, 0.5) ? 0.3 : 1.1;
        for (uint32_t j = 0; j < p->job_count; j++)
            w->floor[j] = drawn_floor(rng, w, j, part);
        p->floor = w->floor;
    }
    if (sharing)
        draw_pairs(rng, w);
}

/* --- what must hold of an answer --- */

static struct arena arena;

static void shares_fit(const struct programme *p, const struct shares *shares)
{
    struct problem frame;
    problem_init(&frame, p, &arena);
    assert_true(problem_load(&frame, shares->x) <= 1 + 1e-9);
    for (uint32_t line = 0; line < frame.line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++) {
            double share = shares->x[line * p->type_count + t];
            assert_true(share >= 0);
            if (!problem_line_usable(&frame, line, t))
                assert_true(share == 0);
        }
    assert_true(shares->gap <= SAME);
    if (!p->floor || shares->status != SHARES_OPTIMAL ||
        (p->goal != GOAL_SUM && p->goal != GOAL_COST_RATIO))
        return;
    double rates[JOBS_MAX];
    problem_rates(&frame, shares->x, rates);
    for (uint32_t j = 0; j < p->job_count; j++)
        assert_true(rates[j] >= p->floor[j] * (1 - 1e-8));
}

/*
 * How near two rates of a job come, relative: a job that is split between two nearly
 * equal types turns a tiny difference of level into a large one of shares, and that
 * into others' levels.
 */
static double nearest_rates(const struct programme *p)
{
    double nearest = 1;
    for (uint32_t j = 0; j < p->job_count; j++)
        for (uint32_t t = 0; t < p->type_count; t++)
            for (uint32_t u = 0; u < t; u++) {
                double a = p->rate[j * p->type_count + t];
                double b = p->rate[j * p->type_count + u];
                if (a != b)
                    nearest = fmin(nearest, fabs(a - b) / fmax(a, b));
            }
    return nearest;
}

static void levels_agree(const struct programme *p, const struct shares *a,
                         const struct shares *b)
{
    /* Chains of stops add up: groups pass on what little the one before left. */
    bool chained = p->goal == GOAL_HIERARCHICAL || p->pair_count > 0;
    double same = fmax((chained ? 100 : 5) * SAME, 1e-7 / nearest_rates(p));
    double most = 0;
    for (uint32_t j = 0; a->level && j < p->job_count; j++)
        most = fmax(most, a->level[j]);
    for (uint32_t j = 0; a->level && j < p->job_count; j++)
        assert_near(a->level[j], b->level[j],
                    same * fmax(a->level[j], (chained ? 0.5 : 0.1) * most));
}

static struct shares solved(const struct programme *p, enum solve_engine engine,
                            struct solver *solver)
{
    struct shares shares;
    struct error err = { "" };
    int r = programme_solve(p, engine, solver, &arena, &shares, &err);
    if (r < 0)
        print_error("%s\n", err.text);
    assert_int_equal(r, 0);
    shares_fit(p, &shares);
    return shares;
}

/* Floors at the very edge may be kept by one engine and dropped by the other. */
static void agree(const struct programme *p, const struct shares *a,
                  const struct shares *b)
{
    assert_int_equal(a->status, b->status);
    assert_near(a->objective, b->objective,
                SAME * fmax(fabs(a->objective), fabs(b->objective)));
    levels_agree(p, a, b);
    for (uint32_t j = 0; a->unserved && j < p->job_count; j++)
        assert_int_equal(a->unserved[j], b->unserved[j]);
}

static void try_goal(enum goal goal, bool sharing, uint32_t rounds)
{
    static struct world world;
    FOR_EACH_SEED(seed, 5)
    {
        struct rng rng;
        rng_init(&rng, seed.now * 16 + goal, sharing ? "pairs" : "programme");
        for (uint32_t i = 0; i < rounds; i++) {
            arena_init(&arena, 0);
            draw(&rng, goal, sharing, &world);
            struct shares clp = solved(&world.programme, SOLVE_CLP, NULL);
            struct shares fast = solved(&world.programme, SOLVE_FAST, NULL);
            agree(&world.programme, &clp, &fast);
            arena_release(&arena);
        }
    }
}

#define AGREES(name, goal, rounds, shared_rounds) \
    static void name(void **state) \
    { \
        try_goal(goal, false, rounds); \
        try_goal(goal, true, shared_rounds); \
    }

AGREES(max_min_agrees, GOAL_MAX_MIN, 120, 30)
AGREES(water_filling_agrees, GOAL_WATER_FILLING, 100, 15)
AGREES(hierarchical_agrees, GOAL_HIERARCHICAL, 100, 10)
AGREES(makespan_agrees, GOAL_MAKESPAN, 120, 30)
AGREES(finish_time_agrees, GOAL_FINISH_TIME, 120, 30)
AGREES(sum_agrees, GOAL_SUM, 120, 30)
AGREES(ratio_agrees, GOAL_COST_RATIO, 120, 30)

/* --- what is kept between solutions changes nothing --- */

static void a_kept_solver_gives_the_same_answers(void **state)
{
    static struct world world;
    static const enum goal goals[] = { GOAL_MAX_MIN, GOAL_MAX_MIN, GOAL_MAKESPAN,
                                       GOAL_WATER_FILLING, GOAL_FINISH_TIME };
    FOR_EACH_SEED(seed, 8)
    {
        struct rng rng;
        rng_init(&rng, seed.now, "kept");
        struct solver *solver = solver_new();
        draw(&rng, GOAL_MAX_MIN, false, &world);
        for (uint32_t i = 0; i < 40; i++) {
            struct programme *p = &world.programme;
            arena_init(&arena, 0);
            /* One job becomes another, now and then one comes or goes. */
            draw_job(&rng, &world, rng_below(&rng, p->job_count));
            if (chance(&rng, 0.3) && p->job_count < JOBS_MAX)
                draw_job(&rng, &world, p->job_count++);
            if (chance(&rng, 0.3) && p->job_count > 1)
                p->job_count--;
            if (chance(&rng, 0.1))
                draw_types(&rng, &world);
            p->goal = goals[rng_below(&rng, sizeof goals / sizeof *goals)];
            struct shares kept = solved(p, SOLVE_FAST, solver);
            struct shares anew = solved(p, SOLVE_CLP, NULL);
            agree(p, &anew, &kept);
            arena_release(&arena);
        }
        solver_free(solver);
    }
}

/* --- a ratio by one linear programme: scale so that the cost is 1 (Charnes, Cooper) --- */

static double ratio_by_scaling(const struct programme *p)
{
    struct lp *lp = lp_new();
    uint32_t paid = lp_add_row(lp, 1, 1);
    uint32_t types = p->type_count;
    for (uint32_t i = 0; i < types + p->job_count; i++)
        lp_add_row(lp, -LP_INFINITY, 0);
    for (uint32_t j = 0; j < p->job_count; j++)
        lp_add_row(lp, 0, LP_INFINITY);
    uint32_t rows[1 + SOLVE_TYPES_MAX + 2 * JOBS_MAX];
    double values[1 + SOLVE_TYPES_MAX + 2 * JOBS_MAX];
    for (uint32_t j = 0; j < p->job_count; j++)
        for (uint32_t t = 0; t < types; t++) {
            double rate = p->rate[j * types + t];
            if (!(rate > 0 && p->capacity[t] > 0))
                continue;
            rows[0] = paid, values[0] = p->gang[j] * p->price[t];
            rows[1] = 1 + t, values[1] = p->gang[j];
            rows[2] = 1 + types + j, values[2] = 1;
            rows[3] = 1 + types + p->job_count + j, values[3] = rate;
            lp_add_column(lp, rate, 0, LP_INFINITY, 4, rows, values);
        }
    uint32_t count = 0;
    for (uint32_t t = 0; t < types; t++, count++)
        rows[count] = 1 + t, values[count] = -p->capacity[t];
    for (uint32_t j = 0; j < p->job_count; j++, count++)
        rows[count] = 1 + types + j, values[count] = -1;
    for (uint32_t j = 0; p->floor && j < p->job_count; j++, count++)
        rows[count] = 1 + types + p->job_count + j, values[count] = -p->floor[j];
    lp_add_column(lp, 0, 0, LP_INFINITY, count, rows, values);
    enum lp_status status = lp_maximise(lp, LP_PRIMAL);
    double ratio = status == LP_OPTIMAL ? lp_objective(lp) : -1;
    lp_free(lp);
    return ratio;
}

static void the_ratio_is_that_of_another_method(void **state)
{
    static struct world world;
    uint32_t compared = 0;
    FOR_EACH_SEED(seed, 6)
    {
        struct rng rng;
        rng_init(&rng, seed.now, "scaling");
        for (uint32_t i = 0; i < 60; i++) {
            arena_init(&arena, 0);
            draw(&rng, GOAL_COST_RATIO, false, &world);
            struct shares shares = solved(&world.programme, SOLVE_FAST, NULL);
            double ratio = ratio_by_scaling(&world.programme);
            if (shares.status == SHARES_OPTIMAL && ratio > 0) {
                assert_near(shares.objective, ratio, SAME * ratio);
                compared++;
            }
            arena_release(&arena);
        }
    }
    assert_true(compared > 20);
}

RUN_CASES(TEST(max_min_agrees), TEST(water_filling_agrees), TEST(hierarchical_agrees),
          TEST(makespan_agrees), TEST(finish_time_agrees), TEST(sum_agrees),
          TEST(ratio_agrees), TEST(a_kept_solver_gives_the_same_answers),
          TEST(the_ratio_is_that_of_another_method));
