/* event.c - what can happen, by name. */
#include "model/event.h"

#include "model/view.h"

const char *event_name(enum event_kind kind)
{
    static const char *const names[EVENT_KIND_COUNT] = {
        [EVENT_SUBMITTED] = "submitted", [EVENT_REJECTED] = "rejected",
        [EVENT_CANCELLED] = "cancelled", [EVENT_HELD] = "held",
        [EVENT_RELEASED] = "released",   [EVENT_STARTED] = "started",
        [EVENT_LOADED] = "loaded",       [EVENT_PROGRESS] = "progress",
        [EVENT_SENT] = "sent",           [EVENT_LEASE_DONE] = "lease_done",
        [EVENT_RESIZED] = "resized",     [EVENT_STOPPED] = "stopped",
        [EVENT_FINISHED] = "finished",   [EVENT_FAILED] = "failed",
        [EVENT_LOST] = "lost",           [EVENT_NODE_DOWN] = "node_down",
        [EVENT_NODE_UP] = "node_up",     [EVENT_PLACED] = "placed",
        [EVENT_RECALLED] = "recalled",   [EVENT_RESIZING] = "resizing",
        [EVENT_RENEWED] = "renewed",     [EVENT_LEVELLED] = "levelled",
        [EVENT_ADOPTED] = "adopted",     [EVENT_RATED] = "rated",
        [EVENT_WAKE] = "wake",           [EVENT_CLOSED] = "closed",
        [EVENT_DROPPED] = "dropped",     [EVENT_CHANGED] = "changed",
        [EVENT_FOREIGN] = "foreign",     [EVENT_RESTORED] = "restored",
        [EVENT_RESERVED] = "reserved",   [EVENT_BOUNDARY] = "boundary",
        [EVENT_GPU_USE] = "gpu_use",
    };
    return names[kind];
}

const char *rule_name(enum rule rule)
{
    static const char *const names[RULE_COUNT] = {
        [RULE_NONE] = "none",         [RULE_ORDER] = "order",
        [RULE_TRIAL] = "trial",       [RULE_ROUND] = "round",
        [RULE_RESIZE] = "resize",     [RULE_CANCEL] = "cancel",
        [RULE_CALENDAR] = "calendar",
    };
    return names[rule];
}

bool event_makes_no_room(const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_REJECTED:
    case EVENT_CLOSED:
    case EVENT_PLACED:
    case EVENT_STARTED:
    case EVENT_LOADED:
    case EVENT_PROGRESS:
        return true;
    default:
        return false;
    }
}
