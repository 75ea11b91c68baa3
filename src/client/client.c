/*
 * client.c - progress out, "please stop" in, for jobs in C.
 *
 * The program we live in is not ours, and so:
 *
 *   - What is to be said is kept as facts (the newest report, the total, the last
 *     checkpoint), not as a queue.  A peer that is slow, gone or not yet there costs
 *     nothing but the facts that newer ones replaced, and one that comes back is told
 *     where things stand.
 *   - All I/O is tried and never waited for, errno is left as it was, and no signal is
 *     raised.
 *   - After a fork the child lets go of its parent's connection before it says a word.
 *   - Memory is asked for once, in berth_client_new().
 *
 * One connection attempt, one report and one look at the file that announces a
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
#define LOOK_NS (SECOND_NS / 10) /* between two looks for the file */

/* A number to be told, and whether the peer has it. */
struct fact {
    uint64_t value;
    bool known, told;
};

struct berth_client {
    struct sockaddr_un peer; /* family AF_UNSPEC: no scheduler */
    int fd;                  /* -1: not connected              */
    pid_t owner;             /* who connected: a fork did not  */
    bool must_stop, greeted;
    int64_t connect_at_ns, report_at_ns, look_at_ns; /* not before */
    struct fact total, saved, step;
    double loss; /* of step; NAN: none */
    char in[PROTOCOL_LINE_MAX];
    size_t in_count;
    char out[4 * PROTOCOL_LINE_MAX]; /* lines that are on their way */
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

/* What was said to a peer that is gone is to be said again to the next one. */
static void hang_up(struct berth_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->in_count = client->out_count = 0;
    client->greeted = client->total.told = client->saved.told = false;
    client->step.told = false;
}

/* On a UNIX socket this succeeds or fails at once: a full backlog is a failure. */
static void reach(struct berth_client *client, int64_t now)
{
    if (client->peer.sun_family == AF_UNSPEC || now < client->connect_at_ns)
        return;
    client->connect_at_ns = now + SECOND_NS;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    client->fd = fd;
    if (connect(fd, (const struct sockaddr *)&client->peer, sizeof(client->peer)) < 0)
        hang_up(client);
}

/* What the parent has said or is about to say is not for its child to repeat. */
static void become_own(struct berth_client *client)
{
    pid_t self = getpid();
    if (client->owner == self)
        return;
    client->owner = self;
    client->connect_at_ns = client->report_at_ns = 0;
    hang_up(client);
    client->total.known = client->saved.known = client->step.known = false;
}

/* --- out ------------------------------------------------------------------------- */

static void put(struct berth_client *client, const char *word, const char *rest)
{
    size_t room = sizeof(client->out) - client->out_count;
    int count = snprintf(client->out + client->out_count, room, "%s %s\n", word, rest);
    if (count > 0 && (size_t)count < room)
        client->out_count += (size_t)count;
}

static void put_fact(struct berth_client *client, const char *word, struct fact *fact)
{
    char digits[24];
    if (!fact->known || fact->told)
        return;
    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)fact->value);
    put(client, word, digits);
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

static void put_report(struct berth_client *client, int64_t now)
{
    char loss[48] = PROTOCOL_NO_LOSS, rest[96];
    if (!isnan(client->loss))
        write_loss(loss, sizeof(loss), client->loss);
    snprintf(rest, sizeof(rest), "%llu %s", (unsigned long long)client->step.value,
             loss);
    put(client, PROTOCOL_REPORT, rest);
    client->step.told = true;
    client->report_at_ns = now + SECOND_NS;
}

/* Lines are made only when those before them are gone, so the newest facts go out. */
static void put_all(struct berth_client *client, int64_t now, bool hurry)
{
    if (client->out_count > 0)
        return;
    if (!client->greeted)
        put(client, PROTOCOL_HELLO, "1");
    client->greeted = true;
    put_fact(client, PROTOCOL_TOTAL, &client->total);
    if (client->step.known && !client->step.told &&
        (hurry || now >= client->report_at_ns))
        put_report(client, now);
    put_fact(client, PROTOCOL_SAVED, &client->saved);
}

static void push(struct berth_client *client)
{
    if (client->out_count == 0)
        return;
    ssize_t count =
        send(client->fd, client->out, client->out_count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            hang_up(client);
        return;
    }
    client->out_count -= (size_t)count;
    memmove(client->out, client->out + count, client->out_count);
}

/* Say what is due; in a hurry, also the report that its second has not come for. */
static void speak(struct berth_client *client, bool hurry)
{
    int before = errno;
    int64_t now = now_ns();
    become_own(client);
    if (client->fd < 0)
        reach(client, now);
    if (client->fd >= 0) {
        put_all(client, now, hurry);
        push(client);
    }
    errno = before;
}

/* --- in -------------------------------------------------------------------------- */

static void obey(struct berth_client *client, const char *line)
{
    size_t length = sizeof(PROTOCOL_STOP) - 1;
    if (strncmp(line, PROTOCOL_STOP, length) == 0 &&
        (line[length] == ' ' || line[length] == '\0'))
        client->must_stop = true;
}

/* Whole lines are taken out of what has come; what is left begins the next one. */
static void take_lines(struct berth_client *client)
{
    char *line = client->in, *end;
    size_t left = client->in_count;
    while ((end = memchr(line, '\n', left))) {
        *end = '\0';
        obey(client, line);
        left -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(client->in, line, left);
    client->in_count = left;
}

/* One read per call: a peer that never stops talking does not keep us. */
static void listen_once(struct berth_client *client)
{
    ssize_t count = recv(client->fd, client->in + client->in_count,
                         sizeof(client->in) - client->in_count, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        hang_up(client);
        return;
    }
    client->in_count += (size_t)count;
    take_lines(client);
    if (client->in_count == sizeof(client->in)) /* no line is that long */
        hang_up(client);
}

/* Without a connection (there may be more ranks than room) the file tells as well. */
static void look(struct berth_client *client)
{
    int64_t now = now_ns();
    if (!client->file[0] || now < client->look_at_ns)
        return;
    client->look_at_ns = now + LOOK_NS;
    client->must_stop = access(client->file, F_OK) == 0;
}

/* --- the signal ------------------------------------------------------------------ */

static volatile sig_atomic_t terminated, spared;
static volatile pid_t terminated_owner;
static char warning_file[4096]; /* whose presence says that the signal is the warning */

/*
 * The warning goes to all processes of the job, also to workers that were forked after
 * we caught the signal.  They are not asked: the one who is will need them until it has
 * saved, and they end with it.  Any other such signal to them, as from a parent that is
 * done with its workers, ends them as ever.
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
        raise(number); /* arrives when we return */
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

/* --- what is called -------------------------------------------------------------- */

static bool alone(const struct berth_client *client)
{
    return !client || (client->peer.sun_family == AF_UNSPEC && !client->file[0]);
}

/* A path that is too long for a socket cannot be one. */
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
    if (!alone(client))
        speak(client, false);
    return client;
}

PUBLIC void berth_client_free(struct berth_client *client)
{
    if (!client)
        return;
    int before = errno;
    if (!alone(client) && client->owner == getpid())
        speak(client, true);
    if (client->fd >= 0)
        close(client->fd);
    free(client);
    errno = before;
}

static void report(struct berth_client *client, uint64_t iteration, double loss)
{
    if (alone(client))
        return;
    become_own(client);
    client->step = (struct fact){ .value = iteration, .known = true };
    client->loss = loss;
    speak(client, false);
}

PUBLIC int berth_client_report(struct berth_client *client, uint64_t iteration,
                               double loss)
{
    if (!isfinite(loss))
        return -EINVAL;
    report(client, iteration, loss);
    return 0;
}

PUBLIC void berth_client_step(struct berth_client *client, uint64_t iteration)
{
    report(client, iteration, (double)NAN);
}

PUBLIC void berth_client_total(struct berth_client *client, uint64_t iterations)
{
    if (alone(client))
        return;
    become_own(client);
    client->total = (struct fact){ .value = iterations, .known = iterations > 0 };
    speak(client, false);
}

PUBLIC void berth_client_saved(struct berth_client *client, uint64_t iteration)
{
    if (alone(client))
        return;
    become_own(client);
    client->saved = (struct fact){ .value = iteration, .known = true };
    speak(client, true);
}

/* Ask all who may know.  What the scheduler will want to know of our end goes first. */
static void ask(struct berth_client *client)
{
    int before = errno;
    speak(client, false);
    if (client->fd >= 0)
        listen_once(client);
    if (client->fd < 0 && !client->must_stop)
        look(client);
    if (terminated)
        client->must_stop = true;
    if (client->must_stop)
        speak(client, true);
    errno = before;
}

PUBLIC bool berth_client_must_stop(const struct berth_client *client)
{
    if (alone(client))
        return false;
    catch_terminate(client->file);
    /* Handles are made by berth_client_new() only, so none is truly const: to the
     * caller asking changes nothing, to us it is a chance to listen. */
    struct berth_client *mine = (struct berth_client *)(uintptr_t)client;
    if (!mine->must_stop)
        ask(mine);
    return mine->must_stop;
}
