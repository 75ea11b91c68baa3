/*
 * format.h - the one interface behind which every file format sits.
 *
 * To add one: write src/workload/<name>.c that ends in a 'const struct format
 * format_<name>', and add it to the list in workload.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "workload/reader.h"
#include "workload/table.h"
#include "workload/workload.h"

#define FORMAT_GPUS_MAX 1000000

/* What every format has at hand. */
struct source {
    struct reader reader;
    struct table table; /* for formats that are tables; released by the caller */
    struct workload_facts *facts;
};

/* A job as the file has it: its own clock, and what the facts need to know. */
struct trace_row {
    struct job_spec spec; /* texts are borrowed until the next row              */
    int64_t run_ns;       /* how long it ran; -1: not in the file               */
    uint64_t gpu_milli;   /* what it really used; 0: all of spec.gpus           */
};

struct format {
    const char *name;  /* as written after --format                             */
    const char *brief; /* one line                                              */
    bool sorted;       /* by submission, so it streams; else it is read whole   */
    bool unique;       /* no two jobs of one name                               */
    bool keeps_clock;  /* submission times stay; else the first one becomes 0   */
    uint64_t columns;  /* what its jobs have, for writing: bits of enum csv_column  */
    size_t self_size;  /* private state: zeroed                                 */

    /*
     * Whether these first bytes of a file (at least its first line, or 64 KiB, with a
     * NUL after them) look like this format.
     */
    bool (*sniff)(const char *bytes, size_t count);

    /* Optional.  Read what stands before the first row. */
    int (*open)(void *self, struct source *source, struct error *err);

    /*
     * Read the next job into a zeroed row: 1, 0 at the end, or a negative errno and a
     * sentence that names file, line and field.  What is no job that can run is passed
     * over with source_skip().
     */
    int (*next)(void *self, struct source *source, struct trace_row *ret_row,
                struct error *err);

    /* Optional.  Release what open() took. */
    void (*close)(void *self);
};

/* Count a row that is no job, by a reason that outlives the run. */
void source_skip(struct source *source, const char *reason);

/* Work that took so long, one step a second; the row knows its run time too. */
void trace_row_set_run(struct trace_row *row, int64_t run_ns);

/* The first line of 'bytes' into 'line', cut at its size. */
void format_first_line(const char *bytes, size_t count, char *line, size_t size);

/* Whether a header line has all of these column names (ended by NULL). */
bool format_has(const char *bytes, size_t count, char separator,
                const char *const *names);

/* All formats, ended by NULL, in the order in which they are tried. */
extern const struct format *const format_list[];
