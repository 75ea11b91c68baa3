/*
 * state_check.c - assert that every account adds up.
 *
 * Counts everything again from the jobs' seats and promises and compares with the books
 * that state.c keeps as events come in.
 */
#include <assert.h>
#include <stdlib.h>

#include "model/cluster.h"
#include "model/state.h"

/*
 * What jobs hold or have been promised on one node.  A promised part stands in the seats
 * of both, and those who share stand on one accelerator: up to four, until promises are
 * taken off.
 */
struct tally {
    uint8_t holders[NODE_GPUS_MAX];
    uint64_t shared;
    uint64_t cpu_milli, mem_mib;
};

static void count_seat(struct tally *tally, const struct seat *seat, bool shared)
{
    for (uint64_t left = seat->gpus; left; left &= left - 1)
        tally->holders[__builtin_ctzll(left)]++;
    if (shared)
        tally->shared |= seat->gpus;
    tally->cpu_milli += seat->cpu_milli;
    tally->mem_mib += seat->mem_mib;
}

static void uncount_promise(struct tally *tally, const struct room_part *part)
{
    for (uint64_t left = part->gpus; left; left &= left - 1) {
        uint8_t *holders = &tally->holders[__builtin_ctzll(left)];
        assert(*holders >= 2);
        --*holders;
    }
    assert(tally->cpu_milli >= part->cpu_milli);
    assert(tally->mem_mib >= part->mem_mib);
    tally->cpu_milli -= part->cpu_milli;
    tally->mem_mib -= part->mem_mib;
}

static void count_job(const struct state *state, job_id id, struct tally *tallies)
{
    const struct job *job = &state->jobs[id];
    bool seated = job_seated(job);
    uint32_t gpus = 0;

    assert(map_find(&state->slots, job->id) == id);
    assert(seated == (job->seats.count > 0));
    if (job->state == JOB_WAITING || job->state == JOB_HELD)
        assert(job->next.count == 0);
    if (job->state == JOB_PLACED)
        assert(job->next.count > 0);
    if (job->partner != JOB_NONE)
        assert(state->jobs[job->partner].partner == id);
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &state->seats[job->seats.first + i];
        count_seat(&tallies[seat->node], seat, job->partner != JOB_NONE);
        gpus += seat_gpu_count(seat);
    }
    for (uint32_t i = 0; i < job->next.count; i++) {
        const struct seat *seat = &state->seats[job->next.first + i];
        count_seat(&tallies[seat->node], seat,
                   job->state == JOB_PLACED && job->partner != JOB_NONE);
    }
    if (seated) {
        assert(gpus == job->gpus_now);
        assert(gpus >= job->gpus_min); /* a whole gang or nothing */
        assert(gpus <= job->gpus_max);
    }
}

static void uncount_promises(const struct state *state, job_id id,
                             struct tally *tallies)
{
    for (uint32_t p = state->jobs[id].promised_by; p != UINT32_MAX;
         p = state->promises[p].next_of_successor) {
        const struct promise *promise = &state->promises[p];
        assert(promise->successor == id);
        assert(job_seated(&state->jobs[promise->victim]));
        uncount_promise(&tallies[promise->part.node], &promise->part);
    }
    for (uint32_t p = state->jobs[id].promised_to; p != UINT32_MAX;
         p = state->promises[p].next_of_victim)
        assert(state->promises[p].victim == id);
}

static void check_node(const struct state *state, node_id n, const struct tally *tally)
{
    const struct node *node = &state->view.cluster->nodes[n];
    const struct room *room = &state->free.rooms[n];
    for (uint32_t g = 0; g < NODE_GPUS_MAX; g++) {
        bool is_free = room->gpus >> g & 1;
        bool shared = tally->shared >> g & 1;
        assert(tally->holders[g] <= 1 + shared); /* nobody holds another's seat */
        assert(!is_free || g < node->gpu_count);
        assert(is_free == (g < node->gpu_count && tally->holders[g] == 0));
    }
    assert(tally->cpu_milli + room->cpu_milli == node->cpu_milli);
    assert(tally->mem_mib + room->mem_mib == node->mem_mib);
    assert(state->free.listed[n] == !state->node_down[n]);
}

void state_check(const struct state *state)
{
    uint32_t node_count = state->view.cluster->node_count;
    struct tally *tallies = calloc(node_count, sizeof *tallies);
    uint32_t live = 0;
    uint32_t waiting = 0;
    uint32_t seated = 0;
    assert(tallies);

    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE)
            continue;
        live++;
        waiting += job->state == JOB_WAITING;
        seated += job_seated(job);
        count_job(state, id, tallies);
    }
    assert(live == state->live_count);
    assert(waiting == state->waiting_count);
    assert(seated == state->seated_count);

    /* Who leaves may wait for others himself: all seats are counted before this. */
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            uncount_promises(state, id, tallies);
    for (node_id n = 0; n < node_count; n++)
        check_node(state, n, &tallies[n]);
    free(tallies);
}
