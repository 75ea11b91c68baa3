/*
 * dependencies.h - jobs that wait for other jobs to end.
 *
 * Whom a job waits for is asked when it has been submitted: jobs that live then.  All others are
 * over, or never come.
 */
#pragma once

#include "base/map.h"
#include "model/job.h"

struct changes;
struct state;

struct dependency_edge;

struct dependencies {
    struct map first; /* by public id of the job that is waited for, an edge */
    struct dependency_edge *edges;
    uint32_t edge_count, edge_room;
    uint32_t *left; /* by slot: jobs that it still waits for */
    uint32_t left_room;
};

/*
 * The job in this slot, which is held, waits for those named in 'after': "12|15".  It is released
 * at once if none of them lives.
 */
void dependencies_add(struct dependencies *dependencies, const struct state *state,
                      job_id job, const char *after, struct changes *changes);

/* A job has ended: release those that waited for it as the last. */
void dependencies_end(struct dependencies *dependencies, const struct state *state,
                      uint64_t id, struct changes *changes);

void dependencies_release(struct dependencies *dependencies);
