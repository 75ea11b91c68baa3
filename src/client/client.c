/*
 * client.c - progress out, "please stop" in, for jobs in C.
 *
 * The library runs inside a program that is not ours, and so:
 *
 *   - What has to be sent is kept as facts (the newest report, the total, the last
 *     checkpoint), not as a queue.  A peer that is slow, gone or not yet there costs
 *     nothing but the facts that newer ones replaced, and one that comes back is sent
 *     the current state.
 *   - I/O never waits, errno is left as it was, and no signal is raised.
 *   - After a fork the child closes its parent's connection before it sends anything.
 *   - Memory is allocated once, in berth_client_new().
 *
 * One connection attempt, one report and one check of the file that announces a
 * preemption per interval bound what even the fastest loop costs.
 */
#include "berth/client.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/protocol.h"

#define PUBLIC __attribute__((visibility("default")))

#define SECOND_NS INT64_C(1000000000)
#define CHECK_NS (SECOND_NS / 10) /* between two checks of the file */

/* Between two reports: a part of the time since the first, so that short jobs are followed too. */
#define REPORT_PART 20
#define REPORT_LEAST_NS (SECOND_NS / 10)

/* A number to be sent, and whether the peer has it. */
struct fact {
    uint64_t value;
    bool known, told;
};

struct berth_client {
    struct sockaddr_un peer; /* family AF_UNSPEC: no scheduler */
    int fd;                  /* -1: not connected */
    pid_t owner;             /* process that connected; a forked child did not */
    bool must_stop, greeted;
    int64_t connect_at_ns, report_at_ns, check_at_ns; /* not before */
    int64_t first_ns; /* when the first report was sent; 0: not yet */
    struct fact total, saved, step;
    double loss; /* of step; NAN: none */
    char in[PROTOCOL_LINE_MAX];
    size_t in_count;
    char out[4 * PROTOCOL_LINE_MAX]; /* lines being sent */
    size_t out_count;
    char file[]; /* that announces a preemption; "": none */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* --- the connection -------------------------------------------------------------- */

/* All facts are sent again to the next peer. */
static void close_connection(struct berth_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->in_count = client->out_count = 0;
    client->greeted = client->total.told = client->saved.told = false;
    client->step.told = false;
}

/* On a UNIX socket this succeeds or fails at once: a full backlog is a failure. */
static void try_connect(struct berth_client *client, int64_t now)
{
    if (client->peer.sun_family == AF_UNSPEC || now < client->connect_at_ns)
        return;
    client->connect_at_ns = now + SECOND_NS;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    client->fd = fd;
    if (connect(fd, (const struct sockaddr *)&client->peer, sizeof(client->peer)) < 0)
        close_connection(client);
}

/* A forked child does not repeat the facts of its parent. */
static void detach_after_fork(struct berth_client *client)
{
    pid_t self = getpid();
    if (client->owner == self)
        return;
    client->owner = self;
    client->connect_at_ns = client->report_at_ns = 0;
    close_connection(client);
    client->total.known = client->saved.known = client->step.known = false;
}

/* --- sending ---------------------------------------------------------------------- */

static void append_line(struct berth_client *client, const char *word, const char *rest)
{
    size_t room = sizeof(client->out) - client->out_count;
    int count = snprintf(client->out + client->out_count, room, "%s %s\n", word, rest);
    if (count > 0 && (size_t)count < room)
        client->out_count += (size_t)count;
}

static void append_fact(struct berth_client *client, const char *word,
                        struct fact *fact)
{
    char digits[24];
    if (!fact->known || fact->told)
        return;
    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)fact->value);
    append_line(client, word, digits);
    fact->told = true;
}

/* A number with a point, also where the program's locale writes a comma. */
static void write_loss(char *text, size_t room, double loss)
{
    char local[48];
    size_t count = 0;
    snprintf(local, sizeof(local), "%.9g", loss);
    for (const char *c = local; *c && count + 1 < room; c++)
        if (strchr("0123456789+-e", *c))
            text[count++] = *c;
        else if (count == 0 || text[count - 1] != '.') /* it may have several bytes */
            text[count++] = '.';
    text[count] = '\0';
}

static int64_t report_interval(const struct berth_client *client, int64_t now)
{
    int64_t part = (now - client->first_ns) / REPORT_PART;
    return part < REPORT_LEAST_NS ? REPORT_LEAST_NS
           : part < SECOND_NS     ? part
                                  : SECOND_NS;
}

static void append_report(struct berth_client *client, int64_t now)
{
    char loss[48] = PROTOCOL_NO_LOSS, rest[96];
    if (!isnan(client->loss))
        write_loss(loss, sizeof(loss), client->loss);
    snprintf(rest, sizeof(rest), "%llu %s", (unsigned long long)client->step.value,
             loss);
    append_line(client, PROTOCOL_REPORT, rest);
    client->step.told = true;
    if (client->first_ns == 0)
        client->first_ns = now;
    client->report_at_ns = now + report_interval(client, now);
}

/*
 * Lines are formatted only when the earlier ones are sent, so the newest facts go out.
 */
static void append_due_lines(struct berth_client *client, int64_t now, bool hurry)
{
    if (client->out_count > 0)
        return;
    if (!client->greeted)
        append_line(client, PROTOCOL_HELLO, "1");
    client->greeted = true;
    append_fact(client, PROTOCOL_TOTAL, &client->total);
    if (client->step.known && !client->step.told &&
        (hurry || now >= client->report_at_ns))
        append_report(client, now);
    append_fact(client, PROTOCOL_SAVED, &client->saved);
}

static void flush_output(struct berth_client *client)
{
    if (client->out_count == 0)
        return;
    ssize_t count =
        send(client->fd, client->out, client->out_count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            close_connection(client);
        return;
    }
    client->out_count -= (size_t)count;
    memmove(client->out, client->out + count, client->out_count);
}

/* Send what is due; in a hurry, also a report before its second is over. */
static void send_due(struct berth_client *client, bool hurry)
{
    int before = errno;
    int64_t now = now_ns();
    detach_after_fork(client);
    if (client->fd < 0)
        try_connect(client, now);
    if (client->fd >= 0) {
        append_due_lines(client, now, hurry);
        flush_output(client);
    }
    errno = before;
}

/* --- receiving -------------------------------------------------------------------- */

static void handle_line(struct berth_client *client, const char *line)
{
    size_t length = sizeof(PROTOCOL_STOP) - 1;
    if (strncmp(line, PROTOCOL_STOP, length) == 0 &&
        (line[length] == ' ' || line[length] == '\0'))
        client->must_stop = true;
}

/* Handle the complete lines received; the rest begins the next one. */
static void take_lines(struct berth_client *client)
{
    char *line = client->in, *end;
    size_t left = client->in_count;
    while ((end = memchr(line, '\n', left))) {
        *end = '\0';
        handle_line(client, line);
        left -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(client->in, line, left);
    client->in_count = left;
}

/* One read per call: a peer that sends without end does not block the caller. */
static void read_once(struct berth_client *client)
{
    ssize_t count = recv(client->fd, client->in + client->in_count,
                         sizeof(client->in) - client->in_count, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        close_connection(client);
        return;
    }
    client->in_count += (size_t)count;
    take_lines(client);
    if (client->in_count == sizeof(client->in)) /* no line is that long */
        close_connection(client);
}

/* Without a connection (a job may have more ranks than connections) check the file. */
static void check_stop_file(struct berth_client *client)
{
    int64_t now = now_ns();
    if (!client->file[0] || now < client->check_at_ns)
        return;
    client->check_at_ns = now + CHECK_NS;
    client->must_stop = access(client->file, F_OK) == 0;
}

/* --- the signal ------------------------------------------------------------------ */

static volatile sig_atomic_t terminated, spared;
static volatile pid_t terminated_owner;
static char warning_file[4096]; /* if it exists, the signal is the warning */

/*
 * The warning goes to all processes of the job, also to workers forked after the
 * handler was installed.  Workers ignore it: the process that asked
 * berth_client_must_stop() needs them until it has saved, and they end with it.  Any
 * other SIGTERM to a worker, as from a parent that is done with it, ends it as usual.
 */
static void on_terminate(int number)
{
    int before = errno;
    if (getpid() == terminated_owner) {
        terminated = 1;
    } else if (!spared && warning_file[0] && access(warning_file, F_OK) == 0) {
        spared = 1;
    } else {
        signal(number, SIG_DFL);
        raise(number); /* delivered when the handler returns */
    }
    errno = before;
}

static void catch_terminate(const char *file)
{
    struct sigaction now, ours = { .sa_handler = on_terminate, .sa_flags = SA_RESTART };
    if (terminated_owner == getpid() || sigaction(SIGTERM, NULL, &now) < 0)
        return;
    if (strlen(file) < sizeof(warning_file))
        memcpy(warning_file, file, strlen(file) + 1);
    terminated_owner = getpid();
    terminated = spared = 0;
    if (now.sa_handler == SIG_DFL)
        sigaction(SIGTERM, &ours, NULL);
}

/* --- the interface ---------------------------------------------------------------- */

static bool is_standalone(const struct berth_client *client)
{
    return !client || (client->peer.sun_family == AF_UNSPEC && !client->file[0]);
}

/* A path too long for a socket is ignored. */
static void set_peer(struct berth_client *client, const char *path)
{
    client->peer.sun_family = AF_UNSPEC;
    if (!path || !path[0] || strlen(path) >= sizeof(client->peer.sun_path))
        return;
    client->peer.sun_family = AF_UNIX;
    memcpy(client->peer.sun_path, path, strlen(path));
}

PUBLIC struct berth_client *berth_client_new(void)
{
    int before = errno;
    const char *file = getenv(PROTOCOL_ENV_FILE);
    size_t length = file ? strlen(file) : 0;
    struct berth_client *client = calloc(1, sizeof(*client) + length + 1);
    if (!client)
        return NULL;
    errno = before;
    client->fd = -1;
    client->owner = getpid();
    client->loss = (double)NAN;
    if (length > 0)
        memcpy(client->file, file, length);
    set_peer(client, getenv(PROTOCOL_ENV_SOCKET));
    if (!is_standalone(client))
        send_due(client, false);
    return client;
}

PUBLIC void berth_client_free(struct berth_client *client)
{
    if (!client)
        return;
    int before = errno;
    if (!is_standalone(client) && client->owner == getpid())
        send_due(client, true);
    if (client->fd >= 0)
        close(client->fd);
    free(client);
    errno = before;
}

static void note_step(struct berth_client *client, uint64_t iteration, double loss)
{
    if (is_standalone(client))
        return;
    detach_after_fork(client);
    client->step = (struct fact){ .value = iteration, .known = true };
    client->loss = loss;
    send_due(client, false);
}

PUBLIC int berth_client_report(struct berth_client *client, uint64_t iteration,
                               double loss)
{
    if (!isfinite(loss))
        return -EINVAL;
    note_step(client, iteration, loss);
    return 0;
}

PUBLIC void berth_client_step(struct berth_client *client, uint64_t iteration)
{
    note_step(client, iteration, (double)NAN);
}

PUBLIC void berth_client_total(struct berth_client *client, uint64_t iterations)
{
    if (is_standalone(client))
        return;
    detach_after_fork(client);
    client->total = (struct fact){ .value = iterations, .known = iterations > 0 };
    send_due(client, false);
}

PUBLIC void berth_client_saved(struct berth_client *client, uint64_t iteration)
{
    if (is_standalone(client))
        return;
    detach_after_fork(client);
    client->saved = (struct fact){ .value = iteration, .known = true };
    send_due(client, true);
}

/* Check all sources.  Facts that the scheduler needs about our end are sent first. */
static void check_for_stop(struct berth_client *client)
{
    int before = errno;
    send_due(client, false);
    if (client->fd >= 0)
        read_once(client);
    if (client->fd < 0 && !client->must_stop)
        check_stop_file(client);
    if (terminated)
        client->must_stop = true;
    if (client->must_stop)
        send_due(client, true);
    errno = before;
}

PUBLIC bool berth_client_must_stop(const struct berth_client *client)
{
    if (is_standalone(client))
        return false;
    catch_terminate(client->file);
    /*
     * Handles are created by berth_client_new() only, so none is truly const: for the
     * caller nothing changes, for us it is an opportunity to receive.
     */
    struct berth_client *mine = (struct berth_client *)(uintptr_t)client;
    if (!mine->must_stop)
        check_for_stop(mine);
    return mine->must_stop;
}
