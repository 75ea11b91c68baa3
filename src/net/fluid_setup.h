/* fluid_setup.h - how closely the network model follows jobs. */
#pragma once

#include <stdint.h>

enum fluid_mode {
    FLUID_AUTO,  /* exact up to the two ceilings, then mean */
    FLUID_EXACT, /* whatever it costs                       */
    FLUID_MEAN,
};

struct fluid_setup {
    enum fluid_mode mode;
    uint32_t exact_jobs_max;    /* at once; 0: the default */
    uint64_t exact_changes_max; /* begins and ends of sending; 0: the default */
};
