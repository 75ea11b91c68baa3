/*
 * What holds for every plan: what admission accepts has room on an empty cluster and the
 * other way round, a grant is a whole gang on distinct free accelerators, and what is
 * undone or ended leaves no trace.
 */
#include "support/random_world.h"

#include "base/error.h"
#include "base/rng.h"
#include "model/node_set.h"
#include "support/world.h"

#ifndef SEEDS
#define SEEDS 150
#endif

static void open_world(struct world *w, struct random_world *worlds, bool sets,
                       uint64_t seed)
{
    random_world_make(
        worlds,
        &(struct random_world_setup){ .jobs = 40, .impossible = true, .sets = sets },
        seed);
    *w = (struct world){ .cluster = worlds->cluster, .rates = worlds->rates };
    w->rates.cluster = &w->cluster;
    arena_init(&w->arena, 0);
    state_init(&w->state, &w->arena, &w->cluster, &w->rates, WORLD_JOBS_MAX);
    w->plan = plan_new(&w->state, &w->arena);
    w->id_next = 1;
}

static void close_world(struct world *w, struct random_world *worlds)
{
    world_release(w);
    random_world_release(worlds);
}

/* A job that is let in has to fit some day, and one that would fit is let in. */
static void admission_and_placement_agree_on_what_can_ever_run(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct random_world worlds;
        struct world w;
        struct admission admission;
        open_world(&w, &worlds, false, seed.now);
        admission_init(&admission, &w.cluster, &w.rates);
        for (uint32_t i = 0; i < worlds.setup.spec_count; i++) {
            struct job_spec spec = worlds.specs[i];
            struct job job;
            struct error err = { "" };
            spec.id = i + 1;
            bool accepted = admission_make_job(&admission, &spec, &job, &err) == 0;
            if (!accepted) {
                /* Whatever the types: would it fit? */
                uint32_t types = spec.types
                                     ? cluster_types_named(&w.cluster, spec.types)
                                     : ((uint32_t)1 << w.cluster.type_count) - 1;
                job = (struct job){ .id = spec.id,
                                    .gpus = spec.gpus,
                                    .gpus_min = spec.gpus,
                                    .gpus_max = spec.gpus,
                                    .nodes = spec.nodes,
                                    .spread = spec.spread,
                                    .cpu_milli = spec.cpu_milli,
                                    .mem_mib = spec.mem_mib,
                                    .types = types,
                                    .kind = KIND_NONE };
                assert_true(err.text[0] != 0);
            }
            job_id id = world_queued(&w, job);
            bool placed = plan_grant(world_plan(&w), id, NULL);
            if (accepted != placed)
                fail_msg("job %u: gpus %u nodes %u spread %d cpu %u mem %u: "
                         "accepted %d, placed %d (%s)",
                         i, spec.gpus, spec.nodes, spec.spread, spec.cpu_milli,
                         spec.mem_mib, accepted, placed, err.text);
            world_apply(&w, (struct event){ .kind = EVENT_CANCELLED, .job = id });
        }
        close_world(&w, &worlds);
        admission_release(&admission); /* of the sets that jobs hold */
    }
}

/* --- some nodes only ------------------------------------------------------------------ */

static bool node_holds(const struct node *node, const struct job *job, uint32_t gpus)
{
    uint32_t whole = job->gpus ? job->gpus : 1;
    uint32_t part = job->gpus ? gpus : 1;
    return gpus <= node->gpu_count &&
           (job->cpu_milli * (uint64_t)part + whole - 1) / whole <= node->cpu_milli &&
           (job->mem_mib * (uint64_t)part + whole - 1) / whole <= node->mem_mib;
}

/* So many of these nodes hold 'large', and all of them 'small'. */
static bool nodes_hold(const struct world *w, uint32_t nodes, const struct job *job,
                       uint32_t large, uint32_t large_count, uint32_t small)
{
    for (node_id n = 0; n < w->cluster.node_count; n++) {
        if (!(nodes >> n & 1))
            continue;
        if (!node_holds(&w->cluster.nodes[n], job, small))
            return false;
        if (large_count > 0 && node_holds(&w->cluster.nodes[n], job, large))
            large_count--;
    }
    return large_count == 0;
}

/* By the rules of place.h, the gang fits exactly these nodes, which are of one type. */
static bool fits_these(const struct world *w, const struct job *job, uint32_t nodes,
                       uint32_t node_max)
{
    uint32_t count = bits_count(nodes);
    if (job->nodes <= 1 && count == 1 && nodes_hold(w, nodes, job, 0, 0, job->gpus))
        return true;
    if (job->gpus <= 1)
        return false;
    if (job->nodes > 0)
        return count == job->nodes && count <= job->gpus &&
               nodes_hold(w, nodes, job, (job->gpus + count - 1) / count,
                          job->gpus % count ? job->gpus % count : count,
                          job->gpus / count);
    uint32_t rest = job->gpus % node_max;
    if (job->gpus > node_max && count == job->gpus / node_max + (rest > 0) &&
        nodes_hold(w, nodes, job, node_max, job->gpus / node_max,
                   rest ? rest : node_max))
        return true;
    uint32_t all = 0;
    for (node_id n = 0; n < w->cluster.node_count; n++)
        for (uint32_t gpus = w->cluster.nodes[n].gpu_count; gpus > 0; gpus--)
            if ((nodes >> n & 1) && node_holds(&w->cluster.nodes[n], job, gpus)) {
                all += gpus;
                break;
            }
    return job->spread && all >= job->gpus;
}

/* By trying all sets of nodes that there are: the stupid version. */
static bool fits_somewhere(const struct world *w, const struct job *job)
{
    uint32_t all = w->cluster.node_count;
    for (uint32_t type = 0; type <= TYPES_MAX; type++) {
        uint32_t here = 0, must = 0, node_max = 0;
        for (node_id n = 0; n < all; n++) {
            const struct node *node = &w->cluster.nodes[n];
            must |= (uint32_t)bits_test(&job->set->must, n) << n;
            if (node->type != type || !bits_test(&job->set->allowed, n))
                continue;
            here |= (uint32_t)1 << n;
            node_max = node->gpu_count > node_max ? node->gpu_count : node_max;
        }
        if (type != TYPE_NONE ? !(job->types >> type & 1) : job->gpus > 0)
            continue;
        if (job->gpus > 0 && node_max == 0)
            continue;
        for (uint32_t nodes = 1; nodes < (uint32_t)1 << all; nodes++)
            if ((nodes & ~here) == 0 && (must & ~nodes) == 0 &&
                fits_these(w, job, nodes, node_max))
                return true;
    }
    return false;
}

/* One that was turned away, and names no nodes that must be its own. */
static bool would_fit(const struct world *w, struct admission *admission,
                      const struct job_spec *spec)
{
    const char *words[WORDS_COUNT] = { NULL, spec->exclude, spec->within };
    struct job job = { .gpus = spec->gpus,
                       .nodes = spec->nodes,
                       .spread = spec->spread,
                       .cpu_milli = spec->cpu_milli,
                       .mem_mib = spec->mem_mib,
                       .types = ((uint32_t)1 << w->cluster.type_count) - 1 };
    if (spec->nodelist || !(spec->exclude || spec->within) ||
        node_sets_take(&admission->sets, words, false, &job.set, NULL) < 0)
        return false;
    node_set_drop(job.set);
    return (job.gpus > 0 || job.nodes <= 1) && fits_somewhere(w, &job);
}

/* What is let in fits an empty cluster, where it may be; and what is not does not. */
static void a_job_for_some_nodes_is_admitted_if_it_fits_them(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct random_world worlds;
        struct world w;
        struct admission admission;
        open_world(&w, &worlds, true, seed.now);
        admission_init(&admission, &w.cluster, &w.rates);
        for (uint32_t i = 0; i < worlds.setup.spec_count; i++) {
            struct job_spec spec = worlds.specs[i];
            struct job job;
            struct error err = { "" };
            spec.id = i + 1;
            spec.types = NULL;
            bool accepted = admission_make_job(&admission, &spec, &job, &err) == 0;
            if (!accepted) {
                assert_true(err.text[0] != 0);
                assert_false(would_fit(&w, &admission, &spec));
                continue;
            }
            assert_true(!job.set == !(spec.nodelist || spec.exclude || spec.within));
            bool fits = !job.set || fits_somewhere(&w, &job);
            struct node_set *set = job.set;
            job_id id = world_queued(&w, job);
            bool placed = plan_grant(world_plan(&w), id, NULL);
            if (!placed || !fits)
                fail_msg("job %u: gpus %u nodes %u spread %d -w %s -x %s -C %s: "
                         "placed %d, fits %d",
                         i, spec.gpus, job.nodes, spec.spread, spec.nodelist,
                         spec.exclude, spec.within, placed, fits);
            const struct change *grant = world_grant(&w, id);
            assert_true(
                node_set_keeps(set, plan_seats(w.plan, grant), grant->seat_count));
            world_apply(&w, (struct event){ .kind = EVENT_CANCELLED, .job = id });
        }
        close_world(&w, &worlds);
        admission_release(&admission); /* of the sets that jobs hold */
    }
}

/* --- grants, revocations and undo, at random --------------------------------------- */

static void assert_whole_gang(const struct world *w, job_id id)
{
    const struct change *grant = world_grant(w, id);
    const struct job *job = &w->state.jobs[id];
    const struct seat *seats = plan_seats(w->plan, grant);
    uint64_t cpu_milli = 0, mem_mib = 0;
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < grant->seat_count; i++) {
        const struct node *node = &w->cluster.nodes[seats[i].node];
        for (uint32_t k = 0; k < i; k++)
            assert_true(seats[k].node != seats[i].node);
        if (job->gpus > 0) {
            assert_true(seats[i].gpus != 0);
            assert_true(job->types >> node->type & 1);
            assert_int_equal(node->type, w->cluster.nodes[seats[0].node].type);
        }
        gpus += seat_gpu_count(&seats[i]);
        cpu_milli += seats[i].cpu_milli;
        mem_mib += seats[i].mem_mib;
    }
    assert_int_equal(gpus, job->gpus);
    assert_true(cpu_milli >= job->cpu_milli);
    assert_true(mem_mib >= job->mem_mib);
    if (job->nodes)
        assert_int_equal(grant->seat_count, job->nodes);
    assert_true(node_set_keeps(job->set, seats, grant->seat_count));
}

/* Seats in the plan, and those held by jobs that it leaves alone, are all distinct. */
static void assert_nobody_shares(const struct world *w)
{
    uint64_t taken[64] = { 0 };
    assert_true(w->cluster.node_count <= 64);
    for (job_id id = 0; id < w->state.job_count; id++) {
        const struct change *grant = world_grant(w, id);
        const struct job *job = &w->state.jobs[id];
        const struct seat *seats = NULL;
        uint32_t count = 0;
        if (plan_holds(w->plan, id) && grant) {
            seats = plan_seats(w->plan, grant);
            count = grant->seat_count;
        } else if (plan_holds(w->plan, id)) {
            seats = view_seats(&w->state.view, id);
            count = job->seats.count;
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(taken[seats[i].node] & seats[i].gpus, 0);
            taken[seats[i].node] |= seats[i].gpus;
        }
    }
}

static void do_something(struct world *w, struct rng *rng)
{
    job_id id = rng_below(rng, w->state.job_count);
    const struct job *job = &w->state.jobs[id];
    if (job_runs(job) && !plan_changes(w->plan, id) && rng_below(rng, 2)) {
        plan_revoke(w->plan, id, RULE_ORDER, JOB_NONE);
        return;
    }
    bool held = plan_holds(w->plan, id);
    bool granted = plan_grant(w->plan, id, NULL);
    assert_int_equal(granted, plan_holds(w->plan, id));
    if (granted && !held && world_grant(w, id))
        assert_whole_gang(w, id);
}

/* Plan at random, undo now and then; at the end throw it away or carry it out. */
static void one_plan(struct world *w, struct rng *rng)
{
    uint64_t before = world_free_hash(w);
    struct plan *plan = world_plan(w);
    for (int i = 0; i < 20; i++) {
        size_t mark = plan_mark(plan);
        size_t changes = plan_change_count(plan);
        uint64_t here = world_free_hash(w);
        uint32_t count = rng_below(rng, 5);
        for (uint32_t k = 0; k < count; k++)
            do_something(w, rng);
        if (rng_below(rng, 2)) {
            plan_undo(plan, mark);
            assert_true(world_free_hash(w) == here);
            assert_int_equal(plan_change_count(plan), changes);
        }
    }
    assert_nobody_shares(w);
    assert_int_equal(plan_check(plan, NULL), 0);
    if (rng_below(rng, 3)) {
        world_carry_out(w);
        return;
    }
    plan_end(plan);
    w->planning = false;
    assert_true(world_free_hash(w) == before);
}

/* Stopping jobs stop, some finish, and placed jobs with free seats start. */
static void something_happens(struct world *w, struct rng *rng)
{
    world_pass(w, SECONDS(1));
    for (job_id id = 0; id < w->state.job_count; id++) {
        const struct job *job = world_job(w, id);
        if (job->state == JOB_STOPPING && rng_below(rng, 2))
            world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = id });
        else if (job_runs(job) && rng_below(rng, 8) == 0)
            world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = id });
        else if (job->state == JOB_PLACED && job->pending_from == UINT32_MAX)
            world_apply(
                w, (struct event){ .kind = EVENT_STARTED, .job = id, .loaded = true });
    }
}

static void plans_leave_no_trace_but_what_is_carried_out(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct random_world worlds;
        struct world w;
        struct rng rng;
        struct admission admission;
        rng_init(&rng, seed.now, "plans");
        open_world(&w, &worlds, seed.now % 2, seed.now);
        admission_init(&admission, &w.cluster, &w.rates);
        for (uint32_t i = 0; i < 25; i++) {
            struct job_spec spec = worlds.specs[i];
            struct job job;
            spec.id = i + 1;
            if (admission_make_job(&admission, &spec, &job, NULL) == 0)
                world_queued(&w, job);
        }
        for (int i = 0; i < 30 && w.state.job_count > 0; i++) {
            one_plan(&w, &rng);
            something_happens(&w, &rng);
        }
        close_world(&w, &worlds);
        admission_release(&admission); /* of the sets that jobs hold */
    }
}

RUN_CASES(TEST(admission_and_placement_agree_on_what_can_ever_run),
          TEST(a_job_for_some_nodes_is_admitted_if_it_fits_them),
          TEST(plans_leave_no_trace_but_what_is_carried_out));
