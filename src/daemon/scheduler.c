/* scheduler.c - the engine as berthd runs it: fed with events, built from the store. */
#include "daemon/scheduler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"
#include "daemon/flows.h"
#include "daemon/forecasts.h"
#include "daemon/progress.h"
#include "daemon/users.h"
#include "engine/recover.h"
#include "executor/executor.h"
#include "host/output_path.h"
#include "model/cluster.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define STEPS_AT_ONCE_MAX 64
#define LOST_MAX 10 /* times in a row that a job may be lost soon after its start */
#define LOST_SOON_NS (60 * NS_PER_S)
#define PAST_JOBS_MAX 4096 /* ended jobs that a policy is told of when it takes over */
#define REFUSAL_LATELY_NS (5 * NS_PER_S) /* refused starts are tried every second */

/* --- time and passes ------------------------------------------------------------------ */

int64_t scheduler_now_ns(const struct scheduler *scheduler)
{
    return scheduler->wall_ns + clock_now_ns() - scheduler->steady_ns;
}

static void on_due(uv_idle_t *handle)
{
    (void)handle; /* its presence keeps the loop from sleeping */
}

void scheduler_want_pass(struct scheduler *scheduler)
{
    if (scheduler->wanted)
        return;
    scheduler->wanted = true;
    uv_idle_start(&scheduler->due, on_due);
}

struct event *scheduler_add_event(struct scheduler *scheduler, enum event_kind kind,
                                  job_id job)
{
    struct event *event = outbox_add(scheduler->outbox);
    event->at_ns = scheduler_now_ns(scheduler);
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = scheduler->engine.state.jobs[job].generation;
    scheduler_want_pass(scheduler);
    return event;
}

int scheduler_check_open(const struct scheduler *scheduler, struct error *err)
{
    if (scheduler->alive && !scheduler->stopping)
        return 0;
    if (scheduler->stopping)
        return error_set(err, -EAGAIN, "berthd is stopping");
    return error_set(err, -EAGAIN, "the store cannot be written just now%s%s",
                     *scheduler->trouble ? ": " : "", scheduler->trouble);
}

job_id scheduler_find(const struct scheduler *scheduler, uint64_t id)
{
    return scheduler->alive ? state_find(&scheduler->engine.state, id) : JOB_NONE;
}

/* --- for the executor ----------------------------------------------------------------- */

int64_t scheduler_executor_now(void *context)
{
    return scheduler_now_ns(context);
}

void scheduler_executor_wake(void *context)
{
    scheduler_want_pass(context);
}

typedef int request_reader_fn(struct request *request, struct arena *arena,
                              const struct json *json, struct error *err);

static int read_request(struct arena *arena, const char *text, request_reader_fn *read,
                        struct request *request, struct error *err)
{
    struct json *json;
    int r = json_parse(text, strlen(text), &json, err);
    if (r < 0)
        return r;
    r = read(request, arena, json, err);
    json_free(json);
    return r;
}

int scheduler_executor_launch(void *context, uint64_t id,
                              const struct launch **ret_launch, struct error *err)
{
    struct scheduler *scheduler = context;
    char *text = store_request(scheduler->store, id);
    if (!text)
        return error_set(err, -ENOENT, "no job %" PRIu64, id);
    arena_reset(&scheduler->lookup);
    int r = read_request(&scheduler->lookup, text, request_read,
                         &scheduler->launch_request, err);
    free(text);
    if (r < 0)
        return r;
    struct launch *launch = &scheduler->launch_request.launch;
    job_id job = state_find(&scheduler->engine.state, id);
    if (job == JOB_NONE)
        return error_set(err, -ENOENT, "job %" PRIu64 " has ended", id);
    launch->id = id;
    launch->uid = scheduler->jobs[job].uid;
    struct user user = users_find(scheduler->users, launch->uid);
    launch->gid = user.gid;
    launch->user = arena_text(&scheduler->lookup, user.name);
    launch->array_id = scheduler->jobs[job].array_id;
    launch->te = scheduler->engine.state.jobs[job].class == CLASS_TE;
    launch->has_steps = scheduler->launch_request.spec.steps > 0;
    *ret_launch = launch;
    return 0;
}

/* --- start conditions ------------------------------------------------------------------ */

enum outcome scheduler_outcome(void *context, uint64_t id)
{
    struct scheduler *scheduler = context;
    job_id job = state_find(&scheduler->engine.state, id);
    if (job != JOB_NONE)
        return scheduler->engine.state.jobs[job].first_start_ns >= 0 ? OUTCOME_RUNS
                                                                     : OUTCOME_WAITS;
    const struct outbox *outbox = scheduler->outbox;
    for (uint32_t i = 0; i < outbox->count && scheduler->coming > 0; i++)
        if (outbox->events[i].kind == EVENT_SUBMITTED &&
            outbox->events[i].spec->id == id)
            return OUTCOME_WAITS;
    struct db_query *query = db_prepare(store_reader(scheduler->store),
                                        "SELECT state FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    enum outcome outcome = OUTCOME_UNKNOWN;
    if (db_next(query, NULL) == 1) {
        const char *state = db_get_text(query, 0);
        outcome = strcmp(state, "COMPLETED") == 0 ? OUTCOME_OK : OUTCOME_NOT_OK;
        if (strcmp(state, "PENDING") == 0 || strcmp(state, "RUNNING") == 0 ||
            strcmp(state, "STOPPING") == 0 || strcmp(state, "HELD") == 0)
            outcome = OUTCOME_RUNS; /* its end is not on disk yet */
    }
    db_finish(query);
    return outcome;
}

static bool is_alone(void *context, uint64_t id, const char *name, uint32_t uid)
{
    struct scheduler *scheduler = context;
    struct db_query *query = db_prepare(
        store_reader(scheduler->store),
        "SELECT 1 FROM job WHERE id IN (SELECT id FROM live) AND id < ? AND name IS ? "
        "AND uid = ?");
    db_int(query, 1, (int64_t)id);
    db_text(query, 2, name);
    db_int(query, 3, uid);
    bool alone = db_next(query, NULL) != 1;
    db_finish(query);
    return alone;
}

static void release_job(void *context, job_id job)
{
    scheduler_add_event(context, EVENT_RELEASED, job);
}

static void cancel_job(void *context, job_id job)
{
    scheduler_add_event(context, EVENT_CANCELLED, job)->why =
        "what it depends on has ended otherwise";
}

static void check_conditions(struct scheduler *scheduler)
{
    scheduler->check_conditions = false;
    scheduler->conditions_ns =
        conditions_check(&scheduler->conditions, scheduler_now_ns(scheduler),
                         release_job, cancel_job, scheduler);
}

/* A job that was free to start has to wait for what 'request' says. */
static void make_wait(struct scheduler *scheduler, job_id job, struct request *request)
{
    request->spec.id = scheduler->engine.state.jobs[job].id;
    request->launch.uid = scheduler->jobs[job].uid;
    scheduler_add_event(scheduler, EVENT_HELD, job);
    conditions_add(&scheduler->conditions, request, job);
}

void scheduler_hold(struct scheduler *scheduler, job_id job, bool held)
{
    uint64_t id = scheduler->engine.state.jobs[job].id;
    struct request request = { .hold = true };
    if (!conditions_hold(&scheduler->conditions, id, held) && held)
        make_wait(scheduler, job, &request);
    scheduler->check_conditions = true;
    scheduler_want_pass(scheduler);
}

void scheduler_wait_outside(struct scheduler *scheduler, job_id job,
                            const char *outside)
{
    const struct job *known = &scheduler->engine.state.jobs[job];
    struct request request = { .outside = outside };
    if (!conditions_wait_outside(&scheduler->conditions, known->id, outside) &&
        outside && known->state == JOB_WAITING)
        make_wait(scheduler, job, &request);
    scheduler->check_conditions = true;
    scheduler_want_pass(scheduler);
}

/* --- observing the engine -------------------------------------------------------------- */

/* A job that runs on another host may write its progress into a file. */
static void follow_progress(struct scheduler *scheduler, uint64_t id)
{
    const struct launch *launch;
    char path[PATH_MAX];
    struct error err;
    if (!scheduler->executor->report ||
        scheduler_executor_launch(scheduler, id, &launch, &err) < 0 ||
        !launch->progress)
        return;
    if (output_path(path, launch->progress, launch, launch->user, &err) == 0)
        progress_follow(scheduler->progress, id, path, launch->uid);
}

static void add_job(struct scheduler *scheduler, job_id job,
                    const struct request *request)
{
    scheduler->jobs[job] =
        (struct scheduler_job){ .uid = request->launch.uid,
                                .retries = request->retries,
                                .requeue = request->requeue,
                                .array_id = request->launch.array_id,
                                .gpu_mib_said = request->spec.gpu_mib,
                                .limited = request->array_limit > 0 };
}

/* Its user has one more job, one less, or one more that waits. */
static void count_job(struct scheduler *scheduler, job_id job, enum job_state state)
{
    struct scheduler_job *known = &scheduler->jobs[job];
    limits_count_job(scheduler->limits, known->uid, &known->mark, state);
}

/* An observer: what berthd itself knows of jobs follows the events. */
static void observe_event(void *self, const struct view *view,
                          const struct event *event)
{
    struct scheduler *scheduler = self;
    if (event->job == JOB_NONE || event->kind == EVENT_REJECTED)
        return;
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_SUBMITTED) {
        add_job(scheduler, event->job, event->tag);
        limits_begin_job(scheduler->limits, scheduler->jobs[event->job].uid);
        count_job(scheduler, event->job, job->state);
        if (job->state == JOB_HELD) {
            conditions_add(&scheduler->conditions, event->tag, event->job);
            scheduler->check_conditions = true;
        }
        return;
    }
    count_job(scheduler, event->job, job->state);
    if (event->kind == EVENT_STARTED) {
        scheduler->jobs[event->job].refused = false;
        follow_progress(scheduler, job->id);
    }
    if (event->kind != EVENT_STARTED && job->state != JOB_FREE)
        return;
    if (job->state == JOB_FREE) {
        conditions_drop(&scheduler->conditions, job->id);
        if (scheduler->jobs[event->job].limited)
            conditions_count_array(&scheduler->conditions,
                                   scheduler->jobs[event->job].array_id,
                                   /* ended= */ true);
    }
    if (scheduler->conditions.count > 0)
        scheduler->check_conditions = true;
}

/* --- recovery ---------------------------------------------------------------------------- */

/* For recovery: the request of a live job, read back; its tag until the next job. */
static int read_spec(void *context, const struct stored_job *kept, struct job *ret_job,
                     const void **ret_tag, struct error *err)
{
    struct scheduler *scheduler = context;
    arena_reset(&scheduler->lookup);
    struct request *request = arena_new(&scheduler->lookup, struct request);
    int r = read_request(&scheduler->lookup, kept->request, request_read_kept, request,
                         err);
    if (r < 0)
        return r;
    request->spec.id = kept->job.id;
    request->spec.submit_ns = kept->job.submit_ns;
    request->launch.uid = kept->uid;
    request->launch.array_id = kept->array_id;
    request->hold = kept->held;
    request->spec.user = kept->user;
    request->spec.entity = kept->entity;
    *ret_tag = request;
    return admission_make_job(&scheduler->admission, &request->spec, ret_job, err);
}

static void add_recovered(void *context, const struct stored_job *kept, const void *tag,
                          job_id job)
{
    struct scheduler *scheduler = context;
    const struct request *request = tag;
    users_load(scheduler->users, request->launch.uid); /* a start may block */
    add_job(scheduler, job, request);
    count_job(scheduler, job, kept->job.state);
    if (kept->job.state == JOB_HELD)
        conditions_add(&scheduler->conditions, request, job);
    else if (request->array_limit > 0)
        conditions_count_array(&scheduler->conditions, request->launch.array_id,
                               /* ended= */ false);
}

static uint32_t number_user(void *context, const char *name)
{
    struct scheduler *scheduler = context;
    return admission_user(&scheduler->admission, name);
}

static void give_up(void *context, const struct stored_job *kept, const char *why)
{
    struct scheduler *scheduler = context;
    fprintf(stderr, "berthd: job %" PRIu64 " cannot be restored and has failed: %s\n",
            kept->job.id, why);
    store_fail_job(scheduler->store, kept->job.id, scheduler_now_ns(scheduler), why);
}

static int reattach_job(struct scheduler *scheduler, job_id id, struct error *err)
{
    const struct job *job = &scheduler->engine.state.jobs[id];
    bool stopping = job->state == JOB_STOPPING;
    int64_t left_ns = job->recalled_ns + job->grace_ns - scheduler_now_ns(scheduler);
    if (job->leaving || left_ns < 0)
        left_ns = 0;
    struct lease lease = engine_lease(&scheduler->engine, id, job->state == JOB_PLACED,
                                      &scheduler->pass);
    const struct executor *executor = scheduler->executor;
    if (job_holds_seats(job))
        follow_progress(scheduler, job->id);
    int r =
        executor->reattach(scheduler->executor_self, &lease, stopping, left_ns, err);
    if (r == 0 && job->leaving)
        r = executor->cancel(scheduler->executor_self, id, err);
    if (r == 0 && job->seats.count > 0 && job->next.count > 0) {
        lease = engine_lease(&scheduler->engine, id, true, &scheduler->pass);
        r = executor->start(scheduler->executor_self, &lease, err);
    }
    return r;
}

static int reattach_jobs(struct scheduler *scheduler, struct error *err)
{
    const struct state *state = &scheduler->engine.state;
    int r = 0;
    for (job_id id = 0; id < state->job_count && r == 0; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            r = reattach_job(scheduler, id, err);
    if (r == 0)
        scheduler->executor->settle(scheduler->executor_self);
    return r;
}

static void add_observers(struct scheduler *scheduler)
{
    struct engine *engine = &scheduler->engine;
    const struct executor *executor = scheduler->executor;
    engine_add_observer(
        engine, (struct engine_observer){ .event = observe_event, .self = scheduler });
    engine_add_observer(engine, (struct engine_observer){ .event = ledger_event,
                                                          .self = &scheduler->ledger });
    engine_add_observer(engine, (struct engine_observer){ .event = store_event,
                                                          .commit = store_commit,
                                                          .self = scheduler->store });
    engine_add_observer(engine,
                        (struct engine_observer){ .event = executor->event,
                                                  .commit = executor->commit,
                                                  .self = scheduler->executor_self });
    flows_observe(scheduler->flows, engine);
}

/* The speed of a type beside the fastest; 1 if it is not known. */
static double relative_speed(const struct cluster *cluster, const char *type)
{
    double most = 0;
    double speed = 0;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        most = cluster->types[t].speed > most ? cluster->types[t].speed : most;
        if (type && strcmp(cluster->types[t].name, type) == 0)
            speed = cluster->types[t].speed;
    }
    return speed > 0 && most > 0 ? speed / most : 1;
}

/*
 * Tell the policy of the jobs that ended last.  How much work they had is taken from their time
 * in seats.
 */
static void tell_past(void *context, const struct engine *engine)
{
    struct scheduler *scheduler = context;
    struct error err;
    struct db_query *query = db_prepare(
        store_reader(scheduler->store),
        "SELECT name, user, entity, class, gpus, start_ns, end_ns, served_ns, "
        "state = 'COMPLETED', placement ->> '$[0].type', request ->> '$.kind' FROM job "
        "WHERE end_ns IS NOT NULL AND start_ns IS NOT NULL ORDER BY end_ns DESC LIMIT "
        "?");
    db_int(query, 1, PAST_JOBS_MAX);
    while (db_next(query, &err) == 1) {
        struct job_spec spec = { .name = db_get_text(query, 0),
                                 .user = db_get_text(query, 1),
                                 .entity = db_get_text(query, 2),
                                 .kind = db_get_text(query, 10),
                                 .class = strcmp(db_get_text(query, 3), "te") == 0
                                              ? CLASS_TE
                                              : CLASS_BE };
        struct job job;
        int64_t gpus = db_get_int(query, 4);
        int64_t start_ns = db_get_int(query, 5), end_ns = db_get_int(query, 6);
        if (admission_make_job(&scheduler->admission, &spec, &job, &err) < 0)
            continue;
        job.served_ns = db_get_int(query, 7);
        int64_t ran_ns = gpus > 0 ? job.served_ns / gpus : end_ns - start_ns;
        if (db_get_int(query, 8))
            job.steps = (double)ran_ns * 1e-9 * job.rate_best_per_s *
                        relative_speed(scheduler->cluster, db_get_text(query, 9));
        engine->policy->recall(engine->policy_self, &engine->state.view, &job, start_ns,
                               end_ns);
    }
    db_finish(query);
}

static int init_engine(struct scheduler *scheduler, struct error *err)
{
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow = NULL;
    char flow_settings[FLOWS_SETTINGS_MAX] = "";
    int r = policy_parse(scheduler->policy, &policy, &settings, err);
    if (r == 0)
        r = flows_policy(scheduler->flows, &flow, flow_settings, err);
    if (r < 0)
        return r;
    struct engine_setup setup = { .cluster = scheduler->cluster,
                                  .rates = scheduler->rates,
                                  .policy = policy,
                                  .settings = settings,
                                  .flow = flow,
                                  .flow_settings = flow_settings,
                                  .executor = scheduler->executor,
                                  .job_max = scheduler->job_max,
                                  .seed = 1,
                                  .learns = true };
    r = engine_init(&scheduler->engine, &scheduler->life, &setup, err);
    if (r < 0)
        return r;
    struct state *state = &scheduler->engine.state;
    admission_learn(&scheduler->admission, state->view.rates, &state->rates);
    scheduler->engine.clock_ns = clock_now_ns;
    scheduler->engine.timed_every = 1;
    scheduler->engine.tell_past = tell_past;
    scheduler->engine.past_context = scheduler;
    return 0;
}

static int recover_jobs(struct scheduler *scheduler, const uint64_t *foreign,
                        struct error *err)
{
    struct recover_setup setup = { .engine = &scheduler->engine,
                                   .ledger = &scheduler->ledger,
                                   .store = scheduler->store,
                                   .now_ns = scheduler_now_ns(scheduler),
                                   .foreign = foreign,
                                   .spec = read_spec,
                                   .user = number_user,
                                   .back = add_recovered,
                                   .gone = give_up,
                                   .context = scheduler };
    int r = recover_state(&setup, err);
    return r < 0 ? r : reattach_jobs(scheduler, err);
}

int scheduler_start(struct scheduler *scheduler, const uint64_t *foreign,
                    struct error *err)
{
    arena_init(&scheduler->life, 0);
    scheduler->outbox = &scheduler->outboxes[0];
    scheduler->outboxes[0].count = scheduler->outboxes[1].count = 0;
    scheduler->coming = 0;
    scheduler->conditions = (struct start_conditions){ .outcome = scheduler_outcome,
                                                       .alone = is_alone,
                                                       .context = scheduler };
    scheduler->conditions_ns = INT64_MAX;
    scheduler->jobs =
        arena_array(&scheduler->life, struct scheduler_job, scheduler->job_max);
    admission_init(&scheduler->admission, scheduler->cluster, scheduler->rates);
    int r = init_engine(scheduler, err);
    if (r < 0)
        return r;
    scheduler->alive = true;
    r = scheduler->open_executor(scheduler->context, &scheduler->executor_self, err);
    if (r < 0)
        return r;
    scheduler->engine.executor_self = scheduler->executor_self;
    store_attach(scheduler->store, &scheduler->engine.state);
    ledger_init(&scheduler->ledger, &scheduler->life, &scheduler->engine.state.view,
                NULL);
    scheduler->ledger.observe = store_write_entry;
    scheduler->ledger.context = scheduler->store;
    scheduler->ledger.pairs.observe = store_write_pair;
    scheduler->ledger.pairs.context = scheduler->store;
    add_observers(scheduler);
    r = recover_jobs(scheduler, foreign, err);
    if (r == 0)
        forecasts_attach(scheduler->forecasts, &scheduler->engine);
    scheduler->check_conditions = true;
    scheduler_want_pass(scheduler);
    return r;
}

void scheduler_stop(struct scheduler *scheduler)
{
    forecasts_detach(scheduler->forecasts);
    if (scheduler->executor_self)
        scheduler->executor->close(scheduler->executor_self);
    scheduler->executor_self = NULL;
    if (scheduler->alive) {
        engine_release(&scheduler->engine);
        ledger_release(&scheduler->ledger);
        scheduler->ledger = (struct ledger){ 0 };
    }
    scheduler->alive = false;
    conditions_release(&scheduler->conditions);
    admission_release(&scheduler->admission);
    arena_release(&scheduler->life);
    arena_reset(&scheduler->pass);
}

/* --- a pass ------------------------------------------------------------------------------- */

/* A supervisor's reason may be any bytes: jobs have a hand in it. */
static void clean_reason(struct scheduler *scheduler, struct event *event)
{
    if (!event->why || json_can_say(event->why))
        return;
    char *clean = utf8_clean(event->why);
    event->why = arena_text(&scheduler->pass, clean);
    free(clean);
}

/*
 * Its attempt was not begun, which is no fault of the job: it is tried again however long it
 * takes.  Say so once for all attempts in a row, since there is one every second.
 */
static void report_refusal(struct scheduler *scheduler, uint64_t id,
                           struct scheduler_job *known, const char *why)
{
    if (!known->refused)
        fprintf(stderr,
                "berthd: job %" PRIu64 " was not started and is tried again: %s\n", id,
                why ? why : "");
    known->refused = true;
    snprintf(scheduler->refusal, sizeof scheduler->refusal, "%s", why ? why : "");
    scheduler->refusal_ns = scheduler_now_ns(scheduler);
}

const char *scheduler_refusal(const struct scheduler *scheduler, job_id job)
{
    return scheduler->jobs[job].refused ? scheduler->refusal : NULL;
}

const char *scheduler_refuses_starts(const struct scheduler *scheduler)
{
    bool lately =
        scheduler->refusal[0] &&
        scheduler_now_ns(scheduler) - scheduler->refusal_ns < REFUSAL_LATELY_NS;
    return lately ? scheduler->refusal : NULL;
}

/*
 * Add what an executor does not know.  A failed job is started again if its request allows
 * retries, a lost one fails if it must not be requeued, or if it is lost again and again.
 */
static void complete_event(struct scheduler *scheduler, struct event *event)
{
    clean_reason(scheduler, event);
    if (event->kind == EVENT_PROGRESS)
        event->steps_total = scheduler->jobs[event->job].total;
    if (event->kind != EVENT_FAILED && event->kind != EVENT_LOST)
        return;
    const struct job *job = &scheduler->engine.state.jobs[event->job];
    struct scheduler_job *known = &scheduler->jobs[event->job];
    if (event->attempt != job->attempt || event->generation != job->generation)
        return; /* of an attempt that is over: it will be ignored */
    if (event->kind == EVENT_FAILED && job->failures < known->retries &&
        !job->leaving) {
        event->kind = EVENT_LOST;
        event->steps = job->steps;
        event->steps_reached = job->steps;
    } else if (event->kind == EVENT_LOST && job_holds_seats(job)) {
        bool soon = event->at_ns - job->since_ns < LOST_SOON_NS;
        known->losses = soon ? known->losses + 1 : 0;
        if (known->requeue && known->losses <= LOST_MAX)
            return;
        event->kind = EVENT_FAILED;
        event->exit_code = -1;
    } else if (event->kind == EVENT_LOST && !job->leaving) {
        report_refusal(scheduler, job->id, known, event->why);
    }
}

static int run_step(struct scheduler *scheduler, struct error *err)
{
    struct outbox *inbox = scheduler->outbox;
    scheduler->outbox =
        inbox == scheduler->outboxes ? scheduler->outboxes + 1 : scheduler->outboxes;
    scheduler->coming = 0;
    int64_t at_ns = scheduler_now_ns(scheduler);
    for (uint32_t i = 0; i < inbox->count; i++)
        complete_event(scheduler, &inbox->events[i]);
    int r = engine_step(&scheduler->engine, at_ns, inbox->events, inbox->count, err);
    inbox->count = 0;
    return r;
}

int scheduler_run(struct scheduler *scheduler, struct error *err)
{
    uint32_t steps = 0;
    int r = 0;
    if (scheduler_now_ns(scheduler) >= scheduler->conditions_ns)
        scheduler->check_conditions = true;
    do {
        if (scheduler->check_conditions)
            check_conditions(scheduler);
        r = run_step(scheduler, err);
    } while (r == 0 && (scheduler->outbox->count > 0 || scheduler->check_conditions) &&
             ++steps < STEPS_AT_ONCE_MAX);
    if (r < 0)
        return r;
    if (scheduler->outbox->count > 0)
        scheduler_want_pass(scheduler);
    else
        arena_reset(&scheduler->pass);
    return 0;
}

int64_t scheduler_wake_ns(const struct scheduler *scheduler)
{
    int64_t at_ns = engine_wake_ns(&scheduler->engine);
    return scheduler->conditions_ns < at_ns ? scheduler->conditions_ns : at_ns;
}

/* --- beginning and end --------------------------------------------------------------------- */

void scheduler_init(struct scheduler *scheduler)
{
    arena_init(&scheduler->pass, 0);
    arena_init(&scheduler->lookup, 0);
    uv_idle_init(scheduler->loop, &scheduler->due);
    scheduler->steady_ns = clock_now_ns();
    scheduler->wall_ns = clock_read_ns(CLOCK_REALTIME);
    struct db_query *query =
        db_prepare(store_reader(scheduler->store),
                   "SELECT at_ns FROM event ORDER BY seq DESC LIMIT 1");
    if (db_next(query, NULL) == 1 && db_get_int(query, 0) > scheduler->wall_ns)
        scheduler->wall_ns = db_get_int(query, 0);
    db_finish(query);
}

void scheduler_release(struct scheduler *scheduler)
{
    outbox_release(&scheduler->outboxes[0]);
    outbox_release(&scheduler->outboxes[1]);
    free(scheduler->policy);
    arena_release(&scheduler->lookup);
    arena_release(&scheduler->pass);
}
