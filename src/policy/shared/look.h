/*
 * look.h - what the queue will do if nobody interferes.
 *
 * A small list simulation: whoever runs runs to the end, and whenever room comes free
 * the first in the queue who fits takes it.  Rooms are counted by GPUs, node by node,
 * so a gang waits here as it does on the cluster for one node that holds all of it; CPU
 * and memory are left out.  It looks at so many ends and no further; what has not
 * started by then is added up as if it ran one after the other on the whole cluster.
 *
 * The work is bounded by the sizes below, not by the cluster or the queue.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node_set;

#define LOOK_NODES_MAX 128
#define LOOK_ENDS_MAX 512
#define LOOK_QUEUE_MAX 256
#define LOOK_PIECES_MAX 16 /* of one gang */

struct look_node {
    uint32_t type;
    uint32_t free;
    uint32_t node; /* in the cluster */
};

/* GPUs that come free at a time; 0: somebody waits from then on. */
struct look_end {
    double at_s;
    uint32_t node;
    uint32_t gpus;
};

/* Somebody who waits: for 'pieces' times 'each' GPUs, every piece on one node. */
struct look_job {
    double key; /* smallest first */
    double run_s;
    double from_s; /* not before */
    uint32_t each, pieces;
    uint32_t types;             /* bits */
    bool watched;               /* when does this one start? */
    const struct node_set *set; /* nodes it may use; NULL: any */
};

struct look {
    struct look_node nodes[LOOK_NODES_MAX];
    struct look_end ends[LOOK_ENDS_MAX];   /* a heap: soonest first */
    struct look_job queue[LOOK_QUEUE_MAX]; /* in order              */
    uint32_t node_count, end_count, queue_count;
    uint32_t gpu_count; /* of the cluster */
    double now_s;
    double watched_s; /* when the watched one started */
};

/* From now on nothing is known. */
void look_clear(struct look *look, uint32_t gpu_count);

/* As 'from' is; only what is used is copied. */
void look_copy(struct look *look, const struct look *from);

/* What does not fit any more is left out of sight. */
void look_add_end(struct look *look, struct look_end end);
void look_add_job(struct look *look, struct look_job job);

/* Seat somebody at once, whole, if there is room. */
bool look_seat(struct look *look, const struct look_job *job);

/*
 * Play at most 'depth' moments at which room comes free, then add up the rest.  Returns
 * the sum of the completion times, from time 0, of all that were in the queue.
 */
double look_play(struct look *look, uint32_t depth);
