/*
 * bench_live.c - berth bench live: a berthd of one's own, asked and timed from outside.
 *
 * Times are of the wall clock, as somebody who waits sees them, so they hold what else the
 * machine does; the disk is that of the temporary folder.  Sockets and orders are in
 * memory, as they are for somebody who has logged in.
 */
#include "lab/bench_live.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "lab/bench.h"

#define ONE_BY_ONE 500
#define CLIENTS 8
#define PER_CLIENT 250
#define BATCH 5000
#define WAITING 10000
#define ASKED 100
#define IN_LOG 100000
#define IDLE_S 5

static const char *const nap[] = { "sleep", "300", NULL };

/* ---- what the parts share ---- */

void samples_add(struct samples *samples, double ms)
{
    if (samples->count < SAMPLES_MAX)
        samples->ms[samples->count++] = ms;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double samples_at(struct samples *samples, double q)
{
    if (samples->count == 0)
        return NAN;
    qsort(samples->ms, samples->count, sizeof *samples->ms, compare);
    return samples->ms[(uint32_t)(q * (samples->count - 1) + 0.5)];
}

void samples_rows(struct samples *samples, struct bench *bench, const char *id)
{
    static const struct {
        const char *name;
        double q;
    } shown[] = { { "p50", 0.5 }, { "p99", 0.99 } };
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s", id, shown[i].name);
        bench_row(bench, name, samples_at(samples, shown[i].q), "ms", samples->count,
                  NULL, 0);
    }
}

int live_bench_open(struct scratch *scratch, const char *const *args, struct error *err)
{
    int r = scratch_open(scratch, args, err);
    if (r < 0)
        return r;
    scratch_use_memory(scratch);
    r = scratch_start(scratch, err);
    if (r < 0)
        scratch_close(scratch);
    return r;
}

struct json *live_bench_request(const char *const *words)
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

int live_bench_batch(struct scratch *scratch, const char *const *words, uint32_t count,
                     struct error *err)
{
    struct json *body = json_new_object(), *jobs = json_new_array();
    for (uint32_t i = 0; i < count; i++)
        json_add(jobs, live_bench_request(words));
    json_put(body, "jobs", jobs);
    int r = call_json(scratch->call, "POST", "/v1/jobs", body, NULL, err);
    json_free(body);
    return r;
}

int live_bench_settle(struct scratch *scratch, uint32_t left, double within_s,
                      struct error *err)
{
    double end_s = clock_now_s() + within_s;
    for (;;) {
        int64_t live = 0;
        int r = scratch_count_jobs(scratch, &live, err);
        if (r < 0)
            return r;
        if (live <= left)
            return 0;
        if (clock_now_s() > end_s)
            return error_set(err, -ETIME, "%" PRId64 " jobs are left after %.0f s",
                             live, within_s);
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
}

/* ---- submissions ---- */

/* One after the other, over one connection. */
static int submit_some(struct scratch *scratch, uint32_t count, struct samples *samples,
                       struct error *err)
{
    struct json *request = live_bench_request(nap);
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint64_t id;
        double begin_s = clock_now_s();
        r = scratch_submit(scratch, request, &id, err);
        if (samples)
            samples_add(samples, (clock_now_s() - begin_s) * 1e3);
    }
    json_free(request);
    return r;
}

/* Somebody else with a connection of his own; in a child. */
static void be_client(const struct scratch *scratch)
{
    struct scratch own = *scratch;
    own.pid = -1;
    if (call_open(&own.call, scratch->socket, NULL) < 0)
        _exit(1);
    _exit(submit_some(&own, PER_CLIENT, NULL, NULL) < 0);
}

static int submit_together(struct bench *bench, struct scratch *scratch,
                           struct error *err)
{
    pid_t clients[CLIENTS];
    double begin_s = clock_now_s();
    bool all = true;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        clients[i] = fork();
        if (clients[i] == 0)
            be_client(scratch);
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
    bench_row(bench, "submit_8_clients", CLIENTS * PER_CLIENT / s, "jobs/s",
              CLIENTS * PER_CLIENT, NULL, 0);
    return 0;
}

/* One slot, which somebody holds: what is submitted waits. */
static int bench_submissions(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:1", NULL };
    static struct samples samples;
    struct scratch scratch;
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    samples.count = 0;
    r = submit_some(&scratch, ONE_BY_ONE, &samples, err);
    if (r == 0) {
        samples_rows(&samples, bench, "submit");
        r = submit_together(bench, &scratch, err);
    }
    double begin_s = clock_now_s();
    if (r == 0)
        r = live_bench_batch(&scratch, nap, BATCH, err);
    if (r == 0)
        bench_row(bench, "submit_batch", BATCH / (clock_now_s() - begin_s), "jobs/s",
                  BATCH, NULL, 0);
    scratch_close(&scratch);
    return r;
}

/* ---- a long queue ---- */

static int ask_why(struct bench *bench, struct scratch *scratch, struct error *err)
{
    static struct samples samples;
    samples.count = 0;
    for (uint32_t i = 0; i < ASKED; i++) {
        char path[64];
        struct json *why = NULL;
        snprintf(path, sizeof path, "/v1/jobs/%u/why", 2 + i * (WAITING / ASKED));
        double begin_s = clock_now_s();
        int r = call_json(scratch->call, "GET", path, NULL, &why, err);
        if (r < 0)
            return r;
        samples_add(&samples, (clock_now_s() - begin_s) * 1e3);
        json_free(why);
    }
    samples_rows(&samples, bench, "why_10000");
    return 0;
}

/* More than there is: refused for ever, in the answer to the submission. */
static int ask_too_much(struct bench *bench, struct scratch *scratch, struct error *err)
{
    static struct samples samples;
    struct json *request = live_bench_request(nap);
    uint64_t id;
    int r = 0;
    samples.count = 0;
    json_put_count(request, "gpus", 1000);
    for (uint32_t i = 0; i < ASKED && r == 0; i++) {
        double begin_s = clock_now_s();
        if (scratch_submit(scratch, request, &id, err) != -EINVAL)
            r = error_set(err, -EPROTO, "1,000 accelerators of one were not refused");
        samples_add(&samples, (clock_now_s() - begin_s) * 1e3);
    }
    json_free(request);
    if (r == 0)
        samples_rows(&samples, bench, "can_never_run");
    return r;
}

static int bench_queue(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:1", NULL };
    static struct samples samples;
    struct scratch scratch;
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    samples.count = 0;
    r = live_bench_batch(&scratch, nap, WAITING, err);
    if (r == 0)
        r = submit_some(&scratch, ASKED, &samples, err);
    if (r == 0) {
        samples_rows(&samples, bench, "submit_10000");
        double s = scratch_metric(&scratch, "berth_decision_seconds{share=\"0.99\"} ");
        bench_row(bench, "decision_10000.p99", s * 1e3, "ms", ASKED, NULL, 0);
        r = ask_why(bench, &scratch, err);
    }
    if (r == 0)
        r = ask_too_much(bench, &scratch, err);
    scratch_close(&scratch);
    return r;
}

/* ---- at rest, and again ---- */

/* Bytes of memory, and nanoseconds of CPU so far. */
static bool look_at(pid_t pid, double *ret_bytes, double *ret_cpu_s)
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

static int bench_idle(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:8", NULL };
    struct scratch scratch;
    double bytes, before_s, after_s;
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    sleep(1);
    bool good = look_at(scratch.pid, &bytes, &before_s);
    sleep(IDLE_S);
    good = look_at(scratch.pid, &bytes, &after_s) && good;
    if (good) {
        bench_row(bench, "idle_rss", bytes / 1e6, "MB", 1, NULL, 0);
        bench_row(bench, "idle_cpu", (after_s - before_s) / IDLE_S * 100, "%", IDLE_S,
                  NULL, 0);
    }
    scratch_close(&scratch);
    return good ? 0 : error_set(err, -EIO, "/proc/PID: berthd is not to be seen");
}

static int bench_restart(struct bench *bench, struct scratch *scratch, const char *id,
                         struct error *err)
{
    double begin_s = clock_now_s();
    int r = scratch_start(scratch, err);
    if (r == 0)
        bench_row(bench, id, clock_now_s() - begin_s, "s", IN_LOG, NULL, 0);
    return r;
}

/* All of them waiting, berthd killed; then all of them cancelled, and killed again. */
static int bench_history(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:1", NULL };
    struct scratch scratch;
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < IN_LOG / WAITING && r == 0; i++)
        r = live_bench_batch(&scratch, nap, WAITING, err);
    scratch_stop(&scratch, SIGKILL);
    if (r == 0)
        r = bench_restart(bench, &scratch, "restart_100000_waiting", err);
    if (r == 0) {
        scratch_end_jobs(&scratch);
        r = bench_restart(bench, &scratch, "restart_100000", err);
    }
    scratch_close(&scratch);
    return r;
}

static int bench_live_run(struct bench *bench, struct error *err)
{
    int r = bench_submissions(bench, err);
    if (r == 0)
        r = bench_live_jobs(bench, err);
    if (r == 0)
        r = bench_queue(bench, err);
    if (r == 0)
        r = bench_history(bench, err);
    if (r == 0)
        r = bench_idle(bench, err);
    return r;
}

const struct bench_suite bench_live = {
    .name = "live",
    .brief = "berthd itself: submissions, starts, preemptions, restarts",
    .run = bench_live_run,
};
