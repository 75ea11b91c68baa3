/* Jobs as real processes: how they start, what they tell, how they end. */
#include "support/bench.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "executor/local.h"

static void the_end_of_a_job_is_told_as_it_was(void **state)
{
    struct bench *b = *state;
    job_id good = bench_job(b, "echo hello; exit 0");
    job_id bad = bench_job(b, "exit 3");
    job_id killed = bench_job(b, "kill -9 $$");
    job_id again = bench_job(b, "exit 85");
    job_id again_too = bench_job(b, "exit 99");

    for (job_id job = good; job <= again_too; job++)
        bench_start(b, job);

    assert_int_equal(bench_until(b, good, EVENT_FINISHED).exit_code, 0);
    assert_string_equal(bench_output(b, good), "hello\n");
    assert_int_equal(bench_until(b, bad, EVENT_FAILED).exit_code, 3);
    assert_int_equal(bench_until(b, killed, EVENT_FAILED).exit_code, 137);
    assert_true(bench_until(b, again, EVENT_STOPPED).clean);
    assert_true(bench_until(b, again_too, EVENT_STOPPED).clean);
    assert_int_equal(bench_count(b, good, EVENT_STARTED), 1);
    assert_int_equal(local_count(b->local), 0);
}

static int setup(void **state)
{
    *state = bench_new();
    return 0;
}

static int teardown(void **state)
{
    bench_free(*state);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_end_of_a_job_is_told_as_it_was),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
