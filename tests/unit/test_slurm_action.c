/*
 * test_slurm_action.c - the state machine of a job on Slurm: a table of situations with the
 * action that follows, and what holds in every situation there can be.
 */
#include "executor/slurm/slurm_action.h"

#include "model/launch.h"
#include "support/cases.h"

#define AT(...) \
    { \
        __VA_ARGS__ \
    }
#define NEW .stage = STAGE_NEW, .has_record = true
#define RUN(to) .stage = STAGE_RUN, .progress = PROGRESS_##to, .has_seats = true
#define LEAVE(how) .stage = STAGE_##how, .progress = PROGRESS_STEPS, .has_seats = true
#define SEEN(what) .observed = OBSERVED_##what
#define ENDED(how) .observed = OBSERVED_ENDED, .state = BRIDGE_##how
#define ENDING(how) .observed = OBSERVED_ENDING, .state = BRIDGE_##how

static const struct {
    struct slurm_situation at;
    enum slurm_action next;
} rows[] = {
    /* A job that is new: its array is split, its script read, then it is submitted. */
    { AT(NEW, SEEN(HELD), .is_array = true, .is_batch = true), ACTION_SPLIT },
    { AT(NEW, SEEN(HELD), .is_batch = true), ACTION_READ_SCRIPT },
    { AT(NEW, SEEN(RUNNING), .is_batch = true), ACTION_READ_SCRIPT },
    { AT(NEW, SEEN(PENDING)), ACTION_SUBMIT },
    { AT(.stage = STAGE_READ, .has_record = true, .is_batch = true, SEEN(HELD)),
      ACTION_SUBMIT },
    { AT(NEW, SEEN(LEAVING)), ACTION_NONE },
    { AT(NEW, ENDED(FAILED)), ACTION_NONE },
    { AT(.stage = STAGE_NEW, SEEN(HELD)), ACTION_NONE },
    { AT(.stage = STAGE_SUBMITTED, SEEN(RUNNING)), ACTION_NONE },
    { AT(.stage = STAGE_CLOSED, SEEN(PENDING)), ACTION_NONE },
    { AT(.stage = STAGE_UNMANAGED, SEEN(HELD)), ACTION_RELEASE },
    { AT(.stage = STAGE_UNMANAGED, SEEN(PENDING)), ACTION_NONE },

    /* Waiting. */
    { AT(.stage = STAGE_WAIT, SEEN(HELD)), ACTION_NONE },
    { AT(.stage = STAGE_WAIT, SEEN(PENDING)), ACTION_HOLD },
    { AT(.stage = STAGE_WAIT, SEEN(HELD), .depends = true), ACTION_PARK },
    { AT(.stage = STAGE_WAIT, SEEN(PENDING), .depends = true, .parked = true),
      ACTION_NONE },
    { AT(.stage = STAGE_WAIT, SEEN(RUNNING)), ACTION_ADOPT },
    { AT(.stage = STAGE_WAIT, SEEN(LEAVING)), ACTION_NONE },
    { AT(.stage = STAGE_WAIT, ENDING(CANCELLED)), ACTION_REPORT_WITHDRAWN },
    { AT(.stage = STAGE_WAIT, ENDED(GONE)), ACTION_REPORT_WITHDRAWN },

    /* Placed: released when those before it make way, and not on its own heels. */
    { AT(RUN(PLACED), SEEN(HELD), .due = true), ACTION_START },
    { AT(RUN(PLACED), SEEN(HELD)), ACTION_WAIT },
    { AT(RUN(PLACED), SEEN(HELD), .due = true, .turn = TURN_AFTER_PREDECESSORS),
      ACTION_NONE },
    { AT(RUN(PLACED), SEEN(HELD), .due = true, .turn = TURN_AFTER_NEIGHBOURS),
      ACTION_RETRY },
    { AT(RUN(PLACED), SEEN(LEAVING), .due = true), ACTION_NONE },
    { AT(RUN(PLACED), ENDED(CANCELLED), .predecessors_booked = true),
      ACTION_REPORT_WITHDRAWN },

    /* Released: after its time it is held again, looked at once more, and given up. */
    { AT(RUN(RELEASED), SEEN(PENDING)), ACTION_WAIT },
    { AT(RUN(RELEASED), SEEN(PENDING), .due = true), ACTION_HOLD },
    { AT(RUN(RELEASED), SEEN(HELD), .due = true), ACTION_POLL },
    { AT(RUN(RELEASED), SEEN(HELD), .due = true, .polled = true),
      ACTION_REPORT_NOT_STARTED },
    { AT(RUN(RELEASED), SEEN(HELD), .never_starts = true), ACTION_POLL },
    { AT(RUN(RELEASED), SEEN(RUNNING), .in_place = true), ACTION_REPORT_STARTED },
    { AT(RUN(RELEASED), SEEN(RUNNING), .in_place = true, .predecessors_booked = true),
      ACTION_RETRY },
    { AT(RUN(RELEASED), SEEN(RUNNING)), ACTION_MOVE },
    { AT(RUN(RELEASED), SEEN(PENDING), .restarted = true), ACTION_HOLD },

    /* Running. */
    { AT(RUN(LOADING), SEEN(RUNNING), .load_over = true), ACTION_REPORT_LOADED },
    { AT(RUN(LOADING), SEEN(RUNNING)), ACTION_WATCH },
    { AT(RUN(STEPS), SEEN(RUNNING), .due = true), ACTION_GUARD },
    { AT(RUN(STEPS), SEEN(RUNNING), .due = true, .guarded = true), ACTION_WATCH },
    { AT(RUN(STEPS), SEEN(LEAVING)), ACTION_NONE },

    /* Back in the queue by itself, or with its node. */
    { AT(RUN(STEPS), SEEN(PENDING)), ACTION_HOLD },
    { AT(RUN(STEPS), SEEN(HELD)), ACTION_POLL },
    { AT(RUN(STEPS), SEEN(HELD), .polled = true), ACTION_REPORT_STOPPED },
    { AT(RUN(STEPS), SEEN(HELD), .polled = true, .node_lost = true),
      ACTION_REPORT_NODE_LOST },

    /* Ended. */
    { AT(RUN(STEPS), ENDING(COMPLETED)), ACTION_REPORT_FINISHED },
    { AT(RUN(RELEASED), ENDED(COMPLETED)), ACTION_REPORT_FINISHED },
    { AT(RUN(RELEASED), ENDED(COMPLETED), .predecessors_booked = true), ACTION_RETRY },
    { AT(RUN(STEPS), ENDING(FAILED), .exit_code = 1), ACTION_REPORT_FAILED },
    { AT(RUN(STEPS), ENDING(TIMEOUT)), ACTION_NONE },
    { AT(RUN(STEPS), ENDED(TIMEOUT)), ACTION_REPORT_FAILED },
    { AT(RUN(STEPS), ENDED(CANCELLED)), ACTION_REPORT_FAILED },
    { AT(RUN(STEPS), ENDING(FAILED), .exit_code = LAUNCH_SAVED, .can_requeue = true),
      ACTION_NONE },
    { AT(RUN(STEPS), ENDED(FAILED), .exit_code = LAUNCH_SAVED, .can_requeue = true),
      ACTION_REVIVE },
    { AT(RUN(STEPS), ENDED(FAILED), .exit_code = LAUNCH_SAVED), ACTION_REPORT_FAILED },
    { AT(RUN(STEPS), ENDED(FAILED), .exit_code = LAUNCH_SAVED, .can_requeue = true,
         .revival = REVIVAL_REFUSED),
      ACTION_REPORT_FAILED },

    /* Preempted: signalled, its grace period, requeued. */
    { AT(LEAVE(STOP), SEEN(RUNNING), .wants_signal = true, .due = true),
      ACTION_SIGNAL },
    { AT(LEAVE(STOP), SEEN(RUNNING), .due = true), ACTION_EVICT },
    { AT(LEAVE(SAVE), SEEN(RUNNING), .wants_signal = true), ACTION_WAIT },
    { AT(LEAVE(SAVE), SEEN(RUNNING), .wants_signal = true, .due = true), ACTION_EVICT },
    { AT(LEAVE(EVICT), SEEN(RUNNING)), ACTION_WAIT },
    { AT(LEAVE(EVICT), SEEN(RUNNING), .due = true), ACTION_EVICT },
    { AT(LEAVE(EVICT), SEEN(LEAVING), .due = true), ACTION_NONE },
    { AT(LEAVE(EVICT), SEEN(HELD)), ACTION_REPORT_STOPPED },
    { AT(LEAVE(EVICT), SEEN(HELD), .node_lost = true), ACTION_REPORT_NODE_LOST },
    { AT(LEAVE(SAVE), SEEN(PENDING)), ACTION_HOLD },
    { AT(LEAVE(SAVE), SEEN(HELD)), ACTION_POLL },
    { AT(LEAVE(SAVE), ENDED(COMPLETED)), ACTION_REPORT_FINISHED },
    { AT(LEAVE(SAVE), ENDED(FAILED), .exit_code = 3, .can_requeue = true),
      ACTION_REVIVE },
    { AT(LEAVE(SAVE), ENDED(FAILED), .exit_code = 3), ACTION_REPORT_FAILED },
    { AT(LEAVE(SAVE), ENDED(CANCELLED), .can_requeue = true), ACTION_REPORT_FAILED },

    /* To be gone. */
    { AT(LEAVE(CANCEL), SEEN(RUNNING), .due = true), ACTION_CANCEL },
    { AT(LEAVE(CANCEL), SEEN(HELD), .due = true), ACTION_CANCEL },
    { AT(LEAVE(CANCEL), SEEN(RUNNING)), ACTION_WAIT },
    { AT(LEAVE(CANCEL), ENDED(CANCELLED)), ACTION_REPORT_FAILED },
    { AT(.stage = STAGE_CANCEL, .has_seats = true, ENDED(CANCELLED)),
      ACTION_REPORT_WITHDRAWN },
    { AT(.stage = STAGE_CANCEL, ENDED(CANCELLED)), ACTION_NONE },
    { AT(LEAVE(CANCEL), ENDED(FAILED), .revival = REVIVAL_ASKED), ACTION_POLL },
    { AT(LEAVE(CANCEL), ENDED(FAILED), .exit_code = LAUNCH_SAVED, .can_requeue = true),
      ACTION_REPORT_FAILED },
};

static void each_situation_has_its_action(void **state)
{
    bool wrong = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum slurm_action next = slurm_action_next(&rows[i].at);
        if (next != rows[i].next)
            print_message("row %zu: stage %d, observed %d: %d instead of %d\n", i,
                          (int)rows[i].at.stage, (int)rows[i].at.observed, (int)next,
                          (int)rows[i].next);
        wrong = wrong || next != rows[i].next;
    }
    assert_false(wrong);
}

/* --- what holds in every situation ------------------------------------------------------- */

static bool take_bit(uint32_t *bits)
{
    bool set = *bits & 1;
    *bits >>= 1;
    return set;
}

#define FLAG_BITS 12

/* No situation needs flags of both kinds: of a job outside the books or waiting, and of one with
 * a lease. */
static void set_flags(struct slurm_situation *at, uint32_t bits)
{
    at->has_record = at->can_requeue = take_bit(&bits);
    at->is_batch = at->in_place = take_bit(&bits);
    at->is_array = at->restarted = take_bit(&bits);
    at->depends = at->never_starts = take_bit(&bits);
    at->parked = at->load_over = take_bit(&bits);
    at->due = take_bit(&bits);
    at->polled = take_bit(&bits);
    at->has_seats = take_bit(&bits);
    at->predecessors_booked = take_bit(&bits);
    at->node_lost = take_bit(&bits);
    at->guarded = take_bit(&bits);
    at->wants_signal = take_bit(&bits);
}

static void check_requests(const struct slurm_situation *at, enum slurm_action next)
{
    bool pending = at->observed <= OBSERVED_HELD;
    bool ended = at->observed >= OBSERVED_ENDING;
    /* Slurm ends nothing of ours that was not to leave. */
    if (next == ACTION_EVICT || next == ACTION_SIGNAL)
        assert_true(slurm_stage_leaves(at->stage) && at->observed == OBSERVED_RUNNING);
    if (next == ACTION_CANCEL)
        assert_true(at->stage == STAGE_CANCEL && !ended);
    /* No job starts that has no lease, or runs, or has not left its nodes. */
    if (next == ACTION_START)
        assert_true(at->stage == STAGE_RUN && pending &&
                    at->progress == PROGRESS_PLACED && at->turn == TURN_NOW);
    if (next == ACTION_RELEASE)
        assert_true(at->stage == STAGE_UNMANAGED);
    if (next == ACTION_HOLD)
        assert_int_equal(at->observed, OBSERVED_PENDING);
    /* No job runs to its end twice. */
    if (next == ACTION_REVIVE)
        assert_true(at->observed == OBSERVED_ENDED && at->state != BRIDGE_COMPLETED &&
                    at->state != BRIDGE_CANCELLED && at->stage != STAGE_CANCEL);
}

static void check_reports(const struct slurm_situation *at, enum slurm_action next)
{
    bool ended = at->observed >= OBSERVED_ENDING;
    if (next == ACTION_REPORT_FINISHED || next == ACTION_REPORT_FAILED ||
        next == ACTION_REPORT_WITHDRAWN)
        assert_true(ended);
    if (next == ACTION_REPORT_FINISHED)
        assert_int_equal(at->state, BRIDGE_COMPLETED);
    if (next == ACTION_REPORT_STOPPED || next == ACTION_REPORT_NODE_LOST)
        assert_int_equal(at->observed, OBSERVED_HELD); /* it cannot start behind us */
    if (next == ACTION_REPORT_NOT_STARTED)
        assert_true(at->observed == OBSERVED_HELD && at->polled);
    if (next == ACTION_REPORT_STARTED)
        assert_true(at->observed == OBSERVED_RUNNING && at->in_place &&
                    !at->predecessors_booked);
    /* An end is reported with the GPUs that it frees, or of a job that waited. */
    if (next == ACTION_REPORT_FINISHED || next == ACTION_REPORT_FAILED)
        assert_true(at->stage >= STAGE_RUN);
}

static void check_every_flag(struct slurm_situation at)
{
    for (uint32_t bits = 0; bits < 1u << FLAG_BITS; bits++) {
        set_flags(&at, bits);
        enum slurm_action next = slurm_action_next(&at);
        check_requests(&at, next);
        check_reports(&at, next);
    }
}

static void nothing_is_done_that_should_not(void **state)
{
    static const enum bridge_state ends[] = { BRIDGE_COMPLETED, BRIDGE_FAILED,
                                              BRIDGE_CANCELLED, BRIDGE_TIMEOUT };
    for (enum slurm_stage stage = STAGE_NEW; stage <= STAGE_CANCEL; stage++)
        for (enum slurm_observed seen = OBSERVED_PENDING; seen <= OBSERVED_ENDED;
             seen++)
            for (uint32_t i = 0; i < (seen < OBSERVED_ENDING ? 1u : 8u); i++)
                check_every_flag((struct slurm_situation){
                    .stage = stage,
                    .observed = seen,
                    .progress = (enum slurm_progress)(stage % 4),
                    .state = ends[i % 4],
                    .exit_code = i < 4 ? LAUNCH_SAVED : 1 });
    for (enum slurm_progress to = PROGRESS_PLACED; to <= PROGRESS_STEPS; to++)
        for (enum slurm_observed seen = OBSERVED_PENDING; seen <= OBSERVED_LEAVING;
             seen++)
            check_every_flag((struct slurm_situation){
                .stage = STAGE_RUN, .observed = seen, .progress = to });
}

RUN_CASES(TEST(each_situation_has_its_action), TEST(nothing_is_done_that_should_not));
