/* evict.c - make room for one job by revoking others. */
#include "policy/shared/evict.h"

#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/hash.h"
#include "model/cluster.h"
#include "model/free.h"
#include "model/node_set.h"
#include "model/place.h"

#define NONE UINT32_MAX
#define LEFT_MAX 1024
#define MEMOS_MAX 256

/* A running job's seat on a node. */
struct evict_stay {
    job_id job;
    node_id node;
    uint32_t cpu_milli, mem_mib;
    uint64_t gpus;
    uint32_t next_on_node, prev_on_node;
    uint32_t next_of_job;
};

/* For a job of this size with this claim or a weaker one there is no room to be made. */
struct evict_memo {
    uint32_t era; /* 0: none */
    uint32_t gpus, cpu_milli, mem_mib, types, nodes, set;
    bool spread;
    int64_t claim;
    uint64_t left_count; /* when it was found */
};

void evict_init(struct evict *evict, struct arena *run, const struct view *view,
                const struct evict_rule *rule, const void *self)
{
    const struct cluster *cluster = view->cluster;
    *evict = (struct evict){ .rule = rule, .self = self, .stay_free = NONE, .era = 1 };
    evict->rooms = arena_array(run, struct room, cluster->node_count);
    evict->seen = arena_array(run, uint32_t, cluster->node_count);
    evict->victims = arena_array(run, job_id, view->job_max);
    evict->stays = arena_array(run, struct evict_stay,
                               2 * (size_t)cluster->gpu_count + view->job_max);
    evict->on_node = arena_array(run, uint32_t, cluster->node_count);
    memset(evict->on_node, 0xff, cluster->node_count * sizeof *evict->on_node);
    evict->of_job = arena_array(run, uint32_t, view->job_max);
    evict->promised = arena_array(run, bool, view->job_max);
    evict->left = arena_array(run, node_id, LEFT_MAX);
    evict->memos = arena_array(run, struct evict_memo, MEMOS_MAX);
}

/* --- who is where ------------------------------------------------------------------ */

static void stay_add(struct evict *evict, job_id job, const struct seat *seat)
{
    uint32_t at = evict->stay_free;
    if (at != NONE)
        evict->stay_free = evict->stays[at].next_of_job;
    else
        at = evict->stay_used++;
    uint32_t next = evict->on_node[seat->node];
    evict->stays[at] = (struct evict_stay){ .job = job,
                                            .node = seat->node,
                                            .cpu_milli = seat->cpu_milli,
                                            .mem_mib = seat->mem_mib,
                                            .gpus = seat->gpus,
                                            .next_on_node = next,
                                            .prev_on_node = NONE,
                                            .next_of_job = evict->of_job[job] };
    if (next != NONE)
        evict->stays[next].prev_on_node = at;
    evict->on_node[seat->node] = at;
    evict->of_job[job] = at;
}

static void node_left(struct evict *evict, node_id node)
{
    evict->left[evict->left_count++ % LEFT_MAX] = node;
}

static void stays_drop(struct evict *evict, job_id job)
{
    while (evict->of_job[job] != NONE) {
        uint32_t at = evict->of_job[job];
        struct evict_stay *stay = &evict->stays[at];
        if (stay->next_on_node != NONE)
            evict->stays[stay->next_on_node].prev_on_node = stay->prev_on_node;
        if (stay->prev_on_node != NONE)
            evict->stays[stay->prev_on_node].next_on_node = stay->next_on_node;
        else
            evict->on_node[stay->node] = stay->next_on_node;
        node_left(evict, stay->node);
        evict->of_job[job] = stay->next_of_job;
        stay->next_of_job = evict->stay_free;
        evict->stay_free = at;
    }
}

static void stays_take(struct evict *evict, const struct view *view, job_id job)
{
    const struct seat *seats = view_seats(view, job);
    for (uint32_t i = 0; i < view->jobs[job].seats.count; i++)
        stay_add(evict, job, &seats[i]);
}

void evict_touch(struct evict *evict, job_id job)
{
    for (uint32_t at = evict->of_job[job]; at != NONE;
         at = evict->stays[at].next_of_job)
        node_left(evict, evict->stays[at].node);
}

void evict_observe(struct evict *evict, const struct view *view,
                   const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUBMITTED:
        evict->of_job[event->job] = NONE;
        break;
    case EVENT_ADOPTED:
        evict->of_job[event->job] = NONE;
        if (job_seated(&view->jobs[event->job]))
            stays_take(evict, view, event->job);
        break;
    case EVENT_PLACED:
        evict->promised[event->job] = event->promise_count > 0;
        break;
    case EVENT_STARTED:
        stays_take(evict, view, event->job);
        if (evict->promised[event->job])
            evict_touch(evict, event->job); /* what it was promised can be had again */
        break;
    case EVENT_RESIZED:
        stays_drop(evict, event->job);
        stays_take(evict, view, event->job);
        break;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        stays_drop(evict, event->job);
        break;
    case EVENT_LOST:
    case EVENT_CANCELLED:
        if (evict->of_job[event->job] == NONE)
            evict->era++; /* gave up seats that it had not taken: somewhere */
        stays_drop(evict, event->job);
        break;
    case EVENT_NODE_UP:
    case EVENT_FOREIGN:
        node_left(evict, event->node);
        break;
    default:
        break;
    }
}

/* --- one walk ------------------------------------------------------------------------ */

/* What the newcomer needs of one type of node, and how far the walk has come. */
struct need {
    bool allowed;
    bool alone;     /* one node has to hold all of it                                */
    uint32_t each;  /* accelerators per node: all of the gang, or full nodes         */
    uint32_t nodes; /* so many such nodes are needed                                 */
    uint32_t least; /* accelerators on the node that has fewest of the gang          */
    uint32_t found; /* nodes that would hold 'each'                                  */
    uint32_t gpus;  /* accelerators that would be free, at most                      */
};

struct search {
    const struct job *job;
    struct need needs[TYPES_MAX + 1]; /* by type */
};

static bool room_holds(const struct room *room, const struct job *job, uint32_t gpus)
{
    struct room_part need = place_need(job, gpus);
    return bits_count(room->gpus) >= gpus && need.cpu_milli <= room->cpu_milli &&
           need.mem_mib <= room->mem_mib;
}

/* If 'victim' left as well: note it, node by node. */
static void count_in(struct evict *evict, const struct view *view,
                     const struct plan *plan, struct search *search, job_id victim)
{
    const struct job *leaver = &view->jobs[victim];
    const struct seat *seats = view_seats(view, victim);
    for (uint32_t i = 0; i < leaver->seats.count; i++) {
        node_id node = seats[i].node;
        struct need *need = &search->needs[view->cluster->nodes[node].type];
        struct room *room = &evict->rooms[node];
        if (!need->allowed || !node_set_has(search->job->set, node))
            continue;
        if (evict->seen[node] != evict->walk) {
            evict->seen[node] = evict->walk;
            plan_room(plan, node, room);
        }
        bool held = room_holds(room, search->job, need->each);
        room->gpus |= seats[i].gpus;
        room->cpu_milli += seats[i].cpu_milli;
        room->mem_mib += seats[i].mem_mib;
        need->gpus += seat_gpu_count(&seats[i]);
        if (!held && room_holds(room, search->job, need->each))
            need->found++;
    }
}

/* Worth an attempt: by the counts of some type a gang could fit now. */
static bool looks_possible(const struct view *view, const struct search *search)
{
    const struct job *job = search->job;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        const struct need *need = &search->needs[type];
        if (need->allowed && !need->alone && need->gpus >= job->gpus &&
            (need->found >= need->nodes || (job->spread && !job->nodes)))
            return true;
    }
    return false;
}

/* Free nodes among those that a job may use; what they lack besides is not asked. */
static void count_some(const struct free_index *index, const struct bits *nodes,
                       uint32_t type, struct need *need)
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

/* At most: a node that the plan vacates in part is counted twice. */
static void count_shelf(const struct free_index *index, const struct job *job,
                        uint32_t type, struct need *need)
{
    const struct free_shelf *shelf = &index->shelves[type];
    uint32_t node_max = index->cluster->types[type].node_gpus_max;
    if (job->set) {
        count_some(index, &job->set->allowed, type, need);
        return;
    }
    need->gpus += shelf->gpu_count;
    for (uint32_t count = need->each; count > 0 && count <= node_max; count++)
        need->found += shelf->by_count[count].count;
}

/* A gang of several nodes can also use nodes nobody has to leave any more. */
static void count_free_nodes(const struct view *view, const struct plan *plan,
                             struct search *search)
{
    const struct free_index *vacated = plan_vacated(plan);
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        struct need *need = &search->needs[type];
        if (!need->allowed || need->alone)
            continue;
        count_shelf(view->free, search->job, type, need);
        count_shelf(vacated, search->job, type, need);
    }
}

/*
 * Revoke candidates and grant.  The first time all that hold a seat on a node of
 * interest, then, to spare the superfluous, only those whose room was used.
 */
static bool attempt(struct evict *evict, struct plan *plan, job_id job, enum rule rule)
{
    size_t mark = plan_mark(plan);
    for (uint32_t i = 0; i < evict->victim_count; i++)
        plan_revoke(plan, evict->victims[i], rule, job);
    if (!plan_grant(plan, job, NULL)) {
        plan_undo(plan, mark);
        return false;
    }
    for (uint32_t i = 0; i < evict->victim_count; i++) {
        const struct change *grant = plan_change(plan, plan_change_count(plan) - 1);
        const struct promise_part *promises = plan_promises(plan, grant);
        uint32_t used = 0;
        for (uint32_t v = 0; v < evict->victim_count; v++) {
            bool needed = false;
            for (uint32_t p = 0; p < grant->promise_count && !needed; p++)
                needed = promises[p].victim == evict->victims[v];
            if (needed)
                evict->victims[used++] = evict->victims[v];
        }
        if (used == evict->victim_count)
            break;
        evict->victim_count = used;
        plan_undo(plan, mark);
        for (uint32_t v = 0; v < used; v++)
            plan_revoke(plan, evict->victims[v], rule, job);
        if (!plan_grant(plan, job, NULL)) {
            plan_undo(plan, mark);
            return false;
        }
    }
    return true;
}

/* Whether the newcomer fits on 'node' without this victim's room; then that stays. */
static bool is_needed(const struct view *view, const struct search *search,
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

/* How many candidates have to leave 'node'; from the least preferred on, who can stays. */
static uint32_t needed_on(const struct evict *evict, const struct view *view,
                          const struct search *search, node_id node)
{
    struct room room = evict->rooms[node];
    uint32_t count = 0;
    for (uint32_t i = evict->victim_count; i-- > 0;)
        count += is_needed(view, search, node, evict->victims[i], &room);
    return count;
}

/* The others are no victims. */
static void keep_those_on(struct evict *evict, const struct view *view,
                          const struct search *search, node_id node)
{
    struct room room = evict->rooms[node];
    uint32_t kept = 0;
    for (uint32_t i = evict->victim_count; i-- > 0;)
        if (!is_needed(view, search, node, evict->victims[i], &room))
            evict->victims[i] = JOB_NONE;
    for (uint32_t i = 0; i < evict->victim_count; i++)
        if (evict->victims[i] != JOB_NONE)
            evict->victims[kept++] = evict->victims[i];
    evict->victim_count = kept;
}

/*
 * Of the nodes of the last candidate, one that would hold the newcomer alone; of
 * several the one that the fewest have to leave.
 */
static node_id node_found(const struct evict *evict, const struct view *view,
                          const struct search *search, job_id victim)
{
    const struct seat *seats = view_seats(view, victim);
    node_id best = NODE_NONE;
    uint32_t best_count = NONE;
    for (uint32_t i = 0; i < view->jobs[victim].seats.count; i++) {
        node_id node = seats[i].node;
        const struct need *need = &search->needs[view->cluster->nodes[node].type];
        if (!need->allowed || !need->alone || !node_set_has(search->job->set, node) ||
            !room_holds(&evict->rooms[node], search->job, need->each))
            continue;
        uint32_t count = view->jobs[victim].seats.count > 1
                             ? needed_on(evict, view, search, node)
                             : 1;
        if (count < best_count) {
            best = node;
            best_count = count;
        }
    }
    return best;
}

/* --- walks in vain ------------------------------------------------------------------ */

static struct evict_memo *memo_of(struct evict *evict, const struct job *job)
{
    uint64_t hash =
        hash_word(HASH_WORDS_START, job->gpus | (uint64_t)job->cpu_milli << 32);
    hash = hash_word(hash, job->mem_mib | (uint64_t)job->types << 32);
    hash = hash_word(hash, job->nodes | (uint64_t)node_set_number(job->set) << 32);
    return &evict->memos[(hash >> 40) % MEMOS_MAX];
}

static bool is_about(const struct evict *evict, const struct evict_memo *memo,
                     const struct job *job, int64_t claim)
{
    return memo->era == evict->era && memo->gpus == job->gpus &&
           memo->cpu_milli == job->cpu_milli && memo->mem_mib == job->mem_mib &&
           memo->types == job->types && memo->nodes == job->nodes &&
           memo->spread == job->spread && memo->set == node_set_number(job->set) &&
           memo->claim <= claim && evict->left_count - memo->left_count <= LEFT_MAX;
}

static void remember(struct evict *evict, const struct job *job, int64_t claim)
{
    *memo_of(evict, job) = (struct evict_memo){ .era = evict->era,
                                                .gpus = job->gpus,
                                                .cpu_milli = job->cpu_milli,
                                                .mem_mib = job->mem_mib,
                                                .types = job->types,
                                                .nodes = job->nodes,
                                                .spread = job->spread,
                                                .set = node_set_number(job->set),
                                                .claim = claim,
                                                .left_count = evict->left_count };
}

/* What a node could hold if all candidates on it left. */
static bool node_could(const struct evict *evict, const struct view *view,
                       const struct plan *plan, node_id node,
                       const struct search *search, int64_t claim)
{
    const struct need *need = &search->needs[view->cluster->nodes[node].type];
    struct room room;
    if (!need->allowed || !node_set_has(search->job->set, node))
        return false;
    plan_room(plan, node, &room);
    for (uint32_t at = evict->on_node[node]; at != NONE;
         at = evict->stays[at].next_on_node) {
        const struct evict_stay *stay = &evict->stays[at];
        if (plan_changes(plan, stay->job) ||
            !evict->rule->yields(evict->self, stay->job, claim))
            continue;
        room.gpus |= stay->gpus;
        room.cpu_milli += stay->cpu_milli;
        room.mem_mib += stay->mem_mib;
    }
    return room_holds(&room, search->job, need->least);
}

/* The last walk for this size was in vain, and nothing has changed for the better. */
static bool is_hopeless(struct evict *evict, const struct view *view,
                        const struct plan *plan, const struct search *search,
                        int64_t claim)
{
    const struct job *job = search->job;
    struct evict_memo *memo = memo_of(evict, job);
    if (!is_about(evict, memo, job, claim))
        return false;
    if (job->spread && memo->left_count != evict->left_count)
        return false;
    for (uint64_t i = memo->left_count; i < evict->left_count; i++)
        if (node_could(evict, view, plan, evict->left[i % LEFT_MAX], search, claim))
            return false;
    memo->claim = claim;
    memo->left_count = evict->left_count;
    return true;
}

/* How the gang would be shared out over nodes of a type: as plan_grant() does it. */
static struct need need_of(const struct job *job, uint32_t node_max)
{
    struct need need = { .allowed = true, .each = job->gpus, .nodes = 1 };
    need.least = job->gpus;
    need.alone = job->gpus <= node_max && job->nodes <= 1 && !job->spread;
    if (need.alone)
        return need;
    if (job->nodes) {
        uint32_t more = job->gpus % job->nodes; /* so many have one more */
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

static struct search search_for(const struct view *view, const struct job *job)
{
    struct search search = { .job = job };
    if (job->gpus == 0)
        search.needs[TYPE_NONE] = (struct need){ .allowed = true, .alone = true };
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        uint32_t node_max = node_set_gpus_max(job->set, view->cluster, type);
        if ((job->types >> type & 1) && node_max > 0)
            search.needs[type] = need_of(job, node_max);
    }
    return search;
}

/* Who has no seat on a node that the newcomer may use makes no room for it. */
static bool is_in_the_way(const struct view *view, const struct job *newcomer,
                          job_id victim)
{
    return !newcomer->set || node_set_touches(newcomer->set, view_seats(view, victim),
                                              view->jobs[victim].seats.count);
}

static bool walk(struct evict *evict, const struct view *view, struct plan *plan,
                 job_id id, struct search *search, int64_t claim)
{
    const struct evict_rule *rule = evict->rule;
    count_free_nodes(view, plan, search);
    evict->walk++;
    evict->victim_count = 0;
    for (job_id victim = rule->next(evict->self, JOB_NONE, claim); victim != JOB_NONE;
         victim = rule->next(evict->self, victim, claim)) {
        if (plan_changes(plan, victim) || !is_in_the_way(view, search->job, victim))
            continue;
        evict->victims[evict->victim_count++] = victim;
        count_in(evict, view, plan, search, victim);
        node_id node = node_found(evict, view, search, victim);
        if (node != NODE_NONE) {
            keep_those_on(evict, view, search, node);
            return attempt(evict, plan, id, rule->rule);
        }
        if (!looks_possible(view, search))
            continue;
        uint32_t count = evict->victim_count;
        if (attempt(evict, plan, id, rule->rule))
            return true;
        evict->victim_count = count;
    }
    return false;
}

bool evict_for(struct evict *evict, const struct view *view, struct plan *plan,
               job_id id, int64_t claim)
{
    const struct job *job = &view->jobs[id];
    struct search search = search_for(view, job);

    /* Room that this very plan vacates is on no list: then nothing is remembered. */
    bool plain = !plan_vacates(plan);
    if (plain && is_hopeless(evict, view, plan, &search, claim))
        return false;
    if (walk(evict, view, plan, id, &search, claim))
        return true;
    if (plain)
        remember(evict, job, claim);
    return false;
}
