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

static int rand_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    trial_init(self, trial_draw, trial_preempt_until_fits, run, view, seed);
    return 0;
}

const struct policy policy_rand = {
    .name = "rand",
    .brief = "trial jobs at once, preempting best-effort jobs at random",
    .source = "baseline in Yabuuchi, Taniwaki, Omura, OpML 2019",
    .params = trial_params,
    .self_size = sizeof(struct trial_queues),
    .init = rand_init,
    .observe = trial_observe,
    .decide = trial_decide,
    .explain = trial_explain,
    .fini = trial_fini,
};
