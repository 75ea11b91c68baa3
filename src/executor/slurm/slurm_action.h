/*
 * slurm_action.h - the state machine of a job on Slurm: from what we want of it and from what
 * Slurm has of it follows the next action.
 *
 * slurm_action_next() reads no clock, sends nothing and keeps nothing: slurm_drive.c describes
 * the situation, and performs the action.  docs/internals/slurm.md has the transitions.
 */
#pragma once

#include <stdbool.h>

#include "host/bridge_protocol.h"

/* What we want of a job, and how far that has come. */
enum slurm_stage {
    /* not in the engine's books */
    STAGE_NEW,       /* its script has not been read yet                     */
    STAGE_READ,      /* to be submitted to berthd                            */
    STAGE_SUBMITTED, /* the engine is about to hear of it                    */
    STAGE_UNMANAGED, /* left to Slurm: its hold is to be lifted              */
    STAGE_CLOSED,    /* it stays as it is: refused, or reported as ended     */

    /* in the engine's books */
    STAGE_WAIT,   /* held until it is its turn                               */
    STAGE_RUN,    /* to run on the nodes of its lease: enum slurm_progress   */
    STAGE_STOP,   /* to be preempted: signalled first, if it asks for that   */
    STAGE_SAVE,   /* preempted: its grace period runs                        */
    STAGE_EVICT,  /* preempted: its requeue was asked for                    */
    STAGE_CANCEL, /* to be cancelled, and no longer in the books perhaps     */
};

/* How far the attempt of a lease has come. */
enum slurm_progress {
    PROGRESS_PLACED,   /* Slurm has not been asked for anything              */
    PROGRESS_RELEASED, /* Slurm has been asked to start it                   */
    PROGRESS_LOADING,  /* it was reported as started                         */
    PROGRESS_STEPS,    /* it makes steps                                     */
};

/* Of a job that ended and asks to be put back into the queue. */
enum slurm_revival {
    REVIVAL_NONE,
    REVIVAL_ASKED,
    REVIVAL_REFUSED,
};

/* What Slurm has of a job. */
enum slurm_observed {
    OBSERVED_PENDING, /* Slurm may start it                                  */
    OBSERVED_HELD,    /* pending, and Slurm may not                          */
    OBSERVED_RUNNING, /* or suspended: its GPUs are its own                  */
    OBSERVED_LEAVING, /* completing, and it will be pending, or nobody knows */
    OBSERVED_ENDING,  /* completing, and it has ended                        */
    OBSERVED_ENDED,
};

/* Whether a job that has a lease may be released now. */
enum slurm_turn {
    TURN_NOW,
    TURN_AFTER_PREDECESSORS, /* they are not about to leave                    */
    TURN_AFTER_NEIGHBOURS,   /* others of the node need whole GPUs: they first */
};

/*
 * All that the next action depends on.  The rest of what is known of a job does not matter to
 * it; what a stage has no use for need not be set.
 */
struct slurm_situation {
    enum slurm_stage stage;
    enum slurm_progress progress;
    enum slurm_revival revival;
    enum slurm_observed observed;
    enum slurm_turn turn;
    enum bridge_state state; /* of one that has ended: how, and with these   */
    int exit_code, signal;
    bool can_requeue;         /* a batch job that may be requeued             */
    bool due;                 /* the time has come that the stage waits for   */
    bool polled;              /* nothing was asked for since Slurm was polled */
    bool has_record;          /* outside the books: what it asks for is known */
    bool is_batch;            /* outside the books: it has a script           */
    bool is_array;            /* outside the books: of tasks without numbers  */
    bool depends;             /* on other jobs, by Slurm's dependencies       */
    bool parked;              /* and Slurm looks at them                      */
    bool has_seats;           /* of a lease                                   */
    bool in_place;            /* it runs on the nodes of its lease            */
    bool predecessors_booked; /* they still have its GPUs in the books       */
    bool restarted;           /* it was requeued since its start was asked for */
    bool never_starts;        /* Slurm says that it cannot start on its nodes */
    bool node_lost;           /* one of its nodes is down                     */
    bool load_over;           /* the time has passed that it takes to load    */
    bool guarded;             /* if it is requeued it comes back held         */
    bool wants_signal;        /* before it is preempted                       */
};

enum slurm_action {
    ACTION_NONE,  /* until something changes                                 */
    ACTION_WAIT,  /* until the time that the stage waits for                 */
    ACTION_RETRY, /* look again in a moment                                  */
    ACTION_WATCH, /* it runs: the end of its lease, of loading, its guard    */

    /* requests to Slurm */
    ACTION_SPLIT, /* hold a task of its array: so it gets a number     */
    ACTION_READ_SCRIPT,
    ACTION_RELEASE,
    ACTION_HOLD,
    ACTION_GUARD, /* hold it while it runs: so it comes back held      */
    ACTION_PARK,
    ACTION_START,
    ACTION_SIGNAL,
    ACTION_EVICT,
    ACTION_REVIVE,
    ACTION_CANCEL,
    ACTION_POLL,

    /* to berthd and its engine */
    ACTION_SUBMIT,
    ACTION_ADOPT, /* it runs without us: into the books         */
    ACTION_MOVE,  /* it runs elsewhere: into the books there    */
    ACTION_REPORT_STARTED,
    ACTION_REPORT_LOADED,
    ACTION_REPORT_NOT_STARTED, /* Slurm has not started it in time           */
    ACTION_REPORT_STOPPED,     /* it ran, and is back in the queue           */
    ACTION_REPORT_NODE_LOST,   /* the same, and it may still run there       */
    ACTION_REPORT_FINISHED,
    ACTION_REPORT_FAILED,    /* it has ended in another way                */
    ACTION_REPORT_WITHDRAWN, /* it has ended before it began               */
};

enum slurm_action slurm_action_next(const struct slurm_situation *situation);

/* It ended where it was preempted, or asks to be put back, and Slurm can do that. */
bool slurm_action_comes_back(const struct slurm_situation *situation);

/* It left with one of the exit codes that say: saved, put me back into the queue. */
bool slurm_action_has_saved(int exit_code, int signal);

/* It is being preempted. */
static inline bool slurm_stage_leaves(enum slurm_stage stage)
{
    return stage >= STAGE_STOP && stage <= STAGE_EVICT;
}
