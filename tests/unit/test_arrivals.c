/* Jobs that may be submitted in the future, as they were on earlier days. */
#include "support/cases.h"

#include "base/arena.h"
#include "forecast/arrivals.h"
#include "forecast/start_times.h"

#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)

struct fixture {
    struct arrivals arrivals;
    struct arrival_stream stream;
    struct arena arena;
};

static int setup(void **state)
{
    static struct fixture f;
    f.arrivals = (struct arrivals){ 0 };
    arena_init(&f.arena, 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arrivals_release(&f->arrivals);
    arena_release(&f->arena);
    return 0;
}

static void add(struct fixture *f, int64_t at_ns, uint32_t gpus)
{
    arrivals_add(&f->arrivals, &(struct job){ .submit_ns = at_ns, .gpus = gpus });
}

static void without_history_none_is_expected(void **state)
{
    struct fixture *f = *state;
    arrival_stream_begin(&f->stream, &f->arrivals, &f->arena, DAY, 1, 1);
    assert_null(arrival_stream_next(&f->stream));
    for (uint32_t i = 0; i < ARRIVALS_LEAST - 1; i++)
        add(f, i, 1);
    arrival_stream_begin(&f->stream, &f->arrivals, &f->arena, DAY, 1, 1);
    assert_null(arrival_stream_next(&f->stream));
}

static void each_day_is_one_that_was_from_the_same_hour(void **state)
{
    struct fixture *f = *state;
    /* Day d has a job of d + 1 GPUs at 6:00 and at 18:00. */
    for (uint32_t day = 0; day < 20; day++) {
        add(f, day * DAY + 6 * HOUR, day + 1);
        add(f, day * DAY + 18 * HOUR, day + 1);
    }
    bool seen[21] = { false };
    for (uint64_t seed = 1; seed < 100; seed++) {
        arrival_stream_begin(&f->stream, &f->arrivals, &f->arena, 20 * DAY, 1000, seed);
        for (uint32_t day = 20; day < 24; day++) {
            const struct job *first = arrival_stream_next(&f->stream);
            const struct job *second = arrival_stream_next(&f->stream);
            assert_true(first->submit_ns == day * DAY + 6 * HOUR);
            assert_true(second->submit_ns == day * DAY + 18 * HOUR);
            assert_true(first->gpus == second->gpus);
            assert_true(first->gpus > 20 - ARRIVALS_DAYS && first->gpus <= 20);
            assert_true(second->id == first->id + 1);
            seen[first->gpus] = true;
        }
    }
    for (uint32_t gpus = 20 - ARRIVALS_DAYS + 1; gpus <= 20; gpus++)
        assert_true(seen[gpus]);
}

static void less_than_a_day_is_repeated(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < 10; i++)
        add(f, i * HOUR, i + 1);
    arrival_stream_begin(&f->stream, &f->arrivals, &f->arena, 10 * HOUR, 1, 1);
    for (uint32_t i = 0; i < 100; i++) {
        const struct job *job = arrival_stream_next(&f->stream);
        assert_true(job->submit_ns == (10 + i) * HOUR);
        assert_int_equal(job->gpus, i % 10 + 1);
    }
}

static void the_oldest_are_forgotten(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < 3 * ARRIVALS_MAX; i++)
        add(f, i * (HOUR / 100), 1);
    assert_int_equal(f->arrivals.room, ARRIVALS_MAX);
    arrival_stream_begin(&f->stream, &f->arrivals, &f->arena,
                         3 * ARRIVALS_MAX * (HOUR / 100), 1, 7);
    assert_int_equal(f->stream.day_count, ARRIVALS_MAX / 2400);
    int64_t last_ns = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        const struct job *job = arrival_stream_next(&f->stream);
        assert_true(job->submit_ns >= last_ns);
        last_ns = job->submit_ns;
    }
}

static void quantiles_are_between_the_values_of_their_rank(void **state)
{
    int64_t values[32];
    for (uint32_t i = 0; i < 32; i++)
        values[i] = (i + 1) * 100;
    assert_true(start_times_quantile(values, 32, 0.5) == 1650); /* rank 16.5 */
    assert_in_range(start_times_quantile(values, 32, 0.1), 329, 331);
    assert_in_range(start_times_quantile(values, 32, 0.9), 2969, 2971);
    values[31] = values[30] = values[29] = TIME_LATER;
    assert_true(start_times_quantile(values, 32, 0.9) == TIME_LATER);
    assert_true(start_times_quantile(values, 32, 0.5) == 1650);
    assert_true(start_times_quantile(values, 1, 0.9) == 100);
    assert_true(start_times_quantile(values, 0, 0.5) == TIME_LATER);
}

RUN_CASES(CASE(without_history_none_is_expected),
          CASE(each_day_is_one_that_was_from_the_same_hour),
          CASE(less_than_a_day_is_repeated), CASE(the_oldest_are_forgotten),
          CASE(quantiles_are_between_the_values_of_their_rank));
