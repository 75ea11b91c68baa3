/* cost_model.c - does preempting these jobs for that one pay? */
#include "policy/shared/cost_model.h"

#include <math.h>

#include "base/arena.h"
#include "base/bits.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/throughput.h"
#include "predict/lookahead.h"

#define FREE_NODES_MAX 16 /* per type, added as alternatives for the victims */

static double ns_to_s(int64_t ns)
{
    return (double)ns * 1e-9;
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
    else if (job->type_now < view->cluster->type_count)
        left_s *= model->slowness[(size_t)id * TYPES_MAX + job->type_now];
    int64_t loaded_ns = job->anchor_ns + job->load_ns;
    if (job->state == JOB_LOADING && loaded_ns > view->now_ns)
        left_s += ns_to_s(loaded_ns - view->now_ns);
    return left_s < 4e9 ? (int64_t)(left_s * 1e9) : INT64_MAX;
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
        return model->estimates->value(model->self, view, id).key_ns;
    int64_t left_ns = view_work_left_ns(view, id);
    if (left_ns == INT64_MAX)
        return left_ns;
    double key_ns = (double)left_ns + (double)job->load_ns;
    if (model->settings.gang > 0 && job->gpus > 1)
        key_ns /= job->gpus < COST_MODEL_GANGS ? model->gangs[job->gpus]
                                               : pow(job->gpus, model->settings.gang);
    return (int64_t)key_ns;
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
    lazy_trees_put(model->running, 0, job, expected_end_ns(model, view, job),
                   view->jobs[job].id);
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
        event_changes_running(event, view))
        add_running(model, view, event->job);
    else if ((event_ends_running(event, view) && !job_runs(job)) ||
             event->kind == EVENT_CANCELLED)
        lazy_trees_drop(model->running, event->job);
}

static void add_waiting(struct cost_model *model, const struct view *view, job_id job)
{
    lazy_trees_put(model->waiting, 0, job, cost_model_key_ns(model, view, job),
                   view->jobs[job].id);
}

void cost_model_renew(struct cost_model *model, const struct view *view, job_id job)
{
    if (lazy_trees_has(model->waiting, job))
        add_waiting(model, view, job);
    if (lazy_trees_has(model->running, job))
        add_running(model, view, job);
}

void cost_model_observe(struct cost_model *model, const struct view *view,
                        const struct event *event)
{
    if (event->job >= view->job_max || event->kind == EVENT_REJECTED)
        return;
    stop_costs_observe(&model->stop_costs, view, event);
    if (model->estimates &&
        (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED ||
         event->kind == EVENT_CHANGED || event->kind == EVENT_RESTORED ||
         event->kind == EVENT_RATED))
        set_slowness(model, view, event->job);
    observe_running(model, view, event);
    if (event_makes_waiting(event, view) || event_rates_waiting(event, view))
        add_waiting(model, view, event->job);
    else if (event_ends_waiting(event, view))
        lazy_trees_drop(model->waiting, event->job);
}

/* --- what is simulated ------------------------------------------------------------ */

/* Its number in the simulation; LOOKAHEAD_NOWHERE: the simulation is full. */
static uint32_t include_node(struct cost_model *model, const struct view *view,
                             const struct plan *plan, node_id node)
{
    if (model->node_number[node])
        return model->node_number[node] - 1;
    struct room room;
    plan_room(plan, node, &room);
    uint32_t at = lookahead_add_node(
        model->base,
        (struct lookahead_node){ view->cluster->nodes[node].type, bits_count(room.gpus),
                                 node, room.cpu_milli, room.mem_mib });
    if (at != LOOKAHEAD_NOWHERE)
        model->node_number[node] = at + 1;
    return at;
}

static void add_releases(struct cost_model *model, const struct view *view,
                         const struct plan *plan, struct lookahead *ahead,
                         const struct seat *seats, uint32_t count, bool frees,
                         double at_s)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = include_node(model, view, plan, seats[i].node);
        uint32_t gpus = frees ? seat_gpu_count(&seats[i]) : 0;
        if (node != LOOKAHEAD_NOWHERE && (gpus > 0 || model->estimates))
            lookahead_add_end(ahead, (struct lookahead_end){ at_s, node, gpus,
                                                             seats[i].cpu_milli,
                                                             seats[i].mem_mib });
    }
}

bool cost_model_frees_gpus(const struct cost_model *model, const struct view *view,
                           job_id id)
{
    job_id partner = view->jobs[id].partner;
    if (partner == JOB_NONE || !lazy_trees_has(model->running, partner))
        return true;
    if (!lazy_trees_has(model->running, id))
        return false;
    int64_t end_ns = lazy_trees_key(model->running, id);
    int64_t other_ns = lazy_trees_key(model->running, partner);
    return end_ns > other_ns || (end_ns == other_ns && id > partner);
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

static struct cost_model_value value_of(const struct cost_model *model,
                                        const struct view *view, job_id id)
{
    if (model->estimates)
        return model->estimates->value(model->self, view, id);
    int64_t left_ns = view_work_left_ns(view, id);
    return (struct cost_model_value){ .left_s =
                                          left_ns == INT64_MAX
                                              ? guess_work_left_s(view, &view->jobs[id])
                                              : ns_to_s(left_ns),
                                      .weight = 1,
                                      .key_ns = cost_model_key_ns(model, view, id) };
}

static double weight_of(const struct cost_model *model, const struct view *view,
                        job_id id)
{
    return model->estimates ? value_of(model, view, id).weight : 1;
}

/* The job as it waits; its remaining time is multiplied by 'factor'. */
static void set_waiting_job(const struct cost_model *model, const struct view *view,
                            job_id id, double factor, struct lookahead_job *waiting)
{
    const struct job *job = &view->jobs[id];
    struct cost_model_value value = value_of(model, view, id);
    double left_s = factor * value.left_s;
    *waiting =
        (struct lookahead_job){ .key = (double)value.key_ns,
                                .run_s = cost_model_load_s(model, view, id) + left_s,
                                .work_s = left_s,
                                .weight = value.weight };
    set_gang_shape(view, job, waiting);
    if (model->estimates) {
        waiting->cpu_milli = job->cpu_milli / waiting->pieces;
        waiting->mem_mib = job->mem_mib / waiting->pieces;
        if (job->gpus > 0)
            waiting->slowness = &model->slowness[(size_t)id * TYPES_MAX];
    }
}

static void add_running_jobs(struct cost_model *model, const struct view *view,
                             const struct plan *plan)
{
    uint32_t seen = 0;
    for (job_id id = lazy_trees_first(model->running, 0);
         id != TREE_NONE && seen < model->settings.depth;
         id = lazy_trees_next(model->running, id)) {
        int64_t end = lazy_trees_key(model->running, id);
        if (end == INT64_MAX)
            break; /* the ends of all further jobs are unknown */
        if (model->leaves[id] || plan_changes(plan, id))
            continue;
        uint32_t count;
        const struct seat *seats = seats_of(view, id, &count);
        double at_s = fmax(ns_to_s(end - view->now_ns), 0);
        job_id partner = view->jobs[id].partner;
        bool frees = (partner != JOB_NONE && model->leaves[partner]) ||
                     cost_model_frees_gpus(model, view, id);
        add_releases(model, view, plan, model->base, seats, count, frees, at_s);
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
        struct lookahead_job job;
        set_waiting_job(model, view, change->job, 1, &job);
        const struct pending_part *pending_shares = plan_pending(plan, change);
        double due_s = 0;
        for (uint32_t p = 0; p < change->pending_count; p++)
            due_s =
                fmax(due_s, cost_model_pause_s(model, view, pending_shares[p].victim));
        if (change->kind == CHANGE_GRANT)
            add_releases(model, view, plan, model->base, plan_seats(plan, change),
                         change->seat_count, change->beside == JOB_NONE,
                         due_s + run_where_granted_s(view, plan, change, &job));
        else if (change->kind == CHANGE_REVOKE && !plan_holds(plan, change->job))
            lookahead_add_job(model->base, &job);
    }
}

static void add_waiting_jobs(struct cost_model *model, const struct view *view,
                             const struct plan *plan, job_id but)
{
    uint32_t seen = 0;
    for (job_id id = lazy_trees_first(model->waiting, 0);
         id != TREE_NONE && seen < 2 * model->settings.depth;
         id = lazy_trees_next(model->waiting, id)) {
        if (lazy_trees_key(model->waiting, id) == INT64_MAX)
            break;
        if (id == but || plan_changes(plan, id))
            continue;
        struct lookahead_job job;
        set_waiting_job(model, view, id, 1, &job);
        lookahead_add_job(model->base, &job);
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
        model->node_number[model->base->nodes[i].node] = 0;
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

/* The GPUs of a pair are vacated once, and only if both are victims. */
static bool vacates_gpus(const struct cost_model *model,
                         const struct cost_model_swap *swap, job_id victim)
{
    job_id partner = swap->view->jobs[victim].partner;
    bool both = partner == JOB_NONE;
    for (uint32_t i = 0; i < swap->count && !both; i++)
        both = swap->victims[i] == partner;
    return both && cost_model_frees_gpus(model, swap->view, victim);
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
        add_releases(model, swap->view, swap->plan, ahead, seats, count,
                     vacates_gpus(model, swap, swap->victims[i]), end_s);
        sum_s += weight_of(model, swap->view, swap->victims[i]) * end_s;
    }
    struct lookahead_job beneficiary;
    set_waiting_job(model, swap->view, swap->beneficiary, model->slower, &beneficiary);
    beneficiary.watched = true;
    lookahead_add_job(ahead, &beneficiary);
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
        bool vacates = vacates_gpus(model, swap, swap->victims[i]);
        for (uint32_t s = 0; s < count; s++) {
            uint32_t at = model->node_number[seats[s].node];
            if (at == 0)
                continue; /* not part of the simulation */
            const struct lookahead_node *node = &ahead->nodes[at - 1];
            uint32_t gpus = vacates ? seat_gpu_count(&seats[s]) : 0;
            uint32_t rest = gpus < node->free ? gpus : node->free;
            uint32_t cpus = least_of(seats[s].cpu_milli, node->cpu_milli);
            uint32_t mem = least_of(seats[s].mem_mib, node->mem_mib);
            if (!back)
                lookahead_free(ahead, at - 1, gpus, seats[s].cpu_milli,
                               seats[s].mem_mib);
            else
                lookahead_take(ahead, at - 1, rest, cpus, mem);
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
    struct lookahead_job beneficiary;
    set_waiting_job(model, swap->view, swap->beneficiary, model->slower, &beneficiary);
    beneficiary.run_s += swap->pause_s;
    move_victim_gpus(model, swap, ahead, false);
    double run_s = lookahead_start(ahead, &beneficiary);
    if (run_s < 0)
        lookahead_add_job(ahead, &beneficiary);
    double sum_s = beneficiary.weight * fmax(run_s, 0);
    move_victim_gpus(model, swap, ahead, true);
    for (uint32_t i = 0; i < swap->count; i++) {
        struct lookahead_job victim;
        set_waiting_job(model, swap->view, swap->victims[i], model->faster, &victim);
        victim.from_s = swap->pause_s;
        if (model->estimates)
            victim.run_s +=
                model->estimates->lost_s(model->self, swap->view, swap->victims[i]);
        lookahead_add_job(ahead, &victim);
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
    for (uint32_t gpus = 0; gpus < COST_MODEL_GANGS; gpus++)
        model->gangs[gpus] = pow(gpus, model->settings.gang);
    model->slower = exp(z * model->settings.spread);
    model->faster = exp(-z * model->settings.spread);
    model->running = lazy_trees_new(run, view->job_max, 1);
    model->waiting = lazy_trees_new(run, view->job_max, 1);
    if (model->estimates)
        model->slowness = arena_array(run, double, (size_t)view->job_max *TYPES_MAX);
    model->leaves = arena_array(run, bool, view->job_max);
    model->start_delay_s = arena_array(run, double, view->job_max);
    stop_costs_init(&model->stop_costs, run);
    model->base = arena_new(run, struct lookahead);
    model->ahead = arena_new(run, struct lookahead);
    model->node_number = arena_array(run, uint32_t, view->cluster->node_count);
}
