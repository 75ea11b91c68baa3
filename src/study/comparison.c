/* comparison.c - several policies on the same workloads, over several seeds. */
#include "study/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/cluster.h"
#include "policy/policy.h"
#include "version.h"

/* 97.5 % point of Student's t. */
static double student_t(uint32_t degrees)
{
    static const double table[] = { 0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                                    2.365, 2.306,  2.262, 2.228, 2.201, 2.179, 2.160,
                                    2.145, 2.131,  2.120, 2.110, 2.101, 2.093, 2.086 };
    if (degrees < sizeof table / sizeof *table)
        return table[degrees];
    return 1.96 + 2.5 / degrees; /* within 0.002 beyond 20 */
}

static const struct sweep_run *run_of(const struct comparison *comparison,
                                      uint32_t policy, uint32_t seed)
{
    return &comparison->runs[policy * comparison->seed_count + seed];
}

int comparison_run(struct comparison *comparison, const struct sim_setup *like,
                   void (*progress)(void *context, double share), void *context,
                   struct error *err)
{
    uint32_t count = comparison->policy_count * comparison->seed_count;
    comparison->cluster = like->cluster;
    comparison->runs = memory_checked(calloc(count, sizeof *comparison->runs));
    for (uint32_t i = 0; i < count; i++) {
        struct sim_setup *setup = &comparison->runs[i].setup;
        *setup = *like;
        setup->policy = comparison->policies[i / comparison->seed_count];
        if (comparison->flows[i / comparison->seed_count])
            setup->flow = comparison->flows[i / comparison->seed_count];
        setup->seed = comparison->first_seed + i % comparison->seed_count;
        setup->chart = like->chart && i % comparison->seed_count == 0;
    }
    return sweep_run_all(comparison->runs, count, sweep_threads(), progress, context,
                         err);
}

const char *comparison_name(const struct comparison *comparison, uint32_t policy)
{
    const char *name = comparison->names[policy];
    return name ? name : comparison->policies[policy];
}

void comparison_release(struct comparison *comparison)
{
    for (uint32_t i = 0;
         comparison->runs && i < comparison->policy_count * comparison->seed_count; i++)
        sim_result_release(&comparison->runs[i].result);
    free(comparison->runs);
    comparison->runs = NULL;
}

struct comparison_interval comparison_estimate(const struct comparison *comparison,
                                               uint32_t policy, uint32_t figure)
{
    struct comparison_interval estimate = { .mean = NAN, .half = NAN };
    double sum = 0;
    double squares = 0;
    for (uint32_t s = 0; s < comparison->seed_count; s++) {
        double value = run_of(comparison, policy, s)->result.summary.values[figure];
        if (isnan(value))
            continue;
        sum += value;
        estimate.count++;
    }
    if (estimate.count == 0)
        return estimate;
    estimate.mean = sum / estimate.count;
    for (uint32_t s = 0; s < comparison->seed_count; s++) {
        double value = run_of(comparison, policy, s)->result.summary.values[figure];
        if (!isnan(value))
            squares += (value - estimate.mean) * (value - estimate.mean);
    }
    if (estimate.count > 1)
        estimate.half = student_t(estimate.count - 1) *
                        sqrt(squares / (estimate.count - 1) / estimate.count);
    return estimate;
}

/* --- for programs ---------------------------------------------------------------- */

static struct json *estimates_json(const struct comparison *comparison, uint32_t policy)
{
    struct json *object = json_new_object();
    for (uint32_t f = 0; summary_figures[f].id; f++) {
        struct comparison_interval estimate =
            comparison_estimate(comparison, policy, f);
        if (estimate.count == 0)
            continue;
        struct json *row = json_new_object();
        json_put_number(row, "mean", estimate.mean);
        if (!isnan(estimate.half)) {
            json_put_number(row, "low", estimate.mean - estimate.half);
            json_put_number(row, "high", estimate.mean + estimate.half);
        }
        json_put_count(row, "n", estimate.count);
        json_put(object, summary_figures[f].id, row);
    }
    return object;
}

static const char *flow_of(const struct comparison *comparison, uint32_t policy)
{
    return run_of(comparison, policy, 0)->setup.flow;
}

struct json *comparison_json(const struct comparison *comparison)
{
    struct json *root = json_new_object();
    json_put_text(root, "cluster", comparison->cluster_text);
    json_put_text(root, "workload", comparison->workload_text);
    struct json *seeds = json_new_array();
    for (uint32_t s = 0; s < comparison->seed_count; s++)
        json_add_count(seeds, (int64_t)(comparison->first_seed + s));
    json_put(root, "seeds", seeds);
    struct json *policies = json_new_array();
    for (uint32_t p = 0; p < comparison->policy_count; p++) {
        struct json *policy = json_new_object();
        json_put_text(policy, "policy", comparison->policies[p]);
        const struct sim_network *network = &run_of(comparison, p, 0)->result.network;
        if (network->mode)
            json_put_text(policy, "flow_policy",
                          flow_of(comparison, p) ? flow_of(comparison, p) : "fair");
        json_put(policy, "figures", estimates_json(comparison, p));
        struct json *runs = json_new_array();
        for (uint32_t s = 0; s < comparison->seed_count; s++) {
            struct json *run = json_new_object();
            json_put_count(run, "seed", (int64_t)(comparison->first_seed + s));
            summary_json(&run_of(comparison, p, s)->result.summary, run);
            json_add(runs, run);
        }
        json_put(policy, "runs", runs);
        json_add(policies, policy);
    }
    json_put(root, "policies", policies);
    return root;
}

/* --- for the page ------------------------------------------------------------------ */

static struct json *make_number_array(const double *values, uint32_t count)
{
    struct json *array = json_new_array();
    for (uint32_t i = 0; i < count; i++)
        json_add_number(array, values[i]);
    return array;
}

static struct json *figures_page(const struct comparison *comparison, uint32_t policy)
{
    static const char *const better[] = { "none", "less", "more" };
    struct json *array = json_new_array();
    for (uint32_t f = 0; summary_figures[f].id; f++) {
        const struct summary_figure *figure = &summary_figures[f];
        struct comparison_interval estimate =
            comparison_estimate(comparison, policy, f);
        if (estimate.count == 0)
            continue;
        double half = isnan(estimate.half) ? 0 : estimate.half;
        struct json *row = json_new_object();
        json_put_text(row, "id", figure->id);
        json_put_text(row, "label", figure->label);
        json_put_text(row, "unit", figure->unit);
        json_put_text(row, "better", better[figure->better]);
        json_put_number(row, "mean", estimate.mean);
        json_put_number(row, "low", estimate.mean - half);
        json_put_number(row, "high", estimate.mean + half);
        json_put_count(row, "n", estimate.count);
        json_add(array, row);
    }
    return array;
}

static struct json *cdfs_page(const struct summary *summary)
{
    static const char *const kinds[CDF_KINDS] = { "jct_s", "wait_s", "slowdown" };
    static const char *const classes[CDF_CLASSES] = { "all", "te", "be" };
    struct json *object = json_new_object();
    for (uint32_t k = 0; k < CDF_KINDS; k++) {
        struct json *kind = json_new_object();
        for (uint32_t c = 0; c < CDF_CLASSES; c++) {
            const struct summary_cdf *cdf = &summary->cdfs[k][c];
            if (cdf->count == 0)
                continue;
            struct json *points = json_new_object();
            json_put(points, "x", make_number_array(cdf->x, cdf->count));
            json_put(points, "y", make_number_array(cdf->y, cdf->count));
            json_put(kind, classes[c], points);
        }
        json_put(object, kinds[k], kind);
    }
    return object;
}

static struct json *series_page(const struct summary *summary)
{
    struct json *object = json_new_object();
    uint32_t count = summary->series.count;
    json_put(object, "t_s", make_number_array(summary->series.t_s, count));
    json_put(object, "gpus_held", make_number_array(summary->series.gpus_held, count));
    json_put(object, "jobs_waiting", make_number_array(summary->series.waiting, count));
    json_put(object, "jobs_running", make_number_array(summary->series.running, count));
    return object;
}

static struct json *ledger_page(const struct summary *summary)
{
    struct json *object = json_new_object();
    uint32_t count = summary->ledger.count;
    json_put(object, "t_s", make_number_array(summary->ledger.t_s, count));
    json_put(object, "preemptions",
             make_number_array(summary->ledger.preemptions, count));
    json_put(object, "predicted_gpu_s",
             make_number_array(summary->ledger.predicted_gpu_s, count));
    json_put(object, "actual_gpu_s",
             make_number_array(summary->ledger.actual_gpu_s, count));
    return object;
}

static struct json *quality_page(const struct summary *summary)
{
    struct json *object = json_new_object();
    uint32_t count = summary->quality.count;
    json_put(object, "t_s", make_number_array(summary->quality.t_s, count));
    json_put(object, "loss", make_number_array(summary->quality.loss, count));
    return object;
}

static struct json *gantt_gpus(const struct cluster *cluster)
{
    struct json *array = json_new_array();
    uint32_t count = 0;
    for (node_id n = 0; n < cluster->node_count; n++)
        for (uint32_t g = 0; g < cluster->nodes[n].gpu_count && count < TIMELINE_GPUS;
             g++, count++) {
            char node[64];
            char name[96];
            snprintf(name, sizeof name, "%s/%u",
                     cluster_node_name(cluster, n, node, sizeof node), g);
            json_add_text(array, name);
        }
    return array;
}

/* Jobs that shared GPUs: both, since when, what each kept of its speed. */
static struct json *gantt_pairs(const struct sim_result *result)
{
    struct json *pairs = json_new_array();
    for (uint32_t i = 0; i < result->pair_count; i++) {
        const struct timeline_pair *pair = &result->pairs[i];
        struct json *row = json_new_array();
        json_add_count(row, (int64_t)pair->jobs[0]);
        json_add_count(row, (int64_t)pair->jobs[1]);
        json_add_number(row, pair->from_s);
        json_add_number(row, pair->kept[0]);
        json_add_number(row, pair->kept[1]);
        json_add(pairs, row);
    }
    return pairs;
}

static struct json *gantt_page(const struct cluster *cluster,
                               const struct sim_result *result)
{
    struct json *object = json_new_object();
    struct json *spans = json_new_array();
    double from_s = INFINITY;
    double to_s = 0;
    for (uint32_t i = 0; i < result->chart_count; i++) {
        const struct timeline_bar *bar = &result->chart[i];
        struct json *row = json_new_array();
        json_add_count(row, bar->gpu);
        json_add_number(row, bar->start_s);
        json_add_number(row, bar->end_s);
        json_add_count(row, (int64_t)bar->job);
        json_add_count(row, bar->class);
        json_add_count(row, bar->end);
        if (bar->lane)
            json_add_count(row, bar->lane);
        json_add(spans, row);
        from_s = bar->start_s < from_s ? bar->start_s : from_s;
        to_s = bar->end_s > to_s ? bar->end_s : to_s;
    }
    json_put_number(object, "from_s", isfinite(from_s) ? from_s : 0);
    json_put_number(object, "to_s", to_s);
    json_put(object, "gpus", gantt_gpus(cluster));
    json_put(object, "spans", spans);
    if (result->pair_count > 0)
        json_put(object, "pairs", gantt_pairs(result));
    json_put_flag(object, "complete",
                  !result->chart_full && cluster->gpu_count <= TIMELINE_GPUS);
    return object;
}

static struct json *cluster_page(const struct cluster *cluster, const char *text)
{
    struct json *object = json_new_object();
    json_put_text(object, "name", text);
    json_put_count(object, "nodes", cluster->node_count);
    json_put_count(object, "gpus", cluster->gpu_count);
    struct json *types = json_new_array();
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        struct json *type = json_new_object();
        json_put_text(type, "name", cluster->types[t].name);
        json_put_count(type, "gpus", cluster->types[t].gpu_count);
        json_add(types, type);
    }
    json_put(object, "types", types);
    return object;
}

static void put_title(const struct comparison *comparison, struct json *root)
{
    char title[512];
    size_t used = 0;
    for (uint32_t p = 0; p < comparison->policy_count && used < sizeof title; p++) {
        int n = snprintf(title + used, sizeof title - used, "%s%s", p ? ", " : "",
                         comparison_name(comparison, p));
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < sizeof title)
        snprintf(title + used, sizeof title - used, " on %s",
                 comparison->workload_text);
    json_put_text(root, "title", title);
}

struct json *comparison_page(const struct comparison *comparison)
{
    struct json *root = json_new_object();
    put_title(comparison, root);
    json_put_text(root, "version", BERTH_VERSION);
    json_put(root, "cluster",
             cluster_page(comparison->cluster, comparison->cluster_text));
    struct json *workload = json_new_object();
    json_put_text(workload, "name", comparison->workload_text);
    json_put_count(workload, "jobs",
                   (int64_t)run_of(comparison, 0, 0)->result.cost.job_count);
    json_put(root, "workload", workload);
    struct json *seeds = json_new_array();
    for (uint32_t s = 0; s < comparison->seed_count; s++)
        json_add_count(seeds, (int64_t)(comparison->first_seed + s));
    json_put(root, "seeds", seeds);
    json_put_text(root, "command", comparison->command);
    struct json *runs = json_new_array();
    for (uint32_t p = 0; p < comparison->policy_count; p++) {
        const struct sim_result *result = &run_of(comparison, p, 0)->result;
        const struct policy *policy;
        const char *settings;
        struct json *run = json_new_object();
        json_put_text(run, "policy", comparison_name(comparison, p));
        if (policy_parse(comparison->policies[p], &policy, &settings, NULL) == 0)
            json_put_text(run, "brief", policy->brief);
        json_put(run, "figures", figures_page(comparison, p));
        json_put(run, "cdf", cdfs_page(&result->summary));
        json_put(run, "series", series_page(&result->summary));
        if (result->summary.ledger.count > 0)
            json_put(run, "ledger", ledger_page(&result->summary));
        if (result->summary.quality.count > 0)
            json_put(run, "quality", quality_page(&result->summary));
        if (result->chart_count > 0)
            json_put(run, "gantt",
                     gantt_page(run_of(comparison, p, 0)->setup.cluster, result));
        json_add(runs, run);
    }
    json_put(root, "runs", runs);
    return root;
}
