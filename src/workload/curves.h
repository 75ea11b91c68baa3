/*
 * curves.h - learning curves in a CSV file, one after another.
 *
 * The columns are found by name: step, and loss or value.  With a column run_id there may
 * be many curves, identified by it and by metric; the rows of a curve stand together; algo is
 * the kind of training.  Other columns are ignored.  A file of two columns of
 * numbers needs no header.  Plain, gzip or zstd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "workload/reader.h"
#include "workload/table.h"

struct error;

#define CURVES_POINTS_MAX 10000000 /* in one curve */
#define CURVES_MAX 100000          /* in one file  */
#define CURVES_NAME_MAX 256        /* bytes of a name, with its end */

#define CURVES_STEP_MAX 1e15
#define CURVES_VALUE_MAX 1e100

/* One curve, valid until the next is asked for. */
struct curves_one {
    const char *id;                     /* run_id/metric, run_id, or the file's name */
    const char *run_id, *metric, *algo; /* "" where there is none                    */
    const double *step, *value;         /* steps grow strictly; all numbers finite   */
    uint32_t count;                     /* at least 1                                */
};

struct curves {
    struct reader reader;
    struct table table;
    uint32_t step_column, value_column, run_column, metric_column, algo_column;
    bool pending; /* the row in the table belongs to the next curve */
    char id[2 * CURVES_NAME_MAX], run_id[CURVES_NAME_MAX], metric[CURVES_NAME_MAX],
        algo[CURVES_NAME_MAX];
    double *step, *value;
    uint32_t count, room;
    uint32_t curve_count;
    struct map seen; /* hashes of the ids before */
};

/* 'path' may be "-" for standard input; it is borrowed until the release. */
int curves_open(struct curves *curves, const char *path, struct error *err);

/* The same from memory, which is borrowed, as if it were a file of that name. */
int curves_open_memory(struct curves *curves, const char *name, const void *bytes,
                       size_t count, struct error *err);
void curves_release(struct curves *curves);

/*
 * The next curve: 1, 0 at the end, or -EINVAL with a sentence that has file, line and
 * field: steps that do not grow, a value that is absent, no number, or beyond the bounds,
 * a curve with its rows apart, a file without a point.
 */
int curves_next(struct curves *curves, struct curves_one *ret_one, struct error *err);
