/* evict.c - make room for one job by revoking others. */
#include "policy/evict.h"

#include "base/bits.h"
#include "base/arena.h"
#include "model/cluster.h"
#include "model/free.h"

void evict_init(struct evict *evict, struct arena *run, const struct view *view)
{
    *evict = (struct evict){ 0 };
    evict->rooms = arena_array(run, struct room, view->cluster->node_count);
    evict->seen = arena_array(run, uint32_t, view->cluster->node_count);
    evict->victims = arena_array(run, job_id, view->job_max);
}

/* What the newcomer needs, and how far the walk has come. */
struct search {
    const struct job *job;
    uint32_t each;  /* accelerators per node: all of the gang, or full nodes        */
    uint32_t nodes; /* so many such nodes are needed                                */
    uint32_t found[TYPES_MAX + 1]; /* nodes that would hold 'each', by type          */
    uint32_t gpus[TYPES_MAX + 1];  /* accelerators that would be free, by type       */
};

static uint64_t part_of(uint64_t all, uint32_t part, uint32_t whole)
{
    return whole == 0 ? all : (all * part + whole - 1) / whole;
}

static bool room_holds(const struct room *room, const struct job *job, uint32_t gpus)
{
    return bits_count(room->gpus) >= gpus &&
           part_of(job->cpu_milli, gpus, job->gpus) <= room->cpu_milli &&
           part_of(job->mem_mib, gpus, job->gpus) <= room->mem_mib;
}

/* If 'victim' left as well: note it, node by node. */
static void count_in(struct evict *evict, const struct view *view,
                     const struct plan *plan, struct search *search, job_id victim)
{
    const struct job *leaver = &view->jobs[victim];
    const struct seat *seats = view_seats(view, victim);
    for (uint32_t i = 0; i < leaver->seats.count; i++) {
        node_id node = seats[i].node;
        uint32_t type = view->cluster->nodes[node].type;
        struct room *room = &evict->rooms[node];
        if (evict->seen[node] != evict->walk) {
            evict->seen[node] = evict->walk;
            plan_room(plan, node, room);
            if (room_holds(room, search->job, search->each) && search->nodes > 1)
                search->found[type]++;
        }
        bool held = room_holds(room, search->job, search->each);
        room->gpus |= seats[i].gpus;
        room->cpu_milli += seats[i].cpu_milli;
        room->mem_mib += seats[i].mem_mib;
        search->gpus[type] += seat_gpu_count(&seats[i]);
        if (!held && room_holds(room, search->job, search->each))
            search->found[type]++;
    }
}

/* Worth an attempt: by the counts of some type it could fit now. */
static bool looks_possible(const struct view *view, const struct search *search)
{
    const struct job *job = search->job;
    for (uint32_t type = 0; type <= TYPES_MAX; type++) {
        bool allowed = job->gpus == 0 || (type < TYPES_MAX && job->types >> type & 1);
        if (!allowed)
            continue;
        if (search->found[type] >= search->nodes)
            return true;
        if (job->spread && job->gpus > 1 && search->gpus[type] >= job->gpus)
            return true;
    }
    return false;
}

/* A gang of several nodes can also use nodes nobody has to leave. */
static void count_free_nodes(const struct view *view, struct search *search)
{
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        const struct free_shelf *shelf = &view->free->shelves[type];
        search->gpus[type] = shelf->gpu_count;
        if (search->nodes <= 1)
            continue;
        for (uint32_t count = search->each;
             count > 0 && count <= view->cluster->types[type].node_gpus_max; count++)
            search->found[type] += shelf->by_count[count].count;
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

/* On the one node that came to hold the newcomer: its candidates, fewest first. */
static void keep_those_on(struct evict *evict, const struct view *view,
                          const struct plan *plan, const struct search *search,
                          node_id node)
{
    struct room room = evict->rooms[node];
    uint32_t kept = 0;
    for (uint32_t i = evict->victim_count; i-- > 0;) {
        /* From the least preferred on: stay, if the newcomer fits without your room. */
        job_id victim = evict->victims[i];
        const struct seat *seats = view_seats(view, victim);
        bool needed = false;
        for (uint32_t s = 0; s < view->jobs[victim].seats.count; s++) {
            if (seats[s].node != node)
                continue;
            struct room without = { room.gpus & ~seats[s].gpus,
                                    room.cpu_milli - seats[s].cpu_milli,
                                    room.mem_mib - seats[s].mem_mib };
            needed = !room_holds(&without, search->job, search->each);
            if (!needed)
                room = without;
        }
        evict->victims[i] = needed ? victim : JOB_NONE;
    }
    for (uint32_t i = 0; i < evict->victim_count; i++)
        if (evict->victims[i] != JOB_NONE)
            evict->victims[kept++] = evict->victims[i];
    evict->victim_count = kept;
}

/* Of the nodes of the last candidate, one that would hold the newcomer alone. */
static node_id node_found(const struct evict *evict, const struct view *view,
                          const struct search *search, job_id victim)
{
    const struct seat *seats = view_seats(view, victim);
    for (uint32_t i = 0; i < view->jobs[victim].seats.count; i++) {
        uint32_t type = view->cluster->nodes[seats[i].node].type;
        bool allowed = search->job->gpus == 0 ||
                       (type < TYPES_MAX && search->job->types >> type & 1);
        if (allowed &&
            room_holds(&evict->rooms[seats[i].node], search->job, search->each))
            return seats[i].node;
    }
    return NODE_NONE;
}

bool evict_for(struct evict *evict, const struct view *view, struct plan *plan,
               job_id id, enum rule rule, job_id (*next)(void *context, job_id last),
               void *context)
{
    const struct job *job = &view->jobs[id];
    uint32_t node_max = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            view->cluster->types[type].node_gpus_max > node_max)
            node_max = view->cluster->types[type].node_gpus_max;
    bool alone = job->gpus <= node_max && job->nodes <= 1 && !job->spread;
    struct search search = { .job = job, .each = job->gpus, .nodes = 1 };
    if (!alone) {
        search.each = job->nodes ? (job->gpus + job->nodes - 1) / job->nodes : node_max;
        search.nodes = search.each ? job->gpus / search.each : 1;
    }
    count_free_nodes(view, &search);
    evict->walk++;
    evict->victim_count = 0;

    for (job_id victim = next(context, JOB_NONE); victim != JOB_NONE;
         victim = next(context, victim)) {
        if (plan_changes(plan, victim))
            continue;
        evict->victims[evict->victim_count++] = victim;
        count_in(evict, view, plan, &search, victim);
        if (!looks_possible(view, &search))
            continue;
        if (alone) {
            node_id node = node_found(evict, view, &search, victim);
            if (node == NODE_NONE)
                continue;
            keep_those_on(evict, view, plan, &search, node);
            return attempt(evict, plan, id, rule);
        }
        uint32_t count = evict->victim_count;
        if (attempt(evict, plan, id, rule))
            return true;
        evict->victim_count = count;
    }
    return false;
}
