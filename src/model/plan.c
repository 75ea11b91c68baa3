/*
 * plan.c - what a policy wants: changes to who holds what from now on.
 *
 * While a plan is made, the state's own index of free room is borrowed: grants take
 * from it, so that the next grant sees what is left, and everything is put back at the
 * end (the orders that follow take it again, as events).  Room that this plan revokes
 * is kept apart, as vacancies on nodes: a second index holds just the nodes that have
 * some, with free and vacated room together.  So a job is placed in free room where
 * there is any, and only then waits for somebody to leave.
 *
 *     node 7:  [A A A A . . . .]     A revoked; B wants 6
 *     free     4..7
 *     vacated  0..3                  B gets 0..3 and 4,5: promised by A, and from free
 *
 * A job that has to wait for somebody anyway takes vacated room first, so that what is
 * free stays free for others.
 */
#include "model/plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/arena.h"
#include "base/error.h"
#include "model/free.h"
#include "model/node_set.h"
#include "model/place.h"
#include "model/sharing.h"
#include "model/state.h"

#define NONE UINT32_MAX

/* What a revoked job leaves on one node and nobody has been promised yet. */
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
    job_id gpus_of;         /* a revocation taken back: in whose vacancy they were */
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
    struct promise_part *promises;
    uint32_t promise_count;
    struct vacancy *vacancies;
    uint32_t vacancy_count;
    uint32_t seat_max;
    uint32_t change_max;

    uint32_t *of_job;     /* 1 + its last change in this plan; 0: none */
    bool *revoked;        /* by this plan, whether it is granted others or not */
    uint32_t *guest;      /* 1 + who is granted its seats beside it; 0: nobody */
    uint32_t *of_node;    /* first vacancy, or NONE                    */
    struct room *on_node; /* vacated there in all                      */
    uint32_t vacated_gpu_count;
    int64_t wake_ns;
    job_id wrong; /* revoked or dropped, though it may not be; JOB_NONE: nobody */
    bool wrong_drop;
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
    free_init(&plan->vacated, run, plan->cluster);
    plan->changes = arena_array(run, struct change, plan->change_max);
    plan->steps = arena_array(run, struct step, 2 * (size_t)plan->change_max);
    plan->seats = arena_array(run, struct seat, plan->seat_max);
    plan->promises = arena_array(run, struct promise_part, plan->seat_max);
    plan->vacancies = arena_array(run, struct vacancy, plan->seat_max);
    plan->of_job = arena_array(run, uint32_t, state->job_max);
    plan->revoked = arena_array(run, bool, state->job_max);
    plan->guest = arena_array(run, uint32_t, state->job_max);
    plan->of_node = arena_array(run, uint32_t, nodes);
    memset(plan->of_node, 0xff, nodes * sizeof *plan->of_node);
    plan->on_node = arena_array(run, struct room, nodes);
    return plan;
}

/* --- rooms --------------------------------------------------------------------- */

/* Free and vacated room of a node changed: show it in the second index. */
static void relist(struct plan *plan, node_id node)
{
    if (plan->of_node[node] == NONE || plan->state->node_down[node]) {
        free_drop(&plan->vacated, node);
        return;
    }
    const struct room *f = &plan->free->rooms[node];
    const struct room *v = &plan->on_node[node];
    struct room both = { f->gpus | v->gpus, f->cpu_milli + v->cpu_milli,
                         f->mem_mib + v->mem_mib };
    free_put(&plan->vacated, node, &both);
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

static void free_change(struct plan *plan, const struct room_part *part, bool taken)
{
    struct room room = plan->free->rooms[part->node];
    if (taken)
        room_take(&room, part);
    else
        room_give(&room, part);
    free_put(plan->free, part->node, &room);
    if (plan->of_node[part->node] != NONE)
        relist(plan, part->node);
}

static void vacancy_change(struct plan *plan, struct vacancy *vacancy,
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
    relist(plan, part->node);
}

/* --- what the plan says of a job --------------------------------------------------- */

static const struct change *last_change(const struct plan *plan, job_id job)
{
    uint32_t at = plan->of_job[job];
    return at ? &plan->changes[at - 1] : NULL;
}

/* Will be gone from the seats it has now. */
static bool leaves(const struct plan *plan, job_id job)
{
    return plan->revoked[job] || plan->jobs[job].state == JOB_STOPPING;
}

/* Somebody is beside a job and stays, or comes there: who leaves to come does not leave. */
static bool has_company(const struct plan *plan, job_id id)
{
    const struct job *job = &plan->jobs[id];
    if (job->coming != JOB_NONE)
        return true;
    if (job->partner == JOB_NONE)
        return false;
    return plan->jobs[job->partner].partner != id || !leaves(plan, job->partner);
}

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

bool plan_is_full(const struct plan *plan)
{
    return plan->free->gpu_count == 0 && plan->vacated_gpu_count == 0;
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

/* Remember that this was done; 'change' is the last word on its job from now on. */
static struct step *step_add(struct plan *plan, enum step_kind kind, uint32_t change)
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

static struct change *change_add(struct plan *plan, enum change_kind kind, job_id job)
{
    assert(plan->changes);
    assert(plan->change_count < plan->change_max);
    struct change *change = &plan->changes[plan->change_count++];
    *change = (struct change){ .kind = kind,
                               .job = job,
                               .for_whom = JOB_NONE,
                               .beside = JOB_NONE,
                               .wait_saved_ns = -1,
                               .seat_first = plan->seat_count,
                               .promise_first = plan->promise_count };
    return change;
}

/* --- revoking ------------------------------------------------------------------- */

/* Somebody else uses the same accelerators and stays, or comes: they are not vacated. */
static bool shares_on(const struct plan *plan, job_id id)
{
    return plan->guest[id] || has_company(plan, id);
}

static void open_vacancies(struct plan *plan, job_id id)
{
    const struct job *job = &plan->jobs[id];
    bool shared = shares_on(plan, id);
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib,
                                  shared ? 0 : seat->gpus };
        assert(plan->vacancy_count < plan->seat_max);
        struct vacancy *vacancy = &plan->vacancies[plan->vacancy_count];
        *vacancy = (struct vacancy){ .victim = id,
                                     .left = { .node = part.node },
                                     .next = plan->of_node[part.node] };
        plan->of_node[part.node] = plan->vacancy_count++;
        vacancy_change(plan, vacancy, &part, false);
    }
}

/* Take the newest vacancies back, down to 'first': nothing of them is promised. */
static void close_vacancies(struct plan *plan, uint32_t first)
{
    while (plan->vacancy_count > first) {
        struct vacancy *vacancy = &plan->vacancies[plan->vacancy_count - 1];
        struct room_part part = vacancy->left;
        vacancy_change(plan, vacancy, &part, true);
        assert(plan->of_node[part.node] == plan->vacancy_count - 1);
        plan->of_node[part.node] = vacancy->next;
        plan->vacancy_count--;
        relist(plan, part.node);
    }
}

void plan_revoke(struct plan *plan, job_id job, enum rule rule, job_id for_whom)
{
    /* To see what room it would leave is one thing, to send it away another. */
    bool what_if = rule == RULE_CANCEL || rule == RULE_NONE;
    bool may =
        what_if ? job_can_leave(&plan->jobs[job]) : job_may_leave(&plan->jobs[job]);
    if (!may || plan_changes(plan, job)) {
        if (plan->wrong == JOB_NONE)
            plan->wrong = job;
        return;
    }
    struct change *change = change_add(plan, CHANGE_REVOKE, job);
    change->rule = rule;
    change->for_whom = for_whom;
    step_add(plan, STEP_REVOKE, plan->change_count - 1);
    open_vacancies(plan, job);
}

void plan_drop(struct plan *plan, job_id job)
{
    if (plan->jobs[job].state != JOB_WAITING || plan_changes(plan, job)) {
        plan->wrong_drop = plan->wrong_drop || plan->wrong == JOB_NONE;
        plan->wrong = plan->wrong == JOB_NONE ? job : plan->wrong;
        return;
    }
    change_add(plan, CHANGE_DROP, job);
    step_add(plan, STEP_DROP, plan->change_count - 1);
}

void plan_expect(struct plan *plan, job_id job, int64_t wait_saved_ns)
{
    const struct change *change = last_change(plan, job);
    assert(change);
    assert(change->kind == CHANGE_REVOKE);
    plan->changes[plan->of_job[job] - 1].wait_saved_ns = wait_saved_ns;
}

/* --- granting: which room ----------------------------------------------------------- */

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

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void promise(struct plan *plan, job_id victim, const struct room_part *part)
{
    assert(plan->promise_count < plan->seat_max);
    plan->promises[plan->promise_count++] =
        (struct promise_part){ .victim = victim, .part = *part };
}

/* Take what 'seat' needs from a vacancy, as far as it goes; returns the GPUs taken. */
static uint32_t take_vacated(struct plan *plan, struct seat *seat,
                             struct vacancy *vacancy, uint32_t gpus,
                             struct room_part *need)
{
    uint32_t has = bits_count(vacancy->left.gpus);
    struct room_part part = { .node = seat->node,
                              .gpus = lowest_bits(vacancy->left.gpus, least(gpus, has)),
                              .cpu_milli =
                                  least(need->cpu_milli, vacancy->left.cpu_milli),
                              .mem_mib = least(need->mem_mib, vacancy->left.mem_mib) };
    if (!part.gpus && !part.cpu_milli && !part.mem_mib)
        return 0;
    vacancy_change(plan, vacancy, &part, true);
    promise(plan, vacancy->victim, &part);
    seat->gpus |= part.gpus;
    need->cpu_milli -= part.cpu_milli;
    need->mem_mib -= part.mem_mib;

    /* Both who shared these accelerators have to be gone. */
    job_id partner = plan->jobs[vacancy->victim].partner;
    if (part.gpus && partner != JOB_NONE) {
        struct room_part nothing = { .node = seat->node };
        promise(plan, partner, &nothing);
    }
    return bits_count(part.gpus);
}

/* Turn a chosen node into a seat: free room if that is enough, else vacated room first. */
static void occupy(struct plan *plan, struct seat *seat)
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
    free_change(plan, &need, true);
    seat->gpus |= need.gpus;
}

/* Append the nodes it can have to the plan's seats. */
static bool find_nodes(struct plan *plan, const struct place_want *want)
{
    struct place place = { .cluster = plan->cluster,
                           .rates = plan->state->view.rates,
                           .free = plan->free,
                           .vacated = plan->vacancy_count > 0 ? &plan->vacated : NULL,
                           .vacated_gpu_count = plan->vacated_gpu_count,
                           .seats = plan->seats,
                           .seat_count = plan->seat_count,
                           .seat_max = plan->seat_max };
    if (!place_find(&place, want))
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

static bool grant_found(struct plan *plan, job_id job, const struct place_want *want,
                        const struct ask *ask)
{
    uint32_t seat_first = plan->seat_count;
    if (!find_nodes(plan, want))
        return false;
    uint32_t seat_count = plan->seat_count - seat_first;
    struct change *change = change_add(plan, CHANGE_GRANT, job);
    change->seat_first = seat_first;
    change->seat_count = seat_count;
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    for (uint32_t i = 0; i < seat_count; i++)
        occupy(plan, &plan->seats[seat_first + i]);
    change->promise_count = plan->promise_count - change->promise_first;
    change->spread = !ask->anywhere &&
                     is_spread(plan, &plan->seats[seat_first], seat_count, want->gpus);
    step_add(plan, STEP_GRANT, plan->change_count - 1);
    return true;
}

/* --- granting: beside another --------------------------------------------------------- */

/* Where a job will be once the plan is carried out; 'granted' NULL: where it is. */
struct stand {
    const struct change *granted;
    const struct seat *seats;
    uint32_t count;
};

static bool find_stand(const struct plan *plan, job_id id, struct stand *ret_stand)
{
    const struct job *job = &plan->jobs[id];
    const struct change *change = last_change(plan, id);
    if (change && (change->kind == CHANGE_REVOKE || change->kind == CHANGE_DROP))
        return false;
    if (change && change->kind == CHANGE_GRANT) {
        *ret_stand =
            (struct stand){ change, plan_seats(plan, change), change->seat_count };
        return true;
    }
    *ret_stand =
        (struct stand){ NULL, &plan->state->seats[job->seats.first], job->seats.count };
    return job_can_leave(job);
}

/* Nobody will be beside 'host' where it stays or goes. */
static bool is_alone(const struct plan *plan, job_id host, const struct stand *stand)
{
    if (plan->guest[host])
        return false;
    return stand->granted ? stand->granted->beside == JOB_NONE
                          : !has_company(plan, host);
}

/* On these seats, beside that job: the right ones, and CPU and memory for it. */
static bool fits_beside(const struct plan *plan, const struct stand *stand,
                        const struct place_want *want, const struct ask *ask,
                        job_id host)
{
    uint32_t type = plan->cluster->nodes[stand->seats[0].node].type;
    uint32_t gpus = 0;
    if (type == TYPE_NONE || !(want->types >> type & 1))
        return false;
    for (uint32_t i = 0; i < stand->count; i++) {
        const struct seat *seat = &stand->seats[i];
        struct room_part need = place_need(want->job, seat_gpu_count(seat));
        struct room room;
        plan_room(plan, seat->node, &room);
        gpus += seat_gpu_count(seat);
        if (room.cpu_milli < need.cpu_milli || room.mem_mib < need.mem_mib ||
            (want->avoid && bits_test(want->avoid, seat->node)))
            return false;
    }
    double rates[2];
    return gpus == want->gpus &&
           node_set_keeps(want->job->set, stand->seats, stand->count) &&
           sharing_rates(
               plan->state->view.rates, want->job, &plan->jobs[host], type, gpus,
               !ask->anywhere && is_spread(plan, stand->seats, stand->count, gpus),
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
    free_change(plan, &need, true);
}

/* Whoever the other waits for, or who leaves it, this one waits for as well. */
static void wait_as(struct plan *plan, job_id host, const struct stand *stand)
{
    struct room_part nothing = { .node = stand->seats[0].node };
    job_id partner = plan->jobs[host].partner;
    if (!stand->granted && partner != JOB_NONE)
        promise(plan, partner, &nothing);
    for (uint32_t i = 0; stand->granted && i < stand->granted->promise_count; i++)
        promise(plan, plan_promises(plan, stand->granted)[i].victim, &nothing);
}

static bool grant_beside(struct plan *plan, job_id id, const struct place_want *want,
                         const struct ask *ask)
{
    job_id host = ask->beside;
    struct stand stand;
    if (host == id || !find_stand(plan, host, &stand) ||
        !is_alone(plan, host, &stand) || !fits_beside(plan, &stand, want, ask, host))
        return false;
    struct change *change = change_add(plan, CHANGE_GRANT, id);
    change->beside = host;
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    change->seat_count = stand.count;
    change->spread =
        !ask->anywhere && is_spread(plan, stand.seats, stand.count, want->gpus);
    for (uint32_t i = 0; i < stand.count; i++) {
        struct room_part need = place_need(want->job, seat_gpu_count(&stand.seats[i]));
        assert(plan->seat_count < plan->seat_max);
        struct seat *seat = &plan->seats[plan->seat_count++];
        *seat = (struct seat){ .node = stand.seats[i].node,
                               .cpu_milli = need.cpu_milli,
                               .mem_mib = need.mem_mib,
                               .gpus = stand.seats[i].gpus };
        occupy_beside(plan, seat);
    }
    wait_as(plan, host, &stand);
    change->promise_count = plan->promise_count - change->promise_first;
    step_add(plan, STEP_GRANT, plan->change_count - 1);
    plan->guest[host] = 1 + id;
    if (stand.granted)
        plan->changes[plan->of_job[host] - 1].shared = true;
    return true;
}

/* --- granting: where it is ------------------------------------------------------------ */

static struct vacancy *vacancy_of(const struct plan *plan, node_id node, job_id victim)
{
    uint32_t v = plan->of_node[node];
    while (v != NONE && plan->vacancies[v].victim != victim)
        v = plan->vacancies[v].next; /* the newest is first */
    return v == NONE ? NULL : &plan->vacancies[v];
}

/* In whose vacancies all its accelerators still are: its own or its partner's. */
static bool find_gpus(const struct plan *plan, job_id id, job_id *ret_whose)
{
    const struct job *job = &plan->jobs[id];
    const job_id whose[2] = { id, job->partner };
    for (uint32_t w = 0; w < 2 && whose[w] != JOB_NONE; w++) {
        uint32_t found = 0;
        for (uint32_t i = 0; i < job->seats.count; i++) {
            const struct seat *seat = &plan->state->seats[job->seats.first + i];
            const struct vacancy *vacancy = vacancy_of(plan, seat->node, whose[w]);
            found += vacancy && vacancy->left.gpus == seat->gpus;
        }
        *ret_whose = whose[w];
        if (found == job->seats.count)
            return true;
    }
    return false;
}

/* Give a job's seats back to vacancies, or take them out. */
static void vacancies_change(struct plan *plan, job_id id, job_id gpus_of, bool taken)
{
    const struct job *job = &plan->jobs[id];
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib, 0 };
        struct room_part gpus = { .node = seat->node, .gpus = seat->gpus };
        vacancy_change(plan, vacancy_of(plan, seat->node, id), &part, taken);
        if (gpus_of != JOB_NONE)
            vacancy_change(plan, vacancy_of(plan, seat->node, gpus_of), &gpus, taken);
    }
}

/*
 * What a revoked job left is all still there: let it stay.  Beside a partner who stays
 * only if it asks for it, and nobody has come in between.
 */
static bool unrevoke(struct plan *plan, job_id id, job_id beside)
{
    uint32_t at = plan->of_job[id] - 1;
    const struct job *job = &plan->jobs[id];
    bool paired = has_company(plan, id);
    if (paired ? beside == JOB_NONE : beside != JOB_NONE)
        return false;
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        const struct vacancy *vacancy = vacancy_of(plan, seat->node, id);
        if (vacancy->left.cpu_milli != seat->cpu_milli ||
            vacancy->left.mem_mib != seat->mem_mib)
            return false;
    }
    job_id gpus_of = JOB_NONE;
    if (job->gpus_now > 0 && !shares_on(plan, id) && !find_gpus(plan, id, &gpus_of))
        return false;
    vacancies_change(plan, id, gpus_of, true);
    plan->changes[at].undone = true;
    step_add(plan, STEP_UNREVOKE, at)->gpus_of = gpus_of;
    return true;
}

/* Its present seats are what is asked for. */
static bool is_content(const struct plan *plan, const struct job *job,
                       const struct place_want *want)
{
    for (uint32_t i = 0; want->avoid && i < job->seats.count; i++)
        if (bits_test(want->avoid, plan->state->seats[job->seats.first + i].node))
            return false;
    return job->gpus_now == want->gpus &&
           (job->type_now == TYPE_NONE || (want->types >> job->type_now & 1));
}

/* It stays where it is; a job whose lease is over, or that gets a new one, is told. */
static bool stay(struct plan *plan, job_id job, const struct ask *ask)
{
    if (plan->jobs[job].state != JOB_IDLE && ask->steps_max == 0)
        return true;
    struct change *change = change_add(plan, CHANGE_RENEW, job);
    change->steps_max = ask->steps_max;
    change->together = ask->together;
    step_add(plan, STEP_RENEW, plan->change_count - 1);
    return true;
}

/* It shares with the job it is to be beside, and that one stays. */
static bool is_beside(const struct plan *plan, job_id id, job_id other)
{
    return plan->jobs[id].partner == other && job_can_leave(&plan->jobs[other]) &&
           !leaves(plan, other) && !plan->guest[other];
}

static bool grant_somewhere(struct plan *plan, job_id id, const struct place_want *want,
                            const struct ask *ask)
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
    struct place_want want = { .job = job,
                               .gpus = ask->gpus ? ask->gpus : job->gpus,
                               .types =
                                   ask->types ? ask->types & job->types : job->types,
                               .nodes = job->nodes,
                               .spread = ask->spread || ask->anywhere || job->spread,
                               .avoid = ask->avoid };
    const struct change *change = last_change(plan, id);

    if (change && change->kind != CHANGE_REVOKE)
        return change->kind != CHANGE_DROP &&
               (ask->beside == JOB_NONE || change->beside == ask->beside ||
                (change->kind == CHANGE_RENEW && job->partner == ask->beside));
    if (!change && (job->state == JOB_PLACED || job->next.count > 0))
        return ask->beside == JOB_NONE || job->partner == ask->beside ||
               job->next_partner ==
                   ask->beside; /* it has been promised seats already */
    if (job->state == JOB_HELD || job->state == JOB_FREE || job->leaving)
        return false;

    bool here = ask->beside == JOB_NONE || is_beside(plan, id, ask->beside);
    if (job_runs(job) && here && is_content(plan, job, &want) &&
        (!change || unrevoke(plan, id, ask->beside)))
        return stay(plan, id, ask);
    if (!job_runs(job) || change)
        return grant_somewhere(plan, id, &want, ask);
    if (job->stays) /* it goes nowhere else: what it has it may go on with */
        return ask->beside == JOB_NONE && stay(plan, id, ask);
    if (plan->guest[id])
        return false; /* somebody has been granted its seats beside it */

    size_t mark = plan_mark(plan);
    plan_revoke(plan, id, RULE_RESIZE, id);
    if (grant_somewhere(plan, id, &want, ask))
        return true;
    plan_undo(plan, mark);
    return false;
}

/* --- taking back ------------------------------------------------------------------- */

static void undo_grant(struct plan *plan, const struct change *change)
{
    const struct promise_part *promises = plan_promises(plan, change);
    for (uint32_t i = change->seat_count; i-- > 0;) {
        const struct seat *seat = &plan->seats[change->seat_first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib,
                                  seat->gpus };
        if (change->beside != JOB_NONE)
            part.gpus = 0;
        for (uint32_t p = change->promise_count; p-- > 0;) {
            if (promises[p].part.node != seat->node)
                continue;
            part.gpus &= ~promises[p].part.gpus;
            part.cpu_milli -= promises[p].part.cpu_milli;
            part.mem_mib -= promises[p].part.mem_mib;
            if (!promises[p].part.gpus && !promises[p].part.cpu_milli &&
                !promises[p].part.mem_mib)
                continue;
            uint32_t v = plan->of_node[seat->node];
            while (plan->vacancies[v].victim != promises[p].victim)
                v = plan->vacancies[v].next;
            vacancy_change(plan, &plan->vacancies[v], &promises[p].part, false);
        }
        free_change(plan, &part, false);
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
        vacancies_change(plan, change->job, step->gpus_of, false);
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
        plan->promise_count = change->promise_first;
        plan->change_count = step->change;
    }
}

/* --- for the engine ---------------------------------------------------------------- */

void plan_wake(struct plan *plan, int64_t at_ns)
{
    if (at_ns < plan->wake_ns)
        plan->wake_ns = at_ns;
}

/* The one it is to share with stays on these seats, or comes there with it. */
static bool is_beside_still(const struct plan *plan, const struct change *change)
{
    struct stand stand;
    if (!find_stand(plan, change->beside, &stand) || stand.count != change->seat_count)
        return false;
    for (uint32_t i = 0; i < stand.count; i++) {
        const struct seat *seat = &plan->seats[change->seat_first + i];
        if (seat->node != stand.seats[i].node || seat->gpus != stand.seats[i].gpus)
            return false;
    }
    return true;
}

int plan_check(const struct plan *plan, struct error *err)
{
    if (plan->wrong != JOB_NONE)
        return error_set(err, -EPROTO, "job %llu is %s or is changed already",
                         (unsigned long long)plan->jobs[plan->wrong].id,
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
    plan->change_count = plan->seat_count = plan->promise_count = 0;
    assert(plan->vacancy_count == 0);
    assert(plan->vacated_gpu_count == 0);
    plan->wake_ns = INT64_MAX;
    plan->wrong = JOB_NONE;
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

const struct promise_part *plan_promises(const struct plan *plan,
                                         const struct change *change)
{
    return &plan->promises[change->promise_first];
}

int64_t plan_next_wake(const struct plan *plan)
{
    return plan->wake_ns;
}
