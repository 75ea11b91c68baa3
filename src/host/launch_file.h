/*
 * launch_file.h - the order that a supervisor is given: one job, one attempt.
 *
 * It is handed over in a file, JOBDIR/launch, of records "key=value" that end in NUL,
 * since values may hold anything else.  The last record is "end=": a file without it was
 * cut short.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/launch.h"

struct buf;
struct error;

#define LAUNCH_FILE_MAX (8u * 1024 * 1024) /* bytes: script and environment included */
#define LAUNCH_GROUPS_MAX 256

/* What the supervisor has to know; all paths are absolute. */
struct launch_order {
    struct launch
        launch; /* 'out', 'err' and 'ckpt_dir' have their place holders filled in */
    uint32_t attempt;
    bool own_out;       /* the output's folder is ours: opened before the user is */
    bool become;        /* run it as launch.uid and launch.gid                    */
    const char *gpus;   /* "0,3": what the job may see; "": none                  */
    const char *type;   /* of them, or NULL                                       */
    const char *cgroup; /* folder to put the job into, or NULL                   */
    uint32_t gpu_count;
    uint32_t cpu_milli;
    uint32_t mem_mib;
    double steps_kept; /* by earlier attempts                                    */
    int64_t grace_ns;  /* grace period                                           */
    int dscp;          /* code point for what is marked at its start only; -1: none */
    uint32_t groups[LAUNCH_GROUPS_MAX]; /* besides launch.gid */
    uint32_t group_count;
};

/* The file's bytes; buf.full afterwards: it is too long. */
void launch_file_write(const struct launch_order *order, struct buf *buf);

/*
 * What stands in 'bytes', which the order points into from then on.  It is changed, and
 * ends in NUL.  Give it back with launch_file_release().
 */
int launch_file_read(struct launch_order *order, char *bytes, size_t count,
                     struct error *err);
void launch_file_release(struct launch_order *order);
