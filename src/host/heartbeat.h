/*
 * heartbeat.h - the file by which others see that berthd can place jobs on a Slurm cluster.
 *
 * berthd renews it every few seconds; job_submit.lua and the watchdog (contrib/slurm) read it.
 * It is one line, "TIME LIMIT": when it was written, in seconds since 1970, and after how many
 * seconds without a newer one berthd counts as away; 0: never.  Lines for job_submit.lua follow,
 * "TYPE GPUS NODES": so many nodes have so many GPUs of that type.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

#define HEARTBEAT_LIMIT_S 60    /* unless the file says otherwise */
#define HEARTBEAT_LIMIT_MIN_S 5 /* a shorter one would expire by chance */
#define HEARTBEAT_LIMIT_MAX_S 86400

/* What a reader makes of the file. */
struct heartbeat {
    bool away;        /* there was none for longer than the limit */
    int64_t silent_s; /* since the last one, or since the machine was started */
    uint32_t limit_s;
};

/* Replace the file at once; everybody may read it.  'more' are the lines that follow. */
int heartbeat_write(const char *path, int64_t now_s, uint32_t limit_s, const char *more,
                    struct error *err);

/*
 * A file that is missing, or is no heartbeat, is as good as one from before the machine was
 * started: negative with the reason, and 'ret' is set all the same.
 */
int heartbeat_read(const char *path, struct heartbeat *ret, struct error *err);

/* The line itself: false if it is no heartbeat. */
bool heartbeat_parse(const char *text, int64_t *ret_time_s, uint32_t *ret_limit_s);
