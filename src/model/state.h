/* state.h - the cluster as we know it; changed by events only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/calendar.h"
#include "model/event.h"
#include "model/free_index.h"
#include "model/pair_table.h"
#include "model/rate_table.h"
#include "model/throughput.h"
#include "model/view.h"

struct arena;

#define SEAT_CLASSES 21 /* rows of 1, 2, 4, … 2^20 seats */

/* What 'victim' will free for 'successor' on one node. */
struct pending_share {
    job_id victim, successor;
    struct room_part part;
    uint32_t next_of_victim;
    uint32_t next_of_successor;
};

/* In how many rows of seats, held or pending, each GPU of a node is. */
struct holds {
    uint64_t digit[3]; /* binary, an accelerator per bit: up to seven */
};

struct state {
    struct view view; /* what policies see of all this */

    struct job *jobs;
    uint32_t job_max;
    uint32_t job_count;    /* slots ever used       */
    uint32_t free_slot;    /* first of a list, by job.pending_from */
    struct state_ids *ids; /* slots by public id, once one is looked for */
    uint64_t id_next;      /* next public id        */

    struct seat *seats;
    uint32_t seat_used;
    uint32_t seat_max;
    uint32_t seat_free[SEAT_CLASSES]; /* lists of free rows, by seat.node */

    struct pending_share *pending_shares;
    uint32_t pending_used;
    uint32_t pending_max;
    uint32_t pending_free;

    struct loss_ring *losses;
    uint32_t loss_used;
    uint32_t loss_free;

    struct free_index free;
    struct holds *holds; /* by node */
    bool *node_down;
    uint64_t *foreign; /* by node: accelerators in use by others than our jobs */
    struct calendar calendar;

    bool learns;                  /* rates are learned from reports             */
    struct rate_table rates;      /* so far                                     */
    struct throughput throughput; /* as given, with what was learned            */
    struct rate_track *tracks;    /* by slot: what jobs reported last           */
    struct pair_table pairs;      /* and what they keep beside others             */
    job_id *rated;                /* jobs whose expected rates have changed     */
    uint32_t rated_count;
    bool *is_rated; /* by slot */

    int64_t *served_ns; /* GPU-time by [slot * type_count + type] */

    /* Jobs besides the event's own that the last event changed: partners, and jobs with
     * pending shares.  For observers that keep a copy of each job. */
    job_id *touched;
    uint32_t touched_count;
    bool *is_touched; /* by slot */

    struct node_set *sets; /* of a copy, by place; or NULL */

    uint32_t live_count;    /* jobs submitted and not ended */
    uint32_t waiting_count; /* JOB_WAITING                  */
    uint32_t seated_count;  /* in their seats               */
};

/* Sized by ceilings; memory is taken as it is used. */
void state_init(struct state *state, struct arena *run, const struct cluster *cluster,
                const struct throughput *rates, uint32_t job_max);
void state_release(struct state *state);

/*
 * Apply an event.  A SUBMITTED event gets its slot here ('job' and
 * 'generation' are written).  Returns false, and changes nothing, for an event of an
 * attempt that is over: such events are late, not wrong.  After a job's end its record
 * can be read until the next submission.
 */
bool state_apply(struct state *state, struct event *event);

/* The slot of a live job, or JOB_NONE. */
job_id state_find(const struct state *state, uint64_t id);

/*
 * Make 'copy' the same as a state of the same cluster, or of its first nodes, with room for at least
 * as many jobs: each job in the same slot.  It learns no rates, and reads those of the other one, which must not change as
 * long as the copy is used; nor must the sets of nodes that its jobs hold.  Further memory is taken
 * from 'run' the first time.
 */
void state_copy(struct state *copy, const struct state *state, struct arena *run);

/*
 * The same once: a new copy that needs nothing of the other state any more but the cluster and the
 * rates that were given, so that it can be used while that one changes.
 */
void state_copy_apart(struct state *copy, const struct state *state, struct arena *run);

/* For state_copy(): public ids are looked up anew. */
void state_forget_ids(struct state *state);
