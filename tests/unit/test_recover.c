/* Recovery: jobs are restored, and what happens if the machine has changed. */
#include "support/world.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/recover.h"
#include "executor/sim/sim.h"
#include "metrics/ledger.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/migrations.h"
#include "store/rows.h"
#include "store/store.h"
#include "support/state_check.h"

extern const struct policy policy_fifo;

/* Before: a world with a store as observer.  After: an engine of its own. */
static struct world w;
static struct store *store;
static char folder[64], path[80];
static struct arena life;
static struct cluster cluster;
static struct throughput rates;
static struct engine engine;
static struct ledger ledger;
static bool recovered;
static struct error err;
static uint64_t unfit; /* the job of which it is said that it can never run any more */
static uint32_t back_count, gone_count;
static char gone_why[64];

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-recover-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    world_init_roomy(&w, "2xv100:4", 64000, 65536);
    if (store_open(&store, path, &err) < 0)
        return -1;
    store_attach(store, &w.state);
    recovered = false;
    unfit = 0;
    back_count = gone_count = 0;
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = { "store.db", "store.db-wal", "store.db-shm" };
    if (recovered) {
        state_check(&engine.state);
        engine_release(&engine);
        ledger_release(&ledger);
        arena_release(&life);
    }
    store_close(store);
    world_release(&w);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s/%s", folder, files[i]);
        unlink(name);
    }
    return rmdir(folder);
}

static void works(int r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

/* --- before --------------------------------------------------------------------------- */

static void tell(struct event event)
{
    event.at_ns = w.state.view.now_ns;
    store_event(store, &w.state.view, &event);
}

static void accept_job(uint64_t id)
{
    struct store_job job = { .id = id, .user = "ada", .gpus = 1, .request = "{}" };
    works(store_add_job(store, &job, &err));
}

static job_id running_on(node_id node, struct job job)
{
    accept_job(w.id_next);
    job_id id = world_running_on(&w, node, job);
    tell((struct event){ .kind = EVENT_STARTED, .job = id, .loaded = true });
    return id;
}

static job_id waiting(struct job job)
{
    accept_job(w.id_next);
    job_id id = world_queued(&w, job);
    tell((struct event){ .kind = EVENT_HELD,
                         .job = id }); /* something, so that it is kept */
    return id;
}

/* 'job' gets the seats of 'victim', who is told to leave. */
static void place_pending(job_id job, job_id victim)
{
    struct plan *plan = world_plan(&w);
    plan_revoke(plan, victim, RULE_ORDER, job);
    assert_true(plan_grant(plan, job, NULL));
    world_carry_out(&w);
    tell((struct event){ .kind = EVENT_HELD, .job = victim });
    tell((struct event){ .kind = EVENT_HELD, .job = job });
}

/* --- after ---------------------------------------------------------------------------- */

static int spec_for(void *context, const struct stored_job *kept, struct job *ret_job,
                    const void **ret_tag, struct error *error)
{
    job_id slot = state_find(&w.state, kept->job.id);
    assert_true(slot != JOB_NONE);
    if (kept->job.id == unfit)
        return error_set(error, -ERANGE, "no node is large enough");
    *ret_job = *world_job(&w, slot);
    return 0;
}

static void back_for(void *context, const struct stored_job *kept, const void *tag,
                     job_id job)
{
    assert_int_equal(engine.state.jobs[job].id, kept->job.id);
    back_count++;
}

static void gone_for(void *context, const struct stored_job *kept, const char *why)
{
    gone_count++;
    snprintf(gone_why, sizeof gone_why, "%s", why);
}

/* Start again on this machine: "4xv100:8", with so much for each node. */
static int start_again(const char *machine, uint32_t cpu_milli, uint32_t mem_mib,
                       const bool *node_down, const uint64_t *foreign)
{
    struct cluster like;
    works(store_commit(store, &err));
    arena_init(&life, 0);
    works(cluster_load(&like, &life, machine, &err));
    cluster_begin(&cluster, &life, machine, like.node_count);
    for (node_id n = 0; n < like.node_count; n++) {
        struct node node = like.nodes[n];
        node.type = cluster_type(&cluster, &life, like.types[node.type].name);
        node.cpu_milli = cpu_milli;
        node.mem_mib = mem_mib;
        cluster_add(&cluster, &node);
    }
    cluster_end(&cluster, &life);
    throughput_init(&rates, &cluster);
    struct engine_setup engine_setup = { .cluster = &cluster,
                                         .rates = &rates,
                                         .policy = &policy_fifo,
                                         .executor = &executor_sim,
                                         .job_max = 1000 };
    works(engine_init(&engine, &life, &engine_setup, &err));
    ledger_init(&ledger, &life, &engine.state.view, NULL);
    recovered = true;
    struct recover_setup how = { .engine = &engine,
                                 .ledger = &ledger,
                                 .store = store,
                                 .now_ns = w.state.view.now_ns,
                                 .node_down = node_down,
                                 .foreign = foreign,
                                 .spec = spec_for,
                                 .back = back_for,
                                 .gone = gone_for };
    return recover_state(&how, &err);
}

static enum job_state state_of(uint64_t id)
{
    job_id slot = state_find(&engine.state, id);
    return slot == JOB_NONE ? JOB_FREE : engine.state.jobs[slot].state;
}

#define SAME_MACHINE "2xv100:4", 64000, 65536, NULL, NULL

static void every_job_is_restored(void **state)
{
    running_on(0, (struct job){ .gpus = 4 });
    job_id leaves = running_on(1, (struct job){ .gpus = 4, .grace_ns = SECONDS(30) });
    job_id next = waiting((struct job){ .gpus = 4 });
    place_pending(next, leaves);
    works(start_again(SAME_MACHINE));
    assert_int_equal(back_count, 3);
    assert_int_equal(state_of(1), JOB_RUNNING);
    assert_int_equal(state_of(2), JOB_STOPPING);
    assert_int_equal(state_of(3), JOB_PLACED);
    assert_int_equal(engine.state.free.gpu_count, 0);
}

static void a_node_that_is_gone_sends_its_jobs_back_to_the_queue(void **state)
{
    running_on(0, (struct job){ .gpus = 2 });
    running_on(1, (struct job){ .gpus = 2 });
    works(start_again("1xv100:4", 64000, 65536, NULL, NULL));
    assert_int_equal(state_of(1), JOB_RUNNING);
    assert_int_equal(state_of(2), JOB_WAITING);
    assert_int_equal(engine.state.free.gpu_count, 2);
}

static void so_does_a_node_with_fewer_gpus_or_less_memory(void **state)
{
    running_on(0, (struct job){ .gpus = 1, .cpu_milli = 8000 });
    running_on(0, (struct job){ .gpus = 1, .mem_mib = 8192 });
    running_on(0, (struct job){ .gpus = 1 });
    running_on(0, (struct job){ .gpus = 1 }); /* on the fourth of its node */
    works(start_again("2xv100:3", 4000, 4096, NULL, NULL));
    assert_int_equal(state_of(1), JOB_WAITING);
    assert_int_equal(state_of(2), JOB_WAITING);
    assert_int_equal(state_of(3), JOB_RUNNING);
    assert_int_equal(state_of(4), JOB_WAITING);
}

/* Its pending allocation is gone with the victim, so it waits in the queue. */
static void a_pending_share_of_a_lost_victim_is_dropped(void **state)
{
    running_on(0, (struct job){ .gpus = 4 });
    job_id leaves = running_on(1, (struct job){ .gpus = 4, .grace_ns = SECONDS(30) });
    job_id next = waiting((struct job){ .gpus = 4 });
    place_pending(next, leaves);
    works(start_again("1xv100:4", 64000, 65536, NULL, NULL));
    assert_int_equal(state_of(1), JOB_RUNNING);
    assert_int_equal(state_of(2), JOB_WAITING);
    assert_int_equal(state_of(3), JOB_WAITING);
}

static void jobs_that_can_never_run_any_more_are_reported(void **state)
{
    job_id leaves = running_on(0, (struct job){ .gpus = 4, .grace_ns = SECONDS(30) });
    running_on(1, (struct job){ .gpus = 4 });
    job_id next = waiting((struct job){ .gpus = 4 });
    place_pending(next, leaves);
    unfit = 1;
    works(start_again(SAME_MACHINE));
    assert_int_equal(gone_count, 1);
    assert_string_equal(gone_why, "no node is large enough");
    assert_int_equal(back_count, 2);
    assert_int_equal(state_of(1), JOB_FREE);
    assert_int_equal(state_of(3), JOB_PLACED); /* the seats are free now */
}

/* Nodes and what others use are as they are now, not as they were. */
static void nodes_are_as_they_are_now(void **state)
{
    static const bool down[] = { false, true };
    static const uint64_t others[] = { 1, 0 };
    works(start_again("2xv100:4", 64000, 65536, down, others));
    assert_true(engine.state.node_down[1]);
    assert_false(engine.state.node_down[0]);
    assert_int_equal(engine.state.foreign[0], 1);
    assert_int_equal(engine.state.free.gpu_count, 3);
}

static void a_cancelled_job_still_stops(void **state)
{
    job_id job = running_on(0, (struct job){ .gpus = 1, .grace_ns = SECONDS(30) });
    world_apply(&w, (struct event){ .kind = EVENT_CANCELLED, .job = job });
    world_apply(&w, (struct event){ .kind = EVENT_RECALLED,
                                    .job = job,
                                    .rule = RULE_CANCEL,
                                    .beneficiary = JOB_NONE,
                                    .wait_saved_ns = -1 });
    tell((struct event){ .kind = EVENT_CANCELLED, .job = job });
    works(start_again(SAME_MACHINE));
    assert_int_equal(state_of(1), JOB_STOPPING);
    assert_true(engine.state.jobs[state_find(&engine.state, 1)].leaving);
}

static void a_ledger_entry_without_its_victim_is_skipped(void **state)
{
    running_on(0, (struct job){ .gpus = 1 });
    struct ledger_entry entry = { .victim = 77,
                                  .number = 1,
                                  .rule = RULE_ORDER,
                                  .gpus = 1,
                                  .started_ns = -1,
                                  .shared_by = 1 };
    store_write_entry(store, &entry, 0, true);
    works(start_again(SAME_MACHINE));
    assert_int_equal(ledger.entry_used, 0);
}

static void an_unreadable_row_is_given_up_and_the_others_are_back(void **state)
{
    running_on(0, (struct job){ .gpus = 1 });
    running_on(1, (struct job){ .gpus = 1 });
    works(store_commit(store, &err));
    struct db *db;
    const char *steps[MIGRATIONS_VERSION] = { "" };
    for (int i = 0; i < MIGRATIONS_VERSION; i++)
        steps[i] = "";
    works(db_open(&db, path, steps, MIGRATIONS_VERSION, &err));
    struct db_query *query = db_prepare(db, "UPDATE live SET seats = 'on the moon' "
                                            "WHERE id = 1");
    works(db_run(query, &err));
    works(db_commit(db, &err));
    db_finish(query);
    db_close(db);
    works(start_again(SAME_MACHINE));
    assert_int_equal(back_count, 1);
    assert_int_equal(state_of(1), JOB_FREE);
    assert_int_equal(state_of(2), JOB_RUNNING);
}

RUN_CASES(CASE(every_job_is_restored),
          CASE(a_node_that_is_gone_sends_its_jobs_back_to_the_queue),
          CASE(so_does_a_node_with_fewer_gpus_or_less_memory),
          CASE(a_pending_share_of_a_lost_victim_is_dropped),
          CASE(jobs_that_can_never_run_any_more_are_reported),
          CASE(nodes_are_as_they_are_now), CASE(a_cancelled_job_still_stops),
          CASE(a_ledger_entry_without_its_victim_is_skipped),
          CASE(an_unreadable_row_is_given_up_and_the_others_are_back));
