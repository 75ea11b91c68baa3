/*
 * reproduction.h - a paper's figures, measured again: rows, charts and their setup.
 *
 * A study runs its experiment over several seeds and reports measured and published values
 * row by row.  The table, the JSON and the page are made from the same findings.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "sim/sweep.h"

struct json;

#define SEEDS_MAX 100

struct finding {
    const char *id;
    const char *what;
    const char *unit; /* "change", "ratio", "share", "s", …               */
    double published; /* NAN: no figure was published                     */
    double tolerance; /* a difference that still counts as published      */
    double measured;  /* mean over seeds                                  */
    double low, high; /* smallest and largest over seeds                  */
    uint32_t seeds;
    const char *verdict;
};

struct reproduction {
    const struct study *study;
    bool quick;
    uint32_t seed_count;
    struct arena arena; /* texts and findings */
    struct finding findings[512];
    uint32_t finding_count;
    struct json *setup;  /* [{what, origin}] */
    struct json *charts; /* as the page draws them */
    struct json *notes;
    void (*progress)(void *context, double share);
    void *context;
};

struct study {
    const char *name;  /* "fitgpp" */
    const char *title; /* one line */
    const char *paper;
    uint32_t seeds_full, seeds_quick;
    uint32_t seed_first; /* the lowest seed it uses */
    int (*run)(struct reproduction *reproduction, struct error *err);
};

/* All of them, ended by NULL. */
extern const struct study *const study_list[];

/* Run a study; with 0 seeds as many as its default.  reproduction_release() it. */
int reproduction_run(struct reproduction *reproduction, const struct study *study,
                     bool quick, uint32_t seeds, struct error *err);
void reproduction_release(struct reproduction *reproduction);

/* For programs, and for the page.  json_free() it. */
struct json *reproduction_json(const struct reproduction *reproduction);
struct json *reproduction_page(const struct reproduction *reproduction,
                               const char *command);

/* --- for the studies --- */

/*
 * Add a row, with one value per seed.  The verdict is "as published" if the published value
 * is within the spread over seeds, or within 'tolerance' of the mean.
 */
void reproduction_row(struct reproduction *reproduction, const char *id,
                      const char *what, const char *unit, double published,
                      double tolerance, const double *values, uint32_t count);

/* A part of the setup; 'origin' is "published", "reconstructed" or "ours". */
void reproduction_setup(struct reproduction *reproduction, const char *what,
                        const char *origin);
void reproduction_note(struct reproduction *reproduction, const char *text);

/* Begin a chart, to which series are added.  Kinds: "bars" and "lines". */
struct json *reproduction_chart(struct reproduction *reproduction, const char *kind,
                                const char *title, const char *x_label,
                                const char *y_label);
void reproduction_chart_group(struct json *chart,
                              const char *name); /* bars: names of the groups */

/* A series over seeds: values[point * seeds + seed]; 'x' is NULL for bars. */
void reproduction_chart_series(struct json *chart, const char *name, const double *x,
                               const double *values, uint32_t point_count,
                               uint32_t seed_count);

/* A figure of a finished run. */
double reproduction_figure(const struct sweep_run *run, const char *id);
