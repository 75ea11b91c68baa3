/*
 * cost_model.h - does preempting these jobs for that one pay?
 *
 * A swap is one such exchange: the victims are preempted, and the beneficiary gets
 * their GPUs.  The queue is simulated twice, once with all jobs left in
 * place and once with the swap made, and the sums of completion times are compared:
 *
 *     gain = sum(keep) - sum(swap) + stretch x wait      sums over the simulated jobs
 *     cost = sum over victims of g (c + l)  GPU-seconds that make no steps
 *     swap if gain > theta x cost
 *
 * with g the victim's GPUs, l its time to resume, c the longest checkpoint time among
 * the victims, and wait the time by which the beneficiary starts earlier.  The sums
 * contain all delays of the jobs that are known now.  The two factors stand for jobs
 * that are yet to be submitted: GPU time wasted now delays them (theta), and some of
 * them will run before the beneficiary if it is left waiting (stretch).
 *
 *     static void x_observe(...)  { cost_model_observe(&x->model, view, event); ... }
 *     static int  x_decide(...)   { if (cost_model_pays(&x->model, view, plan, ...)) ... }
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lazy_tree.h"
#include "model/plan.h"
#include "model/view.h"
#include "predict/stop_costs.h"

struct arena;
struct lookahead;

struct cost_model_settings {
    double theta;      /* job-seconds that a wasted GPU-second costs others */
    double hysteresis; /* factor on theta for victims that have hardly begun */
    double stretch;    /* share by which waits turn out longer than simulated */
    double gang;       /* order: remaining time / GPUs ^ gang */
    double spread;     /* sigma of remaining times around their estimates */
    double quantile;   /* of the beneficiary's remaining time; a victim's: 1 - this */
    uint32_t depth;    /* ends of jobs to simulate */
};

#define COST_MODEL_STANDARD \
    ((struct cost_model_settings){ .theta = 1, \
                                   .stretch = 1, \
                                   .hysteresis = 1, \
                                   .gang = 0.1, \
                                   .quantile = 0.7, \
                                   .depth = 32 })

/* What a job has left, and what that is worth. */
struct cost_model_value {
    double left_s;  /* seconds of work on the fastest type, at the size asked for     */
    double weight;  /* what a second of its completion time counts for; 1 for most    */
    int64_t key_ns; /* its place in the policy's order: the smallest goes first       */
};

/*
 * What a policy knows better than what jobs declare; all or none.  With estimates, run times
 * are those of the type a job runs or would run on.
 */
struct cost_model_estimates {
    /* Never unknown. */
    struct cost_model_value (*value)(const void *self, const struct view *view,
                                     job_id job);

    /* The same as its 'left_s'. */
    double (*left_s)(const void *self, const struct view *view, job_id job);

    /* Seconds of work, where it runs, that are expected to be lost if it is stopped now. */
    double (*lost_s)(const void *self, const struct view *view, job_id job);

    /* GPU-seconds that make no steps if it is stopped and 'pause_s' passes until it has. */
    double (*waste_gpu_s)(const void *self, const struct view *view, job_id job,
                          double pause_s);
};

#define COST_MODEL_GANGS 129 /* larger ones are computed */

struct cost_model {
    struct cost_model_settings settings;
    const struct cost_model_estimates *estimates; /* NULL: declared work, one speed */
    const void *self;                             /* for 'estimates' */
    double
        *slowness; /* by [slot * types + type]: time there over that on the fastest */
    double gangs[COST_MODEL_GANGS]; /* by GPUs: GPUs ^ gang */
    double slower, faster; /* factors on the remaining time of beneficiary and victim */
    struct lazy_trees *running; /* one: placed or running jobs, by expected end */
    struct lazy_trees *waiting; /* one: by key */
    bool *leaves;               /* by slot: a victim of the swap being examined */
    double *start_delay_s; /* by slot: wait of a placed job for its victims, at most */
    struct stop_costs stop_costs;
    struct lookahead *base, *ahead;
    uint32_t *node_number; /* by node: its number in the simulation plus 1 */
};

/* What a swap is expected to cost and to gain. */
struct preemption_price {
    double gain_s;       /* reduction of the sum of completion times, as above */
    double cost_gpu_s;   /* GPU time without steps */
    double wait_saved_s; /* by the beneficiary, for plan_expect() */
};

/* 'settings' and 'estimates' are set before.  All memory is taken from 'run'. */
void cost_model_init(struct cost_model *model, const struct view *view,
                     struct arena *run);

/* Must see every event. */
void cost_model_observe(struct cost_model *model, const struct view *view,
                        const struct event *event);

/* What the estimates say of a waiting or running job has changed. */
void cost_model_renew(struct cost_model *model, const struct view *view, job_id job);

/*
 * Whether preempting 'victims' for 'beneficiary' pays; the plan must not have changed
 * any of them. ret_price is filled either way.  If the beneficiary's work is unknown,
 * the answer is no; a victim of unknown work is expected to run as long again as it
 * has run.
 */
bool cost_model_pays(struct cost_model *model, const struct view *view,
                     const struct plan *plan, job_id beneficiary, const job_id *victims,
                     uint32_t count, struct preemption_price *ret_price);

/*
 * Position of a waiting or running job in the order, in nanoseconds; INT64_MAX:
 * unknown.
 */
int64_t cost_model_key_ns(const struct cost_model *model, const struct view *view,
                          job_id job);

/* When a placed or running job is expected to end, as of its last event; INT64_MAX: unknown. */
static inline int64_t cost_model_end_ns(const struct cost_model *model, job_id job)
{
    return lazy_trees_key(model->running, job);
}

/* Of two jobs that share GPUs, the one that is expected to end last frees them. */
bool cost_model_frees_gpus(const struct cost_model *model, const struct view *view,
                           job_id job);

/* Expected time to checkpoint the job now, and to resume it: stop_costs.h. */
static inline double cost_model_pause_s(const struct cost_model *model,
                                        const struct view *view, job_id job)
{
    return stop_costs_pause_s(&model->stop_costs, view, job);
}

static inline double cost_model_load_s(const struct cost_model *model,
                                       const struct view *view, job_id job)
{
    return stop_costs_load_s(&model->stop_costs, view, job);
}
