/*
 * ledger.h - what each preemption cost and saved.
 *
 * An entry opens when a job is preempted, and collects what that really costs: the time to
 * checkpoint, the work to do again, the time to resume.  What it saved the beneficiary is
 * known when the victim has ended, since only then is it known how long it would have run.
 * Then the entry is written and forgotten; the totals stay.
 *
 *     cost       = GPU-time of checkpoint + resuming + work done twice, of the victim
 *     wait saved = time at which the victim would have ended by itself, less the time at
 *                  which the beneficiary started; divided among all victims
 *
 * The loading of the beneficiary is not a cost of the preemption: it would have been paid
 * anyway.
 *
 * What jobs gained and lost by sharing GPUs is booked beside it (pair_ledger.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "metrics/pair_ledger.h"
#include "metrics/series.h"
#include "model/event.h"
#include "model/view.h"

struct arena;
struct ledger_job;

#define LEDGER_OPEN_MAX 64 /* entries kept open per victim; then the oldest is closed */

/* One preemption. */
struct ledger_entry {
    int64_t at_ns;
    uint64_t victim, beneficiary_id; /* public ids; 0: no beneficiary in particular */
    uint32_t number; /* of the victim's preemptions: 1, 2, …             */
    enum rule rule;
    uint32_t gpus;
    int64_t predicted_cost_ns; /* GPU-time */
    int64_t predicted_wait_ns;
    int64_t pause_ns, load_ns, redo_ns; /* GPU-time, as it came out */
    double steps, rate_per_s;           /* where the victim was     */
    int64_t started_ns;                 /* the beneficiary; -1: not yet */
    uint32_t shared_by; /* victims of the same beneficiary; 0: it never started */
    bool owes_load;     /* the victim's next loading is booked to it */
    job_id beneficiary; /* its slot, until it starts */
    uint32_t next_of_victim;
    uint32_t next_of_beneficiary;
};

struct ledger {
    FILE *file; /* a line per entry, or NULL; borrowed */
    /* Optional.  Called when an entry opens, changes or closes. */
    void (*observe)(void *context, const struct ledger_entry *entry,
                    double wait_saved_s, bool open);
    void *context;
    struct ledger_job *jobs; /* by slot */
    struct ledger_entry *entries;
    uint32_t entry_used, entry_room, entry_free;

    uint64_t preemptions;
    __int128 predicted_cost_ns; /* GPU-time */
    __int128 actual_cost_ns;
    double predicted_wait_saved_s;
    double wait_saved_s;
    int64_t first_ns; /* first submission; -1: none */
    struct series series;
    struct pair_ledger pairs; /* what sharing brought and cost */
};

/* Rows of the series: number and GPU-seconds, by time of the preemption. */
enum { LEDGER_PREEMPTIONS, LEDGER_PREDICTED, LEDGER_ACTUAL };

void ledger_init(struct ledger *ledger, struct arena *run, const struct view *view,
                 FILE *file);
void ledger_release(struct ledger *ledger);

/* For engine_add_observer(). */
void ledger_event(void *self, const struct view *view, const struct event *event);

/*
 * After a restart: what is known of a live job, then its entries that were open, oldest
 * first; 'beneficiary' is JOB_NONE once that job has started.
 */
void ledger_restore_job(struct ledger *ledger, const struct view *view, job_id job);
void ledger_restore_entry(struct ledger *ledger, const struct view *view, job_id victim,
                          const struct ledger_entry *entry);

/* Close what is open, with the estimates of jobs that have not ended. */
void ledger_end(struct ledger *ledger, const struct view *view, uint32_t slot_count);
