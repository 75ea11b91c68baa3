/*
 * eventlog.h - an event as one line of JSON, as the log keeps it and the stream sends it.
 *
 *     {"seq":7,"at":1700000000.123,"kind":"placed","job":3,"attempt":0,
 *      "seats":[{"node":0,"gpus":[0,1],"cpu_milli":2000,"mem_mib":0}]}
 *
 * Jobs are named by their public ids: slots are reused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct event_record;
struct seat;
struct view;

/* 'view' is as it is after the event: it knows the other jobs that the event names. */
void eventlog_write(struct buf *buf, const struct view *view,
                    const struct event_record *record);

/* The member "seats": a job's GPUs, cores and memory by node. */
void eventlog_write_seats(struct buf *buf, const struct seat *seats, uint32_t count);

/*
 * Read a line back, as far as observers need it: job settings, pending parts of others and
 * reasons are left out.  Seats are allocated in 'arena'.  -EINVAL: not a line of the log.
 */
int eventlog_read(const char *text, size_t count, struct arena *arena,
                  struct event_record *ret_record);
