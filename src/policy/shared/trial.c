/* trial.c - two queues, trial jobs before the others. */
#include "policy/shared/trial.h"

#include <inttypes.h>

#include "base/arena.h"
#include "model/event.h"
#include "model/node_set.h"
#include "model/reasons.h"

#define NONE UINT32_MAX

/* --- who runs -------------------------------------------------------------------------- */

static void put(struct trial *trial, uint32_t place, job_id job)
{
    trial->running[place] = job;
    trial->place[job] = place;
}

static void leave_running(struct trial *trial, job_id job)
{
    uint32_t place = trial->place[job];
    if (place == NONE)
        return;
    put(trial, place, trial->running[--trial->running_count]);
    trial->place[job] = NONE;
}

static void enter_running(struct trial *trial, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->class == CLASS_BE && !trial_is_safe(trial, job) &&
        trial->place[id] == NONE)
        put(trial, trial->running_count++, id);
}

job_id trial_draw(struct trial *trial, job_id last)
{
    if (last == JOB_NONE)
        trial->drawn_count = 0;
    if (trial->drawn_count >= trial->running_count)
        return JOB_NONE;
    uint32_t left = trial->running_count - trial->drawn_count;
    uint32_t place = trial->drawn_count + rng_below(&trial->rng, left);
    job_id drawn = trial->running[place];
    put(trial, place, trial->running[trial->drawn_count]);
    put(trial, trial->drawn_count++, drawn);
    return drawn;
}

static bool yields(const void *self, job_id job, int64_t claim)
{
    return trial_yields(self, job);
}

static job_id next_in_order(const void *self, job_id last, int64_t claim)
{
    const struct trial *trial = self;
    return trial->order(trial->self, last);
}

static const struct evict_rule as_ordered = { RULE_TRIAL, next_in_order, yields };

void trial_init(struct trial *trial, struct arena *run, const struct view *view,
                uint64_t seed)
{
    sizes_init(&trial->trials, run, view->job_max);
    queue_init(&trial->others, run, view->job_max);
    trial->running = arena_array(run, job_id, view->job_max);
    trial->place = arena_array(run, uint32_t, view->job_max);
    rng_init(&trial->rng, seed, "victims");
    evict_init(&trial->evict, run, view, &as_ordered, trial);
    gate_init(&trial->gate, view, run);
}

void trial_release(struct trial *trial)
{
    sizes_release(&trial->trials);
}

/* --- who waits -------------------------------------------------------------------------- */

static void enter_waiting(struct trial *trial, const struct view *view, job_id job)
{
    if (view->jobs[job].class == CLASS_TE)
        sizes_push(&trial->trials, view, job, view->jobs[job].submit_ns, 0);
    else
        queue_add(&trial->others, view, job);
}

static void leave_waiting(struct trial *trial, const struct view *view, job_id job)
{
    if (view->jobs[job].class == CLASS_TE)
        sizes_remove(&trial->trials, view, job);
    else
        queue_remove(&trial->others, job);
}

void trial_observe(struct trial *trial, const struct view *view,
                   const struct event *event)
{
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        trial->place[event->job] = NONE;

    if (event_makes_running(event, view))
        enter_running(trial, view, event->job);
    else if (event_ends_running(event, view))
        leave_running(trial, event->job);
    evict_observe(&trial->evict, view, event);
    gate_observe(&trial->gate, view, event);

    if (event_makes_waiting(event, view))
        enter_waiting(trial, view, event->job);
    else if (event_ends_waiting(event, view))
        leave_waiting(trial, view, event->job);
}

/* --- deciding -------------------------------------------------------------------------- */

/*
 * To the letter: whoever was asked to leave leaves, whether it helped or not; but nobody is
 * asked who is on no node that the newcomer may use.
 */
static bool clear_all(struct trial *trial, const struct view *view, struct plan *plan,
                      job_id newcomer)
{
    const struct node_set *set = view->jobs[newcomer].set;
    size_t mark = plan_mark(plan);
    for (job_id victim = trial->order(trial->self, JOB_NONE); victim != JOB_NONE;
         victim = trial->order(trial->self, victim)) {
        if (plan_changes(plan, victim) ||
            !node_set_touches(set, view_seats(view, victim),
                              view->jobs[victim].seats.count))
            continue;
        plan_revoke(plan, victim, RULE_TRIAL, newcomer);
        if (plan_grant(plan, newcomer, NULL))
            return true;
    }
    plan_undo(plan, mark);
    return false;
}

bool trial_clear(struct trial *trial, const struct view *view, struct plan *plan,
                 job_id job)
{
    if (trial->spare)
        return evict_for(&trial->evict, view, plan, job, 0);
    return clear_all(trial, view, plan, job);
}

/* A start now; a promise of room that somebody is leaving will not do. */
static bool start_now(struct plan *plan, job_id job)
{
    size_t mark = plan_mark(plan);
    if (!plan_grant(plan, job, NULL))
        return false;
    size_t count = plan_change_count(plan);
    if (count == 0 || plan_change(plan, count - 1)->promise_count == 0)
        return true;
    plan_undo(plan, mark);
    return false;
}

void trial_decide(struct trial *trial, const struct view *view, struct plan *plan,
                  trial_make_room *make_room)
{
    struct sizes *trials = &trial->trials;
    bool looking = false;

    sizes_begin(trials, view);
    for (job_id job; (job = sizes_best(trials)) != JOB_NONE;) {
        size_t mark = plan_mark(plan);
        if (plan_grant(plan, job, NULL) ||
            (trial->running_count && make_room(trial->self, view, plan, job) &&
             gate_pass(&trial->gate, view, plan, mark, job))) {
            sizes_take(trials, view, job);
        } else {
            sizes_skip(trials, job);
            looking = true;
        }
    }
    sizes_unskip(trials);
    if (looking)
        return; /* what becomes free is theirs */
    for (job_id job = trial->others.first; job != JOB_NONE;
         job = queue_next(&trial->others, job))
        if (!start_now(plan, job))
            break;
}

/* --- why -------------------------------------------------------------------------------- */

static void explain_trial(const struct trial *trial, const struct view *view,
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
    gate_explain(&trial->gate, view, job, reasons);
}

static void all_trials_are_ahead(const struct trial *trial, const struct view *view,
                                 struct reasons *reasons)
{
    for (job_id id = 0; id < view->job_max; id++)
        if (trial->trials.size_of[id]) /* whatever their time: before all others */
            reasons_add_ahead(reasons, INT64_MIN, view->jobs[id].id);
}

void trial_explain(const struct trial *trial, const struct view *view, job_id job,
                   struct reasons *reasons)
{
    if (view->jobs[job].class == CLASS_TE) {
        explain_trial(trial, view, job, reasons);
        return;
    }
    if (trial->trials.job_count > 0)
        reasons_add(reasons, "order",
                    "trial jobs go first, and %u of them look for room",
                    trial->trials.job_count);
    all_trials_are_ahead(trial, view, reasons);
    job_id first = queue_ahead(&trial->others, view, job, reasons);
    if (first != JOB_NONE)
        reasons_add(reasons, "order",
                    "job %" PRIu64 " came before it and has not got room; best-effort "
                    "jobs start in order",
                    view->jobs[first].id);
}
