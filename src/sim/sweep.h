/* sweep.h - many runs over settings, one engine per thread. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "sim/sim.h"

struct sweep_run {
    struct sim_setup setup;
    double effort;            /* expected, in any unit: the longest begin first */
    struct sim_result result; /* sim_result_release() it */
    int status;               /* 0, or a negative errno and why */
    struct error err;
};

/* The number of cores this process may use. */
uint32_t sweep_threads(void);

/*
 * Do them all, on so many threads; results do not depend on how many.  A workload that
 * several runs have in common is read or drawn once.  'progress' (or NULL) is called, one
 * thread at a time, with a share between 0 and 1.  Returns the first failure in order of
 * 'runs', or 0.
 */
int sweep_run_all(struct sweep_run *runs, uint32_t count, uint32_t threads,
                  void (*progress)(void *context, double share), void *context,
                  struct error *err);
