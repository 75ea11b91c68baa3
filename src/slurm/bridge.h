/* bridge.h - berthd on one side, Slurm on the other. */
#pragma once

#include <stdint.h>

struct slurm_driver;
struct error;

struct bridge_setup {
    const struct slurm_driver *driver;
    const char *const *partitions; /* none: all */
    uint32_t partition_count;
    const char *bell; /* a named pipe that is made; NULL: none */
    int in, out;      /* lines of JSON                         */
};

/* Until 'in' is closed.  Negative with the reason if it could not even begin. */
int bridge_run(const struct bridge_setup *setup, struct error *err);
