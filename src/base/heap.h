/* heap.h - indexed heaps, ties by a second number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;

#define HEAP_NONE UINT32_MAX

/*
 * Pairing heaps that share one pool of nodes, one node per id: an id is in at most one
 * heap of a pool at a time, pushing and removing allocate nothing, and a thousand heaps
 * cost no more than one.  The smallest (key, tie) is on top.
 */
struct heap_node {
    int64_t key;
    uint64_t tie;
    uint32_t child; /* first child                               */
    uint32_t next;  /* next sibling                              */
    uint32_t prev;  /* previous sibling, or parent of the first  */
};

struct heap_pool {
    struct heap_node *nodes;
};

struct heap {
    uint32_t top; /* HEAP_NONE: empty */
    uint32_t count;
};

void heap_pool_init(struct heap_pool *pool, struct arena *arena, uint32_t id_max);

static inline void heap_init(struct heap *heap)
{
    *heap = (struct heap){ .top = HEAP_NONE };
}

/* 'id' must not be in a heap of this pool. */
void heap_push(struct heap_pool *pool, struct heap *heap, uint32_t id, int64_t key,
               uint64_t tie);

/* 'id' must be in this heap. */
void heap_remove(struct heap_pool *pool, struct heap *heap, uint32_t id);

/* Take the top away and return it, or HEAP_NONE. */
uint32_t heap_pop(struct heap_pool *pool, struct heap *heap);
