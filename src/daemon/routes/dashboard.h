/*
 * dashboard.h - the last hours for the dashboard, in memory of a fixed size.
 *
 * It gets events once they are durable and keeps which job held which GPUs (occupancy.h).
 * Some seconds after an event it takes a sample of the state: GPUs in use, jobs waiting by
 * reason, what each group (an entity, or a user) held and its fair share.  The newest samples
 * are all kept, of older ones every second, fourth, … one, so that the memory is fixed and a
 * day fits.  They are lost when berthd restarts.  No decision waits for any of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct daemon;
struct dashboard;
struct event_record;
struct uv_loop_s;

void dashboard_open(struct dashboard **ret_dashboard, struct daemon *daemon,
                    struct uv_loop_s *loop);
void dashboard_close(struct dashboard *dashboard); /* freed when the loop has run */

/* An event is durable. */
void dashboard_event(struct dashboard *dashboard, const struct event_record *record);

/* ---- samples ---- */

#define TRENDS_SAMPLES 2048
#define TRENDS_REASONS 16
#define TRENDS_GROUPS 16

struct trends_sample {
    int64_t at_ns;
    uint32_t gpus, held, foreign; /* GPUs           */
    uint32_t running, waiting;    /* jobs           */
    uint32_t
        reasons[TRENDS_REASONS]; /* waiting jobs by reason, in the order of 'tokens' */
    float due[TRENDS_GROUPS];    /* GPUs, in the order of 'groups'                   */
    float got[TRENDS_GROUPS];
};

struct trends {
    struct trends_sample samples[TRENDS_SAMPLES]; /* oldest first */
    uint32_t count;
    const char *tokens[TRENDS_REASONS]; /* constants */
    uint32_t token_count;
    struct trends_group {
        uint64_t key;
        char name[64];
    } groups[TRENDS_GROUPS]; /* the last one stands for all further groups */
    uint32_t group_count;
};

/* A new sample to fill in, zeroed; older ones are thinned out if there is no room. */
struct trends_sample *trends_add(struct trends *trends, int64_t at_ns);

/* The index of a reason; reasons beyond the limit share the last index. */
uint32_t trends_find_reason(struct trends *trends, const char *token);

/* The index of a group; ret_new: it has no name yet.  Groups beyond the limit share the
 * last index. */
uint32_t trends_find_group(struct trends *trends, uint64_t key, bool *ret_new);

/*
 * The fair share of each group: GPUs divided by weight among the groups that want some,
 * none getting more than it wants (max-min).  'wanted' and 'due' by group.
 */
void trends_fair_shares(const double *wanted, const double *weight, uint32_t count,
                        double gpus, double *due);

/* Samples after 'since_ns' as the members of an object, column by column. */
void trends_write(const struct trends *trends, struct buf *buf, int64_t since_ns);
