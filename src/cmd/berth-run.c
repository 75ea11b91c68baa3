/* berth-run.c - one job's supervisor: started by berthd or berth-launch, outlives them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "host/attempt.h"
#include "run/start.h"
#include "run/supervisor.h"
#include "version.h"

static const char usage[] =
    "berth-run --run DIR --state DIR --serve FD\n"
    "berth-run --run DIR --state DIR --adopt FD\n"
    "\n"
    "Runs one job and keeps its exit status until berthd has collected it.  berthd "
    "and\n"
    "berth-launch start it; there is no need to do so by hand.  With --serve it forks\n"
    "one such process for every order of berthd.\n"
    "\n"
    "  --run DIR      folder of attempts\n"
    "  --state DIR    folder of output and checkpoints\n"
    "  --serve FD     a socket on which berthd sends orders and connections to it\n"
    "  --adopt FD     what berth-launch has started already\n"
    "  --help, --version\n";

struct arguments {
    const char *run, *state;
    int serve, adopt;
    char *word; /* "--serve" itself */
};

static struct attempts attempts; /* of our own user */

static int print_error(const char *why, const char *word)
{
    fprintf(stderr, "berth-run: %s%s\n", why, word);
    return 2;
}

static bool read_descriptor(const char *text, int *ret)
{
    char *end;
    long fd = strtol(text, &end, 10);
    *ret = (int)fd;
    return *end == '\0' && fd >= 3 && fd <= 1024;
}

/* 0: go on; else the exit status plus 1. */
static int read_arguments(struct arguments *arguments, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return (fputs(usage, stdout) < 0) + 1;
        if (strcmp(argv[i], "--version") == 0)
            return (puts("berth-run " BERTH_VERSION) < 0) + 1;
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        int *fd = strcmp(argv[i], "--serve") == 0   ? &arguments->serve
                  : strcmp(argv[i], "--adopt") == 0 ? &arguments->adopt
                                                    : NULL;
        const char **text = strcmp(argv[i], "--run") == 0     ? &arguments->run
                            : strcmp(argv[i], "--state") == 0 ? &arguments->state
                                                              : NULL;
        if ((!fd && !text) || !value)
            return print_error("unknown or incomplete option ", argv[i]) + 1;
        if (fd == &arguments->serve)
            arguments->word = argv[i];
        i++;
        if (text)
            *text = value;
        else if (!read_descriptor(value, fd))
            return print_error("want the number of an open descriptor, not ", value) +
                   1;
    }
    if (!arguments->run || !arguments->state ||
        (arguments->serve < 0) == (arguments->adopt < 0))
        return print_error("--run, --state and one of --serve and --adopt are needed",
                           "") +
               1;
    return 0;
}

/* berthd learns over the link that there is no attempt. */
static int refuse(int link, const struct error *err)
{
    char line[256];
    int length = snprintf(line, sizeof line, "refused %.200s\n", err->text);
    if (link >= 0)
        (void)!send(link, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    return print_error(err->text, "") / 2;
}

/* An order and the connection that belongs to it; false: berthd is gone. */
static bool receive_order(int from, int *ret_order, int *ret_link)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    char byte;
    struct iovec one = { &byte, 1 };
    struct msghdr message = { .msg_iov = &one,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof control.space };
    ssize_t count;
    do
        count = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fds[2];
    if (count != 1 || !header || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof fds))
        return false;
    memcpy(fds, CMSG_DATA(header), sizeof fds);
    *ret_order = fds[0];
    *ret_link = fds[1];
    return true;
}

/*
 * Fork a supervisor for every order, and return in it.  Supervisors outlive this process,
 * which ends with berthd.
 */
static void serve_orders(const struct arguments *arguments, int *ret_order,
                         int *ret_link)
{
    signal(SIGCHLD, SIG_IGN); /* nobody asks how supervisors end */
    while (receive_order(arguments->serve, ret_order, ret_link)) {
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGCHLD, SIG_DFL);
            setsid();
            close(arguments->serve);
            memcpy(arguments->word, "--order", strlen("--order")); /* for ps */
            return;
        }
        struct error err;
        if (pid < 0) {
            error_set(&err, -errno, "cannot start a process: %s", strerror(errno));
            refuse(*ret_link, &err);
        }
        close(*ret_order);
        close(*ret_link);
    }
    _exit(0);
}

/* Start the job with our own rights. */
static int start_own(const struct arguments *arguments, struct started *started,
                     struct launch_order *order, struct error *err)
{
    const struct start_identity own = { .become = false };
    int fd;
    serve_orders(arguments, &fd, &started->link);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int r = launch_order_unseal(order, fd, err);
    close(fd);
    if (r == 0)
        r = attempts_open(&attempts, arguments->run, arguments->state, ATTEMPTS_JOIN,
                          err);
    if (r < 0)
        return r;
    cgroup_tree_join(&attempts.cgroups, order->cgroups);
    return start_attempt(&attempts, order, &own, started, err);
}

/* berthd has collected the end.  What root has made, root removes. */
static void remove_own(const struct launch_order *order)
{
    char name[ATTEMPT_NAME_MAX];
    attempt_name(name, order->launch.id, order->attempt);
    attempt_remove(&attempts, name);
}

/*
 * Root has started the job: give up its rights at once.  Only the effective identity is
 * the user's, so the job cannot signal this process, and we can signal the job.
 */
static int adopt_started(const struct arguments *arguments, struct started *started,
                         struct launch_order *order, struct error *err)
{
    int fd = arguments->adopt;
    if (pread(fd, started, sizeof *started, 0) != (ssize_t)sizeof *started)
        return error_set(err, -EINVAL, "--adopt: cannot be read");
    close(fd);
    uid_t uid = started->uid, service = started->service_uid;
    gid_t gid = started->gid, service_group = started->service_gid;
    if (setresgid(service_group, gid, service_group) < 0 ||
        setresuid(service, uid, service) < 0 ||
        (uid != 0 && service != 0 && setuid(0) == 0))
        return error_set(err, -EPERM, "cannot give up root's rights");
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "berth-run"); /* by a descriptor it has no name */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return launch_order_unseal(order, started->order, err);
}

int main(int argc, char **argv)
{
    static struct started started;
    static struct launch_order order;
    struct arguments arguments = { .serve = -1, .adopt = -1 };
    struct error err = { "" };
    int status = read_arguments(&arguments, argc, argv);
    if (status)
        return status - 1;
    started.link = -1;
    int r = arguments.adopt >= 0 ? adopt_started(&arguments, &started, &order, &err)
                                 : start_own(&arguments, &started, &order, &err);
    if (r == -EALREADY)
        return 3; /* a repeated order: the supervisor that began it goes on */
    if (r < 0)
        return refuse(started.link, &err);
    r = supervisor_run(&started, &order, arguments.state, &err);
    if (r > 0 && arguments.serve >= 0)
        remove_own(&order);
    return r < 0 ? print_error(err.text, "") / 2 : 0;
}
