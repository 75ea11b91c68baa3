/* metrics.c - counts, times and GPU-time, fed by events. */
#include "metrics/metrics.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/memory.h"
#include "model/cluster.h"
#include "model/throughput.h"

/* What is kept of a live job besides its record. */
struct metrics_open {
    bool counted; /* in the window                            */
    bool seated, loading;
    bool recalled;  /* told to stop                             */
    bool resizing;  /* it stops or loads only to change its size */
    bool preempted; /* told to stop for another job             */
    bool was_lost;  /* it loads again because of a fault          */
    bool holds;     /* its GPUs are counted as held by it       */
    uint32_t gpus, type;
    job_id partner; /* on the same GPUs; they are counted once  */
    uint32_t starts;
    int64_t since_ns; /* of loading, stopping or resizing         */
    double live_s;    /* metrics->live_s when it was submitted      */
};

void metrics_init(struct metrics *metrics, struct arena *run, const struct view *view,
                  uint64_t window_from, uint64_t window_to)
{
    *metrics = (struct metrics){ .window_from = window_from,
                                 .window_to = window_to,
                                 .window_left = window_to - window_from,
                                 .first_ns = INT64_MAX };
    metrics->open = arena_array(run, struct metrics_open, view->job_max);
    metrics->type_count = view->cluster->type_count;
    series_init(&metrics->series);
}

void metrics_release(struct metrics *metrics)
{
    free(metrics->jobs);
    metrics->jobs = NULL;
}

/* --- time --------------------------------------------------------------------- */

/* Integrate over the time since the last event, in which nothing changed. */
static void advance_time(struct metrics *metrics, int64_t now_ns)
{
    if (now_ns <= metrics->now_ns || metrics->first_ns == INT64_MAX) {
        metrics->now_ns = now_ns;
        return;
    }
    double s = (double)(now_ns - metrics->now_ns) * 1e-9;
    metrics->live_s += s * (metrics->waiting + metrics->running);
    for (uint32_t type = 0; type < metrics->type_count; type++)
        if (metrics->gpus_by_type[type] > 0)
            metrics->held_by_type_ns[type] +=
                (__int128)(now_ns - metrics->now_ns) * metrics->gpus_by_type[type];
    const double values[SERIES_ROWS] = { [SERIES_GPUS_HELD] = metrics->gpus_held,
                                         [SERIES_WAITING] = metrics->waiting,
                                         [SERIES_RUNNING] = metrics->running };
    series_spread(&metrics->series, metrics->now_ns - metrics->first_ns,
                  now_ns - metrics->first_ns, values);
    metrics->now_ns = now_ns;
}

/* --- jobs that run ------------------------------------------------------------- */

static void add_overhead(struct metrics *metrics, enum overhead overhead,
                         const struct metrics_open *open, int64_t now_ns)
{
    metrics->overhead_ns[overhead] += (__int128)(now_ns - open->since_ns) * open->gpus;
}

/* Count the GPUs of a job; those it shares are counted as its partner's. */
static void take_gpus(struct metrics *metrics, const struct view *view, job_id id)
{
    struct metrics_open *open = &metrics->open[id];
    const struct job *job = &view->jobs[id];
    open->gpus = job->gpus_now;
    open->type = job->type_now;
    open->partner = JOB_NONE;
    open->holds = true;
    if (job->partner != JOB_NONE && view->jobs[job->partner].partner == id &&
        metrics->open[job->partner].seated) {
        open->partner = job->partner;
        metrics->open[job->partner].partner = id;
        open->holds = false;
        return;
    }
    metrics->gpus_held += open->gpus;
    metrics->gpus_by_type[open->type] += open->gpus;
}

/* Stop counting them; a partner that stays holds them from now on. */
static void leave_gpus(struct metrics *metrics, struct metrics_open *open)
{
    if (open->partner != JOB_NONE) {
        struct metrics_open *partner = &metrics->open[open->partner];
        partner->partner = JOB_NONE;
        partner->holds = partner->holds || open->holds;
    } else if (open->holds) {
        metrics->gpus_held -= open->gpus;
        metrics->gpus_by_type[open->type] -= open->gpus;
    }
    open->partner = JOB_NONE;
    open->holds = false;
}

static void apply_submitted(struct metrics *metrics, const struct view *view, job_id id)
{
    uint64_t number = metrics->seen++;
    bool counted = number >= metrics->window_from && number < metrics->window_to;
    metrics->open[id] = (struct metrics_open){ .counted = counted,
                                               .partner = JOB_NONE,
                                               .live_s = metrics->live_s };
    metrics->total += counted;
    metrics->deadlines += counted && view->jobs[id].deadline_ns > 0;
    metrics->waiting++;
}

static void apply_rejected(struct metrics *metrics)
{
    uint64_t number = metrics->seen++;
    if (number >= metrics->window_from && number < metrics->window_to) {
        metrics->total++;
        metrics->rejected++;
        metrics->window_left--;
    }
}

static void apply_started(struct metrics *metrics, const struct view *view,
                          const struct event *event)
{
    struct metrics_open *open = &metrics->open[event->job];
    open->seated = true;
    open->starts++;
    open->loading = !event->loaded;
    open->recalled = open->preempted = false;
    open->resizing = open->resizing && open->loading;
    open->since_ns = event->at_ns;
    take_gpus(metrics, view, event->job);
    metrics->waiting--;
    metrics->running++;
}

static void apply_loaded(struct metrics *metrics, const struct view *view,
                         const struct event *event)
{
    struct metrics_open *open = &metrics->open[event->job];
    enum overhead what = open->resizing      ? OVERHEAD_RESIZE
                         : open->was_lost    ? OVERHEAD_REDO_FAILED
                         : open->starts == 1 ? OVERHEAD_LOAD_FIRST
                                             : OVERHEAD_LOAD_AGAIN;
    add_overhead(metrics, what, open, event->at_ns);
    open->loading = open->resizing = open->was_lost = false;
}

static void apply_preempted(struct metrics *metrics, const struct view *view,
                            const struct event *event)
{
    struct metrics_open *open = &metrics->open[event->job];
    if (open->loading)
        apply_loaded(metrics, view, event); /* its loading so far is overhead */
    open->recalled = true;
    open->resizing = event->rule == RULE_RESIZE;
    open->preempted = event->rule != RULE_RESIZE && event->rule != RULE_CANCEL;
    open->since_ns = event->at_ns;
    metrics->preemptions += open->preempted;
    metrics->resizes += open->resizing;
}

/* The job has released its GPUs, for whatever reason. */
static void apply_left(struct metrics *metrics, const struct view *view,
                       const struct event *event)
{
    struct metrics_open *open = &metrics->open[event->job];
    if (!open->seated)
        return; /* it was placed and never started */
    if (open->loading)
        apply_loaded(metrics, view, event);
    bool gone = view->jobs[event->job].state == JOB_FREE; /* no work is repeated */
    if (open->recalled && (open->resizing || open->preempted))
        add_overhead(metrics, open->resizing ? OVERHEAD_RESIZE : OVERHEAD_PAUSE, open,
                     event->at_ns);
    if (!gone && (event->kind == EVENT_STOPPED || event->kind == EVENT_LOST)) {
        double lost_s = event->rate_per_s > 0
                            ? (event->steps_reached - event->steps) / event->rate_per_s
                            : 0;
        enum overhead what = event->kind == EVENT_LOST ? OVERHEAD_REDO_FAILED
                             : open->resizing          ? OVERHEAD_RESIZE
                                                       : OVERHEAD_REDO_PREEMPTED;
        metrics->overhead_ns[what] += (__int128)(lost_s * 1e9 * open->gpus);
    }
    leave_gpus(metrics, open);
    metrics->running--;
    open->seated = open->recalled = false;
    open->was_lost = event->kind == EVENT_LOST;
}

/* --- jobs that ended -------------------------------------------------------------- */

static void keep_job(struct metrics *metrics, const struct metrics_job *job)
{
    uint32_t room = grow_room(metrics->job_room, (uint32_t)metrics->job_count + 1);
    if (room != metrics->job_room) /* what is new is not touched before it is used */
        metrics->jobs = memory_resize(metrics->jobs, room, sizeof *metrics->jobs);
    metrics->job_room = room;
    metrics->jobs[metrics->job_count++] = *job;
}

/* Its rate if it spent its time on each type of GPU in proportion to their number. */
static double rate_on_all(const struct view *view, const struct job *job)
{
    const struct cluster *cluster = view->cluster;
    if (cluster->type_count < 2 || job->gpus == 0)
        return job->rate_best_per_s;
    double sum = 0;
    for (uint32_t type = 0; type < cluster->type_count; type++)
        if (job->types >> type & 1)
            sum += cluster->types[type].gpu_count *
                   throughput_rate(view->rates, job, type, job->gpus, false);
    return sum / cluster->gpu_count;
}

/* Completion time, relative to that on an equal share of the cluster among the jobs that
 * were there meanwhile. */
static double fairness_of(const struct metrics *metrics, const struct view *view,
                          const struct job *job, double jct_s, double steps)
{
    double alone_s = steps / rate_on_all(view, job);
    double others = (metrics->live_s - metrics->open[job - view->jobs].live_s) / jct_s;
    double demand = others * job->gpus / view->cluster->gpu_count;
    return jct_s / (alone_s * (demand > 1 ? demand : 1));
}

static void apply_finished(struct metrics *metrics, const struct view *view,
                           const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    struct metrics_open *open = &metrics->open[event->job];
    metrics->last_ns = event->at_ns;
    if (!open->counted)
        return;
    metrics->window_left--;
    metrics->preempted_jobs += job->preemptions > 0;
    if (job->deadline_ns > 0 && event->at_ns > job->deadline_ns)
        metrics->slo_violations++;
    if (event->kind == EVENT_FAILED) {
        metrics->failed += !job->leaving;
        metrics->cancelled += job->leaving;
        return;
    }
    metrics->completed++;
    double jct_s = (double)(event->at_ns - job->submit_ns) * 1e-9;
    double alone_s = event->steps / job->rate_best_per_s;
    struct metrics_job row = { .jct_s = jct_s,
                               .wait_s = (double)job->waited_ns * 1e-9,
                               .slowdown = 1,
                               .fairness = 1,
                               .class = job->class,
                               .user = job->user };
    if (alone_s > 0 && jct_s > 0) {
        row.slowdown = jct_s / alone_s;
        row.fairness = fairness_of(metrics, view, job, jct_s, event->steps);
    }
    keep_job(metrics, &row);
}

/* The policy gave the job up: it counts as failed. */
static void apply_dropped(struct metrics *metrics, job_id id)
{
    metrics->waiting--;
    if (!metrics->open[id].counted)
        return;
    metrics->window_left--;
    metrics->failed++;
}

/* A cancelled job has ended; until then it was counted as waiting. */
static void apply_cancelled(struct metrics *metrics, job_id id)
{
    metrics->waiting--;
    if (!metrics->open[id].counted)
        return;
    metrics->window_left--;
    metrics->cancelled++;
}

static void apply_resized(struct metrics *metrics, const struct view *view,
                          const struct event *event)
{
    struct metrics_open *open = &metrics->open[event->job];
    add_overhead(metrics, OVERHEAD_RESIZE, open, event->at_ns);
    leave_gpus(metrics, open);
    take_gpus(metrics, view, event->job);
    open->resizing = false;
}

void metrics_event(void *self, const struct view *view, const struct event *event)
{
    struct metrics *metrics = self;
    if (event->kind == EVENT_SUBMITTED && metrics->first_ns == INT64_MAX)
        metrics->first_ns = metrics->last_ns = metrics->now_ns = event->at_ns;
    advance_time(metrics, event->at_ns);

    switch (event->kind) {
    case EVENT_SUBMITTED:
        apply_submitted(metrics, view, event->job);
        break;
    case EVENT_REJECTED:
        apply_rejected(metrics);
        break;
    case EVENT_PLACED:
        prefetch_bytes(&metrics->open[event->job], sizeof *metrics->open);
        break;
    case EVENT_STARTED:
        apply_started(metrics, view, event);
        break;
    case EVENT_LOADED:
        apply_loaded(metrics, view, event);
        break;
    case EVENT_RECALLED:
        apply_preempted(metrics, view, event);
        break;
    case EVENT_RESIZING:
        if (metrics->open[event->job].loading)
            apply_loaded(metrics, view, event); /* its loading so far is overhead */
        metrics->resizes++;
        metrics->open[event->job].resizing = true;
        metrics->open[event->job].since_ns = event->at_ns;
        break;
    case EVENT_RESIZED:
        apply_resized(metrics, view, event);
        break;
    case EVENT_STOPPED:
    case EVENT_LOST:
        if (job_holds_seats(&view->jobs[event->job]))
            break; /* only a pending allocation is lost */
        if (metrics->open[event->job].seated)
            metrics->waiting++;
        apply_left(metrics, view, event);
        if (view->jobs[event->job].state == JOB_FREE)
            apply_cancelled(metrics, event->job);
        break;
    case EVENT_CANCELLED:
        if (view->jobs[event->job].state == JOB_FREE)
            apply_cancelled(metrics, event->job);
        break;
    case EVENT_DROPPED:
        apply_dropped(metrics, event->job);
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
        apply_left(metrics, view, event);
        apply_finished(metrics, view, event);
        break;
    default:
        break;
    }
}

void metrics_end(struct metrics *metrics, const struct view *view)
{
    advance_time(metrics, view->now_ns);
    metrics->unfinished = metrics->total - metrics->completed - metrics->failed -
                          metrics->rejected - metrics->cancelled;
}
