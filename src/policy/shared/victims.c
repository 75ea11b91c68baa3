/* victims.c - running best-effort jobs by what would be free if one was preempted. */
#include "policy/shared/victims.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"
#include "model/free_index.h"
#include "model/node_set.h"

#define NONE UINT32_MAX
#define BLOCK 1024     /* entries per block: its lowest score is kept */
#define PROBES_MAX 192 /* tried by score before scanning all: a few microseconds */

/* What a job holds on a node, or will hold there once others have vacated it. */
struct victims_share {
    job_id job;
    node_id node;
    uint32_t entry; /* in its type's pool; NONE: not preemptible */
    int32_t gpus, cpu_milli, mem_mib;
    uint32_t next_on_node, prev_on_node;
    uint32_t next_of_job;
};

enum { IN_STALE = 1, IN_MOVED = 2 };

/* --- setup ------------------------------------------------------------------------ */

static void pool_init(struct victims_pool *pool, struct arena *run, uint32_t max)
{
    pool->size = arena_array(run, float, max);
    pool->grace_s = arena_array(run, float, max);
    pool->gpus = arena_array(run, int32_t, max);
    pool->cpu_milli = arena_array(run, int32_t, max);
    pool->mem_mib = arena_array(run, int32_t, max);
    pool->age = arena_array(run, int32_t, max);
    pool->share = arena_array(run, uint32_t, max);
    pool->block_best = arena_array(run, int32_t, max / BLOCK + 1);
}

void victims_init(struct victims *v, struct arena *run, const struct view *view)
{
    const struct cluster *cluster = view->cluster;
    uint32_t nodes = cluster->node_count;
    uint32_t jobs = view->job_max;
    for (uint32_t type = 0; type < cluster->type_count; type++)
        pool_init(&v->pools[type], run, 2 * cluster->types[type].gpu_count + jobs);
    pool_init(&v->pools[TYPE_NONE], run, jobs);

    /*
     * At most two jobs share a GPU and two wait for it; jobs without GPUs hold one
     * share.
     */
    v->shares = arena_array(run, struct victims_share,
                            4 * (size_t)cluster->gpu_count + 2 * (size_t)jobs);
    v->share_free = NONE;
    v->on_node = arena_array(run, uint32_t, nodes);
    memset(v->on_node, 0xff, nodes * sizeof *v->on_node);
    v->of_job = arena_array(run, uint32_t, jobs);
    v->stale = arena_array(run, node_id, nodes);
    v->moved = arena_array(run, node_id, nodes);
    v->listed = arena_array(run, uint8_t, nodes);
    heap_pool_init(&v->size_pool, run, jobs);
    heap_pool_init(&v->grace_pool, run, jobs);
    heap_init(&v->sizes);
    heap_init(&v->graces);
    v->counted = arena_array(run, bool, jobs);
    tree_pool_init(&v->tree_pool, run, jobs);
    tree_init(&v->by_score);
    v->ordered = arena_array(run, bool, jobs);
    v->items = arena_array(run, struct sort_item, jobs);
    v->item_scratch = arena_array(run, struct sort_item, jobs);
}

/* --- the score ------------------------------------------------------------------------ */

static double squared_share(uint32_t of, uint32_t all)
{
    double share = all ? (double)of / all : 0;
    return share * share;
}

/* Size(D) = sqrt(sum of (D_r / C_r)^2), C being the node it runs on. */
static float size_of(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct node *node = &view->cluster->nodes[view_seats(view, id)->node];
    return (float)sqrt(squared_share(job->gpus_now, node->gpu_count) +
                       squared_share(job->cpu_milli, node->cpu_milli) +
                       squared_share(job->mem_mib, node->mem_mib));
}

static float grace_of(const struct job *job)
{
    return (float)((double)job->grace_ns * 1e-9);
}

/* Factors of the two terms; a maximum of zero drops its term. */
struct victim_weights {
    float size, grace;
};

static float term_weight(double factor, double max)
{
    return max > 0 ? (float)(factor / max) : 0;
}

static struct victim_weights find_weights(const struct victims *v)
{
    double size_max = 0;
    double grace_max_s = (double)v->grace_max_ns * 1e-9;
    if (v->fixed) {
        size_max = sqrt(3); /* of a job that fills a whole node */
    } else if (v->sizes.top != HEAP_NONE) {
        int32_t bits = (int32_t)-v->size_pool.nodes[v->sizes.top].key;
        float size;
        memcpy(&size, &bits, sizeof size);
        size_max = (double)size;
        grace_max_s = (double)-v->grace_pool.nodes[v->graces.top].key * 1e-9;
    }
    return (struct victim_weights){ term_weight(1, size_max),
                                    term_weight(v->s, grace_max_s) };
}

/* Non-negative floats compare like their bits. */
static inline int32_t score_bits(struct victim_weights w, float size, float grace_s)
{
    float score = size * w.size + grace_s * w.grace;
    int32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits;
}

/* --- which job is on which node --------------------------------------------------- */

static void make_stale(struct victims *v, node_id node)
{
    if (v->listed[node] & IN_STALE)
        return;
    v->listed[node] |= IN_STALE;
    v->stale[v->stale_count++] = node;
}

static struct victims_pool *pool_of(struct victims *v, const struct view *view,
                                    node_id node)
{
    return &v->pools[view->cluster->nodes[node].type];
}

static void add_entry(struct victims *v, const struct view *view, uint32_t at)
{
    struct victims_share *share = &v->shares[at];
    const struct job *job = &view->jobs[share->job];
    struct victims_pool *pool = pool_of(v, view, share->node);
    uint32_t i = pool->count++;
    share->entry = i;
    pool->size[i] = size_of(view, share->job);
    pool->grace_s[i] = grace_of(job);
    pool->gpus[i] = -1; /* until its node is refreshed */
    pool->age[i] = job->id < INT32_MAX ? (int32_t)job->id : INT32_MAX;
    pool->share[i] = at;
}

/* The last entry moves into the gap. */
static void drop_entry(struct victims *v, const struct view *view, uint32_t at)
{
    struct victims_share *share = &v->shares[at];
    if (share->entry == NONE)
        return;
    struct victims_pool *pool = pool_of(v, view, share->node);
    uint32_t i = share->entry;
    uint32_t last = --pool->count;
    pool->size[i] = pool->size[last];
    pool->grace_s[i] = pool->grace_s[last];
    pool->gpus[i] = pool->gpus[last];
    pool->cpu_milli[i] = pool->cpu_milli[last];
    pool->mem_mib[i] = pool->mem_mib[last];
    pool->age[i] = pool->age[last];
    pool->share[i] = pool->share[last];
    v->shares[pool->share[i]].entry = i;
    share->entry = NONE;
}

static int32_t cap_int32(uint64_t amount)
{
    return amount < INT32_MAX ? (int32_t)amount : INT32_MAX;
}

static uint32_t add_share(struct victims *v, job_id job, const struct seat *seat)
{
    uint32_t at = v->share_free;
    if (at != NONE)
        v->share_free = v->shares[at].next_of_job;
    else
        at = v->share_used++;
    uint32_t next = v->on_node[seat->node];
    v->shares[at] = (struct victims_share){ .job = job,
                                            .node = seat->node,
                                            .entry = NONE,
                                            .gpus = (int32_t)seat_gpu_count(seat),
                                            .cpu_milli = cap_int32(seat->cpu_milli),
                                            .mem_mib = cap_int32(seat->mem_mib),
                                            .next_on_node = next,
                                            .prev_on_node = NONE,
                                            .next_of_job = v->of_job[job] };
    if (next != NONE)
        v->shares[next].prev_on_node = at;
    v->on_node[seat->node] = at;
    v->of_job[job] = at;
    make_stale(v, seat->node);
    return at;
}

static void drop_shares(struct victims *v, const struct view *view, job_id job)
{
    while (v->of_job[job] != NONE) {
        uint32_t at = v->of_job[job];
        struct victims_share *share = &v->shares[at];
        drop_entry(v, view, at);
        if (share->next_on_node != NONE)
            v->shares[share->next_on_node].prev_on_node = share->prev_on_node;
        if (share->prev_on_node != NONE)
            v->shares[share->prev_on_node].next_on_node = share->next_on_node;
        else
            v->on_node[share->node] = share->next_on_node;
        make_stale(v, share->node);
        v->of_job[job] = share->next_of_job;
        share->next_of_job = v->share_free;
        v->share_free = at;
    }
}

/* Replace the job's shares by what it holds now. */
static void update_shares(struct victims *v, const struct view *view, job_id id,
                          bool may_preempt)
{
    const struct job *job = &view->jobs[id];
    drop_shares(v, view, id);
    for (uint32_t i = 0; i < job->seats.count; i++) {
        uint32_t at = add_share(v, id, &view->seats[job->seats.first + i]);
        if (may_preempt)
            add_entry(v, view, at);
    }
    for (uint32_t i = 0; i < job->next.count; i++)
        add_share(v, id, &view->seats[job->next.first + i]);
}

/* --- maxima and order ------------------------------------------------------------------------ */

static void drop_from_order(struct victims *v, job_id id)
{
    if (v->counted[id]) {
        heap_remove(&v->size_pool, &v->sizes, id);
        heap_remove(&v->grace_pool, &v->graces, id);
    }
    v->counted[id] = false;
    if (v->ordered[id])
        tree_remove(&v->tree_pool, &v->by_score, id);
    v->ordered[id] = false;
}

static void add_to_order(struct victims *v, const struct view *view, job_id id,
                         bool may_preempt)
{
    const struct job *job = &view->jobs[id];
    float size = size_of(view, id);
    if (v->fixed) {
        if (may_preempt)
            tree_insert(&v->tree_pool, &v->by_score, id,
                        score_bits(find_weights(v), size, grace_of(job)), job->id, 0);
        v->ordered[id] = may_preempt;
        return;
    }
    int32_t bits;
    memcpy(&bits, &size, sizeof bits);
    heap_push(&v->size_pool, &v->sizes, id, -(int64_t)bits, job->id);
    heap_push(&v->grace_pool, &v->graces, id, -job->grace_ns, job->id);
    v->counted[id] = true;
}

static bool changes_allocation(enum event_kind kind)
{
    switch (kind) {
    case EVENT_STARTED:
    case EVENT_RESIZING:
    case EVENT_RESIZED:
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
    case EVENT_LOST:
    case EVENT_PLACED:
    case EVENT_RECALLED:
    case EVENT_CANCELLED:
    case EVENT_ADOPTED:
        return true;
    default:
        return false;
    }
}

void victims_observe(struct victims *v, const struct view *view,
                     const struct event *event)
{
    if (event->kind == EVENT_NODE_DOWN || event->kind == EVENT_NODE_UP ||
        event->kind == EVENT_FOREIGN) {
        make_stale(v, event->node);
        return;
    }
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        v->of_job[event->job] = NONE;
    if (!changes_allocation(event->kind))
        return;
    const struct job *job = &view->jobs[event->job];
    bool runs = job->class == CLASS_BE && job_runs(job);
    bool may_preempt = runs && job_is_preemptible(job) &&
                       !(v->preempt_max && job->preemptions >= v->preempt_max);
    update_shares(v, view, event->job, may_preempt);
    drop_from_order(v, event->job);
    if (runs)
        add_to_order(v, view, event->job, may_preempt);
}

/* --- refreshing entries ----------------------------------------------------------- */

static void refresh_node(struct victims *v, const struct view *view,
                         const struct plan *plan, node_id node)
{
    struct victims_pool *pool = pool_of(v, view, node);
    struct room room;
    plan_room(plan, node, &room);
    int32_t gpus = (int32_t)bits_count(room.gpus);
    for (uint32_t at = v->on_node[node]; at != NONE; at = v->shares[at].next_on_node) {
        const struct victims_share *share = &v->shares[at];
        uint32_t i = share->entry;
        if (i == NONE)
            continue;
        bool shares = view->jobs[share->job].partner != JOB_NONE;
        pool->gpus[i] =
            plan_changes(plan, share->job) ? -1 : gpus + (shares ? 0 : share->gpus);
        pool->cpu_milli[i] = cap_int32((uint64_t)room.cpu_milli + share->cpu_milli);
        pool->mem_mib[i] = cap_int32((uint64_t)room.mem_mib + share->mem_mib);
    }
}

void victims_begin(struct victims *v)
{
    for (uint32_t i = 0; i < v->moved_count; i++) {
        v->listed[v->moved[i]] &= (uint8_t)~IN_MOVED;
        make_stale(v, v->moved[i]);
    }
    v->moved_count = 0;
    v->change_seen = 0;
}

/* A node changed by the plan must be refreshed again when the plan is over. */
static void note_moved(struct victims *v, node_id node)
{
    make_stale(v, node);
    if (v->listed[node] & IN_MOVED)
        return;
    v->listed[node] |= IN_MOVED;
    v->moved[v->moved_count++] = node;
}

static void note_change(struct victims *v, const struct plan *plan,
                        const struct change *change)
{
    const struct seat *seats = plan_seats(plan, change);
    for (uint32_t i = 0; i < change->seat_count; i++)
        note_moved(v, seats[i].node);
    for (uint32_t at = v->of_job[change->job]; at != NONE;
         at = v->shares[at].next_of_job)
        note_moved(v, v->shares[at].node);
}

static void refresh_stale_nodes(struct victims *v, const struct view *view,
                                const struct plan *plan)
{
    for (; v->change_seen < plan_change_count(plan); v->change_seen++)
        note_change(v, plan, plan_change(plan, v->change_seen));
    for (uint32_t i = 0; i < v->stale_count; i++) {
        v->listed[v->stale[i]] &= (uint8_t)~IN_STALE;
        refresh_node(v, view, plan, v->stale[i]);
    }
    v->stale_count = 0;
}

/* --- the choice ------------------------------------------------------------------- */

/* What the beneficiary needs on one node. */
struct victim_need {
    int32_t gpus, cpu_milli, mem_mib;
    uint32_t types; /* bit TYPE_NONE: nodes without GPUs will do */
    const struct node_set *set;
};

static struct victim_need need_on_one_node(const struct job *beneficiary)
{
    return (struct victim_need){
        cap_int32(beneficiary->gpus), cap_int32(beneficiary->cpu_milli),
        cap_int32(beneficiary->mem_mib),
        beneficiary->gpus ? beneficiary->types : beneficiary->types | 1u << TYPE_NONE,
        beneficiary->set
    };
}

/*
 * The score if preempting this job makes room, else INT32_MAX. A missing amount is
 * negative; its sign bit, spread over the word, sets all bits of the score without a
 * branch.
 */
static inline int32_t bits_if_it_fits(const struct victims_pool *pool, uint32_t i,
                                      const struct victim_need *need,
                                      struct victim_weights w)
{
    int32_t lacking = (pool->gpus[i] - need->gpus) |
                      (pool->cpu_milli[i] - need->cpu_milli) |
                      (pool->mem_mib[i] - need->mem_mib);
    return score_bits(w, pool->size[i], pool->grace_s[i]) |
           ((lacking >> 31) & INT32_MAX);
}

/*
 * The lowest score in [from, to) among jobs that would make room.  Only integers are
 * carried between iterations, so vectorizing the loop cannot change a result.
 */
static int32_t best_in_block(const struct victims_pool *pool, uint32_t from,
                             uint32_t to, const struct victim_need *need,
                             struct victim_weights w)
{
    const struct victims_pool p = *pool;
    const struct victim_need n = *need;
    int32_t best = INT32_MAX;
    for (uint32_t i = from; i < to; i++) {
        int32_t bits = bits_if_it_fits(&p, i, &n, w);
        best = bits < best ? bits : best;
    }
    return best;
}

/* The lowest age in a block among entries with this score. */
static int32_t oldest_in_block(const struct victims_pool *pool, uint32_t from,
                               uint32_t to, const struct victim_need *need,
                               struct victim_weights w, int32_t best)
{
    const struct victims_pool p = *pool;
    const struct victim_need n = *need;
    int32_t oldest = INT32_MAX;
    for (uint32_t i = from; i < to; i++) {
        int32_t bits = bits_if_it_fits(&p, i, &n, w);
        int32_t age = p.age[i] | (-(int32_t)(bits != best) & INT32_MAX);
        oldest = age < oldest ? age : oldest;
    }
    return oldest;
}

static uint32_t block_end(const struct victims_pool *pool, uint32_t block)
{
    uint32_t end = (block + 1) * BLOCK;
    return end < pool->count ? end : pool->count;
}

static int32_t best_in_pool(struct victims_pool *pool, const struct victim_need *need,
                            struct victim_weights w)
{
    int32_t best = INT32_MAX;
    for (uint32_t block = 0; block * BLOCK < pool->count; block++) {
        int32_t here =
            best_in_block(pool, block * BLOCK, block_end(pool, block), need, w);
        pool->block_best[block] = here;
        best = here < best ? here : best;
    }
    return best;
}

/* The job with this score and the lowest public id, if lower than that of 'chosen'. */
static job_id oldest_in_pool(struct victims *v, const struct view *view,
                             const struct victims_pool *pool,
                             const struct victim_need *need, struct victim_weights w,
                             int32_t best, job_id chosen)
{
    for (uint32_t block = 0; block * BLOCK < pool->count; block++) {
        if (pool->block_best[block] != best)
            continue;
        uint32_t end = block_end(pool, block);
        int32_t oldest = oldest_in_block(pool, block * BLOCK, end, need, w, best);
        if (chosen != JOB_NONE && view->jobs[chosen].id < INT32_MAX &&
            oldest >= (int32_t)view->jobs[chosen].id)
            continue;
        for (uint32_t i = block * BLOCK; i < end; i++) {
            job_id job = v->shares[pool->share[i]].job;
            if (pool->age[i] == oldest && bits_if_it_fits(pool, i, need, w) == best &&
                (chosen == JOB_NONE || view->jobs[job].id < view->jobs[chosen].id))
                chosen = job;
        }
    }
    return chosen;
}

/* For a beneficiary that may use some nodes only: try the jobs on these. */
static job_id scan_allowed_nodes(struct victims *v, const struct view *view,
                                 const struct victim_need *need)
{
    const struct bits *nodes = &need->set->allowed;
    struct victim_weights w = find_weights(v);
    int32_t best = INT32_MAX;
    job_id chosen = JOB_NONE;
    for (node_id node = bits_next(nodes, 0); node != BITS_NONE;
         node = bits_next(nodes, node + 1)) {
        const struct victims_pool *pool = pool_of(v, view, node);
        if (!(need->types >> view->cluster->nodes[node].type & 1))
            continue;
        for (uint32_t at = v->on_node[node]; at != NONE;
             at = v->shares[at].next_on_node) {
            const struct victims_share *share = &v->shares[at];
            int32_t bits = share->entry == NONE
                               ? INT32_MAX
                               : bits_if_it_fits(pool, share->entry, need, w);
            bool older =
                chosen != JOB_NONE && view->jobs[share->job].id < view->jobs[chosen].id;
            if (bits < best || (bits == best && bits < INT32_MAX && older)) {
                best = bits;
                chosen = share->job;
            }
        }
    }
    return chosen;
}

static job_id scan_all(struct victims *v, const struct view *view,
                       const struct victim_need *need)
{
    if (need->set)
        return scan_allowed_nodes(v, view, need);
    struct victim_weights w = find_weights(v);
    int32_t bests[TYPES_MAX + 1];
    int32_t best = INT32_MAX;
    for (uint32_t type = 0; type <= TYPES_MAX; type++) {
        bests[type] = need->types >> type & 1 ? best_in_pool(&v->pools[type], need, w)
                                              : INT32_MAX;
        best = bests[type] < best ? bests[type] : best;
    }
    job_id chosen = JOB_NONE;
    for (uint32_t type = 0; type <= TYPES_MAX && best < INT32_MAX; type++)
        if (bests[type] == best)
            chosen = oldest_in_pool(v, view, &v->pools[type], need, w, best, chosen);
    return chosen;
}

static bool makes_room(const struct victims *v, const struct view *view, job_id job,
                       const struct victim_need *need)
{
    for (uint32_t at = v->of_job[job]; at != NONE; at = v->shares[at].next_of_job) {
        const struct victims_share *share = &v->shares[at];
        uint32_t type = view->cluster->nodes[share->node].type;
        const struct victims_pool *pool = &v->pools[type];
        uint32_t i = share->entry;
        if (i != NONE && (need->types >> type & 1) &&
            node_set_has(need->set, share->node) && pool->gpus[i] >= need->gpus &&
            pool->cpu_milli[i] >= need->cpu_milli && pool->mem_mib[i] >= need->mem_mib)
            return true;
    }
    return false;
}

job_id victims_scan(struct victims *v, const struct view *view, const struct plan *plan,
                    const struct job *beneficiary)
{
    struct victim_need need = need_on_one_node(beneficiary);
    refresh_stale_nodes(v, view, plan);
    return scan_all(v, view, &need);
}

job_id victims_best(struct victims *v, const struct view *view, const struct plan *plan,
                    const struct job *beneficiary)
{
    struct victim_need need = need_on_one_node(beneficiary);
    refresh_stale_nodes(v, view, plan);
    if (!v->fixed)
        return scan_all(v, view, &need);
    uint32_t job = tree_first(&v->tree_pool, &v->by_score);
    for (uint32_t i = 0; i < PROBES_MAX && job != TREE_NONE; i++) {
        if (makes_room(v, view, job, &need))
            return job;
        job = tree_next(&v->tree_pool, job);
    }
    return job == TREE_NONE ? JOB_NONE : scan_all(v, view, &need);
}

/* --- all preemptible jobs in order ------------------------------------------------ */

void victims_sort(struct victims *v, const struct view *view, const job_id *running,
                  uint32_t job_count)
{
    struct victim_weights w = find_weights(v);
    for (uint32_t i = 0; i < job_count; i++)
        v->items[i] =
            (struct sort_item){ (double)view->jobs[running[i]].id, running[i] };
    sort_items(v->items, v->item_scratch, job_count);
    for (uint32_t i = 0; i < job_count; i++) {
        job_id id = v->items[i].value;
        v->items[i].key =
            (double)score_bits(w, size_of(view, id), grace_of(&view->jobs[id]));
    }
    sort_items(v->items, v->item_scratch, job_count);
    v->item_count = job_count;
}

job_id victims_next(struct victims *v, job_id last)
{
    if (last == JOB_NONE)
        v->item_next = 0;
    return v->item_next < v->item_count ? v->items[v->item_next++].value : JOB_NONE;
}
