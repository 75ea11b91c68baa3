/* what_if_report.c - what came out of struct what_if, for programs and for the report page. */
#include "study/what_if_report.h"

#include <math.h>

#include "base/buf.h"
#include "base/json.h"
#include "study/comparison.h"
#include "study/what_if.h"

/* Nothing where it is not known. */
static void put_known(struct json *object, const char *key, double number)
{
    if (isfinite(number))
        json_put_number(object, key, number);
}

static void put_trusted(struct json *object, const char *key, double happened,
                        double replayed, double change)
{
    struct json *row = json_new_object();
    put_known(row, "happened", happened);
    put_known(row, "replayed", replayed);
    put_known(row, "change", change);
    json_put(object, key, row);
}

static struct json *trust_json(const struct what_if *what)
{
    struct what_if_trust trust = what_if_trust(what);
    struct json *object = json_new_object();
    struct json *figures = json_new_object();
    json_put_count(object, "jobs", trust.job_count);
    put_trusted(figures, "jct_s.mean", trust.jct.happened, trust.jct.replayed,
                trust.jct.change);
    put_trusted(figures, "wait_s.mean", trust.wait.happened, trust.wait.replayed,
                trust.wait.change);
    put_trusted(figures, "jct_s.p95", trust.jct_p95.happened, trust.jct_p95.replayed,
                trust.jct_p95.change);
    json_put(object, "figures", figures);
    return object;
}

static struct json *difference_json(const struct what_if_difference *difference)
{
    struct json *row = json_new_object();
    put_known(row, "was", difference->was);
    put_known(row, "value", difference->value);
    put_known(row, "difference", difference->difference);
    put_known(row, "low", difference->low);
    put_known(row, "high", difference->high);
    put_known(row, "change", difference->change);
    put_known(row, "change_low", difference->change_low);
    put_known(row, "change_high", difference->change_high);
    return row;
}

static struct json *variant_json(const struct what_if *what, uint32_t at)
{
    struct what_if_difference differences[WHAT_IF_FIGURES];
    uint32_t jobs;
    const struct summary *summary = &what->runs[at].result.summary;
    what_if_compare(what, at, differences, &jobs);
    struct json *object = json_new_object();
    struct json *figures = json_new_object();
    json_put_text(object, "name", what->cases[at].name);
    json_put_text(object, "policy", what->cases[at].policy);
    json_put_count(object, "jobs", jobs);
    json_put_count(object, "rejected",
                   (int64_t)summary_value(summary, "jobs.rejected"));
    json_put_count(object, "unfinished",
                   (int64_t)summary_value(summary, "jobs.unfinished"));
    for (uint32_t f = 0; f < WHAT_IF_FIGURES; f++)
        if (!isnan(differences[f].difference))
            json_put(figures, what_if_figures[f].id, difference_json(&differences[f]));
    json_put(object, "figures", figures);
    return object;
}

static struct json *period_json(const struct what_if *what)
{
    const struct what_if_case *was = &what->cases[0];
    struct json *period = json_new_object();
    uint64_t counted = 0;
    for (uint64_t i = 0; i < was->job_count; i++)
        counted += what->counted[i];
    double zero_s = isnan(what->zero_s) ? 0 : what->zero_s;
    json_put_number(period, "from", zero_s + (double)what->from_ns * 1e-9);
    json_put_number(period, "to", zero_s + (double)what->to_ns * 1e-9);
    json_put_count(period, "jobs", (int64_t)counted);
    json_put_count(period, "jobs_played", (int64_t)was->job_count);
    return period;
}

static struct json *intervals_json(const struct what_if *what)
{
    struct json *object = json_new_object();
    if (what->block_ns == 0) {
        json_put_text(object, "method", "none");
        json_put_text(object, "why",
                      "too few days and hours in which jobs were submitted");
        return object;
    }
    json_put_text(object, "method", "block bootstrap");
    json_put_number(object, "block_s", (double)what->block_ns * 1e-9);
    json_put_count(object, "blocks", what->block_count);
    json_put_count(object, "draws", WHAT_IF_DRAWS);
    json_put_number(object, "level", 0.95);
    return object;
}

struct json *what_if_json(const struct what_if *what)
{
    struct json *root = json_new_object();
    json_put_text(root, "cluster", what->cluster_text);
    json_put_text(root, "history", what->history_text);
    json_put_text(root, "policy", what->policy);
    json_put_count(root, "seed", (int64_t)what->seed);
    if (what->changed)
        json_put_text(root, "changed", what->changed);
    json_put(root, "period", period_json(what));
    struct json *notes = json_new_array();
    for (uint32_t i = 0; i < what->note_count; i++)
        json_add_text(notes, what->notes[i]);
    json_put(root, "notes", notes);
    json_put(root, "trust", trust_json(what));
    json_put(root, "intervals", intervals_json(what));
    struct json *variants = json_new_array();
    for (uint32_t at = 1; at < what->case_count; at++)
        json_add(variants, variant_json(what, at));
    json_put(root, "variants", variants);
    return root;
}

/* ---- for the page ---- */

/* Names and units beside the figures, which the page cannot know. */
static struct json *labels_json(void)
{
    struct json *labels = json_new_array();
    for (uint32_t f = 0; f < WHAT_IF_FIGURES; f++) {
        struct json *row = json_new_object();
        json_put_text(row, "id", what_if_figures[f].id);
        json_put_text(row, "label", what_if_figures[f].label);
        json_put_text(row, "unit", what_if_figures[f].unit);
        json_add(labels, row);
    }
    return labels;
}

/* "What if: las, berth" */
static void put_title(const struct what_if *what, struct json *page)
{
    struct buf title;
    buf_init(&title, 256);
    buf_text(&title, what->case_count > 1 ? "What if: " : "What was");
    for (uint32_t at = 1; at < what->case_count; at++)
        buf_print(&title, "%s%.100s", at > 1 ? ", " : "", what->cases[at].name);
    if (what->changed)
        buf_print(&title, ", %.300s", what->changed);
    json_put_text(page, "title", title.bytes);
    buf_release(&title);
}

struct json *what_if_page(const struct what_if *what)
{
    struct comparison comparison = { .cluster_text = what->cluster_text,
                                     .workload_text = what->history_text,
                                     .command = what->command,
                                     .cluster = what->cases[0].cluster,
                                     .policy_count = what->case_count,
                                     .first_seed = what->seed,
                                     .seed_count = 1,
                                     .runs = what->runs };
    for (uint32_t at = 0; at < what->case_count; at++) {
        comparison.policies[at] = what->cases[at].policy;
        comparison.names[at] = what->cases[at].name;
    }
    struct json *page = comparison_page(&comparison);
    put_title(what, page);
    struct json *figures = what_if_json(what);
    json_put(figures, "labels", labels_json());
    json_put(page, "what_if", figures);
    return page;
}
