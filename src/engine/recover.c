/* recover.c - the state as it was at the last commit. */
#include "engine/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "metrics/ledger.h"
#include "model/allocation.h"
#include "model/cluster.h"
#include "store/db.h"
#include "store/rate_rows.h"
#include "store/rows.h"
#include "store/store.h"

struct recovery {
    const struct recover_setup *setup;
    struct state *state;
    struct arena arena;
    struct stored_job *jobs;
    job_id *slots; /* JOB_NONE: gone */
    uint32_t count, room;
    struct db_query *losses;
};

/* --- reading ---------------------------------------------------------------------- */

static struct stored_job *add_kept_job(struct recovery *rec)
{
    if (rec->count == rec->room) {
        rec->room = grow_room(rec->room, rec->count + 1);
        rec->jobs = memory_resize(rec->jobs, rec->room, sizeof *rec->jobs);
        rec->slots = memory_resize(rec->slots, rec->room, sizeof *rec->slots);
    }
    return &rec->jobs[rec->count];
}

static int read_jobs(struct recovery *rec, struct error *err)
{
    struct db_query *query = rows_select_live(store_reader(rec->setup->store));
    int r;
    do {
        struct stored_job *kept = add_kept_job(rec);
        r = rows_read_live(query, rec->state->view.cluster, &rec->arena, kept, err);
        rec->count += r == 1;
        if (r == -EILSEQ) /* one job must not keep the others from coming back */
            rec->setup->gone(rec->setup->context, kept, err->text);
    } while (r == 1 || r == -EILSEQ);
    db_finish(query);
    return r;
}

/* --- bringing back ------------------------------------------------------------------- */

static bool replay_event(struct recovery *rec, struct event event)
{
    if (event.job != JOB_NONE) {
        event.generation = rec->state->jobs[event.job].generation;
        event.attempt = rec->state->jobs[event.job].attempt;
    }
    return engine_replay(rec->setup->engine, &event);
}

static job_id submit_job(struct recovery *rec, const struct stored_job *kept)
{
    struct error err = { "" };
    struct job job;
    const void *tag = NULL;
    int r = rec->setup->spec(rec->setup->context, kept, &job, &tag, &err);
    if (r < 0) {
        rec->setup->gone(rec->setup->context, kept, err.text);
        return JOB_NONE;
    }
    job.class = kept->job.class;
    job.weight = kept->job.weight;
    job.deadline_ns = kept->job.deadline_ns;
    job.grace_ns = kept->job.grace_ns;
    struct event event = { .at_ns = kept->job.submit_ns,
                           .kind = EVENT_SUBMITTED,
                           .job = JOB_NONE,
                           .spec = &job };
    engine_replay(rec->setup->engine, &event);
    rec->setup->back(rec->setup->context, kept, tag, event.job);
    return event.job;
}

/* The slot of a job that holds seats again, by public id; or JOB_NONE. */
static job_id find_seated(const struct recovery *rec, uint64_t id)
{
    job_id slot = id ? state_find(rec->state, id) : JOB_NONE;
    return slot != JOB_NONE && job_holds_seats(&rec->state->jobs[slot]) ? slot
                                                                        : JOB_NONE;
}

static const struct stored_job *find_kept_job(const struct recovery *rec, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = rec->count; /* they were read in the order of their ids */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rec->jobs[middle].job.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rec->count && rec->jobs[low].job.id == id ? &rec->jobs[low] : NULL;
}

/* The job it shares GPUs with, if that one is restored; both records must name each other. */
static job_id find_partner(const struct recovery *rec, const struct stored_job *kept)
{
    const struct stored_job *other =
        kept->beside ? find_kept_job(rec, kept->beside) : NULL;
    return other && other->beside == kept->job.id ? find_seated(rec, kept->beside)
                                                  : JOB_NONE;
}

/* It will share GPUs that its next partner holds already. */
static bool joins_running_job(const struct recovery *rec, const struct stored_job *kept)
{
    const struct stored_job *other =
        kept->next_beside ? find_kept_job(rec, kept->next_beside) : NULL;
    return other && other->next_beside != kept->job.id;
}

/*
 * The job it will share its pending allocation with: one that moves there as well, or is
 * there.  JOB_NONE if that one is not restored yet: it will then find this one.
 */
static job_id find_next_partner(const struct recovery *rec,
                                const struct stored_job *kept)
{
    job_id slot =
        kept->next_beside ? state_find(rec->state, kept->next_beside) : JOB_NONE;
    if (slot == JOB_NONE)
        return JOB_NONE;
    const struct job *job = &rec->state->jobs[slot];
    bool there =
        joins_running_job(rec, kept) ? job->seats.count > 0 : job->next.count > 0;
    return there ? slot : JOB_NONE;
}

/* The event's seats are free, pending or shared: as allocation_reserve() will count them. */
static bool has_room(const struct recovery *rec, const struct event *event)
{
    const struct cluster *cluster = rec->state->view.cluster;
    for (uint32_t i = 0; i < event->seat_count; i++) {
        const struct seat *seat = &event->seats[i];
        if (seat->node >= cluster->node_count)
            return false;
        struct room room = rec->state->free.rooms[seat->node];
        uint64_t gpus = event->beside == JOB_NONE ? seat->gpus : 0;
        gpus &= ~allocation_vacated_gpus(rec->state, event, seat->node);
        uint64_t cpu_milli = room.cpu_milli;
        uint64_t mem_mib = room.mem_mib;
        for (uint32_t p = 0; p < event->pending_count; p++) {
            const struct room_part *part = &event->pending_shares[p].part;
            if (part->node != seat->node)
                continue;
            cpu_milli += part->cpu_milli;
            mem_mib += part->mem_mib;
        }
        if (gpus & ~room.gpus || seat->cpu_milli > cpu_milli || seat->mem_mib > mem_mib)
            return false;
    }
    return event->seat_count > 0;
}

/* Give a job the seats it held. */
static bool seat_job(struct recovery *rec, job_id id, const struct stored_job *kept)
{
    struct event placed = { .at_ns = kept->job.since_ns,
                            .kind = EVENT_PLACED,
                            .job = id,
                            .seats = kept->seats,
                            .seat_count = kept->seat_count,
                            .steps_max = kept->job.steps_max,
                            .beside = find_partner(rec, kept),
                            .spread = kept->job.spread_now };
    if (!has_room(rec, &placed))
        return false;
    replay_event(rec, placed);
    replay_event(rec, (struct event){ .at_ns = kept->job.since_ns,
                                      .kind = EVENT_STARTED,
                                      .job = id,
                                      .loaded = kept->job.state != JOB_LOADING });
    if (kept->job.state == JOB_IDLE)
        replay_event(rec, (struct event){ .at_ns = kept->job.since_ns,
                                          .kind = EVENT_LEASE_DONE,
                                          .job = id,
                                          .steps = kept->job.steps });
    if (kept->job.state == JOB_STOPPING)
        replay_event(rec, (struct event){ .at_ns = kept->job.recalled_ns,
                                          .kind = EVENT_RECALLED,
                                          .job = id,
                                          .rule = kept->job.leaving ? RULE_CANCEL
                                                  : rec->state->jobs[id].stays
                                                      ? RULE_CALENDAR
                                                      : RULE_ORDER,
                                          .wait_saved_ns = -1,
                                          .beneficiary = JOB_NONE });
    return true;
}

/*
 * A pending share counts while its victim still holds what it is part of.  An empty one only
 * says that the victim has to stop first: the room comes from a job that shares with it.
 */
static bool is_still_pending(const struct recovery *rec, job_id victim,
                             const struct room_part *part)
{
    if (!part->gpus && !part->cpu_milli && !part->mem_mib)
        return true;
    const struct job *job = &rec->state->jobs[victim];
    for (uint32_t i = 0; i < job->seats.count; i++) {
        const struct seat *seat = &rec->state->seats[job->seats.first + i];
        if (seat->node == part->node)
            return (part->gpus & ~seat->gpus) == 0 &&
                   part->cpu_milli <= seat->cpu_milli && part->mem_mib <= seat->mem_mib;
    }
    return false;
}

/* Give a job its pending allocation again. */
static bool place_pending(struct recovery *rec, job_id id,
                          const struct stored_job *kept)
{
    struct pending_part *pending_shares =
        arena_array(&rec->arena, struct pending_part, kept->pending_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->pending_count; i++) {
        job_id victim = find_seated(rec, kept->pending_shares[i].victim);
        if (victim != JOB_NONE &&
            is_still_pending(rec, victim, &kept->pending_shares[i].part))
            pending_shares[count++] =
                (struct pending_part){ victim, kept->pending_shares[i].part };
    }
    bool runs = job_runs(&rec->state->jobs[id]);
    struct event event = { .at_ns = kept->job.since_ns,
                           .kind = runs ? EVENT_RESIZING : EVENT_PLACED,
                           .job = id,
                           .seats = kept->next,
                           .seat_count = kept->next_count,
                           .pending_shares = pending_shares,
                           .pending_count = count,
                           .steps_max = kept->job.steps_max,
                           .beside = find_next_partner(rec, kept),
                           .spread = kept->job.spread_now };
    if (!has_room(rec, &event))
        return false;
    replay_event(rec, event);
    return true;
}

/* Times and counts as they were when the job was stored. */
static void restore_history(struct recovery *rec, job_id id,
                            const struct stored_job *kept)
{
    double steps[LOSS_POINTS];
    double losses[LOSS_POINTS];
    uint32_t count = 0; /* a job that never started has reported nothing */
    if (kept->job.first_start_ns >= 0)
        count = rows_read_losses(rec->losses, kept->job.id, steps, losses, LOSS_POINTS);
    for (uint32_t i = 0; i < count / 2; i++) {
        double step = steps[i];
        double loss = losses[i];
        steps[i] = steps[count - 1 - i];
        losses[i] = losses[count - 1 - i];
        steps[count - 1 - i] = step;
        losses[count - 1 - i] = loss;
    }
    struct restored history = { kept->served_ns, steps, losses, count };
    replay_event(rec, (struct event){ .at_ns = rec->setup->now_ns,
                                      .kind = EVENT_RESTORED,
                                      .job = id,
                                      .spec = &kept->job,
                                      .history = &history });
}

/* Which nodes are down and which GPUs others use is known now, not from the store. */
static void replay_nodes(struct recovery *rec)
{
    const struct recover_setup *setup = rec->setup;
    for (node_id n = 0; n < rec->state->view.cluster->node_count; n++) {
        if (setup->node_down && setup->node_down[n])
            replay_event(rec, (struct event){ .at_ns = setup->now_ns,
                                              .kind = EVENT_NODE_DOWN,
                                              .job = JOB_NONE,
                                              .node = n });
        if (setup->foreign && setup->foreign[n])
            replay_event(rec, (struct event){ .at_ns = setup->now_ns,
                                              .kind = EVENT_FOREIGN,
                                              .job = JOB_NONE,
                                              .node = n,
                                              .gpus = setup->foreign[n] });
    }
}

/* Entries of the calendar that are not over; those on nodes that are gone are left out. */
static void restore_calendar(struct recovery *rec)
{
    const struct recover_setup *setup = rec->setup;
    char *text = store_fact(setup->store, "calendar");
    for (const char *line = text ? text : ""; *line; line += strspn(line, "\n")) {
        struct calendar_entry entry;
        bool found = calendar_read(line, rec->state->view.cluster, &entry);
        line += strcspn(line, "\n");
        if (!found)
            continue;
        if (entry.owner[0] && setup->user)
            entry.user = setup->user(setup->context, entry.owner);
        replay_event(rec, (struct event){ .at_ns = setup->now_ns,
                                          .kind = EVENT_RESERVED,
                                          .job = JOB_NONE,
                                          .entry = &entry });
    }
    free(text);
}

/* --- all of it ------------------------------------------------------------------------ */

static void restore_jobs(struct recovery *rec)
{
    for (uint32_t i = 0; i < rec->count; i++)
        rec->slots[i] = submit_job(rec, &rec->jobs[i]);
    for (uint32_t i = 0; i < rec->count; i++)
        if (rec->slots[i] != JOB_NONE && rec->jobs[i].seat_count > 0)
            seat_job(rec, rec->slots[i], &rec->jobs[i]);
    /* A job that joins a running one is placed before that one may get another allocation. */
    for (int staying = 1; staying >= 0; staying--)
        for (uint32_t i = 0; i < rec->count; i++)
            if (rec->slots[i] != JOB_NONE && rec->jobs[i].next_count > 0 &&
                joins_running_job(rec, &rec->jobs[i]) == staying)
                place_pending(rec, rec->slots[i], &rec->jobs[i]);
    for (uint32_t i = 0; i < rec->count; i++) {
        if (rec->slots[i] == JOB_NONE)
            continue;
        if (rec->jobs[i].job.state == JOB_HELD)
            replay_event(rec, (struct event){ .at_ns = rec->setup->now_ns,
                                              .kind = EVENT_HELD,
                                              .job = rec->slots[i] });
        restore_history(rec, rec->slots[i], &rec->jobs[i]);
        ledger_restore_job(rec->setup->ledger, &rec->state->view, rec->slots[i]);
    }
}

static int restore_ledger(struct recovery *rec, struct error *err)
{
    struct db_query *query = rows_select_open(store_reader(rec->setup->store));
    struct ledger_entry entry;
    int r;
    while ((r = rows_read_entry(query, &entry, err)) == 1) {
        job_id victim = state_find(rec->state, entry.victim);
        if (victim == JOB_NONE)
            continue;
        if (entry.beneficiary_id && entry.started_ns < 0 && entry.shared_by > 0)
            entry.beneficiary = state_find(rec->state, entry.beneficiary_id);
        ledger_restore_entry(rec->setup->ledger, &rec->state->view, victim, &entry);
    }
    db_finish(query);
    return r;
}

/* Pairs of jobs that do not share any more are closed. */
static int restore_pairs(struct recovery *rec, struct error *err)
{
    struct pair_ledger *pairs = &rec->setup->ledger->pairs;
    struct db *db = store_reader(rec->setup->store);
    struct pair_totals totals;
    int r = rows_read_pair_totals(db, &totals, err);
    if (r < 0)
        return r;
    pair_ledger_restore_totals(pairs, &totals);
    struct db_query *query = rows_select_open_pairs(db);
    struct pair_entry entry;
    while ((r = rows_read_pair(query, &entry, err)) == 1) {
        job_id slots[2] = { state_find(rec->state, entry.jobs[0]),
                            state_find(rec->state, entry.jobs[1]) };
        pair_ledger_restore(pairs, &rec->state->view, slots, &entry);
    }
    db_finish(query);
    return r;
}

int recover_state(const struct recover_setup *setup, struct error *err)
{
    struct recovery rec = { .setup = setup, .state = &setup->engine->state };
    arena_init(&rec.arena, 0);
    rec.losses = rows_select_losses(store_reader(setup->store));
    int r = 0;
    if (rec.state->learns)
        r = rate_rows_read(store_reader(setup->store), rec.state, err);
    if (r == 0)
        r = read_jobs(&rec, err);
    if (r == 0)
        restore_jobs(&rec);
    if (r == 0)
        r = restore_ledger(&rec, err);
    if (r == 0)
        r = restore_pairs(&rec, err);
    replay_nodes(&rec);
    restore_calendar(&rec);
    setup->engine->state.view.now_ns = setup->now_ns;
    db_finish(rec.losses);
    free(rec.jobs);
    free(rec.slots);
    arena_release(&rec.arena);
    if (r == 0)
        engine_adopt(setup->engine);
    return r;
}
