/*
 * pair_ledger.h - what jobs that shared GPUs gained and lost by it.
 *
 * An entry opens when two jobs that hold the same GPUs make steps together for the first time,
 * and closes when one of them leaves the GPUs.  In between it counts the time in which both make
 * steps, and for each job the time that it would have needed alone for the steps it made, by
 * the rate that was expected of it alone when the two began:
 *
 *     kept   = time alone / time shared, of each job
 *     gained = (kept by one + kept by the other - 1) * time shared * GPUs
 *     lost   = GPU-time of the stops by which pairs were formed or parted: to checkpoint,
 *              to resume, and for work done twice
 *
 * A stop forms a pair if the job moves at once to GPUs that it shares there; it parts one if
 * its partner stays.  Other stops are those of the preemptions in the ledger.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"
#include "model/view.h"

struct arena;
struct pair_ledger_job;

/* One pair, from when both first make steps until one of them leaves. */
struct pair_entry {
    uint64_t jobs[2]; /* public ids, the smaller first                          */
    int64_t from_ns;
    int64_t to_ns; /* -1: they still hold the same GPUs                      */
    uint32_t gpus;
    int64_t shared_ns; /* booked so far                                          */
    double alone_s[2]; /* for the steps that each has made in this time          */
    int64_t lost_ns;   /* GPU-time of stops                                      */
    int64_t since_ns;  /* both make steps since then, not yet booked; -1: not now */
    double steps[2];   /* of each at 'since_ns'                                  */
    double rates[2];   /* steps per second that were expected of each alone      */
    job_id slots[2];   /* while it is open                                       */
    uint32_t next_free;
};

/* All pairs. */
struct pair_totals {
    uint64_t pairs;   /* entries so far */
    uint64_t running; /* those in which both make steps now */
    double shared_gpu_s, gained_gpu_s, lost_gpu_s;
};

struct pair_ledger {
    /* Optional.  Called when an entry opens, is booked or closes. */
    void (*observe)(void *context, const struct pair_entry *entry);
    void *context;
    struct pair_ledger_job *jobs; /* by slot */
    struct pair_entry *entries;
    uint32_t entry_used, entry_room, entry_free;
    uint32_t busy_count; /* jobs of an entry, or with a stop that is to be booked */
    struct pair_totals booked;
};

void pair_ledger_init(struct pair_ledger *ledger, struct arena *run,
                      const struct view *view);
void pair_ledger_release(struct pair_ledger *ledger);

/* An event that was applied to the state. */
void pair_ledger_event(struct pair_ledger *ledger, const struct view *view,
                       const struct event *event);

/* Totals up to now. */
void pair_ledger_totals(const struct pair_ledger *ledger, const struct view *view,
                        struct pair_totals *ret_totals);

/* The entry of a job that shares GPUs now, up to now.  False: there is none. */
bool pair_ledger_find(const struct pair_ledger *ledger, const struct view *view,
                      job_id job, struct pair_entry *ret_entry);

/* The figures of an entry: the part of its speed that a job kept; NAN in the first second. */
double pair_entry_kept(const struct pair_entry *entry, int which);
double pair_entry_gained_gpu_s(const struct pair_entry *entry);

/*
 * After a restart, when all jobs are back: the totals of what was booked, and each entry that was
 * open.  One of jobs that no longer share is closed.
 */
void pair_ledger_restore_totals(struct pair_ledger *ledger,
                                const struct pair_totals *booked);
void pair_ledger_restore(struct pair_ledger *ledger, const struct view *view,
                         const job_id slots[2], const struct pair_entry *kept);

/* Book what is open, at the end of a run. */
void pair_ledger_end(struct pair_ledger *ledger, const struct view *view);
