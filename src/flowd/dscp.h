/*
 * dscp.h - map a job's level to the code point (DSCP) of its packets.
 *
 * A site has a few code points for jobs, best first.  Unmarked traffic, which is that of
 * all other programs, has a place among them, by default before the last: jobs that gain
 * least come after it, and it never comes last.  cs6 and cs7 belong to the network and to
 * control traffic, so that no job goes before what keeps the cluster alive.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

struct error;

#define DSCP_LEVELS_MIN 2
#define DSCP_LEVELS_MAX 8 /* levels of a flow policy */
#define DSCP_POINTS_MAX 7 /* with control traffic, the eight queues of a switch */
#define DSCP_UNMARKED 0

/*
 * The priority is for queues on the host that use the socket buffer and not the header.
 * The kernel's standard map (pfifo_fast, prio, fq) has three bands: 6 is in the
 * first, 4 and 0 in the second, 1 in the third, so that these four keep the order.
 */
struct dscp_point {
    uint8_t dscp;
    uint8_t priority; /* 0 to 6: more would need another capability */
};

struct dscp_levels {
    struct dscp_point points[DSCP_POINTS_MAX]; /* best first */
    uint32_t count;
    uint32_t unmarked; /* this many come before unmarked traffic */
};

/* "cs5,cs4,cs3,cs2,unmarked,cs1" */
extern const char dscp_levels_standard[];

/*
 * Read "POINT[:PRIORITY],…": POINT is cs1 to cs5, af11 to af43, ef, unmarked or a number
 * below 48.  -EINVAL with a sentence.
 */
int dscp_levels_parse(struct dscp_levels *levels, const char *text, struct error *err);

/* The point for 'level' of 'count': the first and the last level have those at the ends. */
static inline uint32_t dscp_levels_point(const struct dscp_levels *levels,
                                         uint32_t count, uint32_t level)
{
    assert(count >= DSCP_LEVELS_MIN);
    assert(level < count);
    return level * (levels->count - 1) / (count - 1);
}

/* The index of the point with this code, or -1. */
int dscp_levels_find(const struct dscp_levels *levels, uint8_t dscp);

#define DSCP_NAME_MAX 12

/* "cs5", "af21", "unmarked", "17". */
const char *dscp_name(char text[DSCP_NAME_MAX], uint8_t dscp);
