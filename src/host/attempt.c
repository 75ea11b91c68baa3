/* attempt.c - the attempts of jobs on this machine: folders, cgroups, supervisors. */
#include "host/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "host/leftovers.h"
#include "host/run_protocol.h"

#define REMOVE_S \
    60 /* then the removal of a user's files is given up until the next sweep */
#define SUPERVISOR_SUFFIX ".sup"
#define SESSION_SUFFIX ".pam"
#define SESSION_TRIES 2000 /* 5 ms each: the time to close a session */
#define CGROUP_TRIES 1000  /* 5 ms each: the time that killed processes have to go */

/* --- names ---------------------------------------------------------------------------- */

void attempt_name(char name[ATTEMPT_NAME_MAX], uint64_t id, uint32_t attempt)
{
    snprintf(name, ATTEMPT_NAME_MAX, "%" PRIu64 ".%" PRIu32, id, attempt);
}

bool attempt_parse_name(const char *name, uint64_t *ret_id, uint32_t *ret_attempt)
{
    char known[ATTEMPT_NAME_MAX];
    if (sscanf(name, "%" SCNu64 ".%" SCNu32, ret_id, ret_attempt) != 2)
        return false;
    attempt_name(known, *ret_id, *ret_attempt);
    return strcmp(known, name) == 0;
}

void attempt_path(const struct attempts *attempts, const char *name,
                  char path[ATTEMPT_PATH_MAX])
{
    snprintf(path, ATTEMPT_PATH_MAX, "%s/%s", attempts->jobs_path, name);
}

void attempt_cgroup_name(const char *run_dir, char name[CGROUP_NAME_MAX])
{
    snprintf(name, CGROUP_NAME_MAX, "berth-%08x", (uint32_t)hash_text(run_dir));
}

/* --- folders -------------------------------------------------------------------------- */

/* Open a folder of ours, not through a link; its owner makes it first. */
static int open_folder(const struct attempts *attempts, const char *at,
                       const char *name, enum attempts_mode owner, struct error *err)
{
    char path[600];
    mode_t mode = attempts->system ? 0751 : 0700; /* the service may list it */
    snprintf(path, sizeof path, "%s/%s", at, name);
    int flags = O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    if (owner != ATTEMPTS_OWN) {
        int fd = open(path, (owner == ATTEMPTS_READ ? O_PATH : O_RDONLY) | flags);
        return fd < 0 ? error_set(err, -errno, "%s: %s", path, strerror(errno)) : fd;
    }
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    struct stat found;
    int fd = open(path, O_RDONLY | flags);
    if (fd < 0 || fstat(fd, &found) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (found.st_uid != geteuid())
        return error_set(err, -EPERM, "%s belongs to user %u, not to user %u", path,
                         found.st_uid, geteuid());
    if (fchmod(fd, mode) < 0 ||
        (attempts->system && fchown(fd, (uid_t)-1, attempts->service_gid) < 0))
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return fd;
}

int attempt_open_own(int folder, const char *name, int flags, mode_t mode)
{
    struct open_how how = { .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
                            .mode = flags & O_CREAT ? mode : 0,
                            .resolve = RESOLVE_NO_XDEV };
    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

/* Output of an earlier berthd that was root becomes readable for the service. */
static void share_output(const struct attempts *attempts)
{
    int fd = openat(attempts->log, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat file;
        int out = attempt_open_own(fd, entry->d_name, O_RDONLY | O_NONBLOCK, 0);
        if (out >= 0 && fstat(out, &file) == 0 && S_ISREG(file.st_mode) &&
            file.st_nlink == 1 && file.st_gid != attempts->service_gid)
            (void)!(fchown(out, (uid_t)-1, attempts->service_gid) < 0 ||
                    fchmod(out, 0640) < 0);
        if (out >= 0)
            close(out);
    }
    closedir(dir);
}

static void remove_spares(struct attempts *attempts);

int attempts_open(struct attempts *attempts, const char *run_dir, const char *state_dir,
                  enum attempts_mode mode, struct error *err)
{
    char name[CGROUP_NAME_MAX];
    attempts->jobs = attempts->log = attempts->ckpt = -1;
    attempts->spare_count = 0;
    attempts->cgroups = (struct cgroup_tree){ .features = 0 };
    snprintf(attempts->jobs_path, sizeof attempts->jobs_path, "%s/jobs", run_dir);
    snprintf(attempts->state_path, sizeof attempts->state_path, "%s", state_dir);
    attempts->jobs = open_folder(attempts, run_dir, "jobs", mode, err);
    if (attempts->jobs < 0 || mode == ATTEMPTS_READ)
        return attempts->jobs < 0 ? attempts->jobs : 0;
    attempts->log = open_folder(attempts, state_dir, "log", mode, err);
    if (attempts->log < 0)
        return attempts->log;
    attempts->ckpt = open_folder(attempts, state_dir, "ckpt", mode, err);
    if (attempts->ckpt < 0)
        return attempts->ckpt;
    if (mode == ATTEMPTS_JOIN)
        return 0;
    if (attempts->system)
        share_output(attempts);
    attempt_cgroup_name(run_dir, name);
    cgroup_tree_open(&attempts->cgroups, name, attempts->system);
    remove_spares(attempts);
    return 0;
}

void attempts_close(struct attempts *attempts)
{
    if (attempts->ckpt >= 0)
        remove_spares(attempts);
    cgroup_tree_close(&attempts->cgroups);
    const int fds[] = { attempts->jobs, attempts->log, attempts->ckpt };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    attempts->jobs = attempts->log = attempts->ckpt = -1;
}

static int open_attempt(const struct attempts *attempts, const char *name)
{
    return openat(attempts->jobs, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int open_in_attempt(const struct attempts *attempts, const char *name,
                           const char *file)
{
    int dir = open_attempt(attempts, name);
    int fd = dir < 0
                 ? -1
                 : openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (dir >= 0)
        close(dir);
    return fd;
}

/* --- claims and statuses --------------------------------------------------------------- */

/* The 22nd word of /proc/PID/stat, counted behind the name, which may hold anything. */
uint64_t attempt_process_start(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (count <= 0)
        return 0;
    text[count] = '\0';
    const char *at = strrchr(text, ')');
    for (int word = 2; at && word < 22; word++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

int attempt_open_process(pid_t pid, uint64_t started)
{
    int fd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd >= 0 && attempt_process_start(pid) != started) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/*
 * The lock is tried only when the file has content: until then it belongs to the
 * supervisor that is about to write it.
 */
void attempt_read_claim(const struct attempts *attempts, const char *name,
                        struct attempt_claim *claim)
{
    char text[64] = "";
    int pid = 0;
    *claim = (struct attempt_claim){ .begun = false };
    int fd = open_in_attempt(attempts, name, "claim");
    if (fd < 0)
        return;
    claim->begun = read(fd, text, sizeof text - 1) > 0;
    if (claim->begun) {
        claim->alive = flock(fd, LOCK_SH | LOCK_NB) < 0;
        sscanf(text, "%d %" SCNu64, &pid, &claim->started);
        claim->pid = pid;
    }
    close(fd);
}

bool attempt_read_status(const struct attempts *attempts, const char *name,
                         struct run_end *end)
{
    char text[RUN_LINE_MAX] = "";
    int fd = open_in_attempt(attempts, name, "status");
    if (fd < 0)
        return false;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    return count > 0 && strchr(text, '\n') && run_end_read(end, text);
}

/* --- killing ------------------------------------------------------------------------------ */

/* The user of an attempt, by the folder that was made for the user. */
static uint32_t find_owner(const struct attempts *attempts, const char *name)
{
    struct stat job;
    int dir = open_attempt(attempts, name);
    bool found = dir >= 0 &&
                 fstatat(dir, "job", &job, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
    if (dir >= 0)
        close(dir);
    return found ? job.st_uid : LEFTOVERS_ANY_USER;
}

/* Processes without a cgroup are found by the environment that they were given. */
bool attempt_kill_marked(const struct attempts *attempts, const char *name)
{
    char mark[ATTEMPT_PATH_MAX + 40], dir[ATTEMPT_PATH_MAX];
    attempt_path(attempts, name, dir);
    snprintf(mark, sizeof mark, "BERTH_PREEMPT_FILE=%s/job/preempt", dir);
    return leftovers_kill(mark, find_owner(attempts, name)) == 0;
}

void attempt_kill_job(const struct attempts *attempts, const char *name)
{
    cgroup_kill(&attempts->cgroups, name);
    if (!(attempts->cgroups.features & CGROUP_KILL))
        attempt_kill_marked(attempts, name);
}

/* Through a pidfd, so that it is that process and not a later one of the same number. */
static bool kill_supervisor(const struct attempts *attempts, const char *name)
{
    struct attempt_claim claim;
    attempt_read_claim(attempts, name, &claim);
    int fd = claim.alive ? attempt_open_process(claim.pid, claim.started) : -1;
    if (fd < 0)
        return claim.alive;
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    close(fd);
    return true;
}

bool attempt_kill_known(const struct attempts *attempts, const char *name)
{
    char supervisor[ATTEMPT_NAME_MAX + sizeof SUPERVISOR_SUFFIX];
    snprintf(supervisor, sizeof supervisor, "%s" SUPERVISOR_SUFFIX, name);
    uint32_t found = kill_supervisor(attempts, name);
    found += cgroup_kill(&attempts->cgroups, supervisor);
    found += cgroup_kill(&attempts->cgroups, name);
    return found == 0;
}

bool attempt_kill(const struct attempts *attempts, const char *name)
{
    bool none = attempt_kill_known(attempts, name);
    if (attempts->cgroups.features & CGROUP_KILL)
        return none;
    return attempt_kill_marked(attempts, name) && none;
}

/* --- removing --------------------------------------------------------------------------- */

/* Removing all that is in a folder. */
struct removal {
    int top;              /* the folder                     */
    uint64_t moved, done; /* entries moved up; all handled */
    bool mounted;         /* something is mounted in it     */
};

#define EXIT_MOUNTED 2

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Open a folder unless something is mounted there, also of the same file system: EXDEV. */
static int open_unmounted(int at, const char *name, int flags)
{
    return attempt_open_own(at, name, flags | O_DIRECTORY, 0);
}

/* Open a folder for reading, also one whose owner took the right to. */
static DIR *open_to_empty(struct removal *removal, const char *name)
{
    int fd = open_unmounted(removal->top, name, O_PATH);
    if (fd < 0) {
        removal->mounted |= errno == EXDEV;
        return NULL;
    }
    close(fd);
    (void)!fchmodat(removal->top, name, 0700, AT_SYMLINK_NOFOLLOW);
    fd = open_unmounted(removal->top, name, O_RDONLY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

/* True: it is gone.  What is mounted there stays, and is not touched. */
static bool remove_entry(struct removal *removal, int from, const char *name)
{
    bool gone = unlinkat(from, name, 0) == 0 ||
                (errno != EBUSY && unlinkat(from, name, AT_REMOVEDIR) == 0);
    removal->mounted |= !gone && errno == EBUSY;
    removal->done += gone;
    return gone;
}

/* Remove an entry of a folder below the top, or move it up. */
static void remove_or_move(struct removal *removal, int from, const char *name)
{
    char moved[ATTEMPT_NAME_MAX];
    if (remove_entry(removal, from, name) || errno == EBUSY)
        return;
    snprintf(moved, sizeof moved, ".berth-%" PRIu64, removal->moved++);
    (void)!fchmodat(from, name, 0700,
                    AT_SYMLINK_NOFOLLOW); /* to move a folder writes to it */
    removal->done += renameat2(from, name, removal->top, moved, RENAME_NOREPLACE) == 0;
}

static void empty_folder(struct removal *removal, const char *name)
{
    DIR *dir = open_to_empty(removal, name);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (!is_dots(entry->d_name))
            remove_or_move(removal, dirfd(dir), entry->d_name);
    closedir(dir);
    removal->done += unlinkat(removal->top, name, AT_REMOVEDIR) == 0;
}

/*
 * Remove all that is in a folder.  What is deep is moved up first, so that there is no
 * depth and no length of a path at which this ends.  Links are not followed, and mount
 * points are not crossed.  False: something is mounted in it.
 */
static bool remove_below(int folder)
{
    struct removal removal = { .top = folder };
    (void)!fchmod(folder, 0700);
    for (uint64_t before = UINT64_MAX; before != removal.done;) {
        before = removal.done;
        DIR *dir = open_to_empty(&removal, ".");
        if (!dir)
            break;
        for (struct dirent *entry; (entry = readdir(dir));)
            if (!is_dots(entry->d_name) &&
                !remove_entry(&removal, folder, entry->d_name) && errno != EBUSY)
                empty_folder(&removal, entry->d_name);
        closedir(dir);
    }
    return !removal.mounted;
}

/* The rights of a folder's owner, who must not be able to halt this process. */
static bool act_as_owner(const struct attempts *attempts, const struct stat *owner)
{
    return owner->st_uid == geteuid() ||
           (setgroups(0, NULL) == 0 &&
            setresgid(attempts->service_gid, owner->st_gid, attempts->service_gid) ==
                0 &&
            setresuid(attempts->service_uid, owner->st_uid, attempts->service_uid) ==
                0);
}

/* In a child: it must not hold berthd's lock and sockets, should berthd be killed. */
static int keep_only(int fd)
{
    const int kept = STDERR_FILENO + 1;
    if (fd != kept && dup2(fd, kept) < 0)
        _exit(1);
    close_range(kept + 1, ~0U, 0);
    return kept;
}

/*
 * In a child, with the owner's rights: what the user put there is the user's.  False:
 * something is mounted in it.
 */
static bool remove_as_owner(const struct attempts *attempts, int folder,
                            const struct stat *owner)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (!act_as_owner(attempts, owner))
            _exit(1);
        alarm(REMOVE_S);
        folder = keep_only(folder);
        _exit(remove_below(folder) ? 0 : EXIT_MOUNTED);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_MOUNTED;
}

/* False: something is mounted there, or in it. */
static bool remove_job_folder(const struct attempts *attempts, int dir)
{
    struct stat owner;
    bool free_of_mounts = true;
    if (unlinkat(dir, "job", AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    int folder = open_unmounted(dir, "job", O_RDONLY);
    if (folder < 0)
        return errno != EXDEV;
    static const char *const usual[] = { "sock", "preempt", "preempt.new", "script" };
    bool gone = false;
    for (size_t i = 0; !attempts->system && i < sizeof usual / sizeof usual[0] && !gone;
         i++) /* the first is all that there is, mostly */
        gone = unlinkat(folder, usual[i], 0) == 0 &&
               unlinkat(dir, "job", AT_REMOVEDIR) == 0;
    if (!gone && unlinkat(dir, "job", AT_REMOVEDIR) < 0 && fstat(folder, &owner) == 0)
        free_of_mounts = remove_as_owner(attempts, folder, &owner);
    close(folder);
    if (!gone)
        unlinkat(dir, "job", AT_REMOVEDIR);
    return free_of_mounts;
}

/*
 * What a user mounted over the user's own folder would keep it for ever; users can mount FUSE
 * alone.  Other mounts are an administrator's, and are left alone.
 */
static void detach_users_mounts(const struct attempts *attempts, const char *name)
{
    char path[ATTEMPT_PATH_MAX + 8], dir[ATTEMPT_PATH_MAX];
    attempt_path(attempts, name, dir);
    snprintf(path, sizeof path, "%s/job", dir);
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    if (!mounts)
        return;
    for (struct mntent *entry; (entry = getmntent(mounts));)
        if (strncmp(entry->mnt_type, "fuse", strlen("fuse")) == 0 &&
            strcmp(entry->mnt_dir, path) == 0)
            umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
    endmntent(mounts);
}

/* False: something is mounted there, or in it. */
static bool remove_folder(const struct attempts *attempts, const char *name)
{
    if (attempts->system)
        detach_users_mounts(attempts, name);
    static const char *const files[] = { "claim", "status", "run.sock" };
    static const char *const old_files[] = { "launch", "launch.new" }; /* of 0.1 */
    int dir = open_unmounted(attempts->jobs, name, O_PATH);
    if (dir < 0)
        return errno != EXDEV;
    bool free_of_mounts = remove_job_folder(attempts, dir);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlinkat(dir, files[i], 0);
    if (unlinkat(attempts->jobs, name, AT_REMOVEDIR) < 0) {
        for (size_t i = 0; i < sizeof old_files / sizeof old_files[0]; i++)
            unlinkat(dir, old_files[i], 0);
        unlinkat(attempts->jobs, name, AT_REMOVEDIR);
    }
    close(dir);
    return free_of_mounts;
}

/* Its only process ends by itself, once the supervisor has gone. */
static void remove_session_cgroup(const struct attempts *attempts, const char *name)
{
    const struct timespec pause = { .tv_nsec = 5000000 };
    char group[ATTEMPT_NAME_MAX + sizeof SESSION_SUFFIX];
    snprintf(group, sizeof group, "%s" SESSION_SUFFIX, name);
    for (int i = 0; i < SESSION_TRIES; i++) {
        if (cgroup_remove(&attempts->cgroups, group))
            return;
        nanosleep(&pause, NULL);
    }
    cgroup_kill(&attempts->cgroups, group);
}

/* With several users this is done in a child, which may wait for the last process. */
static void remove_cgroup(const struct attempts *attempts, const char *group)
{
    const struct timespec pause = { .tv_nsec = 5000000 };
    for (int i = 0; i < CGROUP_TRIES; i++) {
        if (cgroup_remove(&attempts->cgroups, group))
            return;
        cgroup_kill(&attempts->cgroups, group);
        nanosleep(&pause, NULL);
    }
}

bool attempt_remove(struct attempts *attempts, const char *name)
{
    char supervisor[ATTEMPT_NAME_MAX + sizeof SUPERVISOR_SUFFIX];
    bool free_of_mounts;
    snprintf(supervisor, sizeof supervisor, "%s" SUPERVISOR_SUFFIX, name);
    if (attempts->system) { /* while the folder is there, it is not begun again */
        remove_cgroup(attempts, supervisor);
        remove_cgroup(attempts, name);
        remove_session_cgroup(attempts, name);
        free_of_mounts = remove_folder(attempts, name);
    } else {
        free_of_mounts = remove_folder(attempts, name);
        cgroup_remove(&attempts->cgroups, name);
    }
    if (!free_of_mounts)
        fprintf(stderr,
                "%s: %s/%s is not removed, because something is mounted there: unmount "
                "it, and the next start removes the folder\n",
                program_invocation_short_name, attempts->jobs_path, name);
    return free_of_mounts;
}

/* A sweep asks about cgroups of supervisors by the name of their attempt. */
struct sweep {
    bool (*is_known)(void *context, const char *name);
    void *context;
};

static bool is_known_cgroup(void *context, const char *group)
{
    const struct sweep *sweep = context;
    char name[ATTEMPT_NAME_MAX + sizeof SUPERVISOR_SUFFIX];
    int length = snprintf(name, sizeof name, "%s", group);
    if (length < 0 || (size_t)length >= sizeof name)
        return false;
    char *suffix = strstr(name, SUPERVISOR_SUFFIX);
    if (!suffix)
        suffix = strstr(name, SESSION_SUFFIX);
    if (suffix)
        *suffix = '\0';
    return sweep->is_known(sweep->context, name);
}

void attempts_sweep(struct attempts *attempts,
                    bool (*is_known)(void *context, const char *name), void *context)
{
    struct sweep sweep = { is_known, context };
    int fd = openat(attempts->jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir) {
        for (struct dirent *entry; (entry = readdir(dir));)
            if (entry->d_name[0] != '.' && !is_known(context, entry->d_name)) {
                attempt_kill(attempts, entry->d_name);
                attempt_release_ckpt(attempts, entry->d_name);
                attempt_remove(attempts, entry->d_name);
            }
        closedir(dir);
    }
    cgroup_sweep(&attempts->cgroups, is_known_cgroup, &sweep);
}

/* --- checkpoint folders -------------------------------------------------------------------- */

/*
 * Most short jobs leave their checkpoint folder empty, and creating and removing one for
 * each is slow on some file systems (ext4 scans past entries removed within seconds one by
 * one).  So a few empty folders are kept and reused, unless jobs have different owners.
 */
static void spare_name(uint32_t number, char name[ATTEMPT_NAME_MAX])
{
    snprintf(name, ATTEMPT_NAME_MAX, ".spare-%" PRIu32, number);
}

static void remove_spares(struct attempts *attempts)
{
    char name[ATTEMPT_NAME_MAX];
    attempts->spare_count = 0;
    for (uint32_t i = 0; i < ATTEMPT_SPARES_MAX; i++) {
        spare_name(i, name);
        unlinkat(attempts->ckpt, name, AT_REMOVEDIR);
    }
}

static bool is_empty(const struct attempts *attempts, const char *name)
{
    int fd =
        openat(attempts->ckpt, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    uint32_t count = 0;
    if (!dir)
        return false;
    while (count < 3 && readdir(dir))
        count++;
    closedir(dir);
    return count == 2; /* "." and ".." */
}

/* True: an empty folder of that name exists now. */
static bool take_spare(struct attempts *attempts, const char *name)
{
    char spare[ATTEMPT_NAME_MAX];
    if (attempts->spare_count == 0 || faccessat(attempts->ckpt, name, F_OK, 0) == 0)
        return false;
    spare_name(--attempts->spare_count, spare);
    return is_empty(attempts, spare) && renameat2(attempts->ckpt, spare, attempts->ckpt,
                                                  name, RENAME_NOREPLACE) == 0;
}

/* Keep it as a spare or remove it. */
void attempt_release_ckpt(struct attempts *attempts, const char *attempt)
{
    char name[ATTEMPT_NAME_MAX], spare[ATTEMPT_NAME_MAX];
    uint64_t id;
    uint32_t number;
    if (!attempt_parse_name(attempt, &id, &number))
        return;
    snprintf(name, sizeof name, "%" PRIu64, id);
    spare_name(attempts->spare_count, spare);
    if (!attempts->system && attempts->spare_count < ATTEMPT_SPARES_MAX &&
        is_empty(attempts, name) &&
        renameat2(attempts->ckpt, name, attempts->ckpt, spare, RENAME_NOREPLACE) == 0)
        attempts->spare_count++;
    else
        unlinkat(attempts->ckpt, name, AT_REMOVEDIR);
}

void attempt_empty_folder(void *context, int folder)
{
    (void)context;
    remove_below(folder);
}

void attempt_empty_as_owner(void *context, int folder)
{
    const struct attempts *attempts = context;
    struct stat owner;
    if (fstat(folder, &owner) == 0)
        remove_as_owner(attempts, folder, &owner);
}

void attempt_remove_kept(int log, int ckpt, uint64_t id,
                         void (*empty)(void *context, int folder), void *context)
{
    char output[ATTEMPT_NAME_MAX], name[ATTEMPT_NAME_MAX];
    snprintf(output, sizeof output, "%" PRIu64 ".out", id);
    snprintf(name, sizeof name, "%" PRIu64, id);
    unlinkat(log, output, 0);
    if (unlinkat(ckpt, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return;
    int folder = open_unmounted(ckpt, name, O_RDONLY);
    if (folder < 0 && errno == EXDEV) {
        fprintf(stderr,
                "%s: the checkpoint folder of job %s is not removed, because something "
                "is mounted there: unmount it, and remove the folder\n",
                program_invocation_short_name, name);
        return;
    }
    if (folder >= 0) {
        empty(context, folder);
        close(folder);
    }
    if (unlinkat(ckpt, name, AT_REMOVEDIR) < 0 && errno == ENOTDIR)
        unlinkat(ckpt, name, 0); /* a link in its place */
}

int attempt_make_ckpt(struct attempts *attempts, uint64_t id, uint32_t uid,
                      uint32_t gid, struct error *err)
{
    char name[ATTEMPT_NAME_MAX];
    struct stat found;
    snprintf(name, sizeof name, "%" PRIu64, id);
    if (take_spare(attempts, name))
        return 0;
    bool made = mkdirat(attempts->ckpt, name, 0700) == 0;
    int fd = made || errno == EEXIST
                 ? attempt_open_own(attempts->ckpt, name, O_RDONLY | O_DIRECTORY, 0)
                 : -1;
    if (fd < 0)
        return error_set(err, -errno, "the checkpoint folder of job %s: %s", name,
                         strerror(errno));
    int r = 0;
    if (made && attempts->system && fchown(fd, uid, gid) < 0)
        r = error_set(err, -errno, "the checkpoint folder of job %s: %s", name,
                      strerror(errno));
    else if (attempts->system && (fstat(fd, &found) < 0 || found.st_uid != uid))
        r = error_set(err, -EPERM, "the checkpoint folder of job %s is another user's",
                      name);
    close(fd);
    return r;
}
