/* sizes.c - waiting jobs in one order per distinct demand. */
#include "policy/shared/sizes.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/units.h"
#include "model/calendar.h"
#include "model/node_set.h"
#include "model/reasons.h"

#define NONE UINT32_MAX

/* All that determines whether a job fits. */
struct size_demand {
    uint32_t gpus, cpu_milli, mem_mib, types, nodes, spread, set;
};

struct size {
    struct size_demand demand;
    struct tree jobs;
    job_id head;   /* first job considered; JOB_NONE: none, not in its group's tree */
    int64_t limit; /* highest value considered */
    uint32_t group;
    uint32_t passed; /* the decision in which it was skipped last */
    bool narrowed;
    bool idle; /* it had no job a while ago, and has a place among 'idle' */
    uint64_t hash;
    uint32_t next_free;
};

/* Sizes that differ in CPUs and memory only. */
struct size_group {
    struct size_demand demand; /* without CPUs and memory */
    struct demand_tree sizes;  /* by the key of their first job */
    uint32_t best;             /* the first not skipped; NONE: none, not in 'heads' */
    uint32_t size_count;
    bool touched; /* sizes of it were skipped in this decision */
    uint64_t hash;
    uint32_t next_free;
};

void sizes_init(struct sizes *sizes, struct arena *run, uint32_t job_max)
{
    *sizes = (struct sizes){ .size_free = NONE, .group_free = NONE, .decision = 1 };
    tree_pool_init(&sizes->job_pool, run, job_max);
    uint32_t size_max = job_max + SIZES_IDLE_MAX;
    demand_pool_init(&sizes->size_pool, run, size_max);
    heap_pool_init(&sizes->group_pool, run, size_max);
    heap_init(&sizes->heads);
    sizes->all = arena_array(run, struct size, size_max);
    sizes->groups = arena_array(run, struct size_group, size_max);
    sizes->size_of = arena_array(run, uint32_t, job_max);
    sizes->narrowed = arena_array(run, uint32_t, size_max);
    sizes->touched = arena_array(run, uint32_t, size_max);
    for (uint32_t i = 0; i < SIZES_IDLE_MAX; i++)
        sizes->idle[i] = NONE;
    sizes->taken = arena_array(run, struct sizes_taken, job_max);
}

void sizes_release(void *self)
{
    struct sizes *sizes = self;
    map_release(&sizes->found);
    map_release(&sizes->groups_found);
}

/* --- sizes and their groups ----------------------------------------------------------- */

static uint64_t hash_demand(const struct size_demand *demand)
{
    const uint32_t *words = (const uint32_t *)demand;
    uint64_t hash = HASH_WORDS_START;
    for (uint32_t i = 0; i < sizeof *demand / 4; i++)
        hash = hash_word(hash, words[i]);
    return hash;
}

static bool is_same_demand(const struct size_demand *a, const struct size_demand *b)
{
    return a->gpus == b->gpus && a->cpu_milli == b->cpu_milli &&
           a->mem_mib == b->mem_mib && a->types == b->types && a->nodes == b->nodes &&
           a->spread == b->spread && a->set == b->set;
}

static uint32_t group_for(struct sizes *sizes, struct size_demand demand)
{
    demand.cpu_milli = demand.mem_mib = 0;
    uint64_t hash = hash_demand(&demand);
    for (;; hash++) {
        uint32_t at = map_find(&sizes->groups_found, hash);
        if (at == MAP_NONE)
            break;
        if (is_same_demand(&sizes->groups[at].demand, &demand))
            return at;
    }
    uint32_t at = sizes->group_free;
    if (at != NONE)
        sizes->group_free = sizes->groups[at].next_free;
    else
        at = sizes->group_used++;
    sizes->groups[at] =
        (struct size_group){ .demand = demand, .hash = hash, .best = NONE };
    demand_tree_init(&sizes->groups[at].sizes);
    map_put(&sizes->groups_found, hash, at);
    return at;
}

static void drop_group_if_empty(struct sizes *sizes, uint32_t at)
{
    struct size_group *group = &sizes->groups[at];
    if (group->size_count > 0 || group->touched)
        return;
    map_remove(&sizes->groups_found, group->hash);
    group->next_free = sizes->group_free;
    sizes->group_free = at;
}

static uint32_t size_for(struct sizes *sizes, const struct job *job)
{
    struct size_demand demand = {
        job->gpus,   job->cpu_milli,           job->mem_mib, job->types, job->nodes,
        job->spread, node_set_number(job->set)
    };
    uint64_t hash = hash_demand(&demand);
    for (;; hash++) { /* another demand has this hash: try the next */
        uint32_t at = map_find(&sizes->found, hash);
        if (at == MAP_NONE)
            break;
        if (is_same_demand(&sizes->all[at].demand, &demand))
            return at;
    }
    uint32_t at = sizes->size_free;
    if (at != NONE)
        sizes->size_free = sizes->all[at].next_free;
    else
        at = sizes->size_used++;
    sizes->all[at] = (struct size){ .demand = demand,
                                    .hash = hash,
                                    .head = JOB_NONE,
                                    .limit = INT64_MAX,
                                    .group = group_for(sizes, demand) };
    sizes->groups[sizes->all[at].group].size_count++;
    tree_init(&sizes->all[at].jobs);
    map_put(&sizes->found, hash, at);
    return at;
}

static void drop_size(struct sizes *sizes, uint32_t at)
{
    struct size *size = &sizes->all[at];
    map_remove(&sizes->found, size->hash);
    size->next_free = sizes->size_free;
    sizes->size_free = at;
    sizes->groups[size->group].size_count--;
    drop_group_if_empty(sizes, size->group);
}

/* The last few that had no job are kept: some will soon have one again. */
static void drop_if_empty(struct sizes *sizes, uint32_t at)
{
    struct size *size = &sizes->all[at];
    if (size->jobs.count > 0 || size->narrowed || size->idle)
        return;
    uint32_t *place = &sizes->idle[sizes->idle_count++ % SIZES_IDLE_MAX];
    uint32_t old = *place;
    *place = at;
    size->idle = true;
    if (old == NONE)
        return;
    sizes->all[old].idle = false;
    if (sizes->all[old].jobs.count == 0 && !sizes->all[old].narrowed)
        drop_size(sizes, old);
}

/* --- the order of the first jobs -------------------------------------------------------- */

static void set_best(struct sizes *sizes, uint32_t at, uint32_t best)
{
    struct size_group *group = &sizes->groups[at];
    if (group->best != NONE)
        heap_remove(&sizes->group_pool, &sizes->heads, at);
    group->best = best;
    if (best != NONE) {
        const struct demand_node *node = &sizes->size_pool.nodes[best];
        heap_push(&sizes->group_pool, &sizes->heads, at, node->key, node->tie);
    }
}

static bool is_passed(const struct sizes *sizes, uint32_t at)
{
    return sizes->all[at].passed == sizes->decision;
}

static uint32_t next_size(const struct sizes *sizes, const struct size_group *group,
                          uint32_t at)
{
    if (group->size_count == 1)
        return at == NONE ? group->sizes.root : NONE;
    do
        at = demand_tree_next(&sizes->size_pool, &group->sizes, at);
    while (at != NONE && is_passed(sizes, at));
    return at;
}

static bool is_size_ahead(const struct sizes *sizes, uint32_t a, uint32_t b)
{
    const struct demand_node *x = &sizes->size_pool.nodes[a];
    const struct demand_node *y = &sizes->size_pool.nodes[b];
    return x->key != y->key ? x->key < y->key : x->tie < y->tie;
}

/* Put the size where its first job is in the order; or take it out, if there is none. */
static void move_size(struct sizes *sizes, uint32_t at, struct size_group *group,
                      bool was_in)
{
    const struct size *size = &sizes->all[at];
    const struct tree_node *node =
        size->head == JOB_NONE ? NULL : &sizes->job_pool.nodes[size->head];
    if (was_in && node && group->size_count == 1) {
        sizes->size_pool.nodes[at].key = node->key;
        sizes->size_pool.nodes[at].tie = node->tie;
        return;
    }
    if (was_in)
        demand_tree_remove(&sizes->size_pool, &group->sizes, at);
    if (node)
        demand_tree_insert(&sizes->size_pool, &group->sizes, at, node->key, node->tie,
                           size->demand.cpu_milli, size->demand.mem_mib);
}

/* Make 'head' the first job of its size; JOB_NONE removes the size from its group's tree. */
static void set_head(struct sizes *sizes, uint32_t at, job_id head)
{
    struct size *size = &sizes->all[at];
    struct size_group *group = &sizes->groups[size->group];
    uint32_t best = group->best;
    bool was_in = size->head != JOB_NONE;
    if (size->head == head)
        return;
    if (was_in && best == at)
        best = next_size(sizes, group, at);
    size->head = head;
    move_size(sizes, at, group, was_in);
    if (head != JOB_NONE && !is_passed(sizes, at) &&
        (best == NONE || is_size_ahead(sizes, at, best)) &&
        demand_tree_is_open(&sizes->size_pool, &group->sizes, at))
        best = at;
    if (best != group->best || best == at)
        set_best(sizes, size->group, best);
}

static bool is_ahead(const struct sizes *sizes, job_id a, job_id b)
{
    const struct tree_node *x = &sizes->job_pool.nodes[a];
    const struct tree_node *y = &sizes->job_pool.nodes[b];
    return x->key != y->key ? x->key < y->key : x->tie < y->tie;
}

void sizes_push(struct sizes *sizes, const struct view *view, job_id id, int64_t key,
                int64_t value)
{
    const struct job *job = &view->jobs[id];
    if (sizes->size_of[id])
        return;
    uint32_t at = size_for(sizes, job);
    struct size *size = &sizes->all[at];
    tree_insert(&sizes->job_pool, &size->jobs, id, key, job->id, value);
    sizes->size_of[id] = at + 1;
    sizes->job_count++;
    sizes->cpu_only_count += job->gpus == 0;
    if (value <= size->limit &&
        (size->head == JOB_NONE || is_ahead(sizes, id, size->head)))
        set_head(sizes, at, id);
}

void sizes_remove(struct sizes *sizes, const struct view *view, job_id id)
{
    if (!sizes->size_of[id])
        return;
    uint32_t at = sizes->size_of[id] - 1;
    struct size *size = &sizes->all[at];
    job_id head = size->head;
    if (head == id && !size->narrowed)
        head = tree_next(&sizes->job_pool, id);
    tree_remove(&sizes->job_pool, &size->jobs, id);
    if (head == id)
        head = tree_first_at_most(&sizes->job_pool, &size->jobs, size->limit);
    set_head(sizes, at, head);
    sizes->size_of[id] = 0;
    sizes->job_count--;
    sizes->cpu_only_count -= size->demand.gpus == 0;
    drop_if_empty(sizes, at);
}

/* --- a decision ------------------------------------------------------------------------- */

void sizes_put_back(struct sizes *sizes, const struct view *view)
{
    for (uint32_t i = 0; i < sizes->taken_count; i++) {
        struct sizes_taken taken = sizes->taken[i];
        const struct job *job = &view->jobs[taken.job];
        if (job->state == JOB_WAITING && job->generation == taken.generation)
            sizes_push(sizes, view, taken.job, taken.key, taken.value);
    }
    sizes->taken_count = 0;
}

job_id sizes_best(const struct sizes *sizes)
{
    uint32_t group = sizes->heads.top;
    return group == HEAP_NONE ? JOB_NONE : sizes->all[sizes->groups[group].best].head;
}

int64_t sizes_key(const struct sizes *sizes, job_id job)
{
    return sizes->job_pool.nodes[job].key;
}

int64_t sizes_value(const struct sizes *sizes, job_id job)
{
    return sizes->job_pool.nodes[job].value;
}

void sizes_take(struct sizes *sizes, const struct view *view, job_id job)
{
    sizes->taken[sizes->taken_count++] =
        (struct sizes_taken){ .job = job,
                              .generation = view->jobs[job].generation,
                              .key = sizes_key(sizes, job),
                              .value = sizes_value(sizes, job) };
    sizes_remove(sizes, view, job);
}

/* This group has to be restored at the end of the decision. */
static struct size_group *touch_group(struct sizes *sizes, uint32_t at)
{
    struct size_group *group = &sizes->groups[at];
    if (!group->touched)
        sizes->touched[sizes->touched_count++] = at;
    group->touched = true;
    return group;
}

void sizes_skip(struct sizes *sizes, job_id job)
{
    uint32_t at = sizes->size_of[job] - 1;
    struct size_group *group = touch_group(sizes, sizes->all[at].group);
    sizes->all[at].passed = sizes->decision;
    if (group->best == at)
        set_best(sizes, sizes->all[at].group, next_size(sizes, group, at));
}

/* Whether all that counts is what it asks for: the calendar bars jobs by their length. */
static bool is_plain(const struct view *view, const struct job *job)
{
    return view->calendar->count == 0 && job->state == JOB_WAITING && !job->leaving;
}

void sizes_skip_larger(struct sizes *sizes, const struct view *view, job_id job)
{
    uint32_t at = sizes->size_of[job] - 1;
    struct size_group *group = &sizes->groups[sizes->all[at].group];
    if (group->size_count > 1 && is_plain(view, &view->jobs[job]))
        demand_tree_limit(&sizes->size_pool, &group->sizes, at);
    sizes_skip(sizes, job);
}

void sizes_vacated(struct sizes *sizes, job_id job)
{
    const struct tree_node *place = &sizes->job_pool.nodes[job];
    for (uint32_t i = 0; i < sizes->touched_count; i++) {
        struct size_group *group = &sizes->groups[sizes->touched[i]];
        if (group->sizes.limit == DEMAND_NONE)
            continue;
        group->sizes.limit = DEMAND_NONE;
        uint32_t best =
            demand_tree_from(&sizes->size_pool, &group->sizes, place->key, place->tie);
        if (best != NONE && is_passed(sizes, best))
            best = next_size(sizes, group, best);
        set_best(sizes, sizes->touched[i], best);
    }
}

void sizes_narrow(struct sizes *sizes, job_id job, int64_t limit)
{
    uint32_t at = sizes->size_of[job] - 1;
    struct size *size = &sizes->all[at];
    if (!size->narrowed)
        sizes->narrowed[sizes->narrowed_count++] = at;
    size->narrowed = true;
    size->limit = limit;
    set_head(sizes, at, tree_first_at_most(&sizes->job_pool, &size->jobs, limit));
}

void sizes_restore(struct sizes *sizes)
{
    sizes->decision++;
    for (uint32_t i = 0; i < sizes->narrowed_count; i++) {
        uint32_t at = sizes->narrowed[i];
        struct size *size = &sizes->all[at];
        size->narrowed = false;
        size->limit = INT64_MAX;
        set_head(sizes, at, tree_first(&sizes->job_pool, &size->jobs));
        drop_if_empty(sizes, at);
    }
    for (uint32_t i = 0; i < sizes->touched_count; i++) {
        uint32_t at = sizes->touched[i];
        struct size_group *group = &sizes->groups[at];
        group->touched = false;
        group->sizes.limit = DEMAND_NONE;
        uint32_t best = next_size(sizes, group, NONE);
        if (best != group->best)
            set_best(sizes, at, best);
        drop_group_if_empty(sizes, at);
    }
    sizes->narrowed_count = sizes->touched_count = 0;
    sizes->size_pool.limit_count = 0;
}

uint32_t sizes_ahead(const struct sizes *sizes, const struct view *view, job_id job,
                     struct reasons *reasons)
{
    uint32_t count = 0;
    if (!sizes->size_of[job])
        return 0;
    for (job_id id = 0; id < view->job_max; id++) {
        if (!sizes->size_of[id] || id == job || !is_ahead(sizes, id, job))
            continue;
        reasons_add_ahead(reasons, sizes->job_pool.nodes[id].key, view->jobs[id].id);
        count++;
    }
    return count;
}

void sizes_explain_left(const void *self, const struct view *view, job_id job,
                        struct reasons *reasons)
{
    const struct sizes *sizes = self;
    char left[32];
    uint32_t count = sizes_ahead(sizes, view, job, reasons);
    if (count == 0)
        return;
    int64_t key_ns = sizes_key(sizes, job);
    if (key_ns == INT64_MAX)
        reasons_add(reasons, "order",
                    "nobody knows how long it takes: it comes after %u others", count);
    else
        reasons_add(reasons, "order", "it has %s left, and %u others have less",
                    units_show_time(left, sizeof left, (double)key_ns * 1e-9), count);
}
