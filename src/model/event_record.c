/* event_record.c - an event as its observers get it. */
#include "model/event_record.h"

#include "model/view.h"

struct event_record event_record_make(uint64_t seq, const struct view *view,
                                      const struct event *event)
{
    struct event_record record = { .seq = seq, .event = *event };
    if (event->kind == EVENT_REJECTED) {
        record.job = event->spec->id;
        record.class = event->spec->class;
    } else if (event->job != JOB_NONE) {
        const struct job *job = &view->jobs[event->job];
        record.job = job->id;
        record.class = job->class;
        record.is_seated = job_seated(job);
        record.is_placed = job->next.count > 0;
        record.event.attempt = job->attempt;
    }
    if (event->kind == EVENT_RECALLED && event->for_whom != JOB_NONE)
        record.beneficiary = view->jobs[event->for_whom].id;
    return record;
}
