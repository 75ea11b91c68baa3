/*
 * bench_forecast.c - berth bench forecast: CPU time of one pass over all waiting jobs.
 *
 * A workload with twenty times as much work as the cluster can do is simulated until so many jobs
 * wait; then the first start of each is forecast, over 32 replicates and 4 days, with one in twenty
 * jobs submitted from then on: as many as the cluster can do.
 *
 * Then two berthds with a thousand waiting jobs get submissions in turns, one of them without
 * forecasts: how long replies take.  That is of the wall clock.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "api/call.h"
#include "base/error.h"
#include "base/json.h"
#include "forecast/arrivals.h"
#include "forecast/start_times.h"
#include "lab/bench.h"
#include "lab/scratch.h"
#include "predict/run_times.h"

#define OVERLOAD 20
#define HORIZON_NS (4 * INT64_C(86400000000000))

static const char *const policies[] = { "fifo", "fifo-backfill", "las",
                                        "srtf", "xion",          "berth" };
static const uint32_t queues[] = { 100, 1000 };

struct bench_moment {
    struct run_times times;
    struct arrivals arrivals;
    uint32_t waiting; /* that a forecast is made at */
    bool made;
    double cpu_s;
    uint64_t events;
    uint32_t live;
    double ahead_s; /* how far the events sufficed */
    int status;
    struct error err;
};

static void note_event(void *self, const struct view *view, const struct event *event)
{
    struct bench_moment *moment = self;
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_SUBMITTED && job->id % OVERLOAD == 0)
        arrivals_add(&moment->arrivals, job);
    if (event->kind == EVENT_FINISHED)
        run_times_add(&moment->times, job, run_times_work_s(job, event->steps));
}

static void stepped(void *context, const struct engine *engine)
{
    struct bench_moment *moment = context;
    struct start_times times;
    struct start_setup setup = { .times = &moment->times,
                                 .arrivals = &moment->arrivals,
                                 .horizon_ns = HORIZON_NS,
                                 .starts_only = true,
                                 .seed = 1 };
    if (moment->made || engine->state.waiting_count < moment->waiting ||
        moment->times.count < RUN_TIMES_ENOUGH)
        return;
    moment->made = true;
    double begin_s = clock_cpu_s();
    moment->status = start_times_make(&setup, engine, NULL, 0, &times, &moment->err);
    moment->cpu_s = clock_cpu_s() - begin_s;
    moment->events = times.event_count;
    moment->live = engine->state.live_count;
    moment->ahead_s = (double)(times.horizon_ns - times.made_ns) * 1e-9;
    start_times_release(&times);
}

static int measure(struct bench *bench, const char *policy, uint32_t waiting,
                   struct error *err)
{
    struct bench_moment moment = { .waiting = waiting };
    struct sim_result result;
    double cpu_s;
    char workload[96];
    snprintf(workload, sizeof workload, "synthetic:jobs=%u,load=%d",
             12 * waiting + 1000, OVERLOAD);
    run_times_init(&moment.times);
    int r = bench_simulate(
        "14xv100:8", false,
        (struct sim_setup){
            .workload = workload,
            .policy = policy,
            .seed = 1,
            .stepped = stepped,
            .stepped_context = &moment,
            .observer = { .event = note_event,
                          .self = &moment,
                          .kinds = 1u << EVENT_SUBMITTED | 1u << EVENT_FINISHED } },
        &result, &cpu_s, err);
    if (r == 0) {
        sim_result_release(&result);
        r = moment.status;
        *err = moment.err;
    }
    if (r == 0 && !moment.made)
        r = error_set(err, -EINVAL, "%s: never were %u jobs waiting", policy, waiting);
    if (r == 0) {
        bench_row(bench, moment.cpu_s * 1e3, "ms", waiting, "pass_%s_%u_waiting",
                  policy, waiting);
        bench_row(bench, (double)moment.events, "events", waiting,
                  "events_%s_%u_waiting", policy, waiting);
        bench_row(bench, moment.ahead_s / 3600, "h", waiting, "ahead_%s_%u_waiting",
                  policy, waiting);
    }
    run_times_release(&moment.times);
    arrivals_release(&moment.arrivals);
    return r;
}

/* --- beside decisions, and asked of berthd -------------------------------------------- */

#define LIVE_WAITING 1000
#define TURNS 40
#define PER_TURN 50

static struct json *make_sleeper(const char *seconds)
{
    struct json *request = json_new_object();
    struct json *command = json_new_array();
    json_add_text(command, "sleep");
    json_add_text(command, seconds);
    json_put(request, "command", command);
    json_put_text(request, "cwd", "/");
    json_put_count(request, "gpus", 1);
    return request;
}

static int submit_sleepers(struct scratch *scratch, const char *seconds, uint32_t count,
                           struct bench_samples *samples, struct error *err)
{
    struct json *request = make_sleeper(seconds);
    uint64_t id;
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        double begin_s = clock_now_s();
        r = scratch_submit(scratch, request, &id, err);
        if (samples)
            bench_add_sample(samples, (clock_now_s() - begin_s) * 1e3);
    }
    json_free(request);
    return r;
}

/* Some jobs have ended, and a queue waits. */
static int fill(struct scratch *scratch, struct error *err)
{
    int64_t live = 1;
    int r = submit_sleepers(scratch, "0.01", 20, NULL, err);
    while (r == 0 && live > 0)
        r = scratch_count_jobs(scratch, &live, err);
    return r < 0 ? r : submit_sleepers(scratch, "300", LIVE_WAITING, NULL, err);
}

static int ask_for_forecasts(struct bench *bench, struct scratch *scratch,
                             struct error *err)
{
    static struct bench_samples samples;
    samples.count = 0;
    size_t jobs = 0;
    for (uint32_t i = 0; i < 200; i++) {
        struct json *reply = NULL;
        double begin_s = clock_now_s();
        int r = call_json(scratch->call, "GET", "/v1/forecast", NULL, &reply, err);
        if (r < 0)
            return r;
        bench_add_sample(&samples, (clock_now_s() - begin_s) * 1e3);
        jobs = json_count(json_get(reply, "jobs"));
        json_free(reply);
    }
    bench_row(bench, (double)jobs, "jobs", 1, "forecast_reply_jobs");
    bench_row(bench, bench_quantile(&samples, 0.5), "ms", 200, "forecast_reply.p50");
    bench_row(bench, bench_quantile(&samples, 0.99), "ms", 200, "forecast_reply.p99");
    bench_row(bench, scratch_metric(scratch, "berth_forecast_copy_seconds ") * 1e3,
              "ms", 1, "snapshot_1000_waiting");
    return 0;
}

static int take_turns(struct bench *bench, struct scratch *with,
                      struct scratch *without, struct error *err)
{
    static struct bench_samples on, off;
    on.count = off.count = 0;
    int r = fill(with, err);
    if (r == 0)
        r = fill(without, err);
    for (uint32_t i = 0; i < TURNS && r == 0; i++) {
        r = submit_sleepers(with, "300", PER_TURN, &on, err);
        if (r == 0)
            r = submit_sleepers(without, "300", PER_TURN, &off, err);
    }
    if (r < 0)
        return r;
    double off_ms = bench_quantile(&off, 0.99);
    double on_ms = bench_quantile(&on, 0.99);
    bench_row(bench, bench_quantile(&off, 0.5), "ms", off.count, "submit_without.p50");
    bench_row(bench, off_ms, "ms", off.count, "submit_without.p99");
    bench_row(bench, bench_quantile(&on, 0.5), "ms", on.count, "submit_with.p50");
    bench_row_versus(bench, "submit_with.p99", on_ms, "ms", on.count,
                     "without forecasts", off_ms / on_ms);
    double off_s = scratch_metric(without, "berth_decision_seconds{share=\"0.99\"} ");
    double on_s = scratch_metric(with, "berth_decision_seconds{share=\"0.99\"} ");
    bench_row(bench, off_s * 1e3, "ms", off.count, "decision_without.p99");
    bench_row_versus(bench, "decision_with.p99", on_s * 1e3, "ms", on.count,
                     "without forecasts", off_s / on_s);
    return ask_for_forecasts(bench, with, err);
}

static int write_switch(const struct scratch *scratch, char *path, size_t size,
                        struct error *err)
{
    snprintf(path, size, "%s/off.yaml", scratch->dir);
    FILE *file = fopen(path, "we");
    bool good = file && fputs("forecasts: false\n", file) >= 0;
    if (file)
        good = fclose(file) == 0 && good;
    return good ? 0 : error_set(err, -EIO, "%s: cannot be written", path);
}

static int measure_beside(struct bench *bench, struct error *err)
{
    static const char *const on[] = { "--fake-gpus", "v100:4", NULL };
    static char path[300];
    static const char *const off[] = { "--fake-gpus", "v100:4", "--config", path,
                                       NULL };
    struct scratch with, without;
    int r = scratch_open(&with, on, err);
    if (r < 0)
        return r;
    r = scratch_open(&without, off, err);
    if (r == 0) {
        r = write_switch(&without, path, sizeof path, err);
        if (r == 0)
            r = scratch_start(&with, err);
        if (r == 0)
            r = scratch_start(&without, err);
        if (r == 0)
            r = take_turns(bench, &with, &without, err);
        scratch_close(&without);
    }
    scratch_close(&with);
    return r;
}

static int bench_forecast_run(struct bench *bench, struct error *err)
{
    int r = 0;
    for (size_t q = 0; q < sizeof queues / sizeof *queues && r == 0; q++)
        for (size_t p = 0; p < sizeof policies / sizeof *policies && r == 0; p++)
            r = measure(bench, policies[p], queues[q], err);
    return r < 0 ? r : measure_beside(bench, err);
}

const struct bench_suite bench_forecast = {
    .name = "forecast",
    .brief = "CPU time of forecasts of all waiting jobs",
    .run = bench_forecast_run,
};
