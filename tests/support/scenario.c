/* scenario.c - a fault scenario: a random world with faults, run to its end. */
#include "support/scenario_internal.h"

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
#include "support/store_file.h"

#define INSTANT_TURNS 200 /* steps in one instant; more is a busy loop           */
#define QUIET_TURNS 4000  /* steps after the last fault, within which all jobs end */

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

static struct scenario *playing; /* for the report when the process ends */

/* --- log and failure -------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void scenario_log(struct scenario *s,
                                                        const char *fmt, ...)
{
    char *line = s->lines[s->line_count++ % LINES];
    int used = snprintf(line, LINE_BYTES, "%14.6f  ", (double)s->now_ns * 1e-9);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + used, LINE_BYTES - (size_t)used, fmt, args);
    va_end(args);
    if (s->setup->shows)
        puts(line);
}

void scenario_report(const char *why)
{
    const struct scenario *s = playing;
    if (!s)
        return;
    playing = NULL;
    uint64_t first = s->line_count > LINES ? s->line_count - LINES : 0;
    fflush(stdout);
    if (!s->setup->shows)
        for (uint64_t i = first; i < s->line_count; i++)
            fprintf(stderr, "%s\n", s->lines[i % LINES]);
    fprintf(stderr, "%14.6f  BROKEN under %s%s%s: %s\n", (double)s->now_ns * 1e-9,
            s->policy->name, s->settings ? "," : "", s->settings ? s->settings : "",
            why);
    fprintf(
        stderr, "again: build/tests/soak_worlds --seed %" PRIu64 " --policy %s%s%s\n",
        s->setup->seed, s->setup->policy->name, s->setup->defect ? " --defect " : "",
        s->setup->defect ? defect_names[s->setup->defect] : "");
    if (*s->path)
        store_file_remove(s->path);
}

void scenario_broken(const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    int status = playing && playing->refused ? SCENARIO_REFUSED : 1;
    scenario_report(why);
    fflush(NULL);
    _exit(status);
}

bool scenario_draw(struct scenario *s, uint32_t percent)
{
    return rng_below(&s->rng, 100) < percent;
}

uint64_t scenario_id_at(const struct view *view, job_id job)
{
    return job == JOB_NONE ? 0 : view->jobs[job].id;
}

bool scenario_is_of_job(const struct event *event)
{
    return event->kind != EVENT_REJECTED && event->job != JOB_NONE &&
           event->kind != EVENT_NODE_DOWN && event->kind != EVENT_NODE_UP &&
           event->kind != EVENT_FOREIGN && event->kind != EVENT_CLOSED;
}

struct event *scenario_add_event(struct scenario *s, enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(&s->inbox);
    event->at_ns = s->now_ns;
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = s->engine.state.jobs[job].generation;
    return event;
}

/* --- submissions ---------------------------------------------------------------------------- */

static void submit_next(struct scenario *s)
{
    struct error err = { "" };
    struct job_spec spec = s->world.specs[s->next];
    struct faulty_truth *truth = &s->faulty.truths[s->next + 1];
    spec.steps *= s->world.beliefs[s->next];
    spec.id = ++s->next;
    spec.submit_ns = s->now_ns;
    struct job *job = arena_new(&s->instant, struct job);
    struct store_job row = { .id = spec.id,
                             .user = "somebody",
                             .class = spec.class,
                             .gpus = spec.gpus,
                             .submit_ns = spec.submit_ns,
                             .request = "{}" };
    bool fits = admission_make_job(&s->admission, &spec, job, &err) == 0;
    row.rejected = fits ? NULL : err.text;
    struct event *event = scenario_add_event(s, EVENT_SUBMITTED, JOB_NONE);
    event->spec = job;
    if (fits) {
        truth->said = *job;
        if (!s->quiet && scenario_draw(s, 15))
            job->state = JOB_HELD;
    } else {
        event->kind = EVENT_REJECTED;
        *job = (struct job){ .id = spec.id, .class = spec.class, .gpus = spec.gpus };
    }
    if (store_add_job(s->store, &row, &err) < 0)
        scenario_broken("%s", err.text);
}

/* --- a step ---------------------------------------------------------------------------------- */

static bool is_end(enum event_kind kind)
{
    return kind == EVENT_STOPPED || kind == EVENT_FINISHED || kind == EVENT_FAILED;
}

/* Make the defects that concern messages. */
static void tamper_with_inbox(struct scenario *s)
{
    for (uint32_t i = 0; i < s->inbox.count; i++) {
        struct event *event = &s->inbox.events[i];
        if (!is_end(event->kind) || event->job >= s->engine.state.job_count)
            continue;
        const struct job *job = &s->engine.state.jobs[event->job];
        bool stale =
            event->attempt != job->attempt || event->generation != job->generation;
        if (s->setup->defect == DEFECT_STALE && stale && job_holds_seats(job)) {
            event->attempt = job->attempt;
            event->generation = job->generation;
        }
        if (s->setup->defect == DEFECT_LOST_EVENT && !stale && !s->tampered) {
            s->tampered = true;
            faulty_end_recorded(&s->faulty, job->id, job->attempt);
            s->inbox.events[i--] = s->inbox.events[--s->inbox.count];
        }
    }
}

/* Whether a job starts, moves or stops: such moments are short, and seldom hit by chance. */
static bool has_moving_jobs(const struct state *state)
{
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_PLACED || job->state == JOB_LOADING ||
            job->state == JOB_STOPPING || (job_holds_seats(job) && job->next.count > 0))
            return true;
    }
    return false;
}

/* Draw a crash; one amid orders stays planned until a step has orders. */
static void draw_crash(struct scenario *s)
{
    if (s->crash == CRASH_AMID || s->crashes == 0 ||
        !scenario_draw(s, has_moving_jobs(&s->engine.state) ? 15 : 3))
        return;
    s->crashes--;
    s->crash = CRASH_BEFORE + rng_below(&s->rng, 4);
    s->orders = rng_below(&s->rng, 3);
}

static void run_step(struct scenario *s)
{
    struct error err = { "" };
    struct scenario_twin twin;
    draw_crash(s);
    bool twinned = s->crash == CRASH_BEFORE;
    if (twinned)
        scenario_make_twin(s, &twin);
    s->commits = 0;
    int r = engine_step(&s->engine, s->now_ns, s->inbox.events, s->inbox.count, &err);
    s->inbox.count = 0;
    if (r < 0 && s->crash == CRASH_NONE)
        scenario_broken("%s", err.text);
    if (r < 0 || s->crash == CRASH_IDLE) {
        s->faulty.faults[FAULT_CRASH_BEFORE + s->crash - CRASH_BEFORE]++;
        s->crash = CRASH_NONE;
        scenario_restart(s, twinned ? &twin : NULL);
    }
    if (twinned)
        scenario_close_engine(s, &twin);
    if (s->setup->defect == DEFECT_BUSY)
        s->engine.wake_ns = s->now_ns;
}

static int64_t next_time(const struct scenario *s)
{
    int64_t at_ns = engine_wake_ns(&s->engine);
    int64_t faulty_ns = faulty_next_ns(&s->faulty);
    at_ns = faulty_ns < at_ns ? faulty_ns : at_ns;
    at_ns = s->action_ns < at_ns ? s->action_ns : at_ns;
    if (s->next < s->world.setup.spec_count &&
        s->world.specs[s->next].submit_ns < at_ns)
        at_ns = s->world.specs[s->next].submit_ns;
    return at_ns;
}

static void fail_stuck(const struct scenario *s, const char *how)
{
    const struct state *state = &s->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            scenario_broken("%s; %u jobs are left, of them %" PRIu64 "/%d in state %u",
                            how, state->live_count, state->jobs[id].id,
                            (int)state->jobs[id].attempt, state->jobs[id].state);
    scenario_broken("%s; no job is left", how);
}

static void run_turn(struct scenario *s)
{
    int64_t at_ns = next_time(s);
    if (at_ns == INT64_MAX)
        fail_stuck(s, "nothing will happen any more");
    s->turns_now = at_ns > s->now_ns ? 0 : s->turns_now + 1;
    if (s->turns_now > INSTANT_TURNS)
        fail_stuck(s, "time stands still: a busy loop");
    if (s->quiet && ++s->turns_quiet > QUIET_TURNS)
        fail_stuck(s, "nothing goes wrong any more, and it does not come to its end");
    s->now_ns = at_ns > s->now_ns ? at_ns : s->now_ns;
    faulty_advance(&s->faulty, s->now_ns);
    scenario_act_as_users(s);
    faulty_receive(&s->faulty, &s->inbox);
    if (s->setup->defect)
        tamper_with_inbox(s);
    while (s->next < s->world.setup.spec_count &&
           s->world.specs[s->next].submit_ns <= s->now_ns)
        submit_next(s);
    if (s->closes && !s->closed && s->next == s->world.setup.spec_count && s->quiet) {
        scenario_add_event(s, EVENT_CLOSED, JOB_NONE);
        s->closed = true;
    }
    run_step(s);
    scenario_check_all(s);
    arena_reset(&s->instant);
}

/* --- a scenario ------------------------------------------------------------------------------ */

/* Jobs are shorter than in other tests: there are many scenarios. */
static void make_truths(struct scenario *s)
{
    uint32_t count = s->world.setup.spec_count;
    bool curves = scenario_draw(s, 30);
    bool talks = scenario_draw(s, 40);
    uint32_t kinds = rng_below(&s->rng, 4);
    uint32_t hurry = 4 + rng_below(&s->rng, 16);
    s->faulty.truths = arena_array(&s->arena, struct faulty_truth, count + 1);
    s->faulty.truth_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &s->world.specs[i];
        spec->steps *= 0.4;
        spec->submit_ns /= hurry;
        if (curves && scenario_draw(s, 40))
            learning_parse_points(&spec->curve, "exp:mu=0.9", NULL, NULL);
        if (talks && scenario_draw(s, 50)) {
            spec->bytes_per_step = 1000000 + rng_below(&s->rng, 100000000);
            spec->may_send = scenario_draw(s, 50);
        }
        struct faulty_truth *truth = &s->faulty.truths[i + 1];
        *truth = (struct faulty_truth){ .steps = spec->steps,
                                        .pause_ns = spec->pause_ns,
                                        .load_ns = spec->load_ns,
                                        .ckpt_ns = spec->ckpt_ns,
                                        .fails = spec->fails };
        if (scenario_draw(s, 10))
            truth->pause_ns = 3600 * SECOND; /* it ignores its grace period */
        else if (scenario_draw(s, 20))
            truth->pause_ns += (int64_t)rng_below(&s->rng, 20) * SECOND;
        if (scenario_draw(s, 20))
            truth->load_ns += (int64_t)rng_below(&s->rng, 20) * SECOND;
        if (kinds > 0 && scenario_draw(s, 50))
            truth->report_ns = (int64_t)(10 + rng_below(&s->rng, 100)) * SECOND;
        truth->absurd = kinds == 2 && scenario_draw(s, 30);
    }
}

static void make_world(struct scenario *s)
{
    struct random_world_setup setup = { .jobs = 4 + rng_below(&s->rng, JOBS_MAX - 3),
                                        .plain = scenario_draw(s, 25),
                                        .wrong_estimates = scenario_draw(s, 50),
                                        .unknown_work = scenario_draw(s, 40),
                                        .distinct_times = scenario_draw(s, 50),
                                        .impossible = scenario_draw(s, 20),
                                        .stays = scenario_draw(s, 25),
                                        .sets = scenario_draw(s, 30) };
    random_world_make(&s->world, &setup, s->setup->seed);
    if (scenario_draw(s, 30))
        random_world_add_sharing(&s->world, false, s->setup->seed);
    make_truths(s);
    s->faulty.broken = scenario_broken;
    s->faulty.faults_on = true;
    s->faulty.trouble = scenario_draw(s, 70) ? 10 + rng_below(&s->rng, 150) : 0;
    s->faulty.starts_early = s->setup->defect == DEFECT_STARTED_EARLY;
    s->faulty.starts_half = s->setup->defect == DEFECT_HALF_GANG;
    if (scenario_draw(s, 50)) {
        s->faulty.mtbf_ns = (int64_t)(50 + rng_below(&s->rng, 2000)) * SECOND;
        s->faulty.mttr_ns = (int64_t)(1 + rng_below(&s->rng, 100)) * SECOND;
    }
    faulty_init(&s->faulty, &s->world.cluster, &s->world.rates, s->setup->seed);
    s->actions_left = rng_below(&s->rng, 40);
    s->pace_ms = 1000 + rng_below(&s->rng, 30000);
    s->crashes = scenario_draw(s, 80) ? 1 + rng_below(&s->rng, 7) : 0;
    s->resizes = scenario_draw(s, 50);
    s->closes = scenario_draw(s, 50);
    s->settings = scenario_draw_settings(s, s->policy);
    s->flow = scenario_draw(s, 30) ? scenario_draw_flow(s) : NULL;
}

static void open_scenario(struct scenario *s)
{
    struct error err = { "" };
    rng_init(&s->rng, s->setup->seed, s->setup->policy->name);
    rng_init(&s->questions, s->setup->seed, "questions");
    arena_init(&s->arena, 0);
    arena_init(&s->instant, 0);
    make_world(s);
    admission_init(&s->admission, &s->world.cluster, &s->world.rates);
    snprintf(s->path, sizeof s->path, "%s/berth-world-%d.db", s->setup->folder,
             (int)getpid());
    store_file_remove(s->path); /* left by a scenario that failed */
    if (store_open(&s->store, s->path, &err) < 0)
        scenario_broken("%s", err.text);
    scenario_open_engine(s, &s->engine, &s->ledger, &s->engine_arena, true);
    faulty_connect(&s->faulty, &s->engine.state.view);
    s->witness_view = (struct view){ .jobs = s->witness_jobs,
                                     .job_max = JOBS_MAX + 1,
                                     .cluster = &s->world.cluster,
                                     .rates = &s->world.rates };
    ledger_init(&s->witness, &s->arena, &s->witness_view, NULL);
    s->witness.observe = scenario_record_entry;
    s->witness.context = s;
    scenario_log(s, "%s%s%s, flow policy %s, %u nodes, %u jobs", s->policy->name,
                 s->settings ? "," : "", s->settings ? s->settings : "",
                 s->flow ? s->flow->name : "none", s->world.cluster.node_count,
                 s->world.setup.spec_count);
}

static bool is_over(const struct scenario *s)
{
    return s->quiet && s->engine.state.live_count == 0 &&
           s->next == s->world.setup.spec_count && s->faulty.wire_count == 0;
}

static void close_scenario(struct scenario *s)
{
    struct scenario_twin last = { s->engine, s->ledger, s->engine_arena };
    scenario_close_engine(s, &last);
    store_close(s->store);
    store_file_remove(s->path);
    ledger_release(&s->witness);
    faulty_release(&s->faulty);
    admission_release(&s->admission);
    outbox_release(&s->inbox);
    random_world_release(&s->world);
    arena_release(&s->instant);
    arena_release(&s->arena);
    free(s->observed);
    free(s->entries);
}

void scenario_play(const struct scenario_setup *setup, struct scenario_counts *counts)
{
    static struct scenario scenario;
    struct scenario *s = &scenario;
    memset(s, 0, sizeof *s);
    s->setup = setup;
    s->policy = setup->policy;
    playing = s;
    open_scenario(s);
    while (!is_over(s))
        run_turn(s);
    scenario_check_end(s);
    counts->worlds++;
    counts->events += s->counts.events;
    counts->commits += s->counts.commits;
    counts->rebuildings += s->counts.rebuildings;
    counts->jobs += s->next;
    close_scenario(s);
    counts->decisions += s->counts.decisions;
    for (uint32_t f = 0; f < FAULT_COUNT; f++)
        counts->faults[f] += s->faulty.faults[f];
    playing = NULL;
}
