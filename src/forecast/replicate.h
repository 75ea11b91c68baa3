/*
 * replicate.h - one possible future of an engine: a copy of it, played forward.
 *
 *     replicate_init(&replicate, source, &setup, &err);
 *     replicate_begin(&replicate, seed, &err);                    as the source is now
 *     replicate_play(&replicate, horizon_ns, event_max, &err);
 *     ... replicate.starts[slot], replicate.ends[slot] ...
 *
 * The copy decides with the same policy from the same beliefs; a simulated cluster takes the place
 * of the executor.  How much work each job truly has is asked of the setup and told to that cluster
 * alone, so what was drawn at random never reaches the policy.  The source is not changed, and must
 * not change meanwhile.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "engine/engine.h"
#include "executor/sim/sim.h"
#include "model/outbox.h"

struct error;

#define REPLICATE_NOT_YET INT64_MAX

/* A held job that will be released: at this time or later, when these jobs have ended. */
struct replicate_release {
    job_id job;
    int64_t at_ns;
    const job_id *after;
    uint32_t after_count;
};

/* What happened in one future, until the time it was played to. */
struct replicate_figures {
    uint32_t
        jobs; /* live at the beginning and not held, or released or submitted since */
    uint32_t finished, preemptions;
    double waiting_s, live_s; /* over all jobs: without seats, and not ended */
    double held_gpu_s, gpu_s; /* held by jobs, and there were                */
};

struct replicate_setup {
    const char *settings; /* of the source's policy, or NULL                        */
    uint32_t more_jobs;   /* that may be live at once, of those yet to be submitted */
    bool starts_only;     /* a job that has started is awaited no more              */
    bool to_horizon;      /* play on when no job is awaited any more                */
    bool reports;         /* jobs report progress and use the network               */
    const atomic_bool *cancelled; /* or NULL: when it becomes true, -ECANCELED      */
    const struct replicate_release *releases; /* of other held jobs nothing is known */
    uint32_t release_count;

    /* What is true of a live job of the copy's view; 'ret_truth' has the declared costs. */
    void (*truth)(void *context, const struct view *view, job_id job,
                  struct sim_truth *ret_truth);

    /* Optional.  The next job to be submitted, in order of time; NULL: there are no more. */
    const struct job *(*arrival)(void *context);
    void *context;
};

struct replicate {
    const struct engine *source;
    struct replicate_setup setup;
    struct arena run;   /* the engine                */
    struct arena round; /* the cluster, of one replicate */
    struct engine engine;
    struct sim_cluster cluster;
    bool has_cluster;
    struct outbox outboxes[2];
    uint32_t reading;
    const struct job *next; /* to be submitted */
    bool *released;         /* by number of the release                       */
    bool look_at_releases;  /* a job has ended since                          */
    int64_t release_ns;     /* when the next may be                           */
    int64_t now_ns;
    uint64_t accepted_first, accepted_count; /* plans, before this play and so far */
    uint64_t refused_before;                 /* up to the last that was accepted   */

    /* By slot of the source's live jobs: when each starts next, and ends; REPLICATE_NOT_YET. */
    int64_t *starts, *ends;
    bool *awaited;          /* neither has happened: set before replicate_play() */
    uint32_t awaited_count; /* it stops when there are none                      */
    uint64_t event_count;   /* of the last play                                  */
    struct replicate_figures figures;
    uint32_t gpu_count; /* that jobs can have */
};

int replicate_init(struct replicate *replicate, const struct engine *source,
                   const struct replicate_setup *setup, struct error *err);
void replicate_release(struct replicate *replicate);

/* Be as the source is now, with random numbers of this seed; all live jobs are awaited. */
int replicate_begin(struct replicate *replicate, uint64_t seed, struct error *err);

/* Wait for this job alone, or for this one as well. */
void replicate_await_none(struct replicate *replicate);
void replicate_await(struct replicate *replicate, job_id job);

/*
 * Play until all awaited jobs have started and ended, 'horizon_ns' or so many events; 'now_ns' tells
 * how far it came.  -EINVAL with its reason if the policy fails until then.
 */
int replicate_play(struct replicate *replicate, int64_t horizon_ns, uint64_t event_max,
                   struct error *err);
