/*
 * marks.h - levels as code points, for traffic that is marked when it starts.
 *
 * The standard list, best first: cs5 to cs2, unmarked, cs1.  Unmarked traffic is that
 * of all other programs and comes before the last; cs6 and cs7 are left to the network.
 * A site may mark otherwise on its hosts; a level that was fixed at a job's start keeps
 * this one.
 */
#pragma once

#include <stdint.h>

#define MARKS_COUNT \
    6 /* code points, and the default number of levels of a live flow policy */
#define MARKS_LEVELS_LEAST 2
#define MARKS_LEVELS_MOST 8

/* The code point of a level out of 'levels': the first and the last always match. */
static inline uint32_t marks_dscp(uint32_t level, uint32_t levels)
{
    static const uint8_t points[MARKS_COUNT] = { 40, 32, 24, 16, 0, 8 };
    if (levels < MARKS_LEVELS_LEAST)
        return 0;
    level = level < levels ? level : levels - 1;
    return points[level * (MARKS_COUNT - 1) / (levels - 1)];
}
