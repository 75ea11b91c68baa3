/*
 * fair.c - equal shares: all jobs have equally many GPUs.
 *
 *     gpus(j) = max-min fair between gpus_min and gpus_max
 *
 * The smallest share is maximized, then the next: a job that can use no more leaves the
 * rest to others.  Sizes are set once an epoch, when jobs have arrived or ended.
 * Nothing need be known about a job, and nothing that is known is used.
 *
 * It is what SLAQ is measured against (Zhang et al., SoCC 2017), and a good choice by
 * itself where gangs are elastic.  Gangs of a fixed size are served in order of
 * submission.
 */
#include "policy/policy.h"

#include "model/cluster.h"
#include "model/event.h"
#include "policy/shared/elastic.h"

struct fair {
    struct elastic elastic;
};

static int fair_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct fair *fair = self;
    elastic_init(&fair->elastic, view, run);
    return 0;
}

static void fair_observe(void *self, const struct view *view, const struct event *event)
{
    struct fair *fair = self;
    bool changed = fair->elastic.changed;
    elastic_observe(&fair->elastic, view, event);
    if (event->kind == EVENT_PROGRESS)
        fair->elastic.changed = changed; /* progress makes no difference */
}

static int fair_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct fair *fair = self;
    struct elastic *elastic = &fair->elastic;
    if (elastic_begins(elastic, view)) {
        elastic_start(elastic, view);
        elastic_gather(elastic, view, TYPE_NONE);
        gains_level(elastic->shares, elastic->count, elastic->gpus);
        elastic_apply(elastic, view, plan);
    }
    elastic_between(elastic, view, plan);
    return 0;
}

static int64_t fair_wake_ns(const void *self, const struct view *view)
{
    const struct fair *fair = self;
    return elastic_wake_ns(&fair->elastic, view);
}

static void fair_fini(void *self)
{
    struct fair *fair = self;
    elastic_release(&fair->elastic);
}

static void fair_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct fair *fair = self;
    elastic_explain(&fair->elastic, view, job, reasons);
}

static const struct field fair_params[] = {
    ELASTIC_PARAMS(struct fair, elastic),
    { NULL },
};

const struct policy policy_fair = {
    .name = "fair",
    .brief = "equal shares: elastic jobs have as many GPUs as can be equal",
    .source = "max-min fairness; the baseline of SLAQ",
    .params = fair_params,
    .self_size = sizeof(struct fair),
    .init = fair_init,
    .observe = fair_observe,
    .decide = fair_decide,
    .wake_ns = fair_wake_ns,
    .explain = fair_explain,
    .fini = fair_fini,
};
