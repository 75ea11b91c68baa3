/* dscp.c - map a job's level to the code point (DSCP) of its packets. */
#include "flowd/dscp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define DSCP_NETWORK 48 /* cs6 and above */
#define PRIORITY_MAX 6

const char dscp_levels_standard[] = "cs5,cs4,cs3,cs2,unmarked,cs1";

static const struct {
    const char *name;
    uint8_t dscp;
} names[] = {
    { "unmarked", 0 }, { "cs0", 0 },   { "cs1", 8 },   { "cs2", 16 },  { "cs3", 24 },
    { "cs4", 32 },     { "cs5", 40 },  { "cs6", 48 },  { "cs7", 56 },  { "af11", 10 },
    { "af12", 12 },    { "af13", 14 }, { "af21", 18 }, { "af22", 20 }, { "af23", 22 },
    { "af31", 26 },    { "af32", 28 }, { "af33", 30 }, { "af41", 34 }, { "af42", 36 },
    { "af43", 38 },    { "ef", 46 },
};

/* All of 'text' as a number up to 'max', or -1. */
static int parse_small_number(const char *text, int max)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    long number = strtol(text, &end, 10);
    return *end || number > max ? -1 : (int)number;
}

static int find_dscp(const char *word)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, word) == 0)
            return names[i].dscp;
    return parse_small_number(word, 63);
}

const char *dscp_name(char text[DSCP_NAME_MAX], uint8_t dscp)
{
    snprintf(text, DSCP_NAME_MAX, "%u", dscp);
    for (size_t i = sizeof names / sizeof *names; i-- > 0;)
        if (names[i].dscp == dscp)
            snprintf(text, DSCP_NAME_MAX, "%s", names[i].name);
    return text;
}

int dscp_levels_find(const struct dscp_levels *levels, uint8_t dscp)
{
    for (uint32_t i = 0; i < levels->count; i++)
        if (levels->points[i].dscp == dscp)
            return (int)i;
    return -1;
}

/* Parse "POINT[:PRIORITY]"; a priority that is not given is PRIORITY_MAX + 1 for now. */
static int parse_point(struct dscp_levels *levels, char *word, struct error *err)
{
    char *colon = strchr(word, ':');
    if (colon)
        *colon++ = '\0';
    int dscp = find_dscp(word);
    int priority = colon ? parse_small_number(colon, PRIORITY_MAX) : PRIORITY_MAX + 1;
    if (dscp < 0)
        return error_set(err, -EINVAL,
                         "levels: \"%.20s\" is no code point; want cs1 to cs5, af11 to "
                         "af43, ef, unmarked or a number below %d",
                         word, DSCP_NETWORK);
    if (dscp >= DSCP_NETWORK)
        return error_set(err, -EINVAL,
                         "levels: %.20s is left to the network and to control traffic; "
                         "want a code point below %d",
                         word, DSCP_NETWORK);
    if (priority < 0)
        return error_set(err, -EINVAL, "levels: %.20s: want a priority of 0 to %d",
                         word, PRIORITY_MAX);
    if (dscp_levels_find(levels, (uint8_t)dscp) >= 0)
        return error_set(err, -EINVAL, "levels: %.20s is there twice", word);
    if (levels->count == DSCP_POINTS_MAX)
        return error_set(err, -EINVAL,
                         "levels: at most %d; with control traffic a switch has %d",
                         DSCP_POINTS_MAX, DSCP_POINTS_MAX + 1);
    levels->points[levels->count++] =
        (struct dscp_point){ .dscp = (uint8_t)dscp, .priority = (uint8_t)priority };
    return 0;
}

/* Find the place of unmarked traffic, and set priorities that were not given in order. */
static void set_priorities(struct dscp_levels *levels)
{
    int own = dscp_levels_find(levels, DSCP_UNMARKED);
    levels->unmarked = own >= 0 ? (uint32_t)own : levels->count - 1;
    for (uint32_t i = 0; i < levels->count; i++) {
        struct dscp_point *point = &levels->points[i];
        if (point->priority > PRIORITY_MAX)
            point->priority = point->dscp == DSCP_UNMARKED ? 0
                              : i >= levels->unmarked      ? 1
                              : i == 0                     ? 6
                                                           : 4;
    }
}

int dscp_levels_parse(struct dscp_levels *ret, const char *text, struct error *err)
{
    struct dscp_levels levels = { .count = 0 };
    char words[256], *rest = words;
    if (strlen(text) >= sizeof words)
        return error_set(err, -EINVAL, "levels: more than %zu characters",
                         sizeof words - 1);
    snprintf(words, sizeof words, "%s", text);
    for (char *word; (word = strsep(&rest, ","));) {
        int r = parse_point(&levels, word, err);
        if (r < 0)
            return r;
    }
    if (levels.count < DSCP_LEVELS_MIN)
        return error_set(err, -EINVAL, "levels: want at least %d code points",
                         DSCP_LEVELS_MIN);
    if (levels.points[levels.count - 1].dscp == DSCP_UNMARKED)
        return error_set(err, -EINVAL,
                         "levels: unmarked traffic is everybody's and cannot be last");
    if (dscp_levels_find(&levels, DSCP_UNMARKED) < 0 && levels.count == DSCP_POINTS_MAX)
        return error_set(err, -EINVAL,
                         "levels: at most %d without unmarked, which has a queue too",
                         DSCP_POINTS_MAX - 1);
    set_priorities(&levels);
    *ret = levels;
    return 0;
}
