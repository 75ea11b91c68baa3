/*
 * daemon.c - berthd: its services, its loop and passes, startup and shutdown.
 *
 * Nothing is decided inside a callback.  At the end of a turn of the loop one pass applies
 * everything that has come in.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "daemon/flows.h"
#include "daemon/forecasts.h"
#include "daemon/gpu_watch.h"
#include "daemon/progress.h"
#include "daemon/routes/routes.h"
#include "daemon/upkeep.h"
#include "daemon/users.h"
#include "executor/executor.h"
#include "executor/slurm/slurm.h"
#include "host/gpus.h"
#include "host/launcher_client.h"
#include "http/http.h"
#include "model/cluster.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/policy_rows.h"
#include "store/store.h"
#include "store/submission_keys.h"

#define RETRY_STORE_MS 1000
#define MOVE_LOG_MS 20
#define STATE_EVERY_MS 1000

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

/* --- whether the database and the socket are still where they were made --------------------- */

/*
 * Both are looked at once a second.  A socket that was deleted is made again.  While the
 * database is gone nothing is accepted; when it is back berthd goes on.  If another file has
 * taken its place, berthd ends: the next one reads that file.
 */
enum state_verdict {
    STATE_FINE,
    STATE_GONE,    /* refuse, and look again */
    STATE_REPLACED /* end */
};

/* Log a change once, not every second. */
static void set_trouble(char *trouble, size_t size, const char *text, const char *over)
{
    if (strcmp(trouble, text) == 0)
        return;
    log_line("%s", *text ? text : over);
    snprintf(trouble, size, "%s", text);
}

static void check_socket(struct daemon *daemon)
{
    struct error err = { "" };
    struct http *http = routes_http(daemon->routes);
    int r = http ? http_renew_socket(http, &err) : 0;
    if (r == 1)
        log_line("%s was deleted, and is made again", daemon->setup.socket);
    set_trouble(daemon->socket_trouble, sizeof daemon->socket_trouble,
                r < 0 ? err.text : "", "the socket can be used again");
}

/* Look at both; what has changed is logged, and kept in daemon->state_trouble. */
static enum state_verdict check_state(struct daemon *daemon)
{
    struct error err = { "" };
    check_socket(daemon);
    int r = store_check_file(daemon->store, &err);
    set_trouble(daemon->state_trouble, sizeof daemon->state_trouble,
                r < 0 ? err.text : "", "the database is back");
    return r == -ESTALE ? STATE_REPLACED : r < 0 ? STATE_GONE : STATE_FINE;
}

/* --- starting the scheduler, and again after the store could not be written -------------- */

/* Prices and speeds of the types that there are. */
static int set_types(struct daemon *daemon, struct error *err)
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
    struct cluster *cluster = &daemon->machine.cluster;
    cluster->entities = daemon->setup.groups;
    cluster->entity_count = daemon->setup.group_count;
    cluster->users = daemon->setup.users;
    cluster->user_count = daemon->setup.user_count;
    return r < 0 ? r : set_types(daemon, err);
}

/*
 * Slurm lets jobs of all users share the GPUs that its administrator has divided into shards;
 * what fits is a matter of shards there, and of no memory besides.
 */
static void share_by_shards(struct sharing_rules *rules, const struct cluster *cluster,
                            enum daemon_sharing allow)
{
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        if (cluster->types[t].gpu_shards == 0)
            continue;
        rules->gpu_mib[t] = cluster->types[t].gpu_shards * SLURM_SHARD_MIB;
        rules->reserve_mib = 0;
        rules->across_users = true;
        rules->forbidden = allow == SHARING_FORBIDDEN;
    }
}

/* Which jobs may share GPUs, and the memory of those. */
static struct sharing_rules find_sharing_rules(const struct daemon *daemon)
{
    const struct daemon_setup *setup = &daemon->setup;
    const struct cluster *cluster = &daemon->machine.cluster;
    enum daemon_sharing allow = setup->sharing.allow;
    struct sharing_rules rules = {
        .by_consent = true,
        .forbidden = allow == SHARING_FORBIDDEN ||
                     (allow == SHARING_UNLESS_SYSTEM && setup->system),
        .across_users = setup->sharing.across_users,
        .reserve_mib = (uint32_t)(setup->sharing.reserve_gib * 1024),
    };
    bool takes_turns = !gpus_mps_runs(setup->sharing.mps);
    rules.overlaps = !takes_turns;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        const char *name = cluster->types[t].name;
        uint64_t mib = machine_gpu_bytes(&daemon->machine, name) >> 20;
        rules.gpu_mib[t] = mib > UINT32_MAX ? UINT32_MAX : (uint32_t)mib;
        if (takes_turns && machine_is_exclusive(&daemon->machine, name))
            rules.unshared |= (uint32_t)1 << t;
    }
    for (uint32_t i = 0; i < setup->type_count; i++) {
        uint32_t bit = cluster_types_named(cluster, setup->types[i].name);
        if (bit && setup->types[i].gpu_gib > 0)
            rules.gpu_mib[__builtin_ctz(bit)] =
                (uint32_t)(setup->types[i].gpu_gib * 1024);
    }
    share_by_shards(&rules, cluster, allow);
    return rules;
}

/* How fast each kind of job runs on each type, where that was measured. */
static int read_rates(struct daemon *daemon, struct error *err)
{
    throughput_init(&daemon->rates, &daemon->machine.cluster);
    daemon->rates.rules = find_sharing_rules(daemon);
    if (!daemon->setup.throughputs)
        return 0;
    return throughput_load(&daemon->rates, &daemon->fixed, daemon->setup.throughputs,
                           err);
}

static int open_executor(void *context, void **ret_self, struct error *err)
{
    struct daemon *daemon = context;
    return daemon->backend->open(daemon, ret_self, err);
}

/* GPUs that other processes use, as bits by node; to be freed. */
static uint64_t *find_foreign(struct daemon *daemon)
{
    uint32_t count = daemon->machine.cluster.node_count;
    uint64_t *foreign = memory_checked(calloc(count + 1, sizeof *foreign));
    gpu_watch_look(daemon->gpu_watch);
    for (node_id node = 0; node < count; node++)
        foreign[node] = gpu_watch_foreign(daemon->gpu_watch, node);
    return foreign;
}

static int start_scheduler(struct daemon *daemon, struct error *err)
{
    uint64_t *foreign = find_foreign(daemon);
    daemon->submission.id_next = store_last_id(daemon->store) + 1;
    limits_restart(&daemon->limits);
    int r = scheduler_start(&daemon->scheduler, foreign, err);
    free(foreign);
    return r;
}

static void on_retry(uv_timer_t *handle);

/* What has not been written never happened: start again from what is on disk. */
static void start_again(struct daemon *daemon, uint64_t in_ms)
{
    store_rollback(daemon->store);
    routes_flush(daemon->routes, false);
    scheduler_stop(&daemon->scheduler);
    uv_timer_start(&daemon->retry, on_retry, in_ms, 0);
}

static void on_store_failed(void *context, const struct error *err)
{
    struct daemon *daemon = context;
    log_line("%s; nothing was changed", err->text);
    daemon->failures++;
    snprintf(daemon->scheduler.trouble, sizeof daemon->scheduler.trouble, "%s",
             err->text);
    start_again(daemon, RETRY_STORE_MS);
}

/* The database was replaced: jobs go on, and the next berthd reads the new one. */
static void end_replaced(struct daemon *daemon)
{
    daemon->replaced = true;
    uv_stop(&daemon->loop);
}

static void on_retry(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    struct error err = { "" };
    int r = 0;
    enum state_verdict verdict = check_state(daemon);
    if (verdict != STATE_FINE && !daemon->scheduler.stopping) {
        if (verdict == STATE_REPLACED)
            end_replaced(daemon);
        uv_timer_start(&daemon->retry, on_retry, RETRY_STORE_MS, 0);
        return;
    }
    if (daemon->scheduler.stopping && !daemon->killing) {
        uv_stop(&daemon->loop); /* what is on disk is all there is to keep */
        return;
    }
    if (daemon->outgrown) {
        daemon->outgrown = false;
        r = find_cluster(daemon, &err);
        if (r == 0)
            r = read_rates(daemon, &err);
    }
    if (r < 0 || start_scheduler(daemon, &err) < 0) {
        log_line("%s", err.text);
        scheduler_stop(&daemon->scheduler);
        uv_timer_start(&daemon->retry, on_retry, RETRY_STORE_MS, 0);
    }
}

/* --- passes ------------------------------------------------------------------------------- */

static void on_wake(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    scheduler_want_pass(&daemon->scheduler);
}

static void set_wake(struct daemon *daemon)
{
    int64_t at_ns = scheduler_wake_ns(&daemon->scheduler);
    if (at_ns == INT64_MAX) {
        uv_timer_stop(&daemon->wake);
        return;
    }
    int64_t in_ns = at_ns - scheduler_now_ns(&daemon->scheduler);
    uint64_t in_ms = in_ns > 0 ? (uint64_t)(in_ns / 1000000 + 1) : 1;
    uv_timer_start(&daemon->wake, on_wake, in_ms, 0);
}

/* Cancel all jobs that are not on their way out yet. */
static void cancel_jobs(struct daemon *daemon)
{
    const struct state *state = &daemon->scheduler.engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE && !state->jobs[id].leaving)
            scheduler_add_event(&daemon->scheduler, EVENT_CANCELLED, id)->why =
                "berthd was told to end all";
}

static void end_if_told(struct daemon *daemon)
{
    const struct scheduler *scheduler = &daemon->scheduler;
    if (scheduler->stopping &&
        (!daemon->killing || scheduler->engine.state.live_count == 0))
        uv_stop(&daemon->loop);
    else if (daemon->killing)
        cancel_jobs(daemon); /* jobs of the same pass, or back from disk */
}

/* Not while a transaction is open, or somebody waits for the rest of a reply. */
static void on_move_log(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    struct db *db = store_writer(daemon->store);
    bool waits = http_is_sending(routes_http(daemon->routes));
    if (!waits)
        db_move_log(db);
    if (db_has_long_log(db))
        uv_timer_start(handle, on_move_log, waits ? MOVE_LOG_MS : RETRY_STORE_MS, 0);
}

static void run_pass(struct daemon *daemon)
{
    struct error err = { "" };
    int r = scheduler_run(&daemon->scheduler, &err);
    daemon->pass_count++;
    if (r < 0) {
        on_store_failed(daemon, &err);
        return;
    }
    routes_flush(daemon->routes, true);
    set_wake(daemon);
    if (db_has_long_log(store_writer(daemon->store)) &&
        !uv_is_active((uv_handle_t *)&daemon->move_log))
        uv_timer_start(&daemon->move_log, on_move_log, MOVE_LOG_MS, 0);
    end_if_told(daemon);
}

static void on_check(uv_check_t *handle)
{
    struct daemon *daemon = handle->data;
    struct scheduler *scheduler = &daemon->scheduler;
    if (!scheduler->wanted)
        return;
    scheduler->wanted = false;
    uv_idle_stop(&scheduler->due);
    if (scheduler->alive && daemon->outgrown) {
        log_line("Slurm has other nodes than before");
        start_again(daemon, 0);
    } else if (scheduler->alive)
        run_pass(daemon);
}

/* --- callers and queries -------------------------------------------------------------------- */

bool caller_may(const struct caller *caller, uint32_t owner)
{
    return caller->uid == 0 || caller->uid == geteuid() || caller->uid == owner;
}

bool caller_may_change(const struct caller *caller, uint32_t owner)
{
    return caller->uid == owner || (!caller->own_jobs && caller_may(caller, owner));
}

int caller_check_admin(const struct caller *caller, struct error *err)
{
    if (!caller->own_jobs && (caller->uid == 0 || caller->uid == geteuid()))
        return 0;
    return error_set(err, -EPERM,
                     "only the user that runs berthd, and root, may do that");
}

void daemon_view_of(struct daemon *daemon, struct daemon_view *facts)
{
    struct scheduler *scheduler = &daemon->scheduler;
    *facts =
        (struct daemon_view){ .setup = &daemon->setup,
                              .machine = &daemon->machine,
                              .engine = scheduler->alive ? &scheduler->engine : NULL,
                              .store = daemon->store,
                              .conditions = &scheduler->conditions,
                              .scheduler = scheduler,
                              .submission = &daemon->submission,
                              .limits = &daemon->limits,
                              .flows = daemon->flows,
                              .forecasts = daemon->forecasts,
                              .progress = daemon->progress,
                              .gpu_watch = daemon->gpu_watch,
                              .users = daemon->users,
                              .http = routes_http(daemon->routes),
                              .executor = daemon->backend->executor,
                              .executor_self = scheduler->executor_self,
                              .policy = scheduler->policy,
                              .flow = flows_policy_text(daemon->flows),
                              .started_ns = daemon->started_ns,
                              .now_ns = scheduler_now_ns(scheduler),
                              .pass_count = daemon->pass_count,
                              .failures = daemon->failures };
    if (daemon->state_trouble[0])
        facts->store_trouble = daemon->state_trouble;
    else if (!scheduler->alive)
        facts->store_trouble = scheduler->trouble;
    if (!facts->executor_self)
        return;
    facts->attempts = facts->executor->count(facts->executor_self);
    if (facts->executor->trouble)
        facts->trouble = facts->executor->trouble(facts->executor_self);
    if (facts->trouble && !*facts->trouble)
        facts->trouble = NULL;
}

job_id daemon_find(const struct daemon *daemon, uint64_t id)
{
    return scheduler_find(&daemon->scheduler, id);
}

uint32_t daemon_owner(const struct daemon *daemon, job_id job)
{
    return daemon->scheduler.jobs[job].uid;
}

/* --- for administrators --------------------------------------------------------------------- */

int daemon_set_policy(struct daemon *daemon, const struct caller *caller,
                      const char *text, struct error *err)
{
    struct scheduler *scheduler = &daemon->scheduler;
    const struct policy *policy;
    const char *settings;
    int r = caller_check_admin(caller, err);
    if (r == 0)
        r = scheduler_check_open(scheduler, err);
    if (r == 0)
        r = policy_parse(text, &policy, &settings, err);
    char *copy = r == 0 ? memory_text(text) : NULL;
    if (r == 0)
        r = store_set_fact(daemon->store, "policy", text, err);
    if (r == 0)
        r = policy_rows_note(daemon->store, scheduler_now_ns(scheduler), text, err);
    if (r == 0)
        r = engine_set_policy(&scheduler->engine, policy, settings, err);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(scheduler->policy);
    scheduler->policy = copy;
    scheduler_want_pass(scheduler);
    return 0;
}

int daemon_stop(struct daemon *daemon, const struct caller *caller, bool kill,
                struct error *err)
{
    struct scheduler *scheduler = &daemon->scheduler;
    int r = caller_check_admin(caller, err);
    if (r < 0)
        return r;
    if (kill && !scheduler->alive)
        return error_set(err, -EAGAIN,
                         "the store cannot be written, so no job can be ended now; "
                         "without --kill berthd alone stops");
    if (kill)
        cancel_jobs(daemon);
    scheduler->stopping = true;
    daemon->killing = kill;
    scheduler_want_pass(scheduler);
    if (!scheduler->alive)
        uv_stop(&daemon->loop);
    return 0;
}

/* --- signals and timers ------------------------------------------------------------------------ */

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    (void)number;
    daemon->scheduler.stopping = true;
    daemon->killing = false; /* a signal ends berthd without waiting for its jobs */
    scheduler_want_pass(&daemon->scheduler);
    if (!daemon->scheduler.alive)
        uv_stop(&daemon->loop);
}

/* Refuse as soon as the database is gone, not when the next commit fails. */
static void on_watch(uv_timer_t *handle)
{
    struct daemon *daemon = handle->data;
    enum state_verdict verdict = check_state(daemon);
    if (verdict == STATE_REPLACED)
        end_replaced(daemon);
    else if (verdict == STATE_GONE && daemon->scheduler.alive) {
        snprintf(daemon->scheduler.trouble, sizeof daemon->scheduler.trouble, "%s",
                 daemon->state_trouble);
        start_again(daemon, RETRY_STORE_MS);
    }
}

/* --- startup and shutdown --------------------------------------------------------------------- */

static void start_handles(struct daemon *daemon)
{
    static const int numbers[2] = { SIGTERM, SIGINT };
    uv_timer_t *timers[] = { &daemon->wake, &daemon->retry, &daemon->watch,
                             &daemon->move_log };
    uv_loop_init(&daemon->loop);
    uv_check_init(&daemon->loop, &daemon->check);
    daemon->check.data = daemon;
    uv_check_start(&daemon->check, on_check);
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&daemon->loop, timers[i]);
        timers[i]->data = daemon;
    }
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&daemon->loop, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
    }
}

/* Without it no job can be started or ended: a service manager starts both again. */
static void on_launcher_gone(void *context)
{
    struct daemon *daemon = context;
    log_line("berth-launch has ended; jobs go on");
    daemon->failed = true;
    uv_stop(&daemon->loop);
}

/* Requests of users that were looked up can be handled now. */
static void on_users_loaded(void *context)
{
    struct daemon *daemon = context;
    if (daemon->routes)
        http_retry(routes_http(daemon->routes));
}

static bool is_named(void *context, uint32_t uid, const char *name)
{
    return strcmp(users_find(context, uid).name, name) == 0;
}

static bool is_in_group(void *context, uint32_t uid, const char *group)
{
    return users_in_group(context, uid, group);
}

static void open_limits(struct daemon *daemon)
{
    const struct daemon_setup *setup = &daemon->setup;
    struct limits_setup limits = {
        .store = daemon->store,
        .names = { is_named, is_in_group, daemon->users },
        .system = setup->system,
        .own_uid = geteuid(),
        .job_max = setup->job_max,
        .settings = setup->limits,
        .setting_count = setup->limit_count,
    };
    limits_init(&daemon->limits, &limits);
    daemon->scheduler.limits = &daemon->limits;
}

static void open_services(struct daemon *daemon)
{
    struct scheduler *scheduler = &daemon->scheduler;
    const struct launcher_client *launcher = daemon->setup.launcher;
    *scheduler = (struct scheduler){ .loop = &daemon->loop,
                                     .store = daemon->store,
                                     .executor = daemon->backend->executor,
                                     .cluster = &daemon->machine.cluster,
                                     .rates = &daemon->rates,
                                     .job_max = daemon->setup.job_max,
                                     .open_executor = open_executor,
                                     .context = daemon };
    scheduler_init(scheduler);
    daemon->started_ns = scheduler->wall_ns;
    daemon->submission =
        (struct submission){ .scheduler = scheduler,
                             .keys = submission_keys_new(store_writer(daemon->store)),
                             .users = launcher ? launcher_client_users(launcher) : NULL,
                             .failed = on_store_failed,
                             .context = daemon };
    daemon->users = scheduler->users =
        users_new(&daemon->loop, on_users_loaded, daemon);
    open_limits(daemon);
    users_load(daemon->users, 0);
    users_load(daemon->users, geteuid());
    daemon->flows = scheduler->flows = flows_new(scheduler);
    daemon->forecasts = scheduler->forecasts =
        forecasts_new(scheduler, daemon->setup.forecasts == FORECASTS_MADE);
    daemon->progress = scheduler->progress =
        progress_new(scheduler, daemon->setup.launcher, daemon->setup.munge_socket);
}

/* The policy of this start, or of the last one. */
static int choose_policy(struct daemon *daemon, struct error *err)
{
    const char *said = daemon->setup.policy;
    char *text = said ? memory_text(said) : store_fact(daemon->store, "policy");
    daemon->scheduler.policy = text ? text : memory_text(POLICY_STANDARD);
    int r = said ? store_set_fact(daemon->store, "policy", said, err) : 0;
    return r < 0 ? r
                 : policy_rows_note(daemon->store, scheduler_now_ns(&daemon->scheduler),
                                    daemon->scheduler.policy, err);
}

/* GPUs that jobs cannot have. */
static void log_left_out(const struct machine *machine)
{
    for (uint32_t i = 0; machine->gpus && i < machine->gpus->left_out_count; i++)
        log_line("%s", machine->gpus->left_out[i]);
}

int daemon_new(struct daemon **ret_daemon, const struct daemon_setup *setup,
               struct error *err)
{
    struct daemon *daemon = memory_checked(calloc(1, sizeof *daemon));
    daemon->setup = *setup;
    daemon->setup.sharing.mps = gpus_mps_folder(setup->sharing.mps);
    daemon->backend = setup->slurm ? &backend_slurm : &backend_local;
    arena_init(&daemon->fixed, 0);
    start_handles(daemon);
    if (setup->launcher)
        launcher_client_watch(setup->launcher, &daemon->loop, on_launcher_gone, daemon);
    char path[4096];
    snprintf(path, sizeof path, "%s/berth.db", setup->state_dir);
    int r = store_open(&daemon->store, path, err);
    if (r == 0) {
        open_services(daemon);
        r = find_cluster(daemon, err);
    }
    if (r == 0) {
        daemon->gpu_watch =
            gpu_watch_new(&daemon->scheduler, &daemon->machine, setup->run_dir);
        log_left_out(&daemon->machine);
        r = choose_policy(daemon, err);
    }
    if (r == 0)
        r = flows_choose_policy(daemon->flows, setup->flow, err);
    if (r == 0)
        r = read_rates(daemon, err);
    if (r == 0)
        r = routes_new(&daemon->routes, daemon, &daemon->loop, err);
    if (r == 0)
        r = start_scheduler(daemon, err);
    if (r == 0)
        gpu_watch_start(daemon->gpu_watch);
    if (r == 0)
        daemon->upkeep = upkeep_new(daemon, on_store_failed);
    if (r == 0)
        uv_timer_start(&daemon->watch, on_watch, STATE_EVERY_MS, STATE_EVERY_MS);
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

static void close_handles(struct daemon *daemon)
{
    if (daemon->scheduler.loop)
        uv_close((uv_handle_t *)&daemon->scheduler.due, NULL);
    uv_close((uv_handle_t *)&daemon->check, NULL);
    uv_close((uv_handle_t *)&daemon->wake, NULL);
    uv_close((uv_handle_t *)&daemon->retry, NULL);
    uv_close((uv_handle_t *)&daemon->watch, NULL);
    uv_close((uv_handle_t *)&daemon->move_log, NULL);
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_walk(&daemon->loop, close_handle, NULL);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon->loop);
}

void daemon_free(struct daemon *daemon)
{
    if (!daemon)
        return;
    if (daemon->store)
        scheduler_stop(&daemon->scheduler);
    routes_free(daemon->routes);
    flows_free(daemon->flows);
    progress_free(daemon->progress);
    limits_release(&daemon->limits);
    users_free(daemon->users);
    if (daemon->setup.launcher)
        launcher_client_unwatch(daemon->setup.launcher);
    upkeep_stop(daemon->upkeep);
    forecasts_stop(daemon->forecasts);
    gpu_watch_stop(daemon->gpu_watch);
    close_handles(daemon);
    gpu_watch_free(daemon->gpu_watch);
    upkeep_free(daemon->upkeep);
    forecasts_free(daemon->forecasts);
    submission_keys_free(daemon->submission.keys);
    store_close(daemon->store);
    machine_release(&daemon->machine);
    if (daemon->scheduler.loop)
        scheduler_release(&daemon->scheduler);
    arena_release(&daemon->fixed);
    free(daemon);
}

/* --- the service manager: datagrams by the protocol of systemd ---------------------------- */

/* "READY=1", "STOPPING=1"; nothing is sent without a NOTIFY_SOCKET. */
static void notify_service(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (!path || (path[0] != '/' && path[0] != '@') ||
        strlen(path) >= sizeof at.sun_path)
        return;
    memcpy(at.sun_path, path, strlen(path));
    if (path[0] == '@')
        at.sun_path[0] = '\0'; /* a name without a file */
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                  (struct sockaddr *)&at, size);
    close(fd);
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_service("WATCHDOG=1");
}

/* From now on at half the interval that WATCHDOG_USEC asks for. */
static void start_watchdog(uv_loop_t *loop)
{
    static uv_timer_t timer; /* one service, one loop */
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t ms = text ? strtoull(text, NULL, 10) / 2000 : 0;
    if (ms == 0)
        return;
    uv_timer_init(loop, &timer);
    uv_unref((uv_handle_t *)&timer);
    uv_timer_start(&timer, on_watchdog, ms, ms);
}

int daemon_run(struct daemon *daemon, struct error *err)
{
    notify_service("READY=1");
    start_watchdog(&daemon->loop);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    notify_service("STOPPING=1");
    if (daemon->replaced)
        return error_set(err, -ESTALE, "%s", daemon->state_trouble);
    return daemon->failed ? error_set(err, -EPIPE, "berth-launch has ended") : 0;
}
