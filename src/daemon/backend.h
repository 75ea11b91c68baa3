/*
 * backend.h - the kinds of cluster that berthd can drive: this machine, or a Slurm cluster.
 */
#pragma once

struct daemon;
struct error;
struct executor;

/* Where a cluster comes from, and the executor for it. */
struct backend {
    const struct executor *executor;
    int (*find_cluster)(struct daemon *daemon, struct error *err);
    int (*open)(struct daemon *daemon, void **ret_self, struct error *err);
};
extern const struct backend backend_local, backend_slurm;
