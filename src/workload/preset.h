/*
 * preset.h - the one interface behind which every generator of jobs sits.
 *
 * To add one: write src/workload/<name>.c that ends in a 'const struct preset
 * preset_<name>', and add it to the list in presets.c.
 */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct job_spec;
struct field;
struct workload_facts;

struct preset {
    const char *name;           /* as written before the colon                */
    const char *brief;          /* one line                                   */
    const struct field *params; /* its settings, stored in self before open() */
    uint64_t columns;           /* what its jobs have: bits of enum csv_column    */
    size_t self_size;           /* private state: zeroed                      */

    /*
     * Prepare to yield the jobs of 'seed'.  'gpus' is the size of the cluster they are
     * for, 0 if there is none.  Fills what it knows of the facts: 'expected', or
     * 'enough' if its jobs never end; 'cluster' (which lives as long as self).
     */
    int (*open)(void *self, uint64_t seed, uint32_t gpus, struct workload_facts *facts,
                struct error *err);

    /*
     * The next job into a zeroed spec, in order of submission: 1, or 0 at the end.
     * Texts are borrowed until the next call.
     */
    int (*next)(void *self, struct job_spec *ret_spec, struct error *err);

    /* Optional.  Release what open() took. */
    void (*close)(void *self);
};

/* To so many parts of a unit, so that it is short to write and the same when read again. */
static inline double preset_rounded(double number, double parts)
{
    return round(number * parts) / parts;
}

/* NULL if there is no preset of that name. */
const struct preset *preset_find(const char *name);

/* All of them, ended by NULL, in the order shown to users. */
extern const struct preset *const preset_list[];
