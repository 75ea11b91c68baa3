/* What jobs will learn and how fast, from what they report. */
#include "support/world.h"

#include <math.h>

#include "base/rng.h"
#include "predict/forecaster.h"

#define TAU 20.0

static struct forecaster forecaster;

static job_id add_job(struct world *w, uint32_t gpus, double steps)
{
    forecaster_init(&forecaster, w->state.view.job_max, &w->arena);
    return world_running(w, (struct job){ .gpus = gpus,
                                          .gpus_min = 1,
                                          .gpus_max = 8,
                                          .spread = true,
                                          .steps_total = steps,
                                          .rate_best_per_s = 1 });
}

static void report(struct world *w, job_id job, double step, double loss, double rate)
{
    struct event event = { .kind = EVENT_PROGRESS,
                           .job = job,
                           .steps = step,
                           .rate_per_s = rate,
                           .loss = loss };
    assert_true(world_apply(w, event));
    forecaster_observe(&forecaster, &w->state.view, &event);
}

static struct outlook look(struct world *w, job_id job)
{
    return forecaster_outlook(&forecaster, &w->state.view, job);
}

static void the_gain_is_what_the_curve_loses(void **state)
{
    struct world *w = *state;
    job_id job = add_job(w, 4, 100);
    for (double k = 0; k <= 20; k++)
        report(w, job, k, exp(-k / TAU), 0.5);

    struct outlook o = look(w, job);
    assert_int_equal(o.state, OUTLOOK_FITTED);
    assert_true(o.paced);
    double way = 1 - exp(-100 / TAU);
    assert_near(curve_ahead_level(&o.ahead), (exp(-20 / TAU) - exp(-100 / TAU)) / way,
                1e-3);
    assert_near(outlook_step_s(&o, 4), 2, 1e-9);
    struct outlook_gain gain = outlook_gain(&o, 20, 4); /* ten steps */
    assert_near(gain.value, (exp(-20 / TAU) - exp(-30 / TAU)) / way, 1e-3);
    assert_true(gain.low <= gain.value && gain.value <= gain.high);
    assert_near(gain.high - gain.low, 0, 1e-3); /* the points lie on the curve */
    assert_near(outlook_gain(&o, 1e9, 4).value, curve_ahead_level(&o.ahead), 1e-6);
    forecaster_release(&forecaster);
}

static void noise_widens_the_interval(void **state)
{
    struct world *w = *state;
    struct rng rng;
    rng_init(&rng, 3, "noise");
    job_id job = add_job(w, 4, 100);
    for (double k = 0; k <= 30; k++)
        report(w, job, k, exp(-k / TAU) + 0.05 * rng_normal(&rng), 1);

    struct outlook o = look(w, job);
    assert_int_equal(o.state, OUTLOOK_FITTED);
    assert_true(o.half > 0.03 && o.half < 0.5);
    struct outlook_gain gain = outlook_gain(&o, 10, 4);
    assert_true(gain.low < gain.value && gain.value < gain.high);
    assert_true(gain.low >= 0);
    forecaster_release(&forecaster);
}

static void states_follow_the_reports(void **state)
{
    struct world *w = *state;
    job_id job = add_job(w, 4, 0);
    assert_int_equal(look(w, job).state, OUTLOOK_SILENT);
    assert_near(outlook_gain(&(struct outlook){ 0 }, 10, 4).high, 0, 0);
    report(w, job, 0, NAN, 1); /* progress without a loss says nothing */
    assert_int_equal(look(w, job).state, OUTLOOK_SILENT);
    for (double k = 1; k <= 3; k++)
        report(w, job, k, k, 1);
    assert_int_equal(look(w, job).state, OUTLOOK_YOUNG);
    assert_true(look(w, job).paced);
    for (double k = 4; k <= 8; k++) /* a loss that rises */
        report(w, job, k, k, 1);
    assert_int_equal(look(w, job).state, OUTLOOK_UNSETTLED);
    for (double k = 9; k <= 12; k++)
        report(w, job, k, k, 1);
    assert_int_equal(look(w, job).state, OUTLOOK_FLAT);
    assert_near(outlook_gain(&(struct outlook){ .state = OUTLOOK_FLAT }, 10, 4).value,
                0, 0);
    forecaster_release(&forecaster);
}

static void a_job_that_has_ended_is_forgotten(void **state)
{
    struct world *w = *state;
    job_id job = add_job(w, 4, 100);
    for (double k = 0; k <= 5; k++)
        report(w, job, k, exp(-k / TAU), 1);
    assert_int_equal(look(w, job).state, OUTLOOK_FITTED);
    struct event end = { .kind = EVENT_FINISHED, .job = job };
    forecaster_observe(&forecaster, &w->state.view, &end);
    assert_int_equal(look(w, job).state, OUTLOOK_SILENT);
    report(w, job, 6, 1, 1); /* the entry is used again, and empty */
    assert_int_equal(look(w, job).state, OUTLOOK_YOUNG);
    assert_int_equal(forecaster.used, 1);
    forecaster_release(&forecaster);
}

static void an_assumed_curve_loses_its_share_with_every_step(void **state)
{
    struct curve_ahead ahead = curve_ahead_assumed(0.3);
    assert_near(curve_ahead_drop(&ahead, 1), 0.3, 1e-12);
    assert_near(curve_ahead_drop(&ahead, 2), 1 - 0.49, 1e-12);
    assert_near(curve_ahead_level(&ahead), 1, 1e-12);
    assert_true(curve_ahead_is_convex(&ahead));
    struct curve_ahead flat = { .family = FAMILY_FLAT };
    assert_near(curve_ahead_level(&flat), 0, 0);
}

WORLD_FIXTURE(1, 8);

static void what_is_inherited_is_kept_when_the_job_is_adopted(void **state)
{
    struct world *w = *state;
    job_id job = add_job(w, 4, 100);
    for (double k = 0; k <= 20; k++)
        report(w, job, k, exp(-k / TAU), 0.5);
    struct outlook before = look(w, job);
    struct forecaster other;
    forecaster_init(&other, w->state.view.job_max, &w->arena);
    forecaster_inherit(&other, &w->state.view, &forecaster);
    struct event adopted = { .kind = EVENT_ADOPTED, .job = job };
    forecaster_observe(&other, &w->state.view, &adopted);
    struct outlook after = forecaster_outlook(&other, &w->state.view, job);
    assert_int_equal(after.state, OUTLOOK_FITTED);
    assert_true(outlook_gain(&before, 20, 4).value ==
                outlook_gain(&after, 20, 4).value);
    /* Adopted once more, it may be another job. */
    forecaster_observe(&other, &w->state.view, &adopted);
    assert_int_equal(forecaster_outlook(&other, &w->state.view, job).state,
                     OUTLOOK_SILENT);
    forecaster_release(&other);
    forecaster_release(&forecaster);
}

RUN_CASES(CASE(what_is_inherited_is_kept_when_the_job_is_adopted),
          CASE(the_gain_is_what_the_curve_loses), CASE(noise_widens_the_interval),
          CASE(states_follow_the_reports), CASE(a_job_that_has_ended_is_forgotten),
          TEST(an_assumed_curve_loses_its_share_with_every_step));
