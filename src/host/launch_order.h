/*
 * launch_order.h - the order that a supervisor is given: one job, one attempt.
 *
 * It travels as a sealed memfd of records "key=value" that end in NUL, since values may
 * hold anything else.  The last record is "end=": an order without it was cut short.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/cgroup.h"
#include "model/launch.h"

struct buf;
struct error;

#define LAUNCH_ORDER_MAX (8u * 1024 * 1024) /* bytes: script and environment included */
#define LAUNCH_DENIED_MAX 64
#define LAUNCH_UUIDS_MAX 4096

/* What the supervisor has to know; paths that are not NULL are absolute. */
struct launch_order {
    struct launch
        launch; /* place holders in 'out', 'err' and 'ckpt_dir' are filled in */
    uint32_t attempt;
    const char *gpus; /* "0,3": what the job may see; "": none                */
    const char
        *uuids;       /* with 'mps', their permanent names by commas; NULL: not known */
    const char *type; /* of them, or NULL                                     */
    const char *cores; /* "0,1": processors it is bound to; NULL or "": all   */
    uint32_t gpu_count;
    uint32_t cpu_milli;
    uint32_t mem_mib;
    const char *mps;  /* NVIDIA's MPS: its folder of pipes, for a job that may share its
                       * GPUs; or NULL */
    uint32_t gpu_mib; /* memory that such a job needs of each GPU; 0: not said */
    double steps_kept; /* by earlier attempts                                  */
    int64_t grace_ns;  /* grace period                                         */
    int dscp;          /* code point for what is marked at its start only; -1: none */
    struct cgroup_device denied[LAUNCH_DENIED_MAX]; /* GPUs of others */
    uint32_t denied_count;
    char *bytes; /* that an unsealed order points into */
    const char
        *cgroups[CGROUP_PARENTS]; /* for a supervisor that starts the job itself */
};

/* The order's bytes; buf.full afterwards: it is too long. */
void launch_order_write(const struct launch_order *order, struct buf *buf);

/*
 * What stands in 'bytes', which the order points into from then on.  It is changed, and
 * ends in NUL.  Give it back with launch_order_release().
 */
int launch_order_read(struct launch_order *order, char *bytes, size_t count,
                      struct error *err);
void launch_order_release(struct launch_order *order);

/* A memfd, of flags MFD_..., that no process can execute; -1: see errno. */
int launch_order_memory(const char *name, unsigned flags);

/* A sealed memfd with the order in it, or a negative errno. */
int launch_order_seal(const struct launch_order *order, struct error *err);

/* Read an order from a sealed memfd; one that could still be changed is refused. */
int launch_order_unseal(struct launch_order *order, int fd, struct error *err);
