/*
 * local.c - jobs as processes on this machine: orders, and looking after what runs.
 *
 * Every attempt is a struct local_run, from the order to start it until its end is durable
 * in the log.  Orders become words to its supervisor; its words become events.  A live
 * process cannot be frozen between two rounds, so that a job whose lease is done keeps
 * computing in its seats until it is renewed or stopped.
 */
#include "executor/local/local.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/units.h"
#include "host/cgroup.h"
#include "host/leftovers.h"
#include "executor/local/local_run.h"
#include "model/launch.h"

#define MS INT64_C(1000000)
#define CANCEL_GRACE_NS (5 * NS_PER_S)
#define START_AGAIN_NS (1 * NS_PER_S)
#define CONNECT_NS (20 * MS)
#define CONNECT_TRIES 250
#define CLEAR_NS (20 * MS)
#define REAP_NS (100 * MS)

int64_t local_now(const struct local *local)
{
    return local->setup.now_ns(local->setup.context);
}

/* --- time -------------------------------------------------------------------------- */

static void time_passed(uv_timer_t *timer);

static void set_timer(struct local *local, int64_t at_ns)
{
    if (at_ns >= local->timer_ns || local->closing)
        return;
    local->timer_ns = at_ns;
    int64_t left_ns = at_ns - local_now(local);
    uint64_t left_ms = left_ns <= 0 ? 0 : (uint64_t)(left_ns / MS + 1);
    uv_update_time(local->setup.loop);
    uv_timer_start(&local->timer, time_passed, left_ms, 0);
}

void local_due(struct local_run *run, int64_t at_ns)
{
    run->due_ns = at_ns;
    if (at_ns < INT64_MAX)
        set_timer(run->local, at_ns);
}

void local_reap_later(struct local *local, pid_t pid)
{
    if (pid <= 0 || waitpid(pid, NULL, WNOHANG) != 0)
        return;
    local->zombies = grow_array(local->zombies, &local->zombie_room,
                                local->zombie_count + 1, sizeof *local->zombies);
    local->zombies[local->zombie_count++] = pid;
    set_timer(local, local_now(local) + REAP_NS);
}

/* --- its end ----------------------------------------------------------------------------- */

static void begin(struct local_run *run);

/* It is out of its seats: whoever waited for nobody else starts. */
static void depart(struct local *local, job_id job)
{
    struct local_run *next;
    if (local_run_in(local, job))
        return; /* that was a later attempt, which had no seats yet */
    for (struct local_run *run = local->runs; run; run = next) {
        next = run->next;
        if (run->phase != PHASE_WAITS)
            continue;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < run->after_count; i++)
            if (run->after[i] != job || run->job == job)
                run->after[kept++] = run->after[i];
        bool was_last = kept == 0 && run->after_count > 0;
        run->after_count = kept;
        if (was_last)
            begin(run);
    }
}

static void local_lose(struct local_run *run, const char *why)
{
    snprintf(run->why, sizeof run->why, "%s", why);
    local_tell_end(run, EVENT_LOST);
    depart(run->local, run->job);
}

void local_ended(struct local_run *run, const struct run_end *end)
{
    static const enum event_kind kinds[RUN_HOW_COUNT] = {
        [RUN_FINISHED] = EVENT_FINISHED,
        [RUN_STOPPED] = EVENT_STOPPED,
        [RUN_FAILED] = EVENT_FAILED,
        [RUN_CANCELLED] = EVENT_FAILED,
    };
    if (run->phase >= PHASE_OVER)
        return;
    local_started(run, 0);
    run->steps = end->steps;
    run->saved = end->saved;
    snprintf(run->why, sizeof run->why, "%s", end->why);
    struct event *event = local_tell_end(run, kinds[end->how]);
    event->exit_code = end->code;
    event->clean = end->clean;
    depart(run->local, run->job);
}

/* --- finding its supervisor -------------------------------------------------------------- */

/* SIGKILL to what is left of it; true: nothing is. */
static bool clear_all(const struct local_run *run)
{
    char mark[JOB_DIR_MAX + 32], dir[JOB_DIR_MAX], cgroup[CGROUP_MAX];
    local_dir(run, dir);
    snprintf(mark, sizeof mark, "BERTH_PREEMPT_FILE=%s/preempt", dir);
    bool grouped = local_cgroup(run, cgroup);
    return leftovers_kill(grouped ? cgroup : NULL, mark) == 0;
}

/* An order that came to nothing is told late, so that it is not repeated in a spin. */
static void lose_later(struct local_run *run, const char *why)
{
    run->phase = PHASE_WAITS; /* until it is due */
    snprintf(run->why, sizeof run->why, "%.*s", RUN_WHY_MAX - 1, why);
    local_due(run, local_now(run->local) + START_AGAIN_NS);
}

static void clear(struct local_run *run)
{
    if (!clear_all(run))
        local_due(run, local_now(run->local) + CLEAR_NS);
    else if (run->started)
        local_lose(run, "its supervisor was killed");
    else
        lose_later(run, "its supervisor is not there");
}

/* Its supervisor is gone: it has left word how the job ended, or it has not. */
static void read_end(struct local_run *run)
{
    struct run_end end;
    if (local_read_status(run, &end)) {
        local_ended(run, &end);
        return;
    }
    run->phase = PHASE_CLEARING;
    clear(run);
}

static void say_again(struct local_run *run)
{
    if (run->cancelled)
        local_say(run, "cancel %" PRId64 "\n", run->grace_ns / MS);
    else if (run->stopping)
        local_say(run, "stop %" PRId64 "\n", run->grace_ns / MS);
}

static void look_for(struct local_run *run)
{
    bool alive;
    if (local_link_connect(run)) {
        local_due(run, INT64_MAX);
        say_again(run);
        return;
    }
    bool begun = local_was_begun(run, &alive);
    if (begun && !alive && !run->polled) {
        read_end(run);
        return;
    }
    if (run->tries++ == CONNECT_TRIES || (!begun && !run->polled)) {
        run->phase = PHASE_CLEARING;
        clear(run);
        return;
    }
    local_due(run, local_now(run->local) + CONNECT_NS);
}

/* --- starting ---------------------------------------------------------------------------- */

static void begin(struct local_run *run)
{
    struct error err;
    run->phase = PHASE_ASKED;
    int r = local_spawn(run, &err);
    if (r == 0)
        return;
    if (r == -EEXIST) { /* an earlier berthd began it */
        look_for(run);
        return;
    }
    lose_later(run, err.text);
}

/* --- orders ------------------------------------------------------------------------------ */

static int start(void *self, const struct lease *lease, struct error *err)
{
    struct local *local = self;
    if (local_find_run(local, lease->job, lease->generation, lease->attempt))
        return 0; /* told twice */
    struct local_run *run = local_add_run(local, lease);
    local_drop_absent(run);
    if (run->after_count == 0)
        begin(run);
    return 0;
}

static int stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct local *local = self;
    struct local_run *run = local_run_in(local, job);
    if (!run)
        return 0; /* it has left, and that is on its way */
    run->stopping = true;
    run->grace_ns = grace_ns;
    local_say(run, "stop %" PRId64 "\n", grace_ns / MS);
    return 0;
}

/* What has not begun is gone at once. */
static int cancel(void *self, job_id job, struct error *err)
{
    struct local *local = self;
    struct local_run *run = local_run_in(local, job), *next;
    for (struct local_run *waits = local->slots[job]; waits; waits = next) {
        next = waits->same_slot;
        if (waits->phase != PHASE_WAITS)
            continue;
        if (run)
            local_forget(waits); /* it is not even in its seats: the other one tells */
        else
            local_lose(waits, "cancelled");
    }
    if (!run)
        return 0;
    int64_t grace_ns = local->setup.view->jobs[job].grace_ns;
    run->cancelled = true;
    run->grace_ns = grace_ns < CANCEL_GRACE_NS ? grace_ns : CANCEL_GRACE_NS;
    say_again(run);
    return 0;
}

static int renew(void *self, job_id job, uint64_t steps_max, bool together,
                 struct error *err)
{
    struct local_run *run = local_run_in(self, job);
    if (!run)
        return 0;
    run->together = together;
    run->leased = steps_max > 0;
    run->lease_done = false;
    run->lease_end = local_steps_now(run) + (double)steps_max;
    if (run->started)
        local_plan_ahead(run);
    return 0;
}

int local_reattach(void *self, const struct lease *lease, bool stopping,
                   int64_t grace_left_ns, struct error *err)
{
    struct local *local = self;
    if (local_find_run(local, lease->job, lease->generation, lease->attempt))
        return 0;
    struct local_run *run = local_add_run(local, lease);
    const struct launch *launch;
    struct error unused;
    if (local->setup.launch(local->setup.context, run->id, &launch, &unused) == 0) {
        run->own_steps = launch->has_steps;
        run->expects_reports = launch->has_steps || launch->pattern;
    }
    run->stopping = stopping;
    run->grace_ns = grace_left_ns > 0 ? grace_left_ns : 0;
    /* Whether those it waits for are there is known when all have been named. */
    bool placed = local->setup.view->jobs[lease->job].state == JOB_PLACED ||
                  lease->after_count > 0;
    run->phase = placed ? PHASE_WAITS : PHASE_ASKED;
    local_due(run, local_now(local));
    return 0;
}

/* --- later -------------------------------------------------------------------------------- */

/*
 * A job that was to go on elsewhere does so once it is on record how it left: one that
 * has come to its own end meanwhile does not.
 */
static void let_go_on(struct local *local, job_id job, uint32_t generation)
{
    const struct job *known = &local->setup.view->jobs[job];
    bool over = known->state == JOB_FREE || known->generation != generation;
    for (struct local_run *run = local->slots[job]; run; run = run->same_slot) {
        if (run->phase != PHASE_WAITS || run->generation != generation || run->why[0])
            continue;
        if (over) {
            run->phase = PHASE_RECORDED; /* the next commit clears it away */
            run->due_ns = INT64_MAX;
            local->recorded_count++;
            continue;
        }
        bool waited = run->after_count > 0;
        local_drop_absent(run);
        if (waited && run->after_count == 0)
            begin(run);
    }
}

static void collect(struct local_run *run)
{
    struct local *local = run->local;
    job_id job = run->job;
    uint32_t generation = run->generation;
    local_say(run, "collected\n");
    local_remove(run);
    local_forget(run);
    let_go_on(local, job, generation);
}

/* The engine has not taken note of its end: it was of an attempt it knows nothing of. */
static void end_unheard(struct local_run *run)
{
    const struct job *job = &run->local->setup.view->jobs[run->job];
    if (job->generation != run->generation || job->attempt != run->attempt ||
        job->state < JOB_PLACED)
        collect(run);
    else
        local_due(run, local_now(run->local) + LOCAL_UNHEARD_NS);
}

static void look_after(struct local_run *run)
{
    run->due_ns = INT64_MAX;
    switch (run->phase) {
    case PHASE_WAITS:
        if (run->why[0]) {
            char why[RUN_WHY_MAX];
            memcpy(why, run->why, sizeof why);
            local_lose(run, why);
            return;
        }
        local_drop_absent(run);
        if (run->after_count == 0)
            begin(run);
        break;
    case PHASE_ASKED:
        look_for(run);
        break;
    case PHASE_RUNS:
        if (run->fd < 0) {
            look_for(run);
            return;
        }
        if (!run->loaded && local_now(run->local) >= run->loaded_at_ns)
            local_tell_loaded(run);
        local_check_lease(run);
        local_plan_ahead(run);
        break;
    case PHASE_CLEARING:
        clear(run);
        break;
    case PHASE_OVER:
        end_unheard(run);
        break;
    case PHASE_RECORDED:
        break;
    }
}

static void reap_zombies(struct local *local)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < local->zombie_count; i++)
        if (waitpid(local->zombies[i], NULL, WNOHANG) == 0)
            local->zombies[kept++] = local->zombies[i];
    local->zombie_count = kept;
}

static void time_passed(uv_timer_t *timer)
{
    struct local *local = timer->data;
    int64_t at_ns = local_now(local), next_ns = INT64_MAX;
    local->timer_ns = INT64_MAX;
    struct local_run *next;
    for (struct local_run *run = local->runs; run; run = next) {
        next = run->next;
        if (run->due_ns <= at_ns)
            look_after(run);
    }
    for (struct local_run *run = local->runs; run; run = run->next)
        next_ns = run->due_ns < next_ns ? run->due_ns : next_ns;
    reap_zombies(local);
    if (local->zombie_count > 0 && next_ns > at_ns + REAP_NS)
        next_ns = at_ns + REAP_NS;
    if (next_ns < INT64_MAX)
        set_timer(local, next_ns);
}

void local_event(void *self, const struct view *view, const struct event *event)
{
    struct local *local = self;
    if (event->kind != EVENT_FINISHED && event->kind != EVENT_FAILED &&
        event->kind != EVENT_STOPPED && event->kind != EVENT_LOST)
        return;
    struct local_run *run = local->slots[event->job];
    while (run && (run->attempt != event->attempt || run->phase != PHASE_OVER ||
                   run->generation != event->generation))
        run = run->same_slot;
    if (!run)
        return;
    run->phase = PHASE_RECORDED;
    run->due_ns = INT64_MAX;
    local->recorded_count++;
}

int local_commit(void *self, struct error *err)
{
    struct local *local = self;
    struct local_run *next;
    if (local->recorded_count == 0)
        return 0;
    local->recorded_count = 0;
    for (struct local_run *run = local->runs; run; run = next) {
        next = run->next;
        if (run->phase == PHASE_RECORDED)
            collect(run);
    }
    return 0;
}

/* --- what nobody named ---------------------------------------------------------------- */

static bool is_known(const struct local *local, const char *name)
{
    char known[64];
    for (const struct local_run *run = local->runs; run; run = run->next) {
        snprintf(known, sizeof known, "%" PRIu64 ".%" PRIu32, run->id, run->attempt);
        if (strcmp(known, name) == 0)
            return true;
    }
    return false;
}

/* Whoever listens at its socket is its supervisor, or as good as it: the kernel says who. */
static void kill_listener(struct local_run *run)
{
    struct ucred who = { 0 };
    socklen_t size = sizeof who;
    if (!local_link_connect(run))
        return;
    if (getsockopt(run->fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid > 1 &&
        who.pid != getpid())
        kill(who.pid, SIGKILL);
    local_link_close(run);
}

void local_sweep(void *self)
{
    struct local *local = self;
    char path[JOB_DIR_MAX];
    snprintf(path, sizeof path, "%s/jobs", local->run_dir);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        uint64_t id;
        uint32_t attempt;
        if (sscanf(entry->d_name, "%" SCNu64 ".%" SCNu32, &id, &attempt) != 2 ||
            is_known(local, entry->d_name))
            continue;
        struct lease nobody = { .beside = JOB_NONE };
        struct local_run *run = local_add_run(local, &nobody);
        run->id = id;
        run->attempt = attempt;
        run->generation = UINT32_MAX; /* nobody's: its end is not told */
        run->phase = PHASE_RECORDED;
        kill_listener(run);
        clear_all(run);
        local_remove(run);
        local_forget(run);
    }
    closedir(dir);
}

uint32_t local_count(const void *self)
{
    const struct local *local = self;
    return local->count;
}

/* --- opening and closing ------------------------------------------------------------------ */

static int make_folder(const char *at, const char *name, mode_t mode, struct error *err)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", at, name);
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (chmod(path, mode) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

/* Where jobs of others run they come through these folders, and see nothing in them. */
static int make_folders(const struct local *local, struct error *err)
{
    mode_t mode = local->setup.system ? 0711 : 0700;
    int r = make_folder(local->run_dir, "jobs", mode, err);
    if (r == 0)
        r = make_folder(local->state_dir, "log", mode, err);
    if (r == 0)
        r = make_folder(local->state_dir, "ckpt", mode, err);
    if (r == 0 && local->setup.system)
        r = make_folder(local->state_dir, ".", mode, err);
    if (r == 0 && local->setup.system)
        r = make_folder(local->run_dir, ".", mode, err);
    return r;
}

/*
 * Groups of jobs stand together in one of ours, named after the runtime folder: several
 * berthds may have the same place.  It is written down, since after a restart we may be
 * in another group ourselves while jobs are in the old one.
 */
static void find_cgroup(struct local *local)
{
    char path[LOCAL_RUN_DIR_MAX + 16], base[CGROUP_MAX - 96];
    snprintf(path, sizeof path, "%s/cgroup", local->run_dir);
    FILE *file = fopen(path, "re");
    bool known = file && fgets(local->cgroup, sizeof local->cgroup - 48, file);
    if (file)
        fclose(file);
    if (known && access(local->cgroup, W_OK) == 0)
        return;
    local->cgroup[0] = '\0';
    if (!cgroup_find(base, sizeof base))
        return;
    snprintf(local->cgroup, sizeof local->cgroup, "%s/berth-%08x", base,
             (uint32_t)hash_text(local->run_dir));
    file = cgroup_make(local->cgroup) && access(local->cgroup, W_OK) == 0
               ? fopen(path, "we")
               : NULL;
    if (!file || fputs(local->cgroup, file) < 0)
        local->cgroup[0] = '\0';
    if (file)
        fclose(file);
}

int local_open(struct local **ret, const struct local_setup *setup, struct error *err)
{
    if (strlen(setup->run_dir) > LOCAL_RUN_DIR_MAX)
        return error_set(err, -ENAMETOOLONG, "%s: longer than %d bytes", setup->run_dir,
                         LOCAL_RUN_DIR_MAX);
    struct local *local = memory_checked(calloc(1, sizeof *local));
    local->setup = *setup;
    snprintf(local->state_dir, sizeof local->state_dir, "%s", setup->state_dir);
    snprintf(local->run_dir, sizeof local->run_dir, "%s", setup->run_dir);
    snprintf(local->run_program, sizeof local->run_program, "%s", setup->run_program);
    int r = strlen(setup->state_dir) >= sizeof local->state_dir ||
                    strlen(setup->run_program) >= sizeof local->run_program
                ? error_set(err, -ENAMETOOLONG, "%.200s: too long", setup->state_dir)
                : 0;
    if (r == 0 && access(setup->run_program, X_OK) < 0)
        r = error_set(err, -errno, "%s: %s", setup->run_program, strerror(errno));
    if (r == 0)
        r = make_folders(local, err);
    if (r < 0) {
        free(local);
        return r;
    }
    local_drop_spares(local);
    find_cgroup(local);
    local->slots =
        memory_checked(calloc(setup->view->job_max, sizeof(struct local_run *)));
    local->timer_ns = INT64_MAX;
    uv_timer_init(setup->loop, &local->timer);
    local->timer.data = local;
    *ret = local;
    return 0;
}

static void timer_closed(uv_handle_t *handle)
{
    struct local *local = handle->data;
    free(local->slots);
    free(local->zombies);
    free(local);
}

void local_close(void *self)
{
    struct local *local = self;
    if (!local)
        return;
    local->closing = true;
    while (local->runs)
        local_forget(local->runs);
    local_drop_spares(local);
    if (local->cgroup[0])
        cgroup_remove(local->cgroup); /* only if no job is left in it */
    uv_close((uv_handle_t *)&local->timer, timer_closed);
}

/* Its supervisor: our child, or whoever answered when we looked for it after a restart. */
static pid_t supervisor_of(const struct local_run *run)
{
    struct ucred peer = { .pid = 0 };
    socklen_t size = sizeof peer;
    if (run->supervisor > 0)
        return run->supervisor;
    if (run->fd < 0 || getsockopt(run->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return 0;
    return peer.pid == getpid() ? 0 : peer.pid;
}

static bool find_processes(const void *self, job_id job, struct job_processes *ret)
{
    const struct local_run *run = local_run_in(self, job);
    if (!run || run->phase != PHASE_RUNS)
        return false;
    *ret = (struct job_processes){ .attempt = run->attempt, .pid = supervisor_of(run) };
    if (!local_cgroup(run, ret->cgroup) || access(ret->cgroup, F_OK) < 0)
        ret->cgroup[0] = '\0';
    return true;
}

const struct executor executor_local = {
    .name = "local",
    .start = start,
    .stop = stop,
    .cancel = cancel,
    .renew = renew,
    .close = local_close,
    .reattach = local_reattach,
    .settle = local_sweep,
    .event = local_event,
    .commit = local_commit,
    .count = local_count,
    .find_processes = find_processes,
};
