/* forecasts_internal.h - what forecasts.c and forecast_loader.c share. */
#pragma once

#include <uv.h>

#include "daemon/forecast_worker.h"
#include "daemon/forecasts.h"
#include "forecast/history.h"

#define FORECAST_KINDS_MAX 64 /* policies */

/* Forecasts under one policy. */
struct forecast_policy {
    char policy[64];
    struct forecast_choice *choices[FORECAST_TARGETS];
};

/* What was forecast of a live job, by slot. */
struct forecast_mark {
    uint64_t job;
    struct {
        struct forecast_policy *kind;
        uint64_t number; /* there */
        bool made, over;
    } of[FORECAST_TARGETS];
};

/* What users are told of a job, from the last pass. */
struct expected_job {
    bool is_made;
    struct expected_time start, end;
};

struct forecast_loader;

struct forecasts {
    struct scheduler *scheduler;
    bool is_off;
    struct forecast_worker *worker;
    struct forecast_rows *rows;
    struct forecast_history history;
    struct forecast_loader *loader; /* while history is read from the store, or NULL */
    struct forecast_policy kinds[FORECAST_KINDS_MAX];
    uint32_t kind_count;
    struct forecast_mark *marks; /* by slot, of the present engine; or NULL */
    uint32_t mark_count;

    uv_timer_t timer;
    struct forecast_pass_task *task; /* under way, or NULL */
    bool changed;                    /* since the last snapshot           */
    int64_t next_ns;                 /* no pass begins before, on the steady clock */
    struct start_times times;        /* of the last pass                  */
    struct forecast_policy *times_kind;
    struct expected_job *expected; /* by number in 'times', once they were asked for */
    struct forecast_quality quality[FORECAST_TARGETS]; /* at that time */
    struct forecasts_status status;
    char reason[240];
    void (*told)(void *context);
    void *told_context;
};

/* The kind of a policy, made if it is new; NULL: there are too many. */
struct forecast_policy *forecasts_find_kind(struct forecasts *forecasts,
                                            const char *policy);

/* Read what is known of ended jobs, little by little; then loaded() is called. */
void forecast_loader_start(struct forecasts *forecasts,
                           void (*loaded)(struct forecasts *forecasts));

/* Stop in the middle, if it has not ended. */
void forecast_loader_stop(struct forecasts *forecasts);
