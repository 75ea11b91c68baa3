/*
 * demand_tree.h - demands that differ in CPUs and memory only, in order of their first jobs.
 *
 * What needs no less of either than a demand that does not fit does not fit as well.  A list
 * of limits remembers what did not fit, and the tree knows the least CPU and memory below
 * every node: a walk in order passes over all demands beyond the limits without a visit to
 * each of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;

#define DEMAND_NONE UINT32_MAX

/* Treaps that share one pool of nodes, one node per id, ordered by (key, tie). */
struct demand_node {
    int64_t key;
    uint64_t tie;
    uint32_t cpu_milli, mem_mib;
    uint32_t cpu_least,
        mem_least; /* below this node, which need not be of one demand */
    uint32_t left, right, parent;
    uint32_t priority;
};

/* No demand fits that is at least as large as this one in both. */
struct demand_limit {
    uint32_t cpu_milli, mem_mib;
    uint32_t next; /* needs more CPU and less memory */
};

struct demand_pool {
    struct demand_node *nodes;
    struct demand_limit *limits;
    uint32_t limit_count; /* since the pool was told to forget them */
};

struct demand_tree {
    uint32_t root;
    uint32_t limit; /* that with the least CPU; DEMAND_NONE: none */
};

void demand_pool_init(struct demand_pool *pool, struct arena *run, uint32_t id_max);

static inline void demand_tree_init(struct demand_tree *tree)
{
    *tree = (struct demand_tree){ .root = DEMAND_NONE, .limit = DEMAND_NONE };
}

/* 'id' must not be in a tree of this pool; 'tie' is unique within the tree. */
void demand_tree_insert(struct demand_pool *pool, struct demand_tree *tree, uint32_t id,
                        int64_t key, uint64_t tie, uint32_t cpu_milli,
                        uint32_t mem_mib);
void demand_tree_remove(struct demand_pool *pool, struct demand_tree *tree,
                        uint32_t id);

/*
 * Pass over all that needs no less of anything than 'id'.  There is place for one limit per
 * id until 'limit_count' is set to 0, which is for when all trees are without limits.
 */
void demand_tree_limit(struct demand_pool *pool, struct demand_tree *tree, uint32_t id);

/* Whether 'id' is within the limits. */
bool demand_tree_is_open(const struct demand_pool *pool, const struct demand_tree *tree,
                         uint32_t id);

/* The next one within the limits; after DEMAND_NONE, the first. */
uint32_t demand_tree_next(const struct demand_pool *pool,
                          const struct demand_tree *tree, uint32_t id);

/* The first at or behind a place in the order, whatever the limits are. */
uint32_t demand_tree_from(const struct demand_pool *pool,
                          const struct demand_tree *tree, int64_t key, uint64_t tie);
