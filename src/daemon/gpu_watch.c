/* gpu_watch.c - what the GPUs of this machine do, looked at every few seconds. */
#include "daemon/gpu_watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/memory.h"
#include "daemon/scheduler.h"
#include "host/gpus.h"
#include "host/machine.h"

#define LOOK_EVERY_MS 5000
#define BUSY_LOOKS_MIN 3  /* until a job's mean is told                */
#define BUSY_LOOKS_MAX 24 /* that the mean reaches back, then by parts */
#define BUSY_TOLD 0.05    /* change of it that is told                 */

struct seen_job;

struct gpu_watch {
    struct scheduler *scheduler;
    const struct machine *machine;
    const char *run_dir;
    uv_timer_t timer;
    uv_work_t work;
    struct gpu_use *uses;  /* by GPU of the machine, at the last look */
    struct gpu_use *found; /* the worker's                            */
    struct seen_job *seen; /* the jobs that were found on them        */
    bool works;            /* the worker looks                        */
    bool stopped;
};

static size_t uses_bytes(const struct gpu_watch *watch)
{
    return (machine_gpu_count(watch->machine) + 1) * sizeof *watch->uses;
}

void gpu_watch_look(struct gpu_watch *watch)
{
    if (machine_is_shared(watch->machine))
        machine_find_use(watch->machine, watch->run_dir, watch->uses);
}

/* In the worker thread. */
static void find_use(uv_work_t *work)
{
    struct gpu_watch *watch = work->data;
    machine_find_use(watch->machine, watch->run_dir, watch->found);
}

/* An event where other processes have come or gone. */
static void tell_foreign(struct gpu_watch *watch)
{
    struct scheduler *scheduler = watch->scheduler;
    for (node_id node = 0; node < watch->machine->cluster.node_count; node++) {
        uint64_t foreign = gpu_watch_foreign(watch, node);
        if (foreign == scheduler->engine.state.foreign[node])
            continue;
        struct event *event = scheduler_add_event(scheduler, EVENT_FOREIGN, JOB_NONE);
        event->node = node;
        event->gpus = foreign;
    }
}

/* --- what jobs do ------------------------------------------------------------------------- */

/* A job's share of the last look. */
struct seen_job {
    job_id job;
    uint32_t gpus; /* on which its processes were found */
    uint32_t mib;  /* the most on one of them           */
    int busy;      /* sum over them, in percent; -1: not known */
};

static uint32_t in_mib(uint64_t bytes)
{
    uint64_t mib = (bytes + 0xfffff) >> 20;
    return mib > UINT32_MAX ? UINT32_MAX : (uint32_t)mib;
}

/* The live job of that attempt, or JOB_NONE. */
static job_id find_job(const struct gpu_watch *watch, const struct gpu_job *found)
{
    const struct state *state = &watch->scheduler->engine.state;
    job_id job = scheduler_find(watch->scheduler, found->id);
    bool same = job != JOB_NONE && state->jobs[job].attempt == found->attempt &&
                job_holds_seats(&state->jobs[job]);
    return same ? job : JOB_NONE;
}

/* Add what one GPU does; a GPU that two jobs use tells nothing of how busy either is. */
static uint32_t add_gpu_use(struct gpu_watch *watch, const struct gpu_use *use,
                            uint32_t count)
{
    for (uint32_t i = 0; i < use->job_count; i++) {
        job_id job = find_job(watch, &use->jobs[i]);
        uint32_t at = 0, mib = in_mib(use->jobs[i].bytes);
        if (job == JOB_NONE)
            continue;
        while (at < count && watch->seen[at].job != job)
            at++;
        struct seen_job *seen = &watch->seen[at];
        if (at == count) {
            *seen = (struct seen_job){ .job = job };
            count++;
        }
        seen->gpus++;
        seen->mib = mib > seen->mib ? mib : seen->mib;
        bool told = use->busy >= 0 && use->job_count == 1 && !use->foreign;
        seen->busy = told && seen->busy >= 0 ? seen->busy + use->busy : -1;
    }
    return count;
}

/* It may end what shares the GPU with it: memory is not enforced without MPS. */
static void check_declared(struct gpu_watch *watch, const struct job *job,
                           struct scheduler_job *known)
{
    const struct job *jobs = watch->scheduler->engine.state.jobs;
    if (known->gpu_exceeds || known->gpu_mib_said == 0 || job->partner == JOB_NONE ||
        known->gpu_mib_seen <= known->gpu_mib_said)
        return;
    known->gpu_exceeds = true;
    fprintf(stderr,
            "berthd: job %" PRIu64 " has %" PRIu32 " MiB of a GPU that it shares with "
            "job %" PRIu64 ", and declared %" PRIu32 " MiB\n",
            job->id, known->gpu_mib_seen, jobs[job->partner].id, known->gpu_mib_said);
}

/* An event where something is new. */
static void tell_job_use(struct gpu_watch *watch, const struct seen_job *seen)
{
    struct scheduler *scheduler = watch->scheduler;
    const struct job *job = &scheduler->engine.state.jobs[seen->job];
    struct scheduler_job *known = &scheduler->jobs[seen->job];
    bool alone = job->state == JOB_RUNNING && job->partner == JOB_NONE &&
                 seen->busy >= 0 && seen->gpus == job->gpus_now;
    if (alone) {
        double busy = (double)seen->busy / (100.0 * seen->gpus);
        known->gpu_looks += known->gpu_looks < BUSY_LOOKS_MAX;
        known->gpu_busy += (busy - known->gpu_busy) / known->gpu_looks;
    }
    bool busier = alone && known->gpu_looks >= BUSY_LOOKS_MIN &&
                  fabs(known->gpu_busy - known->gpu_busy_told) > BUSY_TOLD;
    if (seen->mib <= known->gpu_mib_seen && !busier)
        return;
    if (seen->mib > known->gpu_mib_seen)
        known->gpu_mib_seen = seen->mib;
    if (busier)
        known->gpu_busy_told = known->gpu_busy;
    struct event *event = scheduler_add_event(scheduler, EVENT_GPU_USE, seen->job);
    event->attempt = job->attempt;
    event->gpu_mib = known->gpu_mib_seen;
    event->gpu_busy = busier ? known->gpu_busy : 0;
}

static void tell_use(struct gpu_watch *watch)
{
    const struct scheduler *scheduler = watch->scheduler;
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine_gpu_count(watch->machine); i++)
        count = add_gpu_use(watch, &watch->uses[i], count);
    for (uint32_t i = 0; i < count; i++) {
        job_id job = watch->seen[i].job;
        tell_job_use(watch, &watch->seen[i]);
        check_declared(watch, &scheduler->engine.state.jobs[job],
                       &scheduler->jobs[job]);
    }
}

/* --- every few seconds -------------------------------------------------------------------- */

static void on_found(uv_work_t *work, int status)
{
    struct gpu_watch *watch = work->data;
    watch->works = false;
    if (status < 0 || watch->stopped)
        return;
    memcpy(watch->uses, watch->found, uses_bytes(watch));
    if (!watch->scheduler->alive)
        return;
    tell_foreign(watch);
    tell_use(watch);
}

/* A look that has not ended is waited for. */
static void on_timer(uv_timer_t *timer)
{
    struct gpu_watch *watch = timer->data;
    if (watch->works || watch->stopped)
        return;
    watch->work.data = watch;
    watch->works =
        uv_queue_work(watch->scheduler->loop, &watch->work, find_use, on_found) == 0;
}

uint64_t gpu_watch_foreign(const struct gpu_watch *watch, node_id node)
{
    return machine_foreign(watch->machine, node, watch->uses);
}

int gpu_watch_busy(const struct gpu_watch *watch, node_id node, uint32_t gpu)
{
    if (!machine_is_shared(watch->machine))
        return -1;
    return watch->uses[machine_gpu(watch->machine, node, gpu)].busy;
}

struct gpu_watch *gpu_watch_new(struct scheduler *scheduler,
                                const struct machine *machine, const char *run_dir)
{
    struct gpu_watch *watch = memory_checked(calloc(1, sizeof *watch));
    watch->scheduler = scheduler;
    watch->machine = machine;
    watch->run_dir = run_dir;
    watch->uses = memory_checked(calloc(1, uses_bytes(watch)));
    watch->found = memory_checked(calloc(1, uses_bytes(watch)));
    size_t jobs = (size_t)GPU_JOBS_MAX * (machine_gpu_count(machine) + 1);
    watch->seen = memory_checked(calloc(jobs, sizeof *watch->seen));
    uv_timer_init(scheduler->loop, &watch->timer);
    watch->timer.data = watch;
    return watch;
}

void gpu_watch_start(struct gpu_watch *watch)
{
    if (machine_is_shared(watch->machine))
        uv_timer_start(&watch->timer, on_timer, 0, LOOK_EVERY_MS);
}

void gpu_watch_stop(struct gpu_watch *watch)
{
    if (!watch)
        return;
    watch->stopped = true;
    uv_close((uv_handle_t *)&watch->timer, NULL);
}

void gpu_watch_free(struct gpu_watch *watch)
{
    if (!watch)
        return;
    free(watch->uses);
    free(watch->found);
    free(watch->seen);
    free(watch);
}
