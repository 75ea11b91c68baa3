/*
 * study_forecast.c - forecasts of starts and ends, compared with what happened.
 *
 * While a workload is simulated, some of the jobs are forecast after the step in which they were
 * submitted, from what had happened by then: when each will end, and when those will start that
 * still wait.  Beside it stands the naive baseline, the last waits of jobs of this size.  Both are
 * set right by how their own earlier forecasts turned out, and one of them is shown
 * (forecast_choice.h).  A forecast counts once all of them are set right.
 *
 *     coverage      share of the jobs between p10 and p90; 80 % is right
 *     pinball loss  mean over p10, p50 and p90 of the asymmetric distance between the quantile and
 *                   what happened, on the scale of log(seconds + 60 s); a ratio below 1 is better
 *                   than the baseline
 *
 * 'sizes' are forecasts that look at no name, user or declared work; the policy knows what it knows
 * in both.  'shown' is what a user would see: by names, or the baseline where that did better.
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
#include "predict/forecast_choice.h"
#include "predict/run_times.h"
#include "study/reproduction.h"
#include "workload/workload.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))
#define FORECASTS_MAX 1024 /* of one run */
#define HORIZON_S (4 * 86400.0)
#define BUCKETS 4
#define BUCKET_LEAST 30 /* forecasts, for a row of its own */
#define FIRST_SEED 301

enum forecast_kind { KIND_NAIVE, KIND_SIZES, KIND_NAMES, KIND_SHOWN, KIND_COUNT };
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
                             enum forecast_kind kind)
{
    bool preempts = policy >= FIRST_PREEMPTIVE;
    if (target == TARGET_START && !preempts)
        return kind == KIND_SIZES || policy == 0 ? 0.80 : 0.60;
    return target == TARGET_END && preempts ? 0.90 : 1.0;
}

/* --- one run ------------------------------------------------------------------------ */

struct target_forecast {
    bool asked; /* the start only of a job that waits */
    bool over;
    bool corrected; /* all kinds */
    bool baseline;  /* is shown  */
    double happened_s;
    double waits_s[KIND_COUNT][QUANTILE_COUNT];
    double raw_s[QUANTILE_COUNT]; /* by names, as forecast              */
    uint64_t numbers[KIND_COUNT]; /* in the choices: by sizes, by names */
};

struct forecast_record {
    int64_t made_ns;
    struct target_forecast targets[TARGET_COUNT];
};

struct forecast_run {
    uint64_t seed;
    uint64_t every; /* of one in so many jobs the end is forecast */
    struct run_times times;
    struct arrivals arrivals;
    struct forecast_choice choices[KIND_COUNT][TARGET_COUNT]; /* by sizes, by names */
    struct forecast_record records[FORECASTS_MAX];
    uint32_t record_count;
    uint32_t waiting_count, absent_count; /* asked for starts, and without an answer */
    struct map by_id;                     /* records of jobs that have not ended */
    job_id *fresh;                        /* submitted in this step              */
    uint64_t *fresh_ids;
    uint32_t fresh_count, fresh_room;
    struct map delayed; /* jobs that had to wait */
    int status;
    struct error err;
};

/* A wait is over, of a job that was forecast or not. */
static void note_wait(struct forecast_run *run, const struct job *job,
                      enum forecast_target target, int64_t now_ns)
{
    double wait_s = (double)(now_ns - job->submit_ns) * 1e-9;
    for (uint32_t k = KIND_SIZES; k <= KIND_NAMES; k++)
        forecast_choice_note(&run->choices[k][target], job->gpus, wait_s);
}

static void resolve(struct forecast_run *run, uint64_t id, enum forecast_target target,
                    int64_t now_ns)
{
    uint32_t at = map_find(&run->by_id, id);
    if (at == MAP_NONE || run->records[at].targets[target].over ||
        !run->records[at].targets[target].asked)
        return;
    struct target_forecast *forecast = &run->records[at].targets[target];
    forecast->over = true;
    forecast->happened_s = (double)(now_ns - run->records[at].made_ns) * 1e-9;
    for (uint32_t k = KIND_SIZES; k <= KIND_NAMES; k++)
        forecast_choice_resolve(&run->choices[k][target], forecast->numbers[k], now_ns);
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
            note_wait(run, job, TARGET_START, event->at_ns);
        resolve(run, job->id, TARGET_START, event->at_ns);
    } else {
        run_times_add(&run->times, job, run_times_work_s(job, event->steps));
        note_wait(run, job, TARGET_END, event->at_ns);
        resolve(run, job->id, TARGET_END, event->at_ns);
        map_remove(&run->by_id, job->id);
        map_remove(&run->delayed, job->id);
    }
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

/* Enough forecasts of both methods have turned out to set the next right. */
static bool can_correct(const struct forecast_choice *choice)
{
    return choice->calibrations[FORECAST_FORWARD].over_count >= CALIBRATION_LEAST &&
           choice->calibrations[FORECAST_BASELINE].over_count >= CALIBRATION_LEAST;
}

/* Keep the forecast by sizes or by names, and what stands beside it. */
static void keep_forecast(struct forecast_run *run, int64_t now_ns, uint32_t gpus,
                          enum forecast_kind kind, enum forecast_target target,
                          const double *forward_s, struct target_forecast *forecast)
{
    struct forecast_choice *choice = &run->choices[kind][target];
    struct forecast_shown shown;
    bool ready = can_correct(choice);
    uint64_t number = forecast_choice_add(choice, now_ns, gpus, forward_s, &shown);
    forecast->numbers[kind] = number;
    forecast->corrected = forecast->corrected && ready && number != CHOICE_NONE;
    if (number == CHOICE_NONE)
        return;
    const struct choice_record *record =
        &choice->records[number % CALIBRATION_FORECASTS];
    forecast->corrected = forecast->corrected && record->has[FORECAST_FORWARD] &&
                          record->has[FORECAST_BASELINE];
    memcpy(forecast->waits_s[kind], record->waits_s[FORECAST_FORWARD],
           sizeof forecast->waits_s[kind]);
    memcpy(forecast->waits_s[KIND_NAIVE], record->waits_s[FORECAST_BASELINE],
           sizeof forecast->waits_s[KIND_NAIVE]);
    memcpy(forecast->waits_s[KIND_SHOWN], shown.waits_s,
           sizeof forecast->waits_s[KIND_SHOWN]);
    forecast->baseline = shown.method == FORECAST_BASELINE;
}

static void forecast_job(struct forecast_run *run, const struct engine *engine,
                         job_id id, bool ends)
{
    const struct job *job = &engine->state.jobs[id];
    struct forecast_record *record = &run->records[run->record_count];
    double raw_s[KIND_COUNT][TARGET_COUNT][QUANTILE_COUNT];
    bool any[KIND_COUNT];
    bool asked[TARGET_COUNT] = { job->state == JOB_WAITING, ends };
    *record = (struct forecast_record){ .made_ns = engine->state.view.now_ns };
    for (uint32_t k = KIND_SIZES; k <= KIND_NAMES; k++)
        any[k] = forecast_forward(run, engine, id, k == KIND_SIZES, ends, raw_s[k]);
    run->waiting_count += asked[TARGET_START];
    run->absent_count += asked[TARGET_START] && !any[KIND_NAMES];
    for (uint32_t t = 0; t < TARGET_COUNT; t++) {
        struct target_forecast *forecast = &record->targets[t];
        forecast->asked = forecast->corrected = asked[t];
        if (!asked[t])
            continue;
        memcpy(forecast->raw_s, raw_s[KIND_NAMES][t], sizeof forecast->raw_s);
        for (uint32_t k = KIND_SIZES; k <= KIND_NAMES; k++)
            keep_forecast(run, record->made_ns, job->gpus, k, t,
                          any[k] ? raw_s[k][t] : NULL, forecast);
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
        if (run->record_count < FORECASTS_MAX && run->status == 0 && (starts || ends))
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

struct kind_score {
    uint32_t count;
    double coverage, raw_coverage, pinball;
    double below[QUANTILE_COUNT]; /* jobs that were earlier than that quantile */
    double baseline;              /* forecasts of which that is shown         */
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

/* It counts if it has happened, and all kinds were set right. */
static struct kind_score score_run(const struct forecast_run *run,
                                   enum forecast_kind kind, enum forecast_target target)
{
    struct kind_score score = { 0 };
    for (uint32_t i = 0; i < run->record_count; i++) {
        const struct target_forecast *forecast = &run->records[i].targets[target];
        const double *waits_s = forecast->waits_s[kind];
        double happened_s = forecast->happened_s;
        if (!forecast->asked || !forecast->over || !forecast->corrected)
            continue;
        bool inside = calibration_covers(waits_s, happened_s);
        uint32_t bucket = bucket_of(waits_s[QUANTILE_50]);
        score.count++;
        score.coverage += inside;
        score.raw_coverage += calibration_covers(forecast->raw_s, happened_s);
        score.pinball += calibration_loss(waits_s, happened_s);
        score.baseline += forecast->baseline;
        for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
            score.below[q] += happened_s < waits_s[q];
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
    const char *file;     /* below BERTH_DATA, instead of 'workload'; or NULL */
    uint32_t from, count; /* jobs of it                                       */
    uint64_t every, every_quick;
    uint32_t seeds_max; /* a trace is one */
};

/*
 * Settings were chosen on seeds 201 to 203 of 'mixed', which are not among these.  The clusters of
 * the traces have about as many GPUs as these jobs keep busy in the mean, since on those that they
 * were submitted to hardly any would wait.
 */
static const struct forecast_place places[] = {
    { "mixed", "mixed-112", "mixed:load=0.9,jobs=4000", NULL, 0, 0, 16, 20, SEEDS_MAX },
    { "venus", "62xv100:8", NULL, "traces/helios/venus_gpu_jobs.csv.gz", 34000, 4000,
      16, 0, 1 },
    { "venus-april", "64xv100:8", NULL, "traces/helios/venus_gpu_jobs.csv.gz", 20000,
      4000, 16, 0, 1 },
    { "philly", "28xv100:8", NULL, "traces/philly-csv/philly.csv.gz", 45000, 4000, 24,
      0, 1 },
    { "philly-early", "34xv100:8", NULL, "traces/philly-csv/philly.csv.gz", 6000, 4000,
      24, 0, 1 },
    { "pai", "58xv100:8", NULL, "traces/alibaba-pai-v2020/pai_gpu_tasks_sample.csv.gz",
      20000, 3000, 12, 0, 1 },
};

struct forecast_experiment {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct job_spec *jobs; /* of a trace */
    uint32_t job_count;
    struct sweep_run *runs; /* [policy][seed] */
    struct forecast_run **forecasts;
    uint32_t seeds;
};

/* A part of a trace, from time 0 on. */
static int read_jobs(struct forecast_experiment *e, const struct forecast_place *place,
                     const char *path, struct error *err)
{
    struct workload *workload;
    struct job_spec spec;
    int status = workload_open(&workload, path, NULL, 1, e->cluster.gpu_count, err);
    if (status < 0)
        return status;
    e->jobs = arena_array(&e->arena, struct job_spec, place->count);
    for (uint32_t i = 0; e->job_count < place->count; i++) {
        status = workload_next(workload, &spec, err);
        if (status <= 0)
            break;
        if (i < place->from || spec.gpus > e->cluster.gpu_count)
            continue;
        spec.name = spec.name ? arena_text(&e->arena, spec.name) : NULL;
        spec.user = spec.user ? arena_text(&e->arena, spec.user) : NULL;
        spec.entity = spec.kind = spec.program = spec.types = NULL;
        spec.id = 0;
        e->jobs[e->job_count++] = spec;
    }
    workload_close(workload);
    for (uint32_t i = e->job_count; i-- > 0;)
        e->jobs[i].submit_ns -= e->jobs[0].submit_ns;
    return status < 0 ? status : 0;
}

static void set_up_run(struct forecast_experiment *e, const struct reproduction *r,
                       const struct forecast_place *place, const char *workload,
                       uint32_t at)
{
    uint64_t seed = r->study->seed_first + at % e->seeds;
    e->forecasts[at] = new_run(seed, r->quick ? place->every_quick : place->every);
    e->runs[at].setup = (struct sim_setup){
        .cluster = &e->cluster,
        .rates = &e->rates,
        .workload = e->jobs ? NULL : workload,
        .jobs = e->jobs,
        .job_count = e->job_count,
        .policy = policies[at / e->seeds],
        .seed = seed,
        .estimate_error = 0.5,
        .stepped = stepped,
        .stepped_context = e->forecasts[at],
        .observer = { .event = note_event,
                      .self = e->forecasts[at],
                      .kinds = 1u << EVENT_SUBMITTED | 1u << EVENT_STARTED |
                               1u << EVENT_FINISHED | 1u << EVENT_FAILED }
    };
}

static int run_experiment(struct forecast_experiment *e, const struct reproduction *r,
                          const struct forecast_place *place, const char *workload,
                          struct error *err)
{
    int status = cluster_load(&e->cluster, &e->arena, place->cluster, err);
    if (status == 0 && place->file)
        status = read_jobs(e, place, workload, err);
    if (status < 0)
        return status;
    throughput_init(&e->rates, &e->cluster);
    throughput_published(&e->rates, &e->arena);
    for (uint32_t i = 0; i < POLICY_COUNT * e->seeds; i++)
        set_up_run(e, r, place, workload, i);
    status = sweep_run_all(e->runs, POLICY_COUNT * e->seeds, sweep_threads(),
                           r->progress, r->context, err);
    for (uint32_t i = 0; i < POLICY_COUNT * e->seeds && status == 0; i++)
        if (e->forecasts[i]->status < 0) {
            status = e->forecasts[i]->status;
            *err = e->forecasts[i]->err;
        }
    return status;
}

/* --- rows and charts ------------------------------------------------------------------ */

/* One policy's forecasts at one place, by seeds that have any, and over all. */
struct cell_scores {
    const char *place, *policy, *target;
    uint32_t policy_at;
    enum forecast_target target_at;
    uint32_t count; /* seeds */
    struct kind_score seeds[KIND_COUNT][SEEDS_MAX];
    struct kind_score all[KIND_COUNT];
};

static void add_score(struct kind_score *sum, const struct kind_score *score)
{
    sum->count += score->count;
    sum->coverage += score->coverage;
    sum->pinball += score->pinball;
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
        sum->below[q] += score->below[q];
    for (uint32_t b = 0; b < BUCKETS; b++) {
        sum->bucket_counts[b] += score->bucket_counts[b];
        sum->bucket_coverage[b] += score->bucket_coverage[b];
    }
}

static void score_cell(const struct forecast_experiment *e, struct cell_scores *cell)
{
    for (uint32_t s = 0; s < e->seeds; s++) {
        const struct forecast_run *run = e->forecasts[cell->policy_at * e->seeds + s];
        for (uint32_t k = 0; k < KIND_COUNT; k++) {
            cell->seeds[k][cell->count] = score_run(run, k, cell->target_at);
            add_score(&cell->all[k], &cell->seeds[k][cell->count]);
        }
        cell->count += cell->seeds[KIND_NAMES][cell->count].count > 0;
    }
}

static void add_row(struct reproduction *r, const struct cell_scores *cell,
                    const char *figure, const char *what, const char *unit,
                    const double *values, uint32_t count, double target)
{
    char id[96];
    char text[160];
    snprintf(id, sizeof id, "%s_%s_%s_%s", cell->place, cell->policy, cell->target,
             figure);
    snprintf(text, sizeof text, "%s, %ss: %s", cell->policy, cell->target, what);
    struct finding *row = reproduction_row(r, id, text, unit, NAN, 0, values, count);
    row->setting = cell->policy;
    row->direction = DIRECTION_NEITHER;
    if (!isnan(target))
        reproduction_target(r, target);
}

/* How far the coverage is from the middle of what is right. */
static void add_coverage_off(struct reproduction *r, const struct cell_scores *cell,
                             const char *suffix, const char *what, double inside,
                             uint32_t count, double middle, double most)
{
    char figure[48];
    double off = fabs(inside / count - middle);
    snprintf(figure, sizeof figure, "coverage_off%s", suffix);
    add_row(r, cell, figure, what, "share", &off, 1, most);
}

static void add_bucket_rows(struct reproduction *r, const struct cell_scores *cell,
                            const struct kind_score *all)
{
    for (uint32_t b = 0; b < BUCKETS; b++) {
        char suffix[16];
        char what[96];
        if (all->bucket_counts[b] < BUCKET_LEAST)
            continue;
        snprintf(suffix, sizeof suffix, "_%s", bucket_names[b]);
        snprintf(what, sizeof what,
                 "how far the coverage is from 79 %%, median below %s",
                 bucket_names[b]);
        add_coverage_off(r, cell, suffix, what, all->bucket_coverage[b],
                         all->bucket_counts[b], 0.79, 0.09);
    }
}

static void add_cell_rows(struct reproduction *r, const struct cell_scores *cell)
{
    static const char *const suffixes[] = { "", "_sizes", "_names", "" };
    static const char *const bases[] = { "", ", by sizes only",
                                         ", by names and estimates", "" };
    double values[SEEDS_MAX];
    for (uint32_t k = KIND_SIZES; k < KIND_COUNT; k++) {
        char figure[48];
        char what[96];
        for (uint32_t s = 0; s < cell->count; s++)
            values[s] = cell->seeds[k][s].coverage / cell->seeds[k][s].count;
        snprintf(figure, sizeof figure, "coverage%s", suffixes[k]);
        snprintf(what, sizeof what, "share between p10 and p90%s", bases[k]);
        add_row(r, cell, figure, what, "share", values, cell->count, NAN);
        for (uint32_t s = 0; s < cell->count; s++)
            values[s] = cell->seeds[k][s].pinball / cell->seeds[KIND_NAIVE][s].pinball;
        snprintf(figure, sizeof figure, "pinball%s", suffixes[k]);
        snprintf(what, sizeof what, "pinball loss beside the naive baseline's%s",
                 bases[k]);
        double target =
            k == KIND_SHOWN ? 1 : pinball_target(cell->policy_at, cell->target_at, k);
        add_row(r, cell, figure, what, "ratio", values, cell->count, target);
    }
    for (uint32_t s = 0; s < cell->count; s++)
        values[s] =
            cell->seeds[KIND_NAMES][s].raw_coverage / cell->seeds[KIND_NAMES][s].count;
    add_row(r, cell, "coverage_raw", "share between p10 and p90 before it is set right",
            "share", values, cell->count, NAN);
    for (uint32_t s = 0; s < cell->count; s++)
        values[s] =
            cell->seeds[KIND_NAMES][s].baseline / cell->seeds[KIND_NAMES][s].count;
    add_row(r, cell, "baseline", "share that shows the baseline", "share", values,
            cell->count, NAN);
    for (uint32_t s = 0; s < cell->count; s++)
        values[s] = cell->seeds[KIND_NAMES][s].count;
    add_row(r, cell, "forecasts", "forecasts that these figures are of", "forecasts",
            values, cell->count, NAN);
}

/* Of waiting jobs for which playing forward has no answer. */
static void add_absent_row(struct reproduction *r, const struct forecast_experiment *e,
                           const struct cell_scores *cell)
{
    double waiting = 0, absent = 0;
    for (uint32_t s = 0; s < e->seeds; s++) {
        const struct forecast_run *run = e->forecasts[cell->policy_at * e->seeds + s];
        waiting += run->waiting_count;
        absent += run->absent_count;
    }
    absent /= waiting;
    add_row(r, cell, "absent", "share of waiting jobs without a forecast", "share",
            &absent, 1, 0.1);
}

/* --- over all places ------------------------------------------------------------------ */

/* What is shown, by target and policy: episodes of one place alone are too few to judge by. */
struct pooled_scores {
    struct kind_score shown[TARGET_COUNT][POLICY_COUNT];
};

/* What was to be exceeded by how many, and by how many it was. */
static void add_chart(struct reproduction *r, const struct pooled_scores *pooled,
                      enum forecast_target target)
{
    char title[96];
    snprintf(title, sizeof title, "Calibration of %ss, all workloads",
             target_names[target]);
    struct json *chart =
        reproduction_chart(r, "lines", title, "quantile", "share of jobs before it");
    reproduction_chart_series(chart, "exact", quantile_levels, quantile_levels,
                              QUANTILE_COUNT, 1);
    for (uint32_t p = 0; p < POLICY_COUNT; p++) {
        const struct kind_score *score = &pooled->shown[target][p];
        double values[QUANTILE_COUNT];
        if (score->count < BUCKET_LEAST)
            continue;
        for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
            values[q] = score->below[q] / score->count;
        reproduction_chart_series(chart, policies[p], quantile_levels, values,
                                  QUANTILE_COUNT, 1);
    }
}

static void add_pooled_rows(struct reproduction *r, const struct pooled_scores *pooled)
{
    for (uint32_t t = 0; t < TARGET_COUNT; t++) {
        for (uint32_t p = 0; p < POLICY_COUNT; p++) {
            struct cell_scores cell = { .place = "all",
                                        .policy = policies[p],
                                        .target = target_names[t] };
            const struct kind_score *shown = &pooled->shown[t][p];
            double coverage = shown->coverage / shown->count;
            double count = shown->count;
            if (shown->count < BUCKET_LEAST)
                continue;
            add_row(r, &cell, "coverage", "share between p10 and p90", "share",
                    &coverage, 1, NAN);
            add_coverage_off(r, &cell, "", "how far the coverage is from 80 %",
                             shown->coverage, shown->count, 0.8, 0.05);
            add_bucket_rows(r, &cell, shown);
            add_row(r, &cell, "forecasts", "forecasts that these figures are of",
                    "forecasts", &count, 1, NAN);
        }
        add_chart(r, pooled, t);
    }
}

/* --- one place ------------------------------------------------------------------------ */

static void add_target(struct reproduction *r, const struct forecast_experiment *e,
                       const struct forecast_place *place, enum forecast_target target,
                       struct pooled_scores *pooled)
{
    for (uint32_t p = 0; p < POLICY_COUNT; p++) {
        struct cell_scores *cell = memory_checked(calloc(1, sizeof *cell));
        cell->place = place->name;
        cell->policy = policies[p];
        cell->policy_at = p;
        cell->target = target_names[target];
        cell->target_at = target;
        score_cell(e, cell);
        add_score(&pooled->shown[target][p], &cell->all[KIND_SHOWN]);
        if (cell->all[KIND_SHOWN].count >= BUCKET_LEAST) {
            add_cell_rows(r, cell);
            if (target == TARGET_START)
                add_absent_row(r, e, cell);
        }
        free(cell);
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
                     const char *workload, struct pooled_scores *pooled,
                     struct error *err)
{
    struct forecast_experiment e = { .seeds = r->seed_count < place->seeds_max
                                                  ? r->seed_count
                                                  : place->seeds_max };
    arena_init(&e.arena, 0);
    e.runs = memory_checked(calloc(POLICY_COUNT * e.seeds, sizeof *e.runs));
    e.forecasts = memory_checked(calloc(POLICY_COUNT * e.seeds, sizeof *e.forecasts));
    int status = run_experiment(&e, r, place, workload, err);
    for (uint32_t t = 0; t < TARGET_COUNT && status == 0; t++)
        add_target(r, &e, place, t, pooled);
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
    reproduction_setup(
        r, "parts of the traces, on about as many GPUs as they keep busy in the mean",
        "ours");
    reproduction_note(r,
                      "A row of coverage_off is better where the coverage is between "
                      "75 and 85 %, in a bucket of the horizon between 70 and "
                      "88 %.");
}

static int forecast_run_study(struct reproduction *r, struct error *err)
{
    const char *data = getenv("BERTH_DATA");
    struct pooled_scores pooled = { 0 };
    int status = 0;
    describe_setup(r);
    for (uint32_t i = 0; i < COUNT(places) && status == 0; i++) {
        char path[4096];
        const struct forecast_place *place = &places[i];
        if (!place->file) {
            status = run_place(r, place,
                               r->quick ? "mixed:load=0.9,jobs=2000" : place->workload,
                               &pooled, err);
            continue;
        }
        if (r->quick || !data || !*data)
            continue;
        snprintf(path, sizeof path, "%s/%s", data, place->file);
        if (access(path, R_OK) == 0)
            status = run_place(r, place, path, &pooled, err);
    }
    if (status == 0)
        add_pooled_rows(r, &pooled);
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
