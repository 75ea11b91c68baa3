/*
 * berth.c - one policy that answers five questions in one decision.
 *
 * Every change is judged in one currency, seconds of completion time.  A decision goes through
 * these layers; each stands in a file of its own, with its formula and its source:
 *
 *     value.c    what is a job's time worth: the order of all jobs        Gittins, SRPT
 *     price.c    what does stopping a job cost
 *     trials.c   trial jobs first, each where it costs least              FitGpp
 *     aged.c     jobs that have waited too long, oldest first
 *     (here)     all others in order: free room, else a swap that pays    Xion
 *     pairs.c    two jobs on the same GPUs, where they may share them     Gavel
 *     moves.c    moves to faster GPUs, and trades                         Gavel
 *     resizes.c  how many GPUs an elastic job gets                        SLAQ
 *
 * That is the objective 'completion'.  For others, Gavel's programmes say what shares of time jobs
 * are due, and one layer takes the place of 'aged', the order and 'moves':
 *
 *     objective.c  all others by shares of time                      Gavel
 *
 * No cycles.  A job preempts only jobs with larger keys.  The key of a running job falls as its
 * work is done, or rises each time a guess is exceeded, its model becomes good or its deadline
 * passes, which happens finitely often (value.c).  The key of a waiting job changes only with the
 * share of its user or group, by a tenth at least, and with its deadline, at most URGENT_MOST
 * times and back.  A share is a mean over a half-life of a day: it moves by a tenth only after
 * hours of use or when a user comes or goes.  So between two such changes a victim never
 * preempts its beneficiary, and their number is bounded by the time and the jobs submitted.
 * Trades raise a potential (moves.c), and moves into and out of pairs lower another that trades and
 * moves lower as well (pairs.c); a move ends on a type on which the job is faster by the
 * table, whatever it reports.  Sizes do not go round either (resizes.c).  Jobs that started
 * because they waited too long are preempted by trial jobs alone.  With another objective jobs
 * take turns (objective.c).
 */
#include "policy/policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/units.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/reasons.h"
#include "policy/berth/berth_internal.h"
#include "policy/berth/pairs.h"

#define SWAPS_MAX 16    /* preemptions tested in one decision             */
#define RETRY_PARTS 128 /* of a job's run time: after one a test is made again */
#define RETRY_LATEST 8  /* parts after which that is done at the latest */
#define RENEWED_MAX 32  /* waiting jobs whose keys are checked in a decision */

/* --- which job may be preempted for which ------------------------------------------- */

/* 'claim' is the waiting job's key; INT64_MIN: a trial; below 0: an aged job's submission. */
static bool may_preempt(const void *self, job_id id, int64_t claim)
{
    const struct berth_policy *berth = self;
    const struct job *job = &berth->view->jobs[id];
    if (!berth->jobs[id].runs || berth->jobs[id].trial || !job_is_preemptible(job))
        return false;
    if (claim == INT64_MIN)
        return true;
    if (berth->jobs[id].by_age)
        return false;
    if (claim < 0)
        return true;
    return value_exceeds(berth, berth->view, id, claim);
}

/* The next running job after 'last' in trees that are one per type, cheapest first. */
static job_id next_cheapest(const void *self, job_id last, int64_t claim)
{
    const struct berth_policy *berth = self;
    uint32_t type = last == JOB_NONE ? 0 : berth->jobs[last].seats_type;
    uint32_t id = last == JOB_NONE ? lazy_trees_first(berth->by_price, 0)
                                   : lazy_trees_next(berth->by_price, last);
    for (;;) {
        while (id == TREE_NONE && ++type <= TYPES_MAX)
            id = lazy_trees_first(berth->by_price, type);
        if (id == TREE_NONE || may_preempt(self, id, claim))
            return id == TREE_NONE ? JOB_NONE : id;
        id = lazy_trees_next(berth->by_price, id);
    }
}

/* The one with the latest expected end first. */
static job_id next_longest(const void *self, job_id last, int64_t claim)
{
    const struct berth_policy *berth = self;
    struct lazy_trees *running = berth->cost_test.model.running;
    job_id id =
        last == JOB_NONE ? lazy_trees_last(running, 0) : lazy_trees_prev(running, last);
    while (id != TREE_NONE && !may_preempt(self, id, claim))
        id = lazy_trees_prev(running, id);
    return id == TREE_NONE ? JOB_NONE : id;
}

static const struct preempt_rule for_trials = { RULE_TRIAL, next_cheapest,
                                                may_preempt };
static const struct preempt_rule by_order = { RULE_ORDER, next_longest, may_preempt };

static const char *const sharing_names[] = {
    [SHARING_NONE] = "false", [SHARING_ASKED] = "asked", [SHARING_ALL] = "true", NULL
};
static const char *const objective_names[] = { "completion", "makespan", "fairness",
                                               "cost", NULL };

/* --- events -------------------------------------------------------------------------- */

static int berth_init(void *self, const struct view *view, uint64_t seed,
                      struct arena *run, struct error *err)
{
    struct berth_policy *berth = self;
    struct cost_model *model = &berth->cost_test.model;
    uint32_t nodes = view->cluster->node_count;
    berth->cost_test.choice = COST_TEST_XION;
    model->settings = COST_MODEL_STANDARD;
    model->estimates = &value_estimates;
    model->self = berth;
    cost_model_init(model, view, run);
    sizes_init(&berth->waiting, run, view->job_max);
    sizes_init(&berth->trials, run, view->job_max);
    sizes_init(&berth->aged, run, view->job_max);
    preempt_init(&berth->preempt, run, view, &by_order, berth);
    berth->running = lazy_trees_new(run, view->job_max, TYPES_MAX + 1);
    berth->movers = lazy_trees_new(run, view->job_max, TYPES_MAX + 1);
    berth->by_price = lazy_trees_new(run, view->job_max, TYPES_MAX + 1);
    timer_heap_init(&berth->timers, run, view->job_max);
    berth->jobs = arena_array(run, struct berth_job, view->job_max);
    berth->examined = arena_array(run, uint32_t, nodes);
    double cpu_milli = 0;
    double mem_mib = 0;
    for (node_id node = 0; node < nodes; node++) {
        cpu_milli += view->cluster->nodes[node].cpu_milli;
        mem_mib += view->cluster->nodes[node].mem_mib;
    }
    if (cpu_milli > 0)
        berth->gpus_per_cpu_milli = view->cluster->gpu_count / cpu_milli;
    if (mem_mib > 0)
        berth->gpus_per_mib = view->cluster->gpu_count / mem_mib;
    bits_init(&berth->aside, run, nodes);
    bits_init(&berth->kept, run, nodes);
    bits_init(&berth->claimed, run, nodes);
    forecaster_init(&berth->forecaster, view->job_max, run);
    berth->queue = arena_array(run, job_id, view->job_max);
    fair_shares_init(&berth->shares, view, run);
    work_history_init(&berth->history, run);
    resizes_init(berth, view, run);
    return objective_start(berth, view, seed, run, err);
}

static void set_timer(struct berth_policy *berth, job_id id, int64_t at_ns)
{
    if (at_ns == INT64_MAX)
        timer_heap_remove(&berth->timers, id);
    else
        timer_heap_set(&berth->timers, id, at_ns);
}

static void leave_running(struct berth_policy *berth, job_id id)
{
    struct berth_job *mine = &berth->jobs[id];
    if (!mine->runs)
        return;
    lazy_trees_drop(berth->running, id);
    lazy_trees_drop(berth->movers, id);
    lazy_trees_drop(berth->by_price, id);
    mine->runs = false;
    timer_heap_remove(&berth->timers, id);
}

/* Put a running job into its trees, or where it belongs there now. */
static void order_running(struct berth_policy *berth, const struct view *view,
                          job_id id)
{
    const struct job *job = &view->jobs[id];
    uint32_t type = berth->jobs[id].seats_type;
    int64_t ends_ns = cost_model_end_ns(&berth->cost_test.model, id);
    double each =
        price_of_stopping(berth, view, id) / (job->gpus_now ? job->gpus_now : 1);
    lazy_trees_put(berth->running, type, id, ends_ns, job->id);
    lazy_trees_put(berth->by_price, type, id, (int64_t)(fmin(each, 1e9) * 1e6),
                   job->id);
    if (berth_runs_fastest(berth, view, id))
        lazy_trees_drop(berth->movers, id);
    else
        lazy_trees_put(berth->movers, type, id, ends_ns, job->id);
}

static void enter_running(struct berth_policy *berth, const struct view *view,
                          job_id id)
{
    struct berth_job *mine = &berth->jobs[id];
    const struct job *job = &view->jobs[id];
    if (!job_can_be_stopped(job)) {
        leave_running(berth, id);
        return;
    }
    if (mine->runs)
        preempt_touch(&berth->preempt, id); /* it may take longer than expected */
    mine->runs = true;
    mine->seats_type =
        job->type_now < view->cluster->type_count ? job->type_now : TYPES_MAX;
    order_running(berth, view, id);
    mine->moves_until_ns = 0;
    set_timer(berth, id, value_changes_ns(berth, view, id));
    if (job->state == JOB_RUNNING && berth->fresh_count < FRESH_MAX)
        berth->fresh[berth->fresh_count++] = id;
}

/* How long it may wait before it has waited too long. */
static int64_t patience_ns(const struct berth_policy *berth, const struct view *view,
                           job_id id)
{
    double own_s = PATIENCE * value_of(berth, view, id).left_s;
    return berth->age_ns + (int64_t)(own_s * 1e9);
}

static int64_t ages_ns(const struct berth_policy *berth, const struct view *view,
                       job_id id)
{
    const struct job *job = &view->jobs[id];
    return job->since_ns - job->waited_ns + patience_ns(berth, view, id);
}

static void join_queue(struct berth_policy *berth, job_id id)
{
    if (berth->jobs[id].queue_at)
        return;
    berth->queue[berth->queue_count++] = id;
    berth->jobs[id].queue_at = berth->queue_count;
}

static void quit_queue(struct berth_policy *berth, job_id id)
{
    uint32_t at = berth->jobs[id].queue_at;
    if (!at)
        return;
    job_id last = berth->queue[--berth->queue_count];
    berth->queue[at - 1] = last;
    berth->jobs[last].queue_at = at;
    berth->jobs[id].queue_at = 0;
}

/* Its objective's programme may have to give it a share of time (objective.c). */
static void list_apart(struct berth_policy *berth, job_id id)
{
    struct berth_job *mine = &berth->jobs[id];
    if (!mine->in_rounds && !mine->is_apart)
        berth->apart[berth->apart_count++] = id;
    mine->is_apart = mine->is_apart || !mine->in_rounds;
}

static void enter_waiting(struct berth_policy *berth, const struct view *view,
                          job_id id)
{
    const struct job *job = &view->jobs[id];
    struct berth_job *mine = &berth->jobs[id];
    if (!mine->inherited) {
        mine->trial = mine->by_age = mine->keeps = false;
        mine->retry_ns = 0;
    }
    join_queue(berth, id);
    if (berth->programme && job->class == CLASS_BE)
        return; /* its turn is the programme's to say */
    if (berth->programme)
        list_apart(berth, id);
    if (!mine->aged && job->class == CLASS_BE &&
        ages_ns(berth, view, id) <= view->now_ns)
        mine->aged = true;
    if (mine->aged)
        sizes_push(&berth->aged, view, id, job->submit_ns, 0);
    sizes_push(job->class == CLASS_TE ? &berth->trials : &berth->waiting, view, id,
               value_of(berth, view, id).key_ns, 0);
    int64_t changes_ns = value_changes_ns(berth, view, id);
    int64_t aged_ns =
        job->class == CLASS_BE && !mine->aged ? ages_ns(berth, view, id) : INT64_MAX;
    set_timer(berth, id, changes_ns < aged_ns ? changes_ns : aged_ns);
}

static void leave_waiting(struct berth_policy *berth, const struct view *view,
                          job_id id)
{
    sizes_remove(&berth->waiting, view, id);
    sizes_remove(&berth->trials, view, id);
    sizes_remove(&berth->aged, view, id);
    quit_queue(berth, id);
    timer_heap_remove(&berth->timers, id);
}

/* Of the GPUs it has, or will have when others have left them. */
static uint32_t type_of_seats(const struct view *view, const struct job *job)
{
    struct seat_row seats = job->next.count > 0 ? job->next : job->seats;
    return view->cluster->nodes[view->seats[seats.first].node].type;
}

/* GPUs that trial jobs hold or will have, and those that elastic jobs have beyond their size. */
static void count_gpus(struct berth_policy *berth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct berth_job *mine = &berth->jobs[id];
    bool has = job->state == JOB_PLACED || job_holds_seats(job);
    uint32_t gpus = mine->trial && has ? job->gpus_now : 0;
    uint32_t lent = has && !mine->trial && job->gpus_now > job->gpus
                        ? job->gpus_now - job->gpus
                        : 0;
    berth->trial_gpus += gpus - mine->trial_gpus;
    berth->withheld[mine->gpus_type] -= mine->trial_gpus;
    berth->lent[mine->gpus_type] -= mine->lent_gpus;
    mine->gpus_type = gpus + lent > 0 ? type_of_seats(view, job) : 0;
    mine->trial_gpus = gpus;
    mine->lent_gpus = lent;
    berth->withheld[mine->gpus_type] += gpus;
    berth->lent[mine->gpus_type] += lent;
}

static void note_freed_types(struct berth_policy *berth, const struct event *event)
{
    switch (event->kind) {
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
    case EVENT_LOST:
    case EVENT_CANCELLED:
    case EVENT_RESIZED:
    case EVENT_NODE_UP:
    case EVENT_FOREIGN:
    case EVENT_LOADED:
    case EVENT_ADOPTED:
    case EVENT_BOUNDARY:
        berth->freed_types = UINT32_MAX;
        break;
    default:
        break;
    }
}

static void berth_observe(void *self, const struct view *view,
                          const struct event *event)
{
    struct berth_policy *berth = self;
    job_id id = event->job;
    berth->view = view;
    berth->reported = berth->reported || event->kind == EVENT_PROGRESS;
    berth->stirred = berth->stirred || event->kind != EVENT_PROGRESS;
    note_freed_types(berth, event);
    if (event->kind == EVENT_RATED)
        berth->grown_types |= view->jobs[id].types; /* it may be faster elsewhere */
    if (id >= view->job_max || event->kind == EVENT_REJECTED) {
        preempt_observe(&berth->preempt, view, event);
        if (berth->programme)
            berth->programme->observe(berth->programme_self, view, event);
        return;
    }
    if (event->kind == EVENT_SUBMITTED)
        berth->jobs[id] = (struct berth_job){ .is_apart = berth->jobs[id].is_apart };
    bool adopted = event->kind == EVENT_ADOPTED && !berth->jobs[id].inherited;
    if (adopted && view->jobs[id].class == CLASS_TE)
        berth->jobs[id].trial = view->jobs[id].state != JOB_WAITING;
    value_observe(berth, view, event);
    if (adopted && view->jobs[id].class == CLASS_BE)
        berth->jobs[id].aged = berth->jobs[id].by_age =
            view->jobs[id].waited_ns >= patience_ns(berth, view, id);
    cost_model_observe(&berth->cost_test.model, view, event);
    elastic_observe(&berth->elastic, view, event);
    if (event_makes_running(event, view) || event_changes_running(event, view))
        enter_running(berth, view, id);
    else if (event_ends_running(event, view))
        leave_running(berth, id);
    preempt_observe(&berth->preempt, view, event);
    if (event_rates_waiting(event, view))
        leave_waiting(berth, view, id);
    if (event_makes_waiting(event, view) || event_rates_waiting(event, view))
        enter_waiting(berth, view, id);
    else if (event_ends_waiting(event, view))
        leave_waiting(berth, view, id);
    count_gpus(berth, view, id);
    pairs_observe(berth, view, id);
    aged_observe(berth, view, id);
    berth->jobs[id].inherited = false;
    if (berth->programme)
        berth->programme->observe(berth->programme_self, view, event);
}

/* --- the decision -------------------------------------------------------------------- */

/* A waiting job's key has changed. */
static void enter_again(struct berth_policy *berth, const struct view *view, job_id id)
{
    leave_waiting(berth, view, id);
    enter_waiting(berth, view, id);
    cost_model_renew(&berth->cost_test.model, view, id);
}

/* Guesses that are exceeded, deadlines that come near, and waits that have become too long. */
static void run_timers(struct berth_policy *berth, const struct view *view)
{
    while (timer_heap_next_ns(&berth->timers) <= view->now_ns) {
        job_id id = timer_heap_first(&berth->timers); /* it is given another time */
        berth->stirred = true;
        if (berth->jobs[id].runs) {
            berth->grown_types |=
                view->jobs[id].types; /* more is left than was known */
            berth->jobs[id].value_until = 0;
            cost_model_renew(&berth->cost_test.model, view, id);
            enter_running(berth, view, id);
        } else {
            value_renew(berth, view, id);
            enter_again(berth, view, id);
        }
    }
}

/* Keys follow what users and groups have had: of so many waiting jobs in each decision. */
static void renew_keys(struct berth_policy *berth, const struct view *view)
{
    uint32_t count =
        berth->queue_count < RENEWED_MAX ? berth->queue_count : RENEWED_MAX;
    for (uint32_t i = 0; i < count; i++) {
        job_id id = berth->queue[berth->queue_next % berth->queue_count];
        if (value_renew(berth, view, id))
            enter_again(berth, view, id); /* another job has its place now */
        else
            berth->queue_next++;
    }
}

/* --- the others -------------------------------------------------------------------------- */

/*
 * Preempt jobs with larger keys for this one, if that pays.  If it did not, the test is made
 * again when a small part of the job's run time has passed, with the next event.
 */
static bool swap_if_it_pays(struct berth_policy *berth, const struct view *view,
                            struct plan *plan, job_id id, int64_t key_ns)
{
    struct berth_job *mine = &berth->jobs[id];
    size_t mark = plan_mark(plan);
    if (view->now_ns < mine->retry_ns) {
        plan_wake(plan, mine->retry_ns + (RETRY_LATEST - 1) * mine->retry_each_ns);
        return false;
    }
    berth->preempt.rule = &by_order;
    if (!preempt_for(&berth->preempt, view, plan, id, key_ns))
        return false;
    if (cost_test_pass(&berth->cost_test, view, plan, mark, id))
        return true;
    double left_s = fmin(value_of(berth, view, id).left_s, 1e9);
    mine->retry_each_ns = (int64_t)(left_s * 1e9 / RETRY_PARTS);
    mine->retry_ns = view->now_ns + mine->retry_each_ns;
    return false;
}

/* The queue whose first job comes first: trial jobs are in it that are beyond their share. */
static struct sizes *first_queue(struct berth_policy *berth)
{
    job_id a = sizes_best(&berth->waiting);
    job_id b = sizes_best(&berth->trials);
    if (a == JOB_NONE || b == JOB_NONE)
        return b == JOB_NONE ? &berth->waiting : &berth->trials;
    return sizes_key(&berth->trials, b) < sizes_key(&berth->waiting, a)
               ? &berth->trials
               : &berth->waiting;
}

static void place_others(struct berth_policy *berth, const struct view *view,
                         struct plan *plan)
{
    uint32_t tries = SWAPS_MAX;
    bool over = berth->trial_gpus >= TRIAL_SHARE * view->cluster->gpu_count;
    for (;;) {
        struct sizes *queue = over ? first_queue(berth) : &berth->waiting;
        job_id id = sizes_best(queue);
        if (id == JOB_NONE)
            break;
        if (plan_holds(plan, id)) { /* it starts because it waited too long */
            sizes_take(queue, view, id);
            continue;
        }
        if (tries == 0 && plan_is_full(plan) && queue->cpu_only_count == 0)
            break;
        struct ask ask = ASK_DEFAULT;
        ask.avoid = aged_kept_from(berth, view, id);
        bool granted = plan_grant(plan, id, &ask);
        if (!granted && tries > 0) {
            granted = resizes_make_room(berth, view, plan, id) ||
                      swap_if_it_pays(berth, view, plan, id, sizes_key(queue, id));
            tries--;
        }
        if (granted)
            sizes_take(queue, view, id);
        else
            sizes_skip(queue, id);
    }
    sizes_unskip(&berth->waiting);
    sizes_unskip(&berth->trials);
}

static void berth_recall(void *self, const struct view *view, const struct job *job,
                         int64_t start_ns, int64_t end_ns)
{
    struct berth_policy *berth = self;
    fair_shares_recall(&berth->shares, view, job, start_ns, end_ns);
    if (job->steps > 0)
        work_history_count(&berth->history, job);
}

/* Each live job as it is known there, but in no order and counted nowhere yet. */
static void inherit_jobs(struct berth_policy *berth, const struct view *view,
                         const struct berth_policy *other)
{
    for (job_id id = 0; id < view->job_max; id++) {
        struct berth_job *mine = &berth->jobs[id];
        if (view->jobs[id].state == JOB_FREE)
            continue;
        *mine = other->jobs[id];
        mine->inherited = true;
        mine->runs = mine->shares = mine->is_apart = false;
        mine->aged_gpus = mine->trial_gpus = mine->lent_gpus = 0;
        mine->gpus_type = 0;
        mine->key_turn = 0;
    }
    for (uint32_t i = 0; i < other->queue_count; i++)
        berth->queue[i] = other->queue[i];
    berth->queue_count = other->queue_count;
    berth->queue_next = other->queue_next;
}

static void berth_inherit(void *self, const struct view *view, const void *from)
{
    struct berth_policy *berth = self;
    const struct berth_policy *other = from;
    stop_costs_inherit(&berth->cost_test.model.stop_costs,
                       &other->cost_test.model.stop_costs);
    work_history_inherit(&berth->history, &other->history);
    fair_shares_inherit(&berth->shares, view, &other->shares);
    inherit_jobs(berth, view, other);
    forecaster_inherit(&berth->forecaster, view, &other->forecaster);
    elastic_inherit(&berth->elastic, &other->elastic);
    berth->can_grow = other->can_grow;
    berth->decisions = other->decisions;
    berth->aged_debt_gpu_s = other->aged_debt_gpu_s;
    berth->aged_debt_ns = other->aged_debt_ns;
}

/* The layers that start jobs: most decisions on a cluster that is not full need none of them. */
static void place_waiting(struct berth_policy *berth, const struct view *view,
                          struct plan *plan, struct arena *scratch)
{
    berth->preempt.rule = &for_trials;
    trials_place(berth, view, plan);
    if (berth->programme)
        return;
    aged_place(berth, view, plan, scratch);
    place_others(berth, view, plan);
    if (berth->sharing_count >= 2)
        pairs_start(berth, view, plan);
}

static int berth_decide(void *self, const struct view *view, struct plan *plan,
                        struct arena *scratch, struct error *err)
{
    struct berth_policy *berth = self;
    berth->view = view;
    berth->turn++;
    run_timers(berth, view);
    bool reported = berth->reported && !berth->stirred;
    berth->reported = berth->stirred = false;
    if (reported && !berth->programme && !elastic_begins(&berth->elastic, view))
        return 0;
    sizes_begin(&berth->trials, view);
    sizes_begin(&berth->aged, view);
    sizes_begin(&berth->waiting, view);
    if (!berth->programme)
        renew_keys(berth, view);
    aged_begin(berth, view);
    uint32_t waiting = berth->queue_count;
    uint32_t gpus = view->cluster->gpu_count ? view->cluster->gpu_count : 1;
    berth->theta = 1 + THETA_SLOPE * waiting / gpus;
    berth->cost_test.model.settings.theta = 1 + SWAP_SLOPE * waiting / gpus;

    bool freed = berth->freed_types != 0;
    int r = 0;
    if (waiting > 0)
        place_waiting(berth, view, plan, scratch);
    if (berth->programme)
        r = objective_place(berth, view, plan, scratch, err);
    else
        moves_make(berth, view, plan);
    resizes_make(berth, view, plan, waiting > 0, freed);
    return r;
}

static int64_t berth_wake_ns(const void *self, const struct view *view)
{
    const struct berth_policy *berth = self;
    bool any = berth->waiting.job_count + berth->trials.job_count > 0 ||
               (view->cluster->type_count > 1 && view->free->gpu_count > 0);
    int64_t timer_ns = any ? timer_heap_next_ns(&berth->timers) : INT64_MAX;
    int64_t sizes_ns = elastic_wake_ns(&berth->elastic, view);
    int64_t aged_ns = aged_wake_ns(berth, view);
    timer_ns = aged_ns < timer_ns ? aged_ns : timer_ns;
    return timer_ns < sizes_ns ? timer_ns : sizes_ns;
}

/*
 * Which jobs of a queue are ahead of one that waits in another, but those that are ahead of it
 * there too.
 */
static uint32_t add_queue(const struct sizes *queue, const struct sizes *other,
                          const struct view *view, job_id id, struct reasons *reasons)
{
    uint32_t count = 0;
    if (queue->job_count == 0)
        return 0;
    for (job_id first = 0; first < view->job_max; first++)
        if (queue->size_of[first] &&
            !(other->size_of[first] &&
              sizes_key(other, first) < sizes_key(other, id))) {
            reasons_add_ahead(reasons, INT64_MIN, view->jobs[first].id);
            count++;
        }
    return count;
}

static void explain_value(const struct berth_policy *berth, const struct view *view,
                          job_id id, struct reasons *reasons)
{
    const struct job *job = &view->jobs[id];
    const struct berth_job *mine = &berth->jobs[id];
    char left[32];
    uint32_t count = 0;
    units_show_time(left, sizeof left, value_left_s(berth, view, id));
    const char *basis = work_history_basis(&berth->history, job, &count);
    if (job->steps_total > 0)
        reasons_add(reasons, "value", "it has about %s of work left", left);
    else
        reasons_add(
            reasons, "value",
            "its work is not declared; by %u finished jobs of %s it has about %s "
            "left",
            count, basis, left);
    if (mine->share > 1.05 || mine->share < 1 / 1.05)
        reasons_add(
            reasons, "share",
            "its value counts %.2g times: its user or group has had %s than its "
            "share lately",
            mine->share, mine->share > 1 ? "less" : "more");
    if (mine->urgency > 1)
        reasons_add(reasons, "deadline",
                    "its value counts %.2g times: its deadline is near", mine->urgency);
    else if (job->deadline_ns > 0)
        reasons_add(reasons, "deadline",
                    "its deadline is far, or cannot be kept any more: it counts for "
                    "nothing now");
}

/* How far ahead the first of the others is. */
static void explain_order(const struct berth_policy *berth, job_id id, uint32_t count,
                          struct reasons *reasons)
{
    uint32_t first = 0;
    while (first < reasons->ahead_count && reasons->ahead[first].key == INT64_MIN)
        first++;
    if (count == 0)
        return;
    if (first == reasons->ahead_count) {
        reasons_add(reasons, "order", "%u jobs that waited too long are ahead of it",
                    count);
        return;
    }
    reasons_add(reasons, "order",
                "%u jobs of higher value are ahead of it; the first, job %" PRIu64
                ", is worth %.3g times as much a second",
                count, reasons->ahead[first].id,
                (double)sizes_key(&berth->waiting, id) /
                    fmax((double)reasons->ahead[first].key, 1));
}

/* With another objective than completion. */
static void explain_turn(const struct berth_policy *berth, const struct view *view,
                         job_id id, struct reasons *reasons)
{
    bool takes_part = berth->host.takes_part(berth, id);
    reasons_add(reasons, "objective", "objective=%s: %s",
                objective_names[berth->objective],
                takes_part ? "its turn follows from shares of time"
                           : "trial jobs start where they cost least");
    if (takes_part)
        berth->programme->explain(berth->programme_self, view, id, reasons);
}

static void berth_explain(const void *self, const struct view *view, job_id id,
                          struct reasons *reasons)
{
    const struct berth_policy *berth = self;
    uint32_t trials =
        berth->trials.size_of[id]
            ? sizes_ahead(&berth->trials, view, id, reasons)
            : add_queue(&berth->trials, &berth->waiting, view, id, reasons);
    if (trials > 0)
        reasons_add(reasons, "order", "%u trial jobs are ahead of it", trials);
    bool over = berth->aged_debt_gpu_s > 0 ||
                berth->aged_gpus >= fmax(AGED_SHARE * view->cluster->gpu_count, 1);
    if (berth->aged.size_of[id] && over)
        reasons_add(reasons, "order",
                    "it has waited so long that only trial jobs and jobs that waited "
                    "longer will go first, once such jobs have not had more than %g %% "
                    "of the GPU time",
                    100 * AGED_SHARE);
    if (berth->aged.size_of[id] && !over) {
        sizes_ahead(&berth->aged, view, id, reasons);
        reasons_add(reasons, "order",
                    "it has waited so long that only trial jobs and jobs that waited "
                    "longer go first");
        return;
    }
    if (berth->programme) {
        explain_turn(berth, view, id, reasons);
        return;
    }
    explain_value(berth, view, id, reasons);
    if (berth->waiting.size_of[id]) {
        uint32_t aged =
            over ? 0 : add_queue(&berth->aged, &berth->waiting, view, id, reasons);
        uint32_t ahead = sizes_ahead(&berth->waiting, view, id, reasons);
        explain_order(berth, id, aged + ahead, reasons);
    }
    cost_test_explain(&berth->cost_test, view, id, reasons);
}

static void berth_fini(void *self)
{
    struct berth_policy *berth = self;
    if (berth->programme)
        berth->programme->fini(berth->programme_self);
    sizes_release(&berth->waiting);
    sizes_release(&berth->trials);
    sizes_release(&berth->aged);
    forecaster_release(&berth->forecaster);
    elastic_release(&berth->elastic);
}

#define AT(field) .offset = offsetof(struct berth_policy, field)

static const struct field berth_params[] = {
    { "objective", FIELD_CHOICE, AT(objective), "completion", NULL,
      "what is minimised; for all but completion, shares of time as Gavel's", 0, 0,
      objective_names },
    { "trial_weight", FIELD_NUMBER, AT(trial_weight), "30", NULL,
      "what a second of a trial job's waiting counts, in seconds of others", 0, 1e6 },
    { "age", FIELD_TIME, AT(age_ns), "2d", NULL,
      "a job that waits this long, and ten times its run time, goes before all but "
      "trials",
      1, 1e9 },
    { "floor", FIELD_NUMBER, AT(floor), "0.4", "share",
      "of an equal share that no elastic job falls below when sizes are set", 0, 1 },
    { "sharing", FIELD_CHOICE, AT(sharing), "asked", NULL,
      "which jobs may share GPUs: those submitted with --shared, all, or none", 0, 0,
      sharing_names },
    { 0 },
};

const struct policy policy_berth = {
    .name = "berth",
    .brief = "all five questions in one decision: trials, swaps, moves, sizes",
    .source = "Berth; after FitGpp, Xion, Gavel and SLAQ",
    .params = berth_params,
    .self_size = sizeof(struct berth_policy),
    .init = berth_init,
    .observe = berth_observe,
    .recall = berth_recall,
    .inherit = berth_inherit,
    .decide = berth_decide,
    .wake_ns = berth_wake_ns,
    .explain = berth_explain,
    .fini = berth_fini,
};
