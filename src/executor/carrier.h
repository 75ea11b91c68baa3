/*
 * carrier.h - an executor of the real world, as berthd has it: opened by its own function,
 * told what it had under way before a restart, told what has become durable, closed.
 *
 * Jobs go on while nobody is there: close() lets go of them, reattach() takes them up again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "executor/executor.h"

struct error;
struct event;

struct carrier {
    const struct executor *executor; /* its 'self' is ours too */

    /* Run the loop until it has nothing more to do before you close that. */
    void (*close)(void *self);

    /*
     * After a restart, for every job that the state says is placed, in its seats or
     * stopping.  What has become of it arrives as events.  All jobs are named before the
     * loop runs again; then settle() is called.
     */
    int (*reattach)(void *self, const struct lease *lease, bool stopping,
                    int64_t grace_left_ns, struct error *err);
    void (*settle)(void *self);

    /* For engine_listen(), behind the store: what was told, and that it is durable. */
    void (*event)(void *self, const struct view *view, const struct event *event);
    int (*commit)(void *self, struct error *err);

    /* Jobs under way, for figures. */
    uint32_t (*count)(const void *self);
};
