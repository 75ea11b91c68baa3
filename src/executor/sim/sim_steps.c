/*
 * sim_steps.c - how far a simulated job gets: at the speed that its accelerators allow, or the
 * network; and what it says of it.
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
 * A lease is over no later than its steps are made, and a hair before: leases in a row must
 * not add up to more than their steps take, also by the clock of who counts in doubles.
 */
#define LEASE_SLACK (1 - 1e-11)

/* --- the network ------------------------------------------------------------------- */

/* Seats it is in, or about to be in: of where it has come nobody knows yet. */
static const struct seat_row *row_of(const struct sim_cluster *sim, job_id id)
{
    const struct job *known = &sim->view->jobs[id];
    return known->next.count > 0 ? &known->next : &known->seats;
}

static void enter_network(struct sim_cluster *sim, job_id id, double step_s)
{
    struct sim_job *job = &sim->jobs[id];
    const struct job *known = &sim->view->jobs[id];
    const struct seat_row *row = row_of(sim, id);
    struct sim_more *more = more_of(sim, job);
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
    more->sender = fluid_join(sim->fluid, &spec, sim->now_ns);
    free(hosts);
    more->base = more->told = job->steps;
    more->told_ns = sim->now_ns;
    more->rate_per_s = fluid_alone_per_s(sim->fluid, more->sender);
    sim->senders = grow_array(sim->senders, &sim->sender_room, more->sender + 1,
                              sizeof *sim->senders);
    sim->senders[more->sender] = id;
}

/* It stops making steps. */
void sim_leave_network(struct sim_cluster *sim, struct sim_job *job)
{
    struct sim_more *more = more_of(sim, job);
    if (!more || more->sender == FLUID_NONE)
        return;
    fluid_leave(sim->fluid, more->sender, sim->now_ns);
    more->sender = FLUID_NONE;
}

/* Steps it has made by now, if that is for the network to say. */
static double steps_made(const struct sim_cluster *sim, const struct sim_job *job)
{
    const struct sim_more *more = more_of(sim, job);
    if (!more || more->sender == FLUID_NONE)
        return job->steps +
               (double)(sim->now_ns - job->anchor_ns) * 1e-9 * job->rate_per_s;
    return more->base + fluid_steps(sim->fluid, more->sender, sim->now_ns);
}

/* Make steps to 'end' at this rate, as far as the network lets it; false: it has no say. */
static bool make_steps_by_network(struct sim_cluster *sim, job_id id, double end)
{
    struct sim_job *job = &sim->jobs[id];
    struct sim_more *more = more_of(sim, job);
    if (sim->view->jobs[id].bytes_per_step == 0 || row_of(sim, id)->count < 2)
        return false;
    if (more->sender == FLUID_NONE)
        enter_network(sim, id, 1 / job->rate_per_s);
    else
        fluid_set_step(sim->fluid, more->sender, 1 / job->rate_per_s, sim->now_ns);
    fluid_set_target(sim->fluid, more->sender, end - more->base, sim->now_ns);
    job->rate_per_s = more->rate_per_s;
    unschedule(sim, id);
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
            schedule(sim, sim->senders[sender], at_ns);
    }
}

void sim_cluster_levelled(void *self, const struct view *view,
                          const struct event *event)
{
    struct sim_cluster *sim = self;
    const struct sim_more *more = more_of(sim, &sim->jobs[event->job]);
    if (more && more->sender != FLUID_NONE)
        fluid_set_level(sim->fluid, more->sender, event->level, view->now_ns);
}

/* --- making steps ------------------------------------------------------------------ */

/* Move the anchor to now. */
void sim_settle(struct sim_cluster *sim, struct sim_job *job)
{
    if (job->phase == PHASE_RUNNING) {
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
    assert(shares); /* no plan has others share */
    return rates[0];
}

/* From now on it makes steps, until its lease or its work is done. */
void sim_make_steps(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job->phase = PHASE_RUNNING;
    job->anchor_ns = sim->now_ns;
    job->rate_per_s = sim_true_rate(sim, id);
    double end = job->truth.steps;
    if (job->lease_end > 0 && job->lease_end < end)
        end = job->lease_end;
    struct sim_more *more = more_of(sim, job);
    if (more) {
        more->report_at = reports_next(&more->reports, job->steps);
        end = fmin(end, more->report_at);
        if (make_steps_by_network(sim, id, end))
            return;
    }
    double left = end > job->steps ? end - job->steps : 0;
    double ns = left / job->rate_per_s * 1e9;
    double rounded_ns = end < job->truth.steps ? floor(ns * LEASE_SLACK) : round(ns);
    if (ns < 9e18 && sim->now_ns < INT64_MAX - (int64_t)ns)
        schedule(sim, id, sim->now_ns + (int64_t)rounded_ns);
    else
        unschedule(sim, id);
}

/* It says how far it is, how fast it has got there and what its loss is. */
static void report(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    struct sim_more *more = more_of(sim, job);
    if (more->sender != FLUID_NONE && sim->now_ns > more->told_ns) {
        more->rate_per_s =
            (job->steps - more->told) / ((double)(sim->now_ns - more->told_ns) * 1e-9);
        more->told = job->steps;
        more->told_ns = sim->now_ns;
        job->rate_per_s = more->rate_per_s;
    }
    struct event *event = emit(sim, id, EVENT_PROGRESS);
    event->steps = job->steps;
    event->rate_per_s = job->rate_per_s;
    event->loss = reports_loss(&more->reports, job->steps);
}

/* As it begins to make steps: where it begins. */
void sim_report_first(struct sim_cluster *sim, job_id id)
{
    const struct sim_more *more = more_of(sim, &sim->jobs[id]);
    if (more && more->reports.curve.family != LEARNING_NONE)
        report(sim, id);
}

/* A report is due, and neither its lease nor its work is done with it. */
bool sim_only_reports(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    const struct sim_more *more = more_of(sim, job);
    bool leased = job->lease_end > 0 && job->lease_end < job->truth.steps;
    if (!more || more->report_at >= (leased ? job->lease_end : job->truth.steps))
        return false;
    sim_settle(sim, job);
    job->steps = more->report_at;
    report(sim, id);
    sim_make_steps(sim, id);
    return true;
}

/* Somebody came to or went from the accelerators it uses. */
void sim_rerate(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    if (job->phase != PHASE_RUNNING)
        return;
    sim_settle(sim, job);
    sim_make_steps(sim, id);
    struct event *event = emit(sim, id, EVENT_PROGRESS);
    event->steps = job->steps;
    event->rate_per_s = job->rate_per_s;
}
