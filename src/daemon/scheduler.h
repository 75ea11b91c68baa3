/*
 * scheduler.h - the engine as berthd runs it: fed with events, built from the store.
 *
 * Requests and executors add events, which ask for a pass.  A pass applies all of them at
 * once; only when they are durable are orders carried out and requests answered.  After the
 * store could not be written everything here is thrown away and read back, as after a crash:
 * so there is one way to start, and it is always in use.
 */
#pragma once

#include <uv.h>

#include "api/request.h"
#include "base/arena.h"
#include "daemon/limits.h"
#include "daemon/start_conditions.h"
#include "engine/engine.h"
#include "metrics/ledger.h"
#include "model/admission.h"
#include "model/outbox.h"

struct cluster;
struct executor;
struct flows;
struct forecasts;
struct launch;
struct progress;
struct store;
struct throughput;
struct users;

/* What berthd knows of a live job and no policy needs. */
struct scheduler_job {
    uint32_t uid;
    uint32_t retries;
    bool requeue;
    uint64_t array_id;
    bool limited;          /* its array has a limit of jobs at once */
    double total;          /* steps it says it will make; 0: it has not said */
    uint32_t losses;       /* in a row, each soon after its start */
    bool refused;          /* its last attempt was not begun */
    uint32_t gpu_mib_said; /* memory of a GPU that it declared; 0: none      */
    uint32_t gpu_mib_seen; /* the most that its processes had, as it was told */
    double gpu_busy,
        gpu_busy_told;       /* mean of the time it computes, alone; and of an event */
    uint32_t gpu_looks;      /* that the mean is of                            */
    bool gpu_exceeds;        /* it has more than it declared, beside another   */
    struct limits_mark mark; /* what it counts for its user   */
};

struct scheduler {
    /* Set by the owner before the start. */
    uv_loop_t *loop;
    struct store *store;
    const struct executor *executor;
    const struct cluster *cluster;
    const struct throughput *rates;
    struct flows *flows;
    struct progress *progress;
    struct forecasts *forecasts;
    struct users *users;
    struct limits *limits;
    uint32_t job_max;
    char *policy; /* NAME[,setting=value…] */
    int (*open_executor)(void *context, void **ret_self, struct error *err);
    void *context;

    uv_idle_t due; /* runs while a pass is wanted: the loop must not sleep */
    bool wanted;   /* a pass                                               */
    bool stopping; /* berthd is to end: nothing new is accepted            */
    int64_t wall_ns,
        steady_ns;       /* both clocks at the start                             */
    struct arena pass;   /* emptied when a pass has been committed               */
    struct arena lookup; /* of the request that was read last                    */
    struct request launch_request;

    /* Built from the store. */
    bool alive;
    char trouble[320]; /* why it is not: what the store said last */
    struct arena life;
    struct engine engine;
    struct ledger ledger;
    struct admission admission;
    void *executor_self;        /* NULL: not open */
    struct scheduler_job *jobs; /* by slot        */
    struct start_conditions conditions;
    bool check_conditions;
    int64_t conditions_ns; /* when to check them again */
    struct outbox outboxes[2];
    struct outbox *outbox; /* the one that is filled now                  */
    uint32_t coming;       /* jobs in it: submitted and not yet applied   */
    char refusal[200];  /* why the last attempt was not begun, of those that were not */
    int64_t refusal_ns; /* and when that was                           */
};

/* Why the last attempt of a job was not begun; NULL: it was, or there was none. */
const char *scheduler_refusal(const struct scheduler *scheduler, job_id job);

/* Why attempts are not begun just now; NULL: no attempt was refused lately. */
const char *scheduler_refuses_starts(const struct scheduler *scheduler);

/* The clock goes on from the newest event: the log never goes back. */
void scheduler_init(struct scheduler *scheduler);
void scheduler_release(struct scheduler *scheduler);

/*
 * Build everything from the store and take running jobs up again.  'foreign': GPUs that
 * others use now, as bits by node.
 */
int scheduler_start(struct scheduler *scheduler, const uint64_t *foreign,
                    struct error *err);
void scheduler_stop(struct scheduler *scheduler);

/* Apply all events that have come, decide, commit and carry out; until none is left. */
int scheduler_run(struct scheduler *scheduler, struct error *err);

/* When it has something to do next; INT64_MAX: when something happens. */
int64_t scheduler_wake_ns(const struct scheduler *scheduler);

/* The wall clock at the start, carried on by one that never goes back. */
int64_t scheduler_now_ns(const struct scheduler *scheduler);

/* Ask for a pass: everything that has come in by then is applied at once. */
void scheduler_want_pass(struct scheduler *scheduler);

/* Something happened to a job, or to none (JOB_NONE); asks for a pass. */
struct event *scheduler_add_event(struct scheduler *scheduler, enum event_kind kind,
                                  job_id job);

/* 0 if requests can be accepted, otherwise -EAGAIN with a sentence. */
int scheduler_check_open(const struct scheduler *scheduler, struct error *err);

/* The live job of that id, or JOB_NONE. */
job_id scheduler_find(const struct scheduler *scheduler, uint64_t id);

/* How a job stands, for jobs that depend on it; the context is the scheduler. */
enum outcome scheduler_outcome(void *context, uint64_t id);

/*
 * Hold a job that waits, or release it; 'outside' is what a cluster manager makes it wait
 * for, or NULL.  Jobs that run are left alone.
 */
void scheduler_hold(struct scheduler *scheduler, job_id job, bool held);
void scheduler_wait_outside(struct scheduler *scheduler, job_id job,
                            const char *outside);

/* For executors; the context is the scheduler. */
int64_t scheduler_executor_now(void *context);
void scheduler_executor_wake(void *context);
int scheduler_executor_launch(void *context, uint64_t id,
                              const struct launch **ret_launch, struct error *err);
