/* rates.h - how fast a job runs on each type, as members of an object. */
#pragma once

#include "model/state.h"

struct buf;

/* "kind" and "rates": of each type that the job may use, and what that rests on. */
void rates_write_job(struct buf *body, const struct state *state, job_id job);
