/*
 * pairs.h - shares where two jobs may run on the same accelerators: space sharing.
 *
 * What can run is a line: a job alone, or a pair.  Pairs tie two jobs together, so there
 * are no closed forms; it is a linear programme with few of its columns in it.  Jobs
 * alone come first, pairs only when the duals say that they help, and it ends when no
 * pair is left that would: that is a proof.
 *
 * Jobs that are alike are a class, with a count: shares of a class are spread evenly over
 * its members, and those of two classes over all pairs of their members.  That loses
 * nothing, and a hundred thousand jobs of two hundred classes are two hundred rows.
 * Without counts every class is one job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "solve/programme.h"

struct error;

struct pairs_input {
    uint32_t class_count, type_count, pair_count;
    const double *capacity; /* [type] accelerators                                   */
    const double *count;    /* [class] members, whole numbers >= 1; NULL: all 1      */
    const double *gang;     /* [class] accelerators that a member needs at once      */
    const double *rate;     /* [class][type] of a member alone; 0: cannot            */
    const struct programme_pair *pairs; /* of classes of equal gang, none twice;
                                           'first' may be 'second': its members      */
    const double *pair_rate; /* [pair][type][2]: of first, of second; 0: cannot      */
};

struct pairs_answer {
    bool feasible;    /* false: the floors cannot all be kept; nothing else is said   */
    double reached;   /* by the shares: the level, or the sum                         */
    double bound;     /* no shares reach more: proven                                 */
    uint32_t rounds;  /* of adding columns                                            */
    uint32_t columns; /* of pairs that were looked into, of pair_count * type_count  */
    uint32_t iterations;
};

/*
 * What is kept between solutions.  Where classes, rates and pairs are those of the last
 * one, and only counts, capacities and goals differ, it goes on from there.
 */
struct pairs_solver;
struct pairs_solver *pairs_solver_new(void);
void pairs_solver_free(struct pairs_solver *pairs);

/*
 * The largest z so that every member of class c gets at least
 *     need[c] z / (1 - ahead[c] z)
 * steps per second: max-min, makespan, finish-time fairness, as in market.h.  need 0: has
 * no part in it.  'ahead' may be NULL: all 0.
 *
 * Shares are written as x[line][type], the classes and then the pairs: for a class the
 * part of its time that each member spends there alone, for a pair how many such pairs
 * run there at a time.  They are feasible to 1e-9.  A class that could not run at all
 * makes the level 0.
 *
 * 0; -EINVAL for numbers that make no sense; -EDOM when the bound stays further than
 * 'tolerance' (1e-7), relative, from what is reached.  The answer then holds what it has.
 */
int pairs_level(struct pairs_solver *pairs, const struct pairs_input *pairing,
                const double *need, const double *ahead, double tolerance,
                double *ret_x, struct pairs_answer *ret_answer, struct error *err);

/*
 * The largest level for all, then for all who can have more, and so on; ret_level[class]
 * is in units of need.  Classes of need 0 have level 0.
 */
int pairs_water_fill(struct pairs_solver *pairs, const struct pairs_input *pairing,
                     const double *need, double tolerance, double *ret_x,
                     double *ret_level, struct pairs_answer *ret_answer,
                     struct error *err);

/*
 * The largest sum of value[line][type] * (members or pairs that run there), where every
 * member of class c gets at least floor[c] steps per second; 'floor' may be NULL.
 */
int pairs_sum(struct pairs_solver *pairs, const struct pairs_input *pairing,
              const double *value, const double *floor, double tolerance, double *ret_x,
              struct pairs_answer *ret_answer, struct error *err);

/* From how many pairs run at a time to the part of its time that one member of 'first'
 * (place 0) or 'second' (place 1) spends in it. */
double pairs_member_share(const struct pairs_input *pairing, uint32_t pair,
                          uint32_t place, double running);

/* And to the part of the time that two given members run together. */
double pairs_couple_share(const struct pairs_input *pairing, uint32_t pair,
                          double running);
