/*
 * faulty.h - a simulated executor with faults, independent of the scheduler's state.
 *
 * It runs in virtual time, knows jobs by their public ids and attempts, keeps which process
 * uses which GPU, and continues while the scheduler is down.  So it can detect errors of the
 * scheduler: two processes on a GPU that do not share it, a second process of a job, a
 * process that was never ordered.
 *
 * Its messages go over a wire that delays, loses and repeats them, and that is cut when the
 * scheduler crashes.  As with real supervisors, an end is sent again until it is durable.
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

#define FAULTY_NODES 8      /* of a scenario, at most */
#define FAULTY_ATTEMPTS 128 /* at one time, at most   */
#define FAULTY_WAITS 32     /* attempts that one waits for, at most */

/* Faults, which are counted. */
enum fault {
    FAULT_LATE,         /* a message is late                                      */
    FAULT_LOST,         /* a message is lost, and sent again later                */
    FAULT_REPEATED,     /* a message arrives a second time, some time later       */
    FAULT_STALE,        /* a message of another attempt, or of another job's slot */
    FAULT_START,        /* a start fails                                          */
    FAULT_NODE,         /* a node fails                                           */
    FAULT_GRACE,        /* a job ignores its grace period and is killed           */
    FAULT_ABSURD,       /* a report with impossible figures                       */
    FAULT_FOREIGN,      /* another program uses a GPU                             */
    FAULT_CANCEL,       /* users: cancel, hold or release, change, change policy  */
    FAULT_HOLD,         /*                                                        */
    FAULT_CHANGE,       /*                                                        */
    FAULT_POLICY,       /*                                                        */
    FAULT_CRASH_BEFORE, /* berthd crashes before a commit                         */
    FAULT_CRASH_AFTER,  /* after it, before any order is given                    */
    FAULT_CRASH_AMID,   /* while it gives orders                                  */
    FAULT_CRASH_IDLE,   /* between two steps                                      */
    FAULT_COUNT
};

extern const char *const fault_names[FAULT_COUNT];

/* The true properties of a job; 'said' is its submission. */
struct faulty_truth {
    struct job said;
    double steps;
    int64_t pause_ns, load_ns, ckpt_ns;
    int64_t report_ns; /* between two reports; 0: never */
    bool fails, absurd;
    double kept; /* steps at the last checkpoint */
};

enum faulty_phase {
    FAULTY_WAITS_FOR, /* ordered, but other attempts have to end first */
    FAULTY_STARTING,
    FAULTY_LOADING,
    FAULTY_RUNNING,
    FAULTY_DONE, /* waits for its partner: both leases end together */
    FAULTY_IDLE,
    FAULTY_RESIZING,
    FAULTY_LEAVING,
    FAULTY_OVER, /* ended; kept until that is durable */
};

struct faulty_attempt {
    uint64_t id;
    uint32_t attempt;
    job_id slot; /* in the current scheduler */
    uint32_t generation;
    enum faulty_phase phase;
    struct seat seats[FAULTY_NODES], next[FAULTY_NODES];
    uint32_t seat_count, next_count;
    uint32_t type;
    bool spread, together, resized;
    uint64_t beside;
    struct faulty_wait {
        uint64_t id;
        uint32_t attempt;
    } after[FAULTY_WAITS];
    uint32_t after_count;
    double steps, rate_per_s;
    int64_t anchor_ns, ran_ns;
    double lease_end; /* 0: open */
    uint64_t resized_max;
    int64_t done_ns;   /* while it runs: when its lease or its work ends */
    int64_t report_ns; /* its next report                                */
    int64_t due_ns;
    bool doomed;     /* its start will fail                     */
    bool clean;      /* while it stops: it checkpoints in time  */
    bool named;      /* after a restart: it was reattached      */
    int64_t wire_ns; /* its next message does not arrive earlier */
    uint64_t left;   /* order in which GPUs were vacated; 0: it has not left any */
    enum event_kind end;
    double end_kept;
};

struct faulty_message {
    struct event event;
    int64_t at_ns;
    uint64_t order;
};

struct faulty {
    const struct cluster *cluster;
    const struct throughput *rates;
    const struct view *view;     /* of the current scheduler: for slots and ids only */
    struct faulty_truth *truths; /* by public id */
    uint32_t truth_count;
    struct rng rng;
    bool faults_on;   /* faults may happen now             */
    uint32_t trouble; /* per mille of messages with faults */
    int64_t mtbf_ns, mttr_ns;
    int64_t now_ns;
    bool node_down[FAULTY_NODES];
    int64_t node_due_ns[FAULTY_NODES];
    uint64_t foreign[FAULTY_NODES];
    struct faulty_attempt attempts[FAULTY_ATTEMPTS];
    uint32_t attempt_count;
    struct faulty_message *wire;
    uint32_t wire_count, wire_room;
    uint64_t order;
    uint64_t faults[FAULT_COUNT];

    /* Defects on purpose, which have to be detected. */
    bool starts_early, starts_half;

    /* Called when an error of the scheduler is detected; does not return. */
    void (*broken)(const char *fmt, ...)
        __attribute__((format(printf, 1, 2), noreturn));
};

extern const struct executor executor_faulty;

void faulty_init(struct faulty *faulty, const struct cluster *cluster,
                 const struct throughput *rates, uint64_t seed);
void faulty_release(struct faulty *faulty);

/* The time of the next change, or of the next message that arrives. */
int64_t faulty_next_ns(const struct faulty *faulty);
void faulty_advance(struct faulty *faulty, int64_t now_ns);

/* Move the messages that have arrived to the inbox. */
void faulty_receive(struct faulty *faulty, struct outbox *inbox);

/* End all faults: nodes come back, and foreign programs leave. */
void faulty_stop_faults(struct faulty *faulty);

/* Foreign programs use these GPUs of a node from now on. */
void faulty_set_foreign(struct faulty *faulty, node_id node, uint64_t gpus);

/* An end is durable: its attempt is removed. */
void faulty_end_recorded(struct faulty *faulty, uint64_t id, uint32_t attempt);

/* The scheduler crashed: drop messages on the wire, and attempts that wait to start. */
void faulty_disconnect(struct faulty *faulty);

/*
 * Connect a new scheduler with this view: it reattaches all jobs of its state, then ends the
 * reattachment.  What has become of them is sent again.
 */
void faulty_connect(struct faulty *faulty, const struct view *view);
void faulty_reattach(struct faulty *faulty, const struct lease *lease, bool stopping,
                     int64_t grace_left_ns);
void faulty_end_reattach(struct faulty *faulty, const bool *believed_down,
                         const uint64_t *believed_foreign);

/* Whether a resize that the current scheduler knows of is done. */
bool faulty_has_moved(const struct faulty *faulty,
                      const struct faulty_attempt *attempt);

/* The attempt of a job, or NULL. */
const struct faulty_attempt *faulty_find(const struct faulty *faulty, uint64_t id,
                                         uint32_t attempt);
static inline bool faulty_is_present(const struct faulty_attempt *attempt)
{
    return attempt->phase >= FAULTY_STARTING && attempt->phase <= FAULTY_LEAVING;
}
