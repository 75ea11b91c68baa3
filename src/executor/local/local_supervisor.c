/*
 * local_supervisor.c - the supervisor of an attempt: its folder and cgroup, its start, and
 * the connection to it.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "executor/local/local_internal.h"
#include "host/cgroup.h"
#include "host/launch_file.h"
#include "host/leftovers.h"
#include "host/output_path.h"
#include "model/cluster.h"

#define LINK_FD 3
#define DEPTH_MAX 8 /* of folders that a job may have created in its own */

static void local_dir(const struct local_run *run, char path[JOB_DIR_MAX])
{
    snprintf(path, JOB_DIR_MAX, "%s/jobs/%" PRIu64 ".%" PRIu32, run->local->run_dir,
             run->id, run->attempt);
}

/* Several berthds may share a parent cgroup, so each uses a child of its own. */
bool local_cgroup(const struct local_run *run, char path[CGROUP_MAX])
{
    if (run->local->cgroup[0] == '\0')
        return false;
    int length = snprintf(path, CGROUP_MAX, "%s/%" PRIu64 ".%" PRIu32,
                          run->local->cgroup, run->id, run->attempt);
    return length > 0 && length < CGROUP_MAX;
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

void local_send(struct local_run *run, const char *fmt, ...)
{
    char line[RUN_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert(length > 0 && length < (int)sizeof line);
    if (run->fd >= 0) /* a supervisor that does not read will be found dead */
        (void)!send(run->fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
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
    char dir[JOB_DIR_MAX];
    local_dir(run, dir);
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
    char out[PATH_MAX], err[PATH_MAX], ckpt_dir[PATH_MAX], cgroup[CGROUP_MAX], user[64];
};

static void find_user(const struct launch *launch, char *user, size_t size)
{
    struct passwd entry, *found = NULL;
    char text[4096];
    getpwuid_r(launch->uid, &entry, text, sizeof text, &found);
    if (found)
        snprintf(user, size, "%s", found->pw_name);
    else
        snprintf(user, size, "%" PRIu32, launch->uid);
}

static bool names_user(const char *pattern)
{
    return pattern && strstr(pattern, "%u");
}

/* The owner's groups, as after a login. */
static void find_groups(struct launch_order *order, const char *user)
{
    gid_t groups[LAUNCH_GROUPS_MAX];
    int count = LAUNCH_GROUPS_MAX;
    if (getgrouplist(user, order->launch.gid, groups, &count) < 0) {
        groups[0] = order->launch.gid;
        count = 1;
    }
    for (int i = 0; i < count; i++)
        order->groups[order->group_count++] = groups[i];
}

/*
 * The checkpoint folder holds a job's state across attempts, unless the user named
 * another.  Most short jobs leave it empty, and creating and removing one for each is
 * slow on some file systems (ext4 scans past entries removed within seconds one by
 * one).  So a few empty folders are kept and reused, unless jobs have different owners.
 */
#define SPARES_MAX 64

static void spare_path(const struct local *local, uint32_t number, char *path)
{
    snprintf(path, PATH_MAX, "%s/ckpt/.spare-%" PRIu32, local->state_dir, number);
}

static void remove_spares(struct local *local)
{
    char path[PATH_MAX];
    local->spare_count = 0;
    for (uint32_t i = 0; i < SPARES_MAX; i++) {
        spare_path(local, i, path);
        rmdir(path);
    }
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    uint32_t count = 0;
    if (!dir)
        return false;
    while (count < 3 && readdir(dir))
        count++;
    closedir(dir);
    return count == 2; /* "." and ".." */
}

/* True: an empty folder of that name exists now. */
static bool take_spare(struct local *local, const char *path)
{
    char spare[PATH_MAX];
    if (local->spare_count == 0 || access(path, F_OK) == 0)
        return false;
    spare_path(local, --local->spare_count, spare);
    return is_empty(spare) &&
           renameat2(AT_FDCWD, spare, AT_FDCWD, path, RENAME_NOREPLACE) == 0;
}

/* The job has ended: keep its folder as a spare or remove it, if empty. */
static void release_ckpt_dir(struct local *local, const char *path)
{
    char spare[PATH_MAX];
    spare_path(local, local->spare_count, spare);
    if (!local->setup.system && local->spare_count < SPARES_MAX && is_empty(path) &&
        renameat2(AT_FDCWD, path, AT_FDCWD, spare, RENAME_NOREPLACE) == 0)
        local->spare_count++;
    else
        rmdir(path);
}

static int make_ckpt_dir(struct local *local, const struct launch *launch, char *path,
                         struct error *err)
{
    int length =
        snprintf(path, PATH_MAX, "%s/ckpt/%" PRIu64, local->state_dir, launch->id);
    if (length < 0 || length >= PATH_MAX)
        return error_set(err, -ENAMETOOLONG, "%s: too long", local->state_dir);
    if (take_spare(local, path))
        return 0;
    if (mkdir(path, 0700) < 0) {
        if (errno == EEXIST)
            return 0;
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    }
    if (local->setup.system && lchown(path, launch->uid, launch->gid) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

static int make_order(struct local_run *run, const struct launch *launch,
                      struct launch_order *order, struct order_texts *texts,
                      struct error *err)
{
    struct local *local = run->local;
    const struct job *job = &local->setup.view->jobs[run->job];
    const struct cluster *cluster = local->setup.view->cluster;
    *order = (struct launch_order){ .launch = *launch,
                                    .attempt = run->attempt,
                                    .become = local->setup.system,
                                    .gpus = run->gpus,
                                    .gpu_count = run->gpu_count,
                                    .cpu_milli = run->cpu_milli,
                                    .mem_mib = run->mem_mib,
                                    .steps_kept = run->steps_kept,
                                    .grace_ns = job->grace_ns,
                                    .dscp = -1 };
    if (local->setup.mark)
        order->dscp = local->setup.mark(local->setup.context, run->job);
    if (run->type < cluster->type_count)
        order->type = cluster->types[run->type].name;
    if (order->become || names_user(launch->out) || names_user(launch->err))
        find_user(launch, texts->user, sizeof texts->user);
    if (order->become)
        find_groups(order, texts->user);
    order->own_out = !launch->out;
    int r = 0;
    if (launch->out)
        r = output_path(texts->out, launch->out, launch, texts->user, err);
    else
        snprintf(texts->out, PATH_MAX, "%s/log/%" PRIu64 ".out", local->state_dir,
                 launch->id);
    order->launch.out = texts->out;
    if (r == 0 && launch->err) {
        r = output_path(texts->err, launch->err, launch, texts->user, err);
        order->launch.err = texts->err;
    }
    if (r == 0 && !launch->ckpt_dir) {
        r = make_ckpt_dir(local, launch, texts->ckpt_dir, err);
        order->launch.ckpt_dir = texts->ckpt_dir;
    }
    if (local_cgroup(run, texts->cgroup) && cgroup_make(texts->cgroup))
        order->cgroup = texts->cgroup;
    return r;
}

/* Atomically: a supervisor of an earlier order may be reading. */
static int write_launch(const struct launch_order *order, const char *dir,
                        struct error *err)
{
    struct buf buf;
    buf_init(&buf, LAUNCH_FILE_MAX);
    launch_file_write(order, &buf);
    char path[JOB_DIR_MAX + 16], fresh[JOB_DIR_MAX + 16];
    snprintf(path, sizeof path, "%s/launch", dir);
    snprintf(fresh, sizeof fresh, "%s/launch.new", dir);
    int r = buf.full ? error_set(err, -E2BIG, "script and environment: too long") : 0;
    int fd = r == 0 ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                           0600)
                    : -1;
    if (r == 0 && (fd < 0 || write(fd, buf.bytes, buf.count) != (ssize_t)buf.count ||
                   rename(fresh, path) < 0))
        r = error_set(err, errno ? -errno : -EIO, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    buf_release(&buf);
    return r;
}

/* --- the supervisor --------------------------------------------------------------- */

static int spawn_supervisor(struct local_run *run, const char *dir, int fd,
                            struct error *err)
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
    posix_spawn_file_actions_adddup2(&files, fd, LINK_FD);
    posix_spawn_file_actions_addclosefrom_np(&files, LINK_FD + 1);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETSIGMASK);
    char *argv[] = {
        run->local->run_program, "--dir", (char *)dir, "--link", "3", NULL
    };
    char *env[] = { NULL };
    pid_t pid = 0;
    int r = posix_spawn(&pid, run->local->run_program, &files, &how, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    if (r != 0)
        return error_set(err, -r, "%s: %s", run->local->run_program, strerror(r));
    run->supervisor = pid;
    return 0;
}

/* -EEXIST: a supervisor was started before. */
static int make_dir(struct local_run *run, const char *dir, struct error *err)
{
    bool alive;
    if (mkdir(dir, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return error_set(err, -errno, "%s: %s", dir, strerror(errno));
    if (local_was_claimed(run, &alive))
        return error_set(err, -EEXIST, "%s: was begun before", dir);
    return 0;
}

int local_start_supervisor(struct local_run *run, struct error *err)
{
    const struct launch *launch;
    const struct local_setup *setup = &run->local->setup;
    struct launch_order order;
    struct order_texts texts = { .user = "" };
    char dir[JOB_DIR_MAX];
    local_dir(run, dir);
    int r = setup->launch(setup->context, run->id, &launch, err);
    if (r == 0)
        r = make_dir(run, dir, err);
    if (r == 0)
        r = make_order(run, launch, &order, &texts, err);
    if (r == 0)
        r = write_launch(&order, dir, err);
    if (r < 0)
        return r;
    run->own_steps = launch->has_steps;
    run->expects_reports = launch->has_steps || launch->pattern;

    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return error_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    r = spawn_supervisor(run, dir, pair[1], err);
    close(pair[1]);
    if (r < 0)
        close(pair[0]);
    else
        open_link(run, pair[0]);
    return r;
}

/* --- the folder ------------------------------------------------------------------- */

static int open_in_dir(const struct local_run *run, const char *name)
{
    char path[JOB_DIR_MAX + 16];
    local_dir(run, path);
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/*
 * The lock is tried only when the file has content: until then it belongs to the
 * supervisor that is about to write it.
 */
bool local_was_claimed(const struct local_run *run, bool *ret_alive)
{
    int fd = open_in_dir(run, "claim");
    struct stat stat;
    *ret_alive = false;
    if (fd < 0)
        return false;
    bool begun = fstat(fd, &stat) == 0 && stat.st_size > 0;
    if (begun)
        *ret_alive = flock(fd, LOCK_SH | LOCK_NB) < 0;
    close(fd);
    return begun;
}

bool local_read_status(const struct local_run *run, struct run_end *end)
{
    char text[RUN_LINE_MAX] = "";
    int fd = open_in_dir(run, "status");
    if (fd < 0)
        return false;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    return count > 0 && run_end_read(end, text);
}

/* Follows no symbolic links: the folder's content may belong to the job's owner. */
static void empty_folder(int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *inner = entry->d_name;
        if (strcmp(inner, ".") == 0 || strcmp(inner, "..") == 0)
            continue;
        if (unlinkat(dirfd(dir), inner, 0) == 0 || depth == DEPTH_MAX)
            continue;
        empty_folder(dirfd(dir), inner, depth + 1);
        unlinkat(dirfd(dir), inner, AT_REMOVEDIR);
    }
    closedir(dir);
}

void local_remove_dir(struct local_run *run)
{
    char path[JOB_DIR_MAX], cgroup[CGROUP_MAX], ckpt[PATH_MAX];
    local_dir(run, path);
    empty_folder(AT_FDCWD, path, 0);
    rmdir(path);
    if (local_cgroup(run, cgroup))
        cgroup_remove(cgroup);
    int length =
        snprintf(ckpt, sizeof ckpt, "%s/ckpt/%" PRIu64, run->local->state_dir, run->id);
    if (length > 0 && (size_t)length < sizeof ckpt)
        release_ckpt_dir(run->local, ckpt);
}

bool local_kill_leftovers(const struct local_run *run)
{
    char mark[JOB_DIR_MAX + 32], dir[JOB_DIR_MAX], cgroup[CGROUP_MAX];
    local_dir(run, dir);
    snprintf(mark, sizeof mark, "BERTH_PREEMPT_FILE=%s/preempt", dir);
    bool grouped = local_cgroup(run, cgroup);
    return leftovers_kill(grouped ? cgroup : NULL, mark) == 0;
}

/* --- the folders of all attempts --------------------------------------------------- */

static int make_folder(const char *at, const char *name, mode_t mode, struct error *err)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", at, name);
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (chmod(path, mode) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

/*
 * Where jobs of other users run, they pass through these folders but cannot list them.
 */
static int make_folders(const struct local *local, struct error *err)
{
    mode_t mode = local->setup.system ? 0711 : 0700;
    int r = make_folder(local->run_dir, "jobs", mode, err);
    if (r == 0)
        r = make_folder(local->state_dir, "log", mode, err);
    if (r == 0)
        r = make_folder(local->state_dir, "ckpt", mode, err);
    if (r == 0 && local->setup.system)
        r = make_folder(local->state_dir, ".", mode, err);
    if (r == 0 && local->setup.system)
        r = make_folder(local->run_dir, ".", mode, err);
    return r;
}

/*
 * The cgroups of jobs are children of one named after the runtime folder, since
 * several berthds may share a parent.  Its path is saved, since after a restart berthd
 * may be in another cgroup while jobs are in the old one.
 */
static void find_cgroup(struct local *local)
{
    char path[LOCAL_RUN_DIR_MAX + 16], base[CGROUP_MAX - 96];
    snprintf(path, sizeof path, "%s/cgroup", local->run_dir);
    FILE *file = fopen(path, "re");
    bool known = file && fgets(local->cgroup, sizeof local->cgroup - 48, file);
    if (file)
        fclose(file);
    if (known && access(local->cgroup, W_OK) == 0)
        return;
    local->cgroup[0] = '\0';
    if (!cgroup_find(base, sizeof base))
        return;
    snprintf(local->cgroup, sizeof local->cgroup, "%s/berth-%08x", base,
             (uint32_t)hash_text(local->run_dir));
    file = cgroup_make(local->cgroup) && access(local->cgroup, W_OK) == 0
               ? fopen(path, "we")
               : NULL;
    if (!file || fputs(local->cgroup, file) < 0)
        local->cgroup[0] = '\0';
    if (file)
        fclose(file);
}

int local_open_folders(struct local *local, struct error *err)
{
    int r = make_folders(local, err);
    if (r < 0)
        return r;
    remove_spares(local);
    find_cgroup(local);
    return 0;
}

void local_close_folders(struct local *local)
{
    remove_spares(local);
    if (local->cgroup[0])
        cgroup_remove(local->cgroup); /* only if no job is left in it */
}
