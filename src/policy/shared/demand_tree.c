/* demand_tree.c - demands in order, with the least CPU and memory below each. */
#include "policy/shared/demand_tree.h"

#include "base/arena.h"
#include "base/hash.h"

#define NONE DEMAND_NONE

void demand_pool_init(struct demand_pool *pool, struct arena *run, uint32_t id_max)
{
    pool->nodes = arena_array(run, struct demand_node, id_max);
    pool->limits = arena_array(run, struct demand_limit, id_max);
    pool->limit_count = 0;
}

static uint32_t min_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void refresh_least(struct demand_node *nodes, uint32_t id)
{
    struct demand_node *node = &nodes[id];
    uint32_t below[2] = { node->left, node->right };
    node->cpu_least = node->cpu_milli;
    node->mem_least = node->mem_mib;
    for (uint32_t i = 0; i < 2; i++) {
        if (below[i] == NONE)
            continue;
        node->cpu_least = min_of(node->cpu_least, nodes[below[i]].cpu_least);
        node->mem_least = min_of(node->mem_least, nodes[below[i]].mem_least);
    }
}

/* Hang 'id' where 'old' hung. */
static void replace_child(struct demand_node *nodes, struct demand_tree *tree,
                          uint32_t old, uint32_t id)
{
    uint32_t parent = nodes[old].parent;
    if (parent == NONE)
        tree->root = id;
    else if (nodes[parent].left == old)
        nodes[parent].left = id;
    else
        nodes[parent].right = id;
    if (id != NONE)
        nodes[id].parent = parent;
}

/* Let 'id' take its parent's place. */
static void lift_node(struct demand_node *nodes, struct demand_tree *tree, uint32_t id)
{
    uint32_t parent = nodes[id].parent;
    bool from_left = nodes[parent].left == id;
    uint32_t inner = from_left ? nodes[id].right : nodes[id].left;

    replace_child(nodes, tree, parent, id);
    if (from_left) {
        nodes[parent].left = inner;
        nodes[id].right = parent;
    } else {
        nodes[parent].right = inner;
        nodes[id].left = parent;
    }
    if (inner != NONE)
        nodes[inner].parent = parent;
    nodes[parent].parent = id;
    refresh_least(nodes, parent);
    refresh_least(nodes, id);
}

static bool is_before(const struct demand_node *node, int64_t key, uint64_t tie)
{
    return node->key != key ? node->key < key : node->tie < tie;
}

void demand_tree_insert(struct demand_pool *pool, struct demand_tree *tree, uint32_t id,
                        int64_t key, uint64_t tie, uint32_t cpu_milli, uint32_t mem_mib)
{
    struct demand_node *nodes = pool->nodes;
    uint32_t parent = NONE;
    bool left = false;
    for (uint32_t at = tree->root; at != NONE;) {
        struct demand_node *node = &nodes[at];
        parent = at;
        node->cpu_least = min_of(node->cpu_least, cpu_milli);
        node->mem_least = min_of(node->mem_least, mem_mib);
        left = !is_before(node, key, tie);
        at = left ? node->left : node->right;
    }
    nodes[id] = (struct demand_node){ .key = key,
                                      .tie = tie,
                                      .cpu_milli = cpu_milli,
                                      .mem_mib = mem_mib,
                                      .cpu_least = cpu_milli,
                                      .mem_least = mem_mib,
                                      .left = NONE,
                                      .right = NONE,
                                      .parent = parent,
                                      .priority = (uint32_t)hash_mix(tie) };
    if (parent == NONE)
        tree->root = id;
    else if (left)
        nodes[parent].left = id;
    else
        nodes[parent].right = id;
    while (nodes[id].parent != NONE &&
           nodes[id].priority > nodes[nodes[id].parent].priority)
        lift_node(nodes, tree, id);
}

void demand_tree_remove(struct demand_pool *pool, struct demand_tree *tree, uint32_t id)
{
    struct demand_node *nodes = pool->nodes;

    /* Sink it until it has at most one child. */
    while (nodes[id].left != NONE && nodes[id].right != NONE) {
        uint32_t left = nodes[id].left;
        uint32_t right = nodes[id].right;
        lift_node(nodes, tree,
                  nodes[left].priority > nodes[right].priority ? left : right);
    }
    uint32_t parent = nodes[id].parent;
    replace_child(nodes, tree, id,
                  nodes[id].left != NONE ? nodes[id].left : nodes[id].right);
    for (uint32_t at = parent; at != NONE; at = nodes[at].parent)
        refresh_least(nodes, at);
}

/* --- limits ------------------------------------------------------------------------- */

static bool is_open(const struct demand_pool *pool, uint32_t limit, uint32_t cpu_milli,
                    uint32_t mem_mib)
{
    for (; limit != NONE && pool->limits[limit].cpu_milli <= cpu_milli;
         limit = pool->limits[limit].next)
        if (pool->limits[limit].mem_mib <= mem_mib)
            return false;
    return true;
}

bool demand_tree_is_open(const struct demand_pool *pool, const struct demand_tree *tree,
                         uint32_t id)
{
    const struct demand_node *node = &pool->nodes[id];
    return is_open(pool, tree->limit, node->cpu_milli, node->mem_mib);
}

void demand_tree_limit(struct demand_pool *pool, struct demand_tree *tree, uint32_t id)
{
    const struct demand_node *node = &pool->nodes[id];
    struct demand_limit *limits = pool->limits;
    if (!is_open(pool, tree->limit, node->cpu_milli, node->mem_mib))
        return;
    uint32_t *link = &tree->limit;
    while (*link != NONE && limits[*link].cpu_milli < node->cpu_milli)
        link = &limits[*link].next;
    uint32_t behind = *link; /* those that it makes needless are not linked again */
    while (behind != NONE && limits[behind].mem_mib >= node->mem_mib)
        behind = limits[behind].next;
    *link = pool->limit_count++;
    limits[*link] = (struct demand_limit){ node->cpu_milli, node->mem_mib, behind };
}

/* --- the walk ----------------------------------------------------------------------- */

/* Something below this node may be within the limits. */
static bool may_be_open(const struct demand_pool *pool, const struct demand_tree *tree,
                        uint32_t id)
{
    return id != NONE && is_open(pool, tree->limit, pool->nodes[id].cpu_least,
                                 pool->nodes[id].mem_least);
}

uint32_t demand_tree_next(const struct demand_pool *pool,
                          const struct demand_tree *tree, uint32_t id)
{
    const struct demand_node *nodes = pool->nodes;
    uint32_t down = id == NONE ? tree->root : nodes[id].right;
    for (;;) {
        if (may_be_open(pool, tree, down)) {
            id = down;
            while (may_be_open(pool, tree, nodes[id].left))
                id = nodes[id].left;
        } else if (id == NONE) {
            return NONE;
        } else {
            while (nodes[id].parent != NONE && nodes[nodes[id].parent].right == id)
                id = nodes[id].parent;
            id = nodes[id].parent;
            if (id == NONE)
                return NONE;
        }
        if (demand_tree_is_open(pool, tree, id))
            return id;
        down = nodes[id].right;
    }
}

uint32_t demand_tree_from(const struct demand_pool *pool,
                          const struct demand_tree *tree, int64_t key, uint64_t tie)
{
    const struct demand_node *nodes = pool->nodes;
    uint32_t found = NONE;
    for (uint32_t at = tree->root; at != NONE;) {
        bool before = is_before(&nodes[at], key, tie);
        if (!before)
            found = at;
        at = before ? nodes[at].right : nodes[at].left;
    }
    return found;
}
