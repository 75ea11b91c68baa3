/*
 * mean_rates.h - the mean speed of distributed jobs, without following their steps.
 *
 * A job that makes a step in t seconds sends volume / t bytes per second over each link
 * on average.  While it sends it finds what the average of the others leaves,
 *
 *     rate = max(free - others of its level, free / flows of its level)
 *     free = capacity - jobs of earlier levels
 *
 * and at least a fair share of it; the narrowest link decides.  When a job joins,
 * leaves or changes its level, it and the jobs that share a link with it are
 * recomputed, twice; the change does not propagate further.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/crossings.h"

struct topology;

struct mean_rates_job {
    uint32_t first, count; /* crossings */
    uint32_t level;
    uint32_t seen;
    uint32_t phase_count;
    double volume, step_s, overlap;
    double time_s; /* of a step; INFINITY: it stands still */
    bool there;
};

struct mean_rates {
    const struct topology *topology;
    struct crossings crossings;
    struct mean_rates_job *jobs; /* by the caller's number */
    uint32_t job_room;
    uint32_t round;
    uint32_t *changed; /* jobs with a new time */
    uint32_t changed_count, changed_room;
};

struct mean_rates_spec {
    const struct traffic *traffic;
    double step_s, overlap;
    uint32_t level;
};

void mean_rates_init(struct mean_rates *mean, const struct topology *topology);
void mean_rates_release(struct mean_rates *mean);

/* Each lists the jobs with a new time in 'changed', always including the job itself. */
void mean_rates_join(struct mean_rates *mean, uint32_t job,
                     const struct mean_rates_spec *spec);
void mean_rates_leave(struct mean_rates *mean, uint32_t job);
void mean_rates_set_level(struct mean_rates *mean, uint32_t job, uint32_t level);
void mean_rates_set_step(struct mean_rates *mean, uint32_t job, double step_s);
