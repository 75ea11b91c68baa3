/*
 * bench_slurm.c - berth bench slurm: a temporary Slurm cluster with fake GPUs, and Berth on it.
 *
 * Times are read from slurmctld's log, to the millisecond: it reports jobs that Berth starts
 * and jobs that Slurm starts alone in the same way, without any code of ours in between.
 * Every ratio compares two runs of the same jobs on the same nodes and configuration, with
 * the same hooks; Slurm alone runs them in a partition that Berth does not manage.
 */
#include "lab/bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
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
#include "base/memory.h"
#include "lab/scratch.h"

#define NODES 4
#define GPUS 16
#define SWAPS GPUS /* each running job is preempted once */
#define SWAP_ROUNDS 2
#define GRACE_S 0.5 /* of a victim that uses all of it */
#define TRIVIAL 200
#define WAITING 5000
#define ARRAY 1000
#define SUBMITTED 40 /* more jobs, while decisions are timed */
#define FEW 500      /* that may have run meanwhile */
#define IDLE_S 10
#define JOBS_MAX 20000
#define WAIT_S 180.0

/* Times of a job in slurmctld's log, in seconds of the day; 0: not in the log. */
struct slurm_times {
    double started_s, ended_s;
};

struct slurm_lab {
    struct bench *bench;
    char script[300];     /* starts and stops the cluster      */
    char dir[64];         /* of the cluster; "": it is not up  */
    char config[96];      /* of berthd                         */
    char log[96];         /* slurmctld's                       */
    long log_at;          /* so much of it has been read       */
    const char *args[12]; /* of berthd                         */
    struct scratch scratch;
    bool open; /* the scratch folder is there */

    struct slurm_times *jobs; /* by number */
    double ended_s;           /* of the last job that ended, other than by scancel */
};

/* Say how the rows that follow were measured. */
__attribute__((format(printf, 2, 3))) static void write_note(struct bench *bench,
                                                             const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (bench->rows)
        json_add_text(bench->notes, text);
    else
        printf("# %s\n", text);
}

extern char **environ;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

/* ---- programs ---- */

/* Run a program; the beginning of its output goes to 'said'. */
static int run_program(const char *const *words, char *said, size_t size,
                       struct error *err)
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

static int submit_job(struct slurm_lab *lab, const char *script,
                      const char *const *flags, uint32_t *ret_id, struct error *err)
{
    char path[96], said[64];
    const char *words[24] = { "sbatch", "--parsable", "--output=/dev/null",
                              "--chdir=/" };
    uint32_t count = 4;
    snprintf(path, sizeof path, "%s/job.sh", lab->dir);
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    fprintf(file, "#!/bin/bash\n%s\n", script);
    fclose(file);
    for (uint32_t i = 0; flags[i] && count < 22; i++)
        words[count++] = flags[i];
    words[count] = path;
    int r = run_program(words, said, sizeof said, err);
    *ret_id = r == 0 ? (uint32_t)strtoul(said, NULL, 10) : 0;
    if (r == 0 && (*ret_id == 0 || *ret_id >= JOBS_MAX))
        r = error_set(err, -EIO, "sbatch says %.40s", said);
    return r;
}

/* Submit the same job so many times, and return the number of the first. */
static int submit_jobs(struct slurm_lab *lab, uint32_t count, const char *script,
                       const char *const *flags, uint32_t *ret_first, struct error *err)
{
    uint32_t id = 0;
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        r = submit_job(lab, script, flags, &id, err);
        *ret_first = i == 0 ? id : *ret_first;
    }
    return r;
}

/* ---- slurmctld's log ---- */

static double seconds_of_day(const struct tm *tm, double part)
{
    return tm->tm_hour * 3600.0 + tm->tm_min * 60.0 + tm->tm_sec + part;
}

static double read_day_clock_s(void)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    return seconds_of_day(&tm, (double)now.tv_nsec * 1e-9);
}

/* "[2026-11-16T07:50:32.688] sched: Allocate JobId=1 NodeList=…" */
static void read_log_line(struct slurm_lab *lab, const char *line)
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
    if (!number || sscanf(number, "JobId=%u", &id) != 1 || id >= JOBS_MAX)
        return;
    struct slurm_times *job = &lab->jobs[id];
    double at_s = seconds_of_day(&tm, part);
    line += text;
    if (strncmp(line, "sched: Allocate", 15) == 0 || strstr(line, "Started JobId="))
        job->started_s = at_s;
    else if (strncmp(line, "_job_complete", 13) == 0 && strstr(line, " done"))
        job->ended_s = lab->ended_s = at_s;
}

/* Read what is new in the log. */
static void read_log(struct slurm_lab *lab)
{
    char line[1024];
    FILE *file = fopen(lab->log, "re");
    if (!file)
        return;
    fseek(file, lab->log_at, SEEK_SET);
    while (fgets(line, sizeof line, file) && strchr(line, '\n')) {
        lab->log_at = ftell(file);
        read_log_line(lab, line);
    }
    fclose(file);
}

static int wait_for_jobs(struct slurm_lab *lab, uint32_t first, uint32_t count,
                         bool end, struct error *err)
{
    double until_s = clock_now_s() + WAIT_S;
    for (;;) {
        uint32_t good = 0;
        read_log(lab);
        for (uint32_t i = first; i < first + count; i++)
            good += (end ? lab->jobs[i].ended_s : lab->jobs[i].started_s) > 0;
        if (good == count)
            return 0;
        if (interrupted)
            return error_set(err, -EINTR, "interrupted");
        if (clock_now_s() > until_s)
            return error_set(err, -ETIME, "%u of %u jobs have %s after %.0f s", good,
                             count, end ? "ended" : "started", WAIT_S);
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
}

static int wait_started(struct slurm_lab *lab, uint32_t first, uint32_t count,
                        struct error *err)
{
    return wait_for_jobs(lab, first, count, false, err);
}

static int wait_ended(struct slurm_lab *lab, uint32_t first, uint32_t count,
                      struct error *err)
{
    return wait_for_jobs(lab, first, count, true, err);
}

static int cancel_all(struct slurm_lab *lab, struct error *err)
{
    static const char *const cancel[] = { "scancel", "--user=root", NULL },
                             *const queue[] = { "squeue", "--all", "--noheader", NULL };
    double until_s = clock_now_s() + WAIT_S;
    char said[64] = "?";
    int r = run_program(cancel, NULL, 0, err);
    while (r == 0 && said[0]) {
        r = run_program(queue, said, sizeof said, err);
        if (said[0])
            nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        if (clock_now_s() > until_s)
            r = error_set(err, -ETIME, "jobs do not end");
    }
    read_log(lab);
    return r;
}

/* ---- berthd ---- */

/* Start berthd with this policy, and further lines in its configuration; 'bell': Slurm tells it
 * of jobs that end. */
static int start_berthd(struct slurm_lab *lab, const char *policy, bool bell,
                        const char *more, struct error *err)
{
    FILE *file = fopen(lab->config, "we");
    if (!file)
        return error_set(err, -errno, "%s: %s", lab->config, strerror(errno));
    fprintf(file, "slurm_bell: %s/%s\n%s", lab->dir, bell ? "bell" : "silent",
            more ? more : "");
    fclose(file);
    const char *args[] = { "--executor", "slurm:partition=gpu", "--policy", policy,
                           "--config",   lab->config,           NULL };
    memcpy(lab->args, args, sizeof args);
    if (!lab->open) {
        int r = scratch_open(&lab->scratch, lab->args, err);
        if (r < 0)
            return r;
        lab->open = true;
        scratch_use_memory(&lab->scratch);
    }
    return scratch_start(&lab->scratch, err);
}

static void stop_berthd(struct slurm_lab *lab)
{
    scratch_stop(&lab->scratch, SIGTERM);
}

/* Stop it and remove its folder: the next one knows no jobs. */
static void remove_berthd(struct slurm_lab *lab)
{
    if (!lab->open)
        return;
    stop_berthd(lab);
    scratch_close(&lab->scratch);
    lab->open = false;
}

/* ---- trial jobs that preempt others ---- */

static const char *const victim_flags[] = { "--partition=gpu", "--gres=gpu:1",
                                            "--comment=berth:sig=USR1;grace=500ms",
                                            NULL };
static const char *const trial_flags[] = { "--partition=gpu", "--gres=gpu:1",
                                           "--comment=berth:class=te", NULL };

/* When the victim of a trial job was warned, by Berth's ledger; NAN: there is none. */
static double read_warning_s(struct slurm_lab *lab, uint32_t trial)
{
    struct json *ledger = NULL;
    double at_s = NAN;
    if (call_json(lab->scratch.call, "GET", "/v1/ledger", NULL, &ledger, NULL) < 0)
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
    return seconds_of_day(&tm, at_s - (double)whole);
}

/* Preempt one job after the other.  Trial jobs go on running, so that no victim resumes. */
static int measure_swaps_once(struct slurm_lab *lab, bool saves,
                              struct bench_samples *samples, struct error *err)
{
    const char *script = saves ? "trap 'exit 85' USR1; while :; do sleep 0.05; done"
                               : "trap '' USR1; sleep 600";
    uint32_t id, first = 0;
    int r = submit_jobs(lab, SWAPS, script, victim_flags, &first, err);
    if (r == 0)
        r = wait_started(lab, first, SWAPS, err);
    sleep(1); /* so that their traps are set */
    for (uint32_t i = 0; i < SWAPS && r == 0; i++) {
        r = submit_job(lab, "sleep 600", trial_flags, &id, err);
        if (r == 0)
            r = wait_started(lab, id, 1, err);
        double left_s = saves ? lab->ended_s : read_warning_s(lab, id) + GRACE_S;
        if (r == 0)
            bench_add_sample(samples, (lab->jobs[id].started_s - left_s) * 1e3);
    }
    return r == 0 ? cancel_all(lab, err) : r;
}

static void write_swap_rows(struct slurm_lab *lab, struct bench_samples *samples,
                            const char *id)
{
    static const struct {
        const char *name;
        double q;
    } shown[] = { { "p50", 0.5 }, { "p95", 0.95 }, { "max", 1 } };
    for (size_t i = 0; i < 3; i++) {
        bench_row(lab->bench, bench_quantile(samples, shown[i].q) * 1e-3, "s",
                  samples->count, "%s.%s", id, shown[i].name);
    }
}

/*
 * The time from the end of the victim's grace period until the trial job runs; for victims
 * that save and exit by themselves, from their exit.
 */
static int measure_swaps(struct slurm_lab *lab, struct error *err)
{
    static struct bench_samples late, early; /* after all of the grace, or before */
    late.count = early.count = 0;
    write_note(
        lab->bench,
        "4 nodes of 4 GPUs: v100, p100, k80, v100; batch_sched_delay=0, backfill; "
        "EpilogSlurmctld rings the bell for Slurm alone too");
    write_note(lab->bench, "swaps: policy fitgpp, one GPU, grace %g s", GRACE_S);
    int r = start_berthd(lab, "fitgpp", true, NULL, err);
    for (uint32_t i = 0; i < SWAP_ROUNDS && r == 0; i++)
        r = measure_swaps_once(lab, false, &late, err);
    if (r == 0)
        r = measure_swaps_once(lab, true, &early, err);
    if (r == 0) {
        write_swap_rows(lab, &late, "swap");
        write_swap_rows(lab, &early, "swap_saved_early");
    }
    remove_berthd(lab);
    return r;
}

/* ---- throughput of trivial jobs ---- */

/* All of them wait behind jobs that hold every GPU; then those are cancelled. */
static int run_trivial_jobs(struct slurm_lab *lab, const char *partition,
                            double *ret_per_s, struct error *err)
{
    const char *const whole[] = { partition, "--gres=gpu:4", "--job-name=before",
                                  NULL },
                      *const one[] = { partition, "--gres=gpu:1", NULL },
                      *const go[] = { "scancel", "--name=before", NULL };
    uint32_t before = 0, first = 0;
    int r = submit_jobs(lab, NODES, "sleep 600", whole, &before, err);
    if (r == 0)
        r = wait_started(lab, before, NODES, err);
    if (r == 0)
        r = submit_jobs(lab, TRIVIAL, "true", one, &first, err);
    sleep(2); /* until Slurm and Berth have seen them */
    double begin_s = read_day_clock_s();
    if (r == 0)
        r = run_program(go, NULL, 0, err);
    if (r == 0)
        r = wait_ended(lab, first, TRIVIAL, err);
    double end_s = begin_s;
    for (uint32_t i = first; i < first + TRIVIAL; i++)
        end_s = fmax(end_s, lab->jobs[i].ended_s);
    *ret_per_s = TRIVIAL / (end_s - begin_s);
    return r == 0 ? cancel_all(lab, err) : r;
}

/* Slurm alone runs before and after, since other processes load the machine. */
static int measure_throughput(struct slurm_lab *lab, struct error *err)
{
    static const char alone[] = "--partition=alone", ours[] = "--partition=gpu";
    double slurm[2] = { 0 }, bell = 0, silent = 0;
    write_note(lab->bench, "%d jobs that do nothing, one GPU each of %d; policy fifo",
               TRIVIAL, GPUS);
    int r = run_trivial_jobs(lab, alone, &slurm[0], err);
    if (r == 0)
        r = start_berthd(lab, "fifo", true, NULL, err);
    if (r == 0)
        r = run_trivial_jobs(lab, ours, &bell, err);
    stop_berthd(lab);
    if (r == 0)
        r = start_berthd(lab, "fifo", false, NULL, err);
    if (r == 0)
        r = run_trivial_jobs(lab, ours, &silent, err);
    stop_berthd(lab);
    if (r == 0)
        r = run_trivial_jobs(lab, alone, &slurm[1], err);
    if (r < 0)
        return r;
    /* Slurm alone may start nothing until its next backfill: the better run counts. */
    double best = fmax(slurm[0], slurm[1]);
    bench_row(lab->bench, best, "jobs/s", TRIVIAL, "trivial_jobs.slurm");
    bench_row(lab->bench, fmin(slurm[0], slurm[1]), "jobs/s", TRIVIAL,
              "trivial_jobs.slurm_worse");
    bench_row_versus(lab->bench, "trivial_jobs", bell, "jobs/s", TRIVIAL, "slurm",
                     bell / best);
    bench_row_versus(lab->bench, "trivial_jobs_without_bell", silent, "jobs/s", TRIVIAL,
                     "slurm", silent / best);
    return 0;
}

/* ---- a long queue ---- */

/* CPU time of all threads of a process so far. */
static double read_cpu_s(pid_t pid)
{
    char path[300];
    double sum_ns = 0, ns;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid,
                 task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (file && fscanf(file, "%lf", &ns) == 1)
            sum_ns += ns;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return sum_ns * 1e-9;
}

static pid_t find_child(pid_t pid)
{
    char path[64];
    int child = -1;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &child) != 1)
        child = -1;
    if (file)
        fclose(file);
    return child;
}

/* Wait until berthd knows of so many jobs. */
static int wait_until_known(struct slurm_lab *lab, uint32_t count, struct error *err)
{
    double until_s = clock_now_s() + 2 * WAIT_S;
    for (;;) {
        int64_t live = 0;
        int r = scratch_count_jobs(&lab->scratch, &live, err);
        if (r < 0)
            return r;
        if (live >= count)
            return 0;
        if (clock_now_s() > until_s)
            return error_set(err, -ETIME, "berthd knows of %" PRId64 " jobs of %u",
                             live, count);
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
}

static int fill_queue(struct slurm_lab *lab, uint32_t *ret_first, struct error *err)
{
    static const char *const whole[] = { "--partition=gpu", "--gres=gpu:4",
                                         "--exclusive", NULL },
                             *const many[] = { "--partition=gpu", "--gres=gpu:1",
                                               "--array=1-1000", NULL };
    uint32_t first_array;
    int r = submit_jobs(lab, NODES, "sleep 6000", whole, ret_first, err);
    if (r == 0)
        r = wait_started(lab, *ret_first, NODES, err);
    if (r == 0)
        r = submit_jobs(lab, WAITING / ARRAY, "sleep 1", many, &first_array, err);
    return r;
}

static int measure_idle(struct slurm_lab *lab, struct error *err)
{
    pid_t berthd = lab->scratch.pid, bridge = find_child(berthd);
    if (bridge < 0)
        return error_set(err, -EIO, "/proc: berth-slurm is not to be seen");
    sleep(5);
    double before[2] = { read_cpu_s(berthd), read_cpu_s(bridge) };
    sleep(IDLE_S);
    bench_row(lab->bench, (read_cpu_s(berthd) - before[0]) / IDLE_S * 1e3, "ms CPU",
              IDLE_S, "poll_5000.berthd");
    bench_row(lab->bench, (read_cpu_s(bridge) - before[1]) / IDLE_S * 1e3, "ms CPU",
              IDLE_S, "poll_5000.berth-slurm");
    return 0;
}

/*
 * What a decision costs, by berthd's own figures, while more jobs are submitted that have to
 * wait, and while GPUs become free and are taken again after the end of a running job.
 */
static int measure_decisions(struct slurm_lab *lab, const char *policy, uint32_t holder,
                             struct error *err)
{
    static const char *const one[] = { "--partition=gpu", "--gres=gpu:1", NULL };
    char number[16];
    const char *const end[] = { "scancel", number, NULL };
    uint32_t id;
    stop_berthd(lab);
    int r = start_berthd(lab, policy, true, NULL, err);
    if (r == 0)
        r = wait_until_known(lab, WAITING - FEW, err);
    if (r == 0)
        r = submit_jobs(lab, SUBMITTED, "sleep 1", one, &id, err);
    snprintf(number, sizeof number, "%u", holder);
    if (r == 0)
        r = run_program(end, NULL, 0, err);
    sleep(IDLE_S);
    if (r < 0)
        return r;
    static const char *const shares[] = { "0.5", "0.99", "1" }, *const names[] = {
        "p50", "p99", "max"
    };
    double count = scratch_metric(&lab->scratch, "\nberth_decisions_total ");
    for (size_t i = 0; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "berth_decision_seconds{share=\"%s\"} ", shares[i]);
        bench_row(lab->bench, scratch_metric(&lab->scratch, line) * 1e3, "ms",
                  count > 0 ? (uint64_t)count : 0, "decision_5000.%s.%s", policy,
                  names[i]);
    }
    return 0;
}

static int measure_long_queue(struct slurm_lab *lab, struct error *err)
{
    static const char *const policies[] = { "fitgpp", "las", "srtf" };
    uint32_t known = NODES + WAITING, first = 0;
    write_note(lab->bench,
               "%d jobs wait, in arrays; a look each second; newcomers: %d a policy",
               WAITING, SUBMITTED);
    int r = start_berthd(lab, "fifo", true, NULL, err);
    if (r == 0)
        r = fill_queue(lab, &first, err);
    double begin_s = clock_now_s();
    if (r == 0)
        r = wait_until_known(lab, known, err);
    if (r == 0)
        bench_row(lab->bench, WAITING / (clock_now_s() - begin_s), "jobs/s", WAITING,
                  "taken_in_5000");
    if (r == 0)
        r = measure_idle(lab, err);
    for (size_t i = 0; i < sizeof policies / sizeof *policies && r == 0; i++)
        r = measure_decisions(lab, policies[i], first + (uint32_t)i, err);
    stop_berthd(lab);
    return r;
}

/* ---- GPUs of several types ---- */

/*
 * Steps a second by kind and type.  A job sleeps as long as its steps take on its node; a
 * preempted job saves how many steps it has made.
 */
static const struct lab_kind {
    const char *name;
    double v100, p100, k80;
} kinds[] = {
    { "images", 1, 0.6, 0.25 },
    { "words", 1, 0.4, 0.15 },
    { "games", 1, 0.8, 0.6 },
};

#define KINDS (sizeof kinds / sizeof *kinds)
#define MIXED 36

static const char mixed_script[] =
    "case $SLURMD_NODENAME in n2) v=%g;; n3) v=%g;; *) v=%g;; esac; "
    "f=%s/kept.%u; d=0; [ -e $f ] && read d <$f; s=$EPOCHREALTIME; "
    "trap 'awk -v d=$d -v s=$s -v e=$EPOCHREALTIME -v v=$v "
    "\"BEGIN{print d+(e-s)*v}\" >$f; kill $p; exit 85' USR1; "
    "sleep $(awk -v w=%g -v d=$d -v v=$v 'BEGIN{t=(w-d)/v; print (t>0?t:0)}') & "
    "p=$!; wait $p";

/* Run the same jobs in the same order, and return their makespan. */
static int run_mixture(struct slurm_lab *lab, const char *partition, uint32_t round,
                       double *ret_s, struct error *err)
{
    uint32_t id, first = 0;
    int r = 0;
    double begin_s = read_day_clock_s();
    for (uint32_t i = 0; i < MIXED && r == 0; i++) {
        const struct lab_kind *kind = &kinds[i % KINDS];
        double steps = 3 + (i * 7) % 10 / 2.0;
        char script[1200], comment[128];
        snprintf(script, sizeof script, mixed_script, kind->p100, kind->k80, kind->v100,
                 lab->dir, round * 1000 + i, steps);
        snprintf(comment, sizeof comment,
                 "--comment=berth:kind=%s;steps=%g;sig=USR1;grace=5;load=0.5;pause=0.2",
                 kind->name, steps);
        const char *const flags[] = { partition, "--gres=gpu:1", comment, NULL };
        r = submit_job(lab, script, flags, &id, err);
        first = i == 0 ? id : first;
    }
    if (r == 0)
        r = wait_ended(lab, first, MIXED, err);
    double end_s = begin_s;
    for (uint32_t i = first; i < first + MIXED; i++)
        end_s = fmax(end_s, lab->jobs[i].ended_s);
    *ret_s = end_s - begin_s;
    return r == 0 ? cancel_all(lab, err) : r;
}

static int write_throughputs(struct slurm_lab *lab, char *more, size_t size,
                             struct error *err)
{
    char path[96];
    snprintf(path, sizeof path, "%s/rates.csv", lab->dir);
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    fprintf(file, "kind,type,gpus,rate\n");
    for (size_t i = 0; i < KINDS; i++)
        fprintf(file, "%s,v100,1,%g\n%s,p100,1,%g\n%s,k80,1,%g\n", kinds[i].name,
                kinds[i].v100, kinds[i].name, kinds[i].p100, kinds[i].name,
                kinds[i].k80);
    fclose(file);
    snprintf(more, size, "throughputs: %s\n", path);
    return 0;
}

static int measure_types(struct slurm_lab *lab, struct error *err)
{
    static const char *const policies[] = { "gavel-makespan,round=3",
                                            "gavel-las,round=3", "allox,round=3" };
    char more[128];
    double slurm_s = 0;
    write_note(
        lab->bench,
        "%d jobs of one GPU and 3 to 7.5 s on a v100, three kinds; 8 v100, 4 p100, "
        "4 k80; steps and rates are told, not learned",
        MIXED);
    for (size_t i = 0; i < KINDS; i++)
        write_note(lab->bench, "kind %s: v100 %g, p100 %g, k80 %g steps/s",
                   kinds[i].name, kinds[i].v100, kinds[i].p100, kinds[i].k80);
    int r = write_throughputs(lab, more, sizeof more, err);
    if (r == 0)
        r = run_mixture(lab, "--partition=alone", 0, &slurm_s, err);
    if (r == 0)
        bench_row(lab->bench, slurm_s, "s", MIXED, "makespan.slurm");
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies && r == 0; i++) {
        double ours_s = 0;
        char name[64];
        r = start_berthd(lab, policies[i], true, more, err);
        if (r == 0)
            r = run_mixture(lab, "--partition=gpu", i + 1, &ours_s, err);
        stop_berthd(lab);
        snprintf(name, sizeof name, "makespan.%.*s", (int)strcspn(policies[i], ","),
                 policies[i]);
        if (r == 0)
            bench_row_versus(lab->bench, name, ours_s, "s", MIXED, "slurm",
                             slurm_s / ours_s);
    }
    return r;
}

/* ---- the cluster ---- */

/* The script is in the sources: above the folder of this program, or below the current one. */
static int find_script(struct slurm_lab *lab, struct error *err)
{
    char path[PATH_MAX + 32];
    ssize_t count = readlink("/proc/lab/exe", path, PATH_MAX);
    path[count > 0 ? count : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    snprintf(lab->script, sizeof lab->script, "%.250s/../tests/slurm/lab", path);
    if (access(lab->script, X_OK) < 0)
        snprintf(lab->script, sizeof lab->script, "%s", "tests/slurm/lab");
    if (access(lab->script, X_OK) < 0)
        return error_set(err, -ENOTSUP,
                         "the Slurm that it is measured on, tests/slurm/lab, is not "
                         "here: run it in the sources");
    if (geteuid() != 0)
        return error_set(err, -ENOTSUP, "only root can start a Slurm to measure it on");
    return 0;
}

static int start_lab(struct slurm_lab *lab, struct error *err)
{
    static const char *const alone[] = {
        "scontrol", "create", "PartitionName=alone", "Nodes=ALL", "MaxTime=INFINITE",
        "State=UP", NULL
    };
    char conf[96];
    snprintf(lab->dir, sizeof lab->dir, "/tmp/bb.XXXXXX");
    if (!mkdtemp(lab->dir)) {
        int code = -errno;
        lab->dir[0] = '\0';
        return error_set(err, code, "a folder in /tmp: %s", strerror(-code));
    }
    const char *const up[] = { lab->script, "up", lab->dir, NULL };
    int r = run_program(up, NULL, 0, err);
    if (r < 0)
        return interrupted ? r
                           : error_set(err, -ENOTSUP,
                                       "no Slurm could be started to measure it on");
    snprintf(conf, sizeof conf, "%s/slurm.conf", lab->dir);
    snprintf(lab->log, sizeof lab->log, "%s/log/slurmctld.log", lab->dir);
    snprintf(lab->config, sizeof lab->config, "%s/berthd.yaml", lab->dir);
    setenv("SLURM_CONF", conf, 1);
    return run_program(alone, NULL, 0, err);
}

static void stop_lab(struct slurm_lab *lab)
{
    const char *const down[] = { lab->script, "down", lab->dir, NULL };
    remove_berthd(lab);
    if (lab->dir[0])
        run_program(down, NULL, 0, NULL);
    rmdir(lab->dir);
    unsetenv("SLURM_CONF");
    free(lab->jobs);
}

static int measure_all(struct slurm_lab *lab, struct error *err)
{
    static int (*const parts[])(struct slurm_lab *,
                                struct error *) = { measure_swaps, measure_throughput,
                                                    measure_types, measure_long_queue };
    int r = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && r == 0; i++) {
        r = parts[i](lab, err);
        remove_berthd(lab);
    }
    return r;
}

static int bench_slurm_run(struct bench *bench, struct error *err)
{
    struct slurm_lab lab = { .bench = bench };
    struct sigaction handler = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
    struct sigaction before[2];
    int r = find_script(&lab, err);
    if (r < 0)
        return r;
    lab.jobs = memory_checked(calloc(JOBS_MAX, sizeof *lab.jobs));
    sigaction(SIGINT, &handler, &before[0]);
    sigaction(SIGTERM, &handler, &before[1]);
    r = start_lab(&lab, err);
    if (r == 0)
        r = measure_all(&lab, err);
    stop_lab(&lab);
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
