/* eventlog.c - an event as one line of JSON. */
#include "store/eventlog.h"

#include <inttypes.h>
#include <math.h>

#include "base/buf.h"

/* A number so that it is read back equal; JSON has no infinities: those become null. */
static void eventlog_number(struct buf *buf, double number)
{
    if (isfinite(number))
        buf_print(buf, "%.17g", number);
    else
        buf_text(buf, "null");
}

void eventlog_text(struct buf *buf, const char *text)
{
    buf_text(buf, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            buf_print(buf, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            buf_print(buf, "\\u%04x", *c);
        else
            buf_add(buf, c, 1);
    }
    buf_text(buf, "\"");
}

static void put_number(struct buf *buf, const char *key, double number)
{
    buf_print(buf, ",\"%s\":", key);
    eventlog_number(buf, number);
}

static void put_time(struct buf *buf, const char *key, int64_t ns)
{
    buf_print(buf, ",\"%s\":%" PRId64 ".%09" PRId64, key, ns / 1000000000,
              ns % 1000000000);
}

static void put_gpus(struct buf *buf, uint64_t gpus)
{
    buf_text(buf, "[");
    for (const char *comma = ""; gpus; gpus &= gpus - 1, comma = ",")
        buf_print(buf, "%s%d", comma, __builtin_ctzll(gpus));
    buf_text(buf, "]");
}

static void put_room(struct buf *buf, node_id node, uint64_t gpus, uint32_t cpu_milli,
                     uint32_t mem_mib)
{
    buf_print(buf, "\"node\":%u,\"gpus\":", node);
    put_gpus(buf, gpus);
    buf_print(buf, ",\"cpu_milli\":%u,\"mem_mib\":%u}", cpu_milli, mem_mib);
}

static void put_seats(struct buf *buf, const struct view *view,
                      const struct event *event)
{
    buf_text(buf, ",\"seats\":[");
    for (uint32_t i = 0; i < event->seat_count; i++) {
        const struct seat *seat = &event->seats[i];
        buf_text(buf, i ? ",{" : "{");
        put_room(buf, seat->node, seat->gpus, seat->cpu_milli, seat->mem_mib);
    }
    buf_text(buf, "]");
    if (event->promise_count > 0) {
        buf_text(buf, ",\"after\":[");
        for (uint32_t i = 0; i < event->promise_count; i++) {
            const struct promise_part *promise = &event->promises[i];
            buf_print(buf, "%s{\"job\":%" PRIu64 ",", i ? "," : "",
                      view->jobs[promise->victim].id);
            put_room(buf, promise->part.node, promise->part.gpus,
                     promise->part.cpu_milli, promise->part.mem_mib);
        }
        buf_text(buf, "]");
    }
    if (event->steps_max)
        buf_print(buf, ",\"steps_max\":%" PRIu64, event->steps_max);
    if (event->beside != JOB_NONE)
        buf_print(buf, ",\"beside\":%" PRIu64, view->jobs[event->beside].id);
    if (event->spread)
        buf_text(buf, ",\"spread\":true");
}

static void put_steps(struct buf *buf, const struct event *event)
{
    put_number(buf, "step", event->steps);
    if (event->steps_reached > event->steps)
        put_number(buf, "reached", event->steps_reached);
    if (event->rate_per_s > 0)
        put_number(buf, "steps_per_s", event->rate_per_s);
    if (isfinite(event->loss) && event->kind == EVENT_PROGRESS)
        put_number(buf, "loss", event->loss);
}

static void put_recall(struct buf *buf, const struct view *view,
                       const struct event *event)
{
    buf_print(buf, ",\"rule\":\"%s\"", rule_name(event->rule));
    put_number(buf, "grace_s", (double)event->grace_ns * 1e-9);
    if (event->for_whom != JOB_NONE)
        buf_print(buf, ",\"for\":%" PRIu64, view->jobs[event->for_whom].id);
    if (event->wait_saved_ns >= 0)
        put_number(buf, "wait_saved_s", (double)event->wait_saved_ns * 1e-9);
}

static void put_rest(struct buf *buf, const struct view *view,
                     const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_REJECTED:
    case EVENT_CHANGED:
        buf_print(buf, ",\"class\":\"%s\",\"gpus\":%u",
                  event->spec->class == CLASS_TE ? "te" : "be", event->spec->gpus);
        break;
    case EVENT_PLACED:
    case EVENT_RESIZING:
    case EVENT_RENEWED:
        put_seats(buf, view, event);
        break;
    case EVENT_RECALLED:
        put_recall(buf, view, event);
        break;
    case EVENT_STARTED:
    case EVENT_LOADED:
        if (event->loaded || event->kind == EVENT_LOADED)
            buf_text(buf, ",\"loaded\":true");
        break;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        buf_print(buf, ",\"exit_code\":%d", event->exit_code);
        if (event->kind == EVENT_STOPPED)
            buf_print(buf, ",\"clean\":%s", event->clean ? "true" : "false");
        put_steps(buf, event);
        break;
    case EVENT_PROGRESS:
    case EVENT_LEASE_DONE:
    case EVENT_RESIZED:
    case EVENT_LOST:
        put_steps(buf, event);
        break;
    case EVENT_LEVELLED:
        buf_print(buf, ",\"level\":%u", event->level);
        break;
    case EVENT_NODE_DOWN:
    case EVENT_NODE_UP:
        buf_print(buf, ",\"node\":%u", event->node);
        break;
    case EVENT_FOREIGN:
        buf_print(buf, ",\"node\":%u,\"gpus\":", event->node);
        put_gpus(buf, event->gpus);
        break;
    default:
        break;
    }
    if (event->why) {
        buf_text(buf, ",\"why\":");
        eventlog_text(buf, event->why);
    }
}

/* It is about a job, and which. */
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
    buf_print(buf, "{\"seq\":%" PRIu64, seq);
    put_time(buf, "at", event->at_ns);
    buf_print(buf, ",\"kind\":\"%s\"", event_name(event->kind));
    if (id) {
        buf_print(buf, ",\"job\":%" PRIu64, id);
        if (event->kind != EVENT_REJECTED && event->kind != EVENT_SUBMITTED &&
            view->jobs[event->job].attempt != UINT32_MAX)
            buf_print(buf, ",\"attempt\":%u", view->jobs[event->job].attempt);
    }
    put_rest(buf, view, event);
    buf_text(buf, "}");
}
