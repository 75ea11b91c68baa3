/* Waiting jobs in one order per distinct demand. */
#include "support/world.h"

#include "policy/shared/sizes.h"

struct fixture {
    struct world w;
    struct sizes sizes;
};

static struct fixture *open_fixture(void)
{
    static struct fixture fixture;
    world_init(&fixture.w, 1, 8);
    sizes_init(&fixture.sizes, &fixture.w.arena, WORLD_JOBS_MAX);
    return &fixture;
}

static void close_desk(struct fixture *fixture)
{
    sizes_release(&fixture->sizes);
    world_release(&fixture->w);
}

static job_id push(struct fixture *fixture, uint32_t gpus, int64_t key, int64_t value)
{
    job_id job = world_queued(&fixture->w, (struct job){ .gpus = gpus });
    sizes_push(&fixture->sizes, &fixture->w.state.view, job, key, value);
    return job;
}

static job_id best(const struct fixture *fixture)
{
    return sizes_best(&fixture->sizes);
}

static void the_smallest_key_of_all_sizes_comes_first(void **state)
{
    struct fixture *fixture = open_fixture();
    assert_int_equal(best(fixture), JOB_NONE);
    push(fixture, 1, 30, 0);
    job_id b = push(fixture, 2, 10, 0);
    push(fixture, 2, 20, 0);
    assert_int_equal(best(fixture), b);
    assert_int_equal(sizes_key(&fixture->sizes, b), 10);
    job_id first = push(fixture, 4, 10, 5); /* equal keys: the lower id */
    assert_int_equal(best(fixture), b);
    sizes_remove(&fixture->sizes, &fixture->w.state.view, b);
    assert_int_equal(best(fixture), first);
    assert_int_equal(sizes_value(&fixture->sizes, first), 5);
    close_desk(fixture);
}

static void a_size_that_is_skipped_is_back_after_the_decision(void **state)
{
    struct fixture *fixture = open_fixture();
    job_id a = push(fixture, 1, 10, 0);
    push(fixture, 1, 20, 0);
    job_id c = push(fixture, 2, 30, 0);
    sizes_skip(&fixture->sizes, a); /* and all of its size */
    assert_int_equal(best(fixture), c);
    push(fixture, 1, 5, 0); /* one more of a skipped size */
    assert_int_equal(best(fixture), c);
    sizes_skip(&fixture->sizes, c);
    assert_int_equal(best(fixture), JOB_NONE);
    sizes_unskip(&fixture->sizes);
    assert_int_equal(sizes_key(&fixture->sizes, best(fixture)), 5);
    close_desk(fixture);
}

static void narrowing_leaves_jobs_of_small_value(void **state)
{
    struct fixture *fixture = open_fixture();
    job_id a = push(fixture, 1, 10, 100);
    push(fixture, 1, 20, 50);
    job_id c = push(fixture, 1, 30, 7);
    job_id d = push(fixture, 1, 40, 9);
    sizes_narrow(&fixture->sizes, a, 9);
    assert_int_equal(best(fixture), c);
    push(fixture, 1, 5, 10); /* ahead, but too large */
    assert_int_equal(best(fixture), c);
    sizes_take(&fixture->sizes, &fixture->w.state.view, c);
    assert_int_equal(best(fixture), d);
    sizes_take(&fixture->sizes, &fixture->w.state.view, d);
    assert_int_equal(best(fixture), JOB_NONE);
    sizes_unskip(&fixture->sizes);
    assert_int_equal(sizes_key(&fixture->sizes, best(fixture)), 5);
    close_desk(fixture);
}

static void jobs_taken_but_not_placed_are_back_at_the_next_decision(void **state)
{
    struct fixture *fixture = open_fixture();
    job_id a = push(fixture, 1, 10, 3);
    job_id b = push(fixture, 1, 20, 4);
    sizes_take(&fixture->sizes, &fixture->w.state.view, a);
    sizes_take(&fixture->sizes, &fixture->w.state.view, b);
    assert_int_equal(fixture->sizes.job_count, 0);
    world_apply(&fixture->w, (struct event){ .kind = EVENT_HELD, .job = b });

    sizes_begin(&fixture->sizes, &fixture->w.state.view); /* the plan was refused */

    assert_int_equal(fixture->sizes.job_count, 1); /* b no longer waits */
    assert_int_equal(best(fixture), a);
    assert_int_equal(sizes_key(&fixture->sizes, a), 10);
    assert_int_equal(sizes_value(&fixture->sizes, a), 3);
    close_desk(fixture);
}

static void demands_differ_in_more_than_gpus(void **state)
{
    struct fixture *fixture = open_fixture();
    struct job plain = { .gpus = 1 };
    struct job variants[] = { plain,
                              { .gpus = 1, .cpu_milli = 1 },
                              { .gpus = 1, .mem_mib = 1 },
                              { .gpus = 1, .nodes = 1 },
                              { .gpus = 1, .spread = true } };
    job_id jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = world_queued(&fixture->w, variants[i]);
        sizes_push(&fixture->sizes, &fixture->w.state.view, jobs[i], i, 0);
    }
    for (int i = 0; i < 5; i++) { /* skipping one leaves the others */
        assert_int_equal(best(fixture), jobs[i]);
        sizes_skip(&fixture->sizes, jobs[i]);
    }
    assert_int_equal(best(fixture), JOB_NONE);
    sizes_unskip(&fixture->sizes);
    assert_int_equal(best(fixture), jobs[0]);
    close_desk(fixture);
}

static void jobs_without_gpus_are_counted(void **state)
{
    struct fixture *fixture = open_fixture();
    job_id a = push(fixture, 0, 1, 0);
    push(fixture, 1, 2, 0);
    assert_int_equal(fixture->sizes.cpu_only_count, 1);
    sizes_push(&fixture->sizes, &fixture->w.state.view, a, 9, 0); /* changes nothing */
    assert_int_equal(fixture->sizes.job_count, 2);
    sizes_remove(&fixture->sizes, &fixture->w.state.view, a);
    sizes_remove(&fixture->sizes, &fixture->w.state.view, a);
    assert_int_equal(fixture->sizes.cpu_only_count, 0);
    assert_int_equal(fixture->sizes.job_count, 1);
    close_desk(fixture);
}

RUN_CASES(TEST(the_smallest_key_of_all_sizes_comes_first),
          TEST(a_size_that_is_skipped_is_back_after_the_decision),
          TEST(narrowing_leaves_jobs_of_small_value),
          TEST(jobs_taken_but_not_placed_are_back_at_the_next_decision),
          TEST(demands_differ_in_more_than_gpus), TEST(jobs_without_gpus_are_counted));
