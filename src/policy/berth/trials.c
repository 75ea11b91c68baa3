/*
 * trials.c - trial jobs first, each where it costs least.
 *
 * For every type a trial job may use there are up to three ways:
 *
 *     free now       weight x (longer run there)
 *     clear a node   weight x (longer run there + longest pause) + sum of the victims' waste
 *     wait           weight x (longer run there + time until jobs that run there have ended)
 *
 * in job-seconds, with 'weight' what a second of a trial job's time counts for.  The cheapest
 * is taken.  While it waits for an end, the node is kept for it.
 *
 * After FitGpp (OpML 2019), whose score is size and grace period; here it is the price.
 */
#include <math.h>

#include "model/calendar.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "policy/berth/berth_internal.h"

#define PROBES_MAX 64  /* running jobs of a type whose nodes are looked at */
#define ON_NODE_MAX 64 /* jobs on one node */
#define ENDS_MAX 32    /* ends of running jobs that are looked at */

enum way_kind { WAY_NONE, WAY_TAKEN, WAY_FREE, WAY_CLEAR, WAY_WAIT };

struct trial_way {
    enum way_kind kind;
    double cost;
    uint32_t type;
    node_id node;
    uint32_t count;
    job_id victims[2 * ON_NODE_MAX];
};

/* A job that could vacate a node, or two that share GPUs there. */
struct tenant {
    job_id job;
    job_id partner; /* or JOB_NONE */
    double waste_gpu_s;
    double each; /* of that, for a GPU */
    struct room_part part;
};

static bool room_fits(const struct room *room, const struct job *job)
{
    if (bits_count(room->gpus) < job->gpus)
        return false;
    struct room_part need = placement_need(job, job->gpus);
    return need.cpu_milli <= room->cpu_milli && need.mem_mib <= room->mem_mib;
}

static void add_to_room(struct room *room, const struct room_part *part)
{
    room->gpus |= part->gpus;
    room->cpu_milli += part->cpu_milli;
    room->mem_mib += part->mem_mib;
}

static bool may_clear(const struct berth_policy *berth, const struct view *view,
                      const struct plan *plan, job_id id)
{
    return !berth->jobs[id].trial && !plan_changes(plan, id) &&
           job_is_preemptible(&view->jobs[id]);
}

/* A partner has to go as well: its part of the node, and what that costs. */
static void add_partner(const struct berth_policy *berth, const struct view *view,
                        struct tenant *tenant)
{
    const struct job *partner = &view->jobs[tenant->partner];
    const struct seat *seats = view_seats(view, tenant->partner);
    for (uint32_t s = 0; s < partner->seats.count; s++)
        if (seats[s].node == tenant->part.node) {
            tenant->part.cpu_milli += seats[s].cpu_milli;
            tenant->part.mem_mib += seats[s].mem_mib;
        }
    tenant->waste_gpu_s += price_of_stopping(berth, view, tenant->partner);
}

/* The jobs on a node that may be preempted, the cheapest GPU first; pairs once. */
static uint32_t list_tenants(struct berth_policy *berth, const struct view *view,
                             const struct plan *plan, node_id node,
                             struct tenant *tenants)
{
    uint32_t count = 0;
    uint32_t cursor = UINT32_MAX;
    struct room_part part;
    for (job_id id; count < ON_NODE_MAX &&
                    (id = preempt_next_on_node(&berth->preempt, node, &cursor,
                                               &part)) != JOB_NONE;) {
        job_id partner = view->jobs[id].partner;
        if (!may_clear(berth, view, plan, id) ||
            (partner != JOB_NONE &&
             (partner < id || !may_clear(berth, view, plan, partner))))
            continue;
        struct tenant tenant = { .job = id,
                                 .partner = partner,
                                 .waste_gpu_s = price_of_stopping(berth, view, id),
                                 .part = part };
        if (partner != JOB_NONE)
            add_partner(berth, view, &tenant);
        tenant.each = tenant.waste_gpu_s / fmax(bits_count(part.gpus), 0.1);
        uint32_t at = count++;
        for (; at > 0 && tenants[at - 1].each > tenant.each; at--)
            tenants[at] = tenants[at - 1];
        tenants[at] = tenant;
    }
    return count;
}

static double pause_of(const struct berth_policy *berth, const struct view *view,
                       const struct tenant *tenant)
{
    const struct cost_model *model = &berth->cost_test.model;
    double pause_s = cost_model_pause_s(model, view, tenant->job);
    return tenant->partner == JOB_NONE
               ? pause_s
               : fmax(pause_s, cost_model_pause_s(model, view, tenant->partner));
}

/* The cheapest jobs to preempt on this node, if that is better than the best way so far. */
static void try_node(struct berth_policy *berth, const struct view *view,
                     const struct plan *plan, const struct job *job, double base_cost,
                     node_id node, struct trial_way *best)
{
    struct tenant tenants[ON_NODE_MAX];
    bool kept[ON_NODE_MAX] = { false };
    struct room room;
    uint32_t used = 0;
    uint32_t count = list_tenants(berth, view, plan, node, tenants);
    uint64_t barred = calendar_barred(view, (job_id)(job - view->jobs), node, 0);
    plan_room(plan, node, &room);
    room.gpus &= ~barred;
    while (used < count && !room_fits(&room, job)) {
        add_to_room(&room, &tenants[used++].part);
        room.gpus &= ~barred;
    }
    if (used == 0 || !room_fits(&room, job))
        return;
    for (uint32_t i = used; i-- > 0;) { /* the dearest stay if they can */
        struct room without = { room.gpus & ~tenants[i].part.gpus,
                                room.cpu_milli - tenants[i].part.cpu_milli,
                                room.mem_mib - tenants[i].part.mem_mib };
        kept[i] = room_fits(&without, job);
        if (kept[i])
            room = without;
    }
    double pause_s = 0;
    double waste = 0;
    for (uint32_t i = 0; i < used; i++) {
        if (kept[i])
            continue;
        waste += tenants[i].waste_gpu_s;
        pause_s = fmax(pause_s, pause_of(berth, view, &tenants[i]));
    }
    double cost = base_cost + berth->trial_weight * pause_s + waste;
    if (cost >= best->cost)
        return;
    *best = (struct trial_way){ .kind = WAY_CLEAR,
                                .cost = cost,
                                .type = view->cluster->nodes[node].type,
                                .node = node };
    for (uint32_t i = 0; i < used; i++)
        if (!kept[i]) {
            best->victims[best->count++] = tenants[i].job;
            if (tenants[i].partner != JOB_NONE)
                best->victims[best->count++] = tenants[i].partner;
        }
}

static void try_clearing(struct berth_policy *berth, const struct view *view,
                         const struct plan *plan, const struct job *job, uint32_t type,
                         double base_cost, struct trial_way *best)
{
    uint32_t id = lazy_trees_first(berth->by_price, type);
    berth->search++;
    for (uint32_t probe = 0; id != TREE_NONE && probe < PROBES_MAX; probe++) {
        const struct seat *seats = view_seats(view, id);
        for (uint32_t s = 0; s < view->jobs[id].seats.count; s++) {
            node_id node = seats[s].node;
            if (berth->examined[node] == berth->search || !node_set_has(job->set, node))
                continue;
            berth->examined[node] = berth->search;
            try_node(berth, view, plan, job, base_cost, node, best);
        }
        id = lazy_trees_next(berth->by_price, id);
    }
}

/* A job's end that one can rely on: its work was declared and is not exceeded. */
static bool end_is_certain(const struct view *view, const struct job *job)
{
    return job->steps_total > 0 && job_steps(job, view->now_ns) < job->steps_total;
}

static void try_waiting(struct berth_policy *berth, const struct view *view,
                        const struct plan *plan, const struct job *job, uint32_t type,
                        double base_cost, struct trial_way *best)
{
    node_id nodes[ENDS_MAX];
    struct room rooms[ENDS_MAX];
    uint32_t count = 0;
    uint32_t id = lazy_trees_first(berth->running, type);
    for (uint32_t i = 0; id != TREE_NONE && i < ENDS_MAX; i++) {
        const struct job *other = &view->jobs[id];
        double wait_s =
            fmax((double)(lazy_trees_key(berth->running, id) - view->now_ns) * 1e-9, 0);
        double cost = base_cost + berth->trial_weight * wait_s;
        if (cost >= best->cost)
            return;
        const struct seat *seats = view_seats(view, id);
        bool frees = end_is_certain(view, other) && other->partner == JOB_NONE &&
                     !plan_changes(plan, id) && job_can_be_stopped(other);
        for (uint32_t s = 0; s < other->seats.count && frees; s++) {
            uint32_t n = 0;
            while (n < count && nodes[n] != seats[s].node)
                n++;
            if (n == ENDS_MAX)
                break;
            if (n == count) {
                nodes[count++] = seats[s].node;
                plan_room(plan, seats[s].node, &rooms[n]);
            }
            struct room_part part = { seats[s].node, seats[s].cpu_milli,
                                      seats[s].mem_mib, seats[s].gpus };
            add_to_room(&rooms[n], &part);
            if (room_fits(&rooms[n], job) && node_set_has(job->set, nodes[n])) {
                *best = (struct trial_way){
                    .kind = WAY_WAIT, .cost = cost, .type = type, .node = nodes[n]
                };
                return;
            }
        }
        id = lazy_trees_next(berth->running, id);
    }
}

/* The whole gang goes on one node of that type. */
static bool fits_one_node(const struct view *view, const struct job *job, uint32_t type)
{
    return job->nodes <= 1 &&
           job->gpus <= node_set_gpus_max(job->set, view->cluster, type);
}

static bool take_way(struct berth_policy *berth, const struct view *view,
                     struct plan *plan, job_id id, const struct trial_way *way)
{
    struct ask ask = ASK_DEFAULT;
    size_t mark = plan_mark(plan);
    ask.types = 1u << way->type;
    ask.avoid = &berth->aside;
    if (way->kind == WAY_FREE)
        return plan_grant_free(plan, id, &ask);
    if (way->kind == WAY_WAIT) {
        bits_set(&berth->aside, way->node);
        return false;
    }
    for (uint32_t i = 0; i < way->count; i++)
        plan_revoke(plan, way->victims[i], RULE_TRIAL, id);
    if (plan_grant(plan, id, &ask))
        return true;
    plan_undo(plan, mark);
    return false;
}

/* The cheapest way over all types; one that costs nothing is taken. */
static struct trial_way find_way(struct berth_policy *berth, const struct view *view,
                                 struct plan *plan, job_id id)
{
    struct trial_way best = { .kind = WAY_NONE, .cost = INFINITY };
    const struct job *job = &view->jobs[id];
    double left_s = value_of(berth, view, id).left_s;
    uint32_t types = job->types;
    for (uint32_t t = 0; t < view->cluster->type_count; t++) {
        double longer_s = left_s * (berth_slowness(berth, id, t) - 1);
        double base = berth->trial_weight * longer_s;
        if (!(types >> t & 1) || !(base < best.cost))
            continue;
        struct ask ask = ASK_DEFAULT;
        ask.types = 1u << t;
        ask.avoid = &berth->aside;
        size_t mark = plan_mark(plan);
        if (placement_has_nodes(view->free, job, t) &&
            plan_grant_free(plan, id, &ask)) {
            if (base <= 0)
                return (struct trial_way){ .kind = WAY_TAKEN }; /* none costs less */
            plan_undo(plan, mark);
            best = (struct trial_way){ .kind = WAY_FREE, .cost = base, .type = t };
            continue;
        }
        if (!fits_one_node(view, job, t))
            continue;
        try_waiting(berth, view, plan, job, t, base, &best);
        try_clearing(berth, view, plan, job, t, base, &best);
    }
    return best;
}

/* A gang of several nodes: the cheapest jobs are preempted until it fits. */
static bool clear_nodes(struct berth_policy *berth, const struct view *view,
                        struct plan *plan, job_id id)
{
    return preempt_for(&berth->preempt, view, plan, id, INT64_MIN);
}

static bool place_trial(struct berth_policy *berth, const struct view *view,
                        struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->gpus == 0)
        return plan_grant(plan, id, NULL);
    struct trial_way way = find_way(berth, view, plan, id);
    if (way.kind == WAY_TAKEN)
        return true;
    if (way.kind == WAY_NONE)
        return clear_nodes(berth, view, plan, id);
    return take_way(berth, view, plan, id, &way);
}

void trials_place(struct berth_policy *berth, const struct view *view,
                  struct plan *plan)
{
    struct sizes *trials = &berth->trials;
    double most = TRIAL_SHARE * view->cluster->gpu_count;
    uint32_t held = berth->trial_gpus;
    for (job_id id; (id = sizes_best(trials)) != JOB_NONE;) {
        uint32_t gpus = view->jobs[id].gpus;
        if ((held == 0 || held + gpus <= most) && place_trial(berth, view, plan, id)) {
            held += gpus;
            berth->jobs[id].trial = true;
            berth->jobs[id].in_rounds = false;
            sizes_take(trials, view, id);
        } else {
            sizes_skip(trials, id);
        }
    }
    sizes_unskip(trials);
}
