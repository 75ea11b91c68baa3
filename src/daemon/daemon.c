/* daemon.c - the engine, fed from the real world: the loop and its passes. */
#include "daemon/daemon.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "daemon/notes.h"
#include "daemon/routes.h"
#include "daemon/sent.h"
#include "executor/executor.h"
#include "http/http.h"
#include "model/cluster.h"
#include "store/db.h"
#include "store/store.h"

#define STANDARD_POLICY "fitgpp,worth=xion"
#define STEPS_AT_ONCE_MAX 64
#define RETRY_STORE_MS 1000
#define LOST_MAX 10 /* times in a row that a job may be lost soon after its start */
#define LOST_SOON_NS (60 * NS_PER_S)
#define FOREIGN_EVERY_MS 5000
#define PRUNE_EVERY_MS (3600 * 1000)
#define PRUNE_SOON_MS 100

/* --- time ------------------------------------------------------------------------- */

/* The wall clock at the start, carried on by one that never goes back. */
int64_t daemon_now_ns(const struct daemon *daemon)
{
    return daemon->wall_ns + clock_now_ns() - daemon->steady_ns;
}

static void start_clock(struct daemon *daemon)
{
    daemon->steady_ns = clock_now_ns();
    daemon->wall_ns = clock_read_ns(CLOCK_REALTIME);
    struct db_query *query =
        db_prepare(store_reader(daemon->store),
                   "SELECT at_ns FROM event ORDER BY seq DESC LIMIT 1");
    if (db_next(query, NULL) == 1 && db_get_int(query, 0) > daemon->wall_ns)
        daemon->wall_ns = db_get_int(query, 0); /* the log never goes back either */
    db_finish(query);
    daemon->started_ns = daemon->wall_ns;
}

/* --- passes ------------------------------------------------------------------------- */

static void on_due(uv_idle_t *handle)
{
    (void)handle; /* it is there so that the loop does not sleep */
}

void daemon_want_pass(struct daemon *daemon)
{
    if (daemon->wanted)
        return;
    daemon->wanted = true;
    uv_idle_start(&daemon->due, on_due);
}

struct event *daemon_add_event(struct daemon *daemon, enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(daemon->outbox);
    event->at_ns = daemon_now_ns(daemon);
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = daemon->engine.state.jobs[job].generation;
    daemon_want_pass(daemon);
    return event;
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
    struct resident *resident = &daemon->residents[event->job];
    if (event->attempt != job->attempt || event->generation != job->generation)
        return; /* of an attempt that is over: nobody will hear of it */
    if (event->kind == EVENT_FAILED && job->failures < resident->retries &&
        !job->leaving) {
        event->kind = EVENT_LOST;
        event->steps = job->steps;
        event->steps_reached = job->steps;
    } else if (event->kind == EVENT_LOST && job_seated(job)) {
        bool soon = event->at_ns - job->since_ns < LOST_SOON_NS;
        resident->losses = soon ? resident->losses + 1 : 0;
        if (resident->requeue && resident->losses <= LOST_MAX)
            return;
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
static int find_cluster(struct daemon *daemon, struct error *err);
static int read_rates(struct daemon *daemon, struct error *err);

/* What has not been written never happened; begin again from what is on disk. */
static void begin_again(struct daemon *daemon, uint64_t in_ms)
{
    store_rollback(daemon->store);
    routes_flush(daemon->routes, false);
    http_flush(daemon->http, false);
    life_end(daemon);
    uv_timer_start(&daemon->retry, on_retry, in_ms, 0);
}

void daemon_fall_back(struct daemon *daemon, const struct error *err)
{
    log_line("%s; nothing was changed", err->text);
    daemon->failures++;
    begin_again(daemon, RETRY_STORE_MS);
}

static void on_retry(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    struct error err = { "" };
    int r = 0;
    if (daemon->stopping && !daemon->killing) {
        uv_stop(&daemon->loop); /* what is on disk is all there is to keep */
        return;
    }
    if (daemon->outgrown) {
        daemon->outgrown = false;
        r = find_cluster(daemon, &err);
        if (r == 0)
            r = read_rates(daemon, &err);
    }
    if (r < 0 || life_begin(daemon, &err) < 0) {
        log_line("%s", err.text);
        life_end(daemon);
        uv_timer_start(&daemon->retry, on_retry, RETRY_STORE_MS, 0);
    }
}

static int step(struct daemon *daemon, struct error *err)
{
    struct outbox *inbox = daemon->outbox;
    daemon->outbox =
        inbox == daemon->outboxes ? daemon->outboxes + 1 : daemon->outboxes;
    daemon->coming = 0;
    int64_t at_ns = daemon_now_ns(daemon);
    for (uint32_t i = 0; i < inbox->count; i++)
        amend(daemon, &inbox->events[i]);
    int r = engine_step(&daemon->engine, at_ns, inbox->events, inbox->count, err);
    inbox->count = 0;
    return r;
}

static void on_wake(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    daemon->ask_gates = daemon->ask_gates || daemon_now_ns(daemon) >= daemon->gates_ns;
    daemon_want_pass(daemon);
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
    int64_t in_ns = at_ns - daemon_now_ns(daemon);
    uint64_t in_ms = in_ns > 0 ? (uint64_t)(in_ns / 1000000 + 1) : 1;
    uv_timer_start(&daemon->wake, on_wake, in_ms, 0);
}

static void end_if_told(struct daemon *daemon)
{
    if (daemon->stopping && (!daemon->killing || daemon->engine.state.live_count == 0))
        uv_stop(&daemon->loop);
    else if (daemon->killing)
        desk_kill_all(
            daemon); /* those who came in the same pass, or are back from disk */
}

static void run_pass(struct daemon *daemon)
{
    struct error err = { "" };
    uint32_t steps = 0;
    int r = 0;
    do {
        if (daemon->ask_gates)
            life_ask_gates(daemon);
        r = step(daemon, &err);
    } while (r == 0 && (daemon->outbox->count > 0 || daemon->ask_gates) &&
             ++steps < STEPS_AT_ONCE_MAX);
    daemon->pass_count++;
    if (r < 0) {
        daemon_fall_back(daemon, &err);
        return;
    }
    /* Reset before replying: a client may send its next request at once. */
    if (daemon->outbox->count > 0)
        daemon_want_pass(daemon);
    else
        arena_reset(&daemon->pass);
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
    if (daemon->alive && daemon->outgrown) {
        log_line("Slurm has other nodes than before");
        begin_again(daemon, 0);
    } else if (daemon->alive)
        run_pass(daemon);
}

/* --- what there is to see ------------------------------------------------------------------ */

void daemon_look(struct daemon *daemon, struct daemon_facts *facts)
{
    *facts = (struct daemon_facts){ .setup = &daemon->setup,
                                    .machine = &daemon->machine,
                                    .engine = daemon->alive ? &daemon->engine : NULL,
                                    .store = daemon->store,
                                    .gates = &daemon->gates,
                                    .http = daemon->http,
                                    .executor = daemon->backend->executor,
                                    .executor_self = daemon->executor_self,
                                    .sent = daemon->sent,
                                    .policy = daemon->policy_text,
                                    .flow = daemon->flow_text,
                                    .started_ns = daemon->started_ns,
                                    .now_ns = daemon_now_ns(daemon),
                                    .pass_count = daemon->pass_count,
                                    .failures = daemon->failures };
    if (!daemon->executor_self)
        return;
    facts->attempts = facts->executor->count(facts->executor_self);
    if (facts->executor->trouble)
        facts->trouble = facts->executor->trouble(facts->executor_self);
    if (facts->trouble && !*facts->trouble)
        facts->trouble = NULL;
}

job_id daemon_find(const struct daemon *daemon, uint64_t id)
{
    return daemon->alive ? state_find(&daemon->engine.state, id) : JOB_NONE;
}

uint32_t daemon_owner(const struct daemon *daemon, job_id job)
{
    return daemon->residents[job].uid;
}

struct notes *daemon_notes(const struct daemon *daemon)
{
    return daemon->notes;
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    (void)number;
    daemon->stopping = true;
    daemon->killing = false; /* who was told to end the jobs waits for them no longer */
    daemon_want_pass(daemon);
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
        struct event *event = daemon_add_event(daemon, EVENT_FOREIGN, JOB_NONE);
        event->node = node;
        event->gpus = gpus;
    }
}

/* Old reports go, a few at a time; goes to disk with whatever is written next. */
static void on_prune(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    struct error err = { "" };
    if (!daemon->alive)
        return;
    int64_t before_ns =
        daemon_now_ns(daemon) - daemon->setup.keep_days * INT64_C(86400) * NS_PER_S;
    int64_t count = store_prune(daemon->store, before_ns, &err);
    if (count < 0)
        daemon_fall_back(daemon, &err);
    else if (count > 0)
        daemon_want_pass(daemon);
    uv_timer_start(&daemon->prune, on_prune, count > 0 ? PRUNE_SOON_MS : PRUNE_EVERY_MS,
                   0);
}

static void start_handles(struct daemon *daemon)
{
    uv_loop_init(&daemon->loop);
    uv_check_init(&daemon->loop, &daemon->check);
    uv_idle_init(&daemon->loop, &daemon->due);
    uv_timer_init(&daemon->loop, &daemon->wake);
    uv_timer_init(&daemon->loop, &daemon->retry);
    uv_timer_init(&daemon->loop, &daemon->foreign);
    uv_timer_init(&daemon->loop, &daemon->prune);
    daemon->check.data = daemon->due.data = daemon->wake.data = daemon;
    daemon->retry.data = daemon->foreign.data = daemon->prune.data = daemon;
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
                                .open_to_strangers = routes_open_to,
                                .knows = routes_knows,
                                .open = routes_open_to_all,
                                .context = daemon->routes };
    r = http_open(&daemon->http, &setup, err);
    if (r == 0)
        routes_resume(daemon->routes, daemon->http);
    return r;
}

/* What it is told now, or was told the last time; a copy, or NULL. */
static char *told(struct daemon *daemon, const char *said, const char *name)
{
    return said ? memory_text(said) : store_fact(daemon->store, name);
}

/* Prices and speeds of the types that there are. */
static int say_of_types(struct daemon *daemon, struct error *err)
{
    struct cluster *cluster = &daemon->machine.cluster;
    for (uint32_t i = 0; i < daemon->setup.type_count; i++) {
        const struct daemon_type *said = &daemon->setup.types[i];
        uint32_t type = 0;
        while (type < cluster->type_count &&
               strcmp(cluster->types[type].name, said->name) != 0)
            type++;
        if (type == cluster->type_count)
            return error_set(err, -EINVAL, "there is no accelerator of type %.60s here",
                             said->name);
        if (said->usd_per_hour > 0)
            cluster->types[type].usd_per_hour = said->usd_per_hour;
        if (said->speed > 0)
            cluster->types[type].speed = said->speed;
    }
    return 0;
}

static int find_cluster(struct daemon *daemon, struct error *err)
{
    int r = daemon->backend->find_cluster(daemon, err);
    return r < 0 ? r : say_of_types(daemon, err);
}

/* How fast each kind of job runs on each type, where somebody has measured it. */
static int read_rates(struct daemon *daemon, struct error *err)
{
    throughput_init(&daemon->rates, &daemon->machine.cluster);
    if (!daemon->setup.throughputs)
        return 0;
    return throughput_load(&daemon->rates, &daemon->fixed, daemon->setup.throughputs,
                           err);
}

static int choose_policy(struct daemon *daemon, struct error *err)
{
    const char *said = daemon->setup.policy;
    char *text = told(daemon, said, "policy");
    daemon->policy_text = text ? text : memory_text(STANDARD_POLICY);
    return said ? store_set_fact(daemon->store, "policy", said, err) : 0;
}

int daemon_new(struct daemon **ret_daemon, const struct daemon_setup *setup,
               struct error *err)
{
    struct daemon *daemon = memory_checked(calloc(1, sizeof *daemon));
    daemon->setup = *setup;
    daemon->backend = setup->slurm ? &backend_slurm : &backend_local;
    arena_init(&daemon->fixed, 0);
    arena_init(&daemon->pass, 0);
    arena_init(&daemon->launch, 0);
    start_handles(daemon);
    daemon->notes = notes_new(daemon);
    char path[4096];
    snprintf(path, sizeof path, "%s/berth.db", setup->state_dir);
    int r = store_open(&daemon->store, path, err);
    if (r == 0)
        r = find_cluster(daemon, err);
    if (r == 0)
        r = choose_policy(daemon, err);
    if (r == 0)
        r = desk_choose_flow(daemon, err);
    if (r == 0) {
        r = read_rates(daemon, err);
        start_clock(daemon);
    }
    if (r == 0)
        r = open_http(daemon, err);
    if (r == 0)
        r = life_begin(daemon, err);
    if (r == 0 && machine_is_shared(&daemon->machine))
        uv_timer_start(&daemon->foreign, on_foreign, 0, FOREIGN_EVERY_MS);
    if (r == 0)
        uv_timer_start(&daemon->prune, on_prune, PRUNE_EVERY_MS, 0);
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
    life_end(daemon);
    if (daemon->http)
        http_close(daemon->http);
    routes_free(daemon->routes);
    notes_free(daemon->notes);
    uv_check_stop(&daemon->check);
    uv_idle_stop(&daemon->due);
    uv_close((uv_handle_t *)&daemon->check, NULL);
    uv_close((uv_handle_t *)&daemon->due, NULL);
    uv_close((uv_handle_t *)&daemon->wake, NULL);
    uv_close((uv_handle_t *)&daemon->retry, NULL);
    uv_close((uv_handle_t *)&daemon->foreign, NULL);
    uv_close((uv_handle_t *)&daemon->prune, NULL);
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
    free(daemon->policy_text);
    free(daemon->flow_text);
    sent_free(daemon->sent);
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
