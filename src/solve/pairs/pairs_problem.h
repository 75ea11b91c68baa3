/* pairs_problem.h - goals of a programme in which pairs of jobs may share accelerators. */
#pragma once

#include "solve/problem.h"

/* 0; -ENOTSUP for goals that only the general solver has with pairs; -EDOM. */
int pairs_solve_problem(const struct problem *problem, struct pairs_solver *solver,
                        struct shares *shares, struct error *err);
