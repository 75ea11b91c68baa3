/*
 * run_times.h - how long finished jobs ran, and samples of that for jobs that have not ended.
 *
 *     run_times_init(&times);
 *     run_times_add(&times, job, work_s);                  with every job that has ended
 *     run_sampler_init(&sampler, &times, arena);           for one forecast
 *     list = run_sampler_enter(&sampler, job);             once for each job
 *     run_sampler_begin(&sampler, seed);                   for each replicate
 *     work_s = run_sampler_draw(&sampler, list, job, done_s);
 *
 * A run time is the job's work in seconds on the fastest type that it may use, at the size that it
 * asked for: a measure that preemptions and slower types do not change.
 *
 * A job is expected to run as long as one of the last RUN_TIMES_OF_KEY that ended of its user, name
 * and size, of its user and size, or of its size; of all jobs where fewer than RUN_TIMES_ENOUGH are
 * known of these.  Waiting jobs of one key get the run times of consecutive jobs, since jobs that
 * are submitted together are alike.  One that has run for some time gets a run time that is longer.
 *
 * Of a job that declares its work, the ratio of run time to declared work is what is sampled; where
 * declared work is often wrong, to a power of it between 0 and 1, as jobs like it had it: of several
 * jobs those that declare the most are those that declare too much.
 *
 * Memory is bounded: the last RUN_TIMES_RECORDS jobs that ended are known, of whatever key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/rng.h"

struct arena;
struct job;

#define RUN_TIMES_RECORDS 32768
#define RUN_TIMES_OF_KEY 400
#define RUN_TIMES_ENOUGH 5
#define RUN_TIMES_NONE UINT32_MAX

/* What the jobs of a list have in common; the narrowest first. */
enum run_basis {
    RUN_BASIS_NAME, /* and user and size */
    RUN_BASIS_USER, /* and size          */
    RUN_BASIS_SIZE,
    RUN_BASIS_ALL,
    RUN_BASIS_COUNT
};

struct run_record;

struct run_times {
    struct run_record *records; /* a ring */
    uint64_t count;             /* ever added; the number of a record counts from 1 */
    struct map newest;          /* hash of a key to the place of its newest record */
};

void run_times_init(struct run_times *times);
void run_times_release(struct run_times *times);

/* A job has ended, after so much work. */
void run_times_add(struct run_times *times, const struct job *job, double work_s);

/*
 * The newest run times of jobs like this one, or with 'ratios' their ratios to the declared work,
 * oldest first.  Returns how many; 0 if there are fewer than RUN_TIMES_ENOUGH of all jobs.
 */
uint32_t run_times_list(const struct run_times *times, const struct job *job,
                        bool ratios, double ret_values[RUN_TIMES_OF_KEY],
                        enum run_basis *ret_basis);

/* Run times, or ratios, that jobs of one key draw from. */
struct run_list {
    const double *values; /* as the jobs ended          */
    const double *sorted; /* the same, the least first  */
    uint32_t count;       /* 0: nothing is known        */
    enum run_basis basis;
    bool ratios;
    double slope;   /* of ratios: to this power of the declared work */
    uint32_t first; /* of this replicate: the next job gets the value at */
    uint32_t taken; /* (first + taken) % count                           */
    uint64_t seed;  /* of the replicate that 'first' was drawn in        */
};

struct run_sampler {
    const struct run_times *times;
    struct arena *arena;
    struct run_list *lists;
    uint32_t list_count, list_room;
    struct map keys;
    uint32_t
        all[2]; /* lists of all jobs: run times, ratios; RUN_TIMES_NONE: not made yet */
    struct rng rng;
    uint64_t seed;
    bool sizes_only; /* names, users and declared work are not looked at */
};

/* 'times' must not change while it is used.  run_sampler_release() it. */
void run_sampler_init(struct run_sampler *sampler, const struct run_times *times,
                      struct arena *arena);
void run_sampler_release(struct run_sampler *sampler);

/* The list that this job draws from; RUN_TIMES_NONE: nothing can be said of it. */
uint32_t run_sampler_enter(struct run_sampler *sampler, const struct job *job);

/* Begin another replicate: the same seed gives the same draws. */
void run_sampler_begin(struct run_sampler *sampler, uint64_t seed);

/* Seconds of work in all of a job that has done so much of it: more than that. */
double run_sampler_draw(struct run_sampler *sampler, uint32_t list,
                        const struct job *job, double done_s);

/* "name", "user", "size", "all"; "estimate" where ratios to declared work were drawn. */
const char *run_list_basis(const struct run_list *list);

/* Seconds of work on the fastest type that the job may use. */
double run_times_work_s(const struct job *job, double steps);
