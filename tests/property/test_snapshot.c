/*
 * A snapshot of an engine is played as well later as at once, whatever its source does meanwhile;
 * and no change to it, of jobs, nodes or the policy, ends in anything but a future.
 *
 * Under every policy, in random worlds with gangs, node lists, failing nodes and rates that are known
 * or being learned.
 */
#include "support/cases.h"

#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "engine/engine_copy.h"
#include "forecast/replicate.h"
#include "model/cluster_extend.h"
#include "support/random_world.h"
#include "support/state_check.h"

#define LATER_TURNS 40
#define HORIZON_NS INT64_C(100000000000000)
#define EVENTS_MAX 3000
#define MOMENTS 3

/* What came of playing a snapshot. */
struct outcome {
    uint32_t jobs;
    uint64_t hash;
    struct replicate_figures figures;
};

struct taker {
    const struct policy *policy;
    struct rng rng;
    uint32_t turn, taken_at, taken; /* moments */
    bool kept;                      /* 'later' is one, to be played */
    struct engine_snapshot later;
    struct outcome at_once;
    uint32_t changes;
};

/* A little more than it has done, for some jobs what it declared. */
static void tell_truth(void *context, const struct view *view, job_id id,
                       struct sim_truth *ret_truth)
{
    const struct job *job = &view->jobs[id];
    double done = job_steps(job, view->now_ns);
    double more = 1 + (double)(job->id * 37 % 101) * 5;
    ret_truth->steps = done < ret_truth->steps ? ret_truth->steps : done + more;
}

static uint64_t hash_times(const struct replicate *replicate)
{
    uint64_t hash = 1;
    for (job_id id = 0; id < replicate->source->state.job_count; id++) {
        hash = hash * 1000003 + (uint64_t)replicate->starts[id];
        hash = hash * 1000003 + (uint64_t)replicate->ends[id];
    }
    return hash;
}

static struct outcome play(const struct engine *engine)
{
    struct error err = { "" };
    struct replicate replicate;
    struct replicate_setup setup = { .more_jobs = 8,
                                     .to_horizon = true,
                                     .truth = tell_truth };
    if (replicate_init(&replicate, engine, &setup, &err) < 0 ||
        replicate_begin(&replicate, 7, &err) < 0)
        fail_msg("%s", err.text);
    int64_t until_ns = engine->state.view.now_ns + HORIZON_NS;
    if (replicate_play(&replicate, until_ns, EVENTS_MAX, &err) < 0)
        fail_msg("%s: %s", engine->policy->name, err.text);
    state_check(&replicate.engine.state);
    struct outcome outcome = { .jobs = engine->state.live_count,
                               .hash = hash_times(&replicate),
                               .figures = replicate.figures };
    assert_true(outcome.figures.finished <= outcome.figures.jobs);
    assert_true(outcome.figures.held_gpu_s <= outcome.figures.gpu_s * (1 + 1e-9));
    assert_true(outcome.figures.waiting_s <= outcome.figures.live_s * (1 + 1e-9));
    replicate_release(&replicate);
    return outcome;
}

static void take(struct engine_snapshot *snapshot, const struct engine *engine,
                 const struct engine_copy_setup *setup)
{
    struct error err = { "" };
    if (engine_snapshot_take(snapshot, engine, setup, &err) < 0)
        fail_msg("%s: %s", engine->policy->name, err.text);
}

/* --- changes ------------------------------------------------------------------------------- */

static struct event of_job(const struct state *state, enum event_kind kind, job_id id)
{
    const struct job *job = &state->jobs[id];
    return (struct event){ .at_ns = state->view.now_ns,
                           .kind = kind,
                           .job = id,
                           .generation = job->generation,
                           .attempt = job->attempt,
                           .steps = job->steps,
                           .steps_reached = job->steps };
}

static void step(struct engine *engine, struct event *events, uint32_t count)
{
    struct error err = { "" };
    if (engine_step(engine, engine->state.view.now_ns, events, count, &err) < 0)
        fail_msg("%s", err.text);
    state_check(&engine->state);
}

static bool has_seats_on(const struct state *state, const struct seat_row *row,
                         node_id node)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (state->seats[row->first + i].node == node)
            return true;
    return false;
}

/* Some jobs are cancelled, a node is lost with those on it; what was told to end has ended. */
static void change(struct taker *taker, struct engine *engine)
{
    static struct event events[4096];
    const struct state *state = &engine->state;
    uint32_t count = 0;
    node_id gone = rng_below(&taker->rng, state->view.cluster->node_count);
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE)
            continue;
        if (rng_below(&taker->rng, 4) == 0)
            events[count++] = of_job(state, EVENT_CANCELLED, id);
        else if (job->state >= JOB_PLACED && (has_seats_on(state, &job->seats, gone) ||
                                              has_seats_on(state, &job->next, gone)))
            events[count++] = of_job(state, EVENT_LOST, id);
    }
    events[count++] = (struct event){ .at_ns = state->view.now_ns,
                                      .kind = EVENT_NODE_DOWN,
                                      .job = JOB_NONE,
                                      .node = gone };
    step(engine, events, count);
    count = 0;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE && state->jobs[id].leaving &&
            job_holds_seats(&state->jobs[id]))
            events[count++] = of_job(state, EVENT_STOPPED, id);
    step(engine, events, count);
    engine->wake_ns = state->view.now_ns;
}

/* With more nodes, under another policy or the same, and changed. */
static void play_changed(struct taker *taker, const struct engine *engine)
{
    struct error err = { "" };
    struct arena arena;
    struct cluster cluster;
    char added[80];
    struct engine_snapshot snapshot = { 0 };
    struct engine_copy_setup setup = { 0 };
    uint32_t policies = 0;
    arena_init(&arena, 0);
    while (policy_list[policies])
        policies++;
    if (rng_below(&taker->rng, 2)) {
        const struct cluster *present = engine->state.view.cluster;
        node_id like = rng_below(&taker->rng, present->node_count);
        snprintf(added, sizeof added, "%ux%s:%u", 1 + rng_below(&taker->rng, 70),
                 present->types[present->nodes[like].type].name,
                 1 + rng_below(&taker->rng, 8));
        if (cluster_extend(&cluster, &arena, present, added, &err) < 0)
            fail_msg("%s", err.text);
        setup.cluster = &cluster;
    }
    if (rng_below(&taker->rng, 2))
        setup.policy = policy_list[rng_below(&taker->rng, policies)];
    take(&snapshot, engine, &setup);
    engine_adopt_jobs(&snapshot.engine);
    state_check(&snapshot.engine.state);
    if (rng_below(&taker->rng, 4))
        change(taker, &snapshot.engine);
    play(&snapshot.engine);
    taker->changes++;
    engine_snapshot_release(&snapshot);
    arena_release(&arena);
}

/* --- moments ------------------------------------------------------------------------------- */

static void take_both(struct taker *taker, const struct engine *engine)
{
    struct engine_snapshot now = { 0 };
    struct engine_copy_setup setup = { 0 };
    take(&now, engine, &setup);
    take(&taker->later, engine, &setup);
    engine_adopt_jobs(&now.engine);
    taker->at_once = play(&now.engine);
    engine_snapshot_release(&now);
    taker->kept = true;
    taker->taken_at = taker->turn;
}

static bool is_same(const struct replicate_figures *a,
                    const struct replicate_figures *b)
{
    return a->jobs == b->jobs && a->finished == b->finished &&
           a->preemptions == b->preemptions && a->waiting_s == b->waiting_s &&
           a->live_s == b->live_s && a->held_gpu_s == b->held_gpu_s &&
           a->gpu_s == b->gpu_s;
}

static void play_later(struct taker *taker)
{
    engine_adopt_jobs(&taker->later.engine);
    for (uint32_t round = 0; round < 2; round++) {
        struct outcome outcome = play(&taker->later.engine);
        assert_true(outcome.jobs == taker->at_once.jobs);
        assert_true(outcome.hash == taker->at_once.hash);
        assert_true(is_same(&outcome.figures, &taker->at_once.figures));
    }
    engine_snapshot_release(&taker->later);
    taker->kept = false;
    taker->taken++;
}

static void do_nothing(void *self, struct engine_run *run, int64_t now_ns)
{
}

static void after_step(void *self, struct engine_run *run, int64_t now_ns)
{
    struct taker *taker = self;
    taker->turn++;
    if (taker->kept && taker->turn - taker->taken_at >= LATER_TURNS)
        play_later(taker);
    if (taker->kept || taker->taken == MOMENTS || run->engine.state.live_count < 4 ||
        rng_below(&taker->rng, 12) > 0)
        return;
    take_both(taker, &run->engine);
    play_changed(taker, &run->engine);
}

static uint32_t run_world(const struct policy *policy, uint64_t seed)
{
    struct random_world world;
    struct engine_run run;
    struct taker taker = { .policy = policy };
    struct random_world_setup setup = { .jobs = 60,
                                        .faults = seed % 3 == 0,
                                        .wrong_estimates = true,
                                        .unknown_work = seed % 2 == 0,
                                        .stays = true,
                                        .sets = seed % 4 != 0 };
    struct interference interference = { .self = &taker,
                                         .before = do_nothing,
                                         .after = after_step };
    rng_init(&taker.rng, seed, "snapshots");
    random_world_make(&world, &setup, seed);
    if (seed % 2 == 0)
        random_world_add_sharing(&world, true, seed);
    world.setup.policy = policy;
    world.setup.interference = &interference;
    world.setup.turns_max = 2000;
    if (seed % 4 == 0) { /* rates are learned */
        world.setup.hidden = world.setup.rates;
        world.setup.rates = NULL;
    }
    engine_run_play(&run, &world.setup);
    if (taker.kept)
        play_later(&taker);
    engine_run_release(&run);
    random_world_release(&world);
    return taker.taken;
}

static void a_snapshot_is_played_later_as_at_once(void **state)
{
    uint32_t count = 0;
    FOR_EACH_SEED(seed, 8)
    for (const struct policy *const *p = policy_list; *p; p++)
        count += run_world(*p, seed.now);
    assert_true(count > 20 || getenv("BERTH_SEED"));
}

RUN_CASES(TEST(a_snapshot_is_played_later_as_at_once));
