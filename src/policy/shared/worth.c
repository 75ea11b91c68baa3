/* worth.c - is this swap worth its cost? */
#include "policy/shared/worth.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/free.h"
#include "model/node_set.h"

/* A checkpoint: weights and optimiser are about four times the gradients. */
#define CKPT_PER_GRADIENT 4.0
#define DISK_BYTES_PER_S 1e9
#define DRAIN_S 5.0     /* until a step is over and all have agreed to stop */
#define START_UP_S 20.0 /* container, framework, communicator               */

#define FREE_NODES_MAX 16 /* of those that are in sight only for their free room */

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

/* --- what swaps cost ---------------------------------------------------------------- */

static struct worth_measured *kind_of(const struct worth *worth, const struct job *job)
{
    return job->kind < WORTH_KINDS_MAX ? &worth->kinds[job->kind] : NULL;
}

static double learnt(double average, bool has, double sample)
{
    return has ? (average + sample) / 2 : sample;
}

static void learn_pause(struct worth_measured *measured, double pause_s)
{
    measured->pause_s = learnt(measured->pause_s, measured->has_pause, pause_s);
    measured->has_pause = true;
}

static void learn_load(struct worth_measured *measured, double load_s)
{
    measured->load_s = learnt(measured->load_s, measured->has_load, load_s);
    measured->has_load = true;
}

static void learn(struct worth *worth, const struct view *view,
                  const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    struct worth_measured *kind = kind_of(worth, job);
    if (event->kind == EVENT_STOPPED && event->clean) {
        double pause_s = seconds(view->now_ns - job->recalled_ns);
        learn_pause(&worth->anybody, pause_s);
        if (kind)
            learn_pause(kind, pause_s);
    } else if (event->kind == EVENT_LOADED) {
        double load_s = seconds(view->now_ns - job->since_ns);
        learn_load(&worth->anybody, load_s);
        if (kind)
            learn_load(kind, load_s);
    }
}

static double ckpt_s(const struct job *job)
{
    return CKPT_PER_GRADIENT * (double)job->bytes_per_step / DISK_BYTES_PER_S;
}

double worth_pause_s(const struct worth *worth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct worth_measured *kind = kind_of(worth, job);
    if (job->state == JOB_LOADING)
        return 0; /* nothing to save yet */
    if (job->pause_ns > 0)
        return seconds(job->pause_ns);
    if (kind && kind->has_pause)
        return kind->pause_s;
    return job->bytes_per_step ? DRAIN_S + ckpt_s(job) : worth->anybody.pause_s;
}

double worth_load_s(const struct worth *worth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct worth_measured *kind = kind_of(worth, job);
    if (job->load_ns > 0)
        return seconds(job->load_ns);
    if (kind && kind->has_load)
        return kind->load_s;
    return job->bytes_per_step ? START_UP_S + ckpt_s(job) : worth->anybody.load_s;
}

/* --- who runs, who waits ------------------------------------------------------------- */

int64_t worth_key_ns(const struct worth *worth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    int64_t left_ns = view_work_left_ns(view, id);
    if (left_ns == INT64_MAX)
        return left_ns;
    double key_ns = (double)left_ns + (double)job->load_ns;
    if (worth->settings.gang > 0 && job->gpus > 1)
        key_ns /= pow(job->gpus, worth->settings.gang);
    return (int64_t)key_ns;
}

static void leave_running(struct worth *worth, job_id job)
{
    if (worth->runs[job])
        tree_remove(&worth->run_pool, &worth->running, job);
    worth->runs[job] = false;
}

/* Time until it is done, the wait for its seats and its loading included. */
static int64_t end_ns(const struct worth *worth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    int64_t left_ns = view_remaining_ns(view, id);
    if (left_ns == INT64_MAX)
        return left_ns;
    if (job->state == JOB_PLACED)
        left_ns +=
            (int64_t)((worth->seats_due_s[id] + worth_load_s(worth, view, id)) * 1e9);
    return view->now_ns + left_ns;
}

static void enter_running(struct worth *worth, const struct view *view, job_id job)
{
    leave_running(worth, job);
    tree_insert(&worth->run_pool, &worth->running, job, end_ns(worth, view, job),
                view->jobs[job].id, 0);
    worth->runs[job] = true;
}

/* Those who leave for it are still saving their state: it starts after the last. */
static void note_promises(struct worth *worth, const struct view *view,
                          const struct event *event)
{
    double due_s = 0;
    for (uint32_t i = 0; i < event->promise_count; i++)
        due_s = fmax(due_s, worth_pause_s(worth, view, event->promises[i].victim));
    worth->seats_due_s[event->job] = due_s;
}

static void observe_running(struct worth *worth, const struct view *view,
                            const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    bool placed = event->kind == EVENT_PLACED && job->state == JOB_PLACED;
    bool adopted =
        event->kind == EVENT_ADOPTED && (job->state == JOB_PLACED || job_runs(job));
    if (placed)
        note_promises(worth, view, event);
    if (placed || adopted || event->kind == EVENT_STARTED ||
        event->kind == EVENT_LOADED || event->kind == EVENT_PROGRESS ||
        event->kind == EVENT_RESIZED)
        enter_running(worth, view, event->job);
    else if ((event_ends_running(event, view) && !job_runs(job)) ||
             event->kind == EVENT_CANCELLED)
        leave_running(worth, event->job);
}

static void leave_waiting(struct worth *worth, job_id job)
{
    if (worth->waits[job])
        tree_remove(&worth->wait_pool, &worth->waiting, job);
    worth->waits[job] = false;
}

void worth_observe(struct worth *worth, const struct view *view,
                   const struct event *event)
{
    if (event->job >= view->job_max || event->kind == EVENT_REJECTED)
        return;
    learn(worth, view, event);
    observe_running(worth, view, event);
    if (event_makes_waiting(event, view)) {
        leave_waiting(worth, event->job);
        tree_insert(&worth->wait_pool, &worth->waiting, event->job,
                    worth_key_ns(worth, view, event->job), view->jobs[event->job].id,
                    0);
        worth->waits[event->job] = true;
    } else if (event_ends_waiting(event, view)) {
        leave_waiting(worth, event->job);
    }
}

/* --- what is in sight ------------------------------------------------------------------ */

/* Its number in sight; UINT32_MAX if there are too many already. */
static uint32_t see_node(struct worth *worth, const struct view *view,
                         const struct plan *plan, node_id node)
{
    struct look *base = worth->base;
    if (worth->local[node])
        return worth->local[node] - 1;
    if (base->node_count == LOOK_NODES_MAX)
        return UINT32_MAX;
    struct room room;
    plan_room(plan, node, &room);
    worth->in_sight[base->node_count] = node;
    base->nodes[base->node_count] = (struct look_node){ view->cluster->nodes[node].type,
                                                        bits_count(room.gpus), node };
    worth->local[node] = ++base->node_count;
    return base->node_count - 1;
}

static void see_seats(struct worth *worth, const struct view *view,
                      const struct plan *plan, struct look *look,
                      const struct seat *seats, uint32_t count, double at_s)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = see_node(worth, view, plan, seats[i].node);
        uint32_t gpus = seat_gpu_count(&seats[i]);
        if (node != UINT32_MAX && gpus > 0)
            look_add_end(look, (struct look_end){ at_s, node, gpus });
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

/* How a gang may be cut: whole on one node, or over as few full ones as can be. */
static void cut(const struct view *view, const struct job *job, struct look_job *look)
{
    uint32_t node_max = 1;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            node_set_gpus_max(job->set, view->cluster, type) > node_max)
            node_max = node_set_gpus_max(job->set, view->cluster, type);
    uint32_t pieces = job->nodes ? job->nodes : (job->gpus + node_max - 1) / node_max;
    if (job->spread && job->gpus > pieces)
        pieces = job->gpus;
    if (pieces > LOOK_PIECES_MAX)
        pieces = LOOK_PIECES_MAX;
    look->pieces = pieces ? pieces : 1;
    look->each = (job->gpus + look->pieces - 1) / look->pieces;
    look->types = job->types;
    look->set = job->set;
}

/* As long as it has run: a fair guess where long jobs tend to be longer still. */
static double guess_s(const struct view *view, const struct job *job)
{
    double steps = job_steps(job, view->now_ns);
    return job->rate_best_per_s > 0 ? steps / job->rate_best_per_s : 0;
}

static struct look_job waiter(const struct worth *worth, const struct view *view,
                              job_id id, double factor)
{
    const struct job *job = &view->jobs[id];
    int64_t left_ns = view_work_left_ns(view, id);
    double left_s = left_ns == INT64_MAX ? guess_s(view, job) : seconds(left_ns);
    struct look_job look = { .key = (double)worth_key_ns(worth, view, id),
                             .run_s = worth_load_s(worth, view, id) + factor * left_s };
    cut(view, job, &look);
    return look;
}

static void see_running(struct worth *worth, const struct view *view,
                        const struct plan *plan)
{
    uint32_t seen = 0;
    for (job_id id = tree_first(&worth->run_pool, &worth->running);
         id != TREE_NONE && seen < worth->settings.depth;
         id = tree_next(&worth->run_pool, id)) {
        int64_t end = worth->run_pool.nodes[id].key;
        if (end == INT64_MAX)
            break; /* nobody knows when, from here on */
        if (worth->leaves[id] || plan_changes(plan, id))
            continue;
        uint32_t count;
        const struct seat *seats = seats_of(view, id, &count);
        double at_s = fmax(seconds(end - view->now_ns), 0);
        see_seats(worth, view, plan, worth->base, seats, count, at_s);
        seen++;
    }
}

/* What this plan has changed so far. */
static void see_plan(struct worth *worth, const struct view *view,
                     const struct plan *plan)
{
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        if (change->undone || view_work_left_ns(view, change->job) == INT64_MAX)
            continue;
        struct look_job job = waiter(worth, view, change->job, 1);
        const struct promise_part *promises = plan_promises(plan, change);
        double due_s = 0;
        for (uint32_t p = 0; p < change->promise_count; p++)
            due_s = fmax(due_s, worth_pause_s(worth, view, promises[p].victim));
        if (change->kind == CHANGE_GRANT)
            see_seats(worth, view, plan, worth->base, plan_seats(plan, change),
                      change->seat_count, due_s + job.run_s);
        else if (change->kind == CHANGE_REVOKE && !plan_holds(plan, change->job))
            look_add_job(worth->base, job);
    }
}

static void see_queue(struct worth *worth, const struct view *view,
                      const struct plan *plan, job_id but)
{
    uint32_t seen = 0;
    for (job_id id = tree_first(&worth->wait_pool, &worth->waiting);
         id != TREE_NONE && seen < 2 * worth->settings.depth;
         id = tree_next(&worth->wait_pool, id)) {
        if (worth->wait_pool.nodes[id].key == INT64_MAX)
            break;
        if (id == but || plan_changes(plan, id))
            continue;
        look_add_job(worth->base, waiter(worth, view, id, 1));
        seen++;
    }
}

/* Who has to leave may find room elsewhere. */
static void see_free_nodes(struct worth *worth, const struct view *view,
                           const struct plan *plan)
{
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        node_id node = NODE_NONE;
        for (uint32_t i = 0; i < FREE_NODES_MAX; i++) {
            node = free_most(view->free, type, node, NULL);
            if (node == NODE_NONE)
                break;
            see_node(worth, view, plan, node);
        }
    }
}

static void forget_nodes(struct worth *worth)
{
    for (uint32_t i = 0; i < worth->base->node_count; i++)
        worth->local[worth->in_sight[i]] = 0;
}

/* --- the two worlds ------------------------------------------------------------------- */

struct swap {
    const struct view *view;
    const struct plan *plan;
    job_id newcomer;
    const job_id *victims;
    uint32_t count;
    double pause_s; /* the longest */
};

/* A victim's end where it is. */
static double victim_end_s(const struct worth *worth, const struct swap *swap,
                           job_id id)
{
    int64_t left_ns = view_remaining_ns(swap->view, id);
    const struct job *job = &swap->view->jobs[id];
    return worth->faster *
           (left_ns == INT64_MAX ? guess_s(swap->view, job) : seconds(left_ns));
}

/* Where only some nodes will do, the first of them: it waits for these and no others. */
static void see_allowed(struct worth *worth, const struct swap *swap)
{
    const struct node_set *set = swap->view->jobs[swap->newcomer].set;
    if (!set)
        return;
    node_id node = bits_next(&set->allowed, 0);
    for (uint32_t i = 0; i < FREE_NODES_MAX && node != BITS_NONE; i++) {
        see_node(worth, swap->view, swap->plan, node);
        node = bits_next(&set->allowed, node + 1);
    }
}

/* Everything but the two parties. */
static void see_all(struct worth *worth, const struct swap *swap)
{
    look_clear(worth->base, swap->view->cluster->gpu_count);
    for (uint32_t i = 0; i < swap->count; i++) { /* first, for they must be in sight */
        uint32_t count;
        const struct seat *seats = seats_of(swap->view, swap->victims[i], &count);
        for (uint32_t s = 0; s < count; s++)
            see_node(worth, swap->view, swap->plan, seats[s].node);
        worth->leaves[swap->victims[i]] = true;
    }
    see_allowed(worth, swap);
    see_plan(worth, swap->view, swap->plan);
    see_running(worth, swap->view, swap->plan);
    see_queue(worth, swap->view, swap->plan, swap->newcomer);
    see_free_nodes(worth, swap->view, swap->plan);
    for (uint32_t i = 0; i < swap->count; i++)
        worth->leaves[swap->victims[i]] = false;
}

/* Sum of completion times with everybody left in place. */
static double keep_s(struct worth *worth, const struct swap *swap, double *ret_start_s)
{
    struct look *look = worth->look;
    double sum_s = 0;
    look_copy(look, worth->base);
    for (uint32_t i = 0; i < swap->count; i++) {
        uint32_t count;
        const struct seat *seats = seats_of(swap->view, swap->victims[i], &count);
        double end_s = victim_end_s(worth, swap, swap->victims[i]);
        see_seats(worth, swap->view, swap->plan, look, seats, count, end_s);
        sum_s += end_s;
    }
    struct look_job newcomer = waiter(worth, swap->view, swap->newcomer, worth->slower);
    newcomer.watched = true;
    look_add_job(look, newcomer);
    sum_s += look_play(look, worth->settings.depth);
    *ret_start_s = look->watched_s;
    return sum_s;
}

/* Add up, or take back until all have left, what the victims hold. */
static void vacate(struct worth *worth, const struct swap *swap, struct look *look,
                   bool back)
{
    for (uint32_t i = 0; i < swap->count; i++) {
        uint32_t count;
        const struct seat *seats = seats_of(swap->view, swap->victims[i], &count);
        for (uint32_t s = 0; s < count; s++) {
            uint32_t at = worth->local[seats[s].node];
            if (at == 0)
                continue; /* out of sight */
            struct look_node *node = &look->nodes[at - 1];
            uint32_t gpus = seat_gpu_count(&seats[s]);
            uint32_t rest = gpus < node->free ? gpus : node->free;
            node->free += back ? -rest : gpus;
            if (back && rest > 0)
                look_add_end(look, (struct look_end){ swap->pause_s, at - 1, rest });
        }
    }
}

/*
 * The same with the swap made: the newcomer has its seats, but waits until all have
 * left; so does everybody else for what it leaves over.
 */
static double swap_s(struct worth *worth, const struct swap *swap)
{
    struct look *look = worth->look;
    look_copy(look, worth->base);
    struct look_job newcomer = waiter(worth, swap->view, swap->newcomer, worth->slower);
    newcomer.run_s += swap->pause_s;
    vacate(worth, swap, look, false);
    double sum_s = 0;
    if (look_seat(look, &newcomer))
        sum_s = newcomer.run_s;
    else
        look_add_job(look, newcomer);
    vacate(worth, swap, look, true);
    for (uint32_t i = 0; i < swap->count; i++) {
        struct look_job victim =
            waiter(worth, swap->view, swap->victims[i], worth->faster);
        victim.from_s = swap->pause_s;
        look_add_job(look, victim);
    }
    look_add_end(look, (struct look_end){ .at_s = swap->pause_s }); /* a look round */
    return sum_s + look_play(look, worth->settings.depth);
}

/* --- the question --------------------------------------------------------------------- */

/* It has been in its seats for less time than it takes to get there and back. */
static bool is_fresh(const struct worth *worth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    double swap_s = fmax(worth_pause_s(worth, view, id), worth_load_s(worth, view, id));
    return seconds(view->now_ns - job->since_ns) < swap_s;
}

static double cost_of(const struct worth *worth, const struct swap *swap)
{
    double cost_gpu_s = 0;
    for (uint32_t i = 0; i < swap->count; i++) {
        const struct job *victim = &swap->view->jobs[swap->victims[i]];
        double load_s = worth_load_s(worth, swap->view, swap->victims[i]);
        cost_gpu_s += victim->gpus_now * (swap->pause_s + load_s);
    }
    return cost_gpu_s;
}

bool worth_swap(struct worth *worth, const struct view *view, const struct plan *plan,
                job_id newcomer, const job_id *victims, uint32_t count,
                struct worth_price *ret_price)
{
    struct swap swap = { view, plan, newcomer, victims, count, 0 };
    double theta = worth->settings.theta;
    bool fresh = false;
    *ret_price = (struct worth_price){ 0 };
    if (view_work_left_ns(view, newcomer) == INT64_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        swap.pause_s = fmax(swap.pause_s, worth_pause_s(worth, view, victims[i]));
        fresh = fresh || is_fresh(worth, view, victims[i]);
    }
    if (fresh)
        theta *= worth->settings.hysteresis;

    double start_s;
    see_all(worth, &swap);
    double keep = keep_s(worth, &swap, &start_s);
    double swapped = swap_s(worth, &swap);
    forget_nodes(worth);
    double wait_saved_s = start_s - swap.pause_s;
    double yet_to_come_s = worth->settings.stretch * fmax(wait_saved_s, 0);
    *ret_price = (struct worth_price){ .gain_s = keep - swapped + yet_to_come_s,
                                       .cost_gpu_s = cost_of(worth, &swap),
                                       .wait_saved_s = wait_saved_s };
    return ret_price->gain_s > theta * ret_price->cost_gpu_s;
}

/* --- beginning ------------------------------------------------------------------------ */

/* The normal variate below which a share of q lies, by halving. */
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

void worth_init(struct worth *worth, const struct view *view, struct arena *run)
{
    double z = normal_quantile(worth->settings.quantile);
    worth->slower = exp(z * worth->settings.spread);
    worth->faster = exp(-z * worth->settings.spread);
    tree_pool_init(&worth->run_pool, run, view->job_max);
    tree_pool_init(&worth->wait_pool, run, view->job_max);
    tree_init(&worth->running);
    tree_init(&worth->waiting);
    worth->runs = arena_array(run, bool, view->job_max);
    worth->waits = arena_array(run, bool, view->job_max);
    worth->leaves = arena_array(run, bool, view->job_max);
    worth->seats_due_s = arena_array(run, double, view->job_max);
    worth->kinds = arena_array(run, struct worth_measured, WORTH_KINDS_MAX);
    worth->base = arena_new(run, struct look);
    worth->look = arena_new(run, struct look);
    worth->local = arena_array(run, uint32_t, view->cluster->node_count);
    worth->in_sight = arena_array(run, node_id, LOOK_NODES_MAX);
}
