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
 * was (trained.h), as many steps as they have points.  A job can have from one unit to
 * all of them.  The same seed gives the same jobs at every gap.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "base/error.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/units.h"
#include "model/job.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/trained.h"
#include "workload/workload.h"

#define UNITS_ASKED 16 /* by policies that do not resize */
#define UNITS_MAX 640

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
    return slaq->curves == CURVES_REAL ? trained_load(&slaq->trained, err) : 0;
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
