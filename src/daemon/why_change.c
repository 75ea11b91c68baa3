/* why_change.c - the smallest change that would start a waiting job now. */
#include "daemon/why_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine_copy.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/plan.h"
#include "model/throughput.h"
#include "policy/policy.h"

/*
 * Two questions are asked of each change.  First there must be room: that is asked of a plan.  Then
 * the policy must give it to this job and to no other, which is tried in a copy of the engine with
 * an executor that obeys at once.
 *
 * Policies that work in rounds may let the job wait for the next one: of them only the first
 * question is asked, and the answer says no more than that there would be room.
 */

#define LEAVERS_MAX 128 /* running jobs that are tried as cancelled   */
#define ASKED_MAX 3     /* of them, how often the policy is asked too */

/* --- trying a change in a copy -------------------------------------------------------- */

/* A change that is tried: the job as it would be. */
struct trial {
    struct engine *engine;
    int64_t now_ns;
    job_id id;
    const struct job *as;
};

struct search {
    const struct why_change_setup *setup;
    struct engine *engine; /* the source: it is asked for room, and not changed */
    job_id id;
    bool rounds;      /* the policy works in them      */
    const char *then; /* what comes of it, as a phrase */
    int64_t until_ns; /* then no more is tried         */
    struct engine copy;
    struct arena arena; /* of the copy */
    bool copied;
    struct trial trial;
    char *text;
    size_t size;
};

/* While the job is held no policy counts on what it asks for: change it now. */
static void change_held_job(void *self, const struct view *view,
                            const struct event *event)
{
    const struct trial *trial = self;
    if (event->kind != EVENT_HELD || event->job != trial->id)
        return;
    enum job_state state = view->jobs[trial->id].state;
    trial->engine->state.jobs[trial->id] = *trial->as;
    trial->engine->state.jobs[trial->id].state = state;
}

static struct event make_event(const struct trial *trial, enum event_kind kind,
                               job_id job)
{
    return (struct event){ .at_ns = trial->now_ns,
                           .kind = kind,
                           .job = job,
                           .generation = trial->engine->state.jobs[job].generation,
                           .attempt = trial->engine->state.jobs[job].attempt };
}

static bool starts_job(struct trial *trial, bool changed, job_id gone)
{
    struct engine *engine = trial->engine;
    struct job *jobs = engine->state.jobs;
    struct event events[3];
    uint32_t count = 0;
    struct error err;
    bool runs = gone != JOB_NONE && job_runs(&jobs[gone]);
    if (changed) {
        events[count++] = make_event(trial, EVENT_HELD, trial->id);
        events[count++] = make_event(trial, EVENT_RELEASED, trial->id);
    }
    if (gone != JOB_NONE)
        events[count++] = make_event(trial, EVENT_CANCELLED, gone);
    if (engine_step(engine, trial->now_ns, events, count, &err) < 0)
        return false;
    if (runs) {
        events[0] = make_event(trial, EVENT_STOPPED, gone);
        events[0].steps = events[0].steps_reached = jobs[gone].steps;
        if (engine_step(engine, trial->now_ns, events, 1, &err) < 0)
            return false;
    }
    return jobs[trial->id].state >= JOB_PLACED;
}

/* The copy is the engine as it is, once more. */
static bool renew_copy(struct search *s)
{
    struct error err;
    struct engine_copy_setup setup = { .settings = s->setup->settings,
                                       .executor = &engine_copy_nothing };
    if (!s->copied) {
        s->copied = engine_copy_init(&s->copy, &s->arena, s->engine, &setup, &err) == 0;
        if (!s->copied)
            return false;
        engine_add_observer(
            &s->copy,
            (struct engine_observer){ .event = change_held_job, .self = &s->trial });
    }
    return engine_copy_renew(&s->copy, &s->arena, s->engine, s->setup->settings,
                             s->engine->seed, &err) == 0;
}

/* Would this job start, if it were as 'as' says and 'gone' (or JOB_NONE) were cancelled? */
static bool would_start(struct search *s, const struct job *as, job_id gone)
{
    const struct job *now = &s->engine->state.jobs[s->id];
    struct job copy = *as; /* with what the copy's own record points to */
    if (clock_now_ns() >= s->until_ns ||
        (s->setup->cancelled && *s->setup->cancelled) || !renew_copy(s))
        return false;
    const struct job *own = &s->copy.state.jobs[s->id];
    bool changed = memcmp(now, as, sizeof *as) != 0;
    copy.set = as->set ? own->set : NULL;
    s->trial = (struct trial){ &s->copy, s->engine->state.view.now_ns, s->id, &copy };
    return starts_job(&s->trial, changed, gone);
}

/* --- changes -------------------------------------------------------------------------- */

static bool works_in_rounds(const struct policy *policy)
{
    for (const struct field *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, "round") == 0)
            return true;
    return false;
}

static void revoke_job(struct plan *plan, const struct state *state, job_id gone)
{
    if (gone != JOB_NONE && job_can_be_stopped(&state->jobs[gone]))
        plan_revoke(plan, gone, RULE_CANCEL, JOB_NONE);
}

bool why_change_fits(struct engine *engine, job_id id, const struct job *as,
                     job_id gone)
{
    struct job kept = engine->state.jobs[id];
    engine->state.jobs[id] = *as;
    plan_begin(engine->plan);
    revoke_job(engine->plan, &engine->state, gone);
    bool fits = plan_grant(engine->plan, id, NULL);
    plan_end(engine->plan);
    engine->state.jobs[id] = kept;
    return fits;
}

/* With this change there is room, and the policy gives it to this job. */
static bool helps(struct search *s, const struct job *as)
{
    return why_change_fits(s->engine, s->id, as, JOB_NONE) &&
           (s->rounds || would_start(s, as, JOB_NONE));
}

static const struct job *job_of(const struct search *s)
{
    return &s->engine->state.jobs[s->id];
}

/* Its rate with the size and the types that are tried. */
static void set_best(const struct search *s, struct job *as)
{
    const struct throughput *rates = s->engine->state.view.rates;
    as->rate_best_per_s = throughput_best(rates, as, &as->type_best);
}

/* On any node. */
static bool try_any_node(struct search *s)
{
    char flags[32];
    struct job as = *job_of(s);
    if (!as.set)
        return false;
    as.set = NULL;
    if (!helps(s, &as))
        return false;
    snprintf(s->text, s->size, "on any node, without %s, %s",
             node_set_flags(job_of(s)->set, flags, sizeof flags), s->then);
    return true;
}

static bool try_types(struct search *s)
{
    const struct view *view = &s->engine->state.view;
    const struct job *job = job_of(s);
    for (uint32_t t = 0; job->gpus > 0 && t < view->cluster->type_count; t++) {
        struct job as = *job;
        as.types = (uint32_t)1 << t;
        set_best(s, &as);
        if (job->types >> t & 1 || as.rate_best_per_s <= 0 || !helps(s, &as))
            continue;
        snprintf(s->text, s->size, "on type %s %s", view->cluster->types[t].name,
                 s->then);
        return true;
    }
    return false;
}

static bool try_spread(struct search *s)
{
    struct job as = *job_of(s);
    if (as.spread || as.gpus < 2)
        return false;
    as.spread = true;
    if (!helps(s, &as))
        return false;
    snprintf(s->text, s->size, "spread over nodes %s", s->then);
    return true;
}

/* With the largest number of GPUs that there is room for. */
static bool try_fewer(struct search *s)
{
    const struct job *job = job_of(s);
    struct job as = *job;
    uint32_t low = 0; /* fits, if it is not 0 */
    uint32_t high = job->gpus;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        as.gpus = as.gpus_min = as.gpus_max = middle;
        if (why_change_fits(s->engine, s->id, &as, JOB_NONE))
            low = middle;
        else
            high = middle;
    }
    as.gpus = as.gpus_min = as.gpus_max = low;
    set_best(s, &as);
    if (low == 0 || as.rate_best_per_s <= 0 || !helps(s, &as))
        return false;
    snprintf(s->text, s->size, "with %u GPU%s instead of %u %s", low,
             low == 1 ? "" : "s", job->gpus, s->then);
    return true;
}

static bool try_less_beside(struct search *s)
{
    struct job as = *job_of(s);
    if (as.cpu_milli == 0 && as.mem_mib == 0)
        return false;
    as.mem_mib = 0;
    if (helps(s, &as)) {
        snprintf(s->text, s->size, "with less memory than %.3g GiB %s",
                 job_of(s)->mem_mib / 1024.0, s->then);
        return true;
    }
    as.mem_mib = job_of(s)->mem_mib;
    as.cpu_milli = 0;
    if (as.gpus == 0 || !helps(s, &as))
        return false;
    snprintf(s->text, s->size, "with fewer CPUs than %.3g %s",
             job_of(s)->cpu_milli * 1e-3, s->then);
    return true;
}

static bool try_class(struct search *s)
{
    struct job as = *job_of(s);
    if (as.class == CLASS_TE)
        return false;
    as.class = CLASS_TE;
    if (s->rounds || !would_start(s, &as, JOB_NONE))
        return false;
    snprintf(s->text, s->size, "as class te it would get seats now");
    return true;
}

/* The first of the jobs that wait ahead of it. */
static bool try_without_first(struct search *s)
{
    const struct state *state = &s->engine->state;
    uint64_t first = s->setup->ahead;
    if (first == 0)
        return false;
    job_id absent = state_find(state, first);
    if (s->rounds || absent == JOB_NONE || !would_start(s, job_of(s), absent))
        return false;
    snprintf(s->text, s->size,
             "cancelling job %" PRIu64 ", which waits, would start it", first);
    return true;
}

/* A running job that would leave. */
static bool try_without_runner(struct search *s)
{
    const struct state *state = &s->engine->state;
    uint32_t tried = 0;
    uint32_t asked = 0;
    for (job_id id = 0; id < state->job_count && tried < LEAVERS_MAX; id++) {
        if (!job_can_be_stopped(&state->jobs[id]))
            continue;
        tried++;
        if (!why_change_fits(s->engine, s->id, job_of(s), id))
            continue;
        if (s->rounds || would_start(s, job_of(s), id)) {
            snprintf(s->text, s->size, "cancelling job %" PRIu64 " would %s it",
                     state->jobs[id].id, s->rounds ? "make room for" : "start");
            return true;
        }
        if (++asked == ASKED_MAX)
            return false;
    }
    return false;
}

void why_change_find(const struct why_change_setup *setup, char *text, size_t size)
{
    bool rounds = works_in_rounds(setup->engine->policy);
    struct search search = {
        .setup = setup,
        .engine = setup->engine,
        .id = setup->job,
        .rounds = rounds,
        .then = rounds ? "there would be room for it now" : "it would start now",
        .until_ns =
            clock_now_ns() + (setup->limit_ns ? setup->limit_ns : WHY_CHANGE_LIMIT_NS),
        .text = text,
        .size = size
    };
    arena_init(&search.arena, 0);
    text[0] = '\0';
    (void)(try_any_node(&search) || try_types(&search) || try_spread(&search) ||
           try_fewer(&search) || try_less_beside(&search) || try_class(&search) ||
           try_without_first(&search) || try_without_runner(&search));
    if (search.copied)
        engine_release(&search.copy);
    arena_release(&search.arena);
}
