/* engine_copy.c - an engine that goes on from where another one is. */
#include "engine/engine_copy.h"

#include <string.h>

#include "engine/engine.h"
#include "executor/executor.h"
#include "policy/policy.h"

int engine_copy_init(struct engine *copy, struct arena *run,
                     const struct engine *source, const struct engine_copy_setup *setup,
                     struct error *err)
{
    const struct cluster *cluster = setup->cluster;
    struct engine_setup engine_setup = {
        .cluster = cluster ? cluster : source->state.view.cluster,
        .rates = source->state.view.rates,
        .policy = setup->policy ? setup->policy : source->policy,
        .settings = setup->settings,
        .executor = setup->executor,
        .executor_self = setup->executor_self,
        .job_max = source->state.job_count + setup->more_jobs,
        .seed = source->seed
    };
    return engine_init(copy, run, &engine_setup, err);
}

/* No job is withheld: those that the calendar bars are looked at in the first step. */
static void forget_eligibility(struct engine *copy)
{
    struct eligibility *own = &copy->eligibility;
    memset(own->known, 0, copy->state.job_max * sizeof *own->known);
    own->known_count = 0;
    heap_init(&own->near);
}

/* It has decided already: the next decision is when the source's would be. */
static void copy_times(struct engine *copy, const struct engine *source)
{
    copy->wake_ns = source->wake_ns;
    copy->decided_ns = source->decided_ns;
    copy->boundary_ns = source->boundary_ns;
    copy->calendar_ns = source->calendar_ns;
}

int engine_copy_renew(struct engine *copy, struct arena *run,
                      const struct engine *source, const char *settings, uint64_t seed,
                      struct error *err)
{
    state_copy(&copy->state, &source->state, run);
    forget_eligibility(copy);
    copy->seed = seed;
    int r = engine_inherit_policy(copy, source, settings, err);
    if (r < 0)
        return r;
    engine_adopt_jobs(copy);
    copy_times(copy, source);
    return 0;
}

int engine_snapshot_take(struct engine_snapshot *snapshot, const struct engine *source,
                         const struct engine_copy_setup *setup, struct error *err)
{
    struct engine_copy_setup copy = *setup;
    bool other = setup->policy && setup->policy != source->policy;
    engine_snapshot_release(snapshot);
    arena_init(&snapshot->arena, 0);
    copy.executor = &engine_copy_nothing;
    copy.executor_self = NULL;
    int r = engine_copy_init(&snapshot->engine, &snapshot->arena, source, &copy, err);
    if (r == 0) {
        snapshot->taken = true;
        state_copy_apart(&snapshot->engine.state, &source->state, &snapshot->arena);
        copy_times(&snapshot->engine, source);
    }
    if (r == 0 && other)
        snapshot->engine.wake_ns = source->state.view.now_ns;
    else if (r == 0)
        r = engine_inherit_policy(&snapshot->engine, source, setup->settings, err);
    if (r < 0)
        engine_snapshot_release(snapshot);
    return r;
}

void engine_snapshot_release(struct engine_snapshot *snapshot)
{
    if (snapshot->taken)
        engine_release(&snapshot->engine);
    arena_release(&snapshot->arena);
    *snapshot = (struct engine_snapshot){ 0 };
}

static int reattach_job(struct engine *copy, job_id id, struct error *err)
{
    const struct executor *executor = copy->executor;
    const struct job *job = &copy->state.jobs[id];
    struct lease lease = engine_lease(copy, id, job->state == JOB_PLACED, &copy->round);
    int r = executor->reattach(copy->executor_self, &lease, job->state == JOB_STOPPING,
                               job->grace_ns, err);
    if (r < 0 || job->seats.count == 0 || job->next.count == 0)
        return r;
    lease = engine_lease(copy, id, true, &copy->round);
    return job_runs(job) ? executor->resize(copy->executor_self, &lease, err)
                         : executor->start(copy->executor_self, &lease, err);
}

int engine_copy_reattach(struct engine *copy, struct error *err)
{
    int r = 0;
    for (job_id id = 0; id < copy->state.job_count && r == 0; id++)
        if (copy->state.jobs[id].state >= JOB_PLACED)
            r = reattach_job(copy, id, err);
    arena_reset(&copy->round);
    return r;
}

/* --- an executor for decisions alone -------------------------------------------------- */

static int start_nothing(void *self, const struct lease *lease, struct error *err)
{
    return 0;
}

static int stop_nothing(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    return 0;
}

static int cancel_nothing(void *self, job_id job, struct error *err)
{
    return 0;
}

static int renew_nothing(void *self, job_id job, uint64_t steps_max, bool together,
                         struct error *err)
{
    return 0;
}

const struct executor engine_copy_nothing = { .name = "nothing",
                                              .start = start_nothing,
                                              .stop = stop_nothing,
                                              .cancel = cancel_nothing,
                                              .resize = start_nothing,
                                              .renew = renew_nothing };
