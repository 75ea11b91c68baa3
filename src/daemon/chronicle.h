/*
 * chronicle.h - who has held which accelerators lately, for the chart of the dashboard.
 *
 * Read from the lines of the event log, as they become durable and, after a restart, from
 * the newest of those that are kept: so there is one way to learn it.  A row is one node's
 * part of one attempt.  The newest CHRONICLE_ROWS of them stay in memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct buf;
struct db;

#define CHRONICLE_ROWS 16384
#define CHRONICLE_EVENTS 50000 /* of the log are looked at after a restart */

/* How it left its seats. */
enum tenure_end {
    TENURE_GOES_ON,
    TENURE_FINISHED,
    TENURE_PREEMPTED,
    TENURE_FAILED,
    TENURE_LOST,
    TENURE_CANCELLED,
    TENURE_RESIZED,
};

struct tenure {
    uint64_t job;
    int64_t start_ns; /* -1: the seats are promised, it has not begun */
    int64_t end_ns;   /* -1: not yet                                  */
    uint64_t gpus;    /* of the node, as bits                         */
    uint32_t node, attempt;
    uint32_t next; /* row of the same job on another node; MAP_NONE: the last */
    bool te;
    enum tenure_end end;
};

struct chronicle {
    struct tenure *rows; /* row n of all times is in place n % CHRONICLE_ROWS */
    uint32_t count;      /* of all times                                      */
    struct map now;      /* public id to the first row of what it holds       */
    struct map soon;     /* and of what it has been promised                  */
    struct map leaving;  /* jobs whose owner wants them gone                  */
};

void chronicle_init(struct chronicle *chronicle);
void chronicle_release(struct chronicle *chronicle);

/* Read the newest of what is kept. */
void chronicle_recall(struct chronicle *chronicle, struct db *db);

/* Something happened: a line of the log.  'te': the job is a trial. */
void chronicle_take(struct chronicle *chronicle, const char *line, size_t count,
                    bool te);

/*
 * What was held after 'since_ns', and what is promised, as the items of an array; the
 * newest 'max' of them.
 */
void chronicle_write(const struct chronicle *chronicle, struct buf *buf,
                     int64_t since_ns, uint32_t max);
