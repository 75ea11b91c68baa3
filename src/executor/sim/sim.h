/*
 * sim.h - a cluster in virtual time, exact to the nanosecond; faults on request.
 *
 * It alone knows the truth about a simulated job: its real work, how long it really
 * takes to save and to load, when its node will die.  Time stands still while the
 * engine decides and jumps to the next thing that happens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/rng.h"
#include "executor/executor.h"
#include "net/fluid_setup.h"

struct arena;
struct event;
struct fluid;
struct outbox;

/* What is so, whatever was declared. */
struct sim_truth {
    double steps;
    int64_t pause_ns;
    int64_t load_ns;
    int64_t ckpt_ns; /* 0: saves only when it is asked to leave */
    bool fails;
    const struct learning
        *curve; /* of its loss; NULL: silent.  Borrowed for the call */
};

struct sim_faults {
    int64_t mtbf_ns; /* of one node; 0: nodes do not fail */
    int64_t mttr_ns;
};

struct sim_job;
struct sim_more;
struct sim_wait;

struct sim_cluster {
    const struct view *view;
    struct outbox *outbox;
    struct sim_job *jobs;   /* by slot                               */
    uint32_t job_top;       /* slots ever used                       */
    struct sim_wait *waits; /* who waits for whom to leave         */
    uint32_t wait_used, wait_room, wait_free;
    struct heap_pool pool;
    struct heap due; /* jobs, and after them nodes, by when something happens */
    uint32_t job_due_count;
    uint64_t sequence;
    uint64_t order; /* the last number given to an order to start */
    struct sim_faults faults;
    struct rng rng;
    uint32_t down_count; /* nodes that are down */
    bool *node_down;
    int64_t now_ns;

    /* jobs that report losses or use the network; without any none of this is there */
    struct arena *run;
    uint64_t seed;
    struct fluid_setup network;
    struct fluid *fluid;
    struct sim_more *mores;
    uint32_t more_used, more_room;
    job_id *senders; /* by their number in the network */
    uint32_t sender_room;
};

extern const struct executor executor_sim;

void sim_cluster_init(struct sim_cluster *sim, struct arena *run,
                      const struct view *view, struct outbox *outbox,
                      const struct sim_faults *faults, uint64_t seed);

/* A job has arrived in a slot: this is what is so. */
void sim_cluster_admit(struct sim_cluster *sim, job_id job,
                       const struct sim_truth *truth);

/*
 * The engine was built anew, as after a crash: jobs are in other slots of the same view.
 * 'slots' has where each is now, by old slot; JOB_NONE: it is over.
 */
void sim_cluster_move(struct sim_cluster *sim, const job_id *slots);

void sim_cluster_release(struct sim_cluster *sim);

/*
 * When the next thing happens; INT64_MAX: never.  For jobs that use the network it is not
 * known beforehand: let them communicate first, as far as the next thing from elsewhere.
 */
int64_t sim_cluster_next_ns(const struct sim_cluster *sim);
void sim_cluster_communicate(struct sim_cluster *sim, int64_t until_ns);

/* For engine_listen(), of EVENT_LEVELLED: a job's packets have another level. */
void sim_cluster_levelled(void *self, const struct view *view,
                          const struct event *event);

/* Nothing will happen to any job, and no node will come back. */
bool sim_cluster_is_quiet(const struct sim_cluster *sim);

/* Let time pass to 'now_ns': what happens until then is in the outbox. */
void sim_cluster_advance(struct sim_cluster *sim, int64_t now_ns);
