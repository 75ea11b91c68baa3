/* ordeal.c - one world with faults, from a seed, played to its end. */
#include "support/ordeal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/recover.h"
#include "flow/flow.h"
#include "model/plan.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"
#include "support/same.h"
#include "support/worlds.h"

#define SECOND INT64_C(1000000000)
#define JOBS_MAX 16
#define SPELL_TURNS 200 /* steps in one instant; more is a busy loop                */
#define CALM_TURNS 4000 /* steps after the last fault, within which all must end     */
#define LINES 60        /* events that are shown before a failure                    */
#define LINE_MAX 200

const char *const defect_names[DEFECT_COUNT] = {
    [DEFECT_NONE] = "none",
    [DEFECT_LOST_EVENT] = "lost-event",
    [DEFECT_FREED_TWICE] = "freed-twice",
    [DEFECT_NO_COMMIT] = "no-commit",
    [DEFECT_STALE] = "stale-attempt",
    [DEFECT_TOLD_EARLY] = "told-early",
    [DEFECT_HALF_GANG] = "half-gang",
    [DEFECT_STARTED_EARLY] = "started-early",
    [DEFECT_FORGOTTEN] = "forgotten-job",
    [DEFECT_MISCOUNTED] = "miscounted",
    [DEFECT_BUSY] = "busy",
};

/* What is told of one job by events that are durable. */
struct account {
    bool accepted;
    uint32_t ends;
    bool seated;
    uint32_t gpus;
    int64_t since_ns, served_ns;
    uint32_t preemptions;
};

/* An event as it was told, until it is durable. */
struct told {
    struct event event;
    struct job job;
    uint64_t for_whom;
};

/* An entry of the ledger as a witness has it who was there all the time. */
struct witnessed {
    struct ledger_entry entry;
    bool open;
};

enum crash { CRASH_NONE, CRASH_BEFORE, CRASH_AFTER, CRASH_AMID, CRASH_IDLE };

struct ordeal {
    const struct ordeal_setup *setup;
    struct worlds world;
    struct rng rng;
    struct arena arena, life, instant;
    struct intake intake;
    struct ground ground;
    struct engine engine;
    struct ledger ledger;
    struct store *store;
    char path[256];
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow;
    bool resizes, closes, closed;
    bool alive;

    struct outbox inbox;
    uint32_t next; /* spec to arrive */
    uint32_t next_durable;
    int64_t now_ns;
    int64_t deed_ns; /* when people act next */
    uint32_t deeds;  /* that they will still do */
    uint32_t pace_ms;
    uint32_t crashes; /* that will still be */
    bool calm;
    uint32_t turns_calm, turns_now;

    enum crash crash; /* in this step */
    uint32_t orders;  /* until the crash, while the executor is told */
    uint32_t commits; /* in this step */
    bool tampered;    /* the defect has been put in */

    struct account accounts[JOBS_MAX + 1];
    struct told *told;
    uint32_t told_count, told_room;

    struct ledger witness;
    struct view witness_view;
    struct job witness_jobs[JOBS_MAX + 1];
    struct witnessed *entries;
    uint32_t entry_count, entry_room;

    struct ordeal_counts counts;
    char lines[LINES][LINE_MAX];
    uint64_t line_count;
};

static struct ordeal *playing; /* for the report of whatever ends the process */
static int broken_status = 1;  /* of the process */

/* --- what led to it ------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void note(struct ordeal *o,
                                                       const char *fmt, ...)
{
    char *line = o->lines[o->line_count++ % LINES];
    int used = snprintf(line, LINE_MAX, "%14.6f  ", (double)o->now_ns * 1e-9);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + used, LINE_MAX - (size_t)used, fmt, args);
    va_end(args);
    if (o->setup->shows)
        puts(line);
}

void ordeal_report(const char *why)
{
    const struct ordeal *o = playing;
    if (!o)
        return;
    playing = NULL;
    uint64_t first = o->line_count > LINES ? o->line_count - LINES : 0;
    fflush(stdout);
    if (!o->setup->shows)
        for (uint64_t i = first; i < o->line_count; i++)
            fprintf(stderr, "%s\n", o->lines[i % LINES]);
    fprintf(stderr, "%14.6f  BROKEN under %s%s%s: %s\n", (double)o->now_ns * 1e-9,
            o->policy->name, o->settings ? "," : "", o->settings ? o->settings : "",
            why);
    fprintf(
        stderr, "again: build/tests/soak_worlds --seed %" PRIu64 " --policy %s%s%s\n",
        o->setup->seed, o->setup->policy->name, o->setup->defect ? " --defect " : "",
        o->setup->defect ? defect_names[o->setup->defect] : "");
    if (*o->path)
        for (int i = 0; i < 3; i++) {
            static const char *const ends[] = { "", "-wal", "-shm" };
            char file[300];
            snprintf(file, sizeof file, "%s%s", o->path, ends[i]);
            unlink(file);
        }
}

__attribute__((format(printf, 1, 2), noreturn)) static void broken(const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    ordeal_report(why);
    fflush(NULL);
    _exit(broken_status);
}

static bool chance(struct ordeal *o, uint32_t percent)
{
    return rng_below(&o->rng, 100) < percent;
}

static uint64_t id_at(const struct view *view, job_id job)
{
    return job == JOB_NONE ? 0 : view->jobs[job].id;
}

static bool is_of_job(const struct event *event)
{
    return event->kind != EVENT_REJECTED && event->job != JOB_NONE &&
           event->kind != EVENT_NODE_DOWN && event->kind != EVENT_NODE_UP &&
           event->kind != EVENT_FOREIGN && event->kind != EVENT_CLOSED;
}

static void note_event(struct ordeal *o, const struct view *view,
                       const struct event *event)
{
    char more[120] = "";
    size_t used = 0;
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        for (uint32_t i = 0; i < event->seat_count && used < sizeof more; i++)
            used += (size_t)snprintf(more + used, sizeof more - used, " n%u:%" PRIx64,
                                     event->seats[i].node, event->seats[i].gpus);
    if (event->kind == EVENT_PLACED && event->beside != JOB_NONE && used < sizeof more)
        snprintf(more + used, sizeof more - used, " beside %" PRIu64,
                 id_at(view, event->beside));
    if (event->kind == EVENT_RECALLED)
        snprintf(more, sizeof more, " by %s for %" PRIu64, rule_name(event->rule),
                 id_at(view, event->for_whom));
    if (event->kind == EVENT_PROGRESS || event->kind == EVENT_STOPPED ||
        event->kind == EVENT_LOST || event->kind == EVENT_LEASE_DONE)
        snprintf(more, sizeof more, " %.6g steps at %.4g/s", event->steps,
                 event->rate_per_s);
    if (!is_of_job(event))
        note(o, "%s n%u %" PRIx64, event_name(event->kind),
             event->kind >= EVENT_NODE_DOWN && event->kind <= EVENT_FOREIGN
                 ? event->node
                 : 0,
             event->kind == EVENT_FOREIGN ? event->gpus : 0);
    else
        note(o, "%s %" PRIu64 "/%d%s", event_name(event->kind),
             view->jobs[event->job].id, (int)view->jobs[event->job].attempt, more);
}

/* --- the witness: what is durable, by public id ---------------------------------------- */

static void write_down(void *context, const struct ledger_entry *entry,
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
static void witness_event(struct ordeal *o, const struct told *told)
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

static void account_for(struct ordeal *o, const struct told *told)
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
        broken("job %" PRIu64 " ended twice", told->job.id);
    if (event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED ||
        event->kind == EVENT_STOPPED || event->kind == EVENT_LOST)
        ground_recorded(&o->ground, told->job.id, event->attempt);
}

/* --- listening to the engine ------------------------------------------------------------- */

static void check_placed(struct ordeal *o, const struct view *view,
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
            broken("job %" PRIu64 " is placed on n%u, which is down", job->id,
                   seat->node);
        if (seat->gpus & state->foreign[seat->node] & ~held)
            broken("job %" PRIu64 " is placed on GPUs of n%u that others use", job->id,
                   seat->node);
    }
}

static void tamper(struct ordeal *o, const struct view *view, const struct event *event)
{
    struct state *state = &o->engine.state;
    struct job *job = &state->jobs[event->job];
    if (o->setup->defect == DEFECT_FREED_TWICE && event->kind == EVENT_STARTED &&
        job->gpus_now > 0 && !o->tampered) {
        const struct seat *seat = view_seats(view, event->job);
        state->free.rooms[seat->node].gpus |= seat->gpus;
        o->tampered = true;
    }
    if (o->setup->defect == DEFECT_MISCOUNTED && event->kind == EVENT_STOPPED &&
        job->state != JOB_FREE && !o->tampered) {
        job->served_ns++;
        o->tampered = true;
    }
}

static void hear(void *self, const struct view *view, const struct event *event)
{
    struct ordeal *o = self;
    note_event(o, view, event);
    o->counts.events++;
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        check_placed(o, view, event);
    if (is_of_job(event) && o->setup->defect)
        tamper(o, view, event);
    state_check(&o->engine.state);
    if (!is_of_job(event))
        return;
    if (o->told_count == o->told_room) {
        o->told_room = o->told_room ? 2 * o->told_room : 64;
        o->told = realloc(o->told, o->told_room * sizeof *o->told);
        if (!o->told)
            abort();
    }
    o->told[o->told_count++] =
        (struct told){ *event, view->jobs[event->job],
                       event->kind == EVENT_RECALLED ? id_at(view, event->for_whom)
                                                     : 0 };
}

static int die(struct error *err)
{
    return error_set(err, -ECANCELED, "the daemon dies");
}

static int before_commit(void *self, struct error *err)
{
    struct ordeal *o = self;
    return o->crash == CRASH_BEFORE && o->commits == 0 ? die(err) : 0;
}

static int commit_store(void *self, struct error *err)
{
    struct ordeal *o = self;
    if (o->setup->defect == DEFECT_NO_COMMIT && !o->tampered && o->told_count > 2 &&
        o->line_count > 30) {
        store_rollback(o->store);
        o->tampered = true;
        return 0;
    }
    if (o->setup->defect == DEFECT_TOLD_EARLY && o->crash == CRASH_AMID)
        return 0; /* and soon it is too late */
    return store_commit(o->store, err);
}

/* Behind the store: what was told is durable. */
static int after_commit(void *self, struct error *err)
{
    struct ordeal *o = self;
    o->commits++;
    o->counts.commits++;
    o->next_durable = o->next;
    for (uint32_t i = 0; i < o->told_count; i++) {
        account_for(o, &o->told[i]);
        witness_event(o, &o->told[i]);
    }
    o->told_count = 0;
    return o->crash == CRASH_AFTER ? die(err) : 0;
}

static void hear_nothing(void *self, const struct view *view, const struct event *event)
{
}

static void store_hear(void *self, const struct view *view, const struct event *event)
{
    struct ordeal *o = self;
    store_event(o->store, view, event);
}

/* --- the executor, which may be the last to hear of anything -------------------------------- */

static int one_order(struct ordeal *o, struct error *err)
{
    return o->crash == CRASH_AMID && o->orders-- == 0 ? die(err) : 0;
}

static int tell_start(void *self, const struct lease *lease, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.start(&o->ground, lease, err);
}

static int tell_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.stop(&o->ground, job, grace_ns, err);
}

static int tell_cancel(void *self, job_id job, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.cancel(&o->ground, job, err);
}

static int tell_resize(void *self, const struct lease *lease, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.resize(&o->ground, lease, err);
}

static int tell_renew(void *self, job_id job, uint64_t steps_max, bool together,
                      struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.renew(&o->ground, job, steps_max, together, err);
}

static const struct executor resizing = { .name = "told",
                                          .start = tell_start,
                                          .stop = tell_stop,
                                          .cancel = tell_cancel,
                                          .resize = tell_resize,
                                          .renew = tell_renew };
static const struct executor restarting = { .name = "told",
                                            .start = tell_start,
                                            .stop = tell_stop,
                                            .cancel = tell_cancel,
                                            .renew = tell_renew };

/* --- a life of the daemon --------------------------------------------------------------- */

static void begin_life(struct ordeal *o, struct engine *engine, struct ledger *ledger,
                       struct arena *life, bool listens)
{
    struct error err = { "" };
    arena_init(life, 0);
    struct engine_setup setup = { .cluster = &o->world.cluster,
                                  .rates = &o->world.rates,
                                  .policy = o->policy,
                                  .settings = o->settings,
                                  .flow = o->flow,
                                  .executor = o->resizes ? &resizing : &restarting,
                                  .executor_self = o,
                                  .job_max = JOBS_MAX,
                                  .seed = o->setup->seed };
    if (engine_init(engine, life, &setup, &err) < 0)
        broken("%s", err.text);
    ledger_init(ledger, life, &engine->state.view, NULL);
    if (!listens)
        return;
    ledger->note = store_entry;
    ledger->context = o->store;
    engine_listen(
        engine, (struct listener){ .event = hear, .commit = before_commit, .self = o });
    engine_listen(engine, (struct listener){ .event = ledger_event, .self = ledger });
    engine_listen(engine, (struct listener){
                              .event = store_hear, .commit = commit_store, .self = o });
    engine_listen(engine, (struct listener){ .event = hear_nothing,
                                             .commit = after_commit,
                                             .self = o,
                                             .kinds = 1u << EVENT_WAKE });
    store_attach(o->store, &engine->state);
}

static int spec_for(void *context, const struct kept_job *kept, struct job *ret_job,
                    struct error *err)
{
    struct ordeal *o = context;
    struct job_spec spec = o->world.specs[kept->job.id - 1];
    if (o->setup->defect == DEFECT_FORGOTTEN)
        return error_set(err, -ERANGE, "nobody wants it any more");
    spec.steps *= o->world.beliefs[kept->job.id - 1];
    spec.id = kept->job.id;
    spec.submit_ns = kept->job.submit_ns;
    return intake_job(&o->intake, &spec, ret_job, err);
}

static void back_for(void *context, const struct kept_job *kept, job_id job)
{
}

static void gone_for(void *context, const struct kept_job *kept, const char *why)
{
    struct ordeal *o = context;
    store_give_up(o->store, kept->job.id, o->now_ns, why);
}

static void bring_back(struct ordeal *o, struct engine *engine, struct ledger *ledger,
                       const struct state *known)
{
    struct error err = { "" };
    struct recover_setup setup = { .engine = engine,
                                   .ledger = ledger,
                                   .store = o->store,
                                   .now_ns = o->now_ns,
                                   .node_down = known->node_down,
                                   .foreign = known->foreign,
                                   .spec = spec_for,
                                   .back = back_for,
                                   .gone = gone_for,
                                   .context = o };
    if (recover(&setup, &err) < 0)
        broken("as it starts again: %s", err.text);
    engine->state.view.closed = known->view.closed;
    state_check(&engine->state);
}

/* The seats a job has, or has been promised, as the executor is told of them. */
static struct lease lease_of(struct ordeal *o, job_id id, bool next)
{
    const struct state *state = &o->engine.state;
    const struct job *job = &state->jobs[id];
    const struct seat_row *row = next ? &job->next : &job->seats;
    bool moves = next && job->seats.count > 0;
    job_id *after = arena_array(&o->instant, job_id, 2 * JOBS_MAX);
    uint32_t count = 0;
    if (moves)
        after[count++] = id;
    for (uint32_t p = job->promised_by; next && p != UINT32_MAX;
         p = state->promises[p].next_of_successor) {
        bool known = false;
        for (uint32_t k = 0; k < count; k++)
            known = known || after[k] == state->promises[p].victim;
        if (!known)
            after[count++] = state->promises[p].victim;
    }
    job_id beside = moves ? job->next_partner : job->partner;
    const struct seat *seats = &state->seats[row->first];
    return (struct lease){ .job = id,
                           .generation = job->generation,
                           .attempt = job->attempt + (moves && !job_runs(job)),
                           .type = state->view.cluster->nodes[seats[0].node].type,
                           .spread = job->spread_now,
                           .beside = beside,
                           .seats = seats,
                           .seat_count = row->count,
                           .after = after,
                           .after_count = count,
                           .steps_max = job->steps_max };
}

static void reattach(struct ordeal *o, job_id id)
{
    const struct job *job = &o->engine.state.jobs[id];
    struct lease lease = lease_of(o, id, job->state == JOB_PLACED);
    int64_t left_ns = job->recalled_ns + job->grace_ns - o->now_ns;
    left_ns = job->leaving || left_ns < 0 ? 0 : left_ns;
    ground_reattach(&o->ground, &lease, job->state == JOB_STOPPING, left_ns);
}

/* Those who are to go elsewhere are told so once all are known; who is to die, then. */
static void reattach_next(struct ordeal *o, job_id id)
{
    const struct job *job = &o->engine.state.jobs[id];
    if (job->leaving)
        executor_ground.cancel(&o->ground, id, NULL);
    else if (job->seats.count > 0 && job->next.count > 0) {
        struct lease lease = lease_of(o, id, true);
        const struct ground_attempt *there =
            ground_find(&o->ground, job->id, job->attempt);
        bool moved = there && there->resized && there->phase != GROUND_RESIZING;
        if (!job_runs(job))
            executor_ground.start(&o->ground, &lease, NULL);
        else if (!moved)
            executor_ground.resize(&o->ground, &lease, NULL);
    }
}

/* Engine and policy as they are built from the store, beside those in office. */
struct twin {
    struct engine engine;
    struct ledger ledger;
    struct arena life;
};

/* What is durable now, before a step that will not be. */
static void make_twin(struct ordeal *o, struct twin *twin)
{
    struct error err = { "" };
    begin_life(o, &twin->engine, &twin->ledger, &twin->life, false);
    bring_back(o, &twin->engine, &twin->ledger, &o->engine.state);
    if (same_state(&o->engine.state, &twin->engine.state, &err) < 0 ||
        same_ledger(&o->ledger, &twin->ledger, &err) < 0)
        broken("built from the store: %s", err.text);
}

static void end_life(struct ordeal *o, struct twin *life)
{
    o->counts.decisions += life->engine.decision_count;
    engine_release(&life->engine);
    ledger_release(&life->ledger);
    arena_release(&life->life);
}

static void reopen_store(struct ordeal *o)
{
    struct error err = { "" };
    store_close(o->store);
    o->store = NULL;
    if (store_open(&o->store, o->path, &err) < 0)
        broken("the store cannot be opened again: %s", err.text);
}

/* The daemon has died; 'twin': as it must be again, or NULL: as it was at the end. */
static void start_again(struct ordeal *o, const struct twin *twin)
{
    struct error err = { "" };
    struct twin old = { o->engine, o->ledger,
                        o->life }; /* their arrays stay in place */
    const struct twin *was = twin ? twin : &old;
    note(o, "the daemon dies, and starts again");
    o->counts.rebuildings++;
    ground_cut(&o->ground);
    o->inbox.count = 0;
    o->told_count = 0;
    o->next = o->next_durable;
    store_rollback(o->store);
    if (chance(o, 25))
        reopen_store(o);
    begin_life(o, &o->engine, &o->ledger, &o->life, true);
    bring_back(o, &o->engine, &o->ledger, &was->engine.state);
    if (same_state(&was->engine.state, &o->engine.state, &err) < 0 ||
        same_ledger(&was->ledger, &o->ledger, &err) < 0)
        broken("after the restart: %s", err.text);
    end_life(o, &old);

    ground_meet(&o->ground, &o->engine.state.view);
    const struct state *state = &o->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            reattach(o, id);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            reattach_next(o, id);
    ground_settle(&o->ground, state->node_down, state->foreign);
}

/* --- people ------------------------------------------------------------------------------ */

static struct event *add_event(struct ordeal *o, enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(&o->inbox);
    event->at_ns = o->now_ns;
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = o->engine.state.jobs[job].generation;
    return event;
}

static job_id any_job(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    if (state->job_count == 0)
        return JOB_NONE;
    job_id first = rng_below(&o->rng, state->job_count);
    for (uint32_t i = 0; i < state->job_count; i++) {
        job_id job = (first + i) % state->job_count;
        if (state->jobs[job].state != JOB_FREE)
            return job;
    }
    return JOB_NONE;
}

/* Another class, weight, grace, deadline or size; one that waits is held for it. */
static void change(struct ordeal *o, job_id id)
{
    const struct state *state = &o->engine.state;
    bool waits = state->jobs[id].state == JOB_WAITING;
    if (!waits && state->jobs[id].state != JOB_HELD)
        return;
    struct job *spec = arena_new(&o->instant, struct job);
    *spec = state->jobs[id];
    spec->class = chance(o, 50) ? CLASS_TE : CLASS_BE;
    spec->weight = 1 + rng_below(&o->rng, 3);
    spec->grace_ns = rng_below(&o->rng, 30) * SECOND;
    if (chance(o, 30))
        spec->steps_total = rng_below(&o->rng, 300);
    if (chance(o, 30))
        spec->deadline_ns = o->now_ns + (int64_t)rng_below(&o->rng, 1000) * SECOND;
    if (waits)
        add_event(o, EVENT_HELD, id);
    add_event(o, EVENT_CHANGED, id)->spec = spec;
    if (waits)
        add_event(o, EVENT_RELEASED, id);
    o->ground.faults[FAULT_CHANGE]++;
}

static bool has_param(const struct policy *policy, const char *name)
{
    for (const struct param *p = policy->params; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* Settings, now and then, that make it another policy. */
static const char *some_settings(struct ordeal *o, const struct policy *policy)
{
    static const char *const texts[][2] = {
        { "worth", "worth=xion" },        { "sharing", "sharing=true" },
        { "round", "round=60s" },         { "sharing", "sharing=true,round=120s" },
        { "hysteresis", "hysteresis=0" },
    };
    uint32_t choice = rng_below(&o->rng, 8);
    return choice < 5 && has_param(policy, texts[choice][0]) ? texts[choice][1] : NULL;
}

static const struct flow_policy *some_flow(struct ordeal *o)
{
    uint32_t count = 0;
    while (flow_list[count])
        count++;
    return flow_list[rng_below(&o->rng, count)];
}

static void change_policy(struct ordeal *o)
{
    struct error err = { "" };
    uint32_t count = 0;
    while (policy_list[count])
        count++;
    o->ground.faults[FAULT_POLICY]++;
    if (chance(o, 30)) {
        o->flow = some_flow(o);
        note(o, "flow policy %s takes office", o->flow->name);
        if (engine_set_flow(&o->engine, o->flow, NULL, &err) < 0)
            broken("%s", err.text);
        return;
    }
    o->policy = policy_list[rng_below(&o->rng, count)];
    o->settings = some_settings(o, o->policy);
    note(o, "%s %s takes office", o->policy->name, o->settings ? o->settings : "");
    if (engine_set_policy(&o->engine, o->policy, o->settings, &err) < 0)
        broken("%s", err.text);
}

static void take_gpus(struct ordeal *o, bool give)
{
    const struct cluster *cluster = &o->world.cluster;
    node_id node = rng_below(&o->rng, cluster->node_count);
    uint64_t all = ((uint64_t)1 << cluster->nodes[node].gpu_count) - 1;
    ground_set_foreign(&o->ground, node, give ? 0 : all & rng_below(&o->rng, 256));
}

static void cancel(struct ordeal *o, job_id job)
{
    o->ground.faults[FAULT_CANCEL]++;
    for (uint32_t n = chance(o, 25) ? 2 : 1; n > 0; n--) /* some are impatient */
        add_event(o, EVENT_CANCELLED, job)->why = "cancelled";
}

static void act(struct ordeal *o)
{
    job_id job = any_job(o);
    uint32_t deed = rng_below(&o->rng, 10);
    if (deed >= 8) {
        take_gpus(o, deed == 9);
    } else if (deed == 7) {
        change_policy(o);
    } else if (job == JOB_NONE) {
        return;
    } else if (deed <= 1) {
        cancel(o, job);
    } else if (deed <= 3) {
        o->ground.faults[FAULT_HOLD]++;
        add_event(o, EVENT_HELD, job); /* ignored unless it waits */
    } else if (deed == 4) {
        add_event(o, EVENT_RELEASED, job);
    } else {
        change(o, job);
    }
}

/* From now on nothing goes wrong any more, and nobody is held back. */
static void calm_down(struct ordeal *o)
{
    note(o, "from now on nothing goes wrong");
    o->calm = true;
    o->crashes = 0;
    ground_calm(&o->ground);
    for (job_id id = 0; id < o->engine.state.job_count; id++)
        if (o->engine.state.jobs[id].state == JOB_HELD)
            add_event(o, EVENT_RELEASED, id);
    o->deed_ns = INT64_MAX;
}

static void let_people_act(struct ordeal *o)
{
    if (o->now_ns < o->deed_ns)
        return;
    if (o->deeds == 0 && o->next == o->world.setup.spec_count) {
        calm_down(o);
        return;
    }
    for (uint32_t n = 1 + chance(o, 30); n > 0 && o->deeds > 0; n--, o->deeds--)
        act(o);
    o->deed_ns =
        o->now_ns + rng_below(&o->rng, o->pace_ms) * (SECOND / 1000) + SECOND / 1000;
}

/* --- jobs arrive ---------------------------------------------------------------------------- */

static void arrive(struct ordeal *o)
{
    struct error err = { "" };
    struct job_spec spec = o->world.specs[o->next];
    struct ground_truth *truth = &o->ground.truths[o->next + 1];
    spec.steps *= o->world.beliefs[o->next];
    spec.id = ++o->next;
    spec.submit_ns = o->now_ns;
    struct job *job = arena_new(&o->instant, struct job);
    struct store_job row = { .id = spec.id,
                             .user = "somebody",
                             .class = spec.class,
                             .gpus = spec.gpus,
                             .submit_ns = spec.submit_ns,
                             .request = "{}" };
    bool fits = intake_job(&o->intake, &spec, job, &err) == 0;
    row.rejected = fits ? NULL : err.text;
    struct event *event = add_event(o, EVENT_SUBMITTED, JOB_NONE);
    event->spec = job;
    if (fits) {
        truth->said = *job;
        if (!o->calm && chance(o, 15))
            job->state = JOB_HELD;
    } else {
        event->kind = EVENT_REJECTED;
        *job = (struct job){ .id = spec.id, .class = spec.class, .gpus = spec.gpus };
    }
    if (store_accept(o->store, &row, &err) < 0)
        broken("%s", err.text);
}

/* --- checks -------------------------------------------------------------------------------- */

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
        broken("job %" PRIu64 " runs, and the books know nothing of it", attempt->id);
    const struct job *job = &state->jobs[id];
    bool next = attempt->attempt == job->attempt + 1 && job->state == JOB_STOPPING &&
                job->next.count > 0;
    if (attempt->attempt != job->attempt && !next)
        broken("attempt %u of job %" PRIu64 " is there, the books say %d",
               attempt->attempt, attempt->id, (int)job->attempt);
    if (job->state < JOB_PLACED)
        broken("job %" PRIu64 " is there, the books say that it waits", attempt->id);
    if (!ground_is_there(attempt))
        return;
    bool here = job_seated(job) && same_places(state, &job->seats, attempt);
    bool there = job->next.count > 0 && same_places(state, &job->next, attempt);
    if (!here && !there)
        broken("job %" PRIu64 " sits elsewhere than the books say", attempt->id);
}

/* Whoever has seats in the books is there, or was, or is about to be. */
static void check_job(const struct ordeal *o, job_id id)
{
    const struct state *state = &o->engine.state;
    const struct job *job = &state->jobs[id];
    const struct account *account = &o->accounts[job->id];
    if (job->state >= JOB_PLACED && !ground_find(&o->ground, job->id, job->attempt))
        broken("job %" PRIu64 "/%u has seats in the books, and nobody is there",
               job->id, job->attempt);
    int64_t served_ns = account->served_ns;
    if (account->seated)
        served_ns += (o->now_ns - account->since_ns) * account->gpus;
    if (job_served_ns(job, o->now_ns) != served_ns)
        broken("job %" PRIu64 " had %.9f GPU-s, the books say %.9f", job->id,
               (double)served_ns * 1e-9, (double)job_served_ns(job, o->now_ns) * 1e-9);
    int64_t by_type_ns = 0;
    uint32_t types = state->view.cluster->type_count;
    for (uint32_t t = 0; t < types; t++)
        by_type_ns += state->served_ns[(size_t)id * types + t];
    if (by_type_ns != job->served_ns)
        broken("job %" PRIu64 ": its GPU-time by type does not add up", job->id);
    if (!isfinite(job->steps) || !isfinite(job->rate_per_s) ||
        !isfinite(job->rate_best_per_s))
        broken("job %" PRIu64 ": a figure is no number", job->id);
}

static void check_all(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    uint32_t live = 0;
    broken_status = o->engine.refused_count > 0 ? ORDEAL_REFUSED : 1;
    if (o->engine.refused_count > 0)
        broken("a plan was refused: %s", o->engine.refusal->text);
    if (o->engine.flow_refused_count > 0)
        broken("the flow policy %s failed", o->flow->name);
    for (uint64_t id = 1; id <= o->world.setup.spec_count; id++) {
        const struct account *account = &o->accounts[id];
        if (!account->accepted || account->ends > 0)
            continue;
        live++;
        if (state_find(state, id) == JOB_NONE)
            broken("job %" PRIu64 " was accepted and is forgotten", id);
    }
    if (live != state->live_count)
        broken("%u jobs are live, the books have %u", live, state->live_count);
    for (uint32_t i = 0; i < o->ground.attempt_count; i++)
        check_attempt(o, &o->ground.attempts[i]);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            check_job(o, id);
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
            broken("job %" PRIu64 " has ended, not so in the store", id);
        if (db_get_int(query, 2) != account->served_ns)
            broken("job %" PRIu64 " had %.9f GPU-s, the store says %.9f", id,
                   (double)account->served_ns * 1e-9,
                   (double)db_get_int(query, 2) * 1e-9);
        if (db_get_int(query, 3) != account->preemptions)
            broken("job %" PRIu64 " was sent away %u times, the store says %d", id,
                   account->preemptions, (int)db_get_int(query, 3));
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
            broken("the ledger: job %" PRIu64 " was not sent away a %uth time", victim,
                   number);
        const int64_t figures[] = { entry->pause_ns, entry->load_ns, entry->redo_ns,
                                    entry->started_ns };
        static const char *const names[] = { "pause", "load", "redo", "start" };
        for (int i = 0; i < 4; i++)
            if (db_get_int(query, 2 + i) != figures[i])
                broken("the ledger: preemption %u of job %" PRIu64
                       ": %s is %.9f s, it was %.9f s",
                       number, victim, names[i],
                       (double)db_get_int(query, 2 + i) * 1e-9,
                       (double)figures[i] * 1e-9);
        if (db_get_real(query, 7) != entry->steps ||
            db_get_real(query, 8) != entry->rate_per_s)
            broken("the ledger: preemption %u of job %" PRIu64
                   ": at %g steps and %g/s, it was %g and %g",
                   number, victim, db_get_real(query, 7), db_get_real(query, 8),
                   entry->steps, entry->rate_per_s);
        if (db_get_int(query, 6))
            broken("the ledger: preemption %u of job %" PRIu64 " is still open", number,
                   victim);
        count++;
    }
    db_finish(query);
    if (count != o->entry_count)
        broken("the ledger has %u preemptions, there were %u", count, o->entry_count);
}

static void check_end(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    if (state->free.gpu_count != o->world.cluster.gpu_count)
        broken("all have ended, and only %u of %u GPUs are free", state->free.gpu_count,
               o->world.cluster.gpu_count);
    for (uint64_t id = 1; id <= o->world.setup.spec_count; id++)
        if (o->accounts[id].accepted && o->accounts[id].ends != 1)
            broken("job %" PRIu64 " has not ended", id);
    check_rows(o);
    check_ledger(o);
}

/* --- a step ---------------------------------------------------------------------------------- */

static bool is_end(enum event_kind kind)
{
    return kind == EVENT_STOPPED || kind == EVENT_FINISHED || kind == EVENT_FAILED;
}

/* Answers as a careless daemon would take them. */
static void mishear(struct ordeal *o)
{
    for (uint32_t i = 0; i < o->inbox.count; i++) {
        struct event *event = &o->inbox.events[i];
        if (!is_end(event->kind) || event->job >= o->engine.state.job_count)
            continue;
        const struct job *job = &o->engine.state.jobs[event->job];
        bool stale =
            event->attempt != job->attempt || event->generation != job->generation;
        if (o->setup->defect == DEFECT_STALE && stale && job_seated(job)) {
            event->attempt = job->attempt;
            event->generation = job->generation;
        }
        if (o->setup->defect == DEFECT_LOST_EVENT && !stale && !o->tampered) {
            o->tampered = true;
            ground_recorded(&o->ground, job->id, job->attempt);
            o->inbox.events[i--] = o->inbox.events[--o->inbox.count];
        }
    }
}

/* Somebody comes or goes: such moments are short, and seldom hit by chance. */
static bool is_busy(const struct state *state)
{
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_PLACED || job->state == JOB_LOADING ||
            job->state == JOB_STOPPING || (job_seated(job) && job->next.count > 0))
            return true;
    }
    return false;
}

static void plan_crash(struct ordeal *o)
{
    o->crash = CRASH_NONE;
    if (o->crashes == 0 || !chance(o, is_busy(&o->engine.state) ? 15 : 3))
        return;
    o->crashes--;
    o->crash = CRASH_BEFORE + rng_below(&o->rng, 4);
    o->orders = rng_below(&o->rng, 3);
}

static void take_step(struct ordeal *o)
{
    struct error err = { "" };
    struct twin twin;
    plan_crash(o);
    bool twinned = o->crash == CRASH_BEFORE;
    if (twinned)
        make_twin(o, &twin);
    o->commits = 0;
    int r = engine_step(&o->engine, o->now_ns, o->inbox.events, o->inbox.count, &err);
    o->inbox.count = 0;
    if (r < 0 && o->crash == CRASH_NONE)
        broken("%s", err.text);
    if (r == 0 && o->crash != CRASH_IDLE)
        o->crash = CRASH_NONE; /* there was nobody to tell */
    if (o->crash != CRASH_NONE) {
        o->ground.faults[FAULT_CRASH_BEFORE + o->crash - CRASH_BEFORE]++;
        start_again(o, twinned ? &twin : NULL);
    }
    if (twinned)
        end_life(o, &twin);
    o->crash = CRASH_NONE;
    if (o->setup->defect == DEFECT_BUSY)
        o->engine.wake_ns = o->now_ns;
}

static int64_t earliest(const struct ordeal *o)
{
    int64_t at_ns = engine_wake_ns(&o->engine);
    int64_t ground_ns = ground_next_ns(&o->ground);
    at_ns = ground_ns < at_ns ? ground_ns : at_ns;
    at_ns = o->deed_ns < at_ns ? o->deed_ns : at_ns;
    if (o->next < o->world.setup.spec_count &&
        o->world.specs[o->next].submit_ns < at_ns)
        at_ns = o->world.specs[o->next].submit_ns;
    return at_ns;
}

static void stuck(const struct ordeal *o, const char *how)
{
    const struct state *state = &o->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            broken("%s; %u jobs are left, of them %" PRIu64 "/%d in state %u", how,
                   state->live_count, state->jobs[id].id, (int)state->jobs[id].attempt,
                   state->jobs[id].state);
    broken("%s; no job is left", how);
}

static void turn(struct ordeal *o)
{
    int64_t at_ns = earliest(o);
    if (at_ns == INT64_MAX)
        stuck(o, "nothing will happen any more");
    o->turns_now = at_ns > o->now_ns ? 0 : o->turns_now + 1;
    if (o->turns_now > SPELL_TURNS)
        stuck(o, "time stands still: a busy loop");
    if (o->calm && ++o->turns_calm > CALM_TURNS)
        stuck(o, "nothing goes wrong any more, and it does not come to its end");
    o->now_ns = at_ns > o->now_ns ? at_ns : o->now_ns;
    ground_advance(&o->ground, o->now_ns);
    let_people_act(o);
    ground_hear(&o->ground, &o->inbox);
    if (o->setup->defect)
        mishear(o);
    while (o->next < o->world.setup.spec_count &&
           o->world.specs[o->next].submit_ns <= o->now_ns)
        arrive(o);
    if (o->closes && !o->closed && o->next == o->world.setup.spec_count && o->calm) {
        add_event(o, EVENT_CLOSED, JOB_NONE);
        o->closed = true;
    }
    take_step(o);
    check_all(o);
    arena_reset(&o->instant);
}

/* --- a world ---------------------------------------------------------------------------------- */

/* Shorter than the worlds of other tests: there are many of them, and more goes on. */
static void make_truths(struct ordeal *o)
{
    uint32_t count = o->world.setup.spec_count;
    bool curves = chance(o, 30);
    bool talks = chance(o, 40);
    uint32_t kinds = rng_below(&o->rng, 4);
    uint32_t hurry = 4 + rng_below(&o->rng, 16);
    o->ground.truths = arena_array(&o->arena, struct ground_truth, count + 1);
    o->ground.truth_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &o->world.specs[i];
        spec->steps *= 0.4;
        spec->submit_ns /= hurry;
        if (curves && chance(o, 40))
            learning_parse(&spec->curve, "exp:mu=0.9", NULL);
        if (talks && chance(o, 50)) {
            spec->bytes_per_step = 1000000 + rng_below(&o->rng, 100000000);
            spec->may_send = chance(o, 50);
        }
        struct ground_truth *truth = &o->ground.truths[i + 1];
        *truth = (struct ground_truth){ .steps = spec->steps,
                                        .pause_ns = spec->pause_ns,
                                        .load_ns = spec->load_ns,
                                        .ckpt_ns = spec->ckpt_ns,
                                        .fails = spec->fails };
        if (chance(o, 10))
            truth->pause_ns = 3600 * SECOND; /* it does not listen */
        else if (chance(o, 20))
            truth->pause_ns += (int64_t)rng_below(&o->rng, 20) * SECOND;
        if (chance(o, 20))
            truth->load_ns += (int64_t)rng_below(&o->rng, 20) * SECOND;
        if (kinds > 0 && chance(o, 50))
            truth->report_ns = (int64_t)(10 + rng_below(&o->rng, 100)) * SECOND;
        truth->absurd = kinds == 2 && chance(o, 30);
    }
}

static void make_world(struct ordeal *o)
{
    struct worlds_setup setup = { .jobs = 4 + rng_below(&o->rng, JOBS_MAX - 3),
                                  .plain = chance(o, 25),
                                  .wrong_estimates = chance(o, 50),
                                  .unknown_work = chance(o, 40),
                                  .distinct_times = chance(o, 50),
                                  .impossible = chance(o, 20),
                                  .stays = chance(o, 25),
                                  .sets = chance(o, 30) };
    worlds_make(&o->world, &setup, o->setup->seed);
    if (chance(o, 30))
        worlds_share(&o->world, o->setup->seed);
    make_truths(o);
    o->ground.broken = broken;
    o->ground.faulty = true;
    o->ground.trouble = chance(o, 70) ? 10 + rng_below(&o->rng, 150) : 0;
    o->ground.starts_early = o->setup->defect == DEFECT_STARTED_EARLY;
    o->ground.starts_half = o->setup->defect == DEFECT_HALF_GANG;
    if (chance(o, 50)) {
        o->ground.mtbf_ns = (int64_t)(50 + rng_below(&o->rng, 2000)) * SECOND;
        o->ground.mttr_ns = (int64_t)(1 + rng_below(&o->rng, 100)) * SECOND;
    }
    ground_init(&o->ground, &o->world.cluster, &o->world.rates, o->setup->seed);
    o->deeds = rng_below(&o->rng, 40);
    o->pace_ms = 1000 + rng_below(&o->rng, 30000);
    o->crashes = chance(o, 80) ? 1 + rng_below(&o->rng, 7) : 0;
    o->resizes = chance(o, 50);
    o->closes = chance(o, 50);
    o->settings = some_settings(o, o->policy);
    o->flow = chance(o, 30) ? some_flow(o) : NULL;
}

static void remove_store(const char *path)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char file[300];
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
}

static void begin(struct ordeal *o)
{
    struct error err = { "" };
    rng_init(&o->rng, o->setup->seed, o->setup->policy->name);
    arena_init(&o->arena, 0);
    arena_init(&o->instant, 0);
    make_world(o);
    intake_init(&o->intake, &o->world.cluster, &o->world.rates);
    snprintf(o->path, sizeof o->path, "%s/berth-world-%d.db", o->setup->folder,
             (int)getpid());
    remove_store(o->path); /* of one that failed */
    if (store_open(&o->store, o->path, &err) < 0)
        broken("%s", err.text);
    begin_life(o, &o->engine, &o->ledger, &o->life, true);
    ground_meet(&o->ground, &o->engine.state.view);
    o->witness_view = (struct view){ .jobs = o->witness_jobs,
                                     .job_max = JOBS_MAX + 1,
                                     .cluster = &o->world.cluster,
                                     .rates = &o->world.rates };
    ledger_init(&o->witness, &o->arena, &o->witness_view, NULL);
    o->witness.note = write_down;
    o->witness.context = o;
    note(o, "%s%s%s, flow policy %s, %u nodes, %u jobs", o->policy->name,
         o->settings ? "," : "", o->settings ? o->settings : "",
         o->flow ? o->flow->name : "none", o->world.cluster.node_count,
         o->world.setup.spec_count);
}

static bool is_over(const struct ordeal *o)
{
    return o->calm && o->engine.state.live_count == 0 &&
           o->next == o->world.setup.spec_count && o->ground.wire_count == 0;
}

static void end(struct ordeal *o)
{
    struct twin last = { o->engine, o->ledger, o->life };
    end_life(o, &last);
    store_close(o->store);
    remove_store(o->path);
    ledger_release(&o->witness);
    ground_release(&o->ground);
    intake_release(&o->intake);
    outbox_release(&o->inbox);
    worlds_release(&o->world);
    arena_release(&o->instant);
    arena_release(&o->arena);
    free(o->told);
    free(o->entries);
}

void ordeal_play(const struct ordeal_setup *setup, struct ordeal_counts *counts)
{
    static struct ordeal ordeal;
    struct ordeal *o = &ordeal;
    memset(o, 0, sizeof *o);
    o->setup = setup;
    o->policy = setup->policy;
    playing = o;
    begin(o);
    while (!is_over(o))
        turn(o);
    check_end(o);
    counts->worlds++;
    counts->events += o->counts.events;
    counts->commits += o->counts.commits;
    counts->rebuildings += o->counts.rebuildings;
    counts->jobs += o->next;
    end(o);
    counts->decisions += o->counts.decisions;
    for (uint32_t f = 0; f < FAULT_COUNT; f++)
        counts->faults[f] += o->ground.faults[f];
    playing = NULL;
}
