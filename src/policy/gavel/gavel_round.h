/* gavel_round.h - what our own rounds (gavel_round.c) are made of. */
#pragma once

#include "base/sort.h"
#include "policy/gavel/gavel_common.h"

#define NONE UINT32_MAX

/* Two that are due something together. */
struct duo {
    job_id jobs[2];      /* the first to be seated, and who comes beside it */
    uint64_t tickets[2]; /* tell whether they are still who they were */
    uint32_t next;       /* of the same first job */
};

/* By slot. */
struct round_job {
    int64_t seated_ns; /* since when its time in seats is not booked; -1: it has none */
    uint32_t column;   /* of these seats */
    uint32_t want;     /* column for the next round, or NONE */
    job_id with;       /* its partner, or JOB_NONE */
    uint32_t duos;     /* first of those in which it is the first, or NONE */
};

struct gavel_rounds {
    double round_s;
    double *x;        /* [slot][column] */
    double *credit_s; /* [slot][column] */
    struct duo *duos, *old_duos;
    double *duo_x, *duo_credit_s, *old_credit_s; /* [duo][column] */
    uint32_t duo_count, duo_max;
    struct round_job *pages;
    int64_t booked_ns;        /* dues are in the credits up to then */
    int64_t end_ns;           /* of the round */
    int64_t due_ns;           /* shares are not made before then */
    bool room;                /* a job came or went since free GPUs were given away */
    bool restless;            /* the next round would not be as this one */
    uint32_t granted, placed; /* in the last plan; seen to be carried out */

    uint32_t job_max;
    struct sort_item *items, *item_scratch; /* value: unit and column */
    uint32_t item_count;
    job_id *order;
};

static inline double *rounds_shares(const struct gavel_common *common, job_id job)
{
    return &common->rounds->x[(size_t)job * common->type_count];
}

static inline double *rounds_credits(const struct gavel_common *common, job_id job)
{
    return &common->rounds->credit_s[(size_t)job * common->type_count];
}
