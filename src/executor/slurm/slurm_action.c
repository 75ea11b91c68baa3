/* slurm_action.c - the next action for a job, by its stage and by what Slurm has of it. */
#include "executor/slurm/slurm_action.h"

#include "model/launch.h"

typedef const struct slurm_situation situation;

/* It has not been reported as started. */
static bool has_not_begun(situation *at)
{
    return at->progress < PROGRESS_LOADING;
}

static bool has_ended(situation *at)
{
    return at->observed == OBSERVED_ENDING || at->observed == OBSERVED_ENDED;
}

static bool is_pending(situation *at)
{
    return at->observed == OBSERVED_PENDING || at->observed == OBSERVED_HELD;
}

/* --- outside the books, and waiting --------------------------------------------------- */

static enum slurm_action admit(situation *at)
{
    if (!at->has_record || (!is_pending(at) && at->observed != OBSERVED_RUNNING))
        return ACTION_NONE;
    if (at->is_array)
        return ACTION_SPLIT;
    return at->stage == STAGE_NEW && at->is_batch ? ACTION_READ_SCRIPT : ACTION_SUBMIT;
}

static enum slurm_action wait_for_turn(situation *at)
{
    if (has_ended(at))
        return ACTION_REPORT_WITHDRAWN;
    if (at->observed == OBSERVED_RUNNING)
        return ACTION_ADOPT;
    if (at->observed == OBSERVED_LEAVING)
        return ACTION_NONE;
    if (at->depends) /* a held job does not notice that what it depends on has ended */
        return at->parked ? ACTION_NONE : ACTION_PARK;
    return at->observed == OBSERVED_HELD ? ACTION_NONE : ACTION_HOLD;
}

/* --- an attempt ------------------------------------------------------------------------- */

/*
 * It ran, and is back in the queue.  If we did not requeue it, poll once more before that is
 * believed: Slurm may not have reported yet that its node is down.
 */
static enum slurm_action come_back(situation *at)
{
    if (has_not_begun(at) && at->predecessors_booked)
        return ACTION_RETRY;
    if (at->observed == OBSERVED_PENDING)
        return ACTION_HOLD;
    if (!at->polled && at->stage != STAGE_EVICT)
        return ACTION_POLL;
    return at->node_lost ? ACTION_REPORT_NODE_LOST : ACTION_REPORT_STOPPED;
}

static enum slurm_action release(situation *at)
{
    switch (at->turn) {
    case TURN_AFTER_PREDECESSORS:
        return ACTION_NONE; /* the end of one of them is followed by a look at this one */
    case TURN_AFTER_NEIGHBOURS:
        return ACTION_RETRY;
    case TURN_NOW:
        break;
    }
    return at->due ? ACTION_START : ACTION_WAIT;
}

static enum slurm_action wait_for_start(situation *at)
{
    if (at->progress == PROGRESS_PLACED)
        return release(at);
    if (at->restarted || !has_not_begun(at))
        return come_back(at);
    /* Slurm holds by itself what can never start there: no need to wait for that. */
    if (!at->due && !at->never_starts)
        return ACTION_WAIT;
    if (at->observed == OBSERVED_PENDING)
        return ACTION_HOLD;
    /* It may have started just before it was held. */
    return at->polled ? ACTION_REPORT_NOT_STARTED : ACTION_POLL;
}

static enum slurm_action keep_running(situation *at)
{
    if (has_not_begun(at) && at->predecessors_booked)
        return ACTION_RETRY;
    if (has_not_begun(at))
        return at->in_place ? ACTION_REPORT_STARTED : ACTION_MOVE;
    if (at->progress == PROGRESS_LOADING && at->load_over)
        return ACTION_REPORT_LOADED;
    return at->due && !at->guarded ? ACTION_GUARD : ACTION_WATCH;
}

/* --- its end ---------------------------------------------------------------------------- */

bool slurm_action_has_saved(int exit_code, int signal)
{
    return signal == 0 && (exit_code == LAUNCH_SAVED || exit_code == LAUNCH_SAVED_TOO);
}

bool slurm_action_comes_back(situation *at)
{
    bool told = slurm_stage_leaves(at->stage) && at->state == BRIDGE_FAILED;
    if (at->state == BRIDGE_CANCELLED || at->state == BRIDGE_COMPLETED ||
        at->state == BRIDGE_GONE || at->stage == STAGE_CANCEL)
        return false;
    return at->can_requeue &&
           (told || slurm_action_has_saved(at->exit_code, at->signal));
}

/*
 * Only its nodes are being cleaned up.  It is reported now, and so its successor is released:
 * when the nodes are free Slurm searches at once for a released job, and then not before its
 * next second.
 */
static bool is_over(situation *at)
{
    return at->state == BRIDGE_COMPLETED ||
           (at->state == BRIDGE_FAILED && !slurm_action_comes_back(at));
}

static enum slurm_action end(situation *at)
{
    bool cancelled = at->state == BRIDGE_CANCELLED || at->state == BRIDGE_GONE;
    if (at->observed == OBSERVED_ENDING && !is_over(at))
        return ACTION_NONE;
    if (slurm_action_comes_back(at) && at->revival != REVIVAL_REFUSED)
        return ACTION_REVIVE;
    if (has_not_begun(at) && cancelled)
        return ACTION_REPORT_WITHDRAWN;
    if (has_not_begun(at) && at->predecessors_booked)
        return ACTION_RETRY;
    return at->state == BRIDGE_COMPLETED ? ACTION_REPORT_FINISHED
                                         : ACTION_REPORT_FAILED;
}

/* --- every stage ------------------------------------------------------------------------ */

static enum slurm_action run(situation *at)
{
    if (has_ended(at))
        return end(at);
    if (is_pending(at))
        return wait_for_start(at);
    return at->observed == OBSERVED_RUNNING ? keep_running(at) : ACTION_NONE;
}

static enum slurm_action leave(situation *at)
{
    if (has_ended(at))
        return end(at);
    if (is_pending(at))
        return come_back(at);
    if (at->observed == OBSERVED_LEAVING)
        return ACTION_NONE;
    if (at->stage == STAGE_STOP && at->wants_signal)
        return ACTION_SIGNAL;
    return at->due ? ACTION_EVICT : ACTION_WAIT;
}

static enum slurm_action cancel(situation *at)
{
    if (!has_ended(at))
        return at->due ? ACTION_CANCEL : ACTION_WAIT;
    if (at->revival != REVIVAL_NONE && !at->polled)
        return ACTION_POLL; /* or it was put back, and that has not been reported */
    return at->has_seats ? end(at) : ACTION_NONE;
}

enum slurm_action slurm_action_next(situation *at)
{
    switch (at->stage) {
    case STAGE_NEW:
    case STAGE_READ:
        return admit(at);
    case STAGE_UNMANAGED:
        return at->observed == OBSERVED_HELD ? ACTION_RELEASE : ACTION_NONE;
    case STAGE_SUBMITTED:
    case STAGE_CLOSED:
        return ACTION_NONE;
    case STAGE_WAIT:
        return wait_for_turn(at);
    case STAGE_RUN:
        return run(at);
    case STAGE_STOP:
    case STAGE_SAVE:
    case STAGE_EVICT:
        return leave(at);
    case STAGE_CANCEL:
        return cancel(at);
    }
    return ACTION_NONE;
}
