/*
 * sim_steps.c - progress of a simulated job, at the rate its GPUs or the network
 * allow, and its reports.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "executor/sim/sim_internal.h"
#include "base/memory.h"
#include "model/cluster.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "net/fluid.h"

/*
 * Leases end a little before their steps are made: consecutive leases must not add up
 * to more time than their steps take, also for a policy that counts in doubles.
 */
#define LEASE_SLACK (1 - 1e-11)

/* --- the network ------------------------------------------------------------------- */

/* The job's allocation, or the next one: its start may not be applied yet. */
static const struct seat_row *seats_now(const struct sim_cluster *sim, job_id id)
{
    const struct job *known = &sim->view->jobs[id];
    return known->next.count > 0 ? &known->next : &known->seats;
}

static void enter_network(struct sim_cluster *sim, job_id id, double step_s)
{
    struct sim_job *job = &sim->jobs[id];
    const struct job *known = &sim->view->jobs[id];
    const struct seat_row *row = seats_now(sim, id);
    struct sim_extra *extra = extra_of(sim, job);
    if (!sim->fluid) {
        sim->fluid = arena_new(sim->run, struct fluid);
        fluid_init(sim->fluid, sim->run, sim->view->cluster, &sim->network, sim->seed);
    }
    uint32_t *hosts = memory_checked(calloc(row->count, sizeof *hosts));
    for (uint32_t i = 0; i < row->count; i++)
        hosts[i] = sim->view->seats[row->first + i].node;
    struct fluid_spec spec = { .id = known->id,
                               .attempt = job->now.attempt,
                               .sync = known->sync,
                               .bytes = (double)known->bytes_per_step,
                               .overlap = known->overlap,
                               .step_s = step_s,
                               .level = known->level,
                               .hosts = hosts,
                               .host_count = row->count };
    extra->sender = fluid_join(sim->fluid, &spec, sim->now_ns);
    free(hosts);
    extra->base = extra->reported = job->steps;
    extra->reported_ns = sim->now_ns;
    extra->rate_per_s = fluid_alone_per_s(sim->fluid, extra->sender);
    sim->senders = grow_array(sim->senders, &sim->sender_room, extra->sender + 1,
                              sizeof *sim->senders);
    sim->senders[extra->sender] = id;
}

void sim_leave_network(struct sim_cluster *sim, struct sim_job *job)
{
    struct sim_extra *extra = extra_of(sim, job);
    if (!extra || extra->sender == FLUID_NONE)
        return;
    fluid_leave(sim->fluid, extra->sender, sim->now_ns);
    extra->sender = FLUID_NONE;
}

/* Steps made until now, by its rate or by the network. */
static double steps_made(const struct sim_cluster *sim, const struct sim_job *job)
{
    const struct sim_extra *extra = extra_of(sim, job);
    if (!extra || extra->sender == FLUID_NONE)
        return job->steps +
               (double)(sim->now_ns - job->anchor_ns) * 1e-9 * job->rate_per_s;
    return extra->base + fluid_steps(sim->fluid, extra->sender, sim->now_ns);
}

/*
 * Make steps to 'end' at this rate, as far as the network allows; false: it does not
 * use it.
 */
static bool make_steps_by_network(struct sim_cluster *sim, job_id id, double end)
{
    struct sim_job *job = &sim->jobs[id];
    struct sim_extra *extra = extra_of(sim, job);
    if (sim->view->jobs[id].bytes_per_step == 0 || seats_now(sim, id)->count < 2)
        return false;
    if (extra->sender == FLUID_NONE)
        enter_network(sim, id, 1 / job->rate_per_s);
    else
        fluid_set_step(sim->fluid, extra->sender, 1 / job->rate_per_s, sim->now_ns);
    fluid_set_target(sim->fluid, extra->sender, end - extra->base, sim->now_ns);
    job->rate_per_s = extra->rate_per_s;
    sim_unschedule(sim, id);
    return true;
}

void sim_cluster_communicate(struct sim_cluster *sim, int64_t until_ns)
{
    struct fluid *fluid = sim->fluid;
    if (!fluid)
        return;
    for (int64_t at_ns; (at_ns = fluid_next_ns(fluid)) <= until_ns &&
                        at_ns <= sim_cluster_next_ns(sim) && at_ns < INT64_MAX;) {
        uint32_t sender = fluid_happen(fluid);
        if (sender != FLUID_NONE)
            sim_schedule(sim, sim->senders[sender], at_ns);
    }
}

void sim_cluster_levelled(void *self, const struct view *view,
                          const struct event *event)
{
    struct sim_cluster *sim = self;
    const struct sim_extra *extra = extra_of(sim, &sim->jobs[event->job]);
    if (extra && extra->sender != FLUID_NONE)
        fluid_set_level(sim->fluid, extra->sender, event->level, view->now_ns);
}

/* --- making steps ------------------------------------------------------------------ */

void sim_settle(struct sim_cluster *sim, struct sim_job *job)
{
    if (job->phase == SIM_RUNNING) {
        int64_t ran_ns = sim->now_ns - job->anchor_ns;
        double made = steps_made(sim, job) - job->steps;
        double rate_per_s = ran_ns > 0 ? made / ((double)ran_ns * 1e-9) : 0;
        if (job->truth.ckpt_ns > 0) {
            int64_t saves = (job->ran_ns + ran_ns) / job->truth.ckpt_ns;
            int64_t since_ns = job->ran_ns + ran_ns - saves * job->truth.ckpt_ns;
            if (saves > job->ran_ns / job->truth.ckpt_ns)
                job->steps_kept =
                    job->steps + made - (double)since_ns * 1e-9 * rate_per_s;
        }
        job->ran_ns += ran_ns;
        job->steps += made;
    }
    job->anchor_ns = sim->now_ns;
}

double sim_true_rate(const struct sim_cluster *sim, job_id id)
{
    const struct sim_job *job = &sim->jobs[id];
    const struct job *known = &sim->view->jobs[id];
    if (job->now.type == TYPE_NONE)
        return known->rate_best_per_s;
    if (job->partner == JOB_NONE)
        return throughput_rate(sim->view->rates, known, job->now.type, job->now.gpus,
                               job->now.spread);
    double rates[2];
    bool shares = sharing_rates(sim->view->rates, known, &sim->view->jobs[job->partner],
                                job->now.type, job->now.gpus, job->now.spread, rates);
    assert(shares); /* plans pair only jobs that can share */
    return rates[0];
}

void sim_make_steps(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job->phase = SIM_RUNNING;
    job->anchor_ns = sim->now_ns;
    job->rate_per_s = sim_true_rate(sim, id);
    double end = job->truth.steps;
    if (job->lease_end > 0 && job->lease_end < end)
        end = job->lease_end;
    struct sim_extra *extra = extra_of(sim, job);
    if (extra) {
        extra->report_at = reports_next(&extra->reports, job->steps);
        end = fmin(end, extra->report_at);
        if (make_steps_by_network(sim, id, end))
            return;
    }
    double left = end > job->steps ? end - job->steps : 0;
    double ns = left / job->rate_per_s * 1e9;
    double rounded_ns = end < job->truth.steps ? floor(ns * LEASE_SLACK) : round(ns);
    if (ns < 9e18 && sim->now_ns < INT64_MAX - (int64_t)ns)
        sim_schedule(sim, id, sim->now_ns + (int64_t)rounded_ns);
    else
        sim_unschedule(sim, id);
}

/* Report steps, speed and loss. */
static void report_progress(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    struct sim_extra *extra = extra_of(sim, job);
    if (extra->sender != FLUID_NONE && sim->now_ns > extra->reported_ns) {
        extra->rate_per_s = (job->steps - extra->reported) /
                            ((double)(sim->now_ns - extra->reported_ns) * 1e-9);
        extra->reported = job->steps;
        extra->reported_ns = sim->now_ns;
        job->rate_per_s = extra->rate_per_s;
    }
    struct event *event = sim_emit(sim, id, EVENT_PROGRESS);
    event->steps = job->steps;
    event->rate_per_s = job->rate_per_s;
    event->loss = reports_loss(&extra->reports, job->steps);
}

void sim_report_first(struct sim_cluster *sim, job_id id)
{
    const struct sim_extra *extra = extra_of(sim, &sim->jobs[id]);
    if (extra && extra->reports.curve.family != LEARNING_NONE)
        report_progress(sim, id);
}

bool sim_report_if_due(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    const struct sim_extra *extra = extra_of(sim, job);
    bool leased = job->lease_end > 0 && job->lease_end < job->truth.steps;
    if (!extra || extra->report_at >= (leased ? job->lease_end : job->truth.steps))
        return false;
    sim_settle(sim, job);
    job->steps = extra->report_at;
    report_progress(sim, id);
    sim_make_steps(sim, id);
    return true;
}

void sim_change_rate(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    if (job->phase != SIM_RUNNING)
        return;
    sim_settle(sim, job);
    sim_make_steps(sim, id);
    struct event *event = sim_emit(sim, id, EVENT_PROGRESS);
    event->steps = job->steps;
    event->rate_per_s = job->rate_per_s;
}
