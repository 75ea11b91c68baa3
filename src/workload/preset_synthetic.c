/*
 * preset_synthetic.c - jobs drawn from the percentile tables of public traces and a seed.
 *
 * Each job draws a number of GPUs, then a run time from the table for that size.  All
 * jobs are drawn once beforehand to learn how much GPU time they hold together, so that
 *
 *     mean time between arrivals = mean GPU-seconds of a job / (load x GPUs)
 *
 * gives the load asked for with the jobs that really come, however long their tail.
 * They are drawn again, one by one, when they are asked for: streams of random numbers
 * can be started anew, and a million jobs need no memory.
 *
 * Trial jobs are drawn among the short ones (run time up to 'trial_max'), each with the
 * chance that makes them the share asked for of all jobs; where too few are short, all
 * of those are trial jobs.
 *
 * Bursty arrivals are events at a rate that changes every hour: the trace's profile of
 * the day times a gamma variate.  An event is one job, or a batch of clones as a script
 * submits them: as many GPUs, a run time within a tenth, seconds apart.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/units.h"
#include "model/job.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/tables.h"
#include "workload/workload.h"

#define GPUS_STANDARD 64 /* where neither setting nor cluster gives it */
#define BATCH_MAX 400
#define BATCH_MEAN 3.58 /* of floor(2 / sqrt(u)): half are pairs, 1 % above 20 */
#define BATCH_GAP_S 4.0
#define HOUR_S 3600.0

enum { POISSON, BURSTY };

/* The part that is drawn twice. */
struct draw {
    struct rng sizes, runs, batches;
    uint32_t batch_left; /* clones still to come */
    uint32_t gpus;       /* of the batch         */
    double run_s;
};

struct preset_synthetic {
    /* settings */
    uint32_t jobs, gpus, trace, arrivals, max_gpus, users, cpus_per_gpu, mem_per_gpu;
    double load, trial_share, fail_share, cost_spread;
    int64_t trial_max_ns, grace_ns, pause_ns, load_ns, ckpt_ns;

    const struct trace_tables *tables;
    struct draw draw;
    struct rng arrival_rng, class_rng, cost_rng, user_rng;
    double event_rate; /* per second, on average     */
    double batch_chance;
    double trial_chance;
    uint32_t yielded;

    double event_s;    /* when the last event was    */
    double hour_end_s; /* bursty: of the hour it is  */
    double hour_rate;
    int64_t last_ns;
    char user[16];
    const char *user_name; /* in 'user' */
    char cluster[32];
};

static void draw_init(struct draw *draw, uint64_t seed)
{
    *draw = (struct draw){ 0 };
    rng_init(&draw->sizes, seed, "sizes");
    rng_init(&draw->runs, seed, "runs");
    rng_init(&draw->batches, seed, "batches");
}

static uint32_t draw_size(const struct preset_synthetic *s, struct draw *draw)
{
    double at = rng_unit(&draw->sizes) * 100;
    uint32_t size = 0;
    while (size < TRACE_SIZES - 1 && at >= s->tables->size_share[size])
        at -= s->tables->size_share[size++];
    while (size > 0 && tables_gpus[size] > s->max_gpus)
        size--;
    return size;
}

/* To the millisecond, so that it is short to write and the same when read again. */
static double whole_ms(double seconds)
{
    return fmax((double)units_round(seconds * 1000), 1) / 1000;
}

/* The next job's size and run time; true if it begins an event of its own. */
static bool draw_next(const struct preset_synthetic *s, struct draw *draw,
                      uint32_t *ret_gpus, double *ret_run_s)
{
    bool clone = draw->batch_left > 0;
    if (clone) {
        draw->batch_left--;
        *ret_run_s = whole_ms(draw->run_s * (0.9 + 0.2 * rng_unit(&draw->runs)));
    } else {
        uint32_t size = draw_size(s, draw);
        draw->gpus = tables_gpus[size];
        draw->run_s =
            tables_run_s(s->tables, tables_class[size], rng_unit(&draw->runs));
        *ret_run_s = whole_ms(draw->run_s);
        if (s->batch_chance > 0 && rng_unit(&draw->batches) < s->batch_chance) {
            double batch = floor(2 / sqrt(1 - rng_unit(&draw->batches)));
            draw->batch_left = (uint32_t)fmin(batch, BATCH_MAX) - 1;
        }
    }
    *ret_gpus = draw->gpus;
    return !clone;
}

/* Draw all jobs once: how often do events come, and how likely is a short one a trial? */
static void survey_jobs(struct preset_synthetic *s, uint64_t seed)
{
    struct draw draw;
    draw_init(&draw, seed);
    double gpu_s = 0;
    uint32_t events = 0;
    uint32_t shorts = 0;
    for (uint32_t i = 0; i < s->jobs; i++) {
        uint32_t gpus;
        double run_s;
        events += draw_next(s, &draw, &gpus, &run_s);
        gpu_s += gpus * run_s;
        shorts += run_s * 1e9 <= (double)s->trial_max_ns;
    }
    double span_s = gpu_s / (s->load * s->gpus);
    s->event_rate = events / span_s;
    s->trial_chance = shorts ? s->trial_share * s->jobs / shorts : 0;
}

/* A cluster of that many GPUs, in as large nodes as divide it. */
static void name_cluster(struct preset_synthetic *s)
{
    for (uint32_t per_node = 8; per_node > 1; per_node /= 2)
        if (s->gpus % per_node == 0) {
            snprintf(s->cluster, sizeof s->cluster, "%uxv100:%u", s->gpus / per_node,
                     per_node);
            return;
        }
    snprintf(s->cluster, sizeof s->cluster, "v100:%u", s->gpus);
}

static int synthetic_open(void *self, uint64_t seed, uint32_t gpus,
                          struct workload_facts *facts, struct error *err)
{
    struct preset_synthetic *s = self;
    if (s->gpus == 0)
        s->gpus = gpus ? gpus : GPUS_STANDARD;
    if (s->max_gpus ==
        0) /* a quarter of the cluster, but a node of eight in any case */
        s->max_gpus = s->gpus / 4 > 8 ? s->gpus / 4 : 8;
    if (s->max_gpus > s->gpus)
        s->max_gpus = s->gpus;
    s->tables = &tables_traces[s->trace];
    if (s->arrivals == BURSTY) {
        double b = s->tables->batch_share;
        s->batch_chance = b / (BATCH_MEAN * (1 - b) + b);
    }
    survey_jobs(s, seed);
    draw_init(&s->draw, seed);
    rng_init(&s->arrival_rng, seed, "arrivals");
    rng_init(&s->class_rng, seed, "classes");
    rng_init(&s->cost_rng, seed, "costs");
    rng_init(&s->user_rng, seed, "users");
    name_cluster(s);
    facts->expected = s->jobs;
    facts->cluster = s->cluster;
    return 0;
}

/* Move on to the next event; in bursty hours by using up an exponential variate. */
static void next_event(struct preset_synthetic *s)
{
    double left = rng_exponential(&s->arrival_rng, 1);
    if (s->arrivals == POISSON) {
        s->event_s += left / s->event_rate;
        return;
    }
    for (;;) {
        double until = (s->hour_end_s - s->event_s) * s->hour_rate;
        if (left < until) {
            s->event_s += left / s->hour_rate;
            return;
        }
        left -= until;
        s->event_s = s->hour_end_s;
        uint32_t hour = (uint32_t)fmod(s->hour_end_s / HOUR_S, 24);
        double shape = s->tables->hour_shape;
        s->hour_rate = s->event_rate * s->tables->hour_share[hour] * 0.24 *
                       rng_gamma(&s->arrival_rng, shape) / shape;
        s->hour_end_s += HOUR_S;
    }
}

/* A cost around 'standard_ns', never more than sixteen times that. */
static int64_t draw_cost(struct preset_synthetic *s, int64_t standard_ns)
{
    double factor = fmin(exp(s->cost_spread * rng_normal(&s->cost_rng)), 16);
    return units_ns(whole_ms((double)standard_ns / 1e9 * factor)) * (standard_ns > 0);
}

/* "u17": by hand, since formatting took as long as drawing the rest of a job. */
static void name_user(struct preset_synthetic *s, uint32_t number)
{
    char *at = s->user + sizeof s->user - 1;
    for (*at = 0; number > 0; number /= 10)
        *--at = (char)('0' + number % 10);
    *--at = 'u';
    s->user_name = at;
}

static int synthetic_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_synthetic *s = self;
    if (s->yielded == s->jobs)
        return 0;
    double run_s;
    double submit_s;
    if (draw_next(s, &s->draw, &spec->gpus, &run_s)) {
        next_event(s);
        submit_s = s->event_s;
    } else {
        submit_s = (double)s->last_ns / 1e9 + rng_unit(&s->arrival_rng) * BATCH_GAP_S;
    }
    if (submit_s * 1e9 > (double)TIME_MAX_NS)
        return error_set(err, -ERANGE,
                         "synthetic: the jobs would come over more than 100 years");
    spec->submit_ns = units_ns(whole_ms(submit_s));
    if (spec->submit_ns < s->last_ns)
        spec->submit_ns = s->last_ns; /* the batch before is still coming in */
    s->last_ns = spec->submit_ns;

    spec->id = ++s->yielded;
    spec->steps = run_s;
    bool brief = run_s * 1e9 <= (double)s->trial_max_ns;
    bool drawn = rng_unit(&s->class_rng) < s->trial_chance;
    spec->class = brief && drawn ? CLASS_TE : CLASS_BE;
    spec->fails = rng_unit(&s->class_rng) < s->fail_share;
    spec->cpu_milli = s->cpus_per_gpu * spec->gpus * 1000;
    spec->mem_mib = s->mem_per_gpu * spec->gpus * 1024;
    spec->grace_ns = s->grace_ns;
    spec->pause_ns = draw_cost(s, s->pause_ns);
    spec->load_ns = draw_cost(s, s->load_ns);
    spec->ckpt_ns = s->ckpt_ns;
    name_user(s, rng_below(&s->user_rng, s->users) + 1);
    spec->user = s->user_name;
    return 1;
}

static const char *const arrival_names[] = { "poisson", "bursty", NULL };

#define AT(field) .offset = offsetof(struct preset_synthetic, field)

static const struct field synthetic_params[] = {
    { "jobs", FIELD_COUNT, AT(jobs), "1000", NULL, "how many jobs", 1, 1e8 },
    { "gpus", FIELD_COUNT, AT(gpus), "0", NULL,
      "GPUs the load is meant for; 0: those of the cluster, or 64", 0, 1e6 },
    { "load", FIELD_NUMBER, AT(load), "0.9", NULL,
      "GPU time asked for per GPU time there is", 0.01, 100 },
    { "trace", FIELD_CHOICE, AT(trace), "philly", NULL,
      "whose sizes and run times: philly, helios or pai", 0, 0, tables_names },
    { "arrivals", FIELD_CHOICE, AT(arrivals), "poisson", NULL,
      "poisson, or bursty: rates that change by the hour, and batches", 0, 0,
      arrival_names },
    { "max_gpus", FIELD_COUNT, AT(max_gpus), "0", NULL,
      "largest job; 0: a quarter of the GPUs, at least 8", 0, 1e6 },
    { "trial_share", FIELD_NUMBER, AT(trial_share), "0.3", NULL,
      "share of trial jobs among all", 0, 1 },
    { "trial_max", FIELD_TIME, AT(trial_max_ns), "30m", NULL,
      "longest run time of a trial job", 0, 0 },
    { "grace", FIELD_TIME, AT(grace_ns), "60s", NULL, "time a job may take to leave", 0,
      0 },
    { "pause", FIELD_TIME, AT(pause_ns), "10s", NULL,
      "median time it takes to save its state", 0, 0 },
    { "load_cost", FIELD_TIME, AT(load_ns), "30s", NULL,
      "median time from its start to its first step", 0, 0 },
    { "cost_spread", FIELD_NUMBER, AT(cost_spread), "0.5", NULL,
      "log-normal deviation of the two medians", 0, 3 },
    { "ckpt", FIELD_TIME, AT(ckpt_ns), "30m", NULL,
      "time between checkpoints it makes by itself; 0: none", 0, 0 },
    { "fail_share", FIELD_NUMBER, AT(fail_share), "0", NULL,
      "share of jobs that fail at their end", 0, 1 },
    { "users", FIELD_COUNT, AT(users), "20", NULL, "users, drawn evenly", 1, 1e6 },
    { "cpus_per_gpu", FIELD_COUNT, AT(cpus_per_gpu), "4", NULL, "CPUs per GPU", 0,
      1000 },
    { "mem_per_gpu", FIELD_COUNT, AT(mem_per_gpu), "16", "GiB", "memory per GPU", 0,
      10000 },
    { 0 },
};

const struct preset preset_synthetic = {
    .name = "synthetic",
    .brief = "jobs as in a public trace, at the load asked for",
    .params = synthetic_params,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_CLASS) | COLUMN_BIT(COLUMN_CPUS) |
               COLUMN_BIT(COLUMN_MEM) | COLUMN_BIT(COLUMN_GRACE) |
               COLUMN_BIT(COLUMN_PAUSE) | COLUMN_BIT(COLUMN_LOAD) |
               COLUMN_BIT(COLUMN_CKPT) | COLUMN_BIT(COLUMN_FAILS),
    .self_size = sizeof(struct preset_synthetic),
    .open = synthetic_open,
    .next = synthetic_next,
};
