/* faulty_orders.c - orders of the scheduler, and its reattachment after a restart. */
#include "support/faulty_internal.h"

#include <string.h>

#include "model/cluster.h"

/* --- orders ---------------------------------------------------------------------------- */

/* Set which attempts to wait for: those of the lease that are still on their GPUs. */
static void set_waits(struct faulty *faulty, struct faulty_attempt *attempt,
                      const struct lease *lease)
{
    attempt->after_count = 0;
    for (uint32_t i = 0; i < lease->after_count && !faulty->starts_early; i++) {
        const struct job *job = &faulty->view->jobs[lease->after[i]];
        struct faulty_attempt *other =
            faulty_find_attempt(faulty, job->id, job->attempt);
        if (other && other->phase == FAULTY_OVER && attempt->wire_ns < other->wire_ns)
            attempt->wire_ns =
                other->wire_ns; /* the message of its end arrives first */
        if (!other || other == attempt || !faulty_is_present(other))
            continue;
        if (attempt->after_count == FAULTY_WAITS)
            faulty->broken("job %llu waits for too many",
                           (unsigned long long)attempt->id);
        attempt->after[attempt->after_count++] =
            (struct faulty_wait){ job->id, job->attempt };
    }
}

static struct faulty_attempt *add_attempt(struct faulty *faulty,
                                          const struct lease *lease)
{
    const struct job *job = &faulty->view->jobs[lease->job];
    if (faulty->attempt_count == FAULTY_ATTEMPTS)
        faulty->broken("too many attempts are under way");
    struct faulty_attempt *attempt = &faulty->attempts[faulty->attempt_count++];
    *attempt = (struct faulty_attempt){ .id = job->id,
                                        .attempt = lease->attempt,
                                        .slot = lease->job,
                                        .generation = lease->generation,
                                        .phase = FAULTY_WAITS_FOR,
                                        .seat_count = lease->seat_count,
                                        .type = lease->type,
                                        .spread = lease->spread,
                                        .together = lease->together,
                                        .resized_max = lease->steps_max,
                                        .due_ns = INT64_MAX,
                                        .named = true };
    memcpy(attempt->seats, lease->seats, lease->seat_count * sizeof *lease->seats);
    attempt->seat_count -= faulty->starts_half && lease->seat_count > 1;
    if (lease->beside != JOB_NONE)
        attempt->beside = faulty->view->jobs[lease->beside].id;
    return attempt;
}

static int faulty_start(void *self, const struct lease *lease, struct error *err)
{
    struct faulty *faulty = self;
    struct faulty_attempt *attempt =
        faulty_find_attempt(faulty, faulty->view->jobs[lease->job].id, lease->attempt);
    if (attempt) { /* told twice */
        attempt->named = true;
        attempt->slot = lease->job;
        attempt->generation = lease->generation;
        return 0;
    }
    if (faulty_is_done(faulty_find_attempt(faulty, faulty->view->jobs[lease->job].id,
                                           lease->attempt - 1)))
        return 0; /* it need not go on, and that is on its way */
    attempt = add_attempt(faulty, lease);
    set_waits(faulty, attempt, lease);
    if (attempt->after_count == 0)
        faulty_start_attempt(faulty, attempt);
    return 0;
}

static void stop_attempt(struct faulty *faulty, struct faulty_attempt *attempt,
                         int64_t grace_ns)
{
    const struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    bool loading =
        attempt->phase == FAULTY_LOADING || attempt->phase == FAULTY_STARTING;
    int64_t pause_ns = loading ? 0 : truth->pause_ns; /* nothing to checkpoint */
    if (attempt->phase == FAULTY_LEAVING)
        return;
    faulty_count_steps(faulty, attempt);
    attempt->phase = FAULTY_LEAVING;
    attempt->clean = pause_ns <= grace_ns;
    faulty->faults[FAULT_GRACE] += !attempt->clean;
    attempt->due_ns = faulty->now_ns + (attempt->clean ? pause_ns : grace_ns);
}

static int faulty_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct faulty *faulty = self;
    const struct job *known = &faulty->view->jobs[job];
    struct faulty_attempt *attempt =
        faulty_find_attempt(faulty, known->id, known->attempt);
    if (attempt && faulty_is_present(attempt))
        stop_attempt(faulty, attempt, grace_ns);
    return 0; /* or it has ended, and the message is on the wire */
}

/* An attempt that has not started is dropped at once, a running one is killed. */
static int faulty_cancel(void *self, job_id job, struct error *err)
{
    struct faulty *faulty = self;
    uint64_t id = faulty->view->jobs[job].id;
    struct faulty_attempt *there = faulty_find_present(faulty, id);
    for (uint32_t i = faulty->attempt_count; i-- > 0;) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        if (attempt->id != id || attempt->phase != FAULTY_WAITS_FOR)
            continue;
        if (there)
            faulty_remove(faulty, attempt); /* the running attempt sends the end */
        else
            faulty_end_attempt(faulty, attempt, EVENT_LOST, false);
        there = faulty_find_present(faulty, id);
    }
    if (there)
        faulty_end_attempt(faulty, there, EVENT_STOPPED, false);
    return 0;
}

static int faulty_renew(void *self, job_id job, uint64_t steps_max, bool together,
                        struct error *err)
{
    struct faulty *faulty = self;
    const struct job *known = &faulty->view->jobs[job];
    struct faulty_attempt *attempt =
        faulty_find_attempt(faulty, known->id, known->attempt);
    if (!attempt || !faulty_is_present(attempt))
        return 0;
    faulty_count_steps(faulty, attempt);
    attempt->together = together;
    attempt->lease_end = steps_max ? attempt->steps + (double)steps_max : 0;
    attempt->resized_max = steps_max;
    if (attempt->phase == FAULTY_RUNNING || attempt->phase == FAULTY_IDLE ||
        attempt->phase == FAULTY_DONE)
        faulty_run_steps(faulty, attempt);
    return 0;
}

static int faulty_resize(void *self, const struct lease *lease, struct error *err)
{
    struct faulty *faulty = self;
    struct faulty_attempt *attempt =
        faulty_find_attempt(faulty, faulty->view->jobs[lease->job].id, lease->attempt);
    if (!attempt || !faulty_is_present(attempt) || attempt->phase == FAULTY_RESIZING)
        return 0;
    faulty_count_steps(faulty, attempt);
    attempt->phase = FAULTY_RESIZING;
    attempt->due_ns = INT64_MAX;
    memcpy(attempt->next, lease->seats, lease->seat_count * sizeof *lease->seats);
    attempt->next_count = lease->seat_count;
    attempt->type = lease->type;
    attempt->spread = lease->spread;
    attempt->together = lease->together;
    attempt->resized_max = lease->steps_max;
    attempt->resized = false;
    set_waits(faulty, attempt, lease);
    if (attempt->after_count == 0)
        faulty_start_attempt(faulty, attempt);
    return 0;
}

const struct executor executor_faulty = {
    .name = "faulty",
    .start = faulty_start,
    .stop = faulty_stop,
    .cancel = faulty_cancel,
    .resize = faulty_resize,
    .renew = faulty_renew,
};

/* --- reattachment after a restart ----------------------------------------------------- */

void faulty_disconnect(struct faulty *faulty)
{
    faulty->wire_count = 0;
    for (uint32_t i = faulty->attempt_count; i-- > 0;) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        attempt->named = false;
        attempt->wire_ns = 0;
        if (attempt->phase == FAULTY_WAITS_FOR)
            faulty_remove(faulty, attempt);
    }
}

void faulty_connect(struct faulty *faulty, const struct view *view)
{
    faulty->view = view;
}

/* Drop waits for attempts that have ended while the scheduler was down. */
static void update_waits(struct faulty *faulty, struct faulty_attempt *attempt)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < attempt->after_count; k++) {
        const struct faulty_attempt *other = faulty_find_attempt(
            faulty, attempt->after[k].id, attempt->after[k].attempt);
        if (other && faulty_is_present(other))
            attempt->after[kept++] = attempt->after[k];
    }
    attempt->after_count = kept;
}

void faulty_reattach(struct faulty *faulty, const struct lease *lease, bool stopping,
                     int64_t grace_left_ns)
{
    const struct job *job = &faulty->view->jobs[lease->job];
    struct faulty_attempt *attempt =
        faulty_find_attempt(faulty, job->id, lease->attempt);
    if (!attempt) {
        if (job->state != JOB_PLACED)
            faulty->broken("job %llu is believed to run, and nobody has seen it",
                           (unsigned long long)job->id);
        attempt = add_attempt(faulty, lease);
        set_waits(faulty, attempt, lease);
        return; /* it starts in faulty_end_reattach() */
    }
    attempt->named = true;
    attempt->slot = lease->job;
    attempt->generation = lease->generation;
    if (attempt->phase == FAULTY_LEAVING && !stopping && !job->leaving)
        faulty->broken("job %llu leaves, and nobody has told it to",
                       (unsigned long long)job->id);
    if (stopping && faulty_is_present(attempt))
        stop_attempt(faulty, attempt, grace_left_ns);
    bool idles = attempt->phase == FAULTY_IDLE || attempt->phase == FAULTY_DONE;
    if (idles && job->state == JOB_RUNNING) { /* its new lease was never sent */
        attempt->lease_end =
            lease->steps_max ? attempt->steps + (double)lease->steps_max : 0;
        attempt->resized_max = lease->steps_max;
        faulty_run_steps(faulty, attempt);
    }
    if (attempt->phase == FAULTY_RESIZING)
        update_waits(faulty, attempt);
}

bool faulty_has_moved(const struct faulty *faulty, const struct faulty_attempt *attempt)
{
    const struct view *view = faulty->view;
    const struct seat_row *next = &view->jobs[attempt->slot].next;
    if (!attempt->resized || attempt->phase == FAULTY_RESIZING ||
        next->count != attempt->seat_count)
        return false;
    for (uint32_t i = 0; i < next->count; i++)
        if (view->seats[next->first + i].node != attempt->seats[i].node ||
            view->seats[next->first + i].gpus != attempt->seats[i].gpus)
            return false;
    return true;
}

/* Send all that has happened to an attempt; the scheduler ignores what it knows. */
static void resend_all(struct faulty *faulty, struct faulty_attempt *attempt)
{
    bool over = attempt->phase == FAULTY_OVER;
    if (attempt->phase <= FAULTY_STARTING)
        return;
    if (!over || attempt->end != EVENT_LOST)
        faulty_send_started(faulty, attempt);
    if (!over && attempt->phase != FAULTY_LOADING && attempt->phase != FAULTY_LEAVING) {
        struct event event = faulty_new_event(faulty, EVENT_LOADED);
        event.measured = true;
        event.rate_per_s = attempt->rate_per_s;
        faulty_send(faulty, attempt, &event);
    }
    if (!over && faulty_has_moved(faulty, attempt)) {
        struct event event = faulty_new_event(faulty, EVENT_RESIZED);
        event.steps = attempt->steps;
        event.rate_per_s = attempt->rate_per_s;
        faulty_send(faulty, attempt, &event);
    }
    if (over)
        faulty_send_end(faulty, attempt);
}

/* The attempt that left GPUs next after 'left', which others may have taken since. */
static struct faulty_attempt *find_next_left(struct faulty *faulty, uint64_t left)
{
    struct faulty_attempt *next = NULL;
    for (uint32_t i = 0; i < faulty->attempt_count; i++) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        if (attempt->left > left && (!next || attempt->left < next->left))
            next = attempt;
    }
    return next;
}

void faulty_end_reattach(struct faulty *faulty, const bool *believed_down,
                         const uint64_t *believed_foreign)
{
    for (uint32_t i = faulty->attempt_count; i-- > 0;) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        if (!attempt->named && attempt->phase != FAULTY_OVER)
            faulty->broken("attempt %u of job %llu runs, and nobody has ordered it",
                           attempt->attempt, (unsigned long long)attempt->id);
        if (!attempt->named)
            faulty_remove(faulty, attempt); /* its end was durable */
    }
    int64_t wire_ns = 0; /* ends are sent first, in their order */
    for (struct faulty_attempt *next = find_next_left(faulty, 0); next;
         next = find_next_left(faulty, next->left)) {
        next->wire_ns = wire_ns;
        resend_all(faulty, next);
        wire_ns = next->wire_ns;
    }
    for (uint32_t i = 0; i < faulty->attempt_count; i++)
        if (faulty->attempts[i].left == 0) {
            faulty->attempts[i].wire_ns = wire_ns;
            resend_all(faulty, &faulty->attempts[i]);
        }
    for (uint32_t i = 0; i < faulty->attempt_count; i++) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        bool resizes =
            attempt->phase == FAULTY_RESIZING && attempt->due_ns == INT64_MAX;
        if ((attempt->phase == FAULTY_WAITS_FOR || resizes) &&
            attempt->after_count == 0)
            faulty_start_attempt(faulty, attempt);
    }
    for (node_id n = 0; n < faulty->cluster->node_count; n++) {
        if (believed_down[n] != faulty->node_down[n])
            faulty_report_node(faulty, n,
                               faulty->node_down[n] ? EVENT_NODE_DOWN : EVENT_NODE_UP);
        if (believed_foreign[n] != faulty->foreign[n])
            faulty_report_node(faulty, n, EVENT_FOREIGN);
    }
}
