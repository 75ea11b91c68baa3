/* The mixed workloads: what their jobs are like, that a seed is a workload, their limits. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "model/job.h"
#include "model/published.h"
#include "workload/workload.h"

static struct error err;

static const char *const profiles[] = { "mixed", "lab", "industry", "sweeps", "box" };

/* What is counted of a workload's jobs. */
struct census {
    uint32_t jobs, trials, elastic, kinds, unknown_be, unknown_te, too_slow, no_ckpt;
    uint32_t rigid_be, named, gpus_max, gpus_max_elastic;
    double be_log_s, be_log_s2, te_log_s, be_pause_log, be_load_log, te_load_log;
    double work_s; /* V100-seconds of the whole gang */
    int64_t last_ns;
    char users[64][16];
    uint32_t user_count;
};

/* How long it takes alone on V100s at its size. */
static double run_s_of(const struct job_spec *job)
{
    if (!job->kind)
        return job->steps * (job->step_s > 0 ? job->step_s : 1);
    for (uint32_t k = 0; k < PUBLISHED_KINDS; k++) {
        const struct published_kind *kind = &published_kinds[k];
        if (strcmp(kind->name, job->kind) != 0)
            continue;
        assert_true(job->gpus == 1 || kind->distributes);
        uint32_t size = 0;
        while (size + 1 < PUBLISHED_SIZES && 2u << size <= job->gpus)
            size++;
        return job->steps /
               (kind->rate[PUBLISHED_V100][size][0] * job->gpus / (1u << size));
    }
    fail_msg("no kind %s", job->kind);
    return 0;
}

static void count_user(struct census *census, const char *user)
{
    uint32_t at = 0;
    while (at < census->user_count && strcmp(census->users[at], user) != 0)
        at++;
    if (at < census->user_count)
        return;
    assert_true(census->user_count < 64);
    strncpy(census->users[census->user_count++], user, 15);
}

static void count_job(struct census *census, const struct job_spec *job)
{
    bool trial = job->class == CLASS_TE;
    bool elastic = job->gpus_max > 0;
    double run_s = run_s_of(job);
    assert_true(run_s >= 9.9);
    assert_true(job->submit_ns >= census->last_ns);
    assert_int_equal(job->id, census->jobs + 1);
    assert_true(job->gpus >= 1 && (job->gpus & (job->gpus - 1)) == 0);
    census->last_ns = job->submit_ns;
    census->jobs++;
    census->trials += trial;
    census->elastic += elastic;
    census->kinds += job->kind != NULL;
    census->rigid_be += !trial && !elastic;
    census->unknown_be += !trial && job->undeclared;
    census->unknown_te += trial && job->undeclared;
    census->too_slow += job->pause_ns > job->grace_ns;
    census->no_ckpt += job->ckpt_ns == 0;
    census->named += job->name != NULL;
    census->work_s += run_s * job->gpus;
    if (job->gpus > census->gpus_max)
        census->gpus_max = job->gpus;
    count_user(census, job->user);
    if (trial) {
        census->te_log_s += log(run_s);
        census->te_load_log += log((double)job->load_ns * 1e-9);
        return;
    }
    census->be_log_s += log(run_s);
    census->be_log_s2 += log(run_s) * log(run_s);
    census->be_pause_log += log((double)job->pause_ns * 1e-9);
    census->be_load_log += log((double)job->load_ns * 1e-9);
    if (!elastic)
        return;
    assert_false(job->undeclared);
    assert_int_equal(job->gpus_min, job->gpus < 4 ? 1 : job->gpus / 4);
    assert_true(job->gpus_max >= job->gpus && job->gpus_max <= 4 * job->gpus);
    assert_true(job->curve.family == LEARNING_EXP || job->curve.family == LEARNING_INV);
    assert_true(job->curve.noise > 0 && job->curve.noise < 0.05);
    assert_true(job->fixed_s > 0 && job->fixed_s < job->step_s);
    if (job->gpus_max > census->gpus_max_elastic)
        census->gpus_max_elastic = job->gpus_max;
}

static struct census count_all(const char *text, uint64_t seed, uint32_t gpus)
{
    struct census census = { 0 };
    struct workload *workload;
    struct job_spec job;
    if (workload_open(&workload, text, NULL, seed, gpus, &err) < 0)
        fail_msg("%s", err.text);
    while (workload_next(workload, &job, &err) > 0)
        count_job(&census, &job);
    workload_close(workload);
    return census;
}

static void mixed_is_as_described(void **state)
{
    struct census c = count_all("mixed:jobs=40000", 4, 112);
    double be = c.jobs - c.trials;
    assert_near(c.trials / 40000.0, 0.30, 0.01);
    assert_near(c.elastic / be, 0.25, 0.01);
    assert_near(c.unknown_be / (double)c.rigid_be, 0.35, 0.015);
    assert_near(c.unknown_te / (double)c.trials, 0.5, 0.015);
    assert_near(c.kinds / (double)(c.rigid_be + c.trials), 0.5, 0.01);
    assert_near(exp(c.be_log_s / be) / 2400, 1, 0.04);
    double mean = c.be_log_s / be;
    assert_near(sqrt(c.be_log_s2 / be - mean * mean), 1.3, 0.03);
    assert_near(exp(c.te_log_s / c.trials) / 150, 1, 0.04);
    assert_near(exp(c.be_pause_log / be), 20, 0.5);
    assert_near(exp(c.be_load_log / be), 60, 1.5);
    assert_near(exp(c.te_load_log / c.trials), 25, 1);
    assert_int_equal(c.gpus_max, 16);
    assert_int_equal(c.gpus_max_elastic, 16);
    assert_int_equal(c.too_slow, 0); /* each can checkpoint within its grace period */
    assert_int_equal(c.no_ckpt, 0);
    assert_int_equal(c.user_count, 20);
    /* 57.6 is what 32 V100, 32 P100 and 48 K80 are worth in V100s. */
    assert_near(c.work_s / ((double)c.last_ns * 1e-9 * 57.6), 0.9, 0.02);
}

static void without_settings_there_are_1200_jobs(void **state)
{
    struct census c = count_all("mixed", 1, 0);
    assert_int_equal(c.jobs, 1200);
    struct workload *workload;
    assert_int_equal(workload_open(&workload, "mixed", NULL, 1, 0, &err), 0);
    assert_string_equal(workload_facts(workload)->cluster, "mixed-112");
    assert_int_equal(workload_facts(workload)->expected, 1200);
    workload_close(workload);
}

static void settings_set_what_they_say(void **state)
{
    struct census c = count_all("mixed:jobs=5000,trial_share=0,elastic_share=1", 2, 0);
    assert_int_equal(c.trials, 0);
    assert_int_equal(c.elastic, 5000);
    c = count_all("mixed:jobs=5000,trial_share=1,unknown_share=0", 2, 0);
    assert_int_equal(c.trials, 5000);
    assert_int_equal(c.unknown_te, 0);
    c = count_all("mixed:jobs=5000,unknown_share=1,elastic_share=0", 2, 0);
    assert_int_equal(c.unknown_te, c.trials);
    assert_int_equal(c.unknown_be, 5000 - c.trials);
}

/* The same jobs come sooner or later; they are not other jobs. */
static void load_changes_arrivals_only(void **state)
{
    struct workload *slow;
    struct workload *fast;
    struct job_spec a;
    struct job_spec b;
    assert_int_equal(workload_open(&slow, "mixed:load=0.7", NULL, 9, 0, &err), 0);
    assert_int_equal(workload_open(&fast, "mixed:load=1.4", NULL, 9, 0, &err), 0);
    while (workload_next(slow, &a, &err) > 0) {
        assert_int_equal(workload_next(fast, &b, &err), 1);
        assert_true(a.steps == b.steps);
        assert_int_equal(a.gpus, b.gpus);
        assert_int_equal(a.pause_ns, b.pause_ns);
        assert_near((double)a.submit_ns, 2 * (double)b.submit_ns, 4e6);
    }
    workload_close(slow);
    workload_close(fast);
}

static void a_seed_is_a_workload(void **state)
{
    for (uint32_t p = 0; p < sizeof profiles / sizeof *profiles; p++) {
        struct census one = count_all(profiles[p], 5, 0);
        struct census same = count_all(profiles[p], 5, 0);
        struct census other = count_all(profiles[p], 6, 0);
        assert_memory_equal(&one, &same, sizeof one);
        assert_true(one.work_s != other.work_s);
    }
}

static void no_gang_is_larger_than_the_cluster(void **state)
{
    for (uint32_t p = 0; p < sizeof profiles / sizeof *profiles; p++) {
        struct census c = count_all(profiles[p], 1, 4);
        assert_true(c.gpus_max <= 4);
        assert_true(c.gpus_max_elastic <= 4);
    }
}

static void a_lab_has_jobs_that_cannot_save_and_nights(void **state)
{
    struct census c = count_all("lab:jobs=20000", 4, 44);
    assert_near(c.too_slow / 20000.0, 0.19, 0.02);
    assert_near(c.no_ckpt / 20000.0, 0.3, 0.02);
    assert_true(c.user_count > 50);
    struct workload *workload;
    struct job_spec job;
    uint32_t night = 0;
    uint32_t day = 0;
    assert_int_equal(workload_open(&workload, "lab:jobs=20000", NULL, 4, 44, &err), 0);
    while (workload_next(workload, &job, &err) > 0) {
        double hour = fmod((double)job.submit_ns * 1e-9 / 3600, 24);
        night += hour >= 1 && hour < 5;
        day += hour >= 13 && hour < 17;
    }
    assert_true(day > 8 * night);
    workload_close(workload);
}

static void an_industry_has_large_gangs_and_slow_restarts(void **state)
{
    struct census c = count_all("industry:jobs=10000", 4, 256);
    assert_int_equal(c.gpus_max, 64);
    assert_near(c.trials / 10000.0, 0.08, 0.01);
    assert_near(exp(c.be_load_log / (c.jobs - c.trials)), 300, 15);
}

static void sweeps_come_in_bursts_of_like_jobs(void **state)
{
    struct workload *workload;
    struct job_spec job;
    char name[64] = "";
    char user[16] = "";
    uint32_t gpus = 0;
    uint32_t burst = 0;
    uint32_t bursts = 0;
    uint32_t named = 0;
    assert_int_equal(workload_open(&workload, "sweeps:jobs=20000", NULL, 4, 64, &err),
                     0);
    while (workload_next(workload, &job, &err) > 0) {
        if (!job.name)
            continue;
        named++;
        if (strcmp(job.name, name) == 0) {
            assert_string_equal(job.user, user);
            assert_int_equal(job.gpus, gpus);
            burst++;
            assert_true(burst <= 200);
            continue;
        }
        assert_true(bursts == 0 || burst >= 50);
        bursts++;
        burst = 1;
        snprintf(name, sizeof name, "%s", job.name);
        snprintf(user, sizeof user, "%s", job.user);
        gpus = job.gpus;
    }
    assert_true(bursts > 50);
    assert_near(named / 20000.0, 0.7, 0.06);
    workload_close(workload);
}

static void a_box_has_more_work_than_it_can_do(void **state)
{
    struct census c = count_all("box:jobs=20000", 4, 8);
    assert_int_equal(c.gpus_max, 8);
    assert_int_equal(c.elastic, 0);
    assert_near(c.work_s / ((double)c.last_ns * 1e-9 * 8), 1.2, 0.06);
    assert_true(c.too_slow > 2000);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    static const char *const wrong[] = {
        "mixed:jobs=0",         "mixed:load=0",        "mixed:trial_share=1.1",
        "lab:unknown_share=-1", "box:elastic_share=x", "sweeps:users=3"
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct workload *workload;
        assert_int_equal(workload_open(&workload, wrong[i], NULL, 1, 0, &err), -EINVAL);
    }
}

RUN_CASES(TEST(mixed_is_as_described), TEST(without_settings_there_are_1200_jobs),
          TEST(settings_set_what_they_say), TEST(load_changes_arrivals_only),
          TEST(a_seed_is_a_workload), TEST(no_gang_is_larger_than_the_cluster),
          TEST(a_lab_has_jobs_that_cannot_save_and_nights),
          TEST(an_industry_has_large_gangs_and_slow_restarts),
          TEST(sweeps_come_in_bursts_of_like_jobs),
          TEST(a_box_has_more_work_than_it_can_do),
          TEST(settings_out_of_bounds_are_refused));
