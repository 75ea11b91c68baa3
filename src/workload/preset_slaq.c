/*
 * preset_slaq.c - elastic jobs that learn, on which SLAQ is measured.
 *
 * The paper (SLAQ, SoCC 2017) used 160 jobs of classical machine learning on 640 cores,
 * coming as a Poisson stream, one in 15 s; their curves are not published.  These are ours,
 * of the two families the paper fits:
 *
 *     a step     w/a + 1 s on a units, w = 60 unit-s x U[0.3, 1.7]
 *     half       c/(a k^2 + b k + c), a U[.002, .022], b U[.1, .5], c 1; U[80, 160] steps
 *     half       mu^k, mu U[.80, .95]; U[1.2, 2] times the steps to a thousandth
 *
 * from 1 to 0, reached at the last step; or, with curves=real, those of training that
 * was (preset_slaq.h), as many steps as they have points.  A job can have from one unit to
 * all of them.  The same seed gives the same jobs at every gap.
 */
#include "workload/preset_slaq.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/units.h"
#include "model/job.h"
#include "workload/csv.h"
#include "workload/curves.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define UNITS_ASKED 16 /* by policies that do not resize */
#define UNITS_MAX 640
#define POINTS_LEAST 20
#define LOSS_MAX 1e30F

/* --- curves of real training ------------------------------------------------------ */

struct trained_curve {
    uint32_t kind, point_count;
    float points[LEARNING_POINTS_MAX];
};

struct trained_kind {
    char name[CURVES_NAME_MAX];
    uint32_t curve_count;
};

static bool loss_falls(const struct curves_one *one)
{
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t i = 0; i < one->count; i++) {
        low = fmin(low, one->value[i]);
        high = fmax(high, one->value[i]);
    }
    double by = one->value[0] - one->value[one->count - 1];
    return high <= LOSS_MAX && low >= -LOSS_MAX && by > 0 && by >= (high - low) / 2;
}

static uint32_t kind_of(struct trained *trained, const char *name)
{
    for (uint32_t i = 0; i < trained->kind_count; i++)
        if (strcmp(trained->kinds[i].name, name) == 0)
            return i;
    uint32_t at = trained->kind_count++;
    trained->kinds = grow_array(trained->kinds, &trained->kind_room,
                                trained->kind_count, sizeof *trained->kinds);
    snprintf(trained->kinds[at].name, sizeof trained->kinds[at].name, "%s", name);
    trained->kinds[at].curve_count = 0;
    return at;
}

/* The first and the last point are always kept. */
static void add_curve(struct trained *trained, const struct curves_one *one)
{
    uint32_t at = trained->count++;
    trained->curves = grow_array(trained->curves, &trained->room, trained->count,
                                 sizeof *trained->curves);
    struct trained_curve *curve = &trained->curves[at];
    curve->kind = kind_of(trained, one->algo);
    trained->kinds[curve->kind].curve_count++;
    uint32_t last = one->count - 1;
    uint32_t kept = one->count < LEARNING_POINTS_MAX ? one->count : LEARNING_POINTS_MAX;
    curve->point_count = kept;
    for (uint32_t i = 0; i < kept; i++)
        curve->points[i] = (float)one->value[(uint64_t)i * last / (kept - 1)];
}

/* Losses so near to each other that they are one as they are kept do not count either. */
static bool is_kept_falling(const struct curves_one *one)
{
    return (float)one->value[0] > (float)one->value[one->count - 1];
}

int trained_load_file(struct trained *trained, const char *path, struct error *err)
{
    *trained = (struct trained){ 0 };
    struct curves curves;
    struct curves_one one;
    int r = curves_open(&curves, path, err);
    if (r < 0)
        return r;
    while ((r = curves_next(&curves, &one, err)) > 0)
        if (one.count >= POINTS_LEAST && loss_falls(&one) && is_kept_falling(&one))
            add_curve(trained, &one);
    curves_release(&curves);
    if (r == 0 && trained->count == 0)
        r = error_set(err, -EINVAL, "%s: no loss that falls over %d points or more",
                      path, POINTS_LEAST);
    if (r < 0)
        trained_release(trained);
    return r;
}

/* Those of curves/curves.csv.gz in the folder that BERTH_DATA names. */
static int load_trained(struct trained *trained, struct error *err)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        return error_set(err, -EINVAL,
                         "curves of real training need BERTH_DATA, a folder with "
                         "curves/curves.csv.gz in it");
    char path[4096];
    int bytes = snprintf(path, sizeof path, "%s/curves/curves.csv.gz", data);
    if (bytes < 0 || (size_t)bytes >= sizeof path)
        return error_set(err, -EINVAL, "BERTH_DATA is longer than 4,000 bytes");
    int r = trained_load_file(trained, path, err);
    return r == -ENOENT ? -EINVAL : r;
}

void trained_release(struct trained *trained)
{
    free(trained->curves);
    free(trained->kinds);
    *trained = (struct trained){ 0 };
}

struct learning trained_draw(const struct trained *trained, struct rng *rng)
{
    uint32_t kind = rng_below(rng, trained->kind_count);
    uint32_t nth = rng_below(rng, trained->kinds[kind].curve_count);
    const struct trained_curve *curve = trained->curves;
    while (curve->kind != kind || nth-- > 0)
        curve++;
    return (struct learning){ .family = LEARNING_POINTS,
                              .first = curve->points[0],
                              .last = curve->points[curve->point_count - 1],
                              .kmax = curve->point_count - 1,
                              .points = curve->points,
                              .point_count = curve->point_count };
}

/* --- the jobs --------------------------------------------------------------------- */

enum curves_from { CURVES_DRAWN, CURVES_REAL };
static const char *const curves_names[] = { "drawn", "real", NULL };

struct preset_slaq {
    /* settings */
    uint32_t jobs;
    double gap_s, work_s, fixed_s;
    int64_t load_ns;
    uint32_t curves;

    struct trained trained;
    struct rng arrival_rng, shape_rng, curve_rng;
    double at_s;
    uint32_t yielded;
};

static int slaq_open(void *self, uint64_t seed, uint32_t gpus,
                     struct workload_facts *facts, struct error *err)
{
    struct preset_slaq *slaq = self;
    rng_init(&slaq->arrival_rng, seed, "arrivals");
    rng_init(&slaq->shape_rng, seed, "shapes");
    rng_init(&slaq->curve_rng, seed, "curves");
    facts->expected = slaq->jobs;
    facts->cluster = "slaq-20";
    return slaq->curves == CURVES_REAL ? load_trained(&slaq->trained, err) : 0;
}

static void slaq_close(void *self)
{
    struct preset_slaq *slaq = self;
    trained_release(&slaq->trained);
}

static void draw_curve(struct preset_slaq *slaq, struct job_spec *spec)
{
    struct rng *rng = &slaq->curve_rng;
    if (slaq->curves == CURVES_REAL) {
        spec->curve = trained_draw(&slaq->trained, rng);
        spec->steps = spec->curve.kmax;
        return;
    }
    if (rng_unit(rng) < 0.5) {
        spec->curve =
            (struct learning){ .family = LEARNING_INV,
                               .a = preset_rounded(rng_between(rng, 0.002, 0.022), 1e6),
                               .b = preset_rounded(rng_between(rng, 0.1, 0.5), 1e4),
                               .c = 1 };
        spec->steps = round(rng_between(rng, 80, 160));
    } else {
        double mu = preset_rounded(rng_between(rng, 0.80, 0.95), 1e4);
        spec->curve = (struct learning){ .family = LEARNING_EXP, .mu = mu };
        spec->steps = round(log(0.001) / log(mu) * rng_between(rng, 1.2, 2));
    }
    spec->curve.first = 1;
    spec->curve.kmax = spec->steps;
}

static int slaq_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_slaq *slaq = self;
    if (slaq->yielded == slaq->jobs)
        return 0;
    slaq->at_s += rng_exponential(&slaq->arrival_rng, slaq->gap_s);
    if (slaq->at_s * 1e9 > (double)TIME_MAX_NS)
        return error_set(err, -ERANGE,
                         "slaq: the jobs would come over more than 100 years");
    spec->id = ++slaq->yielded;
    spec->submit_ns = units_ns(preset_rounded(slaq->at_s, 1000));
    spec->gpus = UNITS_ASKED;
    spec->gpus_min = 1;
    spec->gpus_max = UNITS_MAX;
    spec->spread = true;
    spec->load_ns = slaq->load_ns;
    double work_s = slaq->work_s * rng_between(&slaq->shape_rng, 0.3, 1.7);
    spec->fixed_s = slaq->fixed_s;
    spec->step_s = slaq->fixed_s + preset_rounded(work_s / UNITS_ASKED, 1e4);
    draw_curve(slaq, spec);
    return 1;
}

#define AT(field) .offset = offsetof(struct preset_slaq, field)

static const struct field slaq_params[] = {
    { "gap", FIELD_NUMBER, AT(gap_s), "15", "s", "mean time between arrivals", 0.001,
      1e6 },
    { "work", FIELD_NUMBER, AT(work_s), "60", "unit-s",
      "mean of a step's work that is divided", 0.1, 1e6 },
    { "fixed", FIELD_NUMBER, AT(fixed_s), "1", "s", "of a step that is not divided", 0,
      1e6 },
    { "load_cost", FIELD_TIME, AT(load_ns), "0", NULL,
      "time to start, and to go on with another size", 0, 1e6 },
    { "curves", FIELD_CHOICE, AT(curves), "drawn", NULL,
      "drawn from two families, or of real training, in BERTH_DATA",
      .choices = curves_names },
    { "jobs", FIELD_COUNT, AT(jobs), "160", NULL, "how many jobs", 1, 1e8 },
    { 0 },
};

const struct preset preset_slaq = {
    .name = "slaq",
    .brief = "elastic jobs that learn, on many small units",
    .params = slaq_params,
    .columns =
        COLUMN_BIT(COLUMN_SUBMIT) | COLUMN_BIT(COLUMN_GPUS) | COLUMN_BIT(COLUMN_ID) |
        COLUMN_BIT(COLUMN_GPUS_MIN) | COLUMN_BIT(COLUMN_GPUS_MAX) |
        COLUMN_BIT(COLUMN_SPREAD) | COLUMN_BIT(COLUMN_STEPS) | COLUMN_BIT(COLUMN_STEP) |
        COLUMN_BIT(COLUMN_FIXED) | COLUMN_BIT(COLUMN_LOAD) | COLUMN_BIT(COLUMN_CURVE),
    .self_size = sizeof(struct preset_slaq),
    .open = slaq_open,
    .next = slaq_next,
    .close = slaq_close,
};
