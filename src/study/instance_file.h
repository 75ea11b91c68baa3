/*
 * instance_file.h - files of instances: jobs, accelerators, pairs and entities.
 *
 *     {"instances": [{"id": "small", "worker_types": ["k80", "v100"],
 *                     "num_workers": [4, 2],
 *                     "jobs": [{"id": 0, "scale_factor": 1, "throughputs": [1.5, 4]}]}]}
 *
 * and, where a policy needs them, of a job: priority_weight, num_steps_remaining,
 * time_since_start, isolated_seconds, SLO_seconds_left; of an instance: pairs, entities,
 * instance_costs_per_hour.  Further members are left alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "solve/solve.h"

struct arena;
struct error;

/* Arrays are by job unless noted. */
struct instance {
    const char *name; /* its id, or "instances[N]"                              */
    uint32_t place;   /* N                                                      */
    uint32_t job_count, type_count, pair_count, group_count;
    const char **types; /* [type]                                               */
    double *capacity;   /* [type]                                               */
    double *price;      /* [type]; NULL where there are none                    */
    const char **jobs;  /* ids, as text                                         */
    double *gang;
    double *rate;    /* [job][type]                                             */
    double *weight;  /* 1 where there is none                                   */
    double *steps;   /* -1: not given                                           */
    double *age_s;   /* -1: not given                                           */
    double *alone_s; /* 0 where there is none                                   */
    double *slo_s;   /* seconds to the deadline, <= 0: passed; INFINITY: none   */
    struct programme_pair *pairs;
    double *pair_rate; /* [pair][type][2]                                       */
    uint32_t *group;   /* NULL where there are no entities                      */
    struct programme_group *groups;
};

struct instance_file {
    const char *name; /* for messages */
    uint32_t count;
    struct instance *instances;
};

/* -EINVAL with "FILE: instances[3].jobs[7].throughputs[1]: …" for what makes no sense. */
int instance_file_parse(struct instance_file *file, struct arena *arena,
                        const char *name, const char *bytes, size_t count,
                        struct error *err);

/* The same from a file. */
int instance_file_read(struct instance_file *file, struct arena *arena,
                       const char *path, struct error *err);
