/*
 * eventlog.h - an event as one line of JSON, as the log keeps it and the stream sends it.
 *
 *     {"seq":7,"at":1700000000.123,"kind":"placed","job":3,"attempt":0,
 *      "seats":[{"node":0,"gpus":[0,1],"cpu_milli":2000,"mem_mib":0}]}
 *
 * Jobs are named by their public ids: slots are reused.
 */
#pragma once

#include <stdint.h>

#include "model/event.h"
#include "model/view.h"

struct buf;

void eventlog_write(struct buf *buf, uint64_t seq, const struct view *view,
                    const struct event *event);

/* The member "seats": a job's GPUs, cores and memory by node. */
void eventlog_write_seats(struct buf *buf, const struct seat *seats, uint32_t count);
