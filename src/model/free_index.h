/* free_index.h - nodes by what is free on them: what placement searches. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "model/cluster.h"

struct arena;

/* Free on one node. */
struct room {
    uint64_t gpus; /* which accelerators */
    uint32_t cpu_milli;
    uint32_t mem_mib;
};

/* Nodes of one type by how many accelerators are free on them. */
struct free_shelf {
    struct bits by_count[NODE_GPUS_MAX + 1];
    struct shelf_most {
        uint32_t cpu_milli, mem_mib;
    } most[NODE_GPUS_MAX + 1]; /* no node on it has more than that free */
    uint64_t counts;           /* bit n-1: some node has n free */
    uint32_t gpu_count;
};

/*
 * Nodes are grouped by type and number of free GPUs, on "shelves".  The tightest node for a
 * gang is the first on the lowest shelf with enough, and "nothing is free" is one test.  Each
 * shelf knows a bound of what is free on its nodes, which a search in vain makes exact: so
 * what asks for more CPUs or memory than there are is not looked for on node after node.
 */
struct free_index {
    const struct cluster *cluster;
    struct room *rooms;         /* by node                                          */
    bool *listed;               /* on a shelf: up, and known to this index          */
    struct free_shelf *shelves; /* by type; the last, TYPE_NONE, has no accelerators */
    uint32_t gpu_count;         /* free on listed nodes                             */
};

/* Empty: no node is listed. */
void free_index_init(struct free_index *free, struct arena *arena,
                     const struct cluster *cluster);

/* Put a node on the shelf its room belongs to, or move it there; or take it off. */
void free_index_put(struct free_index *free, node_id node, const struct room *room);
void free_index_drop(struct free_index *free, node_id node);

/*
 * The tightest node of 'type' with at least this much free, the lowest number first;
 * NODE_NONE if there is none.  'avoid' (or NULL) is left out, 'within' (or NULL) are all
 * that count.  In a cluster that is filled first fit, the lowest number of all, however
 * much is free there.
 */
node_id free_index_tightest(const struct free_index *free, uint32_t type, uint32_t gpus,
                            uint32_t cpu_milli, uint32_t mem_mib,
                            const struct bits *avoid, const struct bits *within);

/* Walk the nodes of 'type', most free accelerators first: start with NODE_NONE. */
node_id free_index_most(const struct free_index *free, uint32_t type, node_id after,
                        const struct bits *within);

/* Largest number of accelerators free on one node of 'type'. */
static inline uint32_t free_index_largest(const struct free_index *free, uint32_t type)
{
    uint64_t counts = free->shelves[type].counts;
    return counts ? 64 - (uint32_t)__builtin_clzll(counts) : 0;
}
