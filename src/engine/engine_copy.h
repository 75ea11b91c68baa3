/*
 * engine_copy.h - an engine that goes on from where another one is.
 *
 *     engine_copy_init(&copy, &run, source, &setup, &err);      once
 *     engine_copy_renew(&copy, source, seed, &err);             for each time it is played
 *
 * The state is the same, slot by slot.  The policy is another instance of the source's: it gets
 * every live job as an adopted event, as after a restart, and then inherits what it knew besides.
 * Every job that holds GPUs, or has a pending allocation, is reattached to the copy's executor.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"

struct engine;
struct error;
struct executor;

struct engine_copy_setup {
    const char *settings; /* of the source's policy, or NULL */
    const struct executor *executor;
    void *executor_self;
    uint32_t more_jobs; /* room for so many that are yet to be submitted */
};

int engine_copy_init(struct engine *copy, struct arena *run,
                     const struct engine *source, const struct engine_copy_setup *setup,
                     struct error *err);

/*
 * Be as the source is now.  The executor must know all live jobs before engine_copy_reattach().
 */
int engine_copy_renew(struct engine *copy, struct arena *run,
                      const struct engine *source, const char *settings, uint64_t seed,
                      struct error *err);
int engine_copy_reattach(struct engine *copy, struct error *err);
