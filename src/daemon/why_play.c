/*
 * why_play.c - a change played through in a copy of everything.
 *
 * A policy in office remembers more than a new one could be told, so a new one may answer
 * otherwise.  The only exact copy of it is this process: a child has one, plays the change
 * with an executor that obeys at once, and says by its exit status what came of it.  It
 * writes nothing and talks to nobody.
 */
#include "daemon/why_play.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "executor/executor.h"

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

static const struct executor nobody = { .name = "nobody",
                                        .start = start_nothing,
                                        .stop = stop_nothing,
                                        .cancel = cancel_nothing,
                                        .resize = start_nothing,
                                        .renew = renew_nothing };

struct play {
    struct engine *engine;
    int64_t now_ns;
    job_id id;
    const struct job *as;
};

/* It is out of the queue for a moment: nobody counts on what it asks for. */
static void ask_for_something_else(void *self, const struct view *view,
                                   const struct event *event)
{
    const struct play *play = self;
    if (event->kind != EVENT_HELD || event->job != play->id)
        return;
    enum job_state state = view->jobs[play->id].state;
    play->engine->state.jobs[play->id] = *play->as;
    play->engine->state.jobs[play->id].state = state;
}

static struct event event_of(const struct play *play, enum event_kind kind, job_id job)
{
    return (struct event){ .at_ns = play->now_ns,
                           .kind = kind,
                           .job = job,
                           .generation = play->engine->state.jobs[job].generation,
                           .attempt = play->engine->state.jobs[job].attempt };
}

static bool plays_well(struct play *play, job_id gone)
{
    struct engine *engine = play->engine;
    struct job *jobs = engine->state.jobs;
    struct event events[3];
    uint32_t count = 0;
    struct error err;
    bool runs = gone != JOB_NONE && job_runs(&jobs[gone]);
    engine->executor = &nobody;
    engine->observer_count = 0;
    if (memcmp(&jobs[play->id], play->as, sizeof *play->as) != 0) {
        engine_add_observer(
            engine,
            (struct engine_observer){ .event = ask_for_something_else, .self = play });
        events[count++] = event_of(play, EVENT_HELD, play->id);
        events[count++] = event_of(play, EVENT_RELEASED, play->id);
    }
    if (gone != JOB_NONE)
        events[count++] = event_of(play, EVENT_CANCELLED, gone);
    if (engine_step(engine, play->now_ns, events, count, &err) < 0)
        return false;
    if (runs) {
        events[0] = event_of(play, EVENT_STOPPED, gone);
        events[0].steps = events[0].steps_reached = jobs[gone].steps;
        if (engine_step(engine, play->now_ns, events, 1, &err) < 0)
            return false;
    }
    return jobs[play->id].state >= JOB_PLACED;
}

bool play_starts(const struct why_scene *scene, job_id id, const struct job *as,
                 job_id gone)
{
    struct job copy = *as; /* it may be the job's own record */
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct play play = { scene->engine, scene->now_ns, id, &copy };
        _exit(plays_well(&play, gone) ? 0 : 1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
