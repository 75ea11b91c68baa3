/*
 * sharing.h - how fast two jobs run that share their accelerators.
 *
 * As measured together where a table has the pair.  Otherwise kinds of known behaviour
 * follow a model of two numbers each (docs/internals/sharing.md):
 *
 *     rate of a beside b / rate of a alone = 1 / (1 + sensitivity(a) * pressure(b))
 *
 * and must not share if both together need more memory than there is, or if the gang has
 * more than one GPU: all measurements of that failed.  Of learned kinds it is what they were
 * measured to keep (pair_table.h); a pair that makes less than SHARED_WORTH together must
 * not share again.  Where they were not measured beside each other it is what follows from their
 * parts beside others.  Other jobs keep SHARED_SPEED of their rate alone with any partner.
 *
 * No pair is refused for good on thin evidence.  An estimate counts as it is only where both kinds
 * were measured beside PAIR_WITNESSES kinds; else it may raise what is expected above
 * SHARED_SPEED, and not lower it.  One that counts refuses a pair only if even the upper ends of
 * both parts make less than SHARED_WORTH, and each pair that is measured changes it.
 *
 * By rules of consent (struct sharing_rules) only jobs share that said so, of one user unless
 * all may, if both fit in memory and their rates alone are known: a first interval, which may
 * hold a warm-up, is not enough to compare with.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct job;
struct throughput;

#define SHARED_SPEED 0.6
#define SHARED_WORTH 1.1 /* the least sum of what both keep, once it was measured */

/*
 * Steps per second of both on 'gpus' accelerators of a type.  False, and both 0, if they
 * must not share.
 */
bool sharing_rates(const struct throughput *table, const struct job *a,
                   const struct job *b, uint32_t type, uint32_t gpus, bool spread,
                   double ret_rates[2]);

enum sharing_basis { SHARING_UNKNOWN, SHARING_ESTIMATED, SHARING_MEASURED };

/* The part of its rate alone that a job keeps, of a learned kind. */
struct sharing_part {
    enum sharing_basis basis;
    double kept; /* as policies count it    */
    double most; /* it may be this much */
};

struct sharing_part sharing_part(const struct throughput *table, const struct job *job,
                                 const struct job *beside, uint32_t type);

/*
 * Whether that is known: measured, or by the model, which knows how much memory its kinds
 * need.  Whether other jobs fit together is unknown.
 */
bool sharing_is_known(const struct throughput *table, const struct job *a,
                      const struct job *b, uint32_t type, uint32_t gpus);

/* Why two jobs do not share, the nearer to sharing the later; SHARING_MAY: they may. */
enum sharing_obstacle {
    SHARING_FORBIDDEN,   /* by the administrator                               */
    SHARING_NO_CONSENT,  /* one of both did not say that it may                */
    SHARING_OTHER_USER,  /* they are of two users                              */
    SHARING_ONE_PROCESS, /* only one process may use such a GPU */
    SHARING_NO_MEMORY,   /* both do not fit, or do not say how much they need  */
    SHARING_NOT_KNOWN,   /* one of both was not measured alone, or is unknown  */
    SHARING_HARMFUL,     /* they make too little together, or must not         */
    SHARING_MAY,
};

enum sharing_obstacle sharing_obstacle(const struct throughput *table,
                                       const struct job *a, const struct job *b,
                                       uint32_t type, uint32_t gpus);

/* The rate of its kind alone was measured on that type, beyond a first interval. */
bool sharing_is_measured_alone(const struct throughput *table, const struct job *job,
                               uint32_t type);

/* For policies that treat equal jobs as one: both share with the same jobs, and equally well. */
bool sharing_is_alike(const struct throughput *table, const struct job *a,
                      const struct job *b);
uint64_t sharing_hash(const struct throughput *table, const struct job *job);
