/* Curves of real training as curves of simulated jobs: which are taken, and how. */
#include "support/cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "model/job.h"
#include "workload/preset_slaq.h"
#include "workload/workload.h"

static char path[64];
static FILE *file;
static struct error err;
static struct trained trained;

static void begin(void)
{
    snprintf(path, sizeof path, "/tmp/berth-trained-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    fputs("run_id,algo,metric,step,value\n", file);
}

/* A curve from one value to another, in so many points, with a bump in the middle. */
static void curve(const char *run, const char *algo, int points, double from, double to,
                  double bump)
{
    for (int i = 0; i < points; i++)
        fprintf(file, "%s,%s,loss,%d,%.17g\n", run, algo, i,
                from + (to - from) * i / (points - 1) + (i == points / 2 ? bump : 0));
}

static int load(void)
{
    fclose(file);
    int r = trained_load_file(&trained, path, &err);
    unlink(path);
    return r;
}

static void losses_that_fall_are_taken_and_nothing_else(void **state)
{
    begin();
    curve("short", "a", 19, 2, 1, 0);
    curve("rises", "a", 40, 0.1, 0.9, 0);
    curve("diverged", "a", 40, 2, 1, 1e6);
    curve("noisy", "a", 40, 2, 1, 0.3);
    curve("negative", "b", 20, -5, -9, 0);
    curve("too-large", "b", 20, 9e40, 1, 0);
    curve("too-fine", "b", 20, 1 + 1e-12, 1, 0);
    assert_int_equal(load(), 0);
    assert_int_equal(trained.count, 2);
    assert_int_equal(trained.kind_count, 2);
    trained_release(&trained);
}

static void a_point_is_a_step_and_long_ones_are_thinned_out(void **state)
{
    begin();
    curve("long", "a", 1271, 128, 1, 0);
    assert_int_equal(load(), 0);
    struct rng rng;
    rng_init(&rng, 1, "trained");
    struct learning drawn = trained_draw(&trained, &rng);
    assert_int_equal(drawn.point_count, LEARNING_POINTS_MAX);
    assert_near(drawn.kmax, LEARNING_POINTS_MAX - 1, 0);
    assert_near(learning_loss(&drawn, 0), 128, 1e-6);
    assert_near(learning_loss(&drawn, 64), 64, 1e-4);
    assert_near(learning_loss(&drawn, drawn.kmax), 1, 1e-6);
    trained_release(&trained);
}

static void every_kind_is_as_likely_as_any_other(void **state)
{
    begin();
    curve("rare", "a", 20, 2, 1, 0);
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "often%d", i);
        curve(name, "b", 30, 2, 1, 0);
    }
    assert_int_equal(load(), 0);
    struct rng rng;
    rng_init(&rng, 1, "trained");
    int rare = 0;
    for (int i = 0; i < 1000; i++)
        rare += trained_draw(&trained, &rng).point_count == 20;
    assert_in_range(rare, 400, 600);
    trained_release(&trained);
}

static void a_file_without_such_a_curve_is_refused(void **state)
{
    begin();
    curve("rises", "a", 40, 0, 1, 0);
    assert_int_equal(load(), -EINVAL);
    assert_non_null(strstr(err.text, "no loss that falls"));
    begin();
    fputs("x,a,loss,1,nan\n", file);
    assert_int_equal(load(), -EINVAL);
    assert_non_null(strstr(err.text, ":2: "));
}

/* --- with the data ------------------------------------------------------------------- */

static void without_the_data_the_preset_says_what_it_needs(void **state)
{
    char before[4096] = "";
    const char *data = getenv("BERTH_DATA");
    if (data)
        snprintf(before, sizeof before, "%s", data);
    unsetenv("BERTH_DATA");
    struct workload *workload;
    assert_int_equal(workload_open(&workload, "slaq:curves=real", NULL, 1, 0, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "BERTH_DATA"));
    setenv("BERTH_DATA", "/nowhere", 1);
    assert_true(workload_open(&workload, "slaq:curves=real", NULL, 1, 0, &err) < 0);
    assert_non_null(strstr(err.text, "/nowhere/curves/curves.csv.gz"));
    if (*before)
        setenv("BERTH_DATA", before, 1);
    else
        unsetenv("BERTH_DATA");
}

static void jobs_of_the_preset_use_real_curves(void **state)
{
    if (!getenv("BERTH_DATA"))
        SKIP("BERTH_DATA not set");
    struct workload *workload;
    struct job_spec spec;
    uint32_t jobs = 0;
    assert_int_equal(workload_open(&workload, "slaq:curves=real", NULL, 1, 0, &err), 0);
    for (; workload_next(workload, &spec, &err) > 0; jobs++) {
        assert_int_equal(spec.curve.family, LEARNING_POINTS);
        assert_true(spec.curve.point_count >= 20);
        assert_true(spec.steps == spec.curve.kmax);
        assert_true(learning_loss(&spec.curve, 0) >
                    learning_loss(&spec.curve, spec.steps));
    }
    assert_int_equal(jobs, 160);
    workload_close(workload);
}

RUN_CASES(TEST(losses_that_fall_are_taken_and_nothing_else),
          TEST(a_point_is_a_step_and_long_ones_are_thinned_out),
          TEST(every_kind_is_as_likely_as_any_other),
          TEST(a_file_without_such_a_curve_is_refused),
          TEST(without_the_data_the_preset_says_what_it_needs),
          TEST(jobs_of_the_preset_use_real_curves));
