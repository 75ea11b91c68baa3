/*
 * history.h - what forecasts are made from: how long jobs ran, and when jobs are submitted.
 *
 *     history_submitted(&history, job);          with every submission
 *     history_ended(&history, job, work_s);      with every end
 *     history_freeze(&history);                  another thread reads it now
 *     history_thaw(&history);                    it does no more; once for each time
 *
 * While it is frozen what comes in is kept aside, and added when it is thawed; of more than
 * HISTORY_ASIDE_MAX the rest is forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "forecast/arrivals.h"
#include "predict/run_times.h"

#define HISTORY_ASIDE_MAX 32768

struct history_entry;

struct forecast_history {
    struct run_times times;
    struct arrivals arrivals;
    struct history_entry *aside;
    uint32_t aside_count, aside_room;
    uint32_t frozen; /* times */
};

void history_init(struct forecast_history *history);
void history_release(struct forecast_history *history);

void history_submitted(struct forecast_history *history, const struct job *job);

/* It has ended, after so much work (run_times_work_s()). */
void history_ended(struct forecast_history *history, const struct job *job,
                   double work_s);

void history_freeze(struct forecast_history *history);
void history_thaw(struct forecast_history *history);
