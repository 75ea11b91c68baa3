/*
 * gavel_pairs.c - rates of two jobs that share, as a gavel policy knows them.
 *
 * Either as they are (model/sharing.h: measured, or by the model), or estimated: a job
 * that arrives is tried beside a fifth of some references, and its rate beside others
 * follows (predict/estimate.h).  Jobs of which it is unknown whether they fit in memory
 * together are not paired at all.
 */
#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "model/node_set.h"
#include "model/cluster.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "policy/gavel/gavel_common.h"
#include "predict/estimate.h"

#define REFERENCES 16 /* of the kinds there are, as in the paper */
#define TRIED 0.2     /* of a new job's cells */

/* Kinds of which it is known how they share. */
static uint32_t list_kinds(const struct view *view, uint32_t *kinds, uint32_t max)
{
    const struct throughput *table = view->rates;
    uint32_t count = 0;
    for (uint32_t k = 0; k < table->row_count && count < max; k++) {
        struct job job = { .kind = k, .gpus = 1 };
        bool known = false;
        for (uint32_t t = 0; t < view->cluster->type_count; t++)
            known = known || sharing_is_known(table, &job, &job, t, 1);
        if (known)
            kinds[count++] = k;
    }
    return count;
}

int gavel_pairs_init(struct gavel_common *common, const struct view *view,
                     struct arena *run, struct error *err)
{
    uint32_t kinds[256];
    if (!common->gavel->sharing || common->gavel->known != KNOWN_ESTIMATED)
        return 0;
    uint32_t count = list_kinds(view, kinds, sizeof kinds / sizeof *kinds);
    if (count < 2)
        return error_set(err, -EINVAL,
                         "rates=estimated needs kinds of jobs that were measured with "
                         "each other; no such are known here");
    struct rng rng;
    rng_init(&rng, common->seed, "references");
    uint32_t wanted = count < REFERENCES ? count : REFERENCES;
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t at = i + rng_below(&rng, count - i);
        uint32_t kind = kinds[at];
        kinds[at] = kinds[i];
        kinds[i] = kind;
    }
    common->estimate = arena_new(run, struct estimate);
    estimate_init(common->estimate, run, view->rates, kinds, wanted,
                  view->cluster->type_count, view->job_max);
    return 0;
}

/* The part of its speed that 'job' truly keeps beside another; -1: unknown. */
static double kept_beside(const struct view *view, const struct job *job,
                          const struct job *other, uint32_t type)
{
    double rates[2];
    double alone = throughput_rate(view->rates, job, type, 1, false);
    if (!(alone > 0) || !sharing_is_known(view->rates, job, other, type, 1))
        return -1;
    sharing_rates(view->rates, job, other, type, 1, false, rates);
    return rates[0] / alone;
}

void gavel_pairs_admit(struct gavel_common *common, const struct view *view, job_id id)
{
    struct estimate *estimate = common->estimate;
    const struct job *job = &view->jobs[id];
    if (!estimate)
        return;
    struct rng rng;
    rng_init(&rng, common->seed * 0x9e3779b97f4a7c15u + job->id, "trials");
    estimate_begin(estimate, id);
    for (uint32_t type = 0; type < estimate->type_count; type++)
        for (uint32_t r = 0; r < estimate->reference_count; r++) {
            struct job reference = { .kind = estimate->kinds[r], .gpus = 1 };
            bool tried = rng_unit(&rng) < TRIED;
            double kept = tried ? kept_beside(view, job, &reference, type) : -1;
            if (kept >= 0)
                estimate_note(estimate, id, type, r, kept);
        }
}

void gavel_pairs_observe(struct gavel_common *common, const struct view *view,
                         const struct event *event)
{
    if (!common->estimate ||
        (event->kind != EVENT_STARTED && event->kind != EVENT_PROGRESS))
        return;
    const struct job *job = &view->jobs[event->job];
    job_id other = job->partner;
    if (other == JOB_NONE || job->gpus != 1 || !(event->rate_per_s > 0) ||
        !job_holds_seats(job) || !job_holds_seats(&view->jobs[other]) ||
        view->jobs[other].partner != event->job)
        return;
    double alone = throughput_rate(view->rates, job, job->type_now, 1, false);
    if (alone > 0)
        estimate_measured(common->estimate, event->job, other, job->type_now,
                          event->rate_per_s / alone);
}

void gavel_pairs_refused(struct gavel_common *common, const struct view *view, job_id a,
                         job_id b, uint32_t column)
{
    const struct job *first = &view->jobs[a];
    double rates[2];
    uint32_t type = common->types[column];
    if (!common->estimate || first->gpus != 1 ||
        sharing_rates(view->rates, first, &view->jobs[b], type, 1, false, rates))
        return; /* there was no room */
    estimate_measured(common->estimate, a, b, type, 0);
    estimate_measured(common->estimate, b, a, type, 0);
}

/* Both rates on one type. */
static void rates_on(struct gavel_common *common, const struct view *view, job_id a,
                     job_id b, uint32_t type, double rates[2])
{
    const struct job *first = &view->jobs[a];
    const struct job *second = &view->jobs[b];
    if (!common->estimate) {
        if (sharing_is_known(view->rates, first, second, type, first->gpus))
            sharing_rates(view->rates, first, second, type, first->gpus, false, rates);
        return;
    }
    if (first->gpus != 1 || first->kind == KIND_NONE || second->kind == KIND_NONE)
        return;
    rates[0] = estimate_kept(common->estimate, a, b, type) *
               throughput_rate(view->rates, first, type, 1, false);
    rates[1] = estimate_kept(common->estimate, b, a, type) *
               throughput_rate(view->rates, second, type, 1, false);
}

bool gavel_pair_rates(struct gavel_common *common, const struct view *view, job_id a,
                      job_id b, double rates[][2])
{
    const struct node_set *first = view->jobs[a].set;
    const struct node_set *second = view->jobs[b].set;
    uint32_t types = view->jobs[a].types & view->jobs[b].types;
    bool some = false;
    if (first && second &&
        bits_next_common(&first->allowed, &second->allowed, 0) == BITS_NONE)
        types = 0; /* no node will do for both */
    for (uint32_t c = 0; c < common->type_count; c++) {
        rates[c][0] = rates[c][1] = 0;
        if (types >> common->types[c] & 1)
            rates_on(common, view, a, b, common->types[c], rates[c]);
        if (!(rates[c][0] > 0 && rates[c][1] > 0))
            rates[c][0] = rates[c][1] = 0;
        some = some || rates[c][0] > 0;
    }
    return some;
}
