/*
 * one_type.h - levels where no type serves any job better than another.
 *
 * Without known rates, or with GPUs of one kind, all types are one pool.  A job's share at a
 * level is then a formula, and the only unknown is one number.
 */
#pragma once

#include <stdbool.h>

#include "solve/problem.h"

/* The goal is about every job that can run, and each is as fast on one type as on another. */
bool one_type_applies(const struct problem *problem,
                      const struct problem_demands *demands);

/*
 * The least level is as large as can be, then the next least, and so on.  A job that has all
 * of its time stays there while the others go on.  Shares are spread over the types by their
 * capacities.  Returns the largest least level: no shares reach more.
 */
double one_type_solve(const struct problem *problem,
                      const struct problem_demands *demands, double *ret_x);
