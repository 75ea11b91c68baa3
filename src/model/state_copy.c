/*
 * state_copy.c - the same state once more, to be played forward.
 *
 * All that the state keeps is arrays with numbers in place of pointers, so jobs keep their slots and
 * rows of seats their places.  A copy costs what is live, not what there is room for.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/state.h"

#define COPY(array, count) \
    memcpy(copy->array, state->array, (size_t)(count) * sizeof *state->array)

/* Jobs of the copy hold the same sets of nodes, and do not count among those that hold them. */
static void copy_jobs(struct state *copy, const struct state *state)
{
    for (job_id id = state->job_count; id < copy->job_count; id++)
        copy->jobs[id] = (struct job){ .state = JOB_FREE };
    COPY(jobs, state->job_count);
    for (job_id id = 0; id < state->job_count; id++) {
        struct job *job = &copy->jobs[id];
        if (job->state == JOB_FREE || !job->set)
            continue;
        struct node_set *set = &copy->sets[job->set->place];
        *set = *job->set;
        set->job_count = UINT32_MAX / 2;
        job->set = set;
    }
    copy->job_count = state->job_count;
    copy->free_slot = state->free_slot;
    copy->id_next = state->id_next;
}

static void copy_nodes(struct state *copy, const struct state *state)
{
    uint32_t nodes = state->view.cluster->node_count;
    COPY(holds, nodes);
    COPY(node_down, nodes);
    COPY(foreign, nodes);
    for (node_id node = 0; node < nodes; node++) {
        struct room room = state->free.rooms[node];
        if (state->free.listed[node])
            free_index_put(&copy->free, node, &room);
        else
            free_index_drop(&copy->free, node);
        copy->free.rooms[node] = room;
    }
}

static void copy_calendar(struct state *copy, const struct state *state)
{
    const struct calendar *calendar = &state->calendar;
    calendar_release(&copy->calendar);
    if (calendar->count == 0)
        return;
    size_t bytes = calendar->count * sizeof *calendar->entries;
    copy->calendar.entries = memory_checked(malloc(bytes));
    memcpy(copy->calendar.entries, calendar->entries, bytes);
    copy->calendar.count = copy->calendar.room = calendar->count;
}

void state_copy(struct state *copy, const struct state *state, struct arena *run)
{
    assert(copy->job_max >= state->job_count && copy->seat_max >= state->seat_used);
    assert(copy->view.cluster->node_count >= state->view.cluster->node_count &&
           copy->view.cluster->type_count == state->view.cluster->type_count);
    if (!copy->sets)
        copy->sets = arena_array(run, struct node_set, NODE_SETS_MAX);
    while (copy->touched_count > 0)
        copy->is_touched[copy->touched[--copy->touched_count]] = false;
    copy_jobs(copy, state);
    COPY(seats, state->seat_used);
    COPY(seat_free, SEAT_CLASSES);
    copy->seat_used = state->seat_used;
    COPY(pending_shares, state->pending_used);
    copy->pending_used = state->pending_used;
    copy->pending_free = state->pending_free;
    COPY(losses, state->loss_used);
    copy->loss_used = state->loss_used;
    copy->loss_free = state->loss_free;
    COPY(served_ns, (size_t)state->job_count * state->view.cluster->type_count);
    copy_nodes(copy, state);
    copy_calendar(copy, state);
    copy->live_count = state->live_count;
    copy->waiting_count = state->waiting_count;
    copy->seated_count = state->seated_count;
    copy->view.now_ns = state->view.now_ns;
    copy->view.closed = state->view.closed;
    copy->view.rates = state->view.rates;
    state_forget_ids(copy);
}

/* --- a copy that stands alone ------------------------------------------------------- */

static void copy_bits(struct bits *copy, const struct bits *bits, uint32_t size,
                      struct arena *run)
{
    bits_init(copy, run, size);
    for (int level = 0; level < 3; level++)
        memcpy(copy->words[level], bits->words[level],
               bits->word_count[level] * sizeof *bits->words[level]);
    copy->count = bits->count;
}

/* What the sets of the copy's jobs point to. */
static void copy_sets(struct state *copy, struct arena *run)
{
    bool copied[NODE_SETS_MAX] = { false };
    for (job_id id = 0; id < copy->job_count; id++) {
        struct node_set *set = copy->jobs[id].set;
        if (copy->jobs[id].state == JOB_FREE || !set || copied[set->place])
            continue;
        const struct node_set shared = *set;
        copied[set->place] = true;
        copy_bits(&set->allowed, &shared.allowed, copy->view.cluster->node_count, run);
        copy_bits(&set->must, &shared.must, copy->view.cluster->node_count, run);
        for (uint32_t w = 0; w < WORDS_COUNT; w++)
            set->words[w] = shared.words[w] ? arena_text(run, shared.words[w]) : NULL;
    }
}

static void *copy_array(struct arena *run, const void *from, size_t count, size_t size)
{
    void *copy = arena_alloc(run, count + 1, size, 16);
    if (count > 0)
        memcpy(copy, from, count * size);
    return copy;
}

#define COPIED(run, array, count) copy_array((run), (array), (count), sizeof *(array))

/* What was learned so far, to be read only: names of kinds are not looked up in a copy. */
static void copy_rates(struct state *copy, const struct state *state, struct arena *run)
{
    const struct rate_table *learned = state->view.rates->learned;
    const struct pair_table *beside = state->view.rates->beside;
    struct rate_table *rates = &copy->rates;
    struct pair_table *pairs = &copy->pairs;
    *rates = *learned;
    rates->kinds = COPIED(run, learned->kinds, rates->kind_count);
    rates->cells = COPIED(run, learned->cells, rates->cell_count);
    rates->index = (struct map){ 0 };
    rates->stale = NULL;
    rates->stale_count = 0;
    rates->cluster = copy->view.cluster;
    *pairs = *beside;
    pairs->rows = COPIED(run, beside->rows, pairs->count);
    pairs->fits = COPIED(run, beside->fits, (size_t)TYPES_MAX);
    pairs->index.entries =
        COPIED(run, beside->index.entries, (size_t)pairs->index.room);
    copy->throughput = *state->view.rates;
    copy->throughput.cluster = copy->view.cluster;
    copy->throughput.learned = rates;
    copy->throughput.beside = pairs;
    copy->view.rates = &copy->throughput;
}

void state_copy_apart(struct state *copy, const struct state *state, struct arena *run)
{
    state_copy(copy, state, run);
    copy_sets(copy, run);
    if (state->view.rates->learned)
        copy_rates(copy, state, run);
}
