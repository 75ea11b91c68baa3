/*
 * marker.h - the one interface behind which every way to mark packets sits.
 *
 * A marker keeps the marks in the kernel equal to a list of targets.  It changes nothing
 * that does not belong to those jobs, and removes its marks when it is closed.  Only the
 * capabilities it needs are held while it works.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct dscp_levels;
struct mark_target;

/* The marks to set, from 'now_ns' until 'until_ns' unless they are set again. */
struct marking {
    const struct mark_target *targets; /* by id */
    uint32_t count;
    int64_t now_ns, until_ns; /* of the monotonic clock */
    bool rebuild;             /* the last try failed: assume nothing of what is set */
};

struct marker {
    const char *name;
    const char *brief;       /* one line for --check */
    const int *capabilities; /* that it needs, ended by -1 */
    size_t self_size;        /* private state, zeroed before open */

    /* Whether it works here, by trying and undoing; negative with the reason. */
    int (*probe)(struct error *why);

    int (*open)(void *self, const struct dscp_levels *levels, struct error *err);

    /* Whether it can mark this job's packets. */
    bool (*reaches)(const struct mark_target *target);

    /*
     * Set the marks: called when something has changed, and every second or so.  On
     * failure nothing has changed, and it is called again.
     */
    int (*apply)(void *self, const struct marking *marking, struct error *err);

    /* Optional: the bytes that each job has sent since it was first marked. */
    void (*bytes)(void *self, void (*each)(void *context, uint64_t id, uint64_t bytes),
                  void *context);

    /* Remove all marks and release everything. */
    void (*close)(void *self);
};

/* All of them, best first, ended by NULL. */
extern const struct marker *const marker_list[];

/* NULL: there is none of that name in this build. */
const struct marker *marker_find(const char *name);
