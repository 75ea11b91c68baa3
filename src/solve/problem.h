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

struct frame {
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

void frame_init(struct frame *frame, const struct programme *programme,
                struct arena *arena);

/* Who is in a line: one or two. */
static inline uint32_t line_members(const struct frame *frame, uint32_t line,
                                    uint32_t members[2])
{
    uint32_t jobs = frame->programme->job_count;
    members[0] = line < jobs ? line : frame->programme->pairs[line - jobs].first;
    members[1] = line < jobs ? line : frame->programme->pairs[line - jobs].second;
    return line < jobs ? 1 : 2;
}

/* The rate of its first or second member (place 0 or 1). */
static inline double line_rate(const struct frame *frame, uint32_t line, uint32_t type,
                               uint32_t place)
{
    const struct programme *p = frame->programme;
    if (line < p->job_count)
        return p->rate[(size_t)line * p->type_count + type];
    size_t cell = (size_t)(line - p->job_count) * p->type_count + type;
    return p->pair_rate[cell * 2 + place];
}

static inline double line_gang(const struct frame *frame, uint32_t line)
{
    uint32_t members[2];
    line_members(frame, line, members);
    return frame->programme->gang[members[0]];
}

bool line_usable(const struct frame *frame, uint32_t line, uint32_t type);

/* What every job gets from these shares, in steps per second. */
void frame_rates(const struct frame *frame, const double *x, double *ret_rates);

/*
 * The largest part of a capacity or of a job's time that is used; 1: one of them is used
 * up, more: the shares are too large by that factor.
 */
double frame_load(const struct frame *frame, const double *x);

/* Take away what a solver's rounding left: negative shares, and a load above 1. */
void frame_tidy_up(const struct frame *frame, double *x);

/* Every job an equal part of each type, none more than its time (Gavel's isolated). */
void frame_isolated(const struct frame *frame, double *ret_x);
