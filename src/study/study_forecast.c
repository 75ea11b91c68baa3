/*
 * study_forecast.c - forecasts of starts and ends, compared with what happened.
 *
 * While a workload is simulated, some of the jobs are forecast after the step in which they were
 * submitted, from what had happened by then: when each will end, and when those will start that
 * still wait.  Beside it stands the naive baseline: the waits of the last jobs of this size that had
 * to wait, and the times to completion of the last jobs of this size.  Both are set right by how their own earlier forecasts turned out, and a forecast
 * counts once both are.
 *
 *     coverage      share of the jobs between p10 and p90; 80 % is right
 *     pinball loss  mean over p10, p50 and p90 of the asymmetric distance between the quantile and
 *                   what happened, on the scale of log(seconds + 60 s); a ratio below 1 is better
 *                   than the baseline
 *
 * 'sizes' are forecasts that look at no name, user or declared work; the policy knows what it knows
 * in both.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "forecast/arrivals.h"
#include "forecast/start_times.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "predict/calibration.h"
#include "predict/run_times.h"
#include "study/reproduction.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))
#define FORECASTS_MAX 1024 /* of one run */
#define HORIZON_S (4 * 86400.0)
#define LAST_WAITS 100
#define SIZES_MAX 129
#define WARM_JOBS 100 /* submitted before the first forecast */
#define BUCKETS 4
#define FIRST_SEED 201

enum method { METHOD_NAIVE, METHOD_SIZES, METHOD_NAMES, METHOD_COUNT };
enum forecast_target { TARGET_START, TARGET_END, TARGET_COUNT };

static const char *const policies[] = { "fifo", "fifo-backfill", "las",
                                        "srtf", "xion",          "berth" };
#define POLICY_COUNT 6
#define FIRST_PREEMPTIVE 2

static const char *const target_names[] = { "start", "end" };
static const char *const bucket_names[BUCKETS] = { "10m", "1h", "4h", "24h" };
static const double buckets_s[BUCKETS] = { 600, 3600, 14400, 86400 };

/* Pinball loss beside the baseline's, at most: with names and estimates, and with sizes only. */
static double pinball_target(uint32_t policy, enum forecast_target target,
                             enum method method)
{
    bool preempts = policy >= FIRST_PREEMPTIVE;
    if (target == TARGET_START && !preempts)
        return method == METHOD_SIZES || policy == 0 ? 0.80 : 0.60;
    return target == TARGET_END && preempts ? 0.90 : 1.0;
}

/* --- one run ------------------------------------------------------------------------ */

/* The last times of jobs of one size. */
struct last_waits {
    double waits_s[LAST_WAITS];
    uint32_t count;
};

struct forecast_record {
    int64_t made_ns;
    double waits_s[METHOD_COUNT][TARGET_COUNT][QUANTILE_COUNT]; /* as corrected */
    double raw_s[METHOD_COUNT][TARGET_COUNT][QUANTILE_COUNT];   /* as forecast  */
    bool corrected[METHOD_COUNT][TARGET_COUNT];
    uint64_t numbers[METHOD_COUNT][TARGET_COUNT]; /* in the calibrations */
    bool asked[TARGET_COUNT]; /* the start only of a job that waits */
    double happened_s[TARGET_COUNT];
    bool is_over[TARGET_COUNT];
};

struct forecast_run {
    uint64_t seed;
    uint64_t id_last; /* later jobs are not forecast; 0: all are */
    uint64_t every;   /* of one in so many jobs the end is forecast */
    struct run_times times;
    struct arrivals arrivals;
    struct calibration calibrations[METHOD_COUNT][TARGET_COUNT];
    struct last_waits last[TARGET_COUNT][SIZES_MAX];
    struct forecast_record records[FORECASTS_MAX];
    uint32_t record_count;
    struct map by_id; /* records of jobs that have not ended */
    job_id *fresh;    /* submitted in this step              */
    uint64_t *fresh_ids;
    uint32_t fresh_count, fresh_room;
    struct map delayed; /* jobs that had to wait */
    int status;
    struct error err;
};

static uint32_t size_of(const struct job *job)
{
    return job->gpus < SIZES_MAX ? job->gpus : SIZES_MAX - 1;
}

static void add_last(struct forecast_run *run, const struct job *job,
                     enum forecast_target target, int64_t now_ns)
{
    struct last_waits *last = &run->last[target][size_of(job)];
    last->waits_s[last->count++ % LAST_WAITS] =
        (double)(now_ns - job->submit_ns) * 1e-9;
}

static void resolve(struct forecast_run *run, uint64_t id, enum forecast_target target,
                    int64_t now_ns)
{
    uint32_t at = map_find(&run->by_id, id);
    if (at == MAP_NONE || run->records[at].is_over[target] ||
        !run->records[at].asked[target])
        return;
    struct forecast_record *record = &run->records[at];
    record->is_over[target] = true;
    record->happened_s[target] = (double)(now_ns - record->made_ns) * 1e-9;
    for (uint32_t m = 0; m < METHOD_COUNT; m++)
        calibration_resolve(&run->calibrations[m][target], record->numbers[m][target],
                            now_ns);
}

static void note_submitted(struct forecast_run *run, job_id id, const struct job *job)
{
    arrivals_add(&run->arrivals, job);
    if (run->fresh_count == run->fresh_room) {
        run->fresh_room = run->fresh_room ? 2 * run->fresh_room : 64;
        run->fresh =
            memory_checked(realloc(run->fresh, run->fresh_room * sizeof *run->fresh));
        run->fresh_ids = memory_checked(
            realloc(run->fresh_ids, run->fresh_room * sizeof *run->fresh_ids));
    }
    run->fresh[run->fresh_count] = id;
    run->fresh_ids[run->fresh_count++] = job->id;
}

/* An observer: history, and outcomes of forecasts. */
static void note_event(void *self, const struct view *view, const struct event *event)
{
    struct forecast_run *run = self;
    const struct job *job = &view->jobs[event->job];
    bool delayed =
        event->kind != EVENT_SUBMITTED && map_find(&run->delayed, job->id) != MAP_NONE;
    if (event->kind == EVENT_SUBMITTED) {
        note_submitted(run, event->job, job);
    } else if (event->kind == EVENT_STARTED) {
        if (delayed && job->first_start_ns == event->at_ns)
            add_last(run, job, TARGET_START, event->at_ns);
        resolve(run, job->id, TARGET_START, event->at_ns);
    } else {
        run_times_add(&run->times, job, run_times_work_s(job, event->steps));
        add_last(run, job, TARGET_END, event->at_ns);
        resolve(run, job->id, TARGET_END, event->at_ns);
        map_remove(&run->by_id, job->id);
        map_remove(&run->delayed, job->id);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    double first = *(const double *)a;
    double second = *(const double *)b;
    return (first > second) - (first < second);
}

static bool forecast_naively(const struct forecast_run *run, const struct job *job,
                             enum forecast_target target,
                             double waits_s[QUANTILE_COUNT])
{
    const struct last_waits *last = &run->last[target][size_of(job)];
    uint32_t count = last->count < LAST_WAITS ? last->count : LAST_WAITS;
    double sorted[LAST_WAITS];
    if (count < RUN_TIMES_ENOUGH)
        return false;
    memcpy(sorted, last->waits_s, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_numbers);
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++) {
        double rank = fmin(fmax(quantile_levels[q] * (count + 1) - 1, 0), count - 1);
        uint32_t below = (uint32_t)rank;
        uint32_t above = below + 1 < count ? below + 1 : below;
        waits_s[q] = sorted[below] + (rank - below) * (sorted[above] - sorted[below]);
    }
    return true;
}

static void set_waits(double waits_s[QUANTILE_COUNT],
                      const int64_t times_ns[QUANTILE_COUNT], int64_t made_ns)
{
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
        waits_s[q] = times_ns[q] == TIME_LATER ? HORIZON_S
                                               : (double)(times_ns[q] - made_ns) * 1e-9;
}

/* By playing forward; false: nothing can be said. */
static bool forecast_forward(struct forecast_run *run, const struct engine *engine,
                             job_id id, bool sizes_only, bool ends,
                             double waits_s[TARGET_COUNT][QUANTILE_COUNT])
{
    struct start_times times;
    struct start_setup setup = { .times = &run->times,
                                 .arrivals = &run->arrivals,
                                 .horizon_ns = (int64_t)(HORIZON_S * 1e9),
                                 .sizes_only = sizes_only,
                                 .starts_only = !ends,
                                 .seed = run->seed * 1000003 + run->record_count };
    run->status = start_times_make(&setup, engine, &id, 1, &times, &run->err);
    if (run->status < 0)
        return false;
    bool any = times.count == 1;
    if (any) {
        set_waits(waits_s[TARGET_START], times.jobs[0].start_ns, times.made_ns);
        set_waits(waits_s[TARGET_END], times.jobs[0].end_ns, times.made_ns);
    }
    start_times_release(&times);
    return any;
}

/* Forecast a job by all methods; keep it if each has something to say. */
static void forecast_job(struct forecast_run *run, const struct engine *engine,
                         job_id id, bool ends)
{
    const struct job *job = &engine->state.jobs[id];
    struct forecast_record *record = &run->records[run->record_count];
    int64_t now_ns = engine->state.view.now_ns;
    *record = (struct forecast_record){ .made_ns = now_ns,
                                        .asked = { job->state == JOB_WAITING, ends } };
    bool any = true;
    for (uint32_t t = 0; t < TARGET_COUNT; t++)
        any = any && (!record->asked[t] ||
                      forecast_naively(run, job, t, record->waits_s[METHOD_NAIVE][t]));
    any =
        any &&
        forecast_forward(run, engine, id, true, ends, record->waits_s[METHOD_SIZES]) &&
        forecast_forward(run, engine, id, false, ends, record->waits_s[METHOD_NAMES]);
    if (!any)
        return;
    for (uint32_t m = 0; m < METHOD_COUNT; m++)
        for (uint32_t t = 0; t < TARGET_COUNT; t++) {
            if (!record->asked[t])
                continue;
            struct calibration *calibration = &run->calibrations[m][t];
            double *raw_s = record->raw_s[m][t];
            memcpy(raw_s, record->waits_s[m][t], sizeof record->raw_s[m][t]);
            record->corrected[m][t] =
                calibration_correct(calibration, now_ns, record->waits_s[m][t]);
            record->numbers[m][t] = calibration_add(calibration, now_ns, raw_s);
        }
    map_put(&run->by_id, job->id, run->record_count++);
}

/* After each step of the simulation: forecast some of the jobs that were submitted in it. */
static void stepped(void *context, const struct engine *engine)
{
    struct forecast_run *run = context;
    for (uint32_t i = 0; i < run->fresh_count; i++) {
        const struct job *job = &engine->state.jobs[run->fresh[i]];
        if (job->id != run->fresh_ids[i] || job->state == JOB_FREE)
            continue;
        if (job->state == JOB_WAITING)
            map_put(&run->delayed, job->id, 0);
        uint64_t draw = hash_mix(job->id + 77);
        bool ends = draw % run->every == 0;
        bool starts = job->state == JOB_WAITING && draw % (run->every / 4) == 0;
        if (run->arrivals.count > WARM_JOBS && run->record_count < FORECASTS_MAX &&
            (run->id_last == 0 || job->id <= run->id_last) && run->status == 0 &&
            (starts || ends))
            forecast_job(run, engine, run->fresh[i], ends);
    }
    run->fresh_count = 0;
}

static struct forecast_run *new_run(uint64_t seed, uint64_t every)
{
    struct forecast_run *run = memory_checked(calloc(1, sizeof *run));
    run->seed = seed;
    run->every = every;
    run_times_init(&run->times);
    return run;
}

static void release_run(struct forecast_run *run)
{
    run_times_release(&run->times);
    arrivals_release(&run->arrivals);
    map_release(&run->by_id);
    map_release(&run->delayed);
    free(run->fresh);
    free(run->fresh_ids);
    free(run);
}

/* --- figures ------------------------------------------------------------------------ */

/* It counts: it has happened, and all methods were set right. */
static bool counts(const struct forecast_record *record, enum forecast_target target)
{
    bool all = record->asked[target] && record->is_over[target];
    for (uint32_t m = 0; m < METHOD_COUNT; m++)
        all = all && record->corrected[m][target];
    return all;
}

static double pinball(const double waits_s[QUANTILE_COUNT], double happened_s)
{
    double sum = 0;
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++) {
        double error = calibration_log(happened_s) - calibration_log(waits_s[q]);
        sum +=
            error > 0 ? quantile_levels[q] * error : (quantile_levels[q] - 1) * error;
    }
    return sum / QUANTILE_COUNT;
}

struct method_score {
    uint32_t count;
    double coverage, raw_coverage, pinball;
    uint32_t bucket_counts[BUCKETS];
    double bucket_coverage[BUCKETS];
};

static uint32_t bucket_of(double wait_s)
{
    uint32_t bucket = 0;
    while (bucket < BUCKETS && wait_s >= buckets_s[bucket])
        bucket++;
    return bucket;
}

static bool is_inside(const double waits_s[QUANTILE_COUNT], double happened_s)
{
    return happened_s >= waits_s[QUANTILE_10] - 1e-3 &&
           happened_s <= waits_s[QUANTILE_90] + 1e-3;
}

static struct method_score score_run(const struct forecast_run *run, enum method method,
                                     enum forecast_target target)
{
    struct method_score score = { 0 };
    for (uint32_t i = 0; i < run->record_count; i++) {
        const struct forecast_record *record = &run->records[i];
        const double *waits_s = record->waits_s[method][target];
        double happened_s = record->happened_s[target];
        if (!counts(record, target))
            continue;
        bool inside = is_inside(waits_s, happened_s);
        uint32_t bucket = bucket_of(waits_s[QUANTILE_50]);
        score.count++;
        score.coverage += inside;
        score.raw_coverage += is_inside(record->raw_s[method][target], happened_s);
        score.pinball += pinball(waits_s, happened_s);
        if (bucket < BUCKETS) {
            score.bucket_counts[bucket]++;
            score.bucket_coverage[bucket] += inside;
        }
    }
    return score;
}

/* --- the study ---------------------------------------------------------------------- */

struct forecast_place {
    const char *name; /* in ids of rows */
    const char *cluster, *workload;
    const char *file; /* below BERTH_DATA, instead of 'workload'; or NULL */
    uint64_t window;  /* jobs; 0: all */
    uint64_t every, every_quick;
    uint32_t seeds_max; /* a trace is one */
};

/*
 * Settings were chosen on none of these seeds.  The clusters of the traces have as many GPUs as are
 * 90 % busy in the mean, since on those that the jobs were submitted to hardly any would wait.
 */
static const struct forecast_place places[] = {
    { "mixed", "mixed-112", "mixed:load=0.9,jobs=4000", NULL, 0, 16, 20, SEEDS_MAX },
    { "venus", "77xv100:8", NULL, "traces/helios/venus_gpu_jobs.csv.gz", 4000, 40, 0,
      1 },
    { "philly", "58xv100:8", NULL, "traces/philly-csv/philly.csv.gz", 4000, 40, 0, 1 },
};

struct forecast_experiment {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct sweep_run *runs; /* [policy][seed] */
    struct forecast_run **forecasts;
    uint32_t seeds;
};

static int run_experiment(struct forecast_experiment *e, const struct reproduction *r,
                          const struct forecast_place *place, const char *workload,
                          struct error *err)
{
    int status = cluster_load(&e->cluster, &e->arena, place->cluster, err);
    if (status < 0)
        return status;
    throughput_init(&e->rates, &e->cluster);
    throughput_published(&e->rates, &e->arena);
    for (uint32_t i = 0; i < POLICY_COUNT * e->seeds; i++) {
        uint64_t seed = r->study->seed_first + i % e->seeds;
        e->forecasts[i] = new_run(seed, r->quick ? place->every_quick : place->every);
        e->forecasts[i]->id_last = place->window;
        e->runs[i].setup = (struct sim_setup){
            .cluster = &e->cluster,
            .rates = &e->rates,
            .workload = workload,
            .policy = policies[i / e->seeds],
            .seed = seed,
            .window_to = place->window,
            .estimate_error = 0.5,
            .stepped = stepped,
            .stepped_context = e->forecasts[i],
            .observer = { .event = note_event,
                          .self = e->forecasts[i],
                          .kinds = 1u << EVENT_SUBMITTED | 1u << EVENT_STARTED |
                                   1u << EVENT_FINISHED | 1u << EVENT_FAILED }
        };
    }
    status = sweep_run_all(e->runs, POLICY_COUNT * e->seeds, sweep_threads(),
                           r->progress, r->context, err);
    for (uint32_t i = 0; i < POLICY_COUNT * e->seeds && status == 0; i++)
        if (e->forecasts[i]->status < 0) {
            status = e->forecasts[i]->status;
            *err = e->forecasts[i]->err;
        }
    return status;
}

/* One row for each seed's value; NULL where none of them had any forecast. */
static struct finding *add_row(struct reproduction *r, const char *policy,
                               const char *id, const char *what, const char *unit,
                               const double *values, uint32_t count)
{
    if (count == 0)
        return NULL;
    struct finding *row = reproduction_row(r, id, what, unit, NAN, 0, values, count);
    row->setting = policy;
    row->direction = strcmp(unit, "ratio") == 0 ? DIRECTION_LOWER : DIRECTION_NEITHER;
    return row;
}

static void add_method_rows(struct reproduction *r, const struct forecast_experiment *e,
                            const struct forecast_place *place, uint32_t policy,
                            enum forecast_target target, enum method method)
{
    double coverage[SEEDS_MAX];
    double raw[SEEDS_MAX];
    double ratio[SEEDS_MAX];
    double number[SEEDS_MAX];
    struct method_score all = { 0 };
    uint32_t count = 0;
    for (uint32_t s = 0; s < e->seeds; s++) {
        const struct forecast_run *run = e->forecasts[policy * e->seeds + s];
        struct method_score score = score_run(run, method, target);
        struct method_score naive = score_run(run, METHOD_NAIVE, target);
        if (score.count == 0)
            continue;
        coverage[count] = score.coverage / score.count;
        raw[count] = score.raw_coverage / score.count;
        number[count] = score.count;
        ratio[count++] = score.pinball / naive.pinball;
        all.count += score.count;
        all.coverage += score.coverage;
        for (uint32_t b = 0; b < BUCKETS; b++) {
            all.bucket_counts[b] += score.bucket_counts[b];
            all.bucket_coverage[b] += score.bucket_coverage[b];
        }
    }
    char id[96];
    char what[160];
    const char *suffix = method == METHOD_SIZES ? "_sizes" : "";
    const char *name = policies[policy];
    const char *aim = target_names[target];
    if (count == 0)
        return;
    snprintf(id, sizeof id, "%s_%s_%s_coverage%s", place->name, name, aim, suffix);
    snprintf(what, sizeof what, "%s: share of %ss between p10 and p90%s", name, aim,
             method == METHOD_SIZES ? ", by sizes only" : "");
    add_row(r, name, id, what, "share", coverage, count);
    snprintf(id, sizeof id, "%s_%s_%s_coverage_raw%s", place->name, name, aim, suffix);
    snprintf(what, sizeof what, "%s: the same before forecasts are set right", name);
    add_row(r, name, id, what, "share", raw, count);
    double error = fabs(all.coverage / all.count - 0.8);
    snprintf(id, sizeof id, "%s_%s_%s_coverage_off%s", place->name, name, aim, suffix);
    snprintf(what, sizeof what, "%s: how far that is from 80 %%, over all seeds", name);
    add_row(r, name, id, what, "share", &error, 1);
    reproduction_target(r, 0.05);
    snprintf(id, sizeof id, "%s_%s_%s_pinball%s", place->name, name, aim, suffix);
    snprintf(what, sizeof what, "%s: pinball loss of %ss beside the naive baseline's",
             name, aim);
    add_row(r, name, id, what, "ratio", ratio, count);
    reproduction_target(r, pinball_target(policy, target, method));
    snprintf(id, sizeof id, "%s_%s_%s_forecasts%s", place->name, name, aim, suffix);
    snprintf(what, sizeof what, "%s: forecasts that these figures are of", name);
    add_row(r, name, id, what, "forecasts", number, count);
    for (uint32_t b = 0; b < BUCKETS && method == METHOD_NAMES; b++) {
        if (all.bucket_counts[b] < CALIBRATION_LEAST)
            continue;
        error = fabs(all.bucket_coverage[b] / all.bucket_counts[b] - 0.79);
        snprintf(id, sizeof id, "%s_%s_%s_coverage_off_%s", place->name, name, aim,
                 bucket_names[b]);
        snprintf(what, sizeof what,
                 "%s: how far the coverage is from 79 %%, median below %s", name,
                 bucket_names[b]);
        add_row(r, name, id, what, "share", &error, 1);
        reproduction_target(r, 0.09);
    }
}

static void add_chart(struct reproduction *r, const struct forecast_experiment *e,
                      const struct forecast_place *place, enum forecast_target target)
{
    static const char *const names[] = { "baseline", "sizes", "names, estimates" };
    char title[96];
    snprintf(title, sizeof title, "Share of %ss between p10 and p90, %s",
             target_names[target], place->name);
    struct json *chart = reproduction_chart(r, "bars", title, NULL, "share");
    for (uint32_t p = 0; p < POLICY_COUNT; p++)
        reproduction_chart_group(chart, policies[p]);
    for (uint32_t m = 0; m < METHOD_COUNT; m++) {
        double values[POLICY_COUNT * SEEDS_MAX];
        for (uint32_t i = 0; i < POLICY_COUNT * e->seeds; i++) {
            struct method_score score = score_run(e->forecasts[i], m, target);
            values[i] = score.count ? score.coverage / score.count : 0;
        }
        reproduction_chart_series(chart, names[m], NULL, values, POLICY_COUNT,
                                  e->seeds);
    }
}

static void release_experiment(struct forecast_experiment *e)
{
    for (uint32_t i = 0; i < POLICY_COUNT * e->seeds; i++)
        if (e->forecasts[i])
            release_run(e->forecasts[i]);
    free(e->forecasts);
    free(e->runs);
    arena_release(&e->arena);
}

static int run_place(struct reproduction *r, const struct forecast_place *place,
                     const char *workload, struct error *err)
{
    struct forecast_experiment e = { .seeds = r->seed_count < place->seeds_max
                                                  ? r->seed_count
                                                  : place->seeds_max };
    arena_init(&e.arena, 0);
    e.runs = memory_checked(calloc(POLICY_COUNT * e.seeds, sizeof *e.runs));
    e.forecasts = memory_checked(calloc(POLICY_COUNT * e.seeds, sizeof *e.forecasts));
    int status = run_experiment(&e, r, place, workload, err);
    for (uint32_t t = 0; t < TARGET_COUNT && status == 0; t++) {
        for (uint32_t p = 0; p < POLICY_COUNT; p++) {
            add_method_rows(r, &e, place, p, t, METHOD_SIZES);
            add_method_rows(r, &e, place, p, t, METHOD_NAMES);
        }
        add_chart(r, &e, place, t);
    }
    release_experiment(&e);
    return status;
}

static void describe_setup(struct reproduction *r)
{
    reproduction_setup(r,
                       "ends of all jobs, starts of those that wait after the step of "
                       "their submission",
                       "ours");
    reproduction_setup(r,
                       "32 replicates, arrivals of one of the last 14 days, 4 days "
                       "ahead",
                       "ours");
    reproduction_setup(
        r, "declared work is wrong by a factor of deviation 0.5 (log-normal)", "ours");
    reproduction_setup(r, "traces on as many GPUs as they keep 90 % busy in the mean",
                       "ours");
    reproduction_note(r,
                      "A row of coverage_off is better where the coverage is between "
                      "75 and 85 %, in a bucket of the horizon between 70 and "
                      "88 %.");
}

static int forecast_run_study(struct reproduction *r, struct error *err)
{
    const char *data = getenv("BERTH_DATA");
    int status = 0;
    describe_setup(r);
    for (uint32_t i = 0; i < COUNT(places) && status == 0; i++) {
        char path[4096];
        const struct forecast_place *place = &places[i];
        if (!place->file) {
            status = run_place(
                r, place, r->quick ? "mixed:load=0.9,jobs=2000" : place->workload, err);
            continue;
        }
        if (r->quick || !data || !*data)
            continue;
        snprintf(path, sizeof path, "%s/%s", data, place->file);
        if (access(path, R_OK) == 0)
            status = run_place(r, place, path, err);
    }
    return status;
}

const struct study study_forecast = {
    .name = "forecast",
    .title = "Forecasts: when jobs start and end, by playing the same engine forward",
    .paper = "Berth's own; no paper has published such figures",
    .seeds_full = 6,
    .seeds_quick = 1,
    .seed_first = FIRST_SEED,
    .fidelity = FIDELITY_PAPER,
    .apart = true,
    .run = forecast_run_study,
};
