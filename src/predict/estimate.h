/*
 * estimate.h - how an unknown job would run beside others, from a few trials.
 *
 * Some kinds of jobs were measured with each other; they are the references.  The part
 * of its speed that each keeps beside each other one, on each type of accelerator, is a
 * matrix:
 *
 *                 v100, beside A   v100, beside B   k80, beside A  ...
 *     A               0.60             0.85             0.50
 *     B               0.70             0.90             0.55
 *     new             0.65               ?                ?
 *
 * A new job is tried beside some references on some types: those cells of its row are
 * known.  The others follow from the matrix, which is close to one of low rank: rows
 * and columns get ten factors each, with products that are the cells, and the new row's
 * ten are those that fit its known cells (ridge regression).  The reference that is
 * most similar to the completed row, by the angle between them, then stands for the
 * job.  What is measured later, when jobs do share, replaces what was estimated.
 *
 * This is the estimator of Gavel (OSDI '20, section 3.3).  Differences: the columns'
 * factors are found once, from the references, so a new row costs one small equation; a
 * job without measurements counts as the reference that shares worst, not as any; and
 * one that did not fit beside a reference does not fit beside those that fit beside as
 * few others or fewer.  Parts are of gangs of one, as nothing else was measured.
 *
 * All memory is in the arena given at the start; nothing is allocated later.  Equal
 * calls give equal answers.
 */
#pragma once

#include <stdint.h>

#include "model/job.h"

struct arena;
struct throughput;

#define ESTIMATE_REFERENCES_MAX 64
#define ESTIMATE_RANK 10
#define ESTIMATE_RIDGE 0.01

struct estimate {
    uint32_t reference_count;
    uint32_t type_count;
    uint32_t column_count;    /* types times references                            */
    uint32_t *kinds;          /* [reference] row of the throughput table           */
    double *kept;             /* [reference][column]: part of its speed; 0: cannot */
    double *norm;             /* [reference] of its row                            */
    uint8_t *large;           /* [column]: references that do not fit beside it    */
    double *columns;          /* [column][rank]                                    */
    uint32_t worst;           /* the reference that shares worst                   */
    struct estimate_job *job; /* by slot                                           */
    double *cells;            /* [slot][column]; -1: not known                     */
    uint32_t job_max;
    double *row; /* scratch: the completed row */
};

/*
 * References are kinds of a table with known sharing, at most ESTIMATE_REFERENCES_MAX;
 * 'types' of the cluster, in its order.
 */
void estimate_init(struct estimate *estimate, struct arena *run,
                   const struct throughput *table, const uint32_t *kinds,
                   uint32_t kind_count, uint32_t type_count, uint32_t job_max);

/* Begin with a job in a slot: nothing is known of it. */
void estimate_begin(struct estimate *estimate, job_id job);

/*
 * It was tried, or has run, beside a reference, and kept this part of its speed alone;
 * 0 if both do not fit.  Numbers outside [0, 1] are clipped.
 */
void estimate_note(struct estimate *estimate, job_id job, uint32_t type,
                   uint32_t reference, double kept);

/* The same beside another job, which counts as the reference that stands for it. */
void estimate_measured(struct estimate *estimate, job_id job, job_id other,
                       uint32_t type, double kept);

/* The reference that stands for a job. */
uint32_t estimate_match(struct estimate *estimate, job_id job);

/* The part of its speed that 'job' keeps beside 'other': measured if it was. */
double estimate_kept(struct estimate *estimate, job_id job, job_id other,
                     uint32_t type);

/* The same beside a reference. */
double estimate_beside(struct estimate *estimate, job_id job, uint32_t type,
                       uint32_t reference);

/* What the factors alone predict, in [0, 1]; for tests. */
double estimate_cell(struct estimate *estimate, job_id job, uint32_t type,
                     uint32_t reference);
