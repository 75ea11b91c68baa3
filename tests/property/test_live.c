/*
 * What holds for every policy when users interfere: jobs are cancelled, held, released and
 * changed at any moment, other programs use GPUs, another policy is installed, and the
 * engine is recovered from the store.  The state is consistent after every event, every job
 * ends once, and after a recovery everything is as it was.
 */
#include "support/fuzz_policy.h"
#include "support/random_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "daemon/why.h"
#include "daemon/why_change.h"
#include "engine/engine_copy.h"
#include "support/state_check.h"
#include "support/store_file.h"

#ifndef SEEDS
#define SEEDS 16
#endif
#define JOBS 40
#define SECOND INT64_C(1000000000)
#define ACTIONS_MAX 120 /* then users do nothing more, and all jobs must end */

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS, .impossible = true },
    { .jobs = JOBS, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .faults = true },
    { .jobs = JOBS, .plain = true, .distinct_times = true },
    { .jobs = JOBS, .sets = true },
    { .jobs = JOBS, .stays = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

enum user_action {
    CANCEL,
    HOLD,
    RELEASE,
    CHANGE,
    TAKE_GPUS,
    GIVE_GPUS,
    CHANGE_POLICY,
    RESTART,
    ACTIONS
};

struct live_users {
    struct rng rng;
    int64_t next_ns; /* of the next action */
    uint32_t left;   /* actions left       */
    uint32_t pace_ms;
    bool changes_policy;
    bool restarts;
    bool released;
    bool makes_bad_plans; /* refused plans are expected */
    enum user_action due; /* to do after the step */
    bool asks;            /* run "berth why" */
    struct rng questions;
    uint64_t answers, changes;            /* in all worlds */
    uint64_t cancelled[JOB_STOPPING + 1]; /* by the state of the job, in all worlds */
    uint64_t done[ACTIONS];
    uint64_t moving; /* cancelled while they were moving */
};

static int64_t users_next_ns(void *self)
{
    const struct live_users *users = self;
    return users->next_ns;
}

/* Some jobs are submitted held. */
static void users_submit(void *self, struct engine_run *run, struct job *job)
{
    struct live_users *users = self;
    if (users->left > 0 && rng_below(&users->rng, 6) == 0)
        job->state = JOB_HELD;
}

static job_id draw_job(struct live_users *users, const struct state *state, bool seated)
{
    for (int i = 0; i < 12; i++) {
        job_id job = rng_below(&users->rng, state->job_max);
        if (state->jobs[job].state != JOB_FREE &&
            (!seated || state->jobs[job].state >= JOB_PLACED))
            return job;
    }
    return JOB_NONE;
}

static void cancel_job(struct live_users *users, struct engine_run *run, job_id id,
                       int64_t now_ns)
{
    if (id == JOB_NONE)
        return;
    const struct job *job = &run->engine.state.jobs[id];
    users->cancelled[job->state]++;
    users->moving += job_holds_seats(job) && job->next.count > 0;
    engine_run_add_event(run, EVENT_CANCELLED, id, now_ns)->why = "cancelled";
    if (rng_below(&users->rng, 4) == 0) /* some users repeat it */
        engine_run_add_event(run, EVENT_CANCELLED, id, now_ns)->why = "cancelled";
}

static void change_job(struct live_users *users, struct engine_run *run, int64_t now_ns)
{
    struct rng *rng = &users->rng;
    const struct state *state = &run->engine.state;
    job_id id = draw_job(users, state, false);
    if (id == JOB_NONE ||
        (state->jobs[id].state != JOB_WAITING && state->jobs[id].state != JOB_HELD))
        return;
    bool waits = state->jobs[id].state == JOB_WAITING;
    struct job *spec = arena_new(&run->instant, struct job);
    *spec = state->jobs[id];
    spec->class = rng_below(rng, 2) ? CLASS_TE : CLASS_BE;
    spec->weight = 1 + rng_below(rng, 3);
    spec->grace_ns = rng_below(rng, 30) * SECOND;
    if (rng_below(rng, 3) == 0)
        spec->steps_total = rng_below(rng, 300);
    if (rng_below(rng, 3) == 0)
        spec->deadline_ns = now_ns + (int64_t)rng_below(rng, 1000) * SECOND;
    if (waits)
        engine_run_add_event(run, EVENT_HELD, id, now_ns);
    engine_run_add_event(run, EVENT_CHANGED, id, now_ns)->spec = spec;
    if (waits)
        engine_run_add_event(run, EVENT_RELEASED, id, now_ns);
}

static void set_foreign(struct engine_run *run, node_id node, uint64_t gpus,
                        int64_t now_ns)
{
    struct event *event = engine_run_add_event(run, EVENT_FOREIGN, JOB_NONE, now_ns);
    event->node = node;
    event->gpus = gpus;
}

static void take_gpus(struct live_users *users, struct engine_run *run, int64_t now_ns)
{
    const struct cluster *cluster = run->setup->cluster;
    node_id node = rng_below(&users->rng, cluster->node_count);
    uint32_t count = cluster->nodes[node].gpu_count;
    uint64_t all = ((uint64_t)1 << count) - 1;
    set_foreign(run, node, all & rng_below(&users->rng, 256), now_ns);
}

static void release_all(struct engine_run *run, int64_t now_ns)
{
    for (job_id id = 0; id < run->engine.state.job_count; id++)
        if (run->engine.state.jobs[id].state == JOB_HELD)
            engine_run_add_event(run, EVENT_RELEASED, id, now_ns);
    for (node_id n = 0; n < run->setup->cluster->node_count; n++)
        set_foreign(run, n, 0, now_ns);
}

static void act_once(struct live_users *users, struct engine_run *run, int64_t now_ns)
{
    enum user_action action = rng_below(&users->rng, ACTIONS);
    const struct state *state = &run->engine.state;
    job_id job = draw_job(users, state, false);
    users->done[action]++;
    switch (action) {
    case CANCEL:
        cancel_job(users, run, draw_job(users, state, rng_below(&users->rng, 2)),
                   now_ns);
        break;
    case HOLD:
        if (job != JOB_NONE)
            engine_run_add_event(run, EVENT_HELD, job,
                                 now_ns); /* ignored unless the job waits */
        break;
    case RELEASE:
        if (job != JOB_NONE)
            engine_run_add_event(run, EVENT_RELEASED, job, now_ns);
        break;
    case CHANGE:
        change_job(users, run, now_ns);
        break;
    case TAKE_GPUS:
        take_gpus(users, run, now_ns);
        break;
    case GIVE_GPUS:
        set_foreign(run, rng_below(&users->rng, run->setup->cluster->node_count), 0,
                    now_ns);
        break;
    default:
        users->due = action;
    }
}

/* Whether a job starts, moves or stops: such moments are short and seldom hit by chance. */
static bool is_moving(const struct job *job)
{
    return job->state == JOB_PLACED || job->state == JOB_LOADING ||
           job->state == JOB_STOPPING || (job_holds_seats(job) && job->next.count > 0);
}

/* Cancel jobs in the same step in which other events of them arrive. */
static void cancel_with_events(struct live_users *users, struct engine_run *run,
                               int64_t now_ns)
{
    const struct outbox *outbox = &run->outboxes[run->reading];
    const struct state *state = &run->engine.state;
    for (uint32_t i = outbox->count; i-- > 0;) {
        struct event event = outbox->events[i]; /* the outbox may grow */
        if (event.kind < EVENT_STARTED || event.kind > EVENT_LOST ||
            rng_below(&users->rng, 30) > 0)
            continue;
        users->cancelled[JOB_IDLE] += event.kind == EVENT_LEASE_DONE;
        cancel_job(users, run, event.job, now_ns);
    }
    for (job_id id = 0; id < state->job_count; id++)
        if (is_moving(&state->jobs[id]) && rng_below(&users->rng, 60) == 0)
            cancel_job(users, run, id, now_ns);
}

static void users_before(void *self, struct engine_run *run, int64_t now_ns)
{
    struct live_users *users = self;
    if (users->left > 0)
        cancel_with_events(users, run, now_ns);
    if (now_ns < users->next_ns)
        return;
    if (users->left == 0 && run->next == run->setup->spec_count) {
        release_all(run, now_ns); /* all jobs were submitted */
        users->next_ns = INT64_MAX;
        return;
    }
    for (uint32_t n = 1 + rng_below(&users->rng, 2); n > 0 && users->left > 0; n--) {
        act_once(users, run, now_ns);
        users->left--;
    }
    users->next_ns =
        now_ns + rng_below(&users->rng, users->pace_ms) * SECOND / 1000 + 1;
}

static bool has_setting(const struct policy *policy, const char *name)
{
    for (const struct field *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, name) == 0)
            return true;
    return false;
}

/* Draw settings of the policy, or NULL. */
static const char *draw_settings(const struct policy *policy, struct rng *rng)
{
    static const char *const texts[] = {
        "worth=xion", "sharing=true", "sharing=true",
        "round=10s",  "hysteresis=0", "compat=released"
    };
    static const char *const names[] = { "worth", "sharing",    "sharing",
                                         "round", "hysteresis", "compat" };
    uint32_t choice = rng_below(rng, 10);
    if (choice >= 6 || !has_setting(policy, names[choice]))
        return NULL;
    return choice == 2 && has_setting(policy, "round") ? "sharing=true,round=5s"
                                                       : texts[choice];
}

/*
 * The published rules leave some jobs waiting forever, and assume that they managed the
 * cluster from the start: the engine refuses such plans, and continues.
 */
static bool is_released(const char *settings)
{
    return settings && strstr(settings, "compat=released");
}

/* What would start a job is looked for in a snapshot, and anything may come of it. */
static void look_for_change(struct live_users *users, struct engine_run *run, job_id id,
                            const struct why *why)
{
    struct engine_snapshot snapshot = { 0 };
    struct engine_copy_setup copy = { .settings = run->settings };
    struct error err;
    char change[240];
    if (engine_snapshot_take(&snapshot, &run->engine, &copy, &err) < 0)
        fail_msg("%s: %s", run->policy->name, err.text);
    engine_adopt_jobs(&snapshot.engine);
    struct why_change_setup setup = {
        .engine = &snapshot.engine,
        .settings = run->settings,
        .job = id,
        .ahead = why->reasons.ahead_count > 0 ? why->reasons.ahead[0].id : 0,
    };
    why_change_find(&setup, change, sizeof change);
    users->changes += change[0] != '\0';
    engine_snapshot_release(&snapshot);
}

/* "berth why" finds a reason for any job, and changes nothing. */
static void check_why(struct live_users *users, struct engine_run *run, int64_t now_ns)
{
    const struct state *state = &run->engine.state;
    struct why_scene scene = { .engine = &run->engine, .now_ns = now_ns };
    struct why why;
    job_id id = rng_below(&users->questions, state->job_max);
    if (state->jobs[id].state == JOB_FREE)
        return;
    why_find(&why, &scene, id);
    assert_true(why.reasons.count > 0);
    users->answers++;
    if (state->jobs[id].state == JOB_WAITING)
        look_for_change(users, run, id, &why);
    state_check(state);
}

static void users_after(void *self, struct engine_run *run, int64_t now_ns)
{
    struct live_users *users = self;
    if (run->engine.refused_count && !users->makes_bad_plans && !users->released)
        fail_msg("%s: %s", run->policy->name, run->engine.refusal->text);
    if (users->asks && rng_below(&users->questions, 4) == 0)
        check_why(users, run, now_ns);
    if (users->due == CHANGE_POLICY && users->changes_policy) {
        uint32_t count = 0;
        while (policy_list[count])
            count++;
        const struct policy *policy = policy_list[rng_below(&users->rng, count)];
        const char *settings = draw_settings(policy, &users->rng);
        users->released = users->released || is_released(settings);
        if (getenv("BERTH_EVENTS"))
            print_message("# %s %s is installed\n", policy->name,
                          settings ? settings : "");
        engine_run_set_policy(run, policy, settings);
    }
    if (users->due == RESTART && users->restarts)
        engine_run_restart(run, now_ns);
    users->due = CANCEL;
}

/* --- worlds --------------------------------------------------------------------------- */

static void add_curves(struct random_world *world, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "curves");
    for (uint32_t i = 0; i < JOBS; i++)
        if (rng_below(&rng, 3) == 0)
            learning_parse_points(&world->specs[i].curve, "exp:mu=0.9", NULL, NULL);
}

/* --- figures ---------------------------------------------------------------------------- */

struct live_ledger {
    struct arena arena;
    struct ledger ledger;
    bool begun;
};

static void observe_event(void *self, const struct view *view,
                          const struct event *event)
{
    struct live_ledger *ledger = self;
    if (!ledger->begun)
        ledger_init(&ledger->ledger, &ledger->arena, view, NULL);
    ledger->begun = true;
    ledger_event(&ledger->ledger, view, event);
}

/* The cost of preemptions in the ledger is that of the metrics, and no job is left over. */
static void check_figures(const struct engine_run *run, struct live_ledger *ledger)
{
    const struct metrics *metrics = &run->metrics;
    if (!ledger->begun)
        return;
    ledger_end(&ledger->ledger, &run->engine.state.view, run->engine.state.job_count);
    __int128 booked_ns = metrics->overhead_ns[OVERHEAD_PAUSE] +
                         metrics->overhead_ns[OVERHEAD_LOAD_AGAIN] +
                         metrics->overhead_ns[OVERHEAD_REDO_PREEMPTED];
    __int128 off_ns = booked_ns - ledger->ledger.actual_cost_ns;
    assert_int_equal(ledger->ledger.preemptions, metrics->preemptions);
    if (off_ns < -1000 || off_ns > 1000) /* rounding of redone work */
        fail_msg("%g GPU-s are booked, the ledger has %g", (double)booked_ns * 1e-9,
                 (double)ledger->ledger.actual_cost_ns * 1e-9);
    if (run->engine.state.live_count > 0)
        return;
    assert_int_equal(metrics->gpus_held, 0);
    assert_int_equal(metrics->running, 0);
    assert_int_equal(metrics->waiting, 0);
    assert_int_equal(metrics->completed + metrics->failed + metrics->cancelled +
                         metrics->rejected,
                     metrics->total);
}

static uint64_t run_world(struct live_users *users, const struct policy *policy,
                          const char *settings, uint64_t seed, const char *path)
{
    struct random_world world;
    struct engine_run run;
    struct interference interference = { .self = users,
                                         .next_ns = users_next_ns,
                                         .arrives = users_submit,
                                         .before = users_before,
                                         .after = users_after };
    print_message("# %s %s\n", policy->name, settings ? settings : "");
    rng_init(&users->rng, seed, policy->name);
    rng_init(&users->questions, seed, "questions");
    users->next_ns = 0;
    users->left = ACTIONS_MAX;
    users->pace_ms = 1000 + rng_below(&users->rng, 30000);
    users->due = CANCEL;
    users->released = is_released(settings);
    users->restarts = path != NULL;
    if (path)
        store_file_remove(path); /* left by a run that failed */
    random_world_make(&world, &kinds[seed % KINDS], seed);
    add_curves(&world, seed);
    if (seed % 2)
        random_world_add_sharing(&world, false, seed);
    world.setup.policy = policy;
    world.setup.settings = settings;
    world.setup.interference = &interference;
    world.setup.store_path = path;
    struct live_ledger ledger = { 0 };
    arena_init(&ledger.arena, 0);
    if (!path)
        world.setup.observer =
            (struct engine_observer){ .event = observe_event, .self = &ledger };
    engine_run_play(&run, &world.setup); /* state_check() after every event */

    assert_int_equal(run.accepted + run.rejected, run.next);
    uint32_t ended = 0;
    for (uint32_t id = 1; id <= JOBS; id++) {
        assert_true(run.ends[id] <= 1);
        ended += run.ends[id];
    }
    assert_int_equal(ended, run.ended);
    assert_int_equal(run.ended + run.engine.state.live_count, run.accepted);
    if (!kinds[seed % KINDS].faults && !users->released) {
        assert_false(run.gave_up);
        assert_int_equal(run.ended, run.accepted);
        assert_int_equal(run.engine.state.free.gpu_count, world.cluster.gpu_count);
    }
    check_figures(&run, &ledger);
    ledger_release(&ledger.ledger);
    arena_release(&ledger.arena);
    uint64_t hash = run.hash;
    engine_run_release(&run);
    random_world_release(&world);
    if (path)
        store_file_remove(path);
    return hash;
}

static struct live_users users;

static void every_job_ends_once_whatever_users_do(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (uint32_t i = 0; policy_list[i]; i++) {
        struct rng rng;
        rng_init(&rng, seed.now, "settings");
        users.changes_policy = false;
        run_world(&users, policy_list[i], draw_settings(policy_list[i], &rng), seed.now,
                  NULL);
    }
}

static void a_policy_can_be_installed_at_any_time(void **state)
{
    users.changes_policy = true;
    FOR_EACH_SEED(seed, SEEDS)
    for (uint32_t i = 0; policy_list[i]; i++)
        run_world(&users, policy_list[i], NULL, seed.now + 1000, NULL);
}

static void recovery_restores_everything(void **state)
{
    char path[128];
    store_file_path(path, sizeof path, "live");
    users.changes_policy = true;
    FOR_EACH_SEED(seed, SEEDS)
    for (uint32_t i = 0; policy_list[i]; i++)
        if ((i + seed.now) % 2 == 0 || getenv("BERTH_SEED"))
            run_world(&users, policy_list[i], NULL, seed.now + 2000, path);
}

static void recovery_works_with_random_plans(void **state)
{
    char path[128];
    store_file_path(path, sizeof path, "live");
    users.changes_policy = false;
    users.makes_bad_plans = true;
    FOR_EACH_SEED(seed, SEEDS)
    for (uint64_t i = 0; i < 4; i++)
        run_world(&users, &policy_fuzz, NULL, seed.now * 4 + i + 3000, path);
    users.makes_bad_plans = false;
}

static void berth_why_changes_nothing(void **state)
{
    users.changes_policy = true;
    FOR_EACH_SEED(seed, SEEDS / 4)
    for (uint32_t i = 0; policy_list[i]; i++) {
        uint64_t hashes[2];
        for (int asks = 0; asks < 2; asks++) {
            users.asks = asks;
            hashes[asks] =
                run_world(&users, policy_list[i], NULL, seed.now + 4000, NULL);
        }
        assert_true(hashes[0] == hashes[1]);
    }
    users.asks = false;
}

static void every_action_happened_in_every_state(void **state)
{
    if (getenv("BERTH_SEED"))
        return;
    for (uint32_t s = JOB_HELD; s <= JOB_STOPPING; s++)
        print_message("# cancelled in state %u: %llu\n", s,
                      (unsigned long long)users.cancelled[s]);
    print_message("# while moving: %llu\n", (unsigned long long)users.moving);
    for (uint32_t s = JOB_HELD; s <= JOB_STOPPING; s++)
        assert_true(users.cancelled[s] > 0);

    assert_true(users.moving > 0);
    print_message("# %llu answers, %llu changes\n", (unsigned long long)users.answers,
                  (unsigned long long)users.changes);
    assert_true(users.answers > 0 && users.changes > 0);
    for (uint32_t d = 0; d < ACTIONS; d++)
        assert_true(users.done[d] > 0);
}

RUN_CASES(TEST(every_job_ends_once_whatever_users_do),
          TEST(a_policy_can_be_installed_at_any_time),
          TEST(recovery_restores_everything), TEST(recovery_works_with_random_plans),
          TEST(berth_why_changes_nothing), TEST(every_action_happened_in_every_state));
