/*
 * state_check.c - assert that every account adds up.
 *
 * Counts everything again from the jobs' seats and pending shares, and compares with the
 * accounts that state.c keeps as events come in.
 */
#include "support/state_check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/state.h"

/*
 * What jobs hold or have pending on one node.  A GPU may be in several rows; at most two jobs
 * hold it at once, and at most two will when all pending changes are made.
 */
struct node_tally {
    uint8_t rows[NODE_GPUS_MAX];
    job_id seated[NODE_GPUS_MAX][2];
    job_id in_the_end[NODE_GPUS_MAX][2];
    uint64_t cpu_milli, mem_mib;
};

static void count_row(const struct state *state, const struct seat_row *row,
                      struct node_tally *tallies)
{
    for (uint32_t i = 0; i < row->count; i++) {
        const struct seat *seat = &state->seats[row->first + i];
        struct node_tally *tally = &tallies[seat->node];
        for (uint64_t left = seat->gpus; left; left &= left - 1)
            tally->rows[__builtin_ctzll(left)]++;
        tally->cpu_milli += seat->cpu_milli;
        tally->mem_mib += seat->mem_mib;
    }
}

static void add_one_of_two(job_id two[2], job_id id)
{
    uint32_t at = two[0] != JOB_NONE;
    assert(two[at] == JOB_NONE);
    two[at] = id;
}

/* Other jobs wait for this one to stop: it will, though it may not have been told yet. */
static uint64_t promised_gpus(const struct state *state, job_id id, node_id node)
{
    uint64_t gpus = 0;
    for (uint32_t p = state->jobs[id].pending_to; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_victim) {
        const struct seat_row *next =
            &state->jobs[state->pending_shares[p].successor].next;
        for (uint32_t i = 0; i < next->count; i++)
            if (state->seats[next->first + i].node == node)
                gpus |= state->seats[next->first + i].gpus;
    }
    return gpus;
}

static void count_who(const struct state *state, job_id id, const struct seat_row *row,
                      bool in_the_end, struct node_tally *tallies)
{
    bool stays = in_the_end && row == &state->jobs[id].seats;
    for (uint32_t i = 0; i < row->count; i++) {
        const struct seat *seat = &state->seats[row->first + i];
        uint64_t left = seat->gpus;
        if (stays)
            left &= ~promised_gpus(state, id, seat->node);
        for (; left; left &= left - 1) {
            uint32_t g = (uint32_t)__builtin_ctzll(left);
            struct node_tally *tally = &tallies[seat->node];
            add_one_of_two(in_the_end ? tally->in_the_end[g] : tally->seated[g], id);
        }
    }
}

static void uncount_pending_share(struct node_tally *tally,
                                  const struct room_part *part)
{
    assert(tally->cpu_milli >= part->cpu_milli);
    assert(tally->mem_mib >= part->mem_mib);
    tally->cpu_milli -= part->cpu_milli;
    tally->mem_mib -= part->mem_mib;
}

static bool is_related(const struct job *job, job_id other)
{
    return job->partner == other || job->coming == other || job->next_partner == other;
}

/* Partners, present and future, name each other. */
static void check_relations(const struct state *state, job_id id)
{
    const struct job *job = &state->jobs[id];
    const job_id others[3] = { job->partner, job->coming, job->next_partner };
    for (uint32_t i = 0; i < 3; i++) {
        if (others[i] == JOB_NONE)
            continue;
        const struct job *other = &state->jobs[others[i]];
        assert(other->state != JOB_FREE);
        assert(is_related(other, id));
    }
    if (job->coming != JOB_NONE)
        assert(job->seats.count > 0 && job->partner != JOB_NONE);
    if (job->next_partner != JOB_NONE)
        assert(job->seats.count > 0 && job->next.count > 0);
    if (job->seats.count == 0 && job->next.count == 0)
        assert(job->partner == JOB_NONE);
}

static void check_two(const struct state *state, const job_id two[2], bool seated)
{
    if (two[1] == JOB_NONE)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        const struct job *job = &state->jobs[two[i]];
        assert(seated ? job->partner == two[!i] : is_related(job, two[!i]));
    }
}

static void count_job(const struct state *state, job_id id, struct node_tally *tallies)
{
    const struct job *job = &state->jobs[id];
    bool seated = job_holds_seats(job);
    uint32_t gpus = 0;

    assert(state_find(state, job->id) == id);
    assert(seated == (job->seats.count > 0));
    if (job->state == JOB_WAITING || job->state == JOB_HELD)
        assert(job->next.count == 0);
    if (job->state == JOB_PLACED)
        assert(job->next.count > 0);
    check_relations(state, id);
    count_row(state, &job->seats, tallies);
    count_row(state, &job->next, tallies);
    count_who(state, id, &job->seats, false, tallies);
    if (job->next.count > 0)
        count_who(state, id, &job->next, true, tallies);
    else if (job->state != JOB_STOPPING)
        count_who(state, id, &job->seats, true, tallies);
    for (uint32_t i = 0; i < job->seats.count; i++)
        gpus += seat_gpu_count(&state->seats[job->seats.first + i]);
    if (seated) {
        assert(gpus == job->gpus_now);
        assert(gpus >= job->gpus_min); /* a whole gang or nothing */
        assert(gpus <= job->gpus_max);
        assert(node_set_keeps(job->set, &state->seats[job->seats.first],
                              job->seats.count));
    }
    if (job->next.count > 0)
        assert(
            node_set_keeps(job->set, &state->seats[job->next.first], job->next.count));
}

static void uncount_pending_shares(const struct state *state, job_id id,
                                   struct node_tally *tallies)
{
    for (uint32_t p = state->jobs[id].pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor) {
        const struct pending_share *pending_share = &state->pending_shares[p];
        assert(pending_share->successor == id);
        assert(job_holds_seats(&state->jobs[pending_share->victim]));
        uncount_pending_share(&tallies[pending_share->part.node], &pending_share->part);
    }
    for (uint32_t p = state->jobs[id].pending_to; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_victim)
        assert(state->pending_shares[p].victim == id);
}

static void check_node(const struct state *state, node_id n,
                       const struct node_tally *tally)
{
    const struct node *node = &state->view.cluster->nodes[n];
    const struct room *room = &state->free.rooms[n];
    const uint64_t *digit = state->holds[n].digit;
    for (uint32_t g = 0; g < NODE_GPUS_MAX; g++) {
        bool is_free = room->gpus >> g & 1;
        uint64_t rows =
            (digit[0] >> g & 1) + 2 * (digit[1] >> g & 1) + 4 * (digit[2] >> g & 1);
        assert(tally->rows[g] == rows);
        bool is_ours = !(state->foreign[n] >> g & 1);
        assert(is_free == (g < node->gpu_count && rows == 0 && is_ours));
        check_two(state, tally->seated[g], true); /* no job holds the seat of another */
        check_two(state, tally->in_the_end[g], false);
    }
    assert(tally->cpu_milli + room->cpu_milli == node->cpu_milli);
    assert(tally->mem_mib + room->mem_mib == node->mem_mib);
    assert(state->free.listed[n] == !state->node_down[n]);
}

void state_check(const struct state *state)
{
    uint32_t node_count = state->view.cluster->node_count;
    struct node_tally *tallies = memory_checked(calloc(node_count, sizeof *tallies));
    uint32_t live = 0;
    uint32_t waiting = 0;
    uint32_t seated = 0;
    for (node_id n = 0; n < node_count; n++) {
        memset(tallies[n].seated, 0xff, sizeof tallies[n].seated);
        memset(tallies[n].in_the_end, 0xff, sizeof tallies[n].in_the_end);
    }

    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE)
            continue;
        live++;
        waiting += job->state == JOB_WAITING;
        seated += job_holds_seats(job);
        count_job(state, id, tallies);
    }
    assert(live == state->live_count);
    assert(waiting == state->waiting_count);
    assert(seated == state->seated_count);

    /* A stopping job may wait for others itself: all seats are counted before this. */
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            uncount_pending_shares(state, id, tallies);
    for (node_id n = 0; n < node_count; n++)
        check_node(state, n, &tallies[n]);
    free(tallies);
}
