/*
 * bench_forecast.c - berth bench forecast: CPU time of one pass over all waiting jobs.
 *
 * A workload with twenty times as much work as the cluster can do is simulated until so many jobs
 * wait; then the first start of each is forecast, over 32 replicates and 4 days, with one in twenty
 * jobs submitted from then on: as many as the cluster can do.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "forecast/arrivals.h"
#include "forecast/start_times.h"
#include "lab/bench.h"
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

static int bench_forecast_run(struct bench *bench, struct error *err)
{
    int r = 0;
    for (size_t q = 0; q < sizeof queues / sizeof *queues && r == 0; q++)
        for (size_t p = 0; p < sizeof policies / sizeof *policies && r == 0; p++)
            r = measure(bench, policies[p], queues[q], err);
    return r;
}

const struct bench_suite bench_forecast = {
    .name = "forecast",
    .brief = "CPU time of forecasts of all waiting jobs",
    .run = bench_forecast_run,
};
