/* pairs.h - two jobs on the same GPUs, where both are served better together than in turn. */
#pragma once

#include <stdbool.h>

#include "model/plan.h"
#include "model/view.h"

struct berth_policy;

/* Start waiting jobs beside running ones, where that pays: after those that found GPUs. */
void pairs_start(struct berth_policy *berth, const struct view *view,
                 struct plan *plan);

/*
 * Part pairs that do harm.  Then move running jobs out of pairs into GPUs that became free; then those that
 * began to run, or whose rate changed, beside others or into their places, where that pays.
 */
void pairs_move(struct berth_policy *berth, const struct view *view, struct plan *plan,
                bool freed);

/* Count the jobs that may share: the others are for two and more of them. */
void pairs_observe(struct berth_policy *berth, const struct view *view, job_id job);
