/*
 * start_conditions.h - what must come before a job may be scheduled: its owner's release, a
 * time, other jobs, its turn in an array.
 *
 * A job that still has conditions is held, so no policy sees it.  They are checked again
 * when a job has started or ended, and at the earliest time that one of them names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/request.h"
#include "base/map.h"

struct buf;

/* How a job stands, for jobs that depend on it. */
enum outcome {
    OUTCOME_UNKNOWN,
    OUTCOME_WAITS,
    OUTCOME_RUNS,
    OUTCOME_OK,
    OUTCOME_NOT_OK
};

/* Everything that one job waits for. */
struct start_condition {
    uint64_t id; /* public */
    job_id job;
    bool held;     /* by its owner */
    char *outside; /* what a cluster manager makes it wait for, in its words; or NULL */
    int64_t begin_ns;
    struct dependency *dependencies; /* those that are not met come first */
    uint32_t dependency_count;       /* that are not met                  */
    uint32_t needed_count;           /* all of them                       */
    bool never;                      /* a dependency can no longer be met */
    uint64_t array_id;
    uint32_t array_limit; /* so many jobs of the array at once; 0: all */
    char *name;
    uint32_t uid;
};

struct start_conditions {
    struct start_condition *list; /* in the order of their ids */
    uint32_t count, room;
    struct map open;   /* jobs of a limited array that may start or have, by array id */
    struct map needed; /* jobs that conditions name, by id: how many do             */

    enum outcome (*outcome)(void *context, uint64_t id);
    bool (*alone)(void *context, uint64_t id, const char *name, uint32_t uid);
    void *context;
};

void conditions_release(struct start_conditions *conditions);

/* Whether a job with this request has to wait, at 'now_ns'. */
bool conditions_needed(const struct request *request, int64_t now_ns);

/* Add a job that has to wait. */
void conditions_add(struct start_conditions *conditions, const struct request *request,
                    job_id job);

/* A job has ended: it waits for nothing any more. */
void conditions_drop(struct start_conditions *conditions, uint64_t id);

/* A job of a limited array has no conditions any more, or has ended after that. */
void conditions_count_array(struct start_conditions *conditions, uint64_t array_id,
                            bool ended);

/* Its owner holds it, or no longer; false if the job waits for nothing. */
bool conditions_hold(struct start_conditions *conditions, uint64_t id, bool held);

/* The same for what a cluster manager makes it wait for; NULL: for nothing. */
bool conditions_wait_outside(struct start_conditions *conditions, uint64_t id,
                             const char *what);

/* Whether a job that waits names this one: after a restart its end has to be known again. */
bool conditions_need(const struct start_conditions *conditions, uint64_t id);

struct start_condition *conditions_find(const struct start_conditions *conditions,
                                        uint64_t id);

/*
 * Check all.  'met' is called for jobs that wait for nothing any more, 'never' for those
 * that would wait for ever; both are forgotten.  Returns when to check again; INT64_MAX:
 * when something happens.
 */
int64_t conditions_check(struct start_conditions *conditions, int64_t now_ns,
                         void (*met)(void *context, job_id job),
                         void (*never)(void *context, job_id job), void *context);

/* What a job waits for, as a sentence: "it waits until job 7 has completed". */
void conditions_explain(const struct start_condition *condition, int64_t now_ns,
                        struct buf *text);
