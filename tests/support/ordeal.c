/* ordeal.c - one world with faults, from a seed, played to its end. */
#include "support/ordeal_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "policy/policy.h"
#include "store/store.h"

#define SPELL_TURNS 200 /* steps in one instant; more is a busy loop                */
#define CALM_TURNS 4000 /* steps after the last fault, within which all must end     */

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

static struct ordeal *playing; /* for the report of whatever ends the process */

/* --- what led to it ------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void ordeal_note(struct ordeal *o,
                                                       const char *fmt, ...)
{
    char *line = o->lines[o->line_count++ % LINES];
    int used = snprintf(line, LINE_BYTES, "%14.6f  ", (double)o->now_ns * 1e-9);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + used, LINE_BYTES - (size_t)used, fmt, args);
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

void ordeal_broken(const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    int status = playing && playing->refused ? ORDEAL_REFUSED : 1;
    ordeal_report(why);
    fflush(NULL);
    _exit(status);
}

bool ordeal_chance(struct ordeal *o, uint32_t percent)
{
    return rng_below(&o->rng, 100) < percent;
}

uint64_t ordeal_id_at(const struct view *view, job_id job)
{
    return job == JOB_NONE ? 0 : view->jobs[job].id;
}

bool ordeal_is_of_job(const struct event *event)
{
    return event->kind != EVENT_REJECTED && event->job != JOB_NONE &&
           event->kind != EVENT_NODE_DOWN && event->kind != EVENT_NODE_UP &&
           event->kind != EVENT_FOREIGN && event->kind != EVENT_CLOSED;
}

struct event *ordeal_add_event(struct ordeal *o, enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(&o->inbox);
    event->at_ns = o->now_ns;
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = o->engine.state.jobs[job].generation;
    return event;
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
    struct event *event = ordeal_add_event(o, EVENT_SUBMITTED, JOB_NONE);
    event->spec = job;
    if (fits) {
        truth->said = *job;
        if (!o->calm && ordeal_chance(o, 15))
            job->state = JOB_HELD;
    } else {
        event->kind = EVENT_REJECTED;
        *job = (struct job){ .id = spec.id, .class = spec.class, .gpus = spec.gpus };
    }
    if (store_accept(o->store, &row, &err) < 0)
        ordeal_broken("%s", err.text);
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

/* One that is to come while the executor is told waits until there is something to tell. */
static void plan_crash(struct ordeal *o)
{
    if (o->crash == CRASH_AMID || o->crashes == 0 ||
        !ordeal_chance(o, is_busy(&o->engine.state) ? 15 : 3))
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
        ordeal_make_twin(o, &twin);
    o->commits = 0;
    int r = engine_step(&o->engine, o->now_ns, o->inbox.events, o->inbox.count, &err);
    o->inbox.count = 0;
    if (r < 0 && o->crash == CRASH_NONE)
        ordeal_broken("%s", err.text);
    if (r < 0 || o->crash == CRASH_IDLE) {
        o->ground.faults[FAULT_CRASH_BEFORE + o->crash - CRASH_BEFORE]++;
        o->crash = CRASH_NONE;
        ordeal_start_again(o, twinned ? &twin : NULL);
    }
    if (twinned)
        ordeal_end_life(o, &twin);
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
            ordeal_broken("%s; %u jobs are left, of them %" PRIu64 "/%d in state %u",
                          how, state->live_count, state->jobs[id].id,
                          (int)state->jobs[id].attempt, state->jobs[id].state);
    ordeal_broken("%s; no job is left", how);
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
    ordeal_let_people_act(o);
    ground_hear(&o->ground, &o->inbox);
    if (o->setup->defect)
        mishear(o);
    while (o->next < o->world.setup.spec_count &&
           o->world.specs[o->next].submit_ns <= o->now_ns)
        arrive(o);
    if (o->closes && !o->closed && o->next == o->world.setup.spec_count && o->calm) {
        ordeal_add_event(o, EVENT_CLOSED, JOB_NONE);
        o->closed = true;
    }
    take_step(o);
    ordeal_check_all(o);
    arena_reset(&o->instant);
}

/* --- a world ---------------------------------------------------------------------------------- */

/* Shorter than the worlds of other tests: there are many of them, and more goes on. */
static void make_truths(struct ordeal *o)
{
    uint32_t count = o->world.setup.spec_count;
    bool curves = ordeal_chance(o, 30);
    bool talks = ordeal_chance(o, 40);
    uint32_t kinds = rng_below(&o->rng, 4);
    uint32_t hurry = 4 + rng_below(&o->rng, 16);
    o->ground.truths = arena_array(&o->arena, struct ground_truth, count + 1);
    o->ground.truth_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &o->world.specs[i];
        spec->steps *= 0.4;
        spec->submit_ns /= hurry;
        if (curves && ordeal_chance(o, 40))
            learning_parse(&spec->curve, "exp:mu=0.9", NULL);
        if (talks && ordeal_chance(o, 50)) {
            spec->bytes_per_step = 1000000 + rng_below(&o->rng, 100000000);
            spec->may_send = ordeal_chance(o, 50);
        }
        struct ground_truth *truth = &o->ground.truths[i + 1];
        *truth = (struct ground_truth){ .steps = spec->steps,
                                        .pause_ns = spec->pause_ns,
                                        .load_ns = spec->load_ns,
                                        .ckpt_ns = spec->ckpt_ns,
                                        .fails = spec->fails };
        if (ordeal_chance(o, 10))
            truth->pause_ns = 3600 * SECOND; /* it does not listen */
        else if (ordeal_chance(o, 20))
            truth->pause_ns += (int64_t)rng_below(&o->rng, 20) * SECOND;
        if (ordeal_chance(o, 20))
            truth->load_ns += (int64_t)rng_below(&o->rng, 20) * SECOND;
        if (kinds > 0 && ordeal_chance(o, 50))
            truth->report_ns = (int64_t)(10 + rng_below(&o->rng, 100)) * SECOND;
        truth->absurd = kinds == 2 && ordeal_chance(o, 30);
    }
}

static void make_world(struct ordeal *o)
{
    struct worlds_setup setup = { .jobs = 4 + rng_below(&o->rng, JOBS_MAX - 3),
                                  .plain = ordeal_chance(o, 25),
                                  .wrong_estimates = ordeal_chance(o, 50),
                                  .unknown_work = ordeal_chance(o, 40),
                                  .distinct_times = ordeal_chance(o, 50),
                                  .impossible = ordeal_chance(o, 20),
                                  .stays = ordeal_chance(o, 25),
                                  .sets = ordeal_chance(o, 30) };
    worlds_make(&o->world, &setup, o->setup->seed);
    if (ordeal_chance(o, 30))
        worlds_share(&o->world, o->setup->seed);
    make_truths(o);
    o->ground.broken = ordeal_broken;
    o->ground.faulty = true;
    o->ground.trouble = ordeal_chance(o, 70) ? 10 + rng_below(&o->rng, 150) : 0;
    o->ground.starts_early = o->setup->defect == DEFECT_STARTED_EARLY;
    o->ground.starts_half = o->setup->defect == DEFECT_HALF_GANG;
    if (ordeal_chance(o, 50)) {
        o->ground.mtbf_ns = (int64_t)(50 + rng_below(&o->rng, 2000)) * SECOND;
        o->ground.mttr_ns = (int64_t)(1 + rng_below(&o->rng, 100)) * SECOND;
    }
    ground_init(&o->ground, &o->world.cluster, &o->world.rates, o->setup->seed);
    o->deeds = rng_below(&o->rng, 40);
    o->pace_ms = 1000 + rng_below(&o->rng, 30000);
    o->crashes = ordeal_chance(o, 80) ? 1 + rng_below(&o->rng, 7) : 0;
    o->resizes = ordeal_chance(o, 50);
    o->closes = ordeal_chance(o, 50);
    o->settings = ordeal_some_settings(o, o->policy);
    o->flow = ordeal_chance(o, 30) ? ordeal_some_flow(o) : NULL;
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
    rng_init(&o->questions, o->setup->seed, "questions");
    arena_init(&o->arena, 0);
    arena_init(&o->instant, 0);
    make_world(o);
    intake_init(&o->intake, &o->world.cluster, &o->world.rates);
    snprintf(o->path, sizeof o->path, "%s/berth-world-%d.db", o->setup->folder,
             (int)getpid());
    remove_store(o->path); /* of one that failed */
    if (store_open(&o->store, o->path, &err) < 0)
        ordeal_broken("%s", err.text);
    ordeal_begin_life(o, &o->engine, &o->ledger, &o->life, true);
    ground_meet(&o->ground, &o->engine.state.view);
    o->witness_view = (struct view){ .jobs = o->witness_jobs,
                                     .job_max = JOBS_MAX + 1,
                                     .cluster = &o->world.cluster,
                                     .rates = &o->world.rates };
    ledger_init(&o->witness, &o->arena, &o->witness_view, NULL);
    o->witness.note = ordeal_write_down;
    o->witness.context = o;
    ordeal_note(o, "%s%s%s, flow policy %s, %u nodes, %u jobs", o->policy->name,
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
    ordeal_end_life(o, &last);
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
    ordeal_check_end(o);
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
