/*
 * policy.h - the one interface behind which every scheduling policy sits.
 *
 * The simulator and the daemon call a policy through this table and in no other way.
 * To add one: write src/policy/<name>.c that ends in a 'const struct policy
 * policy_<name>', and add it to the list in registry.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/param.h"
#include "model/plan.h"

struct arena;
struct error;
struct instance_rule;
struct reasons;

struct policy {
    const char *name;           /* as written in config, CLI, API and docs   */
    const char *brief;          /* one line for 'berth policies'             */
    const char *source;         /* the paper or book it comes from           */
    const struct field *params; /* its settings, stored in self before init  */
    size_t self_size;           /* private state: zeroed, lives with the run */

    /* Optional.  How 'berth solve' asks it (policy/shared/instance_rule.h). */
    const struct instance_rule *instance;

    /* Optional.  Prepare private state; 'run' outlives the policy. */
    int (*init)(void *self, const struct view *view, uint64_t seed, struct arena *run,
                struct error *err);

    /*
     * Optional.  Learn from something that happened: a new job, a loss report, a
     * failed node, the end of a job.  Called once per event, before decide().  A
     * policy that takes over gets one EVENT_ADOPTED for every live job.
     */
    void (*observe)(void *self, const struct view *view, const struct event *event);

    /*
     * Optional.  Learn of a job that had its seats between these times, before this
     * policy took over: its user, entity, name and class, GPU-time in seats, and
     * 'steps' of work if it finished (0: it did not).  Called before any EVENT_ADOPTED.
     */
    void (*recall)(void *self, const struct view *view, const struct job *job,
                   int64_t start_ns, int64_t end_ns);

    /*
     * Optional.  Take over from 'from', the state of the same policy with the same settings, what
     * the events of live jobs do not tell.  Called before the first EVENT_ADOPTED; 'view' has the
     * same jobs in the same slots, and 'from' is not changed.
     */
    void (*inherit)(void *self, const struct view *view, const void *from);

    /*
     * Put into 'plan' what should change from view->now_ns on.  Called after every
     * batch of events (except those that merely confirm an order: started, loaded) and
     * at the time that the policy asked for.
     *
     * Same view and same self give the same plan: no clock, no random numbers but those
     * seeded in self, no I/O.  'scratch' is emptied after the call.  On failure return
     * a negative errno and say why; the plan is then discarded and the cluster keeps
     * running what it runs.  So is a plan that does not pass plan_check().
     */
    int (*decide)(void *self, const struct view *view, struct plan *plan,
                  struct arena *scratch, struct error *err);

    /*
     * Optional.  When its next timer is due; INT64_MAX: it has none.  Asked after every
     * batch of events and every decision, so a timer that observe() sets counts even
     * where no decision follows.  plan_wake() is for what only a decision knows.
     */
    int64_t (*wake_ns)(const void *self, const struct view *view);

    /*
     * Optional.  Say why a waiting job waits, in this policy's terms, and which jobs
     * are ahead of it.  Called between decisions; changes nothing.
     */
    void (*explain)(const void *self, const struct view *view, job_id job,
                    struct reasons *reasons);

    /* Optional.  Release what does not live in an arena, such as an LP model. */
    void (*fini)(void *self);
};

/* What berthd and 'berth sim' use where nothing is said. */
#define POLICY_STANDARD "berth"

/* NULL if there is no policy of that name. */
const struct policy *policy_find(const char *name);

/*
 * "NAME" or "NAME,setting=value,…": the policy and where its settings start in 'text'.
 * -EINVAL with the nearest names if there is none, or if a setting is wrong.
 */
int policy_parse(const char *text, const struct policy **ret_policy,
                 const char **ret_settings, struct error *err);

/* All of them, ended by NULL, in the order shown to users. */
extern const struct policy *const policy_list[];
