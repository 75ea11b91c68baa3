/*
 * plan.c - what a policy wants: changes to which job holds what from now on.
 *
 * While a plan is made, it borrows the state's own index of free resources: grants take from
 * it, so that the next grant sees what is left, and everything is put back at the end (the
 * orders that follow take it again, as events).  What this plan revokes is kept apart, as
 * vacancies on nodes: a second index holds just the nodes that have some, with free and
 * vacated resources together.  So a job gets free resources where there are enough, and only
 * then waits for others to stop.
 *
 *     node 7:  [A A A A . . . .]     A revoked; B wants 6
 *     free     4..7
 *     vacated  0..3                  B gets 0..3, pending until A stops, and 4,5
 *
 * A job that has to wait anyway takes vacated resources first, so that what is free stays
 * free for others.
 */
#include "model/plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/error.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "model/sharing.h"
#include "model/state.h"

#define NONE UINT32_MAX

/* What a revoked job frees on one node and no job has been granted yet. */
struct vacancy {
    job_id victim;
    struct room_part left;
    uint32_t next; /* on the same node */
};

enum step_kind { STEP_REVOKE, STEP_UNREVOKE, STEP_GRANT, STEP_RENEW, STEP_DROP };

/* One thing done, so that it can be undone. */
struct step {
    enum step_kind kind;
    uint32_t change;
    uint32_t last_change;   /* what was known of the job before, for plan->of_job */
    uint32_t vacancy_first; /* of a revocation                                    */
    job_id gpus_of; /* of a revocation taken back: the job that had them vacant */
};

struct plan {
    struct state *state;
    const struct job *jobs;
    const struct cluster *cluster;
    struct free_index *free;   /* the state's */
    struct free_index vacated; /* nodes with vacancies: free and vacated together */

    struct change *changes;
    uint32_t change_count;
    struct step *steps;
    uint32_t step_count;
    struct seat *seats;
    uint32_t seat_count;
    struct pending_part *pending_shares;
    uint32_t pending_count;
    struct vacancy *vacancies;
    uint32_t vacancy_count;
    uint32_t seat_max;
    uint32_t change_max;

    uint32_t *of_job;     /* 1 + its last change in this plan; 0: none */
    bool *revoked;        /* by this plan, whether it is granted others or not */
    uint32_t *guest;      /* 1 + the job that is granted its seats beside it; 0: none */
    uint32_t *of_node;    /* first vacancy, or NONE                    */
    struct room *on_node; /* vacated there in all                      */
    uint32_t vacated_gpu_count;
    uint64_t *barred;        /* by node: GPUs that the calendar bars to the job */
    uint64_t *barred_free;   /* of these, those that are free                   */
    bool *whole_barred;      /* CPUs as well                                    */
    struct rack_room *racks; /* for placement: no more racks than nodes     */
    int64_t wake_ns;
    job_id wrong_job; /* revoked or dropped against the rules; JOB_NONE: none */
    bool wrong_drop;
};

static const struct change *last_change(const struct plan *plan, job_id job)
{
    uint32_t at = plan->of_job[job];
    return at ? &plan->changes[at - 1] : NULL;
}

/* It will give up the seats it holds now. */
static bool job_leaves(const struct plan *plan, job_id job)
{
    return plan->revoked[job] || plan->jobs[job].state == JOB_STOPPING;
}

/* It has a partner that stays, or one to come; a partner that moves to it counts as well. */
static bool has_partner(const struct plan *plan, job_id id)
{
    const struct job *job = &plan->jobs[id];
    if (job->coming != JOB_NONE)
        return true;
    if (job->partner == JOB_NONE)
        return false;
    return plan->jobs[job->partner].partner != id || !job_leaves(plan, job->partner);
}

/* Another job uses the same GPUs and stays, or will: they are not vacated. */
static bool shares_gpus(const struct plan *plan, job_id id)
{
    return plan->guest[id] || has_partner(plan, id);
}

static struct vacancy *find_vacancy(const struct plan *plan, node_id node,
                                    job_id victim)
{
    uint32_t v = plan->of_node[node];
    while (v != NONE && plan->vacancies[v].victim != victim)
        v = plan->vacancies[v].next; /* the newest is first */
    return v == NONE ? NULL : &plan->vacancies[v];
}

/* A seat's GPUs that will be free: those in use outside of Berth will not. */
static uint64_t gpus_left_behind(const struct plan *plan, const struct seat *seat)
{
    return seat->gpus & ~plan->state->foreign[seat->node];
}

/* A job's seats once the plan is carried out; 'granted' NULL: those it holds. */
struct final_seats {
    const struct change *granted;
    const struct seat *seats;
    uint32_t count;
};

struct plan *plan_new(struct state *state, struct arena *run)
{
    struct plan *plan = arena_new(run, struct plan);
    uint32_t nodes = state->view.cluster->node_count;
    plan->state = state;
    plan->jobs = state->jobs;
    plan->cluster = state->view.cluster;
    plan->free = &state->free;
    plan->change_max = 2 * state->job_max + 64;
    plan->seat_max = state->seat_max;
    free_index_init(&plan->vacated, run, plan->cluster);
    plan->changes = arena_array(run, struct change, plan->change_max);
    plan->steps = arena_array(run, struct step, 2 * (size_t)plan->change_max);
    plan->seats = arena_array(run, struct seat, plan->seat_max);
    plan->pending_shares = arena_array(run, struct pending_part, plan->seat_max);
    plan->vacancies = arena_array(run, struct vacancy, plan->seat_max);
    plan->of_job = arena_array(run, uint32_t, state->job_max);
    plan->revoked = arena_array(run, bool, state->job_max);
    plan->guest = arena_array(run, uint32_t, state->job_max);
    plan->of_node = arena_array(run, uint32_t, nodes);
    memset(plan->of_node, 0xff, nodes * sizeof *plan->of_node);
    plan->on_node = arena_array(run, struct room, nodes);
    plan->barred = arena_array(run, uint64_t, nodes);
    plan->barred_free = arena_array(run, uint64_t, nodes);
    plan->whole_barred = arena_array(run, bool, nodes);
    plan->racks = arena_array(run, struct rack_room, plan->cluster->node_count);
    return plan;
}

/* --- rooms --------------------------------------------------------------------- */

/* Free and vacated room of a node changed: show it in the second index. */
static void update_vacated(struct plan *plan, node_id node)
{
    if (plan->of_node[node] == NONE || plan->state->node_down[node] ||
        plan->whole_barred[node]) {
        free_index_drop(&plan->vacated, node);
        return;
    }
    const struct room *f = &plan->free->rooms[node];
    const struct room *v = &plan->on_node[node];
    struct room both = { (f->gpus | v->gpus) & ~plan->barred[node],
                         f->cpu_milli + v->cpu_milli, f->mem_mib + v->mem_mib };
    free_index_put(&plan->vacated, node, &both);
}

static void room_take(struct room *room, const struct room_part *part)
{
    assert((room->gpus & part->gpus) == part->gpus);
    assert(room->cpu_milli >= part->cpu_milli);
    assert(room->mem_mib >= part->mem_mib);
    room->gpus &= ~part->gpus;
    room->cpu_milli -= part->cpu_milli;
    room->mem_mib -= part->mem_mib;
}

static void room_give(struct room *room, const struct room_part *part)
{
    assert((room->gpus & part->gpus) == 0);
    room->gpus |= part->gpus;
    room->cpu_milli += part->cpu_milli;
    room->mem_mib += part->mem_mib;
}

/* Take what is free, or put it back. */
static void change_free(struct plan *plan, const struct room_part *part, bool taken)
{
    struct room room = plan->free->rooms[part->node];
    if (taken)
        room_take(&room, part);
    else
        room_give(&room, part);
    if (plan->whole_barred[part->node])
        plan->free->rooms[part->node] = room;
    else
        free_index_put(plan->free, part->node, &room);
    if (plan->of_node[part->node] != NONE)
        update_vacated(plan, part->node);
}

/* The same with a vacancy. */
static void change_vacancy(struct plan *plan, struct vacancy *vacancy,
                           const struct room_part *part, bool taken)
{
    struct room left = { vacancy->left.gpus, vacancy->left.cpu_milli,
                         vacancy->left.mem_mib };
    struct room *on_node = &plan->on_node[part->node];
    uint32_t gpus = bits_count(part->gpus);
    if (taken) {
        room_take(&left, part);
        room_take(on_node, part);
        plan->vacated_gpu_count -= gpus;
    } else {
        room_give(&left, part);
        room_give(on_node, part);
        plan->vacated_gpu_count += gpus;
    }
    vacancy->left.gpus = left.gpus;
    vacancy->left.cpu_milli = left.cpu_milli;
    vacancy->left.mem_mib = left.mem_mib;
    update_vacated(plan, part->node);
}

/* --- what the plan does with a job ------------------------------------------------- */

bool plan_changes(const struct plan *plan, job_id job)
{
    return plan->of_job[job] != 0;
}

bool plan_holds(const struct plan *plan, job_id job)
{
    const struct change *change = last_change(plan, job);
    if (change)
        return change->kind == CHANGE_GRANT || change->kind == CHANGE_RENEW;
    const struct job *j = &plan->jobs[job];
    return job_runs(j) || j->state == JOB_PLACED || j->next.count > 0;
}

uint32_t plan_gpus_left(const struct plan *plan)
{
    return plan->free->gpu_count + plan->vacated_gpu_count;
}

bool plan_vacates(const struct plan *plan)
{
    return plan->vacancy_count > 0;
}

void plan_room(const struct plan *plan, node_id node, struct room *ret_room)
{
    const struct room *f = &plan->free->rooms[node];
    const struct room *v = &plan->on_node[node];
    if (plan->state->node_down[node]) {
        *ret_room = (struct room){ 0, 0, 0 };
        return;
    }
    *ret_room = (struct room){ f->gpus | v->gpus, f->cpu_milli + v->cpu_milli,
                               f->mem_mib + v->mem_mib };
}

const struct free_index *plan_vacated(const struct plan *plan)
{
    return &plan->vacated;
}

/* Record a step; 'change' is now the last change of its job. */
static struct step *add_step(struct plan *plan, enum step_kind kind, uint32_t change)
{
    job_id job = plan->changes[change].job;
    struct step *step = &plan->steps[plan->step_count++];
    *step = (struct step){ .kind = kind,
                           .change = change,
                           .last_change = plan->of_job[job],
                           .vacancy_first = plan->vacancy_count };
    plan->of_job[job] = kind == STEP_UNREVOKE ? 0 : change + 1;
    if (kind == STEP_REVOKE || kind == STEP_UNREVOKE)
        plan->revoked[job] = kind == STEP_REVOKE;
    return step;
}

static struct change *add_change(struct plan *plan, enum change_kind kind, job_id job)
{
    assert(plan->changes);
    assert(plan->change_count < plan->change_max);
    struct change *change = &plan->changes[plan->change_count++];
    *change = (struct change){ .kind = kind,
                               .job = job,
                               .beneficiary = JOB_NONE,
                               .beside = JOB_NONE,
                               .wait_saved_ns = -1,
                               .seat_first = plan->seat_count,
                               .pending_first = plan->pending_count };
    return change;
}

/* --- revoking ------------------------------------------------------------------- */

static void open_vacancies(struct plan *plan, job_id id)
{
    const struct job *job = &plan->jobs[id];
    bool shared = shares_gpus(plan, id);
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib,
                                  shared ? 0 : gpus_left_behind(plan, seat) };
        assert(plan->vacancy_count < plan->seat_max);
        struct vacancy *vacancy = &plan->vacancies[plan->vacancy_count];
        *vacancy = (struct vacancy){ .victim = id,
                                     .left = { .node = part.node },
                                     .next = plan->of_node[part.node] };
        plan->of_node[part.node] = plan->vacancy_count++;
        change_vacancy(plan, vacancy, &part, false);
    }
}

/* Remove the newest vacancies, down to 'first': nothing of them is granted. */
static void close_vacancies(struct plan *plan, uint32_t first)
{
    while (plan->vacancy_count > first) {
        struct vacancy *vacancy = &plan->vacancies[plan->vacancy_count - 1];
        struct room_part part = vacancy->left;
        change_vacancy(plan, vacancy, &part, true);
        assert(plan->of_node[part.node] == plan->vacancy_count - 1);
        plan->of_node[part.node] = vacancy->next;
        plan->vacancy_count--;
        update_vacated(plan, part.node);
    }
}

/* Give a job's seats back to vacancies, or take them out. */
static void change_vacancies(struct plan *plan, job_id id, job_id gpus_of, bool taken)
{
    const struct job *job = &plan->jobs[id];
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib, 0 };
        struct room_part gpus = { .node = seat->node,
                                  .gpus = gpus_left_behind(plan, seat) };
        change_vacancy(plan, find_vacancy(plan, seat->node, id), &part, taken);
        if (gpus_of != JOB_NONE)
            change_vacancy(plan, find_vacancy(plan, seat->node, gpus_of), &gpus, taken);
    }
}

void plan_revoke(struct plan *plan, job_id job, enum rule rule, job_id beneficiary)
{
    /* A job that must stay may be revoked to see what it would free, but not in a final plan. */
    bool what_if = rule == RULE_CANCEL || rule == RULE_NONE;
    bool may = what_if ? job_can_be_stopped(&plan->jobs[job])
                       : job_is_preemptible(&plan->jobs[job]);
    if (!may || plan_changes(plan, job)) {
        if (plan->wrong_job == JOB_NONE)
            plan->wrong_job = job;
        return;
    }
    struct change *change = add_change(plan, CHANGE_REVOKE, job);
    change->rule = rule;
    change->beneficiary = beneficiary;
    add_step(plan, STEP_REVOKE, plan->change_count - 1);
    open_vacancies(plan, job);
}

void plan_drop(struct plan *plan, job_id job)
{
    if (plan->jobs[job].state != JOB_WAITING || plan_changes(plan, job)) {
        plan->wrong_drop = plan->wrong_drop || plan->wrong_job == JOB_NONE;
        plan->wrong_job = plan->wrong_job == JOB_NONE ? job : plan->wrong_job;
        return;
    }
    add_change(plan, CHANGE_DROP, job);
    add_step(plan, STEP_DROP, plan->change_count - 1);
}

void plan_expect(struct plan *plan, job_id job, int64_t wait_saved_ns)
{
    const struct change *change = last_change(plan, job);
    assert(change);
    assert(change->kind == CHANGE_REVOKE);
    plan->changes[plan->of_job[job] - 1].wait_saved_ns = wait_saved_ns;
}

/* --- granting: which room ----------------------------------------------------- */

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
    uint64_t left = vacancy->left.gpus & ~plan->barred[seat->node];
    uint32_t has = bits_count(left);
    struct room_part part = { .node = seat->node,
                              .gpus = bits_lowest(left, min_of(gpus, has)),
                              .cpu_milli =
                                  min_of(need->cpu_milli, vacancy->left.cpu_milli),
                              .mem_mib = min_of(need->mem_mib, vacancy->left.mem_mib) };
    if (!part.gpus && !part.cpu_milli && !part.mem_mib)
        return 0;
    change_vacancy(plan, vacancy, &part, true);
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
    need.gpus = bits_lowest(room->gpus, gpus);
    change_free(plan, &need, true);
    seat->gpus |= need.gpus;
}

static bool find_nodes(struct plan *plan, const struct placement_request *want)
{
    struct placement_search place = { .cluster = plan->cluster,
                                      .rates = plan->state->view.rates,
                                      .free = plan->free,
                                      .vacated = plan->vacancy_count > 0
                                                     ? &plan->vacated
                                                     : NULL,
                                      .vacated_gpu_count = plan->vacated_gpu_count,
                                      .racks = plan->racks,
                                      .seats = plan->seats,
                                      .seat_count = plan->seat_count,
                                      .seat_max = plan->seat_max };
    if (!placement_find(&place, want))
        return false;
    plan->seat_count = place.seat_count;
    return true;
}

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
    if (want->gpus > plan_gpus_left(plan) || !find_nodes(plan, want))
        return false;
    uint32_t seat_count = plan->seat_count - seat_first;
    struct change *change = add_change(plan, CHANGE_GRANT, job);
    change->seat_first = seat_first;
    change->seat_count = seat_count;
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    for (uint32_t i = 0; i < seat_count; i++)
        take_node(plan, &plan->seats[seat_first + i]);
    change->pending_count = plan->pending_count - change->pending_first;
    change->spread = !ask->anywhere &&
                     is_spread(plan, &plan->seats[seat_first], seat_count, want->gpus);
    add_step(plan, STEP_GRANT, plan->change_count - 1);
    return true;
}

/* --- granting: beside another ------------------------------------------------ */

/* False if it will hold none. */
static bool find_final(const struct plan *plan, job_id id,
                       struct final_seats *ret_stand)
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
            gpus_left_behind(plan, seat) != seat->gpus ||
            (seat->gpus & plan->barred[seat->node]) ||
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
    change_free(plan, &need, true);
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
    if (host == id || !find_final(plan, host, &final) ||
        !is_alone(plan, host, &final) || !fits_beside(plan, &final, want, ask, host))
        return false;
    struct change *change = add_change(plan, CHANGE_GRANT, id);
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
    add_step(plan, STEP_GRANT, plan->change_count - 1);
    plan->guest[host] = 1 + id;
    if (final.granted)
        plan->changes[plan->of_job[host] - 1].shared = true;
    return true;
}

/* --- granting: where it is --------------------------------------------------- */

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
            found += vacancy && vacancy->left.gpus == gpus_left_behind(plan, seat);
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
    change_vacancies(plan, id, gpus_of, true);
    plan->changes[at].undone = true;
    add_step(plan, STEP_UNREVOKE, at)->gpus_of = gpus_of;
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
    struct change *change = add_change(plan, CHANGE_RENEW, job);
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    add_step(plan, STEP_RENEW, plan->change_count - 1);
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

static bool grant_job(struct plan *plan, job_id id, const struct ask *ask)
{
    static const struct ask as_it_says = { .beside = JOB_NONE };
    ask = ask ? ask : &as_it_says;
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

/* Show a node without what the calendar bars, or as it is again. */
static void bar_node(struct plan *plan, node_id node, uint64_t gpus, bool whole)
{
    struct room room = plan->free->rooms[node];
    room.gpus |= plan->barred_free[node];
    plan->barred[node] = gpus;
    plan->barred_free[node] = room.gpus & gpus;
    plan->whole_barred[node] = whole;
    room.gpus &= ~gpus;
    if (whole || plan->state->node_down[node]) {
        free_index_drop(plan->free, node);
        plan->free->rooms[node] = room;
    } else {
        free_index_put(plan->free, node, &room);
    }
    update_vacated(plan, node);
}

bool plan_grant(struct plan *plan, job_id id, const struct ask *ask)
{
    const struct calendar *calendar = &plan->state->calendar;
    if (calendar->count == 0)
        return grant_job(plan, id, ask);
    int64_t wait_ns = job_runs(&plan->jobs[id]) ? plan->jobs[id].grace_ns : 0;
    for (uint32_t i = 0; i < plan->vacancy_count; i++)
        if (plan->jobs[plan->vacancies[i].victim].grace_ns > wait_ns)
            wait_ns = plan->jobs[plan->vacancies[i].victim].grace_ns;
    int64_t leaves_ns = calendar_leaves_ns(&plan->state->view, id, wait_ns);
    for (uint32_t i = 0; i < calendar->count; i++) {
        const struct calendar_entry *entry = &calendar->entries[i];
        if (calendar_bars(entry, plan->jobs[id].user, plan->state->view.now_ns,
                          leaves_ns))
            bar_node(plan, entry->node, plan->barred[entry->node] | entry->gpus,
                     plan->whole_barred[entry->node] ||
                         calendar_is_whole(plan->cluster, entry));
    }
    bool granted = grant_job(plan, id, ask);
    for (uint32_t i = 0; i < calendar->count; i++)
        bar_node(plan, calendar->entries[i].node, 0, false);
    return granted;
}

bool plan_grant_free(struct plan *plan, job_id id, const struct ask *ask)
{
    size_t mark = plan_mark(plan);
    if (!plan_grant(plan, id, ask))
        return false;
    const struct change *change = last_change(plan, id);
    for (uint32_t i = 0; change && i < change->pending_count; i++)
        if (plan_pending(plan, change)[i].victim != id) {
            plan_undo(plan, mark);
            return false;
        }
    return true;
}

/* --- taking back ------------------------------------------------------------------- */

static void undo_grant(struct plan *plan, const struct change *change)
{
    const struct pending_part *pending_shares = plan_pending(plan, change);
    for (uint32_t i = change->seat_count; i-- > 0;) {
        const struct seat *seat = &plan->seats[change->seat_first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib,
                                  seat->gpus };
        if (change->beside != JOB_NONE)
            part.gpus = 0;
        for (uint32_t p = change->pending_count; p-- > 0;) {
            if (pending_shares[p].part.node != seat->node)
                continue;
            part.gpus &= ~pending_shares[p].part.gpus;
            part.cpu_milli -= pending_shares[p].part.cpu_milli;
            part.mem_mib -= pending_shares[p].part.mem_mib;
            if (!pending_shares[p].part.gpus && !pending_shares[p].part.cpu_milli &&
                !pending_shares[p].part.mem_mib)
                continue;
            uint32_t v = plan->of_node[seat->node];
            while (plan->vacancies[v].victim != pending_shares[p].victim)
                v = plan->vacancies[v].next;
            change_vacancy(plan, &plan->vacancies[v], &pending_shares[p].part, false);
        }
        change_free(plan, &part, false);
    }
}

/* The last step never happened, as far as rooms and jobs go. */
static void step_undo(struct plan *plan, const struct step *step)
{
    struct change *change = &plan->changes[step->change];
    switch (step->kind) {
    case STEP_REVOKE:
        close_vacancies(plan, step->vacancy_first);
        plan->revoked[change->job] = false;
        break;
    case STEP_UNREVOKE:
        change->undone = false;
        plan->revoked[change->job] = true;
        change_vacancies(plan, change->job, step->gpus_of, false);
        break;
    case STEP_GRANT:
        undo_grant(plan, change);
        if (change->beside != JOB_NONE)
            plan->guest[change->beside] = 0;
        break;
    case STEP_RENEW:
    case STEP_DROP:
        break;
    }
    plan->of_job[change->job] = step->last_change;
}

size_t plan_mark(const struct plan *plan)
{
    return plan->step_count;
}

void plan_undo(struct plan *plan, size_t mark)
{
    while (plan->step_count > mark) {
        const struct step *step = &plan->steps[--plan->step_count];
        step_undo(plan, step);
        if (step->kind == STEP_UNREVOKE)
            continue;
        const struct change *change = &plan->changes[step->change];
        if (change->beside != JOB_NONE && plan->of_job[change->beside])
            plan->changes[plan->of_job[change->beside] - 1].shared = false;
        plan->seat_count = change->seat_first;
        plan->pending_count = change->pending_first;
        plan->change_count = step->change;
    }
}

/* --- for the engine ---------------------------------------------------------------- */

void plan_wake(struct plan *plan, int64_t at_ns)
{
    plan->wake_ns = at_ns < plan->wake_ns ? at_ns : plan->wake_ns;
}

/* The one it is to share with stays on these seats, or comes there with it. */
static bool is_beside_still(const struct plan *plan, const struct change *change)
{
    struct final_seats final;
    if (!find_final(plan, change->beside, &final) || final.count != change->seat_count)
        return false;
    for (uint32_t i = 0; i < final.count; i++) {
        const struct seat *seat = &plan->seats[change->seat_first + i];
        if (seat->node != final.seats[i].node || seat->gpus != final.seats[i].gpus)
            return false;
    }
    return true;
}

int plan_check(const struct plan *plan, struct error *err)
{
    if (plan->wrong_job != JOB_NONE)
        return error_set(err, -EPROTO, "job %llu is %s or is changed already",
                         (unsigned long long)plan->jobs[plan->wrong_job].id,
                         plan->wrong_drop ? "dropped, but does not wait"
                                          : "revoked, but does not run");
    for (uint32_t i = 0; i < plan->change_count; i++) {
        const struct change *change = &plan->changes[i];
        const struct job *job = &plan->jobs[change->job];
        if (change->kind != CHANGE_GRANT)
            continue;
        uint32_t gpus = 0;
        for (uint32_t s = 0; s < change->seat_count; s++)
            gpus += seat_gpu_count(&plan->seats[change->seat_first + s]);
        bool whole =
            gpus == job->gpus ||
            (job_is_elastic(job) && gpus >= job->gpus_min && gpus <= job->gpus_max);
        if (!whole)
            return error_set(err, -EPROTO,
                             "job %llu is granted %u accelerators, its gang is %u",
                             (unsigned long long)job->id, gpus, job->gpus);
        if (job->set &&
            !node_set_keeps(job->set, plan_seats(plan, change), change->seat_count))
            return error_set(err, -EPROTO,
                             "job %llu is granted nodes that it must not use",
                             (unsigned long long)job->id);
        if (change->beside != JOB_NONE && !is_beside_still(plan, change))
            return error_set(err, -EPROTO,
                             "job %llu is to share with a job that leaves",
                             (unsigned long long)job->id);
    }
    return 0;
}

void plan_begin(struct plan *plan)
{
    assert(plan->step_count == 0);
    plan->change_count = plan->seat_count = plan->pending_count = 0;
    assert(plan->vacancy_count == 0 && plan->vacated_gpu_count == 0);
    plan->wake_ns = INT64_MAX;
    plan->wrong_job = JOB_NONE;
    plan->wrong_drop = false;
}

void plan_end(struct plan *plan)
{
    /* A revocation taken back stays so in the changes: they are what is carried out. */
    while (plan->step_count > 0) {
        const struct step *step = &plan->steps[--plan->step_count];
        bool undone = plan->changes[step->change].undone;
        step_undo(plan, step);
        plan->changes[step->change].undone = undone;
    }
}

const struct change *plan_change(const struct plan *plan, size_t index)
{
    return &plan->changes[index];
}

size_t plan_change_count(const struct plan *plan)
{
    return plan->change_count;
}

const struct seat *plan_seats(const struct plan *plan, const struct change *change)
{
    return &plan->seats[change->seat_first];
}

const struct pending_part *plan_pending(const struct plan *plan,
                                        const struct change *change)
{
    return &plan->pending_shares[change->pending_first];
}

int64_t plan_next_wake(const struct plan *plan)
{
    return plan->wake_ns;
}
