/* Waiting jobs in one order per distinct demand. */
#include "support/world.h"

#include "policy/shared/sizes.h"

struct desk {
    struct world w;
    struct sizes sizes;
};

static struct desk *open_desk(void)
{
    static struct desk desk;
    world_init(&desk.w, 1, 8);
    sizes_init(&desk.sizes, &desk.w.arena, WORLD_JOBS_MAX);
    return &desk;
}

static void close_desk(struct desk *desk)
{
    sizes_release(&desk->sizes);
    world_release(&desk->w);
}

static job_id push(struct desk *desk, uint32_t gpus, int64_t key, int64_t value)
{
    job_id job = world_queued(&desk->w, (struct job){ .gpus = gpus });
    sizes_push(&desk->sizes, &desk->w.state.view, job, key, value);
    return job;
}

static job_id best(const struct desk *desk)
{
    return sizes_best(&desk->sizes);
}

static void the_smallest_key_of_all_sizes_comes_first(void **state)
{
    struct desk *desk = open_desk();
    assert_int_equal(best(desk), JOB_NONE);
    push(desk, 1, 30, 0);
    job_id b = push(desk, 2, 10, 0);
    push(desk, 2, 20, 0);
    assert_int_equal(best(desk), b);
    assert_int_equal(sizes_key(&desk->sizes, b), 10);
    job_id first = push(desk, 4, 10, 5); /* equal keys: the lower number */
    assert_int_equal(best(desk), b);
    sizes_remove(&desk->sizes, &desk->w.state.view, b);
    assert_int_equal(best(desk), first);
    assert_int_equal(sizes_value(&desk->sizes, first), 5);
    close_desk(desk);
}

static void a_size_that_is_skipped_is_back_after_the_decision(void **state)
{
    struct desk *desk = open_desk();
    job_id a = push(desk, 1, 10, 0);
    push(desk, 1, 20, 0);
    job_id c = push(desk, 2, 30, 0);
    sizes_skip(&desk->sizes, a); /* and all of its size */
    assert_int_equal(best(desk), c);
    push(desk, 1, 5, 0); /* one more of a size that is set aside */
    assert_int_equal(best(desk), c);
    sizes_skip(&desk->sizes, c);
    assert_int_equal(best(desk), JOB_NONE);
    sizes_unskip(&desk->sizes);
    assert_int_equal(sizes_key(&desk->sizes, best(desk)), 5);
    close_desk(desk);
}

static void narrowing_leaves_those_of_small_value(void **state)
{
    struct desk *desk = open_desk();
    job_id a = push(desk, 1, 10, 100);
    push(desk, 1, 20, 50);
    job_id c = push(desk, 1, 30, 7);
    job_id d = push(desk, 1, 40, 9);
    sizes_narrow(&desk->sizes, a, 9);
    assert_int_equal(best(desk), c);
    push(desk, 1, 5, 10); /* ahead, but too large */
    assert_int_equal(best(desk), c);
    sizes_take(&desk->sizes, &desk->w.state.view, c);
    assert_int_equal(best(desk), d);
    sizes_take(&desk->sizes, &desk->w.state.view, d);
    assert_int_equal(best(desk), JOB_NONE);
    sizes_unskip(&desk->sizes);
    assert_int_equal(sizes_key(&desk->sizes, best(desk)), 5);
    close_desk(desk);
}

static void what_was_taken_and_not_placed_is_back_at_the_next_decision(void **state)
{
    struct desk *desk = open_desk();
    job_id a = push(desk, 1, 10, 3);
    job_id b = push(desk, 1, 20, 4);
    sizes_take(&desk->sizes, &desk->w.state.view, a);
    sizes_take(&desk->sizes, &desk->w.state.view, b);
    assert_int_equal(desk->sizes.job_count, 0);
    world_apply(&desk->w, (struct event){ .kind = EVENT_HELD, .job = b });

    sizes_begin(&desk->sizes, &desk->w.state.view); /* the plan was refused */

    assert_int_equal(desk->sizes.job_count, 1); /* b does not wait any more */
    assert_int_equal(best(desk), a);
    assert_int_equal(sizes_key(&desk->sizes, a), 10);
    assert_int_equal(sizes_value(&desk->sizes, a), 3);
    close_desk(desk);
}

static void demands_differ_in_more_than_gpus(void **state)
{
    struct desk *desk = open_desk();
    struct job plain = { .gpus = 1 };
    struct job variants[] = { plain,
                              { .gpus = 1, .cpu_milli = 1 },
                              { .gpus = 1, .mem_mib = 1 },
                              { .gpus = 1, .nodes = 1 },
                              { .gpus = 1, .spread = true } };
    job_id jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = world_queued(&desk->w, variants[i]);
        sizes_push(&desk->sizes, &desk->w.state.view, jobs[i], i, 0);
    }
    for (int i = 0; i < 5; i++) { /* skipping one leaves the others */
        assert_int_equal(best(desk), jobs[i]);
        sizes_skip(&desk->sizes, jobs[i]);
    }
    assert_int_equal(best(desk), JOB_NONE);
    sizes_unskip(&desk->sizes);
    assert_int_equal(best(desk), jobs[0]);
    close_desk(desk);
}

static void jobs_without_gpus_are_counted(void **state)
{
    struct desk *desk = open_desk();
    job_id a = push(desk, 0, 1, 0);
    push(desk, 1, 2, 0);
    assert_int_equal(desk->sizes.cpu_only_count, 1);
    sizes_push(&desk->sizes, &desk->w.state.view, a, 9, 0); /* it does not mind */
    assert_int_equal(desk->sizes.job_count, 2);
    sizes_remove(&desk->sizes, &desk->w.state.view, a);
    sizes_remove(&desk->sizes, &desk->w.state.view, a);
    assert_int_equal(desk->sizes.cpu_only_count, 0);
    assert_int_equal(desk->sizes.job_count, 1);
    close_desk(desk);
}

RUN_CASES(TEST(the_smallest_key_of_all_sizes_comes_first),
          TEST(a_size_that_is_skipped_is_back_after_the_decision),
          TEST(narrowing_leaves_those_of_small_value),
          TEST(what_was_taken_and_not_placed_is_back_at_the_next_decision),
          TEST(demands_differ_in_more_than_gpus), TEST(jobs_without_gpus_are_counted));
