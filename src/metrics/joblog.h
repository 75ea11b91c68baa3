/* joblog.h - a line per job, as it ends: --jobs-out. */
#pragma once

#include <stdio.h>

#include "model/event.h"
#include "model/view.h"

struct joblog {
    FILE *file; /* borrowed */
    const struct view *view;
};

void joblog_begin(struct joblog *log, FILE *file);
void joblog_event(void *self, const struct view *view, const struct event *event);

/* Write those that have not ended. */
void joblog_end(struct joblog *log, const struct view *view, uint32_t slot_count);
