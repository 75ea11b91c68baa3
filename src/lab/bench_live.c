/*
 * bench_live.c - berth bench live: a temporary berthd, timed from outside.
 *
 * Times are of the wall clock, as seen by a waiting user, so they include what else the
 * machine does.  The disk is that of the temporary folder; sockets and launch files are in
 * memory, as after a login.
 *
 * How soon one job starts after another is measured by the jobs themselves: each writes the
 * time down as the first and the last thing it does.  bash can do that without starting
 * another program; its own start, a few milliseconds, is part of the figure.
 */
#include "lab/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "lab/scratch.h"

#define SUBMISSIONS 500 /* one after the other */
#define CLIENTS 8
#define PER_CLIENT 250
#define BATCH 5000
#define WAITING 10000
#define QUERIES 100
#define HISTORY 100000
#define SOME 20000  /* of them */
#define MOST 200000 /* job_max of berthd */
#define IDLE_S 5
#define SUCCESSORS 100 /* jobs that run one after the other in one slot */
#define PREEMPTIONS 60
#define TRIVIAL 2000
#define SLOTS "8"
#define WAIT_S 120.0

extern char **environ;

static const char *const sleep_command[] = { "sleep", "300", NULL };

/* ---- requests to a temporary berthd ---- */

/* A request for one slot, best effort. */
static struct json *make_request(const char *const *words)
{
    struct json *request = json_new_object(), *command = json_new_array();
    struct json *env = json_new_object();
    for (uint32_t i = 0; words[i]; i++)
        json_add_text(command, words[i]);
    json_put(request, "command", command);
    json_put_text(env, "PATH", "/usr/bin:/bin");
    json_put(request, "env", env);
    json_put_text(request, "cwd", "/");
    json_put_count(request, "gpus", 1);
    return request;
}

/* Submit the same request so many times, in one call. */
static int submit_batch(struct scratch *scratch, const char *const *words,
                        uint32_t count, struct error *err)
{
    struct json *body = json_new_object(), *jobs = json_new_array();
    for (uint32_t i = 0; i < count; i++)
        json_add(jobs, make_request(words));
    json_put(body, "jobs", jobs);
    int r = call_json(scratch->call, "POST", "/v1/jobs", body, NULL, err);
    json_free(body);
    return r;
}

/* Wait until no job is waiting or running, looking every 2 ms. */
static int wait_until_idle(struct scratch *scratch, struct error *err)
{
    double end_s = clock_now_s() + WAIT_S;
    for (;;) {
        int64_t live = 0;
        int r = scratch_count_jobs(scratch, &live, err);
        if (r < 0)
            return r;
        if (live == 0)
            return 0;
        if (clock_now_s() > end_s)
            return error_set(err, -ETIME, "%" PRId64 " jobs are left after %.0f s",
                             live, WAIT_S);
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
}

/* Add the rows "ID.p50" and "ID.p99", in milliseconds. */
static void write_quantile_rows(struct bench_samples *samples, struct bench *bench,
                                const char *id)
{
    static const struct {
        const char *name;
        double q;
    } shown[] = { { "p50", 0.5 }, { "p99", 0.99 } };
    for (size_t i = 0; i < 2; i++)
        bench_row(bench, bench_quantile(samples, shown[i].q), "ms", samples->count,
                  "%s.%s", id, shown[i].name);
}

/* ---- submissions ---- */

/* Submit one after the other, over one connection. */
static int submit_singly(struct scratch *scratch, uint32_t count,
                         struct bench_samples *samples, struct error *err)
{
    struct json *request = make_request(sleep_command);
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint64_t id;
        double begin_s = clock_now_s();
        r = scratch_submit(scratch, request, &id, err);
        if (samples)
            bench_add_sample(samples, (clock_now_s() - begin_s) * 1e3);
    }
    json_free(request);
    return r;
}

/* In a child process: submit over a connection of its own. */
static void run_client(const struct scratch *scratch)
{
    struct scratch own = *scratch;
    own.pid = -1;
    if (call_open(&own.call, scratch->socket, NULL) < 0)
        _exit(1);
    _exit(submit_singly(&own, PER_CLIENT, NULL, NULL) < 0);
}

static int measure_clients(struct bench *bench, struct scratch *scratch,
                           struct error *err)
{
    pid_t clients[CLIENTS];
    double begin_s = clock_now_s();
    bool all = true;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        clients[i] = fork();
        if (clients[i] == 0)
            run_client(scratch);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        int status = 1;
        if (clients[i] > 0)
            waitpid(clients[i], &status, 0);
        all = all && status == 0;
    }
    double s = clock_now_s() - begin_s;
    if (!all)
        return error_set(err, -EIO, "a client was not answered");
    bench_row(bench, CLIENTS * PER_CLIENT / s, "jobs/s", CLIENTS * PER_CLIENT,
              "submit_8_clients");
    return 0;
}

/* One slot, which the first job holds: all others wait. */
static int measure_submissions(struct bench *bench, struct scratch *scratch,
                               struct error *err)
{
    static struct bench_samples samples;
    samples.count = 0;
    double begin_s = clock_now_s();
    int r = submit_singly(scratch, SUBMISSIONS, &samples, err);
    if (r == 0) {
        bench_row(bench, SUBMISSIONS / (clock_now_s() - begin_s), "jobs/s", SUBMISSIONS,
                  "submit_singly");
        write_quantile_rows(&samples, bench, "submit");
        r = measure_clients(bench, scratch, err);
    }
    begin_s = clock_now_s();
    if (r == 0)
        r = submit_batch(scratch, sleep_command, BATCH, err);
    if (r == 0)
        bench_row(bench, BATCH / (clock_now_s() - begin_s), "jobs/s", BATCH,
                  "submit_batch");
    return r;
}

/* ---- from the end of a job to the start of the next ---- */

static void read_start_times(const char *path, struct bench_samples *samples)
{
    char what[8];
    double at_s, ended_s = 0;
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%7s %lf", what, &at_s) == 2) {
        if (what[0] == 'b' && ended_s > 0)
            bench_add_sample(samples, (at_s - ended_s) * 1e3);
        ended_s = what[0] == 'e' ? at_s : 0;
    }
    if (file)
        fclose(file);
}

static int measure_successors(struct bench *bench, struct scratch *scratch,
                              struct error *err)
{
    static struct bench_samples samples;
    char script[700], path[300];
    samples.count = 0;
    snprintf(path, sizeof path, "%s/row", scratch->dir);
    snprintf(script, sizeof script,
             "echo b $EPOCHREALTIME >>%s; echo e $EPOCHREALTIME >>%s", path, path);
    const char *const words[] = { "bash", "-c", script, NULL };
    int r = submit_batch(scratch, words, SUCCESSORS, err);
    if (r == 0)
        r = wait_until_idle(scratch, err);
    if (r == 0) {
        read_start_times(path, &samples);
        write_quantile_rows(&samples, bench, "freed_to_running");
    }
    return r;
}

/* ---- from the submission of a trial job to its victim's warning ---- */

/* Wait for a file that holds one number, a time. */
static int wait_for_stamp(const char *path, double *ret_s, struct error *err)
{
    double end_s = clock_now_s() + WAIT_S;
    while (clock_now_s() < end_s) {
        FILE *file = fopen(path, "re");
        bool good = file && fscanf(file, "%lf", ret_s) == 1;
        if (file)
            fclose(file);
        if (good)
            return 0;
        nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
    }
    return error_set(err, -ETIME, "nothing came of a job in %.0f s", WAIT_S);
}

static int preempt_once(struct scratch *scratch, uint32_t round,
                        struct bench_samples *samples, struct error *err)
{
    char script[1024], begun[300], warned[300];
    double begun_s = 0, asked_s, warned_s = 0;
    uint64_t id;
    snprintf(begun, sizeof begun, "%s/b%u", scratch->dir, round);
    snprintf(warned, sizeof warned, "%s/w%u", scratch->dir, round);
    snprintf(script, sizeof script,
             "trap 'echo $EPOCHREALTIME >%s; exit 0' TERM; echo $EPOCHREALTIME >%s; "
             "sleep 600 & wait",
             warned, begun);
    const char *const victim[] = { "bash", "-c", script, NULL };
    const char *const trial[] = { "true", NULL };
    struct json *request = make_request(victim);
    int r = scratch_submit(scratch, request, &id, err);
    json_free(request);
    if (r == 0)
        r = wait_for_stamp(begun, &begun_s, err);
    if (r < 0)
        return r;
    request = make_request(trial);
    json_put_text(request, "class", "te");
    asked_s = clock_read_s(CLOCK_REALTIME);
    r = scratch_submit(scratch, request, &id, err);
    json_free(request);
    if (r == 0)
        r = wait_for_stamp(warned, &warned_s, err);
    if (r == 0)
        bench_add_sample(samples, (warned_s - asked_s) * 1e3);
    if (r == 0)
        r = wait_until_idle(scratch, err);
    return r;
}

static int measure_preemptions(struct bench *bench, struct scratch *scratch,
                               struct error *err)
{
    static struct bench_samples samples;
    int r = 0;
    samples.count = 0;
    for (uint32_t i = 0; i < PREEMPTIONS && r == 0; i++)
        r = preempt_once(scratch, i, &samples, err);
    if (r == 0)
        write_quantile_rows(&samples, bench, "trial_to_warning");
    return r;
}

/* Resident memory, and CPU time so far. */
static bool read_usage(pid_t pid, double *ret_bytes, double *ret_cpu_s)
{
    char path[64];
    double pages = 0, ns = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    bool good = file && fscanf(file, "%*s %lf", &pages) == 1;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    file = fopen(path, "re");
    good = file && fscanf(file, "%lf", &ns) == 1 && good;
    if (file)
        fclose(file);
    *ret_bytes = pages * (double)sysconf(_SC_PAGESIZE);
    *ret_cpu_s = ns * 1e-9;
    return good;
}

/* ---- throughput of trivial jobs, beside task-spooler ---- */

static int spawn_and_wait(const char *const *words)
{
    pid_t pid;
    int status = 1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int r = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        waitpid(pid, &status, 0);
    return r == 0 && status == 0 ? 0 : -1;
}

#define LOAD 10 /* processes that keep the processors busy */
#define SLICES \
    10 /* of TRIVIAL jobs: each has its turn in each, whatever the machine does */
#define SLICE (TRIVIAL / SLICES)

/* Seconds in all slices, of whatever runs trivial jobs. */
struct turns {
    double spooler_s; /* 0: it is not there */
    double at_once_s, disk_s, memory_s;
    double berthd_s; /* CPU time of berthd itself, in 'memory_s' */
};

/* A temporary value of TMPDIR; NULL: none. */
static void set_temporary(const char *path)
{
    if (path)
        setenv("TMPDIR", path, 1);
    else
        unsetenv("TMPDIR");
}

/* Debian's task-spooler with as many slots; false: it is not there. */
static bool start_spooler(const char *dir)
{
    static const char *const version[] = { "tsp", "-V", NULL }, *const slots[] = {
        "tsp", "-S", SLOTS, NULL
    };
    char path[300];
    snprintf(path, sizeof path, "%s/tsp", dir);
    setenv("TS_SOCKET", path, 1);
    set_temporary(dir); /* its output files; ours have been opened */
    return spawn_and_wait(version) == 0 && spawn_and_wait(slots) == 0;
}

/* Seconds for a slice; 0: it failed. */
static double run_spooler(void)
{
    static const char *const add[] = { "tsp", "true", NULL },
                             *const wait[] = { "tsp", "-w", NULL },
                             *const clear[] = { "tsp", "-C", NULL };
    double begin_s = clock_now_s();
    int r = 0;
    for (uint32_t i = 0; i < SLICE && r == 0; i++)
        r = spawn_and_wait(add);
    if (r == 0)
        r = spawn_and_wait(wait);
    double s = clock_now_s() - begin_s;
    spawn_and_wait(clear);
    return r == 0 ? s : 0;
}

/* Add the seconds from the first submission to the end of the last job. */
static int run_trivial_jobs(struct scratch *scratch, bool at_once, double *sum_s,
                            struct error *err)
{
    static const char *const words[] = { "true", NULL };
    struct json *request = make_request(words);
    double begin_s = clock_now_s();
    uint64_t id;
    int r = at_once ? submit_batch(scratch, words, SLICE, err) : 0;
    for (uint32_t i = 0; i < SLICE && r == 0 && !at_once; i++)
        r = scratch_submit(scratch, request, &id, err);
    if (r == 0)
        r = wait_until_idle(scratch, err);
    *sum_s += clock_now_s() - begin_s;
    json_free(request);
    return r;
}

static int run_slices(struct turns *turns, bool spooler, struct scratch *disk,
                      struct scratch *memory, struct error *err)
{
    int r = 0;
    for (int i = 0; i < SLICES && r == 0; i++) {
        double bytes, before_s = 0, after_s = 0;
        double spooler_s = spooler ? run_spooler() : 0;
        spooler = spooler_s > 0;
        turns->spooler_s = spooler ? turns->spooler_s + spooler_s : 0;
        r = run_trivial_jobs(disk, true, &turns->at_once_s, err);
        if (r == 0)
            r = run_trivial_jobs(disk, false, &turns->disk_s, err);
        if (r < 0 || !memory)
            continue;
        read_usage(memory->pid, &bytes, &before_s);
        r = run_trivial_jobs(memory, false, &turns->memory_s, err);
        read_usage(memory->pid, &bytes, &after_s);
        turns->berthd_s += after_s - before_s;
    }
    return r;
}

static void write_turn(struct bench *bench, const char *id, const char *load, double s,
                       const struct turns *turns)
{
    char name[64];
    bool there = turns->spooler_s > 0;
    snprintf(name, sizeof name, "%s%s", id, load);
    if (s > 0)
        bench_row_versus(bench, name, TRIVIAL / s, "jobs/s", TRIVIAL,
                         there ? "task-spooler" : NULL,
                         there ? turns->spooler_s / s : TRIVIAL / s);
}

static void write_turns(struct bench *bench, const char *load,
                        const struct turns *turns)
{
    if (turns->spooler_s > 0)
        bench_row(bench, TRIVIAL / turns->spooler_s, "jobs/s", TRIVIAL,
                  "trivial_jobs%s.task_spooler", load);
    write_turn(bench, "trivial_jobs", load, turns->at_once_s, turns);
    write_turn(bench, "trivial_jobs_singly", load, turns->disk_s, turns);
    write_turn(bench, "trivial_jobs_tmpfs", load, turns->memory_s, turns);
    if (turns->memory_s > 0)
        bench_row(bench, turns->berthd_s / TRIVIAL * 1e6, "us", TRIVIAL,
                  "trivial_jobs_tmpfs%s.berthd_cpu", load);
}

/* Processes that compute, and end with this one. */
static void start_load(pid_t pids[LOAD])
{
    for (int i = 0; i < LOAD; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile uint64_t turn = 0;; turn++)
                continue;
        }
    }
}

static void end_load(const pid_t pids[LOAD])
{
    for (int i = 0; i < LOAD; i++)
        if (pids[i] > 0 && kill(pids[i], SIGKILL) == 0)
            waitpid(pids[i], NULL, 0);
}

/* Once as the machine is, once with every processor busy. */
static int measure_turns(struct bench *bench, struct scratch *disk,
                         struct scratch *memory, bool spooler, struct error *err)
{
    static const char *const loads[] = { "", "_loaded" };
    pid_t busy[LOAD];
    int r = 0;
    for (int i = 0; i < 2 && r == 0; i++) {
        struct turns turns = { .spooler_s = 0 };
        if (i == 1)
            start_load(busy);
        r = run_slices(&turns, spooler, disk, memory, err);
        if (i == 1)
            end_load(busy);
        if (r == 0)
            write_turns(bench, loads[i], &turns);
    }
    return r;
}

/* A berthd with all of its files in memory. */
static int open_in_memory(struct scratch *memory, const char *const *args,
                          struct error *err)
{
    set_temporary("/dev/shm");
    int r = scratch_open(memory, args, err);
    if (r < 0)
        return r;
    scratch_use_memory(memory);
    return scratch_start(memory, err);
}

/*
 * task-spooler keeps nothing on disk.  So Berth runs twice: with its state in a temporary
 * folder, which is on a disk mostly, and with all of it in memory.
 */
static int measure_throughput(struct bench *bench, struct scratch *scratch,
                              struct error *err)
{
    static const char *const end[] = { "tsp", "-K", NULL };
    struct scratch memory;
    bool has_memory = access("/dev/shm", W_OK) == 0;
    char *before = memory_text(getenv("TMPDIR"));
    int r = has_memory ? open_in_memory(&memory, scratch->args, err) : 0;
    bool spooler = r == 0 && start_spooler(has_memory ? memory.dir : scratch->dir);
    if (r == 0 && !spooler)
        fprintf(stderr, "berth bench: task-spooler (tsp) is not there: "
                        "nothing to compare trivial_jobs with\n");
    if (r == 0)
        r = measure_turns(bench, scratch, has_memory ? &memory : NULL, spooler, err);
    if (spooler)
        spawn_and_wait(end);
    set_temporary(before);
    free(before);
    if (has_memory)
        scratch_close(&memory);
    return r;
}

/* ---- a long queue ---- */

static int measure_why(struct bench *bench, struct scratch *scratch, struct error *err)
{
    static struct bench_samples samples;
    samples.count = 0;
    for (uint32_t i = 0; i < QUERIES; i++) {
        char path[64];
        struct json *why = NULL;
        snprintf(path, sizeof path, "/v1/jobs/%u/why", 2 + i * (WAITING / QUERIES));
        double begin_s = clock_now_s();
        int r = call_json(scratch->call, "GET", path, NULL, &why, err);
        if (r < 0)
            return r;
        bench_add_sample(&samples, (clock_now_s() - begin_s) * 1e3);
        json_free(why);
    }
    write_quantile_rows(&samples, bench, "why_10000");
    return 0;
}

/* Requests for more than there is: the answer to the submission rejects them. */
static int measure_rejections(struct bench *bench, struct scratch *scratch,
                              struct error *err)
{
    static struct bench_samples samples;
    struct json *request = make_request(sleep_command);
    uint64_t id;
    int r = 0;
    samples.count = 0;
    json_put_count(request, "gpus", 1000);
    for (uint32_t i = 0; i < QUERIES && r == 0; i++) {
        double begin_s = clock_now_s();
        if (scratch_submit(scratch, request, &id, err) != -EINVAL)
            r = error_set(err, -EPROTO, "1,000 accelerators of one were not refused");
        bench_add_sample(&samples, (clock_now_s() - begin_s) * 1e3);
    }
    json_free(request);
    if (r == 0)
        write_quantile_rows(&samples, bench, "can_never_run");
    return r;
}

/* Cancel all jobs that wait, by one request. */
static int measure_cancel(struct bench *bench, struct scratch *scratch,
                          struct error *err)
{
    struct json *body = json_new_object(), *answer = NULL;
    json_put_text(body, "state", "PENDING");
    double begin_s = clock_now_s();
    int r = call_json(scratch->call, "POST", "/v1/jobs/cancel", body, &answer, err);
    double s = clock_now_s() - begin_s;
    if (r == 0)
        bench_row(bench, s, "s", (uint64_t)json_count_at(answer, "count"),
                  "cancel_10000");
    json_free(answer);
    json_free(body);
    return r;
}

static int measure_long_queue(struct bench *bench, struct scratch *scratch,
                              struct error *err)
{
    static struct bench_samples samples;
    samples.count = 0;
    int r = submit_batch(scratch, sleep_command, WAITING, err);
    if (r == 0)
        r = submit_singly(scratch, QUERIES, &samples, err);
    if (r == 0) {
        write_quantile_rows(&samples, bench, "submit_10000");
        double s = scratch_metric(scratch, "berth_decision_seconds{share=\"0.99\"} ");
        bench_row(bench, s * 1e3, "ms", QUERIES, "decision_10000.p99");
        r = measure_why(bench, scratch, err);
    }
    if (r == 0)
        r = measure_rejections(bench, scratch, err);
    if (r == 0)
        r = measure_cancel(bench, scratch, err);
    return r;
}

/* ---- idle, and started again ---- */

static int measure_idle(struct bench *bench, struct scratch *scratch, struct error *err)
{
    double bytes, before_s, after_s;
    sleep(1);
    bool good = read_usage(scratch->pid, &bytes, &before_s);
    sleep(IDLE_S);
    good = read_usage(scratch->pid, &bytes, &after_s) && good;
    if (good) {
        bench_row(bench, bytes / 1e6, "MB", 1, "idle_rss");
        bench_row(bench, (after_s - before_s) / IDLE_S * 100, "%", IDLE_S, "idle_cpu");
    }
    return good ? 0 : error_set(err, -EIO, "/proc/PID: berthd is not to be seen");
}

static int measure_restart(struct bench *bench, struct scratch *scratch, const char *id,
                           uint32_t count, struct error *err)
{
    double begin_s = clock_now_s();
    int r = scratch_start(scratch, err);
    if (r == 0)
        bench_row(bench, clock_now_s() - begin_s, "s", count, "%s", id);
    return r;
}

static int submit_waiting(struct scratch *scratch, uint32_t count, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < count / WAITING && r == 0; i++)
        r = submit_batch(scratch, sleep_command, WAITING, err);
    return r;
}

/* Memory with a long queue, and the start after a kill. */
static int measure_some_waiting(struct bench *bench, struct scratch *scratch,
                                struct error *err)
{
    double bytes, cpu_s;
    int r = submit_waiting(scratch, SOME, err);
    if (r < 0)
        return r;
    sleep(1);
    if (!read_usage(scratch->pid, &bytes, &cpu_s))
        return error_set(err, -EIO, "/proc/PID: berthd is not to be seen");
    bench_row(bench, bytes / 1e6, "MB", SOME, "waiting_20000_rss");
    scratch_stop(scratch, SIGKILL);
    return measure_restart(bench, scratch, "restart_20000_waiting", SOME, err);
}

/* The start after a kill, when 'count' more jobs wait: 'all' then. */
static int measure_more_waiting(struct bench *bench, struct scratch *scratch,
                                uint32_t count, uint32_t all, struct error *err)
{
    char id[64];
    int r = submit_waiting(scratch, count, err);
    scratch_stop(scratch, SIGKILL);
    snprintf(id, sizeof id, "restart_%u_waiting", all);
    return r < 0 ? r : measure_restart(bench, scratch, id, all, err);
}

/* With some and all jobs of the history waiting, after a kill; once with all of them cancelled. */
static int measure_restarts(struct bench *bench, struct scratch *scratch,
                            struct error *err)
{
    int r = measure_some_waiting(bench, scratch, err);
    if (r == 0)
        r = measure_more_waiting(bench, scratch, HISTORY - SOME, HISTORY, err);
    if (r == 0) {
        scratch_end_jobs(scratch);
        r = measure_restart(bench, scratch, "restart_100000", HISTORY, err);
    }
    return r;
}

/* As many as berthd takes. */
static int measure_most_waiting(struct bench *bench, struct scratch *scratch,
                                struct error *err)
{
    return measure_more_waiting(bench, scratch, MOST, MOST, err);
}

static const struct live_part {
    const char *gpus; /* of a berthd of its own */
    int (*measure)(struct bench *bench, struct scratch *scratch, struct error *err);
} live_parts[] = {
    { "slot:1", measure_submissions },  { "slot:1", measure_successors },
    { "slot:1", measure_preemptions },  { "slot:" SLOTS, measure_throughput },
    { "slot:1", measure_long_queue },   { "slot:1", measure_restarts },
    { "slot:1", measure_most_waiting }, { "slot:8", measure_idle },
};

static int run_part(const struct live_part *part, struct bench *bench,
                    struct error *err)
{
    const char *const args[] = { "--fake-gpus", part->gpus, NULL };
    struct scratch scratch;
    int r = scratch_open(&scratch, args, err);
    if (r < 0)
        return r;
    scratch_use_memory(&scratch);
    r = scratch_start(&scratch, err);
    if (r == 0)
        r = part->measure(bench, &scratch, err);
    scratch_close(&scratch);
    return r;
}

static int bench_live_run(struct bench *bench, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < sizeof live_parts / sizeof *live_parts && r == 0; i++)
        r = run_part(&live_parts[i], bench, err);
    return r;
}

const struct bench_suite bench_live = {
    .name = "live",
    .brief = "berthd itself: submissions, starts, preemptions, restarts",
    .run = bench_live_run,
};
