/* Losses over time: when simulated jobs report them, and the figures made of them. */
#include "support/engine_run.h"

#include <math.h>
#include <string.h>

#include "executor/sim/reports.h"
#include "metrics/quality.h"

extern const struct policy policy_fifo;

#define S INT64_C(1000000000)

/* --- reports ------------------------------------------------------------------------- */

static struct learning curve_of(const char *text)
{
    struct learning curve;
    assert_int_equal(learning_parse_points(&curve, text, NULL, NULL), 0);
    return curve;
}

static uint32_t count_reports(const struct reports *reports, double steps)
{
    uint32_t count = 0;
    for (double at = 0; (at = reports_next(reports, at)) < steps; count++)
        assert_true(at == floor(at));
    return count;
}

static void a_job_reports_about_a_hundred_times_however_long_it_is(void **state)
{
    struct learning curve = curve_of("exp:mu=0.999");
    const double sizes[] = { 1, 2, 50, 101, 1000, 1e6, 1e12 };
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct reports reports;
        reports_init(&reports, &curve, sizes[i]);
        assert_true(count_reports(&reports, sizes[i]) < 150);
        assert_true(count_reports(&reports, sizes[i]) + 1 >= fmin(sizes[i], 50));
        reports_init(&reports, NULL, sizes[i]);
        assert_true(count_reports(&reports, sizes[i]) <= 100);
        assert_true(isnan(reports_loss(&reports, 1)));
    }
}

static void it_reports_at_every_level(void **state)
{
    struct learning curve = curve_of("acc:tau=1234.5,first=0.1,last=0.9");
    struct reports reports;
    double steps = 1e5;
    reports_init(&reports, &curve, steps);
    double first = learning_loss(&curve, 0);
    double last = learning_loss(&curve, steps);
    for (uint32_t i = 0; i < LEARNING_LEVELS; i++) {
        double want =
            learning_step(&curve, learning_level_loss(first, last, learning_levels[i]));
        double at = 0;
        while ((at = reports_next(&reports, at)) < want)
            ;
        assert_true(at == want);
    }
}

/* --- by hand --------------------------------------------------------------------------- */

static struct quality quality;
static struct arena arena;
static struct job jobs[4];
static struct view view = { .jobs = jobs, .job_max = 4 };

static void apply(enum event_kind kind, job_id job, double at_s, double loss)
{
    struct event event = {
        .kind = kind, .job = job, .at_ns = (int64_t)(at_s * 1e9), .loss = loss
    };
    if (kind == EVENT_SUBMITTED)
        jobs[job] = (struct job){ .submit_ns = event.at_ns, .state = JOB_WAITING };
    if (kind == EVENT_FINISHED || kind == EVENT_FAILED)
        jobs[job].state = JOB_FREE;
    quality_event(&quality, &view, &event);
}

static void open_quality(uint64_t from, uint64_t to)
{
    arena_init(&arena, 0);
    quality_init(&quality, &arena, &view, from, to);
}

static void close_quality(void)
{
    quality_release(&quality);
    arena_release(&arena);
}

static void times_count_from_submission_and_losses_by_first_and_last(void **state)
{
    open_quality(0, UINT64_MAX);
    apply(EVENT_SUBMITTED, 0, 100, 0);
    apply(EVENT_PROGRESS, 0, 110, 5);   /* losses from 5 to 1 */
    apply(EVENT_PROGRESS, 0, 120, 4);   /* 25 % */
    apply(EVENT_PROGRESS, 0, 140, 1.8); /* 80 % */
    apply(EVENT_FINISHED, 0, 200, 1);
    assert_int_equal(quality.job_count, 1);
    assert_near(quality.level_s[0], 20, 1e-9);
    assert_near(quality.level_s[1], 40, 1e-9);
    assert_near(quality.level_s[2], 40, 1e-9);
    assert_near(quality.level_s[5], 100, 1e-9);
    assert_int_equal(quality.accuracy_count, 0); /* a loss of 5 is no error rate */
    /* 10 s at 1, then 10 s at 0.875, 20 s at 0.475, 60 s at 0.1 */
    assert_near(quality.loss_s, 10 + 8.75 + 9.5 + 6, 1e-9);
    close_quality();
}

static void accuracy_is_one_minus_a_loss_that_is_an_error_rate(void **state)
{
    open_quality(0, UINT64_MAX);
    apply(EVENT_SUBMITTED, 0, 0, 0);
    apply(EVENT_PROGRESS, 0, 10, 0.9);
    apply(EVENT_PROGRESS, 0, 20, 0.28); /* accuracy 0.72 of 0.8: 90 % */
    apply(EVENT_PROGRESS, 0, 30, 0.24); /* 95 % */
    apply(EVENT_FINISHED, 0, 40, 0.2);
    assert_near(quality.accuracy_s[0], 20, 1e-9);
    assert_near(quality.accuracy_s[1], 30, 1e-9);
    assert_near(quality.level_s[3], 30, 1e-9); /* 90 % of the way from 0.9 */
    close_quality();
}

static void the_mean_loss_is_over_time_not_over_jobs(void **state)
{
    open_quality(0, UINT64_MAX);
    apply(EVENT_SUBMITTED, 0, 0, 0);
    apply(EVENT_SUBMITTED, 1, 0, 0);
    apply(EVENT_PROGRESS, 0, 0, 1);
    apply(EVENT_PROGRESS, 1, 0, 1);
    apply(EVENT_PROGRESS, 0, 100, 0);
    apply(EVENT_FINISHED, 0, 200, 0); /* nothing to learn in its second half */
    apply(EVENT_PROGRESS, 1, 100, 1);
    apply(EVENT_FINISHED, 1, 100, 0);
    /* Until 100 s: 0.5 and 1 at once; then 0 alone. */
    assert_near(quality_mean_loss(&quality), (0.75 + 0) / 2, 1e-6);
    close_quality();
}

static void
jobs_outside_the_window_failed_or_without_progress_do_not_count(void **state)
{
    open_quality(1, 3);
    for (job_id job = 0; job < 4; job++) {
        apply(EVENT_SUBMITTED, job, 0, 0);
        apply(EVENT_PROGRESS, job, 10, 1);
        apply(EVENT_PROGRESS, job, 20, job == 2 ? 1 : 0.5);
    }
    apply(EVENT_FINISHED, 0, 30, 0.4);
    apply(EVENT_FAILED, 1, 30, 0);
    apply(EVENT_FINISHED, 2, 30, 1);
    apply(EVENT_FINISHED, 3, 30, 0.4);
    assert_int_equal(quality.job_count, 0);
    assert_true(isnan(quality_mean_loss(&quality)));
    close_quality();
}

static void a_job_that_reports_forever_needs_no_more_memory(void **state)
{
    open_quality(0, UINT64_MAX);
    apply(EVENT_SUBMITTED, 0, 0, 0);
    for (uint32_t i = 0; i < 100000; i++)
        apply(EVENT_PROGRESS, 0, i, 1 / (1.0 + i));
    apply(EVENT_FINISHED, 0, 100000, 0);
    assert_int_equal(quality.job_count, 1);
    assert_true(quality.level_s[1] >= 1 && quality.level_s[1] < 5000);
    close_quality();
}

/* --- GPU-time by loss ---------------------------------------------------------------- */

static void gpu_time_is_divided_by_how_much_is_left_to_learn(void **state)
{
    static const double losses[] = { 0.1, 1, 0.01, 0.5 };
    static const double gpus[] = { 1, 6, 1, 2 };
    double shares[LOSS_GROUPS];
    struct loss_groups groups;
    loss_groups_init(&groups);
    assert_false(loss_groups_shares(&groups, shares));
    for (uint32_t i = 0; i < 4; i++)
        loss_groups_add(&groups, 0, 10000 * S, losses[i], losses[i], gpus[i]);
    assert_true(loss_groups_shares(&groups, shares));
    assert_near(shares[LOSS_HIGH], 0.6, 1e-9);
    assert_near(shares[LOSS_MEDIUM], 0.2, 1e-9);
    assert_near(shares[LOSS_LOW], 0.2, 1e-9);
    loss_groups_release(&groups);
}

static void fractions_of_jobs_and_losses_out_of_range_are_counted(void **state)
{
    double shares[LOSS_GROUPS];
    struct loss_groups groups;
    loss_groups_init(&groups);
    for (uint32_t i = 0; i < 5; i++) /* a job and a quarter in each of the first two */
        loss_groups_add(&groups, 0, S, 2.0 - i, 2.0 - i, i == 0 ? 4 : 1);
    assert_true(loss_groups_shares(&groups, shares));
    assert_near(shares[LOSS_HIGH] + shares[LOSS_MEDIUM] + shares[LOSS_LOW], 1, 1e-9);
    /* 2 and 1 are one class, as nothing is above 1: 5 gpus of two jobs, 1.25 of them */
    assert_near(shares[LOSS_HIGH], 1.25 * 5 / 2 / 8, 1e-9);
    loss_groups_release(&groups);
}

static void gpus_are_those_held_between_reports(void **state)
{
    static const uint32_t gpus[] = { 7, 1, 1, 1 };
    double shares[LOSS_GROUPS];
    open_quality(0, UINT64_MAX);
    for (job_id job = 0; job < 4; job++) {
        apply(EVENT_SUBMITTED, job, 0, 0);
        jobs[job].state = JOB_RUNNING;
        jobs[job].gpus_now = gpus[job];
        apply(EVENT_PROGRESS, job, 0, 1);
        apply(EVENT_PROGRESS, job, 10, job == 0 ? 1 : 0.1);
    }
    for (job_id job = 0; job < 4; job++) {
        jobs[job].served_ns = 20 * S * gpus[job];
        apply(EVENT_FINISHED, job, 20, 0);
    }
    assert_true(loss_groups_shares(&quality.groups, shares));
    assert_true(shares[LOSS_HIGH] > 0.6 && shares[LOSS_HIGH] < 0.7 + 1e-9);
    close_quality();
}

/* --- a whole run ------------------------------------------------------------------------- */

static void a_run_yields_the_times_to_each_level(void **state)
{
    struct arena place;
    struct cluster cluster;
    arena_init(&place, 0);
    assert_int_equal(cluster_load(&cluster, &place, "1xv100:1", NULL), 0);
    struct job_spec specs[] = {
        { .gpus = 1, .steps = 100, .step_s = 0.5, .curve = curve_of("exp:mu=0.8") },
        { .gpus = 1, .steps = 10, .load_ns = 5 * S, .curve = curve_of("acc:tau=3") },
    };
    struct engine_run_setup setup = {
        .cluster = &cluster, .policy = &policy_fifo, .specs = specs, .spec_count = 2
    };
    struct engine_run run;
    struct quality observed;
    setup.observer =
        (struct engine_observer){ .event = quality_event, .self = &observed };
    /* The observer needs a view before there is one: any of the same size will do. */
    quality_init(&observed, &place, &(struct view){ .job_max = 2 }, 0, UINT64_MAX);
    engine_run_play(&run, &setup);
    assert_int_equal(run.ended, 2);
    assert_int_equal(observed.job_count, 2);
    /* 0.8^k <= 0.1 at k = 11, 5.5 s; the other waits 50 s, loads 5 s, needs 7 steps. */
    double last = exp(-10 / 3.0);
    double k = ceil(-3 * log(1 - 0.9 * (1 - last)));
    assert_near(observed.level_s[3], 5.5 + 55 + k, 1e-6);
    quality_release(&observed);
    engine_run_release(&run);
    arena_release(&place);
}

RUN_CASES(TEST(a_job_reports_about_a_hundred_times_however_long_it_is),
          TEST(it_reports_at_every_level),
          TEST(times_count_from_submission_and_losses_by_first_and_last),
          TEST(accuracy_is_one_minus_a_loss_that_is_an_error_rate),
          TEST(the_mean_loss_is_over_time_not_over_jobs),
          TEST(jobs_outside_the_window_failed_or_without_progress_do_not_count),
          TEST(a_job_that_reports_forever_needs_no_more_memory),
          TEST(gpu_time_is_divided_by_how_much_is_left_to_learn),
          TEST(fractions_of_jobs_and_losses_out_of_range_are_counted),
          TEST(gpus_are_those_held_between_reports),
          TEST(a_run_yields_the_times_to_each_level));
