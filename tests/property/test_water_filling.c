/* Water filling: levels as by asking CLP about one job after the other, shares that hold. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "solve/random_programme.h"
#include "solve/maxmin/water_filling.h"
#include "solve/lp/lp.h"
#include "solve/solve.h"
#include "solve/maxmin/market.h"

#define JOBS_MAX 12
#define TYPES_MAX 6

struct scene {
    uint32_t job_count, type_count;
    double capacity[TYPES_MAX];
    double gang[JOBS_MAX];
    double rate[JOBS_MAX * TYPES_MAX];
};

static double spread(struct rng *rng, double from, double to)
{
    return exp(log(from) + rng_unit(rng) * log(to / from));
}

static void draw_scene(struct scene *scene, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "filling");
    scene->job_count = 1 + rng_below(&rng, JOBS_MAX);
    scene->type_count = 1 + rng_below(&rng, TYPES_MAX);
    bool round = rng_below(&rng, 4) == 0; /* whole numbers: many ties */
    double load = spread(&rng, 0.3, 8);
    for (uint32_t j = 0; j < scene->job_count; j++) {
        double *rate = scene->rate + j * scene->type_count, any = 0;
        scene->gang[j] = 1 << rng_below(&rng, 4);
        for (uint32_t t = 0; t < scene->type_count; t++) {
            rate[t] = rng_below(&rng, 5) ? spread(&rng, 0.2, 5) : 0;
            if (round)
                rate[t] = rng_below(&rng, 4);
            any += rate[t];
        }
        if (any == 0)
            rate[0] = 1;
        if (j > 0 && rng_below(&rng, 6) == 0) /* identical to another job */
            for (uint32_t t = 0; t < scene->type_count; t++)
                rate[t] = scene->rate[t];
    }
    for (uint32_t t = 0; t < scene->type_count; t++) {
        scene->capacity[t] = scene->job_count / load * spread(&rng, 0.2, 3);
        if (round)
            scene->capacity[t] = rng_below(&rng, 5);
    }
}

struct judge {
    double slack; /* by which levels may fall again, so that rounding does not matter */
    struct lp *lp;
    uint32_t level_row[JOBS_MAX];
    double level[JOBS_MAX];
    bool frozen[JOBS_MAX];
};

/* Rows: capacity, budget, level of each job; columns: shares. */
static void reference_make(struct judge *judge, const struct scene *scene)
{
    uint32_t n = scene->job_count, k = scene->type_count, room[TYPES_MAX];
    uint32_t budget[JOBS_MAX];
    *judge = (struct judge){ .lp = lp_new() };
    for (uint32_t t = 0; t < k; t++)
        room[t] = lp_add_row(judge->lp, -LP_INFINITY, scene->capacity[t]);
    for (uint32_t j = 0; j < n; j++) {
        budget[j] = lp_add_row(judge->lp, -LP_INFINITY, 1);
        judge->level_row[j] = lp_add_row(judge->lp, 0, LP_INFINITY);
    }
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t t = 0; t < k; t++)
            lp_add_column(judge->lp, 0, 0, LP_INFINITY, 3,
                          (uint32_t[]){ room[t], budget[j], judge->level_row[j] },
                          (double[]){ scene->gang[j], 1, scene->rate[j * k + t] });
}

/* The largest level that the jobs in 'who' can have, the others keeping theirs. */
static double best_level(const struct judge *judge, const struct scene *scene,
                         const bool *who)
{
    struct judge fresh;
    uint32_t rows[JOBS_MAX], count = 0;
    double takes[JOBS_MAX];
    reference_make(&fresh, scene);
    for (uint32_t j = 0; j < scene->job_count; j++) {
        if (who[j]) {
            rows[count] = fresh.level_row[j];
            takes[count++] = -1;
        } else {
            lp_set_row(fresh.lp, fresh.level_row[j],
                       judge->level[j] - judge->slack * (1 + judge->level[j]),
                       LP_INFINITY);
        }
    }
    lp_add_column(fresh.lp, 1, 0, 100, count, rows, takes);
    enum lp_status status = lp_maximise(fresh.lp, LP_DUAL);
    double level = status == LP_OPTIMAL ? lp_objective(fresh.lp) : NAN;
    lp_free(fresh.lp);
    return level;
}

/* Lexicographic max-min, the long way.  False where CLP loses its way. */
static bool reference_fill(struct judge *judge, const struct scene *scene)
{
    uint32_t left = scene->job_count, n = scene->job_count;
    while (left > 0) {
        bool live[JOBS_MAX], stuck[JOBS_MAX];
        for (uint32_t j = 0; j < n; j++)
            live[j] = !judge->frozen[j];
        double level = best_level(judge, scene, live);
        if (isnan(level))
            return false;
        for (uint32_t j = 0; j < n; j++)
            if (live[j])
                judge->level[j] = level;
        for (uint32_t j = 0; j < n; j++) {
            bool alone[JOBS_MAX] = { false };
            alone[j] = true;
            stuck[j] =
                live[j] && best_level(judge, scene, alone) <= level * (1 + 5e-7) + 5e-7;
        }
        uint32_t before = left;
        for (uint32_t j = 0; j < n; j++)
            if (stuck[j]) {
                judge->frozen[j] = true;
                left--;
            }
        if (left == before)
            return false;
    }
    return true;
}

static void assert_shares_hold(const struct water_filling *filling, const double *level,
                               const double *x)
{
    double used[16] = { 0 };
    for (uint32_t j = 0; j < filling->job_count; j++) {
        double budget = 0, rate = 0;
        for (uint32_t t = 0; t < filling->type_count; t++) {
            uint64_t cell = (uint64_t)j * filling->type_count + t;
            assert_true(x[cell] >= 0);
            budget += x[cell];
            rate += x[cell] * filling->rate[cell];
            used[t] += x[cell] * filling->gang[j];
        }
        assert_true(budget <= 1 + 1e-9);
        assert_true(rate >= level[j] * (1 - 1e-9));
    }
    for (uint32_t t = 0; t < filling->type_count; t++)
        assert_true(used[t] <= filling->capacity[t] * (1 + 1e-9));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * From the least level up: where they first differ, ours is larger.  Since our shares
 * hold, that can only be because the judge stopped somebody a little early.  Some levels
 * depend on earlier ones a hundred thousand times over; how much the judge's own slack
 * matters is seen from a second one who has ten times as much.
 */
static void assert_no_worse(double *ours, double *solved_by_clp, double *loose,
                            uint32_t count)
{
    qsort(ours, count, sizeof *ours, by_size);
    qsort(solved_by_clp, count, sizeof *solved_by_clp, by_size);
    qsort(loose, count, sizeof *loose, by_size);
    for (uint32_t i = 0; i < count; i++) {
        double tolerance =
            5e-6 * (1 + solved_by_clp[i]) + fabs(solved_by_clp[i] - loose[i]);
        assert_true(ours[i] > solved_by_clp[i] - tolerance);
        if (ours[i] > solved_by_clp[i] + tolerance)
            return;
    }
}

static void fill_or_fail(const struct water_filling *filling, double *level, double *x,
                         struct water_filling_answer *answer)
{
    struct error err;
    if (water_filling_solve(filling, 1e-7, level, x, answer, &err) == 0)
        return;
    print_error("%s\n", err.text);
    fail();
}

static void levels_are_those_of_one_programme_per_job(void **state)
{
    FOR_EACH_SEED(seed, 200)
    {
        struct scene scene;
        struct water_filling_answer answer;
        double level[JOBS_MAX], x[JOBS_MAX * TYPES_MAX];
        draw_scene(&scene, seed.now);
        struct water_filling filling = { scene.job_count, scene.type_count,
                                         scene.capacity, scene.gang, scene.rate };
        fill_or_fail(&filling, level, x, &answer);
        assert_shares_hold(&filling, level, x);
        struct judge judge = { .slack = 1e-9 }, loose = { .slack = 1e-8 };
        if (reference_fill(&judge, &scene) && reference_fill(&loose, &scene))
            assert_no_worse(level, judge.level, loose.level, scene.job_count);
    }
}

/* How far all can rise from 'base' at 'speed', by CLP. */
static double reference_rise(const struct scene *scene, const double *base,
                             const double *speed, double most)
{
    struct judge fresh;
    uint32_t rows[JOBS_MAX];
    double takes[JOBS_MAX];
    reference_make(&fresh, scene);
    for (uint32_t j = 0; j < scene->job_count; j++) {
        rows[j] = fresh.level_row[j];
        takes[j] = -speed[j];
        lp_set_row(fresh.lp, rows[j], base[j], LP_INFINITY);
    }
    lp_add_column(fresh.lp, 1, 0, most, scene->job_count, rows, takes);
    assert_int_equal(lp_maximise(fresh.lp, LP_DUAL), LP_OPTIMAL);
    double by = lp_objective(fresh.lp);
    lp_free(fresh.lp);
    return by;
}

static void a_rise_from_anywhere_goes_as_far_as_by_clp(void **state)
{
    FOR_EACH_SEED(seed, 200)
    {
        struct scene scene;
        struct rng rng;
        struct water_rise rise;
        struct error err;
        double base[JOBS_MAX], speed[JOBS_MAX], most = 100;
        bool all[JOBS_MAX], stuck[JOBS_MAX], rises = false;
        draw_scene(&scene, seed.now);
        rng_init(&rng, seed.now, "rise");
        struct water_filling filling = { scene.job_count, scene.type_count,
                                         scene.capacity, scene.gang, scene.rate };
        struct water_filler *filler = water_filler_new(&filling, 1e-7);
        for (uint32_t j = 0; j < scene.job_count; j++)
            all[j] = true;
        double level = best_level(&(struct judge){ 0 }, &scene, all);
        for (uint32_t j = 0; j < scene.job_count; j++) {
            base[j] = fmin(0.9 * level * rng_unit(&rng), water_filler_top(filler, j));
            speed[j] = rng_below(&rng, 4) ? spread(&rng, 0.1, 10) : 0;
            if (speed[j] > 0)
                most = fmin(most, (water_filler_top(filler, j) - base[j]) / speed[j]);
            rises |= speed[j] > 0;
        }
        if (water_filler_rise(filler, base, speed, most, &rise, stuck, &err) < 0) {
            print_error("%s\n", err.text);
            fail();
        }
        double by = reference_rise(&scene, base, speed, most);
        assert_near(rise.by, by, 1e-6 * (1 + by));
        for (uint32_t j = 0; rise.held && j < scene.job_count; j++)
            rises = rises && !(stuck[j] && speed[j] > 0);
        if (rise.held)
            assert_false(rises); /* a job that rose is stuck */
        water_filler_free(filler);
    }
}

static void large_fillings_hold(void **state)
{
    FOR_EACH_SEED(seed, 9)
    {
        static const double loads[] = { 0.5, 1.5, 4 };
        uint32_t turn = (uint32_t)seed.now, n = 2000 + 500 * (turn % 5);
        struct arena arena;
        struct random_programme drawn;
        struct water_filling_answer answer;
        arena_init(&arena, 0);
        random_programme_make(
            &drawn, &arena,
            &(struct random_programme_setup){ .job_count = n,
                                              .type_count = 2 + turn % 5,
                                              .jobs_per_gpu = loads[turn % 3],
                                              .noise = turn % 4 ? 0.15 : 0,
                                              .seed = seed.now });
        uint32_t k = drawn.type_count;
        double *rate = arena_array(&arena, double, (uint64_t)n *k);
        double *x = arena_array(&arena, double, (uint64_t)n *k);
        double *level = arena_array(&arena, double, n);
        for (uint32_t j = 0; j < n; j++) {
            struct buyer buyer = random_programme_buyer(&drawn, RANDOM_MAX_MIN, j,
                                                        rate + (uint64_t)j * k);
            for (uint32_t t = 0; t < k; t++)
                rate[(uint64_t)j * k + t] /= buyer.need;
        }
        struct water_filling filling = { n, k, drawn.capacity, drawn.gang, rate };
        fill_or_fail(&filling, level, x, &answer);
        assert_shares_hold(&filling, level, x);
        assert_true(answer.rounds <= k + 1);
        arena_release(&arena);
    }
}

/* --- finish-time fairness: jobs rise as need z / (1 - ahead z) --- */

static double finish_level_of(double need, double ahead, double rate)
{
    return rate / (need + ahead * rate);
}

/* The most that a job can have while no job that is as late or later loses more than 'slack'. */
static double most_for(const struct scene *scene, uint32_t job, const double *rate,
                       const double *late, double slack)
{
    struct judge fresh;
    reference_make(&fresh, scene);
    for (uint32_t j = 0; j < scene->job_count; j++)
        if (j != job && late[j] <= late[job] * (1 + 1e-6))
            lp_set_row(fresh.lp, fresh.level_row[j], rate[j] * (1 - slack),
                       LP_INFINITY);
    lp_add_column(fresh.lp, 1, 0, 100, 1, &fresh.level_row[job], (double[]){ -1 });
    enum lp_status status = lp_maximise(fresh.lp, LP_DUAL);
    double most = status == LP_OPTIMAL ? lp_objective(fresh.lp) : NAN;
    lp_free(fresh.lp);
    return most;
}

static void no_job_can_finish_earlier_without_a_later_one_losing(void **state)
{
    FOR_EACH_SEED(seed, 150)
    {
        struct scene scene;
        struct water_filling_answer answer;
        struct rng rng;
        double rate[JOBS_MAX], late[JOBS_MAX], x[JOBS_MAX * TYPES_MAX];
        double need[JOBS_MAX], ahead[JOBS_MAX];
        draw_scene(&scene, seed.now);
        rng_init(&rng, seed.now, "finish");
        for (uint32_t j = 0; j < scene.job_count; j++) {
            need[j] = spread(&rng, 0.01, 1);
            ahead[j] = rng_below(&rng, 3) ? spread(&rng, 0.1, 3) : 0;
        }
        struct water_filling filling = { scene.job_count,
                                         scene.type_count,
                                         scene.capacity,
                                         scene.gang,
                                         scene.rate,
                                         need,
                                         ahead };
        fill_or_fail(&filling, rate, x, &answer);
        assert_shares_hold(&filling, rate, x);
        for (uint32_t j = 0; j < scene.job_count; j++)
            late[j] = finish_level_of(need[j], ahead[j], rate[j]);
        for (uint32_t j = 0; j < scene.job_count; j++) {
            double most = most_for(&scene, j, rate, late, 1e-7);
            double loose = most_for(&scene, j, rate, late, 1e-6);
            if (isnan(most) || isnan(loose))
                continue; /* CLP lost its way */
            assert_true(most <= rate[j] * (1 + 1e-5) + 1e-6 + 2 * (loose - most));
        }
    }
}

/* Types that are alike are one pool; with a hair of difference they are two. */
static void types_that_are_alike_give_the_shares_of_general_prices(void **state)
{
    FOR_EACH_SEED(seed, 60)
    {
        enum { JOBS = 30, TYPES = 3 };
        double rate[JOBS * TYPES], gang[JOBS], steps[JOBS], age[JOBS], alone[JOBS];
        double capacity[TYPES] = { 4, 8, 2 };
        double got[2][JOBS];
        struct arena arena;
        struct rng rng;
        arena_init(&arena, 0);
        rng_init(&rng, seed.now, "alike");
        for (uint32_t j = 0; j < JOBS; j++) {
            gang[j] = 1 << rng_below(&rng, 2);
            steps[j] = spread(&rng, 10, 1e4);
            age[j] = spread(&rng, 1, 1e4);
            alone[j] = rng_unit(&rng) * age[j];
            rate[j * TYPES] = spread(&rng, 0.1, 10);
            for (uint32_t t = 1; t < TYPES; t++)
                rate[j * TYPES + t] = rate[j * TYPES];
        }
        for (uint32_t i = 0; i < 2; i++) {
            rate[0] *= 1 + i * 1e-13;
            struct programme p = { .goal = GOAL_FINISH_TIME,
                                   .job_count = JOBS,
                                   .type_count = TYPES,
                                   .capacity = capacity,
                                   .gang = gang,
                                   .rate = rate,
                                   .steps = steps,
                                   .age_s = age,
                                   .alone_s = alone,
                                   .tidy = true };
            struct shares shares;
            struct error err = { 0 };
            assert_int_equal(
                programme_solve(&p, SOLVE_FAST, NULL, &arena, &shares, &err), 0);
            for (uint32_t j = 0; j < JOBS; j++) {
                got[i][j] = 0;
                for (uint32_t t = 0; t < TYPES; t++)
                    got[i][j] += shares.x[j * TYPES + t];
            }
        }
        for (uint32_t j = 0; j < JOBS; j++)
            assert_near(got[0][j], got[1][j], 1e-5);
        arena_release(&arena);
    }
}

RUN_CASES(TEST(levels_are_those_of_one_programme_per_job),
          TEST(a_rise_from_anywhere_goes_as_far_as_by_clp), TEST(large_fillings_hold),
          TEST(no_job_can_finish_earlier_without_a_later_one_losing),
          TEST(types_that_are_alike_give_the_shares_of_general_prices));
