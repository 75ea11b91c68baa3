/*
 * engine_run.h - run a list of jobs with the real engine and the simulated cluster.
 *
 * Like 'berth sim', with additions for tests: any policy table, nodes that go down at a
 * given time, an executor that repeats its events, the state checked after every event, and
 * a hash of all events.
 */
#pragma once

#include "support/cases.h"

#include <stdbool.h>

#include "base/arena.h"
#include "engine/engine.h"
#include "executor/sim/sim.h"
#include "flow/flow.h"
#include "metrics/ledger.h"
#include "metrics/metrics.h"
#include "model/cluster.h"
#include "model/admission.h"
#include "model/outbox.h"
#include "model/throughput.h"
#include "policy/policy.h"

/* A node that is down from one time to another; up_ns 0: forever. */
struct outage {
    node_id node;
    int64_t down_ns, up_ns;
};

struct engine_run;

/* Interference by users, machines or administrators. */
struct interference {
    void *self;

    /* The time of the next action; INT64_MAX: none. */
    int64_t (*next_ns)(void *self);

    /* A job is about to be submitted, and may be changed. */
    void (*arrives)(void *self, struct engine_run *run, struct job *job);

    /* Before and after each step; may call engine_run_add_event() and _restart(). */
    void (*before)(void *self, struct engine_run *run, int64_t now_ns);
    void (*after)(void *self, struct engine_run *run, int64_t now_ns);
};

struct engine_run_setup {
    const struct cluster *cluster;
    const struct throughput *rates; /* NULL: no rows */
    const struct throughput
        *hidden; /* true rates that are learned; jobs share by consent */
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow; /* or NULL */
    const char *flow_settings;
    const struct job_spec *specs; /* in order of submission */
    uint32_t spec_count;
    const double *beliefs; /* factors on the work that is declared, or NULL */
    struct sim_faults faults;
    const struct outage *outages;
    uint32_t outage_count;
    uint64_t seed;
    bool repeats;       /* the executor sends its events twice                     */
    bool unchecked;     /* leave state_check() out: for speed                       */
    uint32_t turns_max; /* give up after so many; 0: 20,000                        */
    struct engine_observer
        observer; /* or zero: observes each event, after the check      */
    const struct interference *interference; /* or NULL */
    const char *store_path; /* store everything there, without metrics; or NULL       */
};

struct engine_run {
    const struct engine_run_setup *setup;
    struct arena arena, instant;
    struct arena engine_arena;
    struct throughput no_rates;
    struct engine engine;
    struct sim_cluster sim;
    struct outbox outboxes[2];
    uint32_t reading;
    struct admission admission;
    struct metrics metrics;
    const struct job_spec **arrived; /* accepted in this instant */
    uint32_t arrived_count, admitted_count;
    uint32_t next;    /* spec to be submitted next                       */
    bool closed;      /* EVENT_CLOSED was sent                           */
    uint32_t outages; /* changes that are done                           */

    uint64_t hash;     /* of all events                                  */
    uint64_t outcome;  /* of submissions, starts, stops and ends, in any order */
    uint32_t accepted; /* jobs                                           */
    uint32_t rejected;
    uint32_t ended;
    uint8_t *ends; /* by public id: times it ended; ids are at most spec_count   */
    bool gave_up;

    const struct policy *policy; /* installed */
    const char *settings;
    struct store *store; /* or NULL */
    struct ledger ledger;
};

/* Ids of the specs are 1 … spec_count; where one is 0 it is filled in. */
void engine_run_play(struct engine_run *run, const struct engine_run_setup *setup);
void engine_run_release(struct engine_run *run);

/* Add an event for the next step; job may be JOB_NONE. */
struct event *engine_run_add_event(struct engine_run *run, enum event_kind kind,
                                   job_id job, int64_t now_ns);

/* Switch to another policy. */
void engine_run_set_policy(struct engine_run *run, const struct policy *policy,
                           const char *settings);

/*
 * Release the engine and recover it from the store, as after a crash between two steps.
 * Fails the test unless everything is as it was.
 */
void engine_run_restart(struct engine_run *run, int64_t now_ns);

/* For engine_run_restart(): open a new engine with all its listeners. */
void engine_run_open_engine(struct engine_run *run);

/* Add an event to a hash: allocations, steps, rules, beneficiaries. */
uint64_t engine_run_hash_event(uint64_t hash, const struct view *view,
                               const struct event *event);
