/* launcher.c - orders of berthd, carried out as root. */
#include "launch/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/plain_file.h"
#include "base/units.h"
#include "host/attempt.h"
#include "host/capabilities.h"
#include "host/launcher_protocol.h"
#include "host/message.h"
#include "host/run_protocol.h"
#include "run/start.h"

#define OPEN_S 20         /* then opening a user's file is given up */
#define OPENINGS_MAX 32   /* at once                                */
#define OPENINGS_OF_ONE 4 /* for one user                           */
#define REMOVE_S 600      /* then removing an attempt is given up   */
#define END_S 5           /* berthd has gone: what is removed has so long */
#define USER_TEXT_MAX 16384
#define NUMBER_MAX 16
#define EXIT_REFUSED 126
#define GREETING_MS 5000 /* for the first request of a berthd             */
#define CHECK_MS 1000    /* between two looks at children that open files */
#define SEARCH_S 10      /* then searching for processes is given up      */
#define SEARCHES_MAX 32  /* at once                                       */

/* A child that opens a file. */
struct open_child {
    int pidfd; /* 0: none */
    uint64_t tag;
    uint32_t uid;
    int64_t started_ns;
};

/* A child that kills an attempt's processes that have no cgroup. */
struct process_search {
    char name[ATTEMPT_NAME_MAX]; /* "": none */
    int result;                  /* pipe with what it found */
};

struct launcher {
    const struct launcher_setup *setup;
    int orders, openings; /* of the present berthd */
    int run_program;      /* berth-run of our own version; -1: no jobs are run here */
    int listener;         /* -1: there will be no other        */
    int next;             /* the first connection of the next one; -1: none yet */
    pid_t next_pid;
    struct attempts attempts;
    struct open_child openers[OPENINGS_MAX];
    struct process_search searches[SEARCHES_MAX];
    int bridge;      /* pidfd of berth-slurm; -1: none */
    int removals[2]; /* a pipe that those who remove something hold open */
};

/* --- starting ------------------------------------------------------------------------ */

/* The user by number, as the system knows it now. */
static int find_user(const struct launcher *launcher, uint32_t uid, char *text,
                     struct start_identity *ret, struct error *err)
{
    struct passwd entry, *found = NULL;
    int r = job_users_check(&launcher->setup->users, uid, err);
    if (r < 0)
        return r;
    getpwuid_r(uid, &entry, text, USER_TEXT_MAX, &found);
    if (!found)
        return error_set(err, -ENOENT, "there is no user %u on this machine", uid);
    *ret = (struct start_identity){
        .become = true, .uid = uid, .gid = found->pw_gid, .user = found->pw_name
    };
    return 0;
}

/* The order must be the one that was announced. */
static int read_order(struct launch_order *order, int fd,
                      const struct launcher_request *request, struct error *err)
{
    int r = launch_order_unseal(order, fd, err);
    if (r == 0 &&
        (order->launch.id != request->id || order->attempt != request->attempt))
        r = error_set(err, -EINVAL, "order: it is for another attempt");
    return r;
}

static void keep_open(const struct started *started)
{
    const int fds[] = { started->link,  started->run_listener, started->job_listener,
                        started->claim, started->status,       started->kill,
                        started->order, started->oom,          started->session };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            fcntl(fds[i], F_SETFD, 0);
}

/*
 * Become berth-run, the parent of the processes that were started.  An upgrade replaces the file
 * some time before it restarts us, and what we hand over is of our own version: so it is the
 * file that was there when we began.
 */
static int execute_supervisor(const struct launcher *launcher,
                              const struct started *started, struct error *err)
{
    char number[NUMBER_MAX];
    int fd = launch_order_memory("berth-started", 0);
    if (fd < 0 || pwrite(fd, started, sizeof *started, 0) != (ssize_t)sizeof *started)
        return error_set(err, -errno, "memfd: %s", strerror(errno));
    keep_open(started);
    snprintf(number, sizeof number, "%d", fd);
    char *const argv[] = { (char *)"berth-run",
                           (char *)"--run",
                           (char *)(uintptr_t)launcher->setup->run_dir,
                           (char *)"--state",
                           (char *)(uintptr_t)launcher->setup->state_dir,
                           (char *)"--adopt",
                           number,
                           NULL };
    char *const env[] = { NULL };
    fexecve(launcher->run_program, argv, env);
    return error_set(err, -errno, "%s: %s", launcher->setup->run_program,
                     strerror(errno));
}

/* In a child: start the attempt and supervise it.  Final: it never can be. */
static int start_and_supervise(struct launcher *launcher, const int fds[2],
                               const struct launcher_request *request, bool *ret_final,
                               struct error *err)
{
    static struct started started;
    static struct launch_order order;
    static char text[USER_TEXT_MAX];
    struct start_identity identity;
    started = (struct started){ .link = fds[1],
                                .order = fds[0],
                                .kill = -1,
                                .oom = -1,
                                .service_uid = launcher->setup->users.service_uid,
                                .service_gid = launcher->setup->service_gid };
    int r = read_order(&order, fds[0], request, err);
    if (r < 0)
        return r;
    r = find_user(launcher, order.launch.uid, text, &identity, err);
    *ret_final = r < 0;
    if (r < 0)
        return r;
    if (initgroups(identity.user, identity.gid) < 0)
        return error_set(err, -errno, "cannot run as user %s: %s", identity.user,
                         strerror(errno));
    started.uid = identity.uid;
    started.gid = identity.gid;
    r = start_attempt(&launcher->attempts, &order, &identity, &started, err);
    return r < 0 ? r : execute_supervisor(launcher, &started, err);
}

/*
 * A child may live longer than this process.  It keeps no connection of berthd but 'kept' (-1:
 * none), so that berthd knows when this process has gone.
 */
static void reset_child(const struct launcher *launcher, int kept)
{
    const int fds[] = { launcher->orders, launcher->openings, launcher->listener };
    sigset_t none;
    sigemptyset(&none);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0 && fds[i] != kept)
            close(fds[i]);
}

/* As the end of the job, or else berthd tries again. */
static void tell_refusal(int link, bool final, const char *why)
{
    char line[RUN_LINE_MAX];
    struct run_end end = { .how = RUN_FAILED, .code = EXIT_REFUSED };
    snprintf(end.why, sizeof end.why, "%.*s", RUN_WHY_MAX - 1, why);
    size_t length = final
                        ? run_end_write(&end, line, sizeof line)
                        : (size_t)snprintf(line, sizeof line, "refused %.200s\n", why);
    (void)!send(link, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static _Noreturn void run_start_child(struct launcher *launcher, const int fds[2],
                                      const struct launcher_request *request)
{
    struct error err = { "" };
    bool final = false;
    reset_child(launcher, -1);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int r = start_and_supervise(launcher, fds, request, &final, &err);
    if (r != -EALREADY)
        tell_refusal(fds[1], final, err.text);
    _exit(r == -EALREADY ? 3 : 1);
}

/* The supervisor has a cgroup of its own: it is no part of the service that may be stopped. */
static void start_attempt_of(struct launcher *launcher,
                             const struct launcher_request *request, const int *fds,
                             uint32_t fd_count, struct launcher_reply *reply)
{
    char name[ATTEMPT_NAME_MAX], group[ATTEMPT_NAME_MAX + 8];
    struct attempt_claim claim;
    const struct cgroup_limits none = { 0 };
    if (fd_count != 2) {
        reply->error = EINVAL;
        return;
    }
    attempt_name(name, request->id, request->attempt);
    attempt_read_claim(&launcher->attempts, name, &claim);
    if (claim.begun) {
        reply->error = EEXIST;
        return;
    }
    snprintf(group, sizeof group, "%s.sup", name);
    cgroup_make(&launcher->attempts.cgroups, group, &none);
    pid_t pid = cgroup_fork(&launcher->attempts.cgroups, group, CGROUP_FORK_CHILD);
    if (pid == 0)
        run_start_child(launcher, fds, request);
    reply->pid = pid;
    reply->error = pid < 0 ? errno : 0;
}

/* --- ending ------------------------------------------------------------------------------ */

static bool has_folder(void *context, const char *name)
{
    const struct attempts *attempts = context;
    return faccessat(attempts->jobs, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * In a child: it waits for one that acts as the user, who may put something into the folder
 * meanwhile.
 */
static void remove_attempt(struct launcher *launcher, const char *name)
{
    const struct timespec pause = { .tv_nsec = 50000000 };
    attempt_release_ckpt(&launcher->attempts,
                         name); /* before the next one is started */
    pid_t pid = fork();
    if (pid != 0)
        return;
    reset_child(launcher, -1);
    alarm(REMOVE_S);
    attempt_kill(&launcher->attempts, name);
    while (attempt_remove(&launcher->attempts, name) &&
           has_folder(&launcher->attempts, name)) /* until the alarm */
        nanosleep(&pause, NULL);
    _exit(0);
}

static void start_bridge(struct launcher *launcher,
                         struct launcher_bridge_request *request, const int *fds,
                         uint32_t fd_count, struct launcher_reply *reply)
{
    struct error err = { "" };
    reply->error = -launch_bridge_start(&launcher->setup->bridge, request, fds,
                                        fd_count, &launcher->bridge, &err);
    snprintf(reply->text, sizeof reply->text, "%s", err.text);
}

static void note_left(void *left, int folder)
{
    (void)folder;
    *(bool *)left = true;
}

/* Most jobs leave an output at most.  Checkpoints are removed in a child, as above. */
static void forget_job(struct launcher *launcher, uint64_t id)
{
    struct attempts *attempts = &launcher->attempts;
    bool left = false;
    attempt_remove_kept(attempts->log, attempts->ckpt, id, note_left, &left);
    if (!left || fork() != 0)
        return;
    reset_child(launcher, -1);
    alarm(REMOVE_S);
    attempt_remove_kept(attempts->log, attempts->ckpt, id, attempt_empty_as_owner,
                        attempts);
    _exit(0);
}

/*
 * Processes without a cgroup are found by their environment.  A user may have many, and large
 * ones, so a child reads them.
 */
static void start_search(struct launcher *launcher, struct process_search *search,
                         const char *name)
{
    int result[2];
    if (pipe2(result, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        reset_child(launcher, -1);
        alarm(SEARCH_S);
        char none = attempt_kill_marked(&launcher->attempts, name);
        (void)!write(result[1], &none, 1);
        _exit(0);
    }
    close(result[1]);
    if (pid < 0) {
        close(result[0]);
        return;
    }
    snprintf(search->name, sizeof search->name, "%s", name);
    search->result = result[0];
}

/* The child that searches for it, or a free place; NULL: there is neither. */
static struct process_search *find_search(struct launcher *launcher, const char *name)
{
    struct process_search *free_one = NULL;
    for (int i = 0; i < SEARCHES_MAX; i++) {
        struct process_search *search = &launcher->searches[i];
        if (strcmp(search->name, name) == 0)
            return search;
        free_one = search->name[0] ? free_one : search;
    }
    return free_one;
}

/* Forget those that berthd does not ask about any more. */
static void collect_searches(struct launcher *launcher)
{
    for (int i = 0; i < SEARCHES_MAX; i++) {
        struct process_search *search = &launcher->searches[i];
        struct pollfd ended = { search->result, POLLIN, 0 };
        if (!search->name[0] || poll(&ended, 1, 0) == 0)
            continue;
        close(search->result);
        search->name[0] = '\0';
    }
}

/* Whether the last search found none.  If there was none yet, one begins. */
static bool search_marked(struct launcher *launcher, const char *name)
{
    char none = 0;
    struct process_search *search = find_search(launcher, name);
    if (!search) {
        collect_searches(launcher);
        search = find_search(launcher, name);
    }
    if (!search)
        return false; /* asked again in a moment */
    if (search->name[0]) {
        ssize_t count = read(search->result, &none, 1);
        if (count < 0 && errno == EAGAIN)
            return false;
        close(search->result);
        search->name[0] = '\0';
        if (count != 1 || none)
            return true; /* or it was given up: what hides so well is not found */
    }
    start_search(launcher, search, name);
    return false;
}

static bool has_cgroup_kill(const struct launcher *launcher)
{
    return launcher->attempts.cgroups.features & CGROUP_KILL;
}

static bool kill_attempt(struct launcher *launcher, const char *name)
{
    bool none = attempt_kill_known(&launcher->attempts, name);
    return has_cgroup_kill(launcher) ? none : search_marked(launcher, name) && none;
}

static void kill_job(struct launcher *launcher, const char *name)
{
    if (has_cgroup_kill(launcher))
        attempt_kill_job(&launcher->attempts, name);
    else
        search_marked(launcher, name);
}

/* Orders about attempts. */
static void carry_out(struct launcher *launcher, const struct launcher_request *request,
                      const int *fds, uint32_t fd_count, struct launcher_reply *reply)
{
    char name[ATTEMPT_NAME_MAX];
    attempt_name(name, request->id, request->attempt);
    if (!launcher->setup->run_program && request->kind != LAUNCHER_HELLO) {
        reply->error = ENOSYS;
        return;
    }
    switch (request->kind) {
    case LAUNCHER_HELLO:
        reply->features = launcher->attempts.cgroups.features;
        snprintf(reply->text, sizeof reply->text, "%s", launcher->attempts.cgroups.v2);
        snprintf(reply->why, sizeof reply->why, "%s", launcher->attempts.cgroups.why);
        reply->users = launcher->setup->users;
        return;
    case LAUNCHER_START:
        start_attempt_of(launcher, request, fds, fd_count, reply);
        return;
    case LAUNCHER_KILL:
        reply->left = !kill_attempt(launcher, name);
        return;
    case LAUNCHER_KILL_JOB:
        kill_job(launcher, name);
        return;
    case LAUNCHER_REMOVE:
        remove_attempt(launcher, name);
        return;
    case LAUNCHER_FORGET:
        forget_job(launcher, request->id);
        return;
    default:
        reply->error = ENOSYS;
    }
}

/* False: berthd has gone. */
static bool handle_order(struct launcher *launcher)
{
    struct launcher_bridge_request long_one = { .driver = "" };
    const struct launcher_request *request = &long_one.request;
    struct launcher_reply reply = { .error = 0 };
    int fds[MESSAGE_FDS_MAX];
    uint32_t fd_count = 2;
    ssize_t size = message_receive(launcher->orders, &long_one, sizeof long_one, fds,
                                   &fd_count, 0);
    if (size <= 0 && size != -EPROTO)
        return false;
    if (size == sizeof *request && request->kind != LAUNCHER_BRIDGE)
        carry_out(launcher, request, fds, fd_count, &reply);
    else if (size == sizeof long_one && request->kind == LAUNCHER_BRIDGE)
        start_bridge(launcher, &long_one, fds, fd_count, &reply);
    else
        reply.error = EPROTO;
    for (uint32_t i = 0; i < fd_count; i++)
        close(fds[i]);
    return message_send(launcher->orders, &reply, sizeof reply, NULL, 0) == 0;
}

/* --- opening files ------------------------------------------------------------------------ */

/* Only the effective identity is the user's: the user must not halt this process. */
static int open_as_user(const struct launcher *launcher,
                        const struct launcher_opening *opening)
{
    static char text[USER_TEXT_MAX];
    struct start_identity identity;
    int r = find_user(launcher, opening->uid, text, &identity, NULL);
    if (r < 0)
        return r;
    const struct launcher_setup *setup = launcher->setup;
    if (initgroups(identity.user, identity.gid) < 0 ||
        setresgid(setup->service_gid, identity.gid, setup->service_gid) < 0 ||
        setresuid(setup->users.service_uid, identity.uid, setup->users.service_uid) < 0)
        return -errno;
    return plain_file_open(opening->path, NULL);
}

static _Noreturn void run_open_child(const struct launcher *launcher,
                                     const struct launcher_opening *opening)
{
    int socket = launcher->openings;
    reset_child(launcher, socket);
    alarm(OPEN_S);
    int fd = open_as_user(launcher, opening);
    struct launcher_opened opened = { .tag = opening->tag, .error = fd < 0 ? -fd : 0 };
    message_send(socket, &opened, sizeof opened, &fd, fd >= 0);
    _exit(0);
}

/* A child that was killed cannot answer any more. */
static void answer_late(const struct launcher *launcher, const struct open_child *child)
{
    struct launcher_opened opened = { .tag = child->tag, .error = ETIMEDOUT };
    message_send(launcher->openings, &opened, sizeof opened, NULL, 0);
}

/* Forget a child that has ended, and kill one that takes too long. */
static void check_open_child(const struct launcher *launcher, struct open_child *child)
{
    struct pollfd ended = { child->pidfd, POLLIN, 0 };
    if (child->pidfd == 0)
        return;
    bool late = clock_now_ns() > child->started_ns + (OPEN_S - 1) * NS_PER_S;
    if (clock_now_ns() > child->started_ns + OPEN_S * NS_PER_S)
        syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
    if (poll(&ended, 1, 0) == 1) {
        if (late)
            answer_late(launcher, child);
        close(child->pidfd);
        child->pidfd = 0;
    }
}

/* How many there are. */
static uint32_t check_open_children(struct launcher *launcher)
{
    uint32_t count = 0;
    for (int i = 0; i < OPENINGS_MAX; i++) {
        check_open_child(launcher, &launcher->openers[i]);
        count += launcher->openers[i].pidfd != 0;
    }
    return count;
}

/* NULL: there is none, or none for this user, whose files may be slow to open. */
static struct open_child *find_free_opening(struct launcher *launcher, uint32_t uid)
{
    struct open_child *free_one = NULL;
    uint32_t own_count = 0;
    for (int i = 0; i < OPENINGS_MAX; i++) {
        struct open_child *child = &launcher->openers[i];
        check_open_child(launcher, child);
        own_count += child->pidfd && child->uid == uid;
        free_one = child->pidfd ? free_one : child;
    }
    return own_count < OPENINGS_OF_ONE ? free_one : NULL;
}

static bool fork_opening(struct launcher *launcher,
                         const struct launcher_opening *opening)
{
    struct open_child *child = find_free_opening(launcher, opening->uid);
    pid_t pid = child ? fork() : -1;
    if (pid == 0)
        run_open_child(launcher, opening);
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pidfd > 0) /* else it has ended already */
        *child =
            (struct open_child){ pidfd, opening->tag, opening->uid, clock_now_ns() };
    return pid > 0;
}

static bool handle_opening(struct launcher *launcher)
{
    struct launcher_opening opening = { .tag = 0 };
    int fds[MESSAGE_FDS_MAX];
    uint32_t fd_count = 0;
    ssize_t size = message_receive(launcher->openings, &opening, sizeof opening, fds,
                                   &fd_count, 0);
    if (size <= 0)
        return size == -EPROTO;
    bool sound = size == sizeof opening && opening.path[0] == '/' &&
                 memchr(opening.path, '\0', sizeof opening.path);
    if (sound && fork_opening(launcher, &opening))
        return true;
    struct launcher_opened opened = { .tag = opening.tag,
                                      .error = sound ? EAGAIN : EINVAL };
    return message_send(launcher->openings, &opened, sizeof opened, NULL, 0) == 0;
}

/* --- connections of a berthd that was not started by us ------------------------------------ */

/* Whether one has come, of root or of the service; it is in 'next'. */
static bool accept_berthd(struct launcher *launcher)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd = accept4(launcher->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
        (peer.uid != launcher->setup->users.service_uid && peer.uid != 0)) {
        close(fd);
        return false;
    }
    launcher->next = fd;
    launcher->next_pid = peer.pid;
    return true;
}

/* --- the loop ---------------------------------------------------------------------------- */

/*
 * Each with its reason.  Jobs are not limited by this: they lose all capabilities when they
 * become their users.
 */
static const int kept[] = {
    CAP_CHOWN,        /* folders and files of users                          */
    CAP_DAC_OVERRIDE, /* the state folder is the service's                   */
    CAP_FOWNER,       /* modes of files that are users' by then              */
    CAP_KILL,         /* processes of users                                  */
    CAP_SETUID,       /* become a user                                       */
    CAP_SETGID,
    CAP_SYS_ADMIN,    /* device filters of cgroups, on older kernels         */
    CAP_BPF,          /* the same on newer ones                              */
    CAP_SYS_RESOURCE, /* PAM: limits above those of the service              */
    CAP_AUDIT_WRITE,  /* PAM: records of sessions                            */
    CAP_SYS_PTRACE,   /* environments of processes, where there is no cgroup */
    -1,
};

/* Where Slurm runs the jobs: become a user to open a file, become and end berth-slurm. */
static const int kept_without_jobs[] = { CAP_SETUID, CAP_SETGID, CAP_KILL, -1 };

/* What is being removed goes first: the parent of all cgroups can be removed only then. */
static void wait_for_removals(struct launcher *launcher)
{
    struct pollfd ended = { launcher->removals[0], POLLIN, 0 };
    close(launcher->removals[1]);
    poll(&ended, 1, END_S * 1000);
    close(launcher->removals[0]);
}

static int open_own_attempts(struct launcher *launcher, struct error *err)
{
    const struct launcher_setup *setup = launcher->setup;
    if (!setup->run_program)
        return 0;
    launcher->attempts = (struct attempts){ .system = true,
                                            .service_uid = setup->users.service_uid,
                                            .service_gid = setup->service_gid };
    int r = attempts_open(&launcher->attempts, setup->run_dir, setup->state_dir,
                          ATTEMPTS_OWN, err);
    if (r < 0) {
        attempts_close(&launcher->attempts);
        return r;
    }
    attempts_sweep(&launcher->attempts, has_folder, &launcher->attempts);
    return 0;
}

/* Answer the first request of berthd with what is wrong.  False: there was none. */
static bool refuse_berthd(const struct launcher *launcher, int code,
                          const struct error *err)
{
    struct pollfd asked = { launcher->orders, POLLIN, 0 };
    struct launcher_bridge_request request; /* the largest */
    struct launcher_reply reply = { .error = -code };
    int fds[MESSAGE_FDS_MAX];
    uint32_t fd_count = 0;
    if (poll(&asked, 1, GREETING_MS) <= 0 ||
        message_receive(launcher->orders, &request, sizeof request, fds, &fd_count,
                        0) <= 0)
        return false;
    while (fd_count > 0)
        close(fds[--fd_count]);
    snprintf(reply.text, sizeof reply.text, "%s", err->text);
    return message_send(launcher->orders, &reply, sizeof reply, NULL, 0) == 0;
}

static void serve(struct launcher *launcher)
{
    struct pollfd fds[3] = { { launcher->orders, POLLIN, 0 },
                             { launcher->openings, POLLIN, 0 },
                             { launcher->listener, POLLIN, 0 } };
    for (bool served = true; served;) {
        if (poll(fds, 3, check_open_children(launcher) ? CHECK_MS : -1) <= 0)
            continue;
        if (fds[0].revents)
            served = handle_order(launcher);
        if (served && fds[1].revents)
            served = handle_opening(launcher);
        if (served && fds[2].revents)
            served = !accept_berthd(launcher);
    }
}

/* --- serving one after the other -------------------------------------------------------- */

static int open_run_program(struct launcher *launcher, struct error *err)
{
    const char *path = launcher->setup->run_program;
    launcher->run_program = path ? open(path, O_PATH | O_CLOEXEC) : -1;
    return path && launcher->run_program < 0
               ? error_set(err, -errno, "%s: %s", path, strerror(errno))
               : 0;
}

/* Only root and the service may connect; the folder is root's. */
static int listen_for_berthd(const struct launcher_setup *setup, struct error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(setup->listen) >= sizeof at.sun_path)
        return error_set(err, -ENAMETOOLONG, "--listen: too long");
    memcpy(at.sun_path, setup->listen, strlen(setup->listen) + 1);
    unlink(setup->listen);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    umask(before);
    if (bound && lchown(setup->listen, 0, setup->service_gid) == 0 &&
        chmod(setup->listen, 0660) == 0 && listen(fd, 4) == 0)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    return error_set(err, -code, "%s: %s", setup->listen, strerror(code));
}

/*
 * Each berthd connects twice: for orders, then for openings.  The newest is served: one that
 * was taken over could give its connections to a process that outlives it.
 */
static void await_berthd(struct launcher *launcher)
{
    struct pollfd asked = { launcher->listener, POLLIN, 0 };
    pid_t pid = 0;
    launcher->orders = launcher->openings = -1;
    while (launcher->openings < 0) {
        while (launcher->next < 0)
            if (poll(&asked, 1, -1) > 0)
                accept_berthd(launcher);
        if (launcher->orders >= 0 && launcher->next_pid == pid) {
            launcher->openings = launcher->next;
        } else {
            if (launcher->orders >= 0)
                close(launcher->orders);
            launcher->orders = launcher->next;
            pid = launcher->next_pid;
        }
        launcher->next = -1;
    }
}

/* What the next berthd is told is about its own files. */
static void end_openings(struct launcher *launcher)
{
    for (int i = 0; i < OPENINGS_MAX; i++) {
        struct open_child *child = &launcher->openers[i];
        if (child->pidfd == 0)
            continue;
        syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
        close(child->pidfd);
        child->pidfd = 0;
    }
}

static void serve_listener(struct launcher *launcher)
{
    for (;;) {
        await_berthd(launcher);
        struct error err;
        int r = launcher->attempts.jobs < 0 ? open_own_attempts(launcher, &err) : 0;
        if (r < 0) {
            fprintf(stderr, "berth-launch: %s\n", err.text);
            refuse_berthd(launcher, r, &err);
        } else {
            serve(launcher);
        }
        end_openings(launcher);
        close(launcher->orders);
        close(launcher->openings);
    }
}

/* What was ignored before us is not ignored by jobs. */
static void reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN); /* the reader of our messages may be gone */
    signal(SIGCHLD, SIG_IGN); /* children are not waited for */
}

int launcher_run(const struct launcher_setup *setup, struct error *err)
{
    struct launcher *launcher = memory_checked(calloc(1, sizeof *launcher));
    launcher->setup = setup;
    launcher->orders = setup->orders;
    launcher->openings = setup->openings;
    launcher->attempts.jobs = launcher->bridge = -1;
    if (pipe2(launcher->removals, O_CLOEXEC) < 0)
        launcher->removals[0] = launcher->removals[1] = -1;
    reset_signals();
    launcher->listener = launcher->next = -1;
    int r = open_run_program(launcher, err);
    if (r == 0 && setup->listen)
        r = launcher->listener = listen_for_berthd(setup, err);
    if (r >= 0)
        r = capabilities_limit(setup->run_program ? kept : kept_without_jobs, err);
    if (r == 0 && setup->listen) {
        serve_listener(launcher);
    } else if (r == 0) {
        r = open_own_attempts(launcher, err);
        if (r == 0)
            serve(launcher);
        else if (refuse_berthd(launcher, r, err))
            err->text[0] = '\0';
    }
    wait_for_removals(launcher);
    if (launcher->attempts.jobs >= 0)
        attempts_close(&launcher->attempts);
    free(launcher);
    return r < 0 ? r : 0;
}
