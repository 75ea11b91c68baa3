/*
 * FitGpp in random worlds: no trial job waits while a job could be preempted for it,
 * no job is preempted more often than the cap allows, and the victim is the one that
 * an exhaustive search finds.  The policy berth starts trial jobs at once in the same sense,
 * under each of its objectives.
 */
#include "support/random_world.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/plan.h"
#include "model/state.h"
#include "model/throughput.h"
#include "policy/shared/victims.h"

extern const struct policy policy_berth;
extern const struct policy policy_fitgpp;

#ifndef SEEDS
#define SEEDS 150
#endif
#define JOBS 80
#define CAP 1

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },    { .jobs = JOBS },
    { .jobs = JOBS, .one_node = true }, { .jobs = JOBS, .sets = true },
    { .jobs = JOBS, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* --- the exhaustive search -------------------------------------------------------- */

static double squared_share(uint32_t of, uint32_t all)
{
    return all ? pow((double)of / all, 2) : 0;
}

static double size_of(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct node *node = &view->cluster->nodes[view_seats(view, id)->node];
    return sqrt(squared_share(job->gpus_now, node->gpu_count) +
                squared_share(job->cpu_milli, node->cpu_milli) +
                squared_share(job->mem_mib, node->mem_mib));
}

struct maxima {
    double size, grace;
};

static bool is_running_be(const struct view *view, job_id id)
{
    return view->jobs[id].class == CLASS_BE && job_runs(&view->jobs[id]);
}

static struct maxima maxima_of(const struct view *view, bool fixed)
{
    struct maxima max = { 0, 0 };
    if (fixed)
        return (struct maxima){ sqrt(3), 20 * 60e9 };
    for (job_id id = 0; id < view->job_max; id++)
        if (is_running_be(view, id)) {
            max.size = fmax(max.size, size_of(view, id));
            max.grace = fmax(max.grace, (double)view->jobs[id].grace_ns);
        }
    return max;
}

static double score(const struct view *view, job_id id, struct maxima max)
{
    double size = max.size > 0 ? size_of(view, id) / max.size : 0;
    double grace = max.grace > 0 ? (double)view->jobs[id].grace_ns / max.grace : 0;
    return size + 4 * grace;
}

static bool holds_with(const struct view *view, const struct plan *plan,
                       const struct seat *seat, const struct job *newcomer)
{
    uint32_t type = view->cluster->nodes[seat->node].type;
    struct room room;
    plan_room(plan, seat->node, &room);
    bool allowed =
        type == TYPE_NONE ? newcomer->gpus == 0 : newcomer->types >> type & 1;
    allowed = allowed && node_set_has(newcomer->set, seat->node);
    return allowed && bits_count(room.gpus | seat->gpus) >= newcomer->gpus &&
           room.cpu_milli + seat->cpu_milli >= newcomer->cpu_milli &&
           room.mem_mib + seat->mem_mib >= newcomer->mem_mib;
}

static bool makes_room(const struct view *view, const struct plan *plan, job_id id,
                       const struct job *newcomer)
{
    if (!is_running_be(view, id) || plan_changes(plan, id) ||
        view->jobs[id].preemptions >= CAP)
        return false;
    for (uint32_t i = 0; i < view->jobs[id].seats.count; i++)
        if (holds_with(view, plan, &view_seats(view, id)[i], newcomer))
            return true;
    return false;
}

/* 'chosen' makes room at the least score; of those exactly like it, it has the lowest id. */
static void judge(const struct view *view, const struct plan *plan, bool fixed,
                  const struct job *newcomer, job_id chosen)
{
    struct maxima max = maxima_of(view, fixed);
    bool somebody = false;
    for (job_id id = 0; id < view->job_max; id++) {
        if (!makes_room(view, plan, id, newcomer))
            continue;
        somebody = true;
        assert_true(chosen != JOB_NONE);
        assert_true(score(view, chosen, max) <= score(view, id, max) * (1 + 1e-6));
        if (size_of(view, id) == size_of(view, chosen) &&
            view->jobs[id].grace_ns == view->jobs[chosen].grace_ns)
            assert_true(view->jobs[chosen].id <= view->jobs[id].id);
    }
    assert_true(somebody == (chosen != JOB_NONE));
    if (somebody)
        assert_true(makes_room(view, plan, chosen, newcomer));
}

/* --- fitgpp, observed ------------------------------------------------------------- */

struct watched {
    struct victims running, fixed; /* ours, which see the same events */
    max_align_t fitgpp[];          /* the policy's self */
};

static uint64_t choices; /* in all worlds: a test that compares nothing must fail */

static int watched_init(void *self, const struct view *view, uint64_t seed,
                        struct arena *run, struct error *err)
{
    struct watched *w = self;
    w->running = (struct victims){ .s = 4, .preempt_max = CAP };
    w->fixed = (struct victims){ .s = 4,
                                 .preempt_max = CAP,
                                 .fixed = true,
                                 .grace_max_ns = 1200 * INT64_C(1000000000) };
    victims_init(&w->running, run, view);
    victims_init(&w->fixed, run, view);
    param_defaults(policy_fitgpp.params, w->fitgpp);
    return policy_fitgpp.init(w->fitgpp, view, seed, run, err);
}

static void watched_observe(void *self, const struct view *view,
                            const struct event *event)
{
    struct watched *w = self;
    victims_observe(&w->running, view, event);
    victims_observe(&w->fixed, view, event);
    policy_fitgpp.observe(w->fitgpp, view, event);
    if (event->kind == EVENT_RECALLED)
        assert_true(view->jobs[event->job].preemptions <= CAP);
}

static bool fits_a_node(const struct view *view, const struct job *job)
{
    uint32_t most = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            node_set_gpus_max(job->set, view->cluster, type) > most)
            most = node_set_gpus_max(job->set, view->cluster, type);
    return job->gpus <= most && job->nodes <= 1;
}

/*
 * Whatever has been planned so far, both ways to choose agree with the exhaustive
 * search.
 */
static void compare_choices(struct watched *w, const struct view *view,
                            const struct plan *plan)
{
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state != JOB_WAITING || !fits_a_node(view, job))
            continue;
        job_id chosen = victims_best(&w->running, view, plan, job);
        judge(view, plan, false, job, chosen);
        judge(view, plan, true, job, victims_best(&w->fixed, view, plan, job));
        judge(view, plan, true, job, victims_scan(&w->fixed, view, plan, job));
        choices += chosen != JOB_NONE;
    }
}

static int watched_decide(void *self, const struct view *view, struct plan *plan,
                          struct arena *scratch, struct error *err)
{
    struct watched *w = self;
    victims_begin(&w->running);
    victims_begin(&w->fixed);
    compare_choices(w, view, plan);
    int r = policy_fitgpp.decide(w->fitgpp, view, plan, scratch, err);
    compare_choices(w, view, plan);
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state != JOB_WAITING || job->class != CLASS_TE ||
            plan_holds(plan, id) || !fits_a_node(view, job))
            continue;
        judge(view, plan, false, job,
              JOB_NONE); /* it waits, so no preemption could make room */
    }
    return r;
}

static void watched_fini(void *self)
{
    struct watched *w = self;
    policy_fitgpp.fini(w->fitgpp);
}

static void choices_are_what_an_exhaustive_search_finds(void **state)
{
    struct policy watched = { .name = "watched",
                              .self_size =
                                  sizeof(struct watched) + policy_fitgpp.self_size,
                              .init = watched_init,
                              .observe = watched_observe,
                              .decide = watched_decide,
                              .fini = watched_fini };
    choices = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct random_world world;
        struct engine_run run;
        random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
        world.setup.policy = &watched;
        world.setup.unchecked = true;
        engine_run_play(&run, &world.setup);
        assert_true(run.ended > 0);
        assert_int_equal(run.engine.refused_count, 0);
        engine_run_release(&run);
        random_world_release(&world);
    }
    assert_true(choices > 10);
}

/* --- many jobs ------------------------------------------------------------------------------------- */

#define NODES 500
#define NODE_GPUS 8
#define CROWD (NODES * NODE_GPUS)

/* More jobs than a block of the index holds; ids below and above the largest age. */
struct many_jobs {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct state state;
    struct plan *plan;
    struct victims running, fixed;
    struct rng rng;
    job_id seated[CROWD];
    uint64_t count; /* number so far, for ids that are unique and in no order */
};

static void tell(struct many_jobs *crowd, struct event *event)
{
    assert_true(state_apply(&crowd->state, event));
    victims_observe(&crowd->running, &crowd->state.view, event);
    victims_observe(&crowd->fixed, &crowd->state.view, event);
}

static void crowd_seat(struct many_jobs *crowd, uint32_t at)
{
    struct job job = { .id = INT32_MAX - 32768 + crowd->count++ * 7919 % 65536,
                       .gpus = 1,
                       .gpus_min = 1,
                       .gpus_max = 1,
                       .types = 1,
                       .kind = KIND_NONE,
                       .rate_best_per_s = 1,
                       .cpu_milli = 1000 * (1 + rng_below(&crowd->rng, 3)),
                       .grace_ns = (int64_t)rng_below(&crowd->rng, 3) * 1000000000 };
    struct seat seat = { .node = at / NODE_GPUS,
                         .cpu_milli = job.cpu_milli,
                         .gpus = (uint64_t)1 << at % NODE_GPUS };
    struct event submitted = { .kind = EVENT_SUBMITTED, .spec = &job };
    tell(crowd, &submitted);
    crowd->seated[at] = submitted.job;
    tell(crowd, &(struct event){ .kind = EVENT_PLACED,
                                 .job = submitted.job,
                                 .seats = &seat,
                                 .seat_count = 1,
                                 .beside = JOB_NONE });
    tell(crowd, &(struct event){ .kind = EVENT_STARTED,
                                 .job = submitted.job,
                                 .generation = submitted.generation,
                                 .loaded = true });
}

static void crowd_unseat(struct many_jobs *crowd, uint32_t at)
{
    const struct job *job = &crowd->state.jobs[crowd->seated[at]];
    tell(crowd, &(struct event){ .kind = EVENT_FINISHED,
                                 .job = crowd->seated[at],
                                 .generation = job->generation });
    crowd->seated[at] = JOB_NONE;
}

static void crowd_make(struct many_jobs *crowd, uint64_t seed)
{
    memset(crowd, 0, sizeof *crowd);
    arena_init(&crowd->arena, 0);
    rng_init(&crowd->rng, seed, "crowd");
    cluster_begin(&crowd->cluster, &crowd->arena, "crowd", NODES);
    cluster_type(&crowd->cluster, &crowd->arena, "v100");
    for (node_id n = 0; n < NODES; n++)
        cluster_add(&crowd->cluster,
                    &(struct node){ .gpu_count = NODE_GPUS, .cpu_milli = 24000 });
    cluster_end(&crowd->cluster, &crowd->arena);
    throughput_init(&crowd->rates, &crowd->cluster);
    state_init(&crowd->state, &crowd->arena, &crowd->cluster, &crowd->rates, CROWD + 8);
    crowd->plan = plan_new(&crowd->state, &crowd->arena);
    crowd->running = (struct victims){ .s = 4, .preempt_max = CAP };
    crowd->fixed = (struct victims){ .s = 4, .preempt_max = CAP, .fixed = true };
    crowd->fixed.grace_max_ns = INT64_C(1200000000000);
    victims_init(&crowd->running, &crowd->arena, &crowd->state.view);
    victims_init(&crowd->fixed, &crowd->arena, &crowd->state.view);
    for (uint32_t at = 0; at < CROWD; at++)
        crowd_seat(crowd, at);
}

static void crowd_choose(struct many_jobs *crowd)
{
    const struct view *view = &crowd->state.view;
    struct job trial = { .class = CLASS_TE, .types = 1 };
    trial.gpus = 1 + rng_below(&crowd->rng, 3);
    trial.cpu_milli = 1000 * rng_below(&crowd->rng, 12);
    plan_begin(crowd->plan);
    victims_begin(&crowd->running);
    victims_begin(&crowd->fixed);
    judge(view, crowd->plan, false, &trial,
          victims_best(&crowd->running, view, crowd->plan, &trial));
    judge(view, crowd->plan, true, &trial,
          victims_best(&crowd->fixed, view, crowd->plan, &trial));
    judge(view, crowd->plan, true, &trial,
          victims_scan(&crowd->fixed, view, crowd->plan, &trial));
    plan_end(crowd->plan);
}

static void a_choice_among_thousands_is_no_different(void **state)
{
    static struct many_jobs crowd;
    crowd_make(&crowd, 1);
    for (uint32_t round = 0; round < 60; round++) {
        for (uint32_t i = 0; i < 40; i++) {
            uint32_t at = rng_below(&crowd.rng, CROWD);
            if (crowd.seated[at] == JOB_NONE)
                crowd_seat(&crowd, at);
            else
                crowd_unseat(&crowd, at);
        }
        crowd_choose(&crowd);
    }
    state_release(&crowd.state);
    arena_release(&crowd.arena);
}

/* --- the policy berth, whatever its objective ------------------------------------------- */

/*
 * Half of the GPUs are for trial jobs.  Within that, none waits for room that best-effort jobs
 * on one node could make: jobs stop without a pause here, and a trial job's waiting counts so
 * much that waiting for an end is never cheaper, unless one is due at once.
 */
static uint64_t cleared, cleared_all[5],
    left_waiting; /* jobs that were preempted for trial jobs */

/* GPUs that trial jobs have, or get by this plan; as best-effort jobs or not. */
static uint32_t count_trial_gpus(const struct view *view, const struct plan *plan)
{
    uint32_t gpus = 0;
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state == JOB_FREE || job->class != CLASS_TE ||
            !(plan_holds(plan, id) || job_holds_seats(job)))
            continue;
        gpus += job_holds_seats(job) && job->gpus_now > job->gpus ? job->gpus_now
                                                                  : job->gpus;
    }
    return gpus;
}

static bool ends_at_once(const struct view *view)
{
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job_holds_seats(job) && job->rate_per_s > 0 && job->steps_total > 0 &&
            (job->steps_total - job_steps(job, view->now_ns)) / job->rate_per_s < 2)
            return true;
    }
    return false;
}

static bool could_start(const struct view *view, const struct plan *plan,
                        const struct job *trial)
{
    for (node_id node = 0; node < view->cluster->node_count; node++) {
        uint32_t type = view->cluster->nodes[node].type;
        struct seat all = { .node = node };
        if (type == TYPE_NONE ||
            throughput_rate(view->rates, trial, type, trial->gpus, false) <
                trial->rate_best_per_s * (1 - 1e-9))
            continue; /* it may be better to wait for a faster one */
        for (job_id id = 0; id < view->job_max; id++) {
            const struct job *job = &view->jobs[id];
            if (!is_running_be(view, id) || plan_changes(plan, id) ||
                !job_is_preemptible(job) || job->leaving || job->next.count > 0)
                continue;
            for (uint32_t i = 0; i < job->seats.count; i++) {
                const struct seat *seat = &view_seats(view, id)[i];
                if (seat->node != node)
                    continue;
                all.gpus |= seat->gpus;
                all.cpu_milli += seat->cpu_milli;
                all.mem_mib += seat->mem_mib;
            }
        }
        if (all.gpus && holds_with(view, plan, &all, trial))
            return true;
    }
    return false;
}

/* The trial job that waits although there is room in their share; JOB_NONE: none, or several. */
static job_id find_only_waiting(const struct view *view, const struct plan *plan)
{
    uint32_t held = count_trial_gpus(view, plan);
    job_id found = JOB_NONE;
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state != JOB_WAITING || job->class != CLASS_TE || job->gpus == 0 ||
            plan_holds(plan, id) || !fits_a_node(view, job))
            continue;
        if (found != JOB_NONE)
            return JOB_NONE; /* a node may be kept for one of them */
        found = id;
    }
    bool room = found != JOB_NONE &&
                held + view->jobs[found].gpus <= view->cluster->gpu_count / 2;
    return room ? found : JOB_NONE;
}

static int berth_decide(void *self, const struct view *view, struct plan *plan,
                        struct arena *scratch, struct error *err)
{
    int r = policy_berth.decide(self, view, plan, scratch, err);
    for (size_t i = 0; i < plan_change_count(plan); i++)
        cleared += plan_change(plan, i)->kind == CHANGE_REVOKE &&
                   plan_change(plan, i)->rule == RULE_TRIAL;
    job_id waiting = find_only_waiting(view, plan);
    if (waiting != JOB_NONE && plan_change_count(plan) == 0 && !ends_at_once(view)) {
        assert_false(could_start(view, plan, &view->jobs[waiting]));
        left_waiting++;
    }
    return r;
}

static void a_trial_job_starts_at_once_under_every_objective(void **state)
{
    static const char *const objectives[] = { "trial_weight=1e6",
                                              "trial_weight=1e6,objective=makespan",
                                              "trial_weight=1e6,objective=fairness",
                                              "trial_weight=1e6,objective=cost",
                                              "trial_weight=1e6,sharing=true" };
    struct policy watched = policy_berth;
    watched.decide = berth_decide;
    FOR_EVERY_SEED(seed, SEEDS / 3)
    for (uint32_t i = 0; i < sizeof objectives / sizeof *objectives; i++) {
        struct random_world world;
        struct engine_run run;
        cleared = 0;
        random_world_make(&world, &kinds[seed.now % 4], seed.now);
        for (uint32_t s = 0; s < world.setup.spec_count; s++)
            world.specs[s].pause_ns = 0;
        if (strstr(objectives[i], "sharing"))
            random_world_add_sharing(&world, false, seed.now);
        world.setup.policy = &watched;
        world.setup.settings = objectives[i];
        world.setup.unchecked = true;
        engine_run_play(&run, &world.setup);
        assert_false(run.gave_up);
        assert_int_equal(run.ended, run.accepted);
        assert_int_equal(run.engine.refused_count, 0);
        cleared_all[i] += cleared;
        engine_run_release(&run);
        random_world_release(&world);
    }
    for (uint32_t i = 0; i < sizeof objectives / sizeof *objectives; i++)
        assert_true(getenv("BERTH_SEED") || cleared_all[i] > SEEDS / 3);
    print_message("# %d preemptions for trial jobs, %d decisions in which one waits\n",
                  (int)(cleared_all[0] + cleared_all[1] + cleared_all[2] +
                        cleared_all[3] + cleared_all[4]),
                  (int)left_waiting);
    assert_true(getenv("BERTH_SEED") || left_waiting > 100);
}

/* --- every setting ------------------------------------------------------------------------------ */

static void every_setting_ends_every_job(void **state)
{
    static const char *const settings[] = { "fallback=paper", "normalise=fixed",
                                            "max_preemptions=0",
                                            "max_preemptions=0,fallback=paper",
                                            "s=0,max_preemptions=3" };
    FOR_EACH_SEED(seed, SEEDS / 3)
    for (uint32_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct random_world world;
        struct engine_run run;
        random_world_make(&world, &kinds[seed.now % 4], seed.now);
        world.setup.policy = &policy_fitgpp;
        world.setup.settings = settings[i];
        engine_run_play(&run, &world.setup);
        assert_false(run.gave_up);
        assert_int_equal(run.ended, run.accepted);
        engine_run_release(&run);
        random_world_release(&world);
    }
}

RUN_CASES(TEST(choices_are_what_an_exhaustive_search_finds),
          TEST(a_choice_among_thousands_is_no_different),
          TEST(a_trial_job_starts_at_once_under_every_objective),
          TEST(every_setting_ends_every_job));
