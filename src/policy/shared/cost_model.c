/* cost_model.c - does preempting these jobs for that one pay? */
#include "policy/shared/cost_model.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/throughput.h"

/* A checkpoint: weights and optimiser are about four times the gradients. */
#define CKPT_PER_GRADIENT 4.0
#define DISK_BYTES_PER_S 1e9
#define DRAIN_S 5.0     /* until the step is over and all ranks agree to stop */
#define START_UP_S 20.0 /* container, framework, communicator */

#define FREE_NODES_MAX 16 /* per type, added as alternatives for the victims */

static double ns_to_s(int64_t ns)
{
    return (double)ns * 1e-9;
}

/* --- what swaps cost -------------------------------------------------------------- */

static struct cost_model_measured *kind_of(const struct cost_model *model,
                                           const struct job *job)
{
    return job->kind < COST_MODEL_KINDS_MAX ? &model->kinds[job->kind] : NULL;
}

static double average_with(double average, bool has, double sample)
{
    return has ? (average + sample) / 2 : sample;
}

static void learn_pause(struct cost_model_measured *measured, double pause_s)
{
    measured->pause_s = average_with(measured->pause_s, measured->has_pause, pause_s);
    measured->has_pause = true;
}

static void learn_load(struct cost_model_measured *measured, double load_s)
{
    measured->load_s = average_with(measured->load_s, measured->has_load, load_s);
    measured->has_load = true;
}

static void learn_costs(struct cost_model *model, const struct view *view,
                        const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    struct cost_model_measured *kind = kind_of(model, job);
    if (event->kind == EVENT_STOPPED && event->clean) {
        double pause_s = ns_to_s(view->now_ns - job->recalled_ns);
        learn_pause(&model->anybody, pause_s);
        if (kind)
            learn_pause(kind, pause_s);
    } else if (event->kind == EVENT_LOADED) {
        double load_s = ns_to_s(view->now_ns - job->since_ns);
        learn_load(&model->anybody, load_s);
        if (kind)
            learn_load(kind, load_s);
    }
}

static double ckpt_s(const struct job *job)
{
    return CKPT_PER_GRADIENT * (double)job->bytes_per_step / DISK_BYTES_PER_S;
}

double cost_model_pause_s(const struct cost_model *model, const struct view *view,
                          job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct cost_model_measured *kind = kind_of(model, job);
    if (job->state == JOB_LOADING)
        return 0; /* nothing to save yet */
    if (job->pause_ns > 0)
        return ns_to_s(job->pause_ns);
    if (kind && kind->has_pause)
        return kind->pause_s;
    return job->bytes_per_step ? DRAIN_S + ckpt_s(job) : model->anybody.pause_s;
}

double cost_model_load_s(const struct cost_model *model, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct cost_model_measured *kind = kind_of(model, job);
    if (job->load_ns > 0)
        return ns_to_s(job->load_ns);
    if (kind && kind->has_load)
        return kind->load_s;
    return job->bytes_per_step ? START_UP_S + ckpt_s(job) : model->anybody.load_s;
}

/* --- work that is left ------------------------------------------------------------ */

/* How much longer a job takes on each type than on its fastest; INFINITY: cannot run there. */
static void set_slowness(struct cost_model *model, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    double *slowness = &model->slowness[(size_t)id * TYPES_MAX];
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        double rate = job->types >> type & 1 ? throughput_rate(view->rates, job, type,
                                                               job->gpus, job->spread)
                                             : 0;
        slowness[type] = rate > 0 ? job->rate_best_per_s / rate : INFINITY;
    }
}

/* As long as it has run so far, since long jobs tend to stay even longer. */
static double guess_work_left_s(const struct view *view, const struct job *job)
{
    double steps = job_steps(job, view->now_ns);
    return job->rate_best_per_s > 0 ? steps / job->rate_best_per_s : 0;
}

/* On the fastest type, without the time to resume. */
static double work_left_s(const struct cost_model *model, const struct view *view,
                          job_id id)
{
    if (model->estimates)
        return model->estimates->left_s(model->self, view, id);
    int64_t left_ns = view_work_left_ns(view, id);
    return left_ns == INT64_MAX ? guess_work_left_s(view, &view->jobs[id])
                                : ns_to_s(left_ns);
}

/* Until its end, where it runs or will; INT64_MAX: unknown. */
static int64_t remaining_ns(const struct cost_model *model, const struct view *view,
                            job_id id)
{
    const struct job *job = &view->jobs[id];
    if (!model->estimates)
        return view_remaining_ns(view, id);
    double left_s = model->estimates->left_s(model->self, view, id);
    if (job_holds_seats(job) && job->rate_per_s > 0)
        left_s *= job->rate_best_per_s / job->rate_per_s;
    else if (job->state == JOB_PLACED && job->type_now < view->cluster->type_count)
        left_s *= model->slowness[(size_t)id * TYPES_MAX + job->type_now];
    int64_t loaded_ns = job->anchor_ns + job->load_ns;
    if (job->state == JOB_LOADING && loaded_ns > view->now_ns)
        left_s += ns_to_s(loaded_ns - view->now_ns);
    return left_s < 9e9 ? (int64_t)(left_s * 1e9) : INT64_MAX;
}

static bool is_work_known(const struct cost_model *model, const struct view *view,
                          job_id id)
{
    return model->estimates || view_work_left_ns(view, id) < INT64_MAX;
}

/* --- running and waiting jobs ----------------------------------------------------- */

int64_t cost_model_key_ns(const struct cost_model *model, const struct view *view,
                          job_id id)
{
    const struct job *job = &view->jobs[id];
    if (model->estimates)
        return model->estimates->key_ns(model->self, view, id);
    int64_t left_ns = view_work_left_ns(view, id);
    if (left_ns == INT64_MAX)
        return left_ns;
    double key_ns = (double)left_ns + (double)job->load_ns;
    if (model->settings.gang > 0 && job->gpus > 1)
        key_ns /= pow(job->gpus, model->settings.gang);
    return (int64_t)key_ns;
}

static void remove_running(struct cost_model *model, job_id job)
{
    if (model->runs[job])
        tree_remove(&model->run_pool, &model->running, job);
    model->runs[job] = false;
}

/* Expected end, with the wait for its GPUs and its time to resume. */
static int64_t expected_end_ns(const struct cost_model *model, const struct view *view,
                               job_id id)
{
    const struct job *job = &view->jobs[id];
    int64_t left_ns = remaining_ns(model, view, id);
    if (left_ns == INT64_MAX)
        return left_ns;
    if (job->state == JOB_PLACED)
        left_ns +=
            (int64_t)((model->start_delay_s[id] + cost_model_load_s(model, view, id)) *
                      1e9);
    return view->now_ns + left_ns;
}

static void add_running(struct cost_model *model, const struct view *view, job_id job)
{
    remove_running(model, job);
    tree_insert(&model->run_pool, &model->running, job,
                expected_end_ns(model, view, job), view->jobs[job].id, 0);
    model->runs[job] = true;
}

/* A placed job starts when the last of its victims has saved its checkpoint. */
static void note_pending_victims(struct cost_model *model, const struct view *view,
                                 const struct event *event)
{
    double due_s = 0;
    for (uint32_t i = 0; i < event->pending_count; i++)
        due_s = fmax(due_s,
                     cost_model_pause_s(model, view, event->pending_shares[i].victim));
    model->start_delay_s[event->job] = due_s;
}

static void observe_running(struct cost_model *model, const struct view *view,
                            const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    bool placed = event->kind == EVENT_PLACED && job->state == JOB_PLACED;
    bool adopted =
        event->kind == EVENT_ADOPTED && (job->state == JOB_PLACED || job_runs(job));
    if (placed)
        note_pending_victims(model, view, event);
    if (placed || adopted || event->kind == EVENT_STARTED ||
        event->kind == EVENT_LOADED || event->kind == EVENT_PROGRESS ||
        event->kind == EVENT_RESIZED)
        add_running(model, view, event->job);
    else if ((event_ends_running(event, view) && !job_runs(job)) ||
             event->kind == EVENT_CANCELLED)
        remove_running(model, event->job);
}

static void remove_waiting(struct cost_model *model, job_id job)
{
    if (model->waits[job])
        tree_remove(&model->wait_pool, &model->waiting, job);
    model->waits[job] = false;
}

static void add_waiting(struct cost_model *model, const struct view *view, job_id job)
{
    remove_waiting(model, job);
    tree_insert(&model->wait_pool, &model->waiting, job,
                cost_model_key_ns(model, view, job), view->jobs[job].id, 0);
    model->waits[job] = true;
}

void cost_model_renew(struct cost_model *model, const struct view *view, job_id job)
{
    if (model->waits[job])
        add_waiting(model, view, job);
}

void cost_model_observe(struct cost_model *model, const struct view *view,
                        const struct event *event)
{
    if (event->job >= view->job_max || event->kind == EVENT_REJECTED)
        return;
    learn_costs(model, view, event);
    if (model->estimates &&
        (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED ||
         event->kind == EVENT_CHANGED || event->kind == EVENT_RESTORED))
        set_slowness(model, view, event->job);
    observe_running(model, view, event);
    if (event_makes_waiting(event, view))
        add_waiting(model, view, event->job);
    else if (event_ends_waiting(event, view))
        remove_waiting(model, event->job);
}

/* --- the queue, simulated --------------------------------------------------------- */

/*
 * How the queue would develop without further preemptions, by list scheduling: running
 * jobs run to their ends, and whenever GPUs become free, the first waiting job that fits
 * starts.  GPUs are counted node by node, so a gang waits here, as on the cluster, for
 * one node that holds all of it; CPU and memory count with estimates only.  After a given number of
 * ends the simulation stops; jobs that have not started by then are counted as if they
 * ran one after the other on the whole cluster.
 *
 * The sizes below bound the work, however large the cluster and the queue.
 */
#define LOOKAHEAD_NODES_MAX 128
#define LOOKAHEAD_ENDS_MAX 512
#define LOOKAHEAD_QUEUE_MAX 256
#define LOOKAHEAD_PIECES_MAX 16 /* of one gang */

struct lookahead_node {
    uint32_t type;
    uint32_t free;
    uint32_t node; /* its number in the cluster */
    uint32_t cpu_milli, mem_mib;
};

/* GPUs that become free at a time; 0: a job begins to wait then. */
struct lookahead_end {
    double at_s;
    uint32_t node;
    uint32_t gpus;
    uint32_t cpu_milli, mem_mib;
};

/* A waiting job: 'pieces' parts of 'each' GPUs, each part on one node. */
struct lookahead_job {
    double key; /* smallest first */
    double run_s;
    double work_s;          /* of run_s: the part that takes longer on a slower type */
    const double *slowness; /* by type, of its fastest one 1; NULL: all are alike    */
    double from_s;          /* it cannot start earlier */
    double weight;          /* of its completion time */
    uint32_t each, pieces;
    uint32_t cpu_milli, mem_mib; /* of each part; 0: does not matter */
    uint32_t types;              /* one bit per type */
    bool watched;                /* record in watched_s when it starts */
    const struct node_set *set;  /* nodes it may use; NULL: any */
};

struct lookahead {
    struct lookahead_node nodes[LOOKAHEAD_NODES_MAX];
    struct lookahead_end ends[LOOKAHEAD_ENDS_MAX];   /* a heap, earliest first */
    struct lookahead_job queue[LOOKAHEAD_QUEUE_MAX]; /* by key */
    uint32_t node_count, end_count, queue_count;
    uint32_t gpu_count; /* of the cluster */
    double now_s;
    double watched_s; /* start of the watched job */
};

#define NODE_NOWHERE UINT32_MAX

/* Empty the simulation. */
static void lookahead_clear(struct lookahead *ahead, uint32_t gpu_count)
{
    ahead->node_count = ahead->end_count = ahead->queue_count = 0;
    ahead->gpu_count = gpu_count ? gpu_count : 1;
    ahead->now_s = ahead->watched_s = 0;
}

/* Copies only the elements in use. */
static void lookahead_copy(struct lookahead *ahead, const struct lookahead *from)
{
    lookahead_clear(ahead, from->gpu_count);
    ahead->node_count = from->node_count;
    ahead->end_count = from->end_count;
    ahead->queue_count = from->queue_count;
    ahead->now_s = from->now_s;
    memcpy(ahead->nodes, from->nodes, from->node_count * sizeof *from->nodes);
    memcpy(ahead->ends, from->ends, from->end_count * sizeof *from->ends);
    memcpy(ahead->queue, from->queue, from->queue_count * sizeof *from->queue);
}

/* What exceeds the maximum is ignored. */
static void lookahead_add_end(struct lookahead *ahead, struct lookahead_end end)
{
    if (ahead->end_count == LOOKAHEAD_ENDS_MAX)
        return;
    uint32_t at = ahead->end_count++;
    for (; at > 0 && ahead->ends[(at - 1) / 2].at_s > end.at_s; at = (at - 1) / 2)
        ahead->ends[at] = ahead->ends[(at - 1) / 2];
    ahead->ends[at] = end;
}

static struct lookahead_end pop_first_end(struct lookahead *ahead)
{
    struct lookahead_end first = ahead->ends[0];
    struct lookahead_end last = ahead->ends[--ahead->end_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= ahead->end_count)
            break;
        if (child + 1 < ahead->end_count &&
            ahead->ends[child + 1].at_s < ahead->ends[child].at_s)
            child++;
        if (ahead->ends[child].at_s >= last.at_s)
            break;
        ahead->ends[at] = ahead->ends[child];
        at = child;
    }
    ahead->ends[at] = last;
    return first;
}

static void lookahead_add_job(struct lookahead *ahead, struct lookahead_job job)
{
    if (ahead->queue_count == LOOKAHEAD_QUEUE_MAX)
        return;
    uint32_t at = ahead->queue_count++;
    for (; at > 0 && ahead->queue[at - 1].key > job.key; at--)
        ahead->queue[at] = ahead->queue[at - 1];
    ahead->queue[at] = job;
}

static uint32_t find_tightest_node(const struct lookahead *ahead,
                                   const struct lookahead_job *job, uint32_t types)
{
    uint32_t best = NODE_NOWHERE;
    for (uint32_t n = 0; n < ahead->node_count; n++) {
        const struct lookahead_node *node = &ahead->nodes[n];
        if (node->free >= job->each && (types >> node->type & 1) &&
            node->cpu_milli >= job->cpu_milli && node->mem_mib >= job->mem_mib &&
            node_set_has(job->set, node->node) &&
            (best == NODE_NOWHERE || node->free < ahead->nodes[best].free))
            best = n;
    }
    return best;
}

static void take_part(struct lookahead_node *node, const struct lookahead_job *job)
{
    node->free -= job->each;
    node->cpu_milli -= job->cpu_milli;
    node->mem_mib -= job->mem_mib;
}

static void give_back(struct lookahead_node *node, uint32_t gpus, uint32_t cpu_milli,
                      uint32_t mem_mib)
{
    node->free += gpus;
    node->cpu_milli += cpu_milli;
    node->mem_mib += mem_mib;
}

/* Start the whole job now on nodes of these types, if it fits. */
static bool start_on_types(struct lookahead *ahead, const struct lookahead_job *job,
                           uint32_t types, double run_s)
{
    uint32_t at[LOOKAHEAD_PIECES_MAX];
    uint32_t placed = 0;
    for (; placed < job->pieces; placed++) {
        at[placed] = find_tightest_node(ahead, job, types);
        if (at[placed] == NODE_NOWHERE)
            break;
        take_part(&ahead->nodes[at[placed]], job);
    }
    bool whole = placed == job->pieces;
    for (uint32_t p = 0; p < placed; p++)
        if (whole)
            lookahead_add_end(
                ahead, (struct lookahead_end){ ahead->now_s + run_s, at[p], job->each,
                                               job->cpu_milli, job->mem_mib });
        else
            give_back(&ahead->nodes[at[p]], job->each, job->cpu_milli, job->mem_mib);
    return whole;
}

/* The fastest type for the job of those in the set. */
static uint32_t fastest_type(const struct lookahead_job *job, uint32_t types)
{
    uint32_t best = (uint32_t)__builtin_ctz(types);
    for (uint32_t left = types; left; left &= left - 1) {
        uint32_t type = (uint32_t)__builtin_ctz(left);
        if (job->slowness[type] < job->slowness[best])
            best = type;
    }
    return best;
}

/* Start the whole job now, if it fits, on the fastest type; how long it runs, -1: not. */
static double lookahead_start(struct lookahead *ahead, const struct lookahead_job *job)
{
    if (!job->slowness)
        return start_on_types(ahead, job, job->types, job->run_s) ? job->run_s : -1;
    for (uint32_t types = job->types; types;) {
        uint32_t type = fastest_type(job, types);
        double run_s = job->run_s + job->work_s * (job->slowness[type] - 1);
        if (start_on_types(ahead, job, 1u << type, run_s))
            return run_s;
        types &= ~(1u << type);
    }
    return -1;
}

static uint32_t most_free_gpus(const struct lookahead *ahead)
{
    uint32_t most = 0;
    for (uint32_t n = 0; n < ahead->node_count; n++)
        most = ahead->nodes[n].free > most ? ahead->nodes[n].free : most;
    return most;
}

/* The job needs at least as much as one that did not fit, on no other nodes. */
static bool cannot_start_either(const struct lookahead_job *job,
                                const struct lookahead_job *failed)
{
    return failed->each > 0 && job->each >= failed->each &&
           job->pieces >= failed->pieces && (job->types & ~failed->types) == 0 &&
           job->cpu_milli >= failed->cpu_milli && job->mem_mib >= failed->mem_mib &&
           (!failed->set || job->set == failed->set);
}

/* Start the waiting jobs that fit, in order.  No node has more than 'most' GPUs free. */
static double start_waiting_jobs(struct lookahead *ahead, uint32_t most)
{
    struct lookahead_job failed[2] = {
        0
    }; /* the last job of one piece, and of several */
    uint32_t kept = 0;
    double sum_s = 0;
    if (most == 0)
        return 0;
    for (uint32_t i = 0; i < ahead->queue_count; i++) {
        const struct lookahead_job job = ahead->queue[i];
        bool looks_good = job.each <= most && job.from_s <= ahead->now_s &&
                          !cannot_start_either(&job, &failed[0]) &&
                          !cannot_start_either(&job, &failed[1]);
        double run_s = looks_good ? lookahead_start(ahead, &job) : -1;
        if (run_s >= 0) {
            sum_s += job.weight * (ahead->now_s + run_s);
            if (job.watched)
                ahead->watched_s = ahead->now_s;
            continue;
        }
        if (looks_good)
            failed[job.pieces > 1] = job;
        ahead->queue[kept++] = job;
    }
    ahead->queue_count = kept;
    return sum_s;
}

/*
 * Go to the next time at which GPUs become free, and start jobs.  Jobs that did not fit
 * before can fit only where GPUs have become free; after an end without GPUs, which
 * stands for a job that begins to wait, any free node is considered.
 */
static double advance_to_next_end(struct lookahead *ahead)
{
    uint32_t most = 0;
    ahead->now_s = fmax(ahead->now_s, ahead->ends[0].at_s);
    while (ahead->end_count > 0 && ahead->ends[0].at_s <= ahead->now_s) {
        struct lookahead_end end = pop_first_end(ahead);
        give_back(&ahead->nodes[end.node], end.gpus, end.cpu_milli, end.mem_mib);
        uint32_t free = ahead->nodes[end.node].free;
        if (end.gpus == 0)
            free = most_free_gpus(ahead);
        most = free > most ? free : most;
    }
    return start_waiting_jobs(ahead, most);
}

/* Jobs beyond the horizon: one after the other, each on all GPUs. */
static double sum_beyond_horizon(struct lookahead *ahead)
{
    double work_s = 0;
    double sum_s = 0;
    for (uint32_t i = 0; i < ahead->end_count; i++)
        work_s += (ahead->ends[i].at_s - ahead->now_s) * ahead->ends[i].gpus;
    for (uint32_t i = 0; i < ahead->queue_count; i++) {
        const struct lookahead_job *job = &ahead->queue[i];
        double start_s = ahead->now_s + work_s / ahead->gpu_count;
        sum_s += job->weight * (start_s + job->run_s);
        if (job->watched)
            ahead->watched_s = start_s;
        work_s += job->run_s * job->each * job->pieces;
    }
    return sum_s;
}

/*
 * Simulate at most 'depth' times at which GPUs become free, then estimate the rest.
 * Returns the sum of the completion times, counted from 0, of all jobs of the queue.
 */
static double lookahead_run(struct lookahead *ahead, uint32_t depth)
{
    double sum_s = start_waiting_jobs(ahead, most_free_gpus(ahead));
    for (uint32_t i = 0; i < depth && ahead->end_count > 0 && ahead->queue_count > 0;
         i++)
        sum_s += advance_to_next_end(ahead);
    return sum_s + sum_beyond_horizon(ahead);
}

/* --- what is simulated ------------------------------------------------------------ */

/* Its number in the simulation; UINT32_MAX: the simulation is full. */
static uint32_t include_node(struct cost_model *model, const struct view *view,
                             const struct plan *plan, node_id node)
{
    struct lookahead *base = model->base;
    if (model->node_number[node])
        return model->node_number[node] - 1;
    if (base->node_count == LOOKAHEAD_NODES_MAX)
        return UINT32_MAX;
    struct room room;
    plan_room(plan, node, &room);
    model->included_nodes[base->node_count] = node;
    base->nodes[base->node_count] =
        (struct lookahead_node){ view->cluster->nodes[node].type, bits_count(room.gpus),
                                 node, room.cpu_milli, room.mem_mib };
    model->node_number[node] = ++base->node_count;
    return base->node_count - 1;
}

static void add_releases(struct cost_model *model, const struct view *view,
                         const struct plan *plan, struct lookahead *ahead,
                         const struct seat *seats, uint32_t count, double at_s)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = include_node(model, view, plan, seats[i].node);
        uint32_t gpus = seat_gpu_count(&seats[i]);
        if (node != UINT32_MAX && (gpus > 0 || model->estimates))
            lookahead_add_end(ahead, (struct lookahead_end){ at_s, node, gpus,
                                                             seats[i].cpu_milli,
                                                             seats[i].mem_mib });
    }
}

static const struct seat *seats_of(const struct view *view, job_id id,
                                   uint32_t *ret_count)
{
    const struct job *job = &view->jobs[id];
    struct seat_row row = job->state == JOB_PLACED ? job->next : job->seats;
    *ret_count = row.count;
    return &view->seats[row.first];
}

/* A gang is placed on one node, or on as few full nodes as possible. */
static void set_gang_shape(const struct view *view, const struct job *job,
                           struct lookahead_job *ahead)
{
    uint32_t node_max = 1;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            node_set_gpus_max(job->set, view->cluster, type) > node_max)
            node_max = node_set_gpus_max(job->set, view->cluster, type);
    uint32_t pieces = job->nodes ? job->nodes : (job->gpus + node_max - 1) / node_max;
    if (job->spread && job->gpus > pieces)
        pieces = job->gpus;
    if (pieces > LOOKAHEAD_PIECES_MAX)
        pieces = LOOKAHEAD_PIECES_MAX;
    ahead->pieces = pieces ? pieces : 1;
    ahead->each = (job->gpus + ahead->pieces - 1) / ahead->pieces;
    ahead->types = job->types;
    ahead->set = job->set;
}

static double weight_of(const struct cost_model *model, const struct view *view,
                        job_id id)
{
    return model->estimates ? model->estimates->weight(model->self, view, id) : 1;
}

static struct lookahead_job make_waiting_job(const struct cost_model *model,
                                             const struct view *view, job_id id,
                                             double factor)
{
    const struct job *job = &view->jobs[id];
    double left_s = factor * work_left_s(model, view, id);
    struct lookahead_job waiting = { .key = (double)cost_model_key_ns(model, view, id),
                                     .run_s =
                                         cost_model_load_s(model, view, id) + left_s,
                                     .work_s = left_s,
                                     .weight = weight_of(model, view, id) };
    set_gang_shape(view, job, &waiting);
    if (model->estimates) {
        waiting.cpu_milli = job->cpu_milli / waiting.pieces;
        waiting.mem_mib = job->mem_mib / waiting.pieces;
        if (job->gpus > 0)
            waiting.slowness = &model->slowness[(size_t)id * TYPES_MAX];
    }
    return waiting;
}

static void add_running_jobs(struct cost_model *model, const struct view *view,
                             const struct plan *plan)
{
    uint32_t seen = 0;
    for (job_id id = tree_first(&model->run_pool, &model->running);
         id != TREE_NONE && seen < model->settings.depth;
         id = tree_next(&model->run_pool, id)) {
        int64_t end = model->run_pool.nodes[id].key;
        if (end == INT64_MAX)
            break; /* the ends of all further jobs are unknown */
        if (model->leaves[id] || plan_changes(plan, id))
            continue;
        uint32_t count;
        const struct seat *seats = seats_of(view, id, &count);
        double at_s = fmax(ns_to_s(end - view->now_ns), 0);
        add_releases(model, view, plan, model->base, seats, count, at_s);
        seen++;
    }
}

/* How long the job runs on the nodes that it is granted. */
static double run_where_granted_s(const struct view *view, const struct plan *plan,
                                  const struct change *change,
                                  const struct lookahead_job *job)
{
    if (!job->slowness || change->seat_count == 0)
        return job->run_s;
    uint32_t type = view->cluster->nodes[plan_seats(plan, change)->node].type;
    return type < view->cluster->type_count
               ? job->run_s + job->work_s * (job->slowness[type] - 1)
               : job->run_s;
}

/* Add what the plan has changed so far. */
static void add_planned_changes(struct cost_model *model, const struct view *view,
                                const struct plan *plan)
{
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        if (change->undone || !is_work_known(model, view, change->job))
            continue;
        struct lookahead_job job = make_waiting_job(model, view, change->job, 1);
        const struct pending_part *pending_shares = plan_pending(plan, change);
        double due_s = 0;
        for (uint32_t p = 0; p < change->pending_count; p++)
            due_s =
                fmax(due_s, cost_model_pause_s(model, view, pending_shares[p].victim));
        if (change->kind == CHANGE_GRANT)
            add_releases(model, view, plan, model->base, plan_seats(plan, change),
                         change->seat_count,
                         due_s + run_where_granted_s(view, plan, change, &job));
        else if (change->kind == CHANGE_REVOKE && !plan_holds(plan, change->job))
            lookahead_add_job(model->base, job);
    }
}

static void add_waiting_jobs(struct cost_model *model, const struct view *view,
                             const struct plan *plan, job_id but)
{
    uint32_t seen = 0;
    for (job_id id = tree_first(&model->wait_pool, &model->waiting);
         id != TREE_NONE && seen < 2 * model->settings.depth;
         id = tree_next(&model->wait_pool, id)) {
        if (model->wait_pool.nodes[id].key == INT64_MAX)
            break;
        if (id == but || plan_changes(plan, id))
            continue;
        lookahead_add_job(model->base, make_waiting_job(model, view, id, 1));
        seen++;
    }
}

/* Victims may resume on other nodes. */
static void include_free_nodes(struct cost_model *model, const struct view *view,
                               const struct plan *plan)
{
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        node_id node = NODE_NONE;
        for (uint32_t i = 0; i < FREE_NODES_MAX; i++) {
            node = free_index_most(view->free, type, node, NULL);
            if (node == NODE_NONE)
                break;
            include_node(model, view, plan, node);
        }
    }
}

static void forget_nodes(struct cost_model *model)
{
    for (uint32_t i = 0; i < model->base->node_count; i++)
        model->node_number[model->included_nodes[i]] = 0;
}

/* --- the two simulations ---------------------------------------------------------- */

struct cost_model_swap {
    const struct view *view;
    const struct plan *plan;
    job_id beneficiary;
    const job_id *victims;
    uint32_t count;
    double pause_s; /* the longest checkpoint time among the victims */
};

/* When the victim would end if it was left in place. */
static double victim_end_s(const struct cost_model *model,
                           const struct cost_model_swap *swap, job_id id)
{
    int64_t left_ns = remaining_ns(model, swap->view, id);
    const struct job *job = &swap->view->jobs[id];
    return model->faster * (left_ns == INT64_MAX ? guess_work_left_s(swap->view, job)
                                                 : ns_to_s(left_ns));
}

/* If the beneficiary may use some nodes only, include the first of these. */
static void include_allowed_nodes(struct cost_model *model,
                                  const struct cost_model_swap *swap)
{
    const struct node_set *set = swap->view->jobs[swap->beneficiary].set;
    if (!set)
        return;
    node_id node = bits_next(&set->allowed, 0);
    for (uint32_t i = 0; i < FREE_NODES_MAX && node != BITS_NONE; i++) {
        include_node(model, swap->view, swap->plan, node);
        node = bits_next(&set->allowed, node + 1);
    }
}

/* Add everything but the beneficiary and the victims. */
static void build_base(struct cost_model *model, const struct cost_model_swap *swap)
{
    lookahead_clear(model->base, swap->view->cluster->gpu_count);
    for (uint32_t i = 0; i < swap->count; i++) { /* before the simulation can be full */
        uint32_t count;
        const struct seat *seats = seats_of(swap->view, swap->victims[i], &count);
        for (uint32_t s = 0; s < count; s++)
            include_node(model, swap->view, swap->plan, seats[s].node);
        model->leaves[swap->victims[i]] = true;
    }
    include_allowed_nodes(model, swap);
    add_planned_changes(model, swap->view, swap->plan);
    add_running_jobs(model, swap->view, swap->plan);
    add_waiting_jobs(model, swap->view, swap->plan, swap->beneficiary);
    include_free_nodes(model, swap->view, swap->plan);
    for (uint32_t i = 0; i < swap->count; i++)
        model->leaves[swap->victims[i]] = false;
}

/* Sum of completion times if all jobs are left in place. */
static double sum_if_kept_s(struct cost_model *model,
                            const struct cost_model_swap *swap, double *ret_start_s)
{
    struct lookahead *ahead = model->ahead;
    double sum_s = 0;
    lookahead_copy(ahead, model->base);
    for (uint32_t i = 0; i < swap->count; i++) {
        uint32_t count;
        const struct seat *seats = seats_of(swap->view, swap->victims[i], &count);
        double end_s = victim_end_s(model, swap, swap->victims[i]);
        add_releases(model, swap->view, swap->plan, ahead, seats, count, end_s);
        sum_s += weight_of(model, swap->view, swap->victims[i]) * end_s;
    }
    struct lookahead_job beneficiary =
        make_waiting_job(model, swap->view, swap->beneficiary, model->slower);
    beneficiary.watched = true;
    lookahead_add_job(ahead, beneficiary);
    sum_s += lookahead_run(ahead, model->settings.depth);
    *ret_start_s = ahead->watched_s;
    return sum_s;
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * Free the victims' GPUs ('back' false), or take back what the beneficiary left of them
 * until the victims have stopped ('back' true).
 */
static void move_victim_gpus(struct cost_model *model,
                             const struct cost_model_swap *swap,
                             struct lookahead *ahead, bool back)
{
    for (uint32_t i = 0; i < swap->count; i++) {
        uint32_t count;
        const struct seat *seats = seats_of(swap->view, swap->victims[i], &count);
        for (uint32_t s = 0; s < count; s++) {
            uint32_t at = model->node_number[seats[s].node];
            if (at == 0)
                continue; /* not part of the simulation */
            struct lookahead_node *node = &ahead->nodes[at - 1];
            uint32_t gpus = seat_gpu_count(&seats[s]);
            uint32_t rest = gpus < node->free ? gpus : node->free;
            uint32_t cpus = least_of(seats[s].cpu_milli, node->cpu_milli);
            uint32_t mem = least_of(seats[s].mem_mib, node->mem_mib);
            if (!back)
                give_back(node, gpus, seats[s].cpu_milli, seats[s].mem_mib);
            else
                give_back(node, -rest, -cpus, -mem);
            if (back && (rest > 0 || model->estimates))
                lookahead_add_end(ahead, (struct lookahead_end){ swap->pause_s, at - 1,
                                                                 rest, cpus, mem });
        }
    }
}

/*
 * Sum of completion times if the swap is made.  The beneficiary and the other waiting
 * jobs can use the victims' GPUs once the last victim has stopped.
 */
static double sum_if_swapped_s(struct cost_model *model,
                               const struct cost_model_swap *swap)
{
    struct lookahead *ahead = model->ahead;
    lookahead_copy(ahead, model->base);
    struct lookahead_job beneficiary =
        make_waiting_job(model, swap->view, swap->beneficiary, model->slower);
    beneficiary.run_s += swap->pause_s;
    move_victim_gpus(model, swap, ahead, false);
    double run_s = lookahead_start(ahead, &beneficiary);
    if (run_s < 0)
        lookahead_add_job(ahead, beneficiary);
    double sum_s = beneficiary.weight * fmax(run_s, 0);
    move_victim_gpus(model, swap, ahead, true);
    for (uint32_t i = 0; i < swap->count; i++) {
        struct lookahead_job victim =
            make_waiting_job(model, swap->view, swap->victims[i], model->faster);
        victim.from_s = swap->pause_s;
        if (model->estimates)
            victim.run_s +=
                model->estimates->lost_s(model->self, swap->view, swap->victims[i]);
        lookahead_add_job(ahead, victim);
    }
    lookahead_add_end(ahead, (struct lookahead_end){
                                 .at_s = swap->pause_s }); /* retry the queue then */
    return sum_s + lookahead_run(ahead, model->settings.depth);
}

/* --- the decision ----------------------------------------------------------------- */

/* The job has run for less time than its checkpoint or its start takes. */
static bool has_hardly_begun(const struct cost_model *model, const struct view *view,
                             job_id id)
{
    const struct job *job = &view->jobs[id];
    double round_trip_s =
        fmax(cost_model_pause_s(model, view, id), cost_model_load_s(model, view, id));
    return ns_to_s(view->now_ns - job->since_ns) < round_trip_s;
}

static double sum_victim_cost(const struct cost_model *model,
                              const struct cost_model_swap *swap)
{
    double cost_gpu_s = 0;
    for (uint32_t i = 0; i < swap->count; i++) {
        const struct job *victim = &swap->view->jobs[swap->victims[i]];
        double load_s = cost_model_load_s(model, swap->view, swap->victims[i]);
        cost_gpu_s +=
            model->estimates
                ? model->estimates->waste_gpu_s(model->self, swap->view,
                                                swap->victims[i], swap->pause_s)
                : victim->gpus_now * (swap->pause_s + load_s);
    }
    return cost_gpu_s;
}

bool cost_model_pays(struct cost_model *model, const struct view *view,
                     const struct plan *plan, job_id beneficiary, const job_id *victims,
                     uint32_t count, struct preemption_price *ret_price)
{
    struct cost_model_swap swap = { view, plan, beneficiary, victims, count, 0 };
    double theta = model->settings.theta;
    bool fresh = false;
    *ret_price = (struct preemption_price){ 0 };
    if (!is_work_known(model, view, beneficiary))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        swap.pause_s = fmax(swap.pause_s, cost_model_pause_s(model, view, victims[i]));
        fresh = fresh || has_hardly_begun(model, view, victims[i]);
    }
    if (fresh)
        theta *= model->settings.hysteresis;

    double start_s;
    build_base(model, &swap);
    double keep = sum_if_kept_s(model, &swap, &start_s);
    double swapped = sum_if_swapped_s(model, &swap);
    forget_nodes(model);
    double wait_saved_s = start_s - swap.pause_s;
    double yet_to_come_s = weight_of(model, view, beneficiary) *
                           model->settings.stretch * fmax(wait_saved_s, 0);
    *ret_price = (struct preemption_price){ .gain_s = keep - swapped + yet_to_come_s,
                                            .cost_gpu_s = sum_victim_cost(model, &swap),
                                            .wait_saved_s = wait_saved_s };
    return ret_price->gain_s > theta * ret_price->cost_gpu_s;
}

/* --- setup ------------------------------------------------------------------------ */

/* The q-quantile of the standard normal distribution, by bisection. */
static double normal_quantile(double q)
{
    double low = -8, high = 8;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < q)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

void cost_model_init(struct cost_model *model, const struct view *view,
                     struct arena *run)
{
    double z = normal_quantile(model->settings.quantile);
    model->slower = exp(z * model->settings.spread);
    model->faster = exp(-z * model->settings.spread);
    tree_pool_init(&model->run_pool, run, view->job_max);
    tree_pool_init(&model->wait_pool, run, view->job_max);
    tree_init(&model->running);
    tree_init(&model->waiting);
    if (model->estimates)
        model->slowness = arena_array(run, double, (size_t)view->job_max *TYPES_MAX);
    model->runs = arena_array(run, bool, view->job_max);
    model->waits = arena_array(run, bool, view->job_max);
    model->leaves = arena_array(run, bool, view->job_max);
    model->start_delay_s = arena_array(run, double, view->job_max);
    model->kinds = arena_array(run, struct cost_model_measured, COST_MODEL_KINDS_MAX);
    model->base = arena_new(run, struct lookahead);
    model->ahead = arena_new(run, struct lookahead);
    model->node_number = arena_array(run, uint32_t, view->cluster->node_count);
    model->included_nodes = arena_array(run, node_id, LOOKAHEAD_NODES_MAX);
}
