/*
 * bench_slurm_jobs.c - berth bench slurm, with many jobs: how many go through, what waiting
 * ones cost, and what it brings to know how fast a job is on which GPU.
 */
#include "lab/bench_slurm.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/bench.h"

#define GPUS 16
#define NODES 4
#define TRIVIAL 200
#define WAITING 5000
#define ARRAY 1000
#define NEWCOMERS 40
#define FEW 500 /* that may have run meanwhile */
#define IDLE_S 10

/* ---- many that do nothing ---- */

/* All of them wait behind jobs that hold every GPU; then those are cancelled. */
static int through_once(struct slurm_bench *self, const char *partition,
                        double *ret_per_s, struct error *err)
{
    const char *const whole[] = { partition, "--gres=gpu:4", "--job-name=before",
                                  NULL },
                      *const one[] = { partition, "--gres=gpu:1", NULL },
                      *const go[] = { "scancel", "--name=before", NULL };
    uint32_t id, before = 0, first = 0;
    int r = 0;
    for (uint32_t i = 0; i < NODES && r == 0; i++) {
        r = slurm_submit(self, "sleep 600", whole, &id, err);
        before = i == 0 ? id : before;
    }
    if (r == 0)
        r = slurm_wait_started(self, before, NODES, err);
    for (uint32_t i = 0; i < TRIVIAL && r == 0; i++) {
        r = slurm_submit(self, "true", one, &id, err);
        first = i == 0 ? id : first;
    }
    sleep(2); /* until everybody has seen them */
    double begin_s = slurm_clock_s();
    if (r == 0)
        r = slurm_run(go, NULL, 0, err);
    if (r == 0)
        r = slurm_wait_ended(self, first, TRIVIAL, err);
    double end_s = begin_s;
    for (uint32_t i = first; i < first + TRIVIAL; i++)
        end_s = fmax(end_s, self->jobs[i].ended_s);
    *ret_per_s = TRIVIAL / (end_s - begin_s);
    return r == 0 ? slurm_clear(self, err) : r;
}

/* Slurm alone before and after, since the machine has neighbours. */
int bench_slurm_through(struct slurm_bench *self, struct error *err)
{
    static const char alone[] = "--partition=alone", ours[] = "--partition=gpu";
    double slurm[2] = { 0 }, bell = 0, silent = 0;
    bench_note(self->bench, "%d jobs that do nothing, one GPU each of %d; policy fifo",
               TRIVIAL, GPUS);
    int r = through_once(self, alone, &slurm[0], err);
    if (r == 0)
        r = slurm_berthd(self, "fifo", true, NULL, err);
    if (r == 0)
        r = through_once(self, ours, &bell, err);
    slurm_berthd_end(self);
    if (r == 0)
        r = slurm_berthd(self, "fifo", false, NULL, err);
    if (r == 0)
        r = through_once(self, ours, &silent, err);
    slurm_berthd_end(self);
    if (r == 0)
        r = through_once(self, alone, &slurm[1], err);
    if (r < 0)
        return r;
    /* Slurm alone can stand still until its next backfill: the better one counts. */
    double best = fmax(slurm[0], slurm[1]);
    bench_row(self->bench, "trivial_jobs.slurm", best, "jobs/s", TRIVIAL, NULL, 0);
    bench_row(self->bench, "trivial_jobs.slurm_worse", fmin(slurm[0], slurm[1]),
              "jobs/s", TRIVIAL, NULL, 0);
    bench_row(self->bench, "trivial_jobs", bell, "jobs/s", TRIVIAL, "slurm",
              bell / best);
    bench_row(self->bench, "trivial_jobs_without_bell", silent, "jobs/s", TRIVIAL,
              "slurm", silent / best);
    return 0;
}

/* ---- many that wait ---- */

/* CPU time of all threads of a process so far. */
static double cpu_s(pid_t pid)
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

static pid_t child_of(pid_t pid)
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

/* Wait until berthd knows of so many. */
static int wait_known(struct slurm_bench *self, uint32_t count, struct error *err)
{
    double until_s = clock_now_s() + 2 * SLURM_WAIT_S;
    for (;;) {
        int64_t live = 0;
        int r = scratch_count_jobs(&self->scratch, &live, err);
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

static int fill_queue(struct slurm_bench *self, uint32_t *ret_first, struct error *err)
{
    static const char *const whole[] = { "--partition=gpu", "--gres=gpu:4",
                                         "--exclusive", NULL },
                             *const many[] = { "--partition=gpu", "--gres=gpu:1",
                                               "--array=1-1000", NULL };
    uint32_t id, first = 0;
    int r = 0;
    for (uint32_t i = 0; i < NODES && r == 0; i++) {
        r = slurm_submit(self, "sleep 6000", whole, &id, err);
        first = i == 0 ? id : first;
    }
    *ret_first = first;
    if (r == 0)
        r = slurm_wait_started(self, first, NODES, err);
    for (uint32_t i = 0; i < WAITING / ARRAY && r == 0; i++)
        r = slurm_submit(self, "sleep 1", many, &id, err);
    return r;
}

static int at_rest(struct slurm_bench *self, struct error *err)
{
    pid_t berthd = self->scratch.pid, bridge = child_of(berthd);
    if (bridge < 0)
        return error_set(err, -EIO, "/proc: berth-slurm is not to be seen");
    sleep(5);
    double before[2] = { cpu_s(berthd), cpu_s(bridge) };
    sleep(IDLE_S);
    bench_row(self->bench, "poll_5000.berthd",
              (cpu_s(berthd) - before[0]) / IDLE_S * 1e3, "ms CPU", IDLE_S, NULL, 0);
    bench_row(self->bench, "poll_5000.berth-slurm",
              (cpu_s(bridge) - before[1]) / IDLE_S * 1e3, "ms CPU", IDLE_S, NULL, 0);
    return 0;
}

/*
 * What a decision costs, by berthd's own figures: newcomers that have to wait, and then one
 * of those that hold the GPUs ends, and room comes and goes for some seconds.
 */
static int decisions(struct slurm_bench *self, const char *policy, uint32_t holder,
                     struct error *err)
{
    static const char *const one[] = { "--partition=gpu", "--gres=gpu:1", NULL };
    char number[16];
    const char *const end[] = { "scancel", number, NULL };
    uint32_t id;
    slurm_berthd_end(self);
    int r = slurm_berthd(self, policy, true, NULL, err);
    if (r == 0)
        r = wait_known(self, WAITING - FEW, err);
    for (uint32_t i = 0; i < NEWCOMERS && r == 0; i++)
        r = slurm_submit(self, "sleep 1", one, &id, err);
    snprintf(number, sizeof number, "%u", holder);
    if (r == 0)
        r = slurm_run(end, NULL, 0, err);
    sleep(IDLE_S);
    if (r < 0)
        return r;
    static const char *const shares[] = { "0.5", "0.99", "1" }, *const names[] = {
        "p50", "p99", "max"
    };
    double count = scratch_metric(&self->scratch, "\nberth_decisions_total ");
    for (size_t i = 0; i < 3; i++) {
        char line[64], name[64];
        snprintf(line, sizeof line, "berth_decision_seconds{share=\"%s\"} ", shares[i]);
        snprintf(name, sizeof name, "decision_5000.%s.%s", policy, names[i]);
        bench_row(self->bench, name, scratch_metric(&self->scratch, line) * 1e3, "ms",
                  count > 0 ? (uint64_t)count : 0, NULL, 0);
    }
    return 0;
}

int bench_slurm_waiting(struct slurm_bench *self, struct error *err)
{
    static const char *const policies[] = { "fitgpp", "las", "srtf" };
    uint32_t known = NODES + WAITING, first = 0;
    bench_note(self->bench,
               "%d jobs wait, in arrays; a look each second; newcomers: %d a policy",
               WAITING, NEWCOMERS);
    int r = slurm_berthd(self, "fifo", true, NULL, err);
    if (r == 0)
        r = fill_queue(self, &first, err);
    double begin_s = clock_now_s();
    if (r == 0)
        r = wait_known(self, known, err);
    if (r == 0)
        bench_row(self->bench, "taken_in_5000", WAITING / (clock_now_s() - begin_s),
                  "jobs/s", WAITING, NULL, 0);
    if (r == 0)
        r = at_rest(self, err);
    for (size_t i = 0; i < sizeof policies / sizeof *policies && r == 0; i++)
        r = decisions(self, policies[i], first + (uint32_t)i, err);
    slurm_berthd_end(self);
    return r;
}

/* ---- GPUs that are not alike ---- */

/*
 * Steps a second by kind and type.  A job sleeps as long as its steps take where it is; told
 * to leave, it writes down how far it has come.
 */
static const struct kind {
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

/* The makespan of the same jobs, in the same order. */
static int mixture(struct slurm_bench *self, const char *partition, uint32_t round,
                   double *ret_s, struct error *err)
{
    uint32_t id, first = 0;
    int r = 0;
    double begin_s = slurm_clock_s();
    for (uint32_t i = 0; i < MIXED && r == 0; i++) {
        const struct kind *kind = &kinds[i % KINDS];
        double steps = 3 + (i * 7) % 10 / 2.0;
        char script[1200], comment[128];
        snprintf(script, sizeof script, mixed_script, kind->p100, kind->k80, kind->v100,
                 self->dir, round * 1000 + i, steps);
        snprintf(comment, sizeof comment,
                 "--comment=berth:kind=%s;steps=%g;sig=USR1;grace=5;load=0.5;pause=0.2",
                 kind->name, steps);
        const char *const flags[] = { partition, "--gres=gpu:1", comment, NULL };
        r = slurm_submit(self, script, flags, &id, err);
        first = i == 0 ? id : first;
    }
    if (r == 0)
        r = slurm_wait_ended(self, first, MIXED, err);
    double end_s = begin_s;
    for (uint32_t i = first; i < first + MIXED; i++)
        end_s = fmax(end_s, self->jobs[i].ended_s);
    *ret_s = end_s - begin_s;
    return r == 0 ? slurm_clear(self, err) : r;
}

static int write_rates(struct slurm_bench *self, char *more, size_t size,
                       struct error *err)
{
    char path[96];
    snprintf(path, sizeof path, "%s/rates.csv", self->dir);
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

int bench_slurm_types(struct slurm_bench *self, struct error *err)
{
    static const char *const policies[] = { "gavel-makespan,round=3",
                                            "gavel-las,round=3", "allox,round=3" };
    char more[128];
    double slurm_s = 0;
    bench_note(
        self->bench,
        "%d jobs of one GPU and 3 to 7.5 s on a v100, three kinds; 8 v100, 4 p100, "
        "4 k80; steps and rates are told, not learned",
        MIXED);
    for (size_t i = 0; i < KINDS; i++)
        bench_note(self->bench, "kind %s: v100 %g, p100 %g, k80 %g steps/s",
                   kinds[i].name, kinds[i].v100, kinds[i].p100, kinds[i].k80);
    int r = write_rates(self, more, sizeof more, err);
    if (r == 0)
        r = mixture(self, "--partition=alone", 0, &slurm_s, err);
    if (r == 0)
        bench_row(self->bench, "makespan.slurm", slurm_s, "s", MIXED, NULL, 0);
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies && r == 0; i++) {
        double ours_s = 0;
        char name[64];
        r = slurm_berthd(self, policies[i], true, more, err);
        if (r == 0)
            r = mixture(self, "--partition=gpu", i + 1, &ours_s, err);
        slurm_berthd_end(self);
        snprintf(name, sizeof name, "makespan.%.*s", (int)strcspn(policies[i], ","),
                 policies[i]);
        if (r == 0)
            bench_row(self->bench, name, ours_s, "s", MIXED, "slurm", slurm_s / ours_s);
    }
    return r;
}
