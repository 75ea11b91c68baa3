/* state_rates.c - what the state learns of rates from reports of progress. */
#include "model/state_rates.h"

#include <math.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "model/state.h"
#include "model/throughput.h"

#define INTERVAL_NS 20000000 /* shorter ones are joined to the next                  */
#define OWN_MEMORY 16        /* intervals a job's own mean reaches back               */
#define OWN_LEAST 3          /* intervals until a job can have a pace of its own      */
#define PACE_LEAST 0.2       /* of ln: a smaller difference to its kind is none       */
#define PACE_UNUSUAL 1.5     /* times the interval of its kind                        */
#define SENT_INTERVAL_NS 30000000000 /* traffic comes in bursts                       */
#define BUSY_PART 0.25  /* of a kind's busy time that is of the newest job       */
#define BUSY_NOTED 0.05 /* change of it that is passed on                        */
#define PACE_STEP 0.1   /* paces of jobs are so far apart at least               */

static void init_rates(struct rate_table *rates, struct arena *run,
                       const struct cluster *cluster)
{
    *rates = (struct rate_table){ .cluster = cluster,
                                  .kind_max = RATE_KINDS_MAX,
                                  .cell_free = RATE_CELL_NONE };
    for (uint32_t t = 0; t < cluster->type_count; t++)
        rates->typical[t] = cluster->types[t].speed;
    rates->kinds = arena_array(run, struct rate_kind, RATE_KINDS_MAX);
    rates->cells = arena_array(run, struct rate_cell, RATE_CELLS_MAX);
    rates->stale = arena_array(run, uint32_t, RATE_KINDS_MAX);
}

void state_learn(struct state *state, struct arena *run)
{
    state->learns = true;
    init_rates(&state->rates, run, state->view.cluster);
    state->throughput = *state->view.rates;
    state->throughput.learned = &state->rates;
    pair_table_init(&state->pairs, run);
    state->throughput.beside = &state->pairs;
    state->view.rates = &state->throughput;
    state->tracks = arena_array(run, struct rate_track, state->job_max);
    state->rated = arena_array(run, job_id, state->job_max);
    state->is_rated = arena_array(run, bool, state->job_max);
}

static void mark_rated(struct state *state, job_id id)
{
    if (state->is_rated[id])
        return;
    state->is_rated[id] = true;
    state->rated[state->rated_count++] = id;
}

/* Compare the job with its kind. */
static void set_pace(struct state *state, job_id id, const struct rate_place *place)
{
    const struct rate_track *track = &state->tracks[id];
    struct job *job = &state->jobs[id];
    struct rate_figure kind =
        rate_table_figure(&state->rates, job->learned - 1, *place);
    if (track->own_count < OWN_LEAST || kind.basis != RATE_MEASURED)
        return;
    double ln = track->own - log(kind.rate);
    double deviation = log(kind.high / kind.rate);
    double least = fmax(PACE_LEAST, PACE_UNUSUAL * deviation);
    double pace = fabs(ln) > least ? exp(round(ln / PACE_STEP) * PACE_STEP) : 1;
    if (fabs(log(pace / job->pace)) <= PACE_STEP / 2)
        return;
    job->pace = pace;
    mark_rated(state, id);
}

/* The rate of an interval that has ended. */
static void learn_interval(struct state *state, job_id id, double per_s, bool brief)
{
    struct job *job = &state->jobs[id];
    struct rate_track *track = &state->tracks[id];
    struct rate_place place = { job->type_now, job->gpus_now, job->spread_now };
    const struct rate_kind *kind = &state->rates.kinds[job->learned - 1];
    uint32_t steady = kind->steady;
    rate_table_measure(&state->rates, job->learned - 1, place,
                       per_s * exp(-track->base), state->view.now_ns, brief);
    if (kind->steady != steady) /* from now on it may share there */
        state_mark_kind(state, job->learned - 1);
    if (brief)
        return;
    track->own_count++;
    double part = 1.0 / (track->own_count < OWN_MEMORY ? track->own_count : OWN_MEMORY);
    track->own += part * (log(per_s) - track->own);
    set_pace(state, id, &place);
}

/* Jobs of both kinds are expected to share as these two do. */
static void mark_pair(struct state *state, const struct job *a, const struct job *b)
{
    state_mark_kind(state, a->learned - 1);
    if (b->learned && b->learned != a->learned)
        state_mark_kind(state, b->learned - 1);
}

/* An interval beside another job has ended: what part it made of its steps alone. */
static void learn_beside(struct state *state, job_id id, job_id other, double per_s)
{
    const struct job *job = &state->jobs[id];
    const struct job *beside = &state->jobs[other];
    struct rate_place place = { job->type_now, job->gpus_now, job->spread_now };
    struct rate_figure alone =
        rate_table_figure(&state->rates, job->learned - 1, place);
    bool steady = state->rates.kinds[job->learned - 1].steady >> job->type_now & 1;
    if (!beside->learned || !steady || alone.basis != RATE_MEASURED ||
        !(alone.rate > 0))
        return;
    if (pair_table_measure(&state->pairs, state->rates.kinds[job->learned - 1].hash,
                           state->rates.kinds[beside->learned - 1].hash, job->type_now,
                           per_s / (alone.rate * job->pace)))
        mark_pair(state, job, beside);
}

/* The job beside it, if both make steps; JOB_NONE: it has its GPUs alone. */
static job_id runs_beside(const struct state *state, job_id id)
{
    job_id other = state->jobs[id].partner;
    bool both = other != JOB_NONE && state->jobs[other].partner == id &&
                state->jobs[other].state == JOB_RUNNING;
    return both ? other : JOB_NONE;
}

bool state_learn_report(struct state *state, job_id id, double steps, int64_t made_ns)
{
    const struct job *job = &state->jobs[id];
    if (!state->learns || !job->learned)
        return false;
    struct rate_track *track = &state->tracks[id];
    job_id other = runs_beside(state, id);
    uint64_t beside = other == JOB_NONE ? 0 : state->jobs[other].id;
    if (track->beside != beside || job->type_now == TYPE_NONE ||
        (job->partner != JOB_NONE && other == JOB_NONE)) {
        track->reports = 0; /* an interval is all alone, or all beside the same job */
        track->beside = beside;
        if (job->type_now == TYPE_NONE || job->partner != JOB_NONE)
            return true;
    }
    if (track->reports == 0 || steps < track->last_steps) {
        track->reports = 1;
    } else {
        int64_t took_ns = made_ns - track->last_ns;
        if (took_ns < INTERVAL_NS || !(steps > track->last_steps))
            return true;
        double per_s = (steps - track->last_steps) / ((double)took_ns * 1e-9);
        if (other == JOB_NONE)
            learn_interval(state, id, per_s, track->reports == 1);
        else if (track->reports > 1)
            learn_beside(state, id, other, per_s);
        track->reports++;
    }
    track->last_ns = made_ns;
    track->last_steps = steps;
    return true;
}

/*
 * In data-parallel training every step sends as many bytes.  Within a node they do not pass
 * the network, and the first interval holds the start.
 */
void state_learn_sent(struct state *state, job_id id, const struct event *event)
{
    const struct job *job = &state->jobs[id];
    if (!state->learns || !job->learned || job->state != JOB_RUNNING ||
        job->type_now == TYPE_NONE || job->seats.count < 2 || job->partner != JOB_NONE)
        return;
    struct rate_track *track = &state->tracks[id];
    int64_t took_ns = state->view.now_ns - track->sent_ns;
    double bytes = event->sent_bytes - track->sent_bytes;
    if (track->reports > 0 || (track->sent_ns > 0 && took_ns < SENT_INTERVAL_NS))
        return;
    if (track->sent_ns > 0 && bytes > 0 && event->sends_per_s > 0 &&
        track->sent_count++ > 0) {
        struct rate_place place = { job->type_now, job->gpus_now, job->spread_now };
        if (rate_table_count_sent(&state->rates, job->learned - 1, place,
                                  bytes / ((double)took_ns * 1e-9), state->view.now_ns))
            state_mark_kind(state, job->learned - 1);
    }
    track->sent_ns = state->view.now_ns;
    track->sent_bytes = event->sent_bytes;
}

void state_learn_gpu_use(struct state *state, job_id id, const struct event *event)
{
    const struct job *job = &state->jobs[id];
    if (!state->learns || !job->learned || job->type_now == TYPE_NONE)
        return;
    struct rate_kind *kind = &state->rates.kinds[job->learned - 1];
    if (event->gpu_mib > kind->gpu_mib)
        kind->gpu_mib = event->gpu_mib;
    if (!(event->gpu_busy > 0 && event->gpu_busy <= 1))
        return;
    float *busy = &kind->busy[job->type_now];
    double now =
        *busy > 0 ? *busy + BUSY_PART * (event->gpu_busy - *busy) : event->gpu_busy;
    bool changed = fabs(now - *busy) > BUSY_NOTED;
    *busy = (float)now;
    if (changed)
        state_mark_kind(state, job->learned - 1);
}

bool state_knows_rate(const struct state *state, job_id id)
{
    const struct job *job = &state->jobs[id];
    return job->paced || (state->learns && job->learned &&
                          state->rates.kinds[job->learned - 1].gpus > 0);
}

void state_rate_jobs(struct state *state, state_rated *rated, void *context)
{
    for (uint32_t i = 0; i < state->rated_count; i++) {
        job_id id = state->rated[i];
        struct job *job = &state->jobs[id];
        state->is_rated[id] = false;
        if (job->state == JOB_FREE || !job->learned || job->gpus == 0)
            continue;
        job->rate_best_per_s = throughput_best(state->view.rates, job, &job->type_best);
        rated(context, id);
    }
    state->rated_count = 0;
}

void state_mark_kind(struct state *state, uint32_t kind)
{
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE && state->jobs[id].learned == kind + 1)
            mark_rated(state, id);
}
