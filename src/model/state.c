/*
 * state.c - the cluster as we know it; changed by events only.
 *
 * What each event means for a job: its state, its progress, the time it has waited and
 * been served.  Which job holds what on which node is kept in allocation.c.
 */
#include "model/state.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/allocation.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/sharing.h"
#include "model/state_rates.h"
#include "model/throughput.h"

#define NONE UINT32_MAX
/*
 * Every GPU may be held by two jobs and pending for two; a job without GPUs holds one seat
 * and may have another pending; and rows are up to twice as long as needed.  Free rows are
 * never joined: there may be that many of each length.
 */
static uint32_t count_seats_max(const struct cluster *cluster, uint32_t job_max)
{
    uint32_t lengths = 1;
    while (lengths < SEAT_CLASSES - 1 && 1u << (lengths - 1) < cluster->node_count)
        lengths++;
    uint64_t count =
        4 * (uint64_t)job_max + 8 * (uint64_t)cluster->gpu_count * lengths + 64;
    return count < UINT32_MAX / 2 ? (uint32_t)count : UINT32_MAX / 2;
}

/* Most states are those of simulations, where no job is looked for by its public id. */
struct state_ids {
    bool wanted;
    struct map slots; /* of live jobs */
};

void state_init(struct state *state, struct arena *run, const struct cluster *cluster,
                const struct throughput *rates, uint32_t job_max)
{
    *state = (struct state){ .job_max = job_max, .free_slot = NONE, .id_next = 1 };
    state->jobs = arena_alloc(run, job_max, sizeof *state->jobs, PREFETCH_LINE);
    state->ids = arena_new(run, struct state_ids);
    state->seat_max = count_seats_max(cluster, job_max);
    state->seats = arena_array(run, struct seat, state->seat_max);
    for (uint32_t i = 0; i < SEAT_CLASSES; i++)
        state->seat_free[i] = NONE;
    state->pending_max = state->seat_max;
    state->pending_shares = arena_array(run, struct pending_share, state->pending_max);
    state->pending_free = NONE;
    state->losses = arena_array(run, struct loss_ring, job_max);
    state->loss_free = NONE;
    state->served_ns = arena_array(run, int64_t, (size_t)job_max * cluster->type_count);
    state->touched = arena_array(run, job_id, job_max);
    state->is_touched = arena_array(run, bool, job_max);
    state->node_down = arena_array(run, bool, cluster->node_count);
    state->foreign = arena_array(run, uint64_t, cluster->node_count);
    state->holds = arena_array(run, struct holds, cluster->node_count);

    free_index_init(&state->free, run, cluster);
    for (node_id n = 0; n < cluster->node_count; n++) {
        const struct node *node = &cluster->nodes[n];
        uint64_t all =
            node->gpu_count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << node->gpu_count) - 1;
        struct room room = { all, node->cpu_milli, node->mem_mib };
        free_index_put(&state->free, n, &room);
    }
    state->view = (struct view){ .jobs = state->jobs,
                                 .job_max = job_max,
                                 .seats = state->seats,
                                 .cluster = cluster,
                                 .free = &state->free,
                                 .foreign = state->foreign,
                                 .calendar = &state->calendar,
                                 .losses = state->losses,
                                 .rates = rates };
}

void state_release(struct state *state)
{
    if (state->learns) {
        rate_table_release(&state->rates);
        pair_table_release(&state->pairs);
    }
    state->learns = false;
    if (state->ids)
        map_release(&state->ids->slots);
    state->ids = NULL;
    calendar_release(&state->calendar);
}

void state_forget_ids(struct state *state)
{
    map_release(&state->ids->slots);
    state->ids->wanted = false;
}

job_id state_find(const struct state *state, uint64_t id)
{
    struct state_ids *ids = state->ids;
    for (job_id slot = 0; !ids->wanted && slot < state->job_count; slot++)
        if (state->jobs[slot].state != JOB_FREE)
            map_put(&ids->slots, state->jobs[slot].id, slot);
    ids->wanted = true;
    return map_find(&ids->slots, id);
}

/* --- time ---------------------------------------------------------------------- */

/* The steps so far become the anchor; 'rate_per_s' holds from now on. */
static void move_anchor(struct job *job, int64_t now_ns, double rate_per_s)
{
    job->steps = job_steps(job, now_ns);
    job->anchor_ns = now_ns;
    job->rate_per_s = rate_per_s;
}

static double expected_rate(const struct state *state, const struct job *job)
{
    if (job->type_now == TYPE_NONE)
        return job->rate_best_per_s;
    const struct job *partner =
        job->partner != JOB_NONE ? &state->jobs[job->partner] : NULL;
    double rates[2];
    if (partner && job_holds_seats(partner) && partner->partner == job - state->jobs &&
        sharing_rates(state->view.rates, job, partner, job->type_now, job->gpus_now,
                      job->spread_now, rates))
        return rates[0];
    return throughput_rate(state->view.rates, job, job->type_now, job->gpus_now,
                           job->spread_now);
}

/* Add the GPU-time up to now. */
static void book_service(struct state *state, job_id id, int64_t now_ns)
{
    struct job *job = &state->jobs[id];
    int64_t served_ns = (now_ns - job->since_ns) * job->gpus_now;
    job->served_ns += served_ns;
    if (job->type_now != TYPE_NONE)
        state
            ->served_ns[(size_t)id * state->view.cluster->type_count + job->type_now] +=
            served_ns;
    job->since_ns = now_ns;
}

static void book_waiting(struct job *job, int64_t now_ns)
{
    job->waited_ns += now_ns - job->since_ns;
    job->since_ns = now_ns;
}

/* --- losses -------------------------------------------------------------------- */

static void add_loss(struct state *state, struct job *job, double steps, double loss)
{
    job->loss = loss;
    if (job->loss_ring == NONE) {
        job->loss_ring = state->loss_free;
        if (job->loss_ring != NONE)
            state->loss_free = state->losses[job->loss_ring].next_free;
        else
            job->loss_ring = state->loss_used++;
        state->losses[job->loss_ring].count = 0;
    }
    struct loss_ring *ring = &state->losses[job->loss_ring];
    ring->steps[ring->count % LOSS_POINTS] = steps;
    ring->losses[ring->count % LOSS_POINTS] = loss;
    ring->count++;
}

/* --- what each event does -------------------------------------------------------- */

/* The job is where it was not before: its next reports are the first from there. */
static void begin_track(struct state *state, job_id id)
{
    const struct job *job = &state->jobs[id];
    if (state->learns && job->learned)
        state->tracks[id] = (struct rate_track){ .base = log(job->pace) };
}

static void apply_submitted(struct state *state, struct event *event)
{
    job_id id = state->free_slot;
    if (id != NONE)
        state->free_slot = state->jobs[id].pending_from;
    else
        id = state->job_count++;
    assert(id < state->job_max);

    struct job *job = &state->jobs[id];
    uint32_t generation = job->generation + 1;
    *job = *event->spec;
    job->generation = generation ? generation : 1;
    job->attempt = UINT32_MAX; /* the first start makes it 0 */
    job->state = event->spec->state == JOB_HELD ? JOB_HELD : JOB_WAITING;
    job->seats = job->next = (struct seat_row){ 0, 0 };
    job->gpus_now = 0;
    job->type_now = TYPE_NONE;
    job->partner = job->coming = job->next_partner = JOB_NONE;
    job->pending_from = job->pending_to = NONE;
    job->loss = NAN;
    job->loss_ring = NONE;
    job->submit_ns = job->since_ns = event->at_ns;
    job->first_start_ns = -1;
    job->waited_ns = job->served_ns = 0;
    job->steps = job->rate_per_s = 0;
    job->preemptions = job->failures = 0;
    job->sent_bytes = 0;
    job->level = 0;
    job->leaving = false;
    job->pace = 1;
    for (uint32_t t = 0; t < state->view.cluster->type_count; t++)
        state->served_ns[(size_t)id * state->view.cluster->type_count + t] = 0;

    if (job->id >= state->id_next)
        state->id_next = job->id + 1;
    if (state->ids->wanted)
        map_put(&state->ids->slots, job->id, id);
    if (state->learns && job->learned) {
        rate_table_enter(&state->rates, job->learned - 1, event->at_ns);
        begin_track(state, id);
    }
    state->live_count++;
    state->waiting_count += job->state == JOB_WAITING;
    state->view.closed = false; /* this job was not expected */
    event->job = id;
    event->generation = job->generation;
}

/* End a job: its slot may be used again, its record stays until then. */
static void end_job(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    if (job->loss_ring != NONE) {
        state->losses[job->loss_ring].next_free = state->loss_free;
        state->loss_free = job->loss_ring;
    }
    if (state->learns && job->learned)
        rate_table_leave(&state->rates, job->learned - 1);
    job->learned = 0;
    job->state = JOB_FREE;
    node_set_drop(job->set);
    job->set = NULL; /* it may be another job's by the next read */
    if (state->ids->wanted)
        map_remove(&state->ids->slots, job->id);
    state->live_count--;
    job->pending_from = state->free_slot;
    state->free_slot = id;
}

/* A job gives its seats up: it goes to its pending allocation, back to the queue, or ends. */
static void leave_seats(struct state *state, job_id id, int64_t now_ns)
{
    struct job *job = &state->jobs[id];
    book_service(state, id, now_ns);
    state->seated_count--;
    if (job->leaving && job->next.count)
        allocation_drop_pending(state, id);
    allocation_release(state, id);
    job->rate_per_s = 0;
    if (job->next.count) {
        job->state = JOB_PLACED;
        job->attempt++;
        allocation_count_seats(state, job, &job->next);
    } else if (job->leaving) {
        end_job(state, id);
    } else {
        job->state = JOB_WAITING;
        job->steps_max = 0;
        job->gpus_now = 0;
        job->type_now = TYPE_NONE;
        state->waiting_count++;
    }
}

static void apply_ended(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    if (event->kind == EVENT_FINISHED)
        job->steps = event->steps;
    book_service(state, id, event->at_ns);
    state->seated_count--;
    if (job->next.count)
        allocation_drop_pending(state, id);
    allocation_release(state, id);
    end_job(state, id);
}

static void apply_started(struct state *state, struct job *job,
                          const struct event *event)
{
    book_waiting(job, event->at_ns);
    job->seats = job->next;
    job->next = (struct seat_row){ 0, 0 };
    if (job->first_start_ns < 0)
        job->first_start_ns = event->at_ns;
    job->state = event->loaded ? JOB_RUNNING : JOB_LOADING;
    job->anchor_ns = event->at_ns;
    job->rate_per_s =
        event->rate_per_s > 0 ? event->rate_per_s : expected_rate(state, job);
    state->seated_count++;
    begin_track(state, (job_id)(job - state->jobs));
}

static void apply_lost(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    job->failures++;
    if (job->state == JOB_PLACED) {
        allocation_drop_pending(state, id);
        job->gpus_now = 0;
        job->type_now = TYPE_NONE;
        if (job->leaving) {
            end_job(state, id);
            return;
        }
        job->state = JOB_WAITING;
        state->waiting_count++;
        return;
    }
    if (job_runs(job) && job->next.count)
        allocation_drop_pending(state, id); /* it was about to change its size */
    job->steps = event->steps;
    job->anchor_ns = event->at_ns;
    leave_seats(state, id, event->at_ns);
}

static void apply_placed(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    assert(job->state == JOB_WAITING || job->state == JOB_STOPPING);
    allocation_reserve(state, event);
    job->steps_max = event->steps_max;
    job->spread_now = event->spread;
    if (job->state == JOB_WAITING) {
        job->state = JOB_PLACED;
        job->attempt++;
        allocation_count_seats(state, job, &job->next);
        state->waiting_count--;
    }
}

static void apply_recalled(struct job *job, const struct event *event)
{
    assert(event->rule == RULE_CANCEL     ? job_runs(job)
           : event->rule == RULE_CALENDAR ? job_can_be_stopped(job)
                                          : job_is_preemptible(job));
    move_anchor(job, event->at_ns, 0);
    job->state = JOB_STOPPING;
    job->recalled_ns = event->at_ns;
    if (event->rule != RULE_RESIZE && event->rule != RULE_CANCEL)
        job->preemptions++;
}

static void apply_resized(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    assert(job->next.count);
    struct seat_row next = job->next;
    book_service(state, id, event->at_ns);
    job->next = (struct seat_row){ 0, 0 };
    allocation_release(state, id);
    job->seats = next;
    job->state = JOB_RUNNING; /* it has resumed already */
    allocation_count_seats(state, job, &job->seats);
    job->steps = event->steps;
    job->anchor_ns = event->at_ns;
    job->rate_per_s =
        event->rate_per_s > 0 ? event->rate_per_s : expected_rate(state, job);
    begin_track(state, id);
}

/*
 * One that is to move keeps its pending allocation until it ends: it may be there already, and
 * the message of that on its way.
 */
static void apply_cancelled(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    job->leaving = true;
    if (job->state == JOB_WAITING || job->state == JOB_HELD) {
        state->waiting_count -= job->state == JOB_WAITING;
        end_job(state, id);
    }
}

/* Settings that the owner of a held job may change. */
static void apply_changed(struct job *job, const struct job *spec)
{
    job->class = spec->class;
    job->weight = spec->weight;
    job->deadline_ns = spec->deadline_ns;
    job->grace_ns = spec->grace_ns;
    job->steps_total = spec->steps_total;
}

/* Times, steps and counts of a job that was there before a restart. */
static void apply_restored(struct state *state, struct job *job,
                           const struct event *event)
{
    const struct job *kept = event->spec;
    job->attempt = kept->attempt;
    job->steps = kept->steps;
    job->rate_per_s = kept->rate_per_s;
    job->anchor_ns = kept->anchor_ns;
    job->loss = kept->loss;
    job->submit_ns = kept->submit_ns;
    job->since_ns = kept->since_ns;
    job->first_start_ns = kept->first_start_ns;
    job->waited_ns = kept->waited_ns;
    job->served_ns = kept->served_ns;
    job->recalled_ns = kept->recalled_ns;
    job->preemptions = kept->preemptions;
    job->failures = kept->failures;
    job->pause_ns = kept->pause_ns;
    job->load_ns = kept->load_ns;
    job->rate_best_per_s *= job->step_s / kept->step_s;
    job->fixed_s *= kept->step_s / job->step_s;
    job->step_s = kept->step_s;
    job->steps_total = kept->steps_total;
    job->level = kept->level;
    job->leaving = kept->leaving;
    const struct restored *history = event->history;
    uint32_t types = state->view.cluster->type_count;
    for (uint32_t t = 0; history && history->served_ns && t < types; t++)
        state->served_ns[(size_t)event->job * types + t] = history->served_ns[t];
    for (uint32_t i = 0; history && i < history->report_count; i++)
        add_loss(state, job, history->steps[i], history->losses[i]);
}

/*
 * How fast the job really is.  One that is of no kind has nothing but its own reports: a
 * measurement on one type holds for all.
 */
static void learn_rate(struct state *state, struct job *job, const struct event *event)
{
    if (!event->measured ||
        state_learn_report(state, event->job, event->steps,
                           event->at_ns - event->age_ns) ||
        event->rate_per_s <= 0 || job->kind != KIND_NONE ||
        job->type_now == TYPE_NONE || job->partner != JOB_NONE)
        return;
    double expected = throughput_rate(state->view.rates, job, job->type_now,
                                      job->gpus_now, job->spread_now);
    if (expected <= 0)
        return;
    double factor = event->rate_per_s / expected;
    job->step_s /= factor;
    job->fixed_s /= factor;
    job->rate_best_per_s *= factor;
}

/*
 * The time it took to checkpoint is what it will take the next time.  A job that was killed
 * needs more than its grace period, whatever it declared: it counts as unable to checkpoint.
 */
static void learn_pause(struct job *job, const struct event *event)
{
    if (job->state != JOB_STOPPING)
        return;
    int64_t took_ns = event->at_ns - job->recalled_ns;
    if (event->measured && event->clean)
        job->pause_ns = took_ns;
    else if (!event->clean && !job->leaving && took_ns >= job->grace_ns &&
             job->pause_ns <= job->grace_ns)
        job->pause_ns = job->grace_ns + 1;
    job->loses_work = !event->clean || job->pause_ns > job->grace_ns;
}

/* An executor speaks of an attempt; one that is over is of no interest any more. */
static bool is_late(const struct state *state, const struct event *event)
{
    const struct job *job = &state->jobs[event->job];
    if (job->state == JOB_FREE)
        return true;
    if (event->generation && event->generation != job->generation)
        return true;
    return event->kind >= EVENT_STARTED && event->kind <= EVENT_LOST &&
           event->attempt != job->attempt;
}

/* Whether the event makes sense for a job in this state; others are late too. */
static bool is_expected(const struct job *job, enum event_kind kind)
{
    switch (kind) {
    case EVENT_STARTED:
        return job->state == JOB_PLACED;
    case EVENT_LOADED:
        return job->state == JOB_LOADING;
    case EVENT_PROGRESS:
    case EVENT_LEASE_DONE:
        return job->state == JOB_RUNNING;
    case EVENT_SENT:
    case EVENT_GPU_USE:
        return job_holds_seats(job);
    case EVENT_RESIZED:
        return job_runs(job) && job->next.count;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        return job_holds_seats(job);
    case EVENT_LOST:
        return job_holds_seats(job) || job->state == JOB_PLACED;
    case EVENT_HELD:
    case EVENT_DROPPED:
        return job->state == JOB_WAITING;
    case EVENT_RELEASED:
    case EVENT_CHANGED:
        return job->state == JOB_HELD;
    case EVENT_CANCELLED:
        return !job->leaving;
    default:
        return true;
    }
}

/*
 * A job may report any number.  Beyond these bounds no job trains, and sums lose their last
 * digits: such a figure is replaced by what was known before.
 */
#define STEPS_MAX 1e15
#define RATE_MIN 1e-6
#define RATE_MAX 1e9

static void clamp_report(const struct job *job, struct event *event)
{
    if (event->kind < EVENT_STARTED || event->kind > EVENT_LOST ||
        event->kind == EVENT_SENT || event->kind == EVENT_GPU_USE)
        return;
    if (!(event->rate_per_s >= RATE_MIN && event->rate_per_s <= RATE_MAX))
        event->rate_per_s = 0;
    if (!(event->steps_total > 0 && event->steps_total <= STEPS_MAX))
        event->steps_total = 0;
    if (!(event->steps_saved > 0 && event->steps_saved <= STEPS_MAX))
        event->steps_saved = 0;
    if (!(event->steps >= 0 && event->steps <= STEPS_MAX))
        event->steps = fmin(job_steps(job, event->at_ns), STEPS_MAX);
    if (!(event->steps_reached >= 0 && event->steps_reached <= STEPS_MAX))
        event->steps_reached = event->steps;
    if (!(event->age_ns >= 0 && event->age_ns <= event->at_ns - job->anchor_ns))
        event->age_ns = 0;
}

static void node_changed(struct state *state, const struct event *event)
{
    bool down = event->kind == EVENT_NODE_DOWN;
    if (state->node_down[event->node] == down)
        return;
    struct room room = state->free.rooms[event->node];
    state->node_down[event->node] = down;
    if (down)
        free_index_drop(&state->free, event->node);
    else
        free_index_put(&state->free, event->node, &room);
}

bool state_apply(struct state *state, struct event *event)
{
    state->view.now_ns = event->at_ns;
    while (state->touched_count > 0)
        state->is_touched[state->touched[--state->touched_count]] = false;
    if (event->kind == EVENT_SUBMITTED) {
        apply_submitted(state, event);
        return true;
    }
    if (event->kind == EVENT_CLOSED) {
        state->view.closed = true;
        return true;
    }
    if (event->kind == EVENT_NODE_DOWN || event->kind == EVENT_NODE_UP) {
        node_changed(state, event);
        return true;
    }
    if (event->kind == EVENT_FOREIGN) {
        allocation_set_foreign(state, event->node, event->gpus);
        return true;
    }
    if (event->kind == EVENT_RESERVED || event->kind == EVENT_BOUNDARY) {
        calendar_update(&state->calendar,
                        event->kind == EVENT_RESERVED ? event->entry : NULL,
                        event->at_ns);
        return true;
    }
    if (event->kind == EVENT_WAKE || event->kind == EVENT_REJECTED)
        return true;

    job_id id = event->job;
    struct job *job = &state->jobs[id];
    if (event->kind == EVENT_LOST && job->state == JOB_STOPPING && job->next.count &&
        event->attempt == job->attempt + 1 && event->generation == job->generation) {
        allocation_drop_pending(
            state, id); /* its pending allocation is gone; it still has to stop */
        return true;
    }
    if (is_late(state, event) || !is_expected(job, event->kind))
        return false;
    clamp_report(job, event);

    switch (event->kind) {
    case EVENT_STARTED:
        apply_started(state, job, event);
        break;
    case EVENT_LOADED:
        job->state = JOB_RUNNING;
        if (event->measured)
            job->load_ns = event->at_ns - job->since_ns;
        job->anchor_ns = event->at_ns;
        if (event->rate_per_s > 0)
            job->rate_per_s = event->rate_per_s;
        break;
    case EVENT_PROGRESS:
        move_anchor(job, event->at_ns - event->age_ns, job->rate_per_s);
        job->steps = event->steps;
        learn_rate(state, job, event);
        if (event->steps_total > 0)
            job->steps_total = event->steps_total;
        if (event->steps_saved > 0) {
            job->steps_saved = event->steps_saved;
            job->loses_work = false;
        }
        if (event->rate_per_s > 0)
            job->rate_per_s = event->rate_per_s;
        if (event->rate_per_s > 0 && event->measured)
            job->paced = true;
        if (!isnan(event->loss))
            add_loss(state, job, event->steps, event->loss);
        break;
    case EVENT_SENT:
        state_learn_sent(state, id, event);
        job->sends_per_s = event->sends_per_s;
        job->sent_bytes = event->sent_bytes;
        break;
    case EVENT_GPU_USE:
        state_learn_gpu_use(state, id, event);
        break;
    case EVENT_LEASE_DONE:
        job->steps = event->steps;
        job->anchor_ns = event->at_ns;
        job->state = JOB_IDLE;
        break;
    case EVENT_RESIZED:
        apply_resized(state, id, event);
        break;
    case EVENT_STOPPED:
        learn_pause(job, event);
        job->steps = event->steps;
        job->anchor_ns = event->at_ns;
        leave_seats(state, id, event->at_ns);
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
        apply_ended(state, id, event);
        break;
    case EVENT_LOST:
        apply_lost(state, id, event);
        break;
    case EVENT_PLACED:
        apply_placed(state, id, event);
        break;
    case EVENT_RECALLED:
        apply_recalled(job, event);
        break;
    case EVENT_RESIZING:
        assert(job_runs(job));
        move_anchor(job, event->at_ns, 0); /* it makes no steps meanwhile */
        allocation_reserve(state, event);
        job->steps_max = event->steps_max;
        job->spread_now = event->spread;
        break;
    case EVENT_RENEWED:
        assert(job_runs(job));
        if (job->state == JOB_IDLE) {
            job->state = JOB_RUNNING;
            job->anchor_ns = event->at_ns;
        }
        job->steps_max = event->steps_max;
        break;
    case EVENT_LEVELLED:
        job->level = event->level;
        break;
    case EVENT_CANCELLED:
        apply_cancelled(state, id);
        break;
    case EVENT_CHANGED:
        apply_changed(job, event->spec);
        break;
    case EVENT_RESTORED:
        apply_restored(state, job, event);
        break;
    case EVENT_DROPPED:
        state->waiting_count--;
        end_job(state, id);
        break;
    case EVENT_HELD:
        job->state = JOB_HELD;
        state->waiting_count--;
        break;
    case EVENT_RELEASED:
        job->state = JOB_WAITING;
        state->waiting_count++;
        break;
    default:
        return false;
    }
    return true;
}
