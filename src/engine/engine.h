/*
 * engine.h - events in, one decision, orders out.
 *
 * The simulator and the daemon both drive this and nothing else: they differ in where
 * events come from and in the executor that carries the orders out.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/histogram.h"
#include "engine/eligibility.h"
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
 * What sees every event after it was applied, our own orders included: metrics, the ledger,
 * a trace, the store.
 */
struct engine_observer {
    void (*event)(void *self, const struct view *view, const struct event *event);

    /* Optional.  All events so far must be durable when this returns. */
    int (*commit)(void *self, struct error *err);
    void *self;
    uint64_t kinds; /* of events it gets, as bits; 0: all */
};

#define OBSERVERS_MAX 8

struct engine {
    struct state state;
    struct plan *plan;
    struct arena round;    /* emptied after every step                          */
    struct arena own;      /* of the installed policy                           */
    struct arena spare;    /* of the one before, where policies are inherited   */
    struct arena flow_own; /* of the flow policy                                */
    struct planned_job *planned_jobs; /* by slot, while a plan becomes orders */

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
    uint8_t observers_of[EVENT_KIND_COUNT]; /* who gets events of a kind, as bits */

    uint64_t event_count;
    uint64_t decision_count;
    uint64_t refused_count; /* plans that were thrown away     */
    struct error *refusal;  /* why the last of them was        */
    int64_t wake_ns;        /* when the policy asked to be called; INT64_MAX: never */
    int64_t decided_ns;     /* when it was called last                            */
    int64_t flow_wake_ns;   /* the same for the flow policy                       */
    int64_t boundary_ns; /* when an entry of the calendar begins or ends; INT64_MAX */
    int64_t calendar_ns; /* when a job has to make way for one, or that            */
    job_id *leaving;     /* jobs that have to, in this step                        */
    uint32_t leaving_count;
    struct eligibility eligibility; /* which jobs the calendar keeps from the policy  */
    bool flatten; /* set all levels to 0 at the next step: the flow policy has none */
    uint64_t level_count; /* levels that were changed                           */
    uint64_t flow_refused_count; /* times the flow policy failed                  */

    /* Optional.  Tell a policy that takes over, by its recall(), of jobs that have ended. */
    void (*tell_past)(void *context, const struct engine *engine);
    void *past_context;

    /* Set both to have one of so many decisions timed; the engine itself never reads a clock. */
    int64_t (*clock_ns)(void);
    uint32_t timed_every;
    struct histogram decide_ns;
};

struct engine_setup {
    const struct cluster *cluster;
    const struct throughput *rates;
    const struct policy *policy;
    const char *settings;           /* "name=value,…", or NULL */
    const struct flow_policy *flow; /* or NULL */
    const char *flow_settings;
    const struct executor *executor;
    void *executor_self;
    uint32_t job_max;
    uint64_t seed;
    bool learns; /* rates of jobs without a row in 'rates', from their reports */
};

/* Everything lives in 'run'. */
int engine_init(struct engine *engine, struct arena *run,
                const struct engine_setup *setup, struct error *err);
void engine_release(struct engine *engine);
void engine_add_observer(struct engine *engine, struct engine_observer observer);

/*
 * Switch to another policy.  It gets every live job as an 'adopted' event and decides at
 * the next step; no job is disturbed by the switch itself.  If it cannot be set up, the
 * present one stays.
 */
int engine_set_policy(struct engine *engine, const struct policy *policy,
                      const char *settings, struct error *err);

/*
 * Install another instance of the source's policy, with what is known there beyond the live jobs.
 * The state is a copy of the source's, slot by slot.  engine_adopt_jobs() is to follow.
 */
int engine_inherit_policy(struct engine *engine, const struct engine *source,
                          const char *settings, struct error *err);

/* Report every live job to the policy. */
void engine_adopt_jobs(struct engine *engine);

/*
 * Switch to another flow policy.  Levels stay until it has decided; with one that assigns
 * none all jobs get level 0.
 */
int engine_set_flow(struct engine *engine, const struct flow_policy *flow,
                    const char *settings, struct error *err);

/*
 * Apply an event of the log to the state alone: no decision, no policy, no observers.  False
 * if it does not apply.  Call engine_adopt() after the last.
 */
bool engine_replay(struct engine *engine, struct event *event);

/* After a replay: report every live job to the policies. */
void engine_adopt(struct engine *engine);

/*
 * What an executor gets to know of a job's allocation: the one it holds, or the 'next' one, which
 * it is to get when the jobs that hold it now have left.  Lists live in 'arena'.
 */
struct lease engine_lease(const struct engine *engine, job_id job, bool next,
                          struct arena *arena);

/* When a policy asked to be called next, or the calendar needs it; INT64_MAX: never. */
static inline int64_t engine_wake_ns(const struct engine *engine)
{
    int64_t wake_ns =
        engine->wake_ns < engine->flow_wake_ns ? engine->wake_ns : engine->flow_wake_ns;
    return wake_ns < engine->calendar_ns ? wake_ns : engine->calendar_ns;
}

/*
 * Apply events, decide once, record the orders, make them durable, tell the executor;
 * then ask the flow policy, which answers in events too.  Without events, only the policy
 * that asked to be called by now is asked.  Fails only if the store or the executor does: a
 * plan that breaks the rules is dropped.
 */
int engine_step(struct engine *engine, int64_t now_ns, struct event *events,
                uint32_t count, struct error *err);
