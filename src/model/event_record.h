/*
 * event_record.h - an event as its observers get it, live or read back from the log.
 *
 * Slots are reused, so a record names jobs by their public ids.  The event of a record that
 * was read from the log holds what its line says; its job numbers are JOB_NONE.
 */
#pragma once

#include "model/event.h"

struct view;

struct event_record {
    uint64_t seq;         /* number in the log; 0: not logged                      */
    uint64_t job;         /* public id; 0: the event is not about a job            */
    uint64_t beneficiary; /* RECALLED: public id; 0: none                          */
    enum job_class class; /* of the job; the log does not say                      */
    bool is_seated;       /* the job holds GPUs after the event                    */
    bool is_placed;       /* the job has a pending allocation after the event      */
    struct event event;   /* 'attempt' is the job's                                */
};

/* 'view' is as it is after the event.  What the event borrows stays borrowed. */
struct event_record event_record_make(uint64_t seq, const struct view *view,
                                      const struct event *event);
