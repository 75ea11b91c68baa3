/*
 * relay.c - berth report -- CMD: a job on a compute node, with us as its supervisor.
 *
 * The clients for C and Python speak with whoever made BERTH_SOCKET (client/protocol.h).  Here
 * that is us: a loop that hears what they say and hands on signals, and a thread that passes the
 * newest facts on, once a second, so that a slow berthd keeps nobody.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/protocol.h"
#include "cmd/berth/live.h"
#include "cmd/berth/report.h"

#define AGAIN_S 10 /* after something went wrong */
#define AGAIN_MAX_S 600
#define LAST_S 2 /* the longest that the end waits for the last report */

struct guest {
    int fd;
    char line[PROTOCOL_LINE_MAX];
    size_t count;
};

struct relay {
    struct report newest; /* what is to be said */
    const char *file, *to;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool news, ending, idle;

    int listener, signals;
    struct guest guests[PROTOCOL_CONNECTIONS_MAX];
    uint32_t guest_count;
    bool stopping;
    pid_t child;
    char folder[96], path[104];
};

/* ---- passing on ---- */

static bool pass_on(struct relay *relay, const struct report *report,
                    struct report_line *line)
{
    if (relay->file)
        return report_to_file(report, relay->file) == 0;
    return report_to_berthd(report, line, relay->to) == 0;
}

static void rest(struct relay *relay, int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (!relay->ending &&
           pthread_cond_timedwait(&relay->changed, &relay->lock, &until) == 0)
        ;
}

static void *speak(void *context)
{
    struct relay *relay = context;
    struct report_line line = { NULL, false };
    int again_s = AGAIN_S;
    pthread_mutex_lock(&relay->lock);
    for (;;) {
        while (!relay->news && !relay->ending)
            pthread_cond_wait(&relay->changed, &relay->lock);
        if (!relay->news)
            break;
        struct report report = relay->newest;
        relay->news = false;
        pthread_mutex_unlock(&relay->lock);
        bool good = pass_on(relay, &report, &line);
        pthread_mutex_lock(&relay->lock);
        if (!relay->ending)
            rest(relay, good ? 1 : again_s);
        again_s = good ? AGAIN_S : again_s < AGAIN_MAX_S ? 2 * again_s : AGAIN_MAX_S;
    }
    relay->idle = true;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    call_close(line.call);
    return NULL;
}

/* ---- hearing ---- */

static void obey(struct relay *relay, const char *line)
{
    double number, loss;
    char word[24];
    int count = sscanf(line, "%*s %lf %23s", &number, word);
    struct report *newest = &relay->newest;
    bool known = true;
    pthread_mutex_lock(&relay->lock);
    if (count >= 1 && strncmp(line, PROTOCOL_TOTAL " ", 6) == 0 && number >= 1)
        newest->total = number;
    else if (count >= 1 && strncmp(line, PROTOCOL_SAVED " ", 6) == 0 && number >= 0)
        newest->saved = number;
    else if (count >= 1 && strncmp(line, PROTOCOL_REPORT " ", 7) == 0 && number >= 0) {
        newest->step = number;
        newest->loss = count == 2 && sscanf(word, "%lf", &loss) == 1 && isfinite(loss)
                           ? loss
                           : NAN;
    } else
        known = false;
    relay->news = relay->news || known;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
}

static void tell_to_stop(const struct guest *guest)
{
    (void)!send(guest->fd, PROTOCOL_STOP "\n", strlen(PROTOCOL_STOP) + 1,
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void welcome(struct relay *relay)
{
    int fd = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (relay->guest_count == PROTOCOL_CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    struct guest *guest = &relay->guests[relay->guest_count++];
    *guest = (struct guest){ .fd = fd };
    if (relay->stopping)
        tell_to_stop(guest);
}

/* False: it has gone, or talks nonsense. */
static bool listen_to(struct relay *relay, struct guest *guest)
{
    ssize_t some = recv(guest->fd, guest->line + guest->count,
                        sizeof guest->line - 1 - guest->count, MSG_DONTWAIT);
    if (some < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (some <= 0)
        return false;
    guest->count += (size_t)some;
    guest->line[guest->count] = '\0';
    char *line = guest->line;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        obey(relay, line);
    }
    guest->count = strlen(line);
    memmove(guest->line, line, guest->count + 1);
    return guest->count + 1 < sizeof guest->line;
}

static void hear_all(struct relay *relay, const struct pollfd *polls)
{
    for (uint32_t i = relay->guest_count; i-- > 0;) {
        if (!polls[2 + i].revents || listen_to(relay, &relay->guests[i]))
            continue;
        close(relay->guests[i].fd);
        relay->guests[i] = relay->guests[--relay->guest_count];
    }
}

/*
 * A client is told in words, and TERM as well; a signal of the site's own that it does not
 * expect would end it.  A program that does not speak with us gets what came.
 */
static void hand_on(struct relay *relay, int number)
{
    bool own = number == SIGUSR1 || number == SIGUSR2;
    if (own || number == SIGTERM) {
        relay->stopping = true;
        for (uint32_t i = 0; i < relay->guest_count; i++)
            tell_to_stop(&relay->guests[i]);
    }
    if (!own || relay->guest_count == 0)
        kill(relay->child, number);
}

/* Its exit status, or -1: it goes on. */
static int look_at_signals(struct relay *relay)
{
    struct signalfd_siginfo info;
    int status;
    if (read(relay->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return -1;
    if (info.ssi_signo != SIGCHLD) {
        hand_on(relay, (int)info.ssi_signo);
        return -1;
    }
    if (waitpid(relay->child, &status, WNOHANG) != relay->child)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int loop(struct relay *relay)
{
    struct pollfd polls[PROTOCOL_CONNECTIONS_MAX + 2];
    for (;;) {
        uint32_t count = relay->guest_count;
        polls[0] = (struct pollfd){ .fd = relay->signals, .events = POLLIN };
        polls[1] = (struct pollfd){ .fd = relay->listener, .events = POLLIN };
        for (uint32_t i = 0; i < count; i++)
            polls[2 + i] =
                (struct pollfd){ .fd = relay->guests[i].fd, .events = POLLIN };
        if (poll(polls, count + 2, -1) < 0)
            continue;
        hear_all(relay, polls);
        if (polls[1].revents)
            welcome(relay);
        int status = polls[0].revents ? look_at_signals(relay) : -1;
        if (status < 0)
            continue;
        for (uint32_t i = 0; i < relay->guest_count; i++) /* its last words */
            while (listen_to(relay, &relay->guests[i]) &&
                   recv(relay->guests[i].fd, polls, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
                ;
        return status;
    }
}

/* ---- beginning and end ---- */

static bool open_socket(struct relay *relay)
{
    const char *place = getenv("TMPDIR");
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    if (!place || strlen(place) > 60)
        place = "/tmp";
    snprintf(relay->folder, sizeof relay->folder, "%s/berth.XXXXXX", place);
    if (!mkdtemp(relay->folder))
        return false;
    snprintf(relay->path, sizeof relay->path, "%s/s", relay->folder);
    memcpy(name.sun_path, relay->path, strlen(relay->path));
    relay->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return relay->listener >= 0 &&
           bind(relay->listener, (struct sockaddr *)&name, sizeof name) == 0 &&
           listen(relay->listener, 64) == 0;
}

static _Noreturn void become(const struct flags *flags, char **words)
{
    execvp(words[0], words);
    int why = errno;
    command_failed(flags, "%s: %s", words[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

static void end_thread(struct relay *relay, pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_S;
    pthread_mutex_lock(&relay->lock);
    relay->ending = true;
    pthread_cond_broadcast(&relay->changed);
    while (!relay->idle &&
           pthread_cond_timedwait(&relay->changed, &relay->lock, &until) == 0)
        ;
    bool idle = relay->idle;
    pthread_mutex_unlock(&relay->lock);
    if (idle)
        pthread_join(thread, NULL);
}

int relay_run(const struct report *report, char **words)
{
    static struct relay relay; /* the thread may outlive us by a moment */
    static const int numbers[] = { SIGCHLD, SIGTERM, SIGINT,  SIGHUP,
                                   SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT };
    sigset_t set, before;
    pthread_t thread;
    relay.newest = *report;
    relay.file = getenv("BERTH_PROGRESS_FILE");
    relay.to = getenv("BERTH_REPORT_TO");
    bool useful = (relay.file && *relay.file) || (report->id && relay.to && *relay.to);
    const char *rank = getenv("SLURM_PROCID");
    if (!useful || getenv(PROTOCOL_ENV_SOCKET) || (rank && strcmp(rank, "0") != 0) ||
        !open_socket(&relay))
        become(report->flags, words); /* nobody wants to know */
    if (relay.file && !*relay.file)
        relay.file = NULL;
    pthread_mutex_init(&relay.lock, NULL);
    pthread_cond_init(&relay.changed, NULL);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    relay.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    relay.child = fork();
    if (relay.child == 0) {
        setenv(PROTOCOL_ENV_SOCKET, relay.path, 1);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        become(report->flags, words);
    }
    int status = 1;
    if (relay.child > 0 && pthread_create(&thread, NULL, speak, &relay) == 0) {
        status = loop(&relay);
        end_thread(&relay, thread);
    }
    unlink(relay.path);
    rmdir(relay.folder);
    return status;
}
