/*
 * lookahead.h - how a queue would develop without preemptions, by list scheduling.
 *
 * Running jobs run to their ends, and whenever GPUs become free, the first waiting job that
 * fits starts.  GPUs are counted node by node, so a gang waits here, as on the cluster, for one
 * node that holds all of it.  After a given number of ends the simulation stops; jobs that have
 * not started by then are counted as if they ran one after the other on the whole cluster.
 *
 *     lookahead_clear(&ahead, gpu_count);
 *     at = lookahead_add_node(&ahead, (struct lookahead_node){ ... });
 *     lookahead_add_end(&ahead, (struct lookahead_end){ when_s, at, gpus });
 *     lookahead_add_job(&ahead, (struct lookahead_job){ ... });
 *     sum_s = lookahead_run(&ahead, 32);
 *
 * Times are seconds from now on.  The sizes below bound the work, however large the cluster
 * and the queue.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct node_set;

#define LOOKAHEAD_NODES_MAX 128
#define LOOKAHEAD_ENDS_MAX 512
#define LOOKAHEAD_QUEUE_MAX 256
#define LOOKAHEAD_QUEUE_WORDS (LOOKAHEAD_QUEUE_MAX / 64)
#define LOOKAHEAD_PIECES_MAX 16 /* of one gang */
#define LOOKAHEAD_SIZES 8 /* GPUs on a node: 0, 1, 2 to 3, 4 to 7, ... 64 and more */
#define LOOKAHEAD_NOWHERE UINT32_MAX

struct lookahead_node {
    uint32_t type;
    uint32_t free;
    uint32_t node; /* its number in the cluster */
    uint32_t cpu_milli, mem_mib;
};

/* GPUs that become free at a time; 0: a job begins to wait then. */
struct lookahead_end {
    double at_s;
    uint32_t node;
    uint32_t gpus;
    uint32_t cpu_milli, mem_mib;
};

/* A waiting job: 'pieces' parts of 'each' GPUs, each part on one node. */
struct lookahead_job {
    double key; /* smallest first */
    double run_s;
    double work_s;          /* of run_s: the part that takes longer on a slower type */
    const double *slowness; /* by type, of its fastest one 1; NULL: all are alike    */
    double from_s;          /* it cannot start earlier */
    double weight;          /* of its completion time */
    uint32_t each, pieces;
    uint32_t cpu_milli, mem_mib; /* of each part; 0: does not matter */
    uint32_t types;              /* one bit per type */
    bool watched;                /* record in watched_s when it starts */
    const struct node_set *set;  /* nodes it may use; NULL: any */
};

/* A set of places in the queue. */
struct lookahead_places {
    uint64_t words[LOOKAHEAD_QUEUE_WORDS];
};

struct lookahead {
    struct lookahead_node nodes[LOOKAHEAD_NODES_MAX];
    uint32_t open[LOOKAHEAD_NODES_MAX]; /* nodes with room no job was tried on yet */
    uint32_t open_count;
    uint32_t free_gpus[TYPES_MAX + 1];             /* by type: on all nodes */
    struct lookahead_end ends[LOOKAHEAD_ENDS_MAX]; /* a heap, earliest first */
    struct lookahead_job jobs[LOOKAHEAD_QUEUE_MAX];
    uint16_t queue[LOOKAHEAD_QUEUE_MAX]; /* those that waited at the start, by key */
    struct lookahead_places waiting;     /* those that still do, while it runs     */
    struct lookahead_places small[LOOKAHEAD_SIZES]; /* no larger than this size    */
    uint32_t least_each; /* no job of the queue has fewer GPUs on each node */
    uint32_t node_count, end_count, job_count, queue_count;
    uint32_t gpu_count; /* of the cluster */
    double now_s;
    double watched_s; /* start of the watched job */
};

/* Empty the simulation of a cluster with so many GPUs. */
void lookahead_clear(struct lookahead *ahead, uint32_t gpu_count);

/* Copies only the elements in use. */
void lookahead_copy(struct lookahead *ahead, const struct lookahead *from);

/* Returns its number in the simulation; LOOKAHEAD_NOWHERE: the simulation is full. */
uint32_t lookahead_add_node(struct lookahead *ahead, struct lookahead_node node);

/* What exceeds the maximum is ignored. */
void lookahead_add_end(struct lookahead *ahead, struct lookahead_end end);
void lookahead_add_job(struct lookahead *ahead, const struct lookahead_job *job);

/* Start the whole job now, if it fits, on the fastest type; how long it runs, -1: not. */
double lookahead_start(struct lookahead *ahead, const struct lookahead_job *job);

/*
 * Simulate at most 'depth' times at which GPUs become free, then estimate the rest.
 * Returns the sum of the completion times, counted from 0, of all jobs of the queue.
 */
double lookahead_run(struct lookahead *ahead, uint32_t depth);

/* Resources of this node become free, or are taken. */
void lookahead_free(struct lookahead *ahead, uint32_t at, uint32_t gpus,
                    uint32_t cpu_milli, uint32_t mem_mib);
void lookahead_take(struct lookahead *ahead, uint32_t at, uint32_t gpus,
                    uint32_t cpu_milli, uint32_t mem_mib);
