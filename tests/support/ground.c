/* ground.c - the machines of a world as they are, whatever the scheduler believes. */
#include "support/ground_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/cluster.h"
#include "model/sharing.h"
#include "model/throughput.h"

#define SECOND INT64_C(1000000000)
#define TELL_AGAIN_NS (7 * SECOND) /* an end that nobody has written down */

/* --- who is where ------------------------------------------------------------------- */

struct ground_attempt *ground_find_own(struct ground *ground, uint64_t id,
                                       uint32_t attempt)
{
    for (uint32_t i = 0; i < ground->attempt_count; i++)
        if (ground->attempts[i].id == id && ground->attempts[i].attempt == attempt)
            return &ground->attempts[i];
    return NULL;
}

const struct ground_attempt *ground_find(const struct ground *ground, uint64_t id,
                                         uint32_t attempt)
{
    return ground_find_own((struct ground *)(uintptr_t)ground, id, attempt);
}

/* The one of this job that is there. */
struct ground_attempt *ground_present(struct ground *ground, uint64_t id)
{
    for (uint32_t i = 0; id && i < ground->attempt_count; i++)
        if (ground->attempts[i].id == id && ground_is_there(&ground->attempts[i]))
            return &ground->attempts[i];
    return NULL;
}

void ground_forget(struct ground *ground, struct ground_attempt *attempt)
{
    *attempt = ground->attempts[--ground->attempt_count];
}

struct ground_truth *ground_truth_of(struct ground *ground,
                                     const struct ground_attempt *attempt)
{
    return &ground->truths[attempt->id];
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
    const struct job *said = &ground_truth_of(ground, attempt)->said;
    const struct ground_attempt *partner = partner_of(ground, attempt);
    uint32_t gpus = 0;
    double rates[2];
    for (uint32_t i = 0; i < attempt->seat_count; i++)
        gpus += seat_gpu_count(&attempt->seats[i]);
    if (partner &&
        sharing_rates(ground->rates, said, &ground_truth_of(ground, partner)->said,
                      attempt->type, gpus, attempt->spread, rates))
        return rates[0];
    double rate =
        throughput_rate(ground->rates, said, attempt->type, gpus, attempt->spread);
    return rate > 0 ? rate : 1;
}

void ground_book_steps(struct ground *ground, struct ground_attempt *attempt)
{
    struct ground_truth *truth = ground_truth_of(ground, attempt);
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
void ground_make_steps(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = ground_truth_of(ground, attempt);
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
    ground_book_steps(ground, attempt);
    ground_make_steps(ground, attempt);
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
    const struct ground_truth *truth = ground_truth_of(ground, attempt);
    ground_book_steps(ground, attempt);
    struct event event = ground_word(ground, EVENT_PROGRESS);
    event.steps = event.steps_reached = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    event.measured = true;
    if (truth->steps > 0)
        event.loss = exp(-attempt->steps / truth->steps);
    if (truth->absurd && ground_happens(ground, 500))
        distort(ground, &event);
    ground_say(ground, attempt, &event);
    if (rng_below(&ground->rng, 3) == 0) {
        struct event sent = ground_word(ground, EVENT_SENT);
        sent.sends_per_s = rng_unit(&ground->rng) * 1e9;
        sent.sent_bytes = (double)(attempt->ran_ns / SECOND) * 1e8;
        ground_say(ground, attempt, &sent);
    }
    ground_make_steps(ground, attempt);
}

/* --- going --------------------------------------------------------------------------- */

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
            ground_begin(ground, attempt);
    }
}

void ground_tell_end(struct ground *ground, struct ground_attempt *attempt)
{
    struct event event = ground_word(ground, attempt->end);
    event.steps = attempt->end_kept;
    event.steps_reached = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    event.clean = event.measured = attempt->clean;
    if (attempt->end == EVENT_FINISHED || attempt->end == EVENT_FAILED)
        event.steps = attempt->steps;
    if (ground_truth_of(ground, attempt)->absurd && ground_happens(ground, 300)) {
        ground->faults[FAULT_ABSURD]++;
        event.steps = attempt->end == EVENT_LOST ? -1e300 : 1e300;
        event.steps_reached = 1e301;
    }
    ground_say(ground, attempt, &event);
    int64_t heard_ns =
        attempt->wire_ns > ground->now_ns ? attempt->wire_ns : ground->now_ns;
    attempt->due_ns = heard_ns + TELL_AGAIN_NS;
}

/* One that is done does not go on elsewhere, whatever it was told. */
static void forget_next(struct ground *ground, const struct ground_attempt *attempt)
{
    struct ground_attempt *next =
        ground_find_own(ground, attempt->id, attempt->attempt + 1);
    if (next && next->phase == GROUND_WAITS_FOR) {
        next->phase = GROUND_OVER;
        next->named = false;
        next->due_ns = INT64_MAX; /* nobody will hear of it */
    }
}

bool ground_is_done(const struct ground_attempt *attempt)
{
    return attempt && attempt->phase == GROUND_OVER &&
           (attempt->end == EVENT_FINISHED || attempt->end == EVENT_FAILED);
}

/* It is out of its seats. */
void ground_leave(struct ground *ground, struct ground_attempt *attempt,
                  enum event_kind kind, bool clean)
{
    struct ground_truth *truth = ground_truth_of(ground, attempt);
    bool was_there = ground_is_there(attempt);
    if (kind == EVENT_STOPPED && attempt->phase == GROUND_STARTING)
        kind = EVENT_LOST; /* nobody has heard yet that it was there */
    ground_book_steps(ground, attempt);
    if (clean && attempt->steps > truth->kept)
        truth->kept = attempt->steps;
    attempt->end = kind;
    attempt->end_kept = truth->kept < attempt->steps ? truth->kept : attempt->steps;
    attempt->clean = clean;
    struct ground_attempt *partner = was_there ? partner_of(ground, attempt) : NULL;
    attempt->phase = GROUND_OVER;
    attempt->left = ++ground->order;
    ground_tell_end(ground, attempt);
    if (ground_is_done(attempt))
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

void ground_tell_started(struct ground *ground, struct ground_attempt *attempt)
{
    struct event event = ground_word(ground, EVENT_STARTED);
    event.loaded = ground_truth_of(ground, attempt)->load_ns == 0;
    if (rng_below(&ground->rng, 2)) /* some executors can say it, others cannot */
        event.rate_per_s = true_rate(ground, attempt);
    ground_say(ground, attempt, &event);
}

static void come_up(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = ground_truth_of(ground, attempt);
    if (attempt->doomed) {
        ground->faults[FAULT_START]++;
        ground_leave(ground, attempt, EVENT_LOST, false);
        return;
    }
    ground_tell_started(ground, attempt);
    rerate(ground, partner_of(ground, attempt));
    if (truth->load_ns == 0) {
        ground_make_steps(ground, attempt);
        return;
    }
    attempt->phase = GROUND_LOADING;
    attempt->due_ns = ground->now_ns + truth->load_ns;
}

static void go_elsewhere(struct ground *ground, struct ground_attempt *attempt)
{
    struct ground_truth *truth = ground_truth_of(ground, attempt);
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
    ground_make_steps(ground, attempt);
    struct event event = ground_word(ground, EVENT_RESIZED);
    event.steps = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    ground_say(ground, attempt, &event);
    let_others_come(ground, attempt->id, attempt->attempt, attempt->wire_ns);
}

/* Everybody who had to leave has left. */
void ground_begin(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = ground_truth_of(ground, attempt);
    if (attempt->phase == GROUND_RESIZING) {
        attempt->due_ns = ground->now_ns + truth->pause_ns + truth->load_ns;
        return;
    }
    attempt->steps = truth->kept;
    attempt->lease_end =
        attempt->resized_max ? attempt->steps + (double)attempt->resized_max : 0;
    attempt->phase = GROUND_STARTING;
    attempt->anchor_ns = ground->now_ns;
    attempt->doomed = ground_happens(ground, ground->trouble) ||
                      !nodes_are_up(ground, attempt->seats, attempt->seat_count);
    sit(ground, attempt);
    bool slow = rng_below(&ground->rng, 4) == 0;
    attempt->due_ns =
        ground->now_ns +
        (slow || attempt->doomed ? (1 + rng_below(&ground->rng, 30)) * SECOND / 10 : 0);
    if (attempt->due_ns == ground->now_ns)
        come_up(ground, attempt);
}

/* --- things happen ------------------------------------------------------------------------ */

static void lease_done(struct ground *ground, struct ground_attempt *attempt)
{
    struct ground_truth *truth = ground_truth_of(ground, attempt);
    if (attempt->steps >= truth->steps) {
        ground_leave(ground, attempt, truth->fails ? EVENT_FAILED : EVENT_FINISHED,
                     true);
        return;
    }
    truth->kept = attempt->steps > truth->kept ? attempt->steps : truth->kept;
    attempt->phase = GROUND_IDLE;
    attempt->due_ns = INT64_MAX;
    struct event event = ground_word(ground, EVENT_LEASE_DONE);
    event.steps = attempt->steps;
    event.rate_per_s = attempt->rate_per_s;
    ground_say(ground, attempt, &event);
}

static void run_on(struct ground *ground, struct ground_attempt *attempt)
{
    const struct ground_truth *truth = ground_truth_of(ground, attempt);
    if (ground->now_ns < attempt->done_ns) {
        report(ground, attempt);
        return;
    }
    ground_book_steps(ground, attempt);
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
    partner = ground_present(ground, id);
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
        ground_make_steps(ground, attempt);
        event = ground_word(ground, EVENT_LOADED);
        event.measured = true;
        event.rate_per_s = attempt->rate_per_s;
        ground_say(ground, attempt, &event);
        break;
    case GROUND_RUNNING:
        run_on(ground, attempt);
        break;
    case GROUND_RESIZING:
        go_elsewhere(ground, attempt);
        break;
    case GROUND_LEAVING:
        ground_leave(ground, attempt, EVENT_STOPPED, attempt->clean);
        break;
    case GROUND_OVER:
        ground_tell_end(ground, attempt);
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
        ground_say_node(ground, node, EVENT_NODE_DOWN);
    for (uint32_t i = 0; i < ground->attempt_count; i++) {
        struct ground_attempt *attempt = &ground->attempts[i];
        if (ground_is_there(attempt) && is_on(attempt, node))
            ground_leave(ground, attempt, EVENT_LOST, false);
    }
    if (!first)
        ground_say_node(ground, node, EVENT_NODE_DOWN);
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
    ground_say_node(ground, node, EVENT_NODE_UP);
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
            ground_say_node(ground, n, EVENT_NODE_UP);
        }
        if (ground->foreign[n])
            ground_set_foreign(ground, n, 0);
    }
}

void ground_set_foreign(struct ground *ground, node_id node, uint64_t gpus)
{
    ground->faults[FAULT_FOREIGN] += gpus != 0;
    ground->foreign[node] = gpus;
    ground_say_node(ground, node, EVENT_FOREIGN);
}

void ground_recorded(struct ground *ground, uint64_t id, uint32_t number)
{
    struct ground_attempt *attempt = ground_find_own(ground, id, number);
    if (!attempt || attempt->phase != GROUND_OVER)
        return;
    bool done = ground_is_done(attempt);
    ground_forget(ground, attempt);
    attempt = done ? ground_find_own(ground, id, number + 1) : NULL;
    if (attempt)
        ground_forget(ground, attempt); /* where it would have gone */
}
