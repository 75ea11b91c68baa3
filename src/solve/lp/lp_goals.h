/*
 * lp_goals.h - every goal by linear programmes: the general path, and the judge.
 *
 * Each fills in everything but 'status', which it sets where floors are dropped; 'x' is
 * there.  0, or -EDOM with a sentence when the solver gives up.
 */
#pragma once

#include "solve/problem.h"

int clp_least(const struct frame *frame, struct shares *shares, struct error *err);
int clp_finish_time(const struct frame *frame, struct shares *shares,
                    struct error *err);
int clp_levels(const struct frame *frame, struct shares *shares, struct error *err);
int clp_sum(const struct frame *frame, struct shares *shares, struct error *err);
int clp_ratio(const struct frame *frame, struct shares *shares, struct error *err);

/* -EDOM and its sentence. */
int clp_gave_up(struct error *err);

/*
 * Of all shares that keep unit[j] * rate[j] >= floor[j], those with the largest sum of
 * normalised rates.  Where the solver gives up the shares stay as they are.
 */
void clp_tidy(const struct frame *frame, const double *unit, const double *floor,
              struct shares *shares);

/* The least level that jobs have when each has an equal part: a scale for the others. */
double clp_scale(const struct frame *frame, const double *unit);

/*
 * The floors cannot all be kept: say whose cannot even alone, or, where there is none
 * such, name all.  For those who drop them.
 */
void floors_dropped(const struct frame *frame, struct shares *shares);
