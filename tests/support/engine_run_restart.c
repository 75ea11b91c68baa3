/* engine_run_restart.c - recover an engine from the store and compare it with the old one. */
#include "support/engine_run.h"

#include "base/error.h"
#include "engine/recover.h"
#include "store/rows.h"
#include "support/compare.h"
#include "support/state_check.h"

/* --- callbacks of recovery --------------------------------------------------------- */

static int find_spec(void *context, const struct stored_job *kept, struct job *ret_job,
                     const void **ret_tag, struct error *err)
{
    struct engine_run *run = context;
    uint64_t at = kept->job.id - 1;
    struct job_spec spec = run->setup->specs[at];
    if (run->setup->beliefs)
        spec.steps *= run->setup->beliefs[at];
    spec.id = kept->job.id;
    return admission_make_job(&run->admission, &spec, ret_job, err);
}

static void check_recovered(void *context, const struct stored_job *kept,
                            const void *tag, job_id job)
{
    struct engine_run *run = context;
    assert_true(run->engine.state.jobs[job].id == kept->job.id);
}

static void fail_lost_job(void *context, const struct stored_job *kept, const char *why)
{
    fail_msg("job %llu: %s", (unsigned long long)kept->job.id, why);
}

static uint32_t number_user(void *context, const char *name)
{
    struct engine_run *run = context;
    return admission_user(&run->admission, name);
}

/* --- restart --------------------------------------------------------------------------- */

void engine_run_restart(struct engine_run *run, int64_t now_ns)
{
    struct error err = { "" };
    struct engine engine = run->engine; /* its arrays stay in place */
    struct ledger ledger = run->ledger;
    struct arena arena = run->engine_arena;
    const struct state *old = &engine.state;

    engine_run_open_engine(run);
    struct recover_setup setup = { .engine = &run->engine,
                                   .ledger = &run->ledger,
                                   .store = run->store,
                                   .now_ns = now_ns,
                                   .node_down = old->node_down,
                                   .foreign = old->foreign,
                                   .spec = find_spec,
                                   .back = check_recovered,
                                   .gone = fail_lost_job,
                                   .user = number_user,
                                   .context = run };
    if (recover_state(&setup, &err) < 0)
        fail_msg("%s", err.text);
    run->engine.state.view.closed = old->view.closed;

    const struct state *new = &run->engine.state;
    state_check(new);
    job_id *slots = arena_array(&run->arena, job_id, old->job_max);
    for (job_id id = 0; id < old->job_max; id++) {
        slots[id] = JOB_NONE;
        if (old->jobs[id].state == JOB_FREE)
            continue;
        slots[id] = state_find(new, old->jobs[id].id);
    }
    if (compare_states(old, new, &err) < 0 ||
        compare_ledgers(&ledger, &run->ledger, &err) < 0)
        fail_msg("%s", err.text);
    sim_cluster_move(&run->sim, slots);

    run->engine.event_count += engine.event_count;
    run->engine.decision_count = engine.decision_count;
    run->engine.refused_count = engine.refused_count;
    engine_release(&engine);
    ledger_release(&ledger);
    arena_release(&arena);
}
