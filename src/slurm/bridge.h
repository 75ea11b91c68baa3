/* bridge.h - pass requests from berthd to Slurm, and changes from Slurm to berthd. */
#pragma once

#include <stdint.h>

struct slurm_driver;
struct error;

#define BRIDGE_PARTITIONS_MAX 256

struct bridge_setup {
    const struct slurm_driver *driver;
    const char *const *partitions; /* none: all */
    uint32_t partition_count;
    const char *bell; /* path of a named pipe to make; NULL: none */
    int bell_fd;      /* one that is open already; -1: none    */
    int in, out;      /* lines of JSON                         */
};

/* Run until 'in' is closed.  Negative with the reason: it could not start. */
int bridge_run(const struct bridge_setup *setup, struct error *err);
