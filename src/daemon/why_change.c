/*
 * why_change.c - what would start a job now, by trying.
 *
 * First there must be room: that is asked of a plan.  Then the policy must give it to this
 * job and to no other, which is tried in a copy of everything: a policy remembers more than a
 * new one could be told, so the only exact copy of it is this process.  A child tries the
 * change with an executor that obeys at once and returns the result as its exit status.  It
 * writes nothing and talks to no one; after WHY_LIMIT_NS it is killed.
 *
 * Policies that work in rounds may let the job wait for the next one: of them only the first
 * question is asked, and the answer says no more than that there would be room.
 */
#include "daemon/why_change.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "executor/executor.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/plan.h"
#include "model/throughput.h"
#include "policy/policy.h"

#define LEAVERS_MAX 128 /* running jobs that are tried as cancelled   */
#define ASKED_MAX 3     /* of them, how often the policy is asked too */
#define POLL_NS 200000  /* between two polls of a child               */

/* --- trying a change in a child ----------------------------------------------------- */

struct search {
    const struct why_scene *scene;
    job_id id;
    const struct reasons *reasons;
    bool rounds;      /* the policy works in them      */
    const char *then; /* what comes of it, as a phrase */
    int64_t until_ns; /* then no more is tried         */
    char *text;
    size_t size;
};

static int start_nothing(void *self, const struct lease *lease, struct error *err)
{
    return 0;
}

static int stop_nothing(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    return 0;
}

static int cancel_nothing(void *self, job_id job, struct error *err)
{
    return 0;
}

static int renew_nothing(void *self, job_id job, uint64_t steps_max, bool together,
                         struct error *err)
{
    return 0;
}

static const struct executor executor_nothing = { .name = "nothing",
                                                  .start = start_nothing,
                                                  .stop = stop_nothing,
                                                  .cancel = cancel_nothing,
                                                  .resize = start_nothing,
                                                  .renew = renew_nothing };

/* A change that is tried: the job as it would be. */
struct trial {
    struct engine *engine;
    int64_t now_ns;
    job_id id;
    const struct job *as;
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

static bool starts_job(struct trial *trial, job_id gone)
{
    struct engine *engine = trial->engine;
    struct job *jobs = engine->state.jobs;
    struct event events[3];
    uint32_t count = 0;
    struct error err;
    bool runs = gone != JOB_NONE && job_runs(&jobs[gone]);
    engine->executor = &executor_nothing;
    engine->observer_count = 0;
    if (memcmp(&jobs[trial->id], trial->as, sizeof *trial->as) != 0) {
        engine_add_observer(engine, (struct engine_observer){ .event = change_held_job,
                                                              .self = trial });
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

/* Its exit status; -1 if it did not end by itself before 'until_ns'. */
static int wait_for_child(pid_t child, int64_t until_ns)
{
    int status = 0;
    pid_t r;
    while ((r = waitpid(child, &status, WNOHANG)) == 0 && clock_now_ns() < until_ns)
        nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
    if (r == 0) {
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        return -1;
    }
    return r == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Would this job start, if it were as 'as' says and 'gone' (or JOB_NONE) were cancelled? */
static bool would_start(const struct search *s, const struct job *as, job_id gone)
{
    struct job copy = *as; /* it may be the job's own record */
    if (clock_now_ns() >= s->until_ns)
        return false;
    pid_t child = fork();
    if (child == 0) {
        struct trial trial = { s->scene->engine, s->scene->now_ns, s->id, &copy };
        _exit(starts_job(&trial, gone) ? 0 : 1);
    }
    return child > 0 && wait_for_child(child, s->until_ns) == 0;
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

bool why_change_fits(const struct why_scene *scene, job_id id, const struct job *as,
                     job_id gone)
{
    struct engine *engine = scene->engine;
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
static bool helps(const struct search *s, const struct job *as)
{
    return why_change_fits(s->scene, s->id, as, JOB_NONE) &&
           (s->rounds || would_start(s, as, JOB_NONE));
}

static const struct job *job_of(const struct search *s)
{
    return &s->scene->engine->state.jobs[s->id];
}

/* Its rate with the size and the types that are tried. */
static void set_best(const struct search *s, struct job *as)
{
    const struct throughput *rates = s->scene->engine->state.view.rates;
    as->rate_best_per_s = throughput_best(rates, as, &as->type_best);
}

/* On any node. */
static bool try_any_node(const struct search *s)
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

static bool try_types(const struct search *s)
{
    const struct view *view = &s->scene->engine->state.view;
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

static bool try_spread(const struct search *s)
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
static bool try_fewer(const struct search *s)
{
    const struct job *job = job_of(s);
    struct job as = *job;
    uint32_t low = 0; /* fits, if it is not 0 */
    uint32_t high = job->gpus;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        as.gpus = as.gpus_min = as.gpus_max = middle;
        if (why_change_fits(s->scene, s->id, &as, JOB_NONE))
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

static bool try_less_beside(const struct search *s)
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

static bool try_class(const struct search *s)
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
static bool try_without_first(const struct search *s)
{
    const struct state *state = &s->scene->engine->state;
    if (s->reasons->ahead_count == 0)
        return false;
    uint64_t first = s->reasons->ahead[0].id;
    job_id absent = state_find(state, first);
    if (s->rounds || absent == JOB_NONE || !would_start(s, job_of(s), absent))
        return false;
    snprintf(s->text, s->size,
             "cancelling job %" PRIu64 ", which waits, would start it", first);
    return true;
}

/* A running job that would leave. */
static bool try_without_runner(const struct search *s)
{
    const struct state *state = &s->scene->engine->state;
    uint32_t tried = 0;
    uint32_t asked = 0;
    for (job_id id = 0; id < state->job_count && tried < LEAVERS_MAX; id++) {
        if (!job_can_be_stopped(&state->jobs[id]))
            continue;
        tried++;
        if (!why_change_fits(s->scene, s->id, job_of(s), id))
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

void why_change_find(const struct why_scene *scene, job_id id,
                     const struct reasons *reasons, char *text, size_t size)
{
    bool rounds = works_in_rounds(scene->engine->policy);
    struct search search = {
        .scene = scene,
        .id = id,
        .reasons = reasons,
        .rounds = rounds,
        .then = rounds ? "there would be room for it now" : "it would start now",
        .until_ns = clock_now_ns() + (scene->limit_ns ? scene->limit_ns : WHY_LIMIT_NS),
        .text = text,
        .size = size
    };
    text[0] = '\0';
    (void)(try_any_node(&search) || try_types(&search) || try_spread(&search) ||
           try_fewer(&search) || try_less_beside(&search) || try_class(&search) ||
           try_without_first(&search) || try_without_runner(&search));
}
