/*
 * problem.h - a programme made ready for a solver: who may run where, and what came of it.
 *
 * What may run is a line: a job alone, or a pair of jobs.  Lines 0 … jobs - 1 are the
 * jobs, the pairs follow.  A line is usable on a type that has accelerators and where all
 * of its members have a rate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solve/programme.h"

struct arena;

#define SOLVE_TYPES_MAX 16

struct problem {
    const struct programme *programme;
    struct arena *arena;
    uint32_t line_count;
    double
        *even; /* [job] its rate when it has each type by capacity; 0: runs nowhere */
    double
        *top; /* [job] its best rate, alone or in a pair                            */
};

/* -EINVAL with a sentence that names the job and the field where numbers make no sense. */
int programme_check(const struct programme *programme, struct error *err);

void problem_init(struct problem *problem, const struct programme *programme,
                  struct arena *arena);

/* Who is in a line: one or two. */
static inline uint32_t problem_line_members(const struct problem *problem,
                                            uint32_t line, uint32_t members[2])
{
    uint32_t jobs = problem->programme->job_count;
    members[0] = line < jobs ? line : problem->programme->pairs[line - jobs].first;
    members[1] = line < jobs ? line : problem->programme->pairs[line - jobs].second;
    return line < jobs ? 1 : 2;
}

/* The rate of its first or second member (place 0 or 1). */
static inline double problem_line_rate(const struct problem *problem, uint32_t line,
                                       uint32_t type, uint32_t place)
{
    const struct programme *p = problem->programme;
    if (line < p->job_count)
        return p->rate[(size_t)line * p->type_count + type];
    size_t cell = (size_t)(line - p->job_count) * p->type_count + type;
    return p->pair_rate[cell * 2 + place];
}

static inline double problem_line_gang(const struct problem *problem, uint32_t line)
{
    uint32_t members[2];
    problem_line_members(problem, line, members);
    return problem->programme->gang[members[0]];
}

bool problem_line_usable(const struct problem *problem, uint32_t line, uint32_t type);

/* What every job gets from these shares, in steps per second. */
void problem_rates(const struct problem *problem, const double *x, double *ret_rates);

/*
 * The largest part of a capacity or of a job's time that is used; 1: one of them is used
 * up, more: the shares are too large by that factor.
 */
double problem_load(const struct problem *problem, const double *x);

/* Take away what a solver's rounding left: negative shares, and a load above 1. */
void problem_make_feasible(const struct problem *problem, double *x);

/* Every job an equal part of each type, none more than its time (Gavel's isolated). */
void problem_isolated_shares(const struct problem *problem, double *ret_x);
