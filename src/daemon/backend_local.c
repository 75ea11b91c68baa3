/* backend_local.c - the machine that berthd runs on, as a cluster of one or a few nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "daemon/daemon_internal.h"
#include "daemon/flows.h"
#include "executor/local/local.h"
#include "store/store.h"

/* Fake GPUs of the last start are used again, unless this one says otherwise. */
static int find_cluster(struct daemon *daemon, struct error *err)
{
    const char *said = daemon->setup.fake_gpus;
    char *fake = said ? memory_text(said) : store_fact(daemon->store, "fake_gpus");
    bool none = !fake || strcmp(fake, "none") == 0;
    int r = machine_find(&daemon->machine, &daemon->fixed, none ? NULL : fake, err);
    if (r == 0 && said)
        r = store_set_fact(daemon->store, "fake_gpus", said, err);
    free(fake);
    return r;
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

/* A job sees its own GPUs, and where the kernel can enforce that, opens no others. */
static uint32_t deny_others(void *context, const char *gpus,
                            struct cgroup_device *denied, uint32_t max)
{
    const struct scheduler *scheduler = context;
    const struct daemon *daemon = scheduler->context;
    return machine_list_others(&daemon->machine, gpus, denied, max);
}

/* Clients of MPS count GPUs as its server does, so theirs are told by their permanent names. */
static bool name_gpus(void *context, const char *gpus, char *text, size_t size)
{
    const struct scheduler *scheduler = context;
    const struct daemon *daemon = scheduler->context;
    return machine_uuids(&daemon->machine, gpus, text, size);
}

static int open_local(struct daemon *daemon, void **ret_self, struct error *err)
{
    struct scheduler *scheduler = &daemon->scheduler;
    struct local_setup setup = { .loop = &daemon->loop,
                                 .state_dir = daemon->setup.state_dir,
                                 .run_dir = daemon->setup.run_dir,
                                 .run_program = daemon->setup.run_program,
                                 .mps = daemon->setup.sharing.mps,
                                 .mps_for_all =
                                     machine_is_exclusive(&daemon->machine, NULL),
                                 .launcher = daemon->setup.launcher,
                                 .view = &scheduler->engine.state.view,
                                 .outbox = &scheduler->outbox,
                                 .wake = scheduler_executor_wake,
                                 .launch = scheduler_executor_launch,
                                 .now_ns = scheduler_executor_now,
                                 .mark = mark_job,
                                 .total = set_total_steps,
                                 .deny_others = deny_others,
                                 .name_gpus = name_gpus,
                                 .gpu_index = daemon->machine.gpu_index,
                                 .gpu_core = daemon->machine.gpu_core,
                                 .context = scheduler };
    struct local *local = NULL;
    int r = local_open(&local, &setup, err);
    *ret_self = local;
    return r;
}

const struct backend backend_local = { .executor = &executor_local,
                                       .find_cluster = find_cluster,
                                       .open = open_local };
