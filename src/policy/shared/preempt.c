/* preempt.c - make room for one job by preempting others. */
#include "policy/shared/preempt.h"

#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/hash.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/placement.h"

#define NONE UINT32_MAX
#define VACATED_MAX 1024
#define MEMOS_MAX 256

/* What a running job holds on one node. */
struct preempt_share {
    job_id job;
    node_id node;
    uint32_t cpu_milli, mem_mib;
    uint64_t gpus;
    uint32_t next_on_node, prev_on_node;
    uint32_t next_of_job;
};

/* For a job of this size and this claim, or a weaker one, no room can be made. */
struct preempt_memo {
    uint32_t era; /* 0: none */
    uint32_t gpus, cpu_milli, mem_mib, types, nodes, set;
    bool spread;
    bool lacks_room;
    int64_t claim;
    uint64_t vacated_count; /* at the time of the search */
};

void preempt_init(struct preempt *preempt, struct arena *run, const struct view *view,
                  const struct preempt_rule *rule, const void *self)
{
    const struct cluster *cluster = view->cluster;
    *preempt =
        (struct preempt){ .rule = rule, .self = self, .share_free = NONE, .era = 1 };
    preempt->rooms = arena_array(run, struct room, cluster->node_count);
    preempt->seen = arena_array(run, uint32_t, cluster->node_count);
    preempt->victims = arena_array(run, job_id, view->job_max);
    preempt->walked = arena_array(run, uint32_t, view->job_max);
    preempt->shares = arena_array(run, struct preempt_share,
                                  2 * (size_t)cluster->gpu_count + view->job_max);
    preempt->on_node = arena_array(run, uint32_t, cluster->node_count);
    memset(preempt->on_node, 0xff, cluster->node_count * sizeof *preempt->on_node);
    preempt->of_job = arena_array(run, uint32_t, view->job_max);
    preempt->was_pending = arena_array(run, bool, view->job_max);
    preempt->placed_ns = arena_array(run, int64_t, view->job_max);
    preempt->vacated = arena_array(run, node_id, VACATED_MAX);
    preempt->memos = arena_array(run, struct preempt_memo, MEMOS_MAX);
}

/* --- which job is on which node --------------------------------------------------- */

static void add_share(struct preempt *preempt, job_id job, const struct seat *seat)
{
    uint32_t at = preempt->share_free;
    if (at != NONE)
        preempt->share_free = preempt->shares[at].next_of_job;
    else
        at = preempt->share_used++;
    uint32_t next = preempt->on_node[seat->node];
    preempt->shares[at] = (struct preempt_share){ .job = job,
                                                  .node = seat->node,
                                                  .cpu_milli = seat->cpu_milli,
                                                  .mem_mib = seat->mem_mib,
                                                  .gpus = seat->gpus,
                                                  .next_on_node = next,
                                                  .prev_on_node = NONE,
                                                  .next_of_job = preempt->of_job[job] };
    if (next != NONE)
        preempt->shares[next].prev_on_node = at;
    preempt->on_node[seat->node] = at;
    preempt->of_job[job] = at;
}

static void note_vacated_node(struct preempt *preempt, node_id node)
{
    preempt->vacated[preempt->vacated_count++ % VACATED_MAX] = node;
}

static void drop_shares(struct preempt *preempt, job_id job)
{
    while (preempt->of_job[job] != NONE) {
        uint32_t at = preempt->of_job[job];
        struct preempt_share *share = &preempt->shares[at];
        if (share->next_on_node != NONE)
            preempt->shares[share->next_on_node].prev_on_node = share->prev_on_node;
        if (share->prev_on_node != NONE)
            preempt->shares[share->prev_on_node].next_on_node = share->next_on_node;
        else
            preempt->on_node[share->node] = share->next_on_node;
        note_vacated_node(preempt, share->node);
        preempt->of_job[job] = share->next_of_job;
        share->next_of_job = preempt->share_free;
        preempt->share_free = at;
    }
}

static void add_shares(struct preempt *preempt, const struct view *view, job_id job)
{
    const struct seat *seats = view_seats(view, job);
    for (uint32_t i = 0; i < view->jobs[job].seats.count; i++)
        add_share(preempt, job, &seats[i]);
}

void preempt_touch(struct preempt *preempt, job_id job)
{
    for (uint32_t at = preempt->of_job[job]; at != NONE;
         at = preempt->shares[at].next_of_job)
        note_vacated_node(preempt, preempt->shares[at].node);
}

void preempt_observe(struct preempt *preempt, const struct view *view,
                     const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUBMITTED:
        preempt->of_job[event->job] = NONE;
        break;
    case EVENT_ADOPTED:
        preempt->of_job[event->job] = NONE;
        if (job_holds_seats(&view->jobs[event->job]))
            add_shares(preempt, view, event->job);
        break;
    case EVENT_PLACED:
        /* A job that is still to stop takes its time, whether other jobs are in its way or not. */
        preempt->was_pending[event->job] =
            event->pending_count > 0 || view->jobs[event->job].state == JOB_STOPPING;
        preempt->placed_ns[event->job] = event->at_ns;
        break;
    case EVENT_STARTED:
        add_shares(preempt, view, event->job);
        if (preempt->was_pending[event->job] ||
            event->at_ns > preempt->placed_ns[event->job])
            preempt_touch(preempt,
                          event->job); /* GPUs that were pending can be taken again */
        break;
    case EVENT_RESIZED:
        drop_shares(preempt, event->job);
        add_shares(preempt, view, event->job);
        break;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        drop_shares(preempt, event->job);
        break;
    case EVENT_LOST:
    case EVENT_CANCELLED:
        preempt->era++; /* its pending GPUs are free, on nodes not known here */
        drop_shares(preempt, event->job);
        break;
    case EVENT_BOUNDARY:
    case EVENT_RESERVED:
        preempt->era++;
        break;
    case EVENT_NODE_UP:
    case EVENT_FOREIGN:
        note_vacated_node(preempt, event->node);
        break;
    default:
        break;
    }
}

job_id preempt_next_on_node(const struct preempt *preempt, node_id node,
                            uint32_t *cursor, struct room_part *ret_part)
{
    uint32_t at = *cursor == NONE ? preempt->on_node[node]
                                  : preempt->shares[*cursor].next_on_node;
    if (at == NONE)
        return JOB_NONE;
    const struct preempt_share *share = &preempt->shares[at];
    *cursor = at;
    *ret_part =
        (struct room_part){ node, share->cpu_milli, share->mem_mib, share->gpus };
    return share->job;
}

/* --- the search ------------------------------------------------------------------- */

/* What the beneficiary needs of one type of node, and what was found so far. */
struct preempt_need {
    bool allowed;
    bool alone;     /* the whole gang goes on one node */
    uint32_t each;  /* GPUs per node: the whole gang, or a full node */
    uint32_t nodes; /* number of such nodes needed */
    uint32_t least; /* GPUs on the node with the smallest part of the gang */
    uint32_t found; /* nodes that would hold 'each' */
    uint32_t gpus;  /* GPUs that would be free, at most */
};

struct preempt_search {
    const struct job *job;
    job_id id;
    struct preempt_need needs[TYPES_MAX + 1]; /* by type */
};

static bool room_holds(const struct room *room, const struct job *job, uint32_t gpus)
{
    struct room_part need = placement_need(job, gpus);
    return bits_count(room->gpus) >= gpus && need.cpu_milli <= room->cpu_milli &&
           need.mem_mib <= room->mem_mib;
}

/* Whether the beneficiary may be put on this node. */
static bool may_use(const struct preempt *preempt, const struct preempt_search *search,
                    node_id node)
{
    return node_set_has(search->job->set, node) &&
           !(preempt->avoid && bits_test(preempt->avoid, node));
}

/* GPUs that the calendar keeps from it if it has to wait for this job to stop. */
static uint64_t find_barred(const struct view *view,
                            const struct preempt_search *search, node_id node,
                            job_id victim)
{
    return calendar_barred(view, search->id, node, view->jobs[victim].grace_ns);
}

/* Its GPUs become free with it: no job shares them, or one that has to stop as well. */
static bool vacates_gpus(const struct preempt *preempt, const struct view *view,
                         const struct plan *plan, job_id victim)
{
    job_id partner = view->jobs[victim].partner;
    return partner == JOB_NONE || preempt->walked[partner] == preempt->walk ||
           !plan_holds(plan, partner);
}

/* Add what the candidate holds, node by node. */
static void count_candidate(struct preempt *preempt, const struct view *view,
                            const struct plan *plan, struct preempt_search *search,
                            job_id victim)
{
    const struct job *leaver = &view->jobs[victim];
    const struct seat *seats = view_seats(view, victim);
    bool vacates = vacates_gpus(preempt, view, plan, victim);
    preempt->walked[victim] = preempt->walk;
    for (uint32_t i = 0; i < leaver->seats.count; i++) {
        node_id node = seats[i].node;
        struct preempt_need *need = &search->needs[view->cluster->nodes[node].type];
        struct room *room = &preempt->rooms[node];
        if (!need->allowed || !may_use(preempt, search, node))
            continue;
        if (preempt->seen[node] != preempt->walk) {
            preempt->seen[node] = preempt->walk;
            plan_room(plan, node, room);
        }
        bool held = room_holds(room, search->job, need->each);
        room->gpus |= vacates ? seats[i].gpus : 0;
        room->gpus &= ~find_barred(view, search, node, victim);
        room->cpu_milli += seats[i].cpu_milli;
        room->mem_mib += seats[i].mem_mib;
        need->gpus += vacates ? seat_gpu_count(&seats[i]) : 0;
        if (!held && room_holds(room, search->job, need->each))
            need->found++;
    }
}

/* By the counts, a gang could fit on some type: worth trying to grant it. */
static bool looks_possible(const struct view *view, const struct preempt_search *search)
{
    const struct job *job = search->job;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        const struct preempt_need *need = &search->needs[type];
        if (need->allowed && !need->alone && need->gpus >= job->gpus &&
            (need->found >= need->nodes || (job->spread && !job->nodes)))
            return true;
    }
    return false;
}

/*
 * Count free nodes among those the job may use; their CPUs and memory are not checked.
 */
static void count_allowed_nodes(const struct free_index *index,
                                const struct bits *nodes, uint32_t type,
                                struct preempt_need *need)
{
    for (node_id node = bits_next(nodes, 0); node != BITS_NONE;
         node = bits_next(nodes, node + 1)) {
        if (!index->listed[node] || index->cluster->nodes[node].type != type)
            continue;
        uint32_t gpus = bits_count(index->rooms[node].gpus);
        need->gpus += gpus;
        need->found += gpus >= need->each;
    }
}

/* An upper bound: a node partly vacated by the plan is counted twice. */
static void count_free_shelf(const struct free_index *index, const struct job *job,
                             uint32_t type, struct preempt_need *need)
{
    const struct free_shelf *shelf = &index->shelves[type];
    uint32_t node_max = index->cluster->types[type].node_gpus_max;
    if (job->set) {
        count_allowed_nodes(index, &job->set->allowed, type, need);
        return;
    }
    need->gpus += shelf->gpu_count;
    for (uint32_t count = need->each; count > 0 && count <= node_max; count++)
        need->found += shelf->by_count[count].count;
}

/* A gang on several nodes can also use nodes that are free already. */
static void count_free_nodes(const struct view *view, const struct plan *plan,
                             struct preempt_search *search)
{
    const struct free_index *vacated = plan_vacated(plan);
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        struct preempt_need *need = &search->needs[type];
        if (!need->allowed || need->alone)
            continue;
        count_free_shelf(view->free, search->job, type, need);
        count_free_shelf(vacated, search->job, type, need);
    }
}

/*
 * Revoke the candidates and grant the job.  Then repeat it with only the candidates
 * whose GPUs the grant used, so that no other job is preempted.
 */
static bool revoke_and_grant(struct preempt *preempt, struct plan *plan, job_id job,
                             enum rule rule)
{
    struct ask ask = ASK_DEFAULT;
    ask.avoid = preempt->avoid;
    size_t mark = plan_mark(plan);
    for (uint32_t i = 0; i < preempt->victim_count; i++)
        plan_revoke(plan, preempt->victims[i], rule, job);
    if (!plan_grant(plan, job, &ask)) {
        plan_undo(plan, mark);
        return false;
    }
    for (uint32_t i = 0; i < preempt->victim_count; i++) {
        const struct change *grant = plan_change(plan, plan_change_count(plan) - 1);
        const struct pending_part *pending_shares = plan_pending(plan, grant);
        uint32_t used = 0;
        for (uint32_t v = 0; v < preempt->victim_count; v++) {
            bool needed = false;
            for (uint32_t p = 0; p < grant->pending_count && !needed; p++)
                needed = pending_shares[p].victim == preempt->victims[v];
            if (needed)
                preempt->victims[used++] = preempt->victims[v];
        }
        if (used == preempt->victim_count)
            break;
        preempt->victim_count = used;
        plan_undo(plan, mark);
        for (uint32_t v = 0; v < used; v++)
            plan_revoke(plan, preempt->victims[v], rule, job);
        if (!plan_grant(plan, job, &ask)) {
            plan_undo(plan, mark);
            return false;
        }
    }
    return true;
}

/*
 * Whether the beneficiary needs this victim's share of 'node'; if not, it is taken out
 * of 'room'.
 */
static bool is_needed(const struct view *view, const struct preempt_search *search,
                      node_id node, job_id victim, struct room *room)
{
    const struct seat *seats = view_seats(view, victim);
    uint32_t each = search->needs[view->cluster->nodes[node].type].each;
    for (uint32_t s = 0; s < view->jobs[victim].seats.count; s++) {
        if (seats[s].node != node)
            continue;
        struct room without = { room->gpus & ~seats[s].gpus,
                                room->cpu_milli - seats[s].cpu_milli,
                                room->mem_mib - seats[s].mem_mib };
        if (!room_holds(&without, search->job, each))
            return true;
        *room = without;
    }
    return false;
}

/* How many candidates have to vacate 'node'; the least preferred are kept first. */
static uint32_t count_needed_victims(const struct preempt *preempt,
                                     const struct view *view,
                                     const struct preempt_search *search, node_id node)
{
    struct room room = preempt->rooms[node];
    uint32_t count = 0;
    for (uint32_t i = preempt->victim_count; i-- > 0;)
        count += is_needed(view, search, node, preempt->victims[i], &room);
    return count;
}

/* Keep as victims only candidates that have to vacate 'node'. */
static void drop_unneeded_victims(struct preempt *preempt, const struct view *view,
                                  const struct preempt_search *search, node_id node)
{
    struct room room = preempt->rooms[node];
    uint32_t kept = 0;
    for (uint32_t i = preempt->victim_count; i-- > 0;)
        if (!is_needed(view, search, node, preempt->victims[i], &room))
            preempt->victims[i] = JOB_NONE;
    for (uint32_t i = 0; i < preempt->victim_count; i++)
        if (preempt->victims[i] != JOB_NONE)
            preempt->victims[kept++] = preempt->victims[i];
    preempt->victim_count = kept;
}

/*
 * Of the last candidate's nodes, one that could hold the whole gang; of several, the
 * one with the fewest victims.
 */
static node_id find_single_node(const struct preempt *preempt, const struct view *view,
                                const struct preempt_search *search, job_id victim)
{
    const struct seat *seats = view_seats(view, victim);
    node_id best = NODE_NONE;
    uint32_t best_count = NONE;
    for (uint32_t i = 0; i < view->jobs[victim].seats.count; i++) {
        node_id node = seats[i].node;
        const struct preempt_need *need =
            &search->needs[view->cluster->nodes[node].type];
        if (!need->allowed || !need->alone || !may_use(preempt, search, node) ||
            !room_holds(&preempt->rooms[node], search->job, need->each))
            continue;
        uint32_t count = view->jobs[victim].seats.count > 1
                             ? count_needed_victims(preempt, view, search, node)
                             : 1;
        if (count < best_count) {
            best = node;
            best_count = count;
        }
    }
    return best;
}

/* --- failed searches -------------------------------------------------------------- */

static struct preempt_memo *memo_of(struct preempt *preempt, const struct job *job)
{
    uint64_t hash =
        hash_word(HASH_WORDS_START, job->gpus | (uint64_t)job->cpu_milli << 32);
    hash = hash_word(hash, job->mem_mib | (uint64_t)job->types << 32);
    hash = hash_word(hash, job->nodes | (uint64_t)node_set_number(job->set) << 32);
    return &preempt->memos[(hash >> 40) % MEMOS_MAX];
}

static bool memo_applies(const struct preempt *preempt, const struct preempt_memo *memo,
                         const struct job *job, int64_t claim)
{
    return memo->era == preempt->era && memo->gpus == job->gpus &&
           memo->cpu_milli == job->cpu_milli && memo->mem_mib == job->mem_mib &&
           memo->types == job->types && memo->nodes == job->nodes &&
           memo->spread == job->spread && memo->set == node_set_number(job->set) &&
           memo->claim <= claim &&
           preempt->vacated_count - memo->vacated_count <= VACATED_MAX;
}

static void remember_failure(struct preempt *preempt, const struct job *job,
                             int64_t claim)
{
    *memo_of(preempt, job) =
        (struct preempt_memo){ .era = preempt->era,
                               .gpus = job->gpus,
                               .cpu_milli = job->cpu_milli,
                               .mem_mib = job->mem_mib,
                               .types = job->types,
                               .nodes = job->nodes,
                               .spread = job->spread,
                               .lacks_room = preempt->lacks_room,
                               .set = node_set_number(job->set),
                               .claim = claim,
                               .vacated_count = preempt->vacated_count };
}

/* Whether the node could hold part of the gang if all candidates vacated it. */
static bool could_hold_share(const struct preempt *preempt, const struct view *view,
                             const struct plan *plan, node_id node,
                             const struct preempt_search *search, int64_t claim)
{
    const struct preempt_need *need = &search->needs[view->cluster->nodes[node].type];
    struct room room;
    if (!need->allowed || !may_use(preempt, search, node))
        return false;
    plan_room(plan, node, &room);
    for (uint32_t at = preempt->on_node[node]; at != NONE;
         at = preempt->shares[at].next_on_node) {
        const struct preempt_share *share = &preempt->shares[at];
        if (plan_changes(plan, share->job) ||
            !preempt->rule->may_preempt(preempt->self, share->job, claim))
            continue;
        room.gpus |= share->gpus;
        room.cpu_milli += share->cpu_milli;
        room.mem_mib += share->mem_mib;
    }
    return room_holds(&room, search->job, need->least);
}

/* The last search for this size failed, and no node vacated since could change that. */
static bool failed_before(struct preempt *preempt, const struct view *view,
                          const struct plan *plan, const struct preempt_search *search,
                          int64_t claim)
{
    const struct job *job = search->job;
    struct preempt_memo *memo = memo_of(preempt, job);
    if (!memo_applies(preempt, memo, job, claim))
        return false;
    if (job->spread && memo->vacated_count != preempt->vacated_count)
        return false;
    for (uint64_t i = memo->vacated_count; i < preempt->vacated_count; i++)
        if (could_hold_share(preempt, view, plan, preempt->vacated[i % VACATED_MAX],
                             search, claim))
            return false;
    memo->claim = claim;
    memo->vacated_count = preempt->vacated_count;
    preempt->lacks_room = memo->lacks_room;
    return true;
}

/* How plan_grant() would divide the gang over nodes of a type. */
static struct preempt_need need_per_node(const struct job *job, uint32_t node_max)
{
    struct preempt_need need = { .allowed = true, .each = job->gpus, .nodes = 1 };
    need.least = job->gpus;
    need.alone = job->gpus <= node_max && job->nodes <= 1 && !job->spread;
    if (need.alone)
        return need;
    if (job->nodes) {
        uint32_t more = job->gpus % job->nodes; /* this many nodes hold one more */
        need.least = job->gpus / job->nodes;
        need.each = need.least + (more > 0);
        need.nodes = more ? more : job->nodes;
    } else {
        need.each = node_max;
        need.nodes = job->gpus / node_max;
        need.least = job->gpus % node_max ? job->gpus % node_max : node_max;
    }
    return need;
}

static void start_search(struct preempt_search *search, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    search->job = job;
    search->id = id;
    search->needs[TYPE_NONE] =
        (struct preempt_need){ .allowed = job->gpus == 0, .alone = true };
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        uint32_t node_max = node_set_gpus_max(job->set, view->cluster, type);
        search->needs[type] = (job->types >> type & 1) && node_max > 0
                                  ? need_per_node(job, node_max)
                                  : (struct preempt_need){ .allowed = false };
    }
}

/* A victim on none of the nodes that the beneficiary may use would not help. */
static bool is_on_allowed_node(const struct view *view, const struct job *beneficiary,
                               job_id victim)
{
    return !beneficiary->set ||
           node_set_touches(beneficiary->set, view_seats(view, victim),
                            view->jobs[victim].seats.count);
}

static bool walk_candidates(struct preempt *preempt, const struct view *view,
                            struct plan *plan, job_id id, struct preempt_search *search,
                            int64_t claim)
{
    const struct preempt_rule *rule = preempt->rule;
    count_free_nodes(view, plan, search);
    preempt->walk++;
    preempt->victim_count = 0;
    preempt->lacks_room = view->calendar->count == 0; /* it bars jobs by their length */
    for (job_id victim = rule->next(preempt->self, JOB_NONE, claim); victim != JOB_NONE;
         victim = rule->next(preempt->self, victim, claim)) {
        if (plan_changes(plan, victim) ||
            !is_on_allowed_node(view, search->job, victim))
            continue;
        preempt->victims[preempt->victim_count++] = victim;
        count_candidate(preempt, view, plan, search, victim);
        node_id node = find_single_node(preempt, view, search, victim);
        if (node != NODE_NONE) {
            preempt->lacks_room = false;
            drop_unneeded_victims(preempt, view, search, node);
            return revoke_and_grant(preempt, plan, id, rule->rule);
        }
        if (!looks_possible(view, search))
            continue;
        preempt->lacks_room = false;
        uint32_t count = preempt->victim_count;
        if (revoke_and_grant(preempt, plan, id, rule->rule))
            return true;
        preempt->victim_count = count;
    }
    return false;
}

bool preempt_for(struct preempt *preempt, const struct view *view, struct plan *plan,
                 job_id id, int64_t claim)
{
    const struct job *job = &view->jobs[id];
    struct preempt_search search;
    start_search(&search, view, id);

    /* Nodes vacated by this plan are not recorded: then a failure is not remembered. */
    bool plain = !plan_vacates(plan) && !preempt->avoid && view->calendar->count == 0;
    if (plain && failed_before(preempt, view, plan, &search, claim))
        return false;
    if (walk_candidates(preempt, view, plan, id, &search, claim))
        return true;
    if (plain)
        remember_failure(preempt, job, claim);
    return false;
}
