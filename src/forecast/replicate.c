/* replicate.c - one possible future of an engine. */
#include "forecast/replicate.h"

#include <errno.h>

#include "base/error.h"
#include "engine/engine_copy.h"
#include "model/event.h"
#include "policy/policy.h"

#define STEPS_AT_ONCE_MAX 10000 /* a policy that swaps for ever in one instant */
#define REFUSED_MAX 100         /* plans in a row, of a policy that fails      */

static struct sim_truth declared_truth(const struct job *job)
{
    return (struct sim_truth){ .steps = job->steps_total,
                               .pause_ns = job->pause_ns,
                               .load_ns = job->load_ns,
                               .ckpt_ns = job->ckpt_ns,
                               .kind = job->kind };
}

/* What is true of a job goes to the cluster. */
static void admit_job(struct replicate *replicate, job_id id)
{
    const struct view *view = &replicate->engine.state.view;
    struct sim_truth truth = declared_truth(&view->jobs[id]);
    replicate->setup.truth(replicate->setup.context, view, id, &truth);
    sim_cluster_admit(&replicate->cluster, id, &truth);
}

/* The job is one of the source's. */
static bool is_known(const struct replicate *replicate, const struct event *event)
{
    const struct state *source = &replicate->source->state;
    return event->job < source->job_count &&
           source->jobs[event->job].state != JOB_FREE &&
           source->jobs[event->job].generation ==
               replicate->engine.state.jobs[event->job].generation;
}

static void stop_awaiting(struct replicate *replicate, job_id id)
{
    replicate->awaited_count -= replicate->awaited[id];
    replicate->awaited[id] = false;
}

/* An observer: note when the source's jobs start and end. */
static void note_event(void *self, const struct view *view, const struct event *event)
{
    struct replicate *replicate = self;
    struct replicate_figures *figures = &replicate->figures;
    figures->finished += event->kind == EVENT_FINISHED;
    if (event->kind == EVENT_SUBMITTED) {
        figures->jobs++;
        admit_job(replicate, event->job);
        return;
    }
    if (event->kind == EVENT_RECALLED) {
        figures->preemptions += event->rule != RULE_RESIZE;
        return;
    }
    if (!is_known(replicate, event))
        return;
    if (event->kind == EVENT_STARTED) {
        if (replicate->starts[event->job] == REPLICATE_NOT_YET)
            replicate->starts[event->job] = event->at_ns;
        if (replicate->setup.starts_only)
            stop_awaiting(replicate, event->job);
        return;
    }
    replicate->ends[event->job] = event->at_ns;
    replicate->look_at_releases = true;
    stop_awaiting(replicate, event->job);
}

int replicate_init(struct replicate *replicate, const struct engine *source,
                   const struct replicate_setup *setup, struct error *err)
{
    *replicate = (struct replicate){ .source = source, .setup = *setup };
    arena_init(&replicate->run, 0);
    arena_init(&replicate->round, 0);
    uint32_t slots = source->state.job_count + 1;
    replicate->starts = arena_array(&replicate->run, int64_t, slots);
    replicate->ends = arena_array(&replicate->run, int64_t, slots);
    replicate->awaited = arena_array(&replicate->run, bool, slots);
    replicate->released = arena_array(&replicate->run, bool, setup->release_count + 1);
    struct engine_copy_setup copy = { .settings = setup->settings,
                                      .executor = &executor_sim,
                                      .executor_self = &replicate->cluster,
                                      .more_jobs = setup->more_jobs };
    int r = engine_copy_init(&replicate->engine, &replicate->run, source, &copy, err);
    if (r < 0)
        return r;
    engine_add_observer(&replicate->engine,
                        (struct engine_observer){
                            .event = note_event,
                            .self = replicate,
                            .kinds = 1u << EVENT_SUBMITTED | 1u << EVENT_STARTED |
                                     1u << EVENT_FINISHED | 1u << EVENT_FAILED |
                                     1u << EVENT_DROPPED | 1u << EVENT_RECALLED });
    return 0;
}

static void release_cluster(struct replicate *replicate)
{
    if (replicate->has_cluster)
        sim_cluster_release(&replicate->cluster);
    replicate->has_cluster = false;
    arena_reset(&replicate->round);
}

void replicate_release(struct replicate *replicate)
{
    release_cluster(replicate);
    if (replicate->engine.policy)
        engine_release(&replicate->engine);
    outbox_release(&replicate->outboxes[0]);
    outbox_release(&replicate->outboxes[1]);
    arena_release(&replicate->round);
    arena_release(&replicate->run);
}

void replicate_await_none(struct replicate *replicate)
{
    for (job_id id = 0; id < replicate->source->state.job_count; id++)
        replicate->awaited[id] = false;
    replicate->awaited_count = 0;
}

void replicate_await(struct replicate *replicate, job_id id)
{
    replicate->awaited_count += !replicate->awaited[id];
    replicate->awaited[id] = true;
}

static void begin_figures(struct replicate *replicate)
{
    const struct state *state = &replicate->engine.state;
    replicate->figures = (struct replicate_figures){ 0 };
    replicate->gpu_count = 0;
    for (node_id node = 0; node < state->view.cluster->node_count; node++)
        if (state->free.listed[node])
            replicate->gpu_count += state->view.cluster->nodes[node].gpu_count -
                                    bits_count(state->foreign[node]);
    for (job_id id = 0; id < state->job_count; id++)
        replicate->figures.jobs +=
            state->jobs[id].state != JOB_FREE && state->jobs[id].state != JOB_HELD;
}

int replicate_begin(struct replicate *replicate, uint64_t seed, struct error *err)
{
    const struct state *source = &replicate->source->state;
    struct engine *engine = &replicate->engine;
    static const struct sim_faults none;
    release_cluster(replicate);
    replicate->outboxes[0].count = replicate->outboxes[1].count = 0;
    int r = engine_copy_renew(engine, &replicate->run, replicate->source,
                              replicate->setup.settings, seed, err);
    if (r < 0)
        return r;
    sim_cluster_init(&replicate->cluster, &replicate->round, &engine->state.view,
                     &replicate->outboxes[replicate->reading], &none, seed);
    replicate->has_cluster = true;
    replicate->cluster.silent = !replicate->setup.reports;
    replicate->now_ns = replicate->cluster.now_ns = source->view.now_ns;
    replicate->accepted_first = engine->decision_count - engine->refused_count;
    replicate->accepted_count = replicate->accepted_first;
    replicate->refused_before = engine->refused_count;
    replicate_await_none(replicate);
    for (job_id id = 0; id < source->job_count; id++) {
        replicate->starts[id] = replicate->ends[id] = REPLICATE_NOT_YET;
        if (source->jobs[id].state == JOB_FREE)
            continue;
        admit_job(replicate, id);
        if (source->jobs[id].state != JOB_HELD)
            replicate_await(replicate, id);
    }
    for (uint32_t i = 0; i < replicate->setup.release_count; i++) {
        replicate->released[i] = false;
        replicate_await(replicate, replicate->setup.releases[i].job);
    }
    replicate->look_at_releases = true;
    replicate->next = replicate->setup.arrival
                          ? replicate->setup.arrival(replicate->setup.context)
                          : NULL;
    begin_figures(replicate);
    return engine_copy_reattach(engine, err);
}

/* --- held jobs ---------------------------------------------------------------------- */

static bool can_be_released(const struct replicate *replicate,
                            const struct replicate_release *release)
{
    for (uint32_t i = 0; i < release->after_count; i++)
        if (replicate->ends[release->after[i]] == REPLICATE_NOT_YET)
            return false;
    return true;
}

/* Release those that wait for nothing any more; returns the next time that one of them waits for. */
static int64_t release_jobs(struct replicate *replicate)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < replicate->setup.release_count; i++) {
        const struct replicate_release *release = &replicate->setup.releases[i];
        if (replicate->released[i] || !can_be_released(replicate, release))
            continue;
        if (release->at_ns > replicate->now_ns) {
            next_ns = release->at_ns < next_ns ? release->at_ns : next_ns;
            continue;
        }
        replicate->released[i] = true;
        replicate->figures.jobs++;
        struct event *event = outbox_add(&replicate->outboxes[replicate->reading]);
        event->at_ns = replicate->now_ns;
        event->kind = EVENT_RELEASED;
        event->job = release->job;
    }
    return next_ns;
}

/* --- figures ------------------------------------------------------------------------ */

/* Nothing changes until then. */
static void pass_time(struct replicate *replicate, int64_t until_ns)
{
    const struct state *state = &replicate->engine.state;
    struct replicate_figures *figures = &replicate->figures;
    double span_s = (double)(until_ns - replicate->now_ns) * 1e-9;
    uint32_t free = state->free.gpu_count;
    figures->waiting_s += span_s * state->waiting_count;
    figures->live_s += span_s * (state->waiting_count + state->seated_count);
    figures->gpu_s += span_s * replicate->gpu_count;
    if (free < replicate->gpu_count)
        figures->held_gpu_s += span_s * (replicate->gpu_count - free);
    replicate->now_ns = until_ns;
}

/* --- playing ------------------------------------------------------------------------ */

static int64_t find_next_time(struct replicate *replicate)
{
    int64_t at_ns = engine_wake_ns(&replicate->engine);
    if (replicate->look_at_releases || replicate->release_ns <= replicate->now_ns) {
        replicate->look_at_releases = false;
        replicate->release_ns = release_jobs(replicate);
    }
    if (replicate->release_ns < at_ns)
        at_ns = replicate->release_ns;
    if (replicate->next && replicate->next->submit_ns < at_ns)
        at_ns = replicate->next->submit_ns;
    sim_cluster_communicate(&replicate->cluster, at_ns);
    int64_t next_ns = sim_cluster_next_ns(&replicate->cluster);
    if (replicate->outboxes[replicate->reading].count > 0)
        next_ns = replicate->now_ns; /* reattaching jobs had consequences */
    at_ns = next_ns < at_ns ? next_ns : at_ns;
    return at_ns > replicate->now_ns ? at_ns : replicate->now_ns;
}

/* Jobs that arrive until now; where there is no more room, they do not. */
static void submit_arrivals(struct replicate *replicate)
{
    const struct state *state = &replicate->engine.state;
    uint32_t coming = 0;
    for (; replicate->next && replicate->next->submit_ns <= replicate->now_ns;
         replicate->next = replicate->setup.arrival(replicate->setup.context)) {
        if (state->live_count + ++coming > state->job_max)
            continue;
        struct event *event = outbox_add(&replicate->outboxes[replicate->reading]);
        event->at_ns = replicate->next->submit_ns;
        event->kind = EVENT_SUBMITTED;
        event->job = JOB_NONE;
        event->spec = replicate->next;
    }
}

/* All events so far in one step of the engine; then those that the step caused, and so on. */
static int step_engine(struct replicate *replicate, struct error *err)
{
    uint32_t count = 0;
    do {
        struct outbox *inbox = &replicate->outboxes[replicate->reading];
        replicate->reading ^= 1;
        replicate->cluster.outbox = &replicate->outboxes[replicate->reading];
        int r = engine_step(&replicate->engine, replicate->now_ns, inbox->events,
                            inbox->count, err);
        inbox->count = 0;
        if (r == 0 && ++count > STEPS_AT_ONCE_MAX)
            r = error_set(err, -ELOOP, "%s swaps jobs for ever",
                          replicate->engine.policy->name);
        if (r < 0)
            return r;
    } while (replicate->outboxes[replicate->reading].count > 0);
    return 0;
}

/* How many plans were refused since the last one that was not. */
static uint64_t count_refused(struct replicate *replicate)
{
    const struct engine *engine = &replicate->engine;
    uint64_t accepted = engine->decision_count - engine->refused_count;
    if (accepted != replicate->accepted_count) {
        replicate->accepted_count = accepted;
        replicate->refused_before = engine->refused_count;
    }
    return engine->refused_count - replicate->refused_before;
}

/* A policy that fails always, or now for long, leaves jobs waiting that it might have started. */
static int check_refusals(struct replicate *replicate, struct error *err)
{
    uint64_t refused = count_refused(replicate);
    bool always = replicate->accepted_count == replicate->accepted_first;
    if (replicate->awaited_count == 0 || refused == 0 ||
        (refused < REFUSED_MAX && !always))
        return 0;
    return error_set(err, -EINVAL, "%s", replicate->engine.refusal->text);
}

int replicate_play(struct replicate *replicate, int64_t horizon_ns, uint64_t event_max,
                   struct error *err)
{
    uint64_t before = replicate->engine.event_count;
    int r = 0;
    while (r == 0 && (replicate->awaited_count > 0 || replicate->setup.to_horizon)) {
        replicate->event_count = replicate->engine.event_count - before;
        int64_t next_ns = find_next_time(replicate);
        if (next_ns > horizon_ns) {
            pass_time(replicate, horizon_ns);
            break;
        }
        if (replicate->event_count >= event_max)
            break;
        if (replicate->setup.cancelled && *replicate->setup.cancelled)
            return error_set(err, -ECANCELED, "cancelled");
        pass_time(replicate, next_ns);
        sim_cluster_advance(&replicate->cluster, next_ns);
        submit_arrivals(replicate);
        r = step_engine(replicate, err);
        if (r == 0 && count_refused(replicate) >= REFUSED_MAX)
            break;
    }
    replicate->event_count = replicate->engine.event_count - before;
    return r < 0 ? r : check_refusals(replicate, err);
}
