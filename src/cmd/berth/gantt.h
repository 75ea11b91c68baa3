/* gantt.h - which job held which GPU in the last minutes, a line each, in a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "metrics/occupancy.h"

struct event_record;
struct json;

#define GANTT_SLOTS 240 /* of time that are drawn at most */
#define GANTT_NAME 24
#define GANTT_SPANS 16384 /* that are kept */

struct gantt_row {
    char name[GANTT_NAME + 1]; /* node, type, and number of the GPU */
};

#define GANTT_FOREIGN \
    UINT64_MAX /* in place of a job: processes that Berth did not start */

struct gantt {
    double slot_s; /* how long a slot is */
    int64_t last;  /* the newest slot's number since 1970; 0: none yet */
    struct occupancy occupancy;
    struct gantt_row *rows; /* node by node */
    uint32_t row_count, row_room;
    uint32_t *first_row; /* by node */
    uint32_t node_count, node_room;
};

static inline void gantt_init(struct gantt *gantt, double slot_s)
{
    *gantt = (struct gantt){ .slot_s = slot_s };
    occupancy_init(&gantt->occupancy, GANTT_SPANS);
}

static inline void gantt_release(struct gantt *gantt)
{
    occupancy_release(&gantt->occupancy);
    free(gantt->rows);
    free(gantt->first_row);
}

/*
 * Make the chart agree with the allocations in 'nodes' at 'now_s'.  'jobs' has the start times
 * of jobs, so that a chart that was just opened is not empty.
 */
void gantt_update(struct gantt *gantt, const struct json *nodes,
                  const struct json *jobs, double now_s);

/* Apply an event of the stream, between two updates. */
static inline void gantt_event(struct gantt *gantt, const struct event_record *record)
{
    occupancy_apply(&gantt->occupancy, record);
}

/*
 * At most 'line_max' lines, 'width' characters wide; the newest moment at the right.  A GPU that two
 * jobs shared has a second line.
 */
void gantt_print(const struct gantt *gantt, FILE *file, uint32_t width,
                 uint32_t line_max, bool colour);
