/*
 * why_sharing.h - why a waiting job that may share its GPUs does not.
 *
 * Of all running jobs of its size on its types the one that is nearest to sharing with it is named,
 * with what stands between them.
 */
#pragma once

#include "model/job.h"

struct engine;
struct reasons;

/* Nothing is said of a job that did not ask for it. */
void why_sharing_explain(struct reasons *reasons, const struct engine *engine,
                         job_id job);
