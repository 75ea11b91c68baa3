/* faulty_wire.c - messages from the executor to the scheduler, with delays and losses. */
#include "support/faulty_internal.h"

#include <math.h>

#include "base/grow.h"
#include "model/outbox.h"

#define SECOND INT64_C(1000000000)
#define LOST_NS (7 * SECOND) /* until a lost message is sent again */

const char *const fault_names[FAULT_COUNT] = {
    [FAULT_LATE] = "late",
    [FAULT_LOST] = "lost",
    [FAULT_REPEATED] = "repeated",
    [FAULT_STALE] = "stale",
    [FAULT_START] = "failed_start",
    [FAULT_NODE] = "node_down",
    [FAULT_GRACE] = "ignored_grace",
    [FAULT_ABSURD] = "absurd_report",
    [FAULT_FOREIGN] = "foreign_gpu",
    [FAULT_CANCEL] = "cancel",
    [FAULT_HOLD] = "hold",
    [FAULT_CHANGE] = "change",
    [FAULT_POLICY] = "policy_change",
    [FAULT_CRASH_BEFORE] = "crash_before_commit",
    [FAULT_CRASH_AFTER] = "crash_after_commit",
    [FAULT_CRASH_AMID] = "crash_amid_orders",
    [FAULT_CRASH_IDLE] = "crash_between_steps",
};

bool faulty_draw(struct faulty *faulty, uint32_t per_mille)
{
    return faulty->faults_on && rng_below(&faulty->rng, 1000) < per_mille;
}

static void put_on_wire(struct faulty *faulty, const struct event *event, int64_t at_ns)
{
    faulty->wire = grow_array(faulty->wire, &faulty->wire_room, faulty->wire_count + 1,
                              sizeof *faulty->wire);
    faulty->wire[faulty->wire_count++] =
        (struct faulty_message){ *event, at_ns, ++faulty->order };
}

/*
 * Messages of an attempt arrive in their order; an earlier one may arrive once more at any
 * time.  Only a resize is not repeated later: nothing in the message says which resize it
 * is.
 */
void faulty_send(struct faulty *faulty, struct faulty_attempt *attempt,
                 struct event *event)
{
    event->job = attempt->slot;
    event->generation = attempt->generation;
    event->attempt = attempt->attempt;
    int64_t at_ns = faulty->now_ns;
    if (faulty_draw(faulty, faulty->trouble)) {
        faulty->faults[FAULT_LATE]++;
        at_ns += 1 + rng_below(&faulty->rng, 5000) * (SECOND / 1000);
    } else if (faulty_draw(faulty, faulty->trouble / 2)) {
        faulty->faults[FAULT_LOST]++;
        if (event->kind == EVENT_PROGRESS)
            return;
        at_ns += LOST_NS;
    }
    at_ns = at_ns > attempt->wire_ns ? at_ns : attempt->wire_ns;
    attempt->wire_ns = at_ns;
    put_on_wire(faulty, event, at_ns);
    if (event->kind != EVENT_RESIZED && faulty_draw(faulty, faulty->trouble)) {
        faulty->faults[FAULT_REPEATED]++;
        put_on_wire(faulty, event, at_ns + rng_below(&faulty->rng, 30) * SECOND);
    }
    if (faulty_draw(faulty, faulty->trouble / 2)) {
        static const enum event_kind kinds[] = { EVENT_STARTED,  EVENT_STOPPED,
                                                 EVENT_FINISHED, EVENT_FAILED,
                                                 EVENT_PROGRESS, EVENT_LEASE_DONE };
        struct event stale = *event;
        faulty->faults[FAULT_STALE]++;
        stale.kind = kinds[rng_below(&faulty->rng, 6)];
        stale.steps = stale.steps_reached = 1;
        /* Of the past: no message can be about a future attempt. */
        if (attempt->attempt > 0 && rng_below(&faulty->rng, 2))
            stale.attempt--;
        else if (attempt->generation > 1)
            stale.generation--;
        else
            stale.attempt += 1000;
        put_on_wire(faulty, &stale, at_ns + rng_below(&faulty->rng, 3) * SECOND);
    }
}

struct event faulty_new_event(const struct faulty *faulty, enum event_kind kind)
{
    return (struct event){ .at_ns = faulty->now_ns, .kind = kind, .loss = NAN };
}

void faulty_report_node(struct faulty *faulty, node_id node, enum event_kind kind)
{
    struct event event = faulty_new_event(faulty, kind);
    event.job = JOB_NONE;
    event.node = node;
    event.gpus = faulty->foreign[node];
    put_on_wire(faulty, &event, faulty->now_ns);
}

void faulty_receive(struct faulty *faulty, struct outbox *inbox)
{
    for (;;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < faulty->wire_count; i++) {
            const struct faulty_message *m = &faulty->wire[i];
            if (m->at_ns > faulty->now_ns)
                continue;
            if (best == UINT32_MAX || m->at_ns < faulty->wire[best].at_ns ||
                (m->at_ns == faulty->wire[best].at_ns &&
                 m->order < faulty->wire[best].order))
                best = i;
        }
        if (best == UINT32_MAX)
            return;
        struct event *event = outbox_add(inbox);
        *event = faulty->wire[best].event;
        bool early = event->at_ns < 0; /* a clock that went back, and by how much */
        if (!early)
            event->at_ns = faulty->now_ns; /* when it arrived */
        else
            event->at_ns +=
                event->at_ns + faulty->now_ns > 0 ? faulty->now_ns : -event->at_ns;
        faulty->wire[best] = faulty->wire[--faulty->wire_count];
    }
}
