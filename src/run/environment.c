/* environment.c - the variables of a job's processes. */
#include "run/environment.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/protocol.h"
#include "host/launch_order.h"

#define OURS_MAX 48 /* variables */
#define VALUE_MAX 4608

struct environment {
    char **texts; /* of the whole environment; 'count' are set */
    size_t count;
    char *text, *end; /* where the next one is written */
};

static void add_variable(struct environment *ours, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add_variable(struct environment *ours, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(ours->text, (size_t)(ours->end - ours->text), fmt, args);
    va_end(args);
    if (length < 0 || length >= ours->end - ours->text)
        return;
    ours->texts[ours->count++] = ours->text;
    ours->text += length + 1;
}

static const char *const our_names[] = {
    "BERTH_JOB_ID",
    "BERTH_JOB_NAME",
    "BERTH_ATTEMPT",
    "BERTH_RESUME",
    "BERTH_CLASS",
    "BERTH_CKPT_DIR",
    PROTOCOL_ENV_FILE,
    PROTOCOL_ENV_SOCKET,
    "BERTH_ARRAY_JOB_ID",
    "BERTH_ARRAY_TASK_ID",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "NNODES",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
};

/*
 * Drop the owner's value also where we set none: a rank of another job is no rank
 * here.
 */
static bool is_ours(const struct launch_order *order, const char *text)
{
    if (order->mps && strncmp(text, "CUDA_MPS_", strlen("CUDA_MPS_")) == 0)
        return true;
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof our_names / sizeof our_names[0]; i++)
        if (strlen(our_names[i]) == length && strncmp(text, our_names[i], length) == 0)
            return true;
    return false;
}

/* "GPU-1=6144M,GPU-2=6144M": so much memory of each GPU; without their names by their order. */
static void add_mps_limits(struct environment *ours, const struct launch_order *order)
{
    char limits[VALUE_MAX];
    size_t used = 0;
    const char *uuid = order->uuids;
    for (uint32_t i = 0; i < order->gpu_count && used < sizeof limits; i++) {
        size_t length = uuid ? strcspn(uuid, ",") : 0;
        used +=
            (size_t)snprintf(limits + used, sizeof limits - used, "%s", i ? "," : "");
        if (used < sizeof limits && length > 0)
            used += (size_t)snprintf(limits + used, sizeof limits - used, "%.*s",
                                     (int)length, uuid);
        else if (used < sizeof limits)
            used +=
                (size_t)snprintf(limits + used, sizeof limits - used, "%" PRIu32, i);
        if (used < sizeof limits)
            used += (size_t)snprintf(limits + used, sizeof limits - used,
                                     "=%" PRIu32 "M", order->gpu_mib);
        if (uuid)
            uuid += length + (uuid[length] == ',');
    }
    if (used < sizeof limits)
        add_variable(ours, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=%s", limits);
}

/*
 * A client of NVIDIA's MPS is told its GPUs by permanent names where they are known: indices are
 * those of the server, which may count otherwise.  Not ROCR_VISIBLE_DEVICES: set together with HIP's, both would be applied one after
 * the other.
 */
static void add_gpus(struct environment *ours, const struct launch_order *order)
{
    add_variable(ours, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    add_variable(ours, "CUDA_VISIBLE_DEVICES=%s",
                 order->mps && order->uuids ? order->uuids : order->gpus);
    add_variable(ours, "HIP_VISIBLE_DEVICES=%s", order->gpus);
    if (order->mps)
        add_variable(ours, "CUDA_MPS_PIPE_DIRECTORY=%s", order->mps);
    if (order->mps && order->gpu_mib > 0)
        add_mps_limits(ours, order);
}

/* For a single process RANK and WORLD_SIZE are not set: it would wait for others. */
static void add_gang(struct environment *ours, const struct launch_order *order,
                     const struct rank_place *place)
{
    if (place->port == 0)
        return;
    add_variable(ours, "MASTER_ADDR=127.0.0.1");
    add_variable(ours, "MASTER_PORT=%u", place->port);
    add_variable(ours, "NODE_RANK=0");
    add_variable(ours, "NNODES=1");
    if (order->launch.tasks_per_node == 0)
        return;
    add_variable(ours, "RANK=%" PRIu32, place->rank);
    add_variable(ours, "LOCAL_RANK=%" PRIu32, place->rank);
    add_variable(ours, "WORLD_SIZE=%" PRIu32, place->rank_count);
    add_variable(ours, "LOCAL_WORLD_SIZE=%" PRIu32, place->rank_count);
}

static void add_slurm_names(struct environment *ours, const struct launch_order *order,
                            const struct rank_place *place)
{
    const struct launch *launch = &order->launch;
    add_variable(ours, "SLURM_JOB_ID=%" PRIu64, launch->id);
    add_variable(ours, "SLURM_JOBID=%" PRIu64, launch->id);
    add_variable(ours, "SLURM_JOB_NAME=%s", launch->name ? launch->name : "");
    add_variable(ours, "SLURM_SUBMIT_DIR=%s", launch->cwd);
    add_variable(ours, "SLURM_RESTART_COUNT=%" PRIu32, order->attempt);
    add_variable(ours, "SLURM_JOB_NUM_NODES=1");
    add_variable(ours, "SLURM_NNODES=1");
    add_variable(ours, "SLURM_NODEID=0");
    add_variable(ours, "SLURM_NTASKS=%" PRIu32, place->rank_count);
    add_variable(ours, "SLURM_PROCID=%" PRIu32, place->rank);
    add_variable(ours, "SLURM_LOCALID=%" PRIu32, place->rank);
    add_variable(ours, "SLURM_GPUS=%" PRIu32, order->gpu_count);
    add_variable(ours, "SLURM_JOB_GPUS=%s", order->gpus);
    if (order->cpu_milli >= 1000)
        add_variable(ours, "SLURM_CPUS_ON_NODE=%" PRIu32, order->cpu_milli / 1000);
    if (launch->array_id) {
        add_variable(ours, "SLURM_ARRAY_JOB_ID=%" PRIu64, launch->array_id);
        add_variable(ours, "SLURM_ARRAY_TASK_ID=%" PRIu32, launch->array_index);
    }
}

/* Whether the variable is set, by the owner or by us. */
static bool has_variable(const struct environment *ours, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < ours->count; i++)
        if (strncmp(ours->texts[i], name, length) == 0 && ours->texts[i][length] == '=')
            return true;
    return false;
}

/*
 * Later marking of packets does not reach RDMA: a queue pair keeps its traffic class
 * and service level.  Values set by the owner are kept.
 */
static void add_marks(struct environment *ours, const struct launch_order *order)
{
    if (order->dscp < 0)
        return;
    if (!has_variable(ours, "NCCL_IB_TC"))
        add_variable(ours, "NCCL_IB_TC=%d", order->dscp << 2);
    if (!has_variable(ours, "NCCL_IB_SL"))
        add_variable(ours, "NCCL_IB_SL=%d", order->dscp >> 3);
}

static void add_ours(struct environment *ours, const struct launch_order *order,
                     const char *dir, const char *ckpt_dir,
                     const struct rank_place *place)
{
    const struct launch *launch = &order->launch;
    add_variable(ours, "BERTH_JOB_ID=%" PRIu64, launch->id);
    if (launch->name)
        add_variable(ours, "BERTH_JOB_NAME=%s", launch->name);
    add_variable(ours, "BERTH_ATTEMPT=%" PRIu32, order->attempt);
    add_variable(ours, "BERTH_RESUME=%d", order->attempt > 0);
    add_variable(ours, "BERTH_CLASS=%s", launch->te ? "te" : "be");
    add_variable(ours, "BERTH_CKPT_DIR=%s", ckpt_dir);
    add_variable(ours, "%s=%s/job/sock", PROTOCOL_ENV_SOCKET, dir);
    if (launch->array_id) {
        add_variable(ours, "BERTH_ARRAY_JOB_ID=%" PRIu64, launch->array_id);
        add_variable(ours, "BERTH_ARRAY_TASK_ID=%" PRIu32, launch->array_index);
    }
    add_gpus(ours, order);
    add_gang(ours, order, place);
    add_marks(ours, order);
    if (launch->slurm_names)
        add_slurm_names(ours, order, place);
    add_variable(ours, "%s=%s/job/preempt", PROTOCOL_ENV_FILE,
                 dir); /* also identifies the job's processes */
}

char **environment_make(const struct launch_order *order, const char *dir,
                        const char *ckpt_dir, const struct rank_place *place)
{
    size_t theirs = 0;
    while (order->launch.env[theirs])
        theirs++;
    size_t pointers = (theirs + OURS_MAX + 1) * sizeof(char *);
    char *bytes = memory_checked(calloc(1, pointers + (size_t)OURS_MAX * VALUE_MAX));
    struct environment ours = { .texts = (char **)(void *)bytes,
                                .text = bytes + pointers,
                                .end =
                                    bytes + pointers + (size_t)OURS_MAX * VALUE_MAX };
    for (size_t i = 0; i < theirs; i++)
        if (!is_ours(order, order->launch.env[i]))
            ours.texts[ours.count++] = (char *)order->launch.env[i];
    add_ours(&ours, order, dir, ckpt_dir, place);
    return ours.texts;
}
