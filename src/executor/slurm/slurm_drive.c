/*
 * slurm_drive.c - perform the next action for a job.
 *
 * slurm_drive() describes the situation of a job, asks slurm_action_next() what follows from
 * it, and does that: it sends a request, or reports to the engine.  It is called whenever
 * something has changed and when it is time.  A job has at most one request under way.
 *
 * A successor is released just before its predecessor is requeued: at the end of a job
 * Slurm searches for the next at once, after a release only within a second.  Not
 * earlier, because a released job that has to wait keeps others off its nodes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/slurm/slurm_internal.h"

#define START_NS \
    (10 * NS_PER_S) /* released and not started: the decision is outdated */
/* slurmd kills what comes back sooner. */
#define SAME_NODE_NS (2 * NS_PER_S)
/* This close to the end of a job's grace period, its successors are released. */
#define SOON_NS (2 * NS_PER_S)
/* Most that end sooner need no guard, and Slurm gives us 121 s. */
#define GUARD_NS (2 * NS_PER_S)
#define SHORT_NS (10 * NS_PER_S) /* a run that comes back sooner has come to nothing */
#define FRUITLESS_MAX 3          /* in a row, then its owner has to look at it */

/* --- predecessors ----------------------------------------------------------------------- */

/* A predecessor that the engine wants gone; NULL: this one is not. */
static struct slurm_entry *find_predecessor(const struct slurm_entry *entry, uint32_t i)
{
    struct slurm_entry *other = slurm_at(entry->slurm, entry->now.after[i]);
    bool goes = other && other != entry &&
                other->generation == entry->now.after_generation[i] &&
                (slurm_stage_leaves(other->stage) || other->stage == STAGE_CANCEL);
    return goes ? other : NULL;
}

static bool is_on_its_nodes(const struct slurm_entry *entry)
{
    return slurm_is_running(entry) || entry->completing;
}

static bool predecessors_are_there(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = find_predecessor(entry, i);
        if (other && is_on_its_nodes(other))
            return true;
    }
    return false;
}

/*
 * The engine has not yet applied the end of a predecessor: it must see that first,
 * whichever of the two Slurm names first.
 */
static bool predecessors_are_booked(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = find_predecessor(entry, i);
        if (other && other->now.count > 0)
            return true;
    }
    return false;
}

/* All predecessors have left or are about to. */
static bool predecessors_make_way(const struct slurm_entry *entry)
{
    int64_t soon_ns = slurm_now(entry->slurm) + SOON_NS;
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = find_predecessor(entry, i);
        if (other && slurm_is_running(other) && !other->completing &&
            (other->stage == STAGE_STOP || other->stage == STAGE_SAVE) &&
            other->evict_ns > soon_ns)
            return false;
    }
    return true;
}

/* Those who wait for it are asked for first, so that they stand in line when it goes. */
static void drive_successors(const struct slurm_entry *leaving)
{
    struct slurm_entry *next;
    for (struct slurm_entry *entry = leaving->slurm->first; entry; entry = next) {
        next = entry->next;
        bool waits = false;
        for (uint32_t i = 0; entry->stage == STAGE_RUN && i < entry->now.after_count;
             i++)
            waits = waits || entry->now.after[i] == leaving->slot;
        if (waits && entry != leaving)
            slurm_drive(entry);
    }
}

/* --- the situation ------------------------------------------------------------------------ */

static bool has_left_a_node_of_its_lease(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->left_count; i++)
        for (uint32_t k = 0; k < entry->now.count; k++)
            if (entry->left[i].node == entry->now.seats[k].node)
                return true;
    return false;
}

/* When it may be asked for: not on the heels of itself. */
static int64_t start_from_ns(const struct slurm_entry *entry)
{
    int64_t at_ns = entry->fence_ns;
    int64_t born_ns = entry->slurm->born_ns;
    /* Where it was before we came, and how long ago, is not known. */
    if (entry->restarts > 0 && entry->left_ns == 0 && born_ns + SAME_NODE_NS > at_ns)
        at_ns = born_ns + SAME_NODE_NS;
    if (entry->left_ns + SAME_NODE_NS > at_ns && has_left_a_node_of_its_lease(entry))
        at_ns = entry->left_ns + SAME_NODE_NS;
    return at_ns;
}

/*
 * Slurm puts shards on the first GPU that has room.  So one that is to share a GPU comes after
 * those that start on other GPUs of the node, which would find one of these taken.
 */
static bool neighbours_come_first(const struct slurm_entry *entry)
{
    if (!slurm_partner(entry))
        return false;
    for (const struct slurm_entry *other = entry->slurm->first; other;
         other = other->next)
        for (uint32_t i = 0; i < other->now.count; i++)
            if (other != entry && other->stage == STAGE_RUN &&
                !slurm_has_begun(other) && !slurm_partner(other) &&
                other->now.seats[i].node == entry->now.seats[0].node &&
                predecessors_make_way(other) &&
                start_from_ns(other) <= slurm_now(entry->slurm))
                return true;
    return false;
}

static enum slurm_turn find_turn(const struct slurm_entry *entry)
{
    return !predecessors_make_way(entry)  ? TURN_AFTER_PREDECESSORS
           : neighbours_come_first(entry) ? TURN_AFTER_NEIGHBOURS
                                          : TURN_NOW;
}

/* Slurm has put it where we wanted it, or does not say where it is. */
static bool is_in_place(const struct slurm_entry *entry)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < entry->node_count; i++)
        for (uint32_t k = 0; k < entry->now.count; k++)
            found += entry->nodes[i] == entry->now.seats[k].node;
    return entry->node_count == 0 ||
           (found == entry->node_count && found == entry->now.count);
}

static bool has_lost_a_node(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.count; i++)
        if (!entry->slurm->hosts[entry->now.seats[i].node].up)
            return true;
    return strcmp(entry->reason, "NodeDown") == 0;
}

static enum slurm_observed observe(const struct slurm_entry *entry)
{
    if (slurm_has_ended(entry))
        return entry->completing ? OBSERVED_ENDING : OBSERVED_ENDED;
    if (entry->completing)
        return OBSERVED_LEAVING;
    if (slurm_is_running(entry))
        return OBSERVED_RUNNING;
    return entry->held ? OBSERVED_HELD : OBSERVED_PENDING;
}

/* The time that its stage waits for. */
static int64_t find_due_ns(struct slurm_entry *entry)
{
    struct slurm_attempt *run = &entry->run;
    if (entry->stage != STAGE_RUN)
        return entry->evict_ns;
    switch (run->progress) {
    case PROGRESS_PLACED:
        return start_from_ns(entry);
    case PROGRESS_RELEASED: /* since the last of those before it has left */
        if (predecessors_are_there(entry) || slurm_inventory_awaits(entry))
            run->released_ns = slurm_now(entry->slurm);
        return run->released_ns + START_NS;
    default:
        return run->started_ns + GUARD_NS;
    }
}

/* What matters while it is in the books. */
static void describe_attempt(struct slurm_entry *entry, struct slurm_situation *at)
{
    int64_t now_ns = slurm_now(entry->slurm);
    struct slurm_attempt *run = &entry->run;
    at->state = entry->state;
    at->exit_code = entry->exit_code;
    at->signal = entry->signal;
    at->can_requeue = entry->requeue && entry->batch;
    at->revival = run->revival;
    at->has_seats = entry->slot != JOB_NONE && entry->now.count > 0;
    at->in_place = is_in_place(entry);
    at->predecessors_booked = predecessors_are_booked(entry);
    at->restarted = entry->restarts > run->restarts;
    at->never_starts = entry->held && strcmp(entry->reason, "BadConstraints") == 0;
    at->node_lost = has_lost_a_node(entry);
    at->load_over = now_ns >= run->loaded_at_ns;
    at->guarded = run->guarded;
    at->due = now_ns >= find_due_ns(entry);
    if (entry->stage == STAGE_RUN && run->progress == PROGRESS_PLACED)
        at->turn = find_turn(entry);
    if (entry->stage == STAGE_STOP)
        at->wants_signal = slurm_request_has_signal(entry);
}

static struct slurm_situation describe(struct slurm_entry *entry)
{
    struct slurm_situation at = { .stage = entry->stage,
                                  .progress = entry->run.progress,
                                  .observed = observe(entry),
                                  .polled = entry->news == NEWS_POLLED,
                                  .has_record = entry->record != NULL,
                                  .is_batch = entry->batch,
                                  .is_array = entry->tasks != NULL,
                                  .depends = entry->dependent,
                                  .parked = entry->parked };
    if (entry->stage >= STAGE_RUN)
        describe_attempt(entry, &at);
    return at;
}

/* --- the end of an attempt ------------------------------------------------------------------ */

void slurm_drive_next_lease(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    int64_t now_ns = slurm_now(slurm);
    free(entry->left);
    entry->left = entry->now.seats;
    entry->left_count = slurm_has_begun(entry) ? entry->now.count : 0;
    entry->left_ns = now_ns;
    entry->now.seats = NULL;
    slurm_free_lease(&entry->now);
    entry->now = entry->then;
    entry->then = (struct slurm_lease){ 0 };
    uint64_t steps_max = entry->now.steps_max;
    entry->run = (struct slurm_attempt){
        .restarts = entry->restarts,
        .lease_end = steps_max > 0 ? entry->steps_kept + (double)steps_max : INFINITY
    };
    entry->stage = entry->now.count > 0 ? STAGE_RUN : STAGE_WAIT;
    slurm->nodes_changed = true;
    slurm_set_timer(slurm, now_ns);
    slurm_due(entry, now_ns); /* and on from here */
    drive_successors(entry);
}

/* Trying again is pointless: its owner is told, and can release it. */
static void set_aside(struct slurm_entry *entry)
{
    char why[sizeof entry->why];
    snprintf(why, sizeof why, "%s", entry->why);
    snprintf(entry->why, sizeof entry->why, "held after %d starts in vain: %.110s",
             FRUITLESS_MAX, why);
    entry->fruitless = 0;
    entry->comment_due = true;
    entry->slurm->setup.set_aside(entry->slurm->setup.context, entry->id);
}

void slurm_drive_start_failed(struct slurm_entry *entry, const char *why)
{
    /* Beside another it may be only that Slurm has given the shards to a job of others. */
    entry->fruitless += slurm_partner(entry) == NULL;
    slurm_report_lost(entry, why);
    if (entry->fruitless >= FRUITLESS_MAX)
        set_aside(entry);
}

static void report_not_started(struct slurm_entry *entry)
{
    char why[128];
    const char *before = entry->run.start_reason;
    const char *reason = before[0] ? before : entry->reason;
    snprintf(why, sizeof why, "Slurm has not started it: %.60s",
             reason[0] ? reason : "no reason given");
    slurm_drive_start_failed(entry, why);
}

/* What it has done is kept if it was asked to save it, or went unasked. */
static bool keeps_steps(const struct slurm_entry *entry)
{
    switch (entry->run.departure) {
    case DEPARTURE_SIGNALLED:
    case DEPARTURE_BY_ITSELF:
        return true;
    case DEPARTURE_DIED:
        return false;
    case DEPARTURE_KILLED:
        break;
    }
    return entry->stage == STAGE_RUN || entry->reported_ns > 0;
}

/* It is back in the queue without having been requeued by us. */
static void note_departure(struct slurm_entry *entry)
{
    bool unasked = entry->stage == STAGE_STOP || entry->stage == STAGE_SAVE;
    if (unasked && entry->run.departure != DEPARTURE_DIED)
        entry->run.departure = DEPARTURE_BY_ITSELF;
}

static void report_stopped(struct slurm_entry *entry)
{
    bool unasked = entry->stage == STAGE_RUN;
    slurm_report_started(entry);
    bool soon = slurm_now(entry->slurm) < entry->run.started_ns + SHORT_NS;
    entry->fruitless = unasked && soon ? entry->fruitless + 1 : 0;
    entry->why[0] = '\0';
    slurm_report_end(entry, EVENT_STOPPED, keeps_steps(entry));
    if (entry->fruitless < FRUITLESS_MAX)
        return;
    snprintf(entry->why, sizeof entry->why, "it came back at once: %.60s",
             entry->reason);
    set_aside(entry);
}

/* It may still run there, for all that Slurm knows. */
static void report_node_lost(struct slurm_entry *entry)
{
    slurm_report_started(entry);
    entry->fence_ns = slurm_now(entry->slurm) + entry->slurm->setup.fence_ns;
    slurm_report_lost(entry, "its node was lost");
}

/* --- the end of a job ------------------------------------------------------------------------- */

/* In words; of one that has failed by itself its exit code says it. */
static void explain_end(struct slurm_entry *entry)
{
    bool waited = entry->stage == STAGE_WAIT;
    const char *state = bridge_state_name(entry->state);
    char *why = entry->why;
    size_t size = sizeof entry->why;
    if (entry->state == BRIDGE_GONE)
        snprintf(why, size, "Slurm has forgotten it");
    else if (entry->state == BRIDGE_CANCELLED)
        snprintf(why, size, "cancelled%s", waited ? " in Slurm" : "");
    else if (waited)
        snprintf(why, size, "it ended in Slurm, unseen by us: %s", state);
    else
        snprintf(why, size, "%s", entry->state == BRIDGE_FAILED ? "" : state);
}

/* Cancelled, or forgotten, before it ran: those before it may still be in its seats. */
static void report_withdrawn(struct slurm_entry *entry)
{
    explain_end(entry);
    if (entry->stage != STAGE_CANCEL)
        slurm_report_job(entry, EVENT_CANCELLED)->why = entry->why;
    if (entry->now.count > 0)
        slurm_report_lost(entry, entry->why);
    entry->stage = STAGE_CLOSED;
}

static void report_finished(struct slurm_entry *entry)
{
    entry->why[0] = '\0';
    slurm_report_end(entry, EVENT_FINISHED, true);
    entry->stage = STAGE_CLOSED;
}

static void report_failed(struct slurm_entry *entry)
{
    bool cancelled = entry->state == BRIDGE_CANCELLED || entry->state == BRIDGE_GONE;
    explain_end(entry);
    if (cancelled && entry->stage != STAGE_CANCEL)
        slurm_report_job(entry, EVENT_CANCELLED)->why = entry->why;
    slurm_report_end(entry, EVENT_FAILED, false);
    entry->stage = STAGE_CLOSED;
}

/* --- jobs that run without us ------------------------------------------------------------------- */

static void retry(struct slurm_entry *entry)
{
    slurm_due(entry, slurm_now(entry->slurm) + AGAIN_NS);
}

/*
 * It was started by another party in Slurm.  We do not end what we did not begin: while the
 * engine has no room for it, its GPUs count as foreign.
 */
static void adopt(struct slurm_entry *entry)
{
    const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
    slurm_set_active(entry, true);
    if (job->state <= JOB_WAITING && slurm_inventory_adopt(entry, job->attempt + 1))
        entry->stage = STAGE_RUN;
    else
        retry(entry);
}

/*
 * Slurm has started it elsewhere: out of its seats and into those, in one go, before the
 * engine gives it others again.
 */
static void move(struct slurm_entry *entry)
{
    if (!slurm_inventory_has_room(entry)) {
        retry(entry);
        return;
    }
    /* Not the one after that in the view, which may not have heard yet that it has stopped. */
    uint32_t attempt = entry->now.attempt + 1;
    slurm_report_lost(entry, "Slurm has started it elsewhere");
    if (entry->stage == STAGE_WAIT && slurm_inventory_adopt(entry, attempt)) {
        entry->stage = STAGE_RUN;
        slurm_set_active(entry, true);
    }
}

/* --- actions ------------------------------------------------------------------------------------ */

static void wait_until_due(struct slurm_entry *entry)
{
    int64_t due_ns = find_due_ns(entry);
    int64_t soon_ns = due_ns - SOON_NS + 1000000;
    slurm_due(entry, due_ns);
    if (!slurm_stage_leaves(entry->stage))
        return;
    if (slurm_now(entry->slurm) < soon_ns)
        slurm_due(entry, soon_ns);
    else
        drive_successors(entry);
}

static void watch(struct slurm_entry *entry)
{
    if (entry->run.progress == PROGRESS_LOADING)
        slurm_due(entry, entry->run.loaded_at_ns);
    slurm_report_lease(entry);
    if (!entry->run.guarded)
        slurm_due(entry, entry->run.started_ns + GUARD_NS);
}

static void note_start(struct slurm_entry *entry)
{
    entry->run.restarts = entry->restarts;
}

static void note_reason(struct slurm_entry *entry)
{
    if (entry->stage == STAGE_RUN)
        snprintf(entry->run.start_reason, sizeof entry->run.start_reason, "%s",
                 entry->reason);
}

/* Its successors are released before it is requeued. */
static void begin_eviction(struct slurm_entry *entry)
{
    entry->stage = STAGE_EVICT;
    drive_successors(entry);
}

static void begin_cancellation(struct slurm_entry *entry)
{
    drive_successors(entry);
}

/* It ended where it was to leave, or asks to be put back: Slurm still knows how. */
static void begin_revival(struct slurm_entry *entry)
{
    bool saved = slurm_action_has_saved(entry->exit_code, entry->signal);
    entry->run.departure = saved ? DEPARTURE_BY_ITSELF : DEPARTURE_DIED;
    entry->run.revival = REVIVAL_ASKED;
}

#define ASK(verb) true, (verb)

/* What each action does; then the request that it sends. */
static const struct slurm_step {
    void (*perform)(struct slurm_entry *entry);
    bool asks;
    enum bridge_verb verb;
} steps[] = {
    [ACTION_NONE] = { NULL },
    [ACTION_WAIT] = { wait_until_due },
    [ACTION_RETRY] = { retry },
    [ACTION_WATCH] = { watch },
    [ACTION_READ_SCRIPT] = { NULL, ASK(VERB_SCRIPT) },
    [ACTION_RELEASE] = { NULL, ASK(VERB_RELEASE) },
    [ACTION_HOLD] = { note_reason, ASK(VERB_HOLD) },
    [ACTION_GUARD] = { watch, ASK(VERB_HOLD) },
    [ACTION_PARK] = { NULL, ASK(VERB_PARK) },
    [ACTION_START] = { note_start, ASK(VERB_START) },
    [ACTION_SIGNAL] = { NULL, ASK(VERB_SIGNAL) },
    [ACTION_EVICT] = { begin_eviction, ASK(VERB_EVICT) },
    [ACTION_REVIVE] = { begin_revival, ASK(VERB_REVIVE) },
    [ACTION_CANCEL] = { begin_cancellation, ASK(VERB_CANCEL) },
    [ACTION_POLL] = { NULL, ASK(VERB_POLL) },
    [ACTION_SPLIT] = { slurm_submission_split },
    [ACTION_SUBMIT] = { slurm_submission_make },
    [ACTION_ADOPT] = { adopt },
    [ACTION_MOVE] = { move },
    [ACTION_REPORT_STARTED] = { slurm_report_started },
    [ACTION_REPORT_LOADED] = { slurm_report_loaded },
    [ACTION_REPORT_NOT_STARTED] = { report_not_started },
    [ACTION_REPORT_STOPPED] = { report_stopped },
    [ACTION_REPORT_NODE_LOST] = { report_node_lost },
    [ACTION_REPORT_FINISHED] = { report_finished },
    [ACTION_REPORT_FAILED] = { report_failed },
    [ACTION_REPORT_WITHDRAWN] = { report_withdrawn },
};

/* True: look at once at what follows, since only the engine has been told something. */
static bool perform(struct slurm_entry *entry, enum slurm_action action)
{
    const struct slurm_step *step = &steps[action];
    if (step->perform)
        step->perform(entry);
    if (step->asks)
        slurm_request(entry, step->verb);
    bool adopted = action == ACTION_ADOPT && entry->stage == STAGE_RUN;
    return adopted || action == ACTION_REPORT_STARTED || action == ACTION_REPORT_LOADED;
}

/* What Slurm has of it sets other jobs going, or is noted, before anything is done about it. */
static void prepare(struct slurm_entry *entry)
{
    bool has_seats = entry->slot != JOB_NONE && entry->now.count > 0;
    if (slurm_stage_leaves(entry->stage) && entry->completing)
        drive_successors(entry); /* before its grace was over: they stand in line now */
    if (entry->state == BRIDGE_PENDING && !entry->completing)
        note_departure(entry);
    if (slurm_has_ended(entry) && entry->stage >= STAGE_RUN && has_seats)
        slurm_poke_soon(entry->slurm);
}

/* What waits quietly, or is over, is not looked at again by the clock. */
static bool is_quiet(const struct slurm_entry *entry)
{
    return entry->stage <= STAGE_WAIT && !slurm_is_running(entry) &&
           !slurm_is_leaving(entry);
}

static void update_activity(struct slurm_entry *entry)
{
    bool quiet = is_quiet(entry), asleep = entry->due_ns == INT64_MAX && !entry->seq;
    if (quiet && asleep && entry->now.count == 0)
        slurm_set_active(entry, false);
    else if (!quiet || !asleep)
        slurm_set_active(entry, true);
}

void slurm_drive(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    struct slurm_situation at;
    if (entry->seq || !slurm->synced || !slurm_is_seen(entry) || slurm->closing)
        return;
    if (slurm_now(slurm) < entry->not_before_ns) {
        slurm_due(entry, entry->not_before_ns);
        return;
    }
    if (entry->reissued && entry->slot == JOB_NONE)
        slurm_records_take_over(entry);
    if (entry->comment_due) {
        entry->comment_due = false;
        if (!slurm_has_ended(entry)) {
            slurm_request(entry, VERB_COMMENT);
            slurm_set_active(entry, true);
            return;
        }
    }
    prepare(entry);
    do
        at = describe(entry);
    while (perform(entry, slurm_action_next(&at)));
    update_activity(entry);
}
