/*
 * gates.h - what must come before a job may wait for room: its owner's leave, a time,
 * other jobs, its turn in an array.
 *
 * A job behind a closed gate is held, so no policy sees it.  Gates are asked again when a
 * job has started or ended and at the time the earliest of them opens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/request.h"
#include "base/map.h"

struct buf;

/* How somebody else's job stands, for those who depend on it. */
enum outcome {
    OUTCOME_UNKNOWN,
    OUTCOME_WAITS,
    OUTCOME_RUNS,
    OUTCOME_OK,
    OUTCOME_NOT_OK
};

struct gate {
    uint64_t id; /* public; 0: nobody stands at it */
    job_id job;
    bool held;     /* by its owner */
    char *outside; /* what somebody else makes it wait for, in his words; or NULL */
    int64_t begin_ns;
    struct dependency *dependencies; /* those that are still open */
    uint32_t dependency_count;
    bool never; /* a dependency can no longer be met */
    uint64_t array_id;
    uint32_t array_limit; /* so many of the array at once; 0: all */
    char *name;
    uint32_t uid;
};

struct gates {
    struct gate *gates; /* in the order of their ids */
    uint32_t count, room;
    struct map open; /* jobs of a limited array that are past the gate, by array id */

    enum outcome (*outcome)(void *context, uint64_t id);
    bool (*alone)(void *context, uint64_t id, const char *name, uint32_t uid);
    void *context;
};

void gates_release(struct gates *gates);

/* Whether this request has to stand at a gate, at 'now_ns'. */
bool gates_needed(const struct request *request, uint32_t array_limit, int64_t now_ns);

/* Somebody takes his stand. */
void gates_add(struct gates *gates, const struct request *request, job_id job,
               uint32_t array_limit);

/* One of a limited array had passed before we came. */
void gates_passed(struct gates *gates, uint64_t array_id);

/* He is gone: cancelled. */
void gates_drop(struct gates *gates, uint64_t id);

/* His owner's word; false if he does not stand at a gate. */
bool gates_hold(struct gates *gates, uint64_t id, bool held);

/* The same for what others make him wait for; NULL: for nothing. */
bool gates_outside(struct gates *gates, uint64_t id, const char *what);

struct gate *gates_find(const struct gates *gates, uint64_t id);

/* A job that had passed, or was never held, has ended: the next of its array may come. */
void gates_ended(struct gates *gates, uint64_t array_id);

/*
 * Ask every gate.  'passed' is called for those that are open now and forgotten; 'never'
 * for those that will never be.  Returns when to ask again; INT64_MAX: when something
 * happens.
 */
int64_t gates_ask(struct gates *gates, int64_t now_ns,
                  void (*passed)(void *context, job_id job, uint64_t id),
                  void (*never)(void *context, job_id job, uint64_t id), void *context);

/* What somebody waits for, in words: "after job 7 has completed". */
void gates_explain(const struct gate *gate, int64_t now_ns, struct buf *text);
