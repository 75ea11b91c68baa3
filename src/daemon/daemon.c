/* daemon.c - the engine, fed from the real world. */
#include "daemon/daemon.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "daemon/gates.h"
#include "daemon/http.h"
#include "daemon/machine.h"
#include "daemon/routes.h"
#include "engine/engine.h"
#include "engine/recover.h"
#include "executor/local.h"
#include "flow/flow.h"
#include "metrics/ledger.h"
#include "model/cluster.h"
#include "model/intake.h"
#include "model/outbox.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define STANDARD_POLICY "fitgpp,worth=xion"
#define STEPS_AT_ONCE_MAX 64
#define RETRY_STORE_MS 1000
#define LOST_MAX 10 /* times in a row that a job may be lost before it has failed */
#define FOREIGN_EVERY_MS 5000

/* What we know of a live job and no policy needs. */
struct resident {
    uint32_t uid;
    uint32_t retries;
    bool requeue;
    uint64_t array_id;
    bool limited; /* its array is */
    double total; /* steps it says it will make; 0: has not said */
};

/* Somebody who was accepted and whose first event is on its way. */
struct arrival {
    struct request *request;
    uint32_t array_limit;
};

struct daemon {
    struct daemon_setup setup;
    uv_loop_t loop;
    uv_check_t check;
    uv_idle_t due;
    uv_timer_t wake, retry, foreign;
    uv_signal_t signals[2];

    struct arena fixed; /* the machine */
    struct machine machine;
    struct throughput rates;

    struct store *store;
    struct http *http;
    struct routes *routes;

    /* What is built again from the store after it could not be written. */
    struct arena life;
    struct engine engine;
    struct ledger ledger;
    struct intake intake;
    struct local *local;
    struct gates gates;
    struct resident *residents; /* by slot */
    struct outbox outboxes[2];
    struct outbox *outbox; /* what is filled now */
    struct arrival *arrivals;
    uint32_t arrival_count, arrival_used, arrival_room;
    uint64_t id_next;
    int64_t gates_ns; /* when to ask them again */
    bool ask_gates;
    bool alive;

    struct arena pass;   /* emptied when it has been committed */
    struct arena launch; /* of the last job that was looked up */
    struct request launch_request;
    char *policy_text;

    int64_t wall_ns, steady_ns; /* at the start */
    int64_t started_ns;
    uint64_t pass_count, failures;
    bool wanted; /* a pass */
    bool stopping, killing;
};

/* --- time ------------------------------------------------------------------------- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* For how long something took. */
static int64_t steady_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* The wall clock at the start, carried on by one that never goes back. */
static int64_t now_ns(const struct daemon *daemon)
{
    return daemon->wall_ns + clock_ns(CLOCK_MONOTONIC) - daemon->steady_ns;
}

static int64_t now_for(void *context)
{
    return now_ns(context);
}

static void start_clock(struct daemon *daemon)
{
    daemon->steady_ns = clock_ns(CLOCK_MONOTONIC);
    daemon->wall_ns = clock_ns(CLOCK_REALTIME);
    struct db_query *query =
        db_prepare(store_reader(daemon->store),
                   "SELECT at_ns FROM event ORDER BY seq DESC LIMIT 1");
    if (db_next(query, NULL) == 1 && db_get_int(query, 0) > daemon->wall_ns)
        daemon->wall_ns = db_get_int(query, 0); /* the log never goes back either */
    db_finish(query);
    daemon->started_ns = daemon->wall_ns;
}

/* --- passes ------------------------------------------------------------------------- */

static void want_pass(struct daemon *daemon);

static void wake_for(void *context)
{
    want_pass(context);
}

static void on_due(uv_idle_t *handle)
{
    (void)handle; /* it is there so that the loop does not sleep */
}

static void want_pass(struct daemon *daemon)
{
    if (daemon->wanted)
        return;
    daemon->wanted = true;
    uv_idle_start(&daemon->due, on_due);
}

static struct event *add_event(struct daemon *daemon, enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(daemon->outbox);
    event->at_ns = now_ns(daemon);
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = daemon->engine.state.jobs[job].generation;
    want_pass(daemon);
    return event;
}

/* --- launching ------------------------------------------------------------------------ */

static int read_request(struct arena *arena, const char *text, struct request *request,
                        struct error *err)
{
    struct json *json;
    int r = json_parse(text, strlen(text), &json, err);
    if (r < 0)
        return r;
    r = request_read(request, arena, json, err);
    json_free(json);
    return r;
}

/* For the executor: what it takes to run this job. */
static int launch_for(void *context, uint64_t id, const struct launch **ret_launch,
                      struct error *err)
{
    struct daemon *daemon = context;
    char *text = store_request(daemon->store, id);
    if (!text)
        return error_set(err, -ENOENT, "no job %" PRIu64, id);
    arena_reset(&daemon->launch);
    int r = read_request(&daemon->launch, text, &daemon->launch_request, err);
    free(text);
    if (r < 0)
        return r;
    struct launch *launch = &daemon->launch_request.launch;
    job_id job = state_find(&daemon->engine.state, id);
    if (job == JOB_NONE)
        return error_set(err, -ENOENT, "job %" PRIu64 " has ended", id);
    struct passwd *user = getpwuid(daemon->residents[job].uid);
    launch->id = id;
    launch->uid = daemon->residents[job].uid;
    launch->gid = user ? user->pw_gid : launch->uid;
    launch->array_id = daemon->residents[job].array_id;
    launch->te = daemon->engine.state.jobs[job].class == CLASS_TE;
    launch->has_steps = daemon->launch_request.spec.steps > 0;
    *ret_launch = launch;
    return 0;
}

/* A running job says how many steps it will make in all: its next report carries it. */
static void total_for(void *context, job_id job, double steps)
{
    struct daemon *daemon = context;
    daemon->residents[job].total = steps;
}

/* --- gates -------------------------------------------------------------------------------- */

static enum outcome outcome_for(void *context, uint64_t id)
{
    struct daemon *daemon = context;
    job_id job = state_find(&daemon->engine.state, id);
    if (job != JOB_NONE)
        return daemon->engine.state.jobs[job].first_start_ns >= 0 ? OUTCOME_RUNS
                                                                  : OUTCOME_WAITS;
    for (uint32_t i = daemon->arrival_used; i < daemon->arrival_count; i++)
        if (daemon->arrivals[i].request->spec.id == id)
            return OUTCOME_WAITS;
    struct db_query *query =
        db_prepare(store_reader(daemon->store), "SELECT state FROM job WHERE id = ?");
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

static bool alone_for(void *context, uint64_t id, const char *name, uint32_t uid)
{
    struct daemon *daemon = context;
    struct db_query *query = db_prepare(
        store_reader(daemon->store),
        "SELECT 1 FROM job WHERE end_ns IS NULL AND id < ? AND name IS ? AND uid = ?");
    db_int(query, 1, (int64_t)id);
    db_text(query, 2, name);
    db_int(query, 3, uid);
    bool alone = db_next(query, NULL) != 1;
    db_finish(query);
    return alone;
}

static void pass_gate(void *context, job_id job, uint64_t id)
{
    (void)id;
    add_event(context, EVENT_RELEASED, job);
}

static void never_passes(void *context, job_id job, uint64_t id)
{
    (void)id;
    add_event(context, EVENT_CANCELLED, job)->why =
        "what it depends on has ended otherwise";
}

static void ask_gates(struct daemon *daemon)
{
    daemon->ask_gates = false;
    if (daemon->gates.count > 0)
        daemon->gates_ns =
            gates_ask(&daemon->gates, now_ns(daemon), pass_gate, never_passes, daemon);
}

/* --- listening to the engine -------------------------------------------------------------- */

static void admit(struct daemon *daemon, const struct event *event)
{
    assert(daemon->arrival_used < daemon->arrival_count);
    const struct arrival *arrival = &daemon->arrivals[daemon->arrival_used++];
    const struct request *request = arrival->request;
    daemon->residents[event->job] =
        (struct resident){ .uid = request->launch.uid,
                           .retries = request->retries,
                           .requeue = request->requeue,
                           .array_id = request->launch.array_id,
                           .limited = arrival->array_limit > 0 };
    if (daemon->engine.state.jobs[event->job].state == JOB_HELD) {
        gates_add(&daemon->gates, request, event->job, arrival->array_limit);
        daemon->ask_gates = true;
    }
}

static void hear(void *self, const struct view *view, const struct event *event)
{
    struct daemon *daemon = self;
    if (event->kind == EVENT_SUBMITTED) {
        admit(daemon, event);
        return;
    }
    if (event->job == JOB_NONE || event->kind == EVENT_REJECTED)
        return;
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_STARTED)
        daemon->ask_gates = daemon->ask_gates || daemon->gates.count > 0;
    if (job->state != JOB_FREE)
        return;
    gates_drop(&daemon->gates, job->id);
    if (daemon->residents[event->job].limited)
        gates_ended(&daemon->gates, daemon->residents[event->job].array_id);
    daemon->ask_gates = daemon->ask_gates || daemon->gates.count > 0;
}

/* --- a life: what is built from the store ---------------------------------------------------- */

static int spec_for(void *context, const struct kept_job *kept, struct job *ret_job,
                    struct error *err)
{
    struct daemon *daemon = context;
    struct request request;
    arena_reset(&daemon->launch);
    int r = read_request(&daemon->launch, kept->request, &request, err);
    if (r < 0)
        return r;
    request.spec.id = kept->job.id;
    request.spec.submit_ns = kept->job.submit_ns;
    return intake_job(&daemon->intake, &request.spec, ret_job, err);
}

static void back_for(void *context, const struct kept_job *kept, job_id job)
{
    struct daemon *daemon = context;
    struct request request;
    arena_reset(&daemon->launch);
    if (read_request(&daemon->launch, kept->request, &request, NULL) < 0)
        return;
    request.spec.id = kept->job.id;
    request.launch.uid = kept->uid;
    request.launch.array_id = kept->array_id;
    request.hold = kept->held;
    uint32_t limit = request.array_limit;
    daemon->residents[job] = (struct resident){ .uid = kept->uid,
                                                .retries = request.retries,
                                                .requeue = request.requeue,
                                                .array_id = kept->array_id,
                                                .limited = limit > 0 };
    if (daemon->engine.state.jobs[job].state == JOB_HELD)
        gates_add(&daemon->gates, &request, job, limit);
    else if (limit > 0)
        gates_passed(&daemon->gates, kept->array_id);
}

static void gone_for(void *context, const struct kept_job *kept, const char *why)
{
    struct daemon *daemon = context;
    store_give_up(daemon->store, kept->job.id, now_ns(daemon), why);
}

/* The seats a job has, or has been promised, as the executor is told of them. */
static struct lease lease_of(struct daemon *daemon, job_id id, bool next)
{
    struct state *state = &daemon->engine.state;
    const struct job *job = &state->jobs[id];
    const struct seat_row *row = next ? &job->next : &job->seats;
    bool moves = next && job->seats.count > 0;
    uint32_t count = moves ? 1 : 0;
    for (uint32_t p = job->promised_by; next && p != UINT32_MAX;
         p = state->promises[p].next_of_successor)
        count++;
    job_id *after = arena_array(&daemon->pass, job_id, count + 1);
    uint32_t after_count = 0;
    if (moves)
        after[after_count++] = id;
    for (uint32_t p = job->promised_by; next && p != UINT32_MAX;
         p = state->promises[p].next_of_successor) {
        job_id victim = state->promises[p].victim;
        bool known = false;
        for (uint32_t k = 0; k < after_count; k++)
            known = known || after[k] == victim;
        if (!known)
            after[after_count++] = victim;
    }
    const struct seat *seats = &state->seats[row->first];
    struct lease lease = { .job = id,
                           .generation = job->generation,
                           .attempt = job->attempt + moves,
                           .type = state->view.cluster->nodes[seats[0].node].type,
                           .spread = job->spread_now,
                           .beside = job->partner,
                           .seats = seats,
                           .seat_count = row->count,
                           .after = after,
                           .after_count = after_count,
                           .steps_max = job->steps_max };
    for (uint32_t i = 0; i < row->count; i++)
        lease.gpus += seat_gpu_count(&seats[i]);
    return lease;
}

static int reattach(struct daemon *daemon, job_id id, struct error *err)
{
    const struct job *job = &daemon->engine.state.jobs[id];
    bool stopping = job->state == JOB_STOPPING;
    int64_t left_ns = job->recalled_ns + job->grace_ns - now_ns(daemon);
    if (job->leaving || left_ns < 0)
        left_ns = 0;
    struct lease lease = lease_of(daemon, id, job->state == JOB_PLACED);
    int r = local_reattach(daemon->local, &lease, stopping, left_ns, err);
    if (r == 0 && job->leaving)
        r = executor_local.cancel(daemon->local, id, err);
    if (r == 0 && job->seats.count > 0 && job->next.count > 0) {
        lease = lease_of(daemon, id, true);
        r = executor_local.start(daemon->local, &lease, err);
    }
    return r;
}

static int reattach_all(struct daemon *daemon, struct error *err)
{
    const struct state *state = &daemon->engine.state;
    int r = 0;
    for (job_id id = 0; id < state->job_count && r == 0; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            r = reattach(daemon, id, err);
    if (r == 0)
        local_sweep(daemon->local);
    return r;
}

static int open_executor(struct daemon *daemon, struct error *err)
{
    struct local_setup setup = { .loop = &daemon->loop,
                                 .state_dir = daemon->setup.state_dir,
                                 .run_dir = daemon->setup.run_dir,
                                 .run_program = daemon->setup.run_program,
                                 .system = daemon->setup.system,
                                 .view = &daemon->engine.state.view,
                                 .outbox = &daemon->outbox,
                                 .wake = wake_for,
                                 .launch = launch_for,
                                 .now_ns = now_for,
                                 .total = total_for,
                                 .gpu_index = daemon->machine.gpu_index,
                                 .context = daemon };
    return local_open(&daemon->local, &setup, err);
}

static void listen_all(struct daemon *daemon)
{
    struct engine *engine = &daemon->engine;
    engine_listen(engine, (struct listener){ .event = hear, .self = daemon });
    engine_listen(engine,
                  (struct listener){ .event = ledger_event, .self = &daemon->ledger });
    engine_listen(engine, (struct listener){ .event = store_event,
                                             .commit = store_commit,
                                             .self = daemon->store });
    engine_listen(engine, (struct listener){ .event = local_event,
                                             .commit = local_commit,
                                             .self = daemon->local });
}

static int init_engine(struct daemon *daemon, struct error *err)
{
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow = NULL;
    const char *flow_settings = NULL;
    int r = policy_parse(daemon->policy_text, &policy, &settings, err);
    if (r == 0 && daemon->setup.flow)
        r = flow_parse(daemon->setup.flow, &flow, &flow_settings, err);
    if (r < 0)
        return r;
    struct engine_setup setup = { .cluster = &daemon->machine.cluster,
                                  .rates = &daemon->rates,
                                  .policy = policy,
                                  .settings = settings,
                                  .flow = flow,
                                  .flow_settings = flow_settings,
                                  .executor = &executor_local,
                                  .job_max = daemon->setup.job_max,
                                  .seed = 1 };
    r = engine_init(&daemon->engine, &daemon->life, &setup, err);
    daemon->engine.clock_ns = steady_now;
    return r;
}

/* The engine, from what is on disk. */
static int begin_life(struct daemon *daemon, struct error *err)
{
    arena_init(&daemon->life, 0);
    daemon->outbox = &daemon->outboxes[0];
    daemon->outboxes[0].count = daemon->outboxes[1].count = 0;
    daemon->arrival_count = daemon->arrival_used = 0;
    daemon->gates =
        (struct gates){ .outcome = outcome_for, .alone = alone_for, .context = daemon };
    daemon->gates_ns = INT64_MAX;
    daemon->residents =
        arena_array(&daemon->life, struct resident, daemon->setup.job_max);
    daemon->id_next = store_last_id(daemon->store) + 1;
    intake_init(&daemon->intake, &daemon->machine.cluster, &daemon->rates);
    int r = init_engine(daemon, err);
    if (r < 0)
        return r;
    daemon->alive = true;
    r = open_executor(daemon, err);
    if (r < 0)
        return r;
    daemon->engine.executor_self = daemon->local;
    store_attach(daemon->store, &daemon->engine.state);
    ledger_init(&daemon->ledger, &daemon->life, &daemon->engine.state.view, NULL);
    daemon->ledger.note = store_entry;
    daemon->ledger.context = daemon->store;
    listen_all(daemon);

    struct recover_setup setup = { .engine = &daemon->engine,
                                   .ledger = &daemon->ledger,
                                   .store = daemon->store,
                                   .now_ns = now_ns(daemon),
                                   .spec = spec_for,
                                   .back = back_for,
                                   .gone = gone_for,
                                   .context = daemon };
    r = recover(&setup, err);
    if (r == 0)
        r = reattach_all(daemon, err);
    daemon->ask_gates = true;
    want_pass(daemon);
    return r;
}

static void end_life(struct daemon *daemon)
{
    if (daemon->local)
        local_close(daemon->local);
    daemon->local = NULL;
    if (daemon->alive) {
        engine_release(&daemon->engine);
        ledger_release(&daemon->ledger);
        daemon->ledger = (struct ledger){ 0 };
    }
    daemon->alive = false;
    gates_release(&daemon->gates);
    intake_release(&daemon->intake);
    arena_release(&daemon->life);
    arena_reset(&daemon->pass);
}

/* --- a pass ----------------------------------------------------------------------------- */

/*
 * What an executor does not know.  A failed job may be started again if its owner said so,
 * a lost one may not, and one that is lost again and again has failed.
 */
static void amend(struct daemon *daemon, struct event *event)
{
    if (event->kind == EVENT_PROGRESS) {
        event->steps_total = daemon->residents[event->job].total;
        event->measured = event->rate_per_s > 0;
    }
    if (event->kind != EVENT_FAILED && event->kind != EVENT_LOST)
        return;
    const struct job *job = &daemon->engine.state.jobs[event->job];
    const struct resident *resident = &daemon->residents[event->job];
    if (event->kind == EVENT_FAILED && job->failures < resident->retries &&
        !job->leaving) {
        event->kind = EVENT_LOST;
        event->steps = job->steps;
        event->steps_reached = job->steps;
    } else if (event->kind == EVENT_LOST && job_seated(job) &&
               (!resident->requeue || job->failures >= LOST_MAX + resident->retries)) {
        event->kind = EVENT_FAILED;
        event->exit_code = -1;
    }
}

static void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void log_line(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("berthd: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

static void on_retry(uv_timer_t *handle);

/* Nothing of this pass happened; begin again from what is on disk, a little later. */
static void fall_back(struct daemon *daemon, const struct error *err)
{
    log_line("%s; nothing was changed", err->text);
    daemon->failures++;
    store_rollback(daemon->store);
    routes_flush(daemon->routes, false);
    http_flush(daemon->http, false);
    end_life(daemon);
    uv_timer_start(&daemon->retry, on_retry, RETRY_STORE_MS, 0);
}

static void on_retry(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    struct error err = { "" };
    if (begin_life(daemon, &err) < 0) {
        log_line("%s", err.text);
        end_life(daemon);
        uv_timer_start(&daemon->retry, on_retry, RETRY_STORE_MS, 0);
    }
}

static int step(struct daemon *daemon, struct error *err)
{
    struct outbox *inbox = daemon->outbox;
    daemon->outbox =
        inbox == daemon->outboxes ? daemon->outboxes + 1 : daemon->outboxes;
    int64_t at_ns = now_ns(daemon);
    for (uint32_t i = 0; i < inbox->count; i++)
        amend(daemon, &inbox->events[i]);
    int r = engine_step(&daemon->engine, at_ns, inbox->events, inbox->count, err);
    inbox->count = 0;
    return r;
}

static void on_wake(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    daemon->ask_gates = daemon->ask_gates || now_ns(daemon) >= daemon->gates_ns;
    want_pass(daemon);
}

static void set_wake(struct daemon *daemon)
{
    int64_t at_ns = engine_wake_ns(&daemon->engine);
    if (daemon->gates_ns < at_ns)
        at_ns = daemon->gates_ns;
    if (at_ns == INT64_MAX) {
        uv_timer_stop(&daemon->wake);
        return;
    }
    int64_t in_ns = at_ns - now_ns(daemon);
    uint64_t in_ms = in_ns > 0 ? (uint64_t)(in_ns / 1000000 + 1) : 1;
    uv_timer_start(&daemon->wake, on_wake, in_ms, 0);
}

static void end_if_told(struct daemon *daemon)
{
    if (daemon->stopping && (!daemon->killing || daemon->engine.state.live_count == 0))
        uv_stop(&daemon->loop);
}

static void run_pass(struct daemon *daemon)
{
    struct error err = { "" };
    uint32_t steps = 0;
    int r = 0;
    do {
        if (daemon->ask_gates)
            ask_gates(daemon);
        r = step(daemon, &err);
    } while (r == 0 && (daemon->outbox->count > 0 || daemon->ask_gates) &&
             ++steps < STEPS_AT_ONCE_MAX);
    daemon->pass_count++;
    if (r < 0) {
        fall_back(daemon, &err);
        return;
    }
    if (daemon->outbox->count > 0)
        want_pass(daemon);
    /* Before anybody is answered: who is may ask again at once, and that is to be kept. */
    if (daemon->arrival_used == daemon->arrival_count && daemon->outbox->count == 0) {
        daemon->arrival_count = daemon->arrival_used = 0;
        arena_reset(&daemon->pass);
    }
    routes_flush(daemon->routes, true);
    http_flush(daemon->http, true);
    set_wake(daemon);
    end_if_told(daemon);
}

static void on_check(uv_check_t *handle)
{
    struct daemon *daemon = handle->data;
    if (!daemon->wanted)
        return;
    daemon->wanted = false;
    uv_idle_stop(&daemon->due);
    if (daemon->alive)
        run_pass(daemon);
}

/* --- what people may ask for ------------------------------------------------------------- */

bool daemon_may(const struct daemon *daemon, const struct caller *caller,
                uint32_t owner)
{
    return caller->uid == 0 || caller->uid == geteuid() || caller->uid == owner;
}

static int need_life(const struct daemon *daemon, struct error *err)
{
    if (daemon->alive && !daemon->stopping)
        return 0;
    return error_set(err, -EAGAIN,
                     daemon->stopping ? "berthd is stopping"
                                      : "the store cannot be written just now");
}

static void note_arrival(struct daemon *daemon, struct request *request,
                         uint32_t array_limit)
{
    if (daemon->arrival_count == daemon->arrival_room) {
        daemon->arrival_room = daemon->arrival_room ? daemon->arrival_room * 2 : 64;
        daemon->arrivals =
            realloc(daemon->arrivals, daemon->arrival_room * sizeof *daemon->arrivals);
        if (!daemon->arrivals)
            abort();
    }
    daemon->arrivals[daemon->arrival_count++] =
        (struct arrival){ request, array_limit };
}

/* What admit() and the store need of it, until the pass is over. */
static struct request *keep(struct daemon *daemon, const struct request *request)
{
    struct request *kept = arena_new(&daemon->pass, struct request);
    *kept = *request;
    if (request->launch.name)
        kept->launch.name = arena_text(&daemon->pass, request->launch.name);
    kept->dependencies =
        arena_array(&daemon->pass, struct dependency, request->dependency_count + 1);
    for (uint32_t i = 0; i < request->dependency_count; i++)
        kept->dependencies[i] = request->dependencies[i];
    return kept;
}

static int submit_one(struct daemon *daemon, const char *user, struct request *request,
                      const char *text, struct error *ret_rejected, struct error *err)
{
    int64_t at_ns = now_ns(daemon);
    struct job *job = arena_new(&daemon->pass, struct job);
    request->spec.submit_ns = at_ns;
    ret_rejected->text[0] = '\0';
    bool fits = intake_job(&daemon->intake, &request->spec, job, ret_rejected) == 0;
    bool gated = fits && gates_needed(request, request->array_limit, at_ns);
    struct store_job row = { .id = request->spec.id,
                             .uid = request->launch.uid,
                             .user = user,
                             .name = request->launch.name,
                             .types = request->spec.types,
                             .entity = request->spec.entity,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus,
                             .array_id = request->launch.array_id,
                             .array_index = request->launch.array_index,
                             .steps = request->spec.steps,
                             .submit_ns = at_ns,
                             .held = request->hold,
                             .rejected = fits ? NULL : ret_rejected->text,
                             .request = text };
    int r = store_accept(daemon->store, &row, err);
    if (r < 0)
        return r;
    if (!fits)
        *job = (struct job){ .id = request->spec.id,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus };
    else if (gated)
        job->state = JOB_HELD;
    if (fits)
        note_arrival(daemon, keep(daemon, request), request->array_limit);
    add_event(daemon, fits ? EVENT_SUBMITTED : EVENT_REJECTED, JOB_NONE)->spec = job;
    return 0;
}

int daemon_submit(struct daemon *daemon, const struct caller *caller,
                  struct request *requests, const char *const *texts, uint32_t count,
                  uint64_t *ret_ids, struct error *ret_rejected, struct error *err)
{
    int r = need_life(daemon, err);
    if (r < 0)
        return r;
    uint32_t coming = daemon->arrival_count - daemon->arrival_used;
    if (daemon->engine.state.live_count + coming + count > daemon->setup.job_max)
        return error_set(err, -ENOBUFS, "%u jobs are waiting or running: no more fit",
                         daemon->engine.state.live_count);
    struct passwd *entry = getpwuid(caller->uid);
    char number[16];
    snprintf(number, sizeof number, "%u", caller->uid);
    const char *user = arena_text(&daemon->pass, entry ? entry->pw_name : number);
    uint64_t first = daemon->id_next;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        struct request *request = &requests[i];
        request->spec.id = daemon->id_next++;
        request->launch.id = request->spec.id;
        request->launch.uid = caller->uid;
        request->launch.array_id = request->in_array ? first : 0;
        ret_ids[i] = request->spec.id;
        r = submit_one(daemon, user, request, texts[i], ret_rejected, err);
    }
    if (r < 0)
        fall_back(daemon, err); /* half of them are in the books */
    return r;
}

static int find_for(const struct daemon *daemon, const struct caller *caller,
                    uint64_t id, job_id *ret_job, struct error *err)
{
    int r = need_life(daemon, err);
    if (r < 0)
        return r;
    job_id job = state_find(&daemon->engine.state, id);
    if (job == JOB_NONE)
        return error_set(err, -ENOENT, "no job %" PRIu64 " that has not ended", id);
    if (!daemon_may(daemon, caller, daemon->residents[job].uid))
        return error_set(err, -EPERM, "job %" PRIu64 " is somebody else's", id);
    *ret_job = job;
    return 0;
}

int daemon_cancel(struct daemon *daemon, const struct caller *caller, uint64_t id,
                  struct error *err)
{
    job_id job = JOB_NONE;
    int r = find_for(daemon, caller, id, &job, err);
    if (r == 0)
        add_event(daemon, EVENT_CANCELLED, job)->why = "cancelled";
    return r;
}

int daemon_hold(struct daemon *daemon, const struct caller *caller, uint64_t id,
                bool held, struct error *err)
{
    job_id job = JOB_NONE;
    int r = find_for(daemon, caller, id, &job, err);
    if (r < 0)
        return r;
    enum job_state state = daemon->engine.state.jobs[job].state;
    if (state != JOB_WAITING && state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be held", id);
    r = store_hold(daemon->store, id, held, err);
    if (r < 0)
        return r;
    if (!gates_hold(&daemon->gates, id, held) && held) {
        struct request request = { .spec.id = id,
                                   .hold = true,
                                   .launch.uid = daemon->residents[job].uid };
        add_event(daemon, EVENT_HELD, job);
        gates_insert(&daemon->gates, &request, job);
    }
    daemon->ask_gates = true;
    want_pass(daemon);
    return 0;
}

int daemon_change(struct daemon *daemon, const struct caller *caller, uint64_t id,
                  const struct daemon_change *change, struct error *err)
{
    job_id job = JOB_NONE;
    int r = find_for(daemon, caller, id, &job, err);
    if (r < 0)
        return r;
    const struct job *now = &daemon->engine.state.jobs[job];
    if (now->state != JOB_WAITING && now->state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be changed", id);
    struct job *spec = arena_new(&daemon->pass, struct job);
    *spec = *now;
    if (change->class)
        spec->class = strcmp(change->class, "te") == 0 ? CLASS_TE : CLASS_BE;
    if (!isnan(change->weight))
        spec->weight = change->weight;
    if (!isnan(change->deadline_s))
        spec->deadline_ns = units_ns(change->deadline_s);
    if (!isnan(change->grace_s))
        spec->grace_ns = units_ns(change->grace_s);
    if (!isnan(change->steps))
        spec->steps_total = change->steps;
    /* Whoever keeps an order finds it anew: out of the queue, changed, and in again. */
    bool waits = now->state == JOB_WAITING;
    if (waits)
        add_event(daemon, EVENT_HELD, job);
    add_event(daemon, EVENT_CHANGED, job)->spec = spec;
    if (waits)
        add_event(daemon, EVENT_RELEASED, job);
    return 0;
}

static int need_rights(const struct daemon *daemon, const struct caller *caller,
                       struct error *err)
{
    if (caller->uid == 0 || caller->uid == geteuid())
        return 0;
    return error_set(err, -EPERM, "only who runs berthd may do that");
}

int daemon_set_policy(struct daemon *daemon, const struct caller *caller,
                      const char *text, struct error *err)
{
    const struct policy *policy;
    const char *settings;
    int r = need_rights(daemon, caller, err);
    if (r == 0)
        r = need_life(daemon, err);
    if (r == 0)
        r = policy_parse(text, &policy, &settings, err);
    char *copy = r == 0 ? strdup(text) : NULL;
    if (r == 0 && !copy)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r == 0)
        r = store_set_fact(daemon->store, "policy", text, err);
    if (r == 0)
        r = engine_set_policy(&daemon->engine, policy, settings, err);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(daemon->policy_text);
    daemon->policy_text = copy;
    want_pass(daemon);
    return 0;
}

static void kill_all(struct daemon *daemon)
{
    const struct state *state = &daemon->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE && !state->jobs[id].leaving)
            add_event(daemon, EVENT_CANCELLED, id)->why = "berthd was told to end all";
}

int daemon_stop(struct daemon *daemon, const struct caller *caller, bool kill,
                struct error *err)
{
    int r = need_rights(daemon, caller, err);
    if (r < 0)
        return r;
    if (kill && daemon->alive)
        kill_all(daemon);
    daemon->stopping = true;
    daemon->killing = kill;
    want_pass(daemon);
    if (!daemon->alive)
        uv_stop(&daemon->loop);
    return 0;
}

/* --- what there is to see ------------------------------------------------------------------ */

void daemon_look(struct daemon *daemon, struct daemon_facts *facts)
{
    *facts = (struct daemon_facts){ .setup = &daemon->setup,
                                    .engine = daemon->alive ? &daemon->engine : NULL,
                                    .store = daemon->store,
                                    .gates = &daemon->gates,
                                    .http = daemon->http,
                                    .policy = daemon->policy_text,
                                    .started_ns = daemon->started_ns,
                                    .now_ns = now_ns(daemon),
                                    .attempts =
                                        daemon->local ? local_count(daemon->local) : 0,
                                    .pass_count = daemon->pass_count,
                                    .failures = daemon->failures };
}

job_id daemon_find(const struct daemon *daemon, uint64_t id)
{
    return daemon->alive ? state_find(&daemon->engine.state, id) : JOB_NONE;
}

uint32_t daemon_owner(const struct daemon *daemon, job_id job)
{
    return daemon->residents[job].uid;
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    (void)number;
    daemon->stopping = true;
    want_pass(daemon);
    if (!daemon->alive)
        uv_stop(&daemon->loop);
}

/* GPUs that somebody else uses: looked at now and then, told when it changes. */
static void on_foreign(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    const struct cluster *cluster = &daemon->machine.cluster;
    if (!daemon->alive)
        return;
    machine_look(&daemon->machine, daemon->setup.run_dir);
    for (node_id node = 0; node < cluster->node_count; node++) {
        uint64_t gpus = machine_foreign(&daemon->machine, node);
        if (gpus == daemon->engine.state.foreign[node])
            continue;
        struct event *event = add_event(daemon, EVENT_FOREIGN, JOB_NONE);
        event->node = node;
        event->gpus = gpus;
    }
}

static void start_handles(struct daemon *daemon)
{
    uv_loop_init(&daemon->loop);
    uv_check_init(&daemon->loop, &daemon->check);
    uv_idle_init(&daemon->loop, &daemon->due);
    uv_timer_init(&daemon->loop, &daemon->wake);
    uv_timer_init(&daemon->loop, &daemon->retry);
    uv_timer_init(&daemon->loop, &daemon->foreign);
    daemon->check.data = daemon->due.data = daemon->wake.data = daemon;
    daemon->retry.data = daemon->foreign.data = daemon;
    uv_check_start(&daemon->check, on_check);
    static const int numbers[2] = { SIGTERM, SIGINT };
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&daemon->loop, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
    }
}

static int open_http(struct daemon *daemon, struct error *err)
{
    int r = routes_new(&daemon->routes, daemon, &daemon->loop, err);
    if (r < 0)
        return r;
    struct http_setup setup = { .loop = &daemon->loop,
                                .socket = daemon->setup.socket,
                                .everyone = daemon->setup.system,
                                .listen = daemon->setup.listen,
                                .token = routes_token(daemon->routes),
                                .handler = routes_handle,
                                .context = daemon->routes };
    return http_open(&daemon->http, &setup, err);
}

/* The one it is told, the one it had, or the standard one. */
static char *choose_policy(struct daemon *daemon)
{
    if (daemon->setup.policy)
        return strdup(daemon->setup.policy);
    char *kept = store_fact(daemon->store, "policy");
    return kept ? kept : strdup(STANDARD_POLICY);
}

int daemon_new(struct daemon **ret_daemon, const struct daemon_setup *setup,
               struct error *err)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);
    if (!daemon)
        return error_set(err, -ENOMEM, "out of memory");
    daemon->setup = *setup;
    arena_init(&daemon->fixed, 0);
    arena_init(&daemon->pass, 0);
    arena_init(&daemon->launch, 0);
    start_handles(daemon);
    char path[4096];
    snprintf(path, sizeof path, "%s/berth.db", setup->state_dir);
    int r = machine_find(&daemon->machine, &daemon->fixed, setup->fake_gpus, err);
    if (r == 0)
        r = store_open(&daemon->store, path, err);
    if (r == 0) {
        throughput_init(&daemon->rates, &daemon->machine.cluster);
        start_clock(daemon);
        daemon->policy_text = choose_policy(daemon);
        r = open_http(daemon, err);
    }
    if (r == 0)
        r = begin_life(daemon, err);
    if (r == 0 && setup->policy)
        r = store_set_fact(daemon->store, "policy", setup->policy, err);
    if (r == 0 && machine_is_shared(&daemon->machine))
        uv_timer_start(&daemon->foreign, on_foreign, 0, FOREIGN_EVERY_MS);
    if (r < 0) {
        daemon_free(daemon);
        return r;
    }
    *ret_daemon = daemon;
    return 0;
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void daemon_free(struct daemon *daemon)
{
    if (!daemon)
        return;
    end_life(daemon);
    if (daemon->http)
        http_close(daemon->http);
    routes_free(daemon->routes);
    uv_check_stop(&daemon->check);
    uv_idle_stop(&daemon->due);
    uv_close((uv_handle_t *)&daemon->check, NULL);
    uv_close((uv_handle_t *)&daemon->due, NULL);
    uv_close((uv_handle_t *)&daemon->wake, NULL);
    uv_close((uv_handle_t *)&daemon->retry, NULL);
    uv_close((uv_handle_t *)&daemon->foreign, NULL);
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_walk(&daemon->loop, close_handle, NULL);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon->loop);
    store_close(daemon->store);
    outbox_release(&daemon->outboxes[0]);
    outbox_release(&daemon->outboxes[1]);
    machine_release(&daemon->machine);
    free(daemon->arrivals);
    free(daemon->policy_text);
    arena_release(&daemon->launch);
    arena_release(&daemon->pass);
    arena_release(&daemon->fixed);
    free(daemon);
}

int daemon_run(struct daemon *daemon, struct error *err)
{
    (void)err;
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    return 0;
}
