/*
 * berth_internal.h - what the layers of the policy 'berth' share.
 *
 * One currency for all of them: seconds of completion time.  A layer compares what a change
 * saves with what it costs, both in job-seconds, and makes it if it pays.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/lazy_tree.h"
#include "base/timer_heap.h"
#include "model/cluster.h"
#include "policy/gavel/gavel.h"
#include "policy/policy.h"
#include "policy/shared/cost_test.h"
#include "policy/shared/preempt.h"
#include "policy/shared/fair_shares.h"
#include "policy/shared/seconds.h"
#include "policy/shared/sizes.h"
#include "policy/shared/work_history.h"
#include "predict/forecaster.h"

/*
 * Chosen on seeds 1 to 3 of the workload mixed, of xion's and of fitgpp's; docs/policies/berth.md
 * says what others would do.
 */
#define TRIAL_SHARE \
    0.5 /* of all GPUs: trial jobs beyond it count as best-effort jobs */
#define THETA_SLOPE \
    3.0 /* job-seconds that a GPU-second wasted by a move or resize costs: 1 + slope x queue */
#define SWAP_SLOPE 10.0 /* the same of one wasted by a swap */
#define QUALITY 1.0     /* what a good model counts for, beside a finished job */
#define PATIENCE 10.0   /* times its own run time that a job may wait, beyond 'age' */
#define AGED_SHARE \
    0.0625 /* of the GPU time, for jobs that start because they waited too long */

/* What the policy keeps about a live job. */
struct berth_job {
    bool runs;              /* in 'running' and 'by_price'                           */
    bool aged;              /* has waited too long: in 'aged' too while it waits      */
    bool keeps;             /* nodes are kept for it, until it starts                 */
    bool by_age;            /* started for that: only trial jobs preempt it           */
    uint32_t aged_gpus;     /* of 'aged_gpus', its own                                */
    bool trial;             /* runs as a trial job: no best-effort job preempts it   */
    uint32_t seats_type;    /* of the trees it is in                              */
    uint32_t trial_gpus;    /* of 'trial_gpus', its own                           */
    double reached;         /* steps it has ever made, kept or not                */
    uint32_t reports;       /* of its losses, so far                              */
    double good_steps;      /* at which its model is good; 0: it is, or will not say */
    double share;           /* factor on its value: its user's and its group's share */
    double urgency;         /* factor on its value: its deadline                   */
    uint32_t queue_at;      /* its place in 'queue' plus 1; 0: does not wait       */
    uint64_t value_until;   /* so many jobs have finished plus 1; 0: not known yet */
    int64_t moves_until_ns; /* no move pays after that; 0: not known yet        */
    int64_t retry_ns;       /* while it waits: a preemption is tried again then */
    int64_t retry_each_ns;  /* and is, so long after it had failed              */
    uint32_t lent_gpus;     /* of 'lent', its own                                 */
    uint32_t gpus_type;     /* of which these and 'trial_gpus' are                */
    bool in_rounds;         /* a trial job beyond their share: counts as best effort */
    bool is_apart;          /* on the list 'apart'                                */
    bool inherited;         /* known from another instance, and not adopted yet */

    /* Until it makes steps, what it is; then its key is no larger than this one. */
    struct cost_model_value value;

    /* While it makes steps: its key in that decision. */
    int64_t key_ns;
    uint64_t key_turn;
    bool shares; /* of 'sharing_count'                                 */
};

#define FRESH_MAX 64

enum objective {
    OBJECTIVE_COMPLETION,
    OBJECTIVE_MAKESPAN,
    OBJECTIVE_FAIRNESS,
    OBJECTIVE_COST,
};

/* Which jobs may share GPUs. */
enum sharing_choice {
    SHARING_NONE,
    SHARING_ASKED, /* those that said so */
    SHARING_ALL,   /* under rules of consent, those that said so as well */
};

struct berth_policy {
    /* settings */
    uint32_t objective; /* enum objective */
    double trial_weight;
    int64_t age_ns;
    double floor;     /* part of an equal share that no elastic job falls below */
    uint32_t sharing; /* enum sharing_choice */

    const struct policy *programme; /* Gavel's, for another objective; or NULL */
    struct gavel_policy *programme_self;
    struct gavel_host host; /* what its rounds are told */
    job_id *apart;          /* trial jobs that wait or waited, not in rounds */
    uint32_t apart_count;
    uint32_t withheld[TYPES_MAX]; /* GPUs of trial jobs, by type              */
    uint32_t lent[TYPES_MAX];     /* GPUs of elastic jobs beyond those they asked for */

    struct sizes waiting; /* best-effort jobs, by key       */
    struct sizes trials;  /* trial jobs, by key             */
    struct sizes aged;    /* best-effort jobs that waited too long, by submission */
    struct cost_test cost_test;
    struct preempt preempt;
    struct berth_job *jobs;      /* by slot */
    struct work_history history; /* of finished jobs */
    struct fair_shares shares;   /* of users and groups */
    job_id *queue;               /* jobs that wait, in no order */
    uint32_t queue_count, queue_next;
    struct forecaster forecaster;
    struct seconds seconds; /* what those of elastic jobs are worth */
    struct elastic elastic; /* those that run                       */
    uint32_t decisions;     /* since they were looked at last       */
    bool can_grow;          /* GPUs became free since then          */

    struct lazy_trees *running;  /* by type: expected end, earliest first           */
    struct lazy_trees *movers;   /* of these, jobs that may gain by a faster type   */
    struct lazy_trees *by_price; /* by type: price when it started, cheapest first  */
    struct timer_heap
        timers; /* a guess that changes, or a wait that becomes too long */

    double gpus_per_cpu_milli, gpus_per_mib; /* of the whole cluster */
    uint32_t trial_gpus;                     /* held by or pending for trial jobs */
    uint32_t aged_gpus;     /* and by jobs that started because they waited too long */
    double aged_debt_gpu_s; /* GPU time that these have had beyond their share       */
    int64_t aged_debt_ns;   /* when it was that much                                 */
    uint32_t sharing_count; /* waiting and running jobs that may share GPUs       */
    job_id harmful[FRESH_MAX]; /* of each pair that is known to do harm, one job   */
    uint32_t harmful_count;
    job_id fresh[FRESH_MAX]; /* jobs that may find another to trade with */
    uint32_t fresh_count;
    bool
        reported; /* reports of running jobs since the last decision: not enough for one */
    bool stirred;         /* something else */
    uint32_t freed_types; /* types of which GPUs became free since the last decision */
    uint32_t grown_types; /* types that running jobs may use whose guessed work grew */
    double theta;         /* job-seconds that a wasted GPU-second costs now */
    struct bits aside;    /* nodes kept for a trial job that waits for an end there */
    struct bits kept;     /* these, and nodes kept for jobs that have waited too long */
    struct bits claimed;  /* these, and all nodes that such jobs could use */
    bool any_kept;        /* such a job still waits, in this decision */
    uint32_t kept_types;  /* types of GPUs that such jobs could use */
    int64_t kept_until_ns; /* when the first of them is expected to start */
    uint32_t *examined;    /* by node: the search in which it was looked at */
    uint32_t search;
    uint64_t turn; /* number of this decision, or of the next one */
    const struct view *view;
};

/* --- value.c: what a job's time is worth ------------------------------------------- */

void value_observe(struct berth_policy *berth, const struct view *view,
                   const struct event *event);
double value_left_s(const void *self, const struct view *view, job_id job);

/* Of a job that makes no steps it is looked up while it cannot have changed. */
struct cost_model_value value_of(const void *self, const struct view *view, job_id job);

/* A running job's key is larger than this. */
bool value_exceeds_now(const struct berth_policy *berth, const struct view *view,
                       job_id job, int64_t key_ns);

/* The same; most often a bound on the key that was found before tells that it is not. */
static inline bool value_exceeds(const struct berth_policy *berth,
                                 const struct view *view, job_id job, int64_t key_ns)
{
    const struct berth_job *mine = &berth->jobs[job];
    bool is_bounded =
        mine->value_until > berth->history.finished_count && mine->urgency <= 1;
    return !(is_bounded && mine->value.key_ns <= key_ns) &&
           value_exceeds_now(berth, view, job, key_ns);
}

/*
 * When its key changes with time: a running job's, as a guess of its work is exceeded; a waiting
 * job's, as its deadline comes near.  INT64_MAX: never.
 */
int64_t value_changes_ns(const struct berth_policy *berth, const struct view *view,
                         job_id job);

/* These, and what stopping costs, as the cost test asks for them. */
extern const struct cost_model_estimates value_estimates;

/* Find the factors on a waiting job's value anew; true: they have changed enough to matter. */
bool value_renew(struct berth_policy *berth, const struct view *view, job_id job);

/* --- price.c: what stopping a job costs --------------------------------------------- */

double price_lost_s(const void *self, const struct view *view, job_id job);
double price_waste_gpu_s(const void *self, const struct view *view, job_id job,
                         double pause_s);
double price_of_stopping(const struct berth_policy *berth, const struct view *view,
                         job_id job);

/* Seconds that the job itself loses: pause, load, and what it has to do again. */
double price_stop_s(const struct berth_policy *berth, const struct view *view,
                    job_id job);

/* --- the layers ---------------------------------------------------------------------- */

void trials_place(struct berth_policy *berth, const struct view *view,
                  struct plan *plan);

/* Nothing is kept for a job that waited too long; then place such jobs, or keep nodes for them. */
void aged_begin(struct berth_policy *berth, const struct view *view);
void aged_place(struct berth_policy *berth, const struct view *view, struct plan *plan,
                struct arena *scratch);

/* Count the GPUs that a job holds which started because it waited too long. */
void aged_observe(struct berth_policy *berth, const struct view *view, job_id job);

/* When such jobs may start again, if some wait and have had their share; or INT64_MAX. */
int64_t aged_wake_ns(const struct berth_policy *berth, const struct view *view);
/* --- objective.c: Gavel's programmes, for all objectives but 'completion' ---------------- */

/* Start the objective's programme; 'completion' has none. */
int objective_start(struct berth_policy *berth, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err);

/* Place best-effort jobs by shares of time. */
int objective_place(struct berth_policy *berth, const struct view *view,
                    struct plan *plan, struct arena *scratch, struct error *err);

/* Elastic jobs get more GPUs than they asked for while no job waits. */
static inline bool objective_grows(const struct berth_policy *berth)
{
    return berth->objective != OBJECTIVE_COST; /* more GPUs make fewer steps each */
}

/* Nodes that this job must not use, because they are kept for others. */
const struct bits *aged_kept_from(const struct berth_policy *berth,
                                  const struct view *view, job_id job);

/* The time saved exceeds the price: there is free room of that type, on which it is faster. */
bool moves_pay(const struct berth_policy *berth, const struct view *view, job_id job,
               uint32_t type);

/* To types of which GPUs became free; then jobs that both gain by it trade places. */
void moves_make(struct berth_policy *berth, const struct view *view, struct plan *plan);

void resizes_init(struct berth_policy *berth, const struct view *view,
                  struct arena *run);

/* Start this waiting job where an elastic one gives up GPUs for it, if that pays. */
bool resizes_make_room(struct berth_policy *berth, const struct view *view,
                       struct plan *plan, job_id job);

/* Once an epoch; free GPUs are distributed when there are new ones and no job waits. */
void resizes_make(struct berth_policy *berth, const struct view *view,
                  struct plan *plan, bool others_wait, bool freed);

/* Seconds until a running job ends where it is. */
static inline double berth_left_s(const struct berth_policy *berth,
                                  const struct view *view, job_id job)
{
    int64_t left_ns = lazy_trees_key(berth->running, job) - view->now_ns;
    return left_ns > 1000000000 ? (double)left_ns * 1e-9 : 1;
}

/* Nodes on which no job may be put that moves, grows or preempts others by its key. */
static inline const struct bits *berth_nodes_to_avoid(const struct berth_policy *berth)
{
    return berth->any_kept ? &berth->claimed : &berth->aside;
}

/* The fewest GPUs that an elastic job may be left with: Gavel's shares are of whole gangs. */
static inline uint32_t berth_gpus_least(const struct berth_policy *berth,
                                        const struct job *job)
{
    return berth->programme ? job->gpus : job->gpus_min;
}

/* How much longer the job takes on that type than on its fastest; INFINITY: cannot. */
static inline double berth_slowness(const struct berth_policy *berth, job_id job,
                                    uint32_t type)
{
    return berth->cost_test.model.slowness[(size_t)job * TYPES_MAX + type];
}

/* No type that the running job may use is faster for it. */
static inline bool berth_runs_fastest(const struct berth_policy *berth,
                                      const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            berth_slowness(berth, id, type) < berth_slowness(berth, id, job->type_now))
            return false;
    return true;
}
