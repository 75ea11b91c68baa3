/* reproduction.c - a paper's figures, measured again. */
#include "study/reproduction.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "version.h"

extern const struct study study_fitgpp, study_gavel, study_jpas, study_slaq, study_xion;

const struct study *const study_list[] = { &study_fitgpp, &study_xion, &study_gavel,
                                           &study_slaq,   &study_jpas, NULL };

int reproduction_run(struct reproduction *reproduction, const struct study *study,
                     bool quick, uint32_t seeds, struct error *err)
{
    void (*progress)(void *, double) = reproduction->progress;
    void *context = reproduction->context;
    *reproduction = (struct reproduction){
        .study = study, .quick = quick, .progress = progress, .context = context
    };
    reproduction->seed_count = seeds   ? seeds
                               : quick ? study->seeds_quick
                                       : study->seeds_full;
    arena_init(&reproduction->arena, 0);
    reproduction->setup = json_new_array();
    reproduction->charts = json_new_array();
    reproduction->notes = json_new_array();
    return study->run(reproduction, err);
}

void reproduction_release(struct reproduction *reproduction)
{
    json_free(reproduction->setup);
    json_free(reproduction->charts);
    json_free(reproduction->notes);
    arena_release(&reproduction->arena);
}

/* --- findings --------------------------------------------------------------------- */

static const char *choose_verdict(const struct finding *finding)
{
    double tolerance = finding->tolerance;
    if (isnan(finding->published))
        return "no figure published";
    double off = fabs(finding->measured - finding->published);
    bool inside =
        finding->published >= finding->low && finding->published <= finding->high;
    if (inside || off <= tolerance)
        return "as published";
    if (strcmp(finding->unit, "s") == 0 && finding->measured < finding->published)
        return "faster";
    bool same_way = finding->measured * finding->published > 0;
    return same_way && off <= 2 * tolerance ? "close" : "differs";
}

void reproduction_row(struct reproduction *reproduction, const char *id,
                      const char *what, const char *unit, double published,
                      double tolerance, const double *values, uint32_t count)
{
    uint32_t at = reproduction->finding_count++;
    assert(at < sizeof reproduction->findings / sizeof *reproduction->findings);
    struct finding *finding = &reproduction->findings[at];
    *finding = (struct finding){ .id = arena_text(&reproduction->arena, id),
                                 .what = arena_text(&reproduction->arena, what),
                                 .unit = unit,
                                 .published = published,
                                 .tolerance = tolerance,
                                 .low = INFINITY,
                                 .high = -INFINITY,
                                 .seeds = count };
    for (uint32_t i = 0; i < count; i++) {
        finding->measured += values[i] / count;
        finding->low = fmin(finding->low, values[i]);
        finding->high = fmax(finding->high, values[i]);
    }
    finding->verdict = choose_verdict(finding);
}

void reproduction_setup(struct reproduction *reproduction, const char *what,
                        const char *origin)
{
    struct json *row = json_new_object();
    json_put_text(row, "what", what);
    json_put_text(row, "origin", origin);
    json_add(reproduction->setup, row);
}

void reproduction_note(struct reproduction *reproduction, const char *text)
{
    json_add_text(reproduction->notes, text);
}

double reproduction_figure(const struct sweep_run *run, const char *id)
{
    return summary_value(&run->result.summary, id);
}

/* --- charts ----------------------------------------------------------------------- */

struct json *reproduction_chart(struct reproduction *reproduction, const char *kind,
                                const char *title, const char *x_label,
                                const char *y_label)
{
    struct json *chart = json_new_object();
    json_put_text(chart, "title", title);
    json_put_text(chart, "kind", kind);
    if (x_label)
        json_put_text(chart, "x_label", x_label);
    json_put_text(chart, "y_label", y_label);
    json_put(chart, "groups", json_new_array());
    json_put(chart, "series", json_new_array());
    json_add(reproduction->charts, chart);
    return chart;
}

static struct json *find_member(struct json *chart, const char *key)
{
    return (struct json *)(uintptr_t)json_get(chart, key);
}

void reproduction_chart_group(struct json *chart, const char *name)
{
    json_add_text(find_member(chart, "groups"), name);
}

void reproduction_chart_series(struct json *chart, const char *name, const double *x,
                               const double *values, uint32_t point_count,
                               uint32_t seed_count)
{
    struct json *series = json_new_object();
    struct json *xs = json_new_array();
    struct json *ys = json_new_array();
    struct json *lows = json_new_array();
    struct json *highs = json_new_array();
    json_put_text(series, "name", name);
    for (uint32_t p = 0; p < point_count; p++) {
        double mean = 0;
        double low = INFINITY;
        double high = -INFINITY;
        for (uint32_t s = 0; s < seed_count; s++) {
            double value = values[p * seed_count + s];
            mean += value / seed_count;
            low = fmin(low, value);
            high = fmax(high, value);
        }
        if (x)
            json_add_number(xs, x[p]);
        json_add_number(ys, mean);
        json_add_number(lows, low);
        json_add_number(highs, high);
    }
    if (x)
        json_put(series, "x", xs);
    else
        json_free(xs);
    json_put(series, "y", ys);
    json_put(series, "low", lows);
    json_put(series, "high", highs);
    json_add(find_member(chart, "series"), series);
}

/* --- output ------------------------------------------------------------------------ */

static struct json *rows_json(const struct reproduction *reproduction)
{
    struct json *rows = json_new_array();
    for (uint32_t i = 0; i < reproduction->finding_count; i++) {
        const struct finding *finding = &reproduction->findings[i];
        struct json *row = json_new_object();
        struct json *spread = json_new_array();
        json_put_text(row, "id", finding->id);
        json_put_text(row, "what", finding->what);
        json_put_text(row, "unit", finding->unit);
        if (!isnan(finding->published)) {
            json_put_number(row, "published", finding->published);
            json_put_number(row, "tolerance", finding->tolerance);
        }
        json_put_number(row, "measured", finding->measured);
        json_add_number(spread, finding->low);
        json_add_number(spread, finding->high);
        json_put(row, "spread", spread);
        json_put_count(row, "seeds", finding->seeds);
        json_put_text(row, "verdict", finding->verdict);
        json_add(rows, row);
    }
    return rows;
}

/* What the JSON and the page have in common: all but the title and the command. */
static void put_findings(struct json *root, const struct reproduction *reproduction)
{
    json_put_flag(root, "quick", reproduction->quick);
    struct json *seeds = json_new_array();
    for (uint32_t i = 0; i < reproduction->seed_count; i++)
        json_add_count(seeds, reproduction->study->seed_first + i);
    json_put(root, "seeds", seeds);
    json_put(root, "setup", json_copy_of(reproduction->setup));
    json_put(root, "rows", rows_json(reproduction));
    json_put(root, "charts", json_copy_of(reproduction->charts));
    json_put(root, "notes", json_copy_of(reproduction->notes));
}

struct json *reproduction_json(const struct reproduction *reproduction)
{
    struct json *root = json_new_object();
    json_put_text(root, "paper", reproduction->study->name);
    json_put_text(root, "title", reproduction->study->title);
    json_put_text(root, "citation", reproduction->study->paper);
    put_findings(root, reproduction);
    return root;
}

struct json *reproduction_page(const struct reproduction *reproduction,
                               const char *command)
{
    const struct study *study = reproduction->study;
    struct json *root = json_new_object();
    json_put_text(root, "kind", "reproduce");
    json_put_text(root, "title", study->title);
    json_put_text(root, "paper", study->paper);
    json_put_text(root, "version", BERTH_VERSION);
    json_put_text(root, "command", command);
    put_findings(root, reproduction);
    return root;
}
