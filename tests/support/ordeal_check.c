/* ordeal_check.c - what must be so in every world, whatever goes wrong. */
#include "support/ordeal_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "daemon/why.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "store/db.h"
#include "store/store.h"

/* --- the witness: what is durable, by public id ---------------------------------------- */

void ordeal_write_down(void *context, const struct ledger_entry *entry,
                       double wait_saved_s, bool open)
{
    struct ordeal *o = context;
    uint32_t i = 0;
    while (i < o->entry_count && (o->entries[i].entry.victim != entry->victim ||
                                  o->entries[i].entry.number != entry->number))
        i++;
    if (i == o->entry_count) {
        if (o->entry_count == o->entry_room) {
            o->entry_room = o->entry_room ? 2 * o->entry_room : 64;
            o->entries = realloc(o->entries, o->entry_room * sizeof *o->entries);
            if (!o->entries)
                abort();
        }
        o->entry_count++;
    }
    o->entries[i] = (struct witnessed){ *entry, open };
}

/* The same ledger, which was never interrupted, with public ids for slots. */
void ordeal_witness(struct ordeal *o, const struct told *told)
{
    struct event event = told->event;
    o->witness_jobs[told->job.id] = told->job;
    event.job = (job_id)told->job.id;
    if (event.kind == EVENT_RECALLED) {
        event.for_whom = told->for_whom ? (job_id)told->for_whom : JOB_NONE;
        if (event.wait_saved_ns < 0)
            event.wait_saved_ns = 0; /* what is hoped for is not compared */
        if (told->for_whom)
            o->witness_jobs[told->for_whom].id = told->for_whom;
    }
    ledger_event(&o->witness, &o->witness_view, &event);
}

void ordeal_account_for(struct ordeal *o, const struct told *told)
{
    struct account *account = &o->accounts[told->job.id];
    const struct event *event = &told->event;
    bool seated = told->job.state != JOB_FREE && job_seated(&told->job);
    if (event->kind == EVENT_SUBMITTED)
        account->accepted = true;
    if (seated != account->seated || told->job.gpus_now != account->gpus) {
        if (account->seated)
            account->served_ns += (event->at_ns - account->since_ns) * account->gpus;
        account->since_ns = event->at_ns;
    }
    account->seated = seated;
    account->gpus = told->job.gpus_now;
    account->preemptions = told->job.preemptions;
    account->ends += told->job.state == JOB_FREE;
    if (account->ends > 1)
        ordeal_broken("job %" PRIu64 " ended twice", told->job.id);
    if (event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED ||
        event->kind == EVENT_STOPPED || event->kind == EVENT_LOST)
        ground_recorded(&o->ground, told->job.id, event->attempt);
}

/* --- checks -------------------------------------------------------------------------------- */

void ordeal_check_placed(struct ordeal *o, const struct view *view,
                         const struct event *event)
{
    const struct state *state = &o->engine.state;
    const struct job *job = &view->jobs[event->job];
    for (uint32_t i = 0; i < event->seat_count; i++) {
        const struct seat *seat = &event->seats[i];
        uint64_t held = 0;
        for (uint32_t k = 0; k < job->seats.count; k++)
            if (view->seats[job->seats.first + k].node == seat->node)
                held = view->seats[job->seats.first + k].gpus;
        if (state->node_down[seat->node])
            ordeal_broken("job %" PRIu64 " is placed on n%u, which is down", job->id,
                          seat->node);
        if (seat->gpus & state->foreign[seat->node] & ~held)
            ordeal_broken("job %" PRIu64 " is placed on GPUs of n%u that others use",
                          job->id, seat->node);
    }
}

static bool same_places(const struct state *state, const struct seat_row *row,
                        const struct ground_attempt *attempt)
{
    if (row->count != attempt->seat_count)
        return false;
    for (uint32_t i = 0; i < row->count; i++) {
        const struct seat *seat = &state->seats[row->first + i];
        if (seat->node != attempt->seats[i].node ||
            seat->gpus != attempt->seats[i].gpus)
            return false;
    }
    return true;
}

/* Whoever is there is in the books: in the seats that he has there, or will have. */
static void check_attempt(const struct ordeal *o, const struct ground_attempt *attempt)
{
    const struct state *state = &o->engine.state;
    job_id id = state_find(state, attempt->id);
    if (attempt->phase == GROUND_OVER)
        return;
    if (id == JOB_NONE)
        ordeal_broken("job %" PRIu64 " runs, and the books know nothing of it",
                      attempt->id);
    const struct job *job = &state->jobs[id];
    bool next = attempt->attempt == job->attempt + 1 && job->state == JOB_STOPPING &&
                job->next.count > 0;
    if (attempt->attempt != job->attempt && !next)
        ordeal_broken("attempt %u of job %" PRIu64 " is there, the books say %d",
                      attempt->attempt, attempt->id, (int)job->attempt);
    if (job->state < JOB_PLACED)
        ordeal_broken("job %" PRIu64 " is there, the books say that it waits",
                      attempt->id);
    if (!ground_is_there(attempt))
        return;
    bool here = job_seated(job) && same_places(state, &job->seats, attempt);
    bool there = job->next.count > 0 && same_places(state, &job->next, attempt);
    if (!here && !there)
        ordeal_broken("job %" PRIu64 " sits elsewhere than the books say", attempt->id);
}

/* Whoever has seats in the books is there, or was, or is about to be. */
static void check_job(const struct ordeal *o, job_id id)
{
    const struct state *state = &o->engine.state;
    const struct job *job = &state->jobs[id];
    const struct account *account = &o->accounts[job->id];
    if (job->state >= JOB_PLACED && !ground_find(&o->ground, job->id, job->attempt))
        ordeal_broken("job %" PRIu64 "/%u has seats in the books, and nobody is there",
                      job->id, job->attempt);
    int64_t served_ns = account->served_ns;
    if (account->seated)
        served_ns += (o->now_ns - account->since_ns) * account->gpus;
    if (job_served_ns(job, o->now_ns) != served_ns)
        ordeal_broken("job %" PRIu64 " had %.9f GPU-s, the books say %.9f", job->id,
                      (double)served_ns * 1e-9,
                      (double)job_served_ns(job, o->now_ns) * 1e-9);
    int64_t by_type_ns = 0;
    uint32_t types = state->view.cluster->type_count;
    for (uint32_t t = 0; t < types; t++)
        by_type_ns += state->served_ns[(size_t)id * types + t];
    if (by_type_ns != job->served_ns)
        ordeal_broken("job %" PRIu64 ": its GPU-time by type does not add up", job->id);
    if (!isfinite(job->steps) || !isfinite(job->rate_per_s) ||
        !isfinite(job->rate_best_per_s))
        ordeal_broken("job %" PRIu64 ": a figure is no number", job->id);
}

/* Whoever is there has a reason for being where it is; asking changes nothing. */
static void ask_why(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    struct why_scene scene = { .engine = &o->engine, .now_ns = o->now_ns };
    struct why why;
    job_id id = rng_below(&o->questions, state->job_max);
    if (state->jobs[id].state == JOB_FREE)
        return;
    why_find(&why, &scene, id);
    if (why.reasons.count == 0)
        ordeal_broken("nobody knows what holds job %" PRIu64 " back",
                      state->jobs[id].id);
    state_check(state);
}

void ordeal_check_all(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    uint32_t live = 0;
    o->refused = o->engine.refused_count > 0;
    if (o->refused)
        ordeal_broken("a plan was refused: %s", o->engine.refusal->text);
    if (o->engine.flow_refused_count > 0)
        ordeal_broken("the flow policy %s failed", o->flow->name);
    for (uint64_t id = 1; id <= o->world.setup.spec_count; id++) {
        const struct account *account = &o->accounts[id];
        if (!account->accepted || account->ends > 0)
            continue;
        live++;
        if (state_find(state, id) == JOB_NONE)
            ordeal_broken("job %" PRIu64 " was accepted and is forgotten", id);
    }
    if (live != state->live_count)
        ordeal_broken("%u jobs are live, the books have %u", live, state->live_count);
    for (uint32_t i = 0; i < o->ground.attempt_count; i++)
        check_attempt(o, &o->ground.attempts[i]);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            check_job(o, id);
    if (rng_below(&o->questions, 50) == 0)
        ask_why(o);
}

/* What the store has in the end, against the accounts of who was there all the time. */
static void check_rows(struct ordeal *o)
{
    struct db *db = store_reader(o->store);
    struct db_query *query =
        db_prepare(db, "SELECT id, end_ns, served_ns, preemptions FROM job "
                       "WHERE state <> 'REJECTED'");
    while (db_next(query, NULL) == 1) {
        uint64_t id = (uint64_t)db_get_int(query, 0);
        const struct account *account = &o->accounts[id];
        if (db_is_null(query, 1))
            ordeal_broken("job %" PRIu64 " has ended, not so in the store", id);
        if (db_get_int(query, 2) != account->served_ns)
            ordeal_broken("job %" PRIu64 " had %.9f GPU-s, the store says %.9f", id,
                          (double)account->served_ns * 1e-9,
                          (double)db_get_int(query, 2) * 1e-9);
        if (db_get_int(query, 3) != account->preemptions)
            ordeal_broken("job %" PRIu64 " was sent away %u times, the store says %d",
                          id, account->preemptions, (int)db_get_int(query, 3));
    }
    db_finish(query);
}

static const struct ledger_entry *find_entry(const struct ordeal *o, uint64_t victim,
                                             uint32_t number)
{
    for (uint32_t i = 0; i < o->entry_count; i++)
        if (o->entries[i].entry.victim == victim &&
            o->entries[i].entry.number == number)
            return &o->entries[i].entry;
    return NULL;
}

/* The ledger in the store, entry by entry, is that of a witness who never slept. */
static void check_ledger(struct ordeal *o)
{
    struct db *db = store_reader(o->store);
    struct db_query *query =
        db_prepare(db, "SELECT victim, number, pause_ns, load_ns, redo_ns, "
                       "coalesce(started_ns, -1), open, steps, rate_per_s FROM ledger");
    uint32_t count = 0;
    while (db_next(query, NULL) == 1) {
        uint64_t victim = (uint64_t)db_get_int(query, 0);
        uint32_t number = (uint32_t)db_get_int(query, 1);
        const struct ledger_entry *entry = find_entry(o, victim, number);
        if (!entry)
            ordeal_broken("the ledger: job %" PRIu64 " was not sent away a %uth time",
                          victim, number);
        const int64_t figures[] = { entry->pause_ns, entry->load_ns, entry->redo_ns,
                                    entry->started_ns };
        static const char *const names[] = { "pause", "load", "redo", "start" };
        for (int i = 0; i < 4; i++)
            if (db_get_int(query, 2 + i) != figures[i])
                ordeal_broken("the ledger: preemption %u of job %" PRIu64
                              ": %s is %.9f s, it was %.9f s",
                              number, victim, names[i],
                              (double)db_get_int(query, 2 + i) * 1e-9,
                              (double)figures[i] * 1e-9);
        if (db_get_real(query, 7) != entry->steps ||
            db_get_real(query, 8) != entry->rate_per_s)
            ordeal_broken("the ledger: preemption %u of job %" PRIu64
                          ": at %g steps and %g/s, it was %g and %g",
                          number, victim, db_get_real(query, 7), db_get_real(query, 8),
                          entry->steps, entry->rate_per_s);
        if (db_get_int(query, 6))
            ordeal_broken("the ledger: preemption %u of job %" PRIu64 " is still open",
                          number, victim);
        count++;
    }
    db_finish(query);
    if (count != o->entry_count)
        ordeal_broken("the ledger has %u preemptions, there were %u", count,
                      o->entry_count);
}

void ordeal_check_end(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    if (state->free.gpu_count != o->world.cluster.gpu_count)
        ordeal_broken("all have ended, and only %u of %u GPUs are free",
                      state->free.gpu_count, o->world.cluster.gpu_count);
    for (uint64_t id = 1; id <= o->world.setup.spec_count; id++)
        if (o->accounts[id].accepted && o->accounts[id].ends != 1)
            ordeal_broken("job %" PRIu64 " has not ended", id);
    check_rows(o);
    check_ledger(o);
}
