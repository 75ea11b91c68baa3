/*
 * plan_grant.c - where a job can run: on free resources, on revoked ones, beside another job,
 * or where it is.
 */
#include <assert.h>

#include "base/bits.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "model/plan_internal.h"
#include "model/sharing.h"

/* --- which room --------------------------------------------------------------------- */

static uint64_t lowest_bits(uint64_t bits, uint32_t count)
{
    uint64_t taken = 0;
    for (; count > 0; count--) {
        uint64_t bit = bits & -bits;
        taken |= bit;
        bits &= ~bit;
    }
    return taken;
}

static uint32_t min_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void add_pending(struct plan *plan, job_id victim, const struct room_part *part)
{
    assert(plan->pending_count < plan->seat_max);
    plan->pending_shares[plan->pending_count++] =
        (struct pending_part){ .victim = victim, .part = *part };
}

/* Take what 'seat' needs from a vacancy, as far as it goes; returns the GPUs taken. */
static uint32_t take_vacated(struct plan *plan, struct seat *seat,
                             struct vacancy *vacancy, uint32_t gpus,
                             struct room_part *need)
{
    uint32_t has = bits_count(vacancy->left.gpus);
    struct room_part part = { .node = seat->node,
                              .gpus =
                                  lowest_bits(vacancy->left.gpus, min_of(gpus, has)),
                              .cpu_milli =
                                  min_of(need->cpu_milli, vacancy->left.cpu_milli),
                              .mem_mib = min_of(need->mem_mib, vacancy->left.mem_mib) };
    if (!part.gpus && !part.cpu_milli && !part.mem_mib)
        return 0;
    plan_vacancy_change(plan, vacancy, &part, true);
    add_pending(plan, vacancy->victim, &part);
    seat->gpus |= part.gpus;
    need->cpu_milli -= part.cpu_milli;
    need->mem_mib -= part.mem_mib;

    /* Both partners that shared these GPUs have to stop first. */
    job_id partner = plan->jobs[vacancy->victim].partner;
    if (part.gpus && partner != JOB_NONE) {
        struct room_part nothing = { .node = seat->node };
        add_pending(plan, partner, &nothing);
    }
    return bits_count(part.gpus);
}

/* Turn a chosen node into a seat: from what is free if that is enough, else revoked first. */
static void take_node(struct plan *plan, struct seat *seat)
{
    const struct room *room = &plan->free->rooms[seat->node];
    uint32_t gpus = seat->reserved;
    struct room_part need = { .node = seat->node,
                              .cpu_milli = seat->cpu_milli,
                              .mem_mib = seat->mem_mib };
    seat->reserved = 0;
    bool enough = bits_count(room->gpus) >= gpus && room->cpu_milli >= need.cpu_milli &&
                  room->mem_mib >= need.mem_mib;
    if (!enough)
        for (uint32_t v = plan->of_node[seat->node]; v != NONE;
             v = plan->vacancies[v].next)
            gpus -= take_vacated(plan, seat, &plan->vacancies[v], gpus, &need);
    need.gpus = lowest_bits(room->gpus, gpus);
    plan_free_change(plan, &need, true);
    seat->gpus |= need.gpus;
}

/* Append the nodes it can have to the plan's seats. */
static bool find_nodes(struct plan *plan, const struct placement_request *want)
{
    struct placement_search place = { .cluster = plan->cluster,
                                      .rates = plan->state->view.rates,
                                      .free = plan->free,
                                      .vacated = plan->vacancy_count > 0
                                                     ? &plan->vacated
                                                     : NULL,
                                      .vacated_gpu_count = plan->vacated_gpu_count,
                                      .seats = plan->seats,
                                      .seat_count = plan->seat_count,
                                      .seat_max = plan->seat_max };
    if (!placement_find(&place, want))
        return false;
    plan->seat_count = place.seat_count;
    return true;
}

/* Over more nodes than the gang needs. */
static bool is_spread(const struct plan *plan, const struct seat *seats, uint32_t count,
                      uint32_t gpus)
{
    uint32_t type = plan->cluster->nodes[seats[0].node].type;
    if (type == TYPE_NONE)
        return false;
    uint32_t node_max = plan->cluster->types[type].node_gpus_max;
    return count > (gpus + node_max - 1) / node_max;
}

static bool grant_found(struct plan *plan, job_id job,
                        const struct placement_request *want, const struct ask *ask)
{
    uint32_t seat_first = plan->seat_count;
    if (!find_nodes(plan, want))
        return false;
    uint32_t seat_count = plan->seat_count - seat_first;
    struct change *change = plan_change_add(plan, CHANGE_GRANT, job);
    change->seat_first = seat_first;
    change->seat_count = seat_count;
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    for (uint32_t i = 0; i < seat_count; i++)
        take_node(plan, &plan->seats[seat_first + i]);
    change->pending_count = plan->pending_count - change->pending_first;
    change->spread = !ask->anywhere &&
                     is_spread(plan, &plan->seats[seat_first], seat_count, want->gpus);
    plan_step_add(plan, STEP_GRANT, plan->change_count - 1);
    return true;
}

/* --- beside another --------------------------------------------------------- */

bool plan_find_final(const struct plan *plan, job_id id, struct final_seats *ret_stand)
{
    const struct job *job = &plan->jobs[id];
    const struct change *change = last_change(plan, id);
    if (change && (change->kind == CHANGE_REVOKE || change->kind == CHANGE_DROP))
        return false;
    if (change && change->kind == CHANGE_GRANT) {
        *ret_stand = (struct final_seats){ change, plan_seats(plan, change),
                                           change->seat_count };
        return true;
    }
    *ret_stand = (struct final_seats){ NULL, &plan->state->seats[job->seats.first],
                                       job->seats.count };
    return job_can_be_stopped(job);
}

/* 'host' will have no partner where it stays or goes. */
static bool is_alone(const struct plan *plan, job_id host,
                     const struct final_seats *final)
{
    if (plan->guest[host])
        return false;
    return final->granted ? final->granted->beside == JOB_NONE
                          : !has_partner(plan, host);
}

/* On these seats, beside that job: the right ones, and CPU and memory for it. */
static bool fits_beside(const struct plan *plan, const struct final_seats *final,
                        const struct placement_request *want, const struct ask *ask,
                        job_id host)
{
    uint32_t type = plan->cluster->nodes[final->seats[0].node].type;
    uint32_t gpus = 0;
    if (type == TYPE_NONE || !(want->types >> type & 1))
        return false;
    for (uint32_t i = 0; i < final->count; i++) {
        const struct seat *seat = &final->seats[i];
        struct room_part need = placement_need(want->job, seat_gpu_count(seat));
        struct room room;
        plan_room(plan, seat->node, &room);
        gpus += seat_gpu_count(seat);
        if (room.cpu_milli < need.cpu_milli || room.mem_mib < need.mem_mib ||
            plan_left_behind(plan, seat) != seat->gpus ||
            (want->avoid && bits_test(want->avoid, seat->node)))
            return false;
    }
    double rates[2];
    return gpus == want->gpus &&
           node_set_keeps(want->job->set, final->seats, final->count) &&
           sharing_rates(
               plan->state->view.rates, want->job, &plan->jobs[host], type, gpus,
               !ask->anywhere && is_spread(plan, final->seats, final->count, gpus),
               rates);
}

/* CPU and memory beside another's accelerators: free if that is enough. */
static void occupy_beside(struct plan *plan, struct seat *seat)
{
    const struct room *room = &plan->free->rooms[seat->node];
    struct room_part need = { .node = seat->node,
                              .cpu_milli = seat->cpu_milli,
                              .mem_mib = seat->mem_mib };
    if (room->cpu_milli < need.cpu_milli || room->mem_mib < need.mem_mib)
        for (uint32_t v = plan->of_node[seat->node]; v != NONE;
             v = plan->vacancies[v].next)
            take_vacated(plan, seat, &plan->vacancies[v], 0, &need);
    plan_free_change(plan, &need, true);
}

/* It waits for the same victims as its host, and for the partner that leaves the host. */
static void wait_as(struct plan *plan, job_id host, const struct final_seats *final)
{
    struct room_part nothing = { .node = final->seats[0].node };
    job_id partner = plan->jobs[host].partner;
    if (!final->granted && partner != JOB_NONE)
        add_pending(plan, partner, &nothing);
    for (uint32_t i = 0; final->granted && i < final->granted->pending_count; i++)
        add_pending(plan, plan_pending(plan, final->granted)[i].victim, &nothing);
}

static bool grant_beside(struct plan *plan, job_id id,
                         const struct placement_request *want, const struct ask *ask)
{
    job_id host = ask->beside;
    struct final_seats final;
    if (host == id || !plan_find_final(plan, host, &final) ||
        !is_alone(plan, host, &final) || !fits_beside(plan, &final, want, ask, host))
        return false;
    struct change *change = plan_change_add(plan, CHANGE_GRANT, id);
    change->beside = host;
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    change->seat_count = final.count;
    change->spread =
        !ask->anywhere && is_spread(plan, final.seats, final.count, want->gpus);
    for (uint32_t i = 0; i < final.count; i++) {
        struct room_part need =
            placement_need(want->job, seat_gpu_count(&final.seats[i]));
        assert(plan->seat_count < plan->seat_max);
        struct seat *seat = &plan->seats[plan->seat_count++];
        *seat = (struct seat){ .node = final.seats[i].node,
                               .cpu_milli = need.cpu_milli,
                               .mem_mib = need.mem_mib,
                               .gpus = final.seats[i].gpus };
        occupy_beside(plan, seat);
    }
    wait_as(plan, host, &final);
    change->pending_count = plan->pending_count - change->pending_first;
    plan_step_add(plan, STEP_GRANT, plan->change_count - 1);
    plan->guest[host] = 1 + id;
    if (final.granted)
        plan->changes[plan->of_job[host] - 1].shared = true;
    return true;
}

/* --- where it is ------------------------------------------------------------ */

/* The job that has all its GPUs vacant: itself or its partner. */
static bool find_gpus(const struct plan *plan, job_id id, job_id *ret_whose)
{
    const struct job *job = &plan->jobs[id];
    const job_id whose[2] = { id, job->partner };
    for (uint32_t w = 0; w < 2 && whose[w] != JOB_NONE; w++) {
        uint32_t found = 0;
        for (uint32_t i = 0; i < job->seats.count; i++) {
            const struct seat *seat = &plan->state->seats[job->seats.first + i];
            const struct vacancy *vacancy = find_vacancy(plan, seat->node, whose[w]);
            found += vacancy && vacancy->left.gpus == plan_left_behind(plan, seat);
        }
        *ret_whose = whose[w];
        if (found == job->seats.count)
            return true;
    }
    return false;
}

/*
 * Nothing of what a revoked job held has been granted: let it stay.  With a partner that
 * stays only if it asks for it, and no other job was granted those GPUs.
 */
static bool undo_revocation(struct plan *plan, job_id id, job_id beside)
{
    uint32_t at = plan->of_job[id] - 1;
    const struct job *job = &plan->jobs[id];
    bool paired = has_partner(plan, id);
    if (paired ? beside == JOB_NONE : beside != JOB_NONE)
        return false;
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        const struct vacancy *vacancy = find_vacancy(plan, seat->node, id);
        if (vacancy->left.cpu_milli != seat->cpu_milli ||
            vacancy->left.mem_mib != seat->mem_mib)
            return false;
    }
    job_id gpus_of = JOB_NONE;
    if (job->gpus_now > 0 && !shares_gpus(plan, id) && !find_gpus(plan, id, &gpus_of))
        return false;
    plan_vacancies_change(plan, id, gpus_of, true);
    plan->changes[at].undone = true;
    plan_step_add(plan, STEP_UNREVOKE, at)->gpus_of = gpus_of;
    return true;
}

/* Its present seats are what is asked for. */
static bool is_content(const struct plan *plan, const struct job *job,
                       const struct placement_request *want)
{
    for (uint32_t i = 0; want->avoid && i < job->seats.count; i++)
        if (bits_test(want->avoid, plan->state->seats[job->seats.first + i].node))
            return false;
    return job->gpus_now == want->gpus &&
           (job->type_now == TYPE_NONE || (want->types >> job->type_now & 1));
}

/* It stays where it is; if its lease is over, or it gets a new one, the lease is renewed. */
static bool keep_seats(struct plan *plan, job_id job, const struct ask *ask)
{
    if (plan->jobs[job].state != JOB_IDLE && ask->steps_max == 0)
        return true;
    struct change *change = plan_change_add(plan, CHANGE_RENEW, job);
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    plan_step_add(plan, STEP_RENEW, plan->change_count - 1);
    return true;
}

/* It shares with the job it is to be beside, and that one stays. */
static bool is_beside(const struct plan *plan, job_id id, job_id other)
{
    return plan->jobs[id].partner == other && job_can_be_stopped(&plan->jobs[other]) &&
           !job_leaves(plan, other) && !plan->guest[other];
}

static bool grant_somewhere(struct plan *plan, job_id id,
                            const struct placement_request *want, const struct ask *ask)
{
    return ask->beside != JOB_NONE ? grant_beside(plan, id, want, ask)
                                   : grant_found(plan, id, want, ask);
}

bool plan_grant(struct plan *plan, job_id id, const struct ask *ask)
{
    static const struct ask as_it_says = { .beside = JOB_NONE };
    if (!ask)
        ask = &as_it_says;
    const struct job *job = &plan->jobs[id];
    struct placement_request want = {
        .job = job,
        .gpus = ask->gpus ? ask->gpus : job->gpus,
        .types = ask->types ? ask->types & job->types : job->types,
        .nodes = job->nodes,
        .spread = ask->spread || ask->anywhere || job->spread,
        .avoid = ask->avoid
    };
    const struct change *change = last_change(plan, id);

    if (change && change->kind != CHANGE_REVOKE)
        return change->kind != CHANGE_DROP &&
               (ask->beside == JOB_NONE || change->beside == ask->beside ||
                (change->kind == CHANGE_RENEW && job->partner == ask->beside));
    if (!change && (job->state == JOB_PLACED || job->next.count > 0))
        return ask->beside == JOB_NONE || job->partner == ask->beside ||
               job->next_partner ==
                   ask->beside; /* it has a pending allocation already */
    if (job->state == JOB_HELD || job->state == JOB_FREE || job->leaving)
        return false;

    bool here = ask->beside == JOB_NONE || is_beside(plan, id, ask->beside);
    if (job_runs(job) && here && is_content(plan, job, &want) &&
        (!change || undo_revocation(plan, id, ask->beside)))
        return keep_seats(plan, id, ask);
    if (!job_runs(job) || change)
        return grant_somewhere(plan, id, &want, ask);
    if (job->stays) /* it goes nowhere else: what it has it may go on with */
        return ask->beside == JOB_NONE && keep_seats(plan, id, ask);
    if (plan->guest[id])
        return false; /* another job has been granted a share of its GPUs */

    size_t mark = plan_mark(plan);
    plan_revoke(plan, id, RULE_RESIZE, id);
    if (grant_somewhere(plan, id, &want, ask))
        return true;
    plan_undo(plan, mark);
    return false;
}
