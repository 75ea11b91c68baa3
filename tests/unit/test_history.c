/* What forecasts are made from: additions while another thread reads wait until it has done. */
#include "support/cases.h"

#include "forecast/history.h"
#include "model/node_set.h"

static struct forecast_history history;

static int setup(void **state)
{
    history_init(&history);
    return 0;
}

static int teardown(void **state)
{
    history_release(&history);
    return 0;
}

static struct job job_of(uint64_t id)
{
    return (struct job){ .id = id,
                         .gpus = 1,
                         .kind = KIND_NONE,
                         .user = 1,
                         .rate_best_per_s = 1,
                         .submit_ns = (int64_t)id * 1000 };
}

static void submit(uint64_t id)
{
    struct job job = job_of(id);
    history_submitted(&history, &job);
}

static void end(uint64_t id)
{
    struct job job = job_of(id);
    history_ended(&history, &job, (double)id);
}

static void it_is_known_at_once_while_nobody_reads(void **state)
{
    submit(1);
    end(1);
    assert_true(history.arrivals.count == 1);
    assert_true(history.times.count == 1);
    assert_int_equal(history.aside_count, 0);
}

static void what_a_reader_sees_does_not_change(void **state)
{
    submit(1);
    history_freeze(&history);
    submit(2);
    end(1);
    assert_true(history.arrivals.count == 1 && history.times.count == 0);
    history_thaw(&history);
    assert_true(history.arrivals.count == 2 && history.times.count == 1);
    assert_int_equal(history.aside_count, 0);
}

static void the_last_of_two_readers_lets_them_in(void **state)
{
    history_freeze(&history);
    history_freeze(&history);
    submit(1);
    history_thaw(&history);
    assert_true(history.arrivals.count == 0);
    submit(2);
    history_thaw(&history);
    assert_true(history.arrivals.count == 2);
    assert_true(history.arrivals.jobs[0].id == 1 && history.arrivals.jobs[1].id == 2);
    submit(3); /* at once again */
    assert_true(history.arrivals.count == 3);
}

static void of_too_many_the_first_are_kept(void **state)
{
    double values[RUN_TIMES_OF_KEY];
    enum run_basis basis;
    struct job job = job_of(1);
    history_freeze(&history);
    for (uint64_t id = 1; id <= HISTORY_ASIDE_MAX + 10; id++)
        end(id);
    assert_int_equal(history.aside_count, HISTORY_ASIDE_MAX);
    history_thaw(&history);
    assert_true(history.times.count == HISTORY_ASIDE_MAX);
    uint32_t count = run_times_list(&history.times, &job, false, values, &basis);
    assert_int_equal(count, RUN_TIMES_OF_KEY);
    assert_near(values[count - 1], HISTORY_ASIDE_MAX, 0); /* the newest that was kept */
    history_freeze(&history);
    end(1);
    assert_int_equal(history.aside_count, 1); /* there is room again */
    history_thaw(&history);
}

static void a_set_of_nodes_is_not_kept_beyond_its_job(void **state)
{
    struct node_set set = { .number = 1 };
    struct job job = job_of(1);
    job.set = &set;
    history_freeze(&history);
    history_submitted(&history, &job);
    history_thaw(&history);
    assert_null(history.arrivals.jobs[0].set);
}

RUN_CASES(CASE(it_is_known_at_once_while_nobody_reads),
          CASE(what_a_reader_sees_does_not_change),
          CASE(the_last_of_two_readers_lets_them_in),
          CASE(of_too_many_the_first_are_kept),
          CASE(a_set_of_nodes_is_not_kept_beyond_its_job));
