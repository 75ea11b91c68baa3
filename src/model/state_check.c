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

/* What jobs hold or have been promised on one node. */
struct tally {
    uint64_t once;  /* accelerators with one holder      */
    uint64_t twice; /* with two, who share them          */
    uint64_t cpu_milli, mem_mib;
};

static void count_seat(struct tally *tally, const struct seat *seat)
{
    assert((tally->twice & seat->gpus) == 0);
    tally->twice |= tally->once & seat->gpus;
    tally->once |= seat->gpus;
    tally->cpu_milli += seat->cpu_milli;
    tally->mem_mib += seat->mem_mib;
}

/* A promised part stands in the seats of both: count it once. */
static void uncount_promise(struct tally *tally, const struct room_part *part)
{
    assert((tally->twice & part->gpus) == part->gpus);
    tally->twice &= ~part->gpus;
    tally->cpu_milli -= part->cpu_milli;
    tally->mem_mib -= part->mem_mib;
}

static void check_job(const struct state *state, job_id id, struct tally *tallies,
                      uint64_t *shared)
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
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &state->seats[job->seats.first + i];
        count_seat(&tallies[seat->node], seat);
        gpus += seat_gpu_count(seat);
        if (job->partner != JOB_NONE)
            shared[seat->node] |= seat->gpus;
    }
    for (uint32_t i = 0; i < job->next.count; i++) {
        const struct seat *seat = &state->seats[job->next.first + i];
        count_seat(&tallies[seat->node], seat);
        if (job->state == JOB_PLACED && job->partner != JOB_NONE)
            shared[seat->node] |= seat->gpus;
    }
    if (seated) {
        assert(gpus == job->gpus_now);
        assert(gpus >= job->gpus_min); /* a whole gang or nothing */
        assert(gpus <= job->gpus_max);
    }
    for (uint32_t p = job->promised_by; p != UINT32_MAX;
         p = state->promises[p].next_of_successor) {
        const struct promise *promise = &state->promises[p];
        assert(promise->successor == id);
        assert(job_seated(&state->jobs[promise->victim]));
        uncount_promise(&tallies[promise->part.node], &promise->part);
    }
}

void state_check(const struct state *state)
{
    const struct cluster *cluster = state->view.cluster;
    struct tally *tallies = calloc(cluster->node_count, sizeof *tallies);
    uint64_t *shared = calloc(cluster->node_count, sizeof *shared);
    uint32_t live = 0;
    uint32_t waiting = 0;
    uint32_t seated = 0;
    assert(tallies && shared);

    /* Twice over the jobs: promises are taken off once all seats are counted. */
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE)
            continue;
        live++;
        waiting += job->state == JOB_WAITING;
        seated += job_seated(job);
        for (uint32_t p = job->promised_to; p != UINT32_MAX;
             p = state->promises[p].next_of_victim)
            assert(state->promises[p].victim == id);
    }
    assert(live == state->live_count);
    assert(waiting == state->waiting_count);
    assert(seated == state->seated_count);

    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE &&
            state->jobs[id].promised_by == UINT32_MAX)
            check_job(state, id, tallies, shared);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE &&
            state->jobs[id].promised_by != UINT32_MAX)
            check_job(state, id, tallies, shared);

    for (node_id n = 0; n < cluster->node_count; n++) {
        const struct node *node = &cluster->nodes[n];
        const struct room *room = &state->free.rooms[n];
        uint64_t all =
            node->gpu_count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << node->gpu_count) - 1;
        assert((tallies[n].twice & ~shared[n]) == 0); /* nobody holds another's seat */
        assert((tallies[n].once | room->gpus) == all);
        assert((tallies[n].once & room->gpus) == 0);
        assert(tallies[n].cpu_milli + room->cpu_milli == node->cpu_milli);
        assert(tallies[n].mem_mib + room->mem_mib == node->mem_mib);
        assert(state->free.listed[n] == !state->node_down[n]);
    }
    free(tallies);
    free(shared);
}
