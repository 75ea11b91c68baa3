/* slurm_reports.c - what the engine is told of a job: events of the attempt in its seats. */
#include <math.h>
#include <stdio.h>

#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"
#include "model/outbox.h"
#include "model/throughput.h"

#define LOAD_MAX_NS (10 * NS_PER_S)

struct event *slurm_report(struct slurm *slurm, enum event_kind kind)
{
    struct event *event = outbox_add(*slurm->setup.outbox);
    event->at_ns = slurm_now(slurm);
    event->kind = kind;
    event->job = JOB_NONE;
    slurm->setup.wake(slurm->setup.context);
    return event;
}

struct event *slurm_report_job(struct slurm_entry *entry, enum event_kind kind)
{
    struct event *event = slurm_report(entry->slurm, kind);
    event->job = entry->slot;
    event->generation = entry->generation;
    event->attempt = entry->now.attempt;
    return event;
}

/* Steps a second, of a job that does not say: as fast as the policy takes it to be. */
static double steps_per_s(const struct slurm_entry *entry)
{
    const struct view *view = entry->slurm->setup.view;
    if (entry->now.count == 0)
        return 1;
    uint32_t type = view->cluster->nodes[entry->now.seats[0].node].type;
    const struct job *job = &view->jobs[entry->slot];
    double rate = type == TYPE_NONE
                      ? 1
                      : throughput_rate(view->rates, job, type, job->gpus, false);
    return rate > 0 ? rate : 1;
}

double slurm_report_steps(const struct slurm_entry *entry)
{
    if (entry->reported_ns > 0 || !slurm_has_begun(entry))
        return entry->steps;
    int64_t ran_ns = slurm_now(entry->slurm) - entry->run.started_ns;
    return entry->steps_kept + (double)ran_ns * 1e-9 * steps_per_s(entry);
}

void slurm_report_started(struct slurm_entry *entry)
{
    if (slurm_has_begun(entry))
        return;
    struct slurm_attempt *run = &entry->run;
    int64_t load_ns = entry->slurm->setup.view->jobs[entry->slot].load_ns;
    run->progress = load_ns == 0 ? PROGRESS_STEPS : PROGRESS_LOADING;
    run->started_ns = slurm_now(entry->slurm);
    run->loaded_at_ns =
        run->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    slurm_report_job(entry, EVENT_STARTED)->loaded = load_ns == 0;
}

void slurm_report_loaded(struct slurm_entry *entry)
{
    if (entry->run.progress == PROGRESS_STEPS)
        return;
    entry->run.progress = PROGRESS_STEPS;
    slurm_report_job(entry, EVENT_LOADED);
}

/* It is not frozen at the end of its lease: it goes on until it is renewed or stopped. */
void slurm_report_lease(struct slurm_entry *entry)
{
    if (isinf(entry->run.lease_end))
        return;
    double left = entry->run.lease_end - slurm_report_steps(entry);
    if (left > 0) {
        if (entry->reported_ns == 0)
            slurm_due(entry, slurm_now(entry->slurm) +
                                 (int64_t)(left / steps_per_s(entry) * 1e9));
        return;
    }
    entry->run.lease_end = INFINITY;
    slurm_report_loaded(entry);
    struct event *event = slurm_report_job(entry, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = slurm_report_steps(entry);
    event->rate_per_s = entry->reported_ns > 0 ? entry->rate_per_s : steps_per_s(entry);
    event->loss = NAN;
}

void slurm_report_end(struct slurm_entry *entry, enum event_kind kind, bool kept)
{
    slurm_report_started(entry);
    bool reports = entry->reported_ns > 0;
    double reached = slurm_report_steps(entry);
    struct event *event = slurm_report_job(entry, kind);
    event->steps_reached = reached;
    event->steps = kept ? reached : reports ? entry->saved : entry->steps_kept;
    event->rate_per_s = reports ? entry->rate_per_s : 0;
    event->loss = entry->loss;
    event->exit_code = entry->signal ? 128 + entry->signal : entry->exit_code;
    event->clean = kept;
    event->why = entry->why[0] ? entry->why : NULL;
    entry->steps = entry->steps_kept = event->steps;
    slurm_drive_next_lease(entry);
}

void slurm_report_lost(struct slurm_entry *entry, const char *why)
{
    if (why != entry->why)
        snprintf(entry->why, sizeof entry->why, "%s", why);
    double reached = slurm_report_steps(entry);
    struct event *event = slurm_report_job(entry, EVENT_LOST);
    event->steps = entry->reported_ns > 0 ? entry->saved : entry->steps_kept;
    event->steps_reached = reached;
    event->loss = entry->loss;
    event->why = entry->why;
    entry->steps = entry->steps_kept = event->steps;
    slurm_drive_next_lease(entry);
}
