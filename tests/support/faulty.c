/* faulty.c - a simulated executor with faults: attempts and nodes. */
#include "support/faulty_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/cluster.h"
#include "model/sharing.h"
#include "model/throughput.h"

#define SECOND INT64_C(1000000000)
#define RESEND_NS (7 * SECOND) /* until an end that is not durable is sent again */

/* --- finding attempts ---------------------------------------------------------------- */

struct faulty_attempt *faulty_find_attempt(struct faulty *faulty, uint64_t id,
                                           uint32_t attempt)
{
    for (uint32_t i = 0; i < faulty->attempt_count; i++)
        if (faulty->attempts[i].id == id && faulty->attempts[i].attempt == attempt)
            return &faulty->attempts[i];
    return NULL;
}

const struct faulty_attempt *faulty_find(const struct faulty *faulty, uint64_t id,
                                         uint32_t attempt)
{
    return faulty_find_attempt((struct faulty *)(uintptr_t)faulty, id, attempt);
}

/* The attempt of this job that is on its GPUs. */
struct faulty_attempt *faulty_find_present(struct faulty *faulty, uint64_t id)
{
    for (uint32_t i = 0; id && i < faulty->attempt_count; i++)
        if (faulty->attempts[i].id == id && faulty_is_present(&faulty->attempts[i]))
            return &faulty->attempts[i];
    return NULL;
}

void faulty_remove(struct faulty *faulty, struct faulty_attempt *attempt)
{
    *attempt = faulty->attempts[--faulty->attempt_count];
}

struct faulty_truth *faulty_truth_of(struct faulty *faulty,
                                     const struct faulty_attempt *attempt)
{
    return &faulty->truths[attempt->id];
}

/* --- running ------------------------------------------------------------------------- */

static bool overlaps(const struct seat *a, uint32_t a_count, const struct seat *b,
                     uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++)
        for (uint32_t k = 0; k < b_count; k++)
            if (a[i].node == b[k].node && (a[i].gpus & b[k].gpus))
                return true;
    return false;
}

/* The attempt on the same GPUs, or NULL. */
static struct faulty_attempt *find_partner(struct faulty *faulty,
                                           const struct faulty_attempt *attempt)
{
    for (uint32_t i = 0; i < faulty->attempt_count; i++) {
        struct faulty_attempt *other = &faulty->attempts[i];
        if (other != attempt && faulty_is_present(other) &&
            overlaps(attempt->seats, attempt->seat_count, other->seats,
                     other->seat_count))
            return other;
    }
    return NULL;
}

static double true_rate(struct faulty *faulty, const struct faulty_attempt *attempt)
{
    const struct job *said = &faulty_truth_of(faulty, attempt)->said;
    const struct faulty_attempt *partner = find_partner(faulty, attempt);
    uint32_t gpus = 0;
    double rates[2];
    for (uint32_t i = 0; i < attempt->seat_count; i++)
        gpus += seat_gpu_count(&attempt->seats[i]);
    if (partner &&
        sharing_rates(faulty->rates, said, &faulty_truth_of(faulty, partner)->said,
                      attempt->type, gpus, attempt->spread, rates))
        return rates[0];
    double rate =
        throughput_rate(faulty->rates, said, attempt->type, gpus, attempt->spread);
    return rate > 0 ? rate : 1;
}

void faulty_count_steps(struct faulty *faulty, struct faulty_attempt *attempt)
{
    struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    if (attempt->phase == FAULTY_RUNNING) {
        int64_t ran_ns = faulty->now_ns - attempt->anchor_ns;
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
    attempt->anchor_ns = faulty->now_ns;
}

/* Run from now on, until the lease or the work ends. */
void faulty_run_steps(struct faulty *faulty, struct faulty_attempt *attempt)
{
    const struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    attempt->phase = FAULTY_RUNNING;
    attempt->anchor_ns = faulty->now_ns;
    attempt->rate_per_s = true_rate(faulty, attempt);
    double end = truth->steps;
    if (attempt->lease_end > 0 && attempt->lease_end < end)
        end = attempt->lease_end;
    double left = end > attempt->steps ? end - attempt->steps : 0;
    attempt->done_ns =
        faulty->now_ns + (int64_t)fmin(ceil(left / attempt->rate_per_s * 1e9), 4e18);
    attempt->report_ns =
        truth->report_ns > 0 ? faulty->now_ns + truth->report_ns : INT64_MAX;
    attempt->due_ns =
        attempt->done_ns < attempt->report_ns ? attempt->done_ns : attempt->report_ns;
}

static void update_rate(struct faulty *faulty, struct faulty_attempt *attempt)
{
    if (!attempt || attempt->phase != FAULTY_RUNNING)
        return;
    faulty_count_steps(faulty, attempt);
    faulty_run_steps(faulty, attempt);
}

/* Put an impossible figure into the report of a broken job. */
static void make_absurd(struct faulty *faulty, struct event *event)
{
    faulty->faults[FAULT_ABSURD]++;
    switch (rng_below(&faulty->rng, 7)) {
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
        event->steps = event->steps_reached = 0; /* steps go back */
        break;
    case 4:
        event->steps_total = 1e300;
        break;
    case 5:
        event->loss = rng_below(&faulty->rng, 2) ? 1e300 : -1e300;
        break;
    default:
        event->at_ns = -1 - rng_below(&faulty->rng, 20) * SECOND; /* time goes back */
    }
}

static void send_report(struct faulty *faulty, struct faulty_attempt *attempt)
{
    const struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    faulty_count_steps(faulty, attempt);
    struct event event = faulty_new_event(faulty, EVENT_PROGRESS);
    event.steps = event.steps_reached = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    event.measured = true;
    if (truth->steps > 0)
        event.loss = exp(-attempt->steps / truth->steps);
    if (truth->absurd && faulty_draw(faulty, 500))
        make_absurd(faulty, &event);
    faulty_send(faulty, attempt, &event);
    if (rng_below(&faulty->rng, 3) == 0) {
        struct event sent = faulty_new_event(faulty, EVENT_SENT);
        sent.sends_per_s = rng_unit(&faulty->rng) * 1e9;
        sent.sent_bytes = (double)(attempt->ran_ns / SECOND) * 1e8;
        faulty_send(faulty, attempt, &sent);
    }
    if (rng_below(&faulty->rng, 4) == 0) {
        struct event use = faulty_new_event(faulty, EVENT_GPU_USE);
        use.gpu_mib = (uint32_t)rng_below(&faulty->rng, 40000);
        use.gpu_busy = 1.2 * rng_unit(&faulty->rng) - 0.1; /* some make no sense */
        faulty_send(faulty, attempt, &use);
    }
    faulty_run_steps(faulty, attempt);
}

/* --- ending an attempt --------------------------------------------------------------- */

static void end_lease(struct faulty *faulty, struct faulty_attempt *attempt);

/*
 * An attempt has left GPUs that others waited for.  Their messages arrive after the message
 * of its end, as they start because of it.
 */
static void start_waiting(struct faulty *faulty, uint64_t id, uint32_t number,
                          int64_t wire_ns)
{
    for (uint32_t i = 0; i < faulty->attempt_count; i++) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        bool waits = attempt->phase == FAULTY_WAITS_FOR ||
                     (attempt->phase == FAULTY_RESIZING && attempt->after_count > 0);
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
            faulty_start_attempt(faulty, attempt);
    }
}

void faulty_send_end(struct faulty *faulty, struct faulty_attempt *attempt)
{
    struct event event = faulty_new_event(faulty, attempt->end);
    event.steps = attempt->end_kept;
    event.steps_reached = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    event.clean = event.measured = attempt->clean;
    if (attempt->end == EVENT_FINISHED || attempt->end == EVENT_FAILED)
        event.steps = attempt->steps;
    if (faulty_truth_of(faulty, attempt)->absurd && faulty_draw(faulty, 300)) {
        faulty->faults[FAULT_ABSURD]++;
        event.steps = attempt->end == EVENT_LOST ? -1e300 : 1e300;
        event.steps_reached = 1e301;
    }
    faulty_send(faulty, attempt, &event);
    int64_t heard_ns =
        attempt->wire_ns > faulty->now_ns ? attempt->wire_ns : faulty->now_ns;
    attempt->due_ns = heard_ns + RESEND_NS;
}

/* A job that is done does not start its next attempt, even if it was ordered. */
static void cancel_next_attempt(struct faulty *faulty,
                                const struct faulty_attempt *attempt)
{
    struct faulty_attempt *next =
        faulty_find_attempt(faulty, attempt->id, attempt->attempt + 1);
    if (next && next->phase == FAULTY_WAITS_FOR) {
        next->phase = FAULTY_OVER;
        next->named = false;
        next->due_ns = INT64_MAX; /* nothing is sent for it */
    }
}

bool faulty_is_done(const struct faulty_attempt *attempt)
{
    return attempt && attempt->phase == FAULTY_OVER &&
           (attempt->end == EVENT_FINISHED || attempt->end == EVENT_FAILED);
}

/* End an attempt, which leaves its GPUs. */
void faulty_end_attempt(struct faulty *faulty, struct faulty_attempt *attempt,
                        enum event_kind kind, bool clean)
{
    struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    bool was_there = faulty_is_present(attempt);
    if (kind == EVENT_STOPPED && attempt->phase == FAULTY_STARTING)
        kind = EVENT_LOST; /* its start was not sent yet */
    faulty_count_steps(faulty, attempt);
    if (clean && attempt->steps > truth->kept)
        truth->kept = attempt->steps;
    attempt->end = kind;
    attempt->end_kept = truth->kept < attempt->steps ? truth->kept : attempt->steps;
    attempt->clean = clean;
    struct faulty_attempt *partner = was_there ? find_partner(faulty, attempt) : NULL;
    attempt->phase = FAULTY_OVER;
    attempt->left = ++faulty->order;
    faulty_send_end(faulty, attempt);
    if (faulty_is_done(attempt))
        cancel_next_attempt(faulty, attempt);
    if (partner && partner->phase == FAULTY_DONE)
        end_lease(faulty, partner);
    else
        update_rate(faulty, partner);
    if (was_there)
        start_waiting(faulty, attempt->id, attempt->attempt, attempt->wire_ns);
}

/* --- starting an attempt ------------------------------------------------------------- */

static bool nodes_are_up(const struct faulty *faulty, const struct seat *seats,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (faulty->node_down[seats[i].node])
            return false;
    return true;
}

/* Check that no attempt is on the same GPUs, except one that shares them. */
static void check_gpus(struct faulty *faulty, const struct faulty_attempt *attempt)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < faulty->attempt_count; i++) {
        const struct faulty_attempt *other = &faulty->attempts[i];
        if (other == attempt || !faulty_is_present(other))
            continue;
        if (other->id == attempt->id)
            faulty->broken("job %llu runs twice: attempts %u and %u",
                           (unsigned long long)attempt->id, other->attempt,
                           attempt->attempt);
        if (!overlaps(attempt->seats, attempt->seat_count, other->seats,
                      other->seat_count))
            continue;
        others++;
        if (other->beside != attempt->id && attempt->beside != other->id)
            faulty->broken("a GPU is held twice: jobs %llu and %llu",
                           (unsigned long long)attempt->id,
                           (unsigned long long)other->id);
    }
    if (others > 1)
        faulty->broken("a GPU is shared by three: job %llu is the third",
                       (unsigned long long)attempt->id);
}

void faulty_send_started(struct faulty *faulty, struct faulty_attempt *attempt)
{
    struct event event = faulty_new_event(faulty, EVENT_STARTED);
    event.loaded = faulty_truth_of(faulty, attempt)->load_ns == 0;
    if (rng_below(&faulty->rng, 2)) /* some executors know the rate, others do not */
        event.rate_per_s = true_rate(faulty, attempt);
    faulty_send(faulty, attempt, &event);
}

static void finish_start(struct faulty *faulty, struct faulty_attempt *attempt)
{
    const struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    if (attempt->doomed) {
        faulty->faults[FAULT_START]++;
        faulty_end_attempt(faulty, attempt, EVENT_LOST, false);
        return;
    }
    faulty_send_started(faulty, attempt);
    update_rate(faulty, find_partner(faulty, attempt));
    if (truth->load_ns == 0) {
        faulty_run_steps(faulty, attempt);
        return;
    }
    attempt->phase = FAULTY_LOADING;
    attempt->due_ns = faulty->now_ns + truth->load_ns;
}

static void finish_resize(struct faulty *faulty, struct faulty_attempt *attempt)
{
    struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    struct faulty_attempt *partner = find_partner(faulty, attempt);
    memcpy(attempt->seats, attempt->next, sizeof attempt->seats);
    attempt->seat_count = attempt->next_count;
    attempt->next_count = 0;
    attempt->beside = 0;
    attempt->resized = true;
    attempt->left = ++faulty->order;
    truth->kept = attempt->steps > truth->kept ? attempt->steps : truth->kept;
    attempt->ran_ns = 0;
    attempt->lease_end =
        attempt->resized_max ? attempt->steps + (double)attempt->resized_max : 0;
    check_gpus(faulty, attempt);
    if (partner && partner->phase == FAULTY_DONE)
        end_lease(faulty, partner);
    else
        update_rate(faulty, partner);
    faulty_run_steps(faulty, attempt);
    struct event event = faulty_new_event(faulty, EVENT_RESIZED);
    event.steps = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    faulty_send(faulty, attempt, &event);
    start_waiting(faulty, attempt->id, attempt->attempt, attempt->wire_ns);
}

/* Start or resize: all attempts that it waited for have ended. */
void faulty_start_attempt(struct faulty *faulty, struct faulty_attempt *attempt)
{
    const struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    if (attempt->phase == FAULTY_RESIZING) {
        attempt->due_ns = faulty->now_ns + truth->pause_ns + truth->load_ns;
        return;
    }
    attempt->steps = truth->kept;
    attempt->lease_end =
        attempt->resized_max ? attempt->steps + (double)attempt->resized_max : 0;
    attempt->phase = FAULTY_STARTING;
    attempt->anchor_ns = faulty->now_ns;
    attempt->doomed = faulty_draw(faulty, faulty->trouble) ||
                      !nodes_are_up(faulty, attempt->seats, attempt->seat_count);
    check_gpus(faulty, attempt);
    bool slow = rng_below(&faulty->rng, 4) == 0;
    attempt->due_ns =
        faulty->now_ns +
        (slow || attempt->doomed ? (1 + rng_below(&faulty->rng, 30)) * SECOND / 10 : 0);
    if (attempt->due_ns == faulty->now_ns)
        finish_start(faulty, attempt);
}

/* --- time passes ---------------------------------------------------------------------- */

static void end_lease(struct faulty *faulty, struct faulty_attempt *attempt)
{
    struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    if (attempt->steps >= truth->steps) {
        faulty_end_attempt(faulty, attempt,
                           truth->fails ? EVENT_FAILED : EVENT_FINISHED, true);
        return;
    }
    truth->kept = attempt->steps > truth->kept ? attempt->steps : truth->kept;
    attempt->phase = FAULTY_IDLE;
    attempt->due_ns = INT64_MAX;
    struct event event = faulty_new_event(faulty, EVENT_LEASE_DONE);
    event.steps = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    faulty_send(faulty, attempt, &event);
}

static void continue_running(struct faulty *faulty, struct faulty_attempt *attempt)
{
    const struct faulty_truth *truth = faulty_truth_of(faulty, attempt);
    if (faulty->now_ns < attempt->done_ns) {
        send_report(faulty, attempt);
        return;
    }
    faulty_count_steps(faulty, attempt);
    bool leased = attempt->lease_end > 0 && attempt->lease_end < truth->steps;
    attempt->steps = leased ? attempt->lease_end : truth->steps;
    attempt->phase = FAULTY_DONE;
    attempt->due_ns = INT64_MAX;
    struct faulty_attempt *partner = find_partner(faulty, attempt);
    bool waits = partner && attempt->together && partner->together &&
                 (partner->phase == FAULTY_LOADING || partner->phase == FAULTY_RUNNING);
    if (waits)
        return;
    uint64_t id = partner ? partner->id : 0;
    end_lease(faulty, attempt);
    partner = faulty_find_present(faulty, id);
    if (partner && partner->phase == FAULTY_DONE)
        end_lease(faulty, partner);
}

static void handle_attempt(struct faulty *faulty, struct faulty_attempt *attempt)
{
    struct event event;
    switch (attempt->phase) {
    case FAULTY_STARTING:
        finish_start(faulty, attempt);
        break;
    case FAULTY_LOADING:
        faulty_run_steps(faulty, attempt);
        event = faulty_new_event(faulty, EVENT_LOADED);
        event.measured = true;
        event.rate_per_s = attempt->rate_per_s;
        faulty_send(faulty, attempt, &event);
        break;
    case FAULTY_RUNNING:
        continue_running(faulty, attempt);
        break;
    case FAULTY_RESIZING:
        finish_resize(faulty, attempt);
        break;
    case FAULTY_LEAVING:
        faulty_end_attempt(faulty, attempt, EVENT_STOPPED, attempt->clean);
        break;
    case FAULTY_OVER:
        faulty_send_end(faulty, attempt);
        break;
    case FAULTY_WAITS_FOR:
    case FAULTY_DONE:
    case FAULTY_IDLE:
        faulty->broken("nothing is due for job %llu", (unsigned long long)attempt->id);
    }
}

static bool uses_node(const struct faulty_attempt *attempt, node_id node)
{
    for (uint32_t i = 0; i < attempt->seat_count; i++)
        if (attempt->seats[i].node == node)
            return true;
    return false;
}

/* Attempts on the node are lost; that may be sent before or after the node is down. */
static void fail_node(struct faulty *faulty, node_id node)
{
    bool first = rng_below(&faulty->rng, 2);
    faulty->node_down[node] = true;
    faulty->faults[FAULT_NODE]++;
    if (first)
        faulty_report_node(faulty, node, EVENT_NODE_DOWN);
    for (uint32_t i = 0; i < faulty->attempt_count; i++) {
        struct faulty_attempt *attempt = &faulty->attempts[i];
        if (faulty_is_present(attempt) && uses_node(attempt, node))
            faulty_end_attempt(faulty, attempt, EVENT_LOST, false);
    }
    if (!first)
        faulty_report_node(faulty, node, EVENT_NODE_DOWN);
}

static void handle_node(struct faulty *faulty, node_id node)
{
    bool dies = !faulty->node_down[node];
    double mean_ns = (double)(dies ? faulty->mttr_ns : faulty->mtbf_ns);
    faulty->node_due_ns[node] =
        faulty->now_ns + 1 + (int64_t)rng_exponential(&faulty->rng, mean_ns);
    if (dies) {
        fail_node(faulty, node);
        return;
    }
    faulty->node_down[node] = false;
    faulty_report_node(faulty, node, EVENT_NODE_UP);
}

int64_t faulty_next_ns(const struct faulty *faulty)
{
    int64_t at_ns = INT64_MAX;
    for (uint32_t i = 0; i < faulty->attempt_count; i++)
        if (faulty->attempts[i].due_ns < at_ns)
            at_ns = faulty->attempts[i].due_ns;
    for (uint32_t i = 0; i < faulty->wire_count; i++)
        if (faulty->wire[i].at_ns < at_ns)
            at_ns = faulty->wire[i].at_ns;
    for (node_id n = 0; n < faulty->cluster->node_count; n++)
        if (faulty->node_due_ns[n] < at_ns)
            at_ns = faulty->node_due_ns[n];
    return at_ns;
}

void faulty_advance(struct faulty *faulty, int64_t now_ns)
{
    faulty->now_ns = now_ns;
    for (node_id n = 0; n < faulty->cluster->node_count; n++)
        if (faulty->node_due_ns[n] <= now_ns)
            handle_node(faulty, n);
    for (uint32_t i = 0; i < faulty->attempt_count; i++)
        if (faulty->attempts[i].due_ns <= now_ns)
            handle_attempt(faulty, &faulty->attempts[i]);
}

/* --- start, end and changes from outside ---------------------------------------------- */

void faulty_init(struct faulty *faulty, const struct cluster *cluster,
                 const struct throughput *rates, uint64_t seed)
{
    rng_init(&faulty->rng, seed, "ground");
    faulty->cluster = cluster;
    faulty->rates = rates;
    for (node_id n = 0; n < cluster->node_count; n++)
        faulty->node_due_ns[n] =
            faulty->mtbf_ns
                ? (int64_t)rng_exponential(&faulty->rng, (double)faulty->mtbf_ns)
                : INT64_MAX;
}

void faulty_release(struct faulty *faulty)
{
    free(faulty->wire);
}

void faulty_stop_faults(struct faulty *faulty)
{
    faulty->faults_on = false;
    for (node_id n = 0; n < faulty->cluster->node_count; n++) {
        faulty->node_due_ns[n] = INT64_MAX;
        if (faulty->node_down[n]) {
            faulty->node_down[n] = false;
            faulty_report_node(faulty, n, EVENT_NODE_UP);
        }
        if (faulty->foreign[n])
            faulty_set_foreign(faulty, n, 0);
    }
}

void faulty_set_foreign(struct faulty *faulty, node_id node, uint64_t gpus)
{
    faulty->faults[FAULT_FOREIGN] += gpus != 0;
    faulty->foreign[node] = gpus;
    faulty_report_node(faulty, node, EVENT_FOREIGN);
}

void faulty_end_recorded(struct faulty *faulty, uint64_t id, uint32_t number)
{
    struct faulty_attempt *attempt = faulty_find_attempt(faulty, id, number);
    if (!attempt || attempt->phase != FAULTY_OVER)
        return;
    bool done = faulty_is_done(attempt);
    faulty_remove(faulty, attempt);
    attempt = done ? faulty_find_attempt(faulty, id, number + 1) : NULL;
    if (attempt)
        faulty_remove(faulty, attempt); /* its next attempt, which never started */
}
