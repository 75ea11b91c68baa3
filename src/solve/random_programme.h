/*
 * random_programme.h - random programmes of any size, for benchmarks and tests.
 *
 * 26 kinds of job with a fastest type 1.5 to 10 times as fast as the slowest, some of
 * which prefer another type than most; gangs of 1, 2, 4 and 8; every fifth job of
 * weight 2; each job's rates off by up to 15 %, so that no two are identical.
 */
#pragma once

#include <stdint.h>

struct arena;

struct random_programme_setup {
    uint32_t job_count, type_count;
    double jobs_per_gpu;
    double noise; /* 0.15; 0: as many distinct rows as there are kinds */
    uint64_t seed;
};

/* Arrays are by job unless said otherwise. */
struct random_programme {
    uint32_t job_count, type_count;
    double *capacity; /* [type]                                              */
    double *gang;
    double *rate;    /* [job][type] steps per second                        */
    double *weight;  /* 1 or 2                                              */
    double *steps;   /* left                                                */
    double *age_s;   /* since submission */
    double *alone_s; /* what it did so far would have taken on its own part */
};

/* Allocated in 'arena'. */
void random_programme_make(struct random_programme *drawn, struct arena *arena,
                           const struct random_programme_setup *setup);

/* Goals that jobs can be buyers for. */
enum random_goal { RANDOM_MAX_MIN, RANDOM_MAKESPAN, RANDOM_FINISH_TIME };

struct buyer;

/* Job 'job' as a buyer; its rates are written to 'ret_rate' [type]. */
struct buyer random_programme_buyer(const struct random_programme *drawn,
                                    enum random_goal goal, uint32_t job,
                                    double *ret_rate);
