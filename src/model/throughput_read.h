/* throughput_read.h - what the readers of throughput tables have in common. */
#pragma once

#include "model/throughput.h"

#define RATE_MAX 1e9          /* steps per second */
#define KIND_BYTES_MAX 200    /* of a kind's name  */
#define PAIRED_KINDS_MAX 1024 /* kinds in a table with pairs: it has squares of them */

/* Row of a kind, added if it is new; KIND_NONE when there are too many. */
uint32_t throughput_add(struct throughput *table, struct arena *arena,
                        const char *kind);

/* Place of a gang size in a row, or RATE_SIZES. */
uint32_t throughput_size(uint64_t gpus);

/*
 * Note the rates of two kinds that share, as the entry of the first gives them.  All
 * rows have been added; false when they are more than PAIRED_KINDS_MAX.
 */
bool throughput_add_pair(struct throughput *table, struct arena *arena, uint32_t first,
                         uint32_t other, uint32_t type, uint32_t size, bool spread,
                         const double rates[2]);

int throughput_read_json(struct throughput *table, struct arena *arena,
                         const char *name, const char *bytes, size_t count,
                         struct error *err);
int throughput_read_csv(struct throughput *table, struct arena *arena, const char *name,
                        const char *bytes, size_t count, struct error *err);
