/*
 * faulty.h - the machines of a world as they are, whatever the scheduler believes.
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

#define FAULTY_NODES 8      /* of a world, at most     */
#define FAULTY_ATTEMPTS 128 /* under way, at most      */
#define FAULTY_WAITS 32     /* for so many, at most    */

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
struct faulty_truth {
    struct job said;
    double steps;
    int64_t pause_ns, load_ns, ckpt_ns;
    int64_t report_ns; /* it reports so often; 0: never */
    bool fails, absurd;
    double kept; /* steps that are saved */
};

enum faulty_phase {
    FAULTY_WAITS_FOR, /* ordered: others have to leave first; known to nobody but us */
    FAULTY_STARTING,
    FAULTY_LOADING,
    FAULTY_RUNNING,
    FAULTY_DONE, /* waits for its partner to be done as well */
    FAULTY_IDLE,
    FAULTY_RESIZING,
    FAULTY_LEAVING,
    FAULTY_OVER, /* its end is kept until it is durable */
};

struct faulty_attempt {
    uint64_t id;
    uint32_t attempt;
    job_id slot; /* as the scheduler of this life names it */
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

struct faulty_message {
    struct event event;
    int64_t at_ns;
    uint64_t order;
};

struct faulty {
    const struct cluster *cluster;
    const struct throughput *rates;
    const struct view *view;     /* of the present scheduler: names only */
    struct faulty_truth *truths; /* by public id */
    uint32_t truth_count;
    struct rng rng;
    bool faults_on;   /* something may go wrong now       */
    uint32_t trouble; /* per mille of answers             */
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

    /* On purpose, to see that it is noticed. */
    bool starts_early, starts_half;

    /* The faulty has seen something that must not be: does not return. */
    void (*broken)(const char *fmt, ...)
        __attribute__((format(printf, 1, 2), noreturn));
};

extern const struct executor executor_faulty;

void faulty_init(struct faulty *faulty, const struct cluster *cluster,
                 const struct throughput *rates, uint64_t seed);
void faulty_release(struct faulty *faulty);

/* When something happens next, or something that was said arrives. */
int64_t faulty_next_ns(const struct faulty *faulty);
void faulty_advance(struct faulty *faulty, int64_t now_ns);

/* What has arrived by now. */
void faulty_receive(struct faulty *faulty, struct outbox *inbox);

/* From now on nothing goes wrong, and what is down comes back. */
void faulty_stop_faults(struct faulty *faulty);

/* Others use these GPUs of a node now. */
void faulty_set_foreign(struct faulty *faulty, node_id node, uint64_t gpus);

/* An end is durable: its attempt may be forgotten. */
void faulty_end_recorded(struct faulty *faulty, uint64_t id, uint32_t attempt);

/* The scheduler is gone: what was said and not heard, and what only it knew. */
void faulty_disconnect(struct faulty *faulty);

/*
 * A new scheduler, of this view: it names all it believes to be under way, then settles.
 * What has become of them is told again.
 */
void faulty_connect(struct faulty *faulty, const struct view *view);
void faulty_reattach(struct faulty *faulty, const struct lease *lease, bool stopping,
                     int64_t grace_left_ns);
void faulty_end_reattach(struct faulty *faulty, const bool *believed_down,
                         const uint64_t *believed_foreign);

/* It was to go on elsewhere, as the scheduler of this life knows it, and has. */
bool faulty_has_moved(const struct faulty *faulty,
                      const struct faulty_attempt *attempt);

/* The attempt of a job, or NULL. */
const struct faulty_attempt *faulty_find(const struct faulty *faulty, uint64_t id,
                                         uint32_t attempt);
static inline bool faulty_is_present(const struct faulty_attempt *attempt)
{
    return attempt->phase >= FAULTY_STARTING && attempt->phase <= FAULTY_LEAVING;
}
