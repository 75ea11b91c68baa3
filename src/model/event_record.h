/*
 * event_record.h - an event as its observers get it, live or read back from the log.
 *
 * Slots are reused, so a record names jobs by their public ids.  The log keeps a record as
 * one line of JSON, and the stream sends the same line:
 *
 *     {"seq":7,"at":1700000000.123,"kind":"placed","job":3,"attempt":0,
 *      "seats":[{"node":0,"gpus":[0,1],"cpu_milli":2000,"mem_mib":0}]}
 */
#pragma once

#include <stddef.h>

#include "model/event.h"

struct arena;
struct buf;
struct view;

struct event_record {
    uint64_t seq;         /* number in the log; 0: not logged                      */
    uint64_t job;         /* public id; 0: the event is not about a job            */
    uint64_t beneficiary; /* RECALLED: public id; 0: none                          */
    enum job_class class; /* of the job; not in the log                            */
    bool is_seated;       /* the job holds GPUs after the event                    */
    bool is_placed;       /* the job has a pending allocation after the event      */
    struct event event;   /* 'attempt' is the job's                                */
};

/* 'view' is as it is after the event.  What the event borrows stays borrowed. */
struct event_record event_record_make(uint64_t seq, const struct view *view,
                                      const struct event *event);

/* As a line.  'view' knows the other jobs that the event names. */
void event_record_write(struct buf *buf, const struct view *view,
                        const struct event_record *record);

/* The member "seats": a job's GPUs, cores and memory by node. */
void event_record_write_seats(struct buf *buf, const struct seat *seats,
                              uint32_t count);

/*
 * Read a line back, as far as observers need it: the settings of a job, parts of pending
 * allocations and reasons are left out, job numbers are JOB_NONE.  Seats are allocated in
 * 'arena'.  -EINVAL: not a line of the log.
 */
int event_record_read(const char *text, size_t count, struct arena *arena,
                      struct event_record *ret_record);
