/* senders.c - the jobs that use the network now, in the order of a flow policy. */
#include "flow/senders.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/throughput.h"

#define LINK_UNKNOWN 1e9 /* bytes per second */

const struct field senders_params[] = { SENDERS_PARAM_LEVELS, { 0 } };

int senders_init(void *self, const struct view *view, struct arena *run,
                 struct error *err)
{
    struct senders *senders = self;
    topology_init(&senders->topology, run, view->cluster);
    senders->places = arena_array(run, uint32_t, view->job_max);
    uint32_t spots = view->cluster->node_count + view->cluster->rack_count;
    senders->next_level = arena_array(run, uint32_t, spots);
    senders->stamps = arena_array(run, uint32_t, spots);
    return 0;
}

void senders_fini(void *self)
{
    struct senders *senders = self;
    free(senders->list);
    free(senders->order);
    free(senders->free_slots);
    free(senders->uses);
    free(senders->hosts);
    *senders = (struct senders){ 0 };
}

const struct sender *sender_explain(const struct senders *senders, job_id job,
                                    struct flow_reason *reason)
{
    const struct sender *sender = sender_find(senders, job);
    *reason = (struct flow_reason){ .score = sender ? sender->score : (double)NAN };
    if (!sender)
        snprintf(reason->text, sizeof reason->text, "sends next to nothing");
    return sender;
}

/* --- adding and removing ---------------------------------------------------------- */

static uint32_t take_slot(struct senders *senders)
{
    return senders->free_slot_count > 0
               ? senders->free_slots[--senders->free_slot_count]
               : senders->slot_max++;
}

static void free_slot(struct senders *senders, uint32_t slot)
{
    senders->free_slots =
        grow_array(senders->free_slots, &senders->free_slot_room,
                   senders->free_slot_count + 1, sizeof *senders->free_slots);
    senders->free_slots[senders->free_slot_count++] = slot;
}

/* The job declares the bytes of a step: the rest follows from that and its hosts. */
static void describe_declared(struct senders *senders, const struct view *view,
                              struct sender *sender)
{
    const struct job *job = &view->jobs[sender->job];
    const struct seat *seats = view_seats(view, sender->job);
    uint32_t count = job->seats.count;
    senders->hosts =
        grow_array(senders->hosts, &senders->host_room, count, sizeof *senders->hosts);
    senders->uses = grow_array(senders->uses, &senders->use_room,
                               traffic_uses_max(count), sizeof *senders->uses);
    for (uint32_t i = 0; i < count; i++)
        senders->hosts[i] = seats[i].node;
    struct traffic traffic;
    traffic_make(&traffic, senders->uses, &senders->topology, job->sync,
                 (double)job->bytes_per_step, senders->hosts, count,
                 (uint32_t)(job->id % count));
    double rate = throughput_rate(view->rates, job, job->type_now, job->gpus_now,
                                  job->spread_now);
    sender->step_s = rate > 0 ? 1 / rate : 0;
    sender->send_s = traffic_alone_s(&traffic, &senders->topology);
    double beside_s = job->overlap * sender->step_s;
    sender->alone_s = sender->step_s - beside_s + fmax(beside_s, sender->send_s);
    sender->bytes = 0;
    for (uint32_t p = 0; p < traffic.phase_count; p++) {
        double most = 0;
        for (uint32_t i = 0; i < traffic.use_counts[p]; i++)
            most = fmax(most, traffic.uses[p][i].flows);
        sender->bytes += traffic.volume * most;
    }
    sender->intensity = job->gpus_now * sender->step_s / sender->send_s;
}

/* The rate of a host's link; if unknown, one that is the same for all. */
static double link_rate(const struct senders *senders, uint32_t host)
{
    double rate = senders->topology.capacities[topology_out(&senders->topology, host)];
    return rate > 0 ? rate : LINK_UNKNOWN;
}

/*
 * Its hosts count what it sends.  Bytes of a step are the same from step to step, so
 * that bytes and steps per second, each as last measured, give the bytes per step.  The
 * busiest of its hosts sends its even part of them.
 */
static void describe_counted(struct senders *senders, const struct view *view,
                             struct sender *sender)
{
    const struct job *job = &view->jobs[sender->job];
    double rate = job->rate_per_s > 0 ? job->rate_per_s : 1;
    double sends = job->sends_per_s > 0 ? job->sends_per_s : 0;
    if (!sender->measured || 1 / rate < sender->alone_s)
        sender->alone_s = 1 / rate;
    sender->bytes = sends / rate / job->seats.count;
    double link = link_rate(senders, view_seats(view, sender->job)[0].node);
    sender->send_s = fmin(sender->bytes / link, sender->alone_s);
    sender->step_s = sender->alone_s - sender->send_s;
    sender->intensity = sender->send_s > 0
                            ? fmax(job->gpus_now, 1) * sender->step_s / sender->send_s
                            : INFINITY;
}

static bool declares_bytes(const struct job *job)
{
    return job->bytes_per_step > 0 && job->seats.count > 1;
}

static void describe_sender(struct senders *senders, const struct view *view,
                            struct sender *sender)
{
    sender->counted = !declares_bytes(&view->jobs[sender->job]);
    if (sender->counted)
        describe_counted(senders, view, sender);
    else
        describe_declared(senders, view, sender);
}

static void add_sender(struct senders *senders, const struct view *view, job_id job)
{
    uint32_t place = senders->count++;
    senders->list = grow_array(senders->list, &senders->room, senders->count,
                               sizeof *senders->list);
    senders->order = grow_array(senders->order, &senders->order_room, senders->count,
                                sizeof *senders->order);
    senders->list[place] =
        (struct sender){ .job = job, .fresh = true, .slot = take_slot(senders) };
    senders->places[job] = place + 1;
    senders->order[place] = place;
    describe_sender(senders, view, &senders->list[place]);
    senders->changed = true;
}

/* The last sender takes its index; the order of the others stays. */
static void remove_sender(struct senders *senders, job_id job)
{
    uint32_t place = senders->places[job] - 1;
    uint32_t last = --senders->count;
    free_slot(senders, senders->list[place].slot);
    senders->places[job] = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i <= last; i++)
        if (senders->order[i] != place)
            senders->order[kept++] =
                senders->order[i] == last ? place : senders->order[i];
    if (place != last) {
        senders->list[place] = senders->list[last];
        senders->places[senders->list[place].job] = place + 1;
    }
    senders->changed = true;
}

static bool uses_network(const struct job *job)
{
    bool may = isnan(job->sends_per_s); /* not counted yet */
    return job_runs(job) && (declares_bytes(job) || may || job->sends_per_s > 0);
}

bool senders_update(struct senders *senders, const struct view *view,
                    const struct event *event)
{
    switch (event->kind) {
    case EVENT_STARTED:
    case EVENT_RESIZED:
    case EVENT_ADOPTED:
    case EVENT_RECALLED:
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
    case EVENT_LOST:
    case EVENT_DROPPED:
    case EVENT_SENT:
        break;
    case EVENT_PROGRESS: {
        struct sender *sender = sender_find(senders, event->job);
        if (sender && sender->counted && event->rate_per_s > 0) {
            describe_sender(senders, view, sender);
            sender->measured = true;
        }
        return false;
    }
    default:
        return false;
    }
    bool was = senders->places[event->job] > 0;
    bool is = uses_network(&view->jobs[event->job]) && event->kind != EVENT_FINISHED &&
              event->kind != EVENT_FAILED;
    if (was && is && (event->kind == EVENT_RESIZED || event->kind == EVENT_SENT)) {
        describe_sender(senders, view, sender_find(senders, event->job));
        senders->changed = true;
    } else if (is && !was) {
        add_sender(senders, view, event->job);
    } else if (was && !is) {
        remove_sender(senders, event->job);
    }
    return was != is;
}

void senders_observe(void *self, const struct view *view, const struct event *event)
{
    senders_update(self, view, event);
}

/* --- order and levels ---------------------------------------------------------------- */

static bool is_ahead(const struct view *view, const struct sender *later,
                     const struct sender *earlier, double hysteresis)
{
    if (later->class != earlier->class)
        return later->class < earlier->class;
    if (later->score != earlier->score)
        return later->score > earlier->score &&
               (later->fresh || earlier->fresh || earlier->score <= 0 ||
                later->score > earlier->score * hysteresis);
    if (later->intensity != earlier->intensity)
        return later->intensity > earlier->intensity;
    const struct job *a = &view->jobs[later->job];
    const struct job *b = &view->jobs[earlier->job];
    return a->submit_ns != b->submit_ns ? a->submit_ns < b->submit_ns : a->id < b->id;
}

/*
 * Insertion sort, from the previous order: most senders keep their position, and one
 * that does not clear the bar to the next ahead of it stays behind it.
 */
void senders_sort(struct senders *senders, const struct view *view, double hysteresis)
{
    for (uint32_t i = 1; i < senders->count; i++) {
        uint32_t place = senders->order[i];
        uint32_t at = i;
        for (; at > 0 && is_ahead(view, &senders->list[place],
                                  &senders->list[senders->order[at - 1]], hysteresis);
             at--)
            senders->order[at] = senders->order[at - 1];
        senders->order[at] = place;
    }
}

/* The first level that is free on a host or rack, and not before 'level'. */
static uint32_t first_free_level(struct senders *senders, uint32_t spot, uint32_t level)
{
    if (senders->stamps[spot] != senders->round) {
        senders->stamps[spot] = senders->round;
        senders->next_level[spot] = 0;
    }
    return senders->next_level[spot] > level ? senders->next_level[spot] : level;
}

void senders_levels(struct senders *senders, const struct view *view,
                    struct flow_plan *plan)
{
    const struct topology *topology = &senders->topology;
    senders->round++;
    senders->changed = false;
    for (uint32_t i = 0; i < senders->count; i++) {
        struct sender *sender = &senders->list[senders->order[i]];
        const struct seat *seats = view_seats(view, sender->job);
        uint32_t count = view->jobs[sender->job].seats.count;
        uint32_t level = 0;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t rack = topology->host_count + topology->racks[seats[k].node];
            level = first_free_level(senders, seats[k].node, level);
            if (topology->has_uplinks)
                level = first_free_level(senders, rack, level);
        }
        level = level < senders->levels ? level : senders->levels - 1;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t rack = topology->host_count + topology->racks[seats[k].node];
            senders->next_level[seats[k].node] = level + 1;
            if (topology->has_uplinks)
                senders->next_level[rack] = level + 1;
        }
        sender->fresh = false;
        flow_set(plan, view, sender->job, level);
    }
}
