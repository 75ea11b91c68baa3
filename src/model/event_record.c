/* event_record.c - an event as its observers get it, and as a line of the log. */
#include "model/event_record.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/units.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/view.h"

#define AT_MAX_S 9e9 /* fits into nanoseconds */

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
        record.is_seated = job_holds_seats(job);
        record.is_placed = job->next.count > 0;
        record.event.attempt = job->attempt;
    }
    if (event->kind == EVENT_RECALLED && event->beneficiary != JOB_NONE)
        record.beneficiary = view->jobs[event->beneficiary].id;
    return record;
}

/* ---- writing ---- */

static void write_part(struct buf *buf, node_id node, uint64_t gpus, uint32_t cpu_milli,
                       uint32_t mem_mib)
{
    json_write_count(buf, "node", node);
    json_write_bits(buf, "gpus", gpus);
    json_write_count(buf, "cpu_milli", cpu_milli);
    json_write_count(buf, "mem_mib", mem_mib);
}

void event_record_write_seats(struct buf *buf, const struct seat *seats, uint32_t count)
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
    event_record_write_seats(buf, event->seats, event->seat_count);
    if (event->pending_count > 0) {
        json_write_open(buf, "after", '[');
        for (uint32_t i = 0; i < event->pending_count; i++) {
            const struct pending_part *pending_share = &event->pending_shares[i];
            json_write_open(buf, NULL, '{');
            json_write_count(buf, "job", (int64_t)view->jobs[pending_share->victim].id);
            write_part(buf, pending_share->part.node, pending_share->part.gpus,
                       pending_share->part.cpu_milli, pending_share->part.mem_mib);
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
    if (event->kind == EVENT_PROGRESS && event->steps_saved > 0)
        json_write_exact(buf, "saved", event->steps_saved);
    if (isfinite(event->loss) && event->kind == EVENT_PROGRESS)
        json_write_exact(buf, "loss", event->loss);
}

static void write_preemption(struct buf *buf, const struct view *view,
                             const struct event *event)
{
    json_write_text(buf, "rule", rule_name(event->rule));
    json_write_exact(buf, "grace_s", (double)event->grace_ns * 1e-9);
    if (event->beneficiary != JOB_NONE)
        json_write_count(buf, "for", (int64_t)view->jobs[event->beneficiary].id);
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
    case EVENT_RESERVED:
        json_write_count(buf, "entry", event->entry->id);
        json_write_count(buf, "node", event->entry->node);
        json_write_bits(buf, "gpus", event->entry->gpus);
        json_write_number(buf, "from", (double)event->entry->from_ns * 1e-9);
        json_write_number(buf, "to", (double)event->entry->to_ns * 1e-9);
        json_write_count(buf, "user", event->entry->user);
        break;
    default:
        break;
    }
    json_write_text_if(buf, "why", event->why);
}

void event_record_write(struct buf *buf, const struct view *view,
                        const struct event_record *record)
{
    const struct event *event = &record->event;
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "seq", (int64_t)record->seq);
    json_write_time_ns(buf, "at", event->at_ns);
    json_write_text(buf, "kind", event_name(event->kind));
    if (record->job) {
        json_write_count(buf, "job", (int64_t)record->job);
        if (event->kind != EVENT_REJECTED && event->kind != EVENT_SUBMITTED &&
            event->attempt != UINT32_MAX)
            json_write_count(buf, "attempt", event->attempt);
    }
    write_details(buf, view, event);
    json_write_close(buf, '}');
}

/* ---- reading ---- */

static uint64_t read_bits(const struct json *list)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < json_count(list); i++) {
        int64_t bit;
        if (json_as_count(json_item(list, i), &bit) && bit >= 0 && bit < 64)
            bits |= UINT64_C(1) << bit;
    }
    return bits;
}

static int read_seats(const struct json *list, struct arena *arena, struct event *event)
{
    uint32_t count = (uint32_t)json_count(list);
    struct seat *seats = arena_array(arena, struct seat, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct json *seat = json_item(list, i);
        int64_t node = json_count_at(seat, "node");
        if (node < 0 || node >= NODES_MAX)
            return -EINVAL;
        seats[i] =
            (struct seat){ .node = (node_id)node,
                           .gpus = read_bits(json_get(seat, "gpus")),
                           .cpu_milli = (uint32_t)json_count_at(seat, "cpu_milli"),
                           .mem_mib = (uint32_t)json_count_at(seat, "mem_mib") };
    }
    event->seats = seats;
    event->seat_count = count;
    event->beside = JOB_NONE;
    return 0;
}

static double read_number(const struct json *line, const char *key, double absent)
{
    double number;
    return json_as_number(json_get(line, key), &number) ? number : absent;
}

static void read_steps(const struct json *line, struct event *event)
{
    event->steps = read_number(line, "step", NAN);
    event->steps_reached = read_number(line, "reached", event->steps);
    event->rate_per_s = read_number(line, "steps_per_s", 0);
    event->steps_saved = read_number(line, "saved", 0);
    event->loss = read_number(line, "loss", NAN);
}

/* The reverse of event_name() and rule_name(); false if there is none of that name. */
static bool find_kind(const char *name, enum event_kind *ret_kind)
{
    for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
        if (strcmp(event_name(kind), name) == 0) {
            *ret_kind = kind;
            return true;
        }
    return false;
}

static bool find_rule(const char *name, enum rule *ret_rule)
{
    for (int rule = 0; rule < RULE_COUNT; rule++)
        if (strcmp(rule_name(rule), name) == 0) {
            *ret_rule = rule;
            return true;
        }
    return false;
}

static const struct calendar_entry *read_entry(const struct json *line,
                                               struct arena *arena)
{
    struct calendar_entry *entry = arena_new(arena, struct calendar_entry);
    *entry =
        (struct calendar_entry){ .id = (uint64_t)json_count_at(line, "entry"),
                                 .node = (node_id)json_count_at(line, "node"),
                                 .gpus = read_bits(json_get(line, "gpus")),
                                 .from_ns =
                                     (int64_t)(read_number(line, "from", 0) * 1e9),
                                 .to_ns = (int64_t)(read_number(line, "to", 0) * 1e9),
                                 .user = (uint32_t)json_count_at(line, "user") };
    return entry;
}

static int read_details(const struct json *line, struct arena *arena,
                        struct event_record *record)
{
    struct event *event = &record->event;
    switch (event->kind) {
    case EVENT_PLACED:
    case EVENT_RESIZING:
    case EVENT_RENEWED:
        return read_seats(json_get(line, "seats"), arena, event);
    case EVENT_RECALLED:
        record->beneficiary = (uint64_t)json_count_at(line, "for");
        event->beneficiary = JOB_NONE;
        find_rule(json_text_at(line, "rule"), &event->rule);
        return 0;
    case EVENT_STARTED:
    case EVENT_LOADED:
        event->loaded = json_flag_at(line, "loaded");
        return 0;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        event->exit_code = (int)json_count_at(line, "exit_code");
        event->clean = json_flag_at(line, "clean");
        read_steps(line, event);
        return 0;
    case EVENT_PROGRESS:
    case EVENT_LEASE_DONE:
    case EVENT_RESIZED:
    case EVENT_LOST:
        read_steps(line, event);
        return 0;
    case EVENT_RESERVED:
        event->entry = read_entry(line, arena);
        return 0;
    case EVENT_NODE_DOWN:
    case EVENT_NODE_UP:
    case EVENT_FOREIGN:
        event->node = (node_id)json_count_at(line, "node");
        event->gpus = read_bits(json_get(line, "gpus"));
        return 0;
    default:
        return 0;
    }
}

static int read_line(const struct json *line, struct arena *arena,
                     struct event_record *record)
{
    struct event *event = &record->event;
    int64_t job = json_count_at(line, "job");
    double at_s = read_number(line, "at", NAN);
    if (!find_kind(json_text_at(line, "kind"), &event->kind) || job < 0 ||
        !(at_s >= 0 && at_s < AT_MAX_S))
        return -EINVAL;
    record->seq = (uint64_t)json_count_at(line, "seq");
    record->job = (uint64_t)job;
    event->job = JOB_NONE;
    event->at_ns = units_ns(at_s);
    event->attempt = (uint32_t)json_count_at(line, "attempt");
    return read_details(line, arena, record);
}

/*
 * The time to the nanosecond, which a JSON number, a double, does not hold: from the first
 * members of a line as event_record_write() writes them; otherwise 'near_ns'.
 */
static int64_t read_exact_time(const char *text, size_t count, int64_t near_ns)
{
    char head[64];
    uint64_t seq, s;
    uint32_t ns;
    int from = 0, to = 0;
    snprintf(head, sizeof head, "%.*s", (int)(count < 63 ? count : 63), text);
    if (sscanf(head, "{\"seq\":%" SCNu64 ",\"at\":%" SCNu64 ".%n%9" SCNu32 "%n", &seq,
               &s, &from, &ns, &to) != 3 ||
        to - from != 9 || s >= (uint64_t)AT_MAX_S)
        return near_ns;
    return (int64_t)s * NS_PER_S + ns;
}

int event_record_read(const char *text, size_t count, struct arena *arena,
                      struct event_record *ret_record)
{
    struct json *line;
    if (json_parse(text, count, &line, NULL) < 0)
        return -EINVAL;
    *ret_record = (struct event_record){ 0 };
    int r = read_line(line, arena, ret_record);
    struct event *event = &ret_record->event;
    event->at_ns = read_exact_time(text, count, event->at_ns);
    json_free(line);
    return r;
}
