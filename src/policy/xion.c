/*
 * xion.c - shortest remaining time first, preempting only when it pays.
 *
 *     key(j) = (time that the rest of j's work takes + its time to resume) / GPUs ^ gang
 *
 * The smallest key goes first; jobs that do not fit are passed over.  A waiting job may
 * preempt running ones with larger keys, those with the longest time left first, if
 * cost_model.h finds that it pays: the completion times of the simulated jobs must add
 * up to less than without the preemption, by more than theta times the GPU time it
 * wastes.
 *
 * After Xion (Go et al., IEEE CLOUD 2023), of which the idea is published but not the
 * rule.  Ours departs from what one would guess in how it finds the waiting time that
 * is saved: by simulating the queue, since under backlog other jobs take first what
 * becomes free.
 *
 * With free preemption it is much like srtf, but omits preemptions that help no job.
 * Not for jobs of unknown work: they come last and preempt no job.
 */
#include "policy/policy.h"

#include <stddef.h>

#include "policy/shared/preempt.h"
#include "policy/shared/cost_test.h"
#include "policy/shared/sizes.h"

#define TRIES_MAX 16 /* preemptions tested in one decision */

struct xion_policy {
    struct sizes waiting;
    struct cost_test cost_test; /* always on */
    struct preempt preempt;
    const struct view *view; /* during a decision and its events */
    int64_t load_max_ns;     /* of all jobs so far */
};

static int64_t remaining_ns(const struct xion_policy *xion, job_id job)
{
    int64_t finish_ns = cost_model_end_ns(&xion->cost_test.model, job);
    return finish_ns == INT64_MAX ? finish_ns : finish_ns - xion->view->now_ns;
}

/* Candidates are jobs with a larger key than the waiting job's: 'claim'. */
static bool comes_later(const void *self, job_id job, int64_t claim_ns)
{
    const struct xion_policy *xion = self;
    return job_is_preemptible(&xion->view->jobs[job]) &&
           cost_model_key_ns(&xion->cost_test.model, xion->view, job) > claim_ns;
}

static job_id next_longest(const void *self, job_id last, int64_t claim_ns)
{
    const struct xion_policy *xion = self;
    struct lazy_trees *running = xion->cost_test.model.running;
    job_id job =
        last == JOB_NONE ? lazy_trees_last(running, 0) : lazy_trees_prev(running, last);
    while (job != TREE_NONE && !comes_later(self, job, claim_ns)) {
        if (remaining_ns(xion, job) < claim_ns - xion->load_max_ns)
            return JOB_NONE; /* and so have all that end earlier */
        job = lazy_trees_prev(running, job);
    }
    return job == TREE_NONE ? JOB_NONE : job;
}

static const struct preempt_rule longest_first = { RULE_ORDER, next_longest,
                                                   comes_later };

static int xion_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct xion_policy *xion = self;
    xion->cost_test.choice = COST_TEST_XION;
    cost_model_init(&xion->cost_test.model, view, run);
    sizes_init(&xion->waiting, run, view->job_max);
    preempt_init(&xion->preempt, run, view, &longest_first, xion);
    return 0;
}

static void xion_inherit(void *self, const struct view *view, const void *from)
{
    struct xion_policy *xion = self;
    const struct xion_policy *other = from;
    stop_costs_inherit(&xion->cost_test.model.stop_costs,
                       &other->cost_test.model.stop_costs);
    xion->load_max_ns = other->load_max_ns;
}

static void xion_observe(void *self, const struct view *view, const struct event *event)
{
    struct xion_policy *xion = self;
    xion->view = view;
    cost_model_observe(&xion->cost_test.model, view, event);
    preempt_observe(&xion->preempt, view, event);

    if (event->kind == EVENT_PROGRESS || event->kind == EVENT_LOADED ||
        event->kind == EVENT_RATED)
        preempt_touch(&xion->preempt,
                      event->job); /* it may take longer than expected before */
    if (event_rates_waiting(event, view))
        sizes_remove(&xion->waiting, view, event->job);
    if (event_makes_waiting(event, view) || event_rates_waiting(event, view)) {
        const struct job *job = &view->jobs[event->job];
        if (job->load_ns > xion->load_max_ns)
            xion->load_max_ns = job->load_ns;
        sizes_push(&xion->waiting, view, event->job,
                   cost_model_key_ns(&xion->cost_test.model, view, event->job), 0);
    } else if (event_ends_waiting(event, view)) {
        sizes_remove(&xion->waiting, view, event->job);
    }
}

/* Plan a preemption for the job; undo it unless it pays. */
static bool preempt_if_it_pays(struct xion_policy *xion, struct plan *plan, job_id job)
{
    size_t mark = plan_mark(plan);
    return preempt_for(&xion->preempt, xion->view, plan, job,
                       sizes_key(&xion->waiting, job)) &&
           cost_test_pass(&xion->cost_test, xion->view, plan, mark, job);
}

static int xion_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct xion_policy *xion = self;
    uint32_t tries = TRIES_MAX;
    xion->view = view;

    sizes_begin(&xion->waiting, view);
    for (job_id job; (job = sizes_best(&xion->waiting)) != JOB_NONE;) {
        bool may_swap = tries > 0 && sizes_key(&xion->waiting, job) < INT64_MAX;
        if (!may_swap && plan_is_full(plan) && xion->waiting.cpu_only_count == 0)
            break;
        bool granted = plan_grant(plan, job, NULL);
        if (!granted && may_swap) {
            granted = preempt_if_it_pays(xion, plan, job);
            tries--;
        }
        if (granted)
            sizes_take(&xion->waiting, view, job);
        else if (may_swap)
            sizes_skip(&xion->waiting, job);
        else
            sizes_skip_larger(&xion->waiting, view, job);
    }
    sizes_unskip(&xion->waiting);
    return 0;
}

static void xion_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct xion_policy *xion = self;
    sizes_explain_left(&xion->waiting, view, job, reasons);
    cost_test_explain(&xion->cost_test, view, job, reasons);
}

#define AT(field) .offset = offsetof(struct xion_policy, cost_test.model.settings.field)

static const struct field xion_params[] = {
    { "theta", FIELD_NUMBER, AT(theta), "1", NULL,
      "seconds of completion time a swap must spare per GPU-second it wastes", 0,
      1000 },
    { "hysteresis", FIELD_NUMBER, AT(hysteresis), "1", NULL,
      "factor on theta for a victim that has hardly begun", 0, 1000 },
    { "gang", FIELD_NUMBER, AT(gang), "0.1", NULL,
      "order by remaining time / GPUs ^ gang: above 0 gangs come earlier", 0, 1 },
    { "depth", FIELD_COUNT, AT(depth), "32", NULL, "ends of jobs to look ahead", 1,
      64 },
    { "stretch", FIELD_NUMBER, AT(stretch), "1", NULL,
      "share by which a newcomer left waiting waits longer than can be seen", 0, 100 },
    { "spread", FIELD_NUMBER, AT(spread), "0", NULL,
      "deviation (sigma, log-normal) of remaining times from their estimates", 0, 3 },
    { "quantile", FIELD_NUMBER, AT(quantile), "0.7", NULL,
      "of that, taken for a newcomer; one less this for a victim", 0.5, 0.99 },
    { 0 },
};

const struct policy policy_xion = {
    .name = "xion",
    .brief = "shortest remaining time first, preempting only when it pays",
    .source = "Go et al., IEEE CLOUD 2023",
    .params = xion_params,
    .self_size = sizeof(struct xion_policy),
    .init = xion_init,
    .observe = xion_observe,
    .inherit = xion_inherit,
    .decide = xion_decide,
    .explain = xion_explain,
    .fini = sizes_release,
};
