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

/* Which way a figure is better for users of the policy.  A figure of a baseline, a ratio to a
 * baseline that has published figures of its own, and a maximum over unpublished settings
 * have none. */
enum finding_direction { DIRECTION_NEITHER, DIRECTION_LOWER, DIRECTION_HIGHER };

/* What a measured figure rests on; the weakest part of it counts. */
enum finding_fidelity {
    FIDELITY_RELEASED_CODE, /* the rules and jobs of the authors' released program      */
    FIDELITY_PAPER, /* what the paper says, with nothing of ours                */
    FIDELITY_RECONSTRUCTED, /* parts of the rule or the jobs are not published: ours    */
    FIDELITY_TUNED, /* a part of it was chosen so that figures come near        */
};

#define NO_SEED UINT64_MAX

struct finding {
    const char *id;
    const char *what;
    const char *unit;     /* "change", "ratio", "share", "s", …                  */
    double published;     /* NAN: no figure was published                        */
    double tolerance;     /* a difference that still counts as reproduced        */
    double measured;      /* mean over seeds                                     */
    double low, high;     /* smallest and largest over seeds                     */
    const double *values; /* one per seed                                        */
    uint32_t seeds;
    uint64_t first_seed; /* that of values[0]; the others follow                 */

    /* For the study to set, as far as the defaults are not right. */
    uint64_t compared_seed; /* the authors published this seed alone; or NO_SEED */
    enum finding_direction direction;
    enum finding_fidelity fidelity; /* the study's by default                    */
    bool running_time;              /* of a program, on whatever machine it was  */
    const char *setting;            /* policy and settings, or NULL              */
    const char *price;  /* row that says what the gain costs, by id; or NULL     */
    const char *beside; /* row with the figure of a simpler policy, by id        */
    double target;      /* of a regret: at most so much; NAN: none */
};

struct reproduction {
    const struct study *study;
    bool quick;
    uint32_t seed_count;
    struct arena arena; /* texts and findings */
    struct finding findings[1024];
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
    enum finding_fidelity fidelity;
    bool apart; /* no paper's: not among all of them */
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

/*
 * The verdict on a row:
 *   reproduced     the mean over seeds, or the seed that was published, is within 'tolerance'
 *   inconclusive   it is not, and only the spread over seeds reaches the published value
 *   faster         the shorter running time of a program
 *   better, worse  anything else, where the row has a direction
 *   differs        anything else, where it has none
 */
const char *reproduction_verdict(const struct finding *finding);

/* The row with an id, or NULL. */
const struct finding *reproduction_find(const struct reproduction *reproduction,
                                        const char *id);

/* The name of a fidelity, as in JSON: "released-code". */
const char *reproduction_fidelity(enum finding_fidelity fidelity);

/* --- for the studies --- */

/* Add a row, with one value per seed.  The caller may set more of the finding. */
struct finding *reproduction_row(struct reproduction *reproduction, const char *id,
                                 const char *what, const char *unit, double published,
                                 double tolerance, const double *values,
                                 uint32_t count);

/* The last row is to be at most 'target': its verdict is "better" if it is, else "worse". */
void reproduction_target(struct reproduction *reproduction, double target);

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
