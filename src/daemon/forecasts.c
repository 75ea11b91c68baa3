/* forecasts.c - when jobs will start and end, as berthd tells its users. */
#include "daemon/forecasts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/forecasts_internal.h"
#include "daemon/scheduler.h"
#include "engine/engine.h"
#include "metrics/prometheus.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "store/store.h"

#define HORIZON_NS (4 * INT64_C(86400) * NS_PER_S)
#define EVENTS_MAX 1000000       /* of a pass: seconds of the thread, at most  */
#define GATHER_NS (NS_PER_S / 5) /* what is submitted together is forecast together */
#define LEAST_PAUSE_NS NS_PER_S
#define PAUSE_OF_WORK 9   /* times what a pass took: a tenth of a core   */
#define PAUSE_OF_COPY 200 /* times what its snapshot took of the loop    */
#define MOST_PAUSE_NS (300 * NS_PER_S)
#define KEPT_MAX 200             /* of one pass, to be compared with what happens */
#define RENEW_NS (60 * NS_PER_S) /* nothing has changed but the time          */

static const char no_history[] =
    "fewer than 5 jobs have ended: nothing is known of how "
    "long jobs run";

/* A pass over all jobs. */
struct forecast_pass_task {
    struct forecast_task task;
    struct forecasts *forecasts; /* NULL: it is not wanted any more */
    struct start_releases releases;
    struct start_times times;
    const struct policy *policy; /* of the snapshot */
    int status;
    struct error err;
};

/* --- kinds ------------------------------------------------------------------------------ */

struct forecast_policy *forecasts_find_kind(struct forecasts *forecasts,
                                            const char *policy)
{
    for (uint32_t i = 0; i < forecasts->kind_count; i++)
        if (strcmp(forecasts->kinds[i].policy, policy) == 0)
            return &forecasts->kinds[i];
    if (forecasts->kind_count == FORECAST_KINDS_MAX)
        return NULL;
    struct forecast_policy *kind = &forecasts->kinds[forecasts->kind_count++];
    snprintf(kind->policy, sizeof kind->policy, "%s", policy);
    for (uint32_t t = 0; t < FORECAST_TARGETS; t++)
        kind->choices[t] = memory_checked(calloc(1, sizeof *kind->choices[t]));
    return kind;
}

/* --- how forecasts turn out ---------------------------------------------------------------- */

static double seconds_since(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) * 1e-9;
}

/* The start or the end of a job has come, or never will. */
static void end_forecast(struct forecasts *forecasts, struct forecast_mark *mark,
                         enum forecast_row_target target, int64_t at_ns, bool dropped)
{
    struct error err;
    if (!mark->of[target].made || mark->of[target].over)
        return;
    mark->of[target].over = true;
    struct forecast_choice *choice = mark->of[target].kind->choices[target];
    if (dropped)
        forecast_choice_drop(choice, mark->of[target].number, at_ns);
    else
        forecast_choice_resolve(choice, mark->of[target].number, at_ns);
    int r = forecast_rows_end(forecasts->rows, mark->job, target, at_ns, dropped, &err);
    store_fail(forecasts->scheduler->store, r, &err);
}

static void note_start(struct forecasts *forecasts, struct forecast_mark *mark,
                       const struct job *job, int64_t at_ns)
{
    if (mark->job != job->id || job->first_start_ns != at_ns)
        return;
    if (mark->of[FORECAST_START].made)
        forecast_choice_note(mark->of[FORECAST_START].kind->choices[FORECAST_START],
                             job->gpus, seconds_since(job->submit_ns, at_ns));
    end_forecast(forecasts, mark, FORECAST_START, at_ns, false);
}

/* What it was in its seats, as work on the type it runs fastest on. */
static double served_work_s(const struct view *view, const struct job *job)
{
    double rate =
        throughput_rate(view->rates, job, job->type_now, job->gpus, job->spread_now);
    double speed =
        rate > 0 && job->rate_best_per_s > 0 ? rate / job->rate_best_per_s : 1;
    return job->gpus > 0 ? (double)job->served_ns / job->gpus * 1e-9 * speed : 0;
}

/* What it truly took counts for later jobs; not of one that was cancelled. */
static void note_end(struct forecasts *forecasts, const struct view *view,
                     struct forecast_mark *mark, const struct job *job,
                     const struct event *event)
{
    struct forecast_policy *kind =
        forecasts_find_kind(forecasts, forecasts->scheduler->engine.policy->name);
    bool cancelled =
        job->leaving || event->kind == EVENT_DROPPED || event->kind == EVENT_CANCELLED;
    double work_s = run_times_work_s(job, event->steps);
    if (!(work_s > 0)) /* it has reported nothing, or none of the steps it declared */
        work_s = served_work_s(view, job);
    if (!cancelled && work_s > 0)
        history_ended(&forecasts->history, job, work_s);
    if (!cancelled && kind)
        forecast_choice_note(kind->choices[FORECAST_END], job->gpus,
                             seconds_since(job->submit_ns, event->at_ns));
    if (mark->job != job->id)
        return;
    end_forecast(forecasts, mark, FORECAST_START, event->at_ns, true);
    end_forecast(forecasts, mark, FORECAST_END, event->at_ns, cancelled);
}

static void plan_pass(struct forecasts *forecasts);

static void note_event(void *self, const struct view *view, const struct event *event)
{
    struct forecasts *forecasts = self;
    forecasts->changed = true;
    plan_pass(forecasts);
    if (event->job == JOB_NONE || event->job >= forecasts->mark_count)
        return;
    const struct job *job = &view->jobs[event->job];
    struct forecast_mark *mark = &forecasts->marks[event->job];
    if (event->kind == EVENT_SUBMITTED)
        history_submitted(&forecasts->history, job);
    else if (event->kind == EVENT_STARTED)
        note_start(forecasts, mark, job, event->at_ns);
    else if (job->state == JOB_FREE && event->kind != EVENT_REJECTED)
        note_end(forecasts, view, mark, job, event);
}

/* --- after a pass --------------------------------------------------------------------------- */

static void set_forward(double forward_s[QUANTILE_COUNT],
                        const int64_t at_ns[QUANTILE_COUNT], int64_t made_ns,
                        int64_t horizon_ns)
{
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++) {
        int64_t until_ns = at_ns[q] == TIME_LATER ? horizon_ns : at_ns[q];
        forward_s[q] = fmax(seconds_since(made_ns, until_ns), 0);
    }
}

/* Keep the first forecast of a job, to be compared with what happens. */
static void keep_first(struct forecasts *forecasts, const struct job *job,
                       struct forecast_mark *mark, enum forecast_row_target target,
                       const double forward_s[QUANTILE_COUNT])
{
    struct forecast_policy *kind = forecasts->times_kind;
    struct forecast_shown shown;
    struct error err;
    uint64_t number = forecast_choice_add(
        kind->choices[target], forecasts->times.made_ns, job->gpus, forward_s, &shown);
    mark->of[target].over = number == CHOICE_NONE;
    mark->of[target].number = number;
    if (number == CHOICE_NONE)
        return;
    struct forecast_row row = { .job = job->id,
                                .target = target,
                                .made_ns = forecasts->times.made_ns,
                                .policy = kind->policy,
                                .gpus = job->gpus,
                                .is_forward = true,
                                .shown_baseline = shown.method == FORECAST_BASELINE };
    memcpy(row.forward_s, forward_s, sizeof row.forward_s);
    memcpy(row.shown_s, shown.waits_s, sizeof row.shown_s);
    int r = forecast_rows_add(forecasts->rows, &row, &err);
    store_fail(forecasts->scheduler->store, r, &err);
    scheduler_want_pass(forecasts->scheduler); /* which commits it */
}

/* What was forecast of a job of the last pass so far; NULL: it has ended meanwhile. */
static struct forecast_mark *find_mark(struct forecasts *forecasts,
                                       const struct job_times *of)
{
    const struct job *job = &forecasts->scheduler->engine.state.jobs[of->slot];
    if (of->slot >= forecasts->mark_count || job->state == JOB_FREE ||
        job->id != of->id)
        return NULL;
    struct forecast_mark *mark = &forecasts->marks[of->slot];
    if (mark->job != of->id)
        *mark = (struct forecast_mark){ .job = of->id };
    return mark;
}

/* Of 'target' there is a first forecast now. */
static bool is_first(struct forecasts *forecasts, const struct job_times *of,
                     const struct forecast_mark *mark, enum forecast_row_target target)
{
    const struct job *job = &forecasts->scheduler->engine.state.jobs[of->slot];
    return mark && !mark->of[target].made &&
           (target == FORECAST_END || job->first_start_ns < 0);
}

/*
 * Of jobs that come by the thousand KEPT_MAX are enough, spread evenly over them: only the last
 * CALIBRATION_FORECASTS count, and each takes its time of the loop.
 */
static void keep_first_of(struct forecasts *forecasts, enum forecast_row_target target)
{
    const struct start_times *times = &forecasts->times;
    const struct job *jobs = forecasts->scheduler->engine.state.jobs;
    uint32_t first = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < times->count; i++)
        first += is_first(forecasts, &times->jobs[i],
                          find_mark(forecasts, &times->jobs[i]), target);
    uint32_t every = first / KEPT_MAX + 1;
    for (uint32_t i = 0; i < times->count; i++) {
        const struct job_times *of = &times->jobs[i];
        struct forecast_mark *mark = find_mark(forecasts, of);
        double forward_s[QUANTILE_COUNT];
        if (!is_first(forecasts, of, mark, target))
            continue;
        set_forward(forward_s, target == FORECAST_START ? of->start_ns : of->end_ns,
                    times->made_ns, times->horizon_ns);
        mark->of[target].made = true;
        mark->of[target].over = true; /* where it is not kept */
        mark->of[target].kind = forecasts->times_kind;
        if (seen++ % every == 0)
            keep_first(forecasts, &jobs[of->slot], mark, target, forward_s);
    }
}

static void keep_first_forecasts(struct forecasts *forecasts)
{
    for (uint32_t target = 0; target < FORECAST_TARGETS; target++)
        keep_first_of(forecasts, target);
}

static void take_times(struct forecasts *forecasts, struct forecast_pass_task *pass,
                       struct forecast_policy *kind)
{
    start_times_release(&forecasts->times);
    free(forecasts->expected);
    forecasts->times = pass->times;
    forecasts->expected =
        memory_checked(calloc(pass->times.count + 1, sizeof *forecasts->expected));
    pass->times = (struct start_times){ 0 };
    forecasts->times_kind = kind;
    struct forecasts_status *status = &forecasts->status;
    status->made = forecasts->times.count > 0;
    status->made_ns = forecasts->times.made_ns;
    status->horizon_ns = forecasts->times.horizon_ns;
    status->replicates = forecasts->times.replicates;
    status->jobs = forecasts->times.count;
    status->passes++;
    forecasts->reason[0] = '\0';
    for (uint32_t t = 0; t < FORECAST_TARGETS; t++)
        forecasts->quality[t] =
            forecast_choice_quality(kind->choices[t], status->made_ns);
    if (forecasts->times.count > 0)
        keep_first_forecasts(forecasts);
    else if (forecasts->scheduler->engine.state.live_count > 0)
        snprintf(forecasts->reason, sizeof forecasts->reason, "%s",
                 forecasts->history.times.count < RUN_TIMES_ENOUGH
                     ? no_history
                     : "no job waits or runs");
    if (forecasts->told)
        forecasts->told(forecasts->told_context);
}

/* --- passes ------------------------------------------------------------------------------- */

/* It is released by a time, or by the ends of jobs, however they end. */
static bool can_be_foreseen(const struct start_condition *condition)
{
    bool can = !condition->held && !condition->outside && !condition->never &&
               condition->array_limit == 0;
    for (uint32_t i = 0; i < condition->dependency_count; i++) {
        enum dependency_kind kind = condition->dependencies[i].kind;
        can = can && (kind == DEPENDS_OK || kind == DEPENDS_ANY);
    }
    return can;
}

void forecasts_list_releases(const struct start_conditions *conditions,
                             struct start_releases *releases)
{
    *releases = (struct start_releases){ 0 };
    uint32_t room = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < conditions->count; i++)
        room += conditions->list[i].dependency_count;
    releases->list =
        memory_checked(calloc(conditions->count + 1, sizeof *releases->list));
    releases->after = memory_checked(calloc(room + 1, sizeof *releases->after));
    for (uint32_t i = 0; i < conditions->count; i++) {
        const struct start_condition *condition = &conditions->list[i];
        if (!can_be_foreseen(condition))
            continue;
        releases->list[releases->count++] =
            (struct start_release){ .id = condition->id,
                                    .at_ns = condition->begin_ns,
                                    .first = count,
                                    .count = condition->dependency_count };
        for (uint32_t k = 0; k < condition->dependency_count; k++)
            releases->after[count++] = condition->dependencies[k].id;
    }
}

void forecasts_free_releases(struct start_releases *releases)
{
    free(releases->list);
    free(releases->after);
    *releases = (struct start_releases){ 0 };
}

static void free_pass(struct forecast_pass_task *pass)
{
    start_times_release(&pass->times);
    forecasts_free_releases(&pass->releases);
    free(pass);
}

static int work_pass(struct forecast_task *task, struct engine *engine,
                     const char *settings)
{
    struct forecast_pass_task *pass = (struct forecast_pass_task *)task;
    const struct forecast_history *history = &pass->forecasts->history;
    struct start_setup setup = { .settings = settings,
                                 .times = &history->times,
                                 .arrivals = &history->arrivals,
                                 .horizon_ns = HORIZON_NS,
                                 .event_max = EVENTS_MAX,
                                 .releases = &pass->releases,
                                 .seed = pass->forecasts->status.passes + 1,
                                 .cancelled = &task->cancelled };
    pass->policy = engine->policy;
    pass->status = start_times_make(&setup, engine, NULL, 0, &pass->times, &pass->err);
    return pass->status;
}

static int64_t between(int64_t least_ns, int64_t ns, int64_t most_ns)
{
    return ns < least_ns ? least_ns : ns > most_ns ? most_ns : ns;
}

static void done_pass(struct forecast_task *task)
{
    struct forecast_pass_task *pass = (struct forecast_pass_task *)task;
    struct forecasts *forecasts = pass->forecasts;
    struct forecasts_status *status = &forecasts->status;
    int r = task->dropped      ? -ECANCELED /* the engine may go */
            : task->status < 0 ? task->status
                               : pass->status;
    struct forecast_policy *kind =
        r == 0 ? forecasts_find_kind(forecasts, pass->policy->name) : NULL;
    forecasts->task = NULL;
    status->copy_ns = forecast_worker_copy_ns(forecasts->worker);
    if (r == -ECANCELED) {
        status->cancelled++;
        forecasts->changed = true;
    } else if (r < 0) {
        status->failures++;
        snprintf(forecasts->reason, sizeof forecasts->reason,
                 "playing forward has failed: %.180s",
                 task->status < 0 ? task->why : pass->err.text);
    } else if (kind) {
        status->took_ns = task->took_ns;
        take_times(forecasts, pass, kind);
    }
    int64_t wanted_ns = PAUSE_OF_WORK * task->took_ns;
    if (PAUSE_OF_COPY * status->copy_ns > wanted_ns)
        wanted_ns = PAUSE_OF_COPY * status->copy_ns;
    forecasts->next_ns =
        clock_now_ns() + between(LEAST_PAUSE_NS, wanted_ns, MOST_PAUSE_NS);
    free_pass(pass);
    plan_pass(forecasts);
}

static void begin_pass(struct forecasts *forecasts)
{
    struct scheduler *scheduler = forecasts->scheduler;
    struct error err;
    if (forecasts->task || forecasts->loader || !forecasts->marks ||
        !scheduler->alive || scheduler->engine.state.live_count == 0)
        return;
    struct forecast_pass_task *pass = memory_checked(calloc(1, sizeof *pass));
    pass->task.owner = FORECAST_OWNER_NONE;
    pass->task.work = work_pass;
    pass->task.done = done_pass;
    pass->forecasts = forecasts;
    forecasts_list_releases(&scheduler->conditions, &pass->releases);
    forecasts->task = pass;
    forecasts->changed = false;
    if (forecast_worker_add(forecasts->worker, &pass->task, &err) == 0)
        return;
    forecasts->task = NULL;
    forecasts->changed = true; /* others wait: later */
    forecasts->next_ns = clock_now_ns() + LEAST_PAUSE_NS;
    free_pass(pass);
    plan_pass(forecasts);
}

static void on_timer(uv_timer_t *timer)
{
    begin_pass(timer->data);
}

/* When the next pass begins: soon after a change, and now and then since time goes on. */
static void plan_pass(struct forecasts *forecasts)
{
    if (forecasts->task || forecasts->loader || !forecasts->marks ||
        (uv_is_active((uv_handle_t *)&forecasts->timer) &&
         uv_timer_get_due_in(&forecasts->timer) <= GATHER_NS / 1000000))
        return;
    int64_t wait_ns = forecasts->next_ns - clock_now_ns();
    int64_t in_ns = between(GATHER_NS, wait_ns, MOST_PAUSE_NS);
    if (!forecasts->changed && in_ns < RENEW_NS)
        in_ns = RENEW_NS;
    uv_timer_start(&forecasts->timer, on_timer, (uint64_t)(in_ns / 1000000), 0);
}

static void on_loaded(struct forecasts *forecasts)
{
    forecasts->changed = true;
    plan_pass(forecasts);
}

/* --- what users are told ------------------------------------------------------------------- */

static const struct job_times *find_times(const struct forecasts *forecasts,
                                          uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = forecasts->times.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (forecasts->times.jobs[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < forecasts->times.count && forecasts->times.jobs[low].id == id
               ? &forecasts->times.jobs[low]
               : NULL;
}

/* Set right by earlier forecasts of this kind. */
static void correct(struct forecasts *forecasts, struct forecast_policy *kind,
                    enum forecast_row_target target, const struct start_times *times,
                    const struct job_times *of, uint32_t gpus, int64_t since_ns,
                    struct expected_time *ret)
{
    const int64_t *at_ns = target == FORECAST_START ? of->start_ns : of->end_ns;
    double forward_s[QUANTILE_COUNT];
    struct forecast_shown shown;
    set_forward(forward_s, at_ns, times->made_ns, times->horizon_ns);
    double waited_s = since_ns >= 0 ? seconds_since(since_ns, times->made_ns) : 0;
    if (!forecast_choice_show(kind->choices[target], times->made_ns, gpus, waited_s,
                              forward_s, &shown))
        return;
    const struct forecast_quality *quality = &forecasts->quality[target];
    *ret = (struct expected_time){
        .known = true,
        .made_ns = times->made_ns,
        .horizon_ns = times->horizon_ns,
        .later = target == FORECAST_START ? of->starts_later : of->ends_later,
        .baseline = shown.method == FORECAST_BASELINE,
        .basis = shown.method == FORECAST_BASELINE ? "waits" : of->basis,
        .basis_count = shown.method == FORECAST_BASELINE ? 0 : of->basis_count,
        .policy = kind->policy,
        .coverage_80 = quality->coverage_80,
        .coverage_count = quality->count,
    };
    double left_s = seconds_since(times->made_ns, times->horizon_ns);
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
        ret->at_ns[q] = shown.waits_s[q] >= left_s
                            ? TIME_LATER
                            : times->made_ns + (int64_t)(shown.waits_s[q] * 1e9);
}

/* They stay the same until the next pass. */
static const struct expected_job *make_expected(struct forecasts *forecasts,
                                                const struct job_times *of,
                                                const struct job *job)
{
    struct expected_job *expected = &forecasts->expected[of - forecasts->times.jobs];
    const struct start_times *times = &forecasts->times;
    if (expected->is_made)
        return expected;
    expected->is_made = true;
    if (of->waits)
        correct(forecasts, forecasts->times_kind, FORECAST_START, times, of, job->gpus,
                job->since_ns, &expected->start);
    correct(forecasts, forecasts->times_kind, FORECAST_END, times, of, job->gpus,
            job->submit_ns, &expected->end);
    return expected;
}

void forecasts_find(struct forecasts *forecasts, job_id id,
                    struct expected_time *ret_start, struct expected_time *ret_end)
{
    const struct job *job = &forecasts->scheduler->engine.state.jobs[id];
    const struct job_times *of = find_times(forecasts, job->id);
    *ret_start = *ret_end = (struct expected_time){ 0 };
    if (!of || job->state == JOB_FREE)
        return;
    const struct expected_job *expected = make_expected(forecasts, of, job);
    if (!job_holds_seats(job) && job->state != JOB_PLACED)
        *ret_start = expected->start;
    *ret_end = expected->end;
}

uint64_t forecasts_job(const struct forecasts *forecasts, uint32_t number)
{
    return number < forecasts->times.count ? forecasts->times.jobs[number].id : 0;
}

void forecasts_correct_start(struct forecasts *forecasts, const struct job_times *times,
                             const struct start_times *of, uint32_t gpus,
                             struct expected_time *ret_start)
{
    struct forecast_policy *kind =
        forecasts_find_kind(forecasts, forecasts->scheduler->engine.policy->name);
    *ret_start = (struct expected_time){ 0 };
    if (kind)
        correct(forecasts, kind, FORECAST_START, of, times, gpus, -1, ret_start);
}

struct forecast_worker *forecasts_worker(const struct forecasts *forecasts)
{
    return forecasts->worker;
}

const struct forecast_history *forecasts_history(const struct forecasts *forecasts)
{
    return &forecasts->history;
}

struct forecasts_status forecasts_status(const struct forecasts *forecasts)
{
    struct forecasts_status status = forecasts->status;
    status.reason = forecasts->loader ? "the history is being read"
                    : status.passes == 0 && !forecasts->reason[0]
                        ? "nothing was played forward yet"
                        : forecasts->reason;
    if (status.made)
        status.reason = "";
    return status;
}

bool forecasts_quality(struct forecasts *forecasts, uint32_t kind,
                       enum forecast_row_target target, const char **ret_policy,
                       enum forecast_method *ret_best, struct forecast_quality *ret)
{
    if (kind >= forecasts->kind_count)
        return false;
    int64_t now_ns = scheduler_now_ns(forecasts->scheduler);
    const struct forecast_choice *choice = forecasts->kinds[kind].choices[target];
    *ret_policy = forecasts->kinds[kind].policy;
    *ret_best = forecast_choice_best(choice, now_ns);
    *ret = forecast_choice_quality(choice, now_ns);
    return true;
}

void forecasts_observe(struct forecasts *forecasts, void (*told)(void *context),
                       void *context)
{
    forecasts->told = told;
    forecasts->told_context = context;
}

/* --- startup and shutdown -------------------------------------------------------------------- */

struct forecasts *forecasts_new(struct scheduler *scheduler, bool made)
{
    struct forecasts *forecasts = memory_checked(calloc(1, sizeof *forecasts));
    forecasts->scheduler = scheduler;
    forecasts->is_off = !made;
    forecasts->worker = forecast_worker_new(scheduler, &forecasts->history);
    forecasts->rows = forecast_rows_new(scheduler->store);
    uv_timer_init(scheduler->loop, &forecasts->timer);
    uv_unref((uv_handle_t *)&forecasts->timer);
    forecasts->timer.data = forecasts;
    return forecasts;
}

/* What a thread that does not come back may read stays. */
static void forget(struct forecasts *forecasts)
{
    if (!forecast_worker_is_lost(forecasts->worker))
        history_release(&forecasts->history);
    for (uint32_t i = 0; i < forecasts->kind_count; i++)
        for (uint32_t t = 0; t < FORECAST_TARGETS; t++)
            free(forecasts->kinds[i].choices[t]);
    forecasts->kind_count = 0;
    start_times_release(&forecasts->times);
    free(forecasts->expected);
    forecasts->expected = NULL;
    free(forecasts->marks);
    forecasts->marks = NULL;
    forecasts->mark_count = 0;
    forecasts->status.made = false;
}

void forecasts_attach(struct forecasts *forecasts, struct engine *engine)
{
    const uint64_t kinds =
        ~(UINT64_C(1) << EVENT_PROGRESS | UINT64_C(1) << EVENT_LOADED);
    if (forecast_worker_is_lost(forecasts->worker))
        return;
    if (forecasts->is_off) {
        snprintf(forecasts->reason, sizeof forecasts->reason,
                 "forecasts are switched off in berthd.yaml");
        return;
    }
    forecasts->mark_count = engine->state.job_max;
    forecasts->marks =
        memory_checked(calloc(forecasts->mark_count + 1, sizeof *forecasts->marks));
    history_init(&forecasts->history);
    engine_add_observer(engine, (struct engine_observer){ .event = note_event,
                                                          .self = forecasts,
                                                          .kinds = kinds });
    forecast_loader_start(forecasts, on_loaded);
}

void forecasts_detach(struct forecasts *forecasts)
{
    uv_timer_stop(&forecasts->timer);
    forecast_loader_stop(forecasts);
    forecast_worker_cancel(forecasts->worker);
    forget(forecasts);
}

void forecasts_stop(struct forecasts *forecasts)
{
    if (!forecasts)
        return;
    forecasts_detach(forecasts);
    forecast_worker_stop(forecasts->worker);
    uv_close((uv_handle_t *)&forecasts->timer, NULL);
}

void forecasts_free(struct forecasts *forecasts)
{
    if (!forecasts)
        return;
    forecast_worker_free(forecasts->worker);
    forecast_rows_free(forecasts->rows);
    free(forecasts);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static const char *const target_names[FORECAST_TARGETS] = { "start", "end" };

static void write_pass_metrics(const struct forecasts_status *status,
                               struct prometheus *out)
{
    static const char outcome[] = "outcome";
    prometheus_counter(out, "berth_forecasts", NULL,
                       "Times the engine was played forward for all jobs.");
    prometheus_count(out,
                     (const struct prometheus_label[]){ { outcome, "made" }, { NULL } },
                     status->passes);
    prometheus_count(
        out, (const struct prometheus_label[]){ { outcome, "cancelled" }, { NULL } },
        status->cancelled);
    prometheus_count(
        out, (const struct prometheus_label[]){ { outcome, "failed" }, { NULL } },
        status->failures);
    prometheus_gauge(out, "berth_forecast_seconds", "seconds",
                     "Processor time of the last forecast, beside the loop.");
    prometheus_value(out, NULL, (double)status->took_ns * 1e-9);
    prometheus_gauge(out, "berth_forecast_copy_seconds", "seconds",
                     "Time of the loop that the snapshot for it took.");
    prometheus_value(out, NULL, (double)status->copy_ns * 1e-9);
}

/* One figure of each kind of which enough is known. */
static void write_quality(struct forecasts *forecasts, struct prometheus *out,
                          bool coverage)
{
    for (uint32_t k = 0; k < forecasts->kind_count; k++)
        for (uint32_t t = 0; t < FORECAST_TARGETS; t++) {
            const char *policy = "";
            enum forecast_method best;
            struct forecast_quality quality;
            forecasts_quality(forecasts, k, t, &policy, &best, &quality);
            if (quality.count > 0)
                prometheus_value(
                    out,
                    (const struct prometheus_label[]){
                        { "policy", policy }, { "target", target_names[t] }, { NULL } },
                    coverage ? quality.coverage_80 : quality.median_error_s);
        }
}

void forecasts_write_metrics(struct forecasts *forecasts, struct prometheus *out)
{
    struct forecasts_status status = forecasts_status(forecasts);
    write_pass_metrics(&status, out);
    prometheus_gauge(out, "berth_forecast_coverage", NULL,
                     "Share of forecasts of the last two weeks that held: it happened "
                     "between p10 and p90.");
    write_quality(forecasts, out, true);
    prometheus_gauge(out, "berth_forecast_error_seconds", "seconds",
                     "Median of the absolute error of p50, over the last two weeks.");
    write_quality(forecasts, out, false);
}
