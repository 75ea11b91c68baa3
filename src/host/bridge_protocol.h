/*
 * bridge_protocol.h - the words that berthd and berth-slurm have in common: verbs, and the
 * states of jobs, as they stand in the lines of JSON (docs/internals/slurm.md).
 */
#pragma once

#include <stdbool.h>

/* What berthd asks for. */
enum bridge_verb {
    VERB_START,
    VERB_SIGNAL,
    VERB_EVICT,
    VERB_REVIVE,
    VERB_HOLD,
    VERB_RELEASE,
    VERB_CANCEL,
    VERB_PARK,
    VERB_COMMENT,
    VERB_SCRIPT,
    VERB_POLL,
};

/* Where a job stands in Slurm; whether it is completing besides is said apart. */
enum bridge_state {
    BRIDGE_UNKNOWN, /* a state that we have no name for: it has ended */
    BRIDGE_PENDING,
    BRIDGE_RUNNING,
    BRIDGE_SUSPENDED,
    BRIDGE_COMPLETING, /* it still has its nodes; what it will be is not known yet */
    BRIDGE_COMPLETED,  /* from here on it has ended */
    BRIDGE_CANCELLED,
    BRIDGE_FAILED,
    BRIDGE_TIMEOUT,
    BRIDGE_NODE_FAIL,
    BRIDGE_PREEMPTED,
    BRIDGE_BOOT_FAIL,
    BRIDGE_DEADLINE,
    BRIDGE_OUT_OF_MEMORY,
    BRIDGE_GONE, /* Slurm has forgotten it */
};

const char *bridge_verb_name(enum bridge_verb verb);

/* False: there is no such verb. */
bool bridge_verb_find(const char *name, enum bridge_verb *ret_verb);

const char *bridge_state_name(enum bridge_state state);
enum bridge_state bridge_state_find(const char *name); /* or BRIDGE_UNKNOWN */

static inline bool bridge_state_runs(enum bridge_state state)
{
    return state >= BRIDGE_RUNNING && state <= BRIDGE_COMPLETING;
}

static inline bool bridge_state_has_ended(enum bridge_state state)
{
    return state == BRIDGE_UNKNOWN || state >= BRIDGE_COMPLETED;
}
