/*
 * prune.h - deleting what is old: reports of ended jobs, then the jobs themselves with all that
 * is known of them.
 *
 * Each call deletes a bounded number of rows, which it finds by an index, so it costs what it
 * deletes and not what exists.  What is written belongs to the next commit of the store.
 * Live jobs are never touched, so that a restart finds what it found before; neither are jobs
 * that live jobs need: tasks of the same array and, as the caller says, dependencies.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct prune;
struct store;

#define PRUNE_JOBS_MAX 64 /* that are looked at at once */

/* An ended job whose time is over. */
struct prune_job {
    uint64_t id;
    int64_t end_ns;
};

struct prune *prune_new(struct store *store); /* which outlives it */
void prune_free(struct prune *prune);

/*
 * Delete reports of progress and scripts of jobs that ended before that time.  Returns about how
 * many rows; 0: there are no more.
 */
int64_t prune_reports(struct prune *prune, int64_t before_ns, uint32_t rows_max,
                      struct error *err);

/* Delete events that belong to no job and are older than that: as above. */
int64_t prune_events(struct prune *prune, int64_t before_ns, uint32_t rows_max,
                     struct error *err);

/*
 * Find jobs that ended before that time, in the order of their ends: go on where the last call
 * ended, and look at PRUNE_JOBS_MAX at most.  Tasks of an array of which one lives are passed
 * over.  False: there are no more.
 */
bool prune_find_jobs(struct prune *prune, int64_t before_ns, struct prune_job *ret_jobs,
                     uint32_t *ret_count);

/* Begin with the oldest again; also to be called after a rollback. */
void prune_restart(struct prune *prune);

/*
 * Delete rows of one of them.  Returns how many; fewer than 'rows_max': nothing of the job is
 * left.  'before_ns' is remembered: history goes back to it.
 */
int64_t prune_delete_job(struct prune *prune, const struct prune_job *job,
                         int64_t before_ns, uint32_t rows_max, struct error *err);

/*
 * Say that there is no such live job, or none at all: -ENOENT with a sentence.  With 'consecutive', ids were
 * given to jobs one after the other, and it is known that a job of an earlier id was pruned.
 */
int prune_explain_absent(struct store *store, uint64_t id, bool consecutive,
                         struct error *err);

/* Jobs that ended before this time are no longer kept; -1: nothing was pruned yet. */
int64_t prune_history_from(struct store *store);
