/*
 * sim_internal.h - a simulated job as the files of sim.h see it: what happens to it (sim.c) and
 * how far it comes (sim_steps.c).
 */
#pragma once

#include <math.h>

#include "executor/reports.h"
#include "executor/sim/sim.h"
#include "model/event.h"
#include "model/outbox.h"

enum phase {
    PHASE_AWAY,     /* waits in the queue, or is over            */
    PHASE_LOADING,  /* until its load time is over               */
    PHASE_RUNNING,  /* until its lease or its work is done       */
    PHASE_DONE,     /* waits for its partner to be done as well  */
    PHASE_IDLE,     /* its lease is done                         */
    PHASE_RESIZING, /* until it has paid for going on otherwise  */
    PHASE_LEAVING,  /* until its pause or its grace is over      */
};

/* Where a job is to run. */
struct stand {
    uint32_t attempt;
    uint32_t type, gpus;
    bool spread;
    bool together;
    uint64_t steps_max;
};

struct sim_job {
    struct sim_truth truth;
    enum phase phase;
    uint32_t generation;
    struct stand now;
    job_id partner; /* is on the same accelerators                             */
    job_id coming;  /* will come there                                         */
    double steps;   /* at the anchor */
    double rate_per_s;
    int64_t anchor_ns;
    double steps_kept; /* when it came into its seats, or saved by itself later */
    int64_t ran_ns;    /* time making steps since it came, up to the anchor      */
    double lease_end;  /* steps at which its lease is done; 0: open              */
    bool clean;        /* while it leaves: it will have saved its state          */
    bool queued;       /* in the heap                                            */
    bool has_more;     /* what stands in 'more' is of this job                   */
    uint32_t more;     /* 1 + place in the list of those, which stays the slot's */

    bool pending; /* is to start, or to go on with another size, at 'next' */
    struct stand next;
    job_id next_with;    /* who will be there as well         */
    uint64_t order;      /* a number for each time it is told */
    uint32_t waits_for;  /* jobs that have to leave first     */
    uint32_t first_wait; /* of those who wait for this one    */
};

/* What there is to a job that reports losses or uses the network. */
struct sim_more {
    struct reports reports;
    double report_at; /* steps after which it reports next                   */
    uint32_t sender;  /* its number in the network, or FLUID_NONE            */
    double base;      /* steps it had made when it entered the network       */
    double told;      /* steps it had made when it last reported its speed   */
    int64_t told_ns;
    double rate_per_s; /* between the last two reports                        */
};

static inline struct sim_more *more_of(const struct sim_cluster *sim,
                                       const struct sim_job *job)
{
    return job->has_more ? &sim->mores[job->more - 1] : NULL;
}

/* It has one thing that will happen to it next, or none. */
static inline void unschedule(struct sim_cluster *sim, job_id id)
{
    if (!sim->jobs[id].queued)
        return;
    heap_remove(&sim->pool, &sim->due, id);
    sim->jobs[id].queued = false;
    sim->job_due_count--;
}

static inline void schedule(struct sim_cluster *sim, job_id id, int64_t at_ns)
{
    unschedule(sim, id);
    heap_push(&sim->pool, &sim->due, id, at_ns, sim->sequence++);
    sim->jobs[id].queued = true;
    sim->job_due_count++;
}

static inline struct event *emit(struct sim_cluster *sim, job_id id,
                                 enum event_kind kind)
{
    const struct sim_job *job = &sim->jobs[id];
    struct event *event = outbox_add(sim->outbox);
    event->at_ns = sim->now_ns;
    event->kind = kind;
    event->job = id;
    event->generation = job->generation;
    event->attempt = job->now.attempt;
    event->loss = NAN;
    return event;
}

/* It stops making steps. */
void sim_leave_network(struct sim_cluster *sim, struct sim_job *job);
/* Move the anchor to now. */
void sim_settle(struct sim_cluster *sim, struct sim_job *job);
double sim_true_rate(const struct sim_cluster *sim, job_id id);
/* From now on it makes steps, until its lease or its work is done. */
void sim_make_steps(struct sim_cluster *sim, job_id id);
/* As it begins to make steps: where it begins. */
void sim_report_first(struct sim_cluster *sim, job_id id);
/* A report is due, and neither its lease nor its work is done with it. */
bool sim_only_reports(struct sim_cluster *sim, job_id id);
/* Somebody came to or went from the accelerators it uses. */
void sim_rerate(struct sim_cluster *sim, job_id id);
