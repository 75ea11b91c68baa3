/*
 * lrtp.c - trial jobs start at once, preempting jobs with the longest remaining time.
 *
 *     key(j) = time until j ends if it runs on
 *
 * Two queues (trial.h).  While a trial job does not fit, the running best-effort job
 * with the largest key is preempted, until some node can hold the trial job.  All jobs
 * picked are preempted, though only those on the node finally used were in the way;
 * 'spare' spares the others.
 *
 * The rule of Big-C (Chen, Rao, Zhou, ATC 2017), a baseline of Yabuuchi, Taniwaki,
 * Omura (OpML 2019).  A job with much left loses the smallest part of its work, but the
 * rule ignores where the job runs, how large it is and how long its checkpoint takes.
 * Needs estimates of run times: jobs of unknown work count as the longest of all.
 *
 * While a job runs, its expected end does not change, so jobs are ordered by that.
 */
#include "policy/policy.h"

#include "base/arena.h"
#include "base/tree.h"
#include "policy/shared/trial.h"

struct lrtp {
    struct trial_queues trial;
    struct tree_pool pool;
    struct tree
        running;  /* preemptible jobs, by expected end; the last is preempted first */
    bool *inside; /* by slot: is in the tree */
};

static void leave_running(struct lrtp *lrtp, job_id job)
{
    if (lrtp->inside[job])
        tree_remove(&lrtp->pool, &lrtp->running, job);
    lrtp->inside[job] = false;
}

static void enter_running(struct lrtp *lrtp, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    leave_running(lrtp, id);
    if (job->class != CLASS_BE || !job_is_preemptible(job) ||
        trial_is_safe(&lrtp->trial, job))
        return;
    int64_t left_ns = view_remaining_ns(view, id);
    int64_t finish_ns = left_ns == INT64_MAX ? left_ns : view->now_ns + left_ns;
    tree_insert(&lrtp->pool, &lrtp->running, id, finish_ns, ~job->id, 0);
    lrtp->inside[id] = true;
}

static void lrtp_observe(void *self, const struct view *view, const struct event *event)
{
    struct lrtp *lrtp = self;
    if (event_makes_running(event, view) || event_changes_running(event, view))
        enter_running(lrtp, view, event->job);
    else if (event_ends_running(event, view))
        leave_running(lrtp, event->job);
    trial_observe(self, view, event);
}

/* Of equals the one with the lowest id is last, because of '~'. */
static job_id longest_first(void *self, job_id last)
{
    struct lrtp *lrtp = self;
    return last == JOB_NONE ? tree_last(&lrtp->pool, &lrtp->running)
                            : tree_prev(&lrtp->pool, last);
}

static int lrtp_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct lrtp *lrtp = self;
    tree_pool_init(&lrtp->pool, run, view->job_max);
    tree_init(&lrtp->running);
    lrtp->inside = arena_array(run, bool, view->job_max);
    trial_init(&lrtp->trial, longest_first, trial_preempt_until_fits, run, view, seed);
    return 0;
}

const struct policy policy_lrtp = {
    .name = "lrtp",
    .brief = "trial jobs at once, preempting the longest remaining time",
    .source = "Chen, Rao, Zhou, ATC 2017, as a baseline in OpML 2019",
    .params = trial_params,
    .self_size = sizeof(struct lrtp),
    .init = lrtp_init,
    .observe = lrtp_observe,
    .decide = trial_decide,
    .explain = trial_explain,
    .fini = trial_fini,
};
