/*
 * forecasts.h - when jobs will start and end, as berthd tells its users.
 *
 * After jobs were submitted, started or have ended the engine is played forward from a snapshot, in
 * a thread beside the loop (forecast_worker.h), at most for a small part of the time.  What comes of
 * it is kept until the next time.  The first forecast of each job is stored with its outcome, by
 * which later ones are set right (predict/forecast_choice.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "forecast/start_times.h"
#include "predict/forecast_choice.h"
#include "store/forecast_rows.h"

struct buf;
struct engine;
struct forecasts;
struct forecast_worker;
struct forecast_history;
struct prometheus;
struct scheduler;
struct start_conditions;

/* What is expected of one time: of a start or an end. */
struct expected_time {
    bool known;
    int64_t at_ns[QUANTILE_COUNT]; /* TIME_LATER: beyond the horizon             */
    int64_t horizon_ns;
    int64_t made_ns;
    double later;      /* share of the futures in which it is beyond the horizon */
    bool baseline;     /* waits of other jobs, not played forward                */
    const char *basis; /* of run times: "name", …, "waits" of the baseline       */
    uint32_t basis_count;
    const char *policy;
    double coverage_80; /* of the last 'coverage_count' such forecasts           */
    uint32_t coverage_count;
};

/* 'made' false: none are made, but what needs the thread can still ask for it. */
struct forecasts *forecasts_new(struct scheduler *scheduler, bool made);

/* Before the loop is closed; then, after that, the memory is freed. */
void forecasts_stop(struct forecasts *forecasts);
void forecasts_free(struct forecasts *forecasts);

/* A new engine has its jobs: observe it.  Earlier ends are read from the store little by little. */
void forecasts_attach(struct forecasts *forecasts, struct engine *engine);

/* The engine goes: nothing is played forward any more. */
void forecasts_detach(struct forecasts *forecasts);

/* 'told' is called after each new forecast. */
void forecasts_observe(struct forecasts *forecasts, void (*told)(void *context),
                       void *context);

/* What is expected of a live job; 'known' is false where nothing can be said. */
void forecasts_find(struct forecasts *forecasts, job_id job,
                    struct expected_time *ret_start, struct expected_time *ret_end);

/* The jobs of the last forecast, in the order of their ids; 0: there are no more. */
uint64_t forecasts_job(const struct forecasts *forecasts, uint32_t number);

/* The quantiles of a job that was played forward apart, set right in the same way. */
void forecasts_correct_start(struct forecasts *forecasts, const struct job_times *times,
                             const struct start_times *of, uint32_t gpus,
                             struct expected_time *ret_start);

/* What held jobs wait for now, as far as it can be played; the releases are to be freed. */
void forecasts_list_releases(const struct start_conditions *conditions,
                             struct start_releases *ret_releases);
void forecasts_free_releases(struct start_releases *releases);

/* For other tasks of the thread. */
struct forecast_worker *forecasts_worker(const struct forecasts *forecasts);
const struct forecast_history *forecasts_history(const struct forecasts *forecasts);

/* How the last pass went. */
struct forecasts_status {
    bool made;
    int64_t made_ns, horizon_ns, took_ns, copy_ns;
    uint32_t replicates, jobs;
    uint64_t passes, failures, cancelled;
    const char *reason; /* why there is no forecast, or "" */
};
struct forecasts_status forecasts_status(const struct forecasts *forecasts);

/* How well those of a policy turned out lately; false: there is no such kind. */
bool forecasts_quality(struct forecasts *forecasts, uint32_t kind,
                       enum forecast_row_target target, const char **ret_policy,
                       enum forecast_method *ret_best, struct forecast_quality *ret);

void forecasts_write_metrics(struct forecasts *forecasts, struct prometheus *out);
