/* launcher_client.c - requests to berth-launch. */
#include "host/launcher_client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "base/error.h"
#include "base/memory.h"
#include "host/launcher_protocol.h"
#include "host/message.h"

#define ORDERS_FD 3
#define OPENINGS_FD 4
#define WORDS_MAX 96  /* of its command line */
#define PATIENCE_S 30 /* then berth-launch is taken for dead */

/* A file that is being opened. */
struct file_opening {
    struct file_opening *next;
    uint64_t tag;
    void (*done)(void *context, int fd);
    void *context;
};

struct launcher_client {
    pid_t pid;
    int orders, openings;
    uint32_t features;
    char cgroup[320], why[400];
    struct job_users users;
    uv_poll_t poll;
    bool watching;
    void (*gone)(void *context);
    void *context;
    struct file_opening *waiting;
    uint64_t tag_next;
};

/* --- orders ---------------------------------------------------------------------------- */

static int ask_at_length(struct launcher_client *client, const void *request,
                         size_t request_size, const int *fds, uint32_t fd_count,
                         struct launcher_reply *reply, struct error *err)
{
    int none[MESSAGE_FDS_MAX];
    uint32_t none_count = 0;
    int r = message_send(client->orders, request, request_size, fds, fd_count);
    ssize_t size = r < 0 ? r
                         : message_receive(client->orders, reply, sizeof *reply, none,
                                           &none_count, 0);
    if (size != sizeof *reply) {
        /* A late answer would be taken for that to the next request. */
        shutdown(client->orders, SHUT_RDWR);
        shutdown(client->openings, SHUT_RDWR);
        return error_set(err, -EPIPE, "berth-launch does not answer");
    }
    reply->text[sizeof reply->text - 1] = '\0';
    reply->why[sizeof reply->why - 1] = '\0';
    return 0;
}

static int ask(struct launcher_client *client, const struct launcher_request *request,
               const int *fds, uint32_t fd_count, struct launcher_reply *reply,
               struct error *err)
{
    return ask_at_length(client, request, sizeof *request, fds, fd_count, reply, err);
}

int launcher_client_start(struct launcher_client *client, uint64_t id, uint32_t attempt,
                          int order, int link, struct error *err)
{
    struct launcher_request request = { LAUNCHER_START, attempt, id };
    struct launcher_reply reply;
    int r = ask(client, &request, (int[]){ order, link }, 2, &reply, err);
    if (r == 0 && reply.error)
        r = error_set(err, -reply.error, "berth-launch: %s", strerror(reply.error));
    return r;
}

static uint32_t order_simply(struct launcher_client *client, uint32_t kind, uint64_t id,
                             uint32_t attempt)
{
    struct launcher_request request = { kind, attempt, id };
    struct launcher_reply reply = { .left = 1 };
    ask(client, &request, NULL, 0, &reply, NULL);
    return reply.left;
}

bool launcher_client_kill(struct launcher_client *client, uint64_t id, uint32_t attempt)
{
    return order_simply(client, LAUNCHER_KILL, id, attempt) == 0;
}

void launcher_client_kill_job(struct launcher_client *client, uint64_t id,
                              uint32_t attempt)
{
    order_simply(client, LAUNCHER_KILL_JOB, id, attempt);
}

void launcher_client_remove(struct launcher_client *client, uint64_t id,
                            uint32_t attempt)
{
    order_simply(client, LAUNCHER_REMOVE, id, attempt);
}

static int name_partitions(char *text, size_t size, const char *const *partitions,
                           struct error *err)
{
    size_t used = 0;
    for (uint32_t i = 0; partitions && partitions[i]; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "",
                                 partitions[i]);
        if (used >= size)
            return error_set(err, -E2BIG, "the names of the partitions are too long");
    }
    return 0;
}

int launcher_client_start_bridge(struct launcher_client *client, const char *driver,
                                 const char *const *partitions, int link, int bell,
                                 struct error *err)
{
    struct launcher_bridge_request request = { .request.kind = LAUNCHER_BRIDGE };
    struct launcher_reply reply;
    if (driver && strlen(driver) >= sizeof request.driver)
        return error_set(err, -EINVAL, "slurm_driver: want auto, libslurm or commands");
    snprintf(request.driver, sizeof request.driver, "%s", driver ? driver : "");
    int r =
        name_partitions(request.partitions, sizeof request.partitions, partitions, err);
    if (r == 0)
        r = ask_at_length(client, &request, sizeof request, (int[]){ link, bell },
                          bell < 0 ? 1 : 2, &reply, err);
    if (r == 0 && reply.error)
        r = error_set(err, -reply.error, "berth-launch: %s",
                      reply.text[0] ? reply.text : strerror(reply.error));
    return r;
}

void launcher_client_forget_job(struct launcher_client *client, uint64_t id)
{
    order_simply(client, LAUNCHER_FORGET, id, 0);
}

uint32_t launcher_client_features(const struct launcher_client *client)
{
    return client->features;
}

const char *launcher_client_cgroup(const struct launcher_client *client)
{
    return client->cgroup;
}

const char *launcher_client_why(const struct launcher_client *client)
{
    return client->why;
}

const struct job_users *launcher_client_users(const struct launcher_client *client)
{
    return &client->users;
}

/* --- files ------------------------------------------------------------------------------- */

static void finish_opening(struct launcher_client *client, uint64_t tag, int fd)
{
    struct file_opening **at = &client->waiting;
    while (*at && (*at)->tag != tag)
        at = &(*at)->next;
    struct file_opening *opening = *at;
    if (!opening) {
        if (fd >= 0)
            close(fd); /* forgotten meanwhile */
        return;
    }
    *at = opening->next;
    opening->done(opening->context, fd);
    free(opening);
}

static void on_opened(uv_poll_t *poll, int status, int events)
{
    struct launcher_client *client = poll->data;
    struct launcher_opened opened;
    int fds[MESSAGE_FDS_MAX];
    uint32_t fd_count = 1;
    (void)events;
    ssize_t size = message_receive(client->openings, &opened, sizeof opened, fds,
                                   &fd_count, MSG_DONTWAIT);
    if (size == -EAGAIN)
        return;
    if (status < 0 || size != sizeof opened) {
        uv_poll_stop(poll);
        client->gone(client->context);
        return;
    }
    finish_opening(client, opened.tag,
                   fd_count == 1 ? fds[0] : -(opened.error ? opened.error : EIO));
}

int launcher_client_open_file(void *self, uint32_t uid, const char *path,
                              void (*done)(void *context, int fd), void *context)
{
    static struct launcher_opening request; /* as long as a path can be */
    struct launcher_client *client = self;
    request = (struct launcher_opening){ .tag = ++client->tag_next, .uid = uid };
    snprintf(request.path, sizeof request.path, "%s", path);
    int r = message_send(client->openings, &request, sizeof request, NULL, 0);
    if (r < 0)
        return r;
    struct file_opening *opening = memory_checked(calloc(1, sizeof *opening));
    *opening = (struct file_opening){
        .next = client->waiting, .tag = request.tag, .done = done, .context = context
    };
    client->waiting = opening;
    return 0;
}

void launcher_client_forget(void *self, const void *context)
{
    struct launcher_client *client = self;
    for (struct file_opening **at = &client->waiting; *at;) {
        struct file_opening *opening = *at;
        if (opening->context != context) {
            at = &opening->next;
            continue;
        }
        *at = opening->next;
        free(opening);
    }
}

void launcher_client_watch(struct launcher_client *client, struct uv_loop_s *loop,
                           void (*gone)(void *context), void *context)
{
    client->gone = gone;
    client->context = context;
    uv_poll_init(loop, &client->poll, client->openings);
    client->poll.data = client;
    client->watching = true;
    uv_poll_start(&client->poll, UV_READABLE | UV_DISCONNECT, on_opened);
}

void launcher_client_unwatch(struct launcher_client *client)
{
    if (client->watching)
        uv_close((uv_handle_t *)&client->poll, NULL);
    client->watching = false;
}

/* --- the process -------------------------------------------------------------------------- */

struct launcher_words {
    const char *list[WORDS_MAX];
    uint32_t count;
};

static void add_option(struct launcher_words *words, const char *name,
                       const char *value)
{
    if (!value)
        return;
    assert(words->count + 2 < WORDS_MAX);
    words->list[words->count++] = name;
    words->list[words->count++] = value;
}

static void add_bridge_options(struct launcher_words *words,
                               const struct launcher_client_setup *setup)
{
    add_option(words, "--bridge", setup->bridge_program);
    add_option(words, "--bridge-user", setup->bridge_user);
    for (uint32_t i = 0; setup->partitions && setup->partitions[i]; i++)
        add_option(words, "--partition", setup->partitions[i]);
}

/* What leads berth-slurm to Slurm: it is trusted now, while we are root. */
static void copy_environment(char *list[3], const struct launcher_client_setup *setup)
{
    static const char *const names[] = { "PATH", "SLURM_CONF" };
    uint32_t count = 0;
    for (size_t i = 0; setup->bridge_program && i < 2; i++) {
        const char *value = getenv(names[i]);
        if (value && asprintf(&list[count++], "%s=%s", names[i], value) < 0)
            memory_exhausted();
    }
    list[count] = NULL;
}

static int spawn_launcher(struct launcher_client *client,
                          const struct launcher_client_setup *setup, int orders,
                          int openings, struct error *err)
{
    char uid[16], gid[16], min_uid[16], *env[3];
    struct launcher_words words = { { "berth-launch" }, 1 };
    snprintf(uid, sizeof uid, "%" PRIu32, setup->service_uid);
    snprintf(gid, sizeof gid, "%" PRIu32, setup->service_gid);
    snprintf(min_uid, sizeof min_uid, "%" PRIu32, setup->min_uid);
    add_option(&words, "--uid", uid);
    add_option(&words, "--gid", gid);
    if (setup->run_program) {
        add_option(&words, "--run", setup->run_dir);
        add_option(&words, "--state", setup->state_dir);
        add_option(&words, "--supervisor", setup->run_program);
    }
    if (setup->bridge_program)
        add_bridge_options(&words, setup);
    if (setup->root_jobs)
        words.list[words.count++] = "--root-jobs";
    if (setup->min_uid)
        add_option(&words, "--min-uid", min_uid);
    copy_environment(env, setup);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, orders, ORDERS_FD + 10);
    posix_spawn_file_actions_adddup2(&files, openings, OPENINGS_FD + 10);
    posix_spawn_file_actions_adddup2(&files, ORDERS_FD + 10, ORDERS_FD);
    posix_spawn_file_actions_adddup2(&files, OPENINGS_FD + 10, OPENINGS_FD);
    posix_spawn_file_actions_addclosefrom_np(&files, OPENINGS_FD + 1);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    int r = posix_spawn(&client->pid, setup->program, &files, &how,
                        (char *const *)(uintptr_t)words.list, env);
    for (char **one = env; *one; one++)
        free(*one);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return r == 0 ? 0 : error_set(err, -r, "%s: %s", setup->program, strerror(r));
}

static int greet_launcher(struct launcher_client *client, struct error *err)
{
    struct launcher_request hello = { .kind = LAUNCHER_HELLO };
    struct launcher_reply reply;
    struct timeval patience = { .tv_sec = PATIENCE_S };
    setsockopt(client->orders, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int r = ask(client, &hello, NULL, 0, &reply, err);
    if (r == 0 && reply.error)
        r = error_set(err, -reply.error, "berth-launch: %s", reply.text);
    if (r < 0)
        return r;
    client->features = reply.features;
    snprintf(client->cgroup, sizeof client->cgroup, "%s", reply.text);
    snprintf(client->why, sizeof client->why, "%s", reply.why);
    client->users = reply.users;
    return 0;
}

int launcher_client_open(struct launcher_client **ret_client,
                         const struct launcher_client_setup *setup, struct error *err)
{
    int orders[2] = { -1, -1 }, openings[2] = { -1, -1 };
    struct launcher_client *client = memory_checked(calloc(1, sizeof *client));
    int r = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, openings) < 0)
        r = error_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    if (r == 0)
        r = spawn_launcher(client, setup, orders[1], openings[1], err);
    if (orders[1] >= 0)
        close(orders[1]);
    if (openings[1] >= 0)
        close(openings[1]);
    if (openings[0] >= 0)
        fcntl(openings[0], F_SETFL, O_NONBLOCK); /* asking must not wait */
    client->orders = orders[0];
    client->openings = openings[0];
    if (r == 0)
        r = greet_launcher(client, err);
    if (r < 0) {
        launcher_client_close(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

static int connect_once(const char *path, struct error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof at.sun_path)
        return error_set(err, -ENAMETOOLONG, "%.100s: too long", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    return error_set(err, -code, "berth-launch at %s: %s", path, strerror(code));
}

int launcher_client_connect(struct launcher_client **ret_client, const char *path,
                            struct error *err)
{
    struct launcher_client *client = memory_checked(calloc(1, sizeof *client));
    client->openings = -1;
    int r = client->orders = connect_once(path, err);
    if (r >= 0)
        r = client->openings = connect_once(path, err);
    if (r >= 0) {
        fcntl(client->openings, F_SETFL, O_NONBLOCK);
        r = greet_launcher(client, err);
    }
    if (r < 0) {
        launcher_client_close(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

void launcher_client_close(struct launcher_client *client)
{
    if (!client)
        return;
    assert(!client->watching);
    while (client->waiting) {
        struct file_opening *opening = client->waiting;
        client->waiting = opening->next;
        free(opening);
    }
    if (client->orders >= 0)
        close(client->orders);
    if (client->openings >= 0)
        close(client->openings);
    if (client->pid > 0)
        waitpid(client->pid, NULL, 0);
    free(client);
}
