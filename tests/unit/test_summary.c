/* Figures by name and as JSON: what does not apply is absent. */
#include "support/world.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "metrics/metrics.h"
#include "metrics/summary.h"

static void empty(struct metrics *metrics, struct world *w)
{
    world_init(w, 1, 4);
    metrics_init(metrics, &w->arena, &w->state.view, 0, UINT64_MAX);
}

static const struct json *at(const struct json *object, const char *path)
{
    char text[64];
    snprintf(text, sizeof text, "%s", path);
    for (char *key = strtok(text, "."); key && object; key = strtok(NULL, "."))
        object = json_get(object, key);
    return object;
}

static void every_figure_has_a_name_of_its_own(void **state)
{
    int count = 0;
    for (; summary_figures[count].id; count++)
        for (int i = 0; i < count; i++)
            assert_string_not_equal(summary_figures[i].id, summary_figures[count].id);
    assert_true(count > 40);
    assert_true(count <= FIGURES_MAX);
}

static void without_jobs_only_counts_apply(void **state)
{
    struct world w;
    struct metrics metrics;
    struct summary summary;
    empty(&metrics, &w);
    summary_make(&summary, &metrics, NULL, NULL, &w.cluster);
    assert_true(summary_value(&summary, "jobs.total") == 0);
    static const char *const absent[] = { "makespan_s",    "gpu_utilization",
                                          "jct_s.mean",    "slowdown.te.p99",
                                          "cost_usd",      "slo_violations",
                                          "no.such.figure" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_true(isnan(summary_value(&summary, absent[i])));

    struct json *json = json_new_object();
    summary_json(&summary, json);
    assert_non_null(at(json, "jobs.total"));
    assert_null(at(json, "jct_s"));
    assert_null(at(json, "slowdown"));
    assert_null(at(json, "cost_usd"));
    assert_null(at(json, "slo_violations"));
    assert_int_equal(summary.cdfs[CDF_JCT][CDF_ALL].count, 0);
    json_free(json);
    metrics_release(&metrics);
    world_release(&w);
}

static void names_nest_at_the_dots(void **state)
{
    struct world w;
    struct metrics metrics;
    struct summary summary;
    double number = 0;
    empty(&metrics, &w);
    struct metrics_job jobs[] = { { 10, 1, 2, 1, CLASS_BE },
                                  { 30, 3, 6, 1, CLASS_BE } };
    metrics.jobs = jobs;
    metrics.job_count = 2;
    metrics.completed = metrics.total = 2;
    metrics.first_ns = 0;
    metrics.now_ns = metrics.last_ns = SECONDS(40);
    summary_make(&summary, &metrics, NULL, NULL, &w.cluster);
    metrics.jobs = NULL;

    struct json *json = json_new_object();
    summary_json(&summary, json);
    assert_true(json_as_number(at(json, "jct_s.mean"), &number));
    assert_near(number, 20, 1e-9);
    assert_true(json_as_number(at(json, "slowdown.be.max"), &number));
    assert_near(number, 6, 1e-9);
    assert_true(json_as_number(at(json, "slowdown.all.p50"), &number));
    assert_near(number, 4, 1e-9);
    assert_null(at(json, "slowdown.te"));
    assert_true(json_as_number(at(json, "makespan_s"), &number));
    assert_near(number, 40, 1e-9);

    const struct summary_cdf *cdf = &summary.cdfs[CDF_WAIT][CDF_ALL];
    assert_int_equal(cdf->count, CDF_POINTS);
    assert_near(cdf->x[0], 1, 1e-9);
    assert_near(cdf->x[(CDF_POINTS - 1) / 2], 2, 1e-9);
    assert_near(cdf->x[CDF_POINTS - 1], 3, 1e-9);
    assert_near(cdf->y[CDF_POINTS - 1], 1, 1e-9);
    json_free(json);
    metrics_release(&metrics);
    world_release(&w);
}

/* By the mean of each user's jobs; a job of nobody's does not count. */
static void the_worst_user_is_found(void **state)
{
    struct world w;
    struct metrics metrics;
    struct summary summary;
    empty(&metrics, &w);
    struct metrics_job jobs[] = { { .slowdown = 9, .user = 0 },
                                  { .slowdown = 2, .user = 3 },
                                  { .slowdown = 4, .user = 3 },
                                  { .slowdown = 5, .user = 1 },
                                  { .slowdown = 1, .user = 1 } };
    metrics.jobs = jobs;
    metrics.job_count = 1;
    summary_make(&summary, &metrics, NULL, NULL, &w.cluster);
    assert_true(isnan(summary_value(&summary, "slowdown.worst_user")));
    metrics.job_count = 4;
    summary_make(&summary, &metrics, NULL, NULL, &w.cluster);
    assert_near(summary_value(&summary, "slowdown.worst_user"), 5, 1e-9);
    metrics.job_count = 5;
    summary_make(&summary, &metrics, NULL, NULL, &w.cluster);
    assert_near(summary_value(&summary, "slowdown.worst_user"), 3, 1e-9);
    metrics.jobs = NULL;
    metrics_release(&metrics);
    world_release(&w);
}

RUN_CASES(TEST(every_figure_has_a_name_of_its_own),
          TEST(without_jobs_only_counts_apply), TEST(names_nest_at_the_dots),
          TEST(the_worst_user_is_found));
