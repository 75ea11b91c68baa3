/*
 * start.c - an attempt from its order to processes.
 *
 * Where we are root, nothing that a user could have put somewhere is touched with root's
 * rights: the attempt's folder is root's, what is in the user's own folders is opened with
 * the user's rights, and each process of the job gives up all others before it executes
 * the job's command.
 */
#include "run/start.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "client/protocol.h"
#include "host/attempt.h"
#include "host/run_protocol.h"
#include "run/environment.h"
#include "run/session.h"

#define INTERPRETER_MAX 256
#define CGROUP_TRIES 5
#define STANDARD_UMASK 022
#define PIDS_MAX 32768 /* processes and threads of a job of one among several users */

/* What all ranks have in common. */
struct start_context {
    struct attempts *attempts;
    const struct launch_order *order;
    const struct start_identity *identity;
    char name[ATTEMPT_NAME_MAX];
    char dir[ATTEMPT_PATH_MAX]; /* of the attempt   */
    char ckpt_dir[PATH_MAX];
    int folder, job_folder;
    const char *const *argv;
    int in, out, err;
    int report; /* pipe on which a child reports a failure */
    pid_t parent;
    enum cgroup_fork_kind kind;  /* of processes of the job */
    const struct rlimit *limits; /* of its session; NULL: it has none */
};

/* What the process that holds the session has started. */
struct rank_list {
    int error; /* why not all */
    uint32_t count;
    pid_t pids[RANKS_MAX];
};

/* Why a child could not execute the job's command. */
struct start_failure {
    enum { FAILED_IDENTITY, FAILED_SESSION, FAILED_FOLDER, FAILED_COMMAND } what;
    int error;
    char text[START_WHY_MAX]; /* FAILED_SESSION: what PAM said */
};

/* --- identity -------------------------------------------------------------------- */

/* Use the user's rights to files until back_to_root(). */
static void act_as_user(const struct start_context *context)
{
    const struct start_identity *identity = context->identity;
    if (identity->become && (setegid(identity->gid) < 0 || seteuid(identity->uid) < 0))
        abort(); /* never go on as root */
}

static void back_to_root(const struct start_context *context)
{
    if (context->identity->become && (seteuid(0) < 0 || setegid(0) < 0))
        abort();
}

static bool become_for_good(const struct start_identity *identity)
{
    return !identity->become ||
           (setresgid(identity->gid, identity->gid, identity->gid) == 0 &&
            setresuid(identity->uid, identity->uid, identity->uid) == 0);
}

/* --- the folder ---------------------------------------------------------------------- */

/* What the service may read, where it is not its own. */
static bool share_with_service(const struct start_context *context, int fd)
{
    const struct attempts *attempts = context->attempts;
    return !attempts->system ||
           (fchown(fd, (uid_t)-1, attempts->service_gid) == 0 && fchmod(fd, 0640) == 0);
}

/* The berthd that gave the order is gone.  The next one decides what becomes of the job. */
static bool is_closed(int link)
{
    struct pollfd closed = { link, POLLRDHUP, 0 };
    return link >= 0 && poll(&closed, 1, 0) == 1;
}

/* Claim the attempt: it is started at most once. */
static int claim_attempt(struct start_context *context, int link, struct error *err)
{
    int fd = openat(context->folder, "claim", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    struct stat stat;
    if (fd < 0)
        return error_set(err, -errno, "claim: %s", strerror(errno));
    int r = 0;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &stat) < 0 || stat.st_size > 0)
        r = error_set(err, -EALREADY, "this attempt was begun before");
    else if (is_closed(link))
        r = error_set(err, -EALREADY, "berthd is gone");
    else if (!share_with_service(context, fd) ||
             dprintf(fd, "%d %" PRIu64 "\n", getpid(),
                     attempt_process_start(getpid())) < 0)
        r = error_set(err, -errno, "claim: %s", strerror(errno));
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* The error of a write that was not whole: a disk that is nearly full takes a part. */
static int short_write_error(ssize_t written)
{
    return written < 0 ? errno : ENOSPC;
}

/* The end of the job must have a place, whatever happens to the disk meanwhile. */
static int reserve_status(const struct start_context *context, struct error *err)
{
    char blank[RUN_LINE_MAX];
    memset(blank, ' ', sizeof blank);
    int fd = openat(context->folder, "status",
                    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t written = -1;
    if (fd >= 0 && share_with_service(context, fd))
        written = pwrite(fd, blank, sizeof blank, 0);
    if (written == (ssize_t)sizeof blank)
        return fd;
    int code = short_write_error(written);
    if (fd >= 0)
        close(fd);
    return error_set(err, -code, "status: %s", strerror(code));
}

static int open_folders(struct start_context *context, struct error *err)
{
    const struct attempts *attempts = context->attempts;
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    mode_t mode = attempts->system ? 0711 : 0700;
    if (mkdirat(attempts->jobs, context->name, mode) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", context->dir, strerror(errno));
    struct stat found;
    context->folder = openat(attempts->jobs, context->name, flags);
    if (context->folder < 0 || fstat(context->folder, &found) < 0 ||
        found.st_uid != geteuid() || fchmod(context->folder, mode) < 0)
        return error_set(err, -errno, "%s: %s", context->dir, strerror(errno));
    return 0;
}

static int open_job_folder(struct start_context *context, struct error *err)
{
    const struct start_identity *identity = context->identity;
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    if (mkdirat(context->folder, "job", 0700) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s/job: %s", context->dir, strerror(errno));
    context->job_folder = openat(context->folder, "job", flags);
    if (context->job_folder < 0 ||
        (identity->become &&
         fchown(context->job_folder, identity->uid, identity->gid) < 0))
        return error_set(err, -errno, "%s/job: %s", context->dir, strerror(errno));
    return 0;
}

/* --- sockets -------------------------------------------------------------------------- */

/* In the current folder, so that the length of its path does not matter. */
static int listen_at(const char *name, struct error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    memcpy(at.sun_path, name, strlen(name) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        listen(fd, 64) == 0)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    return error_set(err, -code, "%s: %s", name, strerror(code));
}

static int open_run_socket(const struct start_context *context, struct started *started,
                           struct error *err)
{
    const struct attempts *attempts = context->attempts;
    if (fchdir(context->folder) < 0)
        return error_set(err, -errno, "%s: %s", context->dir, strerror(errno));
    started->run_listener = listen_at("run.sock", err);
    if (started->run_listener < 0)
        return started->run_listener;
    if (attempts->system && (fchownat(context->folder, "run.sock", (uid_t)-1,
                                      attempts->service_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
                             fchmodat(context->folder, "run.sock", 0660, 0) < 0))
        return error_set(err, -errno, "run.sock: %s", strerror(errno));
    if (fchdir(context->job_folder) < 0)
        return error_set(err, -errno, "%s/job: %s", context->dir, strerror(errno));
    return 0;
}

/* In the current folder, the job's own: the user may have put something there already. */
static int open_job_socket(const struct start_context *context, struct started *started,
                           struct error *err)
{
    act_as_user(context);
    started->job_listener = listen_at("sock", err);
    back_to_root(context);
    return started->job_listener < 0 ? started->job_listener : 0;
}

/* --- files ------------------------------------------------------------------------- */

/* Our own place for output: a folder that no user can write. */
static int open_own_output(const struct start_context *context, int flags)
{
    const struct attempts *attempts = context->attempts;
    char name[ATTEMPT_NAME_MAX + 8];
    snprintf(name, sizeof name, "%" PRIu64 ".out", context->order->launch.id);
    int fd = attempt_open_own(attempts->log, name, flags, 0600);
    if (fd >= 0 && attempts->system &&
        (fchown(fd, context->identity->uid, attempts->service_gid) < 0 ||
         fchmod(fd, 0640) < 0)) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

static mode_t umask_of(const struct start_context *context)
{
    uint32_t given = context->order->launch.umask;
    return given ? given & 0777 : STANDARD_UMASK;
}

/*
 * Opening a pipe does not wait for its reader.  Links of /proc lead to what this process
 * has open, which is not the user's.
 */
static int open_user_output(const struct start_context *context, const char *path,
                            int flags)
{
    struct open_how how = { .flags = (uint64_t)(flags | O_NONBLOCK),
                            .mode = 0666,
                            .resolve = RESOLVE_NO_MAGICLINKS };
    act_as_user(context);
    mode_t before = umask(umask_of(context));
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    int code = errno;
    umask(before);
    back_to_root(context);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    errno = code;
    return fd;
}

/* The output of earlier attempts is kept, that of an earlier job is truncated. */
static int open_output(const struct start_context *context, const char *path,
                       struct error *err)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
    flags |= context->order->attempt == 0 ? O_TRUNC : 0;
    int fd =
        path ? open_user_output(context, path, flags) : open_own_output(context, flags);
    if (fd < 0) /* a file that the job names is its own affair, also on a full disk */
        return error_set(err, path ? -EIO : -errno, "cannot write %s: %s",
                         path ? path : "the output", strerror(errno));
    return fd;
}

static int open_outputs(struct start_context *context, struct started *started,
                        struct error *err)
{
    const struct launch *launch = &context->order->launch;
    struct stat out;
    context->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (context->in < 0)
        return error_set(err, -errno, "/dev/null: %s", strerror(errno));
    context->out = open_output(context, launch->out, err);
    if (context->out < 0)
        return context->out;
    if (fstat(context->out, &out) == 0 && S_ISREG(out.st_mode))
        started->output_bytes = out.st_size;
    context->err = launch->err ? open_output(context, launch->err, err) : context->out;
    return context->err < 0 ? context->err : 0;
}

/* The user's own folder, or the one that was made for the job. */
static int find_ckpt(struct start_context *context, struct error *err)
{
    const struct launch *launch = &context->order->launch;
    struct attempts *attempts = context->attempts;
    if (launch->ckpt_dir) {
        snprintf(context->ckpt_dir, sizeof context->ckpt_dir, "%s", launch->ckpt_dir);
        act_as_user(context);
        mkdir(launch->ckpt_dir,
              0700); /* exists already, or the job reports the failure */
        back_to_root(context);
        return 0;
    }
    snprintf(context->ckpt_dir, sizeof context->ckpt_dir, "%s/ckpt/%" PRIu64,
             attempts->state_path, launch->id);
    return attempt_make_ckpt(attempts, launch->id, context->identity->uid,
                             context->identity->gid, err);
}

/* The rest of the first line after "#!", split once, as the kernel does it. */
static void read_interpreter(const char *script, char *text, const char *words[2])
{
    words[0] = "/bin/sh";
    words[1] = NULL;
    if (strncmp(script, "#!", 2) != 0)
        return;
    size_t length = strcspn(script, "\r\n");
    if (length >= INTERPRETER_MAX)
        return;
    memcpy(text, script, length);
    text[length] = '\0';
    char *word = text + 2 + strspn(text + 2, " \t");
    if (*word == '\0')
        return;
    words[0] = word;
    char *rest = word + strcspn(word, " \t");
    if (*rest == '\0')
        return;
    *rest++ = '\0';
    rest += strspn(rest, " \t");
    for (size_t last = strlen(rest); last > 0 && strchr(" \t", rest[last - 1]); last--)
        rest[last - 1] = '\0';
    words[1] = *rest ? rest : NULL;
}

/* In the current folder, the job's own. */
static int write_script(const struct start_context *context, const char *text,
                        struct error *err)
{
    act_as_user(context);
    int fd = open("script", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
    size_t length = strlen(text);
    ssize_t written = fd >= 0 ? write(fd, text, length) : -1;
    int code = short_write_error(written);
    back_to_root(context);
    if (fd >= 0)
        close(fd);
    if (written == (ssize_t)length)
        return 0;
    return error_set(err, -code, "cannot write the script: %s", strerror(code));
}

/*
 * The command line.  We call a script's interpreter, not the kernel: folders like /run
 * are often mounted noexec.
 */
static int make_argv(struct start_context *context, struct error *err)
{
    const struct launch *launch = &context->order->launch;
    if (!launch->script)
        return 0;
    int r = write_script(context, launch->script, err);
    if (r < 0)
        return r;
    size_t count = 0;
    while (launch->argv[count])
        count++;
    size_t path_bytes = strlen(context->dir) + sizeof "/job/script";
    const char **argv = memory_checked(
        calloc(1, (count + 4) * sizeof *argv + INTERPRETER_MAX + path_bytes));
    char *text = (char *)(argv + count + 4), *path = text + INTERPRETER_MAX;
    snprintf(path, path_bytes, "%s/job/script", context->dir);
    const char *words[2];
    read_interpreter(launch->script, text, words);
    size_t used = 0;
    argv[used++] = words[0];
    if (words[1])
        argv[used++] = words[1];
    argv[used++] = path;
    memcpy(argv + used, launch->argv, count * sizeof *argv);
    context->argv = argv;
    return 0;
}

/* A port that is free now, for rank 0 to listen on; 0: none was found. */
static uint16_t free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    bool found = bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
                 getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    close(fd);
    return found ? ntohs(at.sin_port) : 0;
}

/* --- cgroups --------------------------------------------------------------------------- */

/* At most a half of what the machine has, so that others can start processes. */
static uint32_t max_pids(void)
{
    unsigned long have = 0;
    FILE *file = fopen("/proc/sys/kernel/pid_max", "re");
    if (file && fscanf(file, "%lu", &have) != 1)
        have = 0;
    if (file)
        fclose(file);
    return have > 1 && have / 2 < PIDS_MAX ? (uint32_t)(have / 2) : PIDS_MAX;
}

static void make_cgroup(const struct start_context *context)
{
    const struct launch_order *order = context->order;
    struct cgroup_limits limits = { .memory_bytes = (uint64_t)order->mem_mib << 20,
                                    .cpu_milli = order->cpu_milli,
                                    .pids = context->attempts->system ? max_pids() : 0,
                                    .denied = order->denied,
                                    .denied_count = order->denied_count };
    cgroup_make(&context->attempts->cgroups, context->name, &limits);
}

/* --- processes ------------------------------------------------------------------------ */

static _Noreturn void report_and_exit(const struct start_context *context,
                                      struct start_failure failure)
{
    failure.error = errno;
    if (write(context->report, &failure, sizeof failure) < 0)
        _exit(126);
    _exit(127);
}

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A job does not inherit the protection of a service. */
static void reset_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "0", 1);
        close(fd);
    }
}

/* Search the program in the job's PATH; not before we are the user: PAM runs programs. */
static void set_path(char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            setenv("PATH", *env + 5, 1);
}

/* Keys of root's, and of other users' jobs, are in the session's keyring. */
static void leave_keyring(void)
{
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

/*
 * Limits of a session are the job's alone: starting processes, and closing the session,
 * opens and writes files.
 */
static void exchange_limits(const struct rlimit *set, struct rlimit *get)
{
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)!prlimit(0, (__rlimit_resource_t)i, set ? &set[i] : NULL,
                       get ? &get[i] : NULL);
}

/* To the processors of its fake GPUs; without any it may use all. */
static void bind_to_cores(const char *cores)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    while (cores && isdigit((unsigned char)*cores)) {
        char *end;
        unsigned long core = strtoul(cores, &end, 10);
        if (core < CPU_SETSIZE)
            CPU_SET(core, &set);
        cores = *end == ',' ? end + 1 : end;
    }
    if (CPU_COUNT(&set) > 0)
        (void)!sched_setaffinity(0, sizeof set, &set);
}

/*
 * In the child: execute the job's command.  If the supervisor dies, the child is
 * killed.
 */
static _Noreturn void become_job(const struct start_context *context, char **env)
{
    const struct launch *launch = &context->order->launch;
    setsid();
    if (context->identity->become) {
        reset_oom_score();
        if (context->limits)
            exchange_limits(context->limits, NULL);
        if (!become_for_good(context->identity))
            report_and_exit(context, (struct start_failure){ .what = FAILED_IDENTITY });
        leave_keyring();
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != context->parent)
        _exit(127);
    dup2(context->in, STDIN_FILENO);
    dup2(context->out, STDOUT_FILENO);
    dup2(context->err, STDERR_FILENO);
    umask(umask_of(context));
    unblock_signals();
    bind_to_cores(context->order->cores);
    if (chdir(launch->cwd) < 0)
        report_and_exit(context, (struct start_failure){ .what = FAILED_FOLDER });
    set_path(env);
    execvpe(context->argv[0], (char *const *)context->argv, env);
    report_and_exit(context, (struct start_failure){ .what = FAILED_COMMAND });
}

/* What a child needs to become a rank of the job. */
struct rank_start {
    const struct start_context *context;
    char **env;
};

static void become_rank(void *rank)
{
    const struct rank_start *start = rank;
    become_job(start->context, start->env);
}

/* Arguments are copied to the stack for a script without an interpreter. */
static bool has_few_arguments(const struct start_context *context)
{
    size_t count = 0;
    while (context->argv[count])
        count++;
    return count * sizeof(char *) < CGROUP_STACK_BYTES / 4;
}

/* A child with other rights than ours never shares our memory. */
static pid_t create_process(struct rank_start *start)
{
    const struct start_context *context = start->context;
    const struct cgroup_tree *tree = &context->attempts->cgroups;
    if (!context->identity->become && has_few_arguments(context))
        return cgroup_spawn(tree, context->name, become_rank, start);
    pid_t pid = cgroup_fork(tree, context->name, context->kind);
    if (pid == 0)
        become_rank(start);
    return pid;
}

static int start_rank(const struct start_context *context,
                      const struct rank_place *place, pid_t *ret_pid, struct error *err)
{
    char **env =
        environment_make(context->order, context->dir, context->ckpt_dir, place);
    struct rank_start start = { context, env };
    pid_t pid = create_process(&start);
    for (int tries = 0; tries < CGROUP_TRIES && pid < 0; tries++) {
        if (errno != ENOENT && errno != ENODEV)
            break;
        make_cgroup(context); /* the empty one was removed meanwhile */
        pid = create_process(&start);
    }
    free(env);
    if (pid < 0)
        return error_set(err, -errno, "cannot start a process: %s", strerror(errno));
    *ret_pid = pid;
    return 0;
}

static int set_start_error(const struct start_context *context,
                           const struct start_failure *failure, struct error *err)
{
    const struct launch *launch = &context->order->launch;
    const char *why = strerror(failure->error);
    switch (failure->what) {
    case FAILED_IDENTITY:
        return error_set(err, -EPERM, "cannot run as user %u: %s", launch->uid, why);
    case FAILED_SESSION:
        return error_set(err, -EPERM, "%s", failure->text);
    case FAILED_FOLDER:
        return error_set(err, -failure->error, "cannot enter %s: %s", launch->cwd, why);
    case FAILED_COMMAND:
        break;
    }
    return error_set(err, -failure->error, "cannot run %s: %s", context->argv[0], why);
}

/* Wait until every child has executed its command, or one has reported a failure. */
static int wait_for_ranks(const struct start_context *context, int reports,
                          struct error *err)
{
    struct start_failure failure;
    ssize_t count;
    do
        count = read(reports, &failure, sizeof failure);
    while (count < 0 && errno == EINTR);
    return count == sizeof failure ? set_start_error(context, &failure, err) : 0;
}

/* And what they have started meanwhile. */
static void kill_ranks(const struct start_context *context, const pid_t *pids,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
    cgroup_kill(&context->attempts->cgroups, context->name);
    for (uint32_t i = 0; i < count; i++)
        waitpid(pids[i], NULL, __WALL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

static void start_each_rank(const struct start_context *context,
                            struct rank_place place, struct rank_list *list)
{
    for (; place.rank < place.rank_count; place.rank++) {
        int r = start_rank(context, &place, &list->pids[place.rank], NULL);
        if (r < 0) {
            list->error = -r;
            return;
        }
        list->count++;
    }
}

/* --- the session ------------------------------------------------------------------------ */

#define SESSION_SUFFIX ".pam"

/* The supervisor's: they say that it lives, or keep the job's sockets open. */
static void close_supervisors(const struct start_context *context,
                              const struct started *started)
{
    const int fds[] = { started->link,   started->run_listener, started->job_listener,
                        started->claim,  started->status,       started->order,
                        context->in,     context->out,          context->report,
                        context->folder, context->job_folder };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (context->err >= 0 && context->err != context->out)
        close(context->err);
}

/*
 * PAM's modules are under the limits that they have set: one of no files, or of files of no
 * size, can make the next module fail.
 */
static _Noreturn void refuse_session(const struct start_context *context,
                                     const struct rlimit *own, const struct error *err)
{
    static struct rlimit now[RLIM_NLIMITS];
    struct start_failure failure = { .what = FAILED_SESSION };
    exchange_limits(NULL, now);
    bool limited = memcmp(own, now, sizeof now) != 0;
    snprintf(failure.text, sizeof failure.text, "%.140s%s", err->text,
             limited ? "; a limit that it has set may be too small for its modules"
                     : "");
    report_and_exit(context, failure);
}

/*
 * Open the session, start the job's processes in it, and close it when the supervisor says
 * that the job is over, or has gone.  They are the supervisor's children, not ours.
 */
static _Noreturn void hold_session(struct start_context *context,
                                   const struct started *started,
                                   const struct rank_place *place, int over, int answer)
{
    static struct rank_list list;
    static struct rlimit own[RLIM_NLIMITS], limits[RLIM_NLIMITS];
    struct job_session *session;
    struct error err = { "" };
    char byte;
    setsid();
    exchange_limits(NULL, own);
    if (!session_open(&session, context->identity->user, &err))
        refuse_session(context, own, &err);
    context->kind = CGROUP_FORK_SIBLING;
    exchange_limits(NULL, limits);
    exchange_limits(own, NULL);
    context->limits = limits;
    start_each_rank(context, *place, &list);
    if (write(answer, &list, sizeof list) < 0)
        list.count = 0;
    close(answer);
    close_supervisors(context, started);
    if (chdir("/") < 0)
        list.count = 0;
    while (read(over, &byte, 1) < 0 && errno == EINTR)
        continue;
    session_close(session);
    _exit(0);
}

/* In a cgroup of its own: it must live a little longer than the job and its supervisor. */
static pid_t fork_session(const struct start_context *context)
{
    const struct cgroup_tree *tree = &context->attempts->cgroups;
    const struct cgroup_limits none = { 0 };
    char group[ATTEMPT_NAME_MAX + sizeof SESSION_SUFFIX];
    snprintf(group, sizeof group, "%s" SESSION_SUFFIX, context->name);
    cgroup_make(tree, group, &none);
    return cgroup_fork(tree, group, CGROUP_FORK_UNNOTICED);
}

static int start_in_session(struct start_context *context, struct started *started,
                            const struct rank_place *place, struct rank_list *list,
                            struct error *err)
{
    int over[2], answer[2];
    if (pipe2(over, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
        return error_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork_session(context);
    if (pid == 0) {
        close(over[1]);
        close(answer[0]);
        hold_session(context, started, place, over[0], answer[1]);
    }
    int code = errno;
    close(over[0]);
    close(answer[1]);
    started->session = over[1];
    started->session_pid = pid > 0 ? pid : 0;
    ssize_t got = pid < 0 ? 0 : read(answer[0], list, sizeof *list);
    close(answer[0]);
    if (got != sizeof *list)
        *list = (struct rank_list){ .count = 0 }; /* a report says why */
    return pid < 0 ? error_set(err, -code, "cannot start a process: %s", strerror(code))
                   : 0;
}

static int start_all_ranks(struct start_context *context, struct started *started,
                           struct error *err)
{
    const struct launch *launch = &context->order->launch;
    uint32_t want = launch->tasks_per_node ? launch->tasks_per_node : 1;
    if (want > RANKS_MAX)
        return error_set(err, -EINVAL, "%u tasks: %u is the most", want, RANKS_MAX);
    bool gang = launch->tasks_per_node > 0 || context->order->gpu_count > 1;
    struct rank_place place = { .rank_count = want, .port = gang ? free_port() : 0 };
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    context->report = pipe_fds[1];
    context->parent = getpid();

    int r = 0;
    struct rank_list list = { .count = 0 };
    if (context->identity->become && session_is_needed())
        r = start_in_session(context, started, &place, &list, err);
    else
        start_each_rank(context, place, &list);
    close(pipe_fds[1]);
    if (r == 0 && list.error)
        r = error_set(err, -list.error, "cannot start a process: %s",
                      strerror(list.error));
    if (r == 0)
        r = wait_for_ranks(context, pipe_fds[0], err);
    close(pipe_fds[0]);
    if (r == 0 && list.count < want)
        r = error_set(
            err, -EIO,
            "PAM opens no session: its process has ended, as with limits that "
            "leave it too little memory or too few files");
    if (r < 0)
        kill_ranks(context, list.pids, list.count);
    memcpy(started->pids, list.pids, sizeof started->pids);
    started->pid_count = r < 0 ? 0 : want;
    return r;
}

/* --- all of it ------------------------------------------------------------------------- */

/* In the job's output.  It may be a pipe that is full, or that has no reader any more. */
static void tell_owner(int out, const char *text)
{
    signal(SIGPIPE, SIG_IGN);
    fcntl(out, F_SETFL, O_APPEND | O_NONBLOCK);
    dprintf(out, "berth-run: %s\n", text);
}

/* What only the job is told when it fails; -ENOSPC: there is no room for its files. */
static int start_job(struct start_context *context, struct started *started,
                     struct error *err)
{
    int r = open_job_socket(context, started, err);
    if (r == 0)
        r = find_ckpt(context, err);
    if (r == 0)
        r = open_outputs(context, started, err);
    if (r == 0)
        r = make_argv(context, err);
    if (r == 0)
        r = start_all_ranks(context, started, err);
    if (r < 0 && r != -ENOSPC && context->err >= 0)
        tell_owner(context->err, err->text);
    return r;
}

static void close_context(struct start_context *context)
{
    const int fds[] = { context->in, context->out,
                        context->err == context->out ? -1 : context->err,
                        context->folder, context->job_folder };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (context->argv != context->order->launch.argv)
        free((void *)context->argv);
}

int start_attempt(struct attempts *attempts, const struct launch_order *order,
                  const struct start_identity *identity, struct started *started,
                  struct error *err)
{
    struct start_context context = { .attempts = attempts,
                                     .order = order,
                                     .identity = identity,
                                     .folder = -1,
                                     .job_folder = -1,
                                     .argv = order->launch.argv,
                                     .in = -1,
                                     .out = -1,
                                     .err = -1 };
    attempt_name(context.name, order->launch.id, order->attempt);
    attempt_path(attempts, context.name, context.dir);
    umask(022); /* for the job's files, whatever berthd's is */
    int r = open_folders(&context, err);
    if (r == 0)
        r = started->claim = claim_attempt(&context, started->link, err);
    if (r >= 0)
        r = started->status = reserve_status(&context, err);
    if (r >= 0)
        r = open_job_folder(&context, err);
    if (r == 0)
        r = open_run_socket(&context, started, err);
    if (r == 0)
        make_cgroup(&context);
    struct error why = { "" };
    started->session = -1;
    int failed = r == 0 ? start_job(&context, started, &why) : 0;
    if (failed == -ENOSPC) /* no fault of the job: another attempt begins later */
        r = error_set(err, failed, "%s", why.text);
    else if (failed < 0)
        snprintf(started->why, sizeof started->why, "%.*s", START_WHY_MAX - 1,
                 why.text);
    if (r == 0) {
        started->kill = cgroup_open_kill(&attempts->cgroups, context.name);
        started->oom =
            order->mem_mib ? cgroup_open_oom(&attempts->cgroups, context.name) : -1;
    }
    close_context(&context);
    return r;
}
