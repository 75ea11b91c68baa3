/*
 * why_change.c - what would start a job now, by trying.
 *
 * First there must be room: that is asked of a plan.  Then the policy must give it to this
 * job and to no other: a policy like the one in office, with the same settings, is told who
 * is there, as after a restart, and decides in a plan that is thrown away.  Policies that
 * work in rounds would begin with a new one, which says nothing of the present: of them only
 * the first is asked, and no more is said than that there would be room.
 */
#include "daemon/why_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sort.h"
#include "daemon/why.h"
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
    for (const struct param *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, "round") == 0)
            return true;
    return false;
}

static void revoke(struct plan *plan, const struct state *state, job_id gone)
{
    if (gone != JOB_NONE && job_can_leave(&state->jobs[gone]))
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

/* --- asking a policy ---------------------------------------------------------------- */

/* In order of submission, as engine.c does it. */
static void introduce(const struct why_scene *scene, void *self, job_id absent,
                      struct arena *arena)
{
    const struct engine *engine = scene->engine;
    const struct state *state = &engine->state;
    struct sort_item *items =
        arena_array(arena, struct sort_item, state->live_count + 1);
    struct sort_item *spare =
        arena_array(arena, struct sort_item, state->live_count + 1);
    uint32_t count = 0;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE && id != absent)
            items[count++] = (struct sort_item){ (double)state->jobs[id].id, id };
    sort_items(items, spare, count);
    for (uint32_t i = 0; i < count; i++) {
        struct event event = { .at_ns = scene->now_ns,
                               .kind = EVENT_ADOPTED,
                               .job = items[i].value,
                               .generation = state->jobs[items[i].value].generation };
        if (engine->policy->observe)
            engine->policy->observe(self, &state->view, &event);
    }
}

static bool policy_gives(const struct why_scene *scene, void *self, job_id id,
                         job_id gone, struct arena *arena)
{
    struct engine *engine = scene->engine;
    struct error err;
    plan_begin(engine->plan);
    revoke(engine->plan, &engine->state, gone);
    int r =
        engine->policy->decide(self, &engine->state.view, engine->plan, arena, &err);
    if (r == 0)
        r = plan_check(engine->plan, &err);
    bool gives = r == 0 && plan_holds(engine->plan, id);
    plan_end(engine->plan);
    return gives;
}

static bool ask_policy(const struct why_scene *scene, job_id id, job_id gone,
                       job_id absent)
{
    const struct engine *engine = scene->engine;
    const struct policy *policy = engine->policy;
    struct arena arena;
    arena_init(&arena, 0);
    void *self = arena_alloc(&arena, 1, policy->self_size, 16);
    param_defaults(policy->params, self);
    bool gives = false;
    if (param_parse(policy->params, self, policy->name, scene->settings, NULL) == 0 &&
        (!policy->init ||
         policy->init(self, &engine->state.view, engine->seed, &arena, NULL) == 0)) {
        introduce(scene, self, absent, &arena);
        gives = policy_gives(scene, self, id, gone, &arena);
        if (policy->fini)
            policy->fini(self);
    }
    arena_release(&arena);
    return gives;
}

/* The same, and the policy gives it to this job; 'absent' (or JOB_NONE) does not wait. */
static bool change_starts(const struct why_scene *scene, job_id id,
                          const struct job *as, job_id gone, job_id absent)
{
    struct engine *engine = scene->engine;
    if (works_in_rounds(engine->policy))
        return absent == JOB_NONE && change_fits(scene, id, as, gone);
    struct job kept = engine->state.jobs[id];
    int64_t now_ns = engine->state.view.now_ns;
    engine->state.jobs[id] = *as;
    engine->state.view.now_ns = scene->now_ns;
    bool starts = ask_policy(scene, id, gone, absent);
    engine->state.view.now_ns = now_ns;
    engine->state.jobs[id] = kept;
    return starts;
}

/* --- changes -------------------------------------------------------------------------- */

struct search {
    const struct why_scene *scene;
    job_id id;
    const struct reasons *reasons;
    const char *then; /* what comes of it, in words */
    char *text;
    size_t size;
};

/* There is room, and it is given to this job. */
static bool does(const struct search *s, const struct job *as)
{
    return change_fits(s->scene, s->id, as, JOB_NONE) &&
           change_starts(s->scene, s->id, as, JOB_NONE, JOB_NONE);
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
    if (works_in_rounds(s->scene->engine->policy) ||
        !change_starts(s->scene, s->id, &as, JOB_NONE, JOB_NONE))
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
    if (absent == JOB_NONE ||
        !change_starts(s->scene, s->id, self_of(s), JOB_NONE, absent))
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
        if (!job_can_leave(&state->jobs[id]))
            continue;
        tried++;
        if (!change_fits(s->scene, s->id, self_of(s), id))
            continue;
        if (change_starts(s->scene, s->id, self_of(s), id, JOB_NONE)) {
            snprintf(s->text, s->size, "cancelling job %" PRIu64 " would %s it",
                     state->jobs[id].id,
                     works_in_rounds(s->scene->engine->policy) ? "make room for"
                                                               : "start");
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
                             .then = rounds ? "there would be room for it now"
                                            : "it would start now",
                             .text = text,
                             .size = size };
    text[0] = '\0';
    (void)(try_any_node(&search) || try_types(&search) || try_spread(&search) ||
           try_fewer(&search) || try_less_beside(&search) || try_class(&search) ||
           try_without_first(&search) || try_without_runner(&search));
}
