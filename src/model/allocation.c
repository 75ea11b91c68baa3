/*
 * allocation.c - which job holds what on which node: seats, pending shares, free resources.
 *
 * A GPU is free when it is in no job's row of seats, neither a held nor a pending one: each
 * node counts the rows that a GPU is in.  Two jobs that share a GPU count twice, and so do
 * a job that stops and its successor.
 *
 * CPU and memory are quantities, so they need a second account.  A pending share is part of
 * the seat of a job that stops: it is not free while that job is there, and not free
 * afterwards, because it then belongs to the successor.  So when a job stops, its seats less
 * its pending shares become free, and when a successor is dropped before it starts, its
 * seats less the shares that are still pending become free.
 *
 * Both jobs of a pair name each other: 'partner' in the seats that a job holds, or is placed
 * in; 'coming' is the partner to be when the present one has stopped; 'next_partner' is the
 * partner where a job moves to.
 */
#include "model/allocation.h"

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
        free_index_put(&state->free, node, room);
}

/* Count one row more on these GPUs. */
static void add_row(struct holds *holds, uint64_t gpus)
{
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t carry = holds->digit[i] & gpus;
        holds->digit[i] ^= gpus;
        gpus = carry;
    }
    assert(gpus == 0);
}

/* Count one row less. */
static void remove_row(struct holds *holds, uint64_t gpus)
{
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t borrow = ~holds->digit[i] & gpus;
        holds->digit[i] ^= gpus;
        gpus = borrow;
    }
    assert(gpus == 0);
}

static uint64_t find_unheld(const struct state *state, node_id node)
{
    const struct holds *holds = &state->holds[node];
    uint32_t count = state->view.cluster->nodes[node].gpu_count;
    uint64_t all = count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1;
    return all & ~state->foreign[node] &
           ~(holds->digit[0] | holds->digit[1] | holds->digit[2]);
}

/* Take a seat; the CPU and memory of 'part' come from what is free. */
static void take_seat(struct state *state, const struct seat *seat,
                      const struct room_part *part)
{
    struct room room = state->free.rooms[part->node];
    assert((room.gpus & part->gpus) == part->gpus);
    assert(room.cpu_milli >= part->cpu_milli);
    assert(room.mem_mib >= part->mem_mib);
    add_row(&state->holds[part->node], seat->gpus);
    room.gpus = find_unheld(state, part->node);
    room.cpu_milli -= part->cpu_milli;
    room.mem_mib -= part->mem_mib;
    set_room(state, part->node, &room);
}

/* Give a seat up: the CPU and memory of 'part' become free, and GPUs in no other row. */
static void give_seat(struct state *state, const struct seat *seat,
                      const struct room_part *part)
{
    struct room room = state->free.rooms[part->node];
    remove_row(&state->holds[part->node], seat->gpus);
    room.gpus = find_unheld(state, part->node);
    room.cpu_milli += part->cpu_milli;
    room.mem_mib += part->mem_mib;
    set_room(state, part->node, &room);
}

/* GPUs that others use are not free; jobs of ours that hold them keep them. */
void allocation_set_foreign(struct state *state, node_id node, uint64_t gpus)
{
    state->foreign[node] = gpus;
    struct room room = state->free.rooms[node];
    room.gpus = find_unheld(state, node);
    set_room(state, node, &room);
}

static struct room_part part_of_seat(const struct seat *seat)
{
    return (struct room_part){ seat->node, seat->cpu_milli, seat->mem_mib, seat->gpus };
}

static void subtract_part(struct room_part *part, const struct room_part *other)
{
    assert(part->cpu_milli >= other->cpu_milli);
    assert(part->mem_mib >= other->mem_mib);
    part->gpus &= ~other->gpus;
    part->cpu_milli -= other->cpu_milli;
    part->mem_mib -= other->mem_mib;
}

/* Note a job that an event of another job changes. */
static void mark_touched(struct state *state, job_id id)
{
    if (state->is_touched[id])
        return;
    state->is_touched[id] = true;
    state->touched[state->touched_count++] = id;
}

/* --- pending shares ------------------------------------------------------------ */

static void add_pending(struct state *state, job_id victim, job_id successor,
                        const struct room_part *part)
{
    uint32_t p = state->pending_free;
    if (p != NONE)
        state->pending_free = state->pending_shares[p].next_of_victim;
    else
        p = state->pending_used++;
    assert(p < state->pending_max);
    state->pending_shares[p] =
        (struct pending_share){ .victim = victim,
                                .successor = successor,
                                .part = *part,
                                .next_of_victim = state->jobs[victim].pending_to,
                                .next_of_successor =
                                    state->jobs[successor].pending_from };
    state->jobs[victim].pending_to = p;
    state->jobs[successor].pending_from = p;
}

static void unlink_of_victim(struct state *state, uint32_t p)
{
    uint32_t *link = &state->jobs[state->pending_shares[p].victim].pending_to;
    while (*link != p)
        link = &state->pending_shares[*link].next_of_victim;
    *link = state->pending_shares[p].next_of_victim;
}

static void unlink_of_successor(struct state *state, uint32_t p)
{
    uint32_t *link = &state->jobs[state->pending_shares[p].successor].pending_from;
    while (*link != p)
        link = &state->pending_shares[*link].next_of_successor;
    *link = state->pending_shares[p].next_of_successor;
}

static void drop_pending(struct state *state, uint32_t p)
{
    mark_touched(state, state->pending_shares[p].victim);
    mark_touched(state, state->pending_shares[p].successor);
    unlink_of_victim(state, p);
    unlink_of_successor(state, p);
    state->pending_shares[p].next_of_victim = state->pending_free;
    state->pending_free = p;
}

/* --- partners ------------------------------------------------------------------ */

/* 'other' no longer shares with 'id', which gives its seats up, or was to share there. */
static void end_sharing(struct state *state, job_id other, job_id id)
{
    struct job *job = &state->jobs[other];
    mark_touched(state, other);
    if (job->partner == id) {
        job->partner = job->coming;
        job->coming = JOB_NONE;
    } else {
        assert(job->next_partner == id);
        job->next_partner = JOB_NONE;
    }
}

/* 'other' will not share with 'id', which drops its pending allocation. */
static void cancel_sharing(struct state *state, job_id other, job_id id)
{
    struct job *job = &state->jobs[other];
    mark_touched(state, other);
    if (job->next_partner == id)
        job->next_partner = JOB_NONE;
    else if (job->coming == id)
        job->coming = JOB_NONE;
    else
        end_sharing(state, other, id);
}

/* A job gives its seats up; its partner where it moves to, if it moves, remains. */
static void leave_partner(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    if (job->partner != JOB_NONE)
        end_sharing(state, job->partner, id);
    if (job->coming != JOB_NONE)
        end_sharing(state, job->coming, id);
    job->coming = JOB_NONE;
    job->partner = job->next_partner;
    job->next_partner = JOB_NONE;
}

/* A job drops a pending allocation that it was to share. */
static void decline_partner(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    job_id *other = job->state == JOB_PLACED ? &job->partner : &job->next_partner;
    if (*other != JOB_NONE)
        cancel_sharing(state, *other, id);
    *other = JOB_NONE;
}

/* 'id' will share with 'other'. */
static void set_partner(struct state *state, job_id id, job_id other)
{
    struct job *job = &state->jobs[id];
    mark_touched(state, id);
    bool moves = job->next.count > 0 && job->seats.count > 0;
    job_id *place = moves                      ? &job->next_partner
                    : job->partner == JOB_NONE ? &job->partner
                                               : &job->coming;
    assert(*place == JOB_NONE);
    *place = other;
}

/* --- seats --------------------------------------------------------------------- */

/* A seat becomes free, less the shares of it that are pending for other jobs. */
void allocation_release(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &state->seats[job->seats.first + i];
        struct room_part part = part_of_seat(seat);
        for (uint32_t p = job->pending_to; p != NONE;
             p = state->pending_shares[p].next_of_victim)
            if (state->pending_shares[p].part.node == part.node)
                subtract_part(&part, &state->pending_shares[p].part);
        give_seat(state, seat, &part);
    }
    while (job->pending_to != NONE)
        drop_pending(state, job->pending_to);
    row_free(state, &job->seats);
    leave_partner(state, id);
}

void allocation_drop_pending(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    for (uint32_t i = 0; i < job->next.count; i++) {
        const struct seat *seat = &state->seats[job->next.first + i];
        struct room_part part = part_of_seat(seat);
        for (uint32_t p = job->pending_from; p != NONE;
             p = state->pending_shares[p].next_of_successor)
            if (state->pending_shares[p].part.node == part.node)
                subtract_part(&part, &state->pending_shares[p].part);
        give_seat(state, seat, &part);
    }
    while (job->pending_from != NONE)
        drop_pending(state, job->pending_from);
    decline_partner(state, id);
    row_free(state, &job->next);
}

uint64_t allocation_vacated_gpus(const struct state *state, const struct event *event,
                                 node_id node)
{
    uint64_t gpus = 0;
    for (uint32_t p = 0; p < event->pending_count; p++) {
        const struct pending_part *pending_share = &event->pending_shares[p];
        if (pending_share->part.node == node)
            gpus |= pending_share->part.gpus;
        const struct seat_row *row = &state->jobs[pending_share->victim].seats;
        for (uint32_t i = 0; i < row->count; i++)
            if (state->seats[row->first + i].node == node)
                gpus |= state->seats[row->first + i].gpus;
    }
    return gpus;
}

void allocation_reserve(struct state *state, const struct event *event)
{
    struct job *job = &state->jobs[event->job];
    assert(job->next.count == 0);
    for (uint32_t i = 0; i < event->seat_count; i++) {
        struct room_part part = part_of_seat(&event->seats[i]);
        if (event->beside != JOB_NONE)
            part.gpus = 0; /* the partner has taken them */
        for (uint32_t p = 0; p < event->pending_count; p++)
            if (event->pending_shares[p].part.node == part.node)
                subtract_part(&part, &event->pending_shares[p].part);
        if (part.gpus & ~state->free.rooms[part.node].gpus)
            part.gpus &= ~allocation_vacated_gpus(state, event, part.node);
        take_seat(state, &event->seats[i], &part);
    }
    for (uint32_t p = 0; p < event->pending_count; p++) {
        assert(job_holds_seats(&state->jobs[event->pending_shares[p].victim]));
        add_pending(state, event->pending_shares[p].victim, event->job,
                    &event->pending_shares[p].part);
    }
    job->next = row_new(state, event->seats, event->seat_count);
    if (event->beside != JOB_NONE) {
        set_partner(state, event->job, event->beside);
        set_partner(state, event->beside, event->job);
    }
}

void allocation_count_seats(struct state *state, struct job *job,
                            const struct seat_row *row)
{
    job->gpus_now = 0;
    for (uint32_t i = 0; i < row->count; i++)
        job->gpus_now += seat_gpu_count(&state->seats[row->first + i]);
    job->type_now = state->view.cluster->nodes[state->seats[row->first].node].type;
}
