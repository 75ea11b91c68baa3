/*
 * state.c - the cluster as we know it; changed by events only.
 *
 * The accounts of a node: what is free, what jobs hold in their seats, and what leaving
 * jobs have promised to others.  A promise is a part of a leaving job's seat; it is not
 * free while that job is there and not free when it has gone, because then it belongs
 * to the successor.  So when a job leaves, its seats less its promises become free, and
 * when a successor gives up before it starts, its seats less the promises that are
 * still open become free.
 */
#include "model/state.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "model/throughput.h"

#define NONE UINT32_MAX
/*
 * Every accelerator may be held by two and promised to two, everybody without one holds
 * a seat and may be promised another; and rows are up to twice as long as they need be.
 * A row once cut is not joined with others: there may be that much of each length.
 */
static uint32_t seats_at_most(const struct cluster *cluster, uint32_t job_max)
{
    uint32_t lengths = 1;
    while (lengths < SEAT_CLASSES - 1 && 1u << (lengths - 1) < cluster->node_count)
        lengths++;
    uint64_t count =
        4 * (uint64_t)job_max + 8 * (uint64_t)cluster->gpu_count * lengths + 64;
    return count < UINT32_MAX / 2 ? (uint32_t)count : UINT32_MAX / 2;
}

void state_init(struct state *state, struct arena *run, const struct cluster *cluster,
                const struct throughput *rates, uint32_t job_max)
{
    *state = (struct state){ .job_max = job_max, .free_slot = NONE, .id_next = 1 };
    state->jobs = arena_array(run, struct job, job_max);
    state->seat_max = seats_at_most(cluster, job_max);
    state->seats = arena_array(run, struct seat, state->seat_max);
    for (uint32_t i = 0; i < SEAT_CLASSES; i++)
        state->seat_free[i] = NONE;
    state->promise_max = state->seat_max;
    state->promises = arena_array(run, struct promise, state->promise_max);
    state->promise_free = NONE;
    state->losses = arena_array(run, struct loss_ring, job_max);
    state->loss_free = NONE;
    state->served_ns = arena_array(run, int64_t, (size_t)job_max * cluster->type_count);
    state->node_down = arena_array(run, bool, cluster->node_count);

    free_init(&state->free, run, cluster);
    for (node_id n = 0; n < cluster->node_count; n++) {
        const struct node *node = &cluster->nodes[n];
        uint64_t all =
            node->gpu_count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << node->gpu_count) - 1;
        struct room room = { all, node->cpu_milli, node->mem_mib };
        free_put(&state->free, n, &room);
    }
    state->view = (struct view){ .jobs = state->jobs,
                                 .job_max = job_max,
                                 .seats = state->seats,
                                 .cluster = cluster,
                                 .free = &state->free,
                                 .rates = rates };
}

void state_release(struct state *state)
{
    map_release(&state->slots);
}

job_id state_find(const struct state *state, uint64_t id)
{
    return map_find(&state->slots, id);
}

/* --- rows of seats ------------------------------------------------------------ */

static uint32_t row_class(uint32_t count)
{
    return count <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(count - 1);
}

static struct seat_row row_new(struct state *state, const struct seat *seats,
                               uint32_t count)
{
    uint32_t class = row_class(count);
    uint32_t first = state->seat_free[class];
    if (first != NONE) {
        state->seat_free[class] = state->seats[first].node;
    } else {
        first = state->seat_used;
        state->seat_used += 1u << class;
        assert(state->seat_used <= state->seat_max);
    }
    for (uint32_t i = 0; i < count; i++)
        state->seats[first + i] = seats[i];
    return (struct seat_row){ first, count };
}

static void row_free(struct state *state, struct seat_row *row)
{
    if (row->count == 0)
        return;
    uint32_t class = row_class(row->count);
    state->seats[row->first].node = state->seat_free[class];
    state->seat_free[class] = row->first;
    *row = (struct seat_row){ 0, 0 };
}

/* --- rooms --------------------------------------------------------------------- */

static void set_room(struct state *state, node_id node, const struct room *room)
{
    if (state->node_down[node])
        state->free.rooms[node] = *room; /* kept for its return */
    else
        free_put(&state->free, node, room);
}

static void take(struct state *state, const struct room_part *part)
{
    struct room room = state->free.rooms[part->node];
    assert((room.gpus & part->gpus) == part->gpus);
    assert(room.cpu_milli >= part->cpu_milli);
    assert(room.mem_mib >= part->mem_mib);
    room.gpus &= ~part->gpus;
    room.cpu_milli -= part->cpu_milli;
    room.mem_mib -= part->mem_mib;
    set_room(state, part->node, &room);
}

static void give(struct state *state, const struct room_part *part)
{
    struct room room = state->free.rooms[part->node];
    assert((room.gpus & part->gpus) == 0);
    room.gpus |= part->gpus;
    room.cpu_milli += part->cpu_milli;
    room.mem_mib += part->mem_mib;
    set_room(state, part->node, &room);
}

static struct room_part part_of(const struct seat *seat)
{
    return (struct room_part){ seat->node, seat->cpu_milli, seat->mem_mib, seat->gpus };
}

static void part_less(struct room_part *part, const struct room_part *other)
{
    assert((part->gpus & other->gpus) == other->gpus);
    assert(part->cpu_milli >= other->cpu_milli);
    assert(part->mem_mib >= other->mem_mib);
    part->gpus &= ~other->gpus;
    part->cpu_milli -= other->cpu_milli;
    part->mem_mib -= other->mem_mib;
}

/* --- promises ------------------------------------------------------------------ */

static void promise_add(struct state *state, job_id victim, job_id successor,
                        const struct room_part *part)
{
    uint32_t p = state->promise_free;
    if (p != NONE)
        state->promise_free = state->promises[p].next_of_victim;
    else
        p = state->promise_used++;
    assert(p < state->promise_max);
    state->promises[p] =
        (struct promise){ .victim = victim,
                          .successor = successor,
                          .part = *part,
                          .next_of_victim = state->jobs[victim].promised_to,
                          .next_of_successor = state->jobs[successor].promised_by };
    state->jobs[victim].promised_to = p;
    state->jobs[successor].promised_by = p;
}

static void unlink_of_victim(struct state *state, uint32_t p)
{
    uint32_t *link = &state->jobs[state->promises[p].victim].promised_to;
    while (*link != p)
        link = &state->promises[*link].next_of_victim;
    *link = state->promises[p].next_of_victim;
}

static void unlink_of_successor(struct state *state, uint32_t p)
{
    uint32_t *link = &state->jobs[state->promises[p].successor].promised_by;
    while (*link != p)
        link = &state->promises[*link].next_of_successor;
    *link = state->promises[p].next_of_successor;
}

static void promise_drop(struct state *state, uint32_t p)
{
    unlink_of_victim(state, p);
    unlink_of_successor(state, p);
    state->promises[p].next_of_victim = state->promise_free;
    state->promise_free = p;
}

/* A job leaves accelerators that its partner still uses: the partner promises them now. */
static void promises_to_partner(struct state *state, job_id job, job_id partner)
{
    uint32_t next;
    for (uint32_t p = state->jobs[job].promised_to; p != NONE; p = next) {
        struct promise *promise = &state->promises[p];
        next = promise->next_of_victim;
        if (promise->part.gpus == 0)
            continue;
        struct room_part rest = { .node = promise->part.node,
                                  .gpus = promise->part.gpus };
        promise->part.gpus = 0;
        promise_add(state, partner, promise->successor, &rest);
    }
}

/* --- seats --------------------------------------------------------------------- */

/* Less what the job promises there, a seat it leaves becomes free. */
static void vacate(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    bool shared = job->partner != JOB_NONE;
    if (shared)
        promises_to_partner(state, id, job->partner);

    for (uint32_t i = 0; i < job->seats.count; i++) {
        struct room_part part = part_of(&state->seats[job->seats.first + i]);
        if (shared)
            part.gpus = 0;
        for (uint32_t p = job->promised_to; p != NONE;
             p = state->promises[p].next_of_victim)
            if (state->promises[p].part.node == part.node)
                part_less(&part, &state->promises[p].part);
        give(state, &part);
    }
    while (job->promised_to != NONE)
        promise_drop(state, job->promised_to);
    row_free(state, &job->seats);
    if (shared) {
        state->jobs[job->partner].partner = JOB_NONE;
        job->partner = JOB_NONE;
    }
}

/* The same for one who does not come: what both were promised is promised to the other. */
static void promises_for_partner(struct state *state, job_id job, job_id partner)
{
    uint32_t next;
    for (uint32_t p = state->jobs[job].promised_by; p != NONE; p = next) {
        struct promise *promise = &state->promises[p];
        next = promise->next_of_successor;
        if (promise->part.gpus == 0)
            continue;
        struct room_part rest = { .node = promise->part.node,
                                  .gpus = promise->part.gpus };
        promise->part.gpus = 0;
        promise_add(state, promise->victim, partner, &rest);
    }
}

/* Give up seats it was promised and has not taken. */
static void decline(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    bool shared = job->state == JOB_PLACED && job->partner != JOB_NONE;
    if (shared)
        promises_for_partner(state, id, job->partner);

    for (uint32_t i = 0; i < job->next.count; i++) {
        struct room_part part = part_of(&state->seats[job->next.first + i]);
        if (shared)
            part.gpus = 0;
        for (uint32_t p = job->promised_by; p != NONE;
             p = state->promises[p].next_of_successor)
            if (state->promises[p].part.node == part.node)
                part_less(&part, &state->promises[p].part);
        give(state, &part);
    }
    while (job->promised_by != NONE)
        promise_drop(state, job->promised_by);
    row_free(state, &job->next);
    if (shared) {
        state->jobs[job->partner].partner = JOB_NONE;
        job->partner = JOB_NONE;
    }
}

/* Take what is free of 'seats' and note what is promised. */
static void reserve(struct state *state, const struct event *event)
{
    struct job *job = &state->jobs[event->job];
    assert(job->next.count == 0);
    for (uint32_t i = 0; i < event->seat_count; i++) {
        struct room_part part = part_of(&event->seats[i]);
        if (event->beside != JOB_NONE)
            part.gpus = 0;
        for (uint32_t p = 0; p < event->promise_count; p++)
            if (event->promises[p].part.node == part.node)
                part_less(&part, &event->promises[p].part);
        take(state, &part);
    }
    for (uint32_t p = 0; p < event->promise_count; p++) {
        assert(job_seated(&state->jobs[event->promises[p].victim]));
        promise_add(state, event->promises[p].victim, event->job,
                    &event->promises[p].part);
    }
    job->next = row_new(state, event->seats, event->seat_count);
    if (event->beside != JOB_NONE) {
        struct job *other = &state->jobs[event->beside];
        assert(other->partner == JOB_NONE);
        assert(job->partner == JOB_NONE);
        other->partner = event->job;
        job->partner = event->beside;
    }
}

/* What it holds, counted from its seats. */
static void count_seats(struct state *state, struct job *job,
                        const struct seat_row *row)
{
    job->gpus_now = 0;
    for (uint32_t i = 0; i < row->count; i++)
        job->gpus_now += seat_gpu_count(&state->seats[row->first + i]);
    job->type_now = state->view.cluster->nodes[state->seats[row->first].node].type;
}

/* --- time ---------------------------------------------------------------------- */

/* Steps so far become the anchor; from now on 'rate_per_s'. */
static void anchor(struct job *job, int64_t now_ns, double rate_per_s)
{
    job->steps = job_steps(job, now_ns);
    job->anchor_ns = now_ns;
    job->rate_per_s = rate_per_s;
}

static double expected_rate(const struct state *state, const struct job *job)
{
    if (job->type_now == TYPE_NONE)
        return job->rate_best_per_s;
    return throughput_rate(state->view.rates, job, job->type_now, job->gpus_now,
                           job->spread_now);
}

/* Book the time in seats up to now. */
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

static void loss_add(struct state *state, struct job *job, double steps, double loss)
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

static void submitted(struct state *state, struct event *event)
{
    job_id id = state->free_slot;
    if (id != NONE)
        state->free_slot = state->jobs[id].promised_by;
    else
        id = state->job_count++;
    assert(id < state->job_max);

    struct job *job = &state->jobs[id];
    uint32_t generation = job->generation + 1;
    *job = *event->spec;
    job->generation = generation ? generation : 1;
    job->attempt = UINT32_MAX; /* the first start makes it 0 */
    job->state = JOB_WAITING;
    job->seats = job->next = (struct seat_row){ 0, 0 };
    job->gpus_now = 0;
    job->type_now = TYPE_NONE;
    job->partner = JOB_NONE;
    job->promised_by = job->promised_to = NONE;
    job->loss = NAN;
    job->loss_ring = NONE;
    job->submit_ns = job->since_ns = event->at_ns;
    job->first_start_ns = -1;
    job->waited_ns = job->served_ns = 0;
    job->steps = job->rate_per_s = 0;
    job->preemptions = job->failures = 0;
    job->leaving = false;
    for (uint32_t t = 0; t < state->view.cluster->type_count; t++)
        state->served_ns[(size_t)id * state->view.cluster->type_count + t] = 0;

    if (job->id >= state->id_next)
        state->id_next = job->id + 1;
    map_put(&state->slots, job->id, id);
    state->live_count++;
    state->waiting_count++;
    event->job = id;
    event->generation = job->generation;
}

/* The job is over: its slot may be used again, its record stays until then. */
static void forget(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    if (job->loss_ring != NONE) {
        state->losses[job->loss_ring].next_free = state->loss_free;
        state->loss_free = job->loss_ring;
    }
    job->state = JOB_FREE;
    map_remove(&state->slots, job->id);
    state->live_count--;
    job->promised_by = state->free_slot;
    state->free_slot = id;
}

/* Out of its seats: to the seats promised to it, back to the queue, or gone. */
static void left_seats(struct state *state, job_id id, int64_t now_ns)
{
    struct job *job = &state->jobs[id];
    book_service(state, id, now_ns);
    state->seated_count--;
    vacate(state, id);
    job->rate_per_s = 0;
    if (job->next.count) {
        job->state = JOB_PLACED;
        job->attempt++;
        count_seats(state, job, &job->next);
    } else if (job->leaving) {
        forget(state, id);
    } else {
        job->state = JOB_WAITING;
        job->steps_max = 0;
        job->gpus_now = 0;
        job->type_now = TYPE_NONE;
        state->waiting_count++;
    }
}

static void ended(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    if (event->kind == EVENT_FINISHED)
        job->steps = event->steps;
    book_service(state, id, event->at_ns);
    state->seated_count--;
    if (job->next.count)
        decline(state, id);
    vacate(state, id);
    forget(state, id);
}

static void started(struct state *state, struct job *job, const struct event *event)
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
}

static void lost(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    job->failures++;
    if (job->state == JOB_PLACED) {
        decline(state, id);
        job->gpus_now = 0;
        job->type_now = TYPE_NONE;
        if (job->leaving) {
            forget(state, id);
            return;
        }
        job->state = JOB_WAITING;
        state->waiting_count++;
        return;
    }
    if (job_runs(job) && job->next.count)
        decline(state, id); /* it was about to go on with another size */
    job->steps = event->steps;
    job->anchor_ns = event->at_ns;
    left_seats(state, id, event->at_ns);
}

static void placed(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    assert(job->state == JOB_WAITING || job->state == JOB_STOPPING);
    reserve(state, event);
    job->steps_max = event->steps_max;
    job->spread_now = event->spread;
    if (job->state == JOB_WAITING) {
        job->state = JOB_PLACED;
        job->attempt++;
        count_seats(state, job, &job->next);
        state->waiting_count--;
    }
}

static void recalled(struct job *job, const struct event *event)
{
    assert(job_may_leave(job));
    anchor(job, event->at_ns, 0);
    job->state = JOB_STOPPING;
    job->recalled_ns = event->at_ns;
    if (event->rule != RULE_RESIZE && event->rule != RULE_CANCEL)
        job->preemptions++;
}

static void resized(struct state *state, job_id id, const struct event *event)
{
    struct job *job = &state->jobs[id];
    assert(job->next.count);
    struct seat_row next = job->next;
    book_service(state, id, event->at_ns);
    job->next = (struct seat_row){ 0, 0 };
    vacate(state, id);
    job->seats = next;
    job->state = JOB_RUNNING; /* it has loaded on the way */
    count_seats(state, job, &job->seats);
    job->steps = event->steps;
    job->anchor_ns = event->at_ns;
    job->rate_per_s =
        event->rate_per_s > 0 ? event->rate_per_s : expected_rate(state, job);
}

static void cancelled(struct state *state, job_id id)
{
    struct job *job = &state->jobs[id];
    job->leaving = true;
    if (job->state == JOB_WAITING || job->state == JOB_HELD) {
        state->waiting_count -= job->state == JOB_WAITING;
        forget(state, id);
    }
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
    case EVENT_RESIZED:
        return job_runs(job) && job->next.count;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        return job_seated(job);
    case EVENT_LOST:
        return job_seated(job) || job->state == JOB_PLACED;
    case EVENT_HELD:
        return job->state == JOB_WAITING;
    case EVENT_RELEASED:
        return job->state == JOB_HELD;
    default:
        return true;
    }
}

static void node_changed(struct state *state, const struct event *event)
{
    bool down = event->kind == EVENT_NODE_DOWN;
    if (state->node_down[event->node] == down)
        return;
    struct room room = state->free.rooms[event->node];
    state->node_down[event->node] = down;
    if (down)
        free_drop(&state->free, event->node);
    else
        free_put(&state->free, event->node, &room);
}

bool state_apply(struct state *state, struct event *event)
{
    state->view.now_ns = event->at_ns;
    if (event->kind == EVENT_SUBMITTED) {
        submitted(state, event);
        return true;
    }
    if (event->kind == EVENT_NODE_DOWN || event->kind == EVENT_NODE_UP) {
        node_changed(state, event);
        return true;
    }
    if (event->kind == EVENT_WAKE || event->kind == EVENT_REJECTED)
        return true;

    job_id id = event->job;
    struct job *job = &state->jobs[id];
    if (event->kind == EVENT_LOST && job->state == JOB_STOPPING && job->next.count &&
        event->attempt == job->attempt + 1 && event->generation == job->generation) {
        decline(state, id); /* where it was to go is gone; it still has to leave */
        return true;
    }
    if (is_late(state, event) || !is_expected(job, event->kind))
        return false;

    switch (event->kind) {
    case EVENT_STARTED:
        started(state, job, event);
        break;
    case EVENT_LOADED:
        job->state = JOB_RUNNING;
        job->anchor_ns = event->at_ns;
        if (event->rate_per_s > 0)
            job->rate_per_s = event->rate_per_s;
        break;
    case EVENT_PROGRESS:
        anchor(job, event->at_ns, job->rate_per_s);
        job->steps = event->steps;
        if (event->rate_per_s > 0)
            job->rate_per_s = event->rate_per_s;
        if (!isnan(event->loss))
            loss_add(state, job, event->steps, event->loss);
        break;
    case EVENT_LEASE_DONE:
        job->steps = event->steps;
        job->anchor_ns = event->at_ns;
        job->state = JOB_IDLE;
        break;
    case EVENT_RESIZED:
        resized(state, id, event);
        break;
    case EVENT_STOPPED:
        job->steps = event->steps;
        job->anchor_ns = event->at_ns;
        left_seats(state, id, event->at_ns);
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
        ended(state, id, event);
        break;
    case EVENT_LOST:
        lost(state, id, event);
        break;
    case EVENT_PLACED:
        placed(state, id, event);
        break;
    case EVENT_RECALLED:
        recalled(job, event);
        break;
    case EVENT_RESIZING:
        assert(job_runs(job));
        anchor(job, event->at_ns, 0); /* it makes no steps meanwhile */
        reserve(state, event);
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
    case EVENT_CANCELLED:
        cancelled(state, id);
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
