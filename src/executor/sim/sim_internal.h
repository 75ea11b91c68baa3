/*
 * sim_internal.h - a simulated job: its occurrences (sim.c) and its progress
 * (sim_steps.c).
 */
#pragma once

#include <math.h>

#include "executor/sim/reports.h"
#include "executor/sim/sim.h"
#include "model/event.h"
#include "model/outbox.h"

enum sim_phase {
    SIM_AWAY,     /* waits in the queue, or has ended */
    SIM_LOADING,  /* until its time to resume is over */
    SIM_RUNNING,  /* until its lease or its work is done */
    SIM_DONE,     /* waits for its partner to be done as well */
    SIM_IDLE,     /* its lease is done */
    SIM_RESIZING, /* until it has checkpointed and resumed */
    SIM_LEAVING,  /* until its checkpoint or its grace period is over */
};

/* A placement of a job. */
struct sim_placement {
    uint32_t attempt;
    uint32_t type, gpus;
    bool spread;
    bool together;
    uint64_t steps_max;
};

struct sim_job {
    struct sim_truth truth;
    enum sim_phase phase;
    uint32_t generation;
    struct sim_placement now;
    job_id partner; /* shares its GPUs */
    job_id coming;  /* will share its GPUs */
    double steps;   /* at the anchor */
    double rate_per_s;
    int64_t anchor_ns;
    double steps_kept; /* when it started, or at its last checkpoint */
    int64_t ran_ns;    /* time making steps since its start, up to the anchor */
    double lease_end;  /* steps at which its lease is done; 0: open */
    bool clean;        /* while stopping: its checkpoint will be complete */
    bool queued;       /* in the heap */
    bool has_extra;    /* 'extra' is of this job */
    uint32_t extra;    /* 1 + index in 'extras', kept for the slot */

    bool pending; /* will start, or continue with another size, at 'next' */
    struct sim_placement next;
    job_id next_with;    /* the job it will share GPUs with */
    uint64_t order;      /* number of its last start order */
    uint32_t waits_for;  /* jobs that have to leave first */
    uint32_t first_wait; /* of the jobs that wait for this one */
};

/* Extra data of a job that reports losses or uses the network. */
struct sim_extra {
    struct reports reports;
    double report_at; /* step of its next report */
    uint32_t sender;  /* its number in the network, or FLUID_NONE */
    double base;      /* steps it had made when it entered the network */
    double reported;  /* steps at its last report of speed */
    int64_t reported_ns;
    double rate_per_s; /* between the last two reports */
};

static inline struct sim_extra *extra_of(const struct sim_cluster *sim,
                                         const struct sim_job *job)
{
    return job->has_extra ? &sim->extras[job->extra - 1] : NULL;
}

/* A job has one next occurrence or none. */
static inline void sim_unschedule(struct sim_cluster *sim, job_id id)
{
    if (!sim->jobs[id].queued)
        return;
    heap_remove(&sim->pool, &sim->due, id);
    sim->jobs[id].queued = false;
    sim->job_due_count--;
}

static inline void sim_schedule(struct sim_cluster *sim, job_id id, int64_t at_ns)
{
    sim_unschedule(sim, id);
    heap_push(&sim->pool, &sim->due, id, at_ns, sim->sequence++);
    sim->jobs[id].queued = true;
    sim->job_due_count++;
}

static inline struct event *sim_emit(struct sim_cluster *sim, job_id id,
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

/* The job stops making steps. */
void sim_leave_network(struct sim_cluster *sim, struct sim_job *job);
/* Count the steps made until now, and move the anchor to now. */
void sim_settle(struct sim_cluster *sim, struct sim_job *job);
double sim_true_rate(const struct sim_cluster *sim, job_id id);
/* The job makes steps from now on, until its lease or its work is done. */
void sim_make_steps(struct sim_cluster *sim, job_id id);
/* Report the state before the first step. */
void sim_report_first(struct sim_cluster *sim, job_id id);
/* If a report is due, but not the end of lease or work, make it. */
bool sim_report_if_due(struct sim_cluster *sim, job_id id);
/* A job came to or left the GPUs it uses: its rate has changed. */
void sim_change_rate(struct sim_cluster *sim, job_id id);
