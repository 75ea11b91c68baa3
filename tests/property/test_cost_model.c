/*
 * The price of a preemption in random worlds: what the plain simulation below says,
 * more than its cost wherever a preemption is made, and with free preemptions never
 * the worse choice.
 */
#include "support/random_world.h"

#include <math.h>

#include "base/rng.h"
#include "policy/shared/cost_model.h"
#include "support/world.h"

extern const struct policy policy_xion, policy_srtf;

#define JOBS 24

/* --- a plain simulation of one node that counts GPUs ------------------------------ */

struct party {
    double key, run_s, from_s, end_s;
    uint32_t gpus;
    bool queued, done;
};

static double first_end(const struct party *all, uint32_t count, double after_s)
{
    double first_s = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        double at_s = all[i].queued ? all[i].from_s : all[i].end_s;
        if (at_s > after_s && at_s < first_s)
            first_s = at_s;
    }
    return first_s;
}

static uint32_t free_at(const struct party *all, uint32_t count, uint32_t gpus,
                        double t)
{
    for (uint32_t i = 0; i < count; i++)
        if (!all[i].queued && all[i].end_s > t)
            gpus -= all[i].gpus;
    return gpus;
}

static struct party *best_that_fits(struct party *all, uint32_t count, uint32_t free,
                                    double t)
{
    struct party *best = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (all[i].queued && all[i].from_s <= t && all[i].gpus <= free &&
            (!best || all[i].key < best->key))
            best = &all[i];
    return best;
}

/* The sum of all completion times; 'done' jobs only hold GPUs. */
static double play(struct party *all, uint32_t count, uint32_t gpus)
{
    double sum_s = 0;
    for (double t = 0; t < INFINITY; t = first_end(all, count, t)) {
        struct party *next;
        while ((next = best_that_fits(all, count, free_at(all, count, gpus, t), t))) {
            next->queued = false;
            next->end_s = t + next->run_s;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        sum_s += all[i].done ? 0 : all[i].end_s;
    return sum_s;
}

/* --- small worlds ---------------------------------------------------------------------- */

static struct job any_job(struct rng *rng, uint32_t gpus_max, double cost)
{
    return (struct job){ .gpus = 1 + rng_below(rng, gpus_max),
                         .steps_total = 1 + 1000 * rng_unit(rng),
                         .pause_ns = (int64_t)(cost * 1e9 * (1 + 50 * rng_unit(rng))),
                         .load_ns = (int64_t)(cost * 1e9 * (1 + 50 * rng_unit(rng))) };
}

/* Fill the node, and queue the other jobs. */
static uint32_t fill(struct world *w, struct rng *rng, uint32_t gpus_max, double cost)
{
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job job = any_job(rng, gpus_max, cost);
        if (job.gpus <= w->state.free.gpu_count)
            world_running(w, job);
        else
            world_queued(w, job);
    }
    return JOBS;
}

static struct party party_of(struct world *w, const struct cost_model *model, job_id id)
{
    const struct view *view = &w->state.view;
    struct party party = { .key = (double)cost_model_key_ns(model, view, id),
                           .gpus = view->jobs[id].gpus,
                           .queued = !job_runs(&view->jobs[id]) };
    party.run_s = (double)(view_work_left_ns(view, id) + view->jobs[id].load_ns) * 1e-9;
    party.end_s = (double)view_remaining_ns(view, id) * 1e-9;
    return party;
}

static double stupid_keep(struct world *w, const struct cost_model *model)
{
    struct party all[JOBS];
    for (job_id id = 0; id < JOBS; id++)
        all[id] = party_of(w, model, id);
    return play(all, JOBS, w->cluster.gpu_count);
}

static double stupid_swap(struct world *w, const struct cost_model *model,
                          job_id newcomer, job_id victim)
{
    struct party all[JOBS + 1];
    for (job_id id = 0; id < JOBS; id++)
        all[id] = party_of(w, model, id);
    double pause_s = (double)w->state.jobs[victim].pause_ns * 1e-9;
    all[newcomer].queued = false;
    all[newcomer].end_s = pause_s + all[newcomer].run_s;
    all[victim].queued = true;
    all[victim].from_s = pause_s;
    uint32_t rest = all[victim].gpus - all[newcomer].gpus;
    all[JOBS] = (struct party){ .gpus = rest, .end_s = pause_s, .done = true };
    return play(all, JOBS + 1, w->cluster.gpu_count);
}

static void begin(struct world *w, struct cost_model *model)
{
    *model = (struct cost_model){ .settings = COST_MODEL_STANDARD };
    model->settings.depth = 64;
    model->settings.stretch = 0;
    cost_model_init(model, &w->state.view, &w->arena);
    for (job_id id = 0; id < JOBS; id++)
        cost_model_observe(model, &w->state.view,
                           &(struct event){ .kind = EVENT_ADOPTED, .job = id });
}

/* --- properties ------------------------------------------------------------------------- */

static void the_price_is_what_a_plain_simulation_says(void **state)
{
    FOR_EACH_SEED(seed, 60)
    {
        struct world w;
        struct cost_model model;
        struct rng rng;
        rng_init(&rng, seed.now, "worth");
        world_init(&w, 1, 2 + rng_below(&rng, 7));
        fill(&w, &rng, w.cluster.gpu_count, (double)(seed.now % 3));
        begin(&w, &model);
        for (job_id new = 0; new < JOBS; new ++)
            for (job_id old = 0; old < JOBS; old++) {
                const struct job *jobs = w.state.jobs;
                if (job_runs(&jobs[new]) || !job_runs(&jobs[old]) ||
                    jobs[old].gpus < jobs[new].gpus)
                    continue;
                struct preemption_price price;
                bool made = cost_model_pays(&model, &w.state.view, world_plan(&w), new,
                                            &old, 1, &price);
                double gain_s =
                    stupid_keep(&w, &model) - stupid_swap(&w, &model, new, old);
                assert_true(fabs(gain_s - price.gain_s) < 1e-3);
                assert_true(made == (price.gain_s > price.cost_gpu_s));
            }
        world_release(&w);
    }
}

/*
 * The sum of completion times if the jobs that the plan grants run, with free
 * preemptions.
 */
static double outcome(struct world *w, const struct cost_model *model)
{
    struct party all[JOBS];
    for (job_id id = 0; id < JOBS; id++) {
        all[id] = party_of(w, model, id);
        all[id].queued = !plan_holds(w->plan, id);
        all[id].end_s = all[id].run_s;
    }
    return play(all, JOBS, w->cluster.gpu_count);
}

static void with_free_swaps_nothing_is_left_that_srtf_would_gain(void **state)
{
    FOR_EACH_SEED(seed, 100)
    {
        struct world w;
        struct cost_model model;
        struct rng rng;
        rng_init(&rng, seed.now, "free");
        world_init(&w, 1, 2 + rng_below(&rng, 7));
        fill(&w, &rng, 1, 0);
        begin(&w, &model);
        world_decide(&w, &policy_srtf);
        double srtf_s = outcome(&w, &model);
        world_decide(&w, &policy_xion);
        assert_true(outcome(&w, &model) <= srtf_s + 1e-3);
        world_release(&w);
    }
}

/* --- whole runs ------------------------------------------------------------------------- */

#define RUN_JOBS 150

static void draw_specs(struct job_spec *specs, struct rng *rng, double gap_s,
                       double cost)
{
    double at_s = 0;
    for (uint32_t i = 0; i < RUN_JOBS; i++) {
        at_s += rng_exponential(rng, gap_s);
        int64_t pause_ns = (int64_t)(cost * 1e9 * (5 + 55 * rng_unit(rng)));
        specs[i] = (struct job_spec){
            .submit_ns = (int64_t)(at_s * 1e9),
            .gpus = 1u << (rng_unit(rng) < 0.6 ? 0 : rng_below(rng, 4)),
            .steps = exp(log(1000) + rng_normal(rng)),
            .pause_ns = pause_ns,
            .grace_ns = pause_ns,
            .load_ns = (int64_t)(cost * 1e9 * (20 + 100 * rng_unit(rng))),
        };
    }
}

static double total_s(const struct policy *policy, const struct job_spec *specs,
                      const struct cluster *cluster)
{
    struct engine_run run;
    struct engine_run_setup setup = { .cluster = cluster,
                                      .policy = policy,
                                      .specs = specs,
                                      .spec_count = RUN_JOBS,
                                      .unchecked = true };
    engine_run_play(&run, &setup);
    assert_int_equal(run.ended, run.accepted);
    double sum_s = run.metrics.live_s;
    engine_run_release(&run);
    return sum_s;
}

static double mean_ratio(double cost)
{
    double sum = 0;
    uint32_t count = 0;
    FOR_EACH_SEED(seed, 60)
    {
        struct job_spec specs[RUN_JOBS];
        struct arena arena;
        struct cluster cluster;
        struct rng rng;
        rng_init(&rng, seed.now, "runs");
        arena_init(&arena, 0);
        cluster_load(&cluster, &arena, seed.now % 2 ? "1xv100:8" : "2xv100:8", NULL);
        draw_specs(specs, &rng, seed.now % 2 ? 500 : 250, cost); /* load 0.85 */
        double srtf_s = total_s(&policy_srtf, specs, &cluster);
        sum += total_s(&policy_xion, specs, &cluster) / srtf_s;
        count++;
        arena_release(&arena);
    }
    printf("# cost %g: %.4f of srtf's completion time\n", cost, sum / count);
    return getenv("BERTH_SEED") ? 0 : sum / count; /* a single world proves nothing */
}

static void free_or_not_it_is_better_than_srtf_in_the_mean(void **state)
{
    assert_true(mean_ratio(0) <= 1);
    assert_true(mean_ratio(1) <= 1);
    assert_true(mean_ratio(3) <= 0.95);
}

RUN_CASES(TEST(the_price_is_what_a_plain_simulation_says),
          TEST(with_free_swaps_nothing_is_left_that_srtf_would_gain),
          TEST(free_or_not_it_is_better_than_srtf_in_the_mean));
