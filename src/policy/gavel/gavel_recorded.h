/*
 * gavel_recorded.h - shares that were recorded in another run, to be carried out again.
 *
 * A line of JSON per time the shares were made:
 *
 *     {"round": 5, "t": 1799.93, "alloc": {"0": [0.2, 0, 0.5], "3,16": [0, 0.1, 0]}}
 *
 * Jobs are numbered in order of submission from 0; "3,16" is a pair that shares GPUs.  There
 * is a number per type, in order of the types' names.  The file may be compressed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define RECORDED_ALONE UINT32_MAX

struct gavel_share {
    uint32_t first, second; /* numbers of the jobs; second RECORDED_ALONE: one alone */
    const double *x;        /* [type] */
};

struct gavel_record {
    uint64_t round;
    double at_s;
    const struct gavel_share *shares;
    uint32_t share_count;
    uint64_t line; /* of the file */
};

struct gavel_recorded {
    const char *path;
    struct gavel_record *records;
    uint32_t count;
};

/*
 * Read all of a file, with 'type_count' numbers per share.  -EINVAL: "FILE:LINE: …".
 *
 * The reader belongs to the laboratory (lab/recorded_shares.c) and is installed by the
 * commands that simulate.  berthd has none: there the setting 'allocations' is refused.
 */
typedef int gavel_recorded_reader(struct gavel_recorded *ret_recorded, const char *path,
                                  uint32_t type_count, struct arena *run,
                                  struct error *err);

/* Install it before the first run, which may be on any thread. */
void gavel_recorded_install(gavel_recorded_reader *reader);
