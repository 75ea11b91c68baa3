/*
 * senders.h - the jobs that use the network now, in the order of a flow policy.
 *
 * Who sends is known in one of two ways.  A job that says how many bytes a step exchanges
 * sends them between its hosts.  Of one that does not say, its hosts count what it sends;
 * until they have, it is taken to send, and one that sends next to nothing does not count.
 * A step of such a job with the network to itself is the shortest one that was measured.
 *
 * What the flow policies share: who sends at all, how long a step of each takes with the
 * network to itself, the order, and what level that gives each of them.
 *
 * Levels are few, so they are given out by who meets whom.  In the policy's order, a job
 * gets the first level that is later than those of all before it that it shares a link
 * with:
 *
 *     level(j) = 1 + max level of earlier jobs on the same hosts or uplinks, at most the last
 *
 * Jobs that never meet do not use up each other's levels, and on every link levels go in
 * the one order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "flow/flow.h"
#include "net/topology.h"
#include "net/traffic.h"

/* What is measured wavers: one overtakes another if it is clearly ahead. */
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
    bool fresh;       /* has come since levels were last given out               */
    bool counted;     /* it says nothing of its bytes: its hosts count them      */
    bool measured;    /* ... and 'alone_s' is a step that was measured           */
    uint32_t slot;    /* of what a policy keeps for it; below 'slot_max'         */
};

struct senders {
    struct topology topology;
    struct sender *list; /* by place: those there are, in no order          */
    uint32_t count, room;
    uint32_t *places; /* by job, 1 + place; 0: does not send        */
    uint32_t *order;  /* places, in the policy's order              */
    uint32_t order_room;
    uint32_t *free_slots; /* a stack */
    uint32_t free_slot_count, free_slot_room;
    uint32_t slot_max;    /* ever used                                  */
    uint32_t *next_level; /* by host and then rack                      */
    uint32_t *stamps;     /* of which round 'next_level' is             */
    uint32_t round;
    bool changed; /* somebody came or went since levels were last given out */
    struct link_use *uses;
    uint32_t *hosts;
    uint32_t use_room, host_room;
};

void senders_init(struct senders *senders, const struct view *view, struct arena *run);
void senders_release(struct senders *senders);

/* Keep up with what happens.  True if this event makes or ends a sender. */
bool senders_observe(struct senders *senders, const struct view *view,
                     const struct event *event);

/* For explain(): that of a job, or NULL with a reason: it does not send. */
const struct sender *sender_explain(const struct senders *senders, job_id job,
                                    struct flow_reason *reason);

/* Bytes that it has sent so far: counted, or its steps times those of a step. */
double sender_sent(const struct view *view, const struct sender *sender);

/* That of a job, or NULL. */
struct sender *sender_find(const struct senders *senders, job_id job);

/*
 * Order by class, then by score.  Within a class one overtakes another only if its score is more than 'hysteresis'
 * times the other's; equal ones go by intensity, then by who came first.
 */
void senders_sort(struct senders *senders, const struct view *view, double hysteresis);

/* Give out levels in that order. */
void senders_levels(struct senders *senders, const struct view *view, uint32_t levels,
                    struct flow_plan *plan);
