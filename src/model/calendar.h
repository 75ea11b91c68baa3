/*
 * calendar.h - when which nodes or GPUs are not for everybody.
 *
 * An entry takes GPUs of a node out of use from one time to another, or sets them aside for the
 * jobs of one user.  Entries are part of the state: they come, begin and end by events, in a
 * simulation and in a daemon alike.  A plan puts no job where it would run into an entry
 * (calendar_leaves_ns()), and the engine stops jobs that are still there a grace period before an
 * entry begins.
 *
 * Maintenance, reservations of users and those of Slurm are entries; an empty calendar costs
 * nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/job.h"

struct buf;
struct cluster;
struct view;

#define CALENDAR_OWNER_MAX 64

struct calendar_entry {
    uint64_t id; /* by which it can be changed */
    node_id node;
    uint64_t gpus; /* which of the node's; all: the whole node, its CPUs as well */
    int64_t from_ns, to_ns; /* it is in force from the first to before the second */
    uint32_t user;          /* whose jobs may use them (job.user); 0: no job may */
    char owner[CALENDAR_OWNER_MAX]; /* the name that 'user' is the number of; or ""  */
};

struct calendar {
    struct calendar_entry *entries; /* in the order in which they were added */
    uint32_t count, room;
};

static inline void calendar_release(struct calendar *calendar)
{
    free(calendar->entries);
    *calendar = (struct calendar){ 0 };
}

/* Add an entry (or NULL), or replace the one with its id; then remove those that have ended. */
void calendar_update(struct calendar *calendar, const struct calendar_entry *entry,
                     int64_t now_ns);

/*
 * All entries as text, a line each, and an entry from such a line: false if it is not one of this
 * cluster's.  Numbers of users are not kept, since they differ from run to run: 'user' is 0.
 */
void calendar_write(const struct calendar *calendar, const struct cluster *cluster,
                    struct buf *buf);
bool calendar_read(const char *line, const struct cluster *cluster,
                   struct calendar_entry *ret_entry);

/* The next time after 'after_ns' at which an entry begins or ends; INT64_MAX: none. */
int64_t calendar_next_ns(const struct calendar *calendar, int64_t after_ns);

/* The entry is in force some time in [from_ns, until_ns), and not for jobs of this user. */
static inline bool calendar_bars(const struct calendar_entry *entry, uint32_t user,
                                 int64_t from_ns, int64_t until_ns)
{
    return (entry->user == 0 || entry->user != user) && entry->from_ns < until_ns &&
           entry->to_ns > from_ns;
}

/* The whole node is meant: jobs without GPUs are not to run there either. */
bool calendar_is_whole(const struct cluster *cluster,
                       const struct calendar_entry *entry);

/*
 * When a job will have left, with its grace period, if it starts in 'wait_ns': by its declared work
 * on the slowest type that it may use.  A job whose work is not known is taken to run for an hour,
 * since it can be stopped; one that may not be preempted is taken to run for ever.
 */
int64_t calendar_leaves_ns(const struct view *view, job_id job, int64_t wait_ns);

/*
 * GPUs of a node that a job must not use if it starts in 'wait_ns', by when it will have left; all
 * bits: nor anything else there.
 */
uint64_t calendar_barred(const struct view *view, job_id job, node_id node,
                         int64_t wait_ns);

/*
 * When a running job has to be told to stop, so that it leaves before the next entry that it must
 * not run into; INT64_MAX: never.  A grace period counts for an hour at most.
 */
int64_t calendar_stop_ns(const struct view *view, job_id job);
