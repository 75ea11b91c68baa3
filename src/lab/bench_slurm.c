/*
 * bench_slurm.c - berth bench slurm: a Slurm of one's own with fake GPUs, and Berth on it.
 *
 * When something has happened is read in slurmctld's log, to the millisecond: it says so of
 * jobs that Berth starts and of those that Slurm starts alone, and nothing of ours is between.
 * Every ratio compares two runs of the same jobs on the same nodes and configuration, with
 * the same hooks; Slurm alone has them in a partition that Berth does not look after.
 */
#include "lab/bench_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "lab/bench.h"
#include "lab/bench_live.h"

#define SWAP_ROUNDS 2
#define GRACE_S 0.5 /* of a victim that uses all of it */
#define SWAPS 16    /* as many as there are GPUs: a job yields once */

extern char **environ;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

/* ---- programs ---- */

int slurm_run(const char *const *words, char *said, size_t size, struct error *err)
{
    pid_t pid;
    int status = 1, out[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC) < 0)
        return error_set(err, -errno, "a pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int r = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    size_t count = 0;
    char bytes[512];
    for (ssize_t n; r == 0 && (n = read(out[0], bytes, sizeof bytes)) != 0;)
        for (ssize_t i = 0; i < n && count + 1 < size; i++)
            said[count++] = bytes[i];
    if (size > 0)
        said[count] = '\0';
    close(out[0]);
    while (r == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (interrupted)
        return error_set(err, -EINTR, "interrupted");
    if (r != 0 || status != 0)
        return error_set(err, -EIO, "%s %s does not work", words[0], words[1]);
    return 0;
}

int slurm_submit(struct slurm_bench *self, const char *script, const char *const *flags,
                 uint32_t *ret_id, struct error *err)
{
    char path[96], said[64];
    const char *words[24] = { "sbatch", "--parsable", "--output=/dev/null",
                              "--chdir=/" };
    uint32_t count = 4;
    snprintf(path, sizeof path, "%s/job.sh", self->dir);
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    fprintf(file, "#!/bin/bash\n%s\n", script);
    fclose(file);
    for (uint32_t i = 0; flags[i] && count < 22; i++)
        words[count++] = flags[i];
    words[count] = path;
    int r = slurm_run(words, said, sizeof said, err);
    *ret_id = r == 0 ? (uint32_t)strtoul(said, NULL, 10) : 0;
    if (r == 0 && (*ret_id == 0 || *ret_id >= SLURM_JOBS_MAX))
        r = error_set(err, -EIO, "sbatch says %.40s", said);
    if (r == 0 && *ret_id > self->job_last)
        self->job_last = *ret_id;
    return r;
}

/* ---- slurmctld's log ---- */

static double of_day(const struct tm *tm, double part)
{
    return tm->tm_hour * 3600.0 + tm->tm_min * 60.0 + tm->tm_sec + part;
}

double slurm_clock_s(void)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    return of_day(&tm, (double)now.tv_nsec * 1e-9);
}

/* "[2026-11-16T07:50:32.688] sched: Allocate JobId=1 NodeList=…" */
static void read_line(struct slurm_bench *self, const char *line)
{
    struct tm tm = { 0 };
    double part;
    int text = 0;
    unsigned id;
    if (sscanf(line, "[%*d-%*d-%*dT%d:%d:%d%lf] %n", &tm.tm_hour, &tm.tm_min,
               &tm.tm_sec, &part, &text) != 4 ||
        text == 0)
        return;
    const char *number = strstr(line + text, "JobId=");
    if (!number || sscanf(number, "JobId=%u", &id) != 1 || id >= SLURM_JOBS_MAX)
        return;
    struct slurm_moments *job = &self->jobs[id];
    double at_s = of_day(&tm, part);
    line += text;
    if (strncmp(line, "sched: Allocate", 15) == 0 || strstr(line, "Started JobId="))
        job->started_s = at_s;
    else if (strncmp(line, "Requeuing", 9) == 0)
        job->requeued_s = self->requeued_s = at_s;
    else if (strncmp(line, "_job_complete", 13) == 0 && strstr(line, " done"))
        job->ended_s = self->ended_s = at_s;
}

/* Read what is new in the log. */
static void slurm_read_log(struct slurm_bench *self)
{
    char line[1024];
    FILE *file = fopen(self->log, "re");
    if (!file)
        return;
    fseek(file, self->log_at, SEEK_SET);
    while (fgets(line, sizeof line, file) && strchr(line, '\n')) {
        self->log_at = ftell(file);
        read_line(self, line);
    }
    fclose(file);
}

static int wait_for(struct slurm_bench *self, uint32_t first, uint32_t count, bool end,
                    struct error *err)
{
    double until_s = clock_now_s() + SLURM_WAIT_S;
    for (;;) {
        uint32_t good = 0;
        slurm_read_log(self);
        for (uint32_t i = first; i < first + count; i++)
            good += (end ? self->jobs[i].ended_s : self->jobs[i].started_s) > 0;
        if (good == count)
            return 0;
        if (interrupted)
            return error_set(err, -EINTR, "interrupted");
        if (clock_now_s() > until_s)
            return error_set(err, -ETIME, "%u of %u jobs have %s after %.0f s", good,
                             count, end ? "ended" : "started", SLURM_WAIT_S);
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
}

int slurm_wait_started(struct slurm_bench *self, uint32_t first, uint32_t count,
                       struct error *err)
{
    return wait_for(self, first, count, false, err);
}

int slurm_wait_ended(struct slurm_bench *self, uint32_t first, uint32_t count,
                     struct error *err)
{
    return wait_for(self, first, count, true, err);
}

int slurm_clear(struct slurm_bench *self, struct error *err)
{
    static const char *const cancel[] = { "scancel", "--user=root", NULL },
                             *const queue[] = { "squeue", "--all", "--noheader", NULL };
    double until_s = clock_now_s() + SLURM_WAIT_S;
    char said[64] = "?";
    int r = slurm_run(cancel, NULL, 0, err);
    while (r == 0 && said[0]) {
        r = slurm_run(queue, said, sizeof said, err);
        if (said[0])
            nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        if (clock_now_s() > until_s)
            r = error_set(err, -ETIME, "jobs do not end");
    }
    slurm_read_log(self);
    return r;
}

/* ---- berthd ---- */

int slurm_berthd(struct slurm_bench *self, const char *policy, bool bell,
                 const char *more, struct error *err)
{
    FILE *file = fopen(self->config, "we");
    if (!file)
        return error_set(err, -errno, "%s: %s", self->config, strerror(errno));
    fprintf(file, "slurm_bell: %s/%s\n%s", self->dir, bell ? "bell" : "silent",
            more ? more : "");
    fclose(file);
    const char *args[] = { "--executor", "slurm:partition=gpu", "--policy", policy,
                           "--config",   self->config,          NULL };
    memcpy(self->args, args, sizeof args);
    if (!self->open) {
        int r = scratch_open(&self->scratch, self->args, err);
        if (r < 0)
            return r;
        self->open = true;
        scratch_use_memory(&self->scratch);
    }
    return scratch_start(&self->scratch, err);
}

void slurm_berthd_end(struct slurm_bench *self)
{
    scratch_stop(&self->scratch, SIGTERM);
}

/* It knows nothing of what was. */
static void forget_berthd(struct slurm_bench *self)
{
    if (!self->open)
        return;
    slurm_berthd_end(self);
    scratch_close(&self->scratch);
    self->open = false;
}

/* ---- a trial job takes the GPUs of another ---- */

static const char *const victim_flags[] = { "--partition=gpu", "--gres=gpu:1",
                                            "--comment=berth:sig=USR1;grace=500ms",
                                            NULL };
static const char *const trial_flags[] = { "--partition=gpu", "--gres=gpu:1",
                                           "--comment=berth:class=te", NULL };

/* When its victim was told to leave; NAN: nobody was. */
static double told_s(struct slurm_bench *self, uint32_t trial)
{
    struct json *ledger = NULL;
    double at_s = NAN;
    if (call_json(self->scratch.call, "GET", "/v1/ledger", NULL, &ledger, NULL) < 0)
        return NAN;
    const struct json *entries = json_get(ledger, "entries");
    for (size_t i = 0; i < json_count(entries); i++) {
        const struct json *entry = json_item(entries, i);
        if (json_count_at(entry, "for") == trial)
            json_as_number(json_get(entry, "at"), &at_s);
    }
    json_free(ledger);
    struct tm tm;
    time_t whole = (time_t)at_s;
    localtime_r(&whole, &tm);
    return of_day(&tm, at_s - (double)whole);
}

/* One after the other; each trial job stays, so that victims do not come back meanwhile. */
static int swap_all(struct slurm_bench *self, bool saves, struct samples *samples,
                    struct error *err)
{
    const char *script = saves ? "trap 'exit 85' USR1; while :; do sleep 0.05; done"
                               : "trap '' USR1; sleep 600";
    uint32_t id, first = 0;
    int r = 0;
    for (uint32_t i = 0; i < SWAPS && r == 0; i++) {
        r = slurm_submit(self, script, victim_flags, &id, err);
        first = i == 0 ? id : first;
    }
    if (r == 0)
        r = slurm_wait_started(self, first, SWAPS, err);
    sleep(1); /* so that their traps are set */
    for (uint32_t i = 0; i < SWAPS && r == 0; i++) {
        r = slurm_submit(self, "sleep 600", trial_flags, &id, err);
        if (r == 0)
            r = slurm_wait_started(self, id, 1, err);
        double left_s = saves ? self->ended_s : told_s(self, id) + GRACE_S;
        if (r == 0)
            samples_add(samples, (self->jobs[id].started_s - left_s) * 1e3);
    }
    return r == 0 ? slurm_clear(self, err) : r;
}

static void swap_rows(struct slurm_bench *self, struct samples *samples, const char *id)
{
    static const struct {
        const char *name;
        double q;
    } shown[] = { { "p50", 0.5 }, { "p95", 0.95 }, { "max", 1 } };
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s", id, shown[i].name);
        bench_row(self->bench, name, samples_at(samples, shown[i].q) * 1e-3, "s",
                  samples->count, NULL, 0);
    }
}

/*
 * From the end of the victim's grace, which is when it was told, by Berth's ledger, and its
 * grace, until the trial job runs; and for victims that save and leave by themselves, from
 * their end.
 */
static int bench_swaps(struct slurm_bench *self, struct error *err)
{
    static struct samples used, left;
    used.count = left.count = 0;
    bench_note(
        self->bench,
        "4 nodes of 4 GPUs: v100, p100, k80, v100; batch_sched_delay=0, backfill; "
        "EpilogSlurmctld rings the bell for Slurm alone too");
    bench_note(self->bench, "swaps: policy fitgpp, one GPU, grace %g s", GRACE_S);
    int r = slurm_berthd(self, "fitgpp", true, NULL, err);
    for (uint32_t i = 0; i < SWAP_ROUNDS && r == 0; i++)
        r = swap_all(self, false, &used, err);
    if (r == 0)
        r = swap_all(self, true, &left, err);
    if (r == 0) {
        swap_rows(self, &used, "swap");
        swap_rows(self, &left, "swap_saved_early");
    }
    forget_berthd(self);
    return r;
}

/* ---- the lab ---- */

/* Beside the sources: above the folder of this program, or where we are. */
static int find_lab(struct slurm_bench *self, struct error *err)
{
    char path[PATH_MAX + 32];
    ssize_t count = readlink("/proc/self/exe", path, PATH_MAX);
    path[count > 0 ? count : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    snprintf(self->lab, sizeof self->lab, "%.250s/../tests/slurm/lab", path);
    if (access(self->lab, X_OK) < 0)
        snprintf(self->lab, sizeof self->lab, "%s", "tests/slurm/lab");
    if (access(self->lab, X_OK) < 0)
        return error_set(err, -ENOTSUP,
                         "the Slurm that it is measured on, tests/slurm/lab, is not "
                         "here: run it in the sources");
    if (geteuid() != 0)
        return error_set(err, -ENOTSUP, "only root can start a Slurm to measure it on");
    return 0;
}

static int lab_up(struct slurm_bench *self, struct error *err)
{
    static const char *const alone[] = {
        "scontrol", "create", "PartitionName=alone", "Nodes=ALL", "MaxTime=INFINITE",
        "State=UP", NULL
    };
    char conf[96];
    snprintf(self->dir, sizeof self->dir, "/tmp/bb.XXXXXX");
    if (!mkdtemp(self->dir)) {
        int code = -errno;
        self->dir[0] = '\0';
        return error_set(err, code, "a folder in /tmp: %s", strerror(-code));
    }
    const char *const up[] = { self->lab, "up", self->dir, NULL };
    int r = slurm_run(up, NULL, 0, err);
    if (r < 0)
        return interrupted ? r
                           : error_set(err, -ENOTSUP,
                                       "no Slurm could be started to measure it on");
    snprintf(conf, sizeof conf, "%s/slurm.conf", self->dir);
    snprintf(self->log, sizeof self->log, "%s/log/slurmctld.log", self->dir);
    snprintf(self->config, sizeof self->config, "%s/berthd.yaml", self->dir);
    setenv("SLURM_CONF", conf, 1);
    return slurm_run(alone, NULL, 0, err);
}

static void lab_down(struct slurm_bench *self)
{
    const char *const down[] = { self->lab, "down", self->dir, NULL };
    forget_berthd(self);
    if (self->dir[0])
        slurm_run(down, NULL, 0, NULL);
    rmdir(self->dir);
    unsetenv("SLURM_CONF");
    free(self->jobs);
}

static int measure(struct slurm_bench *self, struct error *err)
{
    static int (*const parts[])(struct slurm_bench *, struct error *) = {
        bench_swaps, bench_slurm_through, bench_slurm_types, bench_slurm_waiting
    };
    int r = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && r == 0; i++) {
        r = parts[i](self, err);
        forget_berthd(self);
    }
    return r;
}

static int bench_slurm_run(struct bench *bench, struct error *err)
{
    struct slurm_bench self = { .bench = bench };
    struct sigaction handler = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
    struct sigaction before[2];
    int r = find_lab(&self, err);
    if (r < 0)
        return r;
    self.jobs = calloc(SLURM_JOBS_MAX, sizeof *self.jobs);
    if (!self.jobs)
        return error_set(err, -ENOMEM, "out of memory");
    sigaction(SIGINT, &handler, &before[0]);
    sigaction(SIGTERM, &handler, &before[1]);
    r = lab_up(&self, err);
    if (r == 0)
        r = measure(&self, err);
    lab_down(&self);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    return r;
}

const struct bench_suite bench_slurm = {
    .name = "slurm",
    .brief = "Berth on a Slurm of its own",
    .run = bench_slurm_run,
    .optional = true,
};
