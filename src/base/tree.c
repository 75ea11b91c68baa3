/* tree.c - treaps over a shared pool of nodes. */
#include "base/tree.h"

#include <stdbool.h>

#include "base/arena.h"

void tree_pool_init(struct tree_pool *pool, struct arena *arena, uint32_t id_max)
{
    pool->nodes = arena_array(arena, struct tree_node, id_max);
}

static uint32_t mix_priority(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return (uint32_t)(x >> 32);
}

static void refresh_least(struct tree_node *nodes, uint32_t id)
{
    struct tree_node *node = &nodes[id];
    node->least = node->value;
    if (node->left != TREE_NONE && nodes[node->left].least < node->least)
        node->least = nodes[node->left].least;
    if (node->right != TREE_NONE && nodes[node->right].least < node->least)
        node->least = nodes[node->right].least;
}

/* The same for all nodes above, as far as it changes them. */
static void refresh_above(struct tree_node *nodes, uint32_t id)
{
    for (; id != TREE_NONE; id = nodes[id].parent) {
        int64_t before = nodes[id].least;
        refresh_least(nodes, id);
        if (nodes[id].least == before)
            return;
    }
}

/* Hang 'id' where 'old' hung. */
static void replace_child(struct tree_node *nodes, struct tree *tree, uint32_t old,
                          uint32_t id)
{
    uint32_t parent = nodes[old].parent;
    if (parent == TREE_NONE)
        tree->root = id;
    else if (nodes[parent].left == old)
        nodes[parent].left = id;
    else
        nodes[parent].right = id;
    if (id != TREE_NONE)
        nodes[id].parent = parent;
}

/* Let 'id' take its parent's place. */
static void lift_node(struct tree_node *nodes, struct tree *tree, uint32_t id)
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
    if (inner != TREE_NONE)
        nodes[inner].parent = parent;
    nodes[parent].parent = id;
    refresh_least(nodes, parent);
    refresh_least(nodes, id);
}

static bool is_before(const struct tree_node *node, int64_t key, uint64_t tie)
{
    return node->key != key ? node->key < key : node->tie < tie;
}

/* The node that gets a new child, below which there will be this value; TREE_NONE: none. */
static uint32_t find_parent(struct tree_node *nodes, const struct tree *tree,
                            int64_t key, uint64_t tie, int64_t value)
{
    uint32_t parent = tree->last;
    if (parent != TREE_NONE && is_before(&nodes[parent], key, tie)) {
        for (uint32_t at = parent; at != TREE_NONE && value < nodes[at].least;
             at = nodes[at].parent)
            nodes[at].least = value;
        return parent;
    }
    for (uint32_t at = tree->root; at != TREE_NONE;) {
        parent = at;
        struct tree_node *node = &nodes[at];
        if (value < node->least)
            node->least = value;
        at = is_before(node, key, tie) ? node->right : node->left;
    }
    return parent;
}

void tree_insert(struct tree_pool *pool, struct tree *tree, uint32_t id, int64_t key,
                 uint64_t tie, int64_t value)
{
    struct tree_node *nodes = pool->nodes;
    uint32_t parent = find_parent(nodes, tree, key, tie, value);
    bool left = parent != TREE_NONE && !is_before(&nodes[parent], key, tie);
    nodes[id] = (struct tree_node){ .key = key,
                                    .tie = tie,
                                    .value = value,
                                    .least = value,
                                    .left = TREE_NONE,
                                    .right = TREE_NONE,
                                    .parent = parent,
                                    .priority = mix_priority(tie) };
    if (parent == TREE_NONE)
        tree->root = id;
    else if (left)
        nodes[parent].left = id;
    else
        nodes[parent].right = id;
    if (tree->first == parent && (left || parent == TREE_NONE))
        tree->first = id;
    if (tree->last == parent && !left)
        tree->last = id;
    tree->count++;

    while (nodes[id].parent != TREE_NONE &&
           nodes[id].priority > nodes[nodes[id].parent].priority)
        lift_node(nodes, tree, id);
}

void tree_remove(struct tree_pool *pool, struct tree *tree, uint32_t id)
{
    struct tree_node *nodes = pool->nodes;
    if (tree->first == id)
        tree->first = tree_next(pool, id);
    if (tree->last == id)
        tree->last = tree_prev(pool, id);

    /* Sink it until it has at most one child. */
    while (nodes[id].left != TREE_NONE && nodes[id].right != TREE_NONE) {
        uint32_t left = nodes[id].left;
        uint32_t right = nodes[id].right;
        lift_node(nodes, tree,
                  nodes[left].priority > nodes[right].priority ? left : right);
    }
    uint32_t child = nodes[id].left != TREE_NONE ? nodes[id].left : nodes[id].right;
    uint32_t parent = nodes[id].parent;
    replace_child(nodes, tree, id, child);
    tree->count--;
    refresh_above(nodes, parent);
}

void tree_set_key(struct tree_pool *pool, struct tree *tree, uint32_t id, int64_t key)
{
    struct tree_node *nodes = pool->nodes;
    uint64_t tie = nodes[id].tie;
    int64_t before = nodes[id].key;
    uint32_t prev = key < before ? tree_prev(pool, id) : TREE_NONE;
    uint32_t next = key > before ? tree_next(pool, id) : TREE_NONE;
    if ((prev != TREE_NONE && !is_before(&nodes[prev], key, tie)) ||
        (next != TREE_NONE && is_before(&nodes[next], key, tie))) {
        tree_remove(pool, tree, id);
        tree_insert(pool, tree, id, key, tie, nodes[id].value);
        return;
    }
    nodes[id].key = key;
}

uint32_t tree_next(const struct tree_pool *pool, uint32_t id)
{
    const struct tree_node *nodes = pool->nodes;
    if (nodes[id].right != TREE_NONE) {
        for (id = nodes[id].right; nodes[id].left != TREE_NONE;)
            id = nodes[id].left;
        return id;
    }
    while (nodes[id].parent != TREE_NONE && nodes[nodes[id].parent].right == id)
        id = nodes[id].parent;
    return nodes[id].parent;
}

uint32_t tree_prev(const struct tree_pool *pool, uint32_t id)
{
    const struct tree_node *nodes = pool->nodes;
    if (nodes[id].left != TREE_NONE) {
        for (id = nodes[id].left; nodes[id].right != TREE_NONE;)
            id = nodes[id].right;
        return id;
    }
    while (nodes[id].parent != TREE_NONE && nodes[nodes[id].parent].left == id)
        id = nodes[id].parent;
    return nodes[id].parent;
}

uint32_t tree_last_before(const struct tree_pool *pool, const struct tree *tree,
                          int64_t key, uint64_t tie)
{
    const struct tree_node *nodes = pool->nodes;
    uint32_t found = TREE_NONE;
    for (uint32_t at = tree->root; at != TREE_NONE;) {
        bool before = is_before(&nodes[at], key, tie);
        if (before)
            found = at;
        at = before ? nodes[at].right : nodes[at].left;
    }
    return found;
}

uint32_t tree_first_at_most(const struct tree_pool *pool, const struct tree *tree,
                            int64_t limit)
{
    const struct tree_node *nodes = pool->nodes;
    uint32_t at = tree->root;
    if (at == TREE_NONE || nodes[at].least > limit)
        return TREE_NONE;
    for (;;) {
        uint32_t left = nodes[at].left;
        if (left != TREE_NONE && nodes[left].least <= limit)
            at = left;
        else if (nodes[at].value <= limit)
            return at;
        else
            at = nodes[at].right;
    }
}
