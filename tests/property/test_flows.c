/*
 * What holds for every flow policy beside every job policy, in every world with a
 * network: the books add up and no link is overfull after every event, every job ends
 * once, the same seed gives the same run, and deciding allocates nothing.
 */
#include "support/alloc_count.h"
#include "support/random_world.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "net/fluid.h"
#include "support/rates_check.h"

#ifndef SEEDS
#define SEEDS 40
#endif
#define JOBS 30

/* --- allocations while deciding ------------------------------------------------------ */

static const struct flow_policy *watched;

static int watched_decide(void *self, const struct view *view, struct flow_plan *plan,
                          struct error *err)
{
    alloc_count_on = true;
    int r = watched->decide(self, view, plan, err);
    alloc_count_on = false;
    return r;
}

static struct flow_policy watch(const struct flow_policy *flow)
{
    struct flow_policy copy = *flow;
    watched = flow;
    if (flow->decide)
        copy.decide = watched_decide;
    alloc_count_calls = 0;
    return copy;
}

/* --- worlds --------------------------------------------------------------------------- */

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true, .distinct_times = true },
    { .jobs = JOBS },
    { .jobs = JOBS, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .plain = true, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Links, some of them dead where jobs may be lost anyway, and jobs that use them. */
static void add_network(struct random_world *world, struct rng *rng, bool dead)
{
    for (node_id n = 0; n < world->cluster.node_count; n++)
        world->cluster.nodes[n].link_bps =
            dead && rng_below(rng, 10) == 0 ? 0 : 1000000 * (1 + rng_below(rng, 100));
    world->cluster.oversubscription = 1 + rng_below(rng, 3);
    static const char *const curves[] = { "exp:mu=0.9", "inv:a=0.01,b=0.1,kmax=50",
                                          "acc:tau=20,last=0.8" };
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_spec *spec = &world->specs[i];
        if (spec->gpus > 1 && rng_below(rng, 10) < 7) {
            uint32_t most = world->cluster.node_count;
            spec->nodes = 1 + rng_below(rng, spec->gpus < most ? spec->gpus : most);
            spec->bytes_per_step = 1 + rng_below(rng, 3000000);
            spec->sync = rng_below(rng, 2) ? SYNC_RING : SYNC_SERVER;
            spec->overlap = rng_below(rng, 3) * 0.5;
        }
        spec->step_s = rng_below(rng, 2) ? 0 : 0.5 + rng_unit(rng);
        spec->steps = fmin(spec->steps, 100);
        if (rng_below(rng, 10) < 6)
            assert_int_equal(learning_parse_points(
                                 &spec->curve, curves[rng_below(rng, 3)], NULL, NULL),
                             0);
    }
}

static struct engine_run run;

static void check_network(void *self, const struct view *view,
                          const struct event *event)
{
    if (run.sim.fluid) {
        fluid_check(run.sim.fluid, view->now_ns);
        rates_check(&run.sim.fluid->rates);
    }
}

struct outcome {
    uint64_t hash, changes;
    uint32_t ended, accepted, live;
    bool gave_up, sent;
};

static struct outcome play(uint64_t seed, const struct flow_policy *flow,
                           const struct policy *policy, const char *settings)
{
    struct random_world world;
    struct rng rng;
    const struct random_world_setup *kind = &kinds[seed % KINDS];
    random_world_make(&world, kind, seed);
    rng_init(&rng, seed, "network");
    add_network(&world, &rng, kind->faults);
    world.setup.policy = policy;
    world.setup.flow = flow;
    world.setup.flow_settings = settings;
    world.setup.observer = (struct engine_observer){ .event = check_network };
    engine_run_play(&run, &world.setup);
    struct outcome outcome = { .hash = run.hash,
                               .ended = run.ended,
                               .accepted = run.accepted,
                               .live = run.engine.state.live_count,
                               .gave_up = run.gave_up,
                               .sent = run.sim.fluid && run.sim.fluid->bytes_sent > 0 };
    for (uint32_t id = 1; id <= JOBS; id++)
        assert_true(run.ends[id] <= 1);
    assert_int_equal(run.engine.flow_refused_count, 0);
    engine_run_release(&run);
    random_world_release(&world);
    return outcome;
}

static const struct policy *policy_for(uint64_t number)
{
    uint64_t count = 0;
    while (policy_list[count])
        count++;
    return policy_list[number % count];
}

static void check_flow(uint64_t seed, const struct flow_policy *flow, uint32_t number,
                       const char *settings)
{
    /* Not in step with the kinds: every pair of policies is to meet every kind. */
    const struct policy *policy = policy_for(seed / KINDS + number);
    print_message("# %s %s beside %s\n", flow->name, settings ? settings : "",
                  policy->name);
    struct flow_policy copy = watch(flow);
    struct outcome once = play(seed, &copy, policy, settings);
    assert_int_equal(alloc_count_calls, 0);
    assert_int_equal(once.ended + once.live, once.accepted);
    if (!kinds[seed % KINDS].faults) {
        assert_false(once.gave_up);
        assert_int_equal(once.ended, once.accepted);
    }
    struct outcome again = play(seed, flow, policy, settings);
    assert_true(once.hash == again.hash);
}

static void every_flow_policy_keeps_the_books(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    {
        uint32_t number = 0;
        for (const struct flow_policy *const *f = flow_list; *f; f++)
            check_flow(seed.now, *f, number++, NULL);
        check_flow(seed.now, flow_find("jpas"), number++,
                   "early=nearest,late=shortest,period=3s,levels=3");
    }
}

static void worlds_use_their_network(void **state)
{
    uint32_t used = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        used += play(seed, flow_find("fair"), policy_find("fifo"), NULL).sent;
    assert_true(used >= 10);
}

RUN_CASES(TEST(every_flow_policy_keeps_the_books), TEST(worlds_use_their_network));
