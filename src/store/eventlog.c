/* eventlog.c - an event as one line of JSON. */
#include "store/eventlog.h"

#include <math.h>

#include "base/json_write.h"

static void write_part(struct buf *buf, node_id node, uint64_t gpus, uint32_t cpu_milli,
                       uint32_t mem_mib)
{
    json_write_count(buf, "node", node);
    json_write_bits(buf, "gpus", gpus);
    json_write_count(buf, "cpu_milli", cpu_milli);
    json_write_count(buf, "mem_mib", mem_mib);
}

void eventlog_write_seats(struct buf *buf, const struct seat *seats, uint32_t count)
{
    json_write_open(buf, "seats", '[');
    for (uint32_t i = 0; i < count; i++) {
        json_write_open(buf, NULL, '{');
        write_part(buf, seats[i].node, seats[i].gpus, seats[i].cpu_milli,
                   seats[i].mem_mib);
        json_write_close(buf, '}');
    }
    json_write_close(buf, ']');
}

static void write_placement(struct buf *buf, const struct view *view,
                            const struct event *event)
{
    eventlog_write_seats(buf, event->seats, event->seat_count);
    if (event->promise_count > 0) {
        json_write_open(buf, "after", '[');
        for (uint32_t i = 0; i < event->promise_count; i++) {
            const struct promise_part *promise = &event->promises[i];
            json_write_open(buf, NULL, '{');
            json_write_count(buf, "job", (int64_t)view->jobs[promise->victim].id);
            write_part(buf, promise->part.node, promise->part.gpus,
                       promise->part.cpu_milli, promise->part.mem_mib);
            json_write_close(buf, '}');
        }
        json_write_close(buf, ']');
    }
    if (event->steps_max)
        json_write_count(buf, "steps_max", (int64_t)event->steps_max);
    if (event->beside != JOB_NONE)
        json_write_count(buf, "beside", (int64_t)view->jobs[event->beside].id);
    if (event->spread)
        json_write_flag(buf, "spread", true);
}

static void write_steps(struct buf *buf, const struct event *event)
{
    json_write_exact(buf, "step", event->steps);
    if (event->steps_reached > event->steps)
        json_write_exact(buf, "reached", event->steps_reached);
    if (event->rate_per_s > 0)
        json_write_exact(buf, "steps_per_s", event->rate_per_s);
    if (isfinite(event->loss) && event->kind == EVENT_PROGRESS)
        json_write_exact(buf, "loss", event->loss);
}

static void write_preemption(struct buf *buf, const struct view *view,
                             const struct event *event)
{
    json_write_text(buf, "rule", rule_name(event->rule));
    json_write_exact(buf, "grace_s", (double)event->grace_ns * 1e-9);
    if (event->for_whom != JOB_NONE)
        json_write_count(buf, "for", (int64_t)view->jobs[event->for_whom].id);
    if (event->wait_saved_ns >= 0)
        json_write_exact(buf, "wait_saved_s", (double)event->wait_saved_ns * 1e-9);
}

static void write_details(struct buf *buf, const struct view *view,
                          const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_REJECTED:
    case EVENT_CHANGED:
        json_write_text(buf, "class", event->spec->class == CLASS_TE ? "te" : "be");
        json_write_count(buf, "gpus", event->spec->gpus);
        break;
    case EVENT_PLACED:
    case EVENT_RESIZING:
    case EVENT_RENEWED:
        write_placement(buf, view, event);
        break;
    case EVENT_RECALLED:
        write_preemption(buf, view, event);
        break;
    case EVENT_STARTED:
    case EVENT_LOADED:
        if (event->loaded || event->kind == EVENT_LOADED)
            json_write_flag(buf, "loaded", true);
        break;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        json_write_count(buf, "exit_code", event->exit_code);
        if (event->kind == EVENT_STOPPED)
            json_write_flag(buf, "clean", event->clean);
        write_steps(buf, event);
        break;
    case EVENT_PROGRESS:
    case EVENT_LEASE_DONE:
    case EVENT_RESIZED:
    case EVENT_LOST:
        write_steps(buf, event);
        break;
    case EVENT_LEVELLED:
        json_write_count(buf, "level", event->level);
        break;
    case EVENT_NODE_DOWN:
    case EVENT_NODE_UP:
        json_write_count(buf, "node", event->node);
        break;
    case EVENT_FOREIGN:
        json_write_count(buf, "node", event->node);
        json_write_bits(buf, "gpus", event->gpus);
        break;
    default:
        break;
    }
    json_write_text_if(buf, "why", event->why);
}

/* The public id of the job the event is about; 0: none. */
static uint64_t public_id(const struct view *view, const struct event *event)
{
    if (event->kind == EVENT_REJECTED)
        return event->spec->id;
    return event->job == JOB_NONE ? 0 : view->jobs[event->job].id;
}

void eventlog_write(struct buf *buf, uint64_t seq, const struct view *view,
                    const struct event *event)
{
    uint64_t id = public_id(view, event);
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "seq", (int64_t)seq);
    json_write_time_ns(buf, "at", event->at_ns);
    json_write_text(buf, "kind", event_name(event->kind));
    if (id) {
        json_write_count(buf, "job", (int64_t)id);
        if (event->kind != EVENT_REJECTED && event->kind != EVENT_SUBMITTED &&
            view->jobs[event->job].attempt != UINT32_MAX)
            json_write_count(buf, "attempt", view->jobs[event->job].attempt);
    }
    write_details(buf, view, event);
    json_write_close(buf, '}');
}
