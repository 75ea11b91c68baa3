/*
 * sjf.c - shortest job first, without preemption.
 *
 *     key(j) = estimated run time of j on the fastest type it may use
 *
 * Best for mean completion time when preemptions are dear and estimates are good; a
 * long job can wait for ever while short ones keep arriving.  Jobs of unknown work come
 * last.
 *
 * Jobs of one size fit or do not fit alike, so each size has its own tree and a
 * decision tries the first of each only, however long the queue.
 */
#include "policy/policy.h"

#include "policy/shared/sizes.h"

struct sjf {
    struct sizes waiting; /* a tree by key for each distinct demand */
};

static int sjf_init(void *self, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err)
{
    struct sjf *sjf = self;
    sizes_init(&sjf->waiting, run, view->job_max);
    return 0;
}

static void sjf_observe(void *self, const struct view *view, const struct event *event)
{
    struct sjf *sjf = self;

    if (event_rates_waiting(event, view))
        sizes_remove(&sjf->waiting, view, event->job);
    if (event_makes_waiting(event, view) || event_rates_waiting(event, view))
        sizes_push(&sjf->waiting, view, event->job, view_remaining_ns(view, event->job),
                   0);
    else if (event_ends_waiting(event, view))
        sizes_remove(&sjf->waiting, view, event->job);
}

static int sjf_decide(void *self, const struct view *view, struct plan *plan,
                      struct arena *scratch, struct error *err)
{
    struct sjf *sjf = self;

    sizes_begin(&sjf->waiting, view);
    for (job_id job; (job = sizes_best(&sjf->waiting)) != JOB_NONE;) {
        if (plan_is_full(plan) && sjf->waiting.cpu_only_count == 0)
            break;
        if (plan_grant(plan, job, NULL))
            sizes_take(&sjf->waiting, view, job);
        else
            sizes_skip_larger(&sjf->waiting, view, job);
    }
    sizes_unskip(&sjf->waiting);
    return 0;
}

const struct policy policy_sjf = {
    .name = "sjf",
    .brief = "shortest job first, without preemption",
    .source = "folklore",
    .self_size = sizeof(struct sjf),
    .init = sjf_init,
    .observe = sjf_observe,
    .decide = sjf_decide,
    .explain = sizes_explain_left,
    .fini = sizes_release,
};
