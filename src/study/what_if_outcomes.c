/* what_if_outcomes.c - what became of each job of a simulated run. */
#include "study/what_if_outcomes.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/map.h"

#define KINDS \
    (1u << EVENT_SUBMITTED | 1u << EVENT_STARTED | 1u << EVENT_LOADED | \
     1u << EVENT_RESIZED | 1u << EVENT_RECALLED | 1u << EVENT_STOPPED | \
     1u << EVENT_LOST | 1u << EVENT_FINISHED)

/* A job that lives. */
struct what_if_slot {
    uint32_t place;
    uint32_t gpus, starts;
    bool loading, recalled;
    int64_t since_ns; /* of loading or leaving */
};

void what_if_outcomes_init(struct what_if_outcomes *outcomes, const struct map *places,
                           struct what_if_outcome *jobs)
{
    *outcomes = (struct what_if_outcomes){ .places = places, .jobs = jobs };
}

void what_if_outcomes_release(struct what_if_outcomes *outcomes)
{
    free(outcomes->slots);
    outcomes->slots = NULL;
}

static double gpu_s(const struct what_if_slot *slot, int64_t until_ns)
{
    return (double)(until_ns - slot->since_ns) * 1e-9 * slot->gpus;
}

/* Loading again is lost, and the first loading is not. */
static void end_loading(struct what_if_slot *slot, struct what_if_outcome *job,
                        int64_t at_ns)
{
    if (slot->loading && slot->starts > 1)
        job->lost_gpu_s += gpu_s(slot, at_ns);
    slot->loading = false;
}

static void read_recalled(struct what_if_slot *slot, struct what_if_outcome *job,
                          const struct event *event)
{
    end_loading(slot, job, event->at_ns);
    if (event->rule == RULE_CANCEL)
        return;
    slot->recalled = true;
    slot->since_ns = event->at_ns;
    job->preemptions += event->rule != RULE_RESIZE;
}

static void read_left(struct what_if_slot *slot, struct what_if_outcome *job,
                      const struct event *event)
{
    if (slot->starts == 0)
        return; /* it was placed and never started */
    end_loading(slot, job, event->at_ns);
    if (slot->recalled)
        job->lost_gpu_s += gpu_s(slot, event->at_ns);
    if (event->rate_per_s > 0 && event->steps_reached > event->steps)
        job->lost_gpu_s +=
            (event->steps_reached - event->steps) / event->rate_per_s * slot->gpus;
    slot->recalled = false;
}

static void read_finished(struct what_if_outcome *outcome, const struct job *job,
                          const struct event *event)
{
    double alone_s = event->steps / job->rate_best_per_s;
    outcome->completed = true;
    outcome->jct_s = (double)(event->at_ns - job->submit_ns) * 1e-9;
    outcome->wait_s = (double)job->waited_ns * 1e-9;
    outcome->slowdown =
        alone_s > 0 && outcome->jct_s > 0 ? outcome->jct_s / alone_s : 1;
}

static void add_job(struct what_if_outcomes *outcomes, const struct view *view,
                    job_id id)
{
    outcomes->slots = grow_array(outcomes->slots, &outcomes->slot_room, id + 1,
                                 sizeof *outcomes->slots);
    outcomes->slots[id] =
        (struct what_if_slot){ .place = map_find(outcomes->places, view->jobs[id].id) };
}

static void read_event(void *self, const struct view *view, const struct event *event)
{
    struct what_if_outcomes *outcomes = self;
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_SUBMITTED)
        add_job(outcomes, view, event->job);
    struct what_if_slot *slot = &outcomes->slots[event->job];
    if (slot->place == MAP_NONE)
        return;
    struct what_if_outcome *outcome = &outcomes->jobs[slot->place];
    switch (event->kind) {
    case EVENT_STARTED:
        slot->starts++;
        slot->gpus = job->gpus_now;
        slot->loading = !event->loaded;
        slot->recalled = false;
        slot->since_ns = event->at_ns;
        break;
    case EVENT_LOADED:
        end_loading(slot, outcome, event->at_ns);
        break;
    case EVENT_RESIZED:
        slot->gpus = job->gpus_now;
        break;
    case EVENT_RECALLED:
        read_recalled(slot, outcome, event);
        break;
    case EVENT_STOPPED:
    case EVENT_LOST:
        if (!job_holds_seats(job)) /* else only a pending allocation is lost */
            read_left(slot, outcome, event);
        break;
    case EVENT_FINISHED:
        read_finished(outcome, job, event);
        break;
    default:
        break;
    }
}

struct engine_observer what_if_outcomes_observer(struct what_if_outcomes *outcomes)
{
    return (struct engine_observer){ .event = read_event,
                                     .self = outcomes,
                                     .kinds = KINDS };
}
