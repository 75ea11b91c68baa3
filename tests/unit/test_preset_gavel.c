/* The workload Gavel is measured on: number for number that of the published generator. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "model/job.h"
#include "workload/workload.h"

static struct error err;

static struct workload *open_workload(const char *text, uint64_t seed)
{
    struct workload *workload;
    if (workload_open(&workload, text, NULL, seed, 0, &err) < 0)
        fail_msg("%s", err.text);
    return workload;
}

static struct job_spec next(struct workload *workload)
{
    struct job_spec job;
    assert_int_equal(workload_next(workload, &job, &err), 1);
    return job;
}

static uint64_t count(const char *text)
{
    struct workload *workload = open_workload(text, 1);
    struct job_spec job;
    uint64_t jobs = 0;
    while (workload_next(workload, &job, &err) > 0)
        jobs++;
    workload_close(workload);
    return jobs;
}

static void the_first_jobs_are_the_published_ones(void **state)
{
    struct workload *workload = open_workload("gavel", 0);
    struct job_spec job = next(workload);
    assert_string_equal(job.kind, "ResNet-18 (batch size 64)");
    assert_int_equal(job.gpus, 1);
    assert_int_equal(job.submit_ns, 0);
    assert_true(job.steps == 1646636.2758419);
    job = next(workload);
    assert_string_equal(job.kind, "Transformer (batch size 16)");
    assert_true(job.steps == 343170.46864225325);
    assert_int_equal(job.submit_ns, INT64_C(244586072910));
    assert_string_equal(workload_facts(workload)->cluster, "gavel-36");
    workload_close(workload);
}

static void with_gangs_the_same_draws_give_more_gpus(void **state)
{
    struct workload *workload = open_workload("gavel:multi=true", 0);
    struct job_spec job = next(workload);
    assert_int_equal(job.gpus, 8);
    assert_true(job.steps == 17484476.26110642);
    workload_close(workload);
}

static void the_default_is_a_thousand_jobs(void **state)
{
    assert_int_equal(count("gavel"), 1000);
    assert_int_equal(count("gavel:jobs=7"), 7);
    assert_int_equal(count("gavel:static=5"), 5);
}

static void a_caller_that_stops_by_itself_gets_more(void **state)
{
    struct workload *workload = open_workload("gavel", 1);
    assert_int_equal(workload_facts(workload)->expected, 1000);
    workload_go_on(workload);
    assert_int_equal(workload_facts(workload)->expected, 0);
    for (uint32_t i = 0; i < 1500; i++)
        next(workload);
    workload_close(workload);
    workload = open_workload("gavel:jobs=7", 1);
    workload_go_on(workload);
    assert_int_equal(workload_facts(workload)->expected, 7);
    workload_close(workload);
}

static void all_at_once_means_at_the_start(void **state)
{
    struct workload *workload = open_workload("gavel:static=20,multi=true", 3);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(next(workload).submit_ns, 0);
    workload_close(workload);
}

static void one_in_five_weighs_five(void **state)
{
    struct workload *workload = open_workload("gavel:priorities=true,jobs=4000", 1);
    uint32_t heavy = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        struct job_spec job = next(workload);
        assert_true(job.weight == 1 || job.weight == 5);
        heavy += job.weight > 1;
    }
    assert_true(heavy > 700 && heavy < 900);
    workload_close(workload);
}

static void deadlines_draw_from_a_stream_of_their_own(void **state)
{
    struct workload *with = open_workload("gavel:slos=true", 1);
    struct workload *without = open_workload("gavel", 1);
    for (uint32_t i = 0; i < 50; i++) {
        struct job_spec a = next(with);
        struct job_spec b = next(without);
        assert_true(a.steps == b.steps);
        assert_true(a.deadline_ns > a.submit_ns);
        assert_int_equal(b.deadline_ns, 0);
    }
    workload_close(with);
    workload_close(without);
}

static void two_settings_for_the_number_of_jobs_are_refused(void **state)
{
    struct workload *workload;
    assert_int_equal(
        workload_open(&workload, "gavel:static=5,jobs=5", NULL, 1, 0, &err), -EINVAL);
    assert_string_equal(err.text,
                        "gavel: both static and jobs say how many jobs there are");
}

/* --- the whole reference ------------------------------------------------------------ */

static double number(const struct json *row, size_t at)
{
    double value = NAN;
    assert_true(json_as_number(json_item(row, at), &value));
    return value;
}

static void check_case(const struct json *reference)
{
    char text[128];
    double seed;
    double lam;
    assert_true(json_as_number(json_get(reference, "seed"), &seed));
    assert_true(json_as_number(json_get(reference, "lam_seconds"), &lam));
    const struct json *jobs = json_get(reference, "jobs");
    bool gangs = false;
    bool heavy = false;
    for (size_t i = 0; i < json_count(jobs); i++) {
        gangs = gangs || number(json_item(jobs, i), 2) > 1;
        heavy = heavy || number(json_item(jobs, i), 3) > 1;
    }
    snprintf(text, sizeof text, "gavel:lam=%.17g,multi=%s,priorities=%s", lam,
             gangs ? "true" : "false", heavy ? "true" : "false");
    struct workload *workload = open_workload(text, (uint64_t)seed);
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json *row = json_item(jobs, i);
        struct job_spec job = next(workload);
        assert_string_equal(job.kind, json_as_text(json_item(row, 1)));
        assert_true(job.gpus == number(row, 2));
        assert_true(job.weight == number(row, 3));
        assert_true(job.steps == number(row, 5));
        assert_int_equal(job.submit_ns, units_ns(number(row, 6)));
    }
    workload_close(workload);
}

static void every_reference_job_is_drawn(void **state)
{
    const char *data = getenv("BERTH_DATA");
    if (!data)
        SKIP("BERTH_DATA not set");
    char path[512];
    snprintf(path, sizeof path, "%s/gavel-golden/generated_jobs.json", data);
    FILE *file = fopen(path, "re");
    if (!file)
        SKIP("no gavel-golden in BERTH_DATA");
    static char bytes[1 << 18];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    struct json *root;
    if (json_parse(bytes, size, &root, &err) < 0)
        fail_msg("%s", err.text);
    const struct json *cases = json_get(root, "cases");
    assert_int_equal(json_count(cases), 4);
    for (size_t i = 0; i < json_count(cases); i++)
        check_case(json_item(cases, i));
    json_free(root);
}

RUN_CASES(TEST(the_first_jobs_are_the_published_ones),
          TEST(with_gangs_the_same_draws_give_more_gpus),
          TEST(the_default_is_a_thousand_jobs),
          TEST(a_caller_that_stops_by_itself_gets_more),
          TEST(all_at_once_means_at_the_start), TEST(one_in_five_weighs_five),
          TEST(deadlines_draw_from_a_stream_of_their_own),
          TEST(two_settings_for_the_number_of_jobs_are_refused),
          TEST(every_reference_job_is_drawn));
