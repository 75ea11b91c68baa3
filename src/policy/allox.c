/*
 * allox.c - waiting jobs are assigned to workers so that completion times add up to the
 * least.
 *
 *     cost of job i as the p-th from the end on worker k:  p * left_i / rate_ik + age_i
 *
 * AlloX (Le et al., EuroSys 2020), as Gavel's authors use it as a baseline: jobs that
 * hold a worker keep it to their end; waiting jobs are assigned to positions on the
 * free workers, and the first one of each worker gets it.  Jobs are of one GPU: larger
 * gangs are not assigned but take what the others leave, first come, first served.
 *
 * Where many jobs wait, they are divided between the types instead of assigned one by one
 * (solve/allox.c).  The published system assigns them all, which here has a limit.
 */
#include "policy/gavel/gavel.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "model/job.h"
#include "solve/solve.h"

/*
 * Shares are computed again only after this time, as in the published system, so that
 * several free workers are handed out together: a single one would go to the job that
 * suits it least badly, for good.  Meanwhile any job may use it.
 */
#define BATCH_S 1920.0

/*
 * Of the jobs that wait for one GPU so many are assigned, the shortest: the others would
 * be last in the queues.
 */
#define ASSIGNED_MIN 2048

#define PUBLISHED_MAX 4096 /* waiting jobs that are assigned one by one */

/* The worker that a job holds, by slot. */
struct allox_held {
    uint32_t generation; /* of the slot */
    uint32_t column;
};

struct allox_policy {
    struct gavel_policy gavel;
    struct allox_held *holds;
};

/* The waiting jobs, in arrays of their own. */
struct allox_waiting {
    uint32_t *at; /* indices in the call */
    uint32_t count;
    double *rate, *steps, *age_s, *x;
};

static void hold_worker(struct allox_policy *self, struct gavel_call *call, uint32_t at,
                        uint32_t column, double *room)
{
    job_id job = call->jobs[at];
    self->holds[job] = (struct allox_held){ call->view->jobs[job].generation, column };
    call->x[(size_t)at * call->type_count + column] = 1;
    room[column] -= call->gang[at];
}

/* A job keeps its worker, unless its type has shrunk meanwhile. */
static bool keep_worker(struct allox_policy *self, struct gavel_call *call, uint32_t at,
                        double *room)
{
    job_id job = call->jobs[at];
    struct allox_held held = self->holds[job];
    if (held.generation != call->view->jobs[job].generation ||
        call->gang[at] > room[held.column])
        return false;
    hold_worker(self, call, at, held.column, room);
    return true;
}

static void list_waiting(struct allox_waiting *waiting, const struct gavel_call *call,
                         uint32_t at)
{
    uint32_t k = call->type_count;
    uint32_t i = waiting->count++;
    waiting->at[i] = at;
    waiting->steps[i] = call->steps[at];
    waiting->age_s[i] = call->age_s[at];
    memcpy(&waiting->rate[(size_t)i * k], &call->rate[(size_t)at * k],
           k * sizeof *waiting->rate);
}

static void assign_waiting(struct allox_policy *self, struct gavel_call *call,
                           const struct allox_waiting *waiting, bool fast, double *room)
{
    uint32_t k = call->type_count;
    double free[TYPES_MAX];
    memcpy(free, room, k * sizeof *free);
    struct allox allox = { .job_count = waiting->count,
                           .type_count = k,
                           .capacity = free,
                           .rate = waiting->rate,
                           .steps = waiting->steps,
                           .age_s = waiting->age_s,
                           .fast = fast };
    shares_allox(&allox, call->scratch, waiting->x);
    for (uint32_t i = 0; i < waiting->count; i++)
        for (uint32_t c = 0; c < k; c++)
            if (waiting->x[(size_t)i * k + c] > 0)
                hold_worker(self, call, waiting->at[i], c, room);
}

/* Larger gangs get the fastest type with enough free GPUs. */
static void serve_gang(struct allox_policy *self, struct gavel_call *call, uint32_t at,
                       double *room)
{
    const double *rates = &call->rate[(size_t)at * call->type_count];
    uint32_t best = UINT32_MAX;
    for (uint32_t c = 0; c < call->type_count; c++)
        if (rates[c] > 0 && call->gang[at] <= room[c] &&
            (best == UINT32_MAX || rates[c] > rates[best]))
            best = c;
    if (best != UINT32_MAX)
        hold_worker(self, call, at, best, room);
}

/* Assign at most so many jobs that wait: with 'fast' by a short cut where they are many. */
static void assign_jobs(struct allox_policy *allox, struct gavel_call *call,
                        uint32_t most, bool fast)
{
    size_t k = call->type_count;
    double room[TYPES_MAX];
    double free = 0;
    memcpy(room, call->capacity, k * sizeof *room);
    bool *kept = arena_array(call->scratch, bool, call->job_count);
    for (uint32_t at = 0; at < call->job_count; at++)
        kept[at] = keep_worker(allox, call, at, room);
    for (uint32_t c = 0; c < k; c++)
        free += room[c];
    if (free <= 0)
        return;
    struct allox_waiting waiting = {
        .at = arena_array(call->scratch, uint32_t, most),
        .rate = arena_array(call->scratch, double, k *most),
        .steps = arena_array(call->scratch, double, most),
        .age_s = arena_array(call->scratch, double, most),
        .x = arena_array(call->scratch, double, k *most),
    };
    for (uint32_t at = 0; at < call->job_count && waiting.count < most; at++)
        if (!kept[at] && call->gang[at] == 1)
            list_waiting(&waiting, call, at);
    assign_waiting(allox, call, &waiting, fast, room);
    for (uint32_t at = 0; at < call->job_count; at++)
        if (!kept[at] && call->gang[at] > 1)
            serve_gang(allox, call, at, room);
}

static int allox_shares(void *self, struct gavel_call *call, struct error *err)
{
    assign_jobs(self, call, call->job_count, /* fast= */ true);
    return 0;
}

static int allox_published(void *self, struct gavel_call *call, struct error *err)
{
    bool many = call->job_count > PUBLISHED_MAX;
    assign_jobs(self, call, many ? PUBLISHED_MAX : call->job_count, /* fast= */ false);
    return 0;
}

/* Of one GPU the shortest first, larger gangs as they came. */
static double allox_key(const struct gavel_call *call, uint32_t at)
{
    double best = 0;
    if (call->gang[at] > 1)
        return (double)call->view->jobs[call->jobs[at]].submit_ns * 1e-9;
    for (uint32_t c = 0; c < call->type_count; c++)
        best = fmax(best, call->rate[(size_t)at * call->type_count + c]);
    return best > 0 ? call->steps[at] / best : INFINITY;
}

static const struct gavel_rule allox_rule = { .shares = allox_shares,
                                              .published = allox_published,
                                              .key = allox_key,
                                              .waiting_min = ASSIGNED_MIN,
                                              .blind = BLIND_TRUE,
                                              .patience_s = BATCH_S };

static int allox_init(void *self, const struct view *view, uint64_t seed,
                      struct arena *run, struct error *err)
{
    struct allox_policy *allox = self;
    allox->gavel.aware = true;
    allox->holds = arena_array(run, struct allox_held, view->job_max);
    return gavel_init(self, &allox_rule, view, seed, run, err);
}

static const struct instance_rule allox_instance = {
    .method = INSTANCE_ALLOX,
    .blind = BLIND_TRUE,
};

const struct policy policy_allox = {
    .name = "allox",
    .brief = "those who wait assigned to the least sum of completion times",
    .source = "Le et al., AlloX, EuroSys 2020; Gavel's baseline",
    .params = gavel_params,
    .self_size = sizeof(struct allox_policy),
    .instance = &allox_instance,
    .init = allox_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
