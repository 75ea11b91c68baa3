/*
 * rand.c - trial jobs start at once, preempting jobs at random.
 *
 * Two queues (trial.h).  While a trial job does not fit, a running best-effort job,
 * each with the same probability, is preempted, until some node can hold the trial job.
 * All jobs picked are preempted, though only those on the node finally used were in the
 * way; 'spare' spares the others.
 *
 * A baseline of Yabuuchi, Taniwaki, Omura (OpML 2019): it shows what choosing the
 * victim is worth.  Not for use.
 */
#include "policy/policy.h"

#include "policy/shared/trial.h"

struct rand {
    uint32_t preempt_max;
    bool spare;
    struct trial_queues trial;
    uint32_t cost_test; /* enum cost_test_choice */
};

static job_id next_drawn(void *self, job_id last)
{
    struct rand *rand = self;
    return trial_draw(&rand->trial, last);
}

static int rand_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct rand *rand = self;
    rand->trial = (struct trial_queues){ .self = rand,
                                         .order = next_drawn,
                                         .preempt_max = rand->preempt_max,
                                         .spare = rand->spare,
                                         .cost_test.choice = rand->cost_test };
    trial_init(&rand->trial, run, view, seed);
    return 0;
}

static void rand_observe(void *self, const struct view *view, const struct event *event)
{
    struct rand *rand = self;
    trial_observe(&rand->trial, view, event);
}

static bool make_room(void *self, const struct view *view, struct plan *plan,
                      job_id job)
{
    struct rand *rand = self;
    return trial_preempt_until_fits(&rand->trial, view, plan, job);
}

static int rand_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct rand *rand = self;
    trial_decide(&rand->trial, view, plan, make_room);
    return 0;
}

static void rand_fini(void *self)
{
    struct rand *rand = self;
    trial_release(&rand->trial);
}

static void rand_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct rand *rand = self;
    trial_explain(&rand->trial, view, job, reasons);
}

static const struct field rand_params[] = {
    { "max_preemptions", FIELD_COUNT, offsetof(struct rand, preempt_max), "0", NULL,
      "times a job may be preempted in its life; 0: no limit", 0, 0, NULL },
    { "spare", FIELD_FLAG, offsetof(struct rand, spare), "false", NULL,
      "let those stay who were picked in vain", 0, 0, NULL },
    COST_TEST_PARAM(struct rand, cost_test),
    { 0 },
};

const struct policy policy_rand = {
    .name = "rand",
    .brief = "trial jobs at once, preempting best-effort jobs at random",
    .source = "baseline in Yabuuchi, Taniwaki, Omura, OpML 2019",
    .params = rand_params,
    .self_size = sizeof(struct rand),
    .init = rand_init,
    .observe = rand_observe,
    .decide = rand_decide,
    .explain = rand_explain,
    .fini = rand_fini,
};
