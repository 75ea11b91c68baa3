/*
 * lookahead.h - how the queue would develop without further preemptions.
 *
 * A small list-scheduling simulation: running jobs run to their ends, and whenever GPUs
 * become free, the first waiting job that fits starts.  GPUs are counted node by node,
 * so a gang waits here, as on the cluster, for one node that holds all of it; CPU and
 * memory are ignored.  After a given number of ends the simulation stops; jobs that
 * have not started by then are counted as if they ran one after the other on the whole
 * cluster.
 *
 * The sizes below bound the work, however large the cluster and the queue.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node_set;

#define LOOKAHEAD_NODES_MAX 128
#define LOOKAHEAD_ENDS_MAX 512
#define LOOKAHEAD_QUEUE_MAX 256
#define LOOKAHEAD_PIECES_MAX 16 /* of one gang */

struct lookahead_node {
    uint32_t type;
    uint32_t free;
    uint32_t node; /* its number in the cluster */
};

/* GPUs that become free at a time; 0: a job begins to wait then. */
struct lookahead_end {
    double at_s;
    uint32_t node;
    uint32_t gpus;
};

/* A waiting job: 'pieces' parts of 'each' GPUs, each part on one node. */
struct lookahead_job {
    double key; /* smallest first */
    double run_s;
    double from_s; /* it cannot start earlier */
    uint32_t each, pieces;
    uint32_t types;             /* one bit per type */
    bool watched;               /* record in watched_s when it starts */
    const struct node_set *set; /* nodes it may use; NULL: any */
};

struct lookahead {
    struct lookahead_node nodes[LOOKAHEAD_NODES_MAX];
    struct lookahead_end ends[LOOKAHEAD_ENDS_MAX];   /* a heap, earliest first */
    struct lookahead_job queue[LOOKAHEAD_QUEUE_MAX]; /* by key */
    uint32_t node_count, end_count, queue_count;
    uint32_t gpu_count; /* of the cluster */
    double now_s;
    double watched_s; /* start of the watched job */
};

/* Empty the simulation. */
void lookahead_clear(struct lookahead *ahead, uint32_t gpu_count);

/* Copies only the elements in use. */
void lookahead_copy(struct lookahead *ahead, const struct lookahead *from);

/* What exceeds the maximum is ignored. */
void lookahead_add_end(struct lookahead *ahead, struct lookahead_end end);
void lookahead_add_job(struct lookahead *ahead, struct lookahead_job job);

/* Start the whole job now, if it fits. */
bool lookahead_start(struct lookahead *ahead, const struct lookahead_job *job);

/*
 * Simulate at most 'depth' times at which GPUs become free, then estimate the rest.
 * Returns the sum of the completion times, counted from 0, of all jobs of the queue.
 */
double lookahead_run(struct lookahead *ahead, uint32_t depth);
