/*
 * stop_costs.h - how long a job takes to save a checkpoint, and to resume.
 *
 * These times are those declared for the job; otherwise the average measured with jobs of its
 * kind; otherwise estimated from its model's size, if known; otherwise the average measured
 * with all jobs.
 */
#pragma once

#include <stdbool.h>

#include "model/view.h"

struct arena;
struct event;

#define STOP_COSTS_KINDS_MAX 256

/* Moving averages of measured times: each new sample counts half. */
struct stop_costs_measured {
    double pause_s, load_s;
    bool has_pause, has_load;
};

struct stop_costs {
    struct stop_costs_measured *kinds, all_jobs;
};

/* All memory is taken from 'run'. */
void stop_costs_init(struct stop_costs *costs, struct arena *run);

/* Must see every event of a job. */
void stop_costs_observe(struct stop_costs *costs, const struct view *view,
                        const struct event *event);

/* Know what another one has measured. */
void stop_costs_inherit(struct stop_costs *costs, const struct stop_costs *from);

/* Expected time to checkpoint the job now, and to resume it. */
double stop_costs_pause_s(const struct stop_costs *costs, const struct view *view,
                          job_id job);
double stop_costs_load_s(const struct stop_costs *costs, const struct view *view,
                         job_id job);
