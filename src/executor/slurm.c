/*
 * slurm.c - what is to be asked of Slurm next, for each job.
 *
 * slurm_drive() compares what we want of a job with what Slurm says of it and does one thing
 * about the difference: asks for something, or tells the engine.  It is called whenever
 * either has changed and when it is time.  A job has at most one request under way.
 *
 *     WAIT ──start()──► RUN ──stop()──► LEAVE ──► WAIT
 *       └──────────────── cancel() ───────────────► END
 *
 * Whoever is to take another's place is released just before that one is requeued: the end
 * of a job has Slurm look for the next at once, a release only within a second.  Not
 * earlier, because a released job that has to wait keeps others off its nodes.
 */
#include "executor/slurm.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/jot.h"
#include "base/json.h"
#include "base/units.h"
#include "executor/slurm_link.h"
#include "executor/slurm_own.h"
#include "model/cluster.h"
#include "model/launch.h"
#include "model/outbox.h"

#define START_NS \
    (10 * NS_PER_S)             /* released and not started: the decision is outdated */
#define AGAIN_NS (NS_PER_S / 4) /* after a refusal that may pass                      */
#define LATER_NS \
    (10 * NS_PER_S) /* after another one                                  */
#define SAME_NODE_NS \
    (2 * NS_PER_S) /* slurmd kills what comes back sooner                */
#define SOON_NS \
    (2 * NS_PER_S) /* so near the end of somebody's grace others are released */
#define LOAD_MAX_NS (10 * NS_PER_S)
#define SHORT_NS \
    (10 * NS_PER_S)     /* a run that comes back sooner has come to nothing       */
#define FRUITLESS_MAX 3 /* in a row, then its owner has to look at it             */

int64_t slurm_now(const struct slurm *slurm)
{
    return slurm->setup.now_ns(slurm->setup.context);
}

/* --- time --------------------------------------------------------------------------- */

static void time_passed(uv_timer_t *timer);

void slurm_set_timer(struct slurm *slurm, int64_t at_ns)
{
    if (at_ns >= slurm->timer_ns || slurm->closing)
        return;
    slurm->timer_ns = at_ns;
    int64_t left_ns = at_ns - slurm_now(slurm);
    uv_update_time(slurm->setup.loop);
    uv_timer_start(&slurm->timer, time_passed,
                   left_ns <= 0 ? 0 : (uint64_t)(left_ns / 1000000 + 1), 0);
}

static void due(struct slurm_entry *entry, int64_t at_ns)
{
    if (at_ns < entry->due_ns)
        entry->due_ns = at_ns;
    slurm_set_timer(entry->slurm, entry->due_ns);
}

void slurm_set_active(struct slurm_entry *entry, bool active)
{
    struct slurm *slurm = entry->slurm;
    if (entry->active == active)
        return;
    entry->active = active;
    slurm->active_count += active ? 1 : (uint32_t)-1;
    if (active) {
        entry->prev = NULL;
        entry->next = slurm->first;
        if (slurm->first)
            slurm->first->prev = entry;
        slurm->first = entry;
        return;
    }
    if (entry->prev)
        entry->prev->next = entry->next;
    else
        slurm->first = entry->next;
    if (entry->next)
        entry->next->prev = entry->prev;
}

static void time_passed(uv_timer_t *timer)
{
    struct slurm *slurm = timer->data;
    int64_t now_ns = slurm_now(slurm);
    slurm->timer_ns = INT64_MAX;
    struct slurm_entry *next;
    for (struct slurm_entry *entry = slurm->first; entry; entry = next) {
        next = entry->next;
        if (entry->due_ns > now_ns)
            continue;
        entry->due_ns = INT64_MAX;
        slurm_drive(entry);
    }
    if (slurm->synced && (slurm->nodes_changed || slurm->look_ns <= now_ns))
        slurm_look_at_nodes(slurm, false);
    for (struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        slurm_set_timer(slurm, entry->due_ns);
}

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

static struct event *emit(struct slurm_entry *entry, enum event_kind kind)
{
    struct event *event = slurm_emit(entry->slurm, kind);
    event->job = entry->slot;
    event->generation = entry->generation;
    event->attempt = entry->now.attempt;
    return event;
}

static double steps_now(const struct slurm_entry *entry)
{
    if (entry->own_steps || !entry->told_started)
        return entry->steps;
    return entry->steps_kept +
           (double)(slurm_now(entry->slurm) - entry->started_ns) * 1e-9;
}

static void tell_started(struct slurm_entry *entry)
{
    if (entry->told_started)
        return;
    int64_t load_ns = entry->slurm->setup.view->jobs[entry->slot].load_ns;
    entry->told_started = true;
    entry->started_ns = slurm_now(entry->slurm);
    entry->loaded = load_ns == 0;
    entry->loaded_at_ns =
        entry->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    emit(entry, EVENT_STARTED)->loaded = entry->loaded;
}

static void tell_loaded(struct slurm_entry *entry)
{
    if (entry->loaded)
        return;
    entry->loaded = true;
    emit(entry, EVENT_LOADED);
}

/* It is not frozen at the end of its lease: it goes on until it is renewed or stopped. */
static void check_lease(struct slurm_entry *entry)
{
    if (!entry->leased)
        return;
    double left = entry->lease_end - steps_now(entry);
    if (left > 0) {
        if (!entry->own_steps)
            due(entry, slurm_now(entry->slurm) + (int64_t)(left * 1e9));
        return;
    }
    entry->leased = false;
    tell_loaded(entry);
    struct event *event = emit(entry, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = steps_now(entry);
    event->rate_per_s = entry->own_steps ? entry->rate_per_s : 1;
    event->loss = NAN;
}

static void leave_seats(struct slurm_entry *entry);

/* How it ended, or left; it keeps what it has reached only if it has saved it. */
static void tell_end(struct slurm_entry *entry, enum event_kind kind, bool kept)
{
    tell_started(entry);
    double reached = steps_now(entry);
    struct event *event = emit(entry, kind);
    event->steps_reached = reached;
    event->steps = kept ? reached : entry->own_steps ? entry->saved : entry->steps_kept;
    event->rate_per_s = entry->own_steps ? entry->rate_per_s : 0;
    event->loss = entry->loss;
    event->exit_code = entry->signal ? 128 + entry->signal : entry->exit_code;
    event->clean = kept;
    event->why = entry->why[0] ? entry->why : NULL;
    entry->steps = entry->steps_kept = event->steps;
    leave_seats(entry);
}

/* An attempt came to nothing before it began, or with its node. */
static void tell_lost(struct slurm_entry *entry, const char *why)
{
    snprintf(entry->why, sizeof entry->why, "%s", why);
    double reached = steps_now(entry);
    struct event *event = emit(entry, EVENT_LOST);
    event->steps = entry->own_steps ? entry->saved : entry->steps_kept;
    event->steps_reached = reached;
    event->loss = entry->loss;
    event->why = entry->why;
    entry->steps = entry->steps_kept = event->steps;
    leave_seats(entry);
}

/* --- asking ------------------------------------------------------------------------- */

static void ask_as(struct slurm_entry *entry, const char *verb, const char *job,
                   void (*more)(struct buf *line, const struct slurm_entry *entry))
{
    struct slurm *slurm = entry->slurm;
    struct buf line;
    buf_init(&line, 1 << 20);
    entry->seq = ++slurm->seq_last;
    entry->verb = verb;
    entry->sure = entry->changed = false;
    map_put(&slurm->by_seq, (uint64_t)entry->seq, (uint32_t)entry->id);
    jot_open(&line, NULL, '{');
    jot_count(&line, "seq", entry->seq);
    jot_text(&line, "verb", verb);
    jot_text(&line, "job", job);
    if (more)
        more(&line, entry);
    jot_close(&line, '}');
    slurm_link_say(slurm->link, &line);
    buf_release(&line);
}

static void ask(struct slurm_entry *entry, const char *verb,
                void (*more)(struct buf *line, const struct slurm_entry *entry))
{
    char job[48];
    snprintf(job, sizeof job, "%" PRIu64, entry->id);
    if (entry->task >= 0) /* the number alone would mean the whole array */
        snprintf(job, sizeof job, "%" PRIu64 "_%" PRId64, entry->id, entry->task);
    ask_as(entry, verb, job, more);
}

static void say_nodes(struct buf *line, const struct slurm_entry *entry)
{
    const struct cluster *cluster = entry->slurm->setup.view->cluster;
    char text[32];
    jot_open(line, "nodes", '[');
    for (uint32_t i = 0; i < entry->now.count; i++)
        jot_text(
            line, NULL,
            cluster_node_name(cluster, entry->now.seats[i].node, text, sizeof text));
    jot_close(line, ']');
}

static void say_why(struct buf *line, const struct slurm_entry *entry)
{
    char text[256];
    snprintf(text, sizeof text, "berth: %s", entry->why);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = ' ';
    jot_text(line, "text", text);
}

/* --- newcomers ------------------------------------------------------------------------ */

/* "1-3,7,10-20:2": the one at this place; false: there are not so many. */
static bool task_at(const char *tasks, uint32_t place, uint32_t *ret_task)
{
    while (*tasks) {
        unsigned first, last, step = 1;
        int read = 0;
        if (sscanf(tasks, "%u%n", &first, &read) != 1)
            return false;
        tasks += read;
        last = first;
        if (sscanf(tasks, "-%u%n", &last, &read) == 1)
            tasks += read;
        if (sscanf(tasks, ":%u%n", &step, &read) == 1)
            tasks += read;
        if (last < first || step == 0)
            return false;
        uint32_t count = (last - first) / step + 1;
        *ret_task = first + place * step;
        if (place < count)
            return true;
        place -= count;
        tasks += *tasks == ',';
    }
    return false;
}

/* Each task becomes a job of its own: to hold one does that, and nothing else. */
static void split(struct slurm_entry *entry)
{
    char job[48];
    uint32_t task;
    if (!task_at(entry->tasks, entry->tasks_split, &task))
        return;
    entry->tasks_split++;
    snprintf(job, sizeof job, "%" PRIu64 "_%u", entry->id, task);
    ask_as(entry, "hold", job, NULL);
}

static void give_up(struct slurm_entry *entry, const char *why);

/* Into the engine's books; 'submitted' brings it a slot. */
static void arrive(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    struct error err = { "" };
    if (entry->batch && !entry->asked_script) {
        entry->asked_script = true;
        ask(entry, "script", NULL);
        return;
    }
    struct slurm_newcomer newcomer = { .job = entry->news,
                                       .script = entry->script,
                                       .runs = entry->stands == STANDS_RUNNING,
                                       .reused = entry->reused };
    int r = slurm->setup.arrive(slurm->setup.context, &newcomer, &err);
    if (r == -ENOTSUP) {
        snprintf(entry->why, sizeof entry->why, "left to Slurm: %.120s", err.text);
        entry->left_alone = entry->let_go = true;
        due(entry, slurm_now(slurm));
    } else if (r == -EBADMSG) {
        give_up(entry, err.text);
    } else if (r == -EALREADY) {
        entry->left_alone = true;
    } else if (r < 0) {
        entry->not_before_ns = slurm_now(slurm) + LATER_NS;
        slurm_set_active(entry, true);
        due(entry, entry->not_before_ns);
        return;
    } else
        entry->arriving = true;
    json_free(entry->news);
    entry->news = NULL;
    free(entry->script);
    entry->script = NULL;
}

static void meet(struct slurm_entry *entry)
{
    if (entry->let_go && entry->stands == STANDS_PENDING && entry->held)
        ask(entry, "release", NULL);
    if (entry->left_alone || entry->stands == STANDS_ENDED || !entry->news ||
        entry->completing)
        return;
    if (slurm_now(entry->slurm) < entry->not_before_ns)
        due(entry, entry->not_before_ns);
    else if (entry->tasks)
        split(entry);
    else
        arrive(entry);
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
        emit(entry, EVENT_CANCELLED)->why = entry->why;
        entry->wish = WISH_NONE;
    } else if (entry->stands == STANDS_RUNNING && !entry->completing) {
        /*
         * Somebody else has started it.  What we did not begin we do not end: while there
         * is no room for it in the books, its GPUs are somebody else's.
         */
        slurm_set_active(entry, true);
        if (entry->slurm->setup.view->jobs[entry->slot].state <= JOB_WAITING &&
            slurm_adopt(entry)) {
            entry->wish = WISH_RUN;
            entry->told_started = false;
            slurm_drive(entry);
        } else
            due(entry, slurm_now(entry->slurm) + AGAIN_NS);
    } else if (entry->stands == STANDS_PENDING && !entry->completing) {
        /* Held jobs do not notice that what they depend on has ended. */
        bool parks = entry->dependent;
        if (parks && !entry->parked)
            ask(entry, "park", NULL);
        else if (!parks && !entry->held)
            ask(entry, "hold", NULL);
    }
}

/* --- running -------------------------------------------------------------------------- */

static struct slurm_entry *entry_of(const struct slurm *slurm, job_id slot)
{
    return slot == JOB_NONE ? NULL : slurm->slots[slot];
}

/* One of those before it that is still where it was; NULL: none. */
static struct slurm_entry *still_there(const struct slurm_entry *entry, uint32_t i)
{
    struct slurm_entry *other = entry_of(entry->slurm, entry->now.after[i]);
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
 * Of somebody before it the engine has not heard yet that he has left: it must hear that
 * first, whichever of the two Slurm names first.
 */
static bool others_are_in_the_books(const struct slurm_entry *entry)
{
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = entry_of(entry->slurm, entry->now.after[i]);
        if (other && other != entry && other->now.count > 0 &&
            other->generation == entry->now.after_generation[i] &&
            (other->wish == WISH_LEAVE || other->wish == WISH_END))
            return true;
    }
    return false;
}

/* Everybody before it has left or is about to. */
static bool may_be_released(const struct slurm_entry *entry)
{
    int64_t soon_ns = slurm_now(entry->slurm) + SOON_NS;
    for (uint32_t i = 0; i < entry->now.after_count; i++) {
        const struct slurm_entry *other = still_there(entry, i);
        if (other && !other->evicting && other->wish == WISH_LEAVE &&
            other->evict_ns > soon_ns)
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

static void ask_start(struct slurm_entry *entry)
{
    int64_t from_ns = start_from_ns(entry);
    if (!may_be_released(entry))
        return; /* whoever leaves asks us again */
    if (from_ns > slurm_now(entry->slurm)) {
        due(entry, from_ns);
        return;
    }
    entry->restarts_then = entry->restarts;
    ask(entry, "start", say_nodes);
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

/* Nobody gains by trying again: its owner is told, and can let it go on. */
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
    entry->fruitless++;
    tell_lost(entry, why);
    if (entry->fruitless >= FRUITLESS_MAX)
        set_aside(entry);
}

/* What it has done is kept if it was asked to save it, or went unasked. */
static void has_left(struct slurm_entry *entry)
{
    bool unasked = entry->wish == WISH_RUN;
    tell_started(entry);
    bool soon = slurm_now(entry->slurm) < entry->started_ns + SHORT_NS;
    entry->fruitless = unasked && soon ? entry->fruitless + 1 : 0;
    entry->why[0] = '\0';
    tell_end(entry, EVENT_STOPPED,
             !entry->died &&
                 (unasked || entry->signalled || entry->by_itself || entry->own_steps));
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
    tell_started(entry);
    entry->fence_ns = slurm_now(slurm) + slurm->setup.fence_ns;
    tell_lost(entry, "its node was lost");
}

/*
 * It ran, and is back in the queue.  If nobody told it to be, look once more before that is
 * believed: Slurm may not have said yet that its node is down.
 */
static void is_back(struct slurm_entry *entry)
{
    if (!entry->told_started && others_are_in_the_books(entry))
        due(entry, slurm_now(entry->slurm) + AGAIN_NS);
    else if (!entry->held)
        ask(entry, "hold", NULL);
    else if (!entry->sure && !entry->evicting)
        ask(entry, "poll", NULL);
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
    if (others_are_there(entry))
        entry->released_ns = now_ns;
    /* Slurm holds by itself what can never start there: no need to wait for that. */
    bool never = entry->held && strcmp(entry->reason, "BadConstraints") == 0;
    if (now_ns < entry->released_ns + START_NS && !never) {
        due(entry, entry->released_ns + START_NS);
        return;
    }
    if (!entry->held) {
        snprintf(entry->start_reason, sizeof entry->start_reason, "%s", entry->reason);
        ask(entry, "hold", NULL);
        return;
    }
    if (!entry->sure) { /* it may have started just before it was held */
        ask(entry, "poll", NULL);
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
        due(entry, slurm_now(entry->slurm) + AGAIN_NS);
        return;
    }
    tell_lost(entry, "Slurm has started it elsewhere");
    if (entry->wish == WISH_WAIT && slurm_adopt(entry)) {
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
        due(entry, now_ns + AGAIN_NS);
        return;
    }
    if (!entry->told_started && !in_its_seats(entry)) {
        move_in(entry);
        return;
    }
    tell_started(entry);
    if (!entry->loaded && now_ns >= entry->loaded_at_ns)
        tell_loaded(entry);
    else if (!entry->loaded)
        due(entry, entry->loaded_at_ns);
    check_lease(entry);
    if (!entry->guarded)
        ask(entry, "hold", NULL);
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
    jot_text(line, "signal", sigabbrev_np(launch->signal));
    jot_text(line, "to", launch->signal_to ? launch->signal_to : "batch");
}

static bool has_signal(const struct slurm_entry *entry)
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
    if (!entry->signalled && !entry->unheard && !entry->evicting && has_signal(entry)) {
        ask(entry, "signal", say_signal);
        return;
    }
    if (now_ns < entry->evict_ns) {
        due(entry, entry->evict_ns);
        int64_t soon_ns = entry->evict_ns - SOON_NS + 1000000;
        if (now_ns < soon_ns)
            due(entry, soon_ns);
        else
            call_successors(entry);
        return;
    }
    entry->evicting = true;
    call_successors(entry);
    ask(entry, "evict", NULL);
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
        emit(entry, EVENT_CANCELLED)->why = entry->why;
    char why[sizeof entry->why];
    snprintf(why, sizeof why, "%s", entry->why);
    tell_lost(entry, why);
    entry->wish = WISH_NONE;
}

static void has_ended(struct slurm_entry *entry)
{
    bool cancelled = strcmp(entry->state, "CANCELLED") == 0;
    bool gone = strcmp(entry->state, "GONE") == 0;
    if (entry->completing)
        return;
    if (wants_back(entry) && !entry->revived) {
        entry->by_itself =
            entry->exit_code == LAUNCH_SAVED || entry->exit_code == LAUNCH_SAVED_TOO;
        entry->died = !entry->by_itself;
        entry->reviving = true;
        ask(entry, "revive", NULL);
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
        due(entry, slurm_now(entry->slurm) + AGAIN_NS);
        return;
    }
    if (strcmp(entry->state, "COMPLETED") == 0) {
        tell_end(entry, EVENT_FINISHED, true);
        entry->wish = WISH_NONE;
        return;
    }
    if ((cancelled || gone) && entry->wish != WISH_END)
        emit(entry, EVENT_CANCELLED)->why = entry->why;
    else if (strcmp(entry->state, "FAILED") != 0 && !cancelled && !gone)
        snprintf(entry->why, sizeof entry->why, "%s", entry->state);
    tell_end(entry, EVENT_FAILED, false);
    entry->wish = WISH_NONE;
}

static void keep_ending(struct slurm_entry *entry)
{
    int64_t now_ns = slurm_now(entry->slurm);
    if (entry->stands == STANDS_ENDED) {
        if (entry->reviving && !entry->sure) /* or it has been, and we have not heard */
            ask(entry, "poll", NULL);
        else if (entry->slot != JOB_NONE && entry->now.count > 0)
            has_ended(entry);
        return;
    }
    if (now_ns < entry->evict_ns) { /* it has been asked for */
        due(entry, entry->evict_ns);
        return;
    }
    entry->evicting = true;
    call_successors(entry);
    ask(entry, "cancel", NULL);
}

/* Its seats are nobody's, or those of its next lease. */
static void leave_seats(struct slurm_entry *entry)
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
    due(entry, slurm_now(entry->slurm)); /* and on from here */
    call_successors(entry);
}

/* --- one thing at a time ---------------------------------------------------------------- */

void slurm_drive(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    if (entry->seq || !slurm->synced || !entry->seen || slurm->closing)
        return;
    if (slurm_now(slurm) < entry->not_before_ns) {
        due(entry, entry->not_before_ns);
        return;
    }
    if (entry->heir && entry->slot == JOB_NONE)
        slurm_take_over(entry);
    if (entry->unsaid) {
        entry->unsaid = false;
        if (entry->stands != STANDS_ENDED) {
            ask(entry, "comment", say_why);
            slurm_set_active(entry, true);
            return;
        }
    }
    switch (entry->wish) {
    case WISH_NONE:
        if (entry->slot == JOB_NONE)
            meet(entry);
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
                 entry->stands != STANDS_RUNNING;
    if (quiet && entry->due_ns == INT64_MAX && entry->now.count == 0 && !entry->seq)
        slurm_set_active(entry, false);
    else if (entry->due_ns < INT64_MAX || !quiet || entry->seq)
        slurm_set_active(entry, true);
}

/* Of what was under way, when nobody knows whether it was carried out: ask again. */
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

static void refused(struct slurm_entry *entry, const struct json *done,
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
        entry->not_before_ns = 0; /* nobody to be told: then it just goes */
        entry->unheard = true;
        entry->evict_ns = slurm_now(slurm);
    }
    due(entry, entry->not_before_ns);
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
    } else if (strcmp(verb, "hold") == 0) {
        entry->parked = false;
        if (entry->stands == STANDS_RUNNING)
            entry->guarded = true;
        else if (!entry->tasks)
            entry->held = true; /* until it is looked at again */
    } else if (strcmp(verb, "script") == 0) {
        const char *text = json_as_text(json_get(done, "text"));
        free(entry->script);
        entry->script = text ? strdup(text) : NULL;
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
        refused(entry, done, verb);
    slurm_drive(entry);
}

/* --- orders ----------------------------------------------------------------------------- */

static struct hold copy_lease(const struct slurm *slurm, const struct lease *lease)
{
    struct hold hold = { .attempt = lease->attempt,
                         .count = lease->seat_count,
                         .after_count = lease->after_count,
                         .steps_max = lease->steps_max,
                         .seats = calloc(lease->seat_count + 1, sizeof(struct seat)),
                         .after = calloc(lease->after_count + 1, sizeof(job_id)),
                         .after_generation =
                             calloc(lease->after_count + 1, sizeof(uint32_t)) };
    if (!hold.seats || !hold.after || !hold.after_generation)
        abort();
    for (uint32_t i = 0; i < lease->seat_count; i++)
        hold.seats[i] = lease->seats[i];
    for (uint32_t i = 0; i < lease->after_count; i++) {
        hold.after[i] = lease->after[i];
        hold.after_generation[i] = slurm->setup.view->jobs[lease->after[i]].generation;
    }
    return hold;
}

static void free_hold(struct hold *hold)
{
    free(hold->seats);
    free(hold->after);
    free(hold->after_generation);
    *hold = (struct hold){ 0 };
}

/* A lease begins: its job is to run where it says. */
static void take_lease(struct slurm_entry *entry)
{
    const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
    entry->wish = WISH_RUN;
    entry->steps = entry->steps_kept = entry->saved = job->steps;
    entry->leased = entry->now.steps_max > 0;
    entry->lease_end = entry->steps_kept + (double)entry->now.steps_max;
    entry->restarts_then = entry->restarts;
    slurm_set_active(entry, true);
}

/* The entry of a job in the engine's books; Slurm may not have told of it yet. */
static struct slurm_entry *tie(struct slurm *slurm, job_id slot)
{
    const struct job *job = &slurm->setup.view->jobs[slot];
    struct slurm_entry *entry = slurm_find(slurm, job->id);
    if (!entry)
        entry = slurm_add(slurm, job->id);
    entry->slot = slot;
    entry->arriving = false;
    entry->generation = job->generation;
    slurm->slots[slot] = entry;
    return entry;
}

static int start(void *self, const struct lease *lease, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = entry_of(slurm, lease->job);
    if (!entry)
        return 0; /* it has ended, and that is on its way */
    bool moves = entry->wish == WISH_LEAVE || entry->now.count > 0;
    struct hold *hold = moves ? &entry->then : &entry->now;
    if (hold->count > 0 && hold->attempt == lease->attempt)
        return 0; /* told twice */
    free_hold(hold);
    *hold = copy_lease(slurm, lease);
    if (!moves) {
        take_lease(entry);
        due(entry, slurm_now(slurm));
    }
    return 0;
}

static int stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = entry_of(slurm, job);
    if (!entry || entry->wish != WISH_RUN)
        return 0;
    entry->wish = WISH_LEAVE;
    entry->evict_ns = slurm_now(slurm) + (has_signal(entry) ? grace_ns : 0);
    slurm_set_active(entry, true);
    due(entry, slurm_now(slurm));
    return 0;
}

static int cancel(void *self, job_id job, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = entry_of(slurm, job);
    if (!entry || entry->wish == WISH_NONE)
        return 0;
    free_hold(&entry->then);
    entry->evicting = false;
    entry->evict_ns = slurm_now(slurm);
    entry->wish = WISH_END;
    slurm_set_active(entry, true);
    due(entry, slurm_now(slurm));
    return 0;
}

static int renew(void *self, job_id job, uint64_t steps_max, bool together,
                 struct error *err)
{
    struct slurm_entry *entry = entry_of(self, job);
    if (!entry || entry->wish != WISH_RUN)
        return 0;
    entry->leased = steps_max > 0;
    entry->lease_end = steps_now(entry) + (double)steps_max;
    if (entry->told_started)
        check_lease(entry);
    return 0;
}

static const struct executor executor_slurm = {
    .name = "slurm",
    .start = start,
    .stop = stop,
    .cancel = cancel,
    .renew = renew,
};

/* --- a restart ----------------------------------------------------------------------------- */

static int reattach(void *self, const struct lease *lease, bool stopping,
                    int64_t grace_left_ns, struct error *err)
{
    struct slurm *slurm = self;
    const struct job *job = &slurm->setup.view->jobs[lease->job];
    struct slurm_entry *entry = tie(slurm, lease->job);
    entry->now = copy_lease(slurm, lease);
    take_lease(entry);
    entry->told_started = job_seated(job);
    entry->loaded = job->state != JOB_LOADING;
    entry->started_ns = job->since_ns;
    entry->loaded_at_ns = slurm_now(slurm);
    entry->restarts_then = UINT32_MAX; /* not known; whether it has started is */
    if (stopping) {
        entry->wish = WISH_LEAVE;
        entry->evict_ns = slurm_now(slurm) + grace_left_ns;
    }
    return 0;
}

/* Everybody who is in the books and not under way waits. */
static void settle(void *self)
{
    struct slurm *slurm = self;
    const struct view *view = slurm->setup.view;
    for (job_id slot = 0; slot < view->job_max; slot++)
        if (view->jobs[slot].state == JOB_WAITING || view->jobs[slot].state == JOB_HELD)
            tie(slurm, slot)->wish = WISH_WAIT;
}

/* --- what the engine makes of it -------------------------------------------------------------- */

/* It stays held, and says why: its owner can change it or cancel it. */
static void give_up(struct slurm_entry *entry, const char *why)
{
    if (!entry)
        return;
    entry->left_alone = entry->unsaid = true;
    entry->arriving = false;
    snprintf(entry->why, sizeof entry->why, "%s", why ? why : "given up");
    slurm_set_active(entry, true);
    due(entry, slurm_now(entry->slurm));
}

/* It is out of the engine's books. */
static void untie(struct slurm_entry *entry, const struct event *event)
{
    struct slurm *slurm = entry->slurm;
    slurm->slots[entry->slot] = NULL;
    entry->slot = JOB_NONE;
    entry->left_alone = true;
    free_hold(&entry->now);
    free_hold(&entry->then);
    if (entry->stands == STANDS_ENDED && entry->seen) {
        entry->wish = WISH_NONE;
        if (entry->heir) {
            slurm_set_active(entry, true);
            due(entry, slurm_now(slurm));
        }
        return;
    }
    bool unwanted = event->kind == EVENT_CANCELLED || event->kind == EVENT_DROPPED ||
                    entry->wish == WISH_END;
    entry->evicting = false;
    entry->evict_ns = slurm_now(slurm);
    entry->wish = unwanted ? WISH_END : WISH_NONE;
    slurm_set_active(entry, true);
    due(entry, slurm_now(slurm));
    if (!unwanted)
        give_up(entry, event->why);
}

static void hear_event(void *self, const struct view *view, const struct event *event)
{
    struct slurm *slurm = self;
    if (event->kind == EVENT_REJECTED) {
        give_up(slurm_find(slurm, event->spec->id), event->why);
        return;
    }
    if (event->job == JOB_NONE)
        return;
    if (event->kind == EVENT_SUBMITTED) {
        struct slurm_entry *entry = tie(slurm, event->job);
        entry->wish = WISH_WAIT;
        slurm_set_active(entry, true);
        /* One that runs must be known before it is placed; the others have time. */
        entry->in_step = true;
        if (entry->stands == STANDS_RUNNING && view->jobs[event->job].state == JOB_HELD)
            slurm_drive(entry);
        entry->in_step = false;
        due(entry, slurm_now(slurm));
        return;
    }
    struct slurm_entry *entry = entry_of(slurm, event->job);
    if (entry && event->kind == EVENT_PLACED)
        entry->adopting = false;
    if (entry && view->jobs[event->job].state == JOB_FREE)
        untie(entry, event);
}

static int hear_commit(void *self, struct error *err)
{
    return 0;
}

static uint32_t count(const void *self)
{
    const struct slurm *slurm = self;
    uint32_t under_way = 0;
    for (const struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        under_way += entry->now.count > 0;
    return under_way;
}

/* --- progress --------------------------------------------------------------------------------- */

void slurm_report(struct slurm *slurm, job_id job, double step, double loss,
                  double total)
{
    struct slurm_entry *entry = entry_of(slurm, job);
    if (!entry || entry->wish != WISH_RUN || !entry->told_started)
        return;
    int64_t now_ns = slurm_now(slurm);
    if (entry->own_steps && entry->reported_ns > 0 && now_ns > entry->reported_ns &&
        step > entry->steps) {
        double rate =
            (step - entry->steps) / ((double)(now_ns - entry->reported_ns) * 1e-9);
        entry->rate_per_s =
            entry->rate_per_s > 0 ? 0.7 * entry->rate_per_s + 0.3 * rate : rate;
    }
    entry->own_steps = true;
    entry->reported_ns = now_ns;
    entry->steps = step;
    entry->loss = loss;
    entry->total = total > 0 ? total : entry->total;
    tell_loaded(entry);
    struct event *event = emit(entry, EVENT_PROGRESS);
    event->steps = event->steps_reached = step;
    event->rate_per_s = entry->rate_per_s;
    event->loss = loss;
    event->steps_total = entry->total;
    check_lease(entry);
}

const char *slurm_trouble(const struct slurm *slurm)
{
    return slurm->synced ? "" : slurm->trouble[0] ? slurm->trouble : "not heard yet";
}

const char *slurm_reason(const struct slurm *slurm, uint64_t id)
{
    const struct slurm_entry *entry = slurm_find(slurm, id);
    return entry ? entry->reason : "";
}

/* --- beginning and end -------------------------------------------------------------------------- */

int slurm_open(struct slurm **ret_slurm, const struct slurm_setup *setup,
               struct error *err)
{
    struct slurm *slurm = calloc(1, sizeof *slurm);
    if (!slurm)
        abort();
    slurm->setup = *setup;
    slurm->timer_ns = slurm->look_ns = INT64_MAX;
    slurm->slots = calloc(setup->view->job_max, sizeof(struct slurm_entry *));
    slurm->hosts =
        calloc(setup->view->cluster->node_count + 1, sizeof(struct slurm_host));
    if (!slurm->slots || !slurm->hosts)
        abort();
    slurm_index_nodes(slurm);
    struct slurm_link_setup link = { .loop = setup->loop,
                                     .program = setup->program.path,
                                     .words = setup->program.words,
                                     .line = slurm_hear,
                                     .broken = slurm_deaf,
                                     .context = slurm };
    uv_timer_init(setup->loop, &slurm->timer);
    slurm->timer.data = slurm;
    *ret_slurm = slurm;
    return slurm_link_open(&slurm->link, &link, err);
}

static void timer_closed(uv_handle_t *handle)
{
    struct slurm *slurm = handle->data;
    while (slurm->entry_count > 0)
        slurm_forget(slurm->entries[slurm->entry_count - 1]);
    map_release(&slurm->by_id);
    map_release(&slurm->by_seq);
    map_release(&slurm->host_by_name);
    free(slurm->entries);
    free(slurm->slots);
    free(slurm->hosts);
    free(slurm);
}

static void close_slurm(void *self)
{
    struct slurm *slurm = self;
    slurm->closing = true;
    slurm_link_close(slurm->link);
    uv_close((uv_handle_t *)&slurm->timer, timer_closed);
}

const struct carrier carrier_slurm = {
    .executor = &executor_slurm,
    .close = close_slurm,
    .reattach = reattach,
    .settle = settle,
    .event = hear_event,
    .commit = hear_commit,
    .count = count,
};
