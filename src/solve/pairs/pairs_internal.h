/*
 * pairs_internal.h - shared by the programme (pairs.c) and its goals (pairs_goals.c).
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "solve/lp/lp.h"
#include "solve/solve.h"

#define PAIRS_TYPES_MAX 16

struct pairs_solver {
    struct arena arena; /* all that follows, for one set of classes and pairs   */
    uint32_t class_count, type_count, pair_count, line_count;
    double *gang, *rate, *pair_rate;
    struct programme_pair *ends;
    struct lp *lp;
    uint32_t *column; /* [line][type], or NONE                        */
    uint32_t mu;      /* its column                                   */
    double *mu_in;    /* [row]: its coefficients                      */
    bool *in_force;   /* [class]: the row of its time is in force */
    bool has_gains;   /* of the last call                             */

    /* the call at hand */
    const struct pairs_input *in;
    const double *value;    /* [line][type] of a sum, or NULL                    */
    double *due;            /* [class]                                           */
    double *kept;           /* [class]: what it keeps per unit of mu; 0: nothing */
    double *rates, *times;  /* [class]: what shares give all its members         */
    double *best;           /* [class]: the most that a new column of it gains   */
    bool *runs_alone, *can; /* [class]: runs alone; runs alone or beside others */
    double *pi, *beta;      /* [class]: price of a step, of a member's time      */
    double kappa[PAIRS_TYPES_MAX]; /* of an accelerator */
    struct pairs_answer *answer;
};

static inline double count_of(const struct pairs_solver *p, uint32_t class)
{
    return p->in->count ? p->in->count[class] : 1;
}

/* The classes of a line; twice the same for a class with itself. */
static inline uint32_t members_of(const struct pairs_solver *p, uint32_t line,
                                  uint32_t members[2])
{
    if (line < p->class_count) {
        members[0] = members[1] = line;
        return 1;
    }
    members[0] = p->ends[line - p->class_count].first;
    members[1] = p->ends[line - p->class_count].second;
    return 2;
}

static inline double rate_of(const struct pairs_solver *p, uint32_t line, uint32_t type,
                             uint32_t place)
{
    if (line < p->class_count)
        return p->rate[(size_t)line * p->type_count + type];
    size_t cell = (size_t)(line - p->class_count) * p->type_count + type;
    return p->pair_rate[cell * 2 + place];
}

/*
 * A pair in which one of the two would stand still is not used, nor a member with
 * itself.
 */
static inline bool can_run(const struct pairs_solver *p, uint32_t line, uint32_t type)
{
    uint32_t members[2];
    uint32_t size = members_of(p, line, members);
    if (p->in->capacity[type] <= 0)
        return false;
    if (size == 2 && members[0] == members[1] && count_of(p, members[0]) < 2)
        return false;
    return rate_of(p, line, type, 0) > 0 && rate_of(p, line, type, size - 1) > 0;
}

static inline double value_of(const struct pairs_solver *p, uint32_t line,
                              uint32_t type)
{
    return p->value ? p->value[(size_t)line * p->type_count + type] : 0;
}

/*
 * Make the programme that of these classes; 'value' is NULL for levels.  -EINVAL for
 * numbers that make no sense.
 */
int pairs_begin(struct pairs_solver *p, const struct pairs_input *in,
                const double *value, struct pairs_answer *answer, struct error *err);

/* Every class with a due needs a column by which it can get it; false: one cannot. */
bool pairs_add_needed_columns(struct pairs_solver *p);

/* Set counts, capacities and dues for this call; one class's due anew. */
void pairs_set_programme(struct pairs_solver *p);
void pairs_set_due(struct pairs_solver *p, uint32_t class);

/* Enforce violated rows and add paying columns until there are none. */
enum lp_status pairs_generate_columns(struct pairs_solver *p, enum lp_method method);

/*
 * The solution, made feasible: for a level as large as it fits, for a sum cut to size.
 * Rates are those of the shares afterwards.
 */
void pairs_read_shares(struct pairs_solver *p, double *ret_x);

/* From members that run at a time to the part of its time that each spends. */
void pairs_per_member(const struct pairs_solver *p, double *x);

/*
 * Read the duals as prices; raise those of time until no line earns more than it pays,
 * so that they prove a bound; the value of all capacities and time at these prices.
 */
void pairs_read_prices(struct pairs_solver *p);
void pairs_raise_time_prices(struct pairs_solver *p);
double pairs_worth_of_all(const struct pairs_solver *p);
