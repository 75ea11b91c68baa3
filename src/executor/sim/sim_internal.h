/* sim_internal.h - what sim.c knows of each job, for reattach.c as well. */
#pragma once

#include "executor/sim/reports.h"
#include "executor/sim/sim.h"

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
    bool has_extra;    /* 'extra' is of this job */
    bool pending;      /* will start, or continue with another size, at 'next' */
    uint32_t extra;    /* 1 + index in 'extras', kept for the slot */

    struct sim_placement next;
    uint64_t order;      /* number of its last start order */
    job_id next_with;    /* the job it will share GPUs with */
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

/* The job makes steps from now on, until its lease or its work is done. */
void sim_make_steps(struct sim_cluster *sim, job_id id);

/* A job has one next occurrence or none. */
void sim_schedule(struct sim_cluster *sim, job_id id, int64_t at_ns);

/* executor_sim's: a job that held GPUs, or was about to, before this cluster began. */
int sim_reattach(void *self, const struct lease *lease, bool stopping,
                 int64_t grace_left_ns, struct error *err);
