/* timer_heap.h - what is due when: a time for each of many numbers, the earliest on top. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;

#define TIMER_NONE UINT32_MAX

/*
 * A heap with four children to a node, in one array, so that going down a level reads one
 * line of the cache.  A number has at most one time.  Equal times are due in the order in
 * which they were set.
 */
struct timer_heap {
    struct timer *timers; /* the earliest first */
    uint32_t *places;     /* by number: 1 + its place in 'timers'; 0: it has no time */
    uint32_t count;
    uint64_t sequence; /* times set so far */
};

struct timer {
    int64_t at_ns;
    uint64_t order; /* when it was set, and below that its number */
};

/* For numbers below 'id_max', which is below 2^24. */
void timer_heap_init(struct timer_heap *heap, struct arena *arena, uint32_t id_max);

/* Set the time of a number, or another one than it has. */
void timer_heap_set(struct timer_heap *heap, uint32_t id, int64_t at_ns);

/* Without effect on a number that has no time. */
void timer_heap_remove(struct timer_heap *heap, uint32_t id);

/* Take the earliest away and return its number, or TIMER_NONE. */
uint32_t timer_heap_pop(struct timer_heap *heap);

static inline bool timer_heap_has(const struct timer_heap *heap, uint32_t id)
{
    return heap->places[id] != 0;
}

/* The number with the earliest time, or TIMER_NONE. */
uint32_t timer_heap_first(const struct timer_heap *heap);

/* The earliest time; INT64_MAX: there is none. */
static inline int64_t timer_heap_next_ns(const struct timer_heap *heap)
{
    return heap->count > 0 ? heap->timers[0].at_ns : INT64_MAX;
}
