/*
 * slurm_drive.c - the next request to Slurm for each job, and what the engine is told of it.
 *
 * slurm_drive() compares what we want of a job with what Slurm says of it and does one
 * thing about the difference: sends a request, or reports to the engine.  It is called
 * whenever either has changed and when it is time.  A job has at most one request under
 * way.
 *
 *     WAIT ──start()──► RUN ──stop()──► LEAVE ──► WAIT
 *       └──────────────── cancel() ───────────────► END
 *
 * A successor is released just before its predecessor is requeued: at the end of a job
 * Slurm searches for the next at once, after a release only within a second.  Not
 * earlier, because a released job that has to wait keeps others off its nodes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/slurm/slurm_internal.h"
#include "executor/slurm/slurm_link.h"
#include "model/cluster.h"
#include "model/launch.h"
#include "model/outbox.h"
#include "model/throughput.h"

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
#define LOAD_MAX_NS (10 * NS_PER_S)

/* Its GPUs are free, or those of its next lease. */
static void slurm_leave_seats(struct slurm_entry *entry);

/* --- telling ------------------------------------------------------------------------ */

struct event *slurm_emit(struct slurm *slurm, enum event_kind kind)
{
    struct event *event = outbox_add(*slurm->setup.outbox);
    event->at_ns = slurm_now(slurm);
    event->kind = kind;
    event->job = JOB_NONE;
    slurm->setup.wake(slurm->setup.context);
    return event;
}

struct event *slurm_tell(struct slurm_entry *entry, enum event_kind kind)
{
    struct event *event = slurm_emit(entry->slurm, kind);
    event->job = entry->slot;
    event->generation = entry->generation;
    event->attempt = entry->now.attempt;
    return event;
}

/* Steps a second, of a job that does not say: as fast as the policy takes it to be. */
static double steps_per_s(const struct slurm_entry *entry)
{
    const struct view *view = entry->slurm->setup.view;
    if (entry->now.count == 0)
        return 1;
    uint32_t type = view->cluster->nodes[entry->now.seats[0].node].type;
    const struct job *job = &view->jobs[entry->slot];
    double rate = type == TYPE_NONE
                      ? 1
                      : throughput_rate(view->rates, job, type, job->gpus, false);
    return rate > 0 ? rate : 1;
}

double slurm_steps_now(const struct slurm_entry *entry)
{
    if (entry->own_steps || !entry->told_started)
        return entry->steps;
    return entry->steps_kept + (double)(slurm_now(entry->slurm) - entry->started_ns) *
                                   1e-9 * steps_per_s(entry);
}

static void slurm_tell_started(struct slurm_entry *entry)
{
    if (entry->told_started)
        return;
    int64_t load_ns = entry->slurm->setup.view->jobs[entry->slot].load_ns;
    entry->told_started = true;
    entry->started_ns = slurm_now(entry->slurm);
    entry->loaded = load_ns == 0;
    entry->loaded_at_ns =
        entry->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    slurm_tell(entry, EVENT_STARTED)->loaded = entry->loaded;
}

void slurm_tell_loaded(struct slurm_entry *entry)
{
    if (entry->loaded)
        return;
    entry->loaded = true;
    slurm_tell(entry, EVENT_LOADED);
}

/* It is not frozen at the end of its lease: it goes on until it is renewed or stopped. */
void slurm_check_lease(struct slurm_entry *entry)
{
    if (!entry->leased)
        return;
    double left = entry->lease_end - slurm_steps_now(entry);
    if (left > 0) {
        if (!entry->own_steps)
            slurm_due(entry, slurm_now(entry->slurm) +
                                 (int64_t)(left / steps_per_s(entry) * 1e9));
        return;
    }
    entry->leased = false;
    slurm_tell_loaded(entry);
    struct event *event = slurm_tell(entry, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = slurm_steps_now(entry);
    event->rate_per_s = entry->own_steps ? entry->rate_per_s : steps_per_s(entry);
    event->loss = NAN;
}

/* How it ended, or left; it keeps what it has reached only if it has saved it. */
static void slurm_tell_end(struct slurm_entry *entry, enum event_kind kind, bool kept)
{
    slurm_tell_started(entry);
    double reached = slurm_steps_now(entry);
    struct event *event = slurm_tell(entry, kind);
    event->steps_reached = reached;
    event->steps = kept ? reached : entry->own_steps ? entry->saved : entry->steps_kept;
    event->rate_per_s = entry->own_steps ? entry->rate_per_s : 0;
    event->loss = entry->loss;
    event->exit_code = entry->signal ? 128 + entry->signal : entry->exit_code;
    event->clean = kept;
    event->why = entry->why[0] ? entry->why : NULL;
    entry->steps = entry->steps_kept = event->steps;
    slurm_leave_seats(entry);
}

/* An attempt came to nothing before it began, or with its node. */
static void slurm_tell_lost(struct slurm_entry *entry, const char *why)
{
    snprintf(entry->why, sizeof entry->why, "%s", why);
    double reached = slurm_steps_now(entry);
    struct event *event = slurm_tell(entry, EVENT_LOST);
    event->steps = entry->own_steps ? entry->saved : entry->steps_kept;
    event->steps_reached = reached;
    event->loss = entry->loss;
    event->why = entry->why;
    entry->steps = entry->steps_kept = event->steps;
    slurm_leave_seats(entry);
}

/* --- asking ------------------------------------------------------------------------- */

void slurm_ask_as(struct slurm_entry *entry, const char *verb, const char *job,
                  void (*more)(struct buf *line, const struct slurm_entry *entry))
{
    struct slurm *slurm = entry->slurm;
    struct buf line;
    buf_init(&line, 1 << 20);
    entry->seq = ++slurm->seq_last;
    entry->verb = verb;
    entry->sure = entry->changed = false;
    map_put(&slurm->by_seq, (uint64_t)entry->seq, (uint32_t)entry->id);
    json_write_open(&line, NULL, '{');
    json_write_count(&line, "seq", entry->seq);
    json_write_text(&line, "verb", verb);
    json_write_text(&line, "job", job);
    if (more)
        more(&line, entry);
    json_write_close(&line, '}');
    slurm_link_say(slurm->link, &line);
    buf_release(&line);
}

void slurm_ask(struct slurm_entry *entry, const char *verb,
               void (*more)(struct buf *line, const struct slurm_entry *entry))
{
    char job[48];
    snprintf(job, sizeof job, "%" PRIu64, entry->id);
    if (entry->task >= 0) /* the number alone would mean the whole array */
        snprintf(job, sizeof job, "%" PRIu64 "_%" PRId64, entry->id, entry->task);
    slurm_ask_as(entry, verb, job, more);
}

static void say_nodes(struct buf *line, const struct slurm_entry *entry)
{
    const struct cluster *cluster = entry->slurm->setup.view->cluster;
    char text[32];
    json_write_open(line, "nodes", '[');
    for (uint32_t i = 0; i < entry->now.count; i++)
        json_write_text(
            line, NULL,
            cluster_node_name(cluster, entry->now.seats[i].node, text, sizeof text));
    json_write_close(line, ']');
}

/*
 * Another size than it was submitted with: Slurm wants to know all that goes with it.  Only
 * jobs that said how small and how large they may be come here.
 */
static void slurm_say_shape(struct buf *line, const struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct job *job = &setup->view->jobs[entry->slot];
    const struct launch *launch;
    struct error err;
    uint32_t gpus = 0;
    say_nodes(line, entry);
    for (uint32_t i = 0; i < entry->now.count; i++)
        gpus += seat_gpu_count(&entry->now.seats[i]);
    if (!job_is_elastic(job) || gpus == 0)
        return;
    uint32_t nodes = entry->now.count;
    uint32_t before = job->nodes ? job->nodes : 1;
    uint32_t tasks = nodes;
    if (setup->launch(setup->context, entry->id, &launch, &err) == 0 &&
        launch->tasks_per_node > 0)
        before *= launch->tasks_per_node;
    if (before == job->gpus)
        tasks = gpus; /* a task for each of them */
    uint64_t cpus = (uint64_t)job->cpu_milli * tasks / before / 1000;
    json_write_count(line, "gpus_per_node", gpus / nodes);
    json_write_count(line, "tasks", tasks);
    json_write_count(line, "cpus", cpus > tasks ? (int64_t)cpus : tasks);
}

static void slurm_say_why(struct buf *line, const struct slurm_entry *entry)
{
    char text[256];
    snprintf(text, sizeof text, "berth: %s", entry->why);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = ' ';
    json_write_text(line, "text", text);
}

/* --- waiting -------------------------------------------------------------------------- */

static void say_end_of_waiting(struct slurm_entry *entry)
{
    if (strcmp(entry->state, "GONE") == 0)
        snprintf(entry->why, sizeof entry->why, "Slurm has forgotten it");
    else if (strcmp(entry->state, "CANCELLED") == 0)
        snprintf(entry->why, sizeof entry->why, "cancelled in Slurm");
    else
        snprintf(entry->why, sizeof entry->why, "it ended in Slurm, unseen by us: %s",
                 entry->state);
}

static void keep_waiting(struct slurm_entry *entry)
{
    if (entry->stands == STANDS_ENDED) {
        say_end_of_waiting(entry);
        slurm_tell(entry, EVENT_CANCELLED)->why = entry->why;
        entry->wish = WISH_NONE;
    } else if (entry->stands == STANDS_RUNNING && !entry->completing) {
        /*
         * It was started by another party in Slurm.  We do not end what we did not
         * begin: while the engine has no room for it, its GPUs count as foreign.
         */
        slurm_set_active(entry, true);
        const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
        if (job->state <= JOB_WAITING && slurm_adopt(entry, job->attempt + 1)) {
            entry->wish = WISH_RUN;
            entry->told_started = false;
            slurm_drive(entry);
        } else
            slurm_due(entry, slurm_now(entry->slurm) + AGAIN_NS);
    } else if (entry->stands == STANDS_PENDING && !entry->completing) {
        /* Held jobs do not notice that what they depend on has ended. */
        bool parks = entry->dependent;
        if (parks && !entry->parked)
            slurm_ask(entry, "park", NULL);
        else if (!parks && !entry->held)
            slurm_ask(entry, "hold", NULL);
    }
}

/* --- running -------------------------------------------------------------------------- */

/* One of those before it that is still where it was; NULL: none. */
static struct slurm_entry *still_there(const struct slurm_entry *entry, uint32_t i)
{
    struct slurm_entry *other = slurm_at(entry->slurm, entry->now.after[i]);
    if (!other || other == entry ||
        other->generation != entry->now.after_generation[i] ||
        (other->wish != WISH_LEAVE && other->wish != WISH_END))
        return NULL;
    return other->stands == STANDS_RUNNING || other->completing ? other : NULL;
}

static bool others_are_there(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.after_count; i++)
        if (still_there(entry, i))
            return true;
    return false;
}

/*
 * The engine has not yet applied the end of a predecessor: it must see that first,
 * whichever of the two Slurm names first.
 */
static bool others_are_in_the_books(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = slurm_at(entry->slurm, entry->now.after[i]);
        if (other && other != entry && other->now.count > 0 &&
            other->generation == entry->now.after_generation[i] &&
            (other->wish == WISH_LEAVE || other->wish == WISH_END))
            return true;
    }
    return false;
}

/* All predecessors have left or are about to. */
static bool may_be_released(const struct slurm_entry *entry)
{
    int64_t soon_ns = slurm_now(entry->slurm) + SOON_NS;
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = still_there(entry, i);
        if (other && !other->completing && !other->evicting &&
            other->wish == WISH_LEAVE && other->evict_ns > soon_ns)
            return false;
    }
    return true;
}

static bool same_node(const struct slurm_entry *entry)
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
    if (entry->left_count > 0 && same_node(entry) &&
        entry->left_ns + SAME_NODE_NS > at_ns)
        at_ns = entry->left_ns + SAME_NODE_NS;
    return at_ns;
}

/*
 * Slurm puts shards on the first GPU that has room.  So one that is to share a GPU comes after
 * those that start on other GPUs of the node, which would find one of these taken.
 */
static bool others_come_first(const struct slurm_entry *entry)
{
    if (!slurm_partner(entry))
        return false;
    for (const struct slurm_entry *other = entry->slurm->first; other;
         other = other->next)
        for (uint32_t i = 0; i < other->now.count; i++)
            if (other != entry && other->wish == WISH_RUN && !other->told_started &&
                !slurm_partner(other) &&
                other->now.seats[i].node == entry->now.seats[0].node &&
                may_be_released(other) &&
                start_from_ns(other) <= slurm_now(entry->slurm))
                return true;
    return false;
}

static void ask_start(struct slurm_entry *entry)
{
    int64_t from_ns = start_from_ns(entry);
    if (!may_be_released(entry))
        return; /* the end of a predecessor calls us again */
    if (others_come_first(entry)) {
        slurm_due(entry, slurm_now(entry->slurm) + AGAIN_NS);
        return;
    }
    if (from_ns > slurm_now(entry->slurm)) {
        slurm_due(entry, from_ns);
        return;
    }
    entry->restarts_then = entry->restarts;
    slurm_ask(entry, "start", slurm_say_shape);
}

/* Slurm has put it where we wanted it, or does not say where it is. */
static bool in_its_seats(const struct slurm_entry *entry)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < entry->node_count; i++)
        for (uint32_t k = 0; k < entry->now.count; k++)
            found += entry->nodes[i] == entry->now.seats[k].node;
    return entry->node_count == 0 ||
           (found == entry->node_count && found == entry->now.count);
}

static bool on_a_lost_node(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.count; i++)
        if (!entry->slurm->hosts[entry->now.seats[i].node].up)
            return true;
    return false;
}

/* Trying again is pointless: its owner is told, and can release it. */
static void set_aside(struct slurm_entry *entry)
{
    char why[sizeof entry->why];
    snprintf(why, sizeof why, "%s", entry->why);
    snprintf(entry->why, sizeof entry->why, "held after %d starts in vain: %.110s",
             FRUITLESS_MAX, why);
    entry->fruitless = 0;
    entry->unsaid = true;
    entry->slurm->setup.set_aside(entry->slurm->setup.context, entry->id);
}

/* A start that Slurm did not make, or refused. */
static void came_to_nothing(struct slurm_entry *entry, const char *why)
{
    /* Beside another it may be only that Slurm has given the shards to a job of others. */
    entry->fruitless += slurm_partner(entry) == NULL;
    slurm_tell_lost(entry, why);
    if (entry->fruitless >= FRUITLESS_MAX)
        set_aside(entry);
}

/* What it has done is kept if it was asked to save it, or went unasked. */
static void has_left(struct slurm_entry *entry)
{
    bool unasked = entry->wish == WISH_RUN;
    slurm_tell_started(entry);
    bool soon = slurm_now(entry->slurm) < entry->started_ns + SHORT_NS;
    entry->fruitless = unasked && soon ? entry->fruitless + 1 : 0;
    entry->why[0] = '\0';
    slurm_tell_end(entry, EVENT_STOPPED,
                   !entry->died && (unasked || entry->signalled || entry->by_itself ||
                                    entry->own_steps));
    if (entry->fruitless < FRUITLESS_MAX)
        return;
    snprintf(entry->why, sizeof entry->why, "it came back at once: %.60s",
             entry->reason);
    set_aside(entry);
}

/* It may still run there, for all that Slurm knows. */
static void has_lost_its_node(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    slurm_tell_started(entry);
    entry->fence_ns = slurm_now(slurm) + slurm->setup.fence_ns;
    slurm_tell_lost(entry, "its node was lost");
}

/*
 * It ran, and is back in the queue.  If we did not requeue it, poll once more before
 * that is believed: Slurm may not have reported yet that its node is down.
 */
static void is_back(struct slurm_entry *entry)
{
    if (!entry->told_started && others_are_in_the_books(entry))
        slurm_due(entry, slurm_now(entry->slurm) + AGAIN_NS);
    else if (!entry->held)
        slurm_ask(entry, "hold", NULL);
    else if (!entry->sure && !entry->evicting)
        slurm_ask(entry, "poll", NULL);
    else if (on_a_lost_node(entry) || strcmp(entry->reason, "NodeDown") == 0)
        has_lost_its_node(entry);
    else
        has_left(entry);
}

static void wait_for_start(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    int64_t now_ns = slurm_now(slurm);
    if (entry->told_started ||
        (entry->released && entry->restarts > entry->restarts_then)) {
        is_back(entry);
        return;
    }
    if (!entry->released) {
        ask_start(entry);
        return;
    }
    if (others_are_there(entry) || slurm_tidies_up(entry))
        entry->released_ns = now_ns;
    /* Slurm holds by itself what can never start there: no need to wait for that. */
    bool never = entry->held && strcmp(entry->reason, "BadConstraints") == 0;
    if (now_ns < entry->released_ns + START_NS && !never) {
        slurm_due(entry, entry->released_ns + START_NS);
        return;
    }
    if (!entry->held) {
        snprintf(entry->start_reason, sizeof entry->start_reason, "%s", entry->reason);
        slurm_ask(entry, "hold", NULL);
        return;
    }
    if (!entry->sure) { /* it may have started just before it was held */
        slurm_ask(entry, "poll", NULL);
        return;
    }
    const char *reason = entry->start_reason[0] ? entry->start_reason : entry->reason;
    char why[128];
    snprintf(why, sizeof why, "Slurm has not started it: %.60s",
             reason[0] ? reason : "no reason given");
    came_to_nothing(entry, why);
}

/*
 * Slurm has started it elsewhere: out of its seats and into those, in one go, before the
 * engine gives it others again.
 */
static void move_in(struct slurm_entry *entry)
{
    if (!slurm_has_room(entry)) {
        slurm_due(entry, slurm_now(entry->slurm) + AGAIN_NS);
        return;
    }
    /* Not the one after that in the view, which may not have heard yet that it has stopped. */
    uint32_t attempt = entry->now.attempt + 1;
    slurm_tell_lost(entry, "Slurm has started it elsewhere");
    if (entry->wish == WISH_WAIT && slurm_adopt(entry, attempt)) {
        entry->wish = WISH_RUN;
        slurm_set_active(entry, true);
    }
}

static void has_ended(struct slurm_entry *entry);

static void keep_running(struct slurm_entry *entry)
{
    if (entry->stands == STANDS_ENDED) {
        has_ended(entry);
        return;
    }
    if (entry->completing)
        return;
    if (entry->stands == STANDS_PENDING) {
        wait_for_start(entry);
        return;
    }
    int64_t now_ns = slurm_now(entry->slurm);
    if (!entry->told_started && others_are_in_the_books(entry)) {
        slurm_due(entry, now_ns + AGAIN_NS);
        return;
    }
    if (!entry->told_started && !in_its_seats(entry)) {
        move_in(entry);
        return;
    }
    slurm_tell_started(entry);
    if (!entry->loaded && now_ns >= entry->loaded_at_ns)
        slurm_tell_loaded(entry);
    else if (!entry->loaded)
        slurm_due(entry, entry->loaded_at_ns);
    slurm_check_lease(entry);
    if (entry->guarded)
        return;
    if (now_ns >= entry->started_ns + GUARD_NS)
        slurm_ask(entry, "hold", NULL);
    else
        slurm_due(entry, entry->started_ns + GUARD_NS);
}

/* --- leaving -------------------------------------------------------------------------- */

/* Those who wait for it are asked for first, so that they stand in line when it goes. */
static void call_successors(const struct slurm_entry *leaving)
{
    struct slurm_entry *next;
    for (struct slurm_entry *entry = leaving->slurm->first; entry; entry = next) {
        next = entry->next;
        bool waits = false;
        for (uint32_t i = 0; entry->wish == WISH_RUN && i < entry->now.after_count; i++)
            waits = waits || entry->now.after[i] == leaving->slot;
        if (waits && entry != leaving)
            slurm_drive(entry);
    }
}

static void say_signal(struct buf *line, const struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct launch *launch;
    struct error err;
    if (setup->launch(setup->context, entry->id, &launch, &err) < 0)
        return;
    json_write_text(line, "signal", sigabbrev_np(launch->signal));
    json_write_text(line, "to", launch->signal_to ? launch->signal_to : "batch");
}

bool slurm_has_signal(const struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct launch *launch;
    struct error err;
    return setup->launch(setup->context, entry->id, &launch, &err) == 0 &&
           launch->signal_to != NULL;
}

static void keep_leaving(struct slurm_entry *entry)
{
    int64_t now_ns = slurm_now(entry->slurm);
    if (entry->completing) /* before its grace was over: they stand in line now */
        call_successors(entry);
    if (entry->stands == STANDS_ENDED) {
        has_ended(entry);
        return;
    }
    if (entry->completing)
        return;
    if (entry->stands == STANDS_PENDING) {
        entry->by_itself = entry->by_itself || !entry->evicting;
        is_back(entry);
        return;
    }
    if (!entry->signalled && !entry->unheard && !entry->evicting &&
        slurm_has_signal(entry)) {
        slurm_ask(entry, "signal", say_signal);
        return;
    }
    if (now_ns < entry->evict_ns) {
        slurm_due(entry, entry->evict_ns);
        int64_t soon_ns = entry->evict_ns - SOON_NS + 1000000;
        if (now_ns < soon_ns)
            slurm_due(entry, soon_ns);
        else
            call_successors(entry);
        return;
    }
    entry->evicting = true;
    call_successors(entry);
    slurm_ask(entry, "evict", NULL);
}

/* --- the end -------------------------------------------------------------------------- */

/* It ended where it was to leave, or asks to be put back: Slurm still knows how. */
static bool wants_back(const struct slurm_entry *entry)
{
    bool asks = entry->signal == 0 && (entry->exit_code == LAUNCH_SAVED ||
                                       entry->exit_code == LAUNCH_SAVED_TOO);
    bool told = entry->wish == WISH_LEAVE && strcmp(entry->state, "FAILED") == 0;
    return entry->requeue && entry->batch && (asks || told) &&
           entry->wish != WISH_END && strcmp(entry->state, "CANCELLED") != 0 &&
           strcmp(entry->state, "COMPLETED") != 0 && strcmp(entry->state, "GONE") != 0;
}

/* Cancelled, or forgotten, before it ran: those before it may still be in its seats. */
static void never_began(struct slurm_entry *entry)
{
    if (entry->wish != WISH_END)
        slurm_tell(entry, EVENT_CANCELLED)->why = entry->why;
    char why[sizeof entry->why];
    snprintf(why, sizeof why, "%s", entry->why);
    slurm_tell_lost(entry, why);
    entry->wish = WISH_NONE;
}

/*
 * Its script has ended and only its nodes are being cleaned up.  The successor is
 * released now: when the nodes are free Slurm searches at once for a released job, and
 * then not before its next second.
 */
static bool is_over(const struct slurm_entry *entry)
{
    return strcmp(entry->state, "COMPLETED") == 0 ||
           (strcmp(entry->state, "FAILED") == 0 && !wants_back(entry));
}

static void has_ended(struct slurm_entry *entry)
{
    bool cancelled = strcmp(entry->state, "CANCELLED") == 0;
    bool gone = strcmp(entry->state, "GONE") == 0;
    slurm_poke_soon(entry->slurm);
    if (entry->completing && !is_over(entry))
        return;
    if (wants_back(entry) && !entry->revived) {
        entry->by_itself =
            entry->exit_code == LAUNCH_SAVED || entry->exit_code == LAUNCH_SAVED_TOO;
        entry->died = !entry->by_itself;
        entry->reviving = true;
        slurm_ask(entry, "revive", NULL);
        return;
    }
    entry->why[0] = '\0';
    if (cancelled || gone)
        snprintf(entry->why, sizeof entry->why, "%s",
                 cancelled ? "cancelled" : "Slurm has forgotten it");
    if (!entry->told_started && (cancelled || gone)) {
        never_began(entry);
        return;
    }
    if (!entry->told_started && others_are_in_the_books(entry)) {
        slurm_due(entry, slurm_now(entry->slurm) + AGAIN_NS);
        return;
    }
    if (strcmp(entry->state, "COMPLETED") == 0) {
        slurm_tell_end(entry, EVENT_FINISHED, true);
        entry->wish = WISH_NONE;
        return;
    }
    if ((cancelled || gone) && entry->wish != WISH_END)
        slurm_tell(entry, EVENT_CANCELLED)->why = entry->why;
    else if (strcmp(entry->state, "FAILED") != 0 && !cancelled && !gone)
        snprintf(entry->why, sizeof entry->why, "%s", entry->state);
    slurm_tell_end(entry, EVENT_FAILED, false);
    entry->wish = WISH_NONE;
}

static void keep_ending(struct slurm_entry *entry)
{
    int64_t now_ns = slurm_now(entry->slurm);
    if (entry->stands == STANDS_ENDED) {
        if (entry->reviving && !entry->sure) /* or it has been, and we have not heard */
            slurm_ask(entry, "poll", NULL);
        else if (entry->slot != JOB_NONE && entry->now.count > 0)
            has_ended(entry);
        return;
    }
    if (now_ns < entry->evict_ns) { /* it has been asked for */
        slurm_due(entry, entry->evict_ns);
        return;
    }
    entry->evicting = true;
    call_successors(entry);
    slurm_ask(entry, "cancel", NULL);
}

static void slurm_leave_seats(struct slurm_entry *entry)
{
    free(entry->left);
    entry->left = entry->now.seats;
    entry->left_count = entry->told_started ? entry->now.count : 0;
    entry->left_ns = slurm_now(entry->slurm);
    free(entry->now.after);
    free(entry->now.after_generation);
    entry->now = entry->then;
    entry->then = (struct hold){ 0 };
    entry->told_started = entry->loaded = false;
    entry->released = entry->guarded = false;
    entry->restarts_then = entry->restarts;
    entry->signalled = entry->unheard = entry->evicting = entry->by_itself = false;
    entry->died = entry->reviving = entry->revived = false;
    entry->start_reason[0] = '\0';
    entry->leased = entry->now.steps_max > 0;
    entry->lease_end = entry->steps_kept + (double)entry->now.steps_max;
    entry->wish = entry->now.count > 0 ? WISH_RUN : WISH_WAIT;
    entry->slurm->nodes_changed = true;
    slurm_set_timer(entry->slurm, slurm_now(entry->slurm));
    slurm_due(entry, slurm_now(entry->slurm)); /* and on from here */
    call_successors(entry);
}

/* --- one thing at a time ---------------------------------------------------------------- */

void slurm_drive(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    if (entry->seq || !slurm->synced || !entry->seen || slurm->closing)
        return;
    if (slurm_now(slurm) < entry->not_before_ns) {
        slurm_due(entry, entry->not_before_ns);
        return;
    }
    if (entry->heir && entry->slot == JOB_NONE)
        slurm_take_over(entry);
    if (entry->unsaid) {
        entry->unsaid = false;
        if (entry->stands != STANDS_ENDED) {
            slurm_ask(entry, "comment", slurm_say_why);
            slurm_set_active(entry, true);
            return;
        }
    }
    switch (entry->wish) {
    case WISH_NONE:
        if (entry->slot == JOB_NONE)
            slurm_meet(entry);
        break;
    case WISH_WAIT:
        keep_waiting(entry);
        break;
    case WISH_RUN:
        keep_running(entry);
        break;
    case WISH_LEAVE:
        keep_leaving(entry);
        break;
    case WISH_END:
        keep_ending(entry);
        break;
    }
    /* What waits quietly, or is over, is not looked at again by the clock. */
    bool quiet = (entry->wish == WISH_WAIT || entry->wish == WISH_NONE) &&
                 entry->stands != STANDS_RUNNING && !slurm_is_leaving(entry);
    if (quiet && entry->due_ns == INT64_MAX && entry->now.count == 0 && !entry->seq)
        slurm_set_active(entry, false);
    else if (entry->due_ns < INT64_MAX || !quiet || entry->seq)
        slurm_set_active(entry, true);
}

/* The outcome of a request under way is unknown: send it again. */
void slurm_unasked(struct slurm_entry *entry)
{
    if (!entry->seq)
        return;
    if (strcmp(entry->verb, "script") == 0)
        entry->asked_script = false;
    if (strcmp(entry->verb, "comment") == 0)
        entry->unsaid = true;
    entry->seq = 0;
}

static void handle_refusal(struct slurm_entry *entry, const struct json *done,
                           const char *verb)
{
    struct slurm *slurm = entry->slurm;
    const char *error = json_as_text(json_get(done, "error"));
    bool transient = false;
    json_as_flag(json_get(done, "transient"), &transient);
    entry->not_before_ns = slurm_now(slurm) + (transient ? AGAIN_NS : LATER_NS);
    if (strcmp(verb, "evict") == 0 || strcmp(verb, "cancel") == 0)
        entry->evicting = false;
    if (strcmp(verb, "comment") == 0)
        entry->unsaid = transient;
    if (strcmp(verb, "script") == 0) {
        entry->asked_script = !transient;
        entry->not_before_ns = transient ? entry->not_before_ns : 0;
    }
    /* One that was to come back held if it comes back, and has ended meanwhile. */
    bool guards = strcmp(verb, "hold") == 0 && entry->stands == STANDS_RUNNING;
    if (entry->changed) /* and so it is no wonder */
        entry->not_before_ns = 0;
    else if (!transient && strcmp(verb, "script") != 0 && !guards)
        fprintf(stderr, "berthd: job %" PRIu64 ": Slurm refuses to %s it: %s\n",
                entry->id, verb, error ? error : "?");
    if (strcmp(verb, "revive") == 0 && !transient)
        entry->revived = true; /* it was tried */
    if (strcmp(verb, "start") == 0 && !transient && !entry->changed &&
        entry->wish == WISH_RUN) {
        char why[128];
        snprintf(why, sizeof why, "Slurm refuses to start it: %.80s",
                 error ? error : "?");
        came_to_nothing(entry, why);
    }
    if (strcmp(verb, "signal") == 0 && !transient) {
        entry->not_before_ns =
            0; /* no process to be signalled: then it is just ended */
        entry->unheard = true;
        entry->evict_ns = slurm_now(slurm);
    }
    slurm_due(entry, entry->not_before_ns);
}

/* Its time to save itself counts from when it was told, not from when we wanted that. */
static void was_signalled(struct slurm_entry *entry)
{
    int64_t grace_ns = entry->slurm->setup.view->jobs[entry->slot].grace_ns;
    entry->signalled = true;
    if (entry->wish == WISH_LEAVE)
        entry->evict_ns = slurm_now(entry->slurm) + grace_ns;
}

static void carried_out(struct slurm_entry *entry, const char *verb,
                        const struct json *done)
{
    int64_t now_ns = slurm_now(entry->slurm);
    if (strcmp(verb, "start") == 0) {
        entry->released = true;
        entry->released_ns = now_ns;
    } else if (strcmp(verb, "poll") == 0) {
        entry->sure = true;
    } else if (strcmp(verb, "signal") == 0) {
        if (entry->slot != JOB_NONE)
            was_signalled(entry);
    } else if (strcmp(verb, "evict") == 0 || strcmp(verb, "cancel") == 0) {
        entry->evict_ns = now_ns + LATER_NS; /* then once more */
    } else if (strcmp(verb, "revive") == 0 || strcmp(verb, "release") == 0) {
        if (!entry->changed) /* until that is to be seen */
            entry->not_before_ns = now_ns + AGAIN_NS;
    } else if (strcmp(verb, "park") == 0) {
        entry->parked = true;
        slurm_poke_soon(entry->slurm);
    } else if (strcmp(verb, "hold") == 0) {
        entry->parked = false;
        if (entry->stands == STANDS_RUNNING)
            entry->guarded = true;
        else if (entry->released) /* it may run by now: the next look will tell */
            entry->not_before_ns = slurm_now(entry->slurm) + AGAIN_NS;
        else if (!entry->tasks)
            entry->held = true; /* until it is looked at again */
    } else if (strcmp(verb, "script") == 0) {
        const char *text = json_as_text(json_get(done, "text"));
        free(entry->script);
        entry->script = memory_text(text);
    }
}

void slurm_done(struct slurm_entry *entry, const struct json *done)
{
    const char *verb = entry->verb;
    bool ok = false;
    json_as_flag(json_get(done, "ok"), &ok);
    entry->seq = 0;
    slurm_set_active(entry, true);
    if (ok)
        carried_out(entry, verb, done);
    else
        handle_refusal(entry, done, verb);
    slurm_drive(entry);
}
