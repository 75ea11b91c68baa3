/*
 * engine.h - events in, one decision, orders out.
 *
 * The simulator and the daemon both drive this and nothing else: they differ in where
 * events come from and who carries the orders out.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/histogram.h"
#include "model/state.h"

struct error;
struct executor;
struct lease;
struct flow_plan;
struct flow_policy;
struct planned_job;
struct plan;
struct policy;

/*
 * Somebody who wants to know: metrics, the ledger, a trace, the store.  Told of every
 * event after it was applied, our own orders included.
 */
struct engine_observer {
    void (*event)(void *self, const struct view *view, const struct event *event);

    /* Optional.  What was told so far must be durable when this returns. */
    int (*commit)(void *self, struct error *err);
    void *self;
    uint32_t kinds; /* of events it is told, as bits; 0: all */
};

#define OBSERVERS_MAX 8

struct engine {
    struct state state;
    struct plan *plan;
    struct arena round;    /* emptied after every step                          */
    struct arena own;      /* of the policy in office                           */
    struct arena flow_own; /* of the flow policy                                */
    struct planned_job
        *planned_jobs; /* by slot, while a plan becomes orders: what it says */

    const struct policy *policy;
    void *policy_self;
    uint64_t seed;
    const struct flow_policy *flow; /* or NULL */
    void *flow_self;
    struct flow_plan *flow_plan;
    const struct executor *executor;
    void *executor_self;
    struct engine_observer observers[OBSERVERS_MAX];
    uint32_t observer_count;

    uint64_t event_count;
    uint64_t decision_count;
    uint64_t refused_count; /* plans that were thrown away     */
    struct error *refusal;  /* why the last of them was        */
    int64_t wake_ns;        /* when the policy wants to be asked; INT64_MAX: never */
    int64_t decided_ns;     /* when it was asked last                             */
    int64_t flow_wake_ns;   /* when the flow policy does                          */
    bool flatten;           /* nobody gives out levels any more: all get the first */
    uint64_t level_count;   /* levels that were changed                           */
    uint64_t flow_refused_count; /* times the flow policy failed                  */

    /* Set to have decisions timed; the engine itself never asks a clock. */
    int64_t (*clock_ns)(void);
    struct histogram decide_ns;
};

struct engine_setup {
    const struct cluster *cluster;
    const struct throughput *rates;
    const struct policy *policy;
    const char *settings;           /* "name=value,…", or NULL */
    const struct flow_policy *flow; /* whose packets go first, or NULL */
    const char *flow_settings;
    const struct executor *executor;
    void *executor_self;
    uint32_t job_max;
    uint64_t seed;
};

/* Everything lives in 'run'. */
int engine_init(struct engine *engine, struct arena *run,
                const struct engine_setup *setup, struct error *err);
void engine_release(struct engine *engine);
void engine_add_observer(struct engine *engine, struct engine_observer observer);

/*
 * Put another policy into office.  It is told of every live job (adopted) and decides at
 * the next step; no job is disturbed by the change itself.  If it cannot be set up, the
 * present one stays.
 */
int engine_set_policy(struct engine *engine, const struct policy *policy,
                      const char *settings, struct error *err);

/*
 * The same for whose packets go first.  Levels stay until it has decided; under one that
 * gives out none all jobs get the first.
 */
int engine_set_flow(struct engine *engine, const struct flow_policy *flow,
                    const char *settings, struct error *err);

/*
 * Apply an event without deciding or telling anybody but the state: what a log says has
 * happened.  False if it makes no sense now.  Afterwards engine_adopt().
 */
bool engine_replay(struct engine *engine, struct event *event);

/* After a replay: the policies learn who is there. */
void engine_adopt(struct engine *engine);

/*
 * What an executor is told of a job's allocation: the one it holds, or the 'next' one, which
 * it is to get when the jobs that hold it now have left.  Lists live in 'arena'.
 */
struct lease engine_lease(const struct engine *engine, job_id job, bool next,
                          struct arena *arena);

/* When somebody wants to be asked next; INT64_MAX: never. */
static inline int64_t engine_wake_ns(const struct engine *engine)
{
    return engine->wake_ns < engine->flow_wake_ns ? engine->wake_ns
                                                  : engine->flow_wake_ns;
}

/*
 * Apply events, decide once, record the orders, make them durable, tell the executor;
 * then ask the flow policy, whose answer is events too.  One that is asked because of its
 * own wish, with nothing new, is asked alone.
 * Fails only if the store or the executor does; a policy that errs is set aside.
 */
int engine_step(struct engine *engine, int64_t now_ns, struct event *events,
                uint32_t count, struct error *err);
