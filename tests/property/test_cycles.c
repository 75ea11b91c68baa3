/*
 * Preemptions do not go round in circles under the policy 'berth'.
 *
 * Small worlds in which they would if they could: stopping costs nothing or little, jobs are equal,
 * work is undeclared or declared wrongly, loss curves are noisy, elastic jobs grow, types of GPUs
 * differ.  The bounds: no job is preempted more often than twice per job of its world, and within
 * one instant there are no more stops than that.  Sizes are set anew in each epoch, so a job is
 * moved or resized at most ten times per job.
 *
 * 3,000 worlds, and 100,000 in a soak.
 */
#include "support/random_world.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/state.h"

extern const struct policy policy_berth;

#ifndef SEEDS
#define SEEDS 3000
#endif
#define JOBS 14
#define BOUND (2 * JOBS)
#define RESIZES_MAX (10 * JOBS)
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SECOND INT64_C(1000000000)

static struct {
    uint32_t preempted[JOBS + 1]; /* by id */
    uint32_t resized[JOBS + 1];
    uint32_t at_once; /* jobs stopped in the present instant */
    int64_t now_ns;
    uint32_t most_preempted, most_resized, most_at_once;
} counts;
static uint64_t preempted_all, resized_all;

static void count_stops(void *self, const struct view *view, const struct event *event)
{
    if (event->at_ns != counts.now_ns)
        counts.at_once = 0;
    counts.now_ns = event->at_ns;
    if (event->kind != EVENT_RECALLED && event->kind != EVENT_RESIZING)
        return;
    uint64_t id = view->jobs[event->job].id;
    bool preempted = event->kind == EVENT_RECALLED && event->rule != RULE_RESIZE;
    uint32_t *count = preempted ? &counts.preempted[id] : &counts.resized[id];
    uint32_t *most = preempted ? &counts.most_preempted : &counts.most_resized;
    ++*count;
    *most = *count > *most ? *count : *most;
    if (++counts.at_once > counts.most_at_once)
        counts.most_at_once = counts.at_once;
    preempted_all += preempted;
    resized_all += !preempted;
}

/* Half of the worlds with defaults. */
static const char *const settings[] = { NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        "age=60s",
                                        "objective=makespan",
                                        "objective=fairness",
                                        "objective=cost",
                                        "sharing=true",
                                        "sharing=true" };

static double draw_work_s(struct rng *rng, bool equal)
{
    return equal ? 300 : 5 * pow(400, rng_unit(rng));
}

static void make_jobs(struct random_world *world, struct rng *rng)
{
    static const char *const curves[] = { "exp:mu=0.9,noise=0.2",
                                          "inv:a=0.01,b=0,kmax=50,noise=0.3",
                                          "inv:a=0.01,b=0.1,noise=0.1" };
    bool equal = rng_below(rng, 3) == 0;
    bool costs = rng_below(rng, 2);
    bool learns = rng_below(rng, 2);
    bool elastic = rng_below(rng, 2);
    uint32_t trials = rng_below(rng, 3) * 15;
    uint32_t undeclared = rng_below(rng, 3) * 40;
    double error = rng_below(rng, 3) * 0.5;
    int64_t at_ns = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_spec *spec = &world->specs[i];
        uint32_t gpus = equal ? 2 : 1 + rng_below(rng, 4);
        gpus = gpus < world->cluster.gpu_count ? gpus : world->cluster.gpu_count;
        *spec = (struct job_spec){ .submit_ns = at_ns,
                                   .class = rng_below(rng, 100) < trials,
                                   .gpus = gpus,
                                   .steps = draw_work_s(rng, equal) };
        if (costs) {
            spec->pause_ns = rng_below(rng, 4) * SECOND;
            spec->grace_ns = rng_below(rng, 4) * SECOND;
            spec->load_ns = rng_below(rng, 4) * SECOND;
        }
        if (learns && rng_below(rng, 2))
            assert_int_equal(learning_parse_points(
                                 &spec->curve, curves[rng_below(rng, 3)], NULL, NULL),
                             0);
        if (elastic && rng_below(rng, 2)) {
            spec->gpus_min = 1;
            spec->gpus_max = gpus + rng_below(rng, 4);
        }
        world->beliefs[i] =
            rng_below(rng, 100) < undeclared ? 0 : exp(error * rng_normal(rng));
        at_ns += (int64_t)rng_below(rng, equal ? 200 : 120) * SECOND;
    }
}

static void no_job_is_stopped_over_and_over(void **state)
{
    uint32_t most[3] = { 0 };
    uint64_t worlds = 0;
    for (struct seeds seed = seeds_first(SEEDS); seed.now <= seed.last; seed.now++) {
        struct random_world world;
        struct engine_run run;
        struct rng rng;
        memset(&counts, 0, sizeof counts);
        rng_init(&rng, seed.now, "cycles");
        random_world_make(
            &world,
            &(struct random_world_setup){ .jobs = JOBS,
                                          .plain = rng_below(&rng, 3) == 0,
                                          .one_speed = rng_below(&rng, 3) == 0 },
            seed.now);
        make_jobs(&world, &rng);
        world.setup.policy = &policy_berth;
        world.setup.settings = settings[rng_below(&rng, COUNT(settings))];
        if (world.setup.settings && strstr(world.setup.settings, "sharing"))
            random_world_add_sharing(&world, false, seed.now);
        world.setup.unchecked = true;
        world.setup.observer = (struct engine_observer){ .event = count_stops };
        engine_run_play(&run, &world.setup);
        if (run.gave_up || run.ended != run.accepted || counts.most_preempted > BOUND ||
            counts.most_resized > RESIZES_MAX || counts.most_at_once > BOUND)
            fail_msg("BERTH_SEED=%llu: a job is preempted %u times, one resized %u "
                     "times, %u "
                     "are stopped in one instant; %u of %u jobs have ended",
                     (unsigned long long)seed.now, counts.most_preempted,
                     counts.most_resized, counts.most_at_once, run.ended, run.accepted);
        most[0] = most[0] > counts.most_preempted ? most[0] : counts.most_preempted;
        most[1] = most[1] > counts.most_resized ? most[1] : counts.most_resized;
        most[2] = most[2] > counts.most_at_once ? most[2] : counts.most_at_once;
        engine_run_release(&run);
        random_world_release(&world);
        worlds++;
    }
    print_message(
        "# %llu preemptions, of one job at most %u; %llu moves and resizes, of "
        "one job at most %u; at most %u in one instant\n",
        (unsigned long long)preempted_all, most[0], (unsigned long long)resized_all,
        most[1], most[2]);
    assert_true(getenv("BERTH_SEED") ||
                (preempted_all > worlds && resized_all > worlds));
}

RUN_CASES(TEST(no_job_is_stopped_over_and_over));
