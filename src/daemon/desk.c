/*
 * desk.c - what people may ask of berthd.
 *
 * Whoever asks is known by the kernel's word.  What he asks for is looked at here and, if it
 * makes sense, becomes an event for the next pass; it is answered when that is on disk.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "executor/executor.h"
#include "policy/policy.h"
#include "store/store.h"

bool daemon_may(const struct daemon *daemon, const struct caller *caller,
                uint32_t owner)
{
    return caller->uid == 0 || caller->uid == geteuid() || caller->uid == owner;
}

int desk_need_life(const struct daemon *daemon, struct error *err)
{
    if (daemon->alive && !daemon->stopping)
        return 0;
    return error_set(err, -EAGAIN,
                     daemon->stopping ? "berthd is stopping"
                                      : "the store cannot be written just now");
}

/* What admit() needs of it, until the pass is over. */
static struct request *keep(struct daemon *daemon, const struct request *request)
{
    struct request *kept = arena_new(&daemon->pass, struct request);
    *kept = *request;
    if (request->launch.name)
        kept->launch.name = arena_text(&daemon->pass, request->launch.name);
    if (request->outside)
        kept->outside = arena_text(&daemon->pass, request->outside);
    kept->dependencies =
        arena_array(&daemon->pass, struct dependency, request->dependency_count + 1);
    for (uint32_t i = 0; i < request->dependency_count; i++)
        kept->dependencies[i] = request->dependencies[i];
    return kept;
}

int desk_take(struct daemon *daemon, const char *user, struct request *request,
              const char *text, bool held, struct error *ret_rejected,
              struct error *err)
{
    int64_t at_ns = daemon_now_ns(daemon);
    struct job *job = arena_new(&daemon->pass, struct job);
    request->spec.submit_ns = at_ns;
    ret_rejected->text[0] = '\0';
    bool fits = intake_job(&daemon->intake, &request->spec, job, ret_rejected) == 0;
    bool gated = fits && (held || gates_needed(request, request->array_limit, at_ns));
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
    int r = store_accept(daemon->store, &row, err);
    if (r < 0)
        return r;
    if (!fits)
        *job = (struct job){ .id = request->spec.id,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus };
    else if (gated)
        job->state = JOB_HELD;
    struct event *event =
        daemon_add_event(daemon, fits ? EVENT_SUBMITTED : EVENT_REJECTED, JOB_NONE);
    event->spec = job;
    event->tag = fits ? keep(daemon, request) : NULL;
    daemon->coming += fits;
    event->why = fits ? NULL : arena_text(&daemon->pass, ret_rejected->text);
    return 0;
}

/* Nobody can wait for a job that there never was. */
static int check_dependencies(struct daemon *daemon, const struct request *request,
                              struct error *err)
{
    for (uint32_t i = 0; i < request->dependency_count; i++) {
        const struct dependency *dependency = &request->dependencies[i];
        if (dependency->kind != DEPENDS_SINGLETON &&
            life_outcome(daemon, dependency->id) == OUTCOME_UNKNOWN)
            return error_set(err, -EINVAL, "dependency: there is no job %" PRIu64,
                             dependency->id);
    }
    return 0;
}

int daemon_submit(struct daemon *daemon, const struct caller *caller,
                  struct request *requests, const char *const *texts, uint32_t count,
                  uint64_t *ret_ids, struct error *ret_rejected, struct error *err)
{
    int r = desk_need_life(daemon, err);
    if (r < 0)
        return r;
    if (daemon->backend->executor->submit_command)
        return error_set(err, -EINVAL, "jobs of this cluster are submitted with %s",
                         daemon->backend->executor->submit_command);
    if (daemon->engine.state.live_count + daemon->coming + count >
        daemon->setup.job_max)
        return error_set(err, -ENOBUFS, "%u jobs are waiting or running: no more fit",
                         daemon->engine.state.live_count);
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = check_dependencies(daemon, &requests[i], err);
    if (r < 0)
        return r;
    struct passwd *entry = getpwuid(caller->uid);
    char number[16];
    snprintf(number, sizeof number, "%u", caller->uid);
    const char *user = arena_text(&daemon->pass, entry ? entry->pw_name : number);
    uint64_t first = daemon->id_next;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        struct request *request = &requests[i];
        request->spec.id = daemon->id_next++;
        request->launch.id = request->spec.id;
        request->launch.uid = caller->uid;
        request->launch.array_id = request->in_array ? first : 0;
        ret_ids[i] = request->spec.id;
        r = desk_take(daemon, user, request, texts[i], false, ret_rejected, err);
    }
    if (r < 0)
        daemon_fall_back(daemon, err); /* half of them are in the books */
    return r;
}

static int find_for(const struct daemon *daemon, const struct caller *caller,
                    uint64_t id, job_id *ret_job, struct error *err)
{
    int r = desk_need_life(daemon, err);
    if (r < 0)
        return r;
    job_id job = state_find(&daemon->engine.state, id);
    if (job == JOB_NONE)
        return error_set(err, -ENOENT, "there is no job %" PRIu64, id);
    if (!daemon_may(daemon, caller, daemon->residents[job].uid))
        return error_set(err, -EPERM, "job %" PRIu64 " is somebody else's", id);
    *ret_job = job;
    return 0;
}

int daemon_cancel(struct daemon *daemon, const struct caller *caller, uint64_t id,
                  struct error *err)
{
    job_id job = JOB_NONE;
    int r = find_for(daemon, caller, id, &job, err);
    if (r == 0)
        daemon_add_event(daemon, EVENT_CANCELLED, job)->why = "cancelled";
    return r;
}

int daemon_hold(struct daemon *daemon, const struct caller *caller, uint64_t id,
                bool held, struct error *err)
{
    job_id job = JOB_NONE;
    int r = find_for(daemon, caller, id, &job, err);
    if (r < 0)
        return r;
    enum job_state state = daemon->engine.state.jobs[job].state;
    if (state != JOB_WAITING && state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be held", id);
    r = store_hold(daemon->store, id, held, err);
    if (r < 0)
        return r;
    if (!gates_hold(&daemon->gates, id, held) && held) {
        struct request request = { .spec.id = id,
                                   .hold = true,
                                   .launch.uid = daemon->residents[job].uid };
        daemon_add_event(daemon, EVENT_HELD, job);
        gates_add(&daemon->gates, &request, job, 0);
    }
    daemon->ask_gates = true;
    daemon_want_pass(daemon);
    return 0;
}

int daemon_change(struct daemon *daemon, const struct caller *caller, uint64_t id,
                  const struct daemon_change *change, struct error *err)
{
    job_id job = JOB_NONE;
    int r = find_for(daemon, caller, id, &job, err);
    if (r < 0)
        return r;
    const struct job *now = &daemon->engine.state.jobs[job];
    if (now->state != JOB_WAITING && now->state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be changed", id);
    struct job *spec = arena_new(&daemon->pass, struct job);
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
    /* Whoever keeps an order finds it anew: out of the queue, changed, and in again. */
    bool waits = now->state == JOB_WAITING;
    if (waits)
        daemon_add_event(daemon, EVENT_HELD, job);
    daemon_add_event(daemon, EVENT_CHANGED, job)->spec = spec;
    if (waits)
        daemon_add_event(daemon, EVENT_RELEASED, job);
    return 0;
}

int desk_need_rights(const struct caller *caller, struct error *err)
{
    if (caller->uid == 0 || caller->uid == geteuid())
        return 0;
    return error_set(err, -EPERM, "only who runs berthd may do that");
}

int daemon_set_policy(struct daemon *daemon, const struct caller *caller,
                      const char *text, struct error *err)
{
    const struct policy *policy;
    const char *settings;
    int r = desk_need_rights(caller, err);
    if (r == 0)
        r = desk_need_life(daemon, err);
    if (r == 0)
        r = policy_parse(text, &policy, &settings, err);
    char *copy = r == 0 ? memory_text(text) : NULL;
    if (r == 0)
        r = store_set_fact(daemon->store, "policy", text, err);
    if (r == 0)
        r = engine_set_policy(&daemon->engine, policy, settings, err);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(daemon->policy_text);
    daemon->policy_text = copy;
    daemon_want_pass(daemon);
    return 0;
}

void desk_kill_all(struct daemon *daemon)
{
    const struct state *state = &daemon->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE && !state->jobs[id].leaving)
            daemon_add_event(daemon, EVENT_CANCELLED, id)->why =
                "berthd was told to end all";
}

int daemon_stop(struct daemon *daemon, const struct caller *caller, bool kill,
                struct error *err)
{
    int r = desk_need_rights(caller, err);
    if (r < 0)
        return r;
    if (kill && !daemon->alive)
        return error_set(err, -EAGAIN,
                         "the store cannot be written, so no job can be ended now; "
                         "without --kill berthd alone stops");
    if (kill)
        desk_kill_all(daemon);
    daemon->stopping = true;
    daemon->killing = kill;
    daemon_want_pass(daemon);
    if (!daemon->alive)
        uv_stop(&daemon->loop);
    return 0;
}
