/* scenario_check.c - what must hold in every scenario. */
#include "support/scenario_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "daemon/why.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "store/db.h"
#include "store/store.h"
#include "support/state_check.h"

/* --- accounts of durable events, by public id ------------------------------------------ */

void scenario_record_entry(void *context, const struct ledger_entry *entry,
                           double wait_saved_s, bool open)
{
    struct scenario *s = context;
    uint32_t i = 0;
    while (i < s->entry_count && (s->entries[i].entry.victim != entry->victim ||
                                  s->entries[i].entry.number != entry->number))
        i++;
    if (i == s->entry_count) {
        if (s->entry_count == s->entry_room) {
            s->entry_room = s->entry_room ? 2 * s->entry_room : 64;
            s->entries = realloc(s->entries, s->entry_room * sizeof *s->entries);
            if (!s->entries)
                abort();
        }
        s->entry_count++;
    }
    s->entries[i] = (struct witnessed_entry){ *entry, open };
}

/* Feed the ledger that is never restarted, with public ids for slots. */
void scenario_witness(struct scenario *s, const struct observed_event *observed)
{
    struct event event = observed->event;
    s->witness_jobs[observed->job.id] = observed->job;
    event.job = (job_id)observed->job.id;
    if (event.kind == EVENT_RECALLED) {
        event.beneficiary =
            observed->beneficiary ? (job_id)observed->beneficiary : JOB_NONE;
        if (event.wait_saved_ns < 0)
            event.wait_saved_ns = 0; /* expected savings are not compared */
        if (observed->beneficiary)
            s->witness_jobs[observed->beneficiary].id = observed->beneficiary;
    }
    ledger_event(&s->witness, &s->witness_view, &event);
}

void scenario_account_for(struct scenario *s, const struct observed_event *observed)
{
    struct job_account *account = &s->accounts[observed->job.id];
    const struct event *event = &observed->event;
    bool seated = observed->job.state != JOB_FREE && job_holds_seats(&observed->job);
    if (event->kind == EVENT_SUBMITTED)
        account->accepted = true;
    if (seated != account->seated || observed->job.gpus_now != account->gpus) {
        if (account->seated)
            account->served_ns += (event->at_ns - account->since_ns) * account->gpus;
        account->since_ns = event->at_ns;
    }
    account->seated = seated;
    account->gpus = observed->job.gpus_now;
    account->preemptions = observed->job.preemptions;
    account->ends += observed->job.state == JOB_FREE;
    if (account->ends > 1)
        scenario_broken("job %" PRIu64 " ended twice", observed->job.id);
    if (event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED ||
        event->kind == EVENT_STOPPED || event->kind == EVENT_LOST)
        faulty_end_recorded(&s->faulty, observed->job.id, event->attempt);
}

/* --- checks -------------------------------------------------------------------------------- */

void scenario_check_placed(struct scenario *s, const struct view *view,
                           const struct event *event)
{
    const struct state *state = &s->engine.state;
    const struct job *job = &view->jobs[event->job];
    for (uint32_t i = 0; i < event->seat_count; i++) {
        const struct seat *seat = &event->seats[i];
        uint64_t held = 0;
        for (uint32_t k = 0; k < job->seats.count; k++)
            if (view->seats[job->seats.first + k].node == seat->node)
                held = view->seats[job->seats.first + k].gpus;
        if (state->node_down[seat->node])
            scenario_broken("job %" PRIu64 " is placed on n%u, which is down", job->id,
                            seat->node);
        if (seat->gpus & state->foreign[seat->node] & ~held)
            scenario_broken("job %" PRIu64 " is placed on GPUs of n%u that others use",
                            job->id, seat->node);
    }
}

static bool has_same_gpus(const struct state *state, const struct seat_row *row,
                          const struct faulty_attempt *attempt)
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

/* A running attempt must be in the state, on its GPUs or its next ones. */
static void check_attempt(const struct scenario *s,
                          const struct faulty_attempt *attempt)
{
    const struct state *state = &s->engine.state;
    job_id id = state_find(state, attempt->id);
    if (attempt->phase == FAULTY_OVER)
        return;
    if (id == JOB_NONE)
        scenario_broken("job %" PRIu64 " runs, and the books know nothing of it",
                        attempt->id);
    const struct job *job = &state->jobs[id];
    bool next = attempt->attempt == job->attempt + 1 && job->state == JOB_STOPPING &&
                job->next.count > 0;
    if (attempt->attempt != job->attempt && !next)
        scenario_broken("attempt %u of job %" PRIu64 " is there, the books say %d",
                        attempt->attempt, attempt->id, (int)job->attempt);
    if (job->state < JOB_PLACED)
        scenario_broken("job %" PRIu64 " is there, the books say that it waits",
                        attempt->id);
    if (!faulty_is_present(attempt))
        return;
    bool here = job_holds_seats(job) && has_same_gpus(state, &job->seats, attempt);
    bool there = job->next.count > 0 && has_same_gpus(state, &job->next, attempt);
    if (!here && !there)
        scenario_broken("job %" PRIu64 " sits elsewhere than the books say",
                        attempt->id);
}

/* A placed job must have an attempt in the executor. */
static void check_job(const struct scenario *s, job_id id)
{
    const struct state *state = &s->engine.state;
    const struct job *job = &state->jobs[id];
    const struct job_account *account = &s->accounts[job->id];
    if (job->state >= JOB_PLACED && !faulty_find(&s->faulty, job->id, job->attempt))
        scenario_broken("job %" PRIu64
                        "/%u has seats in the books, and nobody is there",
                        job->id, job->attempt);
    int64_t served_ns = account->served_ns;
    if (account->seated)
        served_ns += (s->now_ns - account->since_ns) * account->gpus;
    if (job_served_ns(job, s->now_ns) != served_ns)
        scenario_broken("job %" PRIu64 " had %.9f GPU-s, the books say %.9f", job->id,
                        (double)served_ns * 1e-9,
                        (double)job_served_ns(job, s->now_ns) * 1e-9);
    int64_t by_type_ns = 0;
    uint32_t types = state->view.cluster->type_count;
    for (uint32_t t = 0; t < types; t++)
        by_type_ns += state->served_ns[(size_t)id * types + t];
    if (by_type_ns != job->served_ns)
        scenario_broken("job %" PRIu64 ": its GPU-time by type does not add up",
                        job->id);
    if (!isfinite(job->steps) || !isfinite(job->rate_per_s) ||
        !isfinite(job->rate_best_per_s))
        scenario_broken("job %" PRIu64 ": a figure is no number", job->id);
}

/* "berth why" must find a reason for any job, and change nothing. */
static void check_why(struct scenario *s)
{
    const struct state *state = &s->engine.state;
    struct why_scene scene = { .engine = &s->engine, .now_ns = s->now_ns };
    struct why why;
    job_id id = rng_below(&s->questions, state->job_max);
    if (state->jobs[id].state == JOB_FREE)
        return;
    why_find(&why, &scene, id);
    if (why.reasons.count == 0)
        scenario_broken("nobody knows what holds job %" PRIu64 " back",
                        state->jobs[id].id);
    state_check(state);
}

void scenario_check_all(struct scenario *s)
{
    const struct state *state = &s->engine.state;
    uint32_t live = 0;
    s->refused = s->engine.refused_count > 0;
    if (s->refused)
        scenario_broken("a plan was refused: %s", s->engine.refusal->text);
    if (s->engine.flow_refused_count > 0)
        scenario_broken("the flow policy %s failed", s->flow->name);
    for (uint64_t id = 1; id <= s->world.setup.spec_count; id++) {
        const struct job_account *account = &s->accounts[id];
        if (!account->accepted || account->ends > 0)
            continue;
        live++;
        if (state_find(state, id) == JOB_NONE)
            scenario_broken("job %" PRIu64 " was accepted and is forgotten", id);
    }
    if (live != state->live_count)
        scenario_broken("%u jobs are live, the books have %u", live, state->live_count);
    for (uint32_t i = 0; i < s->faulty.attempt_count; i++)
        check_attempt(s, &s->faulty.attempts[i]);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            check_job(s, id);
    if (rng_below(&s->questions, 50) == 0)
        check_why(s);
}

/* Compare the rows of the store with the accounts, at the end. */
static void check_rows(struct scenario *s)
{
    struct db *db = store_reader(s->store);
    struct db_query *query =
        db_prepare(db, "SELECT id, end_ns, served_ns, preemptions FROM job "
                       "WHERE state <> 'REJECTED'");
    while (db_next(query, NULL) == 1) {
        uint64_t id = (uint64_t)db_get_int(query, 0);
        const struct job_account *account = &s->accounts[id];
        if (db_is_null(query, 1))
            scenario_broken("job %" PRIu64 " has ended, not so in the store", id);
        if (db_get_int(query, 2) != account->served_ns)
            scenario_broken("job %" PRIu64 " had %.9f GPU-s, the store says %.9f", id,
                            (double)account->served_ns * 1e-9,
                            (double)db_get_int(query, 2) * 1e-9);
        if (db_get_int(query, 3) != account->preemptions)
            scenario_broken("job %" PRIu64 " was sent away %u times, the store says %d",
                            id, account->preemptions, (int)db_get_int(query, 3));
    }
    db_finish(query);
}

static const struct ledger_entry *find_entry(const struct scenario *s, uint64_t victim,
                                             uint32_t number)
{
    for (uint32_t i = 0; i < s->entry_count; i++)
        if (s->entries[i].entry.victim == victim &&
            s->entries[i].entry.number == number)
            return &s->entries[i].entry;
    return NULL;
}

/* Compare the ledger in the store with that of the witness, entry by entry. */
static void check_ledger(struct scenario *s)
{
    struct db *db = store_reader(s->store);
    struct db_query *query =
        db_prepare(db, "SELECT victim, number, pause_ns, load_ns, redo_ns, "
                       "coalesce(started_ns, -1), open, steps, rate_per_s FROM ledger");
    uint32_t count = 0;
    while (db_next(query, NULL) == 1) {
        uint64_t victim = (uint64_t)db_get_int(query, 0);
        uint32_t number = (uint32_t)db_get_int(query, 1);
        const struct ledger_entry *entry = find_entry(s, victim, number);
        if (!entry)
            scenario_broken("the ledger: job %" PRIu64 " was not sent away a %uth time",
                            victim, number);
        const int64_t figures[] = { entry->pause_ns, entry->load_ns, entry->redo_ns,
                                    entry->started_ns };
        static const char *const names[] = { "pause", "load", "redo", "start" };
        for (int i = 0; i < 4; i++)
            if (db_get_int(query, 2 + i) != figures[i])
                scenario_broken("the ledger: preemption %u of job %" PRIu64
                                ": %s is %.9f s, it was %.9f s",
                                number, victim, names[i],
                                (double)db_get_int(query, 2 + i) * 1e-9,
                                (double)figures[i] * 1e-9);
        if (db_get_real(query, 7) != entry->steps ||
            db_get_real(query, 8) != entry->rate_per_s)
            scenario_broken("the ledger: preemption %u of job %" PRIu64
                            ": at %g steps and %g/s, it was %g and %g",
                            number, victim, db_get_real(query, 7),
                            db_get_real(query, 8), entry->steps, entry->rate_per_s);
        if (db_get_int(query, 6))
            scenario_broken("the ledger: preemption %u of job %" PRIu64
                            " is still open",
                            number, victim);
        count++;
    }
    db_finish(query);
    if (count != s->entry_count)
        scenario_broken("the ledger has %u preemptions, there were %u", count,
                        s->entry_count);
}

void scenario_check_end(struct scenario *s)
{
    const struct state *state = &s->engine.state;
    if (state->free.gpu_count != s->world.cluster.gpu_count)
        scenario_broken("all have ended, and only %u of %u GPUs are free",
                        state->free.gpu_count, s->world.cluster.gpu_count);
    for (uint64_t id = 1; id <= s->world.setup.spec_count; id++)
        if (s->accounts[id].accepted && s->accounts[id].ends != 1)
            scenario_broken("job %" PRIu64 " has not ended", id);
    check_rows(s);
    check_ledger(s);
}
