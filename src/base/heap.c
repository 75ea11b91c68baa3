/* heap.c - pairing heaps over a shared pool of nodes. */
#include "base/heap.h"

#include "base/arena.h"

void heap_pool_init(struct heap_pool *pool, struct arena *arena, uint32_t id_max)
{
    pool->nodes = arena_array(arena, struct heap_node, id_max);
}

static bool comes_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

/* The two become one; the later becomes the first child of the earlier. */
static uint32_t meld_heaps(struct heap_node *nodes, uint32_t a, uint32_t b)
{
    if (a == HEAP_NONE)
        return b;
    if (b == HEAP_NONE)
        return a;
    if (comes_before(&nodes[b], &nodes[a])) {
        uint32_t swap = a;
        a = b;
        b = swap;
    }
    uint32_t child = nodes[a].child;
    nodes[b].prev = a;
    nodes[b].next = child;
    if (child != HEAP_NONE)
        nodes[child].prev = b;
    nodes[a].child = b;
    return a;
}

/* Siblings into one: in pairs from the left, then together from the right. */
static uint32_t merge_siblings(struct heap_node *nodes, uint32_t first)
{
    uint32_t pairs = HEAP_NONE; /* a stack, linked by 'prev' */
    while (first != HEAP_NONE) {
        uint32_t a = first;
        uint32_t b = nodes[a].next;
        first = b == HEAP_NONE ? HEAP_NONE : nodes[b].next;
        nodes[a].next = HEAP_NONE;
        if (b != HEAP_NONE)
            nodes[b].next = HEAP_NONE;
        uint32_t pair = meld_heaps(nodes, a, b);
        nodes[pair].prev = pairs;
        pairs = pair;
    }
    uint32_t root = HEAP_NONE;
    while (pairs != HEAP_NONE) {
        uint32_t older = nodes[pairs].prev;
        nodes[pairs].next = HEAP_NONE;
        root = meld_heaps(nodes, root, pairs);
        pairs = older;
    }
    if (root != HEAP_NONE)
        nodes[root].prev = nodes[root].next = HEAP_NONE;
    return root;
}

void heap_push(struct heap_pool *pool, struct heap *heap, uint32_t id, int64_t key,
               uint64_t tie)
{
    pool->nodes[id] = (struct heap_node){
        .key = key, .tie = tie, .child = HEAP_NONE, .next = HEAP_NONE, .prev = HEAP_NONE
    };
    heap->top = meld_heaps(pool->nodes, heap->top, id);
    heap->count++;
}

void heap_remove(struct heap_pool *pool, struct heap *heap, uint32_t id)
{
    struct heap_node *nodes = pool->nodes;
    struct heap_node *node = &nodes[id];
    uint32_t below = merge_siblings(nodes, node->child);

    heap->count--;
    if (heap->top == id) {
        heap->top = below;
        return;
    }
    if (nodes[node->prev].child == id)
        nodes[node->prev].child = node->next;
    else
        nodes[node->prev].next = node->next;
    if (node->next != HEAP_NONE)
        nodes[node->next].prev = node->prev;
    heap->top = meld_heaps(nodes, heap->top, below);
}

uint32_t heap_pop(struct heap_pool *pool, struct heap *heap)
{
    uint32_t top = heap->top;
    if (top != HEAP_NONE)
        heap_remove(pool, heap, top);
    return top;
}
