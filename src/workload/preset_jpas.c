/*
 * preset_jpas.c - distributed jobs that learn, on which flow policies are measured.
 *
 * The paper (JPAS, Zhou et al., JNCA 2020) used 13 servers on one switch; its jobs are
 * not published.  These are ours:
 *
 *     computing       U[0.2, 0.8] s a step
 *     gradients       what a link carries in U[0.05, 0.3] s, in each step
 *     hosts           2 to 4 workers; a server more where there is one
 *     synchronised    by a parameter server, or by a ring for 'ring' of them
 *     accuracy        1 - exp(-k / tau), tau U[60, 200] steps; done after tau x U[5, 8]
 *
 * There are enough GPUs that no job waits for one: the network is the bottleneck.  Jobs
 * arrive as a Poisson stream.  The same seed gives the same jobs at every gap.
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
#include "workload/workload.h"

#define LINE_BYTES_PER_S (10e9 / 8 * 1448 / 1514)
#define WORKERS_MIN 2
#define WORKERS_MAX 4

struct preset_jpas {
    /* settings */
    uint32_t jobs;
    double gap_s, volume, ring, overlap, noise;

    struct rng arrival_rng, shape_rng, curve_rng;
    double at_s;
    uint32_t yielded;
};

static int jpas_open(void *self, uint64_t seed, uint32_t gpus,
                     struct workload_facts *facts, struct error *err)
{
    struct preset_jpas *jpas = self;
    rng_init(&jpas->arrival_rng, seed, "arrivals");
    rng_init(&jpas->shape_rng, seed, "shapes");
    rng_init(&jpas->curve_rng, seed, "curves");
    facts->expected = jpas->jobs;
    facts->cluster = "jpas-13";
    return 0;
}

static void draw_shape(struct preset_jpas *jpas, struct job_spec *spec)
{
    struct rng *rng = &jpas->shape_rng;
    uint32_t workers = WORKERS_MIN + rng_below(rng, WORKERS_MAX - WORKERS_MIN + 1);
    spec->step_s = preset_rounded(rng_between(rng, 0.2, 0.8), 1e4);
    double volume = rng_between(rng, 0.05, 0.3) * jpas->volume * LINE_BYTES_PER_S;
    spec->sync = rng_unit(rng) < jpas->ring ? SYNC_RING : SYNC_SERVER;
    spec->nodes = spec->gpus = workers + 1;
    spec->bytes_per_step = (uint64_t)volume;
    spec->overlap = jpas->overlap;
}

static int jpas_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_jpas *jpas = self;
    if (jpas->yielded == jpas->jobs)
        return 0;
    jpas->at_s += rng_exponential(&jpas->arrival_rng, jpas->gap_s);
    if (jpas->at_s * 1e9 > (double)TIME_MAX_NS)
        return error_set(err, -ERANGE,
                         "jpas: the jobs would come over more than 100 years");
    spec->id = ++jpas->yielded;
    spec->submit_ns = units_ns(preset_rounded(jpas->at_s, 1000));
    draw_shape(jpas, spec);
    double tau = preset_rounded(rng_between(&jpas->curve_rng, 60, 200), 100);
    spec->curve = (struct learning){
        .family = LEARNING_ACC, .tau = tau, .last = 1, .noise = jpas->noise
    };
    spec->steps = ceil(tau * rng_between(&jpas->curve_rng, 5, 8));
    return 1;
}

#define AT(field) .offset = offsetof(struct preset_jpas, field)

static const struct field jpas_params[] = {
    { "gap", FIELD_NUMBER, AT(gap_s), "100", "s", "mean time between arrivals", 0.001,
      1e6 },
    { "volume", FIELD_NUMBER, AT(volume), "1", NULL, "factor on what is sent", 0.001,
      1000 },
    { "ring", FIELD_NUMBER, AT(ring), "0.5", "share", "of jobs without a server", 0,
      1 },
    { "overlap", FIELD_NUMBER, AT(overlap), "0", "share",
      "of computing that goes on beside communication", 0, 1 },
    { "noise", FIELD_NUMBER, AT(noise), "0", "share",
      "of the way to the last accuracy: deviation of what jobs report", 0, 10 },
    { "jobs", FIELD_COUNT, AT(jobs), "60", NULL, "how many jobs", 1, 1e8 },
    { 0 },
};

const struct preset preset_jpas = {
    .name = "jpas",
    .brief = "distributed jobs that learn and share a switch",
    .params = jpas_params,
    .columns = COLUMN_BIT(COLUMN_SUBMIT) | COLUMN_BIT(COLUMN_GPUS) |
               COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_NODES) |
               COLUMN_BIT(COLUMN_STEPS) | COLUMN_BIT(COLUMN_STEP) |
               COLUMN_BIT(COLUMN_BYTES) | COLUMN_BIT(COLUMN_SYNC) |
               COLUMN_BIT(COLUMN_OVERLAP) | COLUMN_BIT(COLUMN_CURVE),
    .self_size = sizeof(struct preset_jpas),
    .open = jpas_open,
    .next = jpas_next,
};
