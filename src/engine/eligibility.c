/* eligibility.c - which waiting jobs the calendar lets a policy see. */
#include "engine/eligibility.h"

#include "base/bits.h"
#include "engine/engine.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "policy/policy.h"

enum eligible {
    ELIGIBLE,      /* or it does not wait                            */
    ELIGIBLE_YET,  /* an entry could bar it: it is in the heap       */
    ELIGIBLE_LATER /* withheld                                       */
};

/* --- could it start somewhere? -------------------------------------------------------- */

/* The fewest GPUs it can run with; where they fit nowhere, no more do. */
static uint32_t fewest_gpus(const struct job *job)
{
    return job_is_elastic(job) ? job->gpus_min : job->gpus;
}

/* If it were empty, a node could hold so many of the gang beside what is barred. */
static bool node_holds(const struct engine *engine, const struct job *job, node_id node,
                       uint32_t gpus)
{
    const struct node *it = &engine->state.view.cluster->nodes[node];
    uint64_t all =
        it->gpu_count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << it->gpu_count) - 1;
    if (gpus > bits_count(all & ~engine->eligibility.barred[node]))
        return false;
    struct room_part need = placement_need(job, gpus);
    return need.cpu_milli <= it->cpu_milli && need.mem_mib <= it->mem_mib;
}

static bool may_use(const struct engine *engine, const struct job *job, node_id node)
{
    return !engine->eligibility.closed[node] && node_set_has(job->set, node);
}

static bool fits_without_gpus(const struct engine *engine, const struct job *job)
{
    const struct cluster *cluster = engine->state.view.cluster;
    for (node_id n = 0; n < cluster->node_count; n++) {
        uint32_t type = cluster->nodes[n].type;
        if ((type == TYPE_NONE || job->types >> type & 1) && may_use(engine, job, n) &&
            node_holds(engine, job, n, 0))
            return true;
    }
    return false;
}

/* The nodes that have to be among its own can hold their parts. */
static bool fits_must(const struct engine *engine, const struct job *job,
                      struct placement_parts parts)
{
    const struct bits *must = job->set ? &job->set->must : NULL;
    for (uint32_t n = must ? bits_next(must, 0) : BITS_NONE; n != BITS_NONE;
         n = bits_next(must, n + 1)) {
        if (!may_use(engine, job, n))
            return false;
        if (node_holds(engine, job, n, parts.large) && parts.large_count > 0)
            parts.large_count--;
        else if (parts.small_count-- == 0 || !node_holds(engine, job, n, parts.small))
            return false;
    }
    return true;
}

/* The rules of placement, on nodes of a type that no other job uses. */
static bool fits_type(const struct engine *engine, const struct job *job, uint32_t type)
{
    const struct cluster *cluster = engine->state.view.cluster;
    uint32_t gpus = fewest_gpus(job);
    uint32_t node_max = node_set_gpus_max(job->set, cluster, type);
    if (node_max == 0 || job->nodes > gpus)
        return false;
    struct placement_parts parts = placement_parts(gpus, job->nodes, node_max);
    bool apart = job->spread && !job->nodes; /* any number of nodes will do */
    bool whole = fits_must(engine, job, parts);
    uint32_t large = 0, any = 0, all = 0;
    for (node_id n = 0; (whole || apart) && n < cluster->node_count; n++) {
        if (cluster->nodes[n].type != type || !may_use(engine, job, n))
            continue;
        large += node_holds(engine, job, n, parts.large);
        any += node_holds(engine, job, n,
                          parts.small_count > 0 ? parts.small : parts.large);
        if (whole && large >= parts.large_count &&
            any >= parts.large_count + parts.small_count)
            return true;
        uint32_t most = apart ? gpus - all : 0;
        while (most > 0 && !node_holds(engine, job, n, most))
            most--;
        all += most;
        if (apart && all >= gpus)
            return true;
    }
    return false;
}

static bool fits_somewhere(const struct engine *engine, const struct job *job)
{
    if (job->gpus == 0)
        return fits_without_gpus(engine, job);
    for (uint32_t t = 0; t < engine->state.view.cluster->type_count; t++)
        if (job->types >> t & 1 && fits_type(engine, job, t))
            return true;
    return false;
}

/* It could start now if it were alone, on nodes that no entry bars before 'leaves_ns'. */
static bool could_start(struct engine *engine, job_id id, int64_t leaves_ns)
{
    struct eligibility *own = &engine->eligibility;
    const struct view *view = &engine->state.view;
    const struct calendar *calendar = view->calendar;
    bool any = false;
    for (uint32_t i = 0; i < calendar->count; i++) {
        const struct calendar_entry *entry = &calendar->entries[i];
        if (!calendar_bars(entry, view->jobs[id].user, view->now_ns, leaves_ns))
            continue;
        own->barred[entry->node] |= entry->gpus;
        own->closed[entry->node] |= calendar_is_whole(view->cluster, entry);
        any = true;
    }
    bool fits = !any || fits_somewhere(engine, &view->jobs[id]);
    for (uint32_t i = 0; any && i < calendar->count; i++) {
        own->barred[calendar->entries[i].node] = 0;
        own->closed[calendar->entries[i].node] = false;
    }
    return fits;
}

/* When the next entry will bar the job that does not now; INT64_MAX: none will. */
static int64_t next_bar_ns(const struct view *view, job_id id, int64_t leaves_ns)
{
    int64_t stays_ns = leaves_ns - view->now_ns;
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < view->calendar->count; i++) {
        const struct calendar_entry *entry = &view->calendar->entries[i];
        if (entry->from_ns < leaves_ns ||
            !calendar_bars(entry, view->jobs[id].user, view->now_ns, INT64_MAX))
            continue;
        int64_t bars_ns = entry->from_ns - stays_ns + 1;
        next_ns = bars_ns < next_ns ? bars_ns : next_ns;
    }
    return next_ns;
}

/* --- what the policy is told ---------------------------------------------------------- */

/* To the policy alone the job is held from now on, or released. */
static void pretend(struct engine *engine, job_id id, enum event_kind kind)
{
    struct job *job = &engine->state.jobs[id];
    enum job_state state = job->state;
    const struct event event = { .at_ns = engine->state.view.now_ns,
                                 .kind = kind,
                                 .job = id,
                                 .generation = job->generation,
                                 .attempt = job->attempt };
    if (!engine->policy->observe)
        return;
    job->state = kind == EVENT_HELD ? JOB_HELD : state;
    engine->policy->observe(engine->policy_self, &engine->state.view, &event);
    job->state = state;
}

static void forget(struct eligibility *own, job_id id)
{
    if (own->known[id] == ELIGIBLE_YET)
        heap_remove(&own->pool, &own->near, id);
    own->known_count -= own->known[id] != ELIGIBLE;
    own->known[id] = ELIGIBLE;
}

/* Look at a waiting job again.  True if the policy was told something. */
static bool look_at(struct engine *engine, job_id id)
{
    struct eligibility *own = &engine->eligibility;
    const struct view *view = &engine->state.view;
    bool withheld = own->known[id] == ELIGIBLE_LATER;
    int64_t leaves_ns = calendar_leaves_ns(view, id, 0);
    bool bars = !could_start(engine, id, leaves_ns);
    int64_t next_ns = bars || could_start(engine, id, INT64_MAX)
                          ? INT64_MAX
                          : next_bar_ns(view, id, leaves_ns);
    forget(own, id);
    if (bars) {
        own->known[id] = ELIGIBLE_LATER;
    } else if (next_ns < INT64_MAX) {
        own->known[id] = ELIGIBLE_YET;
        heap_push(&own->pool, &own->near, id, next_ns, id);
    }
    own->known_count += own->known[id] != ELIGIBLE;
    if (bars != withheld)
        pretend(engine, id, bars ? EVENT_HELD : EVENT_RELEASED);
    return bars != withheld;
}

void eligibility_tell(struct engine *engine, const struct event *event)
{
    struct eligibility *own = &engine->eligibility;
    const struct view *view = &engine->state.view;
    bool withheld = (event->kind == EVENT_HELD || event->kind == EVENT_RATED) &&
                    own->known[event->job] == ELIGIBLE_LATER;
    if (engine->policy->observe && !withheld)
        engine->policy->observe(engine->policy_self, view, event);
    if (own->known_count == 0 && view->calendar->count == 0)
        return;
    if (event_ends_waiting(event, view) || event->kind == EVENT_ADOPTED)
        forget(own, event->job);
    if (view->calendar->count > 0 && event_makes_waiting(event, view))
        look_at(engine, event->job);
}

bool eligibility_keep(struct engine *engine, bool changed)
{
    struct eligibility *own = &engine->eligibility;
    const struct state *state = &engine->state;
    bool told = false;
    for (job_id id = 0; changed && id < state->job_count; id++)
        if (state->jobs[id].state == JOB_WAITING)
            told |= look_at(engine, id);
    while (own->near.top != HEAP_NONE &&
           own->pool.nodes[own->near.top].key <= state->view.now_ns)
        told |= look_at(engine, own->near.top);
    if (own->near.top != HEAP_NONE &&
        own->pool.nodes[own->near.top].key < engine->calendar_ns)
        engine->calendar_ns = own->pool.nodes[own->near.top].key;
    return told;
}

const struct calendar_entry *eligibility_entry(const struct engine *engine, job_id id)
{
    const struct view *view = &engine->state.view;
    const struct job *job = &view->jobs[id];
    const struct calendar_entry *first = NULL;
    if (engine->eligibility.known[id] != ELIGIBLE_LATER)
        return NULL;
    int64_t leaves_ns = calendar_leaves_ns(view, id, 0);
    for (uint32_t i = 0; i < view->calendar->count; i++) {
        const struct calendar_entry *entry = &view->calendar->entries[i];
        uint32_t type = view->cluster->nodes[entry->node].type;
        bool usable = type == TYPE_NONE ? job->gpus == 0 : job->types >> type & 1;
        if (usable && node_set_has(job->set, entry->node) &&
            calendar_bars(entry, job->user, view->now_ns, leaves_ns) &&
            (!first || entry->to_ns < first->to_ns))
            first = entry;
    }
    return first;
}
