/*
 * interior_point.h - of all the best shares, those in the middle.
 *
 * Optimal shares are seldom unique.  An interior-point solver ends in the analytic centre
 * of all of them, where the product of what is left of every bound is largest; a simplex
 * solver ends in a corner.  The published system was measured with the first kind, so
 * this finds what such a solver finds, by following the central path.  The structure is
 * used: a small system per job and one of the size of the number of types.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

/* Maximise z so that rate[j].x[j] >= z need[j]; or, without needs, the sum of value x. */
struct interior_point {
    uint32_t job_count, type_count;
    const double
        *capacity;       /* [type] > 0                                              */
    const double *gang;  /* [job]                                                   */
    const double *rate;  /* [job][type]; with needs                                 */
    const double *need;  /* [job] >= 0, 0: none; or NULL                            */
    const double *value; /* [job][type]; where need is NULL                         */
    double enough; /* with needs: go no further than this z; 0: as far as can be */
    bool
        inverse; /* the rate's inverse is bounded, by a cone: its slack counts as such */
};

/*
 * Writes x[job][type].  Jobs and types without use must be left out by the caller: a job
 * with a need has a rate somewhere.  -EDOM if it does not converge.
 */
int interior_point_solve(const struct interior_point *centre, struct arena *scratch,
                         double *ret_x, struct error *err);
