/*
 * The calendar of availability, in random worlds under every policy: no job runs on GPUs while they
 * are unavailable, what is set aside for a user is used by no other, and when all entries are over
 * every job has ended.  At each decision the policy has been told of exactly those waiting jobs that
 * could start somewhere if they were alone, by the calendar.
 */
#include "support/random_world.h"

#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "model/calendar.h"
#include "model/free_index.h"
#include "model/placement.h"
#include "model/state.h"
#include "support/store_file.h"

#ifndef SEEDS
#define SEEDS 40
#endif
#define JOBS 60
#define ENTRIES 12
#define USERS 3
#define SECOND INT64_C(1000000000)
#define NOTICE_NS (60 * SECOND) /* longer than any grace period */

static struct engine_run run;
static const char *const names[USERS] = { "ann", "bob", "cem" };

static struct {
    struct calendar_entry entries[ENTRIES];
    int64_t known_ns[ENTRIES]; /* when each is added */
    uint32_t next;
} plan;

/* What happened, over all worlds: a test that compares nothing must fail. */
static uint64_t used_by_owner, used_before, stopped, withheld;

/* A policy with an ear at its door. */
static struct {
    const struct policy *policy;
    struct policy heard;
    bool waits[JOBS]; /* by slot: as the policy was told */
} door;

static int init_heard(void *self, const struct view *view, uint64_t seed,
                      struct arena *arena, struct error *err)
{
    memset(door.waits, 0, sizeof door.waits);
    return door.policy->init ? door.policy->init(self, view, seed, arena, err) : 0;
}

static void observe_heard(void *self, const struct view *view,
                          const struct event *event)
{
    if (event_makes_waiting(event, view))
        door.waits[event->job] = true;
    else if (event_ends_waiting(event, view))
        door.waits[event->job] = false;
    if (door.policy->observe)
        door.policy->observe(self, view, event);
}

/* Is there a placement on the empty cluster, without what the calendar bars to the job? */
static bool could_start(const struct view *view, job_id id, struct arena *scratch)
{
    const struct job *job = &view->jobs[id];
    const struct cluster *cluster = view->cluster;
    struct free_index empty;
    free_index_init(&empty, scratch, cluster);
    for (node_id n = 0; n < cluster->node_count; n++) {
        const struct node *node = &cluster->nodes[n];
        uint64_t barred = calendar_barred(view, id, n, 0);
        uint64_t all = ((uint64_t)1 << node->gpu_count) - 1;
        struct room room = { all & ~barred, node->cpu_milli, node->mem_mib };
        if (barred != ~(uint64_t)0)
            free_index_put(&empty, n, &room);
    }
    uint32_t most = job_is_elastic(job) ? job->gpus_max : job->gpus;
    for (uint32_t gpus = job_is_elastic(job) ? job->gpus_min : job->gpus; gpus <= most;
         gpus++) {
        struct placement_search search = { .cluster = cluster,
                                           .rates = view->rates,
                                           .free = &empty,
                                           .seats = arena_array(scratch, struct seat,
                                                                cluster->node_count),
                                           .seat_max = cluster->node_count };
        if (placement_find(&search,
                           &(struct placement_request){ .job = job,
                                                        .gpus = gpus,
                                                        .types = job->types,
                                                        .nodes = job->nodes,
                                                        .spread = job->spread }))
            return true;
    }
    return false;
}

static int decide_heard(void *self, const struct view *view, struct plan *plan_made,
                        struct arena *scratch, struct error *err)
{
    for (job_id id = 0; id < run.engine.state.job_count; id++) {
        bool waits = view->jobs[id].state == JOB_WAITING;
        bool shown = waits && could_start(view, id, scratch);
        withheld += waits && !shown;
        if (shown != door.waits[id])
            fail_msg("at %.9f s %s sees job %llu as %s, which %s",
                     (double)view->now_ns * 1e-9, door.policy->name,
                     (unsigned long long)view->jobs[id].id,
                     door.waits[id] ? "waiting" : "not waiting",
                     !waits  ? "does not wait"
                     : shown ? "could start"
                             : "the calendar bars everywhere");
    }
    return door.policy->decide(self, view, plan_made, scratch, err);
}

static const struct policy *listen_to(const struct policy *policy)
{
    door.policy = policy;
    door.heard = *policy;
    door.heard.init = init_heard;
    door.heard.observe = observe_heard;
    door.heard.decide = decide_heard;
    return &door.heard;
}

static bool is_used(const struct view *view, const struct job *job,
                    const struct calendar_entry *entry)
{
    bool whole = calendar_is_whole(view->cluster, entry);
    const struct seat *seats = &view->seats[job->seats.first];
    for (uint32_t i = 0; i < job->seats.count; i++)
        if (seats[i].node == entry->node && (whole || (seats[i].gpus & entry->gpus)))
            return true;
    return false;
}

static void check_entries(void *self, const struct view *view,
                          const struct event *event)
{
    stopped += event->kind == EVENT_RECALLED && event->rule == RULE_CALENDAR;
    for (uint32_t i = 0; i < plan.next; i++) {
        const struct calendar_entry *entry = &plan.entries[i];
        for (job_id id = 0; id < run.engine.state.job_count; id++) {
            const struct job *job = &view->jobs[id];
            if (!job_holds_seats(job) || !is_used(view, job, entry))
                continue;
            used_before += view->now_ns < entry->from_ns;
            if (view->now_ns <= entry->from_ns || view->now_ns >= entry->to_ns)
                continue;
            used_by_owner += entry->user == job->user;
            if (entry->user == 0 || entry->user != job->user)
                fail_msg(
                    "at %.9f s job %llu of user %u is on node %u, GPUs %llx, which is "
                    "for user %u from %.9f s to %.9f s",
                    (double)view->now_ns * 1e-9, (unsigned long long)job->id, job->user,
                    entry->node, (unsigned long long)entry->gpus, entry->user,
                    (double)entry->from_ns * 1e-9, (double)entry->to_ns * 1e-9);
        }
    }
}

static int64_t next_entry_ns(void *self)
{
    return plan.next < ENTRIES ? plan.known_ns[plan.next] : INT64_MAX;
}

static void add_entries(void *self, struct engine_run *played, int64_t now_ns)
{
    while (next_entry_ns(NULL) <= now_ns) {
        struct event *event =
            engine_run_add_event(played, EVENT_RESERVED, JOB_NONE, now_ns);
        event->entry = &plan.entries[plan.next++];
    }
}

static struct rng restarts;

/* Where everything is stored: now and then berthd is killed and started again. */
static void restart(void *self, struct engine_run *played, int64_t now_ns)
{
    if (played->store && rng_below(&restarts, 20) == 0)
        engine_run_restart(played, now_ns); /* fails unless all is as it was */
}

static void make_entries(const struct cluster *cluster, struct rng *rng)
{
    int64_t at_ns = 0;
    memset(&plan, 0, sizeof plan);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        node_id node = rng_below(rng, cluster->node_count);
        uint32_t gpus = cluster->nodes[node].gpu_count;
        uint64_t all = ((uint64_t)1 << gpus) - 1;
        int64_t from_ns = at_ns + NOTICE_NS + (int64_t)rng_below(rng, 1000) * SECOND;
        plan.known_ns[i] = at_ns;
        plan.entries[i] = (struct calendar_entry){
            .id = i + 1,
            .node = node,
            .gpus = rng_below(rng, 2) || gpus == 0
                        ? all
                        : (uint64_t)1 << rng_below(rng, gpus),
            .from_ns = from_ns,
            .to_ns = from_ns + (1 + (int64_t)rng_below(rng, 2000)) * SECOND,
            .user = rng_below(rng, USERS + 1)
        };
        if (plan.entries[i].user > 0)
            snprintf(plan.entries[i].owner, sizeof plan.entries[i].owner, "%s",
                     names[plan.entries[i].user - 1]);
        at_ns += (int64_t)rng_below(rng, 300) * SECOND;
    }
}

static void no_job_runs_into_an_entry(void **state)
{
    static const struct interference calendar = { .next_ns = next_entry_ns,
                                                  .before = add_entries,
                                                  .after = restart };
    char path[64];
    store_file_path(path, sizeof path, "calendar");
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        bool stored = (seed.now + (uint64_t)(p - policy_list)) % 10 == 0;
        struct random_world world;
        struct rng rng;
        rng_init(&rng, seed.now, "calendar");
        random_world_make(&world,
                          &(struct random_world_setup){ .jobs = JOBS,
                                                        .plain = rng_below(&rng, 2),
                                                        .wrong_estimates = true,
                                                        .unknown_work = true,
                                                        .stays = rng_below(&rng, 2),
                                                        .sets = rng_below(&rng, 2) },
                          seed.now);
        rng_init(&restarts, seed.now, "restarts");
        for (uint32_t i = 0; i < USERS; i++) /* the numbers that entries have */
            world.specs[i].user = names[i];
        for (uint32_t i = USERS; i < JOBS; i++)
            world.specs[i].user = names[rng_below(&rng, USERS)];
        make_entries(&world.cluster, &rng);
        world.setup.policy = listen_to(*p);
        world.setup.interference = &calendar;
        world.setup.store_path = stored ? path : NULL;
        world.setup.observer = (struct engine_observer){ .event = check_entries };
        print_message("# %s\n", (*p)->name);
        engine_run_play(&run, &world.setup); /* state_check() after every event */
        assert_int_equal(run.engine.refused_count, 0);
        assert_false(run.gave_up);
        assert_int_equal(run.ended, run.accepted);
        engine_run_release(&run);
        random_world_release(&world);
        store_file_remove(path);
    }
    print_message("# used before %llu, by owners %llu, stopped %llu, withheld %llu\n",
                  (unsigned long long)used_before, (unsigned long long)used_by_owner,
                  (unsigned long long)stopped, (unsigned long long)withheld);
    assert_true(getenv("BERTH_SEED") || (used_before > 100 && used_by_owner > 100 &&
                                         stopped > 100 && withheld > 100));
}

RUN_CASES(TEST(no_job_runs_into_an_entry));
