/* reproduction.c - a paper's figures, measured again. */
#include "study/reproduction.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "version.h"

extern const struct study study_fitgpp, study_gavel, study_jpas, study_one, study_slaq,
    study_xion, study_forecast;

const struct study *const study_list[] = { &study_fitgpp,   &study_xion, &study_gavel,
                                           &study_slaq,     &study_jpas, &study_one,
                                           &study_forecast, NULL };

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

static const char *const directions[] = {
    [DIRECTION_NEITHER] = "neither",
    [DIRECTION_LOWER] = "lower",
    [DIRECTION_HIGHER] = "higher",
};

const char *reproduction_fidelity(enum finding_fidelity fidelity)
{
    static const char *const names[] = {
        [FIDELITY_RELEASED_CODE] = "released-code",
        [FIDELITY_PAPER] = "paper",
        [FIDELITY_RECONSTRUCTED] = "reconstructed",
        [FIDELITY_TUNED] = "tuned",
    };
    return names[fidelity];
}

/* Whether the published seed is among those that were run. */
static bool has_compared_seed(const struct finding *finding)
{
    return finding->compared_seed != NO_SEED &&
           finding->compared_seed >= finding->first_seed &&
           finding->compared_seed - finding->first_seed < finding->seeds;
}

/* What is compared with the published value. */
static double compared_value(const struct finding *finding)
{
    return has_compared_seed(finding)
               ? finding->values[finding->compared_seed - finding->first_seed]
               : finding->measured;
}

const char *reproduction_verdict(const struct finding *finding)
{
    double published = finding->published;
    double compared = compared_value(finding);
    if (!isnan(finding->target))
        return finding->measured <= finding->target ? "better" : "worse";
    if (isnan(published))
        return "no figure published";
    if (fabs(compared - published) <= finding->tolerance)
        return "reproduced";
    if (!has_compared_seed(finding) && published >= finding->low &&
        published <= finding->high)
        return "inconclusive";
    if (finding->running_time && compared < published)
        return "faster";
    if (finding->direction == DIRECTION_NEITHER)
        return "differs";
    bool lower = compared < published;
    return lower == (finding->direction == DIRECTION_LOWER) ? "better" : "worse";
}

const struct finding *reproduction_find(const struct reproduction *reproduction,
                                        const char *id)
{
    for (uint32_t i = 0; id && i < reproduction->finding_count; i++)
        if (strcmp(reproduction->findings[i].id, id) == 0)
            return &reproduction->findings[i];
    return NULL;
}

struct finding *reproduction_row(struct reproduction *reproduction, const char *id,
                                 const char *what, const char *unit, double published,
                                 double tolerance, const double *values, uint32_t count)
{
    uint32_t at = reproduction->finding_count++;
    assert(at < sizeof reproduction->findings / sizeof *reproduction->findings);
    struct finding *finding = &reproduction->findings[at];
    double *kept = arena_array(&reproduction->arena, double, count);
    *finding = (struct finding){ .id = arena_text(&reproduction->arena, id),
                                 .what = arena_text(&reproduction->arena, what),
                                 .unit = unit,
                                 .published = published,
                                 .tolerance = tolerance,
                                 .low = INFINITY,
                                 .high = -INFINITY,
                                 .values = kept,
                                 .seeds = count,
                                 .target = NAN,
                                 .first_seed = reproduction->study->seed_first,
                                 .compared_seed = NO_SEED,
                                 .fidelity = reproduction->study->fidelity };
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = values[i];
        finding->measured += values[i] / count;
        finding->low = fmin(finding->low, values[i]);
        finding->high = fmax(finding->high, values[i]);
    }
    return finding;
}

void reproduction_target(struct reproduction *reproduction, double target)
{
    reproduction->findings[reproduction->finding_count - 1].target = target;
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

/* Another row that belongs to one: its price, or a simpler policy's figure. */
static void put_related(struct json *row, const char *key,
                        const struct reproduction *reproduction, const char *id)
{
    const struct finding *related = reproduction_find(reproduction, id);
    if (!related)
        return;
    struct json *json = json_new_object();
    json_put_text(json, "row", related->id);
    json_put_text(json, "what", related->what);
    json_put_text(json, "unit", related->unit);
    json_put_number(json, "measured", related->measured);
    json_put(row, key, json);
}

/* What the verdict was made from, for whoever wants to make it again. */
static void put_comparison(struct json *row, const struct finding *finding)
{
    if (isnan(finding->published))
        return;
    json_put_number(row, "published", finding->published);
    json_put_number(row, "tolerance", finding->tolerance);
    json_put_text(row, "direction", directions[finding->direction]);
    json_put_number(row, "compared", compared_value(finding));
    if (has_compared_seed(finding))
        json_put_count(row, "compared_seed", finding->compared_seed);
    if (finding->running_time)
        json_put_flag(row, "running_time", true);
}

static struct json *row_json(const struct reproduction *reproduction,
                             const struct finding *finding)
{
    struct json *row = json_new_object();
    struct json *spread = json_new_array();
    struct json *values = json_new_array();
    json_put_text(row, "id", finding->id);
    json_put_text(row, "what", finding->what);
    if (finding->setting)
        json_put_text(row, "setting", finding->setting);
    json_put_text(row, "unit", finding->unit);
    put_comparison(row, finding);
    if (!isnan(finding->target))
        json_put_number(row, "target", finding->target);
    json_put_number(row, "measured", finding->measured);
    json_add_number(spread, finding->low);
    json_add_number(spread, finding->high);
    json_put(row, "spread", spread);
    json_put_count(row, "seeds", finding->seeds);
    json_put_count(row, "first_seed", finding->first_seed);
    for (uint32_t i = 0; i < finding->seeds; i++)
        json_add_number(values, finding->values[i]);
    json_put(row, "values", values);
    json_put_text(row, "verdict", reproduction_verdict(finding));
    if (!reproduction->study->apart)
        json_put_text(row, "fidelity", reproduction_fidelity(finding->fidelity));
    put_related(row, "price", reproduction, finding->price);
    put_related(row, "beside", reproduction, finding->beside);
    return row;
}

static struct json *rows_json(const struct reproduction *reproduction)
{
    struct json *rows = json_new_array();
    for (uint32_t i = 0; i < reproduction->finding_count; i++)
        json_add(rows, row_json(reproduction, &reproduction->findings[i]));
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
