/*
 * supervisor.c - one job's processes, from their start until berthd has recorded their
 * end.
 *
 * Its own loop around poll(): a supervisor is started for every job, and libuv would
 * cost each of them a tenth of a millisecond and as many system calls as all the rest.
 *
 * No process of a job survives its end.  The supervisor is the subreaper of all
 * orphans, so any process left behind, however it was put into the background, becomes
 * its child sooner or later: children are killed until there are none.
 *
 * Among several users it has the user's effective identity, so that it may signal the job,
 * and nothing more; but its real and saved identities are the service's, so that the job
 * may neither signal nor trace it.  So it reads nothing that the user wrote: that is done by
 * a process that has the user's rights alone (progress_reader.h).
 */
#include "run/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/protocol.h"
#include "host/cgroup.h"
#include "host/launch_order.h"
#include "host/run_protocol.h"
#include "predict/rate.h"
#include "run/progress_reader.h"
#include "run/start.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define NEVER INT64_MAX
#define EXIT_NOT_STARTED 127
#define KILL_AGAIN (20 * MS)      /* between two attempts to kill what is left */
#define UNCOLLECTED (60 * SECOND) /* then the supervisor exits unasked */
#define DURABLE (1 * SECOND)      /* an end not collected by then is synced to disk */
#define RATE_MEMORY_S 30.0        /* older reports say little about the present speed */
#define REPORT_EVERY (1 * SECOND)
#define REPORT_PART \
    20 /* of the time it has run, if that is less: short jobs count too */
#define REPORT_LEAST (SECOND / 20)
#define LIMIT_GRACE (30 * SECOND) /* longest grace period after a time limit */
#define OWN_GRACE (30 * SECOND)   /* longest grace period when the machine shuts down */
#define ANSWER (2 * SECOND)       /* longest wait for the process that reads progress */
#define SPARE_ROUNDS 50           /* of killing, in which that process is spared */

/* --- sockets --------------------------------------------------------------------------- */

/*
 * run.sock for berthd: lines in both directions.  A peer that sends nonsense or does not
 * read is disconnected; sending never waits.
 */
#define RUN_SOCKETS_BERTHDS_MAX 4 /* berthds, old and new */
#define RUN_SOCKETS_FDS_MAX (1 + RUN_SOCKETS_BERTHDS_MAX)

struct socket_peer {
    int fd; /* -1: not connected */
    struct run_lines lines;
};

struct run_sockets {
    int run_listener;
    struct socket_peer links[RUN_SOCKETS_BERTHDS_MAX];

    /* Handle a line; false disconnects the peer. */
    bool (*run_line)(void *context, char *line);
    /* A new peer has connected: send it the current state. */
    void (*run_greet)(void *context, struct socket_peer *peer);
    void *context;
};

static void init_sockets(struct run_sockets *sockets, int link)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        sockets->links[i].fd = -1;
    sockets->links[0].fd = link;
}

static void close_peer(struct socket_peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    peer->lines.count = 0;
}

static uint32_t fill_socket_fds(const struct run_sockets *sockets, struct pollfd *fds)
{
    uint32_t count = 0;
    fds[count++] = (struct pollfd){ sockets->run_listener, POLLIN, 0 };
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        fds[count++] = (struct pollfd){ sockets->links[i].fd, POLLIN, 0 };
    return count;
}

static int accept_connection(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static struct socket_peer *free_link(struct run_sockets *sockets)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        if (sockets->links[i].fd < 0)
            return &sockets->links[i];
    close_peer(
        &sockets->links[0]); /* the newest berthd replaces the oldest connection */
    return &sockets->links[0];
}

/* Only berthd's own user and root, not all of the group that may reach the socket. */
static bool is_berthd(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == getuid() || peer.uid == 0);
}

static void accept_link(struct run_sockets *sockets)
{
    int fd = accept_connection(sockets->run_listener);
    if (fd >= 0 && !is_berthd(fd)) {
        close(fd);
        return;
    }
    if (fd < 0)
        return;
    struct socket_peer *peer = free_link(sockets);
    *peer = (struct socket_peer){ .fd = fd };
    sockets->run_greet(sockets->context, peer);
}

/* One read: the rest is read in the next turn of the loop. */
static void read_peer(struct socket_peer *peer, size_t line_max,
                      bool (*line)(void *context, char *text), void *context)
{
    char bytes[4096];
    ssize_t count = recv(peer->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 ||
        !run_lines_add(&peer->lines, bytes, (size_t)count, line_max, line, context))
        close_peer(peer);
}

static void handle_ready_sockets(struct run_sockets *sockets, const struct pollfd *fds)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        if (fds[1 + i].revents)
            read_peer(&sockets->links[i], RUN_LINE_MAX, sockets->run_line,
                      sockets->context);
    if (fds[0].revents)
        accept_link(sockets);
}

static void send_to_peer(struct socket_peer *peer, const char *text, size_t length)
{
    if (peer->fd >= 0 &&
        send(peer->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length)
        close_peer(peer);
}

static void send_to_berthd(struct run_sockets *sockets, const char *text, size_t length)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        send_to_peer(&sockets->links[i], text, length);
}

static bool have_berthd(const struct run_sockets *sockets)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        if (sockets->links[i].fd >= 0)
            return true;
    return false;
}

/* Why the job has to end. */
enum cause { CAUSE_NONE, CAUSE_PREEMPTED, CAUSE_LIMIT, CAUSE_CANCEL };

struct supervisor {
    const struct launch_order *order;
    const struct started *started;
    struct run_sockets sockets;
    int signals; /* signalfd */

    pid_t pids[RANKS_MAX];
    uint32_t pid_count, pids_left;
    int code, ended_by; /* of the first rank that failed, or 0 */
    bool saved_code;    /* a process exited with the code for "saved, requeue me" */

    int64_t started_ns, started_wall_ns;
    double step, loss, total, saved;
    struct rate rate;  /* of its steps, measured */
    double rate_per_s; /* as reported by the job; 0: it does not */
    bool own_steps;    /* progress is counted in steps, not in seconds */
    bool reported, report_pending;
    int64_t report_sent_ns, step_ns; /* when the newest was sent; when it was heard */
    bool news_pending;               /* its total or its checkpoint, for berthd */
    int64_t news_sent_ns;

    char output_path[PATH_MAX], ckpt_dir[PATH_MAX];
    struct progress_reader reader;
    int64_t reader_ns; /* when it is started, if it is not there; NEVER: not again */
    uint32_t awaited;  /* its answer to this request, 0: none, until ... */
    int64_t answer_ns;

    enum cause cause;
    int64_t kill_ns, grace_ns, limit_ns, warn_ns;
    bool saved_since; /* it has saved a checkpoint since the warning */
    bool killing;     /* the remaining processes are being killed */
    uint32_t kill_rounds;
    bool ending;    /* no process is left: what the job said last is read */
    bool warned;    /* by file, socket and signal */
    bool signalled; /* processes of the job were sent a signal to end */
    bool reader_started;

    bool over, collected;
    bool written, durable;        /* the end, in 'status' */
    int64_t over_ns, unlinked_ns; /* since when no berthd has been connected */
    struct run_end end;
};

static int64_t earlier_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* --- progress ---------------------------------------------------------------------- */

/* Progress in steps, or in seconds it has run, over all attempts. */
static double steps_now(const struct supervisor *run)
{
    if (run->own_steps)
        return run->step;
    if (run->started_ns == 0)
        return run->order->steps_kept;
    return run->order->steps_kept + (double)(clock_now_ns() - run->started_ns) * 1e-9;
}

static void send_line(struct supervisor *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void send_line(struct supervisor *run, const char *fmt, ...)
{
    char line[RUN_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert(length > 0 && length < (int)sizeof line);
    send_to_berthd(&run->sockets, line, (size_t)length);
}

static size_t format_report(const struct supervisor *run, char *line, size_t size)
{
    char loss[32] = PROTOCOL_NO_LOSS;
    if (!isnan(run->loss))
        snprintf(loss, sizeof loss, "%.9g", run->loss);
    double speed = run->rate_per_s > 0 ? run->rate_per_s : rate_per_s(&run->rate);
    double age_s = run->own_steps && run->step_ns
                       ? (double)(clock_now_ns() - run->step_ns) * 1e-9
                       : 0;
    return (size_t)snprintf(line, size, "report %.17g %s %.9g %.6f\n", steps_now(run),
                            loss, speed, age_s);
}

/*
 * With the time since the start and the first step: a restarted berthd does not know
 * them.
 */
static size_t format_started(const struct supervisor *run, char *line, size_t size)
{
    double ago_s = (double)(clock_now_ns() - run->started_ns) * 1e-9;
    return (size_t)snprintf(line, size, "started %d %.9f %.17g\n", (int)run->pids[0],
                            ago_s, run->order->steps_kept);
}

/* Not before that the next report is sent. */
static int64_t next_report_ns(const struct supervisor *run)
{
    int64_t part = (run->report_sent_ns - run->started_ns) / REPORT_PART;
    if (run->report_sent_ns == 0)
        return 0;
    return run->report_sent_ns +
           (part < REPORT_LEAST ? REPORT_LEAST : earlier_ns(part, REPORT_EVERY));
}

/* Send the newest report, with its age: at most one a second, more when the job is young. */
static void send_report(struct supervisor *run)
{
    int64_t at_ns = clock_now_ns();
    if (!run->report_pending || at_ns < next_report_ns(run))
        return;
    char line[RUN_LINE_MAX];
    send_to_berthd(&run->sockets, line, format_report(run, line, sizeof line));
    run->report_pending = false;
    run->report_sent_ns = at_ns;
}

static void note_progress(struct supervisor *run, double step, double loss)
{
    if (!isnan(step)) {
        run->step = step;
        run->step_ns = clock_now_ns();
    }
    if (!isnan(loss))
        run->loss = loss;
    if (run->own_steps)
        rate_report(&run->rate, clock_now_ns(), run->step);
    run->reported = true;
    run->report_pending = true;
    send_report(run);
}

/* Send what the job said of its total and its checkpoint, at most once a second. */
static void send_news(struct supervisor *run)
{
    int64_t at_ns = clock_now_ns();
    if (!run->news_pending ||
        (run->news_sent_ns && at_ns < run->news_sent_ns + REPORT_EVERY))
        return;
    if (run->total > 0)
        send_line(run, "total %.17g\n", run->total);
    send_line(run, "saved %.17g\n", run->saved);
    run->news_pending = false;
    run->news_sent_ns = at_ns;
}

/* The job has saved a checkpoint up to 'step'. */
static void note_checkpoint(struct supervisor *run, double step)
{
    run->saved = run->own_steps ? step : steps_now(run);
    run->news_pending = true;
    send_news(run);
}

static void note_total(struct supervisor *run, double total)
{
    if (!run->own_steps && run->order->steps_kept > run->step)
        run->step = run->order->steps_kept;
    run->own_steps = true;
    run->total = total;
    run->news_pending = true;
    send_news(run);
}

/* What the job said, as the process says that reads it. */
static void note_record(struct supervisor *run, const struct progress_record *record)
{
    if (record->flags & PROGRESS_RATE) {
        run->rate_per_s = record->rate;
        run->report_pending = run->reported;
    }
    if (record->flags & PROGRESS_TOTAL)
        note_total(run, record->total);
    if (record->flags & PROGRESS_REPORTED)
        note_progress(run, record->step, record->loss);
    if (record->flags & (PROGRESS_SAVED | PROGRESS_WRITTEN)) {
        note_checkpoint(run, record->flags & PROGRESS_SAVED ? record->saved
                                                            : steps_now(run));
        run->saved_since = run->saved_since || record->flags & PROGRESS_WARNED;
    }
}

/* A checkpoint counts from the job's start on, but not twice if the reader was killed. */
static bool start_reader(struct supervisor *run)
{
    const struct launch *launch = &run->order->launch;
    int64_t wall_ns = clock_read_ns(CLOCK_REALTIME);
    bool again = run->reader_started;
    run->reader_started = true;
    run->reader_ns = clock_now_ns() + SECOND; /* if it fails, or is killed */
    if (!progress_reader_start(&run->reader,
                               &(struct progress_reader_setup){
                                   .pattern = launch->pattern,
                                   .output_path = run->output_path,
                                   .output_bytes = run->started->output_bytes,
                                   .ckpt_dir = run->ckpt_dir,
                                   .since_ns = again ? wall_ns : run->started_wall_ns,
                                   .listener = run->started->job_listener }))
        return false;
    if (run->warned)
        progress_reader_ask(
            &run->reader,
            (struct progress_warning){ run->kill_ns, run->kill_ns - clock_now_ns() });
    return true;
}

/* Have everything read that the job has said by now; false: that is impossible. */
static bool ask_reader(struct supervisor *run, struct progress_warning warning,
                       int64_t patience_ns)
{
    if (run->reader.fd < 0 && !start_reader(run))
        return false;
    run->awaited = progress_reader_ask(&run->reader, warning);
    run->answer_ns = clock_now_ns() + patience_ns;
    return run->awaited != 0;
}

static void handle_answer(struct supervisor *run);

static void handle_record(struct supervisor *run)
{
    struct progress_record record;
    int r = progress_reader_receive(&run->reader, &record);
    if (r > 0)
        note_record(run, &record);
    if (r < 0)
        progress_reader_stop(&run->reader);
    if (run->awaited && (r < 0 || (r > 0 && record.answers == run->awaited)))
        handle_answer(run);
}

/* --- stopping the job ------------------------------------------------------------- */

static void signal_all(struct supervisor *run, int number)
{
    run->signalled = run->signalled || run->pid_count > 0;
    for (uint32_t i = 0; i < run->pid_count; i++)
        kill(-run->pids[i], number);
}

/* By the file and the signal; the reader tells the ranks. */
static void warn_job(struct supervisor *run)
{
    char text[64];
    int length = snprintf(text, sizeof text, "%.9g\n", (double)run->grace_ns * 1e-9);
    unlink("preempt.new"); /* whatever the job has put there */
    int fd =
        open("preempt.new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        if (write(fd, text, (size_t)length) == length)
            rename("preempt.new", "preempt");
        close(fd);
    }
    int number = run->order->launch.signal;
    signal_all(run, number ? number : SIGTERM);
    signal_all(run, SIGCONT); /* a halted process could not react */
}

static void stop_for(struct supervisor *run, enum cause cause, int64_t grace_ns)
{
    if (run->over || run->ending || run->killing)
        return;
    int64_t kill_ns = clock_now_ns() + grace_ns;
    if (run->cause != CAUSE_NONE && cause <= run->cause) {
        /*
         * Ordered again, as after a restart of berthd: only the deadline can become
         * earlier.
         */
        run->kill_ns = kill_ns < run->kill_ns ? kill_ns : run->kill_ns;
        return;
    }
    bool first = run->cause == CAUSE_NONE;
    run->cause = cause;
    run->kill_ns = first || kill_ns < run->kill_ns ? kill_ns : run->kill_ns;
    if (cause == CAUSE_CANCEL) {
        run->awaited = 0;
        signal_all(run, SIGTERM);
        signal_all(run, SIGCONT);
    } else if (first) {
        /* Files written before the warning are no reaction to it: those are read first. */
        bool asked =
            ask_reader(run, (struct progress_warning){ run->kill_ns, grace_ns },
                       earlier_ns(ANSWER, grace_ns / 2));
        run->grace_ns = grace_ns;
        run->warned = true;
        if (!asked)
            warn_job(run);
    }
}

/* Send SIGKILL to our children; theirs become ours and are killed next time. */
static void kill_children(struct supervisor *run)
{
    run->killing = true;
    run->kill_ns = clock_now_ns() + KILL_AGAIN;
    if (run->started->kill >= 0)
        (void)!pwrite(run->started->kill, "1", 1, 0);
    signal_all(run, SIGKILL);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/task/%d/children", getpid());
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    bool spare = run->kill_rounds++ < SPARE_ROUNDS;
    for (int pid; fscanf(file, "%d", &pid) == 1;)
        if (pid != run->started->session_pid && (!spare || pid != run->reader.pid))
            kill(pid, SIGKILL);
    fclose(file);
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A rank has ended: the first failure determines the exit code. */
static void handle_rank_end(struct supervisor *run, uint32_t rank, int status)
{
    run->pids[rank] = run->pids[--run->pid_count];
    run->pids_left--;
    if (run->code == 0) {
        run->code = code_of(status);
        run->ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    if (run->code != 0 && run->pids_left > 0 && run->cause == CAUSE_NONE)
        kill_children(run); /* a gang cannot continue without one of its ranks */
}

static void handle_child_end(struct supervisor *run, pid_t pid, int status)
{
    int code = code_of(status);
    run->saved_code =
        run->saved_code || code == LAUNCH_SAVED || code == LAUNCH_SAVED_TOO;
    for (uint32_t i = 0; i < run->pid_count; i++)
        if (run->pids[i] == pid) {
            handle_rank_end(run, i, status);
            return;
        }
}

/*
 * Determine how the job ended; only the supervisor knows what happened first.  One that was to be
 * preempted and had failed by itself before its processes were signalled has failed: if it
 * were put back, it would run to its end twice.
 */
static void determine_end(struct supervisor *run, struct run_end *end)
{
    bool asked = run->cause != CAUSE_NONE;
    bool preempted = run->cause == CAUSE_PREEMPTED && run->signalled;
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
    } else if (preempted || put_back) {
        end->how = RUN_STOPPED;
        end->clean = put_back || run->saved_since;
    } else {
        end->how = RUN_FAILED;
        if (run->cause == CAUSE_LIMIT)
            snprintf(end->why, sizeof end->why, "time limit");
        else if (cgroup_count_oom_kills(run->started->oom) > 0)
            snprintf(end->why, sizeof end->why,
                     "out of memory: the kernel killed it at its limit of %" PRIu32
                     " MiB",
                     run->order->mem_mib);
        else if (run->ended_by)
            snprintf(end->why, sizeof end->why, "ended by signal %d (%s)",
                     run->ended_by, strsignal(run->ended_by));
        else
            snprintf(end->why, sizeof end->why, "exit status %d", run->code);
    }
    end->saved = end->clean ? end->steps : run->saved;
}

/*
 * Into the place that was taken before the start, so that a full disk cannot lose it; in
 * one piece, so that being killed meanwhile cannot tear it.
 */
static void write_status(struct supervisor *run, const char *text, size_t length)
{
    run->written = pwrite(run->started->status, text, length, 0) == (ssize_t)length;
}

static void record_end(struct supervisor *run, const struct run_end *end)
{
    char line[RUN_LINE_MAX];
    run->end = *end;
    run->over = true;
    run->over_ns = run->unlinked_ns = clock_now_ns();
    size_t length = run_end_write(end, line, sizeof line);
    write_status(run, line, length);
    run->news_sent_ns = 0;
    send_news(run);
    if (run->report_pending) {
        run->report_sent_ns = 0;
        send_report(run);
    }
    send_to_berthd(&run->sockets, line, length);
    progress_reader_stop(&run->reader);
    if (run->started->job_listener >= 0)
        close(run->started->job_listener);
    if (run->started->session >= 0)
        close(run->started->session);
}

/* Reap all ended children; true: none is left. */
static bool reap_children(struct supervisor *run)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0)
            handle_child_end(run, pid, status);
        else if (pid == 0 || errno != EINTR)
            return pid < 0;
    }
}

static bool is_readable(int fd)
{
    struct pollfd one = { fd, POLLIN, 0 };
    return fd >= 0 && poll(&one, 1, 0) > 0;
}

static void finish_job(struct supervisor *run)
{
    struct run_end end;
    determine_end(run, &end);
    record_end(run, &end);
}

static void handle_children(struct supervisor *run)
{
    if (run->over || run->ending)
        return;
    bool alone = reap_children(run);
    if (run->pids_left > 0)
        return;
    if (!alone) {
        /* Processes that are saving a checkpoint keep their grace period. */
        bool waits = run->cause != CAUSE_NONE && !run->killing;
        if (!waits)
            kill_children(run);
        return;
    }
    run->ending = true;
    bool reads = run->reader.fd >= 0 || run->order->launch.pattern ||
                 is_readable(run->started->job_listener);
    if (!reads || !ask_reader(run, (struct progress_warning){ 0 }, ANSWER))
        finish_job(run);
}

/* All that the job said before has been read, or that took too long. */
static void handle_answer(struct supervisor *run)
{
    run->awaited = 0;
    if (run->ending)
        finish_job(run);
    else if (run->cause != CAUSE_CANCEL)
        warn_job(run);
}

/* --- messages --------------------------------------------------------------------- */

static bool handle_berthd_line(void *context, char *line)
{
    struct supervisor *run = context;
    char *rest = line;
    const char *word = run_word(&rest), *first = word ? run_word(&rest) : NULL;
    double ms;
    if (!word)
        return true;
    if (strcmp(word, "stop") == 0 || strcmp(word, "cancel") == 0) {
        if (!run_number(first, &ms) || ms > 1e12)
            return false;
        stop_for(run, *word == 's' ? CAUSE_PREEMPTED : CAUSE_CANCEL, (int64_t)ms * MS);
    } else if (strcmp(word, "kill") == 0) {
        if (!run->over)
            kill_children(run);
    } else if (strcmp(word, "collected") == 0) {
        run->collected = run->over;
    }
    return true;
}

/* Send a newly connected berthd all that is known. */
static void greet_berthd(void *context, struct socket_peer *peer)
{
    struct supervisor *run = context;
    char line[RUN_LINE_MAX];
    send_to_peer(peer, line, format_started(run, line, sizeof line));
    int length;
    if (run->total > 0) {
        length = snprintf(line, sizeof line, "total %.17g\n", run->total);
        send_to_peer(peer, line, (size_t)length);
    }
    if (run->reported)
        send_to_peer(peer, line, format_report(run, line, sizeof line));
    length = snprintf(line, sizeof line, "saved %.17g\n", run->saved);
    send_to_peer(peer, line, (size_t)length);
    if (run->over)
        send_to_peer(peer, line, run_end_write(&run->end, line, sizeof line));
}

/* --- the loop ----------------------------------------------------------------------- */

static void handle_signals(struct supervisor *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            handle_children(run);
        else /* the machine shuts down, or a user signals the job */
            stop_for(run, CAUSE_PREEMPTED,
                     run->order->grace_ns < OWN_GRACE ? run->order->grace_ns
                                                      : OWN_GRACE);
    }
}

static int64_t next_deadline_ns(const struct supervisor *run)
{
    if (run->over) {
        int64_t at_ns =
            have_berthd(&run->sockets) ? NEVER : run->unlinked_ns + UNCOLLECTED;
        return run->durable ? at_ns : earlier_ns(at_ns, run->over_ns + DURABLE);
    }
    int64_t at_ns = run->cause != CAUSE_NONE || run->killing ? run->kill_ns : NEVER;
    at_ns = earlier_ns(at_ns, earlier_ns(run->limit_ns, run->warn_ns));
    if (run->report_pending)
        at_ns = earlier_ns(at_ns, next_report_ns(run));
    if (run->news_pending)
        at_ns = earlier_ns(at_ns, run->news_sent_ns + REPORT_EVERY);
    if (run->reader.fd < 0)
        at_ns = earlier_ns(at_ns, run->reader_ns);
    return run->awaited ? earlier_ns(at_ns, run->answer_ns) : at_ns;
}

static void make_durable(struct supervisor *run)
{
    char line[RUN_LINE_MAX];
    if (!run->written)
        write_status(run, line, run_end_write(&run->end, line, sizeof line));
    run->durable = run->written && fsync(run->started->status) == 0;
    run->over_ns = clock_now_ns(); /* if not: tried again after a while */
}

static void handle_deadlines(struct supervisor *run)
{
    int64_t at_ns = clock_now_ns();
    if (run->over) {
        if (!run->durable && at_ns >= run->over_ns + DURABLE)
            make_durable(run);
        if (have_berthd(&run->sockets))
            run->unlinked_ns = at_ns;
        return;
    }
    if (run->awaited && at_ns >= run->answer_ns)
        handle_answer(run);
    if (run->over)
        return;
    if (run->reader.fd < 0 && at_ns >= run->reader_ns)
        start_reader(run);
    send_report(run);
    send_news(run);
    if (at_ns >= run->warn_ns) {
        run->warn_ns = NEVER;
        int number = run->order->launch.signal;
        signal_all(run, number ? number : SIGTERM);
    }
    if (at_ns >= run->limit_ns) {
        run->limit_ns = NEVER;
        if (run->cause == CAUSE_NONE)
            stop_for(run, CAUSE_LIMIT, earlier_ns(run->order->grace_ns, LIMIT_GRACE));
    }
    if ((run->cause != CAUSE_NONE || run->killing) && at_ns >= run->kill_ns)
        kill_children(run);
}

/* A rank has connected, which only the reader may talk to. */
static void handle_connection(struct supervisor *run)
{
    if (run->reader.fd < 0)
        start_reader(run);
}

/* Not polled while a reader was killed a moment ago: it is started again when it is due. */
static int listener_to_poll(const struct supervisor *run)
{
    bool waits = run->reader_started && clock_now_ns() < run->reader_ns;
    return run->reader.fd >= 0 || run->over || waits ? -1 : run->started->job_listener;
}

static void wait_for_events(struct supervisor *run)
{
    struct pollfd fds[RUN_SOCKETS_FDS_MAX + 3];
    uint32_t count = fill_socket_fds(&run->sockets, fds);
    fds[count] = (struct pollfd){ run->signals, POLLIN, 0 };
    fds[count + 1] = (struct pollfd){ run->reader.fd, POLLIN, 0 };
    fds[count + 2] = (struct pollfd){ listener_to_poll(run), POLLIN, 0 };
    int64_t at_ns = next_deadline_ns(run), left_ns = at_ns - clock_now_ns();
    int timeout_ms = at_ns == NEVER ? -1
                     : left_ns <= 0
                         ? 0
                         : (int)(earlier_ns(left_ns, 3600 * SECOND) / MS + 1);
    if (poll(fds, count + 3, timeout_ms) > 0) {
        /* Before berthd's lines: a rank that connected before a warning is sent it whole. */
        if (fds[count + 2].revents)
            handle_connection(run);
        if (fds[count + 1].revents && run->reader.fd >= 0)
            handle_record(run);
        handle_ready_sockets(&run->sockets, fds);
        if (fds[count].revents)
            handle_signals(run);
    }
    handle_deadlines(run);
}

static bool is_done(const struct supervisor *run)
{
    return run->collected || (run->durable && !have_berthd(&run->sockets) &&
                              clock_now_ns() >= run->unlinked_ns + UNCOLLECTED);
}

/* --- startup ---------------------------------------------------------------------- */

static int block_signals(void)
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

static void start_clocks(struct supervisor *run)
{
    const struct launch *launch = &run->order->launch;
    run->started_ns = clock_now_ns();
    run->started_wall_ns = clock_read_ns(CLOCK_REALTIME);
    run->reader_ns = run->started_ns + SECOND; /* short jobs end before */
    run->limit_ns = run->warn_ns = NEVER;
    if (launch->limit_ns <= 0)
        return;
    run->limit_ns = run->started_ns + launch->limit_ns;
    if (launch->limit_warns && launch->warn_ns < launch->limit_ns)
        run->warn_ns = run->limit_ns - launch->warn_ns;
}

/* The job could not be started: that is its end. */
static void record_failed_start(struct supervisor *run)
{
    struct run_end end = { .how = RUN_FAILED,
                           .code = EXIT_NOT_STARTED,
                           .steps = run->order->steps_kept,
                           .saved = run->order->steps_kept };
    snprintf(end.why, sizeof end.why, "%s", run->started->why);
    record_end(run, &end);
}

static void find_paths(struct supervisor *run, const char *state_dir)
{
    const struct launch *launch = &run->order->launch;
    if (launch->out)
        snprintf(run->output_path, sizeof run->output_path, "%s", launch->out);
    else
        snprintf(run->output_path, sizeof run->output_path, "%s/log/%" PRIu64 ".out",
                 state_dir, launch->id);
    if (launch->ckpt_dir)
        snprintf(run->ckpt_dir, sizeof run->ckpt_dir, "%s", launch->ckpt_dir);
    else
        snprintf(run->ckpt_dir, sizeof run->ckpt_dir, "%s/ckpt/%" PRIu64, state_dir,
                 launch->id);
}

static void supervise(struct supervisor *run)
{
    char line[RUN_LINE_MAX];
    start_clocks(run);
    run->pid_count = run->pids_left = run->started->pid_count;
    memcpy(run->pids, run->started->pids, sizeof run->pids);
    send_to_berthd(&run->sockets, line, format_started(run, line, sizeof line));
    if (run->started->why[0])
        record_failed_start(run);
    handle_children(run); /* those that ended before their signals were awaited */
    while (!is_done(run))
        wait_for_events(run);
}

int supervisor_run(const struct started *started, const struct launch_order *order,
                   const char *state_dir, struct error *err)
{
    static struct supervisor run; /* too large for the stack */
    run = (struct supervisor){
        .order = order, .started = started, .loss = NAN, .reader.fd = -1
    };
    rate_init(&run.rate, RATE_MEMORY_S);
    run.sockets = (struct run_sockets){ .run_listener = started->run_listener,
                                        .run_line = handle_berthd_line,
                                        .run_greet = greet_berthd,
                                        .context = &run };
    init_sockets(&run.sockets, started->link);
    find_paths(&run, state_dir);
    run.signals = block_signals();
    if (run.signals < 0)
        return error_set(err, -errno, "signalfd: %s", strerror(errno));
    run.own_steps = order->launch.has_steps;
    run.step = run.saved = order->steps_kept;
    supervise(&run);
    return run.collected;
}
