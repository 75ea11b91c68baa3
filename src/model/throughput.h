/* throughput.h - how fast each kind of job runs on each kind of GPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"

struct arena;
struct cluster;
struct error;

#define RATE_SIZES 8 /* gangs of 1, 2, 4, … 128 */

/*
 * A row per kind of job: steps per second of the whole gang, by type, gang size and
 * whether it is spread over more nodes than needed.  Sizes between two that were
 * measured are interpolated, beyond the largest they follow its per-GPU rate.
 * 0: cannot run so.
 */
struct throughput_row {
    const char *name;
    double rate[TYPES_MAX][RATE_SIZES]
               [2]; /* [type][log2 size][spread]; -1: not measured */
};

struct throughput {
    const struct cluster *cluster;
    struct throughput_row *rows;
    uint32_t row_count;
};

/* No rows: every job is of kind KIND_NONE. */
void throughput_init(struct throughput *table, const struct cluster *cluster);

/* The rates of the kinds in model/published.h, for the types of theirs there are. */
void throughput_published(struct throughput *table, struct arena *arena);

/*
 * Read a table in JSON: { type: { "('kind', gpus)": { "null": rate, … } } }, where
 * "<type>_unconsolidated" holds the rates of spread gangs.
 */
int throughput_load(struct throughput *table, struct arena *arena, const char *path,
                    struct error *err);

/* The same from memory, as if it were a file of that name. */
int throughput_parse(struct throughput *table, struct arena *arena, const char *name,
                     const char *bytes, size_t count, struct error *err);

/* Row of that name, or KIND_NONE. */
uint32_t throughput_find(const struct throughput *table, const char *name);

/*
 * Steps per second of 'job' with 'gpus' accelerators of a type.  A job without a row
 * makes one step per second at the size it asked for, times the type's speed, and
 * scales with its size.  One that asks for no accelerator makes one step per second
 * beside any of them.
 */
double throughput_rate(const struct throughput *table, const struct job *job,
                       uint32_t type, uint32_t gpus, bool spread);

/* The rate, and by 'ret_type' the type, of the fastest that 'job' may use at its size. */
double throughput_best(const struct throughput *table, const struct job *job,
                       uint32_t *ret_type);
