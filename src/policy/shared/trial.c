/* trial.c - two queues, trial jobs before the others. */
#include "policy/shared/trial.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/param.h"
#include "model/event.h"
#include "model/node_set.h"
#include "model/reasons.h"

#define NONE UINT32_MAX
#define AT(field) .offset = offsetof(struct trial_queues, field)

const struct field trial_params[] = {
    { "max_preemptions", FIELD_COUNT, AT(preempt_max), "0", NULL,
      "times a job may be preempted in its life; 0: no limit" },
    { "spare", FIELD_FLAG, AT(spare), "false", NULL,
      "let those stay who were picked in vain" },
    COST_TEST_PARAM(struct trial_queues, cost_test.choice),
    { 0 },
};

/* --- running jobs ----------------------------------------------------------------- */

static void set_running_job(struct trial_queues *trial, uint32_t place, job_id job)
{
    trial->running[place] = job;
    trial->place[job] = place;
}

static void remove_running(struct trial_queues *trial, job_id job)
{
    uint32_t place = trial->place[job];
    if (place == NONE)
        return;
    set_running_job(trial, place, trial->running[--trial->running_count]);
    trial->place[job] = NONE;
}

static void add_running(struct trial_queues *trial, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->class == CLASS_BE && !trial_is_safe(trial, job) &&
        trial->place[id] == NONE)
        set_running_job(trial, trial->running_count++, id);
}

job_id trial_draw(void *self, job_id last)
{
    struct trial_queues *trial = self;
    if (last == JOB_NONE)
        trial->drawn_count = 0;
    if (trial->drawn_count >= trial->running_count)
        return JOB_NONE;
    uint32_t left = trial->running_count - trial->drawn_count;
    uint32_t place = trial->drawn_count + rng_below(&trial->rng, left);
    job_id drawn = trial->running[place];
    set_running_job(trial, place, trial->running[trial->drawn_count]);
    set_running_job(trial, trial->drawn_count++, drawn);
    return drawn;
}

static bool may_preempt(const void *self, job_id job, int64_t claim)
{
    return trial_may_preempt(self, job);
}

static job_id next_in_order(const void *self, job_id last, int64_t claim)
{
    struct trial_queues *trial = (struct trial_queues *)self;
    return trial->order(trial, last);
}

static const struct preempt_rule as_ordered = { RULE_TRIAL, next_in_order,
                                                may_preempt };

void trial_init(struct trial_queues *trial, trial_order *order,
                trial_make_room *make_room, struct arena *run, const struct view *view,
                uint64_t seed)
{
    trial->order = order;
    trial->make_room = make_room;
    sizes_init(&trial->trials, run, view->job_max);
    fifo_queue_init(&trial->others, run, view->job_max);
    trial->running = arena_array(run, job_id, view->job_max);
    trial->place = arena_array(run, uint32_t, view->job_max);
    rng_init(&trial->rng, seed, "victims");
    preempt_init(&trial->preempt, run, view, &as_ordered, trial);
    cost_test_init(&trial->cost_test, view, run);
}

void trial_fini(void *self)
{
    struct trial_queues *trial = self;
    sizes_release(&trial->trials);
}

/* --- waiting jobs ----------------------------------------------------------------- */

static void add_waiting(struct trial_queues *trial, const struct view *view, job_id job)
{
    if (view->jobs[job].class == CLASS_TE)
        sizes_push(&trial->trials, view, job, view->jobs[job].submit_ns, 0);
    else
        fifo_queue_add(&trial->others, view, job);
}

static void remove_waiting(struct trial_queues *trial, const struct view *view,
                           job_id job)
{
    if (view->jobs[job].class == CLASS_TE)
        sizes_remove(&trial->trials, view, job);
    else
        fifo_queue_remove(&trial->others, job);
}

void trial_observe(void *self, const struct view *view, const struct event *event)
{
    struct trial_queues *trial = self;
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        trial->place[event->job] = NONE;

    if (event_makes_running(event, view))
        add_running(trial, view, event->job);
    else if (event_ends_running(event, view))
        remove_running(trial, event->job);
    preempt_observe(&trial->preempt, view, event);
    cost_test_observe(&trial->cost_test, view, event);

    if (event_makes_waiting(event, view))
        add_waiting(trial, view, event->job);
    else if (event_ends_waiting(event, view))
        remove_waiting(trial, view, event->job);
}

/* --- the decision ----------------------------------------------------------------- */

/*
 * Exactly as published: a job revoked on the way stays revoked, whether that helped or
 * not.  Only jobs on nodes that the beneficiary may use are considered.
 */
static bool preempt_in_order(struct trial_queues *trial, const struct view *view,
                             struct plan *plan, job_id beneficiary)
{
    const struct node_set *set = view->jobs[beneficiary].set;
    size_t mark = plan_mark(plan);
    for (job_id victim = trial->order(trial, JOB_NONE); victim != JOB_NONE;
         victim = trial->order(trial, victim)) {
        if (plan_changes(plan, victim) ||
            !node_set_touches(set, view_seats(view, victim),
                              view->jobs[victim].seats.count))
            continue;
        plan_revoke(plan, victim, RULE_TRIAL, beneficiary);
        if (plan_grant(plan, beneficiary, NULL))
            return true;
    }
    plan_undo(plan, mark);
    return false;
}

bool trial_preempt_until_fits(void *self, const struct view *view, struct plan *plan,
                              job_id job)
{
    struct trial_queues *trial = self;
    if (trial->spare)
        return preempt_for(&trial->preempt, view, plan, job, 0);
    return preempt_in_order(trial, view, plan, job);
}

int trial_decide(void *self, const struct view *view, struct plan *plan,
                 struct arena *scratch, struct error *err)
{
    struct trial_queues *trial = self;
    struct sizes *trials = &trial->trials;
    bool looking = false;

    sizes_begin(trials, view);
    for (job_id job; (job = sizes_best(trials)) != JOB_NONE;) {
        size_t mark = plan_mark(plan);
        if (plan_grant(plan, job, NULL) ||
            (trial->running_count && trial->make_room(trial, view, plan, job) &&
             cost_test_pass(&trial->cost_test, view, plan, mark, job))) {
            sizes_take(trials, view, job);
        } else {
            sizes_skip(trials, job);
            looking = true;
        }
    }
    sizes_unskip(trials);
    if (looking)
        return 0; /* GPUs that become free are kept for the trial jobs */
    for (job_id job = trial->others.first; job != JOB_NONE;
         job = fifo_queue_next(&trial->others, job))
        if (!plan_grant_free(plan, job, NULL))
            break;
    return 0;
}

/* --- explanations ----------------------------------------------------------------- */

static void explain_trial(const struct trial_queues *trial, const struct view *view,
                          job_id job, struct reasons *reasons)
{
    uint32_t count = sizes_ahead(&trial->trials, view, job, reasons);
    if (count > 0)
        reasons_add(reasons, "order", "%u trial jobs came before it", count);
    if (trial->running_count == 0)
        reasons_add(reasons, "no_victim",
                    "no best-effort job runs that may be asked to yield");
    else
        reasons_add(
            reasons, "no_victim",
            "%u best-effort jobs run that may be asked to yield; that would not "
            "make room for it, or not pay",
            trial->running_count);
    cost_test_explain(&trial->cost_test, view, job, reasons);
}

static void add_all_trials_ahead(const struct trial_queues *trial,
                                 const struct view *view, struct reasons *reasons)
{
    for (job_id id = 0; id < view->job_max; id++)
        if (trial->trials
                .size_of[id]) /* before all best-effort jobs, whenever submitted */
            reasons_add_ahead(reasons, INT64_MIN, view->jobs[id].id);
}

void trial_explain(const void *self, const struct view *view, job_id job,
                   struct reasons *reasons)
{
    const struct trial_queues *trial = self;
    if (view->jobs[job].class == CLASS_TE) {
        explain_trial(trial, view, job, reasons);
        return;
    }
    if (trial->trials.job_count > 0)
        reasons_add(reasons, "order",
                    "trial jobs go first, and %u of them look for room",
                    trial->trials.job_count);
    add_all_trials_ahead(trial, view, reasons);
    job_id first = fifo_queue_ahead(&trial->others, view, job, reasons);
    if (first != JOB_NONE)
        reasons_add(reasons, "order",
                    "job %" PRIu64 " came before it and has not got room; best-effort "
                    "jobs start in order",
                    view->jobs[first].id);
}
