/* gantt.h - who held which accelerator in the last minutes, a line each, in a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json;

#define GANTT_SLOTS 240 /* of time that are remembered */
#define GANTT_NAME 24

struct gantt_row {
    char name[GANTT_NAME + 1];  /* node and number, and type */
    uint64_t held[GANTT_SLOTS]; /* which job, by slot; 0: nobody; GANTT_FOREIGN */
};

#define GANTT_FOREIGN UINT64_MAX

struct gantt {
    double slot_s; /* how long a slot is */
    int64_t last;  /* the newest slot's number since 1970; 0: none yet */
    struct gantt_row *rows;
    uint32_t row_count, row_room;
};

void gantt_init(struct gantt *gantt, double slot_s);
void gantt_release(struct gantt *gantt);

/*
 * Write down what "nodes" says at 'now_s'.  'jobs' tells since when those that run do, so
 * that a chart that was just opened is not empty.
 */
void gantt_add(struct gantt *gantt, const struct json *nodes, const struct json *jobs,
               double now_s);

/* At most 'row_max' rows, 'width' characters wide; the newest moment at the right. */
void gantt_print(const struct gantt *gantt, FILE *file, uint32_t width,
                 uint32_t row_max, bool colour);
