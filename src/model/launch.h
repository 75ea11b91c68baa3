/*
 * launch.h - what it takes to run a job: the part that no policy needs.
 *
 * Policies see what a job needs (job.h); executors that start real processes see this
 * as well.  Texts are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Exit status of a job that has checkpointed and wants to be queued again. */
#define LAUNCH_SAVED 85
#define LAUNCH_SAVED_TOO 99 /* as other systems spell it */

struct launch {
    uint64_t id;             /* public                                            */
    const char *name;        /* or NULL                                           */
    const char *const *argv; /* ended by NULL; with a script: its arguments       */
    const char *script;      /* a batch script's text, run by its #! line; or NULL */
    const char *cwd;
    const char *const
        *env;        /* "NAME=value", ended by NULL: all it is to see, but for ours */
    const char *out; /* where its output goes: %j %x %u %A %a %n; NULL: our place */
    const char *err; /* NULL: with its output                             */
    const char *ckpt_dir; /* kept across attempts; NULL: one of ours           */
    const char *pattern;  /* of progress in its output: a regular expression; or NULL */
    const char *progress; /* a file of lines "STEP LOSS" that it writes; or NULL */
    int signal;           /* that asks it to stop; 0: SIGTERM                  */
    const char *signal_to; /* "batch", "steps" or "all" of a Slurm job; NULL: none    */
    int64_t limit_ns;      /* longest run of an attempt; 0: none                */
    bool limit_warns;      /* the signal comes before the limit as well         */
    int64_t warn_ns;       /* so long before it                                 */
    bool slurm_names;      /* wants the usual SLURM_* variables                 */
    uint32_t tasks_per_node; /* ranks that we start on each node; 0: one, unranked */
    uint64_t array_id;       /* the first job of its array; 0: none               */
    uint32_t array_index;
    bool has_steps;       /* its progress is in its own steps, not in seconds  */
    int64_t submitted_ns; /* to Slurm, by its clock; 0: not, or not known       */
    uint32_t uid, gid;    /* of its owner                                      */
    const char *user;     /* its owner's name, for %u; NULL: unknown            */
    bool te;              /* of the trial class                                */
    uint32_t umask;       /* of its submitter; 0: the usual one                */
};
