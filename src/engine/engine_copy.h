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

#include "engine/engine.h"

struct cluster;
struct error;
struct executor;
struct policy;

struct engine_copy_setup {
    const char *settings; /* of the source's policy, or NULL */
    const struct executor *executor;
    void *executor_self;
    uint32_t more_jobs; /* room for so many that are yet to be submitted */
    const struct cluster
        *cluster;                /* the source's with more nodes; NULL: the source's */
    const struct policy *policy; /* of a snapshot; NULL: the source's */
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

/*
 * A copy that shares nothing with its source that changes: another thread can use it while the
 * source goes on.  Of the source's thread it takes as long as copying what is live.  Copies of it
 * decide as the source would.  Before the snapshot itself gets events, engine_adopt_jobs() has to
 * follow, on any thread; what is then copied may decide a little otherwise.  Its executor obeys and
 * does nothing.
 */
struct engine_snapshot {
    struct engine engine;
    struct arena arena;
    bool taken;
};

/*
 * Whatever it was before; the executor is not looked at.  Another policy than the source's knows
 * nothing but the live jobs.  -EINVAL with the reason if the policy cannot be set up.
 */
int engine_snapshot_take(struct engine_snapshot *snapshot, const struct engine *source,
                         const struct engine_copy_setup *setup, struct error *err);
void engine_snapshot_release(struct engine_snapshot *snapshot);

/* Obeys and does nothing: of a copy in which one decision is all that matters. */
extern const struct executor engine_copy_nothing;
