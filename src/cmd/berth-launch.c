/* berth-launch.c - the part of berthd that is root: started by berthd --system. */
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/launcher.h"
#include "version.h"

#define ORDERS_FD 3
#define OPENINGS_FD 4

static const char help[] =
    "Usage: berth-launch --run DIR --state DIR --supervisor PATH --uid N --gid N\n"
    "                    [--listen PATH] [--root-jobs]\n"
    "\n"
    "Starts and ends the jobs of all users, as root, when berthd asks.  'berthd "
    "--system'\n"
    "starts it, or a service manager with --listen.\n"
    "\n"
    "      --run DIR           folder of attempts and sockets\n"
    "      --state DIR         folder of output and checkpoints\n"
    "      --supervisor PATH   the program berth-run\n"
    "      --uid N, --gid N    user and group of berthd\n"
    "      --user NAME         the same by name\n"
    "      --listen PATH       wait for berthd at this socket\n"
    "      --root-jobs         run jobs of root as well\n"
    "      --version\n"
    "      --help              show this\n";

enum { RUN = 256, STATE, SUPERVISOR, UID, GID, USER, LISTEN, ROOT_JOBS, VERSION, HELP };

static const struct option options[] = {
    { "run", required_argument, NULL, RUN },
    { "state", required_argument, NULL, STATE },
    { "supervisor", required_argument, NULL, SUPERVISOR },
    { "uid", required_argument, NULL, UID },
    { "gid", required_argument, NULL, GID },
    { "user", required_argument, NULL, USER },
    { "listen", required_argument, NULL, LISTEN },
    { "root-jobs", no_argument, NULL, ROOT_JOBS },
    { "version", no_argument, NULL, VERSION },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static bool find_user(struct launcher_setup *setup, const char *name)
{
    const struct passwd *user = getpwnam(name);
    if (!user) {
        fprintf(stderr, "berth-launch: --user: there is no user %s\n", name);
        return false;
    }
    setup->service_uid = user->pw_uid;
    setup->service_gid = user->pw_gid;
    return true;
}

/* 0: go on; else the exit status plus 1. */
static int read_options(int argc, char **argv, struct launcher_setup *setup)
{
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case RUN:
            setup->run_dir = optarg;
            break;
        case STATE:
            setup->state_dir = optarg;
            break;
        case SUPERVISOR:
            setup->run_program = optarg;
            break;
        case UID:
            setup->service_uid = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case GID:
            setup->service_gid = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case USER:
            if (!find_user(setup, optarg))
                return 3;
            break;
        case LISTEN:
            setup->listen = optarg;
            break;
        case ROOT_JOBS:
            setup->root_jobs = true;
            break;
        case VERSION:
            printf("berth-launch %s\n", BERTH_VERSION);
            return 1;
        case HELP:
            fputs(help, stdout);
            return 1;
        default:
            return 3;
        }
    }
    return 0;
}

static int check_setup(const struct launcher_setup *setup, struct error *err)
{
    struct stat socket;
    if (!setup->run_dir || !setup->state_dir || !setup->run_program ||
        setup->service_uid == 0)
        return error_set(err, -EINVAL,
                         "--run, --state, --supervisor and --uid are needed");
    if (geteuid() != 0)
        return error_set(err, -EPERM, "needs root");
    if (!setup->listen && (fstat(ORDERS_FD, &socket) < 0 || !S_ISSOCK(socket.st_mode)))
        return error_set(err, -EINVAL,
                         "is started by berthd --system, or needs --listen");
    return 0;
}

int main(int argc, char **argv)
{
    struct launcher_setup setup = { .orders = ORDERS_FD, .openings = OPENINGS_FD };
    struct error err = { "" };
    int status = read_options(argc, argv, &setup);
    if (status)
        return status - 1;
    umask(022);
    int r = check_setup(&setup, &err);
    int wrong = r < 0;
    if (r == 0)
        r = launcher_run(&setup, &err);
    if (r < 0)
        fprintf(stderr, "berth-launch: %s\n", err.text);
    return wrong ? 2 : r < 0;
}
