/* why_play.h - a change played through, before anybody is told that it helps.  For why.c. */
#pragma once

#include <stdbool.h>

#include "model/job.h"

struct why_scene;

/*
 * Whether a waiting job gets its seats at once if it were as 'as' says and 'gone' (or
 * JOB_NONE) were cancelled and had left.  Nothing of it happens; false as well if it cannot
 * be tried.
 */
bool play_starts(const struct why_scene *scene, job_id job, const struct job *as,
                 job_id gone);
