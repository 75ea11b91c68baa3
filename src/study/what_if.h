/*
 * what_if.h - jobs that were run once, played again: as it was, and otherwise.
 *
 * The first case is what was: the cluster, the policy that was in charge, all jobs.  Beside what
 * really happened it says how far replays are to be trusted.  Each further case differs in its
 * policy, its cluster or its jobs, and is compared with the first job by job: what both have in
 * common, such as a busy Monday, is in neither side of the difference.
 *
 * Jobs of one day share their fate, so intervals are from days and not from jobs: days of
 * submission are drawn with replacement (a block bootstrap), and the interval holds the middle
 * 95 % of the differences that come out.  Where there are fewer than WHAT_IF_BLOCKS_MIN days it is
 * hours, and with fewer of these there is no interval.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "study/what_if_outcomes.h"
#include "sim/sweep.h"

struct error;

#define WHAT_IF_CASES_MAX 13
#define WHAT_IF_BLOCKS_MIN 5
#define WHAT_IF_DRAWS 1000
#define WHAT_IF_NOTES_MAX 16

struct what_if_case {
    const char *name;   /* for people */
    const char *policy; /* "NAME,setting=value" */
    const struct cluster *cluster;
    const struct throughput *rates; /* of the jobs' kinds, on this cluster */
    const struct job_spec *jobs;    /* in order of submission, each with an id */
    uint64_t job_count;
    const struct sim_node_change *changes; /* of nodes, in order */
    uint32_t change_count;
    const struct sim_policy_change *policies; /* that took over from 'policy' later */
    uint32_t policy_count;
};

enum what_if_figure {
    WHAT_IF_WAIT,
    WHAT_IF_JCT,
    WHAT_IF_JCT_P95,
    WHAT_IF_SLOWDOWN_TE,
    WHAT_IF_SLOWDOWN_BE,
    WHAT_IF_PREEMPTIONS,
    WHAT_IF_LOST,
    WHAT_IF_UTILISATION,
    WHAT_IF_FIGURES
};

/* Units as those of struct summary_figure. */
struct what_if_figure_name {
    const char *id, *label, *unit;
};
extern const struct what_if_figure_name what_if_figures[WHAT_IF_FIGURES];

struct what_if {
    struct what_if_case cases[WHAT_IF_CASES_MAX]; /* the first: as it was */
    uint32_t case_count;
    const bool *counted;    /* by place in the first case: its figures are wanted */
    int64_t from_ns, to_ns; /* the period that these were submitted in */
    uint64_t seed;
    bool chart; /* keep spans for a Gantt chart */

    /* for people; a note is a sentence */
    const char *cluster_text, *history_text, *command;
    const char *policy;  /* that was in charge at the end */
    const char *changed; /* "with v100:2 more, without node n3"; NULL: nothing */
    const char *notes[WHAT_IF_NOTES_MAX];
    uint32_t note_count;
    double zero_s; /* time 0 of the jobs, since 1970; NAN: not known */

    /* filled by what_if_run() */
    struct sweep_run *runs; /* one for each case */
    struct map places;
    struct what_if_outcome
        *outcomes[WHAT_IF_CASES_MAX]; /* by place in the first case */
    uint32_t *blocks;                 /* which each job of the first case is in */
    uint32_t block_count;
    int64_t block_ns; /* how long they are; 0: there are too few */
};

/* A figure of two runs over the jobs that ended well in both. */
struct what_if_difference {
    double was, value; /* NAN: does not apply                     */
    double difference; /* value - was                             */
    double low, high;  /* of the difference; NAN: no interval     */
    double change;     /* difference / was; NAN if that is 0      */
    double change_low, change_high;
};

/* What really happened beside its replay. */
struct what_if_trust {
    uint32_t job_count;
    struct {
        double happened, replayed, change;
    } jct, wait, jct_p95;
};

/* Play all cases.  -EINVAL for wrong input, with a sentence. */
int what_if_run(struct what_if *what, void (*progress)(void *context, double share),
                void *context, struct error *err);
void what_if_release(struct what_if *what);

struct what_if_trust what_if_trust(const struct what_if *what);

/* Of case 'at', beside the first; the number of jobs is how many are compared. */
void what_if_compare(const struct what_if *what, uint32_t at,
                     struct what_if_difference ret[WHAT_IF_FIGURES],
                     uint32_t *ret_job_count);
