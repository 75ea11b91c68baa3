/*
 * changes.h - what a workload says beforehand of jobs that live: from when on one may start,
 * when one is cancelled.
 */
#pragma once

#include <stdint.h>

#include "model/event.h"

struct outbox;
struct view;

/* A heap: the earliest first, at one time in the order in which they were added. */
struct changes {
    struct change_due *list;
    uint32_t count, room;
    uint64_t sequence;
};

/* 'kind' is EVENT_RELEASED or EVENT_CANCELLED. */
void changes_add(struct changes *changes, int64_t at_ns, enum event_kind kind,
                 job_id job, uint32_t generation);

/* INT64_MAX: there is none. */
int64_t changes_next_ns(const struct changes *changes);

/* Move those that are due by 'now_ns' to the outbox, except of jobs that have ended. */
void changes_take(struct changes *changes, const struct view *view, int64_t now_ns,
                  struct outbox *outbox);

void changes_release(struct changes *changes);
