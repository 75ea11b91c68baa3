/* gpu_watch.c - what the GPUs of this machine do, looked at every few seconds. */
#include "daemon/gpu_watch.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/memory.h"
#include "daemon/scheduler.h"
#include "host/gpus.h"
#include "host/machine.h"

#define LOOK_EVERY_MS 5000

struct gpu_watch {
    struct scheduler *scheduler;
    const struct machine *machine;
    const char *run_dir;
    uv_timer_t timer;
    uv_work_t work;
    struct gpu_use *uses;  /* by GPU of the machine, at the last look */
    struct gpu_use *found; /* the worker's                            */
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

static void on_found(uv_work_t *work, int status)
{
    struct gpu_watch *watch = work->data;
    watch->works = false;
    if (status < 0 || watch->stopped)
        return;
    memcpy(watch->uses, watch->found, uses_bytes(watch));
    if (watch->scheduler->alive)
        tell_foreign(watch);
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
    free(watch);
}
