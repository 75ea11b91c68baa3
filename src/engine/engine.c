/* engine.c - events in, one decision, orders out. */
#include "engine/engine.h"

#include <assert.h>

#include "base/error.h"
#include "base/sort.h"
#include "executor/executor.h"
#include "flow/flow.h"
#include "model/plan.h"
#include "model/state_rates.h"
#include "policy/policy.h"
#include "predict/pair_completion.h"
#include "predict/rate_completion.h"

#define ROUND_BYTES (256 * 1024)

/* What a plan does with a job; by slot, for the jobs of the plan, and cleared after use. */
struct planned_job {
    uint32_t grant; /* 1 + the first change that grants it seats; 0: none */
    bool resumes;   /* it is revoked to run elsewhere or at another size */
};

/* Set a policy up in this empty arena, which becomes its own; on failure the present one stays. */
static int install_policy_in(struct engine *engine, struct arena own,
                             const struct policy *policy, const char *settings,
                             struct error *err)
{
    void *self = arena_alloc(&own, 1, policy->self_size, 16);
    param_defaults(policy->params, self);
    int r = param_parse(policy->params, self, policy->name, settings, err);
    if (r == 0 && policy->init)
        r = policy->init(self, &engine->state.view, engine->seed, &own, err);
    if (r < 0) {
        arena_release(&own);
        return r;
    }
    if (engine->policy && engine->policy->fini)
        engine->policy->fini(engine->policy_self);
    engine->spare = engine->own;
    engine->own = own;
    engine->policy = policy;
    engine->policy_self = self;
    return 0;
}

static int install_policy(struct engine *engine, const struct policy *policy,
                          const char *settings, struct error *err)
{
    struct arena own;
    arena_init(&own, 0);
    arena_release(&engine->spare);
    int r = install_policy_in(engine, own, policy, settings, err);
    arena_release(&engine->spare);
    return r;
}

/* The same for a flow policy. */
static int install_flow_policy(struct engine *engine, const struct flow_policy *flow,
                               const char *settings, struct error *err)
{
    const struct view *view = &engine->state.view;
    struct arena own;
    arena_init(&own, 0);
    void *self = arena_alloc(&own, 1, flow->self_size + 1, 16);
    struct flow_plan *plan = arena_new(&own, struct flow_plan);
    plan->changes = arena_array(&own, struct flow_change, view->job_max);
    param_defaults(flow->params, self);
    int r = param_parse(flow->params, self, flow->name, settings, err);
    if (r == 0 && flow->init)
        r = flow->init(self, view, &own, err);
    if (r < 0) {
        arena_release(&own);
        return r;
    }
    if (engine->flow && engine->flow->fini)
        engine->flow->fini(engine->flow_self);
    arena_release(&engine->flow_own);
    engine->flow_own = own;
    engine->flow = flow;
    engine->flow_self = self;
    engine->flow_plan = plan;
    return 0;
}

int engine_init(struct engine *engine, struct arena *run,
                const struct engine_setup *setup, struct error *err)
{
    *engine = (struct engine){ .executor = setup->executor,
                               .executor_self = setup->executor_self,
                               .wake_ns = INT64_MAX,
                               .flow_wake_ns = INT64_MAX,
                               .boundary_ns = INT64_MAX,
                               .calendar_ns = INT64_MAX };
    state_init(&engine->state, run, setup->cluster, setup->rates, setup->job_max);
    if (setup->learns)
        state_learn(&engine->state, run);
    eligibility_init(&engine->eligibility, run, setup->job_max,
                     setup->cluster->node_count);
    engine->plan = plan_new(&engine->state, run);
    engine->planned_jobs = arena_array(run, struct planned_job, setup->job_max);
    engine->leaving = arena_array(run, job_id, setup->job_max);
    engine->refusal = arena_new(run, struct error);
    arena_init(&engine->round, ROUND_BYTES);

    engine->seed = setup->seed;
    int r = install_policy(engine, setup->policy, setup->settings, err);
    if (r == 0 && setup->flow)
        r = install_flow_policy(engine, setup->flow, setup->flow_settings, err);
    if (r < 0)
        engine_release(engine);
    return r;
}

void engine_release(struct engine *engine)
{
    if (engine->policy && engine->policy->fini)
        engine->policy->fini(engine->policy_self);
    engine->policy = NULL;
    if (engine->flow && engine->flow->fini)
        engine->flow->fini(engine->flow_self);
    engine->flow = NULL;
    arena_release(&engine->own);
    arena_release(&engine->spare);
    arena_release(&engine->flow_own);
    arena_release(&engine->round);
    state_release(&engine->state);
}

void engine_add_observer(struct engine *engine, struct engine_observer observer)
{
    assert(engine->observer_count < OBSERVERS_MAX);
    for (uint32_t kind = 0; kind < EVENT_KIND_COUNT; kind++)
        if (observer.kinds == 0 || observer.kinds >> kind & 1)
            engine->observers_of[kind] |= (uint8_t)(1u << engine->observer_count);
    engine->observers[engine->observer_count++] = observer;
}

/* Apply an event to the state, then pass it to the policies and the observers. */
static void apply_event(struct engine *engine, struct event *event)
{
    if (!state_apply(&engine->state, event))
        return; /* it belongs to an earlier attempt */
    engine->event_count++;
    const struct view *view = &engine->state.view;
    eligibility_tell(engine, event);
    if (engine->flow && engine->flow->observe)
        engine->flow->observe(engine->flow_self, view, event);
    for (uint32_t left = engine->observers_of[event->kind]; left; left &= left - 1) {
        const struct engine_observer *observer =
            &engine->observers[__builtin_ctz(left)];
        observer->event(observer->self, view, event);
    }
}

/* --- rates that are learned ----------------------------------------------------------- */

static void mark_kind(void *context, uint32_t kind)
{
    struct engine *engine = context;
    state_mark_kind(&engine->state, kind);
}

/* The policy orders the job anew; one that the calendar withholds it does not know. */
static void tell_rated(void *context, job_id job)
{
    struct engine *engine = context;
    struct event event = { .at_ns = engine->state.view.now_ns,
                           .kind = EVENT_RATED,
                           .job = job,
                           .generation = engine->state.jobs[job].generation };
    if (engine->state.jobs[job].state != JOB_HELD)
        eligibility_tell(engine, &event);
}

/* What was reported changes what is expected of all jobs of a kind, and of kinds like it. */
static void learn_rates(struct engine *engine)
{
    struct state *state = &engine->state;
    if (rate_table_is_stale(&state->rates))
        rate_completion_update(&state->rates, mark_kind, engine);
    if (state->pairs.stale)
        pair_completion_update(&state->pairs, &state->rates, mark_kind, engine);
    if (state->rated_count > 0)
        state_rate_jobs(state, tell_rated, engine);
}

/* All live jobs in order of submission, which is the order of a policy's queue. */
static const struct sort_item *live_jobs(struct engine *engine)
{
    const struct state *state = &engine->state;
    uint32_t live = state->live_count;
    struct sort_item *items = arena_array(&engine->round, struct sort_item, live + 1);
    struct sort_item *spare = arena_array(&engine->round, struct sort_item, live + 1);
    uint32_t count = 0;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            items[count++] = (struct sort_item){ (double)state->jobs[id].id, id };
    assert(count == live);
    sort_items(items, spare, count);
    return items;
}

/* Report every live job to a newly installed policy. */
static void adopt_jobs(struct engine *engine, bool to_policy, bool to_flow)
{
    const struct view *view = &engine->state.view;
    const struct sort_item *items = live_jobs(engine);
    if (to_policy && engine->tell_past && engine->policy->recall)
        engine->tell_past(engine->past_context, engine);
    for (uint32_t i = 0; i < engine->state.live_count; i++) {
        struct event event = { .at_ns = view->now_ns,
                               .kind = EVENT_ADOPTED,
                               .job = items[i].value,
                               .generation = view->jobs[items[i].value].generation };
        if (to_policy)
            eligibility_tell(engine, &event);
        if (to_flow && engine->flow && engine->flow->observe)
            engine->flow->observe(engine->flow_self, view, &event);
    }
    /* They decide at the next step, whatever its events. */
    if (to_policy)
        engine->wake_ns = view->now_ns;
    if (to_flow && engine->flow)
        engine->flow_wake_ns = view->now_ns;
    arena_reset(&engine->round);
}

int engine_set_policy(struct engine *engine, const struct policy *policy,
                      const char *settings, struct error *err)
{
    int r = install_policy(engine, policy, settings, err);
    if (r == 0)
        adopt_jobs(engine, true, false);
    return r;
}

int engine_inherit_policy(struct engine *engine, const struct engine *source,
                          const char *settings, struct error *err)
{
    struct arena own = engine->spare; /* as large as it was needed last time */
    arena_reset(&own);
    engine->spare = (struct arena){ 0 };
    int r = install_policy_in(engine, own, source->policy, settings, err);
    if (r < 0)
        return r;
    if (source->policy->inherit)
        source->policy->inherit(engine->policy_self, &engine->state.view,
                                source->policy_self);
    return 0;
}

void engine_adopt_jobs(struct engine *engine)
{
    adopt_jobs(engine, true, false);
}

int engine_set_flow(struct engine *engine, const struct flow_policy *flow,
                    const char *settings, struct error *err)
{
    int r = install_flow_policy(engine, flow, settings, err);
    if (r < 0)
        return r;
    engine->flatten = !flow->decide;
    adopt_jobs(engine, false, true);
    return 0;
}

void engine_adopt(struct engine *engine)
{
    const struct state *state = &engine->state;
    if (state->calendar.count > 0) {
        engine->boundary_ns = calendar_next_ns(&state->calendar, state->view.now_ns);
        engine->calendar_ns = state->view.now_ns;
    }
    adopt_jobs(engine, true, true);
}

bool engine_replay(struct engine *engine, struct event *event)
{
    engine->event_count++;
    return state_apply(&engine->state, event);
}

/* One pass over the changes, so that a question about a job takes no other. */
static void index_plan(struct engine *engine)
{
    const struct plan *plan = engine->plan;
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        struct planned_job *planned = &engine->planned_jobs[change->job];
        if (change->kind == CHANGE_REVOKE)
            planned->resumes = change->rule == RULE_RESIZE && !change->undone;
        else if (change->kind == CHANGE_GRANT && planned->grant == 0)
            planned->grant = (uint32_t)i + 1;
    }
}

static void clear_plan_index(struct engine *engine)
{
    const struct plan *plan = engine->plan;
    for (size_t i = 0; i < plan_change_count(plan); i++)
        engine->planned_jobs[plan_change(plan, i)->job] = (struct planned_job){ 0 };
}

/*
 * A job that gets another size need not stop for it, unless it is to share GPUs there or
 * has to wait for other jobs that change as well: those could wait for it in turn.
 */
static bool can_resize(const struct engine *engine, const struct change *revoke)
{
    const struct plan *plan = engine->plan;
    const struct planned_job *planned = &engine->planned_jobs[revoke->job];
    if (!engine->executor->resize || revoke->rule != RULE_RESIZE ||
        !job_is_elastic(&engine->state.jobs[revoke->job]) || planned->grant == 0)
        return false;
    const struct change *grant = plan_change(plan, planned->grant - 1);
    if (grant->beside != JOB_NONE || grant->shared)
        return false;
    const struct pending_part *pending_shares = plan_pending(plan, grant);
    for (uint32_t p = 0; p < grant->pending_count; p++)
        if (pending_shares[p].victim != grant->job &&
            engine->planned_jobs[pending_shares[p].victim].resumes)
            return false;
    return true;
}

static void order_stop(struct engine *engine, const struct change *change)
{
    struct event event = { .at_ns = engine->state.view.now_ns,
                           .kind = EVENT_RECALLED,
                           .job = change->job,
                           .rule = change->rule,
                           .grace_ns = engine->state.jobs[change->job].grace_ns,
                           .wait_saved_ns = change->wait_saved_ns,
                           .beneficiary = change->beneficiary };
    apply_event(engine, &event);
}

static void order_seats(struct engine *engine, const struct change *change,
                        enum event_kind kind)
{
    struct event event = { .at_ns = engine->state.view.now_ns,
                           .kind = kind,
                           .job = change->job,
                           .seats = plan_seats(engine->plan, change),
                           .seat_count = change->seat_count,
                           .pending_shares = plan_pending(engine->plan, change),
                           .pending_count = change->pending_count,
                           .steps_max = change->steps_max,
                           .beside = change->beside,
                           .spread = change->spread };
    apply_event(engine, &event);
}

static void order_drop(struct engine *engine, const struct change *change)
{
    struct event event = { .at_ns = engine->state.view.now_ns,
                           .kind = EVENT_DROPPED,
                           .job = change->job };
    apply_event(engine, &event);
}

/* A cancelled job that runs is stopped at once. */
static void order_cancelled_stop(struct engine *engine, job_id job)
{
    if (!job_runs(&engine->state.jobs[job]))
        return; /* it waited and is gone, is stopping already, or has not started */
    struct event event = { .at_ns = engine->state.view.now_ns,
                           .kind = EVENT_RECALLED,
                           .job = job,
                           .rule = RULE_CANCEL,
                           .wait_saved_ns = -1,
                           .beneficiary = JOB_NONE };
    apply_event(engine, &event);
}

static bool has_revocation(const struct plan *plan)
{
    for (size_t i = 0; i < plan_change_count(plan); i++)
        if (plan_change(plan, i)->kind == CHANGE_REVOKE)
            return true;
    return false;
}

static void record_stops(struct engine *engine)
{
    const struct plan *plan = engine->plan;
    if (!has_revocation(plan))
        return;
    index_plan(engine);
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        if (change->kind != CHANGE_REVOKE || change->undone)
            continue;
        if (!can_resize(engine, change))
            order_stop(engine, change);
    }
    clear_plan_index(engine);
}

/* Record the plan as events, stops first: they free the resources that grants need. */
static void record_orders(struct engine *engine)
{
    const struct plan *plan = engine->plan;
    size_t count = plan_change_count(plan);
    record_stops(engine);
    for (size_t i = 0; i < count; i++) {
        const struct change *change = plan_change(plan, i);
        if (change->kind == CHANGE_GRANT)
            order_seats(engine, change,
                        job_runs(&engine->state.jobs[change->job]) ? EVENT_RESIZING
                                                                   : EVENT_PLACED);
        else if (change->kind == CHANGE_RENEW)
            order_seats(engine, change, EVENT_RENEWED);
        else if (change->kind == CHANGE_DROP)
            order_drop(engine, change);
    }
}

static int commit_observers(struct engine *engine, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < engine->observer_count && r == 0; i++)
        if (engine->observers[i].commit)
            r = engine->observers[i].commit(engine->observers[i].self, err);
    return r;
}

/* Jobs that must stop before this one can start, in the order they were revoked. */
static uint32_t list_victims(const struct state *state, job_id id, struct arena *arena,
                             job_id **ret_after)
{
    uint32_t pending_shares = 0, count = 0;
    for (uint32_t p = state->jobs[id].pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor)
        pending_shares++;
    if (pending_shares == 0 && state->jobs[id].state != JOB_STOPPING)
        return 0; /* it waits for none, not even for itself */
    job_id *after = arena_array(arena, job_id, pending_shares + 1);
    uint32_t at = pending_shares; /* the newest is the first of its list */
    for (uint32_t p = state->jobs[id].pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor)
        after[--at] = state->pending_shares[p].victim;
    for (uint32_t i = 0; i < pending_shares; i++) {
        bool known = false;
        for (uint32_t k = 0; k < count; k++)
            known = known || after[k] == after[i];
        if (!known)
            after[count++] = after[i];
    }
    *ret_after = after;
    return count;
}

struct lease engine_lease(const struct engine *engine, job_id id, bool next,
                          struct arena *arena)
{
    const struct state *state = &engine->state;
    const struct job *job = &state->jobs[id];
    const struct seat_row *row = next ? &job->next : &job->seats;
    const struct seat *seats = &state->seats[row->first];
    bool moves = next && job->state == JOB_STOPPING;
    job_id *after = NULL;
    uint32_t after_count = next ? list_victims(state, id, arena, &after) : 0;
    bool itself = false;
    for (uint32_t k = 0; k < after_count; k++)
        itself = itself || after[k] == id;
    if (moves && !itself) /* it must stop before it can start */
        after[after_count++] = id;
    struct lease lease = { .job = id,
                           .generation = job->generation,
                           .attempt = job->attempt + moves,
                           .type = state->view.cluster->nodes[seats[0].node].type,
                           .spread = job->spread_now,
                           .beside = next && job->seats.count > 0 ? job->next_partner
                                                                  : job->partner,
                           .seats = seats,
                           .seat_count = row->count,
                           .after = after,
                           .after_count = after_count,
                           .steps_max = job->steps_max };
    for (uint32_t i = 0; i < row->count; i++)
        lease.gpus += seat_gpu_count(&seats[i]);
    return lease;
}

static int start_or_resize(struct engine *engine, const struct change *change,
                           struct error *err)
{
    struct lease lease = engine_lease(engine, change->job, true, &engine->round);
    lease.beside = change->beside; /* in a new pair only the second names the first */
    lease.together = change->together;
    if (job_runs(&engine->state.jobs[change->job]))
        return engine->executor->resize(engine->executor_self, &lease, err);
    return engine->executor->start(engine->executor_self, &lease, err);
}

/* Starts before stops: an executor that queues successors hands the GPUs over at once. */
static int carry_out(struct engine *engine, struct error *err)
{
    const struct plan *plan = engine->plan;
    const struct executor *executor = engine->executor;
    size_t count = plan_change_count(plan);
    for (size_t i = 0; i < count; i++) {
        const struct change *change = plan_change(plan, i);
        int r = 0;
        if (change->kind == CHANGE_GRANT)
            r = start_or_resize(engine, change, err);
        else if (change->kind == CHANGE_RENEW)
            r = executor->renew(engine->executor_self, change->job, change->steps_max,
                                change->together, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++) {
        const struct change *change = plan_change(plan, i);
        if (change->kind != CHANGE_REVOKE || change->undone)
            continue;
        const struct job *job = &engine->state.jobs[change->job];
        if (job->state != JOB_STOPPING)
            continue; /* it is resized instead */
        int r = executor->stop(engine->executor_self, change->job, job->grace_ns, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Pass on to the executor the cancelled jobs that have not ended yet. */
static int carry_cancels(struct engine *engine, const struct event *events,
                         uint32_t count, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        if (events[i].kind != EVENT_CANCELLED)
            continue;
        const struct job *job = &engine->state.jobs[events[i].job];
        if (job->state != JOB_FREE && job->leaving)
            r = engine->executor->cancel(engine->executor_self, events[i].job, err);
    }
    return r;
}

/*
 * A job that has started or resumed does what was ordered: that needs no new decision, and
 * its traffic concerns the flow policy only, and what it does with its GPU those that share.  But where a start takes time, a job may have
 * been submitted meanwhile that could preempt it, and only running jobs can be preempted.
 */
static bool only_confirms(const struct engine *engine, const struct event *events,
                          uint32_t count)
{
    bool at_once = engine->decided_ns == engine->state.view.now_ns;
    for (uint32_t i = 0; i < count; i++)
        if (events[i].kind != EVENT_LOADED && events[i].kind != EVENT_SENT &&
            events[i].kind != EVENT_GPU_USE &&
            !(events[i].kind == EVENT_STARTED && at_once))
            return false;
    return count > 0;
}

/* The flow policy assigns no levels any more: every job gets level 0. */
static void reset_levels(struct engine *engine)
{
    const struct state *state = &engine->state;
    struct flow_plan *plan = engine->flow_plan;
    for (job_id id = 0; engine->flatten && id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            flow_set(plan, &state->view, id, 0);
    engine->flatten = false;
}

/* Ask the flow policy; levels that change are events like any order. */
static int ask_flow(struct engine *engine, struct error *err)
{
    if (!engine->flow || (!engine->flow->decide && !engine->flatten)) {
        engine->flow_wake_ns = INT64_MAX; /* it has nothing to decide */
        return 0;
    }
    const struct view *view = &engine->state.view;
    struct flow_plan *plan = engine->flow_plan;
    plan->change_count = 0;
    plan->wake_ns = INT64_MAX;
    reset_levels(engine);
    int r = engine->flow->decide
                ? engine->flow->decide(engine->flow_self, view, plan, engine->refusal)
                : 0;
    engine->flow_wake_ns = plan->wake_ns;
    if (r < 0) {
        engine->flow_refused_count++; /* levels stay as they are */
        return 0;
    }
    for (uint32_t i = 0; i < plan->change_count; i++) {
        struct event event = { .at_ns = view->now_ns,
                               .kind = EVENT_LEVELLED,
                               .job = plan->changes[i].job,
                               .level = plan->changes[i].level };
        apply_event(engine, &event);
    }
    engine->level_count += plan->change_count;
    return plan->change_count > 0 ? commit_observers(engine, err) : 0;
}

/* A policy's timer may be set by any event, also by one that needs no decision. */
static void note_wake(struct engine *engine)
{
    const struct policy *policy = engine->policy;
    int64_t wake_ns = policy->wake_ns
                          ? policy->wake_ns(engine->policy_self, &engine->state.view)
                          : INT64_MAX;
    if (wake_ns < engine->wake_ns)
        engine->wake_ns = wake_ns;
}

/* Ask the policy for a plan, and carry it out. */
static int run_policy(struct engine *engine, struct error *err)
{
    struct state *state = &engine->state;
    struct plan *plan = engine->plan;
    plan_begin(plan);
    engine->decision_count++;
    engine->decided_ns = state->view.now_ns;
    bool timed = engine->clock_ns && engine->decision_count % engine->timed_every == 0;
    int64_t begin_ns = timed ? engine->clock_ns() : 0;
    int r = engine->policy->decide(engine->policy_self, &state->view, plan,
                                   &engine->round, engine->refusal);
    if (timed)
        histogram_add(&engine->decide_ns, (uint64_t)(engine->clock_ns() - begin_ns));
    if (r == 0)
        r = plan_check(plan, engine->refusal);
    engine->wake_ns = plan_next_wake(plan);
    plan_end(plan);

    if (r < 0) {
        engine->refused_count++; /* the cluster keeps running what it runs */
        r = commit_observers(engine, err);
    } else {
        record_orders(engine);
        r = commit_observers(engine,
                             err); /* nothing is launched before its order is durable */
        if (r == 0)
            r = carry_out(engine, err);
    }
    arena_reset(&engine->round);
    return r;
}

/* --- the calendar ------------------------------------------------------------------- */

/* Tell jobs to stop that hold what an entry is about to bar, a grace period before. */
static void order_departures(struct engine *engine)
{
    const struct state *state = &engine->state;
    int64_t now_ns = state->view.now_ns;
    engine->calendar_ns = engine->boundary_ns;
    for (job_id id = 0; id < state->job_count; id++) {
        if (!job_runs(&state->jobs[id]))
            continue;
        int64_t stop_ns = calendar_stop_ns(&state->view, id);
        if (stop_ns <= now_ns && job_can_be_stopped(&state->jobs[id])) {
            struct event event = { .at_ns = now_ns,
                                   .kind = EVENT_RECALLED,
                                   .job = id,
                                   .rule = RULE_CALENDAR,
                                   .grace_ns = state->jobs[id].grace_ns,
                                   .wait_saved_ns = -1,
                                   .beneficiary = JOB_NONE };
            engine->leaving[engine->leaving_count++] = id;
            apply_event(engine, &event);
        } else if (stop_ns > now_ns && stop_ns < engine->calendar_ns) {
            engine->calendar_ns = stop_ns;
        }
    }
}

/*
 * Entries begin and end by events.  Jobs are looked at only while there are entries; one that is
 * about to change its size is stopped when that is done.  True if the policy has to be asked.
 */
static bool keep_calendar(struct engine *engine, int64_t now_ns, bool changed)
{
    const struct calendar *calendar = &engine->state.calendar;
    uint64_t before = engine->event_count;
    if (calendar->count == 0 && !changed)
        return false;
    if (engine->boundary_ns <= now_ns) {
        struct event event = { .at_ns = now_ns,
                               .kind = EVENT_BOUNDARY,
                               .job = JOB_NONE };
        apply_event(engine, &event);
        changed = true;
    }
    if (changed)
        engine->boundary_ns = calendar_next_ns(calendar, now_ns);
    order_departures(engine);
    return eligibility_keep(engine, changed) || engine->event_count != before;
}

static int carry_departures(struct engine *engine, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < engine->leaving_count && r == 0; i++) {
        job_id id = engine->leaving[i];
        if (engine->state.jobs[id].state == JOB_STOPPING)
            r = engine->executor->stop(engine->executor_self, id,
                                       engine->state.jobs[id].grace_ns, err);
    }
    engine->leaving_count = 0;
    return r;
}

int engine_step(struct engine *engine, int64_t now_ns, struct event *events,
                uint32_t count, struct error *err)
{
    bool reserved = false;
    engine->state.view.now_ns = now_ns;
    for (uint32_t i = 0; i < count; i++) {
        apply_event(engine, &events[i]);
        reserved = reserved || events[i].kind == EVENT_RESERVED;
        if (events[i].kind == EVENT_CANCELLED)
            order_cancelled_stop(engine, events[i].job);
    }
    if (engine->state.learns)
        learn_rates(engine);
    bool kept = !keep_calendar(engine, now_ns, reserved);
    bool idle = count == 0 && engine->flow_wake_ns <= now_ns;
    bool rests = kept && (idle || only_confirms(engine, events, count));
    if (rests)
        note_wake(engine);
    int r = rests && engine->wake_ns > now_ns ? commit_observers(engine, err)
                                              : run_policy(engine, err);
    note_wake(engine);
    if (r == 0)
        r = carry_departures(engine, err);
    if (r == 0)
        r = carry_cancels(engine, events, count, err);
    return r < 0 ? r : ask_flow(engine, err);
}
