/*
 * A copy of an engine, told the truth of all jobs, goes on as the original does.
 *
 * A workload is simulated; at some moments the engine is copied, with the true work of its live jobs
 * and the arrivals that are to come, and played forward.  Starts and ends in the copy are compared
 * with those in the original's future.
 */
#include "support/cases.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine_copy.h"
#include "forecast/replicate.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "sim/sim.h"

#define COPIES 6
#define JOBS_MAX 2000

/* When jobs start after a copy was made, and end, by public id. */
struct times {
    int64_t start_ns, end_ns;
    uint32_t started; /* attempts before that */
};

struct moment {
    int64_t at_ns;
    struct times copy[JOBS_MAX];
    bool live[JOBS_MAX];
};

struct recording {
    const char *settings;
    double works[JOBS_MAX]; /* true steps, once a job has ended: from the first run */
    struct job arrivals[JOBS_MAX];
    int64_t starts[JOBS_MAX][64]; /* of every attempt */
    uint32_t start_counts[JOBS_MAX];
    int64_t ends[JOBS_MAX];
    uint32_t job_count;
    bool second; /* the works are known: copies are made */
    struct moment moments[COPIES];
    uint32_t moment_count;
    uint64_t steps, steps_all;
    uint32_t next; /* arrival, of a copy */
};

static void note(void *self, const struct view *view, const struct event *event)
{
    struct recording *r = self;
    if (event->job == JOB_NONE)
        return;
    const struct job *job = &view->jobs[event->job];
    assert_true(job->id < JOBS_MAX);
    if (event->kind == EVENT_SUBMITTED && !r->second) {
        assert_true(job->id == r->job_count + 1);
        r->arrivals[r->job_count++] = *job;
    } else if (event->kind == EVENT_STARTED && r->second) {
        if (r->start_counts[job->id] < 64)
            r->starts[job->id][r->start_counts[job->id]++] = event->at_ns;
    } else if (event->kind == EVENT_FINISHED) {
        r->works[job->id] = event->steps;
        r->ends[job->id] = event->at_ns;
    }
}

static void tell_truth(void *context, const struct view *view, job_id job,
                       struct sim_truth *ret_truth)
{
    struct recording *r = context;
    uint64_t id = view->jobs[job].id;
    ret_truth->steps = r->works[id];
    ret_truth->pause_ns = r->arrivals[id - 1].pause_ns; /* what is known may be wrong */
    ret_truth->load_ns = r->arrivals[id - 1].load_ns;
}

static const struct job *next_arrival(void *context)
{
    struct recording *r = context;
    return r->next < r->job_count ? &r->arrivals[r->next++] : NULL;
}

/* Of the engine itself, or of a snapshot of it. */
static void copy_and_play(struct recording *r, const struct engine *engine)
{
    struct error err;
    struct replicate copy;
    struct engine_snapshot snapshot = { 0 };
    struct replicate_setup setup = { .settings = r->settings,
                                     .more_jobs = JOBS_MAX,
                                     .truth = tell_truth,
                                     .arrival = next_arrival,
                                     .context = r };
    struct moment *moment = &r->moments[r->moment_count++];
    const struct state *state = &engine->state;
    moment->at_ns = state->view.now_ns;
    r->next = 0;
    while (r->next < r->job_count && r->arrivals[r->next].submit_ns <= moment->at_ns)
        r->next++;
    uint32_t from = r->next;
    if (r->moment_count % 2 == 0) {
        struct engine_copy_setup apart = { .settings = r->settings };
        if (engine_snapshot_take(&snapshot, engine, &apart, &err) < 0)
            fail_msg("%s", err.text);
        engine = &snapshot.engine;
    }
    if (replicate_init(&copy, engine, &setup, &err) < 0)
        fail_msg("%s", err.text);
    for (uint32_t round = 0; round < 2; round++) { /* the second time as the first */
        r->next = from;
        if (replicate_begin(&copy, engine->seed, &err) < 0 ||
            replicate_play(&copy, INT64_MAX - 1, UINT64_MAX, &err) < 0)
            fail_msg("%s", err.text);
        for (job_id id = 0; id < state->job_count; id++) {
            uint64_t number = state->jobs[id].id;
            struct times times = { copy.starts[id], copy.ends[id], 0 };
            if (state->jobs[id].state == JOB_FREE)
                continue;
            times.started = r->start_counts[number];
            const struct times *first = &moment->copy[number];
            assert_true(round == 0 || (first->start_ns == times.start_ns &&
                                       first->end_ns == times.end_ns));
            moment->live[number] = true;
            moment->copy[number] = times;
        }
    }
    replicate_release(&copy);
    engine_snapshot_release(&snapshot);
}

static void stepped(void *context, const struct engine *engine)
{
    struct recording *r = context;
    r->steps++;
    if (r->second && r->moment_count < COPIES && engine->state.waiting_count > 3 &&
        r->steps > (r->moment_count + 1) * r->steps_all / (COPIES + 2))
        copy_and_play(r, engine);
}

/* Jobs whose start or end differs by more than a second, in per cent of those that were copied. */
static double differing_percent(const struct recording *r, double *ret_mean_s)
{
    uint32_t count = 0;
    uint32_t differ = 0;
    *ret_mean_s = 0;
    for (uint32_t m = 0; m < r->moment_count; m++)
        for (uint32_t id = 1; id <= r->job_count; id++) {
            const struct moment *moment = &r->moments[m];
            if (!moment->live[id])
                continue;
            uint32_t next = moment->copy[id].started;
            int64_t start_ns =
                next < r->start_counts[id] ? r->starts[id][next] : REPLICATE_NOT_YET;
            double end_s = fabs((double)(moment->copy[id].end_ns - r->ends[id])) * 1e-9;
            double start_s =
                start_ns == moment->copy[id].start_ns
                    ? 0
                    : fabs((double)(moment->copy[id].start_ns - start_ns)) * 1e-9;
            count++;
            *ret_mean_s += end_s;
            differ += end_s > 1 || (start_s > 1 && r->start_counts[id] < 64);
        }
    assert_true(count > 20);
    *ret_mean_s /= count;
    return 100.0 * differ / count;
}

static double play_policy(const char *policy, const char *settings,
                          const char *workload, const char *place, uint64_t seed)
{
    static struct recording r;
    struct error err;
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    char text[128];
    r = (struct recording){ .settings = settings };
    arena_init(&arena, 0);
    assert_int_equal(cluster_load(&cluster, &arena, place, &err), 0);
    throughput_init(&rates, &cluster);
    throughput_published(&rates, &arena);
    snprintf(text, sizeof text, "%s%s%s", policy, settings ? "," : "",
             settings ? settings : "");
    struct sim_setup setup = { .cluster = &cluster,
                               .rates = &rates,
                               .workload = workload,
                               .policy = text,
                               .seed = seed,
                               .stepped = stepped,
                               .observer = { .event = note, .self = &r },
                               .stepped_context = &r };
    for (uint32_t run = 0; run < 2; run++) {
        struct sim_result result;
        r.second = run == 1;
        r.steps = 0;
        if (sim_run(&setup, &result, &err) < 0)
            fail_msg("%s: %s", policy, err.text);
        sim_result_release(&result);
        r.steps_all = r.steps;
    }
    assert_true(r.moment_count > 0);
    double mean_s;
    double percent = differing_percent(&r, &mean_s);
    printf("# %s, %s, seed %" PRIu64
           ": %.1f %% of jobs start or end otherwise; ends by %.1f s on average\n",
           text, workload, seed, percent, mean_s);
    arena_release(&arena);
    return percent;
}

/*
 * In 25 seeds not one job was different.  Rounded times may decide between equal jobs otherwise, so
 * a few are allowed to be.
 */
#define FEW_PERCENT 5

static const char xion[] = "xion:gpus=32,load=1.1,cost=1,jobs=600";
static const char synthetic[] = "synthetic:jobs=800,load=1.1";

static void first_come_first_served_goes_on_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, 3)
    assert_true(play_policy("fifo", NULL, xion, "4xv100:8", seed.now) == 0);
}

static void backfilling_goes_on_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, 3)
    assert_true(play_policy("fifo-backfill", NULL, xion, "4xv100:8", seed.now) == 0);
}

static void las_goes_on_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, 3)
    assert_true(play_policy("las", NULL, xion, "4xv100:8", seed.now) <= FEW_PERCENT);
}

static void srtf_goes_on_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, 3)
    assert_true(play_policy("srtf", NULL, xion, "4xv100:8", seed.now) <= FEW_PERCENT);
}

static void xion_goes_on_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, 3)
    assert_true(play_policy("xion", NULL, xion, "4xv100:8", seed.now) <= FEW_PERCENT);
}

static void berth_goes_on_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, 3)
    {
        assert_true(play_policy("berth", NULL, xion, "4xv100:8", seed.now) <=
                    FEW_PERCENT);
        assert_true(play_policy("berth", NULL, synthetic, "4xv100:8", seed.now) <=
                    FEW_PERCENT);
    }
}

RUN_CASES(TEST(first_come_first_served_goes_on_as_it_was),
          TEST(backfilling_goes_on_as_it_was), TEST(las_goes_on_as_it_was),
          TEST(srtf_goes_on_as_it_was), TEST(xion_goes_on_as_it_was),
          TEST(berth_goes_on_as_it_was));
