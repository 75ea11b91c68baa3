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
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/plan_internal.h"

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
    return plan;
}

/* --- rooms --------------------------------------------------------------------- */

/* Free and vacated room of a node changed: show it in the second index. */
static void update_vacated(struct plan *plan, node_id node)
{
    if (plan->of_node[node] == NONE || plan->state->node_down[node]) {
        free_index_drop(&plan->vacated, node);
        return;
    }
    const struct room *f = &plan->free->rooms[node];
    const struct room *v = &plan->on_node[node];
    struct room both = { f->gpus | v->gpus, f->cpu_milli + v->cpu_milli,
                         f->mem_mib + v->mem_mib };
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

void plan_free_change(struct plan *plan, const struct room_part *part, bool taken)
{
    struct room room = plan->free->rooms[part->node];
    if (taken)
        room_take(&room, part);
    else
        room_give(&room, part);
    free_index_put(plan->free, part->node, &room);
    if (plan->of_node[part->node] != NONE)
        update_vacated(plan, part->node);
}

void plan_vacancy_change(struct plan *plan, struct vacancy *vacancy,
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

/* Record a step; 'change' is now the last change of its job. */
struct step *plan_step_add(struct plan *plan, enum step_kind kind, uint32_t change)
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

struct change *plan_change_add(struct plan *plan, enum change_kind kind, job_id job)
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
                                  shared ? 0 : plan_left_behind(plan, seat) };
        assert(plan->vacancy_count < plan->seat_max);
        struct vacancy *vacancy = &plan->vacancies[plan->vacancy_count];
        *vacancy = (struct vacancy){ .victim = id,
                                     .left = { .node = part.node },
                                     .next = plan->of_node[part.node] };
        plan->of_node[part.node] = plan->vacancy_count++;
        plan_vacancy_change(plan, vacancy, &part, false);
    }
}

/* Remove the newest vacancies, down to 'first': nothing of them is granted. */
static void close_vacancies(struct plan *plan, uint32_t first)
{
    while (plan->vacancy_count > first) {
        struct vacancy *vacancy = &plan->vacancies[plan->vacancy_count - 1];
        struct room_part part = vacancy->left;
        plan_vacancy_change(plan, vacancy, &part, true);
        assert(plan->of_node[part.node] == plan->vacancy_count - 1);
        plan->of_node[part.node] = vacancy->next;
        plan->vacancy_count--;
        update_vacated(plan, part.node);
    }
}

/* Give a job's seats back to vacancies, or take them out. */
void plan_vacancies_change(struct plan *plan, job_id id, job_id gpus_of, bool taken)
{
    const struct job *job = &plan->jobs[id];
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &plan->state->seats[job->seats.first + i];
        struct room_part part = { seat->node, seat->cpu_milli, seat->mem_mib, 0 };
        struct room_part gpus = { .node = seat->node,
                                  .gpus = plan_left_behind(plan, seat) };
        plan_vacancy_change(plan, find_vacancy(plan, seat->node, id), &part, taken);
        if (gpus_of != JOB_NONE)
            plan_vacancy_change(plan, find_vacancy(plan, seat->node, gpus_of), &gpus,
                                taken);
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
    struct change *change = plan_change_add(plan, CHANGE_REVOKE, job);
    change->rule = rule;
    change->beneficiary = beneficiary;
    plan_step_add(plan, STEP_REVOKE, plan->change_count - 1);
    open_vacancies(plan, job);
}

void plan_drop(struct plan *plan, job_id job)
{
    if (plan->jobs[job].state != JOB_WAITING || plan_changes(plan, job)) {
        plan->wrong_drop = plan->wrong_drop || plan->wrong_job == JOB_NONE;
        plan->wrong_job = plan->wrong_job == JOB_NONE ? job : plan->wrong_job;
        return;
    }
    plan_change_add(plan, CHANGE_DROP, job);
    plan_step_add(plan, STEP_DROP, plan->change_count - 1);
}

void plan_expect(struct plan *plan, job_id job, int64_t wait_saved_ns)
{
    const struct change *change = last_change(plan, job);
    assert(change);
    assert(change->kind == CHANGE_REVOKE);
    plan->changes[plan->of_job[job] - 1].wait_saved_ns = wait_saved_ns;
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
            plan_vacancy_change(plan, &plan->vacancies[v], &pending_shares[p].part,
                                false);
        }
        plan_free_change(plan, &part, false);
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
        plan_vacancies_change(plan, change->job, step->gpus_of, false);
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
    if (at_ns < plan->wake_ns)
        plan->wake_ns = at_ns;
}

/* The one it is to share with stays on these seats, or comes there with it. */
static bool is_beside_still(const struct plan *plan, const struct change *change)
{
    struct final_seats final;
    if (!plan_find_final(plan, change->beside, &final) ||
        final.count != change->seat_count)
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
    assert(plan->vacancy_count == 0);
    assert(plan->vacated_gpu_count == 0);
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
