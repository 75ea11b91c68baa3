/*
 * pair_table.h - what jobs were measured to keep of their rates beside others.
 *
 * Two jobs share GPUs of a type: each makes so much of the steps that it makes alone.
 *
 *     kind          beside        type   kept  reports
 *     resnet/anna   bert/anna     v100   0.85  12
 *     bert/anna     resnet/anna   v100   0.62  9
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

#define PAIR_ROWS_MAX 32768
#define PAIR_NOTED 0.05 /* change of a part that is passed on */
#define PAIR_SURE 2     /* reports after which a part is believed */

struct pair_row {
    uint64_t kind, beside; /* hashes of their names */
    uint32_t type;
    uint32_t count; /* reports                              */
    double mean;    /* of the parts, newer ones weigh more  */
    double kept;    /* the part that policies see           */
};

struct pair_table {
    struct pair_row *rows;
    uint32_t count, oldest;
    struct map index;
};

static inline void pair_table_init(struct pair_table *pairs, struct arena *run)
{
    *pairs = (struct pair_table){ 0 };
    pairs->rows = arena_array(run, struct pair_row, PAIR_ROWS_MAX);
}

static inline void pair_table_release(struct pair_table *pairs)
{
    map_release(&pairs->index);
}

/* What is known of a kind beside another on a type, or NULL. */
const struct pair_row *pair_table_find(const struct pair_table *pairs, uint64_t kind,
                                       uint64_t beside, uint32_t type);

/* Put a row back as it was stored: 'kept' follows from its mean.  One that makes no sense is not. */
void pair_table_restore(struct pair_table *pairs, const struct pair_row *row);

/* It made this part of its steps alone; true: what policies see has changed. */
bool pair_table_measure(struct pair_table *pairs, uint64_t kind, uint64_t beside,
                        uint32_t type, double kept);
