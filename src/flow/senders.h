/*
 * senders.h - the jobs that use the network now, in the order of a flow policy.
 *
 * Senders are known in one of two ways.  A job that declares the bytes of a step sends
 * them between its hosts.  For a job that does not, its hosts count what it sends;
 * until they have, it counts as a sender, and one that sends next to nothing does not.
 * A step of such a job with the network to itself is the shortest one that was
 * measured.
 *
 * This is what the flow policies share: which jobs send, how long a step of each takes
 * with the network to itself, the order, and the level that follows for each of them.
 *
 * Levels are few, so they depend on which jobs share links.  In the policy's order, a
 * job gets the first level that is later than those of all earlier jobs with which it
 * shares a link:
 *
 *     level(j) = 1 + max level of earlier jobs on the same hosts or uplinks, at most the last
 *
 * Jobs that share no link do not use up each other's levels, and on every link levels
 * go in the policy's order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "flow/flow.h"
#include "net/topology.h"
#include "net/traffic.h"

/* Measurements vary: a job overtakes another if it is clearly ahead. */
#define SENDERS_CLEARLY 1.1

struct arena;

struct sender {
    job_id job;
    uint32_t class;   /* less goes first, whatever the score                     */
    double score;     /* more goes first                                         */
    double step_s;    /* computing time of a step                                */
    double send_s;    /* a step's communication with the network to itself       */
    double alone_s;   /* a step with the network to itself                       */
    double bytes;     /* a step sends so many over its busiest link              */
    double intensity; /* GPU-time of computing per time of communication (Crux)  */
    bool fresh;       /* added since levels were last assigned */
    bool counted;     /* it does not declare its bytes: its hosts count them */
    bool measured;    /* ... and 'alone_s' is a step that was measured           */
    uint32_t slot;    /* index of what a policy keeps for it; below 'slot_max' */
};

/* What the private state of a flow policy begins with. */
struct senders {
    uint32_t levels; /* a setting */
    struct topology topology;
    struct sender *list; /* by index, in no order */
    uint32_t count, room;
    uint32_t *places; /* by job, 1 + index; 0: does not send */
    uint32_t *order;  /* indices, in the policy's order */
    uint32_t order_room;
    uint32_t *free_slots; /* a stack */
    uint32_t free_slot_count, free_slot_room;
    uint32_t slot_max;    /* ever used                                  */
    uint32_t *next_level; /* by host and then rack                      */
    uint32_t *stamps;     /* in which round 'next_level' was set */
    uint32_t round;
    bool changed; /* a sender was added or removed since levels were last assigned */
    struct link_use *uses;
    uint32_t *hosts;
    uint32_t use_room, host_room;
};

/* The row of a table of settings, and a table with no other. */
#define SENDERS_PARAM_LEVELS \
    { \
        "levels", FIELD_COUNT, offsetof(struct senders, levels), "8", NULL, \
            "levels the network has", 1, FLOW_LEVELS_MAX \
    }
extern const struct field senders_params[];

/* Functions of a flow policy; its own ones call these. */
int senders_init(void *self, const struct view *view, struct arena *run,
                 struct error *err);
void senders_observe(void *self, const struct view *view, const struct event *event);
void senders_fini(void *self);

/* Update from an event.  True if it adds or removes a sender. */
bool senders_update(struct senders *senders, const struct view *view,
                    const struct event *event);

/* For explain(): the sender of a job, or NULL with a reason: it does not send. */
const struct sender *sender_explain(const struct senders *senders, job_id job,
                                    struct flow_reason *reason);

/* The sender of a job, or NULL. */
static inline struct sender *sender_find(const struct senders *senders, job_id job)
{
    uint32_t place = senders->places[job];
    return place ? &senders->list[place - 1] : NULL;
}

/*
 * Order by class, then by score.  Within a class a sender overtakes another only if its
 * score is more than 'hysteresis' times the other's; equal ones go by intensity, then
 * by submission.
 */
void senders_sort(struct senders *senders, const struct view *view, double hysteresis);

/* Assign levels in that order. */
void senders_levels(struct senders *senders, const struct view *view,
                    struct flow_plan *plan);
