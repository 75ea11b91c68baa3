/* joblog.h - a line per job, as it ends: --jobs-out. */
#pragma once

#include <stdio.h>

#include "model/event.h"
#include "model/view.h"

struct joblog {
    FILE *file;   /* borrowed                              */
    char **names; /* by slot, from the workload            */
    uint32_t name_room;
};

void joblog_begin(struct joblog *log, FILE *file);
void joblog_release(struct joblog *log);

/* Name the job that was just admitted to a slot; NULL: it has no name. */
void joblog_name(struct joblog *log, job_id job, const char *name);
void joblog_event(void *self, const struct view *view, const struct event *event);

/* Write the jobs that have not ended. */
void joblog_end(struct joblog *log, const struct view *view, uint32_t slot_count);
