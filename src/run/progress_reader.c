/* progress_reader.c - reading what a job's user can write, with the user's rights alone. */
#include "run/progress_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/protocol.h"
#include "host/run_protocol.h"
#include "run/checkpoint_watch.h"
#include "run/output_reader.h"

#define CHECK_MS 1000           /* output has no other way to tell that it has grown  */
#define FILES_MAX 128           /* descriptors: of ranks, and of folders being read   */
#define MEMORY_MAX (64ul << 20) /* bytes: an expression may take one of them          */
#define READS_MAX 16            /* from one rank before the supervisor is answered    */
#define FIXED_FDS 3             /* the supervisor, the listener, the folder           */

/* A request of the supervisor. */
struct progress_request {
    uint64_t number; /* as wide as what follows: no byte of ours goes along unset */
    struct progress_warning warning;
};

struct rank_peer {
    int fd; /* -1: not connected */
    struct run_lines lines;
};

/* The process itself. */
struct reading {
    int supervisor, listener;
    struct rank_peer ranks[PROTOCOL_CONNECTIONS_MAX];
    uint32_t rank_count; /* elements used so far */
    bool full;           /* no descriptor is left: wait until a rank disconnects */
    bool reads_output;
    struct output_reader output;
    struct checkpoint_watch checkpoints;
    int64_t kill_ns; /* 0: the job was not warned */
    struct progress_record record;
};

/* --- records --------------------------------------------------------------------------- */

/* The supervisor always reads, so this waits for a moment at most. */
static void send_record(struct reading *reading, uint32_t answers)
{
    if (reading->record.flags == 0 && answers == 0)
        return;
    reading->record.answers = answers;
    if (send(reading->supervisor, &reading->record, sizeof reading->record,
             MSG_NOSIGNAL) < 0)
        _exit(0);
    reading->record = (struct progress_record){ .step = NAN, .loss = NAN };
}

static void note_report(struct reading *reading, double step, double loss)
{
    struct progress_record *record = &reading->record;
    record->flags |= PROGRESS_REPORTED;
    record->step = isnan(step) ? record->step : step;
    record->loss = isnan(loss) ? record->loss : loss;
}

static void note_checkpoint(struct reading *reading, enum progress_flag how)
{
    reading->record.flags |= how;
    reading->record.flags |= reading->kill_ns ? PROGRESS_WARNED : 0;
}

/* --- lines of the job -------------------------------------------------------------------- */

static bool handle_report(struct reading *reading, const char *first, char *rest)
{
    double step, loss = NAN;
    const char *second = run_word(&rest);
    char *end;
    if (!run_number(first, &step) || !second)
        return false;
    if (strcmp(second, PROTOCOL_NO_LOSS) != 0) {
        loss = strtod(second, &end);
        if (*end != '\0' || end == second)
            return false;
    }
    note_report(reading, step, isfinite(loss) ? loss : NAN);
    return true;
}

static bool handle_line(void *context, char *line)
{
    struct reading *reading = context;
    struct progress_record *record = &reading->record;
    char *rest = line;
    const char *word = run_word(&rest), *first = word ? run_word(&rest) : NULL;
    if (!word)
        return true;
    if (strcmp(word, PROTOCOL_REPORT) == 0)
        return handle_report(reading, first, rest);
    if (strcmp(word, PROTOCOL_TOTAL) == 0) {
        if (!run_number(first, &record->total) || record->total <= 0)
            return false;
        record->flags |= PROGRESS_TOTAL;
    } else if (strcmp(word, PROTOCOL_SAVED) == 0) {
        if (!run_number(first, &record->saved))
            return false;
        note_checkpoint(reading, PROGRESS_SAVED);
    } else if (strcmp(word, PROTOCOL_RATE) == 0) {
        if (!run_number(first, &record->rate))
            return false;
        record->flags |= PROGRESS_RATE;
    }
    return true;
}

/* --- ranks -------------------------------------------------------------------------------- */

static void close_rank(struct reading *reading, struct rank_peer *peer)
{
    close(peer->fd);
    peer->fd = -1;
    reading->full = false;
}

/* Sending never waits: a rank that does not read is disconnected. */
static void send_stop(struct reading *reading, struct rank_peer *peer, int64_t left_ns)
{
    char text[64];
    int length = snprintf(text, sizeof text, PROTOCOL_STOP " %.9g\n",
                          left_ns > 0 ? (double)left_ns * 1e-9 : 0);
    if (peer->fd >= 0 &&
        send(peer->fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) != length)
        close_rank(reading, peer);
}

static struct rank_peer *find_free_peer(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->rank_count; i++)
        if (reading->ranks[i].fd < 0)
            return &reading->ranks[i];
    return reading->rank_count < PROTOCOL_CONNECTIONS_MAX
               ? &reading->ranks[reading->rank_count++]
               : NULL;
}

/* False: there is none. */
static bool accept_rank(struct reading *reading)
{
    int fd = accept4(reading->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        reading->full = errno == EMFILE || errno == ENFILE;
        return false;
    }
    struct rank_peer *peer = find_free_peer(reading);
    if (!peer) {
        close(fd);
        return true;
    }
    *peer = (struct rank_peer){ .fd = fd };
    if (reading->kill_ns)
        send_stop(reading, peer, reading->kill_ns - clock_now_ns());
    return true;
}

/* False: there is no more now. */
static bool read_rank(struct reading *reading, struct rank_peer *peer)
{
    char bytes[4096];
    ssize_t count = recv(peer->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (count > 0 && run_lines_add(&peer->lines, bytes, (size_t)count,
                                   PROTOCOL_LINE_MAX, handle_line, reading))
        return true;
    close_rank(reading, peer);
    return false;
}

/* --- files -------------------------------------------------------------------------------- */

static void read_files(struct reading *reading)
{
    double step, loss;
    if (reading->reads_output && output_reader_read(&reading->output, &step, &loss))
        note_report(reading, step, loss);
    if (checkpoint_watch_poll(&reading->checkpoints))
        note_checkpoint(reading, PROGRESS_WRITTEN);
}

/* A pattern was checked when the job was submitted. */
static void open_files(struct reading *reading,
                       const struct progress_reader_setup *setup)
{
    reading->reads_output =
        setup->pattern &&
        output_reader_init(&reading->output, setup->pattern, NULL) == 0;
    if (reading->reads_output)
        output_reader_open(&reading->output, setup->output_path, setup->output_bytes);
    checkpoint_watch_open(&reading->checkpoints, setup->ckpt_dir, setup->since_ns);
}

/* --- the loop ------------------------------------------------------------------------------ */

/* All that the job has said by now, as far as it comes to an end. */
static void read_all(struct reading *reading)
{
    for (int i = 0; i < PROTOCOL_CONNECTIONS_MAX && accept_rank(reading); i++)
        continue;
    for (uint32_t i = 0; i < reading->rank_count; i++)
        for (int reads = 0; reads < READS_MAX && reading->ranks[i].fd >= 0; reads++)
            if (!read_rank(reading, &reading->ranks[i]))
                break;
    read_files(reading);
}

static void handle_request(struct reading *reading)
{
    struct progress_request request;
    if (recv(reading->supervisor, &request, sizeof request, 0) != sizeof request)
        _exit(0); /* the job is over, or the supervisor has gone */
    read_all(reading);
    send_record(reading, (uint32_t)request.number);
    if (request.warning.kill_ns == 0)
        return;
    reading->kill_ns =
        request.warning.kill_ns; /* from now on it reacts to the warning */
    for (uint32_t i = 0; i < reading->rank_count; i++)
        send_stop(reading, &reading->ranks[i], request.warning.grace_ns);
}

static void wait_for_input(struct reading *reading)
{
    struct pollfd fds[FIXED_FDS + PROTOCOL_CONNECTIONS_MAX];
    uint32_t rank_count = reading->rank_count;
    bool timed = reading->reads_output || reading->checkpoints.fd < 0 || reading->full;
    fds[0] = (struct pollfd){ reading->supervisor, POLLIN, 0 };
    fds[1] = (struct pollfd){ reading->full ? -1 : reading->listener, POLLIN, 0 };
    fds[2] = (struct pollfd){ reading->checkpoints.fd, POLLIN, 0 };
    for (uint32_t i = 0; i < rank_count; i++)
        fds[FIXED_FDS + i] = (struct pollfd){ reading->ranks[i].fd, POLLIN, 0 };
    int count = poll(fds, FIXED_FDS + rank_count, timed ? CHECK_MS : -1);
    reading->full = reading->full && count > 0;
    if (count > 0 && fds[1].revents)
        accept_rank(reading);
    for (uint32_t i = 0; count > 0 && i < rank_count; i++)
        if (fds[FIXED_FDS + i].revents && reading->ranks[i].fd >= 0)
            read_rank(reading, &reading->ranks[i]);
    if (count == 0 || fds[2].revents)
        read_files(reading);
    send_record(reading, 0);
    if (count > 0 && fds[0].revents)
        handle_request(reading);
}

/* --- the process --------------------------------------------------------------------------- */

static void limit_resource(__rlimit_resource_t resource, rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return;
    limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
}

/* It starts no process, writes no file and leaves no core. */
static void limit_resources(void)
{
    limit_resource(RLIMIT_NPROC, 0);
    limit_resource(RLIMIT_FSIZE, 0);
    limit_resource(RLIMIT_CORE, 0);
    limit_resource(RLIMIT_NOFILE, FILES_MAX);
#ifndef __SANITIZE_ADDRESS__ /* its shadow takes terabytes */
    limit_resource(RLIMIT_DATA, MEMORY_MAX);
#endif
}

/* All descriptors but two: the others speak for berthd, or say that the supervisor lives. */
static void close_others(int one, int other)
{
    unsigned low = (unsigned)(one < other ? one : other);
    unsigned high = (unsigned)(one < other ? other : one);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            _exit(1);
    if (low > 3)
        close_range(3, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    if (close_range(high + 1, ~0u, 0) < 0)
        _exit(1);
}

/* The service's identity goes for good; the kernel ends us with the supervisor. */
static void give_up_rights(pid_t supervisor)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    sigset_t none;
    sigemptyset(&none);
    /* A user who may signal the reader must reach nothing else by its process group. */
    if (setpgid(0, 0) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != supervisor)
        _exit(1);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_reading(const struct progress_reader_setup *setup,
                                  int channel, pid_t supervisor)
{
    static struct reading reading; /* too large for the stack */
    close_others(channel, setup->listener);
    give_up_rights(supervisor);
    limit_resources();
    reading = (struct reading){ .supervisor = channel,
                                .listener = setup->listener,
                                .record = { .step = NAN, .loss = NAN } };
    open_files(&reading, setup);
    for (;;)
        wait_for_input(&reading);
}

/* --- the supervisor's side ------------------------------------------------------------------ */

/*
 * Not by fork(): a child that sends no signal when it ends is not found by the supervisor's
 * waitpid() for the job's processes.
 */
static pid_t fork_unnoticed(void)
{
    return (pid_t)syscall(SYS_clone, 0ul, 0ul, 0ul, 0ul, 0ul);
}

bool progress_reader_start(struct progress_reader *reader,
                           const struct progress_reader_setup *setup)
{
    int pair[2];
    pid_t supervisor = getpid();
    while (waitpid(-1, NULL, __WCLONE | WNOHANG) > 0) /* those that came before */
        continue;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    pid_t pid = fork_unnoticed();
    if (pid == 0)
        run_reading(setup, pair[1], supervisor);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return false;
    }
    *reader = (struct progress_reader){ .pid = pid, .fd = pair[0] };
    return true;
}

/* It may hang in a file system: then it is left to the kernel. */
void progress_reader_stop(struct progress_reader *reader)
{
    if (reader->fd < 0)
        return;
    close(reader->fd);
    kill(reader->pid, SIGKILL);
    waitpid(reader->pid, NULL, __WALL | WNOHANG);
    *reader = (struct progress_reader){ .fd = -1 };
}

uint32_t progress_reader_ask(struct progress_reader *reader,
                             struct progress_warning warning)
{
    struct progress_request request = { .number = reader->asked + 1,
                                        .warning = warning };
    if (reader->fd < 0 || send(reader->fd, &request, sizeof request,
                               MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof request)
        return 0;
    return ++reader->asked;
}

static bool is_number(double number)
{
    return isfinite(number) && number >= 0;
}

static bool is_sound(const struct progress_record *record)
{
    return (isnan(record->step) || is_number(record->step)) &&
           (isnan(record->loss) || isfinite(record->loss)) &&
           is_number(record->total) && is_number(record->rate) &&
           is_number(record->saved) &&
           (!(record->flags & PROGRESS_TOTAL) || record->total > 0);
}

int progress_reader_receive(struct progress_reader *reader,
                            struct progress_record *record)
{
    ssize_t count = recv(reader->fd, record, sizeof *record, MSG_DONTWAIT | MSG_TRUNC);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return count == sizeof *record && is_sound(record) ? 1 : -1;
}
