/*
 * local_tell.c - what a process of this machine does, told as events: that it started, how far
 * it is, that its lease is done, how it ended.
 */
#include <math.h>

#include "base/units.h"
#include "executor/local/local_run.h"
#include "model/outbox.h"

#define LOAD_MAX_NS (10 * NS_PER_S) /* then it is taken to make steps */

static struct event *emit(struct local_run *run, enum event_kind kind)
{
    const struct local_setup *setup = &run->local->setup;
    struct event *event = outbox_add(*setup->outbox);
    event->at_ns = local_now(run->local);
    event->kind = kind;
    event->job = run->job;
    event->generation = run->generation;
    event->attempt = run->attempt;
    event->loss = NAN;
    if (setup->wake)
        setup->wake(setup->context);
    return event;
}

/* How far it is: as it said, or in seconds that it has run. */
double local_steps_now(const struct local_run *run)
{
    if (run->own_steps || !run->started)
        return run->steps;
    return run->steps_kept + (double)(local_now(run->local) - run->started_ns) * 1e-9;
}

void local_tell_loaded(struct local_run *run)
{
    if (run->loaded)
        return;
    run->loaded = true;
    emit(run, EVENT_LOADED);
}

/* Whoever shares its accelerators and has to be done as well. */
static struct local_run *partner_to_wait_for(const struct local_run *run)
{
    struct local_run *partner =
        run->together ? local_run_in(run->local, run->beside) : NULL;
    bool waits =
        partner && partner->together && partner->leased && !partner->lease_done;
    return waits ? partner : NULL;
}

static void tell_lease_done(struct local_run *run)
{
    if (!run->leased || !run->lease_done || partner_to_wait_for(run))
        return;
    run->leased = false;
    local_tell_loaded(run);
    struct event *event = emit(run, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = local_steps_now(run);
    event->rate_per_s = run->own_steps ? run->rate_per_s : 1;
}

void local_check_lease(struct local_run *run)
{
    if (!run->leased || run->lease_done || local_steps_now(run) < run->lease_end)
        return;
    struct local_run *partner = local_run_in(run->local, run->beside);
    run->lease_done = true;
    tell_lease_done(run);
    if (partner)
        tell_lease_done(partner);
}

void local_plan_ahead(struct local_run *run)
{
    int64_t at_ns = run->loaded ? INT64_MAX : run->loaded_at_ns;
    if (run->leased && !run->lease_done && !run->own_steps) {
        int64_t end_ns =
            run->started_ns + (int64_t)((run->lease_end - run->steps_kept) * 1e9);
        at_ns = end_ns < at_ns ? end_ns : at_ns;
    }
    local_due(run, at_ns);
}

/* Without a word from it: after the load time that was declared, or at once. */
void local_started(struct local_run *run, double ago_s)
{
    if (run->phase > PHASE_RUNS)
        return;
    run->phase = PHASE_RUNS;
    run->tries = 0;
    if (run->started)
        return;
    int64_t load_ns = run->local->setup.view->jobs[run->job].load_ns;
    if (load_ns == 0 && run->expects_reports)
        load_ns = LOAD_MAX_NS;
    run->started = true;
    run->started_ns = local_now(run->local) - (int64_t)(ago_s * 1e9);
    run->loaded = load_ns == 0;
    run->loaded_at_ns =
        run->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    emit(run, EVENT_STARTED)->loaded = run->loaded;
    local_plan_ahead(run);
}

void local_reported(struct local_run *run)
{
    if (run->phase != PHASE_RUNS)
        return;
    local_tell_loaded(run);
    struct event *event = emit(run, EVENT_PROGRESS);
    event->steps = event->steps_reached = run->steps;
    event->rate_per_s = run->own_steps ? run->rate_per_s : 1;
    event->loss = run->loss;
    local_check_lease(run);
    local_plan_ahead(run);
}

struct event *local_tell_end(struct local_run *run, enum event_kind kind)
{
    struct event *event = emit(run, kind);
    event->steps = run->saved;
    event->steps_reached = run->steps;
    event->rate_per_s = run->own_steps ? run->rate_per_s : 0;
    event->loss = run->loss;
    event->why = run->why[0] ? run->why : NULL;
    struct local_run *partner = local_run_in(run->local, run->beside);
    run->phase = PHASE_OVER;
    local_due(run, local_now(run->local) + LOCAL_UNHEARD_NS);
    if (partner)
        tell_lease_done(partner);
    return event;
}
