/*
 * worth.h - is this swap worth its cost?
 *
 * Any policy can put the question in front of a preemption.  The answer comes from
 * looking ahead twice (look.h), once with everybody left in place and once with the
 * swap made, and comparing the sums of completion times:
 *
 *     gain = sum(keep) - sum(swap) + stretch x wait      sums over all in sight
 *     cost = sum over victims of g (c + l)  GPU-seconds that make no steps
 *     swap if gain > theta x cost
 *
 * with g the victim's GPUs, l its load time, c the longest pause among the victims, and
 * wait the time by which the newcomer starts earlier.  The sums have all delays of those
 * who are there already in them.  The two factors stand for those who are yet to come:
 * they are late by what is wasted today (theta), and some will be served before the
 * newcomer if it is left waiting (stretch).
 *
 *     static void x_observe(...)  { worth_observe(&x->worth, view, event); ... }
 *     static int  x_decide(...)   { if (worth_swap(&x->worth, view, plan, ...)) ... }
 *
 * What a pause and a load cost is taken from the job where it is declared; then from
 * what was measured with others of its kind; then from a model, if its size is known;
 * then from what was measured with anybody.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/tree.h"
#include "model/plan.h"
#include "model/view.h"
#include "policy/shared/look.h"

struct arena;
struct event;

#define WORTH_KINDS_MAX 256

struct worth_settings {
    double theta;      /* job-seconds that a wasted GPU-second costs others          */
    double hysteresis; /* factor on theta for victims that have hardly begun         */
    double stretch;    /* share by which a wait turns out longer than can be seen    */
    double gang;       /* order: remaining time / GPUs ^ gang                        */
    double spread;     /* sigma of remaining times around their estimates            */
    double quantile;   /* taken of the newcomer's; of a victim's one less this       */
    uint32_t depth;    /* ends to look ahead                                         */
};

#define WORTH_STANDARD \
    ((struct worth_settings){ .theta = 1, \
                              .stretch = 1, \
                              .hysteresis = 1, \
                              .gang = 0.1, \
                              .quantile = 0.7, \
                              .depth = 32 })

/* Averages of what was measured; the newest counts half. */
struct worth_measured {
    double pause_s, load_s;
    bool has_pause, has_load;
};

struct worth {
    struct worth_settings settings;
    double slower, faster; /* factors for the quantiles of newcomer and victim */
    struct tree_pool run_pool, wait_pool;
    struct tree running; /* in their seats or on the way there, by finish time     */
    struct tree waiting; /* by key                                                 */
    bool *runs, *waits;  /* by slot: inside                                        */
    bool *leaves;        /* by slot: a victim of the swap that is looked at         */
    double
        *seats_due_s; /* by slot: how long a placed one waits for its seats, at most */
    struct worth_measured *kinds, anybody;
    struct look *base, *look;
    uint32_t *local; /* by node: its number in sight, plus 1 */
    node_id *in_sight;
};

/* What a swap is expected to cost and to bring. */
struct worth_price {
    double gain_s;       /* by which the sum of completion times falls, as above */
    double cost_gpu_s;   /* GPU-time that makes no steps               */
    double wait_saved_s; /* by the newcomer: for plan_expect()         */
};

/* 'settings' must be set.  Everything lives in 'run'. */
void worth_init(struct worth *worth, const struct view *view, struct arena *run);

/* To be told of every event. */
void worth_observe(struct worth *worth, const struct view *view,
                   const struct event *event);

/*
 * Whether 'victims' should leave for 'newcomer', none of them being touched by the plan
 * so far.  ret_price is filled either way.  Newcomers whose work is unknown are never
 * worth it; a victim's unknown work is taken to be as long as what it has run.
 */
bool worth_swap(struct worth *worth, const struct view *view, const struct plan *plan,
                job_id newcomer, const job_id *victims, uint32_t count,
                struct worth_price *ret_price);

/* Place in the order, in nanoseconds, of a job that waits or runs; INT64_MAX: unknown. */
int64_t worth_key_ns(const struct worth *worth, const struct view *view, job_id job);

/* What it is believed to cost to pause it now, and to load it. */
double worth_pause_s(const struct worth *worth, const struct view *view, job_id job);
double worth_load_s(const struct worth *worth, const struct view *view, job_id job);
