/*
 * measured.h - what a job truly needed, from the events that are kept of it: how much work it
 * was, what starting and stopping it took, when it could have started, who cancelled it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct cluster;
struct event_record;

/* A placement: how fast it counts beside the job's own size on a type of speed 1. */
struct measured_place {
    int64_t at_ns;
    bool waits; /* for victims to leave */
    double factor;
    bool is_there; /* it was read */
};

/* A mean. */
struct measured_mean {
    int64_t sum_ns;
    uint32_t count;
};

struct measured {
    const struct cluster *cluster;
    uint32_t gpus; /* that it asks for */

    /* results */
    double work_s;              /* alone at its size, on a type of speed 1         */
    double steps;               /* that it reported; 0: it reported none           */
    bool has_ended;             /* after a start                                   */
    struct measured_mean load;  /* from its placement to its first step  */
    struct measured_mean start; /* from its placement to its start       */
    double redone_s;            /* work that was made and lost, as work_s */
    double loaded_s; /* from its starts to its first steps, counted as work  */
    struct measured_mean pause; /* from the order to stop to its leaving  */
    struct measured_mean kill;  /* the same where its work was lost       */
    int64_t eligible_ns;        /* could start from then on; -1: at once  */
    bool is_held;               /* to the end: it never could             */
    int64_t cancelled_ns;       /* -1: it was not                         */
    enum job_canceller cancelled_by;

    /* the attempt that goes on */
    struct measured_place now, next;
    int64_t held_ns, started_ns, running_ns, recalled_ns; /* -1: not */
    double ran_s;                                         /* its work so far */
    double loading_s;  /* from its start to its first step, counted as work  */
    double steps_from; /* kept before it  */
};

/* 'held': the job had to wait for something when it was submitted. */
void measured_init(struct measured *measured, const struct cluster *cluster,
                   uint32_t gpus, bool held);

/* The next event of the job; 'line' is as the log has it.  Reports may be left out. */
void measured_add(struct measured *measured, const struct event_record *record,
                  const char *line);

/* It goes on: what it has made until now counts as made. */
void measured_stop(struct measured *measured, int64_t now_ns);

/*
 * There are no more events.  Of a job that never reported steps and declared no load time it is
 * not known when it began to work: that counts from its start.
 */
void measured_end(struct measured *measured, bool declares_load);

/* -1: nothing was measured. */
int64_t measured_mean_ns(const struct measured_mean *mean);
