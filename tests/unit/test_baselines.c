/* Shares that need no linear programme: closed forms, first come first served, AlloX. */
#include "support/cases.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "solve/solve.h"

ARENA_FIXTURE(arena);

static void isolated_is_an_equal_part_of_every_type(void **state)
{
    const double capacity[] = { 4, 2 }, gang[] = { 1, 4 };
    double x[4];
    shares_isolated(2, 2, capacity, gang, x);
    assert_near(x[0], 2.0 / 3, 1e-12); /* 2 and 1 are more than the time there is */
    assert_near(x[1], 1.0 / 3, 1e-12);
    assert_near(x[2], 0.5, 1e-12);
    assert_near(x[3], 0.25, 1e-12);
}

static void proportional_splits_time_as_accelerators_are(void **state)
{
    const double capacity[] = { 3, 1 }, nothing[] = { 0, 0 };
    double x[2];
    shares_proportional(1, 2, capacity, x);
    assert_near(x[0], 0.75, 0);
    shares_proportional(1, 2, nothing, x);
    assert_near(x[0], 0, 0);
}

/* Two types with 2 and 1 accelerators; the second is faster but for job 2. */
static struct fifo_shares queue(void)
{
    static const double capacity[] = { 2, 1 }, gang[] = { 1, 1, 1, 1 };
    static const double rate[] = { 1, 2, 1, 2, 3, 1, 1, 2 };
    return (struct fifo_shares){ .job_count = 4,
                                 .type_count = 2,
                                 .capacity = capacity,
                                 .gang = gang,
                                 .rate = rate,
                                 .aware = true };
}

static void take(const struct fifo_shares *q, const char *types)
{
    double x[16];
    shares_fifo(q, &arena, x);
    for (uint32_t j = 0; j < q->job_count; j++)
        for (uint32_t t = 0; t < q->type_count; t++)
            assert_near(x[j * q->type_count + t], types[j] == (char)('0' + t), 0);
}

static void the_first_takes_the_fastest(void **state)
{
    struct fifo_shares q = queue();
    take(&q, "100-");
}

static void without_rates_the_first_type_with_room_is_taken(void **state)
{
    struct fifo_shares q = queue();
    q.aware = false;
    take(&q, "001-");
}

static void a_job_without_room_holds_up_the_rest(void **state)
{
    struct fifo_shares q = queue();
    q.gang = (double[]){ 1, 2, 2, 1 };
    take(&q, "10--");
}

static void a_job_that_can_never_run_is_skipped(void **state)
{
    struct fifo_shares q = queue();
    q.gang = (double[]){ 8, 1, 1, 1 };
    take(&q, "-100");
    q.released = true;
    take(&q, "----");
}

static uint32_t first_or_last(void *context, uint32_t count)
{
    return *(const bool *)context ? count - 1 : 0;
}

/*
 * The released system fills the last type on its list and then strikes out a random
 * one: if that is another, the one with room is lost and all later jobs are skipped.
 */
static void the_released_system_may_strike_out_the_wrong_type(void **state)
{
    struct fifo_shares q = queue();
    bool last = true;
    q.aware = false;
    q.released = true;
    q.draw = first_or_last;
    q.draw_context = &last;
    take(&q, "100-");
    last = false;
    take(&q, "1---");
    q.gang = (double[]){ 9, 1, 1, 1 }; /* nothing fits: it holds up the rest */
    take(&q, "----");
}

static void a_job_that_cannot_run_beside_another_does_not_join_it(void **state)
{
    struct fifo_shares q = queue();
    q.pairs = (struct programme_pair[]){ { 2, 3 } };
    q.pair_count = 1;
    double x[10];
    for (int none = 0; none < 2; none++) {
        q.pair_rate = none ? (double[]){ 9, 0, 9, 0 } : (double[]){ 0, 9, 0, 9 };
        shares_fifo(&q, &arena, x);
        assert_near(x[4 * 2 + 0] + x[4 * 2 + 1], 0, 0);
    }
}

static void a_job_that_holds_a_type_keeps_it(void **state)
{
    struct fifo_shares q = queue();
    q.held = (uint32_t[]){ SHARES_NO_TYPE, SHARES_NO_TYPE, 1, SHARES_NO_TYPE };
    take(&q, "001-");
}

static void a_type_without_a_rate_is_not_taken(void **state)
{
    struct fifo_shares q = queue();
    q.rate = (double[]){ 0, 2, 0, 2, 3, 1, 1, 2 };
    take(&q, "1---");
}

static void a_job_that_does_well_beside_another_joins_it(void **state)
{
    struct fifo_shares q = queue();
    q.pairs = (struct programme_pair[]){ { 0, 3 }, { 1, 3 } };
    q.pair_rate = (double[]){ 1, 1, 1, 1, 0.9, 0.9, 0.9, 0.9 };
    q.pair_count = 2;
    double x[12];
    shares_fifo(&q, &arena, x); /* beside 1 on type 0: 1.8; beside 0 on type 1: 1 */
    assert_near(x[5 * 2 + 0], 1, 0);
    assert_near(x[1 * 2 + 0], 0, 0);
    assert_near(x[0 * 2 + 1], 1, 0);
    q.pair_rate = (double[]){ 1, 1, 1, 1, 0.7, 0.7, 0.9, 0.9 };
    shares_fifo(&q, &arena, x); /* 1.4 is not worth it */
    assert_near(x[5 * 2 + 0], 0, 0);
    assert_near(x[1 * 2 + 0], 1, 0);
}

static void allox_runs_the_short_first(void **state)
{
    const struct allox allox = { .job_count = 2,
                                 .type_count = 1,
                                 .capacity = (double[]){ 1 },
                                 .rate = (double[]){ 1, 1 },
                                 .steps = (double[]){ 30, 10 },
                                 .age_s = (double[]){ 5, 0 } };
    double x[2];
    assert_near(shares_allox(&allox, &arena, x), 10 + 40 + 5, 1e-9);
    assert_near(x[0], 0, 0);
    assert_near(x[1], 1, 0);
}

static void allox_gives_no_job_a_type_it_cannot_use(void **state)
{
    const struct allox allox = { .job_count = 1,
                                 .type_count = 2,
                                 .capacity = (double[]){ 1, 0 },
                                 .rate = (double[]){ 0, 1 },
                                 .steps = (double[]){ 10 },
                                 .age_s = (double[]){ 0 } };
    double x[2];
    shares_allox(&allox, &arena, x);
    assert_near(x[0], 0, 0);
    assert_near(x[1], 0, 0);
}

static void allox_without_workers_gives_nothing(void **state)
{
    const struct allox allox = { .job_count = 1,
                                 .type_count = 1,
                                 .capacity = (double[]){ 0 },
                                 .rate = (double[]){ 1 },
                                 .steps = (double[]){ 10 },
                                 .age_s = (double[]){ 0 } };
    double x[1];
    assert_near(shares_allox(&allox, &arena, x), 0, 0);
    assert_near(x[0], 0, 0);
}

/* Random jobs that are faster here or there, and the sums of both methods. */
static double allox_excess(uint64_t seed, uint32_t types, bool related)
{
    enum { JOBS = 100, TYPES = 3 };
    double rate[JOBS * TYPES], steps[JOBS], age_s[JOBS], x[JOBS * TYPES];
    double capacity[TYPES];
    double speed[TYPES] = { 1, 0.6, 0.2 };
    struct rng rng;
    rng_init(&rng, seed, "allox");
    for (uint32_t t = 0; t < types; t++)
        capacity[t] = 1 + (double)rng_below(&rng, 4);
    for (uint32_t j = 0; j < JOBS; j++) {
        steps[j] = exp(6 * rng_unit(&rng));
        age_s[j] = 100 * rng_unit(&rng);
        for (uint32_t t = 0; t < types; t++)
            rate[j * types + t] = related ? speed[t] : speed[t] * exp(rng_unit(&rng));
    }
    struct allox allox = { .job_count = JOBS,
                           .type_count = types,
                           .capacity = capacity,
                           .rate = rate,
                           .steps = steps,
                           .age_s = age_s };
    double exact = shares_allox(&allox, &arena, x);
    allox.fast = true;
    double fast = shares_allox(&allox, &arena, x);
    for (uint32_t t = 0; t < types; t++) {
        double used = 0;
        for (uint32_t j = 0; j < JOBS; j++)
            used += x[j * types + t];
        assert_true(used <= capacity[t]);
    }
    return fast / exact - 1;
}

static void allox_by_type_is_exact_where_types_differ_by_a_factor(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        for (uint32_t types = 1; types <= 3; types++)
            assert_near(allox_excess(seed, types, true), 0, 1e-9);
}

static void allox_by_type_is_close_where_jobs_differ(void **state)
{
    double sum = 0, worst = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double excess = allox_excess(seed, 3, false);
        assert_true(excess >= -1e-9);
        sum += excess;
        worst = fmax(worst, excess);
    }
    print_message("# excess %.5f in the mean, %.5f at most\n", sum / 20, worst);
    assert_true(sum / 20 < 0.01);
    assert_true(worst < 0.03);
}

RUN_CASES(CASE(isolated_is_an_equal_part_of_every_type),
          CASE(proportional_splits_time_as_accelerators_are),
          CASE(the_first_takes_the_fastest),
          CASE(without_rates_the_first_type_with_room_is_taken),
          CASE(a_job_without_room_holds_up_the_rest),
          CASE(a_job_that_can_never_run_is_skipped),
          CASE(the_released_system_may_strike_out_the_wrong_type),
          CASE(a_job_that_cannot_run_beside_another_does_not_join_it),
          CASE(a_job_that_holds_a_type_keeps_it),
          CASE(a_type_without_a_rate_is_not_taken),
          CASE(a_job_that_does_well_beside_another_joins_it),
          CASE(allox_runs_the_short_first),
          CASE(allox_gives_no_job_a_type_it_cannot_use),
          CASE(allox_by_type_is_exact_where_types_differ_by_a_factor),
          CASE(allox_by_type_is_close_where_jobs_differ),
          CASE(allox_without_workers_gives_nothing));
