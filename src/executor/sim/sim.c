/*
 * sim.c - a cluster in virtual time: the occurrences of each job, and its progress at the
 * rate that its GPUs or the network allow.
 *
 * Each job has at most one next occurrence - it has loaded, its lease or its work is
 * done, it has stopped - so the future is a heap with one entry per running job, and
 * one per node where nodes fail.
 */
#include "executor/sim/sim.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/sim/sim_internal.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/outbox.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "net/fluid.h"

#define NONE UINT32_MAX

/*
 * Leases end a little before their steps are made: consecutive leases must not add up
 * to more time than their steps take, also for a policy that counts in doubles.
 */
#define LEASE_SLACK (1 - 1e-11)

static struct sim_extra *extra_of(const struct sim_cluster *sim,
                                  const struct sim_job *job)
{
    return job->has_extra ? &sim->extras[job->extra - 1] : NULL;
}

/* What is known of this job is needed soon. */
static void prefetch_job(const struct sim_cluster *sim, job_id id)
{
    prefetch_bytes(&sim->jobs[id], sizeof *sim->jobs);
}

/* A job has one next occurrence or none. */
static void sim_unschedule(struct sim_cluster *sim, job_id id)
{
    sim->job_due_count -= timer_heap_has(&sim->due, id);
    timer_heap_remove(&sim->due, id);
}

void sim_schedule(struct sim_cluster *sim, job_id id, int64_t at_ns)
{
    sim->job_due_count += !timer_heap_has(&sim->due, id);
    timer_heap_set(&sim->due, id, at_ns);
}

static struct event *sim_emit(struct sim_cluster *sim, job_id id, enum event_kind kind)
{
    const struct sim_job *job = &sim->jobs[id];
    struct event *event = outbox_add(sim->outbox);
    event->at_ns = sim->now_ns;
    event->kind = kind;
    event->job = id;
    event->generation = job->generation;
    event->attempt = job->now.attempt;
    event->loss = NAN;
    return event;
}

struct sim_wait {
    job_id successor;
    uint32_t next;
    uint64_t order; /* that waits: earlier ones of the attempt were cancelled */
};

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

/* The job stops making steps. */
static void sim_leave_network(struct sim_cluster *sim, struct sim_job *job)
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

void sim_network_communicate(struct sim_cluster *sim, int64_t until_ns)
{
    struct fluid *fluid = sim->fluid;
    for (int64_t at_ns; (at_ns = fluid_next_ns(fluid)) <= until_ns &&
                        at_ns <= sim_cluster_next_ns(sim) && at_ns < INT64_MAX;) {
        uint32_t sender = fluid_happen(fluid);
        if (sender != FLUID_NONE)
            sim_schedule(sim, sim->senders[sender], at_ns);
    }
}

void sim_cluster_event(void *self, const struct view *view, const struct event *event)
{
    struct sim_cluster *sim = self;
    if (event->kind == EVENT_PLACED) {
        prefetch_job(sim, event->job);
        return;
    }
    const struct sim_extra *extra = extra_of(sim, &sim->jobs[event->job]);
    if (extra && extra->sender != FLUID_NONE)
        fluid_set_level(sim->fluid, extra->sender, event->level, view->now_ns);
}

/* --- making steps ------------------------------------------------------------------ */

/* Count the steps made until now, and move the anchor to now. */
static void sim_settle(struct sim_cluster *sim, struct sim_job *job)
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

/* The job as it truly is, where policies are not told its rates. */
static const struct job *true_job(const struct sim_cluster *sim, job_id id,
                                  struct job *room)
{
    if (!sim->hidden)
        return &sim->view->jobs[id];
    *room = sim->view->jobs[id];
    room->kind = sim->jobs[id].truth.kind;
    room->learned = 0;
    return room;
}

static double sim_true_rate(const struct sim_cluster *sim, job_id id)
{
    const struct sim_job *job = &sim->jobs[id];
    const struct throughput *rates = sim->hidden ? sim->hidden : sim->view->rates;
    struct job room[2];
    const struct job *known = true_job(sim, id, &room[0]);
    if (job->now.type == TYPE_NONE)
        return known->rate_best_per_s;
    if (job->partner == JOB_NONE)
        return throughput_rate(rates, known, job->now.type, job->now.gpus,
                               job->now.spread);
    double both[2];
    bool shares = sharing_rates(rates, known, true_job(sim, job->partner, &room[1]),
                                job->now.type, job->now.gpus, job->now.spread, both);
    assert(shares); /* plans pair only jobs that can share */
    return both[0];
}

/* Where rates are hidden, the first that is known of one is a report. */
static double sim_told_rate(const struct sim_cluster *sim, double rate_per_s)
{
    return sim->hidden ? 0 : rate_per_s;
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
    if (ns < 9e18 && sim->now_ns < INT64_MAX - (int64_t)ns)
        sim_schedule(sim, id,
                     sim->now_ns + (end < job->truth.steps ? (int64_t)(ns * LEASE_SLACK)
                                                           : units_round(ns)));
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
    event->measured = sim->hidden != NULL;
    event->loss = reports_loss(&extra->reports, job->steps);
}

/* Report the state before the first step. */
static void sim_report_first(struct sim_cluster *sim, job_id id)
{
    const struct sim_extra *extra = extra_of(sim, &sim->jobs[id]);
    if (extra && extra->reports.curve.family != LEARNING_NONE)
        report_progress(sim, id);
}

/* If a report is due, but not the end of lease or work, make it. */
static bool sim_report_if_due(struct sim_cluster *sim, job_id id)
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

/* A job came to or left the GPUs it uses: its rate has changed. */
static void sim_change_rate(struct sim_cluster *sim, job_id id)
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

void sim_cluster_init(struct sim_cluster *sim, struct arena *run,
                      const struct view *view, struct outbox *outbox,
                      const struct sim_faults *faults, uint64_t seed)
{
    uint32_t nodes = view->cluster->node_count;
    *sim = (struct sim_cluster){ .view = view,
                                 .outbox = outbox,
                                 .wait_free = NONE,
                                 .faults = *faults,
                                 .run = run,
                                 .seed = seed };
    sim->jobs = arena_array(run, struct sim_job, view->job_max);
    sim->node_down = arena_array(run, bool, nodes);
    timer_heap_init(&sim->due, run, view->job_max + nodes);
    rng_init(&sim->rng, seed, "faults");
    if (faults->mtbf_ns > 0)
        for (node_id node = 0; node < nodes; node++)
            timer_heap_set(
                &sim->due, view->job_max + node,
                (int64_t)rng_exponential(&sim->rng, (double)faults->mtbf_ns));
}

void sim_cluster_release(struct sim_cluster *sim)
{
    free(sim->waits);
    free(sim->extras);
    free(sim->senders);
    if (sim->fluid)
        fluid_release(sim->fluid);
}

/* Most jobs neither report losses nor use the network, and need no extra data. */
static void admit_extra(struct sim_cluster *sim, job_id id,
                        const struct learning *curve)
{
    struct sim_job *job = &sim->jobs[id];
    if (job->extra == 0) {
        job->extra = ++sim->extra_used;
        sim->extras = grow_array(sim->extras, &sim->extra_room, sim->extra_used,
                                 sizeof *sim->extras);
    }
    job->has_extra = true;
    struct sim_extra *extra = &sim->extras[job->extra - 1];
    *extra = (struct sim_extra){ .sender = FLUID_NONE };
    reports_init(&extra->reports, curve, job->truth.steps);
}

void sim_cluster_admit(struct sim_cluster *sim, job_id id,
                       const struct sim_truth *truth)
{
    bool is_new =
        id >= sim->job_top; /* then memory that was not used yet is not read */
    uint32_t extra = is_new ? 0 : sim->jobs[id].extra;
    sim->jobs[id] = (struct sim_job){ .truth = *truth,
                                      .extra = extra,
                                      .generation = sim->view->jobs[id].generation,
                                      .steps = sim->view->jobs[id].steps,
                                      .partner = JOB_NONE,
                                      .coming = JOB_NONE,
                                      .next_with = JOB_NONE,
                                      .first_wait = NONE };
    if (!sim->silent &&
        (truth->curve || sim->view->jobs[id].bytes_per_step > 0 || sim->hidden))
        admit_extra(sim, id, truth->curve);
    sim->jobs[id].truth.curve = NULL;
    if (is_new)
        sim->job_top = id + 1;
}

/* --- a rebuilt engine with the same jobs ------------------------------------------ */

static job_id moved_slot(const job_id *slots, job_id id)
{
    return id == JOB_NONE ? JOB_NONE : slots[id];
}

/* The same occurrences in the same order, with new slots. */
static void move_future(struct sim_cluster *sim, const job_id *slots)
{
    struct timer_heap due;
    timer_heap_init(&due, sim->run,
                    sim->view->job_max + sim->view->cluster->node_count);
    while (sim->due.count > 0) {
        int64_t at_ns = timer_heap_next_ns(&sim->due);
        uint32_t id = timer_heap_pop(&sim->due);
        timer_heap_set(&due, id < sim->view->job_max ? slots[id] : id, at_ns);
    }
    sim->due = due;
}

void sim_cluster_move(struct sim_cluster *sim, const job_id *slots)
{
    struct sim_job *old = sim->jobs;
    uint32_t top = sim->job_top;
    sim->jobs = arena_array(sim->run, struct sim_job, sim->view->job_max);
    sim->job_top = 0;
    for (job_id id = 0; id < top; id++) {
        if (slots[id] == JOB_NONE)
            continue;
        struct sim_job *job = &sim->jobs[slots[id]];
        *job = old[id];
        job->generation = sim->view->jobs[slots[id]].generation;
        job->partner = moved_slot(slots, job->partner);
        job->coming = moved_slot(slots, job->coming);
        job->next_with = moved_slot(slots, job->next_with);
        if (slots[id] >= sim->job_top)
            sim->job_top = slots[id] + 1;
        struct sim_extra *extra = extra_of(sim, job);
        if (extra && extra->sender != FLUID_NONE)
            sim->senders[extra->sender] = slots[id];
    }
    for (uint32_t i = 0; i < sim->wait_used; i++) {
        job_id successor = moved_slot(slots, sim->waits[i].successor);
        if (successor == JOB_NONE)
            sim->waits[i].order = 0; /* of no job */
        else
            sim->waits[i].successor = successor;
    }
    move_future(sim, slots);
}

/* --- the future ------------------------------------------------------------------ */

bool sim_cluster_is_quiet(const struct sim_cluster *sim)
{
    bool sending = sim->fluid && fluid_next_ns(sim->fluid) < INT64_MAX;
    return sim->job_due_count == 0 && sim->down_count == 0 && !sending;
}

/* --- starting --------------------------------------------------------------------- */

/* Of two jobs that will share GPUs, the second to start finds the other there. */
static void join_partner(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job_id other = job->next_with;
    job->next_with = JOB_NONE;
    if (other == JOB_NONE)
        return;
    if (sim->jobs[other].coming != id) {
        job->coming = other;
        return;
    }
    sim->jobs[other].coming = JOB_NONE;
    job->partner = other;
    sim->jobs[other].partner = id;
    sim_change_rate(sim, other);
}

/* The job leaves: the partner it expected will be alone. */
static void cancel_expected_partner(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    if (job->coming != JOB_NONE)
        sim->jobs[job->coming].next_with = JOB_NONE;
    job->coming = JOB_NONE;
}

/* The job does not start or continue where it was placed. */
static void cancel_pending_start(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job->pending = false;
    if (job->next_with == JOB_NONE)
        return;
    struct sim_job *other = &sim->jobs[job->next_with];
    job->next_with = JOB_NONE;
    if (other->coming == id)
        other->coming = JOB_NONE;
    else
        other->next_with = JOB_NONE;
}

static void start_job(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job->now = job->next;
    job->pending = false;
    job->lease_end = job->now.steps_max ? job->steps + (double)job->now.steps_max : 0;
    job->steps_kept = job->steps;
    job->ran_ns = 0;
    join_partner(sim, id);
    struct event *event = sim_emit(sim, id, EVENT_STARTED);
    event->loaded = job->truth.load_ns == 0;
    event->rate_per_s = sim_told_rate(sim, sim_true_rate(sim, id));
    if (job->truth.load_ns == 0) {
        sim_make_steps(sim, id);
        event->rate_per_s = sim_told_rate(sim, job->rate_per_s);
        sim_report_first(sim, id);
        return;
    }
    job->phase = SIM_LOADING;
    job->anchor_ns = sim->now_ns;
    sim_schedule(sim, id, sim->now_ns + job->truth.load_ns);
}

/* All jobs that had to vacate its GPUs have done so. */
static void continue_job(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    if (job->phase == SIM_RESIZING)
        sim_schedule(sim, id, sim->now_ns + job->truth.pause_ns + job->truth.load_ns);
    else
        start_job(sim, id);
}

static uint32_t new_wait(struct sim_cluster *sim)
{
    uint32_t at = sim->wait_free;
    if (at != NONE) {
        sim->wait_free = sim->waits[at].next;
        return at;
    }
    sim->waits =
        grow_array(sim->waits, &sim->wait_room, sim->wait_used + 1, sizeof *sim->waits);
    return sim->wait_used++;
}

/* Record the job's next placement, and the jobs it has to wait for. */
static void set_pending(struct sim_cluster *sim, const struct lease *lease)
{
    struct sim_job *job = &sim->jobs[lease->job];
    assert(!job->pending);
    job->pending = true;
    job->next = (struct sim_placement){ .attempt = lease->attempt,
                                        .type = lease->type,
                                        .gpus = lease->gpus,
                                        .spread = lease->spread,
                                        .together = lease->together,
                                        .steps_max = lease->steps_max };
    if (lease->beside != JOB_NONE) {
        struct sim_job *other = &sim->jobs[lease->beside];
        job->next_with = lease->beside;
        if (other->pending)
            other->next_with = lease->job;
        else
            other->coming = lease->job;
    }
    job->order = ++sim->order;
    job->waits_for = lease->after_count;
    for (uint32_t i = 0; i < lease->after_count; i++) {
        uint32_t at = new_wait(sim);
        struct sim_job *first = &sim->jobs[lease->after[i]];
        sim->waits[at] = (struct sim_wait){ .successor = lease->job,
                                            .order = job->order,
                                            .next = first->first_wait };
        first->first_wait = at;
    }
}

static int sim_start(void *self, const struct lease *lease, struct error *err)
{
    struct sim_cluster *sim = self;
    set_pending(sim, lease);
    if (lease->after_count == 0)
        start_job(sim, lease->job);
    return 0;
}

static int sim_resize(void *self, const struct lease *lease, struct error *err)
{
    struct sim_cluster *sim = self;
    struct sim_job *job = &sim->jobs[lease->job];
    struct lease others = *lease;
    others.after_count = 0;
    job_id *after = (job_id *)(uintptr_t)lease->after; /* it does not wait for itself */
    for (uint32_t i = 0; i < lease->after_count; i++)
        if (lease->after[i] != lease->job)
            after[others.after_count++] = lease->after[i];
    sim_settle(sim, job);
    sim_leave_network(sim, job);
    sim_unschedule(sim, lease->job);
    job->phase = SIM_RESIZING;
    set_pending(sim, &others);
    if (others.after_count == 0)
        continue_job(sim, lease->job);
    return 0;
}

/* --- stopping --------------------------------------------------------------------- */

static void report_done(struct sim_cluster *sim, job_id id);

/* End the sharing; a partner that waited for this job to be done is done as well. */
static void separate_pair(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job_id partner = job->partner;
    if (partner == JOB_NONE)
        return;
    sim->jobs[partner].partner = JOB_NONE;
    job->partner = JOB_NONE;
    if (sim->jobs[partner].phase == SIM_DONE)
        report_done(sim, partner);
    else
        sim_change_rate(sim, partner);
}

/* The job has vacated GPUs that others wait for. */
static void start_successors(struct sim_cluster *sim, job_id id)
{
    uint32_t at = sim->jobs[id].first_wait;
    sim->jobs[id].first_wait = NONE;
    while (at != NONE) {
        struct sim_wait wait = sim->waits[at];
        sim->waits[at].next = sim->wait_free;
        sim->wait_free = at;
        at = wait.next;
        struct sim_job *successor = &sim->jobs[wait.successor];
        if (successor->pending && successor->order == wait.order &&
            --successor->waits_for == 0)
            continue_job(sim, wait.successor);
    }
}

static void vacate_gpus(struct sim_cluster *sim, job_id id)
{
    sim_unschedule(sim, id);
    sim_leave_network(sim, &sim->jobs[id]);
    sim->jobs[id].phase = SIM_AWAY;
    cancel_expected_partner(sim, id);
    separate_pair(sim, id);
    start_successors(sim, id);
}

/* Steps that survive if the job is killed now. */
static double kept_if_killed(const struct sim_job *job)
{
    return job->steps_kept < job->steps ? job->steps_kept : job->steps;
}

static void end_attempt(struct sim_cluster *sim, job_id id, enum event_kind kind,
                        bool clean)
{
    struct sim_job *job = &sim->jobs[id];
    double kept = clean ? job->steps : kept_if_killed(job);
    struct event *event = sim_emit(sim, id, kind);
    event->steps = kept;
    event->steps_reached = job->steps;
    event->rate_per_s = job->rate_per_s;
    event->clean = clean;
    event->measured = clean && !job->truth.unseen;
    job->steps = kept;
    vacate_gpus(sim, id);
}

static int sim_stop(void *self, job_id id, int64_t grace_ns, struct error *err)
{
    struct sim_cluster *sim = self;
    struct sim_job *job = &sim->jobs[id];
    /* Before the first step there is nothing to save. */
    int64_t pause_ns = job->phase == SIM_LOADING ? 0 : job->truth.pause_ns;
    sim_settle(sim, job);
    sim_leave_network(sim, job);
    job->phase = SIM_LEAVING;
    bool in_time = pause_ns <= grace_ns;
    job->clean = in_time && !job->truth.keeps_nothing;
    sim_schedule(sim, id, sim->now_ns + (in_time ? pause_ns : grace_ns));
    return 0;
}

static int sim_cancel(void *self, job_id id, struct error *err)
{
    struct sim_cluster *sim = self;
    struct sim_job *job = &sim->jobs[id];
    sim_settle(sim, job);
    if (job->pending && job->phase == SIM_AWAY) {
        cancel_pending_start(sim, id);
        job->now.attempt = job->next.attempt;
        sim_emit(sim, id, EVENT_LOST);
        return 0;
    }
    cancel_pending_start(sim, id);
    end_attempt(sim, id, EVENT_STOPPED, false);
    return 0;
}

static int sim_renew(void *self, job_id id, uint64_t steps_max, bool together,
                     struct error *err)
{
    struct sim_cluster *sim = self;
    struct sim_job *job = &sim->jobs[id];
    sim_settle(sim, job);
    job->lease_end = steps_max ? job->steps + (double)steps_max : 0;
    job->now.together = together;
    if (job->phase == SIM_IDLE || job->phase == SIM_RUNNING || job->phase == SIM_DONE)
        sim_make_steps(sim, id);
    return 0;
}

/* --- occurrences ------------------------------------------------------------------ */

/* The lease or the work is done: emit the event. */
static void report_done(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    if (job->steps < job->truth.steps) {
        job->steps_kept =
            job->steps; /* it checkpoints at the end of a lease, which it knows */
        job->phase = SIM_IDLE;
        struct event *event = sim_emit(sim, id, EVENT_LEASE_DONE);
        event->steps = job->steps;
        event->rate_per_s = job->rate_per_s;
        return;
    }
    struct event *event =
        sim_emit(sim, id, job->truth.fails ? EVENT_FAILED : EVENT_FINISHED);
    event->steps = event->steps_reached = job->steps;
    event->rate_per_s = job->rate_per_s;
    if (job->has_extra)
        event->loss = reports_loss(&extra_of(sim, job)->reports, job->steps);
    cancel_pending_start(sim, id); /* it does not continue elsewhere */
    vacate_gpus(sim, id);
}

/* The leases of a pair end together, and the partner is not done yet. */
static bool waits_for_partner(const struct sim_cluster *sim, const struct sim_job *job)
{
    if (job->partner == JOB_NONE || !job->now.together)
        return false;
    const struct sim_job *partner = &sim->jobs[job->partner];
    return partner->now.together &&
           (partner->phase == SIM_LOADING || partner->phase == SIM_RUNNING);
}

static void end_lease_or_work(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    job_id partner = job->partner;
    sim_settle(sim, job);
    sim_leave_network(sim, job);
    bool lease = job->lease_end > 0 && job->lease_end < job->truth.steps;
    job->steps = lease ? job->lease_end : job->truth.steps;
    job->phase = SIM_DONE;
    if (waits_for_partner(sim, job))
        return;
    report_done(sim, id);
    if (partner != JOB_NONE && sim->jobs[partner].phase == SIM_DONE)
        report_done(sim, partner);
}

static void handle_due_job(struct sim_cluster *sim, job_id id)
{
    struct sim_job *job = &sim->jobs[id];
    struct event *event;
    switch (job->phase) {
    case SIM_LOADING:
        sim_make_steps(sim, id);
        event = sim_emit(sim, id, EVENT_LOADED);
        event->measured = !job->truth.unseen;
        event->rate_per_s = sim_told_rate(sim, job->rate_per_s);
        sim_report_first(sim, id);
        return;
    case SIM_RUNNING:
        if (!sim_report_if_due(sim, id))
            end_lease_or_work(sim, id);
        return;
    case SIM_RESIZING:
        job->next.attempt = job->now.attempt;
        job->now = job->next;
        job->pending = false;
        job->lease_end =
            job->now.steps_max ? job->steps + (double)job->now.steps_max : 0;
        job->steps_kept = job->steps; /* it saved a checkpoint to be resized */
        job->ran_ns = 0;
        cancel_expected_partner(sim, id);
        separate_pair(sim, id);
        sim_make_steps(sim, id);
        event = sim_emit(sim, id, EVENT_RESIZED);
        event->steps = job->steps;
        event->rate_per_s = job->rate_per_s;
        start_successors(sim, id);
        return;
    case SIM_LEAVING:
        end_attempt(sim, id, EVENT_STOPPED, job->clean);
        return;
    case SIM_AWAY:
    case SIM_DONE:
    case SIM_IDLE:
        assert(false);
    }
}

static bool row_has_node(const struct view *view, const struct seat_row *row,
                         node_id node)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (view->seats[row->first + i].node == node)
            return true;
    return false;
}

/*
 * A job that is not stopping and has a next allocation uses that already, though its
 * event is not applied yet.
 */
static bool is_on(const struct sim_cluster *sim, job_id id, node_id node)
{
    const struct job *known = &sim->view->jobs[id];
    return row_has_node(sim->view, &known->seats, node) ||
           (sim->jobs[id].phase != SIM_LEAVING &&
            row_has_node(sim->view, &known->next, node));
}

static bool is_live(const struct sim_cluster *sim, job_id id)
{
    const struct job *known = &sim->view->jobs[id];
    return known->state != JOB_FREE && known->generation == sim->jobs[id].generation;
}

/*
 * A node fails.  First jobs about to start there are cancelled, then jobs on it are
 * lost with what they had not saved; in the other order a job could start when another
 * is killed.
 */
static void kill_node(struct sim_cluster *sim, node_id node)
{
    for (job_id id = 0; id < sim->job_top; id++) {
        struct sim_job *job = &sim->jobs[id];
        if (!is_live(sim, id) || !job->pending || job->phase == SIM_RESIZING ||
            !row_has_node(sim->view, &sim->view->jobs[id].next, node))
            continue;
        cancel_pending_start(sim, id);
        struct event *event = sim_emit(sim, id, EVENT_LOST);
        event->attempt = job->next.attempt;
        event->steps = event->steps_reached = job->steps;
    }
    for (job_id id = 0; id < sim->job_top; id++) {
        struct sim_job *job = &sim->jobs[id];
        if (!is_live(sim, id) || job->phase == SIM_AWAY || !is_on(sim, id, node))
            continue;
        sim_settle(sim, job);
        if (job->phase == SIM_RESIZING)
            cancel_pending_start(sim, id);
        end_attempt(sim, id, EVENT_LOST, false);
    }
}

void sim_cluster_set_node(struct sim_cluster *sim, node_id node, bool down)
{
    if (sim->node_down[node] == down)
        return;
    struct event *event = outbox_add(sim->outbox);
    event->at_ns = sim->now_ns;
    event->kind = down ? EVENT_NODE_DOWN : EVENT_NODE_UP;
    event->job = JOB_NONE;
    event->node = node;
    sim->node_down[node] = down;
    if (down)
        kill_node(sim, node);
}

static void handle_due_node(struct sim_cluster *sim, node_id node)
{
    bool dies = !sim->node_down[node];
    sim_cluster_set_node(sim, node, dies);
    sim->down_count += dies ? 1 : UINT32_MAX;
    double mean_ns = (double)(dies ? sim->faults.mttr_ns : sim->faults.mtbf_ns);
    timer_heap_set(&sim->due, sim->view->job_max + node,
                   sim->now_ns + 1 + (int64_t)rng_exponential(&sim->rng, mean_ns));
}

void sim_cluster_advance(struct sim_cluster *sim, int64_t now_ns)
{
    sim->now_ns = now_ns;
    for (;;) {
        sim_cluster_communicate(sim, now_ns);
        if (sim_cluster_next_ns(sim) > now_ns)
            break;
        uint32_t id = timer_heap_pop(&sim->due);
        if (id >= sim->view->job_max) {
            handle_due_node(sim, id - sim->view->job_max);
            continue;
        }
        sim->job_due_count--;
        handle_due_job(sim, id);
    }
    uint32_t next = timer_heap_first(&sim->due);
    if (next < sim->view->job_max) {
        prefetch_job(sim, next);
        job_prefetch(&sim->view->jobs[next]);
    }
}

const struct executor executor_sim = {
    .name = "sim",
    .start = sim_start,
    .stop = sim_stop,
    .cancel = sim_cancel,
    .resize = sim_resize,
    .renew = sim_renew,
    .reattach = sim_reattach,
};
