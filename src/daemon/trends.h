/*
 * trends.h - the cluster over the last hours, for the dashboard: accelerators in use, jobs
 * waiting by reason, what each group of people got and was due.
 *
 * A sample is taken some seconds after something happened; in between nothing changes.  The
 * newest samples are kept as they are, of older ones every second, fourth, … one, so that
 * the room is fixed and a day fits.  They begin anew with berthd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TREND_SAMPLES 2048
#define TREND_REASONS 16
#define TREND_GROUPS 16

struct buf;

struct trend_sample {
    int64_t at_ns;
    uint32_t gpus, held, foreign; /* accelerators   */
    uint32_t running, waiting;    /* jobs           */
    uint32_t
        reasons[TREND_REASONS]; /* waiting jobs by reason, in the order of 'tokens' */
    float due[TREND_GROUPS];    /* accelerators, in the order of 'groups'           */
    float got[TREND_GROUPS];
};

struct trends {
    struct trend_sample samples[TREND_SAMPLES]; /* oldest first */
    uint32_t count;
    const char *tokens[TREND_REASONS]; /* borrowed for good */
    uint32_t token_count;
    struct trend_group {
        uint64_t key;
        char name[64];
    } groups[TREND_GROUPS]; /* the last one stands for all that came after it */
    uint32_t group_count;
};

/* A new sample to fill in, zeroed; the oldest are thinned out for it. */
struct trend_sample *trends_add(struct trends *trends, int64_t at_ns);

/* Where a reason is counted; all that are too many are counted in the last place. */
uint32_t trends_reason(struct trends *trends, const char *token);

/* Where a group is; ret_new: it has no name yet.  Too many share the last place. */
uint32_t trends_group(struct trends *trends, uint64_t key, bool *ret_new);

/*
 * What each group is due: accelerators shared out evenly by weight among those who want
 * some, nobody getting more than that (max-min).  'wanted' and 'due' by group.
 */
void trends_share_out(const double *wanted, const double *weight, uint32_t count,
                      double gpus, double *due);

/* Samples after 'since_ns' as the members of an object, column by column. */
void trends_write(const struct trends *trends, struct buf *buf, int64_t since_ns);
