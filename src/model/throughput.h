/* throughput.h - how fast each kind of job runs on each kind of GPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "model/published.h"

struct arena;
struct cluster;
struct error;
struct pair_table;
struct rate_table;

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
    struct sharing sharing[TYPES_MAX];
};

/* Which jobs may share accelerators; in a simulation all that fit. */
struct sharing_rules {
    bool by_consent;      /* only those that said so, of one user                 */
    bool forbidden;       /* not even those                                       */
    bool across_users;    /* of different users as well                           */
    uint32_t reserve_mib; /* of a GPU's memory, that no job may count on          */
    bool overlaps;        /* two on a GPU compute at once: NVIDIA's MPS runs       */
    uint32_t unshared;    /* types, as bits, of GPUs that take one process at a time */
    uint32_t
        gpu_mib[TYPES_MAX]; /* memory of a GPU; 0: not known, and not looked at    */
};

/*
 * Rates of two jobs that share accelerators are kept beside them, for gangs of equal
 * size, in a square per type and size as far as any were measured.
 */
struct throughput {
    const struct cluster *cluster;
    const struct rate_table
        *learned; /* of jobs without a row here; NULL: none are      */
    const struct pair_table *beside; /* what these keep beside each other */
    struct sharing_rules rules;
    struct throughput_row *rows;
    uint32_t row_count;
    uint32_t *index; /* 1 + row by hash of the name; NULL: look at each */
    uint32_t index_room;
    double *pairs[TYPES_MAX][RATE_SIZES][2]; /* [row][row beside]; NULL: none   */
    bool paired;                             /* some pair was measured          */
};

/* No rows: every job is of kind KIND_NONE. */
void throughput_init(struct throughput *table, const struct cluster *cluster);

/* The rates of the kinds in model/published.h, for the types of theirs there are. */
void throughput_published(struct throughput *table, struct arena *arena);

/*
 * Read a table, in one of two formats, recognised by its first character.
 *
 * JSON:  { type: { "('kind', gpus)": { "null": rate, "('other', gpus)": [a, b] } } }
 * where "null" is the rate alone, [a, b] are the rates of the kind and of the other one
 * when both share their accelerators (0: they must not), and "<type>_unconsolidated"
 * holds the rates of spread gangs.
 *
 * CSV:   kind,type,gpus,rate[,rate_spread][,beside,rate_beside]
 * a line per kind, type and size; with 'beside', the two rates of a pair.
 *
 * Of a pair that is given from both sides, each side counts for its own kind.
 */
int throughput_load(struct throughput *table, struct arena *arena, const char *path,
                    struct error *err);

/* The same from memory, as if it were a file of that name. */
int throughput_parse(struct throughput *table, struct arena *arena, const char *name,
                     const char *bytes, size_t count, struct error *err);

/* Row of that name, or KIND_NONE. */
uint32_t throughput_find(const struct throughput *table, const char *name);

/*
 * Steps per second of 'job' with 'gpus' accelerators of a type: of its row; without one, as
 * learned of its kind.  Where nothing was, it makes a step in step_s, one per second unless
 * it is set, at the size it asked for; times the type's speed.  With another size all of that but fixed_s is divided
 * anew.  One that asks for no accelerator makes one step per second beside any of them.
 */
double throughput_rate(const struct throughput *table, const struct job *job,
                       uint32_t type, uint32_t gpus, bool spread);

/* The rate, and by 'ret_type' the type, of the fastest that 'job' may use at its size. */
double throughput_best(const struct throughput *table, const struct job *job,
                       uint32_t *ret_type);

/*
 * Steps per second of two gangs of 'gpus' each that share the same accelerators, as
 * they were measured: false if they were not.  Both are 0 if they must not share.
 * Where only consolidated gangs were measured, spread ones keep the same part of what
 * they do alone.
 */
bool throughput_pair(const struct throughput *table, uint32_t kind_a, uint32_t kind_b,
                     uint32_t type, uint32_t gpus, bool spread, double ret_rates[2]);
