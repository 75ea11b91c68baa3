/*
 * flow.h - the one interface behind which every flow policy sits: which job's packets
 * go first.
 *
 * A flow policy runs beside any job policy.  It gives each job that uses the network a
 * level, 0 the first; the network serves levels strictly in order and shares fairly
 * within one.  To add one: write src/flow/<name>.c that ends in a 'const struct
 * flow_policy flow_<name>', and add it to the list in registry.c.
 *
 * A job has one level, valid on all its hosts.  Packets carry the mark of the host that
 * sent them to the port of the one that gets them, where those of many senders meet: a
 * level with different meanings on two hosts would let a job pass that ought to wait.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/param.h"
#include "model/view.h"

struct arena;
struct error;
struct event;

#define FLOW_LEVELS_MAX 64

/* What a flow policy returns: levels that change, and when to decide again. */
struct flow_change {
    job_id job;
    uint32_t level;
};

struct flow_plan {
    struct flow_change *changes; /* room for one of every job */
    uint32_t change_count;
    int64_t wake_ns; /* INT64_MAX: at the next event */
};

/* Why a job has its level. */
struct flow_reason {
    double score;   /* more goes first; NAN: there is none */
    char text[200]; /* a sentence without a full stop      */
};

struct flow_policy {
    const char *name;           /* as written in config, CLI, API and docs   */
    const char *brief;          /* one line                                  */
    const char *source;         /* the paper it comes from                   */
    const struct field *params; /* its settings, stored in self before init  */
    size_t self_size;           /* private state: zeroed, lives with the run */

    /* Optional.  Prepare private state; 'run' outlives the policy. */
    int (*init)(void *self, const struct view *view, struct arena *run,
                struct error *err);

    /* Optional.  Learn from an event, as a job policy does. */
    void (*observe)(void *self, const struct view *view, const struct event *event);

    /*
     * Optional.  Put into 'plan' the levels that change from view->now_ns on.  Called
     * after the orders of every step, and at the time the plan asks for; without it no
     * job has a level.  The rules are those of a job policy: same view and same self,
     * same plan.  On failure the levels stay as they are.
     */
    int (*decide)(void *self, const struct view *view, struct flow_plan *plan,
                  struct error *err);

    /*
     * Optional.  Explain the level of a running job, in this policy's own terms.
     * Called between decisions; changes nothing.
     */
    void (*explain)(const void *self, const struct view *view, job_id job,
                    struct flow_reason *reason);

    /* Optional.  Release what does not live in an arena. */
    void (*fini)(void *self);
};

/* Set a level; nothing is written where the job has it already. */
void flow_set(struct flow_plan *plan, const struct view *view, job_id job,
              uint32_t level);

/* Decide again at that time, or earlier. */
void flow_wake(struct flow_plan *plan, int64_t at_ns);

/* The number of levels it uses, by its settings; 1: none. */
uint32_t flow_levels(const struct flow_policy *policy, const void *self);

/* NULL if there is no flow policy of that name. */
const struct flow_policy *flow_find(const char *name);

/* As policy_parse(). */
int flow_parse(const char *text, const struct flow_policy **ret_policy,
               const char **ret_settings, struct error *err);

/* All of them, ended by NULL, in the order shown to users. */
extern const struct flow_policy *const flow_list[];
