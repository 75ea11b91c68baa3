/* The workload of FitGpp's simulation: within its bounds, and as the closed loop has it. */
#include "support/cases.h"

#include <math.h>

#include "base/error.h"
#include "workload/workload.h"

#define JOBS 4096

static struct job_spec jobs[JOBS];

static uint32_t draw(const char *text, uint64_t seed)
{
    struct error err = { "" };
    struct workload *workload;
    uint32_t count = 0;
    if (workload_open(&workload, text, NULL, seed, 0, &err) < 0)
        fail_msg("%s", err.text);
    while (count < JOBS && workload_next(workload, &jobs[count], &err) > 0)
        count++;
    assert_string_equal(workload_facts(workload)->cluster, "fitgpp-84");
    workload_close(workload);
    return count;
}

static void every_job_is_within_the_bounds(void **state)
{
    uint32_t count = draw("fitgpp:jobs=4096", 1);
    assert_int_equal(count, JOBS);
    for (uint32_t i = 0; i < count; i++) {
        const struct job_spec *job = &jobs[i];
        bool trial = job->class == CLASS_TE;
        assert_in_range(job->gpus, 0, 8);
        assert_in_range(job->cpu_milli, 1000, 32000);
        assert_in_range(job->mem_mib, 1024, 256 * 1024);
        assert_int_equal(job->cpu_milli % 1000 + job->mem_mib % 1024, 0);
        assert_true(job->steps >= (trial ? 30 : 60));
        assert_true(job->steps <= (trial ? 1800 : 86400));
        assert_true(job->grace_ns == job->pause_ns);
        assert_true(trial ? job->grace_ns == 0
                          : job->grace_ns <= 1200 * INT64_C(1000000000));
        assert_int_equal(job->load_ns + job->ckpt_ns, 0);
        assert_true(i == 0 || job->submit_ns >= jobs[i - 1].submit_ns);
    }
}

/* 30 % of 4,096, give or take four deviations. */
static void a_third_or_so_are_trial_jobs(void **state)
{
    uint32_t trials = 0;
    draw("fitgpp:jobs=4096", 2);
    for (uint32_t i = 0; i < JOBS; i++)
        trials += jobs[i].class == CLASS_TE;
    assert_in_range(trials, 1112, 1346);
}

static void the_same_seed_gives_the_same_jobs(void **state)
{
    uint64_t sums[3] = { 0 };
    for (uint32_t k = 0; k < 3; k++) {
        draw("fitgpp:jobs=2000", k < 2 ? 5 : 6);
        for (uint32_t i = 0; i < 2000; i++)
            sums[k] = sums[k] * 31 + (uint64_t)jobs[i].submit_ns + jobs[i].mem_mib;
    }
    assert_true(sums[0] == sums[1]);
    assert_true(sums[0] != sums[2]);
}

/* What comes before anybody can have ended fills the system just beyond the load. */
static void arrivals_fill_the_system_to_the_load(void **state)
{
    static const double loads[] = { 0.5, 2.0 };
    for (uint32_t k = 0; k < 2; k++) {
        double sums[3] = { 0 };
        double last = 0;
        uint32_t i = 0;
        draw(k ? "fitgpp:load=2" : "fitgpp:load=0.5", 3);
        for (; jobs[i].submit_ns == 0; i++) {
            last = fmax(fmax(sums[0] / (84 * 32), sums[1] / (84 * 256)),
                        sums[2] / (84 * 8));
            assert_true(last < loads[k]);
            sums[0] += jobs[i].cpu_milli / 1000;
            sums[1] += jobs[i].mem_mib / 1024;
            sums[2] += jobs[i].gpus;
        }
        double full =
            fmax(fmax(sums[0] / (84 * 32), sums[1] / (84 * 256)), sums[2] / (84 * 8));
        assert_true(full >= loads[k]);
        assert_true(jobs[i].submit_ns >=
                    INT64_C(30000000000)); /* the shortest run time */
    }
}

RUN_CASES(TEST(every_job_is_within_the_bounds), TEST(a_third_or_so_are_trial_jobs),
          TEST(the_same_seed_gives_the_same_jobs),
          TEST(arrivals_fill_the_system_to_the_load));
