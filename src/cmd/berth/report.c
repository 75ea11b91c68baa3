/*
 * report.c - berth report: a job's script reports its progress.
 *
 * The report goes to the supervisor under which Berth started the job (BERTH_SOCKET), to a file
 * that berthd follows (BERTH_PROGRESS_FILE), or to berthd itself, over TCP from another host
 * (BERTH_REPORT_TO) or by its socket.  Without any of them nothing happens, so that a script
 * works without Berth.
 *
 * With a command (berth report -- CMD) this process is the supervisor of a job on a compute
 * node: the clients for C and Python connect to its BERTH_SOCKET (client/protocol.h).  A loop
 * reads their reports and forwards signals; a thread relays the newest report once a second,
 * so that a slow berthd delays no client.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "client/protocol.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/flag_values.h"

#define CREDENTIAL_MAX 4096
#define TOKEN_TRIES 5
#define RETRY_S 10 /* after a failure */
#define RETRY_MAX_S 600
#define LAST_S 2 /* longest wait for the last report to be relayed */

static const struct flag report_flags[] = {
    { "total", 't', "N", "how many steps there will be in all" },
    { "saved", 's', "N", "a checkpoint of all before this step is on disk" },
    { "job", 'j', "ID", "of this job; SLURM_JOB_ID" },
    CONNECTION_FLAGS,
    { 0 },
};

struct report {
    const struct flags *flags;
    double step, loss, total, saved; /* NAN: not given */
    uint64_t id;                     /* 0: not known  */
};

/* A connection to berthd that is kept; zero it, and close the call. */
struct report_connection {
    struct call *call;
    bool known; /* berthd has accepted its token */
};

/* ---- to the supervisor ---- */

static void append_line(char *text, size_t size, const char *word, double number)
{
    size_t count = strlen(text);
    if (!isnan(number))
        snprintf(text + count, size - count, "%s %.0f\n", word, number);
}

static int report_to_supervisor(const struct report *report, const char *path)
{
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    char text[256] = PROTOCOL_HELLO " 1\n";
    append_line(text, sizeof text, PROTOCOL_TOTAL, report->total);
    size_t count = strlen(text);
    if (!isnan(report->step) && !isnan(report->loss))
        snprintf(text + count, sizeof text - count, PROTOCOL_REPORT " %.0f %.9g\n",
                 report->step, report->loss);
    else if (!isnan(report->step))
        snprintf(text + count, sizeof text - count,
                 PROTOCOL_REPORT " %.0f " PROTOCOL_NO_LOSS "\n", report->step);
    append_line(text, sizeof text, PROTOCOL_SAVED, report->saved);
    if (strlen(path) >= sizeof peer.sun_path)
        return command_failed(report->flags, "BERTH_SOCKET: is too long");
    memcpy(peer.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool said = fd >= 0 && connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0 &&
                send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
    int why = errno;
    if (fd >= 0)
        close(fd);
    return said ? 0 : command_failed(report->flags, "%s: %s", path, strerror(why));
}

/* ---- into a file ---- */

static int report_to_file(const struct report *report, const char *path)
{
    char text[128];
    if (isnan(report->step))
        return 0;
    int count = snprintf(text, sizeof text, "%.0f", report->step);
    count += isnan(report->loss)
                 ? snprintf(text + count, sizeof text - (size_t)count, " -")
                 : snprintf(text + count, sizeof text - (size_t)count, " %.9g",
                            report->loss);
    if (!isnan(report->total))
        count +=
            snprintf(text + count, sizeof text - (size_t)count, " %.0f", report->total);
    text[count++] = '\n';
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    bool said = fd >= 0 && write(fd, text, (size_t)count) == count;
    int why = errno;
    if (fd >= 0)
        close(fd);
    return said ? 0 : command_failed(report->flags, "%s: %s", path, strerror(why));
}

/* ---- to berthd ---- */

/* Get a credential from munge for this purpose alone; false after a message. */
static bool ask_munge(const struct report *report, char *credential, size_t size)
{
    const char *at = getenv("BERTH_MUNGE_SOCKET");
    char purpose[64];
    int out[2];
    snprintf(purpose, sizeof purpose, "--string=berth progress %" PRIu64, report->id);
    if (pipe2(out, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execlp("munge", "munge", purpose, at ? "--socket" : NULL, at, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    size_t count = 0;
    for (ssize_t some; pid > 0 && count + 1 < size &&
                       (some = read(out[0], credential + count, size - 1 - count)) > 0;)
        count += (size_t)some;
    close(out[0]);
    credential[count] = '\0';
    credential[strcspn(credential, "\n")] = '\0';
    int status = -1;
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (status == 0 && credential[0])
        return true;
    command_failed(report->flags,
                   WIFEXITED(status) && WEXITSTATUS(status) == 127
                       ? "munge is not installed here: report through a file instead"
                       : "munge gives no credential: does munged run here?");
    return false;
}

/* The job's token; 0, or an exit status. */
static int fetch_token(const struct report *report, struct call *call)
{
    char path[64], credential[CREDENTIAL_MAX];
    struct error err = { "" };
    int r = -EIO;
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/token", report->id);
    call_set_token(call, NULL);
    /* Many jobs may start at once.  A credential is valid for one try. */
    for (int i = 0; r == -EIO && i < TOKEN_TRIES; i++) {
        struct json *answer = NULL, *body = json_new_object();
        if (i > 0)
            nanosleep(&(struct timespec){ .tv_sec = i }, NULL);
        if (!ask_munge(report, credential, sizeof credential)) {
            json_free(body);
            return 1;
        }
        json_put_text(body, "munge", credential);
        r = call_json(call, "POST", path, body, &answer, &err);
        if (r == 0)
            call_set_token(call, json_text_or(answer, "token", ""));
        json_free(answer);
        json_free(body);
    }
    return r < 0 ? command_failed(report->flags, "%s", err.text) : 0;
}

static void put_number(struct json *body, const char *key, double number)
{
    if (!isnan(number))
        json_put_number(body, key, number);
}

static int report_to_berthd(const struct report *report,
                            struct report_connection *connection, const char *address)
{
    struct error err = { "" };
    char path[64];
    int r = connection->call ? 0 : call_open(&connection->call, address, &err);
    if (r < 0)
        return command_status(report->flags, r, &err);
    bool far = strncmp(call_address(connection->call), "http", 4) == 0;
    int status = far && !connection->known && !getenv("BERTH_TOKEN")
                     ? fetch_token(report, connection->call)
                     : 0;
    if (status)
        return status;
    struct json *body = json_new_object();
    put_number(body, "step", report->step);
    put_number(body, "loss", report->loss);
    put_number(body, "total", report->total);
    put_number(body, "saved", report->saved);
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/progress", report->id);
    r = call_json(connection->call, "POST", path, body, NULL, &err);
    json_free(body);
    connection->known = r == 0;
    return r < 0 ? command_failed(report->flags, "%s", err.text) : 0;
}

static int report_once_to_berthd(const struct report *report, const char *address)
{
    struct report_connection connection = { NULL, false };
    int status = report_to_berthd(report, &connection, address);
    call_close(connection.call);
    return status;
}

/* ---- relaying the reports of a command ---- */

struct relay_client {
    int fd;
    char line[PROTOCOL_LINE_MAX];
    size_t count;
};

struct relay {
    struct report newest; /* to be relayed */
    const char *file, *to;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool pending, ending, idle;

    int listener, signals;
    struct relay_client clients[PROTOCOL_CONNECTIONS_MAX];
    uint32_t client_count;
    bool stopping;
    pid_t child;
    char folder[96], path[104];
};

static bool relay_report(struct relay *relay, const struct report *report,
                         struct report_connection *connection)
{
    if (relay->file)
        return report_to_file(report, relay->file) == 0;
    return report_to_berthd(report, connection, relay->to) == 0;
}

static void wait_before_next(struct relay *relay, int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (!relay->ending &&
           pthread_cond_timedwait(&relay->changed, &relay->lock, &until) == 0)
        ;
}

static void *relay_thread(void *context)
{
    struct relay *relay = context;
    struct report_connection connection = { NULL, false };
    int retry_s = RETRY_S;
    pthread_mutex_lock(&relay->lock);
    for (;;) {
        while (!relay->pending && !relay->ending)
            pthread_cond_wait(&relay->changed, &relay->lock);
        if (!relay->pending)
            break;
        struct report report = relay->newest;
        relay->pending = false;
        pthread_mutex_unlock(&relay->lock);
        bool good = relay_report(relay, &report, &connection);
        pthread_mutex_lock(&relay->lock);
        if (!relay->ending)
            wait_before_next(relay, good ? 1 : retry_s);
        retry_s = good ? RETRY_S : retry_s < RETRY_MAX_S ? 2 * retry_s : RETRY_MAX_S;
    }
    relay->idle = true;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    call_close(connection.call);
    return NULL;
}

static void apply_line(struct relay *relay, const char *line)
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
    relay->pending = relay->pending || known;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
}

static void send_stop(const struct relay_client *client)
{
    (void)!send(client->fd, PROTOCOL_STOP "\n", strlen(PROTOCOL_STOP) + 1,
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void accept_client(struct relay *relay)
{
    int fd = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (relay->client_count == PROTOCOL_CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    struct relay_client *client = &relay->clients[relay->client_count++];
    *client = (struct relay_client){ .fd = fd };
    if (relay->stopping)
        send_stop(client);
}

/* Read a client's lines; false if it has closed the connection or sends no lines. */
static bool read_client(struct relay *relay, struct relay_client *client)
{
    ssize_t some = recv(client->fd, client->line + client->count,
                        sizeof client->line - 1 - client->count, MSG_DONTWAIT);
    if (some < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (some <= 0)
        return false;
    client->count += (size_t)some;
    client->line[client->count] = '\0';
    char *line = client->line;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        apply_line(relay, line);
    }
    client->count = strlen(line);
    memmove(client->line, line, client->count + 1);
    return client->count + 1 < sizeof client->line;
}

static void read_clients(struct relay *relay, const struct pollfd *polls)
{
    for (uint32_t i = relay->client_count; i-- > 0;) {
        if (!polls[2 + i].revents || read_client(relay, &relay->clients[i]))
            continue;
        close(relay->clients[i].fd);
        relay->clients[i] = relay->clients[--relay->client_count];
    }
}

/*
 * Clients are told to stop by a message, and the command gets SIGTERM as well.  A signal that
 * the site has chosen, USR1 or USR2, would end a command that does not expect it, so it is
 * forwarded only if no client is connected.
 */
static void forward_signal(struct relay *relay, int number)
{
    bool own = number == SIGUSR1 || number == SIGUSR2;
    if (own || number == SIGTERM) {
        relay->stopping = true;
        for (uint32_t i = 0; i < relay->client_count; i++)
            send_stop(&relay->clients[i]);
    }
    if (!own || relay->client_count == 0)
        kill(relay->child, number);
}

/* The command's exit status, or -1 while it runs. */
static int handle_signal(struct relay *relay)
{
    struct signalfd_siginfo info;
    int status;
    if (read(relay->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return -1;
    if (info.ssi_signo != SIGCHLD) {
        forward_signal(relay, (int)info.ssi_signo);
        return -1;
    }
    if (waitpid(relay->child, &status, WNOHANG) != relay->child)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int relay_loop(struct relay *relay)
{
    struct pollfd polls[PROTOCOL_CONNECTIONS_MAX + 2];
    for (;;) {
        uint32_t count = relay->client_count;
        polls[0] = (struct pollfd){ .fd = relay->signals, .events = POLLIN };
        polls[1] = (struct pollfd){ .fd = relay->listener, .events = POLLIN };
        for (uint32_t i = 0; i < count; i++)
            polls[2 + i] =
                (struct pollfd){ .fd = relay->clients[i].fd, .events = POLLIN };
        if (poll(polls, count + 2, -1) < 0)
            continue;
        read_clients(relay, polls);
        if (polls[1].revents)
            accept_client(relay);
        int status = polls[0].revents ? handle_signal(relay) : -1;
        if (status < 0)
            continue;
        for (uint32_t i = 0; i < relay->client_count; i++) /* its last reports */
            while (read_client(relay, &relay->clients[i]) &&
                   recv(relay->clients[i].fd, polls, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
                ;
        return status;
    }
}

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

static _Noreturn void exec_command(const struct flags *flags, char **words)
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

static int relay_run(const struct report *report, char **words)
{
    static struct relay relay; /* the thread may outlive this function */
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
        exec_command(report->flags, words); /* there is nowhere to report to */
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
        exec_command(report->flags, words);
    }
    int status = 1;
    if (relay.child > 0 && pthread_create(&thread, NULL, relay_thread, &relay) == 0) {
        status = relay_loop(&relay);
        end_thread(&relay, thread);
    }
    unlink(relay.path);
    rmdir(relay.folder);
    return status;
}

/* ---- the command ---- */

static int read_arguments(struct report *report)
{
    const struct flags *flags = report->flags;
    const char *job = flags_get(flags, "job");
    const char *said = job ? job : getenv("SLURM_JOB_ID");
    report->total = flags_number(flags, "total", 1, 1e15, NAN);
    report->saved = flags_number(flags, "saved", 0, 1e15, NAN);
    if (said && !flag_value_count(said, INT64_MAX, &report->id))
        return command_wrong(flags, "\"%.60s\" is no job: want a number", said);
    if (flags->dashes)
        return flags->word_count > 0 ? 0 : command_wrong(flags, "want a command");
    if (flags->word_count > 2)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[2]);
    if (flags->word_count > 0 && (!units_number(flags->words[0], &report->step) ||
                                  !(report->step >= 0 && report->step <= 1e15)))
        return command_wrong(flags, "\"%.60s\" is no step: want a number",
                             flags->words[0]);
    if (flags->word_count > 1 && strcmp(flags->words[1], "-") != 0 &&
        (!units_number(flags->words[1], &report->loss) || !isfinite(report->loss)))
        return command_wrong(flags, "\"%.60s\" is no loss: want a number",
                             flags->words[1]);
    if (isnan(report->step) && isnan(report->total) && isnan(report->saved))
        return command_wrong(flags, "want a step, --total or --saved");
    return 0;
}

static int report_run(const struct flags *flags)
{
    struct report report = { flags, NAN, NAN, NAN, NAN, 0 };
    const char *supervisor = getenv(PROTOCOL_ENV_SOCKET);
    const char *file = getenv("BERTH_PROGRESS_FILE");
    const char *to = getenv("BERTH_REPORT_TO");
    int status = read_arguments(&report);
    if (status)
        return status;
    if (flags->dashes)
        return relay_run(&report, flags->words);
    if (flags_get(flags, "socket") && report.id)
        return report_once_to_berthd(&report, flags_get(flags, "socket"));
    if (supervisor && *supervisor && !flags_get(flags, "job"))
        return report_to_supervisor(&report, supervisor);
    if (file && *file)
        return report_to_file(&report, file);
    if (report.id && to && *to)
        return report_once_to_berthd(&report, to);
    if (report.id && (flags_get(flags, "job") || getenv("BERTH_ADDR")))
        return report_once_to_berthd(&report, NULL);
    return 0; /* there is nowhere to report to */
}

const struct command command_report = {
    .name = "report",
    .group = "Use",
    .brief = "in a job's script: say how far it is",
    .usage = "STEP [LOSS] [flags] | -- CMD…",
    .flags = report_flags,
    .more =
        "Without Berth around it does nothing, so it may stay in the script. With a\n"
        "command it runs that, and passes on what its client of Berth's reports.",
    .run = report_run,
};
