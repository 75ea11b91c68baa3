/* timer_heap.c - a heap with four children to a node, in one array. */
#include "base/timer_heap.h"

#include <assert.h>

#include "base/arena.h"

#define ID_BITS 24
#define LINE_BYTES 64
#define CHILDREN 4

void timer_heap_init(struct timer_heap *heap, struct arena *arena, uint32_t id_max)
{
    assert(id_max < 1u << ID_BITS);
    *heap = (struct timer_heap){ .places = arena_array(arena, uint32_t, id_max) };
    /* The first is the last of its line: all children of a node are then in one. */
    struct timer *lines =
        arena_alloc(arena, (size_t)id_max + CHILDREN - 1, sizeof *lines, LINE_BYTES);
    heap->timers = lines + CHILDREN - 1;
}

/* Equal times are rare; which of two others is earlier is hard to guess, so without a jump. */
static bool is_before(const struct timer *a, const struct timer *b)
{
    if (__builtin_expect(a->at_ns == b->at_ns, false))
        return a->order < b->order;
    return a->at_ns < b->at_ns;
}

static uint32_t id_of(const struct timer *timer)
{
    return (uint32_t)(timer->order & ((1u << ID_BITS) - 1));
}

static void put_timer(struct timer_heap *heap, uint32_t place,
                      const struct timer *timer)
{
    heap->timers[place] = *timer;
    heap->places[id_of(timer)] = place + 1;
}

/* Put a timer where it belongs, at 'place' or above. */
static void put_upwards(struct timer_heap *heap, uint32_t place, struct timer timer)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / CHILDREN;
        if (!is_before(&timer, &heap->timers[parent]))
            break;
        put_timer(heap, place, &heap->timers[parent]);
        place = parent;
    }
    put_timer(heap, place, &timer);
}

static uint32_t find_earlier(const struct timer *timers, uint32_t a, uint32_t b)
{
    return is_before(&timers[b], &timers[a]) ? b : a;
}

static uint32_t find_earliest(const struct timer *timers, uint32_t first, uint32_t end)
{
    if (end - first == CHILDREN)
        return find_earlier(timers, find_earlier(timers, first, first + 1),
                            find_earlier(timers, first + 2, first + 3));
    uint32_t best = first;
    for (uint32_t i = first + 1; i < end; i++)
        best = find_earlier(timers, best, i);
    return best;
}

/*
 * The place is empty: earlier children move up, and the timer goes to where they end.  It
 * was the last of all and belongs near the bottom most often, so it is compared only there.
 */
static void put_downwards(struct timer_heap *heap, uint32_t place, struct timer timer)
{
    for (;;) {
        uint32_t first = place * CHILDREN + 1;
        if (first >= heap->count)
            break;
        uint32_t end = first + CHILDREN < heap->count ? first + CHILDREN : heap->count;
        uint32_t best = find_earliest(heap->timers, first, end);
        put_timer(heap, place, &heap->timers[best]);
        place = best;
    }
    put_upwards(heap, place, timer);
}

/* The last timer fills the place of one that goes. */
static void close_gap(struct timer_heap *heap, uint32_t place)
{
    struct timer last = heap->timers[--heap->count];
    if (place == heap->count)
        return;
    if (place > 0 && is_before(&last, &heap->timers[(place - 1) / CHILDREN]))
        put_upwards(heap, place, last);
    else
        put_downwards(heap, place, last);
}

void timer_heap_set(struct timer_heap *heap, uint32_t id, int64_t at_ns)
{
    struct timer timer = { at_ns, heap->sequence++ << ID_BITS | id };
    uint32_t place = heap->places[id];
    if (place == 0)
        put_upwards(heap, heap->count++, timer);
    else if (is_before(&timer, &heap->timers[place - 1]))
        put_upwards(heap, place - 1, timer);
    else
        put_downwards(heap, place - 1, timer);
}

void timer_heap_remove(struct timer_heap *heap, uint32_t id)
{
    uint32_t place = heap->places[id];
    if (place == 0)
        return;
    heap->places[id] = 0;
    close_gap(heap, place - 1);
}

uint32_t timer_heap_first(const struct timer_heap *heap)
{
    return heap->count > 0 ? id_of(&heap->timers[0]) : TIMER_NONE;
}

uint32_t timer_heap_pop(struct timer_heap *heap)
{
    uint32_t id = timer_heap_first(heap);
    if (id == TIMER_NONE)
        return id;
    heap->places[id] = 0;
    close_gap(heap, 0);
    return id;
}
