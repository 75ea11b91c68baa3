/*
 * sim.h - a cluster in virtual time, exact to the nanosecond; faults on request.
 *
 * Only this executor knows the truth about a simulated job: its real work, its real
 * times to checkpoint and to resume, when its node will fail.  Time stands still while
 * the engine decides and jumps to the next occurrence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/timer_heap.h"
#include "executor/executor.h"
#include "net/fluid_setup.h"

struct arena;
struct event;
struct fluid;
struct outbox;

/* The true values, whatever was declared. */
struct sim_truth {
    double steps;
    int64_t pause_ns;
    int64_t load_ns;
    int64_t ckpt_ns; /* 0: saves only when it is stopped */
    bool fails;
    bool keeps_nothing; /* leaves after 'pause_ns' and has lost what it made */
    bool unseen;        /* its pause and load are not measured              */
    uint32_t kind;      /* row of the table of true rates; KIND_NONE: by its step_s */
    const struct learning
        *curve; /* of its loss; NULL: reports none.  Borrowed for the call */
};

struct sim_faults {
    int64_t mtbf_ns; /* of one node; 0: nodes do not fail */
    int64_t mttr_ns;
};

struct sim_job;
struct sim_extra;
struct sim_wait;

struct sim_cluster {
    const struct view *view;
    struct outbox *outbox;
    struct sim_job *jobs;   /* by slot */
    uint32_t job_top;       /* slots ever used */
    struct sim_wait *waits; /* which job waits for which to vacate GPUs */
    uint32_t wait_used, wait_room, wait_free;
    struct timer_heap due;  /* jobs, and behind them nodes, by their next occurrence */
    uint32_t job_due_count; /* of these, jobs */
    uint64_t order;         /* number of the last start order */
    bool
        silent; /* jobs report nothing while they run, and none waits for the network */
    const struct throughput *hidden; /* true rates that are not told; NULL: they are */
    struct sim_faults faults;
    struct rng rng;
    uint32_t down_count; /* nodes that are down by 'faults' */
    bool *node_down;
    int64_t now_ns;

    /* for jobs that report losses or use the network; unused without any */
    struct arena *run;
    uint64_t seed;
    struct fluid_setup network;
    struct fluid *fluid;
    struct sim_extra *extras;
    uint32_t extra_used, extra_room;
    job_id *senders; /* by their number in the network */
    uint32_t sender_room;
};

extern const struct executor executor_sim;

void sim_cluster_init(struct sim_cluster *sim, struct arena *run,
                      const struct view *view, struct outbox *outbox,
                      const struct sim_faults *faults, uint64_t seed);

/*
 * A job was admitted into this slot: its true values.  Before a cluster that begins in the middle
 * has its jobs reattached, all of them are admitted, and 'now_ns' is set.
 */
void sim_cluster_admit(struct sim_cluster *sim, job_id job,
                       const struct sim_truth *truth);

/*
 * The engine was rebuilt, as after a crash: jobs have other slots of the same view.
 * 'slots' has the new slot by old slot; JOB_NONE: the job is over.
 */
void sim_cluster_move(struct sim_cluster *sim, const job_id *slots);

void sim_cluster_release(struct sim_cluster *sim);

/*
 * Time of the next occurrence; INT64_MAX: none.  For jobs that use the network it is
 * not known in advance: let them communicate first, until the next occurrence of
 * another kind.
 */
static inline int64_t sim_cluster_next_ns(const struct sim_cluster *sim)
{
    return timer_heap_next_ns(&sim->due);
}

void sim_network_communicate(struct sim_cluster *sim, int64_t until_ns);

static inline void sim_cluster_communicate(struct sim_cluster *sim, int64_t until_ns)
{
    if (sim->fluid)
        sim_network_communicate(sim, until_ns);
}

/*
 * For engine_add_observer(), for these kinds of events: a job that was placed is about to be
 * started, and after EVENT_LEVELLED a job's packets have another level.
 */
#define SIM_CLUSTER_KINDS (1u << EVENT_PLACED | 1u << EVENT_LEVELLED)
void sim_cluster_event(void *self, const struct view *view, const struct event *event);

/* No job has a next occurrence, and no node is down. */
bool sim_cluster_is_quiet(const struct sim_cluster *sim);

/* A node goes down now, with what runs on it, or comes back; not one of 'faults'. */
void sim_cluster_set_node(struct sim_cluster *sim, node_id node, bool down);

/* Advance to 'now_ns', adding the events until then to the outbox. */
void sim_cluster_advance(struct sim_cluster *sim, int64_t now_ns);
