/* lazy_tree.c - trees in which members take their places when the order is asked for. */
#include "base/lazy_tree.h"

#include "base/arena.h"

struct lazy_trees *lazy_trees_new(struct arena *arena, uint32_t id_max,
                                  uint32_t tree_count)
{
    struct lazy_trees *lazy = arena_new(arena, struct lazy_trees);
    tree_pool_init(&lazy->pool, arena, id_max);
    lazy->trees = arena_array(arena, struct tree, tree_count);
    for (uint32_t tree = 0; tree < tree_count; tree++)
        tree_init(&lazy->trees[tree]);
    lazy->places = arena_array(arena, struct lazy_place, id_max);
    lazy->late = arena_array(arena, uint32_t, id_max);
    return lazy;
}

static void note_change(struct lazy_trees *lazy, uint32_t id)
{
    if (!lazy->places[id].late)
        lazy->late[lazy->late_count++] = id;
    lazy->places[id].late = true;
}

void lazy_trees_put(struct lazy_trees *lazy, uint32_t tree, uint32_t id, int64_t key,
                    uint64_t tie)
{
    struct lazy_place *place = &lazy->places[id];
    if (place->belongs == tree + 1 && place->key == key && place->tie == tie)
        return;
    place->key = key;
    place->tie = tie;
    place->belongs = (uint16_t)(tree + 1);
    note_change(lazy, id);
}

void lazy_trees_drop(struct lazy_trees *lazy, uint32_t id)
{
    if (lazy->places[id].belongs == 0)
        return;
    lazy->places[id].belongs = 0;
    note_change(lazy, id);
}

static void settle_member(struct lazy_trees *lazy, uint32_t id)
{
    struct lazy_place *place = &lazy->places[id];
    uint32_t from = place->stands;
    uint32_t to = place->belongs;
    if (from && from == to && lazy->pool.nodes[id].tie == place->tie) {
        tree_set_key(&lazy->pool, &lazy->trees[to - 1], id, place->key);
        return;
    }
    if (from)
        tree_remove(&lazy->pool, &lazy->trees[from - 1], id);
    if (to)
        tree_insert(&lazy->pool, &lazy->trees[to - 1], id, place->key, place->tie, 0);
    place->stands = place->belongs;
}

void lazy_trees_settle(struct lazy_trees *lazy)
{
    for (uint32_t i = 0; i < lazy->late_count; i++) {
        lazy->places[lazy->late[i]].late = false;
        settle_member(lazy, lazy->late[i]);
    }
    lazy->late_count = 0;
}
