/* How fast a job goes: throughput from uneven reports, and time by number of GPUs. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "predict/rate.h"

#define SECONDS(s) ((int64_t)((s)*1e9))

static void an_even_job_has_its_rate(void **state)
{
    struct rate rate;
    rate_init(&rate, 60);
    assert_near(rate_per_s(&rate), 0, 0);
    rate_report(&rate, SECONDS(10), 100);
    assert_near(rate_per_s(&rate), 0, 0); /* one report says nothing */
    for (int i = 1; i <= 20; i++)
        rate_report(&rate, SECONDS(10 + 7 * i), 100 + 14 * i);
    assert_near(rate_per_s(&rate), 2, 1e-9);
}

static void it_does_not_matter_how_often_it_reports(void **state)
{
    struct rate often;
    struct rate seldom;
    rate_init(&often, 30);
    rate_init(&seldom, 30);
    double step = 0;
    for (int i = 0; i <= 100; i++) {
        rate_report(&often, SECONDS(i), step);
        if (i % 50 == 0)
            rate_report(&seldom, SECONDS(i), step);
        step += i < 50 ? 1 : 3;
    }
    assert_near(rate_per_s(&often), rate_per_s(&seldom), 1e-9);
}

static void it_follows_a_change(void **state)
{
    struct rate rate;
    rate_init(&rate, 10);
    double step = 0;
    for (int i = 0; i < 100; i++, step += i < 50 ? 5 : 1)
        rate_report(&rate, SECONDS(i), step);
    assert_near(rate_per_s(&rate), 1, 0.05);
}

static void restarts_are_not_counted(void **state)
{
    struct rate rate;
    rate_init(&rate, 1000);
    rate_report(&rate, SECONDS(0), 0);
    rate_report(&rate, SECONDS(10), 20);
    rate_report(&rate, SECONDS(511), 5); /* back to a checkpoint */
    rate_report(&rate, SECONDS(521), 25);
    assert_near(rate_per_s(&rate), 2, 1e-9);
}

static void odd_reports_do_no_harm(void **state)
{
    struct rate rate;
    rate_init(&rate, 100);
    rate_report(&rate, SECONDS(5), 0);
    rate_report(&rate, SECONDS(5), 7);
    rate_report(&rate, SECONDS(4), 8);
    rate_report(&rate, SECONDS(6), NAN);
    rate_report(&rate, SECONDS(10), 10);
    assert_near(rate_per_s(&rate), 2, 1e-9);
}

/* Seconds an iteration takes on that many GPUs. */
static double model_s(const struct rate_model *model, double gpus)
{
    return model->work_s / gpus + model->fixed_s;
}

static void both_parts_are_found(void **state)
{
    struct rate_model model;
    rate_model_init(&model);
    assert_near(model_s(&model, 4), 0, 0);
    for (int i = 0; i < 30; i++)
        for (double gpus = 1; gpus <= 8; gpus *= 2)
            assert_true(rate_model_add(&model, gpus, 12 / gpus + 0.5));
    assert_near(model.work_s, 12, 1e-6);
    assert_near(model.fixed_s, 0.5, 1e-6);
    assert_near(model_s(&model, 16), 1.25, 1e-6);
}

static void noise_averages_out(void **state)
{
    struct rng rng;
    struct rate_model model;
    rng_init(&rng, 1, "rate");
    rate_model_init(&model);
    for (int i = 0; i < 400; i++) {
        double gpus = 1 + rng_below(&rng, 8);
        rate_model_add(&model, gpus, (12 / gpus + 0.5) * exp(0.1 * rng_normal(&rng)));
    }
    assert_near(model_s(&model, 4), 3.5, 0.35);
    assert_near(model_s(&model, 8), 2, 0.25);
}

static void with_one_size_all_is_divided(void **state)
{
    struct rate_model model;
    rate_model_init(&model);
    rate_model_add(&model, 4, 3);
    assert_near(model_s(&model, 2), 6, 1e-12);
    assert_near(model_s(&model, 4), 3, 1e-12);
}

static void neither_part_is_negative(void **state)
{
    struct rate_model model;
    rate_model_init(&model);
    rate_model_add(&model, 1, 2);
    rate_model_add(&model, 8, 5); /* more GPUs, and slower */
    assert_near(model.work_s, 0, 0);
    assert_near(model.fixed_s, 3.5, 0.01);
    rate_model_init(&model);
    rate_model_add(&model, 1, 10);
    rate_model_add(&model, 2, 1); /* better than in proportion */
    assert_near(model.fixed_s, 0, 0);
    assert_true(model.work_s > 0);
}

static void a_checkpoint_is_no_slow_iteration(void **state)
{
    struct rate_model model;
    rate_model_init(&model);
    for (int i = 0; i < 50; i++)
        rate_model_add(&model, 2, i == 40 ? 100 : 1);
    assert_near(model_s(&model, 2), 1, 0.12);
}

static void a_size_left_long_ago_is_still_known(void **state)
{
    struct rate_model model;
    rate_model_init(&model);
    for (int i = 0; i < 20; i++)
        rate_model_add(&model, 1, 10.5);
    for (int i = 0; i < 1000; i++)
        rate_model_add(&model, 4, 3);
    assert_near(model_s(&model, 1), 10.5, 0.01);
}

static void many_sizes_find_room(void **state)
{
    struct rate_model model;
    rate_model_init(&model);
    for (int i = 0; i < 5; i++)
        for (double gpus = 1; gpus <= 40; gpus++)
            rate_model_add(&model, gpus, 40 / gpus + 1);
    assert_int_equal(model.size_count, RATE_SIZES_MAX);
    assert_near(model_s(&model, 10), 5, 0.01);
    const double bad[] = { 0, -1, NAN, INFINITY };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(rate_model_add(&model, bad[i], 1));
        assert_false(rate_model_add(&model, 1, bad[i]));
    }
}

RUN_CASES(TEST(an_even_job_has_its_rate), TEST(it_does_not_matter_how_often_it_reports),
          TEST(it_follows_a_change), TEST(restarts_are_not_counted),
          TEST(odd_reports_do_no_harm), TEST(both_parts_are_found),
          TEST(noise_averages_out), TEST(with_one_size_all_is_divided),
          TEST(neither_part_is_negative), TEST(a_checkpoint_is_no_slow_iteration),
          TEST(a_size_left_long_ago_is_still_known), TEST(many_sizes_find_room));
