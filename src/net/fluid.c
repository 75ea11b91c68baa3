/*
 * fluid.c - distributed jobs that compute and communicate in turn, as fluid flows.
 *
 *     before   (1-u) of the computing that does not overlap with sending
 *     sending  one phase of traffic after the other; other computing overlaps with it
 *     beside   what is left of that computing when all is sent
 *     after    u of the computing that does not overlap with sending
 *
 * Each job has one next event: the end of its phase, at a time that moves with its
 * rate.
 */
#include "net/fluid.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/memory.h"
#include "base/rng.h"

#define NONE FLUID_NONE
#define EXACT_JOBS_MAX 512
#define EXACT_CHANGES_MAX 30000000
#define STEP_LEAST 1e-9 /* a smaller part of a step counts as none */
#define NS_FAR 9e18
#define MEAN_SWEEPS 2

enum fluid_phase {
    PHASE_IDLE, /* has reached its target */
    PHASE_BEFORE,
    PHASE_SENDING,
    PHASE_BESIDE,
    PHASE_AFTER,
    PHASE_MEAN, /* progresses at a mean rate */
};

struct fluid_job {
    double step_s, overlap;
    double turn;   /* u: where in its step it began                 */
    double volume; /* bytes of each flow, in each phase of sending  */
    double send_s; /* a step's sending with the network to itself   */
    uint32_t bundles[TRAFFIC_PHASES_MAX]; /* in 'rates', while it is exact */
    uint32_t phase_count;
    uint32_t level;
    bool there, queued;

    enum fluid_phase phase;
    uint32_t sending;  /* which of its bundles                         */
    double steps;      /* made when the step in hand began             */
    double part;       /* of a step that is in hand: mostly 1          */
    double target;     /* steps after which it is reported */
    double left;       /* bytes of each flow still to send, at 'since' */
    double rate;       /* bytes per second; or by the mean: steps      */
    int64_t since_ns;  /* of 'left', or by the mean of 'steps'         */
    int64_t until_ns;  /* end of the phase, if it is one of computing  */
    int64_t beside_ns; /* end of the computing beside the sending      */
};

/* --- mean rates ------------------------------------------------------------------- */

/*
 * A job that makes a step in t seconds sends volume / t bytes per second over each link
 * on average.  While it sends it finds what the average of the others leaves,
 *
 *     rate = max(free - others of its level, free / flows of its level)
 *     free = capacity - jobs of earlier levels
 *
 * and at least a fair share of it; the narrowest link decides.  When a job joins,
 * leaves or changes its level, it and the jobs that share a link with it are
 * recomputed, twice; the change does not propagate further.
 */

struct mean_rates_job {
    uint32_t first, count; /* crossings */
    uint32_t level;
    uint32_t seen;
    uint32_t phase_count;
    double volume, step_s, overlap;
    double time_s; /* of a step; INFINITY: it stands still */
    bool there;
};

struct mean_rates_spec {
    const struct traffic *traffic;
    double step_s, overlap;
    uint32_t level;
};

static void mean_rates_init(struct mean_rates *mean, const struct topology *topology)
{
    *mean = (struct mean_rates){ .topology = topology };
    crossings_init(&mean->crossings, topology->link_count);
}

static void mean_rates_release(struct mean_rates *mean)
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
    for (uint32_t c = crossings_first(&mean->crossings, own->link); c != CROSSING_NONE;
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
        for (uint32_t c = crossings_first(&mean->crossings, link); c != CROSSING_NONE;
             c = crossing->next) {
            crossing = &mean->crossings.all[c];
            struct mean_rates_job *other = &mean->jobs[crossing->owner];
            if (other->seen == mean->round)
                continue;
            other->seen = mean->round;
            note_change(mean, crossing->owner);
        }
    }
    for (uint32_t sweep = 0; sweep < MEAN_SWEEPS; sweep++)
        for (uint32_t i = 0; i < mean->changed_count; i++) {
            struct mean_rates_job *other = &mean->jobs[mean->changed[i]];
            if (other->there)
                other->time_s = step_time(mean, other);
        }
}

/* This and what follows list the jobs with a new time in 'changed', always including the job
 * itself. */
static void mean_rates_join(struct mean_rates *mean, uint32_t id,
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

static void mean_rates_leave(struct mean_rates *mean, uint32_t id)
{
    struct mean_rates_job *job = &mean->jobs[id];
    assert(job->there);
    job->there = false;
    crossings_detach(&mean->crossings, job->first, job->count);
    recompute_near(mean, id);
    crossings_row_free(&mean->crossings, job->first, job->count);
}

static void mean_rates_set_level(struct mean_rates *mean, uint32_t id, uint32_t level)
{
    mean->jobs[id].level = level;
    recompute_near(mean, id);
}

static void mean_rates_set_step(struct mean_rates *mean, uint32_t id, double step_s)
{
    mean->jobs[id].step_s = step_s;
    recompute_near(mean, id);
}

/* --- setup --------------------------------------------------------------------- */

void fluid_init(struct fluid *fluid, struct arena *arena, const struct cluster *cluster,
                const struct fluid_setup *setup, uint64_t seed)
{
    *fluid = (struct fluid){ .setup = *setup, .seed = seed, .job_free = NONE };
    if (fluid->setup.exact_jobs_max == 0)
        fluid->setup.exact_jobs_max = EXACT_JOBS_MAX;
    if (fluid->setup.exact_changes_max == 0)
        fluid->setup.exact_changes_max = EXACT_CHANGES_MAX;
    fluid->is_mean = setup->mode == FLUID_MEAN;
    topology_init(&fluid->topology, arena, cluster);
    rates_init(&fluid->rates, &fluid->topology);
    mean_rates_init(&fluid->mean, &fluid->topology);
    heap_init(&fluid->due);
}

void fluid_release(struct fluid *fluid)
{
    rates_release(&fluid->rates);
    mean_rates_release(&fluid->mean);
    free(fluid->jobs);
    free(fluid->owners);
    free(fluid->pool.nodes);
}

/* --- the next event --------------------------------------------------------------- */

static void unschedule_job(struct fluid *fluid, uint32_t id)
{
    if (fluid->jobs[id].queued)
        heap_remove(&fluid->pool, &fluid->due, id);
    fluid->jobs[id].queued = false;
}

static void schedule_job(struct fluid *fluid, uint32_t id, int64_t at_ns)
{
    unschedule_job(fluid, id);
    heap_push(&fluid->pool, &fluid->due, id, at_ns, fluid->sequence++);
    fluid->jobs[id].queued = true;
}

/* In 's' seconds; never, if that is too far away. */
static void schedule_in(struct fluid *fluid, uint32_t id, int64_t now_ns, double s)
{
    double ns = s * 1e9;
    if (ns < NS_FAR && now_ns < INT64_MAX - (int64_t)ns)
        schedule_job(fluid, id, now_ns + (int64_t)llround(ns));
    else
        unschedule_job(fluid, id);
}

int64_t fluid_next_ns(const struct fluid *fluid)
{
    return fluid->due.top == HEAP_NONE ? INT64_MAX
                                       : fluid->pool.nodes[fluid->due.top].key;
}

/* --- exact ------------------------------------------------------------------------- */

/*
 * Rates have changed: jobs that send at another rate end their phase at another time.
 */
static void follow_rates(struct fluid *fluid, int64_t now_ns)
{
    for (uint32_t i = 0; i < fluid->rates.changed_count; i++) {
        uint32_t bundle = fluid->rates.changed[i];
        uint32_t id = fluid->owners[bundle];
        struct fluid_job *job = &fluid->jobs[id];
        double sent = (double)(now_ns - job->since_ns) * 1e-9 * job->rate;
        fluid->bytes_sent += sent;
        job->left = fmax(job->left - sent, 0);
        job->since_ns = now_ns;
        job->rate = fluid->rates.bundles[bundle].rate;
        schedule_in(fluid, id, now_ns, job->left / job->rate);
    }
}

static void begin_computing(struct fluid *fluid, uint32_t id, enum fluid_phase phase,
                            int64_t now_ns, double s)
{
    struct fluid_job *job = &fluid->jobs[id];
    job->phase = phase;
    schedule_in(fluid, id, now_ns, s);
    job->until_ns = job->queued ? fluid->pool.nodes[id].key : INT64_MAX;
}

/* Begin the next step; true if the job has reached its target instead. */
static bool begin_step(struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    job->part = fmin(job->target - job->steps, 1);
    if (job->part < STEP_LEAST) {
        job->phase = PHASE_IDLE;
        unschedule_job(fluid, id);
        return true;
    }
    begin_computing(fluid, id, PHASE_BEFORE, now_ns,
                    job->part * (1 - job->turn) * (1 - job->overlap) * job->step_s);
    return false;
}

static void begin_sending(struct fluid *fluid, uint32_t id, uint32_t sending,
                          int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    job->phase = PHASE_SENDING;
    job->sending = sending;
    job->left = job->part * job->volume;
    job->rate = 0;
    job->since_ns = now_ns;
    fluid->change_count++;
    rates_begin(&fluid->rates, job->bundles[sending]);
    follow_rates(fluid, now_ns);
}

static void end_sending(struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    double sent = (double)(now_ns - job->since_ns) * 1e-9 * job->rate;
    fluid->bytes_sent += sent;
    job->left -= sent;
    fluid->change_count++;
    rates_end(&fluid->rates, job->bundles[job->sending]);
    follow_rates(fluid, now_ns);
}

/* All is sent: compute what did not overlap with the sending. */
static void end_all_sending(struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    if (job->phase == PHASE_SENDING && job->beside_ns > now_ns) {
        job->phase = PHASE_BESIDE;
        job->until_ns = job->beside_ns;
        schedule_job(fluid, id, job->beside_ns);
        return;
    }
    begin_computing(fluid, id, PHASE_AFTER, now_ns,
                    job->part * job->turn * (1 - job->overlap) * job->step_s);
}

/* End a job's phase; true if it has reached its target. */
static bool end_phase(struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    switch (job->phase) {
    case PHASE_BEFORE:
        job->beside_ns =
            now_ns + (int64_t)llround(job->part * job->overlap * job->step_s * 1e9);
        begin_sending(fluid, id, 0, now_ns);
        return false;
    case PHASE_SENDING:
        end_sending(fluid, id, now_ns);
        /* Rounding to a nanosecond leaves next to nothing. */
        assert(fabs(job->left) <= job->rate * 1e-9 + job->volume * 1e-9);
        if (job->sending + 1 < job->phase_count)
            begin_sending(fluid, id, job->sending + 1, now_ns);
        else
            end_all_sending(fluid, id, now_ns);
        return false;
    case PHASE_BESIDE:
        end_all_sending(fluid, id, now_ns);
        return false;
    case PHASE_AFTER:
        job->steps += job->part;
        return begin_step(fluid, id, now_ns);
    case PHASE_IDLE:
    case PHASE_MEAN:
        break;
    }
    assert(false);
    return false;
}

/* The part of the current step that is done. */
static double part_done(const struct fluid_job *job, int64_t now_ns)
{
    double alone_s = (1 - job->overlap) * job->step_s;
    double first_s = alone_s * (1 - job->turn);
    double middle_s = fmax(job->overlap * job->step_s, job->send_s);
    double left_s = (double)(job->until_ns - now_ns) * 1e-9 / job->part;
    double done_s = 0;
    switch (job->phase) {
    case PHASE_BEFORE:
        done_s = first_s - left_s;
        break;
    case PHASE_SENDING: {
        double left = job->left - (double)(now_ns - job->since_ns) * 1e-9 * job->rate;
        double phases = job->sending + 1 - left / (job->part * job->volume);
        if (isinf(middle_s))
            return 0; /* it will never be sent */
        done_s = first_s + middle_s * fmin(phases / job->phase_count, 1);
        break;
    }
    case PHASE_BESIDE:
        done_s = first_s + middle_s;
        break;
    case PHASE_AFTER:
        done_s = alone_s + middle_s - left_s;
        break;
    case PHASE_IDLE:
    case PHASE_MEAN:
        return 0;
    }
    return job->part * fmax(fmin(done_s / (alone_s + middle_s), 1), 0);
}

/* --- by the mean ---------------------------------------------------------------------- */

static void settle_mean(struct fluid_job *job, int64_t now_ns)
{
    job->steps += (double)(now_ns - job->since_ns) * 1e-9 * job->rate;
    job->steps = fmin(job->steps, job->target);
    job->since_ns = now_ns;
}

static void schedule_mean(struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    double left = job->target - job->steps;
    bool idle = left < STEP_LEAST;
    job->phase = idle ? PHASE_IDLE : PHASE_MEAN;
    job->rate = idle ? 0 : 1 / fluid->mean.jobs[id].time_s;
    if (idle)
        unschedule_job(fluid, id);
    else
        schedule_in(fluid, id, now_ns, left / job->rate);
}

static void follow_mean(struct fluid *fluid, int64_t now_ns)
{
    for (uint32_t i = 0; i < fluid->mean.changed_count; i++) {
        uint32_t id = fluid->mean.changed[i];
        struct fluid_job *job = &fluid->jobs[id];
        if (!job->there || job->phase != PHASE_MEAN)
            continue;
        settle_mean(job, now_ns);
        schedule_mean(fluid, id, now_ns);
    }
}

static void join_mean(struct fluid *fluid, uint32_t id, const struct traffic *traffic)
{
    const struct fluid_job *job = &fluid->jobs[id];
    mean_rates_join(&fluid->mean, id,
                    &(struct mean_rates_spec){ .traffic = traffic,
                                               .step_s = job->step_s,
                                               .overlap = job->overlap,
                                               .level = job->level });
}

/* Rebuild a job's traffic from its bundles. */
static void move_to_mean(struct fluid *fluid, uint32_t id)
{
    struct fluid_job *job = &fluid->jobs[id];
    struct rates *rates = &fluid->rates;
    struct traffic traffic = { .volume = job->volume, .phase_count = job->phase_count };
    for (uint32_t p = 0; p < job->phase_count; p++) {
        const struct bundle *bundle = &rates->bundles[job->bundles[p]];
        traffic.uses[p] =
            memory_checked(calloc(bundle->count, sizeof *traffic.uses[p]));
        traffic.use_counts[p] = bundle->count;
        for (uint32_t i = 0; i < bundle->count; i++) {
            const struct crossing *crossing = &rates->crossings.all[bundle->first + i];
            traffic.uses[p][i] = (struct link_use){ crossing->link, crossing->flows };
        }
        if (bundle->sending)
            rates_end(rates, job->bundles[p]);
        rates_remove(rates, job->bundles[p]);
    }
    join_mean(fluid, id, &traffic);
    for (uint32_t p = 0; p < job->phase_count; p++)
        free(traffic.uses[p]);
}

static void switch_to_mean(struct fluid *fluid, int64_t now_ns)
{
    fluid->is_mean = fluid->was_exact = true;
    for (uint32_t id = 0; id < fluid->job_used; id++)
        if (fluid->jobs[id].there)
            fluid->jobs[id].steps = fluid_steps(fluid, id, now_ns);
    for (uint32_t id = 0; id < fluid->job_used; id++)
        if (fluid->jobs[id].there)
            move_to_mean(fluid, id);
    for (uint32_t id = 0; id < fluid->job_used; id++) {
        struct fluid_job *job = &fluid->jobs[id];
        if (!job->there || job->phase == PHASE_IDLE)
            continue;
        job->since_ns = now_ns;
        schedule_mean(fluid, id, now_ns);
    }
}

/* --- joining and leaving ---------------------------------------------------------- */

static uint32_t take_job(struct fluid *fluid)
{
    uint32_t id = fluid->job_free;
    if (id != NONE) {
        fluid->job_free = fluid->jobs[id].sending;
        return id;
    }
    id = fluid->job_used++;
    uint32_t room = fluid->job_room;
    fluid->pool.nodes = grow_array(fluid->pool.nodes, &room, fluid->job_used,
                                   sizeof *fluid->pool.nodes);
    fluid->jobs =
        grow_array(fluid->jobs, &fluid->job_room, fluid->job_used, sizeof *fluid->jobs);
    return id;
}

static void set_owner(struct fluid *fluid, uint32_t bundle, uint32_t id)
{
    fluid->owners = grow_array(fluid->owners, &fluid->owner_room, bundle + 1,
                               sizeof *fluid->owners);
    fluid->owners[bundle] = id;
}

/* The same for the same job and attempt, whatever other jobs there are. */
static double draw_turn(const struct fluid *fluid, const struct fluid_spec *spec)
{
    struct rng rng;
    rng_init(&rng,
             fluid->seed + spec->id * UINT64_C(0x9e3779b97f4a7c15) + spec->attempt,
             "phases");
    return rng_unit(&rng);
}

uint32_t fluid_join(struct fluid *fluid, const struct fluid_spec *spec, int64_t now_ns)
{
    assert(spec->host_count > 1);
    assert(spec->bytes > 0);
    assert(spec->step_s > 0);
    uint32_t id = take_job(fluid);
    struct link_use *uses =
        memory_checked(calloc(traffic_uses_max(spec->host_count), sizeof *uses));
    struct traffic traffic;
    traffic_make(&traffic, uses, &fluid->topology, spec->sync, spec->bytes, spec->hosts,
                 spec->host_count, (uint32_t)(spec->id % spec->host_count));
    struct fluid_job *job = &fluid->jobs[id];
    *job = (struct fluid_job){ .there = true,
                               .step_s = spec->step_s,
                               .overlap = spec->overlap,
                               .level = spec->level,
                               .turn = draw_turn(fluid, spec),
                               .volume = traffic.volume,
                               .phase_count = traffic.phase_count,
                               .send_s = traffic_alone_s(&traffic, &fluid->topology),
                               .since_ns = now_ns };
    fluid->job_count++;
    if (fluid->job_count > fluid->job_most)
        fluid->job_most = fluid->job_count;
    if (!fluid->is_mean) {
        for (uint32_t p = 0; p < traffic.phase_count; p++) {
            job->bundles[p] = rates_add(&fluid->rates, traffic.uses[p],
                                        traffic.use_counts[p], spec->level);
            set_owner(fluid, job->bundles[p], id);
        }
        if (fluid->setup.mode == FLUID_AUTO &&
            fluid->job_count > fluid->setup.exact_jobs_max)
            switch_to_mean(fluid, now_ns);
    } else {
        join_mean(fluid, id, &traffic);
        follow_mean(fluid, now_ns);
    }
    free(uses);
    return id;
}

void fluid_leave(struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    assert(job->there);
    unschedule_job(fluid, id);
    job->there = false;
    fluid->job_count--;
    if (fluid->is_mean) {
        mean_rates_leave(&fluid->mean, id);
        follow_mean(fluid, now_ns);
    } else {
        if (job->phase == PHASE_SENDING)
            end_sending(fluid, id, now_ns);
        for (uint32_t p = 0; p < job->phase_count; p++)
            rates_remove(&fluid->rates, job->bundles[p]);
    }
    job->phase = PHASE_IDLE;
    job->sending = fluid->job_free;
    fluid->job_free = id;
}

double fluid_steps(const struct fluid *fluid, uint32_t id, int64_t now_ns)
{
    const struct fluid_job *job = &fluid->jobs[id];
    if (job->phase != PHASE_MEAN)
        return job->steps + part_done(job, now_ns);
    return fmin(job->steps + (double)(now_ns - job->since_ns) * 1e-9 * job->rate,
                job->target);
}

void fluid_set_target(struct fluid *fluid, uint32_t id, double steps, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    if (job->phase == PHASE_MEAN)
        settle_mean(job, now_ns);
    job->since_ns = job->phase == PHASE_IDLE ? now_ns : job->since_ns;
    job->target = steps;
    if (fluid->is_mean) {
        /* A job with nothing to do is reported in its turn, as any other. */
        job->phase = PHASE_MEAN;
        job->rate = 1 / fluid->mean.jobs[id].time_s;
        schedule_in(fluid, id, now_ns, fmax(steps - job->steps, 0) / job->rate);
    } else if (job->phase == PHASE_IDLE && begin_step(fluid, id, now_ns)) {
        job->part = 0;
        begin_computing(fluid, id, PHASE_AFTER, now_ns, 0);
    }
}

static int64_t stretch_time(int64_t until_ns, int64_t now_ns, double times)
{
    return until_ns > now_ns
               ? now_ns + (int64_t)llround((double)(until_ns - now_ns) * times)
               : until_ns;
}

void fluid_set_step(struct fluid *fluid, uint32_t id, double step_s, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    double times = step_s / job->step_s;
    job->step_s = step_s;
    if (fluid->is_mean) {
        mean_rates_set_step(&fluid->mean, id, step_s);
        follow_mean(fluid, now_ns);
        return;
    }
    job->beside_ns = stretch_time(job->beside_ns, now_ns, times);
    if (job->phase == PHASE_IDLE || job->phase == PHASE_SENDING)
        return;
    job->until_ns = stretch_time(job->until_ns, now_ns, times);
    schedule_job(fluid, id, job->until_ns);
}

void fluid_set_level(struct fluid *fluid, uint32_t id, uint32_t level, int64_t now_ns)
{
    struct fluid_job *job = &fluid->jobs[id];
    if (job->level == level)
        return;
    job->level = level;
    if (fluid->is_mean) {
        mean_rates_set_level(&fluid->mean, id, level);
        follow_mean(fluid, now_ns);
        return;
    }
    for (uint32_t p = 0; p < job->phase_count; p++) {
        rates_set_level(&fluid->rates, job->bundles[p], level);
        follow_rates(fluid, now_ns);
    }
}

double fluid_alone_per_s(const struct fluid *fluid, uint32_t id)
{
    const struct fluid_job *job = &fluid->jobs[id];
    double beside_s = job->overlap * job->step_s;
    return 1 / (job->step_s - beside_s + fmax(beside_s, job->send_s));
}

/* --- time passes -------------------------------------------------------------------------- */

uint32_t fluid_happen(struct fluid *fluid)
{
    int64_t now_ns = fluid_next_ns(fluid);
    assert(now_ns < INT64_MAX);
    if (!fluid->is_mean && fluid->setup.mode == FLUID_AUTO &&
        fluid->change_count >= fluid->setup.exact_changes_max)
        switch_to_mean(fluid, now_ns);
    if (fluid_next_ns(fluid) > now_ns)
        return NONE;
    uint32_t id = heap_pop(&fluid->pool, &fluid->due);
    struct fluid_job *job = &fluid->jobs[id];
    job->queued = false;
    if (!fluid->is_mean)
        return end_phase(fluid, id, now_ns) ? id : NONE;
    job->steps = job->target;
    job->since_ns = now_ns;
    job->phase = PHASE_IDLE;
    job->rate = 0;
    return id;
}

const char *fluid_mode_name(const struct fluid *fluid)
{
    if (!fluid->is_mean)
        return "exact";
    return fluid->was_exact ? "exact, then mean" : "mean";
}

void fluid_check(const struct fluid *fluid, int64_t now_ns)
{
    for (uint32_t id = 0; id < fluid->job_used; id++) {
        const struct fluid_job *job = &fluid->jobs[id];
        if (!job->there)
            continue;
        double steps = fluid_steps(fluid, id, now_ns);
        assert(steps >= job->steps);
        assert(steps <= job->steps + 1 || fluid->is_mean);
        if (job->phase != PHASE_SENDING)
            continue;
        double left = job->left - (double)(now_ns - job->since_ns) * 1e-9 * job->rate;
        assert(left >= -(job->rate + job->volume) * 1e-9);
        assert(left <= job->volume);
        assert(job->rate == fluid->rates.bundles[job->bundles[job->sending]].rate);
    }
}
