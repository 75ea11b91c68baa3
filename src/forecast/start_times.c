/* start_times.c - quantiles over many possible futures. */
#include "forecast/start_times.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/sort.h"
#include "engine/engine.h"
#include "forecast/arrivals.h"
#include "forecast/replicate.h"
#include "predict/run_times.h"

/* Live at once, of jobs that are yet to be submitted: so many, and as many again as there are. */
#define MORE_JOBS 512

const double quantile_levels[QUANTILE_COUNT] = { 0.1, 0.5, 0.9 };

struct forecast_pass {
    const struct start_setup *setup;
    const struct engine *engine;
    struct replicate replicate;
    struct run_sampler sampler;
    struct arrival_stream stream;
    struct arena arena, future; /* of the pass, and of one replicate */
    job_id *live;               /* in order of their ids             */
    uint32_t live_count;
    uint32_t *lists; /* by slot */
    double *works;   /* by slot: steps, in this replicate */
    bool unknown;    /* of some job nothing is known      */
    struct replicate_release *releases;
    uint32_t release_count;
    bool *is_released; /* by slot */
};

/* --- what is drawn ------------------------------------------------------------------ */

static double steps_of(const struct job *job, double work_s)
{
    return work_s * (job->rate_best_per_s > 0 ? job->rate_best_per_s : 1);
}

/* Jobs in the order of their ids: those submitted together get run times that follow each other. */
static void draw_works(struct forecast_pass *pass)
{
    const struct view *view = &pass->engine->state.view;
    for (uint32_t i = 0; i < pass->live_count; i++) {
        const struct job *job = &view->jobs[pass->live[i]];
        double done_s = run_times_work_s(job, job_steps(job, view->now_ns));
        pass->works[pass->live[i]] =
            steps_of(job, run_sampler_draw(&pass->sampler, pass->lists[pass->live[i]],
                                           job, done_s));
    }
}

static void tell_truth(void *context, const struct view *view, job_id id,
                       struct sim_truth *ret_truth)
{
    struct forecast_pass *pass = context;
    const struct job *job = &view->jobs[id];
    if (job->id < pass->engine->state.id_next) {
        ret_truth->steps = pass->works[id];
        return;
    }
    uint32_t list = run_sampler_enter(&pass->sampler, job);
    ret_truth->steps = steps_of(job, run_sampler_draw(&pass->sampler, list, job, 0));
}

static const struct job *next_arrival(void *context)
{
    struct forecast_pass *pass = context;
    uint32_t without = pass->setup->without_user;
    const struct job *job = arrival_stream_next(&pass->stream);
    for (uint32_t left = ARRIVALS_MAX; without && left && job && job->user == without;
         left--)
        job = arrival_stream_next(&pass->stream);
    return without && job && job->user == without ? NULL : job;
}

static void begin_futures(struct forecast_pass *pass, uint64_t seed)
{
    const struct state *state = &pass->engine->state;
    static const struct arrivals none;
    arena_reset(&pass->future);
    run_sampler_begin(&pass->sampler, seed);
    arrival_stream_begin(&pass->stream,
                         pass->setup->arrivals ? pass->setup->arrivals : &none,
                         &pass->future, state->view.now_ns, state->id_next, seed);
    draw_works(pass);
}

/* --- setting up ---------------------------------------------------------------------- */

static void list_live(struct forecast_pass *pass)
{
    const struct state *state = &pass->engine->state;
    uint32_t live = state->live_count;
    struct sort_item *items = arena_array(&pass->arena, struct sort_item, 2 * live + 1);
    uint32_t count = 0;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            items[count++] = (struct sort_item){ (double)state->jobs[id].id, id };
    sort_items(items, items + live, count);
    pass->live = arena_array(&pass->arena, job_id, live + 1);
    pass->live_count = count;
    pass->lists = arena_array(&pass->arena, uint32_t, state->job_count + 1);
    pass->works = arena_array(&pass->arena, double, state->job_count + 1);
    for (uint32_t i = 0; i < count; i++) {
        job_id id = items[i].value;
        pass->live[i] = id;
        pass->lists[id] = run_sampler_enter(&pass->sampler, &state->jobs[id]);
        pass->unknown = pass->unknown || pass->lists[id] == RUN_TIMES_NONE;
    }
}

/* Those of the releases of live jobs that are held. */
static void list_releases(struct forecast_pass *pass)
{
    const struct start_releases *from = pass->setup->releases;
    const struct state *state = &pass->engine->state;
    pass->is_released = arena_array(&pass->arena, bool, state->job_count + 1);
    if (!from || from->count == 0)
        return;
    pass->releases = arena_array(&pass->arena, struct replicate_release, from->count);
    for (uint32_t i = 0; i < from->count; i++) {
        const struct start_release *release = &from->list[i];
        job_id id = state_find(state, release->id);
        if (id == JOB_NONE || state->jobs[id].state != JOB_HELD)
            continue;
        job_id *after = arena_array(&pass->arena, job_id, release->count + 1);
        uint32_t count = 0;
        for (uint32_t k = 0; k < release->count; k++) {
            after[count] = state_find(state, from->after[release->first + k]);
            count += after[count] != JOB_NONE;
        }
        pass->is_released[id] = true;
        pass->releases[pass->release_count++] = (struct replicate_release){
            .job = id, .at_ns = release->at_ns, .after = after, .after_count = count
        };
    }
}

/* The jobs asked for, in order of their ids. */
static uint32_t list_asked(const struct forecast_pass *pass, const job_id *of,
                           uint32_t of_count, struct job_times *jobs)
{
    const struct state *state = &pass->engine->state;
    uint32_t count = 0;
    for (uint32_t i = 0; i < (of_count ? of_count : pass->live_count); i++) {
        job_id id = of_count ? of[i] : pass->live[i];
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE ||
            (job->state == JOB_HELD && !pass->is_released[id]) ||
            (pass->setup->starts_only && job_holds_seats(job)))
            continue;
        const struct run_list *list = &pass->sampler.lists[pass->lists[id]];
        jobs[count++] = (struct job_times){ .id = job->id,
                                            .slot = id,
                                            .waits = job->state == JOB_WAITING ||
                                                     job->state == JOB_HELD,
                                            .basis = run_list_basis(list),
                                            .basis_count = list->count };
    }
    return count;
}

/* --- quantiles ----------------------------------------------------------------------- */

int64_t start_times_quantile(const int64_t *sorted, uint32_t count, double level)
{
    double rank = level * (count + 1) - 1; /* of the first value 0 */
    uint32_t below = rank <= 0 ? 0 : (uint32_t)rank;
    if (count == 0)
        return TIME_LATER;
    if (rank >= count - 1)
        return sorted[count - 1];
    if (rank <= 0)
        return sorted[0];
    if (sorted[below + 1] == TIME_LATER)
        return sorted[below] == TIME_LATER || rank > below ? TIME_LATER : sorted[below];
    double part = rank - below;
    return sorted[below] +
           (int64_t)(part * (double)(sorted[below + 1] - sorted[below]));
}

static int compare_times(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a;
    int64_t second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Quantiles of one job's values, and the share of those beyond the horizon. */
static double summarise(int64_t *values, uint32_t count, int64_t horizon_ns,
                        int64_t ret_ns[QUANTILE_COUNT])
{
    uint32_t later = 0;
    for (uint32_t i = 0; i < count; i++)
        if (values[i] > horizon_ns) {
            values[i] = TIME_LATER;
            later++;
        }
    qsort(values, count, sizeof *values, compare_times);
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
        ret_ns[q] = start_times_quantile(values, count, quantile_levels[q]);
    return (double)later / count;
}

/* --- the pass ------------------------------------------------------------------------ */

static void await_jobs(struct forecast_pass *pass, const struct start_times *times)
{
    replicate_await_none(&pass->replicate);
    for (uint32_t i = 0; i < times->count; i++)
        replicate_await(&pass->replicate, times->jobs[i].slot);
}

/* All replicates: starts[job * replicates + replicate]. */
static int play_all(struct forecast_pass *pass, struct start_times *times,
                    int64_t *starts, int64_t *ends, struct error *err)
{
    uint32_t count = times->replicates;
    uint64_t event_max = pass->setup->event_max ? pass->setup->event_max : START_EVENTS;
    for (uint32_t k = 0; k < count; k++) {
        uint64_t seed = hash_mix(pass->setup->seed * 1000003 + k);
        begin_futures(pass, seed);
        int r = replicate_begin(&pass->replicate, seed, err);
        if (r < 0)
            return r;
        await_jobs(pass, times);
        r = replicate_play(&pass->replicate, times->horizon_ns, event_max / count, err);
        if (r < 0)
            return r;
        if (pass->setup->figures)
            pass->setup->figures[k] = pass->replicate.figures;
        if ((pass->replicate.awaited_count > 0 || pass->setup->figures) &&
            pass->replicate.now_ns < times->horizon_ns)
            times->horizon_ns = pass->replicate.now_ns;
        times->event_count += pass->replicate.event_count;
        for (uint32_t i = 0; i < times->count; i++) {
            starts[(size_t)i * count + k] = pass->replicate.starts[times->jobs[i].slot];
            ends[(size_t)i * count + k] = pass->replicate.ends[times->jobs[i].slot];
        }
    }
    return 0;
}

static int forecast_jobs(struct forecast_pass *pass, struct start_times *times,
                         struct error *err)
{
    uint32_t count = times->replicates;
    struct replicate_setup setup = { .settings = pass->setup->settings,
                                     .more_jobs = pass->setup->arrivals
                                                      ? MORE_JOBS + pass->live_count
                                                      : 0,
                                     .starts_only = pass->setup->starts_only,
                                     .cancelled = pass->setup->cancelled,
                                     .to_horizon = pass->setup->figures != NULL,
                                     .releases = pass->releases,
                                     .release_count = pass->release_count,
                                     .truth = tell_truth,
                                     .arrival = next_arrival,
                                     .context = pass };
    int64_t *starts =
        arena_array(&pass->arena, int64_t, (size_t)times->count * count + 1);
    int64_t *ends =
        arena_array(&pass->arena, int64_t, (size_t)times->count * count + 1);
    int r = replicate_init(&pass->replicate, pass->engine, &setup, err);
    if (r == 0)
        r = play_all(pass, times, starts, ends, err);
    replicate_release(&pass->replicate);
    for (uint32_t i = 0; i < times->count && r == 0; i++) {
        struct job_times *job = &times->jobs[i];
        job->starts_later = summarise(&starts[(size_t)i * count], count,
                                      times->horizon_ns, job->start_ns);
        if (pass->setup->starts_only)
            continue;
        job->ends_later =
            summarise(&ends[(size_t)i * count], count, times->horizon_ns, job->end_ns);
    }
    return r;
}

int start_times_make(const struct start_setup *setup, const struct engine *engine,
                     const job_id *of, uint32_t of_count, struct start_times *ret_times,
                     struct error *err)
{
    struct forecast_pass pass = { .setup = setup, .engine = engine };
    int64_t now_ns = engine->state.view.now_ns;
    uint32_t replicates = setup->replicates ? setup->replicates : START_REPLICATES;
    *ret_times = (struct start_times){ .made_ns = now_ns,
                                       .horizon_ns = now_ns + setup->horizon_ns,
                                       .replicates = replicates };
    assert(replicates <= START_REPLICATES);
    arena_init(&pass.arena, 0);
    arena_init(&pass.future, 0);
    run_sampler_init(&pass.sampler, setup->times, &pass.arena);
    pass.sampler.sizes_only = setup->sizes_only;
    list_live(&pass);
    list_releases(&pass);
    int r = 0;
    if (!pass.unknown && (pass.live_count > 0 || setup->figures)) {
        uint32_t most = of_count ? of_count : pass.live_count;
        ret_times->jobs = memory_checked(calloc(most + 1, sizeof *ret_times->jobs));
        if (!setup->figures)
            ret_times->count = list_asked(&pass, of, of_count, ret_times->jobs);
        if (ret_times->count > 0 || setup->figures)
            r = forecast_jobs(&pass, ret_times, err);
    }
    if (r < 0)
        start_times_release(ret_times);
    run_sampler_release(&pass.sampler);
    arena_release(&pass.future);
    arena_release(&pass.arena);
    return r;
}

void start_times_release(struct start_times *times)
{
    free(times->jobs);
    times->jobs = NULL;
    times->count = 0;
}
