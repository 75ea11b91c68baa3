/*
 * A day of mixed load under the policy 'berth', with all that happens to a daemon in a day.
 *
 * 24 hours of submissions of the preset 'mixed' at loads from 0.7 to 1.3 (trial jobs, gangs,
 * elastic jobs with loss reports, undeclared work) on its 112 GPUs go through the engine, the store and recovery
 * that berthd has, in virtual time.  Nodes fail and come back, users cancel, hold and release
 * jobs, the engine is recovered from the store every hour, and the administrator switches to
 * another policy and back every two hours.  The state is checked after every event, each
 * recovery is compared with what was known before it, no plan is refused, and in the end each
 * job has ended exactly once and all GPUs are free.
 */
#include "support/engine_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "support/store_file.h"
#include "workload/workload.h"

extern const struct policy policy_berth;

#ifndef SEEDS
#define SEEDS 12
#endif
#ifndef HOURS
#define HOURS 24
#endif
#define JOBS_MAX 4000
#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)

enum day_action { CANCEL, HOLD, RELEASE, RESTART, SWITCH_POLICY, ACTIONS };

static const int64_t pauses_ns[ACTIONS] = { HOUR / 2, HOUR / 3, HOUR / 3, HOUR,
                                            2 * HOUR };

struct day {
    struct rng rng;
    int64_t next_ns[ACTIONS]; /* INT64_MAX: no more */
    uint32_t done[ACTIONS];
    uint32_t failures;    /* of nodes */
    bool restart, change; /* due after the step */
    bool is_default;      /* the policy is berth as it is */
    bool over;            /* held jobs were released, and users do nothing more */
};

static int64_t day_next_ns(void *self)
{
    const struct day *day = self;
    int64_t at_ns = INT64_MAX;
    for (int i = 0; i < ACTIONS; i++)
        at_ns = day->next_ns[i] < at_ns ? day->next_ns[i] : at_ns;
    return at_ns;
}

static job_id draw_job(struct day *day, const struct state *state)
{
    for (int i = 0; i < 50; i++) {
        job_id job = rng_below(&day->rng, state->job_max);
        if (state->jobs[job].state != JOB_FREE)
            return job;
    }
    return JOB_NONE;
}

static void end_day(struct day *day, struct engine_run *run, int64_t now_ns)
{
    day->over = true;
    for (int i = 0; i < ACTIONS; i++)
        day->next_ns[i] = INT64_MAX;
    for (job_id id = 0; id < run->engine.state.job_count; id++)
        if (run->engine.state.jobs[id].state !=
            JOB_FREE) /* some are held in this step */
            engine_run_add_event(run, EVENT_RELEASED, id, now_ns);
}

static void act(struct day *day, struct engine_run *run, enum day_action action,
                int64_t now_ns)
{
    static const enum event_kind kinds[] = { EVENT_CANCELLED, EVENT_HELD,
                                             EVENT_RELEASED };
    job_id job = draw_job(day, &run->engine.state);
    day->done[action]++;
    day->next_ns[action] =
        now_ns + 1 + (int64_t)(2 * rng_unit(&day->rng) * (double)pauses_ns[action]);
    day->restart = day->restart || action == RESTART;
    day->change = day->change || action == SWITCH_POLICY;
    if (action <= RELEASE && job != JOB_NONE) {
        struct event *event = engine_run_add_event(run, kinds[action], job, now_ns);
        event->why = action == CANCEL ? "cancelled" : NULL;
    }
}

static void day_before(void *self, struct engine_run *run, int64_t now_ns)
{
    struct day *day = self;
    for (int i = 0; i < ACTIONS && !day->over; i++)
        if (day->next_ns[i] <= now_ns)
            act(day, run, i, now_ns);
    if (!day->over && now_ns >= HOURS * HOUR && run->next == run->setup->spec_count)
        end_day(day, run, now_ns);
}

/* Running jobs keep what they hold when a policy is installed: only its decisions differ. */
static void switch_policy(struct day *day, struct engine_run *run)
{
    static const char *const others[] = { "las",
                                          "gavel-las",
                                          "fitgpp",
                                          "srtf",
                                          "slaq",
                                          "fifo-backfill",
                                          "berth,objective=makespan",
                                          "berth,objective=fairness",
                                          "berth,objective=cost" };
    const struct policy *other = &policy_berth;
    const char *settings = NULL;
    if (day->is_default &&
        policy_parse(others[rng_below(&day->rng, sizeof others / sizeof *others)],
                     &other, &settings, &(struct error){ "" }) < 0)
        fail_msg("no such policy");
    day->is_default = !day->is_default;
    uint32_t live = run->engine.state.live_count;
    uint32_t free_gpus = run->engine.state.free.gpu_count;
    engine_run_set_policy(run, other, settings);
    assert_int_equal(run->engine.state.live_count, live);
    assert_int_equal(run->engine.state.free.gpu_count, free_gpus);
}

static void day_after(void *self, struct engine_run *run, int64_t now_ns)
{
    struct day *day = self;
    if (run->engine.refused_count)
        fail_msg("%s: %s", run->policy->name, run->engine.refusal->text);
    if (day->change)
        switch_policy(day, run);
    if (day->restart)
        engine_run_restart(run, now_ns);
    day->change = day->restart = false;
    if (day->over && !day->is_default)
        switch_policy(day, run);
}

static void count_failures(void *self, const struct view *view,
                           const struct event *event)
{
    struct day *day = self;
    day->failures += event->kind == EVENT_NODE_DOWN;
}

static uint32_t failures_all;

static const char *copy_text(struct arena *arena, const char *text)
{
    return text ? arena_text(arena, text) : NULL;
}

/* Read the submissions of the day; undeclared work is believed to be unknown. */
static uint32_t read_jobs(struct arena *arena, struct job_spec *specs, double *beliefs,
                          uint64_t seed, uint32_t gpus)
{
    struct workload *workload;
    struct error err = { "" };
    uint32_t count = 0;
    char text[64];
    snprintf(text, sizeof text, "mixed:jobs=%d,load=%g", JOBS_MAX,
             0.7 + 0.2 * (double)(seed % 4));
    if (workload_open(&workload, text, NULL, seed, gpus, &err) < 0)
        fail_msg("%s", err.text);
    while (count < JOBS_MAX && workload_next(workload, &specs[count], &err) > 0 &&
           specs[count].submit_ns < HOURS * HOUR) {
        struct job_spec *spec = &specs[count];
        spec->name = copy_text(arena, spec->name);
        spec->user = copy_text(arena, spec->user);
        spec->entity = copy_text(arena, spec->entity);
        spec->kind = copy_text(arena, spec->kind);
        spec->types = copy_text(arena, spec->types);
        spec->nodelist = spec->exclude = spec->within = NULL;
        spec->id = 0;
        beliefs[count++] = spec->undeclared ? 0 : 1;
    }
    workload_close(workload);
    assert_true(count > 100 && count < JOBS_MAX);
    return count;
}

static void run_day(uint64_t seed)
{
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct engine_run run;
    struct error err = { "" };
    struct day day = { .is_default = true };
    char path[128];
    arena_init(&arena, 0);
    if (cluster_load(&cluster, &arena, "mixed-112", &err) < 0)
        fail_msg("%s", err.text);
    throughput_init(&rates, &cluster);
    throughput_published(&rates, &arena);
    struct job_spec *specs = arena_array(&arena, struct job_spec, JOBS_MAX + 1);
    double *beliefs = arena_array(&arena, double, JOBS_MAX + 1);
    uint32_t count = read_jobs(&arena, specs, beliefs, seed, cluster.gpu_count);
    rng_init(&day.rng, seed, "day");
    for (int i = 0; i < ACTIONS; i++)
        day.next_ns[i] = (int64_t)(rng_unit(&day.rng) * (double)pauses_ns[i]);
    struct interference interference = {
        .self = &day, .next_ns = day_next_ns, .before = day_before, .after = day_after
    };
    store_file_path(path, sizeof path, "day");
    store_file_remove(path);
    struct engine_run_setup setup = {
        .cluster = &cluster,
        .rates = &rates,
        .policy = &policy_berth,
        .specs = specs,
        .spec_count = count,
        .beliefs = beliefs,
        .faults = { .mtbf_ns = 48 * HOUR, .mttr_ns = HOUR },
        .seed = seed,
        .turns_max = 4000000,
        .observer = { .event = count_failures, .self = &day },
        .interference = &interference,
        .store_path = path
    };
    engine_run_play(&run, &setup);
    print_message("# %u jobs, %llu events, %llu decisions, %u failures of nodes, %u "
                  "recoveries, %u switches, %u cancelled\n",
                  count, (unsigned long long)run.engine.event_count,
                  (unsigned long long)run.engine.decision_count, day.failures,
                  day.done[RESTART], day.done[SWITCH_POLICY], day.done[CANCEL]);
    assert_false(run.gave_up);
    assert_int_equal(run.accepted, count);
    assert_int_equal(run.ended, count);
    for (uint32_t id = 1; id <= count; id++)
        assert_int_equal(run.ends[id], 1);
    for (int i = 0; i < ACTIONS; i++)
        assert_true(day.done[i] >= 3);
    failures_all += day.failures;
    assert_int_equal(run.engine.state.live_count, 0);
    engine_run_release(&run);
    arena_release(&arena);
    store_file_remove(path);
}

static void a_day_of_mixed_load_loses_nothing(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    run_day(seed.now);
    assert_true(getenv("BERTH_SEED") || failures_all > SEEDS);
}

RUN_CASES(TEST(a_day_of_mixed_load_loses_nothing));
