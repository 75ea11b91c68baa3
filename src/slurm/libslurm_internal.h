/*
 * libslurm_internal.h - the library, and what is kept of what it said; for libslurm.c (what is
 * asked of Slurm) and libslurm_look.c (what there is to see).
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define SLURM_BACKWARD_COMPAT 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#pragma GCC diagnostic pop

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "slurm/slurm_driver.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define JOB_ID(p) ((p)->step_id.job_id)
#else
#define JOB_ID(p) ((p)->job_id)
#endif

struct libslurm {
    time_t jobs_at, nodes_at, partitions_at; /* of the last look */
    time_t partitions_asked;
    struct arena partitions; /* their names and nodes, while they stay as they are */
    struct map partition_of; /* hash of a node's name to an index of 'of' */
    const char **of;         /* "gpu,wide"                                 */
    uint32_t of_count;
    struct arena users; /* names of users, for ever */
    struct map user_of; /* uid to an index of 'user' */
    const char *user[4096];
    uint32_t user_count;
    pthread_mutex_t lock;
    struct map ran; /* jobs that have been started before; both threads ask */
};

static inline int ask_again(struct error *err, const char *what)
{
    return error_set(err, -EAGAIN, "%s: %s", what, slurm_strerror(errno));
}

/* For the driver: jobs and nodes that have changed, or all of them. */
int libslurm_poll(void *own, bool afresh, const struct slurm_observer *eyes,
                  struct slurm_poll *ret_look, struct arena *scratch,
                  struct error *err);
