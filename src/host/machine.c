/* machine.c - the machine in front of us as a cluster. */
#include "host/machine.h"

#include <stdlib.h>

#include "base/arena.h"
#include "host/gpus.h"

int machine_find(struct machine *machine, struct arena *arena, const char *fake,
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
