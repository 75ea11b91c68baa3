/*
 * environment.c - the environment that a job is given.
 *
 * What its owner gave it stands first, ours last and instead of theirs: a job that was
 * submitted from within another must not speak to that one's supervisor.
 */
#include "run/environment.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/protocol.h"
#include "host/launch_file.h"

#define OURS_MAX 48 /* variables */
#define VALUE_MAX 4608

struct ours {
    char **texts; /* of the whole environment: ours are put in at 'count' */
    size_t count;
    char *text, *end; /* where the next one is written */
};

static void add(struct ours *ours, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add(struct ours *ours, const char *fmt, ...)
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

/* Theirs gives way, also where we set nothing: a rank of another job is no rank here. */
static bool is_ours(const char *text)
{
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof our_names / sizeof our_names[0]; i++)
        if (strlen(our_names[i]) == length && strncmp(text, our_names[i], length) == 0)
            return true;
    return false;
}

/* Only the twin that both runtimes read alike: with ROCR_… set as well they count twice. */
static void add_gpus(struct ours *ours, const struct order *order)
{
    add(ours, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    add(ours, "CUDA_VISIBLE_DEVICES=%s", order->gpus);
    add(ours, "HIP_VISIBLE_DEVICES=%s", order->gpus);
}

/* Set for a single process RANK and WORLD_SIZE would have it wait for others. */
static void add_gang(struct ours *ours, const struct order *order,
                     const struct place *place)
{
    if (place->port == 0)
        return;
    add(ours, "MASTER_ADDR=127.0.0.1");
    add(ours, "MASTER_PORT=%u", place->port);
    add(ours, "NODE_RANK=0");
    add(ours, "NNODES=1");
    if (order->launch.tasks_per_node == 0)
        return;
    add(ours, "RANK=%" PRIu32, place->rank);
    add(ours, "LOCAL_RANK=%" PRIu32, place->rank);
    add(ours, "WORLD_SIZE=%" PRIu32, place->rank_count);
    add(ours, "LOCAL_WORLD_SIZE=%" PRIu32, place->rank_count);
}

static void add_slurm_names(struct ours *ours, const struct order *order,
                            const struct place *place)
{
    const struct launch *launch = &order->launch;
    add(ours, "SLURM_JOB_ID=%" PRIu64, launch->id);
    add(ours, "SLURM_JOBID=%" PRIu64, launch->id);
    add(ours, "SLURM_JOB_NAME=%s", launch->name ? launch->name : "");
    add(ours, "SLURM_SUBMIT_DIR=%s", launch->cwd);
    add(ours, "SLURM_RESTART_COUNT=%" PRIu32, order->attempt);
    add(ours, "SLURM_JOB_NUM_NODES=1");
    add(ours, "SLURM_NNODES=1");
    add(ours, "SLURM_NODEID=0");
    add(ours, "SLURM_NTASKS=%" PRIu32, place->rank_count);
    add(ours, "SLURM_PROCID=%" PRIu32, place->rank);
    add(ours, "SLURM_LOCALID=%" PRIu32, place->rank);
    add(ours, "SLURM_GPUS=%" PRIu32, order->gpu_count);
    add(ours, "SLURM_JOB_GPUS=%s", order->gpus);
    if (order->cpu_milli >= 1000)
        add(ours, "SLURM_CPUS_ON_NODE=%" PRIu32, order->cpu_milli / 1000);
    if (launch->array_id) {
        add(ours, "SLURM_ARRAY_JOB_ID=%" PRIu64, launch->array_id);
        add(ours, "SLURM_ARRAY_TASK_ID=%" PRIu32, launch->array_index);
    }
}

/* Has its owner said so, or what we have put in? */
static bool has(const struct ours *ours, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < ours->count; i++)
        if (strncmp(ours->texts[i], name, length) == 0 && ours->texts[i][length] == '=')
            return true;
    return false;
}

/*
 * Packets of RDMA pass by whatever marks packets later: a queue pair has its traffic class
 * and service level for good.  Who knows better says so himself.
 */
static void add_marks(struct ours *ours, const struct order *order)
{
    if (order->dscp < 0)
        return;
    if (!has(ours, "NCCL_IB_TC"))
        add(ours, "NCCL_IB_TC=%d", order->dscp << 2);
    if (!has(ours, "NCCL_IB_SL"))
        add(ours, "NCCL_IB_SL=%d", order->dscp >> 3);
}

static void add_ours(struct ours *ours, const struct order *order, const char *dir,
                     const struct place *place)
{
    const struct launch *launch = &order->launch;
    add(ours, "BERTH_JOB_ID=%" PRIu64, launch->id);
    if (launch->name)
        add(ours, "BERTH_JOB_NAME=%s", launch->name);
    add(ours, "BERTH_ATTEMPT=%" PRIu32, order->attempt);
    add(ours, "BERTH_RESUME=%d", order->attempt > 0);
    add(ours, "BERTH_CLASS=%s", launch->te ? "te" : "be");
    add(ours, "BERTH_CKPT_DIR=%s", launch->ckpt_dir);
    add(ours, "%s=%s/job.sock", PROTOCOL_ENV_SOCKET, dir);
    if (launch->array_id) {
        add(ours, "BERTH_ARRAY_JOB_ID=%" PRIu64, launch->array_id);
        add(ours, "BERTH_ARRAY_TASK_ID=%" PRIu32, launch->array_index);
    }
    add_gpus(ours, order);
    add_gang(ours, order, place);
    add_marks(ours, order);
    if (launch->slurm_names)
        add_slurm_names(ours, order, place);
    add(ours, "%s=%s/preempt", PROTOCOL_ENV_FILE, dir); /* also what it is found by */
}

char **environment_make(const struct order *order, const char *dir,
                        const struct place *place)
{
    size_t theirs = 0;
    while (order->launch.env[theirs])
        theirs++;
    size_t pointers = (theirs + OURS_MAX + 1) * sizeof(char *);
    char *bytes = memory_checked(calloc(1, pointers + (size_t)OURS_MAX * VALUE_MAX));
    struct ours ours = { .texts = (char **)(void *)bytes,
                         .text = bytes + pointers,
                         .end = bytes + pointers + (size_t)OURS_MAX * VALUE_MAX };
    for (size_t i = 0; i < theirs; i++)
        if (!is_ours(order->launch.env[i]))
            ours.texts[ours.count++] = (char *)order->launch.env[i];
    add_ours(&ours, order, dir, place);
    return ours.texts;
}
