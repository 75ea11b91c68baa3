/*
 * gains.h - units to jobs by what they gain: SLAQ's allocation, and the fair one.
 *
 * What a job gains in the coming epoch T with a units is
 *
 *     G(a) = scale * (f(k) - f(k + q(a)))       q(a) = T / (w/a + t0), at most what is left
 *
 * with f its fitted loss curve, k its steps so far, w/a + t0 the time of a step.  Units go
 * one by one to the job that gains most by one more.  Where each further unit brings
 * less than the one before, that is the best there is.  Some curves start flat and fall
 * later; there a job is judged by the best average over its next 1, 2, 4, 8, … units.
 *
 * Nothing here allocates, and ties go to the job that stands first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/learning.h"
#include "predict/family.h"

struct gains_job {
    uint32_t least, most; /* units it must and can have; least <= most */
    uint32_t units;       /* what it gets                              */

    /* its curve from here on; FAMILY_FLAT: gains nothing */
    enum family family;
    double height;          /* exp: of the loss above its limit now             */
    double rate;            /* exp: -ln(mu) per step                            */
    double a, b, c;         /* inv: 1/(a q^2 + b q + c), q steps from now       */
    double scale;           /* 1 over all it has to learn                       */
    double left;            /* steps to its end; INFINITY: not known            */
    double work_s, fixed_s; /* of a step: divided by units, and not    */
};

/*
 * Its curve as it was declared, from step 'at' on, to its end after so many steps
 * (INFINITY: none), which is all it has to learn.
 */
void gains_declared(struct gains_job *job, const struct learning *curve, double at,
                    double end);

/* Room for the heap of so many jobs. */
struct gains_heap {
    double gain;
    uint32_t job;
    uint32_t step;
};

/* What it gains in so many seconds. */
double gains_of(const struct gains_job *job, double units, double seconds);

/*
 * As even as can be: the smallest share is as large as can be, then the next.  Everybody
 * gets 'least', nobody more than 'most'; returns what is left over.  Where not all can
 * have 'least', those who stand first have it and the others nothing.
 */
uint32_t gains_level(struct gains_job *jobs, uint32_t count, uint32_t units);

/*
 * By what they gain: 'least' for everybody, as above, then where it brings most.  What
 * brings nobody anything is shared evenly.  Returns what is left over.
 */
uint32_t gains_share(struct gains_job *jobs, uint32_t count, uint32_t units,
                     double seconds, struct gains_heap *heap);
