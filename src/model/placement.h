/*
 * placement.h - which nodes a gang goes to.
 *
 * The rules of placement, in one place: of the types a job may use the one it runs fastest
 * on; the tightest single node; else as few nodes as can be, full ones and the tightest
 * for the rest; else, where it may be spread, any that are free.  Free resources come before
 * those that other jobs have yet to give up.  A job that may use some nodes only
 * (node_set.h) gets no others, and all that must be among them.
 *
 * Where the uplinks of racks are oversubscribed, a gang over several free nodes that sends over
 * the network goes to one rack, the tightest that has them; else to few, the roomiest first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"

struct cluster;
struct free_index;
struct throughput;

/* Nodes of a rack that could hold a part of the gang. */
struct rack_room {
    uint32_t large; /* a large part */
    uint32_t any;   /* one at least */
};

/* Where to look, and where to write what was found. */
struct placement_search {
    const struct cluster *cluster;
    const struct throughput *rates;
    const struct free_index *free;
    const struct free_index *vacated; /* nodes with revoked resources; or NULL */
    uint32_t vacated_gpu_count;
    struct rack_room *racks; /* scratch, one per rack; NULL: they make no difference */
    struct seat *seats; /* a row that grows: nodes, and in 'reserved' how many GPUs */
    uint32_t seat_count, seat_max;
};

/* What is asked for. */
struct placement_request {
    const struct job *job;
    uint32_t gpus;
    uint32_t types;           /* bits                                   */
    uint32_t nodes;           /* exactly so many; 0: as few as can be   */
    bool spread;              /* may be spread over more                */
    const struct bits *avoid; /* or NULL                                */
};

/* Append the nodes of the whole gang to the row; false, and nothing, if it does not fit. */
bool placement_find(struct placement_search *search,
                    const struct placement_request *want);

/* CPU and memory that go with so many accelerators of a job's gang. */
struct room_part placement_need(const struct job *job, uint32_t gpus);

/* A gang over several nodes: so many large parts, so many small ones. */
struct placement_parts {
    uint32_t large, large_count;
    uint32_t small, small_count;
};

/*
 * As many nodes as it asks for ('nodes'), evenly filled; or, where that is 0, full nodes of
 * 'node_max' GPUs and one for the rest.
 */
struct placement_parts placement_parts(uint32_t gpus, uint32_t nodes,
                                       uint32_t node_max);

/* Enough nodes of that type have enough free GPUs; nothing else is looked at. */
bool placement_has_nodes(const struct free_index *free, const struct job *job,
                         uint32_t type);
