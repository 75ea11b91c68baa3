/* ground.c - the machines of a world as they are, whatever the scheduler believes. */
#include "support/ground.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "model/cluster.h"
#include "model/outbox.h"
#include "model/sharing.h"
#include "model/throughput.h"

#define SECOND INT64_C(1000000000)
#define TELL_AGAIN_NS (7 * SECOND) /* an end that nobody has written down */

const char *const fault_names[FAULT_COUNT] = {
    [FAULT_LATE] = "late",
    [FAULT_LOST] = "lost",
    [FAULT_REPEATED] = "repeated",
    [FAULT_STALE] = "stale",
    [FAULT_START] = "failed_start",
    [FAULT_NODE] = "node_down",
    [FAULT_GRACE] = "ignored_grace",
    [FAULT_ABSURD] = "absurd_report",
    [FAULT_FOREIGN] = "foreign_gpu",
    [FAULT_CANCEL] = "cancel",
    [FAULT_HOLD] = "hold",
    [FAULT_CHANGE] = "change",
    [FAULT_POLICY] = "policy_change",
    [FAULT_CRASH_BEFORE] = "crash_before_commit",
    [FAULT_CRASH_AFTER] = "crash_after_commit",
    [FAULT_CRASH_AMID] = "crash_amid_orders",
    [FAULT_CRASH_IDLE] = "crash_between_steps",
};

static bool happens(struct ground *ground, uint32_t per_mille)
{
    return ground->faulty && rng_below(&ground->rng, 1000) < per_mille;
}

/* --- who is where ------------------------------------------------------------------- */

static struct ground_attempt *find(struct ground *ground, uint64_t id, uint32_t attempt)
{
    for (uint32_t i = 0; i < ground->attempt_count; i++)
        if (ground->attempts[i].id == id && ground->attempts[i].attempt == attempt)
            return &ground->attempts[i];
    return NULL;
}

const struct ground_attempt *ground_find(const struct ground *ground, uint64_t id,
                                         uint32_t attempt)
{
    return find((struct ground *)(uintptr_t)ground, id, attempt);
}

/* The one of this job that is there. */
static struct ground_attempt *present(struct ground *ground, uint64_t id)
{
    for (uint32_t i = 0; id && i < ground->attempt_count; i++)
        if (ground->attempts[i].id == id && ground_is_there(&ground->attempts[i]))
            return &ground->attempts[i];
    return NULL;
}

static void forget(struct ground *ground, struct ground_attempt *attempt)
{
    *attempt = ground->attempts[--ground->attempt_count];
}

static struct ground_truth *truth_of(struct ground *ground,
                                     const struct ground_attempt *attempt)
{
    return &ground->truths[attempt->id];
}

/* --- the wire ----------------------------------------------------------------------- */

static void put_on_wire(struct ground *ground, const struct event *event, int64_t at_ns)
{
    ground->wire = grow(ground->wire, &ground->wire_room, ground->wire_count + 1,
                        sizeof *ground->wire);
    ground->wire[ground->wire_count++] =
        (struct ground_message){ *event, at_ns, ++ground->order };
}

/*
 * What an attempt says arrives in the order in which it is said; what it has said before may
 * come once more at any time.  Only that it goes on elsewhere is not repeated later: nothing
 * in the word says which of its moves is meant.
 */
static void say(struct ground *ground, struct ground_attempt *attempt,
                struct event *event)
{
    event->job = attempt->slot;
    event->generation = attempt->generation;
    event->attempt = attempt->attempt;
    int64_t at_ns = ground->now_ns;
    if (happens(ground, ground->trouble)) {
        ground->faults[FAULT_LATE]++;
        at_ns += 1 + rng_below(&ground->rng, 5000) * (SECOND / 1000);
    } else if (happens(ground, ground->trouble / 2)) {
        ground->faults[FAULT_LOST]++;
        if (event->kind == EVENT_PROGRESS)
            return;
        at_ns += TELL_AGAIN_NS;
    }
    at_ns = at_ns > attempt->wire_ns ? at_ns : attempt->wire_ns;
    attempt->wire_ns = at_ns;
    put_on_wire(ground, event, at_ns);
    if (event->kind != EVENT_RESIZED && happens(ground, ground->trouble)) {
        ground->faults[FAULT_REPEATED]++;
        put_on_wire(ground, event, at_ns + rng_below(&ground->rng, 30) * SECOND);
    }
    if (happens(ground, ground->trouble / 2)) {
        static const enum event_kind kinds[] = { EVENT_STARTED,  EVENT_STOPPED,
                                                 EVENT_FINISHED, EVENT_FAILED,
                                                 EVENT_PROGRESS, EVENT_LEASE_DONE };
        struct event stale = *event;
        ground->faults[FAULT_STALE]++;
        stale.kind = kinds[rng_below(&ground->rng, 6)];
        stale.steps = stale.steps_reached = 1;
        /* Of the past: what is to come has not been spoken of by anybody. */
        if (attempt->attempt > 0 && rng_below(&ground->rng, 2))
            stale.attempt--;
        else if (attempt->generation > 1)
            stale.generation--;
        else
            stale.attempt += 1000;
        put_on_wire(ground, &stale, at_ns + rng_below(&ground->rng, 3) * SECOND);
    }
}

static struct event word(const struct ground *ground, enum event_kind kind)
{
    return (struct event){ .at_ns = ground->now_ns, .kind = kind, .loss = NAN };
}

static void say_node(struct ground *ground, node_id node, enum event_kind kind)
{
    struct event event = word(ground, kind);
    event.job = JOB_NONE;
    event.node = node;
    event.gpus = ground->foreign[node];
    put_on_wire(ground, &event, ground->now_ns);
}

void ground_hear(struct ground *ground, struct outbox *inbox)
{
    for (;;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < ground->wire_count; i++) {
            const struct ground_message *m = &ground->wire[i];
            if (m->at_ns > ground->now_ns)
                continue;
            if (best == UINT32_MAX || m->at_ns < ground->wire[best].at_ns ||
                (m->at_ns == ground->wire[best].at_ns &&
                 m->order < ground->wire[best].order))
                best = i;
        }
        if (best == UINT32_MAX)
            return;
        struct event *event = outbox_add(inbox);
        *event = ground->wire[best].event;
        bool early = event->at_ns < 0; /* a clock that goes back: by how much */
        if (!early)
            event->at_ns = ground->now_ns; /* when it was heard */
        else
            event->at_ns +=
                event->at_ns + ground->now_ns > 0 ? ground->now_ns : -event->at_ns;
        ground->wire[best] = ground->wire[--ground->wire_count];
    }
}

/* --- making steps -------------------------------------------------------------------- */

static bool touches(const struct seat *a, uint32_t a_count, const struct seat *b,
                    uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++)
        for (uint32_t k = 0; k < b_count; k++)
            if (a[i].node == b[k].node && (a[i].gpus & b[k].gpus))
                return true;
    return false;
}

/* Whoever sits on the same GPUs. */
static struct ground_attempt *partner_of(struct ground *ground,
                                         const struct ground_attempt *attempt)
{
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        struct ground_attempt *other = &ground->attempts[i];
        if (other != attempt && ground_is_there(other) &&
            touches(attempt->seats, attempt->seat_count, other->seats,
                    other->seat_count))
            return other;
    }
    return NULL;
}

static double true_rate(struct ground *ground, const struct ground_attempt *attempt)
{
    const struct job *said = &truth_of(ground, attempt)->said;
    const struct ground_attempt *partner = partner_of(ground, attempt);
    uint32_t gpus = 0;
    double rates[2];
    for (uint32_t i = 0; i < attempt->seat_count; i++)
        gpus += seat_gpu_count(&attempt->seats[i]);
    if (partner && sharing_rates(ground->rates, said, &truth_of(ground, partner)->said,
                                 attempt->type, gpus, attempt->spread, rates))
        return rates[0];
    double rate =
        throughput_rate(ground->rates, said, attempt->type, gpus, attempt->spread);
    return rate > 0 ? rate : 1;
}

static void settle(struct ground *ground, struct ground_attempt *attempt)
{
    struct ground_truth *truth = truth_of(ground, attempt);
    if (attempt->phase == GROUND_RUNNING) {
        int64_t ran_ns = ground->now_ns - attempt->anchor_ns;
        double made = (double)ran_ns * 1e-9 * attempt->rate_per_s;
        int64_t every_ns = truth->ckpt_ns;
        if (every_ns > 0 &&
            (attempt->ran_ns + ran_ns) / every_ns > attempt->ran_ns / every_ns) {
            int64_t since_ns = (attempt->ran_ns + ran_ns) % every_ns;
            double saved =
                attempt->steps + made - (double)since_ns * 1e-9 * attempt->rate_per_s;
            truth->kept = saved > truth->kept ? saved : truth->kept;
        }
        attempt->ran_ns += ran_ns;
        attempt->steps += made;
    }
    attempt->anchor_ns = ground->now_ns;
}

/* From now on it makes steps, until its lease or its work is done. */
static void make_steps(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = truth_of(ground, attempt);
    attempt->phase = GROUND_RUNNING;
    attempt->anchor_ns = ground->now_ns;
    attempt->rate_per_s = true_rate(ground, attempt);
    double end = truth->steps;
    if (attempt->lease_end > 0 && attempt->lease_end < end)
        end = attempt->lease_end;
    double left = end > attempt->steps ? end - attempt->steps : 0;
    attempt->done_ns =
        ground->now_ns + (int64_t)fmin(ceil(left / attempt->rate_per_s * 1e9), 4e18);
    attempt->report_ns =
        truth->report_ns > 0 ? ground->now_ns + truth->report_ns : INT64_MAX;
    attempt->due_ns =
        attempt->done_ns < attempt->report_ns ? attempt->done_ns : attempt->report_ns;
}

static void rerate(struct ground *ground, struct ground_attempt *attempt)
{
    if (!attempt || attempt->phase != GROUND_RUNNING)
        return;
    settle(ground, attempt);
    make_steps(ground, attempt);
}

/* What nobody can believe, of a job that is broken. */
static void distort(struct ground *ground, struct event *event)
{
    ground->faults[FAULT_ABSURD]++;
    switch (rng_below(&ground->rng, 7)) {
    case 0:
        event->steps = event->steps_reached = 1e300;
        break;
    case 1:
        event->rate_per_s = 1e300;
        break;
    case 2:
        event->rate_per_s = 1e-300;
        break;
    case 3:
        event->steps = event->steps_reached = 0; /* it goes back */
        break;
    case 4:
        event->steps_total = 1e300;
        break;
    case 5:
        event->loss = rng_below(&ground->rng, 2) ? 1e300 : -1e300;
        break;
    default:
        event->at_ns = -1 - rng_below(&ground->rng, 20) * SECOND; /* so does its time */
    }
}

static void report(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = truth_of(ground, attempt);
    settle(ground, attempt);
    struct event event = word(ground, EVENT_PROGRESS);
    event.steps = event.steps_reached = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    event.measured = true;
    if (truth->steps > 0)
        event.loss = exp(-attempt->steps / truth->steps);
    if (truth->absurd && happens(ground, 500))
        distort(ground, &event);
    say(ground, attempt, &event);
    if (rng_below(&ground->rng, 3) == 0) {
        struct event sent = word(ground, EVENT_SENT);
        sent.sends_per_s = rng_unit(&ground->rng) * 1e9;
        sent.sent_bytes = (double)(attempt->ran_ns / SECOND) * 1e8;
        say(ground, attempt, &sent);
    }
    make_steps(ground, attempt);
}

/* --- going --------------------------------------------------------------------------- */

static void begin(struct ground *ground, struct ground_attempt *attempt);
static void lease_done(struct ground *ground, struct ground_attempt *attempt);

/*
 * An attempt is out of seats that others waited for.  What they say is heard after that it
 * has left: whoever lets them in has seen it go.
 */
static void let_others_come(struct ground *ground, uint64_t id, uint32_t number,
                            int64_t wire_ns)
{
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        struct ground_attempt *attempt = &ground->attempts[i];
        bool waits = attempt->phase == GROUND_WAITS_FOR ||
                     (attempt->phase == GROUND_RESIZING && attempt->after_count > 0);
        uint32_t kept = 0;
        for (uint32_t k = 0; waits && k < attempt->after_count; k++)
            if (attempt->after[k].id != id || attempt->after[k].attempt != number)
                attempt->after[kept++] = attempt->after[k];
        if (!waits || kept == attempt->after_count)
            continue;
        attempt->after_count = kept;
        if (attempt->wire_ns < wire_ns)
            attempt->wire_ns = wire_ns;
        if (kept == 0)
            begin(ground, attempt);
    }
}

static void tell_end(struct ground *ground, struct ground_attempt *attempt)
{
    struct event event = word(ground, attempt->end);
    event.steps = attempt->end_kept;
    event.steps_reached = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    event.clean = event.measured = attempt->clean;
    if (attempt->end == EVENT_FINISHED || attempt->end == EVENT_FAILED)
        event.steps = attempt->steps;
    if (truth_of(ground, attempt)->absurd && happens(ground, 300)) {
        ground->faults[FAULT_ABSURD]++;
        event.steps = attempt->end == EVENT_LOST ? -1e300 : 1e300;
        event.steps_reached = 1e301;
    }
    say(ground, attempt, &event);
    int64_t heard_ns =
        attempt->wire_ns > ground->now_ns ? attempt->wire_ns : ground->now_ns;
    attempt->due_ns = heard_ns + TELL_AGAIN_NS;
}

/* One that is done does not go on elsewhere, whatever it was told. */
static void forget_next(struct ground *ground, const struct ground_attempt *attempt)
{
    struct ground_attempt *next = find(ground, attempt->id, attempt->attempt + 1);
    if (next && next->phase == GROUND_WAITS_FOR) {
        next->phase = GROUND_OVER;
        next->named = false;
        next->due_ns = INT64_MAX; /* nobody will hear of it */
    }
}

static bool is_done(const struct ground_attempt *attempt)
{
    return attempt && attempt->phase == GROUND_OVER &&
           (attempt->end == EVENT_FINISHED || attempt->end == EVENT_FAILED);
}

/* It is out of its seats. */
static void leave(struct ground *ground, struct ground_attempt *attempt,
                  enum event_kind kind, bool clean)
{
    struct ground_truth *truth = truth_of(ground, attempt);
    bool was_there = ground_is_there(attempt);
    if (kind == EVENT_STOPPED && attempt->phase == GROUND_STARTING)
        kind = EVENT_LOST; /* nobody has heard yet that it was there */
    settle(ground, attempt);
    if (clean && attempt->steps > truth->kept)
        truth->kept = attempt->steps;
    attempt->end = kind;
    attempt->end_kept = truth->kept < attempt->steps ? truth->kept : attempt->steps;
    attempt->clean = clean;
    struct ground_attempt *partner = was_there ? partner_of(ground, attempt) : NULL;
    attempt->phase = GROUND_OVER;
    attempt->left = ++ground->order;
    tell_end(ground, attempt);
    if (is_done(attempt))
        forget_next(ground, attempt);
    if (partner && partner->phase == GROUND_DONE)
        lease_done(ground, partner);
    else
        rerate(ground, partner);
    if (was_there)
        let_others_come(ground, attempt->id, attempt->attempt, attempt->wire_ns);
}

/* --- coming -------------------------------------------------------------------------- */

static bool nodes_are_up(const struct ground *ground, const struct seat *seats,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (ground->node_down[seats[i].node])
            return false;
    return true;
}

/* It sits down: nobody may be there but one with whom it shares. */
static void sit(struct ground *ground, const struct ground_attempt *attempt)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        const struct ground_attempt *other = &ground->attempts[i];
        if (other == attempt || !ground_is_there(other))
            continue;
        if (other->id == attempt->id)
            ground->broken("job %llu runs twice: attempts %u and %u",
                           (unsigned long long)attempt->id, other->attempt,
                           attempt->attempt);
        if (!touches(attempt->seats, attempt->seat_count, other->seats,
                     other->seat_count))
            continue;
        others++;
        if (other->beside != attempt->id && attempt->beside != other->id)
            ground->broken("a GPU is held twice: jobs %llu and %llu",
                           (unsigned long long)attempt->id,
                           (unsigned long long)other->id);
    }
    if (others > 1)
        ground->broken("a GPU is shared by three: job %llu is the third",
                       (unsigned long long)attempt->id);
}

static void tell_started(struct ground *ground, struct ground_attempt *attempt)
{
    struct event event = word(ground, EVENT_STARTED);
    event.loaded = truth_of(ground, attempt)->load_ns == 0;
    if (rng_below(&ground->rng, 2)) /* some executors can say it, others cannot */
        event.rate_per_s = true_rate(ground, attempt);
    say(ground, attempt, &event);
}

static void come_up(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = truth_of(ground, attempt);
    if (attempt->doomed) {
        ground->faults[FAULT_START]++;
        leave(ground, attempt, EVENT_LOST, false);
        return;
    }
    tell_started(ground, attempt);
    rerate(ground, partner_of(ground, attempt));
    if (truth->load_ns == 0) {
        make_steps(ground, attempt);
        return;
    }
    attempt->phase = GROUND_LOADING;
    attempt->due_ns = ground->now_ns + truth->load_ns;
}

static void go_elsewhere(struct ground *ground, struct ground_attempt *attempt)
{
    struct ground_truth *truth = truth_of(ground, attempt);
    struct ground_attempt *partner = partner_of(ground, attempt);
    memcpy(attempt->seats, attempt->next, sizeof attempt->seats);
    attempt->seat_count = attempt->next_count;
    attempt->next_count = 0;
    attempt->beside = 0;
    attempt->resized = true;
    attempt->left = ++ground->order;
    truth->kept = attempt->steps > truth->kept ? attempt->steps : truth->kept;
    attempt->ran_ns = 0;
    attempt->lease_end =
        attempt->resized_max ? attempt->steps + (double)attempt->resized_max : 0;
    sit(ground, attempt);
    if (partner && partner->phase == GROUND_DONE)
        lease_done(ground, partner);
    else
        rerate(ground, partner);
    make_steps(ground, attempt);
    struct event event = word(ground, EVENT_RESIZED);
    event.steps = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    say(ground, attempt, &event);
    let_others_come(ground, attempt->id, attempt->attempt, attempt->wire_ns);
}

/* Everybody who had to leave has left. */
static void begin(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = truth_of(ground, attempt);
    if (attempt->phase == GROUND_RESIZING) {
        attempt->due_ns = ground->now_ns + truth->pause_ns + truth->load_ns;
        return;
    }
    attempt->steps = truth->kept;
    attempt->lease_end =
        attempt->resized_max ? attempt->steps + (double)attempt->resized_max : 0;
    attempt->phase = GROUND_STARTING;
    attempt->anchor_ns = ground->now_ns;
    attempt->doomed = happens(ground, ground->trouble) ||
                      !nodes_are_up(ground, attempt->seats, attempt->seat_count);
    sit(ground, attempt);
    bool slow = rng_below(&ground->rng, 4) == 0;
    attempt->due_ns =
        ground->now_ns +
        (slow || attempt->doomed ? (1 + rng_below(&ground->rng, 30)) * SECOND / 10 : 0);
    if (attempt->due_ns == ground->now_ns)
        come_up(ground, attempt);
}

/* --- orders ---------------------------------------------------------------------------- */

/* Attempts that have left already, or never came, are not waited for. */
static void note_after(struct ground *ground, struct ground_attempt *attempt,
                       const struct lease *lease)
{
    attempt->after_count = 0;
    for (uint32_t i = 0; i < lease->after_count && !ground->starts_early; i++) {
        const struct job *job = &ground->view->jobs[lease->after[i]];
        struct ground_attempt *other = find(ground, job->id, job->attempt);
        if (other && other->phase == GROUND_OVER && attempt->wire_ns < other->wire_ns)
            attempt->wire_ns =
                other->wire_ns; /* it has left, and that is heard first */
        if (!other || other == attempt || !ground_is_there(other))
            continue;
        if (attempt->after_count == GROUND_WAITS)
            ground->broken("job %llu waits for too many",
                           (unsigned long long)attempt->id);
        attempt->after[attempt->after_count++] =
            (struct ground_wait){ job->id, job->attempt };
    }
}

static struct ground_attempt *add(struct ground *ground, const struct lease *lease)
{
    const struct job *job = &ground->view->jobs[lease->job];
    if (ground->attempt_count == GROUND_ATTEMPTS)
        ground->broken("too many attempts are under way");
    struct ground_attempt *attempt = &ground->attempts[ground->attempt_count++];
    *attempt = (struct ground_attempt){ .id = job->id,
                                        .attempt = lease->attempt,
                                        .slot = lease->job,
                                        .generation = lease->generation,
                                        .phase = GROUND_WAITS_FOR,
                                        .seat_count = lease->seat_count,
                                        .type = lease->type,
                                        .spread = lease->spread,
                                        .together = lease->together,
                                        .resized_max = lease->steps_max,
                                        .due_ns = INT64_MAX,
                                        .named = true };
    memcpy(attempt->seats, lease->seats, lease->seat_count * sizeof *lease->seats);
    attempt->seat_count -= ground->starts_half && lease->seat_count > 1;
    if (lease->beside != JOB_NONE)
        attempt->beside = ground->view->jobs[lease->beside].id;
    return attempt;
}

static int ground_start(void *self, const struct lease *lease, struct error *err)
{
    struct ground *ground = self;
    struct ground_attempt *attempt =
        find(ground, ground->view->jobs[lease->job].id, lease->attempt);
    if (attempt) { /* told twice */
        attempt->named = true;
        attempt->slot = lease->job;
        attempt->generation = lease->generation;
        return 0;
    }
    if (is_done(find(ground, ground->view->jobs[lease->job].id, lease->attempt - 1)))
        return 0; /* it need not go on, and that is on its way */
    attempt = add(ground, lease);
    note_after(ground, attempt, lease);
    if (attempt->after_count == 0)
        begin(ground, attempt);
    return 0;
}

static void tell_to_stop(struct ground *ground, struct ground_attempt *attempt,
                         int64_t grace_ns)
{
    const struct ground_truth *truth = truth_of(ground, attempt);
    bool loading =
        attempt->phase == GROUND_LOADING || attempt->phase == GROUND_STARTING;
    int64_t pause_ns = loading ? 0 : truth->pause_ns; /* there is nothing to save */
    if (attempt->phase == GROUND_LEAVING)
        return;
    settle(ground, attempt);
    attempt->phase = GROUND_LEAVING;
    attempt->clean = pause_ns <= grace_ns;
    ground->faults[FAULT_GRACE] += !attempt->clean;
    attempt->due_ns = ground->now_ns + (attempt->clean ? pause_ns : grace_ns);
}

static int ground_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct ground *ground = self;
    const struct job *known = &ground->view->jobs[job];
    struct ground_attempt *attempt = find(ground, known->id, known->attempt);
    if (attempt && ground_is_there(attempt))
        tell_to_stop(ground, attempt, grace_ns);
    return 0; /* or it has left, and that is on its way */
}

/* What has not begun is gone at once; what is there is killed. */
static int ground_cancel(void *self, job_id job, struct error *err)
{
    struct ground *ground = self;
    uint64_t id = ground->view->jobs[job].id;
    struct ground_attempt *there = present(ground, id);
    for (uint32_t i = ground->attempt_count; i-- > 0;) {
        struct ground_attempt *attempt = &ground->attempts[i];
        if (attempt->id != id || attempt->phase != GROUND_WAITS_FOR)
            continue;
        if (there)
            forget(ground, attempt); /* the one that is there tells */
        else
            leave(ground, attempt, EVENT_LOST, false);
        there = present(ground, id);
    }
    if (there)
        leave(ground, there, EVENT_STOPPED, false);
    return 0;
}

static int ground_renew(void *self, job_id job, uint64_t steps_max, bool together,
                        struct error *err)
{
    struct ground *ground = self;
    const struct job *known = &ground->view->jobs[job];
    struct ground_attempt *attempt = find(ground, known->id, known->attempt);
    if (!attempt || !ground_is_there(attempt))
        return 0;
    settle(ground, attempt);
    attempt->together = together;
    attempt->lease_end = steps_max ? attempt->steps + (double)steps_max : 0;
    attempt->resized_max = steps_max;
    if (attempt->phase == GROUND_RUNNING || attempt->phase == GROUND_IDLE ||
        attempt->phase == GROUND_DONE)
        make_steps(ground, attempt);
    return 0;
}

static int ground_resize(void *self, const struct lease *lease, struct error *err)
{
    struct ground *ground = self;
    struct ground_attempt *attempt =
        find(ground, ground->view->jobs[lease->job].id, lease->attempt);
    if (!attempt || !ground_is_there(attempt) || attempt->phase == GROUND_RESIZING)
        return 0;
    settle(ground, attempt);
    attempt->phase = GROUND_RESIZING;
    attempt->due_ns = INT64_MAX;
    memcpy(attempt->next, lease->seats, lease->seat_count * sizeof *lease->seats);
    attempt->next_count = lease->seat_count;
    attempt->type = lease->type;
    attempt->spread = lease->spread;
    attempt->together = lease->together;
    attempt->resized_max = lease->steps_max;
    attempt->resized = false;
    note_after(ground, attempt, lease);
    if (attempt->after_count == 0)
        begin(ground, attempt);
    return 0;
}

const struct executor executor_ground = {
    .name = "ground",
    .start = ground_start,
    .stop = ground_stop,
    .cancel = ground_cancel,
    .resize = ground_resize,
    .renew = ground_renew,
};

const struct executor executor_ground_restart = {
    .name = "ground",
    .start = ground_start,
    .stop = ground_stop,
    .cancel = ground_cancel,
    .renew = ground_renew,
};

/* --- things happen ------------------------------------------------------------------------ */

static void lease_done(struct ground *ground, struct ground_attempt *attempt)
{
    struct ground_truth *truth = truth_of(ground, attempt);
    if (attempt->steps >= truth->steps) {
        leave(ground, attempt, truth->fails ? EVENT_FAILED : EVENT_FINISHED, true);
        return;
    }
    truth->kept = attempt->steps > truth->kept ? attempt->steps : truth->kept;
    attempt->phase = GROUND_IDLE;
    attempt->due_ns = INT64_MAX;
    struct event event = word(ground, EVENT_LEASE_DONE);
    event.steps = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    say(ground, attempt, &event);
}

static void run_on(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = truth_of(ground, attempt);
    if (ground->now_ns < attempt->done_ns) {
        report(ground, attempt);
        return;
    }
    settle(ground, attempt);
    bool leased = attempt->lease_end > 0 && attempt->lease_end < truth->steps;
    attempt->steps = leased ? attempt->lease_end : truth->steps;
    attempt->phase = GROUND_DONE;
    attempt->due_ns = INT64_MAX;
    struct ground_attempt *partner = partner_of(ground, attempt);
    bool waits = partner && attempt->together && partner->together &&
                 (partner->phase == GROUND_LOADING || partner->phase == GROUND_RUNNING);
    if (waits)
        return;
    uint64_t id = partner ? partner->id : 0;
    lease_done(ground, attempt);
    partner = present(ground, id);
    if (partner && partner->phase == GROUND_DONE)
        lease_done(ground, partner);
}

static void attempt_due(struct ground *ground, struct ground_attempt *attempt)
{
    struct event event;
    switch (attempt->phase) {
    case GROUND_STARTING:
        come_up(ground, attempt);
        break;
    case GROUND_LOADING:
        make_steps(ground, attempt);
        event = word(ground, EVENT_LOADED);
        event.measured = true;
        event.rate_per_s = attempt->rate_per_s;
        say(ground, attempt, &event);
        break;
    case GROUND_RUNNING:
        run_on(ground, attempt);
        break;
    case GROUND_RESIZING:
        go_elsewhere(ground, attempt);
        break;
    case GROUND_LEAVING:
        leave(ground, attempt, EVENT_STOPPED, attempt->clean);
        break;
    case GROUND_OVER:
        tell_end(ground, attempt);
        break;
    case GROUND_WAITS_FOR:
    case GROUND_DONE:
    case GROUND_IDLE:
        ground->broken("nothing is due for job %llu", (unsigned long long)attempt->id);
    }
}

static bool is_on(const struct ground_attempt *attempt, node_id node)
{
    for (uint32_t i = 0; i < attempt->seat_count; i++)
        if (attempt->seats[i].node == node)
            return true;
    return false;
}

/* Whoever is there dies with it; that may be heard before the node is known to be down. */
static void node_dies(struct ground *ground, node_id node)
{
    bool first = rng_below(&ground->rng, 2);
    ground->node_down[node] = true;
    ground->faults[FAULT_NODE]++;
    if (first)
        say_node(ground, node, EVENT_NODE_DOWN);
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        struct ground_attempt *attempt = &ground->attempts[i];
        if (ground_is_there(attempt) && is_on(attempt, node))
            leave(ground, attempt, EVENT_LOST, false);
    }
    if (!first)
        say_node(ground, node, EVENT_NODE_DOWN);
}

static void node_due(struct ground *ground, node_id node)
{
    bool dies = !ground->node_down[node];
    double mean_ns = (double)(dies ? ground->mttr_ns : ground->mtbf_ns);
    ground->node_due_ns[node] =
        ground->now_ns + 1 + (int64_t)rng_exponential(&ground->rng, mean_ns);
    if (dies) {
        node_dies(ground, node);
        return;
    }
    ground->node_down[node] = false;
    say_node(ground, node, EVENT_NODE_UP);
}

int64_t ground_next_ns(const struct ground *ground)
{
    int64_t at_ns = INT64_MAX;
    for (uint32_t i = 0; i < ground->attempt_count; i++)
        if (ground->attempts[i].due_ns < at_ns)
            at_ns = ground->attempts[i].due_ns;
    for (uint32_t i = 0; i < ground->wire_count; i++)
        if (ground->wire[i].at_ns < at_ns)
            at_ns = ground->wire[i].at_ns;
    for (node_id n = 0; n < ground->cluster->node_count; n++)
        if (ground->node_due_ns[n] < at_ns)
            at_ns = ground->node_due_ns[n];
    return at_ns;
}

void ground_advance(struct ground *ground, int64_t now_ns)
{
    ground->now_ns = now_ns;
    for (node_id n = 0; n < ground->cluster->node_count; n++)
        if (ground->node_due_ns[n] <= now_ns)
            node_due(ground, n);
    for (uint32_t i = 0; i < ground->attempt_count; i++)
        if (ground->attempts[i].due_ns <= now_ns)
            attempt_due(ground, &ground->attempts[i]);
}

/* --- beginning, end, and what comes from outside -------------------------------------------- */

void ground_init(struct ground *ground, const struct cluster *cluster,
                 const struct throughput *rates, uint64_t seed)
{
    rng_init(&ground->rng, seed, "ground");
    ground->cluster = cluster;
    ground->rates = rates;
    for (node_id n = 0; n < cluster->node_count; n++)
        ground->node_due_ns[n] =
            ground->mtbf_ns
                ? (int64_t)rng_exponential(&ground->rng, (double)ground->mtbf_ns)
                : INT64_MAX;
}

void ground_release(struct ground *ground)
{
    free(ground->wire);
}

void ground_calm(struct ground *ground)
{
    ground->faulty = false;
    for (node_id n = 0; n < ground->cluster->node_count; n++) {
        ground->node_due_ns[n] = INT64_MAX;
        if (ground->node_down[n]) {
            ground->node_down[n] = false;
            say_node(ground, n, EVENT_NODE_UP);
        }
        if (ground->foreign[n])
            ground_set_foreign(ground, n, 0);
    }
}

void ground_set_foreign(struct ground *ground, node_id node, uint64_t gpus)
{
    ground->faults[FAULT_FOREIGN] += gpus != 0;
    ground->foreign[node] = gpus;
    say_node(ground, node, EVENT_FOREIGN);
}

void ground_recorded(struct ground *ground, uint64_t id, uint32_t number)
{
    struct ground_attempt *attempt = find(ground, id, number);
    if (!attempt || attempt->phase != GROUND_OVER)
        return;
    bool done = is_done(attempt);
    forget(ground, attempt);
    attempt = done ? find(ground, id, number + 1) : NULL;
    if (attempt)
        forget(ground, attempt); /* where it would have gone */
}

/* --- another scheduler ------------------------------------------------------------------------ */

void ground_cut(struct ground *ground)
{
    ground->wire_count = 0;
    for (uint32_t i = ground->attempt_count; i-- > 0;) {
        struct ground_attempt *attempt = &ground->attempts[i];
        attempt->named = false;
        attempt->wire_ns = 0;
        if (attempt->phase == GROUND_WAITS_FOR)
            forget(ground, attempt);
    }
}

void ground_meet(struct ground *ground, const struct view *view)
{
    ground->view = view;
}

/* That it is to go elsewhere is in the scheduler's books; what it waits for may have gone. */
static void wait_again(struct ground *ground, struct ground_attempt *attempt)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < attempt->after_count; k++) {
        const struct ground_attempt *other =
            find(ground, attempt->after[k].id, attempt->after[k].attempt);
        if (other && ground_is_there(other))
            attempt->after[kept++] = attempt->after[k];
    }
    attempt->after_count = kept;
}

void ground_reattach(struct ground *ground, const struct lease *lease, bool stopping,
                     int64_t grace_left_ns)
{
    const struct job *job = &ground->view->jobs[lease->job];
    struct ground_attempt *attempt = find(ground, job->id, lease->attempt);
    if (!attempt) {
        if (job->state != JOB_PLACED)
            ground->broken("job %llu is believed to run, and nobody has seen it",
                           (unsigned long long)job->id);
        attempt = add(ground, lease);
        note_after(ground, attempt, lease);
        return; /* it begins when all have been named */
    }
    attempt->named = true;
    attempt->slot = lease->job;
    attempt->generation = lease->generation;
    if (attempt->phase == GROUND_LEAVING && !stopping && !job->leaving)
        ground->broken("job %llu leaves, and nobody has told it to",
                       (unsigned long long)job->id);
    if (stopping && ground_is_there(attempt))
        tell_to_stop(ground, attempt, grace_left_ns);
    bool idles = attempt->phase == GROUND_IDLE || attempt->phase == GROUND_DONE;
    if (idles && job->state == JOB_RUNNING) { /* its new lease was never told */
        attempt->lease_end =
            lease->steps_max ? attempt->steps + (double)lease->steps_max : 0;
        attempt->resized_max = lease->steps_max;
        make_steps(ground, attempt);
    }
    if (attempt->phase == GROUND_RESIZING)
        wait_again(ground, attempt);
}

/* All that has become of it, from the beginning: what is known is not heard again. */
static void tell_again(struct ground *ground, struct ground_attempt *attempt)
{
    bool over = attempt->phase == GROUND_OVER;
    if (attempt->phase <= GROUND_STARTING)
        return;
    if (!over || attempt->end != EVENT_LOST)
        tell_started(ground, attempt);
    if (!over && attempt->phase != GROUND_LOADING && attempt->phase != GROUND_LEAVING) {
        struct event event = word(ground, EVENT_LOADED);
        event.measured = true;
        event.rate_per_s = attempt->rate_per_s;
        say(ground, attempt, &event);
    }
    if (attempt->resized && attempt->phase != GROUND_RESIZING) {
        struct event event = word(ground, EVENT_RESIZED);
        event.steps = attempt->steps;
        event.rate_per_s = attempt->rate_per_s;
        const struct job *job = &ground->view->jobs[attempt->slot];
        if (job->next.count > 0 && job_runs(job))
            say(ground, attempt, &event);
    }
    if (over)
        tell_end(ground, attempt);
}

/* Who left seats next after that one, which others may have taken since. */
static struct ground_attempt *next_left(struct ground *ground, uint64_t left)
{
    struct ground_attempt *next = NULL;
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        struct ground_attempt *attempt = &ground->attempts[i];
        if (attempt->left > left && (!next || attempt->left < next->left))
            next = attempt;
    }
    return next;
}

void ground_settle(struct ground *ground, const bool *believed_down,
                   const uint64_t *believed_foreign)
{
    for (uint32_t i = ground->attempt_count; i-- > 0;) {
        struct ground_attempt *attempt = &ground->attempts[i];
        if (!attempt->named && attempt->phase != GROUND_OVER)
            ground->broken("attempt %u of job %llu runs, and nobody has ordered it",
                           attempt->attempt, (unsigned long long)attempt->id);
        if (!attempt->named)
            forget(ground, attempt); /* its end is durable */
    }
    int64_t wire_ns =
        0; /* who has left is heard of first, in the order in which they did */
    for (struct ground_attempt *next = next_left(ground, 0); next;
         next = next_left(ground, next->left)) {
        next->wire_ns = wire_ns;
        tell_again(ground, next);
        wire_ns = next->wire_ns;
    }
    for (uint32_t i = 0; i < ground->attempt_count; i++)
        if (ground->attempts[i].left == 0) {
            ground->attempts[i].wire_ns = wire_ns;
            tell_again(ground, &ground->attempts[i]);
        }
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        struct ground_attempt *attempt = &ground->attempts[i];
        bool resizes =
            attempt->phase == GROUND_RESIZING && attempt->due_ns == INT64_MAX;
        if ((attempt->phase == GROUND_WAITS_FOR || resizes) &&
            attempt->after_count == 0)
            begin(ground, attempt);
    }
    for (node_id n = 0; n < ground->cluster->node_count; n++) {
        if (believed_down[n] != ground->node_down[n])
            say_node(ground, n, ground->node_down[n] ? EVENT_NODE_DOWN : EVENT_NODE_UP);
        if (believed_foreign[n] != ground->foreign[n])
            say_node(ground, n, EVENT_FOREIGN);
    }
}
