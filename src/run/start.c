/*
 * start.c - from a launch order to processes.
 *
 * As root, the supervisor takes on the owner's identity in two steps: for files at
 * once, and for good when the processes have started, because only root may put them
 * into their cgroup.
 */
#include "run/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "run/environment.h"

#define INTERPRETER_MAX 256

/* What all ranks have in common. */
struct start_context {
    const struct order *order;
    const char *const *argv;
    int in, out, err;
    int cgroup; /* its folder; -1: none */
    int report; /* pipe on which a child reports a failure */
    pid_t parent;
};

/* Why a child could not execute the job's command. */
struct start_failure {
    enum { FAILED_IDENTITY, FAILED_FOLDER, FAILED_COMMAND } what;
    int error;
};

/* --- identity -------------------------------------------------------------------- */

int start_become(const struct order *order, struct error *err)
{
    if (!order->become)
        return 0;
    gid_t groups[ORDER_GROUPS_MAX];
    for (uint32_t i = 0; i < order->group_count; i++)
        groups[i] = order->groups[i];
    gid_t gid = order->launch.gid;
    if (setgroups(order->group_count, groups) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid((uid_t)-1, order->launch.uid, 0) < 0)
        return error_set(err, -errno, "cannot run as user %u: %s", order->launch.uid,
                         strerror(errno));
    return 0;
}

static bool become_for_good(const struct order *order)
{
    uid_t uid = order->launch.uid;
    return !order->become || setresuid(uid, uid, uid) == 0;
}

/* --- files ------------------------------------------------------------------------- */

/* The output of earlier attempts is kept, that of an earlier job is truncated. */
static int open_output(const struct order *order, const char *path, struct error *err)
{
    bool ours = order->own_out && path == order->launch.out;
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
    flags |= order->attempt == 0 ? O_TRUNC : 0;
    flags |= ours ? O_NOFOLLOW
                  : O_NONBLOCK; /* opening a pipe does not wait for its reader */
    if (ours && order->become && seteuid(0) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    int fd = open(path, flags, ours ? 0600 : 0666);
    int code = errno;
    if (ours && order->become) {
        if (fd >= 0 && fchown(fd, order->launch.uid, order->launch.gid) < 0)
            code = errno;
        if (seteuid(order->launch.uid) < 0)
            abort(); /* never continue as root */
    }
    if (fd < 0)
        return error_set(err, -code, "cannot write %s: %s", path, strerror(code));
    if (!ours)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static int open_outputs(struct start_context *context, struct error *err)
{
    const struct launch *launch = &context->order->launch;
    context->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (context->in < 0)
        return error_set(err, -errno, "/dev/null: %s", strerror(errno));
    context->out = open_output(context->order, launch->out, err);
    if (context->out < 0)
        return context->out;
    context->err =
        launch->err ? open_output(context->order, launch->err, err) : context->out;
    return context->err < 0 ? context->err : 0;
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

static int write_script(const char *text, struct error *err)
{
    int fd = open("script", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (fd < 0)
        return error_set(err, -errno, "cannot write the script: %s", strerror(errno));
    size_t length = strlen(text), done = 0;
    while (done < length) {
        ssize_t count = write(fd, text + done, length - done);
        if (count < 0) {
            int code = errno;
            close(fd);
            return error_set(err, -code, "cannot write the script: %s", strerror(code));
        }
        done += (size_t)count;
    }
    close(fd);
    return 0;
}

/*
 * The command line.  We call a script's interpreter, not the kernel: folders like /run
 * are often mounted noexec.
 */
static int make_argv(struct start_context *context, const char *dir, struct error *err)
{
    const struct launch *launch = &context->order->launch;
    if (!launch->script) {
        context->argv = launch->argv;
        return 0;
    }
    int r = write_script(launch->script, err);
    if (r < 0)
        return r;
    size_t count = 0;
    while (launch->argv[count])
        count++;
    size_t path_bytes = strlen(dir) + sizeof "/script";
    const char **argv = memory_checked(
        calloc(1, (count + 4) * sizeof *argv + INTERPRETER_MAX + path_bytes));
    char *text = (char *)(argv + count + 4), *path = text + INTERPRETER_MAX;
    snprintf(path, path_bytes, "%s/script", dir);
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

/*
 * In the child: execute the job's command.  If the supervisor dies, the child is
 * killed.
 */
static _Noreturn void become_job(const struct start_context *context, char **env)
{
    const struct launch *launch = &context->order->launch;
    if (!become_for_good(context->order))
        report_and_exit(context, (struct start_failure){ .what = FAILED_IDENTITY });
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != context->parent)
        _exit(127);
    setsid();
    dup2(context->in, STDIN_FILENO);
    dup2(context->out, STDOUT_FILENO);
    dup2(context->err, STDERR_FILENO);
    unblock_signals();
    if (chdir(launch->cwd) < 0)
        report_and_exit(context, (struct start_failure){ .what = FAILED_FOLDER });
    execvpe(context->argv[0], (char *const *)context->argv, env);
    report_and_exit(context, (struct start_failure){ .what = FAILED_COMMAND });
}

/*
 * Moving a process into a cgroup later waits for the whole machine; creating it there
 * does not.
 */
static pid_t fork_into_cgroup(int cgroup)
{
    if (cgroup < 0)
        return fork();
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)cgroup };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid >= 0)
        return pid;
    pid = fork();
    if (pid == 0) {
        int fd = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "0", 1) == 1)
            close(fd);
    }
    return pid;
}

/* Search the program in the job's PATH, not in ours. */
static void set_path(char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            setenv("PATH", *env + 5, 1);
}

static int start_rank(const struct start_context *context, const char *dir,
                      const struct rank_place *place, pid_t *ret_pid, struct error *err)
{
    char **env = environment_make(context->order, dir, place);
    set_path(env);
    pid_t pid = fork_into_cgroup(context->cgroup);
    if (pid == 0)
        become_job(context, env);
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
        return error_set(err, -failure->error, "cannot run as user %u: %s", launch->uid,
                         why);
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

static void kill_ranks(const pid_t *pids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

static int start_all_ranks(struct start_context *context, const char *dir, pid_t *pids,
                           uint32_t *ret_count, struct error *err)
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

    if (context->order->become && seteuid(0) < 0)
        abort();
    int r = 0;
    for (; r == 0 && place.rank < want; place.rank++)
        r = start_rank(context, dir, &place, &pids[place.rank], err);
    uint32_t started = r == 0 ? want : place.rank - 1;
    if (!become_for_good(context->order))
        abort();
    close(pipe_fds[1]);
    if (r == 0)
        r = wait_for_ranks(context, pipe_fds[0], err);
    close(pipe_fds[0]);
    if (r < 0)
        kill_ranks(pids, started);
    else
        *ret_count = want;
    return r;
}

static void close_context(struct start_context *context)
{
    int fds[] = { context->in, context->out, context->err, context->cgroup };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0 && !(i == 2 && context->err == context->out))
            close(fds[i]);
    if (context->argv != context->order->launch.argv)
        free((void *)context->argv);
}

int start_ranks(const struct order *order, const char *dir, pid_t *pids,
                uint32_t *ret_count, struct error *err)
{
    struct start_context context = { .order = order,
                                     .argv = order->launch.argv,
                                     .in = -1,
                                     .out = -1,
                                     .err = -1,
                                     .cgroup = -1 };
    if (order->cgroup)
        context.cgroup = open(order->cgroup, O_DIRECTORY | O_CLOEXEC);
    int r = open_outputs(&context, err);
    if (r == 0)
        r = make_argv(&context, dir, err);
    if (r == 0)
        r = start_all_ranks(&context, dir, pids, ret_count, err);
    if (r < 0 && context.err >= 0)
        dprintf(context.err, "berth-run: %s\n",
                err->text); /* where the owner reads it */
    close_context(&context);
    if (!become_for_good(order))
        abort();
    return r;
}
