/*
 * No job starves under the policy 'berth', in worlds that are built to starve one.
 *
 * The promise: a best-effort job that has waited for 'age' and ten times its run time goes
 * before all best-effort jobs that have not, as long as such jobs have not had more than their
 * share of the GPU time.  Every decision is checked against it by counting,
 * without any list of the policy: no such job may be left waiting while it would fit on what
 * is not held by trial jobs, by others that waited too long, or by jobs that may not be preempted
 * and ran before.  Jobs that are stopping, starting or moving are in the way, but only as long as
 * one of them takes: they must not take turns.
 *
 * What such jobs have had is counted from what they hold, all that have waited too long, so it
 * is at least as much as the policy counts.  While it is beyond their share, the policy must ask to
 * be woken in time.  So each starts in the end: the debt falls while they hold less.
 */
#include "support/random_world.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "model/plan.h"
#include "model/state.h"

extern const struct policy policy_berth;

#ifndef SEEDS
#define SEEDS 350
#endif
#define JOBS 260
#define AGE_S 120
#define PATIENCE 10       /* as in docs/policies/berth.md */
#define AGED_SHARE 0.0625 /* of the GPU time, as there */
#define SECOND INT64_C(1000000000)
#define ROUNDING_NS 100

static struct engine_run run;
static struct {
    bool aged;         /* has waited too long                                    */
    bool kept_waiting; /* only jobs that change their place are in its way        */
    int64_t kept_since_ns;
    int64_t began_ns;    /* when it was granted what it holds                     */
    int64_t aged_ns;     /* from then on it may start, and there are nodes for it */
    uint32_t generation; /* of the slot                                           */
} known[JOBS + 1];       /* by slot */

static bool wrong_estimates;
static int64_t slow_ns; /* the longest time a job takes to stop */
static uint64_t
    aged_decisions; /* in which an aged job was left waiting: to be more than 0 */
static uint64_t aged_starts;
static uint64_t aged_wakes; /* times at which it waited for their share alone */
static double debt_gpu_s;   /* what jobs that waited too long had beyond their share */
static uint32_t held_gpus;  /* by them, since then */
static int64_t debt_ns;

/* --- which jobs have waited too long ------------------------------------------------- */

/* What it has left is a guess of the policy: it may have done more than it kept. */
static bool is_unknown(const struct job *job)
{
    return job->steps_total <= 0 || job->steps >= job->steps_total ||
           (wrong_estimates && job->first_start_ns >= 0);
}

/* Where its work is not known, 'age' alone: at least this long. */
static int64_t patience_ns(const struct job *job)
{
    double left_s =
        is_unknown(job) ? 0 : (job->steps_total - job->steps) / job->rate_best_per_s;
    return (int64_t)((AGE_S + PATIENCE * left_s) * 1e9);
}

/* --- what is in a job's way --------------------------------------------------------- */

static bool changes_place(const struct job *job)
{
    return job->state == JOB_PLACED || job->state == JOB_STOPPING ||
           (job_holds_seats(job) && job->next.count > 0);
}

/* A job that this one has to wait for. */
static bool is_in_the_way(const struct view *view, job_id id, job_id other,
                          bool with_changes)
{
    const struct job *job = &view->jobs[other];
    if (with_changes && changes_place(job))
        return true;
    return job->class == CLASS_TE || known[other].aged ||
           (job->stays && known[other].began_ns <= known[id].aged_ns);
}

static uint32_t smaller_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void take_seats(struct room *rooms, const struct seat *seats, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct room *room = &rooms[seats[i].node];
        room->gpus &= ~seats[i].gpus;
        room->cpu_milli -= smaller_of(room->cpu_milli, seats[i].cpu_milli);
        room->mem_mib -= smaller_of(room->mem_mib, seats[i].mem_mib);
    }
}

/* Of nodes on which nothing runs. */
static void empty_rooms(const struct view *view, struct room *rooms)
{
    for (node_id node = 0; node < view->cluster->node_count; node++) {
        const struct node *full = &view->cluster->nodes[node];
        rooms[node] = (struct room){ ((uint64_t)1 << full->gpu_count) - 1,
                                     full->cpu_milli, full->mem_mib };
        if (run.engine.state.node_down[node])
            rooms[node] = (struct room){ 0 };
    }
}

static void fill_rooms(const struct view *view, const struct plan *plan, job_id id,
                       bool with_changes, struct room *rooms)
{
    const struct state *state = &run.engine.state;
    for (job_id other = 0; other < state->job_count; other++) {
        const struct job *job = &view->jobs[other];
        if (job->state == JOB_FREE || other == id ||
            !is_in_the_way(view, id, other, with_changes))
            continue;
        take_seats(rooms, &view->seats[job->seats.first], job->seats.count);
        take_seats(rooms, &view->seats[job->next.first], job->next.count);
    }
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        const struct job *job = &view->jobs[change->job];
        bool old = job->class == CLASS_TE || known[change->job].aged;
        if (with_changes && change->kind == CHANGE_REVOKE && !change->undone)
            take_seats(rooms, &view->seats[job->seats.first], job->seats.count);
        if (change->kind == CHANGE_GRANT && (old || (with_changes && job_runs(job))))
            take_seats(rooms, plan_seats(plan, change), change->seat_count);
    }
}

static bool holds_part(const struct job *job, const struct room *room, uint32_t gpus)
{
    struct room_part need = placement_need(job, gpus);
    return bits_count(room->gpus) >= gpus && room->cpu_milli >= need.cpu_milli &&
           room->mem_mib >= need.mem_mib;
}

/* So many GPUs of a gang on each of so many nodes, and fewer on others. */
static bool fits_type(const struct view *view, const struct job *job, uint32_t type,
                      const struct room *rooms)
{
    uint32_t node_max =
        type == TYPE_NONE ? 0 : node_set_gpus_max(job->set, view->cluster, type);
    if (type != TYPE_NONE && node_max == 0)
        return false;
    bool alone = type == TYPE_NONE || (job->gpus <= node_max && job->nodes <= 1);
    uint32_t large = alone ? job->gpus : node_max;
    uint32_t small = alone ? 0 : job->gpus % node_max;
    uint32_t large_count = alone ? 1 : job->gpus / node_max;
    uint32_t small_count = small > 0;
    if (!alone && job->nodes > 1) {
        large = (job->gpus + job->nodes - 1) / job->nodes;
        small = job->gpus / job->nodes;
        large_count = job->gpus % job->nodes ? job->gpus % job->nodes : job->nodes;
        small_count = job->nodes - large_count;
    }
    uint32_t holds_large = 0;
    uint32_t holds_small = 0;
    for (node_id node = 0; node < view->cluster->node_count; node++) {
        if (view->cluster->nodes[node].type != type || !node_set_has(job->set, node))
            continue;
        holds_large += holds_part(job, &rooms[node], large);
        holds_small += holds_part(job, &rooms[node], small_count ? small : large);
    }
    return holds_large >= large_count && holds_small >= large_count + small_count;
}

static bool fits_rooms(const struct view *view, const struct job *job,
                       const struct room *rooms)
{
    if (job->gpus == 0 && fits_type(view, job, TYPE_NONE, rooms))
        return true;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) && fits_type(view, job, type, rooms))
            return true;
    return false;
}

static bool fits_without(const struct view *view, const struct plan *plan, job_id id,
                         bool with_changes)
{
    static struct room rooms[64];
    empty_rooms(view, rooms);
    fill_rooms(view, plan, id, with_changes, rooms);
    return fits_rooms(view, &view->jobs[id], rooms);
}

/* While it could not start on an empty cluster, as nodes are down, nothing is kept for it. */
static bool could_start(const struct view *view, const struct job *job)
{
    static struct room rooms[64];
    empty_rooms(view, rooms);
    return fits_rooms(view, job, rooms);
}

static void note_waits(const struct view *view)
{
    for (job_id id = 0; id < run.engine.state.job_count; id++) {
        const struct job *job = &view->jobs[id];
        if (known[id].generation != job->generation) {
            memset(&known[id], 0, sizeof known[id]);
            known[id].generation = job->generation;
        }
        if (known[id].aged && job->state == JOB_WAITING && !could_start(view, job))
            known[id].aged_ns = view->now_ns;
        if (known[id].aged || job->state != JOB_WAITING || job->class != CLASS_BE)
            continue;
        int64_t waited_ns = view->now_ns - job->since_ns + job->waited_ns;
        known[id].aged = waited_ns + ROUNDING_NS >= patience_ns(job);
        known[id].aged_ns = view->now_ns;
    }
}

/* With BERTH_EVENTS set: what each job holds, to find the cause of a failure. */
static void print_jobs(const struct view *view)
{
    for (node_id node = 0; getenv("BERTH_EVENTS") && node < view->cluster->node_count;
         node++)
        printf("# n%u type %u: %u GPUs, %u CPUs/1000, %u MiB%s\n", node,
               view->cluster->nodes[node].type, view->cluster->nodes[node].gpu_count,
               view->cluster->nodes[node].cpu_milli, view->cluster->nodes[node].mem_mib,
               run.engine.state.node_down[node] ? ", down" : "");
    for (job_id id = 0; getenv("BERTH_EVENTS") && id < run.engine.state.job_count;
         id++) {
        const struct job *job = &view->jobs[id];
        if (job->state == JOB_FREE)
            continue;
        printf("# job %llu state %d class %d gpus %u cpu %u mem %u types %x nodes %u "
               "aged %d stays %d:",
               (unsigned long long)job->id, job->state, job->class, job->gpus,
               job->cpu_milli, job->mem_mib, job->types, job->nodes, known[id].aged,
               job->stays);
        for (uint32_t i = 0; i < job->seats.count; i++)
            printf(" n%u:%llx", view->seats[job->seats.first + i].node,
                   (unsigned long long)view->seats[job->seats.first + i].gpus);
        puts("");
    }
}

/* --- what such jobs have had -------------------------------------------------------------- */

static double share_gpus(const struct view *view)
{
    return AGED_SHARE * view->cluster->gpu_count;
}

/* What those that started after they had waited too long hold, before or after a decision. */
static uint32_t count_held(const struct view *view, const struct plan *plan, job_id but)
{
    uint32_t gpus = 0;
    for (job_id id = 0; id < run.engine.state.job_count; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state == JOB_FREE || id == but || !known[id].aged ||
            job->class != CLASS_BE)
            continue;
        if (job->state == JOB_PLACED || job_holds_seats(job))
            gpus += job->gpus_now;
        else if (plan && plan_holds(plan, id))
            gpus += job->gpus;
    }
    return gpus;
}

static void count_debt(const struct view *view)
{
    double passed_s = (double)(view->now_ns - debt_ns) * 1e-9;
    debt_gpu_s = fmax(debt_gpu_s + passed_s * (held_gpus - share_gpus(view)), 0);
    if (debt_gpu_s < 1e-6)
        debt_gpu_s = 0;
    debt_ns = view->now_ns;
}

/* They have had their share, and this job has to wait for that. */
static bool is_over_share(const struct view *view, const struct plan *plan, job_id id)
{
    uint32_t held = count_held(view, plan, id);
    return view->jobs[id].gpus > 0 &&
           (debt_gpu_s > 0 || (held > 0 && held >= share_gpus(view)));
}

/* --- the promise, after every decision --------------------------------------------------- */

/* A job that would fit but for that must be looked at again when their debt is repaid. */
static void check_wake(const void *self, const struct view *view,
                       const struct plan *plan, job_id id)
{
    double repaid_gpus = share_gpus(view) - held_gpus;
    if (debt_gpu_s <= 0 || repaid_gpus <= 0 || !fits_without(view, plan, id, true))
        return;
    int64_t due_ns = view->now_ns + (int64_t)(debt_gpu_s / repaid_gpus * 1e9);
    aged_wakes++;
    if (policy_berth.wake_ns(self, view) > due_ns + SECOND / 1000)
        fail_msg("at %.9f s a job waits for its share, due at %.9f s, without a wake",
                 (double)view->now_ns * 1e-9, (double)due_ns * 1e-9);
}

static void check_waiting(const struct view *view, const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    aged_decisions++;
    bool fits = fits_without(view, plan, id, true);
    if (fits)
        print_jobs(view);
    if (fits)
        fail_msg("at %.9f s job %llu has waited too long, and would fit",
                 (double)view->now_ns * 1e-9, (unsigned long long)job->id);
    bool waits = fits_without(view, plan, id, false);
    if (!waits || !known[id].kept_waiting)
        known[id].kept_since_ns = view->now_ns;
    known[id].kept_waiting = waits;
    if (view->now_ns - known[id].kept_since_ns > slow_ns)
        fail_msg("at %.9f s job %llu waits since %.9f s for jobs that change places",
                 (double)view->now_ns * 1e-9, (unsigned long long)job->id,
                 (double)known[id].kept_since_ns * 1e-9);
}

/*
 * Trial jobs go first, and a node may be kept for one that waits.  Older ones go first where both
 * could run: those behind them wait for them.
 */
static bool is_behind(const struct view *view, const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    for (job_id other = 0; other < run.engine.state.job_count; other++) {
        const struct job *older = &view->jobs[other];
        if (older->state == JOB_WAITING && older->class == CLASS_TE &&
            !plan_holds(plan, other))
            return true;
        if (older->state == JOB_WAITING && known[other].aged &&
            older->class == CLASS_BE && !plan_holds(plan, other) &&
            ((older->types & job->types) || older->gpus + job->gpus == 0) &&
            (older->submit_ns < job->submit_ns ||
             (older->submit_ns == job->submit_ns && older->id < job->id)))
            return true;
    }
    return false;
}

static int checked_decide(void *self, const struct view *view, struct plan *plan,
                          struct arena *scratch, struct error *err)
{
    note_waits(view);
    count_debt(view);
    int r = policy_berth.decide(self, view, plan, scratch, err);
    held_gpus = count_held(view, plan, JOB_NONE);
    for (job_id id = 0; r == 0 && id < run.engine.state.job_count; id++) {
        const struct job *job = &view->jobs[id];
        bool restricted = job->set && job->set->must.count > 0;
        bool waits =
            job->state == JOB_WAITING && known[id].aged && !plan_holds(plan, id) &&
            view->now_ns > known[id].aged_ns + 2 * ROUNDING_NS && !is_unknown(job);
        bool over = waits && is_over_share(view, plan, id);
        bool checked =
            waits && !job->spread && !restricted && !is_behind(view, plan, id);
        if (over)
            known[id].aged_ns = view->now_ns;
        if (checked && over)
            check_wake(self, view, plan, id);
        if (checked && !over)
            check_waiting(view, plan, id);
        else
            known[id].kept_waiting = false;
        aged_starts +=
            known[id].aged && job->state == JOB_WAITING && plan_holds(plan, id);
        if (plan_changes(plan, id) && plan_holds(plan, id))
            known[id].began_ns = view->now_ns;
    }
    return r;
}

/* --- worlds that starve a job ------------------------------------------------------------ */

enum trap {
    TRAP_SMALL,  /* small short jobs without end, against a gang as large as can be */
    TRAP_RIVALS, /* jobs of its own size and type                                  */
    TRAP_TYPES,  /* it may use one type only, the others any                       */
    TRAP_TRIALS, /* trial jobs preempt it over and over                            */
    TRAP_CPUS,   /* jobs that use CPUs only, on nodes that have few                */
    TRAP_STAYS,  /* jobs that may not be preempted                                 */
    TRAP_RANDOM, /* anything                                                       */
    TRAPS
};

/* As large as the type has nodes, or a part of it. */
static uint32_t largest_gang(const struct cluster *cluster, uint32_t type,
                             struct rng *rng)
{
    uint32_t node_max = cluster->types[type].node_gpus_max;
    uint32_t nodes = 0;
    for (node_id node = 0; node < cluster->node_count; node++)
        nodes += cluster->nodes[node].type == type &&
                 cluster->nodes[node].gpu_count == node_max;
    if (nodes == 0)
        return 1;
    return rng_below(rng, 3) ? nodes * node_max
                             : node_max * (1 + rng_below(rng, nodes));
}

static void make_stream(struct random_world *world, enum trap trap, struct rng *rng)
{
    int64_t at_ns = 0;
    double gpu_s = 0;
    uint32_t rival_type = rng_below(rng, world->cluster.type_count);
    uint32_t rival_gpus = world->cluster.types[rival_type].node_gpus_max;
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_spec *spec = &world->specs[i];
        struct job_spec made = { .submit_ns = at_ns,
                                 .gpus = 1 + rng_below(rng, 2),
                                 .steps = 5 + rng_below(rng, 60),
                                 .grace_ns = rng_below(rng, 8) * SECOND,
                                 .pause_ns = rng_below(rng, 8) * SECOND,
                                 .load_ns = rng_below(rng, 4) * SECOND };
        if (trap == TRAP_RIVALS)
            made.gpus = rival_gpus;
        if (trap == TRAP_TRIALS && i % 3 == 1)
            made.class = CLASS_TE;
        if (trap == TRAP_STAYS)
            made.stays = rng_below(rng, 3) == 0;
        if (trap == TRAP_CPUS) {
            made.gpus = rng_below(rng, 2);
            made.cpu_milli = 1000 * (1 + rng_below(rng, 4));
        }
        if (trap != TRAP_RANDOM)
            *spec = made;
        spec->gpus = spec->gpus < world->cluster.gpu_count ? spec->gpus
                                                           : world->cluster.gpu_count;
        if (i % 40 == 5 && trap != TRAP_RANDOM) { /* the job to be starved */
            uint32_t type = rng_below(rng, world->cluster.type_count);
            spec->gpus = trap == TRAP_RIVALS ? rival_gpus
                                             : largest_gang(&world->cluster, type, rng);
            spec->class = CLASS_BE;
            spec->steps = 5 + rng_below(rng, 25);
            if (trap == TRAP_TYPES)
                spec->types = world->cluster.types[type].name;
            if (trap == TRAP_CPUS && rng_below(rng, 2)) {
                spec->gpus = 0;
                spec->cpu_milli = 4000;
            }
        }
        spec->submit_ns = at_ns;
        gpu_s += fmax(spec->gpus, 0.5) * spec->steps;
        at_ns = (int64_t)(gpu_s / (1.2 * world->cluster.gpu_count) * 1e9);
    }
}

static void no_job_starves(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct random_world world;
        struct policy policy = policy_berth;
        enum trap trap = seed.now % TRAPS;
        struct rng rng;
        rng_init(&rng, seed.now, "starvation");
        random_world_make(&world,
                          &(struct random_world_setup){
                              .jobs = JOBS,
                              .plain = trap != TRAP_RANDOM && trap != TRAP_CPUS &&
                                       trap != TRAP_TYPES && rng_below(&rng, 2),
                              .stays = trap == TRAP_RANDOM,
                              .faults = trap == TRAP_RANDOM && rng_below(&rng, 2),
                              .wrong_estimates = trap == TRAP_RANDOM,
                              .sets = trap == TRAP_RANDOM && rng_below(&rng, 2) },
                          seed.now);
        make_stream(&world, trap, &rng);
        wrong_estimates = trap == TRAP_RANDOM;
        slow_ns = 0;
        for (uint32_t i = 0; i < JOBS; i++)
            if (world.specs[i].pause_ns > slow_ns)
                slow_ns = world.specs[i].pause_ns;
        policy.decide = checked_decide;
        world.setup.policy = &policy;
        world.setup.settings = "age=120s";
        world.setup.unchecked = true;
        memset(known, 0, sizeof known);
        debt_gpu_s = held_gpus = 0;
        debt_ns = 0;
        engine_run_play(&run, &world.setup);
        assert_int_equal(run.engine.refused_count, 0);
        engine_run_release(&run);
        random_world_release(&world);
    }
    print_message("# %llu waits of aged jobs were checked, %llu of them started, %llu "
                  "waited for their share\n",
                  (unsigned long long)aged_decisions, (unsigned long long)aged_starts,
                  (unsigned long long)aged_wakes);
    assert_true(getenv("BERTH_SEED") ||
                (aged_decisions > 1000 && aged_starts > 100 && aged_wakes > 1000));
}

RUN_CASES(TEST(no_job_starves));
