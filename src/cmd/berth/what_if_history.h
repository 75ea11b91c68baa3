/*
 * what_if_history.h - what was run, where and by which policy: from berthd or from a file.
 *
 * More is read than is counted: jobs of a time as long before the period are played as well, so
 * that it begins with GPUs in use and with a policy that knows its users.  Jobs that have not
 * ended are played and not counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "sim/sim.h"

struct call;
struct error;

#define HISTORY_NOTES_MAX 8

struct history {
    struct arena arena;
    struct cluster cluster;
    struct job_spec *jobs; /* in order of submission, each with an id */
    bool *counted;
    uint64_t job_count, counted_count;
    struct sim_node_change *changes; /* of nodes, in order */
    uint32_t change_count;
    const char *policy;                 /* that was in charge, the last */
    const char *policy_first;           /* at time 0 */
    struct sim_policy_change *policies; /* that took over later, in order */
    uint32_t policy_count;
    uint64_t seed;
    double zero_s;          /* time 0 of the jobs, since 1970; NAN: not known */
    int64_t from_ns, to_ns; /* the period */
    const char *cluster_text, *text;
    const char *notes[HISTORY_NOTES_MAX]; /* sentences for people */
    uint32_t note_count;
};

void history_init(struct history *history);
void history_release(struct history *history);

/* The last 'last_ns' of what berthd has run. */
int history_ask(struct history *history, struct call *call, int64_t last_ns,
                struct error *err);

/*
 * Jobs of a file, on that cluster (NULL: the one that the file names) under that policy; those of
 * the last 'last_ns' before its last submission are counted, or all with 0.
 */
int history_read(struct history *history, const char *path, const char *format,
                 const char *cluster, const char *policy, int64_t last_ns,
                 struct error *err);

/* A sentence to be told with the figures. */
void history_note(struct history *history, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the same with changes (what_if_changes.c) ---- */

#define HISTORY_CHANGES_MAX 32

struct history_changes {
    const char *add[HISTORY_CHANGES_MAX];     /* "v100:2", "4xv100:8" */
    const char *remove[HISTORY_CHANGES_MAX];  /* names of nodes       */
    const char *without[HISTORY_CHANGES_MAX]; /* ids, "user=NAME"     */
    uint32_t add_count, remove_count, without_count;
};

/*
 * What is left and what is new.  'ret' borrows from 'history', and its arrays live in the arena of
 * that.  -EINVAL with a sentence that names the flag.
 */
int history_change(struct history *history, const struct history_changes *changes,
                   struct history *ret, struct error *err);
