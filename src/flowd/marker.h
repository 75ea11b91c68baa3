/*
 * marker.h - the one interface behind which every way to mark packets sits.
 *
 * A marker keeps the kernel equal to a list of targets.  It touches nothing that is not
 * the jobs', and at its end takes back what it did.  Only the capabilities it needs are
 * held while it works.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct dscp_levels;
struct mark_target;

/* What is to be so, from 'now' until 'until' unless somebody says it again. */
struct marking {
    const struct mark_target *targets; /* by id */
    uint32_t count;
    int64_t now_ns, until_ns; /* by a clock that never goes back */
    bool doubt; /* the last try failed: believe nothing of what is there */
};

struct marker {
    const char *name;
    const char *brief; /* what it does, one line */
    const int *needs;  /* capabilities, ended by -1 */
    size_t self_size;  /* private state, zeroed before open */

    /* Whether it works here and now, tried and undone; negative with the reason. */
    int (*probe)(struct error *why);

    int (*open)(void *self, const struct dscp_levels *levels, struct error *err);

    /* Whether it can mark this job's packets. */
    bool (*reaches)(const struct mark_target *target);

    /*
     * Make it so: called when something has changed, and every second or so.  On
     * failure nothing has changed, and it is called again.
     */
    int (*apply)(void *self, const struct marking *marking, struct error *err);

    /* Optional.  What each job has sent since it was first marked. */
    void (*bytes)(void *self, void (*each)(void *context, uint64_t id, uint64_t bytes),
                  void *context);

    /* Unmark everything and let go. */
    void (*close)(void *self);
};

/* All of them, best first, ended by NULL. */
extern const struct marker *const marker_list[];

/* NULL: there is none of that name here. */
const struct marker *marker_find(const char *name);
