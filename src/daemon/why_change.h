/* why_change.h - what would start a job now, by trying.  For why.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/job.h"

struct reasons;
struct why_scene;

/*
 * Is there room for 'job' now, if it were as 'as' says and 'gone' (or JOB_NONE) had left?  The
 * policy is not asked.
 */
bool why_change_fits(const struct why_scene *scene, job_id job, const struct job *as,
                     job_id gone);

/*
 * The smallest change that would start a waiting job now, as a sentence; "" if none of those
 * that were tried does, or none before the time was up.  'reasons' lists the jobs ahead.
 */
void why_change_find(const struct why_scene *scene, job_id job,
                     const struct reasons *reasons, char *text, size_t size);
