/*
 * pair_table.h - what jobs were measured to keep of their rates beside others.
 *
 * Two jobs share GPUs of a type: each makes so much of the steps that it makes alone.
 *
 *     kind          beside        type   kept  reports
 *     resnet/anna   bert/anna     v100   0.85  12
 *     bert/anna     resnet/anna   v100   0.62  9
 *
 * What was not measured is estimated for the PAIR_FIT_KINDS newest kinds of a type
 * (predict/pair_completion.h): as of kinds that were measured beside others, so
 *
 *     kept(kind, beside) = common + bears(kind) + spares(beside)
 *
 * Kinds are those of learned rates (rate_table.h), by the hash of their names: a kind that
 * made room there and comes again finds what was measured of it here.  All is bounded: the
 * oldest row makes room.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/job.h"

#define PAIR_ROWS_MAX 32768
#define PAIR_NOTED 0.05 /* change of a part that is passed on */
#define PAIR_SURE 2     /* reports after which a part is believed */
#define PAIR_FIT_KINDS 64
#define PAIR_FIT_SLOTS 128 /* a power of two, so that half stay empty */
#define PAIR_WITNESSES \
    3 /* kinds beside which one was measured, for an estimate to count */

struct pair_row {
    uint64_t kind, beside; /* hashes of their names */
    uint32_t type;
    uint32_t count; /* reports                              */
    double mean;    /* of the parts, newer ones weigh more  */
    double kept;    /* the part that policies see           */
};

/* A kind in the fit of a type. */
struct pair_fit_kind {
    uint64_t kind;   /* hash of its name */
    double bears;    /* how much more it keeps than others, whatever is beside it */
    double spares;   /* how much more others keep beside it */
    uint32_t beside; /* kinds beside which it was measured */
};

struct pair_fit {
    struct pair_fit_kind kinds[PAIR_FIT_KINDS];
    uint8_t slots[PAIR_FIT_SLOTS]; /* 1 + place in 'kinds', by hash; 0: empty */
    uint32_t count;
    double common;
    double deviation; /* of a part from its estimate */
};

struct pair_table {
    struct pair_row *rows;
    uint32_t count, oldest;
    struct map index;
    struct pair_fit *fits; /* by type */
    uint32_t stale; /* types, as bits, of which a part has changed since their fit */
};

/* A part that was not measured. */
struct pair_estimate {
    double kept;
    double low, high; /* hold it four times in five */
    bool sure;        /* both kinds were measured beside PAIR_WITNESSES kinds or more */
};

static inline void pair_table_init(struct pair_table *pairs, struct arena *run)
{
    *pairs = (struct pair_table){ 0 };
    pairs->rows = arena_array(run, struct pair_row, PAIR_ROWS_MAX);
    pairs->fits = arena_array(run, struct pair_fit, TYPES_MAX);
}

static inline void pair_table_release(struct pair_table *pairs)
{
    map_release(&pairs->index);
}

/* What is known of a kind beside another on a type, or NULL. */
const struct pair_row *pair_table_find(const struct pair_table *pairs, uint64_t kind,
                                       uint64_t beside, uint32_t type);

/* What a kind is expected to keep beside another; false: one of both is not in the type's fit. */
bool pair_table_estimate(const struct pair_table *pairs, uint64_t kind, uint64_t beside,
                         uint32_t type, struct pair_estimate *ret_estimate);

/* The kind's place in a fit, or PAIR_FIT_KINDS; the same, added if there is room. */
uint32_t pair_fit_find(const struct pair_fit *fit, uint64_t kind);
uint32_t pair_fit_add(struct pair_fit *fit, uint64_t kind);

/* Put a row back as it was stored: 'kept' follows from its mean.  One that makes no sense is not. */
void pair_table_restore(struct pair_table *pairs, const struct pair_row *row);

/* It made this part of its steps alone; true: what policies see has changed. */
bool pair_table_measure(struct pair_table *pairs, uint64_t kind, uint64_t beside,
                        uint32_t type, double kept);
