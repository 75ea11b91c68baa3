/*
 * slurm_driver.h - the interface to Slurm: by its library, or by its commands.
 *
 * Two threads call a driver at the same time: one polls, the other executes verbs.  Any
 * call can block for as long as Slurm's timeouts last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slurm/slurm_record.h"

struct arena;
struct buf;
struct error;
struct bridge_request;

/* Receives the records of a poll. */
struct slurm_observer {
    void *self;
    void (*node)(void *self, const struct slurm_node *node);
    void (*job)(void *self, const struct slurm_job *job);

    /* A record cannot be trusted; 'id' 0: not even its job is known. */
    void (*unreadable)(void *self, uint32_t id, const char *why);
};

/* What one poll reported. */
struct slurm_poll {
    bool jobs; /* all jobs were reported; false: none has changed since the last poll */
    bool nodes; /* the same of the nodes */
};

/* The result of a verb. */
struct verb_result {
    bool ok;
    bool transient; /* the same verb may succeed later */
    int code;       /* of Slurm; 0: none                    */
    char error[320];
};

struct slurm_driver {
    const char *name;
    size_t self_size; /* private state: zeroed */

    /* Does not contact slurmctld, which may be down. */
    int (*open)(void *self, struct error *err);

    /* Query the settings of the site.  -EAGAIN: slurmctld does not answer now. */
    int (*site)(void *self, struct slurm_site *ret_site, struct error *err);

    /*
     * Report all nodes and jobs to the observer, or neither where nothing has changed; with
     * 'all', report them in any case.  -EAGAIN with the reason: Slurm does not answer, and
     * earlier reports no longer count.  'scratch' is emptied after the call.
     */
    int (*poll)(void *self, bool all, const struct slurm_observer *observer,
                struct slurm_poll *ret_poll, struct arena *scratch, struct error *err);

    /* Execute a verb; 'text' receives the script that it may return. */
    void (*execute)(void *self, const struct bridge_request *request,
                    struct verb_result *result, struct buf *text,
                    struct arena *scratch);
};

extern const struct slurm_driver slurm_driver_commands;
extern const struct slurm_driver slurm_driver_libslurm; /* where it is built in */

/* Make a result that is not ok, with the reason. */
void verb_result_fail(struct verb_result *result, int code, bool transient,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
