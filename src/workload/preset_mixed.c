/*
 * preset_mixed.c - trial jobs, gangs and elastic jobs that learn, in one workload.
 *
 * The papers' workloads have one kind of job each.  These have all of them at once, on types
 * of GPUs that differ, with costs and with jobs whose work nobody knows.  One generator, five
 * profiles:
 *
 *     mixed     a cluster of three types; the workload on which `berth` was developed
 *     lab       a university lab: unequal nodes, day and night, many users, jobs that cannot
 *               save in time
 *     industry  gangs of up to 64 GPUs, few trial jobs, restarts that take minutes
 *     sweeps    bursts of 50 to 200 jobs that are alike, beside other jobs
 *     box       one node of eight GPUs, bursts, more work than it can do
 *
 * Settings were chosen on none of the last four.  A job is drawn so:
 *
 *     class     trial with the share asked for, else best effort
 *     GPUs      by the profile's table of each class
 *     run time  log-normal around the median of its class, at its size on V100s
 *     elastic   a share of the best-effort jobs: a quarter to four times its size, with a
 *               noisy loss curve of either family, and a part of each step that more GPUs do
 *               not shorten
 *     rigid     half of them of one of Gavel's kinds, half at each type's plain speed
 *     unknown   a share of the rigid jobs does not declare its work
 *     costs     log-normal; the grace period follows the time to checkpoint, or is the same
 *               for all, and then too short for some
 *
 * All jobs are drawn once beforehand to learn how much work they are, so that
 *
 *     mean time between arrivals = mean V100-seconds of a job / (load x V100s' worth)
 *
 * where the worth of a cluster is its GPUs times the speeds of their types.  The same seed
 * gives the same jobs at every load.
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
#include "model/published.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define SIZES_MAX 8
#define RUN_LEAST_S 10.0
#define COST_LEAST_S 1.0
#define COST_TIMES_MAX 16.0 /* its median: no cost is larger */
#define HOUR_S 3600.0
#define DAY_HOURS 24
#define ELASTIC_TIMES 4             /* an elastic job shrinks and grows by this */
#define TRIALS_UNKNOWN (0.5 / 0.35) /* share of trial jobs, for one of the others */

/* A size of gangs, and the percentage of jobs that ask for it. */
struct mix_size {
    uint32_t gpus;
    double percent;
};

struct mix_run {
    struct mix_size sizes[SIZES_MAX];
    double median_s, sigma, most_s;
    double load_s; /* median time to resume */
};

struct mix_profile {
    const char *cluster;
    double worth;  /* of its GPUs, in V100s */
    uint32_t gpus; /* of it                 */
    struct mix_run be, te;
    double pause_s, cost_sigma;
    double grace_s;       /* at least, or of all jobs                           */
    double grace_pauses;  /* at least so many times to checkpoint; 0: no matter */
    double ckpt_s;        /* checkpoints by itself so often                     */
    double ckpt_share;    /* of jobs that do                                    */
    uint32_t elastic_max; /* largest elastic gang                               */
    uint32_t users;
    double user_skew;   /* 1: all submit alike; more: few submit most         */
    double day_swing;   /* 0: day and night are alike; 1: none at 3 in the night */
    double batch_share; /* of best-effort jobs that come in batches             */
    uint32_t batch_min, batch_max;
    double batch_sigma; /* of run times in a batch                              */
    double batch_gap_s; /* at most, between two of a batch                      */
};

static const struct mix_profile profile_mixed = {
    .cluster = "mixed-112",
    .worth = 57.6,
    .gpus = 112,
    .be = { { { 1, 45 }, { 2, 18 }, { 4, 18 }, { 8, 13 }, { 16, 6 } },
            .median_s = 2400,
            .sigma = 1.3,
            .most_s = 172800,
            .load_s = 60 },
    .te = { { { 1, 60 }, { 2, 20 }, { 4, 12 }, { 8, 8 } },
            .median_s = 150,
            .sigma = 0.8,
            .most_s = 1800,
            .load_s = 25 },
    .pause_s = 20,
    .cost_sigma = 0.7,
    .grace_s = 60,
    .grace_pauses = 2,
    .ckpt_s = 1800,
    .ckpt_share = 1,
    .elastic_max = 16,
    .users = 20,
    .user_skew = 1.5,
};

static const struct mix_profile profile_lab = {
    .cluster = "lab-44",
    .worth = 26.4,
    .gpus = 44,
    .be = { { { 1, 58 }, { 2, 24 }, { 4, 13 }, { 8, 5 } },
            .median_s = 4500,
            .sigma = 1.5,
            .most_s = 259200,
            .load_s = 45 },
    .te = { { { 1, 78 }, { 2, 17 }, { 4, 5 } },
            .median_s = 240,
            .sigma = 0.9,
            .most_s = 3600,
            .load_s = 20 },
    .pause_s = 30,
    .cost_sigma = 0.8,
    .grace_s = 60,
    .ckpt_s = 1200,
    .ckpt_share = 0.7,
    .elastic_max = 8,
    .users = 60,
    .user_skew = 2,
    .day_swing = 0.9,
};

static const struct mix_profile profile_industry = {
    .cluster = "industry-256",
    .worth = 192,
    .gpus = 256,
    .be = { { { 1, 22 }, { 4, 18 }, { 8, 27 }, { 16, 17 }, { 32, 11 }, { 64, 5 } },
            .median_s = 9000,
            .sigma = 1.2,
            .most_s = 259200,
            .load_s = 300 },
    .te = { { { 1, 40 }, { 4, 25 }, { 8, 25 }, { 16, 10 } },
            .median_s = 600,
            .sigma = 0.7,
            .most_s = 3600,
            .load_s = 90 },
    .pause_s = 120,
    .cost_sigma = 0.6,
    .grace_s = 300,
    .ckpt_s = 3600,
    .ckpt_share = 1,
    .elastic_max = 64,
    .users = 12,
    .user_skew = 1.3,
    .day_swing = 0.4,
};

static const struct mix_profile profile_sweeps = {
    .cluster = "sweeps-64",
    .worth = 48,
    .gpus = 64,
    .be = { { { 1, 60 }, { 2, 22 }, { 4, 12 }, { 8, 6 } },
            .median_s = 1800,
            .sigma = 1.1,
            .most_s = 86400,
            .load_s = 40 },
    .te = { { { 1, 70 }, { 2, 20 }, { 4, 10 } },
            .median_s = 120,
            .sigma = 0.8,
            .most_s = 1800,
            .load_s = 20 },
    .pause_s = 15,
    .cost_sigma = 0.6,
    .grace_s = 60,
    .grace_pauses = 1.5,
    .ckpt_s = 900,
    .ckpt_share = 1,
    .elastic_max = 8,
    .users = 16,
    .user_skew = 1.5,
    .batch_share = 0.7,
    .batch_min = 50,
    .batch_max = 200,
    .batch_sigma = 0.35,
    .batch_gap_s = 5,
};

static const struct mix_profile profile_box = {
    .cluster = "box-8",
    .worth = 8,
    .gpus = 8,
    .be = { { { 1, 55 }, { 2, 22 }, { 4, 15 }, { 8, 8 } },
            .median_s = 1800,
            .sigma = 1.3,
            .most_s = 43200,
            .load_s = 30 },
    .te = { { { 1, 75 }, { 2, 18 }, { 4, 7 } },
            .median_s = 120,
            .sigma = 0.8,
            .most_s = 1200,
            .load_s = 15 },
    .pause_s = 15,
    .cost_sigma = 0.8,
    .grace_s = 30,
    .ckpt_s = 900,
    .ckpt_share = 0.6,
    .elastic_max = 8,
    .users = 6,
    .user_skew = 1.3,
    .day_swing = 0.5,
    .batch_share = 0.5,
    .batch_min = 4,
    .batch_max = 16,
    .batch_sigma = 0.6,
    .batch_gap_s = 30,
};

/* What is drawn twice: first to learn how much work the jobs are, then to yield them. */
struct mix_draw {
    struct rng classes, sizes, runs, shapes, curves, costs, users, batches;
    uint32_t batch_left;  /* still to come    */
    uint32_t batch;       /* number of it     */
    struct job_spec like; /* of the batch     */
    double like_run_s;
};

struct preset_mix {
    /* settings */
    uint32_t jobs;
    double load, trial_share, elastic_share, unknown_share;

    const struct mix_profile *profile;
    uint32_t gpus_max; /* no gang is larger than the cluster */
    double batch_chance;
    struct mix_draw draw;
    struct rng arrival_rng;
    double event_rate; /* per second, over day and night */
    double event_s;
    int64_t last_ns;
    uint32_t yielded;
    char user[16], name[24];
};

static void start_draw(struct mix_draw *draw, uint64_t seed)
{
    *draw = (struct mix_draw){ 0 };
    rng_init(&draw->classes, seed, "classes");
    rng_init(&draw->sizes, seed, "sizes");
    rng_init(&draw->runs, seed, "runs");
    rng_init(&draw->shapes, seed, "shapes");
    rng_init(&draw->curves, seed, "curves");
    rng_init(&draw->costs, seed, "costs");
    rng_init(&draw->users, seed, "users");
    rng_init(&draw->batches, seed, "batches");
}

/* --- one job ------------------------------------------------------------------------ */

static double draw_log_normal(struct rng *rng, double median, double sigma)
{
    return median * exp(sigma * rng_normal(rng));
}

static uint32_t draw_size(const struct preset_mix *mix, struct mix_draw *draw,
                          const struct mix_run *run)
{
    double at = rng_unit(&draw->sizes) * 100;
    uint32_t i = 0;
    while (i + 1 < SIZES_MAX && run->sizes[i + 1].gpus > 0 &&
           at >= run->sizes[i].percent)
        at -= run->sizes[i++].percent;
    while (i > 0 && run->sizes[i].gpus > mix->gpus_max)
        i--;
    return run->sizes[i].gpus < mix->gpus_max ? run->sizes[i].gpus : mix->gpus_max;
}

/* Seconds on V100s at its size, to the millisecond. */
static double limit_run(const struct mix_run *run, double run_s)
{
    return preset_rounded(fmin(fmax(run_s, RUN_LEAST_S), run->most_s), 1000);
}

static int64_t draw_cost_ns(const struct mix_profile *profile, struct mix_draw *draw,
                            double median_s)
{
    double cost_s = draw_log_normal(&draw->costs, median_s, profile->cost_sigma);
    cost_s = fmin(fmax(cost_s, COST_LEAST_S), COST_TIMES_MAX * median_s);
    return units_ns(preset_rounded(cost_s, 1000));
}

static void draw_costs(const struct mix_profile *profile, struct mix_draw *draw,
                       struct job_spec *spec)
{
    const struct mix_run *run = spec->class == CLASS_TE ? &profile->te : &profile->be;
    spec->pause_ns = draw_cost_ns(profile, draw, profile->pause_s);
    spec->load_ns = draw_cost_ns(profile, draw, run->load_s);
    double needed_s = profile->grace_pauses * (double)spec->pause_ns * 1e-9;
    spec->grace_ns = units_ns(ceil(fmax(profile->grace_s, needed_s)));
    bool saves = rng_unit(&draw->costs) < profile->ckpt_share;
    spec->ckpt_ns = saves ? units_ns(profile->ckpt_s) : 0;
}

/* Half of Gavel's kinds: a large one must be of a kind that distributes. */
static void draw_rigid(struct mix_draw *draw, struct job_spec *spec, double run_s)
{
    bool plain = rng_unit(&draw->shapes) < 0.5;
    const struct published_kind *kind;
    do
        kind = &published_kinds[rng_below(&draw->shapes, PUBLISHED_KINDS)];
    while (spec->gpus > 1 && !kind->distributes);
    if (plain) {
        spec->steps = run_s;
        return;
    }
    uint32_t size = 31 - (uint32_t)__builtin_clz(spec->gpus);
    uint32_t measured = size < PUBLISHED_SIZES ? size : PUBLISHED_SIZES - 1;
    double rate_per_s = kind->rate[PUBLISHED_V100][measured][0];
    rate_per_s *= (double)spec->gpus / (1u << measured);
    spec->kind = kind->name;
    spec->steps = fmax(round(run_s * rate_per_s), 1);
}

static void draw_elastic(const struct preset_mix *mix, struct mix_draw *draw,
                         struct job_spec *spec, double run_s)
{
    struct rng *rng = &draw->curves;
    uint32_t most = mix->profile->elastic_max < mix->gpus_max
                        ? mix->profile->elastic_max
                        : mix->gpus_max;
    spec->gpus_min = spec->gpus > ELASTIC_TIMES ? spec->gpus / ELASTIC_TIMES : 1;
    spec->gpus_max = spec->gpus * ELASTIC_TIMES < most ? spec->gpus * ELASTIC_TIMES
                     : spec->gpus > most               ? spec->gpus
                                                       : most;
    if (rng_unit(rng) < 0.5) {
        spec->curve =
            (struct learning){ .family = LEARNING_INV,
                               .a = preset_rounded(rng_between(rng, 0.002, 0.022), 1e6),
                               .b = preset_rounded(rng_between(rng, 0.1, 0.5), 1e4),
                               .c = 1 };
        spec->steps = round(rng_between(rng, 80, 160));
    } else {
        double mu = preset_rounded(rng_between(rng, 0.80, 0.95), 1e4);
        spec->curve = (struct learning){ .family = LEARNING_EXP, .mu = mu };
        spec->steps = round(log(0.001) / log(mu) * rng_between(rng, 1.2, 2));
    }
    spec->curve.first = 1;
    spec->curve.kmax = spec->steps;
    spec->curve.noise = preset_rounded(rng_between(rng, 0.005, 0.03), 1e4);
    spec->step_s = fmax(preset_rounded(run_s / spec->steps, 1e4), 1e-3);
    double fixed = rng_between(&draw->shapes, 0.02, 0.12);
    spec->fixed_s = preset_rounded(spec->step_s * fixed, 1e4);
}

/* A job that is like the others of its batch, but for its run time, curve and costs. */
static double draw_clone(const struct preset_mix *mix, struct mix_draw *draw,
                         struct job_spec *spec)
{
    const struct mix_profile *profile = mix->profile;
    const struct job_spec *like = &draw->like;
    draw->batch_left--;
    *spec = (struct job_spec){ .class = like->class,
                               .gpus = like->gpus,
                               .gpus_min = like->gpus_min,
                               .gpus_max = like->gpus_max,
                               .kind = like->kind,
                               .undeclared = like->undeclared };
    double factor = exp(profile->batch_sigma * rng_normal(&draw->runs));
    double run_s = limit_run(&profile->be, draw->like_run_s * factor);
    if (like->gpus_max)
        draw_elastic(mix, draw, spec, run_s);
    else
        spec->steps = fmax(round(like->steps * run_s / draw->like_run_s), 1);
    draw_costs(profile, draw, spec);
    return run_s;
}

static void begin_batch(const struct preset_mix *mix, struct mix_draw *draw,
                        const struct job_spec *spec, double run_s)
{
    const struct mix_profile *profile = mix->profile;
    bool begins = rng_unit(&draw->batches) < mix->batch_chance;
    if (!begins || spec->class == CLASS_TE)
        return;
    uint32_t range = profile->batch_max - profile->batch_min + 1;
    draw->batch_left = profile->batch_min + rng_below(&draw->batches, range) - 1;
    draw->batch++;
    draw->like = *spec;
    draw->like_run_s = run_s;
}

/*
 * Draw the next job; returns its run time on V100s at its size.  'ret_clone' says whether it
 * belongs to a batch that has begun.
 */
static double draw_job(const struct preset_mix *mix, struct mix_draw *draw,
                       struct job_spec *spec, bool *ret_clone)
{
    const struct mix_profile *profile = mix->profile;
    *ret_clone = draw->batch_left > 0;
    if (*ret_clone)
        return draw_clone(mix, draw, spec);
    bool trial = rng_unit(&draw->classes) < mix->trial_share;
    bool elastic = rng_unit(&draw->classes) < mix->elastic_share;
    double unknown = rng_unit(&draw->classes);
    const struct mix_run *run = trial ? &profile->te : &profile->be;
    spec->class = trial ? CLASS_TE : CLASS_BE;
    spec->gpus = draw_size(mix, draw, run);
    double run_s =
        limit_run(run, draw_log_normal(&draw->runs, run->median_s, run->sigma));
    if (!trial && elastic) {
        draw_elastic(mix, draw, spec, run_s);
    } else {
        draw_rigid(draw, spec, run_s);
        spec->undeclared = unknown < mix->unknown_share * (trial ? TRIALS_UNKNOWN : 1);
    }
    draw_costs(profile, draw, spec);
    begin_batch(mix, draw, spec, run_s);
    return run_s;
}

/* --- all of them ---------------------------------------------------------------------- */

/* Draw all jobs once: how often do events come? */
static void survey_jobs(struct preset_mix *mix, uint64_t seed, double worth)
{
    struct mix_draw draw;
    start_draw(&draw, seed);
    double work_s = 0;
    uint32_t events = 0;
    for (uint32_t i = 0; i < mix->jobs; i++) {
        struct job_spec spec = { 0 };
        bool clone;
        double run_s = draw_job(mix, &draw, &spec, &clone);
        work_s += run_s * spec.gpus;
        events += !clone;
    }
    mix->event_rate = events * mix->load * worth / work_s;
}

static int open_profile(void *self, const struct mix_profile *profile, uint64_t seed,
                        uint32_t gpus, struct workload_facts *facts)
{
    struct preset_mix *mix = self;
    mix->profile = profile;
    mix->gpus_max = gpus ? gpus : profile->gpus;
    double worth = profile->worth * (gpus ? (double)gpus / profile->gpus : 1);
    double mean = (profile->batch_min + profile->batch_max) / 2.0;
    double be = 1 - mix->trial_share; /* only best-effort jobs begin a batch */
    double share = profile->batch_share;
    mix->batch_chance =
        share > 0 && be > 0 ? fmin(share / (mean * (1 - share) + share) / be, 1) : 0;
    survey_jobs(mix, seed, worth);
    start_draw(&mix->draw, seed);
    rng_init(&mix->arrival_rng, seed, "arrivals");
    facts->expected = mix->jobs;
    facts->cluster = profile->cluster;
    return 0;
}

/* The rate of an hour of the day, relative to the mean: lowest at 3, highest at 15. */
static double hour_rate(const struct mix_profile *profile, double at_s)
{
    double hour = fmod(floor(at_s / HOUR_S), DAY_HOURS);
    return 1 - profile->day_swing * cos((hour - 3) / DAY_HOURS * 2 * acos(-1));
}

/* The next event, by using up an exponential variate hour by hour. */
static void next_event(struct preset_mix *mix)
{
    double left = rng_exponential(&mix->arrival_rng, 1);
    if (mix->profile->day_swing == 0) {
        mix->event_s += left / mix->event_rate;
        return;
    }
    for (;;) {
        double rate = mix->event_rate * hour_rate(mix->profile, mix->event_s);
        double end_s = (floor(mix->event_s / HOUR_S) + 1) * HOUR_S;
        if (left < (end_s - mix->event_s) * rate) {
            mix->event_s += left / rate;
            return;
        }
        left -= (end_s - mix->event_s) * rate;
        mix->event_s = end_s;
    }
}

/* Few users submit most jobs; a batch has one. */
static void draw_user(struct preset_mix *mix, bool clone)
{
    const struct mix_profile *profile = mix->profile;
    if (clone)
        return;
    double at = pow(rng_unit(&mix->draw.users), profile->user_skew);
    snprintf(mix->user, sizeof mix->user, "u%u", (uint32_t)(at * profile->users) + 1);
}

static int mix_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_mix *mix = self;
    if (mix->yielded == mix->jobs)
        return 0;
    bool clone;
    draw_job(mix, &mix->draw, spec, &clone);
    double submit_s = (double)mix->last_ns * 1e-9;
    if (clone) {
        submit_s += rng_unit(&mix->arrival_rng) * mix->profile->batch_gap_s;
    } else {
        next_event(mix);
        submit_s = fmax(submit_s, mix->event_s); /* a batch may still be coming in */
    }
    if (submit_s * 1e9 > (double)TIME_MAX_NS)
        return error_set(err, -ERANGE, "the jobs would come over more than 100 years");
    spec->submit_ns = units_ns(preset_rounded(submit_s, 1000));
    if (spec->submit_ns < mix->last_ns)
        spec->submit_ns = mix->last_ns;
    mix->last_ns = spec->submit_ns;
    spec->id = ++mix->yielded;
    draw_user(mix, clone);
    spec->user = mix->user;
    if (clone || mix->draw.batch_left > 0) {
        snprintf(mix->name, sizeof mix->name, "sweep-%u", mix->draw.batch);
        spec->name = mix->name;
    }
    return 1;
}

#define AT(field) .offset = offsetof(struct preset_mix, field)

#define PARAMS(jobs_text, load_text, trial_text, elastic_text, unknown_text) \
    { \
        { "jobs", FIELD_COUNT, AT(jobs), jobs_text, NULL, "how many jobs", 1, 1e7 }, \
            { "load",   FIELD_NUMBER, \
              AT(load), load_text, \
              NULL,     "work that is asked for, per work that the cluster can do", \
              0.01,     100 }, \
            { "trial_share", \
              FIELD_NUMBER, \
              AT(trial_share), \
              trial_text, \
              NULL, \
              "share of trial jobs among all", \
              0, \
              1 }, \
            { "elastic_share", \
              FIELD_NUMBER, \
              AT(elastic_share), \
              elastic_text, \
              NULL, \
              "share of elastic jobs among best-effort jobs", \
              0, \
              1 }, \
            { "unknown_share", \
              FIELD_NUMBER, \
              AT(unknown_share), \
              unknown_text, \
              NULL, \
              "share of undeclared work among other best-effort jobs; trial jobs: " \
              "10/7 of it", \
              0, \
              1 }, \
        { \
            0 \
        } \
    }

#define COLUMNS \
    (COLUMNS_BASIC | COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_NAME) | \
     COLUMN_BIT(COLUMN_USER) | COLUMN_BIT(COLUMN_CLASS) | \
     COLUMN_BIT(COLUMN_GPUS_MIN) | COLUMN_BIT(COLUMN_GPUS_MAX) | \
     COLUMN_BIT(COLUMN_KIND) | COLUMN_BIT(COLUMN_STEPS) | COLUMN_BIT(COLUMN_STEP) | \
     COLUMN_BIT(COLUMN_FIXED) | COLUMN_BIT(COLUMN_GRACE) | COLUMN_BIT(COLUMN_PAUSE) | \
     COLUMN_BIT(COLUMN_LOAD) | COLUMN_BIT(COLUMN_CKPT) | COLUMN_BIT(COLUMN_CURVE) | \
     COLUMN_BIT(COLUMN_DECLARED))

/* A preset for each profile. */
#define PRESET(profile_name, text, ...) \
    static const struct field profile_name##_params[] = PARAMS(__VA_ARGS__); \
    static int open_##profile_name(void *self, uint64_t seed, uint32_t gpus, \
                                   struct workload_facts *facts, struct error *err) \
    { \
        return open_profile(self, &profile_##profile_name, seed, gpus, facts); \
    } \
    const struct preset preset_##profile_name = { \
        .name = #profile_name, \
        .brief = text, \
        .params = profile_name##_params, \
        .columns = COLUMNS, \
        .self_size = sizeof(struct preset_mix), \
        .open = open_##profile_name, \
        .next = mix_next, \
    }

PRESET(mixed, "trial jobs, gangs and elastic jobs that learn, on three types of GPU",
       "1200", "0.9", "0.3", "0.25", "0.35");
PRESET(lab, "a university lab: unequal nodes, day and night, many users", "1000", "0.9",
       "0.35", "0.2", "0.5");
PRESET(industry, "gangs of up to 64 GPUs, few trial jobs, restarts of minutes", "700",
       "0.9", "0.08", "0.15", "0.3");
PRESET(sweeps, "bursts of 50 to 200 jobs that are alike, beside other jobs", "800",
       "0.9", "0.2", "0.3", "0.5");
PRESET(box, "one node of eight GPUs with bursts, and more work than it can do", "400",
       "1.2", "0.35", "0", "0.4");
