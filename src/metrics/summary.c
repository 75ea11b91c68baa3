/* summary.c - the figures of a run. */
#include "metrics/summary.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/sort.h"
#include "metrics/ledger.h"
#include "metrics/metrics.h"
#include "metrics/quality.h"
#include "model/cluster.h"

/* How a figure of single jobs spreads. */
#define SPREAD(id, name, unit, most) \
    { id ".mean", name ", mean", unit, BETTER_LESS }, \
        { id ".p50", name ", median", unit, BETTER_LESS }, \
        { id ".p95", name ", 95 %", unit, BETTER_LESS }, \
        { id ".p99", name ", 99 %", unit, BETTER_LESS }, \
    { \
        id ".max", name ", " most, unit, BETTER_LESS \
    }

const struct summary_figure summary_figures[] = {
    { "jobs.total", "jobs", "", BETTER_NONE, true },
    { "jobs.completed", "completed", "", BETTER_MORE, true },
    { "jobs.failed", "failed", "", BETTER_NONE, true },
    { "jobs.rejected", "rejected (can never fit)", "", BETTER_NONE, true },
    { "jobs.unfinished", "unfinished", "", BETTER_LESS, true },
    { "makespan_s", "makespan", "s", BETTER_LESS },
    { "gpu_utilization", "GPU-time held by jobs", "share", BETTER_MORE },
    { "preemptions", "preemptions", "", BETTER_LESS, true },
    { "resizes", "resizes", "", BETTER_NONE, true },
    { "overhead_gpu_s.pause", "GPU-time pausing", "GPU-s", BETTER_LESS },
    { "overhead_gpu_s.load_first", "GPU-time loading, first start", "GPU-s",
      BETTER_NONE },
    { "overhead_gpu_s.load_again", "GPU-time loading again", "GPU-s", BETTER_LESS },
    { "overhead_gpu_s.redo_preempted", "GPU-time redoing, after preemption", "GPU-s",
      BETTER_LESS },
    { "overhead_gpu_s.redo_failed", "GPU-time redoing, after failure", "GPU-s",
      BETTER_LESS },
    { "overhead_gpu_s.resize", "GPU-time resizing", "GPU-s", BETTER_LESS },
    SPREAD("jct_s", "completion time", "s", "longest"),
    SPREAD("wait_s", "waiting", "s", "longest"),
    SPREAD("slowdown.all", "slowdown", "", "largest"),
    SPREAD("slowdown.te", "slowdown of trial jobs", "", "largest"),
    SPREAD("slowdown.be", "slowdown of best-effort jobs", "", "largest"),
    { "slowdown.worst_user", "slowdown of the worst-off user, mean", "", BETTER_LESS },
    { "finish_time_fairness.mean", "finish-time fairness, mean", "", BETTER_LESS },
    { "finish_time_fairness.p50", "finish-time fairness, median", "", BETTER_LESS },
    { "finish_time_fairness.p95", "finish-time fairness, 95 %", "", BETTER_LESS },
    { "finish_time_fairness.max", "finish-time fairness, worst", "", BETTER_LESS },
    { "cost_usd", "cost", "usd", BETTER_LESS },
    { "slo_violations", "deadlines missed", "", BETTER_LESS, true },
    { "ledger.preemptions", "ledger: preemptions", "", BETTER_NONE, true },
    { "ledger.predicted_cost_gpu_s", "ledger: cost, predicted", "GPU-s", BETTER_LESS },
    { "ledger.actual_cost_gpu_s", "ledger: cost, measured", "GPU-s", BETTER_LESS },
    { "ledger.wait_saved_s", "ledger: waiting spared", "s", BETTER_MORE },
    { "sharing.pairs", "pairs of jobs that shared GPUs", "", BETTER_NONE, true },
    { "sharing.shared_gpu_s", "GPU-time shared by two jobs", "GPU-s", BETTER_NONE },
    { "sharing.gained_gpu_s", "sharing: GPU-time gained", "GPU-s", BETTER_MORE },
    { "sharing.lost_gpu_s", "sharing: GPU-time lost by stops", "GPU-s", BETTER_LESS },
    { "quality.mean_running_loss", "loss of running jobs, mean", "", BETTER_LESS },
    { "quality.loss_seconds_per_job", "loss over time, per job", "s", BETTER_LESS },
    { "quality.time_to.25", "time to 25 % less loss", "s", BETTER_LESS },
    { "quality.time_to.50", "time to 50 % less loss", "s", BETTER_LESS },
    { "quality.time_to.80", "time to 80 % less loss", "s", BETTER_LESS },
    { "quality.time_to.90", "time to 90 % less loss", "s", BETTER_LESS },
    { "quality.time_to.95", "time to 95 % less loss", "s", BETTER_LESS },
    { "quality.time_to.99", "time to 99 % less loss", "s", BETTER_LESS },
    { "quality.time_to_accuracy.90", "time to 90 % of last accuracy", "s",
      BETTER_LESS },
    { "quality.time_to_accuracy.95", "time to 95 % of last accuracy", "s",
      BETTER_LESS },
    { "quality.unit_share.high", "GPU-time, quarter with most to learn", "share",
      BETTER_NONE },
    { "quality.unit_share.medium", "GPU-time, next quarter", "share", BETTER_NONE },
    { "quality.unit_share.low", "GPU-time, other half", "share", BETTER_NONE },
    { NULL },
};

static int find_figure(const char *id)
{
    for (int i = 0; summary_figures[i].id; i++)
        if (strcmp(summary_figures[i].id, id) == 0)
            return i;
    return -1;
}

static void set_figure(struct summary *summary, const char *id, double value)
{
    int at = find_figure(id);
    assert(at >= 0);
    summary->values[at] = value;
}

/* The figure "group.what", if there is one. */
static void set_in_group(struct summary *summary, const char *group, const char *what,
                         double value)
{
    char id[64];
    snprintf(id, sizeof id, "%s.%s", group, what);
    int at = find_figure(id);
    if (at >= 0)
        summary->values[at] = value;
}

double summary_value(const struct summary *summary, const char *id)
{
    int at = find_figure(id);
    return at < 0 ? NAN : summary->values[at];
}

/* Linear between the two nearest ranks. */
static double find_quantile(const double *sorted, size_t count, double q)
{
    double at = q * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    double part = at - (double)below;
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

static void set_spread(struct summary *summary, const char *group, const double *sorted,
                       size_t count)
{
    if (count == 0)
        return;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += sorted[i];
    set_in_group(summary, group, "mean", sum / (double)count);
    set_in_group(summary, group, "p50", find_quantile(sorted, count, 0.50));
    set_in_group(summary, group, "p95", find_quantile(sorted, count, 0.95));
    set_in_group(summary, group, "p99", find_quantile(sorted, count, 0.99));
    set_in_group(summary, group, "max", sorted[count - 1]);
}

static void set_cdf(struct summary_cdf *cdf, const double *sorted, size_t count)
{
    cdf->count = count == 0 ? 0 : CDF_POINTS;
    for (uint32_t i = 0; i < cdf->count; i++) {
        cdf->y[i] = (double)i / (CDF_POINTS - 1);
        cdf->x[i] = find_quantile(sorted, count, cdf->y[i]);
    }
}

/* A figure of all jobs: trial jobs first, then the others, each in order; and all in order. */
struct column {
    double *by_class, *all;
    size_t trial_count;
};

/* Two orders become one. */
static void merge_orders(const double *a, size_t a_count, const double *b,
                         size_t b_count, double *merged)
{
    size_t i = 0;
    size_t k = 0;
    while (i < a_count || k < b_count) {
        bool first = k == b_count || (i < a_count && a[i] <= b[k]);
        merged[i + k] = first ? a[i] : b[k];
        i += first;
        k += !first;
    }
}

/* 'offset' is in struct metrics_job. */
static void sort_column(const struct metrics *metrics, size_t offset,
                        struct column *column)
{
    size_t count = metrics->job_count;
    size_t trials = 0;
    size_t others = count;
    for (size_t i = 0; i < count; i++) {
        const struct metrics_job *job = &metrics->jobs[i];
        size_t at = job->class == CLASS_TE ? trials++ : --others;
        column->by_class[at] = *(const double *)((const char *)job + offset);
    }
    column->trial_count = trials;
    sort_numbers(column->by_class, column->all, trials);
    sort_numbers(column->by_class + trials, column->all, count - trials);
    merge_orders(column->by_class, trials, column->by_class + trials, count - trials,
                 column->all);
}

/* The values of a class (CDF_ALL: all) in order; returns their number. */
static size_t pick_class(const struct column *column, size_t count,
                         enum cdf_class class, const double **ret_values)
{
    *ret_values = class == CDF_ALL  ? column->all
                  : class == CDF_TE ? column->by_class
                                    : column->by_class + column->trial_count;
    return class == CDF_ALL  ? count
           : class == CDF_TE ? column->trial_count
                             : count - column->trial_count;
}

static void set_times(struct summary *summary, const struct metrics *metrics)
{
    static const char *const slowdowns[CDF_CLASSES] = { "slowdown.all", "slowdown.te",
                                                        "slowdown.be" };
    static const char *const groups[CDF_KINDS] = {
        [CDF_JCT] = "jct_s", [CDF_WAIT] = "wait_s"
    };
    static const size_t columns[CDF_KINDS] = {
        [CDF_JCT] = offsetof(struct metrics_job, jct_s),
        [CDF_WAIT] = offsetof(struct metrics_job, wait_s),
        [CDF_SLOWDOWN] = offsetof(struct metrics_job, slowdown)
    };
    size_t all = metrics->job_count;
    struct arena arena;
    arena_init(&arena, 0);
    struct column column = { .by_class = arena_array(&arena, double, all + 1),
                             .all = arena_array(&arena, double, all + 1) };
    const double *values;
    for (int kind = 0; kind < CDF_KINDS; kind++) {
        sort_column(metrics, columns[kind], &column);
        for (int class = 0; class < CDF_CLASSES; class ++) {
            size_t count = pick_class(&column, all, (enum cdf_class) class, &values);
            set_cdf(&summary->cdfs[kind][class], values, count);
            if (kind == CDF_SLOWDOWN)
                set_spread(summary, slowdowns[class], values, count);
            else if (class == CDF_ALL)
                set_spread(summary, groups[kind], values, count);
        }
    }
    sort_column(metrics, offsetof(struct metrics_job, fairness), &column);
    set_spread(summary, "finish_time_fairness", column.all, all);
    arena_release(&arena);
}

/* The largest mean slowdown of a user's jobs; jobs whose user is not known do not count. */
static void set_worst_user(struct summary *summary, const struct metrics *metrics)
{
    uint32_t user_top = 0;
    for (size_t i = 0; i < metrics->job_count; i++)
        if (metrics->jobs[i].user > user_top)
            user_top = metrics->jobs[i].user;
    if (user_top == 0)
        return;
    struct arena arena;
    arena_init(&arena, 0);
    double *sums = arena_array(&arena, double, user_top + 1);
    double *counts = arena_array(&arena, double, user_top + 1);
    for (size_t i = 0; i < metrics->job_count; i++) {
        sums[metrics->jobs[i].user] += metrics->jobs[i].slowdown;
        counts[metrics->jobs[i].user]++;
    }
    double worst = 0;
    for (uint32_t user = 1; user <= user_top; user++)
        if (counts[user] > 0 && sums[user] / counts[user] > worst)
            worst = sums[user] / counts[user];
    set_figure(summary, "slowdown.worst_user", worst);
    arena_release(&arena);
}

static void set_gpu_time(struct summary *summary, const struct metrics *metrics,
                         const struct cluster *cluster)
{
    static const char *const overheads[OVERHEAD_COUNT] = {
        [OVERHEAD_PAUSE] = "pause",
        [OVERHEAD_LOAD_FIRST] = "load_first",
        [OVERHEAD_LOAD_AGAIN] = "load_again",
        [OVERHEAD_REDO_PREEMPTED] = "redo_preempted",
        [OVERHEAD_REDO_FAILED] = "redo_failed",
        [OVERHEAD_RESIZE] = "resize",
    };
    double span_ns = (double)(metrics->now_ns - metrics->first_ns);
    double held_ns = 0;
    double usd = 0;
    bool priced = false;
    for (uint32_t type = 0; type < cluster->type_count; type++) {
        held_ns += (double)metrics->held_by_type_ns[type];
        usd += (double)metrics->held_by_type_ns[type] * 1e-9 / 3600 *
               cluster->types[type].usd_per_hour;
        priced = priced || cluster->types[type].usd_per_hour > 0;
    }
    if (span_ns > 0 && cluster->gpu_count > 0)
        set_figure(summary, "gpu_utilization",
                   held_ns / (span_ns * cluster->gpu_count));
    for (int i = 0; i < OVERHEAD_COUNT; i++)
        set_in_group(summary, "overhead_gpu_s", overheads[i],
                     (double)metrics->overhead_ns[i] * 1e-9);
    if (priced)
        set_figure(summary, "cost_usd", usd);
}

static void set_series(struct summary *summary, const struct series *series)
{
    double bin_s = (double)series->bin_ns * 1e-9;
    summary->series.count = series->bin_count;
    for (uint32_t i = 0; i < series->bin_count; i++) {
        summary->series.t_s[i] = bin_s * i;
        summary->series.gpus_held[i] = series->sums[SERIES_GPUS_HELD][i] / bin_s;
        summary->series.waiting[i] = series->sums[SERIES_WAITING][i] / bin_s;
        summary->series.running[i] = series->sums[SERIES_RUNNING][i] / bin_s;
    }
}

/* Only where something was shared. */
static void set_sharing(struct summary *summary, const struct pair_ledger *pairs)
{
    if (pairs->booked.pairs == 0)
        return;
    set_figure(summary, "sharing.pairs", (double)pairs->booked.pairs);
    set_figure(summary, "sharing.shared_gpu_s", pairs->booked.shared_gpu_s);
    set_figure(summary, "sharing.gained_gpu_s", pairs->booked.gained_gpu_s);
    set_figure(summary, "sharing.lost_gpu_s", pairs->booked.lost_gpu_s);
}

static void set_ledger(struct summary *summary, const struct ledger *ledger)
{
    set_figure(summary, "ledger.preemptions", (double)ledger->preemptions);
    set_figure(summary, "ledger.predicted_cost_gpu_s",
               (double)ledger->predicted_cost_ns * 1e-9);
    set_figure(summary, "ledger.actual_cost_gpu_s",
               (double)ledger->actual_cost_ns * 1e-9);
    set_figure(summary, "ledger.wait_saved_s", ledger->wait_saved_s);
    set_sharing(summary, &ledger->pairs);
    const struct series *series = &ledger->series;
    summary->ledger.count = series->bin_count;
    for (uint32_t i = 0; i < series->bin_count; i++) {
        summary->ledger.t_s[i] = (double)series->bin_ns * 1e-9 * i;
        summary->ledger.preemptions[i] = series->sums[LEDGER_PREEMPTIONS][i];
        summary->ledger.predicted_gpu_s[i] = series->sums[LEDGER_PREDICTED][i];
        summary->ledger.actual_gpu_s[i] = series->sums[LEDGER_ACTUAL][i];
    }
}

static void set_losses(struct summary *summary, const struct series *series)
{
    for (uint32_t i = 0; i < series->bin_count; i++) {
        double job_s = series->sums[QUALITY_RUNNING][i];
        if (!(job_s > 0))
            continue;
        uint32_t at = summary->quality.count++;
        summary->quality.t_s[at] = (double)series->bin_ns * 1e-9 * i;
        summary->quality.loss[at] = series->sums[QUALITY_LOSS][i] / job_s;
    }
}

static void set_quality(struct summary *summary, const struct quality *quality)
{
    double count = (double)quality->job_count;
    if (quality->job_count == 0)
        return;
    set_figure(summary, "quality.mean_running_loss", quality_mean_loss(quality));
    set_figure(summary, "quality.loss_seconds_per_job", quality->loss_s / count);
    set_losses(summary, &quality->series);
    for (uint32_t i = 0; i < LEARNING_LEVELS; i++) {
        char percent[16];
        snprintf(percent, sizeof percent, "%.0f", learning_levels[i] * 100);
        set_in_group(summary, "quality.time_to", percent, quality->level_s[i] / count);
    }
    for (uint32_t i = 0; i < LEARNING_ACCURACIES && quality->accuracy_count > 0; i++) {
        char percent[16];
        snprintf(percent, sizeof percent, "%.0f", learning_accuracies[i] * 100);
        set_in_group(summary, "quality.time_to_accuracy", percent,
                     quality->accuracy_s[i] / (double)quality->accuracy_count);
    }
    double shares[LOSS_GROUPS];
    if (loss_groups_shares(&quality->groups, shares)) {
        set_figure(summary, "quality.unit_share.high", shares[LOSS_HIGH]);
        set_figure(summary, "quality.unit_share.medium", shares[LOSS_MEDIUM]);
        set_figure(summary, "quality.unit_share.low", shares[LOSS_LOW]);
    }
}

void summary_make(struct summary *summary, const struct metrics *metrics,
                  const struct ledger *ledger, const struct quality *quality,
                  const struct cluster *cluster)
{
    memset(summary, 0, sizeof *summary);
    for (int i = 0; i < FIGURES_MAX; i++)
        summary->values[i] = NAN;
    summary->preempted_jobs = metrics->preempted_jobs;
    set_figure(summary, "jobs.total", (double)metrics->total);
    set_figure(summary, "jobs.completed", (double)metrics->completed);
    set_figure(summary, "jobs.failed", (double)metrics->failed);
    set_figure(summary, "jobs.rejected", (double)metrics->rejected);
    set_figure(summary, "jobs.unfinished", (double)metrics->unfinished);
    set_figure(summary, "preemptions", (double)metrics->preemptions);
    set_figure(summary, "resizes", (double)metrics->resizes);
    if (metrics->deadlines > 0)
        set_figure(summary, "slo_violations", (double)metrics->slo_violations);
    if (metrics->first_ns < INT64_MAX) {
        set_figure(summary, "makespan_s",
                   (double)(metrics->last_ns - metrics->first_ns) * 1e-9);
        set_gpu_time(summary, metrics, cluster);
        set_series(summary, &metrics->series);
    }
    set_times(summary, metrics);
    set_worst_user(summary, metrics);
    if (ledger)
        set_ledger(summary, ledger);
    if (quality)
        set_quality(summary, quality);
}

/* The object at a path such as "slowdown.te", made where it is missing. */
static struct json *object_at(struct json *object, const char *path, size_t length)
{
    while (length > 0) {
        size_t part = strcspn(path, ".");
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)part, path);
        struct json *child = (struct json *)(uintptr_t)json_get(object, key);
        if (!child) {
            child = json_new_object();
            json_put(object, key, child);
        }
        object = child;
        part = part < length ? part + 1 : part;
        path += part;
        length -= part;
    }
    return object;
}

void summary_json(const struct summary *summary, struct json *object)
{
    for (int i = 0; summary_figures[i].id; i++) {
        const struct summary_figure *figure = &summary_figures[i];
        double value = summary->values[i];
        if (isnan(value))
            continue;
        const char *dot = strrchr(figure->id, '.');
        size_t length = dot ? (size_t)(dot - figure->id) : 0;
        struct json *at = object_at(object, figure->id, length);
        const char *key = dot ? dot + 1 : figure->id;
        if (figure->whole)
            json_put_count(at, key, (int64_t)value);
        else
            json_put_number(at, key, value);
    }
}
