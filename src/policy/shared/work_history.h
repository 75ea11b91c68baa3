/*
 * work_history.h - how much work finished jobs had, and how much a job that has not declared
 * its own may have left.
 *
 * The guess is one over the job's Gittins index,
 *
 *     G(a) = max over d of  P(S - a <= d | S > a) / E(min(S - a, d) | S > a)
 *
 * the best ratio of "done by then" to "time spent", with S the work of finished jobs like it
 * and a what the job has done.  Jobs like it have its name (without numbers), user and class; if
 * fewer than five of these have finished, its user and class; else its class, of which something
 * is assumed beforehand.  Jobs of the class count as five beside a narrower record, so that a
 * few jobs that happen to be alike do not decide alone.
 *
 * Work is in seconds on a job's fastest type.  The memory is fixed: a new record takes the place
 * of one that has been without news for long.
 *
 * Sources: Gittins (1979); Aalto, Ayesta, Righter (2009).
 */
#pragma once

#include <stdint.h>

#include "model/job.h"

struct arena;

#define WORK_BINS 56      /* two per octave, from a second on */
#define WORK_RECORDS 1024 /* by name, user and class          */
#define WORK_GUESSES 512  /* remembered                       */

/* Finished jobs by their work. */
struct work_record {
    uint64_t key;    /* of what these jobs have in common; 0: of a class, or empty */
    uint32_t jobs;   /* counted                                                    */
    uint32_t newest; /* number of the last job counted here, of all                */
    float count[WORK_BINS];
};

/* What was guessed, until another job of the class has finished. */
struct work_guess {
    uint64_t key; /* of the record, or 0 */
    double done_s;
    double left_s;
    uint32_t jobs; /* of the class that had finished then, plus 1; 0: empty */
    uint32_t class;
};

struct work_history {
    struct work_record classes[2];
    struct work_record *narrow; /* a hash table */
    struct work_guess *guesses; /* each in the one place that it can have */
    uint32_t finished_count;
    double middle_s[WORK_BINS]; /* of each bin */
};

void work_history_init(struct work_history *history, struct arena *run);

/* Know the jobs that another one has counted. */
void work_history_inherit(struct work_history *history,
                          const struct work_history *from);

/* A job has finished; 'steps' are all that it has made. */
void work_history_count(struct work_history *history, const struct job *job);

/* Seconds of work that are left of a job that has done so much. */
double work_history_left_s(const struct work_history *history, const struct job *job,
                           double done_s);

/* What the guess is from, "its name and user", and how many such jobs have finished. */
const char *work_history_basis(const struct work_history *history,
                               const struct job *job, uint32_t *ret_count);
