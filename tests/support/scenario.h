/*
 * scenario.h - one world with faults, from a seed, played to its end.
 *
 * The real engine with a real policy, the real store in SQLite, recovery as berthd does it,
 * and the machines of ground.h.  Everything that can go wrong is drawn from the seed, so the
 * same seed and policy play the same world.  After every event the books are checked; after
 * every step they are compared with what is so on the faulty.  The daemon dies at any point
 * and is built again from the store: all that must survive has to be as it was.  In the end
 * the faults stop, and every job has to come to its own end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/faulty.h"

struct policy;

/* Something that is wrong on purpose: it has to be noticed. */
enum defect {
    DEFECT_NONE,
    DEFECT_LOST_EVENT,    /* an end is taken for recorded and never was          */
    DEFECT_FREED_TWICE,   /* a GPU that is held is free as well                  */
    DEFECT_NO_COMMIT,     /* a commit says it is done and is not                 */
    DEFECT_STALE,         /* the answer of another attempt is taken for this one */
    DEFECT_TOLD_EARLY,    /* orders are told before they are durable             */
    DEFECT_HALF_GANG,     /* a gang starts with a node less                      */
    DEFECT_STARTED_EARLY, /* a job starts before those who are there have left   */
    DEFECT_FORGOTTEN,     /* a job is left out as the daemon starts again        */
    DEFECT_MISCOUNTED,    /* GPU-time is booked that nobody has had              */
    DEFECT_BUSY,          /* the policy is asked again at once, for ever         */
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
    bool shows;         /* each event as it happens                 */
    const char *folder; /* for the store: in memory, if there is one */
};

#define SCENARIO_REFUSED \
    3 /* status of a process whose policy made a plan that was refused */

/* Plays it.  What breaks ends the process by way of scenario_report(). */
void scenario_play(const struct scenario_setup *setup, struct scenario_counts *counts);

/* What led to it, on standard error: for whoever ends the process, also by a signal. */
void scenario_report(const char *why);
