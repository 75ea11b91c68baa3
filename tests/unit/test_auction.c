/* The largest sum by prices: small auctions by hand, and large ones by their proof. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/sums/auction.h"
#include "solve/random_programme.h"

#define EACH(...) ((double[]){ __VA_ARGS__ })

static double x[64];
static struct auction_answer answer;
static struct error err;

static void solve(const struct auction *auction)
{
    memset(&err, 0, sizeof err);
    assert_int_equal(auction_solve(auction, 1e-6, x, &answer, &err), 0);
}

static void assert_refused(const struct auction *auction, const char *sentence)
{
    assert_int_equal(auction_solve(auction, 1e-6, x, &answer, &err), -EINVAL);
    assert_string_equal(err.text, sentence);
}

static void the_job_that_gains_most_gets_the_fast_type(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 2,
                               .capacity = EACH(1, 1),
                               .gang = EACH(1, 1),
                               .value = EACH(1, 4, /**/ 3, 5) };
    solve(&auction);
    assert_near(answer.objective, 7, 1e-9); /* 4 + 3; not 1 + 5 */
    assert_near(x[1], 1, 1e-9);
    assert_near(x[2], 1, 1e-9);
    assert_near(answer.bound, 7, 1e-9);
}

static void a_gang_pays_for_all_its_accelerators(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 1,
                               .capacity = EACH(4),
                               .gang = EACH(4, 2),
                               .value = EACH(6, 4) };
    solve(&auction);
    assert_near(answer.objective, 4 + 3, 1e-9); /* 2 each, then 1.5 each */
    assert_near(x[0], 0.5, 1e-9);
    assert_near(x[1], 1, 1e-9);
}

static void what_is_worth_less_than_nothing_is_not_taken(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 1,
                               .capacity = EACH(8),
                               .gang = EACH(1, 1),
                               .value = EACH(-3, 0) };
    solve(&auction);
    assert_true(answer.feasible);
    assert_near(answer.objective, 0, 0);
    assert_near(x[0], 0, 0);
}

static void a_floor_is_kept_at_the_others_cost(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 1,
                               .capacity = EACH(1),
                               .gang = EACH(1, 1),
                               .value = EACH(10, 1),
                               .rate = EACH(10, 1),
                               .floor = EACH(0, 0.25) };
    solve(&auction);
    assert_true(answer.feasible);
    assert_near(x[1], 0.25, 1e-9);
    assert_near(answer.objective, 7.75, 1e-8);
}

/* Too slow alone on what it likes, it takes two types in turns. */
static void a_floor_between_two_types_takes_both(void **state)
{
    struct auction auction = { .job_count = 1,
                               .type_count = 2,
                               .capacity = EACH(1, 1),
                               .gang = EACH(1),
                               .value = EACH(5, 1),
                               .rate = EACH(1, 3),
                               .floor = EACH(2) };
    solve(&auction);
    assert_near(x[0], 0.5, 1e-9);
    assert_near(x[1], 0.5, 1e-9);
    assert_near(answer.objective, 3, 1e-8);
}

static void floors_that_cannot_be_kept_are_reported(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 1,
                               .capacity = EACH(1),
                               .gang = EACH(1, 1),
                               .value = EACH(1, 1),
                               .rate = EACH(1, 1),
                               .floor = EACH(0.6, 0.6) };
    solve(&auction);
    assert_false(answer.feasible);

    auction.floor = EACH(1.1, 0); /* not even alone */
    solve(&auction);
    assert_false(answer.feasible);

    auction.floor = EACH(0.5, 0.5); /* just so */
    solve(&auction);
    assert_true(answer.feasible);
    assert_near(answer.objective, 1, 1e-8);

    auction.capacity = EACH(0);
    solve(&auction);
    assert_false(answer.feasible);
}

static void nothing_to_share_is_an_answer(void **state)
{
    struct auction auction = { .job_count = 0, .type_count = 1, .capacity = EACH(4) };
    solve(&auction);
    assert_true(answer.feasible);
    assert_near(answer.objective, 0, 0);

    auction = (struct auction){ .job_count = 1,
                                .type_count = 2,
                                .capacity = EACH(0, 0),
                                .gang = EACH(1),
                                .value = EACH(1, 1) };
    solve(&auction);
    assert_true(answer.feasible);
    assert_near(answer.objective, 0, 0);
    assert_near(x[0] + x[1], 0, 0);
}

static void a_ratio_without_floors_is_that_of_the_best_alone(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 2,
                               .capacity = EACH(1, 1),
                               .gang = EACH(1, 2),
                               .value = EACH(2, 3, /**/ 2, 9),
                               .cost = EACH(1, 2) };
    solve(&auction);
    assert_near(answer.objective, 9.0 / 4, 1e-8); /* the second on the second type */
    assert_near(x[3], 0.5, 1e-9);                 /* as much as there is room for  */
    assert_near(x[0] + x[1] + x[2], 0, 1e-12);
}

static void a_ratio_keeps_floors(void **state)
{
    struct auction auction = { .job_count = 2,
                               .type_count = 1,
                               .capacity = EACH(2),
                               .gang = EACH(1, 1),
                               .value = EACH(4, 1),
                               .rate = EACH(4, 1),
                               .floor = EACH(0, 1),
                               .cost = EACH(2) };
    solve(&auction);
    assert_near(answer.objective, 5.0 / 4, 1e-6); /* both; alone the first has 2 */
}

static void what_costs_nothing_has_no_ratio(void **state)
{
    struct auction auction = { .job_count = 1,
                               .type_count = 2,
                               .capacity = EACH(1, 1),
                               .gang = EACH(1),
                               .value = EACH(5, 1),
                               .cost = EACH(1, 0) };
    solve(&auction);
    assert_true(isinf(answer.objective));
    assert_near(x[1], 1, 1e-9);
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
    struct auction auction = { .job_count = 1,
                               .type_count = 1,
                               .capacity = EACH(1),
                               .gang = EACH(1),
                               .value = EACH(NAN) };
    assert_refused(&auction, "job 0, type 0: its value is nan");
    auction.value = EACH(1);
    auction.gang = EACH(0);
    assert_refused(&auction, "job 0: its gang is 0, want more than 0");
    auction.gang = EACH(1);
    auction.capacity = EACH(-1);
    assert_refused(&auction, "type 0: its capacity is -1, want 0 or more");
    auction.capacity = EACH(1);
    auction.floor = EACH(-2);
    auction.rate = EACH(1);
    assert_refused(&auction, "job 0: its floor is -2, want 0 or more");
    auction.floor = EACH(1);
    auction.rate = EACH(INFINITY);
    assert_refused(&auction, "job 0, type 0: its rate is inf, want 0 or more");
    auction.rate = EACH(-1);
    assert_refused(&auction, "job 0, type 0: its rate is -1, want 0 or more");
    auction.rate = EACH(1);
    auction.floor = EACH(INFINITY);
    assert_refused(&auction, "job 0: its floor is inf, want 0 or more");
    auction.floor = EACH(1);
    auction.gang = EACH(INFINITY);
    assert_refused(&auction, "job 0: its gang is inf, want more than 0");
    auction.gang = EACH(1);
    auction.cost = EACH(-1);
    assert_refused(&auction, "type 0: its cost is -1, want 0 or more");
    auction.cost = EACH(INFINITY);
    assert_refused(&auction, "type 0: its cost is inf, want 0 or more");
    auction.cost = NULL;
    auction.capacity = EACH(INFINITY);
    assert_refused(&auction, "type 0: its capacity is inf, want 0 or more");
    auction.capacity = EACH(1);
    auction.type_count = 0;
    assert_refused(&auction, "0 types, want 1 to 16");
    auction.type_count = 17;
    assert_refused(&auction, "17 types, want 1 to 16");
}

/* ---- large ones ---- */

struct auction_jobs {
    struct arena arena;
    struct random_programme drawn;
    struct auction auction;
    double *x;
};

static void auction_jobs_init(struct auction_jobs *jobs, double noise)
{
    struct random_programme_setup setup = {
        .job_count = 5000, .type_count = 3, .jobs_per_gpu = 4, .noise = noise, .seed = 3
    };
    struct random_programme *drawn = &jobs->drawn;
    arena_init(&jobs->arena, 0);
    random_programme_make(drawn, &jobs->arena, &setup);
    jobs->x = arena_array(&jobs->arena, double, 2 * 5000 * 3);
    jobs->auction = (struct auction){ .job_count = 5000,
                                      .type_count = 3,
                                      .capacity = drawn->capacity,
                                      .gang = drawn->gang,
                                      .value = drawn->rate,
                                      .rate = drawn->rate };
}

static void assert_certain(const struct auction_jobs *jobs, uint32_t types)
{
    const struct auction *a = &jobs->auction;
    double usage[16] = { 0 };
    assert_true(answer.feasible);
    assert_near(answer.objective, answer.bound, 1e-6 * answer.bound);
    for (uint32_t j = 0; j < a->job_count; j++) {
        double time = 0, rate = 0;
        for (uint32_t t = 0; t < types; t++) {
            double share = jobs->x[j * types + t];
            assert_true(share >= 0);
            time += share;
            rate += share * a->value[j * types + t];
            usage[t] += share * a->gang[j];
        }
        assert_true(time <= 1 + 1e-9);
        assert_true(!a->floor || rate >= a->floor[j] * (1 - 2e-9));
    }
    for (uint32_t t = 0; t < types; t++)
        assert_true(usage[t] <= a->capacity[t] * (1 + 1e-9));
}

/* Samples and boxes are used; many jobs are alike. */
static void large_sums_are_proven(void **state)
{
    for (int alike = 0; alike < 2; alike++) {
        struct auction_jobs jobs;
        auction_jobs_init(&jobs, alike ? 0 : 0.15);
        assert_int_equal(auction_solve(&jobs.auction, 1e-6, jobs.x, &answer, &err), 0);
        assert_certain(&jobs, 3);
        double *floor = arena_array(&jobs.arena, double, 5000);
        for (uint32_t j = 0; j < 5000; j += 3)
            floor[j] = 0.4 * jobs.drawn.rate[j * 3 + 1];
        jobs.auction.floor = floor;
        assert_int_equal(auction_solve(&jobs.auction, 1e-6, jobs.x, &answer, &err), 0);
        assert_certain(&jobs, 3);
        double sum = answer.objective;
        jobs.auction.cost = EACH(1, 2, 3);
        assert_int_equal(auction_solve(&jobs.auction, 1e-6, jobs.x, &answer, &err), 0);
        assert_certain(&jobs, 3);
        assert_true(answer.objective < sum);
        arena_release(&jobs.arena);
    }
}

static void the_same_auction_has_the_same_answer(void **state)
{
    struct auction_jobs jobs;
    auction_jobs_init(&jobs, 0.15);
    double *again = jobs.x + 5000 * 3;
    auction_solve(&jobs.auction, 1e-6, jobs.x, &answer, &err);
    struct auction_answer first = answer;
    auction_solve(&jobs.auction, 1e-6, again, &answer, &err);
    assert_memory_equal(jobs.x, again, 5000 * 3 * sizeof *again);
    assert_memory_equal(&first.objective, &answer.objective, sizeof answer.objective);
    assert_memory_equal(&first.bound, &answer.bound, sizeof answer.bound);
    arena_release(&jobs.arena);
}

RUN_CASES(TEST(the_job_that_gains_most_gets_the_fast_type),
          TEST(a_gang_pays_for_all_its_accelerators),
          TEST(what_is_worth_less_than_nothing_is_not_taken),
          TEST(a_floor_is_kept_at_the_others_cost),
          TEST(a_floor_between_two_types_takes_both),
          TEST(floors_that_cannot_be_kept_are_reported),
          TEST(nothing_to_share_is_an_answer),
          TEST(a_ratio_without_floors_is_that_of_the_best_alone),
          TEST(a_ratio_keeps_floors), TEST(what_costs_nothing_has_no_ratio),
          TEST(numbers_that_make_no_sense_are_refused), TEST(large_sums_are_proven),
          TEST(the_same_auction_has_the_same_answer));
