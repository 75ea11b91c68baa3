/* event.h - what can happen, and its one-line text form. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "model/view.h"

enum event_kind {
    /* from people and workloads */
    EVENT_SUBMITTED, /* 'spec': a job arrived; state_apply() gives it a slot   */
    EVENT_REJECTED,  /* one that can never run arrived: counted, not kept      */
    EVENT_CLOSED,    /* no more are expected: a workload's end, a drain        */
    EVENT_CANCELLED, /* its owner wants it gone                                */
    EVENT_HELD,
    EVENT_RELEASED,
    EVENT_CHANGED, /* 'spec': changed settings of a held job                   */

    /* from an executor; of the attempt that the event names */
    EVENT_STARTED,    /* all ranks are up; 'loaded' if it makes steps already  */
    EVENT_LOADED,     /* it makes steps from now on                            */
    EVENT_PROGRESS,   /* 'steps', 'rate_per_s', 'loss'                         */
    EVENT_SENT,       /* 'sends_per_s', 'sent_bytes': what its hosts have counted */
    EVENT_GPU_USE,    /* 'gpu_mib', 'gpu_busy': what its processes do with a GPU */
    EVENT_LEASE_DONE, /* made the steps of its lease; idles in its seats       */
    EVENT_RESIZED,    /* goes on in its next seats                             */
    EVENT_STOPPED,    /* left its seats; 'steps' are kept                      */
    EVENT_FINISHED,   /* done                                                  */
    EVENT_FAILED,     /* ended by itself, in failure                           */
    EVENT_LOST,       /* its node died, or the start failed; 'steps' are kept  */
    EVENT_NODE_DOWN,
    EVENT_NODE_UP,
    EVENT_FOREIGN, /* 'gpus' of 'node' are in use by others; replaces what was so */

    /* the calendar of availability */
    EVENT_RESERVED, /* 'entry' is in the calendar, in place of the one with its id    */
    EVENT_BOUNDARY, /* entries begin or end now; from the engine                      */

    /* from the engine: orders */
    EVENT_PLACED,   /* 'seats' are its own once its victims have stopped     */
    EVENT_RECALLED, /* told to stop, by 'rule' for 'beneficiary'                */
    EVENT_RESIZING, /* 'seats' are to replace those it holds                 */
    EVENT_RENEWED,  /* goes on in the same seats with a new lease            */
    EVENT_LEVELLED, /* its packets have 'level' from now on, on all its hosts */
    EVENT_DROPPED,  /* given up on: it ends without having run to its end    */

    /* from the store, after a restart: what no other event brings back */
    EVENT_RESTORED, /* 'spec': times, steps and counts as they were          */

    /* to a policy only */
    EVENT_ADOPTED, /* a policy takes over: this job waits or runs */
    EVENT_RATED,   /* the job's expected rates have changed       */
    EVENT_WAKE,    /* the time it asked for                       */
    EVENT_KIND_COUNT
};

/* Why a running job is told to stop. */
enum rule {
    RULE_NONE,
    RULE_ORDER,    /* a job ahead in the policy's order needs its GPUs     */
    RULE_TRIAL,    /* a trial job must start                               */
    RULE_ROUND,    /* the round is over                                    */
    RULE_RESIZE,   /* it goes on with another size or elsewhere            */
    RULE_CANCEL,   /* its owner wants it gone                              */
    RULE_CALENDAR, /* its GPUs are about to be unavailable, or another user's */
    RULE_COUNT
};

/* Room on one of a leaving job's nodes that goes to another job. */
struct pending_part {
    job_id victim;
    struct room_part {
        node_id node;
        uint32_t cpu_milli;
        uint32_t mem_mib;
        uint64_t gpus;
    } part;
};

struct calendar_entry;

/* What a job has been through, as far as it matters to policies. */
struct restored {
    const int64_t *served_ns;     /* GPU-time by type                   */
    const double *steps, *losses; /* its newest reports, oldest first   */
    uint32_t report_count;
};

struct event {
    int64_t at_ns;
    enum event_kind kind;
    job_id job;
    uint32_t generation; /* of the slot; 0: any */
    uint32_t attempt;
    bool loaded;
    bool clean;    /* STOPPED: saved its state before it left                    */
    bool measured; /* LOADED: by its first step; STOPPED: by its own leaving;
                      PROGRESS: its rate, by a clock                            */
    enum rule rule;
    int exit_code; /* FINISHED, FAILED, STOPPED: its own; 128 + n: ended by signal n */
    const char
        *why; /* FAILED, LOST, CANCELLED: the reason, borrowed; or NULL          */
    union {
        struct {                            /* SUBMITTED, REJECTED, CHANGED, RESTORED */
            const struct job *spec;         /* as admission made it        */
            const struct restored *history; /* RESTORED: and what came before */
            const void *tag; /* SUBMITTED: the submitter's own, for its observers */
        };
        struct { /* PLACED, RESIZING, RENEWED */
            const struct seat *seats;
            const struct pending_part *pending_shares;
            uint32_t seat_count;
            uint32_t pending_count;
            uint64_t steps_max;
            job_id beside;
            bool spread;
        };
        struct {                  /* PROGRESS, STOPPED, FINISHED, LOST, LEASE_DONE */
            double steps;         /* done, or kept                               */
            double steps_reached; /* had been made when it left: more than kept  */
            double rate_per_s;    /* 0: not known                                */
            double loss;          /* NAN: none                                   */
            double steps_total;   /* PROGRESS: steps in all; 0: not reported     */
            double steps_saved;   /* PROGRESS: in a checkpoint; 0: not reported  */
            int64_t age_ns;       /* PROGRESS: so long ago the steps were made   */
        };
        struct { /* RECALLED */
            int64_t grace_ns;
            int64_t
                wait_saved_ns; /* expected, for 'beneficiary'; -1: unknown          */
            job_id beneficiary;
        };
        struct {              /* GPU_USE */
            uint32_t gpu_mib; /* memory on one GPU, the most so far; 0: not known  */
            double gpu_busy;  /* part of the time it computes, alone; 0: not known */
        };
        struct { /* NODE_DOWN, NODE_UP, FOREIGN */
            node_id node;
            uint64_t gpus;
        };
        const struct calendar_entry *entry; /* RESERVED; borrowed */
        uint32_t level;                     /* LEVELLED: 0 goes first */
        struct {                            /* SENT */
            double sends_per_s;             /* bytes; 0: next to nothing */
            double sent_bytes;              /* since its first start     */
        };
    };
};

/* "started", as in logs and golden cases. */
const char *event_name(enum event_kind kind);
const char *rule_name(enum rule rule);

/*
 * For keeping an order of waiting jobs: from this event on the job waits for seats;
 * from this event on it no longer does.  'view' is as it is after the event.
 */
static inline bool event_makes_waiting(const struct event *event,
                                       const struct view *view)
{
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_STOPPED:
    case EVENT_LOST:
    case EVENT_RELEASED:
    case EVENT_ADOPTED:
        return view->jobs[event->job].state == JOB_WAITING;
    default:
        return false;
    }
}

static inline bool event_ends_waiting(const struct event *event,
                                      const struct view *view)
{
    switch (event->kind) {
    case EVENT_PLACED:
        return view->jobs[event->job].state == JOB_PLACED;
    case EVENT_HELD:
    case EVENT_DROPPED:
        return true;
    case EVENT_CANCELLED:
        return view->jobs[event->job].state == JOB_FREE;
    default:
        return false;
    }
}

/* A job that runs may end at another time than was expected before. */
static inline bool event_changes_running(const struct event *event,
                                         const struct view *view)
{
    return event->kind == EVENT_LOADED || event->kind == EVENT_PROGRESS ||
           event->kind == EVENT_RESIZED ||
           (event->kind == EVENT_RATED && job_runs(&view->jobs[event->job]));
}

/* The job waits, and its place in an order by its work or its rates may be another one. */
static inline bool event_rates_waiting(const struct event *event,
                                       const struct view *view)
{
    return event->kind == EVENT_RATED && view->jobs[event->job].state == JOB_WAITING;
}

/* The same for preemptible jobs: they hold seats and are not about to change their size. */
static inline bool event_makes_running(const struct event *event,
                                       const struct view *view)
{
    switch (event->kind) {
    case EVENT_STARTED:
    case EVENT_RESIZED:
    case EVENT_ADOPTED:
        return job_is_preemptible(&view->jobs[event->job]);
    default:
        return false;
    }
}

static inline bool event_ends_running(const struct event *event,
                                      const struct view *view)
{
    switch (event->kind) {
    case EVENT_RESIZING:
        return true;
    case EVENT_RECALLED:
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
    case EVENT_LOST:
        return !job_runs(&view->jobs[event->job]);
    default:
        return false;
    }
}

/* Where a job did not fit before such an event, it does not fit after it. */
bool event_makes_no_room(const struct event *event);
