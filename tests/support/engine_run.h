/*
 * engine_run.h - a list of jobs through the real engine and the simulated cluster.
 *
 * Like 'berth sim', with what tests want besides: any policy table, nodes that go down
 * at a given time, an executor that says everything twice, the books checked after every
 * event, and one number for all that happened.
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

/* A node that is away from one time to another; up_ns 0: for good. */
struct outage {
    node_id node;
    int64_t down_ns, up_ns;
};

struct engine_run;

/* Somebody who interferes: people, the machine, whoever runs the daemon. */
struct interference {
    void *self;

    /* When there is something to do next; INT64_MAX: nothing. */
    int64_t (*next_ns)(void *self);

    /* A job is about to arrive: what is said of it may be changed. */
    void (*arrives)(void *self, struct engine_run *run, struct job *job);

    /* Before and after each step, with engine_run_add_event() and engine_run_restart() at hand. */
    void (*before)(void *self, struct engine_run *run, int64_t now_ns);
    void (*after)(void *self, struct engine_run *run, int64_t now_ns);
};

struct engine_run_setup {
    const struct cluster *cluster;
    const struct throughput *rates; /* NULL: no rows */
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
    bool repeats;       /* everything the executor says is said twice               */
    bool unchecked;     /* leave state_check() out: for speed                       */
    uint32_t turns_max; /* give up after so many; 0: 20,000                        */
    struct engine_observer
        observer; /* or zero: told of every event, after the books' check */
    const struct interference *interference; /* or NULL */
    const char *store_path; /* remember everything there, no figures then; or NULL    */
};

struct engine_run {
    const struct engine_run_setup *setup;
    struct arena arena, instant;
    struct arena life; /* of the engine */
    struct throughput no_rates;
    struct engine engine;
    struct sim_cluster sim;
    struct outbox outboxes[2];
    uint32_t reading;
    struct admission admission;
    struct metrics metrics;
    const struct job_spec **arrived; /* of the instant, accepted */
    uint32_t arrived_count, admitted_count;
    uint32_t next;    /* spec to arrive next                             */
    bool closed;      /* that it was the last has been said              */
    uint32_t outages; /* done, downs and ups counted                     */

    uint64_t hash;     /* of all events                                  */
    uint64_t outcome;  /* of who came, started, stopped and ended when, in any order */
    uint32_t accepted; /* jobs                                           */
    uint32_t rejected;
    uint32_t ended;
    uint8_t *ends; /* by public id: times it ended; ids are at most spec_count   */
    bool gave_up;

    const struct policy *policy; /* in office */
    const char *settings;
    struct store *store; /* or NULL */
    struct ledger ledger;
};

/* Ids of the specs are 1 … spec_count; where one is 0 it is filled in. */
void engine_run_play(struct engine_run *run, const struct engine_run_setup *setup);
void engine_run_release(struct engine_run *run);

/* Something is said now, to be heard in the next step; job may be JOB_NONE. */
struct event *engine_run_add_event(struct engine_run *run, enum event_kind kind,
                                   job_id job, int64_t now_ns);

/* Another policy takes office. */
void engine_run_set_policy(struct engine_run *run, const struct policy *policy,
                           const char *settings);

/*
 * Throw the engine away and build it again from the store, as after a crash between two
 * steps.  Fails the test unless everything is as it was.
 */
void engine_run_restart(struct engine_run *run, int64_t now_ns);

/* For engine_run_restart(): a new engine with all who listen to it. */
void engine_run_open_engine(struct engine_run *run);

/* Seats of all placements, steps, rules, for whom: a number for one event. */
uint64_t engine_run_hash_event(uint64_t hash, const struct view *view,
                               const struct event *event);
