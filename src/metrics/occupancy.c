/* occupancy.c - which job held which GPUs from when to when. */
#include "metrics/occupancy.h"

#include <stdlib.h>

#include "base/grow.h"
#include "model/event_record.h"

void occupancy_init(struct occupancy *occupancy, uint32_t keep_max)
{
    *occupancy = (struct occupancy){ .keep_max = keep_max, .free = MAP_NONE };
    if (keep_max)
        occupancy->spans =
            grow_array(NULL, &occupancy->room, keep_max, sizeof *occupancy->spans);
}

void occupancy_release(struct occupancy *occupancy)
{
    free(occupancy->spans);
    free(occupancy->in_use);
    map_release(&occupancy->held);
    map_release(&occupancy->pending);
    map_release(&occupancy->cancelled);
}

/* ---- spans by number ---- */

static struct occupancy_span *span_at(const struct occupancy *occupancy,
                                      uint32_t number)
{
    return &occupancy
                ->spans[occupancy->keep_max ? number % occupancy->keep_max : number];
}

uint32_t occupancy_first(const struct occupancy *occupancy)
{
    bool is_full = occupancy->keep_max && occupancy->count > occupancy->keep_max;
    return is_full ? occupancy->count - occupancy->keep_max : 0;
}

const struct occupancy_span *occupancy_at(const struct occupancy *occupancy,
                                          uint32_t number)
{
    return span_at(occupancy, number);
}

/* The span of that number if it is this job's and was not overwritten. */
static struct occupancy_span *find_span(const struct occupancy *occupancy,
                                        uint32_t number, uint64_t job)
{
    if (number == MAP_NONE || number < occupancy_first(occupancy))
        return NULL;
    struct occupancy_span *span = span_at(occupancy, number);
    return span->job == job ? span : NULL;
}

const struct occupancy_span *occupancy_held(const struct occupancy *occupancy,
                                            uint64_t job)
{
    return find_span(occupancy, map_find(&occupancy->held, job), job);
}

const struct occupancy_span *occupancy_next(const struct occupancy *occupancy,
                                            const struct occupancy_span *span)
{
    return find_span(occupancy, span->next, span->job);
}

/* ---- GPUs in use: the second job on a GPU shares it ---- */

static uint64_t *node_in_use(struct occupancy *occupancy, node_id node)
{
    occupancy->in_use = grow_array(occupancy->in_use, &occupancy->node_room, node + 1,
                                   sizeof *occupancy->in_use);
    return &occupancy->in_use[node];
}

static void take_gpus(struct occupancy *occupancy, struct occupancy_span *span)
{
    uint64_t *in_use = node_in_use(occupancy, span->node);
    span->shared = span->gpus & *in_use;
    *in_use |= span->gpus;
}

static void return_gpus(struct occupancy *occupancy, const struct occupancy_span *span)
{
    if (span->start_ns >= 0 && span->end_ns < 0)
        *node_in_use(occupancy, span->node) &= ~(span->gpus & ~span->shared);
}

/* ---- storage ---- */

/* Numbers have 32 bits: long before they run out, everything is forgotten instead. */
static void start_over(struct occupancy *occupancy)
{
    struct occupancy old = *occupancy;
    occupancy_release(&old);
    occupancy_init(occupancy, old.keep_max);
    occupancy->closed = old.closed;
    occupancy->self = old.self;
}

static uint32_t add_span(struct occupancy *occupancy, struct occupancy_span span)
{
    uint32_t number = occupancy->free;
    if (number != MAP_NONE) {
        occupancy->free = span_at(occupancy, number)->next;
    } else {
        if (occupancy->count >= UINT32_MAX - 1)
            start_over(occupancy);
        number = occupancy->count++;
        if (!occupancy->keep_max)
            occupancy->spans =
                grow_array(occupancy->spans, &occupancy->room, number + 1, sizeof span);
        else if (number >= occupancy->keep_max)
            return_gpus(occupancy, span_at(occupancy, number)); /* it is overwritten */
    }
    *span_at(occupancy, number) = span;
    return number;
}

static void drop_span(struct occupancy *occupancy, uint32_t number)
{
    if (occupancy->keep_max)
        return;
    *span_at(occupancy, number) = (struct occupancy_span){ .next = occupancy->free };
    occupancy->free = number;
}

/* ---- events ---- */

/* Close the spans of a job that are in 'map', the last node's first. */
static void close_spans(struct occupancy *occupancy, struct map *map,
                        const struct event_record *record, enum occupancy_end end)
{
    struct occupancy_span *span;
    uint32_t number = map_find(map, record->job), next;
    for (; (span = find_span(occupancy, number, record->job)); number = next) {
        next = span->next;
        return_gpus(occupancy, span);
        span->end_ns = record->event.at_ns;
        span->end = end;
        if (occupancy->closed && span->start_ns >= 0)
            occupancy->closed(occupancy->self, span, record);
        drop_span(occupancy, number);
    }
    map_remove(map, record->job);
}

static void close_held(struct occupancy *occupancy, const struct event_record *record,
                       enum occupancy_end end)
{
    close_spans(occupancy, &occupancy->held, record, end);
}

/* What a job was to get never began: such spans are not shown. */
static void drop_pending(struct occupancy *occupancy, const struct event_record *record)
{
    close_spans(occupancy, &occupancy->pending, record, OCCUPANCY_OPEN);
}

static void add_pending(struct occupancy *occupancy, const struct event_record *record)
{
    uint32_t next = MAP_NONE;
    drop_pending(occupancy, record);
    for (uint32_t i = 0; i < record->event.seat_count; i++) {
        const struct seat *seat = &record->event.seats[i];
        next = add_span(occupancy,
                        (struct occupancy_span){ .job = record->job,
                                                 .start_ns = -1,
                                                 .end_ns = -1,
                                                 .gpus = seat->gpus,
                                                 .node = seat->node,
                                                 .attempt = record->event.attempt,
                                                 .next = next,
                                                 .class = record->class });
    }
    if (next != MAP_NONE)
        map_put(&occupancy->pending, record->job, next);
}

static void start_pending(struct occupancy *occupancy,
                          const struct event_record *record)
{
    struct occupancy_span *span;
    uint32_t first = map_find(&occupancy->pending, record->job);
    close_held(occupancy, record, OCCUPANCY_RESIZED);
    if (first == MAP_NONE)
        return;
    for (uint32_t at = first; (span = find_span(occupancy, at, record->job));
         at = span->next) {
        span->start_ns = record->event.at_ns;
        span->attempt = record->event.attempt; /* a job that moves was placed before */
        take_gpus(occupancy, span);
    }
    map_remove(&occupancy->pending, record->job);
    map_put(&occupancy->held, record->job, first);
}

static void apply_lost(struct occupancy *occupancy, const struct event_record *record)
{
    if (!record->is_seated)
        close_held(occupancy, record, OCCUPANCY_LOST);
    if (!record->is_placed)
        drop_pending(occupancy, record);
}

static void apply_cancelled(struct occupancy *occupancy,
                            const struct event_record *record)
{
    drop_pending(occupancy, record);
    if (map_find(&occupancy->held, record->job) != MAP_NONE)
        map_put(&occupancy->cancelled, record->job, 1);
}

void occupancy_apply(struct occupancy *occupancy, const struct event_record *record)
{
    if (!record->job)
        return;
    switch (record->event.kind) {
    case EVENT_PLACED:
    case EVENT_RESIZING:
        add_pending(occupancy, record);
        return;
    case EVENT_STARTED:
    case EVENT_RESIZED:
        start_pending(occupancy, record);
        return;
    case EVENT_CANCELLED:
        apply_cancelled(occupancy, record);
        return;
    case EVENT_STOPPED:
        close_held(occupancy, record,
                   map_find(&occupancy->cancelled, record->job) == MAP_NONE
                       ? OCCUPANCY_PREEMPTED
                       : OCCUPANCY_CANCELLED);
        break;
    case EVENT_FINISHED:
        close_held(occupancy, record, OCCUPANCY_FINISHED);
        drop_pending(occupancy, record);
        break;
    case EVENT_FAILED:
        close_held(occupancy, record, OCCUPANCY_FAILED);
        drop_pending(occupancy, record);
        break;
    case EVENT_LOST:
    case EVENT_DROPPED:
        apply_lost(occupancy, record);
        break;
    default:
        return;
    }
    map_remove(&occupancy->cancelled, record->job);
}

/* ---- reading ---- */

bool occupancy_is_current(const struct occupancy_span *span, int64_t since_ns)
{
    if (span->start_ns < 0)
        return span->end_ns < 0;
    return span->end_ns < 0 || span->end_ns >= since_ns;
}

const char *occupancy_end_name(enum occupancy_end end)
{
    static const char *const names[] = {
        [OCCUPANCY_FINISHED] = "finished",   [OCCUPANCY_PREEMPTED] = "preempted",
        [OCCUPANCY_FAILED] = "failed",       [OCCUPANCY_LOST] = "lost",
        [OCCUPANCY_CANCELLED] = "cancelled", [OCCUPANCY_RESIZED] = "resized",
    };
    return names[end];
}
