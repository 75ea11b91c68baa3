/*
 * study_gavel_curves.c - completion time over load, makespan over the number of jobs, fairness,
 * priorities, and the length of a round.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "study/study_gavel.h"
#include "workload/workload.h"

#define POINTS_MAX 8
#define WINDOW_FROM 4000
#define WINDOW_TO 5000
#define SMALL_FROM 500 /* of the small cluster, which has its own experiment */
#define SMALL_TO 1000
#define NO NAN

/* One line of a plot: a policy over the x axis, with what was published. */
struct gavel_curve_line {
    const char *id;
    const char *name;
    const char *policy;
    double published[POINTS_MAX];
    uint32_t quick; /* points that the quick study has, as bits */
};

/* Published average completion times in hours; NO: none, or the queue grew without end. */
static const double single_rates[] = { 0.4, 2.0, 4.0, 4.8, 5.2, 5.6, 6.0 };
static const struct gavel_curve_line single_lines[] = {
    { "las_single",
      "LAS",
      "gavel-las,aware=false,compat=released",
      { 23.26, 23.47, 23.49, 35.79, 63.78, 95.99, NO },
      1 << 5 },
    { "gandiva_single",
      "Gandiva",
      "gandiva,compat=released",
      { 17.58, 17.61, 18.88, 30.46, 34.32, 42.54, NO } },
    { "allox_single",
      "AlloX",
      "allox,compat=released",
      { 17.58, 16.93, 17.13, 20.92, 21.96, 25.32, NO } },
    { "gavel_las_single",
      "Gavel LAS",
      "gavel-las,compat=released",
      { 17.58, 16.95, 16.82, 18.97, 22.02, 28.96, 41.23 },
      1 << 5 },
    { "gavel_las_ss_single",
      "Gavel LAS, sharing",
      "gavel-las,sharing=true,compat=released",
      { 18.42, 18.26, 16.96, 18.67, 19.14, 19.64, 20.42 } },
    { "berth_las_single",
      "Gavel LAS, Berth's rounds",
      "gavel-las",
      { NO, NO, NO, NO, NO, NO, NO },
      1 << 5 },
    { "fifo_single",
      "FIFO",
      "gavel-fifo,aware=false,compat=released",
      { NO, 18.32, 25.38, 99.19, 151.67, NO, NO },
      1 << 4 },
    { "gavel_fifo_single",
      "Gavel FIFO",
      "gavel-fifo,compat=released",
      { NO, 15.45, 17.08, 22.24, 56.69, 104.12, 150.04 },
      1 << 4 },
    { "gavel_fifo_ss_single",
      "Gavel FIFO, sharing",
      "gavel-fifo,sharing=true,compat=released",
      { NO, 15.45, 17.08, 21.14, 38.11, 83.40, 127.10 } },
    { "ftf_single",
      "FTF",
      "gavel-ftf,aware=false,compat=released",
      { 23.26, 23.47, 23.43, 34.93, 64.46, 85.54, 109.14 },
      1 << 5 },
    { "gavel_ftf_single",
      "Gavel FTF",
      "gavel-ftf,compat=released",
      { 17.58, 17.07, 17.57, 20.43, 23.38, 30.47, 43.05 },
      1 << 5 },
};

static const double multiple_rates[] = { 0.2, 1.0, 2.0, 2.4, 2.6, 2.8 };
static const struct gavel_curve_line multiple_lines[] = {
    { "las_multiple",
      "LAS",
      "gavel-las,aware=false,compat=released",
      { 25.93, 26.10, 28.91, 38.71, 70.54, 169.93 },
      1 << 4 },
    { "gandiva_multiple",
      "Gandiva",
      "gandiva,compat=released",
      { 18.55, 18.96, 25.16, 38.79, 60.43, NO } },
    { "gavel_las_multiple",
      "Gavel LAS",
      "gavel-las,compat=released",
      { 18.55, 18.54, 21.90, 30.03, 36.44, 55.78 },
      1 << 4 },
    { "gavel_las_ss_multiple",
      "Gavel LAS, sharing",
      "gavel-las,sharing=true,compat=released",
      { 18.72, 19.01, 20.85, 26.22, 30.51, 38.25 } },
    { "berth_las_multiple",
      "Gavel LAS, Berth's rounds",
      "gavel-las",
      { NO, NO, NO, NO, NO, NO },
      1 << 4 },
    { "fifo_multiple",
      "FIFO",
      "gavel-fifo,aware=false,compat=released",
      { 18.56, 19.92, 37.56, 129.27, 304.76, 414.68 } },
    { "gavel_fifo_multiple",
      "Gavel FIFO",
      "gavel-fifo,compat=released",
      { 16.91, 17.34, 27.68, 43.94, 93.60, 204.44 } },
    { "ftf_multiple",
      "FTF",
      "gavel-ftf,aware=false,compat=released",
      { 25.93, 26.12, 28.87, 38.65, 64.38, NO } },
    { "gavel_ftf_multiple",
      "Gavel FTF",
      "gavel-ftf,compat=released",
      { 18.55, 18.51, 21.80, 27.93, 33.90, 41.56 } },
};

/* Makespan in hours over the number of jobs, all submitted at the start. */
static const double static_jobs[] = { 100, 300, 500, 700 };
static const struct gavel_curve_line static_lines[] = {
    { "makespan_fifo", /* see the notes in study_gavel.c */
      "FIFO",
      "proportional,compat=released",
      { 182, 296, 427, 620 },
      1 << 3 },
    { "makespan_fifo_released",
      "FIFO, the released code",
      "gavel-fifo,aware=false,compat=released",
      { NO, NO, NO, NO } },
    { "makespan_fifo_strict",
      "FIFO, in order on V100",
      "gavel-fifo,compat=released",
      { NO, NO, NO, NO } },
    { "makespan_gandiva",
      "Gandiva",
      "gandiva,compat=released",
      { 167, 200, 264, 347 },
      1 << 3 },
    { "makespan_gavel",
      "Gavel",
      "gavel-makespan,compat=released",
      { 161, 161, 169, 244 },
      1 << 3 },
    { "makespan_gavel_ss",
      "Gavel, sharing",
      "gavel-makespan,sharing=true,compat=released",
      { 164, 161, 168, 226 } },
    { "makespan_berth",
      "Gavel, Berth's rounds",
      "gavel-makespan",
      { NO, NO, NO, NO },
      1 << 3 },
};

/* Longer rounds: Gavel LAS on single-GPU jobs. */
static const double round_rates[] = { 4.8, 5.6, 6.0 };
static const struct gavel_curve_line round_lines[] = {
    { "round_360", "360 s", "gavel-las,compat=released", { 18.02, 26.42, 37.64 } },
    { "round_720",
      "720 s",
      "gavel-las,compat=released,round=720s",
      { 18.02, 26.42, 37.64 } },
    { "round_1440", "1440 s", "gavel-las,compat=released,round=1440s", { NO, NO, 43 } },
    { "round_2880", "2880 s", "gavel-las,compat=released,round=2880s", { NO, NO, 90 } },
};

/* Rates of pairs from a few trials: 4 GPUs of each type, single-GPU jobs. */
static const double small_rates[] = { 0.6, 0.7, 0.75 };
static const struct gavel_curve_line small_lines[] = {
    { "estimator_none", "no sharing", "gavel-las", { 33.9, NO, NO } },
    { "estimator_true",
      "sharing, true rates",
      "gavel-las,sharing=true",
      { 19.8, 24.7, 29.7 } },
    { "estimator_estimated",
      "sharing, estimated rates",
      "gavel-las,sharing=true,rates=estimated",
      { 22.1, 37.1, 47.2 } },
};

enum gavel_axis { RATES_SINGLE, RATES_MULTIPLE, RATES_SMALL, JOBS_STATIC };

static const struct gavel_plot {
    const char *title, *x_label, *y_label, *figure;
    enum gavel_axis axis;
    const double *x;
    uint32_t x_count;
    const struct gavel_curve_line *lines;
    uint32_t line_count;
} plots[] = {
    { "Completion time, single-GPU jobs", "jobs per hour", "mean completion time, h",
      "jct_s.mean", RATES_SINGLE, single_rates, 7, single_lines,
      sizeof single_lines / sizeof *single_lines },
    { "Completion time, jobs of 1 to 8 GPUs", "jobs per hour",
      "mean completion time, h", "jct_s.mean", RATES_MULTIPLE, multiple_rates, 6,
      multiple_lines, sizeof multiple_lines / sizeof *multiple_lines },
    { "Makespan, all jobs there at the start", "jobs", "makespan, h", "makespan_s",
      JOBS_STATIC, static_jobs, 4, static_lines,
      sizeof static_lines / sizeof *static_lines },
    { "Length of a round, Gavel LAS, single-GPU jobs", "jobs per hour",
      "mean completion time, h", "jct_s.mean", RATES_SINGLE, round_rates, 3,
      round_lines, sizeof round_lines / sizeof *round_lines },
    { "Estimated rates of pairs, 4 GPUs of each type", "jobs per hour",
      "mean completion time, h", "jct_s.mean", RATES_SMALL, small_rates, 3, small_lines,
      sizeof small_lines / sizeof *small_lines },
};

#define PLOT_COUNT (sizeof plots / sizeof *plots)
#define LINES_MAX 16
#define NONE UINT32_MAX

/* Indices of the study's points; NONE: not run. */
struct gavel_curves {
    uint32_t place[PLOT_COUNT][LINES_MAX][POINTS_MAX];
    uint32_t isolated[2]; /* equal shares: single, multiple */
    uint32_t weighted[2]; /* with priorities: LAS, Gavel    */
};

/* Effort grows with the load.  Sharing has many pairs, and finish-time fairness solves its
 * programme repeatedly: both take longer. */
static double estimate_effort(const char *policy, enum gavel_axis axis, double x)
{
    bool hard = strstr(policy, "sharing=true") || strstr(policy, "ftf");
    double load = x / (axis == RATES_SINGLE ? 6 : axis == RATES_MULTIPLE ? 3 : 700);
    return load * (hard ? 10 : 1);
}

/* The baselines of the makespans have 36 V100, except the released code as it is. */
static bool is_on_v100(const char *policy)
{
    return strcmp(policy, "proportional,compat=released") == 0 ||
           strcmp(policy, "gavel-fifo,compat=released") == 0;
}

static struct gavel_point *add_point(struct gavel_study *study, const char *policy,
                                     enum gavel_axis axis, double x, const char *more)
{
    struct gavel_point *point = gavel_study_add_point(study);
    snprintf(point->policy, sizeof point->policy, "%s", policy);
    point->effort = estimate_effort(policy, axis, x);
    if (axis == JOBS_STATIC) {
        snprintf(point->workload, sizeof point->workload, "gavel:static=%g,multi=true",
                 x);
        if (is_on_v100(policy)) {
            point->cluster = &study->v100;
            point->rates = &study->v100_rates;
        }
        return point;
    }
    snprintf(point->workload, sizeof point->workload, "gavel:lam=%.17g%s%s", 3600 / x,
             axis == RATES_MULTIPLE ? ",multi=true" : "", more);
    point->window_from = WINDOW_FROM;
    point->window_to = WINDOW_TO;
    if (axis == RATES_SMALL) {
        point->cluster = &study->small;
        point->rates = &study->small_rates;
        point->window_from = SMALL_FROM;
        point->window_to = SMALL_TO;
    }
    return point;
}

/* Points without a published value are not run, unless the whole line has none. */
static bool is_wanted(const struct gavel_study *study,
                      const struct gavel_curve_line *line, uint32_t x, uint32_t x_count)
{
    if (study->quick)
        return line->quick >> x & 1;
    bool any = false;
    for (uint32_t i = 0; i < x_count; i++)
        any |= !isnan(line->published[i]);
    return !any || !isnan(line->published[x]);
}

static void plan_curves(struct gavel_study *study)
{
    struct gavel_curves *curves = arena_new(&study->arena, struct gavel_curves);
    study->curves = curves;
    for (uint32_t p = 0; p < PLOT_COUNT; p++)
        for (uint32_t l = 0; l < plots[p].line_count; l++)
            for (uint32_t x = 0; x < plots[p].x_count; x++) {
                const struct gavel_curve_line *line = &plots[p].lines[l];
                curves->place[p][l][x] = NONE;
                if (!is_wanted(study, line, x, plots[p].x_count))
                    continue;
                add_point(study, line->policy, plots[p].axis, plots[p].x[x], "")
                    ->by_job = strstr(line->id, "ftf") != NULL;
                curves->place[p][l][x] = study->point_count - 1;
            }
    for (uint32_t multi = 0; multi < 2; multi++) {
        if (study->quick && multi)
            break;
        enum gavel_axis axis = multi ? RATES_MULTIPLE : RATES_SINGLE;
        add_point(study, "isolated,compat=released", axis, multi ? 2.6 : 5.6, "")
            ->by_job = true;
        curves->isolated[multi] = study->point_count - 1;
    }
    for (uint32_t aware = 0; aware < 2 && !study->quick; aware++) {
        add_point(study,
                  aware ? "gavel-las,water_filling=true,compat=released"
                        : "gavel-las,water_filling=true,aware=false,compat=released",
                  RATES_MULTIPLE, 2.4, ",priorities=true")
            ->by_job = true;
        curves->weighted[aware] = study->point_count - 1;
    }
}

/* --- figures -------------------------------------------------------------- */

/* Gavel's own policies know the types; the others are what it is compared with. */
static bool is_baseline(const char *policy)
{
    return strncmp(policy, "gavel-", 6) != 0 || strstr(policy, "aware=false");
}

/* FIFO's published completion times are those of seed 0; makespans are means. */
static uint64_t find_published_seed(const char *policy, enum gavel_axis axis)
{
    return axis != JOBS_STATIC && strncmp(policy, "gavel-fifo", 10) == 0 ? 0 : NO_SEED;
}

static enum finding_fidelity find_fidelity(const struct gavel_study *study,
                                           const char *policy, enum gavel_axis axis)
{
    bool modelled = strstr(policy, "sharing=true") && !study->pairs_measured;
    bool inferred = axis == JOBS_STATIC && is_on_v100(policy);
    return modelled || inferred || axis == RATES_SMALL ? FIDELITY_RECONSTRUCTED
                                                       : FIDELITY_RELEASED_CODE;
}

static void report_plot(struct gavel_study *study, uint32_t p)
{
    const struct gavel_plot *plot = &plots[p];
    struct json *chart = NULL;
    for (uint32_t l = 0; l < plot->line_count; l++) {
        const struct gavel_curve_line *line = &plot->lines[l];
        double values[POINTS_MAX * SEEDS_MAX];
        double x[POINTS_MAX];
        double published[POINTS_MAX];
        double published_x[POINTS_MAX];
        uint32_t count = 0;
        uint32_t published_count = 0;
        for (uint32_t i = 0; i < plot->x_count; i++) {
            if (!isnan(line->published[i])) {
                published_x[published_count] = plot->x[i];
                published[published_count++] = line->published[i];
            }
            if (study->curves->place[p][l][i] == NONE)
                continue;
            double *here = &values[count * study->seeds];
            gavel_study_figures(study, study->curves->place[p][l][i], plot->figure,
                                1 / 3600.0, here);
            char id[64];
            char what[128];
            snprintf(id, sizeof id, "%s@%g", line->id, plot->x[i]);
            snprintf(what, sizeof what, "%s at %g %s: %s", line->name, plot->x[i],
                     plot->x_label, plot->y_label);
            struct finding *row =
                gavel_study_row(study, id, what, "h", line->published[i],
                                0.1 * line->published[i], here);
            row->direction =
                is_baseline(line->policy) ? DIRECTION_NEITHER : DIRECTION_LOWER;
            row->compared_seed = find_published_seed(line->policy, plot->axis);
            row->fidelity = find_fidelity(study, line->policy, plot->axis);
            row->setting = line->policy;
            x[count++] = plot->x[i];
        }
        if (count < 2)
            continue;
        if (!chart)
            chart = reproduction_chart(study->r, "lines", plot->title, plot->x_label,
                                       plot->y_label);
        reproduction_chart_series(chart, line->name, x, values, count, study->seeds);
        if (published_count > 1) {
            char name[96];
            snprintf(name, sizeof name, "%s, published", line->name);
            reproduction_chart_series(chart, name, published_x, published,
                                      published_count, 1);
        }
    }
}

static enum gavel_axis find_axis(const char *id)
{
    for (uint32_t p = 0; p < PLOT_COUNT; p++)
        for (uint32_t l = 0; l < plots[p].line_count; l++)
            if (strcmp(plots[p].lines[l].id, id) == 0)
                return plots[p].axis;
    return RATES_SINGLE;
}

/* The point of a line, by the line's id. */
static uint32_t find_point(const struct gavel_study *study, const char *id, double x)
{
    for (uint32_t p = 0; p < PLOT_COUNT; p++)
        for (uint32_t l = 0; l < plots[p].line_count; l++)
            for (uint32_t i = 0; i < plots[p].x_count; i++)
                if (strcmp(plots[p].lines[l].id, id) == 0 && plots[p].x[i] == x)
                    return study->curves->place[p][l][i];
    return NONE;
}

/* A ratio of two lines; NULL if one of them was not run.  It has no direction: a slow
 * baseline raises it, and each line has a verdict of its own. */
static struct finding *report_ratio(struct gavel_study *study, const char *id,
                                    const char *what, const char *over,
                                    const char *under, double x, const char *figure,
                                    double published)
{
    uint32_t above = find_point(study, over, x);
    uint32_t below = find_point(study, under, x);
    if (above == NONE || below == NONE)
        return NULL;
    double values[SEEDS_MAX];
    for (uint32_t s = 0; s < study->seeds; s++)
        values[s] = gavel_study_figure(study, above, s, figure) /
                    gavel_study_figure(study, below, s, figure);
    struct finding *row =
        gavel_study_row(study, id, what, "ratio", published, 0.15 * published, values);
    const char *policies[] = { study->points[above].policy,
                               study->points[below].policy };
    enum gavel_axis axis = find_axis(under);
    char setting[256];
    snprintf(setting, sizeof setting, "%s over %s", policies[0], policies[1]);
    row->setting = arena_text(&study->r->arena, setting);
    row->compared_seed = find_published_seed(policies[0], axis);
    for (uint32_t i = 0; i < 2; i++)
        if (find_fidelity(study, policies[i], axis) > row->fidelity)
            row->fidelity = find_fidelity(study, policies[i], axis);
    return row;
}

/* The text of field 'index' of a line of comma-separated values. */
static const char *csv_field(const char *line, uint32_t index)
{
    while (index-- > 0 && line)
        line = strchr(line, ',') ? strchr(line, ',') + 1 : NULL;
    return line;
}

static uint32_t find_csv_column(const char *header, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 0;; i++) {
        const char *field = csv_field(header, i);
        if (!field)
            return UINT32_MAX;
        if (strncmp(field, name, length) == 0 &&
            (field[length] == ',' || field[length] == '\n'))
            return i;
    }
}

/* Completion times by job number into an array of 'count'; NAN: not known. */
static void read_jcts(const struct gavel_study *study, uint32_t point, uint32_t seed,
                      double *ret_jct_s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ret_jct_s[i] = NAN;
    const char *text = study->texts[point * study->seeds + seed];
    uint32_t column = find_csv_column(text, "jct_s");
    for (const char *line = strchr(text, '\n'); line && line[1];
         line = strchr(line + 1, '\n')) {
        unsigned long id = strtoul(line + 1, NULL, 10); /* jobs count from 1 */
        const char *field = csv_field(line + 1, column);
        if (id >= 1 && id <= count && field && *field != ',')
            ret_jct_s[id - 1] = strtod(field, NULL);
    }
}

/* Mean over the window's jobs of the completion time over that under equal shares. */
static double mean_fairness(struct gavel_study *study, uint32_t point,
                            uint32_t isolated, uint32_t seed)
{
    double *mine = arena_array(&study->arena, double, WINDOW_TO);
    double *even = arena_array(&study->arena, double, WINDOW_TO);
    read_jcts(study, point, seed, mine, WINDOW_TO);
    read_jcts(study, isolated, seed, even, WINDOW_TO);
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t j = WINDOW_FROM; j < WINDOW_TO; j++)
        if (!isnan(mine[j]) && !isnan(even[j])) {
            sum += mine[j] / even[j];
            count++;
        }
    return count ? sum / count : NAN;
}

static void report_fairness(struct gavel_study *study, bool multi)
{
    static const double published[2][2] = { { 1.00, 0.36 }, { 1.40, 0.79 } };
    const char *suffix = multi ? "multiple" : "single";
    double rate = multi ? 2.6 : 5.6;
    double values[2][SEEDS_MAX];
    char id[64];
    char what[128];
    for (uint32_t aware = 0; aware < 2; aware++) {
        snprintf(id, sizeof id, "%s%s", aware ? "gavel_ftf_" : "ftf_", suffix);
        uint32_t point = find_point(study, id, rate);
        if (point == NONE)
            return;
        for (uint32_t s = 0; s < study->seeds; s++)
            values[aware][s] =
                mean_fairness(study, point, study->curves->isolated[multi], s);
        snprintf(id, sizeof id, "%s_%s@%g", aware ? "gavel_ftf_rho" : "ftf_rho", suffix,
                 rate);
        snprintf(what, sizeof what,
                 "%s: completion time over that under equal shares, mean",
                 aware ? "Gavel FTF" : "FTF");
        gavel_study_row(study, id, what, "ratio", published[multi][aware],
                        0.15 * published[multi][aware], values[aware])
            ->direction = aware ? DIRECTION_LOWER : DIRECTION_NEITHER;
    }
    for (uint32_t s = 0; s < study->seeds; s++)
        values[0][s] /= values[1][s];
    snprintf(id, sizeof id, "ftf_ratio_%s", suffix);
    snprintf(what, sizeof what,
             "finish-time fairness, FTF over Gavel FTF, at %g jobs/h", rate);
    gavel_study_row(study, id, what, "ratio", multi ? 1.8 : 2.8, multi ? 0.3 : 0.4,
                    values[0]);
}

/* Weights of the first jobs of a workload. */
static void read_weights(const struct gavel_study *study, uint32_t point, uint32_t seed,
                         double *ret_weights)
{
    struct workload *workload;
    struct error err;
    for (uint32_t j = 0; j < WINDOW_TO; j++)
        ret_weights[j] = 1;
    char text[128];
    snprintf(text, sizeof text, "%s,jobs=%u", study->points[point].workload, WINDOW_TO);
    if (workload_open(&workload, text, NULL, seed, study->big.gpu_count, &err) < 0)
        return;
    struct job_spec spec;
    for (uint32_t j = 0; j < WINDOW_TO && workload_next(workload, &spec, &err) == 1;
         j++)
        ret_weights[j] = spec.weight > 0 ? spec.weight : 1;
    workload_close(workload);
}

static void report_priorities(struct gavel_study *study)
{
    static const double published[2][2] = { { 54.36, 28.46 }, { 20.18, 18.55 } };
    double means[2][2][SEEDS_MAX];
    double *jct_s = arena_array(&study->arena, double, WINDOW_TO);
    double *weight = arena_array(&study->arena, double, WINDOW_TO);
    for (uint32_t aware = 0; aware < 2; aware++)
        for (uint32_t s = 0; s < study->seeds; s++) {
            double sum[2] = { 0, 0 };
            uint32_t count[2] = { 0, 0 };
            read_jcts(study, study->curves->weighted[aware], s, jct_s, WINDOW_TO);
            read_weights(study, study->curves->weighted[aware], s, weight);
            for (uint32_t j = WINDOW_FROM; j < WINDOW_TO; j++)
                if (!isnan(jct_s[j])) {
                    sum[weight[j] > 1] += jct_s[j] / 3600;
                    count[weight[j] > 1]++;
                }
            for (uint32_t high = 0; high < 2; high++)
                means[aware][high][s] = count[high] ? sum[high] / count[high] : NAN;
        }
    for (uint32_t high = 0; high < 2; high++) {
        const char *class = high ? "high" : "low";
        char id[64];
        char what[128];
        for (uint32_t aware = 0; aware < 2; aware++) {
            snprintf(id, sizeof id, "%s_%s@2.4", aware ? "gavel_priority" : "priority",
                     class);
            snprintf(what, sizeof what,
                     "%s, 20 %% of jobs with weight 5: completion time of %s, h",
                     aware ? "Gavel LAS" : "LAS", high ? "these" : "the others");
            gavel_study_row(study, id, what, "h", published[aware][high],
                            0.1 * published[aware][high], means[aware][high])
                ->direction = aware ? DIRECTION_LOWER : DIRECTION_NEITHER;
        }
        for (uint32_t s = 0; s < study->seeds; s++)
            means[0][high][s] /= means[1][high][s];
        snprintf(id, sizeof id, "priority_ratio_%s", class);
        snprintf(what, sizeof what, "weighted LAS over Gavel LAS, %s weight", class);
        gavel_study_row(study, id, what, "ratio", high ? 1.5 : 2.7, high ? 0.25 : 0.4,
                        means[0][high]);
    }
}

static int report_curves(struct gavel_study *study, struct error *err)
{
    const char *jct = "jct_s.mean";
    struct finding *row;
    row =
        report_ratio(study, "las_jct_ratio_single",
                     "completion time, LAS over Gavel LAS, single-GPU jobs, 5.6 jobs/h",
                     "las_single", "gavel_las_single", 5.6, jct, 3.5);
    if (row)
        row->price = "las_p99_ratio_single";
    report_ratio(study, "las_p99_ratio_single",
                 "completion time, 99 %, LAS over Gavel LAS, 5.6 jobs/h", "las_single",
                 "gavel_las_single", 5.6, "jct_s.p99", NAN);
    row =
        report_ratio(study, "las_jct_ratio_multiple",
                     "completion time, LAS over Gavel LAS, multi-GPU jobs, 2.6 jobs/h",
                     "las_multiple", "gavel_las_multiple", 2.6, jct, 2.2);
    if (row)
        row->price = "las_p99_ratio_multiple";
    report_ratio(study, "las_p99_ratio_multiple",
                 "completion time, 99 %, LAS over Gavel LAS, 2.6 jobs/h",
                 "las_multiple", "gavel_las_multiple", 2.6, "jct_s.p99", NAN);
    report_ratio(study, "fifo_jct_ratio_single",
                 "completion time, FIFO over Gavel FIFO, single-GPU jobs, 5.2 jobs/h",
                 "fifo_single", "gavel_fifo_single", 5.2, jct, 2.7);
    report_ratio(study, "fifo_ss_jct_ratio_single",
                 "completion time, FIFO over Gavel FIFO with sharing, 5.2 jobs/h",
                 "fifo_single", "gavel_fifo_ss_single", 5.2, jct, 3.8);
    row = report_ratio(study, "makespan_ratio_fifo",
                       "makespan of 700 jobs, FIFO over Gavel", "makespan_fifo",
                       "makespan_gavel", 700, "makespan_s", 2.5);
    if (row)
        row->price = "makespan_jct_ratio_fifo";
    report_ratio(study, "makespan_jct_ratio_fifo",
                 "mean completion time of 700 jobs, FIFO over Gavel's makespan policy",
                 "makespan_fifo", "makespan_gavel", 700, jct, NAN);
    report_ratio(study, "makespan_ratio_gandiva",
                 "makespan of 700 jobs, Gandiva over Gavel", "makespan_gandiva",
                 "makespan_gavel", 700, "makespan_s", 1.4);
    report_ratio(study, "makespan_ratio_ss",
                 "makespan of 700 jobs, Gavel over Gavel with sharing",
                 "makespan_gavel", "makespan_gavel_ss", 700, "makespan_s", 1.08);
    report_ratio(study, "berth_rounds_single",
                 "completion time, the released rounds over our own, 5.6 jobs/h",
                 "gavel_las_single", "berth_las_single", 5.6, jct, NAN);
    report_ratio(study, "berth_rounds_multiple",
                 "completion time, the released rounds over our own, 2.6 jobs/h",
                 "gavel_las_multiple", "berth_las_multiple", 2.6, jct, NAN);
    report_fairness(study, false);
    if (!study->quick) {
        report_fairness(study, true);
        report_priorities(study);
    }
    for (uint32_t p = 0; p < PLOT_COUNT; p++)
        report_plot(study, p);
    return 0;
}

const struct gavel_part gavel_part_curves = { .plan = plan_curves,
                                              .report = report_curves };
