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
#include <inttypes.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
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
#include "client/protocol.h"
#include "base/memory.h"

#define INTERPRETER_MAX 256

/* What all ranks have in common. */
struct start_context {
    const struct launch_order *order;
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

int start_become(const struct launch_order *order, struct error *err)
{
    if (!order->become)
        return 0;
    gid_t groups[LAUNCH_GROUPS_MAX];
    for (uint32_t i = 0; i < order->group_count; i++)
        groups[i] = order->groups[i];
    gid_t gid = order->launch.gid;
    if (setgroups(order->group_count, groups) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid((uid_t)-1, order->launch.uid, 0) < 0)
        return error_set(err, -errno, "cannot run as user %u: %s", order->launch.uid,
                         strerror(errno));
    return 0;
}

static bool become_for_good(const struct launch_order *order)
{
    uid_t uid = order->launch.uid;
    return !order->become || setresuid(uid, uid, uid) == 0;
}

/* --- files ------------------------------------------------------------------------- */

/* The output of earlier attempts is kept, that of an earlier job is truncated. */
static int open_output(const struct launch_order *order, const char *path,
                       struct error *err)
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

/* --- the environment ----------------------------------------------------------------- */

/* The rank that the environment is for. */
struct rank_place {
    uint32_t rank, rank_count;
    uint16_t port; /* for rank 0 to listen on; 0: the job is not a gang */
};

#define OURS_MAX 48 /* variables */
#define VALUE_MAX 4608

struct environment {
    char **texts; /* of the whole environment; 'count' are set */
    size_t count;
    char *text, *end; /* where the next one is written */
};

static void add_variable(struct environment *ours, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add_variable(struct environment *ours, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(ours->text, (size_t)(ours->end - ours->text), fmt, args);
    va_end(args);
    if (length < 0 || length >= ours->end - ours->text)
        return;
    ours->texts[ours->count++] = ours->text;
    ours->text += length + 1;
}

static const char *const our_names[] = {
    "BERTH_JOB_ID",
    "BERTH_JOB_NAME",
    "BERTH_ATTEMPT",
    "BERTH_RESUME",
    "BERTH_CLASS",
    "BERTH_CKPT_DIR",
    PROTOCOL_ENV_FILE,
    PROTOCOL_ENV_SOCKET,
    "BERTH_ARRAY_JOB_ID",
    "BERTH_ARRAY_TASK_ID",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "NNODES",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
};

/*
 * Drop the owner's value also where we set none: a rank of another job is no rank
 * here.
 */
static bool is_ours(const char *text)
{
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof our_names / sizeof our_names[0]; i++)
        if (strlen(our_names[i]) == length && strncmp(text, our_names[i], length) == 0)
            return true;
    return false;
}

/*
 * Not ROCR_VISIBLE_DEVICES: set together with HIP's, both would be applied one after
 * the other.
 */
static void add_gpus(struct environment *ours, const struct launch_order *order)
{
    add_variable(ours, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    add_variable(ours, "CUDA_VISIBLE_DEVICES=%s", order->gpus);
    add_variable(ours, "HIP_VISIBLE_DEVICES=%s", order->gpus);
}

/* For a single process RANK and WORLD_SIZE are not set: it would wait for others. */
static void add_gang(struct environment *ours, const struct launch_order *order,
                     const struct rank_place *place)
{
    if (place->port == 0)
        return;
    add_variable(ours, "MASTER_ADDR=127.0.0.1");
    add_variable(ours, "MASTER_PORT=%u", place->port);
    add_variable(ours, "NODE_RANK=0");
    add_variable(ours, "NNODES=1");
    if (order->launch.tasks_per_node == 0)
        return;
    add_variable(ours, "RANK=%" PRIu32, place->rank);
    add_variable(ours, "LOCAL_RANK=%" PRIu32, place->rank);
    add_variable(ours, "WORLD_SIZE=%" PRIu32, place->rank_count);
    add_variable(ours, "LOCAL_WORLD_SIZE=%" PRIu32, place->rank_count);
}

static void add_slurm_names(struct environment *ours, const struct launch_order *order,
                            const struct rank_place *place)
{
    const struct launch *launch = &order->launch;
    add_variable(ours, "SLURM_JOB_ID=%" PRIu64, launch->id);
    add_variable(ours, "SLURM_JOBID=%" PRIu64, launch->id);
    add_variable(ours, "SLURM_JOB_NAME=%s", launch->name ? launch->name : "");
    add_variable(ours, "SLURM_SUBMIT_DIR=%s", launch->cwd);
    add_variable(ours, "SLURM_RESTART_COUNT=%" PRIu32, order->attempt);
    add_variable(ours, "SLURM_JOB_NUM_NODES=1");
    add_variable(ours, "SLURM_NNODES=1");
    add_variable(ours, "SLURM_NODEID=0");
    add_variable(ours, "SLURM_NTASKS=%" PRIu32, place->rank_count);
    add_variable(ours, "SLURM_PROCID=%" PRIu32, place->rank);
    add_variable(ours, "SLURM_LOCALID=%" PRIu32, place->rank);
    add_variable(ours, "SLURM_GPUS=%" PRIu32, order->gpu_count);
    add_variable(ours, "SLURM_JOB_GPUS=%s", order->gpus);
    if (order->cpu_milli >= 1000)
        add_variable(ours, "SLURM_CPUS_ON_NODE=%" PRIu32, order->cpu_milli / 1000);
    if (launch->array_id) {
        add_variable(ours, "SLURM_ARRAY_JOB_ID=%" PRIu64, launch->array_id);
        add_variable(ours, "SLURM_ARRAY_TASK_ID=%" PRIu32, launch->array_index);
    }
}

/* Whether the variable is set, by the owner or by us. */
static bool has_variable(const struct environment *ours, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < ours->count; i++)
        if (strncmp(ours->texts[i], name, length) == 0 && ours->texts[i][length] == '=')
            return true;
    return false;
}

/*
 * Later marking of packets does not reach RDMA: a queue pair keeps its traffic class
 * and service level.  Values set by the owner are kept.
 */
static void add_marks(struct environment *ours, const struct launch_order *order)
{
    if (order->dscp < 0)
        return;
    if (!has_variable(ours, "NCCL_IB_TC"))
        add_variable(ours, "NCCL_IB_TC=%d", order->dscp << 2);
    if (!has_variable(ours, "NCCL_IB_SL"))
        add_variable(ours, "NCCL_IB_SL=%d", order->dscp >> 3);
}

static void add_ours(struct environment *ours, const struct launch_order *order,
                     const char *dir, const struct rank_place *place)
{
    const struct launch *launch = &order->launch;
    add_variable(ours, "BERTH_JOB_ID=%" PRIu64, launch->id);
    if (launch->name)
        add_variable(ours, "BERTH_JOB_NAME=%s", launch->name);
    add_variable(ours, "BERTH_ATTEMPT=%" PRIu32, order->attempt);
    add_variable(ours, "BERTH_RESUME=%d", order->attempt > 0);
    add_variable(ours, "BERTH_CLASS=%s", launch->te ? "te" : "be");
    add_variable(ours, "BERTH_CKPT_DIR=%s", launch->ckpt_dir);
    add_variable(ours, "%s=%s/job.sock", PROTOCOL_ENV_SOCKET, dir);
    if (launch->array_id) {
        add_variable(ours, "BERTH_ARRAY_JOB_ID=%" PRIu64, launch->array_id);
        add_variable(ours, "BERTH_ARRAY_TASK_ID=%" PRIu32, launch->array_index);
    }
    add_gpus(ours, order);
    add_gang(ours, order, place);
    add_marks(ours, order);
    if (launch->slurm_names)
        add_slurm_names(ours, order, place);
    add_variable(ours, "%s=%s/preempt", PROTOCOL_ENV_FILE,
                 dir); /* also identifies the job's processes */
}

/*
 * The environment, ended by NULL; release it with one free().  The owner's variables come
 * first, ours last and instead of theirs: a job that was submitted from within another
 * must not connect to the other's supervisor.
 */
static char **make_environment(const struct launch_order *order, const char *dir,
                               const struct rank_place *place)
{
    size_t theirs = 0;
    while (order->launch.env[theirs])
        theirs++;
    size_t pointers = (theirs + OURS_MAX + 1) * sizeof(char *);
    char *bytes = memory_checked(calloc(1, pointers + (size_t)OURS_MAX * VALUE_MAX));
    struct environment ours = { .texts = (char **)(void *)bytes,
                                .text = bytes + pointers,
                                .end =
                                    bytes + pointers + (size_t)OURS_MAX * VALUE_MAX };
    for (size_t i = 0; i < theirs; i++)
        if (!is_ours(order->launch.env[i]))
            ours.texts[ours.count++] = (char *)order->launch.env[i];
    add_ours(&ours, order, dir, place);
    return ours.texts;
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
    char **env = make_environment(context->order, dir, place);
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

int start_ranks(const struct launch_order *order, const char *dir, pid_t *pids,
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
