/*
 * measured.c - what a job truly needed, from its events.
 *
 * Time in seats is work from the first step of an attempt until it is told to stop, as far as
 * its result was kept: what was lost and made again is work once.
 */
#include "daemon/measured.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "model/cluster.h"
#include "model/event_record.h"

#define SAME_PASS_NS 1000000 /* held and released at once: its settings were changed */

void measured_init(struct measured *measured, const struct cluster *cluster,
                   uint32_t gpus, bool held)
{
    *measured = (struct measured){ .cluster = cluster,
                                   .gpus = gpus,
                                   .eligible_ns = -1,
                                   .is_held = held,
                                   .cancelled_ns = -1,
                                   .held_ns = -1,
                                   .started_ns = -1,
                                   .running_ns = -1,
                                   .recalled_ns = -1 };
}

int64_t measured_mean_ns(const struct measured_mean *mean)
{
    return mean->count > 0 ? mean->sum_ns / mean->count : -1;
}

static void add_to_mean(struct measured_mean *mean, int64_t ns)
{
    mean->sum_ns += ns > 0 ? ns : 0;
    mean->count++;
}

static double factor_now(const struct measured *measured)
{
    return measured->now.is_there ? measured->now.factor : 1;
}

/* Count the work made until now; it makes none after that. */
static void stop_work(struct measured *measured, int64_t at_ns)
{
    if (measured->running_ns >= 0 && at_ns > measured->running_ns)
        measured->ran_s +=
            (double)(at_ns - measured->running_ns) * 1e-9 * factor_now(measured);
    measured->running_ns = -1;
}

static struct measured_place read_place(const struct measured *measured,
                                        const struct event *event, const char *line)
{
    const struct cluster *cluster = measured->cluster;
    struct measured_place place = { .at_ns = event->at_ns,
                                    .waits = strstr(line, "\"after\":[") != NULL,
                                    .factor = 1,
                                    .is_there = true };
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < event->seat_count; i++) {
        const struct seat *seat = &event->seats[i];
        uint32_t type = seat->node < cluster->node_count
                            ? cluster->nodes[seat->node].type
                            : TYPE_NONE;
        gpus += seat_gpu_count(seat);
        if (type < cluster->type_count)
            place.factor = cluster->types[type].speed;
    }
    if (measured->gpus > 0 && gpus > 0)
        place.factor *= (double)gpus / measured->gpus;
    else if (measured->gpus == 0)
        place.factor = 1;
    return place;
}

/* The attempt is over; 'kept' of its work was not in vain. */
static void end_attempt(struct measured *measured, int64_t at_ns, double kept)
{
    bool loading =
        measured->started_ns >= 0 && measured->running_ns < 0 && measured->ran_s == 0;
    if (loading && measured->loading_s == 0 && measured->recalled_ns >= 0)
        measured->loading_s = (double)(measured->recalled_ns - measured->started_ns) *
                              1e-9 * factor_now(measured);
    if (measured->started_ns >= 0 && measured->running_ns < 0 && measured->ran_s == 0 &&
        measured->recalled_ns < 0)
        measured->running_ns = measured->started_ns; /* it ended before it reported */
    stop_work(measured, at_ns);
    measured->has_ended = measured->has_ended || measured->started_ns >= 0;
    measured->work_s += measured->ran_s * kept;
    measured->redone_s += measured->ran_s * (1 - kept);
    measured->loaded_s += measured->loading_s * kept;
    measured->ran_s = measured->loading_s = 0;
    measured->started_ns = measured->recalled_ns = -1;
    measured->now = measured->next;
    if (measured->now.is_there && measured->now.at_ns < at_ns)
        measured->now.at_ns = at_ns;
    measured->next.is_there = false;
}

static void read_steps(struct measured *measured, const struct event *event)
{
    double reached = fmax(event->steps, event->steps_reached);
    if (event->rate_per_s > 0 && reached > 0)
        measured->steps = reached;
}

/* Which part of an attempt's work was kept. */
static double kept_part(const struct measured *measured, const struct event *event,
                        bool clean)
{
    double made = event->steps_reached - measured->steps_from;
    double kept = event->steps - measured->steps_from;
    if (!(event->rate_per_s > 0) || !(made > 0))
        return clean ? 1 : 0;
    return fmin(fmax(kept / made, 0), 1);
}

static void read_stopped(struct measured *measured, const struct event *event)
{
    bool cancelled = measured->cancelled_ns >= 0;
    if (measured->recalled_ns >= 0 && !cancelled)
        add_to_mean(event->clean ? &measured->pause : &measured->kill,
                    event->at_ns - measured->recalled_ns);
    read_steps(measured, event);
    end_attempt(measured, event->at_ns,
                cancelled ? 1 : kept_part(measured, event, event->clean));
    if (event->rate_per_s > 0)
        measured->steps_from = event->steps;
}

static void read_lost(struct measured *measured, const struct event *event)
{
    double kept = kept_part(measured, event, false);
    if (event->rate_per_s > 0)
        measured->steps_from = event->steps;
    end_attempt(measured, event->at_ns, measured->cancelled_ns >= 0 ? 1 : kept);
}

/* When its GPUs were its own. */
static int64_t seated_ns(const struct measured *measured)
{
    return measured->now.is_there && !measured->now.waits ? measured->now.at_ns
                                                          : measured->started_ns;
}

static void begin_work(struct measured *measured, int64_t at_ns)
{
    if (measured->started_ns < 0)
        return;
    measured->running_ns = at_ns;
    measured->loading_s =
        (double)(at_ns - measured->started_ns) * 1e-9 * factor_now(measured);
    add_to_mean(&measured->load, at_ns - seated_ns(measured));
}

static void read_started(struct measured *measured, const struct event *event)
{
    measured->started_ns = event->at_ns;
    add_to_mean(&measured->start, event->at_ns - seated_ns(measured));
    if (event->loaded)
        begin_work(measured, event->at_ns);
}

void measured_stop(struct measured *measured, int64_t now_ns)
{
    end_attempt(measured, now_ns, 1);
}

void measured_end(struct measured *measured, bool declares_load)
{
    if (measured->steps > 0 || declares_load)
        return;
    measured->work_s += measured->loaded_s;
    measured->loaded_s = 0;
    measured->load = measured->start;
}

static void read_cancelled(struct measured *measured, const struct event *event,
                           const char *line)
{
    if (measured->cancelled_ns >= 0)
        return;
    measured->cancelled_ns = event->at_ns;
    measured->cancelled_by =
        strstr(line, "\"why\":\"what it depends on") ? CANCELLED_BY_DEPENDENCY
        : strstr(line, "by an administrator\"")      ? CANCELLED_BY_ADMIN
                                                     : CANCELLED_BY_OWNER;
}

static void read_released(struct measured *measured, int64_t at_ns)
{
    bool changed = measured->held_ns >= 0 && at_ns - measured->held_ns < SAME_PASS_NS;
    if (!changed && !measured->has_ended)
        measured->eligible_ns = at_ns;
    measured->is_held = false;
    measured->held_ns = -1;
}

void measured_add(struct measured *measured, const struct event_record *record,
                  const char *line)
{
    const struct event *event = &record->event;
    switch (event->kind) {
    case EVENT_HELD:
        measured->held_ns = event->at_ns;
        measured->is_held = true;
        break;
    case EVENT_RELEASED:
        read_released(measured, event->at_ns);
        break;
    case EVENT_CANCELLED:
        read_cancelled(measured, event, line);
        break;
    case EVENT_PLACED:
        if (measured->started_ns >= 0)
            measured->next = read_place(measured, event, line);
        else
            measured->now = read_place(measured, event, line);
        break;
    case EVENT_RESIZING:
        stop_work(measured, event->at_ns);
        measured->next = read_place(measured, event, line);
        break;
    case EVENT_RESIZED:
        if (measured->next.is_there)
            measured->now = measured->next;
        measured->next.is_there = false;
        measured->running_ns = event->at_ns;
        break;
    case EVENT_STARTED:
        read_started(measured, event);
        break;
    case EVENT_LOADED:
        begin_work(measured, event->at_ns);
        break;
    case EVENT_RECALLED:
        stop_work(measured, event->at_ns);
        measured->recalled_ns = event->at_ns;
        break;
    case EVENT_STOPPED:
        read_stopped(measured, event);
        break;
    case EVENT_LOST:
        read_lost(measured, event);
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
        read_steps(measured, event);
        end_attempt(measured, event->at_ns, 1);
        break;
    default:
        break;
    }
}
