/*
 * lazy_tree.h - trees in which members take their places when the order is asked for.
 *
 * A job is started, resumes, is found to take longer and ends, and each of these changes its key;
 * only now and then is the first of all jobs asked for.  So a change is noted, and carried out
 * in the tree before the next walk, once for all changes of a member since the last.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/tree.h"

struct arena;

/* Where a member belongs, and where it still is; trees count from 1, 0: in none. */
struct lazy_place {
    int64_t key;
    uint64_t tie;
    uint16_t belongs, stands;
    bool late; /* on the list */
};

struct lazy_trees {
    struct tree_pool pool;
    struct tree *trees;
    struct lazy_place *places; /* by id */
    uint32_t *late;            /* members that changed since the last walk */
    uint32_t late_count;
};

struct lazy_trees *lazy_trees_new(struct arena *arena, uint32_t id_max,
                                  uint32_t tree_count);

/* Put a member in, or move it to another tree or key; 'tie' is unique within the tree. */
void lazy_trees_put(struct lazy_trees *lazy, uint32_t tree, uint32_t id, int64_t key,
                    uint64_t tie);

/* Take it out; a walk that has reached it goes on.  One that is in no tree stays so. */
void lazy_trees_drop(struct lazy_trees *lazy, uint32_t id);

void lazy_trees_settle(struct lazy_trees *lazy);

static inline bool lazy_trees_has(const struct lazy_trees *lazy, uint32_t id)
{
    return lazy->places[id].belongs != 0;
}

/* The last key that it was put in with. */
static inline int64_t lazy_trees_key(const struct lazy_trees *lazy, uint32_t id)
{
    return lazy->places[id].key;
}

/* Begin a walk, from either end; TREE_NONE: the tree is empty. */
static inline uint32_t lazy_trees_first(struct lazy_trees *lazy, uint32_t tree)
{
    if (lazy->late_count > 0)
        lazy_trees_settle(lazy);
    return tree_first(&lazy->pool, &lazy->trees[tree]);
}

static inline uint32_t lazy_trees_last(struct lazy_trees *lazy, uint32_t tree)
{
    if (lazy->late_count > 0)
        lazy_trees_settle(lazy);
    return tree_last(&lazy->pool, &lazy->trees[tree]);
}

static inline uint32_t lazy_trees_next(const struct lazy_trees *lazy, uint32_t id)
{
    return tree_next(&lazy->pool, id);
}

static inline uint32_t lazy_trees_prev(const struct lazy_trees *lazy, uint32_t id)
{
    return tree_prev(&lazy->pool, id);
}
