/*
 * eventlog.h - an event as one line of JSON: what the log keeps and the stream tells.
 *
 *     {"seq":7,"at":1700000000.123,"kind":"placed","job":3,"attempt":0,
 *      "seats":[{"node":0,"gpus":[0,1],"cpu_milli":2000,"mem_mib":0}]}
 *
 * Jobs are named by their public ids: slots mean nothing to whoever reads it later.
 */
#pragma once

#include <stdint.h>

#include "model/event.h"
#include "model/view.h"

struct buf;

void eventlog_write(struct buf *buf, uint64_t seq, const struct view *view,
                    const struct event *event);

void eventlog_text(struct buf *buf, const char *text); /* quoted */
