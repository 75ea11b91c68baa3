/* submission.c - what users ask berthd to do with jobs: accept, cancel, hold, change. */
#include "daemon/submission.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "daemon/daemon.h"
#include "daemon/scheduler.h"
#include "daemon/users.h"
#include "executor/executor.h"
#include "store/store.h"

/* A copy of what observers of the event need, until the pass is over. */
static struct request *copy_request(struct scheduler *scheduler,
                                    const struct request *request)
{
    struct request *kept = arena_new(&scheduler->pass, struct request);
    *kept = *request;
    if (request->launch.name)
        kept->launch.name = arena_text(&scheduler->pass, request->launch.name);
    if (request->outside)
        kept->outside = arena_text(&scheduler->pass, request->outside);
    kept->dependencies =
        arena_array(&scheduler->pass, struct dependency, request->dependency_count + 1);
    for (uint32_t i = 0; i < request->dependency_count; i++)
        kept->dependencies[i] = request->dependencies[i];
    return kept;
}

int submission_accept(struct submission *submission, const char *user,
                      struct request *request, const char *text, bool held,
                      struct error *ret_rejected, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    int64_t at_ns = scheduler_now_ns(scheduler);
    struct job *job = arena_new(&scheduler->pass, struct job);
    request->spec.submit_ns = at_ns;
    ret_rejected->text[0] = '\0';
    users_ready(scheduler->users, request->launch.uid); /* wanted when it starts */
    bool fits = admission_make_job(&scheduler->admission, &request->spec, job,
                                   ret_rejected) == 0;
    bool waits = fits && (held || conditions_needed(request, at_ns));
    struct store_job row = { .id = request->spec.id,
                             .uid = request->launch.uid,
                             .user = user,
                             .name = request->launch.name,
                             .types = request->spec.types,
                             .entity = request->spec.entity,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus,
                             .array_id = request->launch.array_id,
                             .array_index = request->launch.array_index,
                             .steps = request->spec.steps,
                             .submit_ns = at_ns,
                             .held = request->hold,
                             .rejected = fits ? NULL : ret_rejected->text,
                             .request = text };
    int r = store_accept(scheduler->store, &row, err);
    if (r < 0)
        return r;
    if (!fits)
        *job = (struct job){ .id = request->spec.id,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus };
    else if (waits)
        job->state = JOB_HELD;
    struct event *event = scheduler_add_event(
        scheduler, fits ? EVENT_SUBMITTED : EVENT_REJECTED, JOB_NONE);
    event->spec = job;
    event->tag = fits ? copy_request(scheduler, request) : NULL;
    scheduler->coming += fits;
    event->why = fits ? NULL : arena_text(&scheduler->pass, ret_rejected->text);
    return 0;
}

/* A job that never existed cannot be waited for. */
static int check_dependencies(struct scheduler *scheduler,
                              const struct request *request, struct error *err)
{
    for (uint32_t i = 0; i < request->dependency_count; i++) {
        const struct dependency *dependency = &request->dependencies[i];
        if (dependency->kind != DEPENDS_SINGLETON &&
            scheduler_outcome(scheduler, dependency->id) == OUTCOME_UNKNOWN)
            return error_set(err, -EINVAL, "dependency: there is no job %" PRIu64,
                             dependency->id);
    }
    return 0;
}

int submission_submit(struct submission *submission, const struct caller *caller,
                      struct request *requests, const char *const *texts,
                      uint32_t count, uint64_t *ret_ids, struct error *ret_rejected,
                      struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    int r = scheduler_check_open(scheduler, err);
    if (r < 0)
        return r;
    if (scheduler->executor->submit_command)
        return error_set(err, -EINVAL, "jobs of this cluster are submitted with %s",
                         scheduler->executor->submit_command);
    if (scheduler->engine.state.live_count + scheduler->coming + count >
        scheduler->job_max)
        return error_set(err, -ENOBUFS, "%u jobs are waiting or running: no more fit",
                         scheduler->engine.state.live_count);
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = check_dependencies(scheduler, &requests[i], err);
    if (r < 0)
        return r;
    struct user user = users_find(scheduler->users, caller->uid);
    uint64_t first = submission->id_next;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        struct request *request = &requests[i];
        request->spec.id = submission->id_next++;
        request->launch.id = request->spec.id;
        request->launch.uid = caller->uid;
        request->launch.array_id = request->in_array ? first : 0;
        ret_ids[i] = request->spec.id;
        r = submission_accept(submission, user.name, request, texts[i], false,
                              ret_rejected, err);
    }
    if (r < 0)
        submission->failed(submission->context, err); /* half of them are recorded */
    return r;
}

/* The job that the caller may change. */
static int find_job(const struct scheduler *scheduler, const struct caller *caller,
                    uint64_t id, job_id *ret_job, struct error *err)
{
    int r = scheduler_check_open(scheduler, err);
    if (r < 0)
        return r;
    job_id job = state_find(&scheduler->engine.state, id);
    if (job == JOB_NONE)
        return error_set(err, -ENOENT, "there is no job %" PRIu64, id);
    if (!caller_may(caller, scheduler->jobs[job].uid))
        return error_set(err, -EPERM, "job %" PRIu64 " is somebody else's", id);
    *ret_job = job;
    return 0;
}

int submission_cancel(struct submission *submission, const struct caller *caller,
                      uint64_t id, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    job_id job = JOB_NONE;
    int r = find_job(scheduler, caller, id, &job, err);
    if (r == 0)
        scheduler_add_event(scheduler, EVENT_CANCELLED, job)->why = "cancelled";
    return r;
}

int submission_hold(struct submission *submission, const struct caller *caller,
                    uint64_t id, bool held, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    job_id job = JOB_NONE;
    int r = find_job(scheduler, caller, id, &job, err);
    if (r < 0)
        return r;
    enum job_state state = scheduler->engine.state.jobs[job].state;
    if (state != JOB_WAITING && state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be held", id);
    r = store_hold(scheduler->store, id, held, err);
    if (r < 0)
        return r;
    scheduler_hold(scheduler, job, held);
    return 0;
}

int submission_change(struct submission *submission, const struct caller *caller,
                      uint64_t id, const struct submission_change *change,
                      struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    job_id job = JOB_NONE;
    int r = find_job(scheduler, caller, id, &job, err);
    if (r < 0)
        return r;
    const struct job *now = &scheduler->engine.state.jobs[job];
    if (now->state != JOB_WAITING && now->state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be changed", id);
    struct job *spec = arena_new(&scheduler->pass, struct job);
    *spec = *now;
    if (change->class)
        spec->class = strcmp(change->class, "te") == 0 ? CLASS_TE : CLASS_BE;
    if (!isnan(change->weight))
        spec->weight = change->weight;
    if (!isnan(change->deadline_s))
        spec->deadline_ns = units_ns(change->deadline_s);
    if (!isnan(change->grace_s))
        spec->grace_ns = units_ns(change->grace_s);
    if (!isnan(change->steps))
        spec->steps_total = change->steps;
    /* A policy keeps its own order: the job leaves the queue, changes and comes back. */
    bool waits = now->state == JOB_WAITING;
    if (waits)
        scheduler_add_event(scheduler, EVENT_HELD, job);
    scheduler_add_event(scheduler, EVENT_CHANGED, job)->spec = spec;
    if (waits)
        scheduler_add_event(scheduler, EVENT_RELEASED, job);
    return 0;
}
