/* ground_orders.c - what the machines are told, and what they say to a new scheduler. */
#include "support/ground_internal.h"

#include <string.h>

#include "model/cluster.h"

/* --- orders ---------------------------------------------------------------------------- */

/* Attempts that have left already, or never came, are not waited for. */
static void note_after(struct ground *ground, struct ground_attempt *attempt,
                       const struct lease *lease)
{
    attempt->after_count = 0;
    for (uint32_t i = 0; i < lease->after_count && !ground->starts_early; i++) {
        const struct job *job = &ground->view->jobs[lease->after[i]];
        struct ground_attempt *other = ground_find_own(ground, job->id, job->attempt);
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
        ground_find_own(ground, ground->view->jobs[lease->job].id, lease->attempt);
    if (attempt) { /* told twice */
        attempt->named = true;
        attempt->slot = lease->job;
        attempt->generation = lease->generation;
        return 0;
    }
    if (ground_is_done(ground_find_own(ground, ground->view->jobs[lease->job].id,
                                       lease->attempt - 1)))
        return 0; /* it need not go on, and that is on its way */
    attempt = add(ground, lease);
    note_after(ground, attempt, lease);
    if (attempt->after_count == 0)
        ground_begin(ground, attempt);
    return 0;
}

static void tell_to_stop(struct ground *ground, struct ground_attempt *attempt,
                         int64_t grace_ns)
{
    const struct ground_truth *truth = ground_truth_of(ground, attempt);
    bool loading =
        attempt->phase == GROUND_LOADING || attempt->phase == GROUND_STARTING;
    int64_t pause_ns = loading ? 0 : truth->pause_ns; /* there is nothing to save */
    if (attempt->phase == GROUND_LEAVING)
        return;
    ground_book_steps(ground, attempt);
    attempt->phase = GROUND_LEAVING;
    attempt->clean = pause_ns <= grace_ns;
    ground->faults[FAULT_GRACE] += !attempt->clean;
    attempt->due_ns = ground->now_ns + (attempt->clean ? pause_ns : grace_ns);
}

static int ground_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct ground *ground = self;
    const struct job *known = &ground->view->jobs[job];
    struct ground_attempt *attempt = ground_find_own(ground, known->id, known->attempt);
    if (attempt && ground_is_there(attempt))
        tell_to_stop(ground, attempt, grace_ns);
    return 0; /* or it has left, and that is on its way */
}

/* What has not begun is gone at once; what is there is killed. */
static int ground_cancel(void *self, job_id job, struct error *err)
{
    struct ground *ground = self;
    uint64_t id = ground->view->jobs[job].id;
    struct ground_attempt *there = ground_present(ground, id);
    for (uint32_t i = ground->attempt_count; i-- > 0;) {
        struct ground_attempt *attempt = &ground->attempts[i];
        if (attempt->id != id || attempt->phase != GROUND_WAITS_FOR)
            continue;
        if (there)
            ground_forget(ground, attempt); /* the one that is there tells */
        else
            ground_leave(ground, attempt, EVENT_LOST, false);
        there = ground_present(ground, id);
    }
    if (there)
        ground_leave(ground, there, EVENT_STOPPED, false);
    return 0;
}

static int ground_renew(void *self, job_id job, uint64_t steps_max, bool together,
                        struct error *err)
{
    struct ground *ground = self;
    const struct job *known = &ground->view->jobs[job];
    struct ground_attempt *attempt = ground_find_own(ground, known->id, known->attempt);
    if (!attempt || !ground_is_there(attempt))
        return 0;
    ground_book_steps(ground, attempt);
    attempt->together = together;
    attempt->lease_end = steps_max ? attempt->steps + (double)steps_max : 0;
    attempt->resized_max = steps_max;
    if (attempt->phase == GROUND_RUNNING || attempt->phase == GROUND_IDLE ||
        attempt->phase == GROUND_DONE)
        ground_make_steps(ground, attempt);
    return 0;
}

static int ground_resize(void *self, const struct lease *lease, struct error *err)
{
    struct ground *ground = self;
    struct ground_attempt *attempt =
        ground_find_own(ground, ground->view->jobs[lease->job].id, lease->attempt);
    if (!attempt || !ground_is_there(attempt) || attempt->phase == GROUND_RESIZING)
        return 0;
    ground_book_steps(ground, attempt);
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
        ground_begin(ground, attempt);
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

/* --- another scheduler ------------------------------------------------------------------------ */

void ground_cut(struct ground *ground)
{
    ground->wire_count = 0;
    for (uint32_t i = ground->attempt_count; i-- > 0;) {
        struct ground_attempt *attempt = &ground->attempts[i];
        attempt->named = false;
        attempt->wire_ns = 0;
        if (attempt->phase == GROUND_WAITS_FOR)
            ground_forget(ground, attempt);
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
            ground_find_own(ground, attempt->after[k].id, attempt->after[k].attempt);
        if (other && ground_is_there(other))
            attempt->after[kept++] = attempt->after[k];
    }
    attempt->after_count = kept;
}

void ground_reattach(struct ground *ground, const struct lease *lease, bool stopping,
                     int64_t grace_left_ns)
{
    const struct job *job = &ground->view->jobs[lease->job];
    struct ground_attempt *attempt = ground_find_own(ground, job->id, lease->attempt);
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
        ground_make_steps(ground, attempt);
    }
    if (attempt->phase == GROUND_RESIZING)
        wait_again(ground, attempt);
}

bool ground_has_moved(const struct ground *ground, const struct ground_attempt *attempt)
{
    const struct view *view = ground->view;
    const struct seat_row *next = &view->jobs[attempt->slot].next;
    if (!attempt->resized || attempt->phase == GROUND_RESIZING ||
        next->count != attempt->seat_count)
        return false;
    for (uint32_t i = 0; i < next->count; i++)
        if (view->seats[next->first + i].node != attempt->seats[i].node ||
            view->seats[next->first + i].gpus != attempt->seats[i].gpus)
            return false;
    return true;
}

/* All that has become of it, from the beginning: what is known is not heard again. */
static void tell_again(struct ground *ground, struct ground_attempt *attempt)
{
    bool over = attempt->phase == GROUND_OVER;
    if (attempt->phase <= GROUND_STARTING)
        return;
    if (!over || attempt->end != EVENT_LOST)
        ground_tell_started(ground, attempt);
    if (!over && attempt->phase != GROUND_LOADING && attempt->phase != GROUND_LEAVING) {
        struct event event = ground_word(ground, EVENT_LOADED);
        event.measured = true;
        event.rate_per_s = attempt->rate_per_s;
        ground_say(ground, attempt, &event);
    }
    if (!over && ground_has_moved(ground, attempt)) {
        struct event event = ground_word(ground, EVENT_RESIZED);
        event.steps = attempt->steps;
        event.rate_per_s = attempt->rate_per_s;
        ground_say(ground, attempt, &event);
    }
    if (over)
        ground_tell_end(ground, attempt);
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
            ground_forget(ground, attempt); /* its end is durable */
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
            ground_begin(ground, attempt);
    }
    for (node_id n = 0; n < ground->cluster->node_count; n++) {
        if (believed_down[n] != ground->node_down[n])
            ground_say_node(ground, n,
                            ground->node_down[n] ? EVENT_NODE_DOWN : EVENT_NODE_UP);
        if (believed_foreign[n] != ground->foreign[n])
            ground_say_node(ground, n, EVENT_FOREIGN);
    }
}
