/*
 * slurm_driver.h - the one interface behind which Slurm sits: its library, or its commands.
 *
 * Two threads call a driver at the same time: one looks, the other carries out verbs.
 * Any call can block for as long as Slurm's own time-outs last.
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

/* Who hears what a look found. */
struct slurm_observer {
    void *self;
    void (*node)(void *self, const struct slurm_node *node);
    void (*job)(void *self, const struct slurm_job *job);

    /* Something is there but cannot be trusted; 'id' 0: not even known which job. */
    void (*doubt)(void *self, uint32_t id, const char *why);
};

/* What one look brought. */
struct slurm_poll {
    bool jobs; /* all jobs were shown; false: nothing has changed since the last look */
    bool
        nodes; /* the same of the nodes                                               */
};

/* What came of a verb. */
struct verb_result {
    bool ok;
    bool transient; /* the same verb may well succeed later */
    int code;       /* Slurm's own; 0: it has none          */
    char error[320];
};

struct slurm_driver {
    const char *name;
    size_t self_size; /* private state: zeroed */

    /* Does not ask slurmctld: it may be away. */
    int (*open)(void *self, struct error *err);

    /* What the site has set.  -EAGAIN: slurmctld does not answer now. */
    int (*site)(void *self, struct slurm_site *ret_site, struct error *err);

    /*
     * Show all nodes and jobs, or say that nothing has changed.  'afresh': show all in any
     * case.  -EAGAIN with the reason: Slurm does not answer; nothing that was shown before
     * counts.  'scratch' is emptied after the call.
     */
    int (*look)(void *self, bool afresh, const struct slurm_observer *eyes,
                struct slurm_poll *ret_look, struct arena *scratch, struct error *err);

    /* Carry a verb out; 'text' takes what it brings, a script. */
    void (*carry_out)(void *self, const struct bridge_request *request,
                      struct verb_result *answer, struct buf *text,
                      struct arena *scratch);
};

extern const struct slurm_driver slurm_driver_commands;
extern const struct slurm_driver slurm_driver_libslurm; /* where it is built in */

/* Write the reason into an answer that is not ok. */
void verb_result_fail(struct verb_result *answer, int code, bool transient,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
