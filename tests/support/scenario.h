/*
 * scenario.h - a fault scenario: a random world with faults, run to its end.
 *
 * It has the real engine with a real policy, the real store in SQLite, recovery as in
 * berthd, and the executor of faulty.h.  All faults are drawn from the seed, so the same
 * seed and policy give the same scenario.  The state is checked after every event, and
 * compared with that of the executor after every step.  The scheduler crashes at any point
 * and is recovered from the store: everything durable has to be as it was.  In the end the
 * faults stop, and every job has to end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/faulty.h"

struct policy;

/* A defect on purpose, which has to be detected. */
enum defect {
    DEFECT_NONE,
    DEFECT_LOST_EVENT,    /* an end counts as recorded and is not                */
    DEFECT_FREED_TWICE,   /* a GPU of an allocation is also free                 */
    DEFECT_NO_COMMIT,     /* a commit succeeds without committing                */
    DEFECT_STALE,         /* a message of another attempt is accepted            */
    DEFECT_TOLD_EARLY,    /* orders are given before they are durable            */
    DEFECT_HALF_GANG,     /* a gang starts with one node less                    */
    DEFECT_STARTED_EARLY, /* a job starts before others have left its GPUs       */
    DEFECT_FORGOTTEN,     /* recovery leaves out a job                           */
    DEFECT_MISCOUNTED,    /* a job is charged for GPU time that it did not have  */
    DEFECT_BUSY,          /* the policy is called again at once, forever         */
    DEFECT_COUNT
};

extern const char *const defect_names[DEFECT_COUNT];

struct scenario_counts {
    uint64_t worlds, events, decisions, commits, jobs, rebuildings, refused;
    uint64_t faults[FAULT_COUNT];
};

struct scenario_setup {
    uint64_t seed;
    const struct policy *policy;
    enum defect defect;
    bool shows;         /* print each event                         */
    const char *folder; /* for the store: in memory, if there is one */
};

/* Status of a process with a policy that made an invalid plan. */
#define SCENARIO_REFUSED 3

/* Run a scenario.  An error ends the process, after scenario_report(). */
void scenario_play(const struct scenario_setup *setup, struct scenario_counts *counts);

/* Print the last events on standard error, before the process ends with an error. */
void scenario_report(const char *why);
