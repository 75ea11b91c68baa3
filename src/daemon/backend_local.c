/* backend_local.c - the machine that berthd runs on, as a cluster of one or a few nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "daemon/daemon_internal.h"
#include "daemon/flows.h"
#include "executor/local/local.h"
#include "host/gpus.h"
#include "store/store.h"

static int find_machine(struct machine *machine, struct arena *arena, const char *fake,
                        struct error *err)
{
    static const char *const sources[] = { [GPUS_NVML] = "NVML",
                                           [GPUS_ROCM] = "ROCm",
                                           [GPUS_FAKE] = "--fake-gpus",
                                           [GPUS_CPU] = "CPU slots" };
    *machine = (struct machine){ 0 };
    machine->gpus = arena_new(arena, struct gpus);
    int r = gpus_find(machine->gpus, arena, &(struct gpus_setup){ .fake = fake }, err);
    if (r < 0)
        return r;
    machine->source = sources[machine->gpus->source];
    return gpus_cluster(machine->gpus, &machine->cluster, arena, &machine->gpu_index,
                        &machine->gpu_item, err);
}

/* Fake GPUs of the last start are used again, unless this one says otherwise. */
static int find_cluster(struct daemon *daemon, struct error *err)
{
    const char *said = daemon->setup.fake_gpus;
    char *fake = said ? memory_text(said) : store_fact(daemon->store, "fake_gpus");
    bool none = !fake || strcmp(fake, "none") == 0;
    int r = find_machine(&daemon->machine, &daemon->fixed, none ? NULL : fake, err);
    if (r == 0 && said)
        r = store_set_fact(daemon->store, "fake_gpus", said, err);
    free(fake);
    return r;
}

void machine_release(struct machine *machine)
{
    if (machine->gpus)
        gpus_release(machine->gpus);
    machine->gpus = NULL;
}

bool machine_is_shared(const struct machine *machine)
{
    if (!machine->gpus)
        return false;
    return machine->gpus->source == GPUS_NVML || machine->gpus->source == GPUS_ROCM;
}

static uint64_t foreign_gpus(const struct machine *machine, node_id node)
{
    uint64_t bits = 0;
    for (uint32_t g = 0; g < machine->cluster.nodes[node].gpu_count; g++) {
        uint32_t item = machine->gpu_item[node * NODE_GPUS_MAX + g];
        if (machine->gpus->items[item].foreign)
            bits |= (uint64_t)1 << g;
    }
    return bits;
}

void machine_find_foreign(struct machine *machine, const char *run_dir,
                          uint64_t *ret_foreign)
{
    if (machine_is_shared(machine))
        gpus_foreign(machine->gpus, run_dir);
    for (node_id node = 0; node < machine->cluster.node_count; node++)
        ret_foreign[node] = machine->gpus ? foreign_gpus(machine, node) : 0;
}

int machine_busy(const struct machine *machine, node_id node, uint32_t gpu)
{
    if (!machine_is_shared(machine))
        return -1;
    uint32_t item = machine->gpu_item[node * NODE_GPUS_MAX + gpu];
    return machine->gpus->items[item].busy;
}

/* --- the executor ------------------------------------------------------------------- */

static int mark_job(void *context, job_id job)
{
    const struct scheduler *scheduler = context;
    return flows_mark(scheduler->flows, job);
}

/* A running job says how many steps it will make in all: its next report carries it. */
static void set_total_steps(void *context, job_id job, double steps)
{
    struct scheduler *scheduler = context;
    scheduler->jobs[job].total = steps;
}

static int open_local(struct daemon *daemon, void **ret_self, struct error *err)
{
    struct scheduler *scheduler = &daemon->scheduler;
    struct local_setup setup = { .loop = &daemon->loop,
                                 .state_dir = daemon->setup.state_dir,
                                 .run_dir = daemon->setup.run_dir,
                                 .run_program = daemon->setup.run_program,
                                 .system = daemon->setup.system,
                                 .view = &scheduler->engine.state.view,
                                 .outbox = &scheduler->outbox,
                                 .wake = scheduler_executor_wake,
                                 .launch = scheduler_executor_launch,
                                 .now_ns = scheduler_executor_now,
                                 .mark = mark_job,
                                 .total = set_total_steps,
                                 .gpu_index = daemon->machine.gpu_index,
                                 .context = scheduler };
    struct local *local = NULL;
    int r = local_open(&local, &setup, err);
    *ret_self = local;
    return r;
}

const struct backend backend_local = { .executor = &executor_local,
                                       .find_cluster = find_cluster,
                                       .open = open_local };
