/*
 * gavel_released.h - what the rounds of the published system are made of.  For
 * gavel_released.c, which decides, gavel_released_shares.c: how much each job is due, and
 * gavel_released_take.c: who runs in the next round.
 */
#pragma once

#include "base/error.h"
#include "base/mt19937.h"
#include "base/sort.h"
#include "policy/gavel/gavel_common.h"
#include "policy/gavel/gavel_recorded.h"

#define NONE UINT32_MAX

/* What a unit has of one type. */
struct account {
    double x;      /* its share                                                     */
    double time_s; /* had since shares were made, and half a round                  */
    double deficit_s;
    double rate[2]; /* steps per second; of one alone only the first                 */
};

/* Who may run: a job, or two that share. */
struct released_unit {
    job_id jobs[2]; /* second JOB_NONE: one alone */
    uint32_t row;   /* of accounts                */
    bool known;     /* the shares speak of it     */
    bool due;       /* and give it something      */
};

/* A unit at work in this round. */
struct task {
    struct released_unit unit;
    uint64_t number; /* of the first job */
    uint32_t column;
    double steps[2], finish_s;
    bool doomed;   /* takes its place and makes no steps         */
    bool absent;   /* there was no room as it is: not this time  */
    bool ended[2]; /* the job is over, its slot may be another's */
};

/* By slot. */
struct released_job {
    double left; /* steps; NAN: unknown            */
    uint32_t failures;
    uint32_t task; /* of this round, or NONE         */
    bool pending;  /* has come, not admitted yet     */
    bool busy;     /* has seats or is promised some, and steps to make */
};

/* A place in the order of one type. */
struct candidate {
    double priority, deficit_s, x;
    uint32_t unit, column;
    uint32_t place; /* in the list: equals stay in its order */
};

/* A job that has a type, or had one; by public id. */
struct fifo_holder {
    uint64_t id;
    uint32_t column;
};

struct gavel_released {
    double round_s;
    double now_s, round_end_s; /* the clock; when the last round ended */
    double reset_s;            /* when shares were made                */
    uint64_t round;            /* its number                           */
    bool need, force; /* shares are out of date; make them now whatever the rules */
    bool under_way;
    double end_s;
    struct mt19937 shuffle;
    struct solver *solver; /* warm between calls */
    struct mt19937 draws;  /* gavel_published_fifo() */
    struct fifo_holder *holders;
    uint32_t holder_count;
    struct gavel_recorded recorded;
    uint32_t record_next;
    struct error broken; /* why the recorded shares do not fit this run; "": they do */

    struct released_job *pages;
    double *left; /* by slot, beside the pages: for the call */
    uint32_t busy_count;
    uint32_t order_count, ordered_count; /* in the plan; seen to be carried out */
    job_id *pending;
    uint32_t pending_count;
    job_id *hopeless; /* to be dropped, off the roll */
    uint32_t hopeless_count;

    struct released_unit *units;
    uint32_t unit_count, unit_max;
    uint32_t *due; /* those who are due something, in order of 'units' */
    uint32_t due_count;
    uint64_t hidden; /* pairs that can run nowhere: they count, and no more */
    struct account *accounts;
    uint32_t row_used, *rows_free, row_free_count;
    uint32_t *stirred; /* rows that may change when accounts are settled */
    uint32_t stirred_count;
    bool *is_stirred;                /* by row */
    double worker_time_s[TYPES_MAX]; /* by column */

    struct task *tasks;
    uint32_t task_count;
    struct candidate *candidates;
    struct sort_item *order, *order_scratch; /* of tasks */
    uint32_t *taken;                         /* by slot: round + 1 */
    uint32_t *place;                         /* by slot: in the call */
};

static inline struct account *released_accounts(const struct gavel_common *common,
                                                const struct released_unit *unit)
{
    return &common->released->accounts[(size_t)unit->row * common->type_count];
}

static inline bool unit_is_pair(const struct released_unit *unit)
{
    return unit->jobs[1] != JOB_NONE;
}

static inline bool account_runs(const struct account *account)
{
    return account->rate[0] > 0 && account->rate[1] > 0;
}

/* Fill call->x as the published system does. */
int released_shares(struct gavel_common *common, struct gavel_call *call,
                    struct error *err);

/* gavel_released_take.c: who runs in the next round. */

/* Fill the list of tasks for the round that begins. */
void released_choose(struct gavel_common *common);
void released_add_task(struct gavel_common *common, const struct released_unit *unit,
                       uint32_t column);
