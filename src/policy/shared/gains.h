/*
 * gains.h - GPUs to jobs by what they gain: SLAQ's allocation, and the fair one.
 *
 * What a job gains in the coming epoch T with a GPUs is
 *
 *     G(a) = scale * (f(k) - f(k + q(a)))       q(a) = T / (w/a + t0), at most what is left
 *
 * with f its fitted loss curve, k its steps so far, w/a + t0 the time of a step.  GPUs
 * go one by one to the job that gains most by one more, which is optimal where each
 * further GPU brings less than the one before.  Some curves start flat and fall later;
 * there a job is judged by the best average gain over its next 1, 2, 4, 8, … GPUs.
 *
 * A job can be judged by the seconds that GPUs save it instead.  A step takes w/a + t0 and
 * occupies w + a t0 GPU-seconds, so one more GPU saves w/a^2 seconds of a step and costs
 * t0 GPU-seconds.  With v the worth of a second of the job's time, GPUs are where they are
 * worth most if v (w/t0) / a^2 is the same for all jobs, each has sqrt(v w/t0) of them:
 *
 *     G(a) = v T (1 + h (1 - 1/a))              h = w/t0
 *
 * h is the number of GPUs on which half of a step's time is divided: its parallel
 * efficiency is there 1/2, and h / (h + a) on a GPUs.
 *
 * Nothing here allocates memory, and ties go to the job that is first in the array.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/curve_ahead.h"

struct gains_job {
    uint32_t least, most; /* GPUs it must and can have; least <= most */
    uint32_t gpus;        /* GPUs it gets */

    struct curve_ahead ahead; /* the rest of its curve; FAMILY_FLAT: gains nothing */
    double work_s, fixed_s;   /* of a step: divided by the GPUs, and constant */

    double resize_s;  /* that a change of its size costs it           */
    double second;    /* worth of a second saved; 0: judged by its curve */
    double half_gpus; /* if not: GPUs at a parallel efficiency of 1/2    */
};

/* An element of the heap; one per job is needed. */
struct gains_heap {
    double gain;
    uint32_t job;
    uint32_t step;
};

/* The gain in this many seconds. */
double gains_of(const struct gains_job *job, double gpus, double seconds);

/*
 * What the job gains in this many seconds by another size, if the change takes 'pause_s' of
 * them; negative: it loses.
 */
double gains_of_resize(const struct gains_job *job, double from, double to,
                       double seconds, double pause_s);

/* Nothing is known about what the job gains. */
static inline bool gains_are_unknown(const struct gains_job *job)
{
    return job->ahead.family == FAMILY_FLAT && job->second == 0;
}

/*
 * As even as possible: the smallest share is maximized, then the next (max-min fair).
 * Each job gets at least 'least' and at most 'most'; returns the GPUs left over.  Where
 * not every job can have 'least', the first ones get it and the others nothing.
 */
uint32_t gains_level(struct gains_job *jobs, uint32_t count, uint32_t gpus);

/*
 * By gain: 'least' for each job, as above, then one by one where they gain most.  GPUs
 * that bring no gain are divided evenly.  Returns the GPUs left over.
 */
uint32_t gains_share(struct gains_job *jobs, uint32_t count, uint32_t gpus,
                     double seconds, struct gains_heap *heap);
