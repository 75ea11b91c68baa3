/*
 * run.c - one job's processes, from their start until their end was collected.
 *
 * A loop of its own around poll(): a supervisor is started for every job, and libuv would
 * cost each of them a tenth of a millisecond and as many system calls as all the rest.
 *
 * Nothing of a job survives its end.  We are the reaper of all its orphans, so whatever it
 * left behind, however it went into the background, is a child of ours sooner or later:
 * children are killed until there is none.
 */
#include "run/run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "host/cgroup.h"
#include "host/launch_file.h"
#include "host/run_words.h"
#include "predict/rate.h"
#include "run/folder.h"
#include "run/follow.h"
#include "run/start.h"
#include "run/talk.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define NEVER INT64_MAX
#define EXIT_NOT_STARTED 127
#define KILL_AGAIN (20 * MS)      /* between two goes at what is left                */
#define UNCOLLECTED (60 * SECOND) /* then nobody is waited for any longer       */
#define DURABLE (1 * SECOND) /* an end that is not collected by then goes to disk */
#define RATE_MEMORY_S 30.0   /* what is older says little of how fast it is now */
#define REPORT_EVERY (1 * SECOND)
#define LIMIT_GRACE (30 * SECOND) /* the most there is after a time limit       */
#define OWN_GRACE (30 * SECOND)   /* when the machine goes down and we are told   */

/* Why the job has to end. */
enum cause { CAUSE_NONE, CAUSE_RECALL, CAUSE_LIMIT, CAUSE_CANCEL };

struct run {
    const char *dir;
    struct order order;
    struct talk talk;
    int signals; /* signalfd */

    pid_t pids[RANKS_MAX];
    uint32_t pid_count, pids_left;
    int code, ended_by; /* of the process that counts, once it has ended */
    bool saved_code;    /* one of the processes said "saved, put me back" */

    int64_t started_ns, started_wall_ns;
    double step, loss, total, saved;
    struct rate rate;  /* of its steps, by the clock */
    double rate_per_s; /* as it says itself; 0: it does not */
    bool own_steps;    /* progress is in its steps, not in seconds */
    bool reported, to_tell;
    int64_t told_ns;

    struct folder folder;
    bool folder_watched;
    struct follow follow;
    int64_t look_ns; /* when its output and its folder are looked at next */

    enum cause cause;
    int64_t told_to_stop_ns, kill_ns, limit_ns, warn_ns;
    bool saved_since; /* the warning */
    bool killing;     /* all that is left is to go */

    bool over, collected, durable;
    int64_t over_ns, alone_ns; /* since when nobody asks for the end */
    struct run_end end;
};

/* --- progress ---------------------------------------------------------------------- */

/* How far it is: in its own steps, or in seconds that it has run, all attempts together. */
static double steps_now(const struct run *run)
{
    if (run->own_steps)
        return run->step;
    if (run->started_ns == 0)
        return run->order.steps_kept;
    return run->order.steps_kept + (double)(clock_now_ns() - run->started_ns) * 1e-9;
}

static void tell(struct run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(struct run *run, const char *fmt, ...)
{
    char line[RUN_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert(length > 0 && length < (int)sizeof line);
    talk_send_links(&run->talk, line, (size_t)length);
}

static size_t write_report(const struct run *run, char *line, size_t size)
{
    char loss[32] = PROTOCOL_NO_LOSS;
    if (!isnan(run->loss))
        snprintf(loss, sizeof loss, "%.9g", run->loss);
    double speed = run->rate_per_s > 0 ? run->rate_per_s : rate_per_s(&run->rate);
    return (size_t)snprintf(line, size, "report %.17g %s %.9g\n", steps_now(run), loss,
                            speed);
}

/* With how long ago that was, and from which step on: berthd may be a new one. */
static size_t write_started(const struct run *run, char *line, size_t size)
{
    double ago_s = (double)(clock_now_ns() - run->started_ns) * 1e-9;
    return (size_t)snprintf(line, size, "started %d %.9f %.17g\n", (int)run->pids[0],
                            ago_s, run->order.steps_kept);
}

/* At most one a second: the newest. */
static void tell_report(struct run *run)
{
    int64_t at_ns = clock_now_ns();
    if (!run->to_tell || (run->told_ns && at_ns < run->told_ns + REPORT_EVERY))
        return;
    char line[RUN_LINE_MAX];
    talk_send_links(&run->talk, line, write_report(run, line, sizeof line));
    run->to_tell = false;
    run->told_ns = at_ns;
}

static void report(struct run *run, double step, double loss)
{
    if (!isnan(step))
        run->step = step;
    if (!isnan(loss))
        run->loss = loss;
    if (run->own_steps)
        rate_report(&run->rate, clock_now_ns(), run->step);
    run->reported = true;
    run->to_tell = true;
    tell_report(run);
}

/* A checkpoint up to 'step' is on disk. */
static void saved(struct run *run, double step)
{
    run->saved = run->own_steps ? step : steps_now(run);
    run->saved_since = run->saved_since || run->cause != CAUSE_NONE;
    tell(run, "saved %.17g\n", run->saved);
}

static void look_at_files(struct run *run)
{
    double step, loss;
    if (run->order.launch.pattern && follow_look(&run->follow, &step, &loss))
        report(run, step, loss);
    if (run->folder_watched && folder_written(&run->folder))
        saved(run, steps_now(run));
}

/* Short jobs are over before it would be worth while. */
static void watch_folder(struct run *run)
{
    if (run->folder_watched)
        return;
    folder_watch(&run->folder, run->order.launch.ckpt_dir, run->started_wall_ns);
    run->folder_watched = true;
}

/* --- ending it --------------------------------------------------------------------- */

static void signal_all(const struct run *run, int number)
{
    for (uint32_t i = 0; i < run->pid_count; i++)
        kill(-run->pids[i], number);
}

/* All at once: the file, the socket, the signal. */
static void warn(struct run *run, int64_t grace_ns)
{
    char text[64];
    double grace_s = (double)grace_ns * 1e-9;
    int length = snprintf(text, sizeof text, "%.9g\n", grace_s);
    int fd = open("preempt.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0) {
        if (write(fd, text, (size_t)length) == length)
            rename("preempt.new", "preempt");
        close(fd);
    }
    length = snprintf(text, sizeof text, PROTOCOL_STOP " %.9g\n", grace_s);
    talk_send_ranks(&run->talk, text, (size_t)length);
    int number = run->order.launch.signal;
    signal_all(run, number ? number : SIGTERM);
    signal_all(run, SIGCONT); /* one that is halted could not answer */
}

static void end_for(struct run *run, enum cause cause, int64_t grace_ns)
{
    if (run->over || run->killing)
        return;
    int64_t kill_ns = clock_now_ns() + grace_ns;
    if (run->cause != CAUSE_NONE && cause <= run->cause) {
        /* Told again, as after a restart of berthd: what was said first holds. */
        run->kill_ns = kill_ns < run->kill_ns ? kill_ns : run->kill_ns;
        return;
    }
    bool first = run->cause == CAUSE_NONE;
    if (first) {
        watch_folder(run);
        look_at_files(run); /* what was written before the warning is not its answer */
        run->told_to_stop_ns = clock_now_ns();
    }
    run->cause = cause;
    run->kill_ns = first || kill_ns < run->kill_ns ? kill_ns : run->kill_ns;
    if (cause == CAUSE_CANCEL) {
        signal_all(run, SIGTERM);
        signal_all(run, SIGCONT);
    } else if (first) {
        warn(run, grace_ns);
    }
}

/* SIGKILL to our children; theirs become ours, and are met in the next go. */
static void kill_children(struct run *run)
{
    run->killing = true;
    run->kill_ns = clock_now_ns() + KILL_AGAIN;
    if (run->order.cgroup)
        cgroup_kill(run->order.cgroup);
    signal_all(run, SIGKILL);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/task/%d/children", getpid());
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    for (int pid; fscanf(file, "%d", &pid) == 1;)
        kill(pid, SIGKILL);
    fclose(file);
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One of the processes that we started has ended: the first in failure counts. */
static void rank_ended(struct run *run, uint32_t rank, int status)
{
    run->pids[rank] = run->pids[--run->pid_count];
    run->pids_left--;
    if (run->code == 0) {
        run->code = code_of(status);
        run->ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    if (run->code != 0 && run->pids_left > 0 && run->cause == CAUSE_NONE)
        kill_children(run); /* a gang without one of its ranks */
}

static void reaped(struct run *run, pid_t pid, int status)
{
    int code = code_of(status);
    run->saved_code =
        run->saved_code || code == LAUNCH_SAVED || code == LAUNCH_SAVED_TOO;
    for (uint32_t i = 0; i < run->pid_count; i++)
        if (run->pids[i] == pid) {
            rank_ended(run, i, status);
            return;
        }
}

/* How it ended, in one place: what came first is known here and nowhere else. */
static void judge(struct run *run, struct run_end *end)
{
    bool asked = run->cause != CAUSE_NONE;
    bool put_back = run->code == LAUNCH_SAVED || run->code == LAUNCH_SAVED_TOO ||
                    (asked && run->saved_code);
    *end = (struct run_end){ .code = run->code,
                             .signal = run->ended_by,
                             .steps = steps_now(run) };
    if (run->code == 0) {
        end->how = RUN_FINISHED;
        end->clean = true;
    } else if (run->cause == CAUSE_CANCEL) {
        end->how = RUN_CANCELLED;
        snprintf(end->why, sizeof end->why, "cancelled");
    } else if (run->cause == CAUSE_RECALL || put_back) {
        end->how = RUN_STOPPED;
        end->clean = put_back || run->saved_since;
    } else {
        end->how = RUN_FAILED;
        if (run->cause == CAUSE_LIMIT)
            snprintf(end->why, sizeof end->why, "time limit");
        else if (run->ended_by)
            snprintf(end->why, sizeof end->why, "ended by signal %d (%s)",
                     run->ended_by, strsignal(run->ended_by));
        else
            snprintf(end->why, sizeof end->why, "exit status %d", run->code);
    }
    end->saved = end->clean ? end->steps : run->saved;
}

/*
 * Whoever finds it finds all of it.  Not synchronised here: a machine that goes down takes
 * the runtime folder with it or asks berthd's log, and mostly it is collected at once.
 */
static bool write_status(const char *text, size_t length)
{
    int fd = open("status.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = write(fd, text, length) == (ssize_t)length;
    close(fd);
    return done && rename("status.new", "status") == 0;
}

static void finish(struct run *run, const struct run_end *end)
{
    char line[RUN_LINE_MAX];
    run->end = *end;
    run->over = true;
    run->over_ns = run->alone_ns = clock_now_ns();
    size_t length = run_end_write(end, line, sizeof line);
    run->durable = !write_status(line, length); /* no room: it is kept here alone */
    if (run->to_tell) {
        run->told_ns = 0;
        tell_report(run);
    }
    talk_send_links(&run->talk, line, length);
    talk_close_jobs(&run->talk);
}

/* Reap all there is; true: nobody is left. */
static bool reap(struct run *run)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0)
            reaped(run, pid, status);
        else if (pid == 0 || errno != EINTR)
            return pid < 0;
    }
}

static void children_changed(struct run *run)
{
    if (run->over)
        return;
    bool alone = reap(run);
    if (run->pids_left > 0)
        return;
    if (!alone) {
        /* Those who are saving their state still have their grace. */
        bool waits = run->cause != CAUSE_NONE && !run->killing;
        if (!waits)
            kill_children(run);
        return;
    }
    look_at_files(run);
    struct run_end end;
    judge(run, &end);
    finish(run, &end);
}

/* --- words -------------------------------------------------------------------------- */

static bool heard_job(void *context, char *line)
{
    struct run *run = context;
    char *rest = line;
    const char *word = run_word(&rest), *first = word ? run_word(&rest) : NULL;
    double number;
    if (!word || run->over)
        return true;
    if (strcmp(word, PROTOCOL_REPORT) == 0) {
        const char *second = run_word(&rest);
        char *end = NULL;
        if (!run_number(first, &number) || !second)
            return false;
        double loss =
            strcmp(second, PROTOCOL_NO_LOSS) == 0 ? NAN : strtod(second, &end);
        if (end && (*end != '\0' || end == second))
            return false;
        report(run, number, isfinite(loss) ? loss : NAN);
    } else if (strcmp(word, PROTOCOL_TOTAL) == 0) {
        if (!run_number(first, &number) || number <= 0)
            return false;
        if (!run->own_steps && run->order.steps_kept > run->step)
            run->step = run->order.steps_kept;
        run->own_steps = true;
        run->total = number;
        tell(run, "total %.17g\n", number);
    } else if (strcmp(word, PROTOCOL_SAVED) == 0) {
        if (!run_number(first, &number))
            return false;
        saved(run, number);
    } else if (strcmp(word, PROTOCOL_RATE) == 0) {
        if (!run_number(first, &number))
            return false;
        run->rate_per_s = number;
        run->to_tell = run->reported;
    }
    return true;
}

static void greet_job(void *context, struct talker *talker)
{
    struct run *run = context;
    if (run->cause == CAUSE_NONE)
        return;
    char text[64];
    int64_t left_ns = run->kill_ns - clock_now_ns();
    int length = snprintf(text, sizeof text, PROTOCOL_STOP " %.9g\n",
                          left_ns > 0 ? (double)left_ns * 1e-9 : 0);
    talk_send(talker, text, (size_t)length);
}

static bool heard_berthd(void *context, char *line)
{
    struct run *run = context;
    char *rest = line;
    const char *word = run_word(&rest), *first = word ? run_word(&rest) : NULL;
    double ms;
    if (!word)
        return true;
    if (strcmp(word, "stop") == 0 || strcmp(word, "cancel") == 0) {
        if (!run_number(first, &ms) || ms > 1e12)
            return false;
        end_for(run, *word == 's' ? CAUSE_RECALL : CAUSE_CANCEL, (int64_t)ms * MS);
    } else if (strcmp(word, "kill") == 0) {
        if (!run->over)
            kill_children(run);
    } else if (strcmp(word, "collected") == 0) {
        run->collected = run->over;
    }
    return true;
}

/* Whoever comes is told all that is known. */
static void greet_berthd(void *context, struct talker *talker)
{
    struct run *run = context;
    char line[RUN_LINE_MAX];
    talk_send(talker, line, write_started(run, line, sizeof line));
    int length;
    if (run->total > 0) {
        length = snprintf(line, sizeof line, "total %.17g\n", run->total);
        talk_send(talker, line, (size_t)length);
    }
    if (run->reported)
        talk_send(talker, line, write_report(run, line, sizeof line));
    length = snprintf(line, sizeof line, "saved %.17g\n", run->saved);
    talk_send(talker, line, (size_t)length);
    if (run->over)
        talk_send(talker, line, run_end_write(&run->end, line, sizeof line));
}

/* --- the loop ----------------------------------------------------------------------- */

static void heard_signal(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            children_changed(run);
        else if (!run->over) /* the machine goes down, or somebody means the job */
            end_for(run, CAUSE_RECALL,
                    run->order.grace_ns < OWN_GRACE ? run->order.grace_ns : OWN_GRACE);
    }
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static int64_t next_ns(const struct run *run)
{
    if (run->over) {
        int64_t at_ns = talk_has_link(&run->talk) ? NEVER : run->alone_ns + UNCOLLECTED;
        return run->durable ? at_ns : earlier(at_ns, run->over_ns + DURABLE);
    }
    int64_t at_ns = run->cause != CAUSE_NONE || run->killing ? run->kill_ns : NEVER;
    at_ns = earlier(at_ns, earlier(run->limit_ns, run->warn_ns));
    if (run->to_tell)
        at_ns = earlier(at_ns, run->told_ns + REPORT_EVERY);
    return earlier(at_ns, run->look_ns);
}

static void make_durable(struct run *run)
{
    int fd = open("status", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    run->durable = true;
}

/* Once the folder is watched it wakes us itself; its output we look at. */
static void look(struct run *run, int64_t at_ns)
{
    watch_folder(run);
    look_at_files(run);
    bool again = run->order.launch.pattern || run->folder.fd < 0;
    run->look_ns = again ? at_ns + SECOND : NEVER;
}

static void time_passed(struct run *run)
{
    int64_t at_ns = clock_now_ns();
    if (run->over) {
        if (!run->durable && at_ns >= run->over_ns + DURABLE)
            make_durable(run);
        if (talk_has_link(&run->talk))
            run->alone_ns = at_ns;
        return;
    }
    if (at_ns >= run->look_ns)
        look(run, at_ns);
    tell_report(run);
    if (at_ns >= run->warn_ns) {
        run->warn_ns = NEVER;
        int number = run->order.launch.signal;
        signal_all(run, number ? number : SIGTERM);
    }
    if (at_ns >= run->limit_ns) {
        run->limit_ns = NEVER;
        if (run->cause == CAUSE_NONE)
            end_for(run, CAUSE_LIMIT, earlier(run->order.grace_ns, LIMIT_GRACE));
    }
    if ((run->cause != CAUSE_NONE || run->killing) && at_ns >= run->kill_ns)
        kill_children(run);
}

static void wait_for_something(struct run *run)
{
    struct pollfd fds[TALK_FDS_MAX + 2];
    uint32_t count = talk_fds(&run->talk, fds);
    bool watches = run->folder_watched && !run->over;
    fds[count] = (struct pollfd){ run->signals, POLLIN, 0 };
    fds[count + 1] = (struct pollfd){ watches ? run->folder.fd : -1, POLLIN, 0 };
    int64_t at_ns = next_ns(run), left_ns = at_ns - clock_now_ns();
    int timeout_ms = at_ns == NEVER ? -1
                     : left_ns <= 0 ? 0
                                    : (int)(earlier(left_ns, 3600 * SECOND) / MS + 1);
    if (poll(fds, count + 2, timeout_ms) > 0) {
        talk_ready(&run->talk, fds, count);
        if (fds[count].revents)
            heard_signal(run);
        if (fds[count + 1].revents && !run->over)
            look_at_files(run);
    }
    time_passed(run);
}

static bool is_done(const struct run *run)
{
    return run->collected || (run->over && !talk_has_link(&run->talk) &&
                              clock_now_ns() >= run->alone_ns + UNCOLLECTED);
}

/* --- the beginning ------------------------------------------------------------------- */

/*
 * The claim: an attempt is begun at most once, and whoever holds the lock is alive.  The
 * descriptor stays open until we end.
 */
static int claim(struct error *err)
{
    int fd = open("claim", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, -errno, "claim: %s", strerror(errno));
    struct stat stat;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &stat) < 0 || stat.st_size > 0)
        return error_set(err, -EALREADY, "this attempt was begun before");
    if (dprintf(fd, "%d\n", getpid()) < 0)
        return error_set(err, -errno, "claim: %s", strerror(errno));
    return 0;
}

static int read_launch(struct order *order, struct error *err)
{
    int fd = open("launch", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) < 0)
        return error_set(err, -errno, "launch: %s", strerror(errno));
    if (stat.st_size > LAUNCH_FILE_MAX)
        return error_set(err, -EINVAL, "launch: too long");
    char *bytes = memory_checked(
        malloc((size_t)stat.st_size + 1)); /* the order points into it for good */
    size_t count = 0;
    for (ssize_t got;
         count < (size_t)stat.st_size &&
         (got = read(fd, bytes + count, (size_t)stat.st_size - count)) > 0;)
        count += (size_t)got;
    close(fd);
    bytes[count] = '\0';
    return order_read(order, bytes, count, err);
}

static int take_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* From here on the folder is the job's owner's, and so are we, as far as files go. */
static int hand_over(const struct order *order, struct error *err)
{
    if (!order->become)
        return 0;
    if (chown(".", order->launch.uid, order->launch.gid) < 0)
        return error_set(err, -errno, "cannot hand the folder over: %s",
                         strerror(errno));
    return start_become(order, err);
}

static void begin_times(struct run *run)
{
    const struct launch *launch = &run->order.launch;
    run->started_ns = clock_now_ns();
    run->started_wall_ns = clock_read_ns(CLOCK_REALTIME);
    run->look_ns = run->started_ns + SECOND;
    run->limit_ns = run->warn_ns = NEVER;
    if (launch->limit_ns <= 0)
        return;
    run->limit_ns = run->started_ns + launch->limit_ns;
    if (launch->limit_warns && launch->warn_ns < launch->limit_ns)
        run->warn_ns = run->limit_ns - launch->warn_ns;
}

/* It could not even be started: that is how it ended. */
static void fail(struct run *run, const struct error *err)
{
    struct run_end end = { .how = RUN_FAILED,
                           .code = EXIT_NOT_STARTED,
                           .steps = run->order.steps_kept,
                           .saved = run->order.steps_kept };
    snprintf(end.why, sizeof end.why, "%.*s", RUN_WHY_MAX - 1, err->text);
    char line[RUN_LINE_MAX];
    talk_send_links(&run->talk, line, write_started(run, line, sizeof line));
    finish(run, &end);
}

/* What earlier attempts wrote is not this one's progress. */
static int64_t output_size(const struct order *order)
{
    struct stat stat_out;
    bool kept = order->attempt > 0 && stat(order->launch.out, &stat_out) == 0;
    return kept ? stat_out.st_size : 0;
}

static int start_job(struct run *run, struct error *err)
{
    const struct launch *launch = &run->order.launch;
    mkdir(launch->ckpt_dir, 0700); /* is there already, or is the job's trouble */
    int64_t size = output_size(&run->order);
    int r = launch->pattern ? follow_init(&run->follow, launch->pattern, err) : 0;
    if (r == 0)
        r = start_ranks(&run->order, run->dir, run->pids, &run->pid_count, err);
    if (r == 0 && launch->pattern)
        follow_open(&run->follow, launch->out, size);
    return r;
}

static void begin_job(struct run *run)
{
    struct error err = { "" };
    begin_times(run);
    if (start_job(run, &err) < 0) {
        fail(run, &err);
        return;
    }
    run->pids_left = run->pid_count;
    char line[RUN_LINE_MAX];
    talk_send_links(&run->talk, line, write_started(run, line, sizeof line));
}

int run_job(const char *dir, int link, struct error *err)
{
    static struct run run; /* large, and there is one */
    run = (struct run){ .dir = dir, .loss = NAN, .follow.fd = -1, .folder.fd = -1 };
    rate_init(&run.rate, RATE_MEMORY_S);
    run.talk = (struct talk){ .job_line = heard_job,
                              .run_line = heard_berthd,
                              .job_greet = greet_job,
                              .run_greet = greet_berthd,
                              .context = &run };
    if (chdir(dir) < 0)
        return error_set(err, -errno, "%s: %s", dir, strerror(errno));
    umask(022); /* of the job's files, whatever berthd's is */
    run.signals = take_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int r = claim(err);
    if (r == 0)
        r = read_launch(&run.order, err);
    if (r == 0)
        r = hand_over(&run.order, err);
    if (r == 0)
        r = talk_open(&run.talk, link, err);
    if (r < 0)
        return r;
    run.own_steps = run.order.launch.has_steps;
    run.step = run.saved = run.order.steps_kept;
    begin_job(&run);
    while (!is_done(&run))
        wait_for_something(&run);
    return 0;
}
