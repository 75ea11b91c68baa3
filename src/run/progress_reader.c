/* progress_reader.c - reading what a job's user can write, with the user's rights alone. */
#include "run/progress_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/protocol.h"
#include "host/pattern.h"
#include "host/run_protocol.h"

#define CHECK_MS 1000           /* output has no other way to tell that it has grown  */
#define FILES_MAX 128           /* descriptors: of ranks, and of folders being read   */
#define MEMORY_MAX (64ul << 20) /* bytes: an expression may take one of them          */
#define READS_MAX 16            /* from one rank before the supervisor is answered    */
#define LINE_MAX_BYTES 4096     /* of output: longer lines are cut                    */
#define OUTPUT_MAX (1 << 20)    /* bytes of output per read: more is skipped          */
#define SCAN_DEPTH_MAX 4        /* of checkpoint folders                              */
#define SCAN_FILES_MAX 4096     /* examined in one scan                               */
#define WRITTEN (IN_CLOSE_WRITE | IN_MOVED_TO)
#define FIXED_FDS 3 /* the supervisor, the listener, the folder           */

/* A request of the supervisor. */
struct progress_request {
    uint64_t number; /* as wide as what follows: no byte of ours goes along unset */
    struct progress_warning warning;
};

struct rank_peer {
    int fd; /* -1: not connected */
    struct run_lines lines;
};

/* The job's output as it grows, for lines that report progress. */
struct output_reader {
    struct pattern pattern;
    int fd; /* -1: nothing is read */
    int64_t offset;
    char line[LINE_MAX_BYTES];
    size_t count;
};

/*
 * When a file was last written in the checkpoint folder: by inotify, there and in the folders
 * below it; where inotify is exhausted, by the times of the files.
 */
struct checkpoint_watch {
    const char *path;
    int fd;     /* of inotify; -1: compare file times */
    bool asked; /* the first poll compares times, for files older than the watch */
    int64_t newest_ns; /* wall clock time of the newest file seen */
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

/* --- the output --------------------------------------------------------------------------- */

/* From 'offset' on; a file that cannot be read is ignored. */
static void open_output(struct output_reader *reader, const char *path, int64_t offset)
{
    struct stat stat;
    reader->count = 0;
    reader->offset = offset;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (reader->fd >= 0 && (fstat(reader->fd, &stat) < 0 || !S_ISREG(stat.st_mode))) {
        close(reader->fd); /* a pipe or a terminal has its own reader */
        reader->fd = -1;
    }
}

/* Progress bars end their lines with '\r'. */
static bool read_lines(struct output_reader *reader, const char *bytes, size_t count,
                       double *step, double *loss)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            if (reader->count < sizeof reader->line - 1)
                reader->line[reader->count++] = bytes[i] ? bytes[i] : ' ';
            continue;
        }
        reader->line[reader->count] = '\0';
        reader->count = 0;
        double new_step, new_loss;
        if (!pattern_match(&reader->pattern, reader->line, &new_step, &new_loss))
            continue;
        *step = isnan(new_step) ? *step : new_step;
        *loss = isnan(new_loss) ? *loss : new_loss;
        found = true;
    }
    return found;
}

/* Read new output; true: it reports progress, of which this is the last. */
static bool read_output(struct output_reader *reader, double *ret_step,
                        double *ret_loss)
{
    struct stat stat;
    if (reader->fd < 0 || fstat(reader->fd, &stat) < 0)
        return false;
    if (stat.st_size < reader->offset) /* it was truncated */
        reader->offset = 0;
    if (stat.st_size - reader->offset > OUTPUT_MAX) {
        reader->offset = stat.st_size - OUTPUT_MAX;
        reader->count = 0;
    }
    double step = NAN, loss = NAN;
    bool found = false;
    char bytes[16384];
    for (ssize_t got;
         reader->offset < stat.st_size &&
         (got = pread(reader->fd, bytes, sizeof bytes, reader->offset)) > 0;) {
        reader->offset += got;
        found = read_lines(reader, bytes, (size_t)got, &step, &loss) || found;
    }
    if (found) {
        *ret_step = step;
        *ret_loss = loss;
    }
    return found;
}

/* --- the checkpoint folder ----------------------------------------------------------------- */

struct folder_scan {
    struct checkpoint_watch *watch;
    int64_t newest_ns;
    uint32_t file_count;
};

/* Find the newest file at 'path' and below, and watch every folder on the way. */
static void scan_folder(struct folder_scan *scan, const char *path, int depth)
{
    if (scan->watch->fd >= 0)
        inotify_add_watch(scan->watch->fd, path,
                          WRITTEN | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat stat;
        if (scan->file_count++ >= SCAN_FILES_MAX)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(stat.st_mode)) {
            int64_t at_ns =
                stat.st_mtim.tv_sec * INT64_C(1000000000) + stat.st_mtim.tv_nsec;
            scan->newest_ns = at_ns > scan->newest_ns ? at_ns : scan->newest_ns;
        } else if (S_ISDIR(stat.st_mode) && depth < SCAN_DEPTH_MAX) {
            char below[PATH_MAX];
            int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            if (length > 0 && (size_t)length < sizeof below)
                scan_folder(scan, below, depth + 1);
        }
    }
    closedir(dir);
}

/* Whether a file is newer than all seen so far. */
static bool find_newer_file(struct checkpoint_watch *watch)
{
    struct folder_scan scan = { .watch = watch };
    scan_folder(&scan, watch->path, 0);
    bool newer = scan.newest_ns > watch->newest_ns;
    if (newer)
        watch->newest_ns = scan.newest_ns;
    return newer;
}

/* Existing files do not count, unless they are newer than 'since_ns'. */
static void watch_checkpoints(struct checkpoint_watch *watch, const char *path,
                              int64_t since_ns)
{
    *watch = (struct checkpoint_watch){ .path = path,
                                        .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                                        .newest_ns = since_ns };
    struct folder_scan scan = { .watch = watch };
    scan_folder(&scan, path, 0); /* newer files are found by the first poll */
}

/*
 * Whether files were written since the last poll; a new folder may hold some that we
 * missed.
 */
static bool read_events(struct checkpoint_watch *watch)
{
    _Alignas(struct inotify_event) char bytes[4096];
    bool written = false, folders = false;
    for (ssize_t got; (got = read(watch->fd, bytes, sizeof bytes)) > 0;)
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const void *)at;
            at += sizeof *event + event->len;
            bool is_folder = event->mask & IN_ISDIR;
            written = written || (!is_folder && event->mask & WRITTEN);
            folders = folders || is_folder || event->mask & IN_Q_OVERFLOW;
        }
    return (folders && find_newer_file(watch)) || written;
}

/* Whether a file was written, or moved here, since the last poll. */
static bool poll_checkpoints(struct checkpoint_watch *watch)
{
    if (watch->fd < 0 || !watch->asked) {
        watch->asked = true;
        return find_newer_file(watch);
    }
    return read_events(watch);
}

/* --- files -------------------------------------------------------------------------------- */

static void read_files(struct reading *reading)
{
    double step, loss;
    if (reading->reads_output && read_output(&reading->output, &step, &loss))
        note_report(reading, step, loss);
    if (poll_checkpoints(&reading->checkpoints))
        note_checkpoint(reading, PROGRESS_WRITTEN);
}

/* A pattern was checked when the job was submitted. */
static void open_files(struct reading *reading,
                       const struct progress_reader_setup *setup)
{
    reading->reads_output = setup->pattern && pattern_init(&reading->output.pattern,
                                                           setup->pattern, NULL) == 0;
    if (reading->reads_output)
        open_output(&reading->output, setup->output_path, setup->output_bytes);
    watch_checkpoints(&reading->checkpoints, setup->ckpt_dir, setup->since_ns);
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
