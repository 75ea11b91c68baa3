/*
 * What holds for every policy when people interfere: jobs are cancelled, held, released and
 * changed at any moment, accelerators are taken by others, another policy takes office, and
 * the engine is thrown away and built again from the store.  The books add up after every
 * event, every job ends once, and after a rebuilding everything is as it was.
 */
#include "support/fuzz_policy.h"
#include "support/random_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "daemon/why.h"

#ifndef SEEDS
#define SEEDS 16
#endif
#define JOBS 40
#define SECOND INT64_C(1000000000)
#define DEEDS_MAX 120 /* then everybody is reasonable, and all must come to its end */

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

enum deed {
    CANCEL,
    HOLD,
    RELEASE,
    CHANGE,
    TAKE_GPUS,
    GIVE_GPUS,
    CHANGE_POLICY,
    REBUILD,
    DEEDS
};

struct people {
    struct rng rng;
    int64_t next_ns; /* when the next of them acts */
    uint32_t left;   /* deeds to be done           */
    uint32_t pace_ms;
    bool changes_policy;
    bool rebuilds;
    bool released;
    bool wild;     /* nobody expects sound plans */
    enum deed due; /* after the step */
    bool asks;     /* why jobs wait */
    struct rng questions;
    uint64_t answers, changes;            /* of all worlds */
    uint64_t cancelled[JOB_STOPPING + 1]; /* by the state they were in; of all worlds */
    uint64_t done[DEEDS];
    uint64_t moving; /* cancelled while they were to go on elsewhere */
};

static int64_t people_next_ns(void *self)
{
    const struct people *people = self;
    return people->next_ns;
}

/* Some are submitted with the wish to be held. */
static void people_arrives(void *self, struct engine_run *run, struct job *job)
{
    struct people *people = self;
    if (people->left > 0 && rng_below(&people->rng, 6) == 0)
        job->state = JOB_HELD;
}

static job_id any(struct people *people, const struct state *state, bool seated)
{
    for (int i = 0; i < 12; i++) {
        job_id job = rng_below(&people->rng, state->job_max);
        if (state->jobs[job].state != JOB_FREE &&
            (!seated || state->jobs[job].state >= JOB_PLACED))
            return job;
    }
    return JOB_NONE;
}

static void cancel(struct people *people, struct engine_run *run, job_id id,
                   int64_t now_ns)
{
    if (id == JOB_NONE)
        return;
    const struct job *job = &run->engine.state.jobs[id];
    people->cancelled[job->state]++;
    people->moving += job_holds_seats(job) && job->next.count > 0;
    engine_run_add_event(run, EVENT_CANCELLED, id, now_ns)->why = "cancelled";
    if (rng_below(&people->rng, 4) == 0) /* they are impatient */
        engine_run_add_event(run, EVENT_CANCELLED, id, now_ns)->why = "cancelled";
}

static void change(struct people *people, struct engine_run *run, int64_t now_ns)
{
    struct rng *rng = &people->rng;
    const struct state *state = &run->engine.state;
    job_id id = any(people, state, false);
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

static void take_gpus(struct people *people, struct engine_run *run, int64_t now_ns)
{
    const struct cluster *cluster = run->setup->cluster;
    node_id node = rng_below(&people->rng, cluster->node_count);
    uint32_t count = cluster->nodes[node].gpu_count;
    uint64_t all = ((uint64_t)1 << count) - 1;
    set_foreign(run, node, all & rng_below(&people->rng, 256), now_ns);
}

static void release_all(struct engine_run *run, int64_t now_ns)
{
    for (job_id id = 0; id < run->engine.state.job_count; id++)
        if (run->engine.state.jobs[id].state == JOB_HELD)
            engine_run_add_event(run, EVENT_RELEASED, id, now_ns);
    for (node_id n = 0; n < run->setup->cluster->node_count; n++)
        set_foreign(run, n, 0, now_ns);
}

static void act(struct people *people, struct engine_run *run, int64_t now_ns)
{
    enum deed deed = rng_below(&people->rng, DEEDS);
    const struct state *state = &run->engine.state;
    job_id job = any(people, state, false);
    people->done[deed]++;
    switch (deed) {
    case CANCEL:
        cancel(people, run, any(people, state, rng_below(&people->rng, 2)), now_ns);
        break;
    case HOLD:
        if (job != JOB_NONE)
            engine_run_add_event(run, EVENT_HELD, job,
                                 now_ns); /* ignored unless it waits */
        break;
    case RELEASE:
        if (job != JOB_NONE)
            engine_run_add_event(run, EVENT_RELEASED, job, now_ns);
        break;
    case CHANGE:
        change(people, run, now_ns);
        break;
    case TAKE_GPUS:
        take_gpus(people, run, now_ns);
        break;
    case GIVE_GPUS:
        set_foreign(run, rng_below(&people->rng, run->setup->cluster->node_count), 0,
                    now_ns);
        break;
    default:
        people->due = deed;
    }
}

/* On its way somewhere: such moments are short, and seldom hit by chance. */
static bool is_on_its_way(const struct job *job)
{
    return job->state == JOB_PLACED || job->state == JOB_LOADING ||
           job->state == JOB_STOPPING || (job_holds_seats(job) && job->next.count > 0);
}

/* A wish crosses with what happens: it is heard of in the same step. */
static void cross(struct people *people, struct engine_run *run, int64_t now_ns)
{
    const struct outbox *outbox = &run->outboxes[run->reading];
    const struct state *state = &run->engine.state;
    for (uint32_t i = outbox->count; i-- > 0;) {
        struct event event = outbox->events[i]; /* the box may grow */
        if (event.kind < EVENT_STARTED || event.kind > EVENT_LOST ||
            rng_below(&people->rng, 30) > 0)
            continue;
        people->cancelled[JOB_IDLE] += event.kind == EVENT_LEASE_DONE;
        cancel(people, run, event.job, now_ns);
    }
    for (job_id id = 0; id < state->job_count; id++)
        if (is_on_its_way(&state->jobs[id]) && rng_below(&people->rng, 60) == 0)
            cancel(people, run, id, now_ns);
}

static void people_before(void *self, struct engine_run *run, int64_t now_ns)
{
    struct people *people = self;
    if (people->left > 0)
        cross(people, run, now_ns);
    if (now_ns < people->next_ns)
        return;
    if (people->left == 0 && run->next == run->setup->spec_count) {
        release_all(run, now_ns); /* all who were held have been heard of */
        people->next_ns = INT64_MAX;
        return;
    }
    for (uint32_t n = 1 + rng_below(&people->rng, 2); n > 0 && people->left > 0; n--) {
        act(people, run, now_ns);
        people->left--;
    }
    people->next_ns =
        now_ns + rng_below(&people->rng, people->pace_ms) * SECOND / 1000 + 1;
}

/* Settings, now and then, that make it another policy. */
static const char *settings_of(const struct policy *policy, struct rng *rng)
{
    static const char *const texts[] = {
        "worth=xion", "sharing=true", "sharing=true,round=5s",
        "round=10s",  "hysteresis=0", "compat=released"
    };
    static const char *const names[] = { "worth", "sharing",    "sharing",
                                         "round", "hysteresis", "compat" };
    uint32_t choice = rng_below(rng, 10);
    for (const struct field *param = policy->params; choice < 6 && param && param->name;
         param++)
        if (strcmp(param->name, names[choice]) == 0)
            return texts[choice];
    return NULL;
}

/*
 * The published rules leave some jobs waiting for ever, and plan for a cluster that was
 * theirs from the beginning: the engine refuses what makes no sense, and goes on.
 */
static bool is_released(const char *settings)
{
    return settings && strstr(settings, "compat=released");
}

/* Why does this one wait?  Asking changes nothing. */
static void ask_why(struct people *people, struct engine_run *run, int64_t now_ns)
{
    const struct state *state = &run->engine.state;
    struct why_scene scene = { .engine = &run->engine, .now_ns = now_ns };
    struct why why;
    job_id id = rng_below(&people->questions, state->job_max);
    if (state->jobs[id].state == JOB_FREE)
        return;
    why_find(&why, &scene, id);
    assert_true(why.reasons.count > 0);
    people->answers++;
    people->changes += why.change[0] != '\0';
    state_check(state);
}

static void people_after(void *self, struct engine_run *run, int64_t now_ns)
{
    struct people *people = self;
    if (run->engine.refused_count && !people->wild && !people->released)
        fail_msg("%s: %s", run->policy->name, run->engine.refusal->text);
    if (people->asks && rng_below(&people->questions, 4) == 0)
        ask_why(people, run, now_ns);
    if (people->due == CHANGE_POLICY && people->changes_policy) {
        uint32_t count = 0;
        while (policy_list[count])
            count++;
        const struct policy *policy = policy_list[rng_below(&people->rng, count)];
        const char *settings = settings_of(policy, &people->rng);
        people->released = people->released || is_released(settings);
        if (getenv("BERTH_EVENTS"))
            print_message("# %s %s takes office\n", policy->name,
                          settings ? settings : "");
        engine_run_set_policy(run, policy, settings);
    }
    if (people->due == REBUILD && people->rebuilds)
        engine_run_restart(run, now_ns);
    people->due = CANCEL;
}

/* --- worlds --------------------------------------------------------------------------- */

/* In memory where there is such a folder: thousands of commits. */
static void store_path(char *path, size_t size)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, size, "%s/berth-live-%d.db", folder, (int)getpid());
}

static void remove_store(const char *path)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char file[256];
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
}

static void add_curves(struct random_world *world, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "curves");
    for (uint32_t i = 0; i < JOBS; i++)
        if (rng_below(&rng, 3) == 0)
            learning_parse(&world->specs[i].curve, "exp:mu=0.9", NULL);
}

/* --- figures ---------------------------------------------------------------------------- */

struct pen {
    struct arena arena;
    struct ledger ledger;
    bool begun;
};

static void write_down(void *self, const struct view *view, const struct event *event)
{
    struct pen *pen = self;
    if (!pen->begun)
        ledger_init(&pen->ledger, &pen->arena, view, NULL);
    pen->begun = true;
    ledger_event(&pen->ledger, view, event);
}

/* What preemptions cost, entry by entry, is what is booked to them; nobody is left over. */
static void check_figures(const struct engine_run *run, struct pen *pen)
{
    const struct metrics *metrics = &run->metrics;
    if (!pen->begun)
        return;
    ledger_end(&pen->ledger, &run->engine.state.view, run->engine.state.job_count);
    __int128 booked_ns = metrics->overhead_ns[OVERHEAD_PAUSE] +
                         metrics->overhead_ns[OVERHEAD_LOAD_AGAIN] +
                         metrics->overhead_ns[OVERHEAD_REDO_PREEMPTED];
    __int128 off_ns = booked_ns - pen->ledger.actual_cost_ns;
    assert_int_equal(pen->ledger.preemptions, metrics->preemptions);
    if (off_ns < -1000 || off_ns > 1000) /* roundings of redone work */
        fail_msg("%g GPU-s are booked, the ledger has %g", (double)booked_ns * 1e-9,
                 (double)pen->ledger.actual_cost_ns * 1e-9);
    if (run->engine.state.live_count > 0)
        return;
    assert_int_equal(metrics->gpus_held, 0);
    assert_int_equal(metrics->running, 0);
    assert_int_equal(metrics->waiting, 0);
    assert_int_equal(metrics->completed + metrics->failed + metrics->cancelled +
                         metrics->rejected,
                     metrics->total);
}

static uint64_t play(struct people *people, const struct policy *policy,
                     const char *settings, uint64_t seed, const char *path)
{
    struct random_world world;
    struct engine_run run;
    struct interference interference = { .self = people,
                                         .next_ns = people_next_ns,
                                         .arrives = people_arrives,
                                         .before = people_before,
                                         .after = people_after };
    print_message("# %s %s\n", policy->name, settings ? settings : "");
    rng_init(&people->rng, seed, policy->name);
    rng_init(&people->questions, seed, "questions");
    people->next_ns = 0;
    people->left = DEEDS_MAX;
    people->pace_ms = 1000 + rng_below(&people->rng, 30000);
    people->due = CANCEL;
    people->released = is_released(settings);
    people->rebuilds = path != NULL;
    if (path)
        remove_store(path); /* of one that failed */
    random_world_make(&world, &kinds[seed % KINDS], seed);
    add_curves(&world, seed);
    if (seed % 2)
        random_world_add_sharing(&world, seed);
    world.setup.policy = policy;
    world.setup.settings = settings;
    world.setup.interference = &interference;
    world.setup.store_path = path;
    struct pen pen = { 0 };
    arena_init(&pen.arena, 0);
    if (!path)
        world.setup.observer =
            (struct engine_observer){ .event = write_down, .self = &pen };
    engine_run_play(&run, &world.setup); /* state_check() after every event */

    assert_int_equal(run.accepted + run.rejected, run.next);
    uint32_t ended = 0;
    for (uint32_t id = 1; id <= JOBS; id++) {
        assert_true(run.ends[id] <= 1);
        ended += run.ends[id];
    }
    assert_int_equal(ended, run.ended);
    assert_int_equal(run.ended + run.engine.state.live_count, run.accepted);
    if (!kinds[seed % KINDS].faults && !people->released) {
        assert_false(run.gave_up);
        assert_int_equal(run.ended, run.accepted);
        assert_int_equal(run.engine.state.free.gpu_count, world.cluster.gpu_count);
    }
    check_figures(&run, &pen);
    ledger_release(&pen.ledger);
    arena_release(&pen.arena);
    uint64_t hash = run.hash;
    engine_run_release(&run);
    random_world_release(&world);
    if (path)
        remove_store(path);
    return hash;
}

static struct people people;

static void whatever_people_do_every_job_ends_once(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (uint32_t i = 0; policy_list[i]; i++) {
        struct rng rng;
        rng_init(&rng, seed.now, "settings");
        people.changes_policy = false;
        play(&people, policy_list[i], settings_of(policy_list[i], &rng), seed.now,
             NULL);
    }
}

static void a_policy_takes_over_whatever_there_is(void **state)
{
    people.changes_policy = true;
    FOR_EACH_SEED(seed, SEEDS)
    for (uint32_t i = 0; policy_list[i]; i++)
        play(&people, policy_list[i], NULL, seed.now + 1000, NULL);
}

static void what_is_built_again_is_as_it_was(void **state)
{
    char path[128];
    store_path(path, sizeof path);
    people.changes_policy = true;
    FOR_EACH_SEED(seed, SEEDS)
    for (uint32_t i = 0; policy_list[i]; i++)
        if ((i + seed.now) % 2 == 0 || getenv("BERTH_SEED"))
            play(&people, policy_list[i], NULL, seed.now + 2000, path);
}

static void even_a_wild_policy_is_built_again(void **state)
{
    char path[128];
    store_path(path, sizeof path);
    people.changes_policy = false;
    people.wild = true;
    FOR_EACH_SEED(seed, SEEDS)
    for (uint64_t i = 0; i < 4; i++)
        play(&people, &policy_fuzz, NULL, seed.now * 4 + i + 3000, path);
    people.wild = false;
}

static void asking_why_changes_nothing(void **state)
{
    people.changes_policy = true;
    FOR_EACH_SEED(seed, SEEDS / 4)
    for (uint32_t i = 0; policy_list[i]; i++) {
        uint64_t hashes[2];
        for (int asks = 0; asks < 2; asks++) {
            people.asks = asks;
            hashes[asks] = play(&people, policy_list[i], NULL, seed.now + 4000, NULL);
        }
        assert_true(hashes[0] == hashes[1]);
    }
    people.asks = false;
}

static void all_of_it_was_there(void **state)
{
    if (getenv("BERTH_SEED"))
        return;
    for (uint32_t s = JOB_HELD; s <= JOB_STOPPING; s++)
        print_message("# cancelled in state %u: %llu\n", s,
                      (unsigned long long)people.cancelled[s]);
    print_message("# while moving: %llu\n", (unsigned long long)people.moving);
    for (uint32_t s = JOB_HELD; s <= JOB_STOPPING; s++)
        assert_true(people.cancelled[s] > 0);

    assert_true(people.moving > 0);
    print_message("# %llu answers, %llu changes\n", (unsigned long long)people.answers,
                  (unsigned long long)people.changes);
    assert_true(people.answers > 0 && people.changes > 0);
    for (uint32_t d = 0; d < DEEDS; d++)
        assert_true(people.done[d] > 0);
}

RUN_CASES(TEST(whatever_people_do_every_job_ends_once),
          TEST(a_policy_takes_over_whatever_there_is),
          TEST(what_is_built_again_is_as_it_was),
          TEST(even_a_wild_policy_is_built_again), TEST(asking_why_changes_nothing),
          TEST(all_of_it_was_there));
