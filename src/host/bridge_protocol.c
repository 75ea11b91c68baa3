/* bridge_protocol.c - names of verbs and states. */
#include "host/bridge_protocol.h"

#include <stddef.h>
#include <string.h>

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

static const char *const verb_names[] = {
    [VERB_START] = "start",   [VERB_SIGNAL] = "signal", [VERB_EVICT] = "evict",
    [VERB_REVIVE] = "revive", [VERB_HOLD] = "hold",     [VERB_RELEASE] = "release",
    [VERB_CANCEL] = "cancel", [VERB_PARK] = "park",     [VERB_COMMENT] = "comment",
    [VERB_SCRIPT] = "script", [VERB_POLL] = "poll",
};

static const char *const state_names[] = {
    [BRIDGE_UNKNOWN] = "UNKNOWN",
    [BRIDGE_PENDING] = "PENDING",
    [BRIDGE_RUNNING] = "RUNNING",
    [BRIDGE_SUSPENDED] = "SUSPENDED",
    [BRIDGE_COMPLETING] = "COMPLETING",
    [BRIDGE_COMPLETED] = "COMPLETED",
    [BRIDGE_CANCELLED] = "CANCELLED",
    [BRIDGE_FAILED] = "FAILED",
    [BRIDGE_TIMEOUT] = "TIMEOUT",
    [BRIDGE_NODE_FAIL] = "NODE_FAIL",
    [BRIDGE_PREEMPTED] = "PREEMPTED",
    [BRIDGE_BOOT_FAIL] = "BOOT_FAIL",
    [BRIDGE_DEADLINE] = "DEADLINE",
    [BRIDGE_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
    [BRIDGE_GONE] = "GONE",
};

/* The place of a name in the list, or 'count'. */
static size_t find_name(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

const char *bridge_verb_name(enum bridge_verb verb)
{
    return verb_names[verb];
}

bool bridge_verb_find(const char *name, enum bridge_verb *ret_verb)
{
    size_t i = find_name(verb_names, COUNT(verb_names), name);
    if (i < COUNT(verb_names))
        *ret_verb = (enum bridge_verb)i;
    return i < COUNT(verb_names);
}

const char *bridge_state_name(enum bridge_state state)
{
    return state_names[state];
}

enum bridge_state bridge_state_find(const char *name)
{
    size_t i = find_name(state_names, COUNT(state_names), name);
    return i < COUNT(state_names) ? (enum bridge_state)i : BRIDGE_UNKNOWN;
}
