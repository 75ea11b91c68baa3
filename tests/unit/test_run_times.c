/* How long jobs run, by those that have ended: keys, bursts, time that has passed, ratios. */
#include "support/cases.h"

#include "base/arena.h"
#include "model/job.h"
#include "predict/run_times.h"

struct fixture {
    struct run_times times;
    struct run_sampler sampler;
    struct arena arena;
};

static int setup(void **state)
{
    static struct fixture f;
    run_times_init(&f.times);
    arena_init(&f.arena, 0);
    run_sampler_init(&f.sampler, &f.times, &f.arena);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    run_sampler_release(&f->sampler);
    run_times_release(&f->times);
    arena_release(&f->arena);
    return 0;
}

static struct job job_of(uint32_t user, uint32_t name, uint32_t gpus)
{
    return (struct job){ .user = user,
                         .name = name,
                         .gpus = gpus,
                         .kind = KIND_NONE,
                         .rate_best_per_s = 1 };
}

static void add(struct fixture *f, struct job job, double from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        run_times_add(&f->times, &job, from + i);
}

static void four_jobs_say_nothing_and_five_do(void **state)
{
    struct fixture *f = *state;
    double values[RUN_TIMES_OF_KEY];
    enum run_basis basis;
    struct job job = job_of(1, 1, 1);
    add(f, job, 10, 4);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 0);
    assert_int_equal(run_sampler_enter(&f->sampler, &job), RUN_TIMES_NONE);
    add(f, job, 14, 1);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 5);
    assert_int_equal(basis, RUN_BASIS_NAME);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(values[i] == 10 + i);
}

static void the_narrowest_key_with_five_jobs_is_used(void **state)
{
    struct fixture *f = *state;
    double values[RUN_TIMES_OF_KEY];
    enum run_basis basis;
    add(f, job_of(1, 1, 1), 100, 4);
    add(f, job_of(1, 2, 1), 200, 5);
    add(f, job_of(2, 1, 1), 300, 5);
    add(f, job_of(2, 1, 8), 800, 3);
    struct job job = job_of(1, 2, 1);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 5);
    assert_int_equal(basis, RUN_BASIS_NAME);
    job = job_of(1, 1, 1);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 9);
    assert_int_equal(basis, RUN_BASIS_USER);
    job = job_of(3, 1, 1);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 14);
    assert_int_equal(basis, RUN_BASIS_SIZE);
    job = job_of(2, 1, 8);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 17);
    assert_int_equal(basis, RUN_BASIS_ALL);
}

static void a_job_without_a_name_or_a_user_is_like_those_of_its_size(void **state)
{
    struct fixture *f = *state;
    double values[RUN_TIMES_OF_KEY];
    enum run_basis basis;
    struct job job = job_of(0, 0, 2);
    add(f, job, 1, 6);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis), 6);
    assert_int_equal(basis, RUN_BASIS_SIZE);
}

static void only_the_newest_of_a_key_are_used(void **state)
{
    struct fixture *f = *state;
    double values[RUN_TIMES_OF_KEY];
    enum run_basis basis;
    struct job job = job_of(1, 1, 1);
    add(f, job, 0, 1000);
    add(f, job_of(2, 1, 1), 5000, 1000);
    assert_int_equal(run_times_list(&f->times, &job, false, values, &basis),
                     RUN_TIMES_OF_KEY);
    assert_true(values[0] == 600);
    assert_true(values[RUN_TIMES_OF_KEY - 1] == 999);
}

static void jobs_that_ended_long_ago_are_forgotten(void **state)
{
    struct fixture *f = *state;
    double values[RUN_TIMES_OF_KEY];
    enum run_basis basis;
    struct job old = job_of(1, 1, 1);
    add(f, old, 7, 9);
    for (uint32_t i = 0; i < 3 * RUN_TIMES_RECORDS; i++)
        run_times_add(&f->times,
                      &(struct job){ .user = 2 + i, .gpus = 8, .rate_best_per_s = 1 },
                      50);
    assert_true(f->times.newest.count <= 3 * RUN_TIMES_RECORDS);
    assert_int_equal(run_times_list(&f->times, &old, false, values, &basis),
                     RUN_TIMES_OF_KEY);
    assert_int_equal(basis, RUN_BASIS_ALL);
    assert_true(values[0] == 50);
}

static void jobs_that_wait_together_get_the_run_times_of_consecutive_jobs(void **state)
{
    struct fixture *f = *state;
    struct job job = job_of(1, 1, 1);
    add(f, job, 10, 20);
    uint32_t list = run_sampler_enter(&f->sampler, &job);
    for (uint64_t seed = 1; seed < 20; seed++) {
        run_sampler_begin(&f->sampler, seed);
        double before = run_sampler_draw(&f->sampler, list, &job, 0);
        for (uint32_t i = 0; i < 40; i++) {
            double value = run_sampler_draw(&f->sampler, list, &job, 0);
            assert_true(value == (before == 29 ? 10 : before + 1));
            before = value;
        }
    }
}

static void a_job_that_has_run_for_some_time_runs_longer(void **state)
{
    struct fixture *f = *state;
    struct job job = job_of(1, 1, 1);
    add(f, job, 1, 100);
    uint32_t list = run_sampler_enter(&f->sampler, &job);
    bool seen[101] = { false };
    run_sampler_begin(&f->sampler, 5);
    for (uint32_t i = 0; i < 1000; i++) {
        double value = run_sampler_draw(&f->sampler, list, &job, 90.5);
        assert_true(value >= 91 && value <= 100);
        seen[(int)value] = true;
    }
    for (uint32_t i = 91; i <= 100; i++)
        assert_true(seen[i]);
}

static void beyond_all_history_half_run_as_long_again(void **state)
{
    struct fixture *f = *state;
    struct job job = job_of(1, 1, 1);
    add(f, job, 1, 10);
    uint32_t list = run_sampler_enter(&f->sampler, &job);
    uint32_t twice = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        double value = run_sampler_draw(&f->sampler, list, &job, 1000);
        assert_true(value > 1000 && value <= 100001);
        twice += value > 2000;
    }
    assert_in_range(twice, 900, 1100);
}

static void of_declared_work_the_ratio_is_drawn(void **state)
{
    struct fixture *f = *state;
    struct job job = job_of(1, 1, 1);
    job.rate_best_per_s = 2;
    job.steps_total = 200; /* 100 s */
    add(f, job, 50, 6);    /* ratios 0.50 to 0.55 */
    job.steps_total = 2000;
    uint32_t list = run_sampler_enter(&f->sampler, &job);
    assert_string_equal(run_list_basis(&f->sampler.lists[list]), "estimate");
    for (uint32_t i = 0; i < 20; i++) {
        double value = run_sampler_draw(&f->sampler, list, &job, 0);
        assert_true(value > 499 && value < 551);
        value = run_sampler_draw(&f->sampler, list, &job, 505);
        assert_true(value > 505 && value < 600000);
    }
}

static void the_same_seed_gives_the_same_draws(void **state)
{
    struct fixture *f = *state;
    struct job job = job_of(1, 1, 1);
    double first[50];
    add(f, job, 1, 97);
    uint32_t list = run_sampler_enter(&f->sampler, &job);
    for (uint32_t round = 0; round < 2; round++) {
        run_sampler_begin(&f->sampler, 11);
        for (uint32_t i = 0; i < 50; i++) {
            double value = run_sampler_draw(&f->sampler, list, &job, i % 3 ? i : 0);
            if (round == 0)
                first[i] = value;
            assert_true(value == first[i]);
        }
        run_sampler_begin(&f->sampler, 12 + round);
        run_sampler_draw(&f->sampler, list, &job, 0);
    }
}

RUN_CASES(CASE(four_jobs_say_nothing_and_five_do),
          CASE(the_narrowest_key_with_five_jobs_is_used),
          CASE(a_job_without_a_name_or_a_user_is_like_those_of_its_size),
          CASE(only_the_newest_of_a_key_are_used),
          CASE(jobs_that_ended_long_ago_are_forgotten),
          CASE(jobs_that_wait_together_get_the_run_times_of_consecutive_jobs),
          CASE(a_job_that_has_run_for_some_time_runs_longer),
          CASE(beyond_all_history_half_run_as_long_again),
          CASE(of_declared_work_the_ratio_is_drawn),
          CASE(the_same_seed_gives_the_same_draws));
