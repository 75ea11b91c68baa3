/* tree.h - numbers in order, with the least of a value below each. */
#pragma once

#include <stdint.h>

struct arena;

#define TREE_NONE UINT32_MAX

/*
 * Balanced search trees (treaps) that share one pool of nodes, one node per id, ordered
 * by (key, tie).  Each node also carries a value, and the tree knows the least value
 * below every node: "the first with a value of at most x" takes a walk from the root.
 */
struct tree_node {
    int64_t key;
    uint64_t tie;
    int64_t value;
    int64_t least; /* smallest value in this subtree */
    uint32_t left, right, parent;
    uint32_t priority; /* of the heap order; from 'tie', so the shape is repeatable */
};

struct tree_pool {
    struct tree_node *nodes;
};

struct tree {
    uint32_t root;
    uint32_t first, last; /* in order */
    uint32_t count;
};

void tree_pool_init(struct tree_pool *pool, struct arena *arena, uint32_t id_max);

static inline void tree_init(struct tree *tree)
{
    *tree = (struct tree){ .root = TREE_NONE, .first = TREE_NONE, .last = TREE_NONE };
}

/*
 * 'id' must not be in a tree of this pool; 'tie' is unique within the tree.  One that comes
 * after all others is not looked for from the root.
 */
void tree_insert(struct tree_pool *pool, struct tree *tree, uint32_t id, int64_t key,
                 uint64_t tie, int64_t value);
void tree_remove(struct tree_pool *pool, struct tree *tree, uint32_t id);

/* Give a member another key; cheap where it keeps its place. */
void tree_set_key(struct tree_pool *pool, struct tree *tree, uint32_t id, int64_t key);

static inline uint32_t tree_first(const struct tree_pool *pool, const struct tree *tree)
{
    return tree->first;
}

static inline uint32_t tree_last(const struct tree_pool *pool, const struct tree *tree)
{
    return tree->last;
}

uint32_t tree_next(const struct tree_pool *pool, uint32_t id);
uint32_t tree_prev(const struct tree_pool *pool, uint32_t id);

/* The last in order before (key, tie), which need not be in the tree, or TREE_NONE. */
uint32_t tree_last_before(const struct tree_pool *pool, const struct tree *tree,
                          int64_t key, uint64_t tie);

/* The first in order with a value of at most 'limit', or TREE_NONE. */
uint32_t tree_first_at_most(const struct tree_pool *pool, const struct tree *tree,
                            int64_t limit);
