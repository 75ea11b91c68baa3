/*
 * why_change.c - what would start a job now, by trying.
 *
 * First there must be room: that is asked of a plan.  Then the policy must give it to this
 * job and to no other, which is played through (why_play.c).  Policies that work in rounds
 * may let it wait for the next one: of them only the first is asked, and no more is said
 * than that there would be room.
 */
#include "daemon/why_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/why.h"
#include "daemon/why_play.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/plan.h"
#include "model/throughput.h"
#include "policy/policy.h"

#define LEAVERS_MAX 128 /* running jobs whose leaving is tried        */
#define ASKED_MAX 3     /* of them, how often the policy is asked too */

static bool works_in_rounds(const struct policy *policy)
{
    for (const struct field *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, "round") == 0)
            return true;
    return false;
}

static void revoke(struct plan *plan, const struct state *state, job_id gone)
{
    if (gone != JOB_NONE && job_can_be_stopped(&state->jobs[gone]))
        plan_revoke(plan, gone, RULE_CANCEL, JOB_NONE);
}

bool change_fits(const struct why_scene *scene, job_id id, const struct job *as,
                 job_id gone)
{
    struct engine *engine = scene->engine;
    struct job kept = engine->state.jobs[id];
    engine->state.jobs[id] = *as;
    plan_begin(engine->plan);
    revoke(engine->plan, &engine->state, gone);
    bool fits = plan_grant(engine->plan, id, NULL);
    plan_end(engine->plan);
    engine->state.jobs[id] = kept;
    return fits;
}

/* --- changes -------------------------------------------------------------------------- */

struct search {
    const struct why_scene *scene;
    job_id id;
    const struct reasons *reasons;
    bool rounds;      /* the policy works in them   */
    const char *then; /* what comes of it, in words */
    char *text;
    size_t size;
};

/* There is room, and it is given to this job. */
static bool does(const struct search *s, const struct job *as)
{
    return change_fits(s->scene, s->id, as, JOB_NONE) &&
           (s->rounds || play_starts(s->scene, s->id, as, JOB_NONE));
}

static const struct job *self_of(const struct search *s)
{
    return &s->scene->engine->state.jobs[s->id];
}

/* How fast it would go, of the size and on the types that it is given to try. */
static void set_best(const struct search *s, struct job *as)
{
    const struct throughput *rates = s->scene->engine->state.view.rates;
    as->rate_best_per_s = throughput_best(rates, as, &as->type_best);
}

/* On whatever nodes there are. */
static bool try_any_node(const struct search *s)
{
    char flags[32];
    struct job as = *self_of(s);
    if (!as.set)
        return false;
    as.set = NULL;
    if (!does(s, &as))
        return false;
    snprintf(s->text, s->size, "on any node, without %s, %s",
             node_set_flags(self_of(s)->set, flags, sizeof flags), s->then);
    return true;
}

static bool try_types(const struct search *s)
{
    const struct view *view = &s->scene->engine->state.view;
    const struct job *job = self_of(s);
    for (uint32_t t = 0; job->gpus > 0 && t < view->cluster->type_count; t++) {
        struct job as = *job;
        as.types = (uint32_t)1 << t;
        set_best(s, &as);
        if (job->types >> t & 1 || as.rate_best_per_s <= 0 || !does(s, &as))
            continue;
        snprintf(s->text, s->size, "on type %s %s", view->cluster->types[t].name,
                 s->then);
        return true;
    }
    return false;
}

static bool try_spread(const struct search *s)
{
    struct job as = *self_of(s);
    if (as.spread || as.gpus < 2)
        return false;
    as.spread = true;
    if (!does(s, &as))
        return false;
    snprintf(s->text, s->size, "spread over nodes %s", s->then);
    return true;
}

/* The most that there is room for. */
static bool try_fewer(const struct search *s)
{
    const struct job *job = self_of(s);
    struct job as = *job;
    uint32_t low = 0; /* fits, if it is not 0 */
    uint32_t high = job->gpus;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        as.gpus = as.gpus_min = as.gpus_max = middle;
        if (change_fits(s->scene, s->id, &as, JOB_NONE))
            low = middle;
        else
            high = middle;
    }
    as.gpus = as.gpus_min = as.gpus_max = low;
    set_best(s, &as);
    if (low == 0 || as.rate_best_per_s <= 0 || !does(s, &as))
        return false;
    snprintf(s->text, s->size, "with %u GPU%s instead of %u %s", low,
             low == 1 ? "" : "s", job->gpus, s->then);
    return true;
}

static bool try_less_beside(const struct search *s)
{
    struct job as = *self_of(s);
    if (as.cpu_milli == 0 && as.mem_mib == 0)
        return false;
    as.mem_mib = 0;
    if (does(s, &as)) {
        snprintf(s->text, s->size, "with less memory than %.3g GiB %s",
                 self_of(s)->mem_mib / 1024.0, s->then);
        return true;
    }
    as.mem_mib = self_of(s)->mem_mib;
    as.cpu_milli = 0;
    if (as.gpus == 0 || !does(s, &as))
        return false;
    snprintf(s->text, s->size, "with fewer CPUs than %.3g %s",
             self_of(s)->cpu_milli * 1e-3, s->then);
    return true;
}

static bool try_class(const struct search *s)
{
    struct job as = *self_of(s);
    if (as.class == CLASS_TE)
        return false;
    as.class = CLASS_TE;
    if (s->rounds || !play_starts(s->scene, s->id, &as, JOB_NONE))
        return false;
    snprintf(s->text, s->size, "as class te it would get seats now");
    return true;
}

/* The first of those who wait ahead. */
static bool try_without_first(const struct search *s)
{
    const struct state *state = &s->scene->engine->state;
    if (s->reasons->ahead_count == 0)
        return false;
    uint64_t first = s->reasons->ahead[0].id;
    job_id absent = state_find(state, first);
    if (s->rounds || absent == JOB_NONE ||
        !play_starts(s->scene, s->id, self_of(s), absent))
        return false;
    snprintf(s->text, s->size,
             "cancelling job %" PRIu64 ", which waits, would start it", first);
    return true;
}

/* Somebody who runs. */
static bool try_without_runner(const struct search *s)
{
    const struct state *state = &s->scene->engine->state;
    uint32_t tried = 0;
    uint32_t asked = 0;
    for (job_id id = 0; id < state->job_count && tried < LEAVERS_MAX; id++) {
        if (!job_can_be_stopped(&state->jobs[id]))
            continue;
        tried++;
        if (!change_fits(s->scene, s->id, self_of(s), id))
            continue;
        if (s->rounds || play_starts(s->scene, s->id, self_of(s), id)) {
            snprintf(s->text, s->size, "cancelling job %" PRIu64 " would %s it",
                     state->jobs[id].id, s->rounds ? "make room for" : "start");
            return true;
        }
        if (++asked == ASKED_MAX)
            return false;
    }
    return false;
}

void change_find(const struct why_scene *scene, job_id id,
                 const struct reasons *reasons, char *text, size_t size)
{
    bool rounds = works_in_rounds(scene->engine->policy);
    struct search search = { .scene = scene,
                             .id = id,
                             .reasons = reasons,
                             .rounds = rounds,
                             .then = rounds ? "there would be room for it now"
                                            : "it would start now",
                             .text = text,
                             .size = size };
    text[0] = '\0';
    (void)(try_any_node(&search) || try_types(&search) || try_spread(&search) ||
           try_fewer(&search) || try_less_beside(&search) || try_class(&search) ||
           try_without_first(&search) || try_without_runner(&search));
}
