/* world.c - a small cluster and its jobs, for tests of policies and plans. */
#include "support/world.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "model/free_index.h"
#include "model/sharing.h"
#include "support/state_check.h"

static void open_state(struct world *w)
{
    throughput_init(&w->rates, &w->cluster);
    state_init(&w->state, &w->arena, &w->cluster, &w->rates, WORLD_JOBS_MAX);
    w->plan = plan_new(&w->state, &w->arena);
    w->id_next = 1;
}

void world_init_as(struct world *w, const char *cluster)
{
    struct error err;
    memset(w, 0, sizeof *w);
    arena_init(&w->arena, 0);
    int r = cluster_load(&w->cluster, &w->arena, cluster, &err);
    if (r < 0)
        fail_msg("%s: %s", cluster, err.text);
    open_state(w);
}

void world_init(struct world *w, uint32_t nodes, uint32_t gpus_per_node)
{
    char text[64];
    snprintf(text, sizeof text, "%uxv100:%u", nodes, gpus_per_node);
    world_init_as(w, text);
}

void world_init_roomy(struct world *w, const char *cluster, uint32_t cpu_milli,
                      uint32_t mem_mib)
{
    struct error err;
    struct cluster like;
    memset(w, 0, sizeof *w);
    arena_init(&w->arena, 0);
    int r = cluster_load(&like, &w->arena, cluster, &err);
    if (r < 0)
        fail_msg("%s: %s", cluster, err.text);
    cluster_begin(&w->cluster, &w->arena, "roomy", like.node_count);
    for (node_id n = 0; n < like.node_count; n++) {
        struct node node = like.nodes[n];
        if (node.type != TYPE_NONE)
            node.type =
                cluster_type(&w->cluster, &w->arena, like.types[node.type].name);
        node.cpu_milli = cpu_milli;
        node.mem_mib = mem_mib;
        cluster_add(&w->cluster, &node);
    }
    cluster_end(&w->cluster, &w->arena);
    open_state(w);
}

static void end_plan(struct world *w)
{
    if (w->planning)
        plan_end(w->plan);
    w->planning = false;
}

static void end_policy(struct world *w)
{
    if (w->policy && w->policy->fini)
        w->policy->fini(w->policy_self);
    w->policy = NULL;
}

void world_release(struct world *w)
{
    end_plan(w);
    end_policy(w);
    state_check(&w->state);
    state_release(&w->state);
    if (w->sets.cluster)
        node_sets_release(&w->sets);
    arena_release(&w->arena);
}

struct node_set *world_set(struct world *w, const char *nodelist, const char *exclude,
                           bool exact)
{
    const char *words[WORDS_COUNT] = { nodelist, exclude, NULL };
    struct node_set *set = NULL;
    struct error err = { "" };
    if (!w->sets.cluster)
        node_sets_init(&w->sets, &w->cluster);
    if (node_sets_take(&w->sets, words, exact, &set, &err) < 0)
        fail_msg("%s", err.text);
    return set;
}

void world_pass(struct world *w, int64_t ns)
{
    w->state.view.now_ns += ns;
}

struct job *world_job(struct world *w, job_id job)
{
    return &w->state.jobs[job];
}

bool world_apply(struct world *w, struct event event)
{
    end_plan(w);
    event.at_ns = w->state.view.now_ns;
    bool of_job = event.kind != EVENT_SUBMITTED && event.kind != EVENT_NODE_DOWN &&
                  event.kind != EVENT_NODE_UP && event.kind != EVENT_CLOSED &&
                  event.kind != EVENT_FOREIGN;
    if (of_job && event.generation == 0)
        event.generation = world_job(w, event.job)->generation;
    if (of_job && event.attempt == 0)
        event.attempt = world_job(w, event.job)->attempt;
    bool applied = state_apply(&w->state, &event);
    if (applied && w->policy && w->policy->observe)
        w->policy->observe(w->policy_self, &w->state.view, &event);
    state_check(&w->state);
    return applied;
}

job_id world_queued(struct world *w, struct job job)
{
    job_id slot =
        w->state.free_slot != UINT32_MAX ? w->state.free_slot : w->state.job_count;
    int64_t served_ns = job.served_ns;
    double steps = job.steps;
    if (job.id == 0)
        job.id = w->id_next;
    w->id_next = job.id >= w->id_next ? job.id + 1 : w->id_next;
    if (job.gpus_min == 0)
        job.gpus_min = job.gpus;
    if (job.gpus_max == 0)
        job.gpus_max = job.gpus;
    if (job.types == 0)
        job.types = ((uint32_t)1 << w->cluster.type_count) - 1;
    if (job.weight == 0)
        job.weight = 1;
    job.kind = w->kind ? throughput_find(&w->rates, w->kind) : KIND_NONE;
    job.rate_best_per_s = 1;
    if (job.gpus > 0)
        job.rate_best_per_s = throughput_best(&w->rates, &job, &job.type_best);
    world_apply(w, (struct event){ .kind = EVENT_SUBMITTED, .spec = &job });
    world_job(w, slot)->served_ns = served_ns;
    world_job(w, slot)->steps = steps;
    return slot;
}

static job_id place_and_start(struct world *w, job_id job, const struct ask *ask)
{
    plan_begin(w->plan);
    w->planning = true;
    if (!plan_grant(w->plan, job, ask))
        fail_msg("no room for job %u", job);
    world_carry_out(w);
    assert_true(world_apply(
        w, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true }));
    return job;
}

job_id world_running(struct world *w, struct job job)
{
    return place_and_start(w, world_queued(w, job), NULL);
}

job_id world_running_on(struct world *w, node_id node, struct job job)
{
    struct bits avoid;
    bits_init(&avoid, &w->arena, w->cluster.node_count);
    for (node_id n = 0; n < w->cluster.node_count; n++)
        if (n != node)
            bits_set(&avoid, n);
    struct ask ask = ASK_DEFAULT;
    ask.avoid = &avoid;
    return place_and_start(w, world_queued(w, job), &ask);
}

job_id world_beside(struct world *w, job_id host, struct job job)
{
    struct ask ask = ASK_DEFAULT;
    double rates[2];
    ask.beside = host;
    job_id id = place_and_start(w, world_queued(w, job), &ask);
    const struct job *both[2] = { world_job(w, host), world_job(w, id) };
    assert_true(sharing_rates(w->state.view.rates, both[0], both[1], both[0]->type_now,
                              both[0]->gpus_now, both[0]->spread_now, rates));
    world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                   .job = host,
                                   .steps = job_steps(both[0], w->state.view.now_ns),
                                   .rate_per_s = rates[0],
                                   .loss = NAN });
    return id;
}

struct plan *world_plan(struct world *w)
{
    end_plan(w);
    plan_begin(w->plan);
    w->planning = true;
    return w->plan;
}

static struct event make_event(struct world *w, const struct change *change)
{
    if (change->kind == CHANGE_REVOKE)
        return (struct event){ .kind = EVENT_RECALLED,
                               .job = change->job,
                               .rule = change->rule,
                               .grace_ns = world_job(w, change->job)->grace_ns,
                               .beneficiary = change->beneficiary };
    return (struct event){ .kind = change->kind == CHANGE_GRANT ? EVENT_PLACED
                                                                : EVENT_RENEWED,
                           .job = change->job,
                           .seats = plan_seats(w->plan, change),
                           .seat_count = change->seat_count,
                           .pending_shares = plan_pending(w->plan, change),
                           .pending_count = change->pending_count,
                           .steps_max = change->steps_max,
                           .beside = change->beside,
                           .spread = change->spread };
}

void world_carry_out(struct world *w)
{
    struct error err = { "" };
    if (plan_check(w->plan, &err) < 0)
        fail_msg("%s", err.text);
    end_plan(w);
    size_t count = plan_change_count(w->plan);
    for (int recalls = 1; recalls >= 0; recalls--)
        for (size_t i = 0; i < count; i++) {
            const struct change *change = plan_change(w->plan, i);
            if ((change->kind == CHANGE_REVOKE) != recalls || change->undone)
                continue;
            struct event order = make_event(w, change);
            order.at_ns = w->state.view.now_ns;
            assert_true(state_apply(&w->state, &order));
            if (w->policy && w->policy->observe)
                w->policy->observe(w->policy_self, &w->state.view, &order);
        }
    state_check(&w->state);
}

void world_decide_with(struct world *w, const struct policy *policy,
                       const char *settings)
{
    struct error err = { "" };
    end_plan(w);
    end_policy(w);
    w->policy_self = arena_alloc(&w->arena, 1, policy->self_size, 16);
    param_defaults(policy->params, w->policy_self);
    if (param_parse(policy->params, w->policy_self, policy->name, settings, &err) < 0)
        fail_msg("%s", err.text);
    if (policy->init)
        assert_int_equal(
            policy->init(w->policy_self, &w->state.view, 1, &w->arena, &err), 0);
    w->policy = policy;
    for (job_id job = 0; policy->observe && job < w->state.job_count; job++) {
        struct event event = { .at_ns = w->state.view.now_ns,
                               .kind = EVENT_ADOPTED,
                               .job = job,
                               .generation = world_job(w, job)->generation };
        if (world_job(w, job)->state != JOB_FREE)
            policy->observe(w->policy_self, &w->state.view, &event);
    }
    world_decide_again(w);
}

void world_decide(struct world *w, const struct policy *policy)
{
    world_decide_with(w, policy, NULL);
}

void world_decide_again(struct world *w)
{
    struct error err = { "" };
    struct arena scratch;
    arena_init(&scratch, 0);
    world_plan(w);
    int r = w->policy->decide(w->policy_self, &w->state.view, w->plan, &scratch, &err);
    arena_release(&scratch);
    if (r < 0)
        fail_msg("%s", err.text);
    if (plan_check(w->plan, &err) < 0)
        fail_msg("%s", err.text);
}

int64_t world_next_wake(const struct world *w)
{
    int64_t plan_ns = plan_next_wake(w->plan);
    int64_t own_ns = w->policy->wake_ns
                         ? w->policy->wake_ns(w->policy_self, &w->state.view)
                         : INT64_MAX;
    return own_ns < plan_ns ? own_ns : plan_ns;
}

const struct change *world_grant(const struct world *w, job_id job)
{
    for (size_t i = plan_change_count(w->plan); i-- > 0;) {
        const struct change *change = plan_change(w->plan, i);
        if (change->kind == CHANGE_GRANT && change->job == job)
            return change;
    }
    return NULL;
}

uint32_t world_size(const struct world *w, job_id job)
{
    const struct change *grant = world_grant(w, job);
    if (!grant)
        return w->state.jobs[job].gpus_now;
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < grant->seat_count; i++)
        gpus += seat_gpu_count(&plan_seats(w->plan, grant)[i]);
    return gpus;
}

const struct seat *world_seat(const struct world *w, job_id job, uint32_t n)
{
    const struct change *grant = world_grant(w, job);
    assert_non_null(grant);
    assert_true(n < grant->seat_count);
    return &plan_seats(w->plan, grant)[n];
}

bool world_waits_for(const struct world *w, job_id job, job_id victim)
{
    const struct change *grant = world_grant(w, job);
    assert_non_null(grant);
    const struct pending_part *pending_shares = plan_pending(w->plan, grant);
    for (uint32_t i = 0; i < grant->pending_count; i++)
        if (pending_shares[i].victim == victim)
            return true;
    return false;
}

uint64_t world_free_hash(const struct world *w)
{
    const struct free_index *free = &w->state.free;
    uint64_t hash = hash_word(0, free->gpu_count);
    for (node_id n = 0; n < w->cluster.node_count; n++) {
        const struct room *room = &free->rooms[n];
        hash = hash_word(hash, room->gpus);
        hash = hash_word(hash, (uint64_t)room->cpu_milli << 32 | room->mem_mib);
        hash = hash_word(hash, free->listed[n]);
    }
    for (uint32_t type = 0; type < w->cluster.type_count; type++) {
        const struct free_shelf *shelf = &free->shelves[type];
        hash = hash_word(hash, shelf->counts);
        hash = hash_word(hash, shelf->gpu_count);
        for (uint32_t c = 0; c <= w->cluster.types[type].node_gpus_max; c++) {
            hash = hash_word(hash, shelf->by_count[c].count);
            for (uint32_t n = bits_next(&shelf->by_count[c], 0); n != BITS_NONE;
                 n = bits_next(&shelf->by_count[c], n + 1))
                hash = hash_word(hash, n);
        }
    }
    return hash;
}
