/*
 * books.c - who holds what on which node: seats, promises, free room.
 *
 * The accounts of a node: what is free, what jobs hold in their seats, and what leaving
 * jobs have promised to others.  A promise is a part of a leaving job's seat; it is not
 * free while that job is there and not free when it has gone, because then it belongs
 * to the successor.  So when a job leaves, its seats less its promises become free, and
 * when a successor gives up before it starts, its seats less the promises that are
 * still open become free.
 */
#include "model/books.h"

#include <assert.h>

#include "model/cluster.h"

#define NONE UINT32_MAX

/* --- rows of seats ------------------------------------------------------------ */

static uint32_t row_class(uint32_t count)
{
    return count <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(count - 1);
}

static struct seat_row row_new(struct state *state, const struct seat *seats,
                               uint32_t count)
{
    uint32_t class = row_class(count);
    uint32_t first = state->seat_free[class];
    if (first != NONE) {
        state->seat_free[class] = state->seats[first].node;
    } else {
        first = state->seat_used;
        state->seat_used += 1u << class;
        assert(state->seat_used <= state->seat_max);
    }
    for (uint32_t i = 0; i < count; i++)
        state->seats[first + i] = seats[i];
    return (struct seat_row){ first, count };
}

static void row_free(struct state *state, struct seat_row *row)
{
    if (row->count == 0)
        return;
    uint32_t class = row_class(row->count);
    state->seats[row->first].node = state->seat_free[class];
    state->seat_free[class] = row->first;
    *row = (struct seat_row){ 0, 0 };
}

/* --- rooms --------------------------------------------------------------------- */

static void set_room(struct state *state, node_id node, const struct room *room)
{
    if (state->node_down[node])
        state->free.rooms[node] = *room; /* kept for its return */
    else
        free_put(&state->free, node, room);
}

static void take(struct state *state, const struct room_part *part)
{
    struct room room = state->free.rooms[part->node];
    assert((room.gpus & part->gpus) == part->gpus);
    assert(room.cpu_milli >= part->cpu_milli);
    assert(room.mem_mib >= part->mem_mib);
    room.gpus &= ~part->gpus;
    room.cpu_milli -= part->cpu_milli;
    room.mem_mib -= part->mem_mib;
    set_room(state, part->node, &room);
}

static void give(struct state *state, const struct room_part *part)
{
    struct room room = state->free.rooms[part->node];
    assert((room.gpus & part->gpus) == 0);
    room.gpus |= part->gpus;
    room.cpu_milli += part->cpu_milli;
    room.mem_mib += part->mem_mib;
    set_room(state, part->node, &room);
}

static struct room_part part_of(const struct seat *seat)
{
    return (struct room_part){ seat->node, seat->cpu_milli, seat->mem_mib, seat->gpus };
}

static void part_less(struct room_part *part, const struct room_part *other)
{
    assert((part->gpus & other->gpus) == other->gpus);
    assert(part->cpu_milli >= other->cpu_milli);
    assert(part->mem_mib >= other->mem_mib);
    part->gpus &= ~other->gpus;
    part->cpu_milli -= other->cpu_milli;
    part->mem_mib -= other->mem_mib;
}

/* --- promises ------------------------------------------------------------------ */

static void promise_add(struct state *state, job_id victim, job_id successor,
                        const struct room_part *part)
{
    uint32_t p = state->promise_free;
    if (p != NONE)
        state->promise_free = state->promises[p].next_of_victim;
    else
        p = state->promise_used++;
    assert(p < state->promise_max);
    state->promises[p] =
        (struct promise){ .victim = victim,
                          .successor = successor,
                          .part = *part,
                          .next_of_victim = state->jobs[victim].promised_to,
                          .next_of_successor = state->jobs[successor].promised_by };
    state->jobs[victim].promised_to = p;
    state->jobs[successor].promised_by = p;
}

static void unlink_of_victim(struct state *state, uint32_t p)
{
    uint32_t *link = &state->jobs[state->promises[p].victim].promised_to;
    while (*link != p)
        link = &state->promises[*link].next_of_victim;
    *link = state->promises[p].next_of_victim;
}

static void unlink_of_successor(struct state *state, uint32_t p)
{
    uint32_t *link = &state->jobs[state->promises[p].successor].promised_by;
    while (*link != p)
        link = &state->promises[*link].next_of_successor;
    *link = state->promises[p].next_of_successor;
}

static void promise_drop(struct state *state, uint32_t p)
{
    unlink_of_victim(state, p);
    unlink_of_successor(state, p);
    state->promises[p].next_of_victim = state->promise_free;
    state->promise_free = p;
}

/* A job leaves accelerators that its partner still uses: the partner promises them now. */
static void promises_to_partner(struct state *state, job_id job, job_id partner)
{
    uint32_t next;
    for (uint32_t p = state->jobs[job].promised_to; p != NONE; p = next) {
        struct promise *promise = &state->promises[p];
        next = promise->next_of_victim;
        if (promise->part.gpus == 0)
            continue;
        struct room_part rest = { .node = promise->part.node,
                                  .gpus = promise->part.gpus };
        promise->part.gpus = 0;
        promise_add(state, partner, promise->successor, &rest);
    }
}

/* --- seats --------------------------------------------------------------------- */

/* Less what the job promises there, a seat it leaves becomes free. */
void books_vacate(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    bool shared = job->partner != JOB_NONE;
    if (shared)
        promises_to_partner(state, id, job->partner);

    for (uint32_t i = 0; i < job->seats.count; i++) {
        struct room_part part = part_of(&state->seats[job->seats.first + i]);
        if (shared)
            part.gpus = 0;
        for (uint32_t p = job->promised_to; p != NONE;
             p = state->promises[p].next_of_victim)
            if (state->promises[p].part.node == part.node)
                part_less(&part, &state->promises[p].part);
        give(state, &part);
    }
    while (job->promised_to != NONE)
        promise_drop(state, job->promised_to);
    row_free(state, &job->seats);
    if (shared) {
        state->jobs[job->partner].partner = JOB_NONE;
        job->partner = JOB_NONE;
    }
}

/* The same for one who does not come: what both were promised is promised to the other. */
static void promises_for_partner(struct state *state, job_id job, job_id partner)
{
    uint32_t next;
    for (uint32_t p = state->jobs[job].promised_by; p != NONE; p = next) {
        struct promise *promise = &state->promises[p];
        next = promise->next_of_successor;
        if (promise->part.gpus == 0)
            continue;
        struct room_part rest = { .node = promise->part.node,
                                  .gpus = promise->part.gpus };
        promise->part.gpus = 0;
        promise_add(state, promise->victim, partner, &rest);
    }
}

/* Give up seats it was promised and has not taken. */
void books_decline(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    bool shared = job->state == JOB_PLACED && job->partner != JOB_NONE;
    if (shared)
        promises_for_partner(state, id, job->partner);

    for (uint32_t i = 0; i < job->next.count; i++) {
        struct room_part part = part_of(&state->seats[job->next.first + i]);
        if (shared)
            part.gpus = 0;
        for (uint32_t p = job->promised_by; p != NONE;
             p = state->promises[p].next_of_successor)
            if (state->promises[p].part.node == part.node)
                part_less(&part, &state->promises[p].part);
        give(state, &part);
    }
    while (job->promised_by != NONE)
        promise_drop(state, job->promised_by);
    row_free(state, &job->next);
    if (shared) {
        state->jobs[job->partner].partner = JOB_NONE;
        job->partner = JOB_NONE;
    }
}

/* Take what is free of 'seats' and note what is promised. */
void books_reserve(struct state *state, const struct event *event)
{
    struct job *job = &state->jobs[event->job];
    assert(job->next.count == 0);
    for (uint32_t i = 0; i < event->seat_count; i++) {
        struct room_part part = part_of(&event->seats[i]);
        if (event->beside != JOB_NONE)
            part.gpus = 0;
        for (uint32_t p = 0; p < event->promise_count; p++)
            if (event->promises[p].part.node == part.node)
                part_less(&part, &event->promises[p].part);
        take(state, &part);
    }
    for (uint32_t p = 0; p < event->promise_count; p++) {
        assert(job_seated(&state->jobs[event->promises[p].victim]));
        promise_add(state, event->promises[p].victim, event->job,
                    &event->promises[p].part);
    }
    job->next = row_new(state, event->seats, event->seat_count);
    if (event->beside != JOB_NONE) {
        struct job *other = &state->jobs[event->beside];
        assert(other->partner == JOB_NONE);
        assert(job->partner == JOB_NONE);
        other->partner = event->job;
        job->partner = event->beside;
    }
}

/* What it holds, counted from its seats. */
void books_count_seats(struct state *state, struct job *job, const struct seat_row *row)
{
    job->gpus_now = 0;
    for (uint32_t i = 0; i < row->count; i++)
        job->gpus_now += seat_gpu_count(&state->seats[row->first + i]);
    job->type_now = state->view.cluster->nodes[state->seats[row->first].node].type;
}
