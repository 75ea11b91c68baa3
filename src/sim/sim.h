/* sim.h - run a workload to its end, in virtual time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/engine.h"
#include "executor/sim/sim.h"
#include "metrics/timeline.h"
#include "metrics/summary.h"

struct cluster;
struct error;
struct throughput;

/* A node goes down or comes back, or GPUs of it are in use by others, as EVENT_FOREIGN has it. */
struct sim_node_change {
    int64_t at_ns;
    enum event_kind kind;
    node_id node;
    uint64_t gpus;
};

/* From then on another policy decides. */
struct sim_policy_change {
    int64_t at_ns;
    const char *policy; /* "name,setting=value" */
};

struct sim_setup {
    const struct cluster *cluster;
    const struct throughput *rates;
    const char *workload;        /* a file or a preset with settings        */
    const char *format;          /* of the file; NULL: by content           */
    const struct job_spec *jobs; /* instead of a workload: these, in order   */
    uint64_t job_count;
    const char *policy; /* "name,setting=value"                    */
    const char *flow;   /* the same of a flow policy, or NULL      */
    struct fluid_setup network;
    uint64_t seed;
    uint64_t window_from, window_to; /* jobs that the figures are of; to 0: all */
    struct sim_faults faults;
    const struct sim_node_change *node_changes; /* in order */
    uint32_t node_change_count;
    const struct sim_policy_change *policy_changes; /* in order */
    uint32_t policy_change_count;
    const char *calendar;  /* a CSV file of what is unavailable, or NULL    */
    double cost_error;     /* sigma of the factor on declared pause and load */
    double estimate_error; /* sigma of the factor on declared work           */
    bool declare_curves;   /* jobs declare their learning curves             */
    bool learn_rates;      /* no rates are told: they are learned from reports */
    FILE *jobs_out;        /* a line per job, or NULL                        */
    FILE *ledger_out;      /* a line per preemption, or NULL                 */
    FILE *trace_out;       /* for Perfetto, or NULL                          */
    bool chart;            /* keep spans for a Gantt chart                   */
    bool times_all;        /* time every decision, not one of a few          */

    /* Optional.  Called now and then with jobs ended and expected (0: not known). */
    void (*progress)(void *context, uint64_t done, uint64_t expected);
    void *context;

    /* Optional.  Called after each step with what it led to; and an observer of all events. */
    void (*stepped)(void *context, const struct engine *engine);
    struct engine_observer observer;
    void *stepped_context;
};

/* How it went, besides the figures. */
struct sim_cost {
    uint64_t event_count;
    uint64_t decision_count;
    uint64_t refused_count; /* plans thrown away                        */
    char refusal[320];      /* why the last of them was                 */
    char rejection[320];    /* the first job refused, and why           */
    uint64_t job_count;     /* jobs read from the workload              */
    uint64_t skipped;       /* rows of a trace that are no job          */
    double wall_s;
    double decide_us_p50, decide_us_p99, decide_us_max;
    uint64_t peak_rss_bytes;
};

/* What became of the jobs that use the network. */
struct sim_network {
    const char *mode; /* "exact", "mean", …; NULL: there was none */
    uint64_t changes; /* times a job began or ended to send       */
    uint64_t levels;  /* times a job got another level            */
    uint32_t jobs;    /* at most at once                          */
};

struct sim_result {
    struct summary summary;
    struct sim_network network;
    struct sim_cost cost;
    struct timeline_bar *chart; /* free() it */
    uint32_t chart_count;
    bool chart_full;
    struct timeline_pair *pairs; /* of the chart; free() it */
    uint32_t pair_count;
};

/* -EINVAL for wrong input, with a sentence. */
int sim_run(const struct sim_setup *setup, struct sim_result *ret_result,
            struct error *err);
void sim_result_release(struct sim_result *result);
