/*
 * local_supervisor.c - the supervisor of an attempt: its order, its start, the connection
 * to it, and its end.
 *
 * For one user, berthd does all of it with its own rights.  Among several, berth-launch
 * does what needs root's.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "executor/local/local_internal.h"
#include "host/launch_order.h"
#include "host/launcher_client.h"
#include "host/output_path.h"
#include "model/cluster.h"

#define STARTER_FD 3 /* its socket, in the starter */

static struct launcher_client *launcher_of(const struct local_run *run)
{
    return run->local->setup.launcher;
}

static void name_of(const struct local_run *run, char name[ATTEMPT_NAME_MAX])
{
    attempt_name(name, run->id, run->attempt);
}

bool local_cgroup(const struct local_run *run, char path[CGROUP_PATH_MAX])
{
    char name[ATTEMPT_NAME_MAX];
    const struct attempts *attempts = &run->local->attempts;
    name_of(run, name);
    return cgroup_path(&attempts->cgroups, name, path);
}

/* --- the connection ------------------------------------------------------------------ */

static void handle_closed(uv_handle_t *handle)
{
    struct local_run *run = handle->data;
    run->closing = false;
    run->polled = false;
    if (!run->local)
        free(run); /* the run was dropped meanwhile */
}

void local_link_close(struct local_run *run)
{
    if (run->polled && !run->closing) {
        run->closing = true;
        uv_close((uv_handle_t *)&run->link, handle_closed);
    }
    if (run->fd >= 0)
        close(run->fd);
    run->fd = -1;
    run->lines.count = 0;
}

bool local_send(struct local_run *run, const char *fmt, ...)
{
    char line[RUN_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert(length > 0 && length < (int)sizeof line);
    return run->fd >= 0 /* a supervisor that does not read will be found dead */
           &&
           send(run->fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) == length;
}

static void read_link(uv_poll_t *handle, int status, int events)
{
    struct local_run *run = handle->data;
    char bytes[4096];
    if (run->fd < 0)
        return;
    ssize_t count = recv(run->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 || status < 0 ||
        !run_lines_add(&run->lines, bytes, (size_t)count, RUN_LINE_MAX,
                       local_handle_message, run))
        local_handle_lost_link(run);
}

static void open_link(struct local_run *run, int fd)
{
    assert(!run->polled);
    run->fd = fd;
    uv_poll_init(run->local->setup.loop, &run->link, fd);
    run->link.data = run;
    run->polled = true;
    uv_poll_start(&run->link, UV_READABLE | UV_DISCONNECT, read_link);
}

bool local_link_connect(struct local_run *run)
{
    if (run->polled)
        return false; /* the old handle is still being closed */
    char name[ATTEMPT_NAME_MAX], dir[ATTEMPT_PATH_MAX];
    name_of(run, name);
    attempt_path(&run->local->attempts, name, dir);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int length = snprintf(at.sun_path, sizeof at.sun_path, "%s/run.sock", dir);
    if (length < 0 || (size_t)length >= sizeof at.sun_path)
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        close(fd);
        return false;
    }
    open_link(run, fd);
    return true;
}

/* --- the launch order ------------------------------------------------------------- */

/* Texts that an order points to while it is written. */
struct order_texts {
    char out[PATH_MAX], err[PATH_MAX];
    char uuids[LAUNCH_UUIDS_MAX];
};

static int make_order(struct local_run *run, const struct launch *launch,
                      struct launch_order *order, struct order_texts *texts,
                      struct error *err)
{
    struct local *local = run->local;
    const struct job *job = &local->setup.view->jobs[run->job];
    const struct cluster *cluster = local->setup.view->cluster;
    *order = (struct launch_order){ .launch = *launch,
                                    .attempt = run->attempt,
                                    .gpus = run->gpus,
                                    .cores = run->cores,
                                    .gpu_count = run->gpu_count,
                                    .cpu_milli = run->cpu_milli,
                                    .mem_mib = run->mem_mib,
                                    .gpu_mib = job->shares && !job->gpu_mib_known
                                                   ? job->gpu_mib
                                                   : 0,
                                    .steps_kept = run->steps_kept,
                                    .grace_ns = job->grace_ns,
                                    .dscp = -1 };
    if (job->shares || local->setup.mps_for_all)
        order->mps = local->setup.mps;
    if (order->mps && local->setup.name_gpus &&
        local->setup.name_gpus(local->setup.context, run->gpus, texts->uuids,
                               sizeof texts->uuids))
        order->uuids = texts->uuids;
    if (local->setup.mark)
        order->dscp = local->setup.mark(local->setup.context, run->job);
    if (run->type < cluster->type_count)
        order->type = cluster->types[run->type].name;
    if (local->setup.deny_others)
        order->denied_count = local->setup.deny_others(
            local->setup.context, run->gpus, order->denied, LAUNCH_DENIED_MAX);
    const struct cgroup_limits limits = { .memory_bytes = order->mem_mib,
                                          .cpu_milli = order->cpu_milli,
                                          .denied_count = order->denied_count };
    cgroup_tree_list(&local->attempts.cgroups, &limits, order->cgroups);
    int r = 0;
    if (launch->out) {
        r = output_path(texts->out, launch->out, launch, launch->user, err);
        order->launch.out = texts->out;
    }
    if (r == 0 && launch->err) {
        r = output_path(texts->err, launch->err, launch, launch->user, err);
        order->launch.err = texts->err;
    }
    return r;
}

/* --- the supervisor --------------------------------------------------------------- */

/* --- starters that were closed ------------------------------------------------------------ */

static struct {
    pid_t *pids;
    uint32_t count, room;
} ending;

static void reap_later(pid_t pid)
{
    if (pid <= 0 || waitpid(pid, NULL, WNOHANG) != 0)
        return;
    ending.pids =
        grow_array(ending.pids, &ending.room, ending.count + 1, sizeof *ending.pids);
    ending.pids[ending.count++] = pid;
}

uint32_t local_reap_starters(void)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ending.count; i++)
        if (waitpid(ending.pids[i], NULL, WNOHANG) == 0)
            ending.pids[kept++] = ending.pids[i];
    ending.count = kept;
    return kept;
}

/* --- the starter ---- */

/*
 * The starter is a berth-run that forks a supervisor for every order: what executing a
 * program costs is paid once, and berthd does not wait for it.
 */
static int spawn_starter(struct local *local, int socket, struct error *err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawn_file_actions_adddup2(&files, socket, STARTER_FD);
    posix_spawn_file_actions_addclosefrom_np(&files, STARTER_FD + 1);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETSIGMASK);
    char *argv[] = { local->run_program, (char *)"--run",
                     local->run_dir,     (char *)"--state",
                     local->state_dir,   (char *)"--serve",
                     (char *)"3",        NULL };
    char *env[] = { NULL };
    int r =
        posix_spawn(&local->starter_pid, local->run_program, &files, &how, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return r ? error_set(err, -r, "%s: %s", local->run_program, strerror(r)) : 0;
}

static int open_starter(struct local *local, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    int high = pair[1] == STARTER_FD ? fcntl(pair[1], F_DUPFD_CLOEXEC, STARTER_FD + 1)
                                     : pair[1]; /* a copy onto itself keeps CLOEXEC */
    int r = high < 0
                ? error_set(err, -errno, "cannot make a socket: %s", strerror(errno))
                : spawn_starter(local, high, err);
    if (high >= 0 && high != pair[1])
        close(high);
    close(pair[1]);
    if (r < 0)
        close(pair[0]);
    else
        local->starter = pair[0];
    return r;
}

void local_close_starter(struct local *local)
{
    if (local->starter < 0)
        return;
    close(local->starter);
    local->starter = -1;
    reap_later(local->starter_pid);
}

static int send_order(const struct local *local, int order, int link)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control = { .space = "" };
    struct iovec one = { (char *)"o", 1 };
    struct msghdr message = { .msg_iov = &one,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof control.space };
    control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(2 * sizeof(int)),
                                       .cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS };
    const int fds[2] = { order, link };
    memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
    return sendmsg(local->starter, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
                                                                              : 0;
}

/* A starter that was killed is replaced.  Orders that it had not read are lost with it, and
 * known by their links. */
static int order_supervisor(struct local *local, int order, int link, struct error *err)
{
    int r = local->starter < 0 ? -EPIPE : send_order(local, order, link);
    if (r == -EPIPE || r == -ECONNRESET) {
        local_close_starter(local);
        r = open_starter(local, err);
        if (r < 0)
            return r;
        r = send_order(local, order, link);
    }
    return r < 0 ? error_set(err, r, "no supervisor can be started: %s", strerror(-r))
                 : 0;
}

/* -EEXIST: a supervisor was started before. */
static int start_own(struct local_run *run, const struct launch *launch, int order,
                     int link, struct error *err)
{
    struct attempt_claim claim;
    char name[ATTEMPT_NAME_MAX];
    name_of(run, name);
    attempt_read_claim(&run->local->attempts, name, &claim);
    if (claim.begun)
        return error_set(err, -EEXIST, "%s: was begun before", name);
    int r = launch->ckpt_dir ? 0
                             : attempt_make_ckpt(&run->local->attempts, run->id,
                                                 launch->uid, launch->gid, err);
    return r < 0 ? r : order_supervisor(run->local, order, link, err);
}

static int start_with_link(struct local_run *run, const struct launch *launch,
                           int order, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return error_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    int r = launcher_of(run) ? launcher_client_start(launcher_of(run), run->id,
                                                     run->attempt, order, pair[1], err)
                             : start_own(run, launch, order, pair[1], err);
    close(pair[1]);
    if (r < 0)
        close(pair[0]);
    else
        open_link(run, pair[0]);
    return r;
}

int local_start_supervisor(struct local_run *run, struct error *err)
{
    const struct launch *launch;
    const struct local_setup *setup = &run->local->setup;
    struct launch_order order;
    struct order_texts texts;
    int r = setup->launch(setup->context, run->id, &launch, err);
    if (r == 0)
        r = make_order(run, launch, &order, &texts, err);
    int fd = r < 0 ? r : launch_order_seal(&order, err);
    if (fd < 0)
        return fd;
    run->own_steps = launch->has_steps;
    run->expects_reports = launch->has_steps || launch->pattern;
    run->limit_ns = launch->limit_ns;
    r = start_with_link(run, launch, fd, err);
    close(fd);
    return r;
}

/* --- its end ------------------------------------------------------------------------- */

bool local_was_claimed(const struct local_run *run, bool *ret_alive)
{
    struct attempt_claim claim;
    char name[ATTEMPT_NAME_MAX];
    name_of(run, name);
    attempt_read_claim(&run->local->attempts, name, &claim);
    *ret_alive = claim.alive;
    return claim.begun;
}

bool local_read_status(const struct local_run *run, struct run_end *end)
{
    char name[ATTEMPT_NAME_MAX];
    name_of(run, name);
    return attempt_read_status(&run->local->attempts, name, end);
}

bool local_remove_attempt(struct local_run *run)
{
    char name[ATTEMPT_NAME_MAX];
    name_of(run, name);
    if (launcher_of(run)) {
        local_send(run, "collected\n");
        launcher_client_remove(launcher_of(run), run->id, run->attempt);
        return false;
    }
    attempt_release_ckpt(&run->local->attempts, name);
    if (local_send(run, "collected\n") && run->said_end)
        return true;
    attempt_remove(&run->local->attempts, name);
    return false;
}

bool local_kill_attempt(const struct local_run *run)
{
    char name[ATTEMPT_NAME_MAX];
    name_of(run, name);
    return launcher_of(run)
               ? launcher_client_kill(launcher_of(run), run->id, run->attempt)
               : attempt_kill(&run->local->attempts, name);
}

void local_kill_job(const struct local_run *run)
{
    char name[ATTEMPT_NAME_MAX];
    name_of(run, name);
    if (launcher_of(run))
        launcher_client_kill_job(launcher_of(run), run->id, run->attempt);
    else
        attempt_kill_job(&run->local->attempts, name);
}

/* --- attempts that belong to no job ------------------------------------------------------ */

static bool is_known_attempt(void *context, const char *name)
{
    const struct local *local = context;
    char known[ATTEMPT_NAME_MAX];
    for (const struct local_run *run = local->runs; run; run = run->next) {
        name_of(run, known);
        if (strcmp(known, name) == 0)
            return true;
    }
    return false;
}

/* The service may list the folder, and asks for the removal of each. */
static void remove_foreign_attempts(struct local *local)
{
    DIR *dir = opendir(local->attempts.jobs_path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        uint64_t id;
        uint32_t attempt;
        if (attempt_parse_name(entry->d_name, &id, &attempt) &&
            !is_known_attempt(local, entry->d_name))
            launcher_client_remove(local->setup.launcher, id, attempt);
    }
    closedir(dir);
}

void local_remove_orphans(void *self)
{
    struct local *local = self;
    local->settled = true;
    if (local->setup.launcher)
        remove_foreign_attempts(local);
    else
        attempts_sweep(&local->attempts, is_known_attempt, local);
}
