/*
 * ground.h - the machines of a world as they are, whatever the scheduler believes.
 *
 * An executor in virtual time that stands on its own feet: it knows jobs by their public ids
 * and attempts, keeps which process sits on which GPU, and goes on while nobody schedules.
 * So it can be a judge: two processes on a GPU that do not share it, a second process of the
 * same job, a process that nobody ordered are seen here, not in the scheduler's own books.
 *
 * What it says goes over a wire that delays, loses and repeats, and that is cut when the
 * scheduler dies.  As with real supervisors, an end is told again until it is durable.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "executor/executor.h"
#include "model/event.h"
#include "model/job.h"

struct outbox;
struct throughput;

#define GROUND_NODES 8      /* of a world, at most     */
#define GROUND_ATTEMPTS 128 /* under way, at most      */
#define GROUND_WAITS 32     /* for so many, at most    */

/* What may go wrong, and is counted. */
enum fault {
    FAULT_LATE,         /* an answer comes late                                   */
    FAULT_LOST,         /* an answer is lost, and told again when nobody heard it */
    FAULT_REPEATED,     /* an answer comes a second time, some time later         */
    FAULT_STALE,        /* an answer of another attempt, or of another job's slot */
    FAULT_START,        /* a start fails                                          */
    FAULT_NODE,         /* a node dies                                            */
    FAULT_GRACE,        /* a job is killed because it ignores its grace           */
    FAULT_ABSURD,       /* a report that cannot be                                */
    FAULT_FOREIGN,      /* others use a GPU                                       */
    FAULT_CANCEL,       /* people: cancel, hold or release, change, change policy */
    FAULT_HOLD,         /*                                                        */
    FAULT_CHANGE,       /*                                                        */
    FAULT_POLICY,       /*                                                        */
    FAULT_CRASH_BEFORE, /* the daemon dies before its commit                      */
    FAULT_CRASH_AFTER,  /* after it, before anybody is told                       */
    FAULT_CRASH_AMID,   /* while the executor is told                             */
    FAULT_CRASH_IDLE,   /* between two steps                                      */
    FAULT_COUNT
};

extern const char *const fault_names[FAULT_COUNT];

/* What is so of a job; 'said' is what was said of it at the door. */
struct ground_truth {
    struct job said;
    double steps;
    int64_t pause_ns, load_ns, ckpt_ns;
    int64_t report_ns; /* it reports so often; 0: never */
    bool fails, absurd;
    double kept; /* steps that are saved */
};

enum ground_phase {
    GROUND_WAITS_FOR, /* ordered: others have to leave first; known to nobody but us */
    GROUND_STARTING,
    GROUND_LOADING,
    GROUND_RUNNING,
    GROUND_DONE, /* waits for its partner to be done as well */
    GROUND_IDLE,
    GROUND_RESIZING,
    GROUND_LEAVING,
    GROUND_OVER, /* its end is kept until it is durable */
};

struct ground_attempt {
    uint64_t id;
    uint32_t attempt;
    job_id slot; /* as the scheduler of this life names it */
    uint32_t generation;
    enum ground_phase phase;
    struct seat seats[GROUND_NODES], next[GROUND_NODES];
    uint32_t seat_count, next_count;
    uint32_t type;
    bool spread, together, resized;
    uint64_t beside;
    struct ground_wait {
        uint64_t id;
        uint32_t attempt;
    } after[GROUND_WAITS];
    uint32_t after_count;
    double steps, rate_per_s;
    int64_t anchor_ns, ran_ns;
    double lease_end; /* 0: open */
    uint64_t resized_max;
    int64_t done_ns;   /* while it runs: when its lease or its work is done */
    int64_t report_ns; /* when it reports next                             */
    int64_t due_ns;
    bool doomed;     /* its start fails                         */
    bool clean;      /* while it leaves: it saves in time        */
    bool named;      /* after a restart: the scheduler knows it  */
    int64_t wire_ns; /* what it says next does not come earlier */
    uint64_t left;   /* seats that others may want: the larger the later; 0: none */
    enum event_kind end;
    double end_kept;
};

struct ground_message {
    struct event event;
    int64_t at_ns;
    uint64_t order;
};

struct ground {
    const struct cluster *cluster;
    const struct throughput *rates;
    const struct view *view;     /* of the present scheduler: names only */
    struct ground_truth *truths; /* by public id */
    uint32_t truth_count;
    struct rng rng;
    bool faulty;      /* something may go wrong now       */
    uint32_t trouble; /* per mille of answers             */
    int64_t mtbf_ns, mttr_ns;
    int64_t now_ns;
    bool node_down[GROUND_NODES];
    int64_t node_due_ns[GROUND_NODES];
    uint64_t foreign[GROUND_NODES];
    struct ground_attempt attempts[GROUND_ATTEMPTS];
    uint32_t attempt_count;
    struct ground_message *wire;
    uint32_t wire_count, wire_room;
    uint64_t order;
    uint64_t faults[FAULT_COUNT];

    /* On purpose, to see that it is noticed. */
    bool starts_early, starts_half;

    /* The ground has seen something that must not be: does not return. */
    void (*broken)(const char *fmt, ...)
        __attribute__((format(printf, 1, 2), noreturn));
};

extern const struct executor executor_ground;

void ground_init(struct ground *ground, const struct cluster *cluster,
                 const struct throughput *rates, uint64_t seed);
void ground_release(struct ground *ground);

/* When something happens next, or something that was said arrives. */
int64_t ground_next_ns(const struct ground *ground);
void ground_advance(struct ground *ground, int64_t now_ns);

/* What has arrived by now. */
void ground_hear(struct ground *ground, struct outbox *inbox);

/* From now on nothing goes wrong, and what is down comes back. */
void ground_calm(struct ground *ground);

/* Others use these GPUs of a node now. */
void ground_set_foreign(struct ground *ground, node_id node, uint64_t gpus);

/* An end is durable: its attempt may be forgotten. */
void ground_recorded(struct ground *ground, uint64_t id, uint32_t attempt);

/* The scheduler is gone: what was said and not heard, and what only it knew. */
void ground_cut(struct ground *ground);

/*
 * A new scheduler, of this view: it names all it believes to be under way, then settles.
 * What has become of them is told again.
 */
void ground_meet(struct ground *ground, const struct view *view);
void ground_reattach(struct ground *ground, const struct lease *lease, bool stopping,
                     int64_t grace_left_ns);
void ground_settle(struct ground *ground, const bool *believed_down,
                   const uint64_t *believed_foreign);

/* It was to go on elsewhere, as the scheduler of this life knows it, and has. */
bool ground_has_moved(const struct ground *ground,
                      const struct ground_attempt *attempt);

/* The attempt of a job, or NULL. */
const struct ground_attempt *ground_find(const struct ground *ground, uint64_t id,
                                         uint32_t attempt);
static inline bool ground_is_there(const struct ground_attempt *attempt)
{
    return attempt->phase >= GROUND_STARTING && attempt->phase <= GROUND_LEAVING;
}
