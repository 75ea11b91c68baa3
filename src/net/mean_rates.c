/* mean_rates.c - the mean speed of distributed jobs. */
#include "net/mean_rates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "net/topology.h"

#define NONE CROSSING_NONE
#define SWEEPS 2

void mean_rates_init(struct mean_rates *mean, const struct topology *topology)
{
    *mean = (struct mean_rates){ .topology = topology };
    crossings_init(&mean->crossings, topology->link_count);
}

void mean_rates_release(struct mean_rates *mean)
{
    crossings_release(&mean->crossings);
    free(mean->jobs);
    free(mean->changed);
    *mean = (struct mean_rates){ 0 };
}

static void note_change(struct mean_rates *mean, uint32_t job)
{
    mean->changed = grow_array(mean->changed, &mean->changed_room,
                               mean->changed_count + 1, sizeof *mean->changed);
    mean->changed[mean->changed_count++] = job;
}

/* What a flow of 'job' gets on the link of one of its crossings. */
static double share_on_link(const struct mean_rates *mean,
                            const struct mean_rates_job *job,
                            const struct crossing *own)
{
    double free_rate = mean->topology->capacities[own->link];
    double same = 0;
    double flows = 0;
    const struct crossing *crossing;
    for (uint32_t c = crossings_first(&mean->crossings, own->link); c != NONE;
         c = crossing->next) {
        crossing = &mean->crossings.all[c];
        const struct mean_rates_job *other = &mean->jobs[crossing->owner];
        double load = crossing->flows * other->volume / other->time_s;
        if (other->level < job->level)
            free_rate -= load;
        else if (other->level == job->level)
            flows += crossing->flows;
        if (other->level == job->level && other != job)
            same += load;
    }
    free_rate = fmax(free_rate, 0);
    return fmax((free_rate - same) / own->flows, free_rate / flows);
}

static double step_time(const struct mean_rates *mean, const struct mean_rates_job *job)
{
    double rates[TRAFFIC_PHASES_MAX] = { INFINITY, INFINITY };
    assert(job->phase_count <= TRAFFIC_PHASES_MAX);
    for (uint32_t i = 0; i < job->count; i++) {
        const struct crossing *crossing = &mean->crossings.all[job->first + i];
        double rate = share_on_link(mean, job, crossing);
        rates[crossing->phase] = fmin(rates[crossing->phase], rate);
    }
    double sending_s = 0;
    for (uint32_t p = 0; p < job->phase_count; p++)
        sending_s += job->volume / rates[p];
    double beside_s = job->overlap * job->step_s;
    return job->step_s - beside_s + fmax(beside_s, sending_s);
}

/* Recompute the job, and all jobs that share a link with it. */
static void recompute_near(struct mean_rates *mean, uint32_t id)
{
    struct mean_rates_job *job = &mean->jobs[id];
    mean->round++;
    mean->changed_count = 0;
    job->seen = mean->round;
    note_change(mean, id);
    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t link = mean->crossings.all[job->first + i].link;
        const struct crossing *crossing;
        for (uint32_t c = crossings_first(&mean->crossings, link); c != NONE;
             c = crossing->next) {
            crossing = &mean->crossings.all[c];
            struct mean_rates_job *other = &mean->jobs[crossing->owner];
            if (other->seen == mean->round)
                continue;
            other->seen = mean->round;
            note_change(mean, crossing->owner);
        }
    }
    for (uint32_t sweep = 0; sweep < SWEEPS; sweep++)
        for (uint32_t i = 0; i < mean->changed_count; i++) {
            struct mean_rates_job *other = &mean->jobs[mean->changed[i]];
            if (other->there)
                other->time_s = step_time(mean, other);
        }
}

void mean_rates_join(struct mean_rates *mean, uint32_t id,
                     const struct mean_rates_spec *spec)
{
    const struct traffic *traffic = spec->traffic;
    mean->jobs = grow_array(mean->jobs, &mean->job_room, id + 1, sizeof *mean->jobs);
    struct mean_rates_job *job = &mean->jobs[id];
    assert(!job->there);
    uint32_t count = 0;
    for (uint32_t p = 0; p < traffic->phase_count; p++)
        count += traffic->use_counts[p];
    *job = (struct mean_rates_job){ .first = crossings_row(&mean->crossings, count),
                                    .count = count,
                                    .level = spec->level,
                                    .phase_count = traffic->phase_count,
                                    .volume = traffic->volume,
                                    .step_s = spec->step_s,
                                    .overlap = spec->overlap,
                                    .time_s = INFINITY,
                                    .there = true };
    uint32_t at = job->first;
    for (uint32_t p = 0; p < traffic->phase_count; p++)
        for (uint32_t i = 0; i < traffic->use_counts[p]; i++, at++) {
            const struct link_use *use = &traffic->uses[p][i];
            mean->crossings.all[at] = (struct crossing){
                .link = use->link, .owner = id, .flows = use->flows, .phase = p
            };
        }
    crossings_attach(&mean->crossings, job->first, count);
    recompute_near(mean, id);
}

void mean_rates_leave(struct mean_rates *mean, uint32_t id)
{
    struct mean_rates_job *job = &mean->jobs[id];
    assert(job->there);
    job->there = false;
    crossings_detach(&mean->crossings, job->first, job->count);
    recompute_near(mean, id);
    crossings_row_free(&mean->crossings, job->first, job->count);
}

void mean_rates_set_level(struct mean_rates *mean, uint32_t id, uint32_t level)
{
    mean->jobs[id].level = level;
    recompute_near(mean, id);
}

void mean_rates_set_step(struct mean_rates *mean, uint32_t id, double step_s)
{
    mean->jobs[id].step_s = step_s;
    recompute_near(mean, id);
}
