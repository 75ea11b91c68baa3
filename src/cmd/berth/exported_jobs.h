/* exported_jobs.h - jobs as GET /v1/export tells them, as a workload has them. */
#pragma once

#include <stdbool.h>

#include "base/keyed_hash.h"
#include "base/map.h"
#include "model/job.h"

struct arena;
struct call;
struct error;
struct json;

struct exported_jobs {
    bool hashes; /* names are replaced by hashes under the key */
    struct keyed_hash hash;
    struct arena *texts; /* hashed names live there               */
    struct map commands; /* hash of a command to the place of its first id */
    uint64_t *firsts;    /* of commands                          */
    uint32_t first_room;
    double zero_s; /* time 0 of the workload, since 1970    */
};

void exported_jobs_release(struct exported_jobs *exported);

/* A job; its texts belong to 'job' or, if they were hashed, to the arena. */
struct job_spec exported_job_read(struct exported_jobs *exported,
                                  const struct json *job);

/*
 * Ask for the jobs that were submitted since then, page by page; with 'live' also for those that
 * have not ended.
 */
int exported_pages_read(struct call *call, double since_s, bool live,
                        void (*take)(void *context, const struct json *page),
                        void *context, struct error *err);
