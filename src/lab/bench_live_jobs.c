/*
 * bench_live_jobs.c - berth bench live, with jobs that really run.
 *
 * How soon one starts after another is seen by the jobs themselves: each writes the time
 * down as the first and the last thing it does.  bash can do that without starting another
 * program; its own start, a few milliseconds, is part of the figure.
 */
#include "lab/bench_live.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
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

#define IN_A_ROW 100
#define ROUNDS 60
#define TRIVIAL 2000
#define SLOTS "8"
#define WAIT_S 120.0

extern char **environ;

/* ---- a slot is free: when does the next one run? ---- */

static void read_row(const char *path, struct samples *samples)
{
    char what[8];
    double at_s, ended_s = 0;
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%7s %lf", what, &at_s) == 2) {
        if (what[0] == 'b' && ended_s > 0)
            samples_add(samples, (at_s - ended_s) * 1e3);
        ended_s = what[0] == 'e' ? at_s : 0;
    }
    if (file)
        fclose(file);
}

static int bench_row_of_jobs(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:1", NULL };
    static struct samples samples;
    struct scratch scratch;
    char script[700], path[300];
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    samples.count = 0;
    snprintf(path, sizeof path, "%s/row", scratch.dir);
    snprintf(script, sizeof script,
             "echo b $EPOCHREALTIME >>%s; echo e $EPOCHREALTIME >>%s", path, path);
    const char *const words[] = { "bash", "-c", script, NULL };
    r = live_bench_batch(&scratch, words, IN_A_ROW, err);
    if (r == 0)
        r = live_bench_settle(&scratch, 0, WAIT_S, err);
    if (r == 0) {
        read_row(path, &samples);
        samples_rows(&samples, bench, "freed_to_running");
    }
    scratch_close(&scratch);
    return r;
}

/* ---- a trial job comes: when does its victim know? ---- */

/* What stands in a file that is written at once: one number; waits for it. */
static int read_stamp(const char *path, double *ret_s, struct error *err)
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

static int one_preemption(struct scratch *scratch, uint32_t round,
                          struct samples *samples, struct error *err)
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
    struct json *request = live_bench_request(victim);
    int r = scratch_submit(scratch, request, &id, err);
    json_free(request);
    if (r == 0)
        r = read_stamp(begun, &begun_s, err);
    if (r < 0)
        return r;
    request = live_bench_request(trial);
    json_put_text(request, "class", "te");
    asked_s = clock_read_s(CLOCK_REALTIME);
    r = scratch_submit(scratch, request, &id, err);
    json_free(request);
    if (r == 0)
        r = read_stamp(warned, &warned_s, err);
    if (r == 0)
        samples_add(samples, (warned_s - asked_s) * 1e3);
    if (r == 0)
        r = live_bench_settle(scratch, 0, WAIT_S, err);
    return r;
}

static int bench_preemptions(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:1", NULL };
    static struct samples samples;
    struct scratch scratch;
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    samples.count = 0;
    for (uint32_t i = 0; i < ROUNDS && r == 0; i++)
        r = one_preemption(&scratch, i, &samples, err);
    if (r == 0)
        samples_rows(&samples, bench, "trial_to_warning");
    scratch_close(&scratch);
    return r;
}

/* ---- many that do nothing ---- */

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

/* Debian's task-spooler with as many slots: jobs a second, or 0 if it is not there. */
static double spooler_per_s(const char *dir)
{
    static const char *const version[] = { "tsp", "-V", NULL },
                             *const slots[] = { "tsp", "-S", SLOTS, NULL },
                             *const add[] = { "tsp", "true", NULL },
                             *const wait[] = { "tsp", "-w", NULL },
                             *const end[] = { "tsp", "-K", NULL };
    char path[300];
    snprintf(path, sizeof path, "%s/tsp", dir);
    setenv("TS_SOCKET", path, 1);
    setenv("TMPDIR", dir, 1); /* its output files; ours have been opened */
    if (spawn_and_wait(version) < 0 || spawn_and_wait(slots) < 0)
        return 0;
    double begin_s = clock_now_s();
    int r = 0;
    for (uint32_t i = 0; i < TRIVIAL && r == 0; i++)
        r = spawn_and_wait(add);
    if (r == 0)
        r = spawn_and_wait(wait);
    double s = clock_now_s() - begin_s;
    spawn_and_wait(end);
    return r == 0 ? TRIVIAL / s : 0;
}

static int through_per_s(struct scratch *scratch, bool at_once, double *ret_per_s,
                         struct error *err)
{
    static const char *const words[] = { "true", NULL };
    struct json *request = live_bench_request(words);
    double begin_s = clock_now_s();
    uint64_t id;
    int r = at_once ? live_bench_batch(scratch, words, TRIVIAL, err) : 0;
    for (uint32_t i = 0; i < TRIVIAL && r == 0 && !at_once; i++)
        r = scratch_submit(scratch, request, &id, err);
    if (r == 0)
        r = live_bench_settle(scratch, 0, WAIT_S, err);
    *ret_per_s = TRIVIAL / (clock_now_s() - begin_s);
    json_free(request);
    return r;
}

static int bench_through(struct bench *bench, struct error *err)
{
    static const char *const args[] = { "--fake-gpus", "slot:" SLOTS, NULL };
    struct scratch scratch;
    double at_once = 0, singly = 0;
    int r = live_bench_open(&scratch, args, err);
    if (r < 0)
        return r;
    char *before = getenv("TMPDIR");
    before = before ? strdup(before) : NULL;
    double spooler = spooler_per_s(scratch.dir);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
    r = through_per_s(&scratch, true, &at_once, err);
    if (r == 0)
        r = through_per_s(&scratch, false, &singly, err);
    if (r == 0) {
        const char *versus = spooler > 0 ? "task-spooler" : NULL;
        double by = spooler > 0 ? spooler : 1;
        if (versus)
            bench_row(bench, "trivial_jobs.task_spooler", spooler, "jobs/s", TRIVIAL,
                      NULL, 0);
        else
            fprintf(stderr, "berth bench: task-spooler (tsp) is not there: "
                            "nothing to compare trivial_jobs with\n");
        bench_row(bench, "trivial_jobs", at_once, "jobs/s", TRIVIAL, versus,
                  at_once / by);
        bench_row(bench, "trivial_jobs_singly", singly, "jobs/s", TRIVIAL, versus,
                  singly / by);
    }
    scratch_close(&scratch);
    return r;
}

int bench_live_jobs(struct bench *bench, struct error *err)
{
    int r = bench_row_of_jobs(bench, err);
    if (r == 0)
        r = bench_preemptions(bench, err);
    if (r == 0)
        r = bench_through(bench, err);
    return r;
}
