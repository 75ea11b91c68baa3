/* why.c - what holds a job back. */
#include "daemon/why.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/words.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/jot.h"
#include "base/units.h"
#include "daemon/daemon.h"
#include "daemon/gates.h"
#include "daemon/records.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define NAMED_MAX 8    /* jobs named in a sentence */
#define AHEAD_MAX 1000 /* jobs in the list of those ahead */

/* ---- room ---- */

/* What a job could have, over the types it may use. */
struct room_for {
    uint32_t total;   /* accelerators there are                        */
    uint32_t up;      /* of these on nodes that are up                 */
    uint32_t free;    /* of these free                                 */
    uint32_t foreign; /* or in use by others than our jobs             */
    uint32_t largest; /* free on one node with CPUs and memory for all */
    bool fits;        /* there is room now                             */
    bool fits_gpus;   /* there would be, but for CPUs or memory        */
};

static bool may_use(const struct job *job, const struct node *node)
{
    if (job->gpus == 0)
        return true;
    return node->type != TYPE_NONE && (job->types >> node->type & 1);
}

static void look_at_node(const struct state *state, const struct job *job, node_id id,
                         struct room_for *room)
{
    const struct node *node = &state->view.cluster->nodes[id];
    const struct room *left = &state->free.rooms[id];
    room->total += node->gpu_count;
    if (state->node_down[id])
        return;
    uint32_t gpus = bits_count(left->gpus);
    room->up += node->gpu_count;
    room->free += gpus;
    room->foreign += bits_count(state->foreign[id]);
    bool rest = left->cpu_milli >= job->cpu_milli && left->mem_mib >= job->mem_mib;
    if (rest && gpus > room->largest)
        room->largest = gpus;
    room->fits = room->fits || (rest && gpus >= job->gpus);
    room->fits_gpus = room->fits_gpus || gpus >= job->gpus;
}

static struct room_for look_for_room(const struct state *state, const struct job *job)
{
    struct room_for room = { 0 };
    const struct cluster *cluster = state->view.cluster;
    for (node_id id = 0; id < cluster->node_count; id++)
        if (may_use(job, &cluster->nodes[id]))
            look_at_node(state, job, id, &room);
    return room;
}

/* "v100 or p100", of those it may use. */
static void name_types(struct buf *text, const struct state *state, uint32_t types)
{
    const char * or = "";
    for (uint32_t i = 0; i < state->view.cluster->type_count; i++) {
        if (!(types >> i & 1))
            continue;
        buf_print(text, "%s%s", or, state->view.cluster->types[i].name);
        or = " or ";
    }
}

/* ---- sentences ---- */

static void say_room(struct buf *text, const struct state *state, const struct job *job,
                     const struct room_for *room)
{
    if (job->gpus == 0) {
        buf_print(text, "needs %.10g CPUs and %u MiB: not free now",
                  job->cpu_milli / 1000.0, job->mem_mib);
        return;
    }
    buf_print(text, "needs %u ", job->gpus);
    name_types(text, state, job->types);
    if (room->free < job->gpus)
        buf_print(text, ", %u of %u %s free", room->free, room->total,
                  room->free == 1 ? "is" : "are");
    else if (room->fits_gpus)
        buf_print(text, " with %.10g CPUs and %u MiB: those are not free beside them",
                  job->cpu_milli / 1000.0, job->mem_mib);
    else
        buf_print(text, " together, %u are free but on different nodes", room->free);
}

static void say_leaving(struct buf *text, const struct state *state,
                        const struct job *job)
{
    uint32_t named = 0;
    for (uint32_t p = job->promised_by; p != UINT32_MAX && named < NAMED_MAX;
         p = state->promises[p].next_of_successor) {
        uint64_t victim = state->jobs[state->promises[p].victim].id;
        buf_print(text, "%s%" PRIu64, named ? ", " : "has its seats: waits for job ",
                  victim);
        named++;
    }
    buf_text(text, named ? " to leave" : "is being started");
}

static void say_turn(struct buf *text, const struct daemon_facts *facts)
{
    buf_print(text, "there is room, but %s has not given it to this job",
              facts->engine->policy->name);
}

static void say_gate(struct buf *text, const struct daemon_facts *facts,
                     const struct job *job)
{
    const struct gate *gate = gates_find(facts->gates, job->id);
    size_t before = text->count;
    if (gate)
        gates_explain(gate, facts->now_ns, text);
    if (text->count == before)
        buf_text(text, "is held");
}

/* The first reason; and its token. */
static const char *first_reason(const struct daemon_facts *facts, const struct job *job,
                                struct buf *text)
{
    const struct state *state = &facts->engine->state;
    switch (job->state) {
    case JOB_HELD:
        say_gate(text, facts, job);
        return "held";
    case JOB_PLACED:
        say_leaving(text, state, job);
        return "starting";
    case JOB_STOPPING:
        buf_text(text, job->leaving ? "was cancelled and is leaving"
                                    : "was asked to leave and saves its state");
        return "stopping";
    case JOB_WAITING:
        break;
    default:
        buf_text(text, "runs");
        return "running";
    }
    struct room_for room = look_for_room(state, job);
    if (room.fits) {
        say_turn(text, facts);
        return "turn";
    }
    say_room(text, state, job, &room);
    return room.free < job->gpus || !room.fits_gpus ? "gpus" : "cpus";
}

void why_reason(const struct daemon_facts *facts, job_id job, struct buf *text)
{
    first_reason(facts, &facts->engine->state.jobs[job], text);
}

/* ---- who is ahead ---- */

/* By what a policy orders those who wait: smaller goes first. */
struct rank {
    double first;
    int64_t second;
    uint64_t id;
};

enum order { BY_SUBMISSION, BY_CLASS, BY_WORK, BY_SERVICE };

static enum order order_of(const char *policy)
{
    static const struct {
        const char *name;
        enum order order;
    } orders[] = { { "fitgpp", BY_CLASS }, { "lrtp", BY_CLASS }, { "rand", BY_CLASS },
                   { "sjf", BY_WORK },     { "srtf", BY_WORK },  { "xion", BY_WORK },
                   { "las", BY_SERVICE } };
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (strcmp(orders[i].name, policy) == 0)
            return orders[i].order;
    return BY_SUBMISSION;
}

static const char *const order_words[] = {
    [BY_SUBMISSION] = "submitted earlier",
    [BY_CLASS] = "trial jobs first, then in order of submission",
    [BY_WORK] = "less work left",
    [BY_SERVICE] = "less GPU-time so far",
};

static struct rank rank_of(const struct state *state, job_id id, enum order order,
                           int64_t now_ns)
{
    const struct job *job = &state->jobs[id];
    struct rank rank = { .second = job->submit_ns, .id = job->id };
    if (order == BY_CLASS)
        rank.first = job->class == CLASS_TE ? 0 : 1;
    else if (order == BY_WORK)
        rank.first = (double)view_work_left_ns(&state->view, id);
    else if (order == BY_SERVICE)
        rank.first = (double)job_served_ns(job, now_ns);
    return rank;
}

static int compare(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->first < y->first || x->first > y->first)
        return x->first < y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Those who wait and come first; how many.  'ret_ranks' is to be freed. */
static uint32_t find_ahead(const struct daemon_facts *facts, job_id id,
                           struct rank **ret_ranks)
{
    const struct state *state = &facts->engine->state;
    enum order order = order_of(facts->engine->policy->name);
    struct rank own = rank_of(state, id, order, facts->now_ns);
    uint32_t count = 0;
    struct rank *ranks = malloc((state->live_count + 1) * sizeof *ranks);
    assert(ranks);
    for (job_id other = 0; other < state->job_count; other++) {
        if (other == id || state->jobs[other].state != JOB_WAITING)
            continue;
        struct rank rank = rank_of(state, other, order, facts->now_ns);
        if (compare(&rank, &own) < 0)
            ranks[count++] = rank;
    }
    qsort(ranks, count, sizeof *ranks, compare);
    *ret_ranks = ranks;
    return count;
}

/* ---- the whole story ---- */

static void put_reason(struct buf *json, const char *token, const struct buf *text)
{
    jot_open(json, NULL, '{');
    jot_text(json, "token", token);
    jot_text(json, "text", text->bytes);
    jot_close(json, '}');
}

/* Who holds what it may use. */
static void put_holders(struct buf *json, const struct state *state,
                        const struct job *job, struct buf *text)
{
    uint32_t named = 0, count = 0;
    buf_reset(text);
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *other = &state->jobs[id];
        if (!job_seated(other) || other->state == JOB_FREE || other->gpus_now == 0 ||
            !(job->types >> other->type_now & 1))
            continue;
        count++;
        if (named < NAMED_MAX)
            buf_print(text, "%s%" PRIu64 " (%u)", named++ ? ", " : "held by job ",
                      other->id, other->gpus_now);
    }
    if (count > named)
        buf_print(text, " and %u more", count - named);
    if (count > 0)
        put_reason(json, "held_by", text);
}

static void put_foreign(struct buf *json, const struct room_for *room, struct buf *text)
{
    if (room->foreign == 0)
        return;
    buf_reset(text);
    buf_print(text, "%u in use by processes that Berth did not start", room->foreign);
    put_reason(json, "foreign", text);
}

static void put_down(struct buf *json, const struct room_for *room, struct buf *text)
{
    if (room->up == room->total)
        return;
    buf_reset(text);
    buf_print(text, "%u of %u are on nodes that are down", room->total - room->up,
              room->total);
    put_reason(json, "node_down", text);
}

/* By whom it was told to leave last, why, and what that cost. */
static void put_preempted(struct buf *json, const struct daemon_facts *facts,
                          const struct job *job, struct buf *text)
{
    if (job->preemptions == 0)
        return;
    struct db_query *query =
        records_ledger(store_reader(facts->store), (int64_t)job->id, 0, 1);
    struct words_entry entry;
    if (records_next_entry(query, &entry)) {
        buf_reset(text);
        buf_text(text, "was asked to leave");
        if (entry.newcomer)
            buf_print(text, " for job %" PRIu64, entry.newcomer);
        buf_print(text, " (%s): %.4g GPU-seconds were expected to be lost, %.4g so far",
                  entry.rule, (double)entry.predicted_cost_ns * 1e-9,
                  (double)(entry.pause_ns + entry.load_ns + entry.redo_ns) * 1e-9);
        put_reason(json, "preempted", text);
    }
    db_finish(query);
}

static void put_ahead_reason(struct buf *json, const struct daemon_facts *facts,
                             uint32_t count, struct buf *text)
{
    if (count == 0)
        return;
    buf_reset(text);
    buf_print(text, "%u %s ahead by %s: %s", count, count == 1 ? "job is" : "jobs are",
              facts->engine->policy->name,
              order_words[order_of(facts->engine->policy->name)]);
    put_reason(json, "ahead", text);
}

static void put_reasons(struct buf *json, const struct daemon_facts *facts,
                        const struct job *job, uint32_t ahead)
{
    const struct state *state = &facts->engine->state;
    struct buf text;
    buf_init(&text, 4096);
    jot_open(json, "reasons", '[');
    const char *token = first_reason(facts, job, &text);
    put_reason(json, token, &text);
    if (job->state == JOB_WAITING) {
        struct room_for room = look_for_room(state, job);
        if (!room.fits && job->gpus > 0)
            put_holders(json, state, job, &text);
        put_foreign(json, &room, &text);
        put_down(json, &room, &text);
        put_ahead_reason(json, facts, ahead, &text);
    }
    put_preempted(json, facts, job, &text);
    jot_close(json, ']');
    buf_release(&text);
}

/* Would it fit, were it like this? */
static bool fits_as(const struct state *state, const struct job *job, uint32_t types,
                    uint32_t gpus)
{
    struct job other = *job;
    other.types = types;
    other.gpus = gpus;
    return look_for_room(state, &other).fits;
}

/* The smallest job that has what is missing; JOB_NONE: one alone does not do it. */
static job_id smallest_holder(const struct state *state, const struct job *job,
                              uint32_t missing)
{
    job_id best = JOB_NONE;
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *other = &state->jobs[id];
        if (!job_runs(other) || other->gpus_now < missing ||
            !(job->types >> other->type_now & 1))
            continue;
        if (best == JOB_NONE || other->gpus_now < state->jobs[best].gpus_now)
            best = id;
    }
    return best;
}

/* Would a trial job make enough of those who run leave? */
static bool trial_would_do(const struct daemon_facts *facts, const struct job *job,
                           uint32_t missing)
{
    const struct state *state = &facts->engine->state;
    uint32_t yielding = 0;
    if (job->class == CLASS_TE || order_of(facts->engine->policy->name) != BY_CLASS)
        return false;
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *other = &state->jobs[id];
        if (job_may_leave(other) && other->class == CLASS_BE &&
            (job->types >> other->type_now & 1))
            yielding += other->gpus_now;
    }
    return yielding >= missing;
}

/* A type it does not ask for and that has room; TYPES_MAX: none. */
static uint32_t other_type(const struct state *state, const struct job *job)
{
    for (uint32_t type = 0; type < state->view.cluster->type_count; type++)
        if (!(job->types >> type & 1) && fits_as(state, job, 1u << type, job->gpus))
            return type;
    return TYPES_MAX;
}

/* For a job that waits for accelerators. */
static void say_change(struct buf *text, const struct daemon_facts *facts,
                       const struct job *job, const struct room_for *room)
{
    const struct state *state = &facts->engine->state;
    uint32_t missing = job->gpus > room->free ? job->gpus - room->free : 0;
    uint32_t type = other_type(state, job);
    job_id holder = smallest_holder(state, job, missing);
    if (type != TYPES_MAX)
        buf_print(text, "that it may use %s: there is room",
                  state->view.cluster->types[type].name);
    else if (room->largest > 0 && room->largest < job->gpus &&
             fits_as(state, job, job->types, room->largest))
        buf_print(text, "that it asks for %u instead of %u", room->largest, job->gpus);
    else if (missing > 0 && trial_would_do(facts, job, missing))
        buf_print(text, "that it is a trial job: berth set %" PRIu64 " --class te",
                  job->id);
    else if (missing > 0 && holder != JOB_NONE)
        buf_print(text, "that job %" PRIu64 " ends or is cancelled",
                  state->jobs[holder].id);
}

/* The least that would start it now; nothing, if nothing simple would. */
static void put_change(struct buf *json, const struct daemon_facts *facts,
                       const struct job *job, uint32_t ahead)
{
    struct room_for room = look_for_room(&facts->engine->state, job);
    const struct gate *gate = gates_find(facts->gates, job->id);
    struct buf text;
    buf_init(&text, 1024);
    if (job->state == JOB_HELD && gate && gate->held)
        buf_print(&text, "that it is released: berth release %" PRIu64, job->id);
    else if (job->state == JOB_WAITING && room.fits && ahead > 0)
        buf_text(&text, "that those ahead start or leave the queue");
    else if (job->state == JOB_WAITING && !room.fits && job->gpus > 0)
        say_change(&text, facts, job, &room);
    if (text.count > 0)
        jot_text(json, "smallest_change", text.bytes);
    buf_release(&text);
}

void why_explain(const struct daemon_facts *facts, job_id id, struct buf *json)
{
    const struct job *job = &facts->engine->state.jobs[id];
    struct rank *ranks = NULL;
    uint32_t ahead = 0;
    if (job->state == JOB_WAITING)
        ahead = find_ahead(facts, id, &ranks);

    const struct gate *gate = gates_find(facts->gates, job->id);
    jot_open(json, NULL, '{');
    jot_count(json, "id", (int64_t)job->id);
    jot_text(json, "state", rows_state(job));
    jot_flag(json, "can_ever_run", !(gate && gate->never)); /* intake took it */
    put_reasons(json, facts, job, ahead);
    jot_open(json, "ahead", '[');
    for (uint32_t i = 0; i < ahead && i < AHEAD_MAX; i++)
        jot_count(json, NULL, (int64_t)ranks[i].id);
    jot_close(json, ']');
    put_change(json, facts, job, ahead);
    jot_close(json, '}');
    free(ranks);
}

void why_ended(const struct words_job *job, struct buf *json)
{
    bool rejected = strcmp(job->state, "REJECTED") == 0;
    jot_open(json, NULL, '{');
    jot_count(json, "id", (int64_t)job->id);
    jot_text(json, "state", job->state);
    jot_flag(json, "can_ever_run", !rejected);
    jot_open(json, "reasons", '[');
    jot_open(json, NULL, '{');
    jot_text(json, "token", rejected ? "never" : "ended");
    jot_text(json, "text", job->reason ? job->reason : "it has ended");
    jot_close(json, '}');
    jot_close(json, ']');
    jot_open(json, "ahead", '[');
    jot_close(json, ']');
    jot_close(json, '}');
}
