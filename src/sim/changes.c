/* changes.c - a heap of events that are known beforehand. */
#include "sim/changes.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/grow.h"
#include "model/outbox.h"
#include "model/view.h"

struct change_due {
    int64_t at_ns;
    uint64_t order;
    enum event_kind kind;
    job_id job;
    uint32_t generation;
};

static bool is_earlier(const struct change_due *a, const struct change_due *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void changes_add(struct changes *changes, int64_t at_ns, enum event_kind kind,
                 job_id job, uint32_t generation)
{
    struct change_due due = { at_ns, changes->sequence++, kind, job, generation };
    changes->list = grow_array(changes->list, &changes->room, changes->count + 1,
                               sizeof *changes->list);
    uint32_t at = changes->count++;
    for (; at > 0 && is_earlier(&due, &changes->list[(at - 1) / 2]); at = (at - 1) / 2)
        changes->list[at] = changes->list[(at - 1) / 2];
    changes->list[at] = due;
}

int64_t changes_next_ns(const struct changes *changes)
{
    return changes->count > 0 ? changes->list[0].at_ns : INT64_MAX;
}

static void remove_first(struct changes *changes)
{
    struct change_due last = changes->list[--changes->count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < changes->count; at = child) {
        if (child + 1 < changes->count &&
            is_earlier(&changes->list[child + 1], &changes->list[child]))
            child++;
        if (!is_earlier(&changes->list[child], &last))
            break;
        changes->list[at] = changes->list[child];
    }
    changes->list[at] = last;
}

void changes_take(struct changes *changes, const struct view *view, int64_t now_ns,
                  struct outbox *outbox)
{
    while (changes_next_ns(changes) <= now_ns) {
        struct change_due due = changes->list[0];
        const struct job *job = &view->jobs[due.job];
        remove_first(changes);
        if (job->state == JOB_FREE || job->generation != due.generation)
            continue;
        struct event *event = outbox_add(outbox);
        event->at_ns = now_ns;
        event->kind = due.kind;
        event->job = due.job;
        event->generation = due.generation;
    }
}

void changes_release(struct changes *changes)
{
    free(changes->list);
}
