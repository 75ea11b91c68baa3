/*
 * gavel.c - what the gavel policies have in common: who is there, what there is, asking the
 * policy, and what it knows of two jobs that share.  Who runs in a round is for a mechanism
 * to decide (gavel_common.h).
 */
#include "policy/gavel/gavel.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/reasons.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "policy/gavel/gavel_common.h"
#include "predict/estimate.h"

const char *const gavel_compats[] = { "none", "released", NULL };
const char *const gavel_knowns[] = { "true", "estimated", NULL };

const struct field gavel_params[] = { GAVEL_PARAMS, { 0 } };
const struct field gavel_sharing_params[] = {
    GAVEL_PARAM_AWARE, GAVEL_PARAM_SHARING, GAVEL_PARAMS, { 0 }
};

#define PAIRS_MAX (1u << 20) /* more are not listed */
#define REFERENCES 16        /* of the kinds there are, as in the paper */
#define TRIED 0.2            /* of a new job's cells */
#define LEFT_LEAST 0.25      /* of a type, for which shares are made in any case */

/* --- rates of two jobs that share ------------------------------------------------- */

/*
 * Either as they are (model/sharing.h: measured, or by the model), or estimated: a job
 * that arrives is tried beside a fifth of some references, and its rate beside others
 * follows (predict/estimate.h).  Jobs of which it is unknown whether they fit in memory
 * together are not paired at all.
 */

/* Kinds of which it is known how they share. */
static uint32_t list_kinds(const struct view *view, uint32_t *kinds, uint32_t max)
{
    const struct throughput *table = view->rates;
    uint32_t count = 0;
    for (uint32_t k = 0; k < table->row_count && count < max; k++) {
        struct job job = { .kind = k, .gpus = 1 };
        bool known = false;
        for (uint32_t t = 0; t < view->cluster->type_count; t++)
            known = known || sharing_is_known(table, &job, &job, t, 1);
        if (known)
            kinds[count++] = k;
    }
    return count;
}

static int gavel_pairs_init(struct gavel_common *common, const struct view *view,
                            struct arena *run, struct error *err)
{
    uint32_t kinds[256];
    if (!common->gavel->sharing || common->gavel->known != KNOWN_ESTIMATED)
        return 0;
    uint32_t count = list_kinds(view, kinds, sizeof kinds / sizeof *kinds);
    if (count < 2)
        return error_set(err, -EINVAL,
                         "rates=estimated needs kinds of jobs that were measured with "
                         "each other; no such are known here");
    struct rng rng;
    rng_init(&rng, common->seed, "references");
    uint32_t wanted = count < REFERENCES ? count : REFERENCES;
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t at = i + rng_below(&rng, count - i);
        uint32_t kind = kinds[at];
        kinds[at] = kinds[i];
        kinds[i] = kind;
    }
    common->estimate = arena_new(run, struct estimate);
    estimate_init(common->estimate, run, view->rates, kinds, wanted,
                  view->cluster->type_count, view->job_max);
    return 0;
}

/* The part of its speed that 'job' truly keeps beside another; -1: unknown. */
static double kept_beside(const struct view *view, const struct job *job,
                          const struct job *other, uint32_t type)
{
    double rates[2];
    double alone = throughput_rate(view->rates, job, type, 1, false);
    if (!(alone > 0) || !sharing_is_known(view->rates, job, other, type, 1))
        return -1;
    sharing_rates(view->rates, job, other, type, 1, false, rates);
    return rates[0] / alone;
}

/* A job has come: where rates are estimated, it is tried beside some references. */
static void gavel_pairs_admit(struct gavel_common *common, const struct view *view,
                              job_id id)
{
    struct estimate *estimate = common->estimate;
    const struct job *job = &view->jobs[id];
    if (!estimate)
        return;
    struct rng rng;
    rng_init(&rng, common->seed * 0x9e3779b97f4a7c15u + job->id, "trials");
    estimate_begin(estimate, id);
    for (uint32_t type = 0; type < estimate->type_count; type++)
        for (uint32_t r = 0; r < estimate->reference_count; r++) {
            struct job reference = { .kind = estimate->kinds[r], .gpus = 1 };
            bool tried = rng_unit(&rng) < TRIED;
            double kept = tried ? kept_beside(view, job, &reference, type) : -1;
            if (kept >= 0)
                estimate_note(estimate, id, type, r, kept);
        }
}

/* What happens tells how two get on; what a plan refuses, that they do not. */
static void gavel_pairs_observe(struct gavel_common *common, const struct view *view,
                                const struct event *event)
{
    if (!common->estimate ||
        (event->kind != EVENT_STARTED && event->kind != EVENT_PROGRESS))
        return;
    const struct job *job = &view->jobs[event->job];
    job_id other = job->partner;
    if (other == JOB_NONE || job->gpus != 1 || !(event->rate_per_s > 0) ||
        !job_holds_seats(job) || !job_holds_seats(&view->jobs[other]) ||
        view->jobs[other].partner != event->job)
        return;
    double alone = throughput_rate(view->rates, job, job->type_now, 1, false);
    if (alone > 0)
        estimate_measured(common->estimate, event->job, other, job->type_now,
                          event->rate_per_s / alone);
}

void gavel_pairs_refused(struct gavel_common *common, const struct view *view, job_id a,
                         job_id b, uint32_t column)
{
    const struct job *first = &view->jobs[a];
    double rates[2];
    uint32_t type = common->types[column];
    if (!common->estimate || first->gpus != 1 ||
        sharing_rates(view->rates, first, &view->jobs[b], type, 1, false, rates))
        return; /* there was no room */
    estimate_measured(common->estimate, a, b, type, 0);
    estimate_measured(common->estimate, b, a, type, 0);
}

/* Both rates on one type. */
static void rates_on(struct gavel_common *common, const struct view *view, job_id a,
                     job_id b, uint32_t type, double rates[2])
{
    const struct job *first = &view->jobs[a];
    const struct job *second = &view->jobs[b];
    if (!common->estimate) {
        if (sharing_is_known(view->rates, first, second, type, first->gpus))
            sharing_rates(view->rates, first, second, type, first->gpus, false, rates);
        return;
    }
    if (first->gpus != 1 || first->kind == KIND_NONE || second->kind == KIND_NONE)
        return;
    rates[0] = estimate_kept(common->estimate, a, b, type) *
               throughput_rate(view->rates, first, type, 1, false);
    rates[1] = estimate_kept(common->estimate, b, a, type) *
               throughput_rate(view->rates, second, type, 1, false);
}

bool gavel_pair_rates(struct gavel_common *common, const struct view *view, job_id a,
                      job_id b, double rates[][2])
{
    const struct node_set *first = view->jobs[a].set;
    const struct node_set *second = view->jobs[b].set;
    uint32_t types = view->jobs[a].types & view->jobs[b].types;
    bool some = false;
    if (first && second &&
        bits_next_common(&first->allowed, &second->allowed, 0) == BITS_NONE)
        types = 0; /* no node will do for both */
    for (uint32_t c = 0; c < common->type_count; c++) {
        rates[c][0] = rates[c][1] = 0;
        if (types >> common->types[c] & 1)
            rates_on(common, view, a, b, common->types[c], rates[c]);
        if (!(rates[c][0] > 0 && rates[c][1] > 0))
            rates[c][0] = rates[c][1] = 0;
        some = some || rates[c][0] > 0;
    }
    return some;
}

/* --- what there is ---------------------------------------------------------------- */

/* The published system fills these first, in this order. */
static const char *const filled_first[] = { "v100", "p100", "k80" };
#define FILLED_FIRST (sizeof filled_first / sizeof *filled_first)

static size_t fill_rank(const char *name)
{
    size_t rank = 0;
    while (rank < FILLED_FIRST && strcmp(filled_first[rank], name) != 0)
        rank++;
    return rank;
}

static void order_fill(struct gavel_common *common, const struct cluster *cluster)
{
    uint32_t count = 0;
    for (size_t rank = 0; rank <= FILLED_FIRST; rank++)
        for (uint32_t c = 0; c < common->type_count; c++)
            if (fill_rank(cluster->types[common->types[c]].name) == rank)
                common->fill[count++] = c;
    assert(count == common->type_count);
}

/* A node is up or down now; said twice it counts once. */
static void count_node(struct gavel_common *common, const struct view *view, node_id n)
{
    const struct node *node = &view->cluster->nodes[n];
    bool up = view->free->listed[n];
    if (node->gpu_count == 0 || common->up[n] == up)
        return;
    double *capacity = &common->capacity[common->column_of[node->type]];
    *capacity += up ? node->gpu_count : -(double)node->gpu_count;
    common->up[n] = up;
    common->changed = true;
}

static void list_types(struct gavel_common *common, const struct view *view,
                       bool by_name)
{
    const struct cluster *cluster = view->cluster;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        if (cluster->types[t].gpu_count == 0)
            continue;
        uint32_t c = common->type_count++;
        for (; by_name && c > 0 &&
               strcmp(cluster->types[common->types[c - 1]].name,
                      cluster->types[t].name) > 0;
             c--)
            common->types[c] = common->types[c - 1];
        common->types[c] = t;
    }
    for (uint32_t c = 0; c < common->type_count; c++)
        common->column_of[common->types[c]] = c;
}

/* --- who is there ------------------------------------------------------------------ */

/* A gang that may be spread runs at whichever pace is better. */
static double rate_on(const struct view *view, const struct job *job, uint32_t type)
{
    if (!(job->types >> type & 1))
        return 0;
    double rate_per_s = throughput_rate(view->rates, job, type, job->gpus, false);
    if (job->spread)
        rate_per_s =
            fmax(rate_per_s, throughput_rate(view->rates, job, type, job->gpus, true));
    return rate_per_s;
}

static void set_rates(struct gavel_common *common, const struct view *view, job_id id)
{
    for (uint32_t c = 0; c < common->type_count; c++)
        gavel_rates(common, id)[c] = rate_on(view, &view->jobs[id], common->types[c]);
}

void gavel_enroll(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_entry *entry = &common->entries[id];
    if (entry->ticket)
        return;
    const struct job *job = &view->jobs[id];
    entry->ticket = ++common->ticket_next;
    entry->gang = job->gpus;
    entry->weight = job->weight;
    entry->set = job->set;
    common->set_jobs += job->set != NULL;
    set_rates(common, view, id);
    common->jobs[common->job_count++] = id;
    gavel_pairs_admit(common, view, id);
}

void gavel_strike(struct gavel_common *common, job_id id)
{
    uint64_t ticket = common->entries[id].ticket;
    if (!ticket)
        return;
    uint32_t low = 0;
    uint32_t high = common->job_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (common->entries[common->jobs[middle]].ticket <= ticket)
            low = middle;
        else
            high = middle;
    }
    assert(common->jobs[low] == id);
    common->set_jobs -= common->entries[id].set != NULL;
    memmove(&common->jobs[low], &common->jobs[low + 1],
            (common->job_count - low - 1) * sizeof *common->jobs);
    common->job_count--;
    common->entries[id].ticket = 0;
}

static void observe_cpu_only(struct gavel_common *common, const struct view *view,
                             const struct event *event)
{
    if (event_makes_waiting(event, view))
        fifo_queue_add(&common->waiting_cpu_only, view, event->job);
    else if (event_ends_waiting(event, view))
        fifo_queue_remove(&common->waiting_cpu_only, event->job);
}

/* Seats for jobs that ask for no accelerator, as they fit. */
static void grant_cpu_only(struct gavel_common *common, struct plan *plan)
{
    struct fifo_queue *queue = &common->waiting_cpu_only;
    for (job_id job = queue->first; job != JOB_NONE; job = fifo_queue_next(queue, job))
        plan_grant(plan, job, NULL);
}

uint32_t gavel_column_now(const struct gavel_common *common, const struct view *view,
                          const struct job *job)
{
    if (job->next.count > 0) {
        const struct seat *seat = &view->seats[job->next.first];
        return common->column_of[view->cluster->nodes[seat->node].type];
    }
    return job_runs(job) ? common->column_of[job->type_now] : GAVEL_NONE;
}

uint32_t gavel_spare_column(const struct gavel_common *common, job_id job, uint32_t now,
                            const double *room)
{
    const double *rates = gavel_rates(common, job);
    double gang = common->entries[job].gang;
    uint32_t best = GAVEL_NONE;
    if (now != GAVEL_NONE && gang <= room[now])
        return now;
    for (uint32_t c = 0; c < common->type_count; c++)
        if (rates[c] > 0 && gang <= room[c] &&
            (best == GAVEL_NONE || rates[c] > rates[best]))
            best = c;
    return best;
}

double gavel_lead(const struct gavel_common *common, const struct view *view,
                  job_id job)
{
    const struct gavel_host *host = common->gavel->host;
    return host ? host->lead_s(host->self, view, job) * 1e9 /
                      (double)common->gavel->round_ns
                : 0;
}

bool gavel_is_spared(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    const struct gavel_host *host = common->gavel->host;
    if (!job_runs(job) || job->stays)
        return job_runs(job);
    if (host && host->spares(host->self, view, (job_id)(job - view->jobs)))
        return true;
    bool saves = job->pause_ns <= job->grace_ns ||
                 (job->ckpt_ns > 0 && 2 * job->ckpt_ns < common->gavel->round_ns);
    int64_t in_seats_ns = view->now_ns - job->since_ns;
    return !saves || in_seats_ns < 2 * job->load_ns + job->pause_ns;
}

/* --- asking the policy -------------------------------------------------------------- */

/*
 * What a job has left where its work is unknown: as much as it has done, and a round's
 * worth.
 */
static double guess_left(const struct gavel_common *common, job_id job, double done)
{
    double best = 0;
    for (uint32_t c = 0; c < common->type_count; c++)
        best = fmax(best, gavel_rates(common, job)[c]);
    return fmax(done, best * (double)common->gavel->round_ns * 1e-9);
}

/* The rates that the policy is to know. */
static void known_rates(const struct gavel_common *common, job_id job, bool unfit,
                        double *rates)
{
    const double *all = gavel_rates(common, job);
    const struct gavel_policy *gavel = common->gavel;
    enum instance_blind blind = gavel->aware ? BLIND_TRUE : gavel->rule->blind;
    double first = all[common->fill[0]];
    for (uint32_t i = 1; first <= 0 && i < common->type_count; i++)
        first = all[common->fill[i]];
    for (uint32_t c = 0; c < common->type_count; c++) {
        rates[c] = blind == BLIND_EQUAL ? 1 : blind == BLIND_FIRST ? first : all[c];
        bool fits = all[c] > 0 && common->entries[job].gang <= common->capacity[c];
        if (!fits && !unfit)
            rates[c] = 0; /* where it cannot run now, it is due nothing */
    }
}

/* Steps per second on an equal part of everything. */
static double rate_alone(const struct gavel_call *call, uint32_t at)
{
    double sum = 0;
    double rate_per_s = 0;
    for (uint32_t c = 0; c < call->type_count; c++) {
        double share = call->capacity[c] / call->total / call->gang[at];
        sum += share;
        rate_per_s += share * call->rate[(size_t)at * call->type_count + c];
    }
    return sum > 1 ? rate_per_s / sum : rate_per_s;
}

/* What was done since the policy was asked last, at the pace alone of then. */
static double count_alone(struct gavel_common *common, const struct gavel_call *call,
                          uint32_t at)
{
    struct gavel_entry *entry = &common->entries[call->jobs[at]];
    double done = call->done[at];
    if (entry->alone_rate > 0 && done > entry->alone_done)
        entry->alone_s += (done - entry->alone_done) / entry->alone_rate;
    entry->alone_done = done;
    entry->alone_rate = rate_alone(call, at);
    return entry->alone_s;
}

/* The types without what jobs hold that take no part, but for a quarter of each. */
static void count_offered(struct gavel_common *common)
{
    const struct gavel_host *host = common->gavel->host;
    for (uint32_t c = 0; c < common->type_count; c++) {
        double least = common->capacity[c] * LEFT_LEAST;
        double withheld = host ? host->withheld[common->types[c]] : 0;
        common->offered[c] = fmax(common->capacity[c] - withheld, least);
    }
}

void gavel_prepare(struct gavel_common *common, const struct view *view,
                   const struct gavel_times *times, const struct gavel_rows *rows,
                   struct arena *scratch, struct gavel_call *ret_call)
{
    uint32_t k = common->type_count;
    double *count = common->count;
    count_offered(common);
    *ret_call = (struct gavel_call){ .view = view,
                                     .job_count = rows->count,
                                     .jobs = rows->jobs,
                                     .count = count,
                                     .total = common->job_count,
                                     .type_count = k,
                                     .types = common->types,
                                     .capacity = common->offered,
                                     .type_first = common->fill[0],
                                     .gang = common->gang,
                                     .weight = common->weight,
                                     .rate = common->rate,
                                     .steps = common->steps,
                                     .done = common->done,
                                     .age_s = common->age_s,
                                     .alone_s = common->alone_s,
                                     .left_s = common->left_s,
                                     .pairs = common->pairs,
                                     .pair_rate = common->pair_rate,
                                     .x = common->x,
                                     .scratch = scratch,
                                     .common = common };
    for (uint32_t i = 0; i < rows->count; i++) {
        job_id id = rows->jobs[i];
        const struct job *job = &view->jobs[id];
        const struct gavel_entry *entry = &common->entries[id];
        count[i] = rows->members ? rows->members[i] : 1;
        bool known = job->steps_total > 0;
        double left = times->left ? times->left[id]
                                  : job->steps_total - job_steps(job, view->now_ns);
        double done = times->left && known ? job->steps_total - left
                                           : job_steps(job, view->now_ns);
        common->gang[i] = entry->gang;
        common->weight[i] = entry->weight;
        common->done[i] = done;
        common->steps[i] = known && left > 0 ? left : guess_left(common, id, done);
        common->age_s[i] = times->now_s - (double)job->submit_ns / 1e9;
        common->left_s[i] =
            job->deadline_ns ? (double)job->deadline_ns / 1e9 - times->now_s : INFINITY;
        known_rates(common, id, times->unfit, &common->rate[(size_t)i * k]);
    }
    for (uint32_t i = 0; common->gavel->rule->alone && i < rows->count; i++)
        common->alone_s[i] = count_alone(common, ret_call, i);
    memset(common->x, 0, (size_t)rows->count * k * sizeof *common->x);
}

/* --- pairs ------------------------------------------------------------------------------ */

uint32_t gavel_add_pair(struct gavel_call *call, uint32_t first, uint32_t second,
                        double rates[][2])
{
    struct gavel_common *common = call->common;
    uint32_t k = call->type_count;
    if (call->pair_count == common->pair_max)
        return UINT32_MAX;
    uint32_t at = call->pair_count++;
    common->pairs[at] = (struct programme_pair){ first, second };
    memcpy(&common->pair_rate[(size_t)at * k * 2], rates, k * sizeof *rates);
    memset(&call->x[((size_t)call->job_count + at) * k], 0, k * sizeof *call->x);
    return at;
}

static bool is_before(const struct programme_pair *pair, uint32_t first,
                      uint32_t second)
{
    return pair->second != second ? pair->second < second : pair->first < first;
}

/* Where they are listed they are in order. */
static uint32_t find_listed(const struct gavel_call *call, uint32_t first,
                            uint32_t second)
{
    uint32_t low = 0;
    uint32_t high = call->pair_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_before(&call->pairs[middle], first, second))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < call->pair_count && call->pairs[low].first == first &&
                 call->pairs[low].second == second;
    return found ? low : UINT32_MAX;
}

uint32_t gavel_pair(struct gavel_call *call, uint32_t first, uint32_t second)
{
    if (call->listed)
        return find_listed(call, first, second);
    uint32_t *last = &call->common->pair_of[first]; /* the one it was last paired in */
    if (*last < call->pair_count && call->pairs[*last].first == first &&
        call->pairs[*last].second == second)
        return *last;
    double rates[TYPES_MAX][2];
    if (!gavel_pair_rates(call->common, call->view, call->jobs[first],
                          call->jobs[second], rates))
        return UINT32_MAX;
    *last = gavel_add_pair(call, first, second, rates);
    return *last;
}

/* --- the doors ---------------------------------------------------------------------- */

static void make_room(struct gavel_common *common, const struct view *view,
                      struct arena *run)
{
    size_t max = view->job_max;
    size_t k = common->type_count;
    uint32_t pairs = common->gavel->sharing ? PAIRS_MAX : 0;
    common->jobs = arena_array(run, job_id, max);
    common->entries = arena_array(run, struct gavel_entry, max);
    common->rates = arena_array(run, double, k *max);
    common->gang = arena_array(run, double, max);
    common->count = arena_array(run, double, max);
    common->weight = arena_array(run, double, max);
    common->rate = arena_array(run, double, k *max);
    common->steps = arena_array(run, double, max);
    common->done = arena_array(run, double, max);
    common->age_s = arena_array(run, double, max);
    common->alone_s = arena_array(run, double, max);
    common->left_s = arena_array(run, double, max);
    common->pair_of = arena_array(run, uint32_t, max);
    common->pairs = arena_array(run, struct programme_pair, pairs + 1);
    common->pair_rate = arena_array(run, double, 2 * k * (pairs + 1));
    common->x = arena_array(run, double, k *(max + pairs));
    common->pair_max = pairs;
    common->up = arena_array(run, bool, view->cluster->node_count);
    fifo_queue_init(&common->waiting_cpu_only, run, view->job_max);
}

static const struct gavel_mechanism *const mechanisms[] = {
    [COMPAT_NONE] = &gavel_mechanism_rounds,
    [COMPAT_RELEASED] = &gavel_mechanism_released,
};

int gavel_init(struct gavel_policy *gavel, const struct gavel_rule *rule,
               const struct view *view, uint64_t seed, struct arena *run,
               struct error *err)
{
    const struct gavel_mechanism *mechanism = mechanisms[gavel->compat];
    if (gavel->allocations.text[0] && !mechanism->replays)
        return error_set(err, -EINVAL,
                         "recorded shares need the rounds they were recorded in: "
                         "allocations goes with compat=released");
    struct gavel_common *common = arena_new(run, struct gavel_common);
    gavel->rule = rule;
    gavel->common = common;
    common->gavel = gavel;
    common->self = gavel; /* it begins with it */
    list_types(common, view, mechanism->by_name);
    order_fill(common, view->cluster);
    make_room(common, view, run);
    for (node_id n = 0; n < view->cluster->node_count; n++)
        count_node(common, view, n);
    cost_test_init(&gavel->cost_test, view, run);
    common->seed = seed;
    int r = gavel_pairs_init(common, view, run, err);
    if (r < 0)
        return r;
    common->mechanism = mechanism;
    return mechanism->init(common, view, run, err);
}

void gavel_observe(void *self, const struct view *view, const struct event *event)
{
    struct gavel_policy *gavel = self;
    struct gavel_common *common = gavel->common;
    cost_test_observe(&gavel->cost_test, view, event);
    if (event->kind == EVENT_NODE_DOWN || event->kind == EVENT_NODE_UP)
        count_node(common, view, event->node);
    if (event->kind == EVENT_FOREIGN) {
        common->changed = true;
        gavel_look_again(gavel);
    }
    if (event->kind == EVENT_REJECTED)
        common->seen++;
    if (event->job >= view->job_max || event->kind == EVENT_REJECTED)
        return;
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        common->entries[event->job] = (struct gavel_entry){ .number = common->seen++ };
    const struct gavel_host *host = gavel->host;
    if (host && !host->takes_part(host->self, event->job)) {
        if (common->entries[event->job].ticket)
            common->mechanism->leave(common, view, event->job);
        return;
    }
    if (common->entries[event->job].ticket && event->kind == EVENT_RATED)
        set_rates(common, view, event->job);
    if (common->entries[event->job].ticket)
        gavel_pairs_observe(common, view, event);
    if (view->jobs[event->job].gpus == 0)
        observe_cpu_only(common, view, event);
    else
        common->mechanism->observe(common, view, event);
}

int gavel_decide(void *self, const struct view *view, struct plan *plan,
                 struct arena *scratch, struct error *err)
{
    struct gavel_policy *gavel = self;
    struct gavel_common *common = gavel->common;
    grant_cpu_only(common, plan);
    return common->mechanism->decide(common, view, plan, scratch, err);
}

void gavel_explain(const void *self, const struct view *view, job_id job,
                   struct reasons *reasons)
{
    const struct gavel_policy *gavel = self;
    const struct gavel_common *common = gavel->common;
    if (view->jobs[job].gpus == 0) {
        fifo_queue_ahead(&common->waiting_cpu_only, view, job, reasons);
        return;
    }
    bool said = common->mechanism->explain &&
                common->mechanism->explain(common, view, job, reasons);
    if (!said)
        reasons_add(reasons, "round", "places are given away anew every %.3g s",
                    (double)common->gavel->round_ns * 1e-9);
    cost_test_explain(&gavel->cost_test, view, job, reasons);
}

void gavel_look_again(struct gavel_policy *gavel)
{
    if (gavel->common->mechanism->room)
        gavel->common->mechanism->room(gavel->common);
}

void gavel_fini(void *self)
{
    struct gavel_policy *gavel = self;
    if (gavel->common && gavel->common->mechanism && gavel->common->mechanism->fini)
        gavel->common->mechanism->fini(gavel->common);
}
