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
#define UID_MIN_USUAL 1000

static const char help[] =
    "Usage: berth-launch --uid N --gid N --run DIR --state DIR --supervisor PATH\n"
    "                    [--listen PATH] [--root-jobs] [--min-uid N]\n"
    "       berth-launch --uid N --gid N --bridge PATH [--bridge-user NAME]\n"
    "                    [--partition NAME]... [--listen PATH] [--root-jobs]\n"
    "                    [--min-uid N]\n"
    "\n"
    "Starts and ends the jobs of all users, as root, when berthd asks; or starts "
    "berth-slurm\n"
    "where Slurm does that.  'berthd --system' starts it, or a service manager with "
    "--listen.\n"
    "\n"
    "      --run DIR           folder of attempts and sockets\n"
    "      --state DIR         folder of output and checkpoints\n"
    "      --supervisor PATH   the program berth-run\n"
    "      --bridge PATH       the program berth-slurm\n"
    "      --bridge-user NAME  user that it runs as: SlurmUser, an operator, or root\n"
    "                          (default: root)\n"
    "      --partition NAME    partition that berthd may manage; may be repeated\n"
    "                          (default: all)\n"
    "      --uid N, --gid N    user and group of berthd\n"
    "      --user NAME         the same by name\n"
    "      --listen PATH       wait for berthd at this socket\n"
    "      --root-jobs         run jobs of root, and open files of root, as well\n"
    "      --min-uid N         smallest user number whose jobs are run and whose "
    "files\n"
    "                          are opened (default: UID_MIN in /etc/login.defs, or "
    "1000)\n"
    "      --version\n"
    "      --help              show this\n";

enum {
    RUN = 256,
    STATE,
    SUPERVISOR,
    BRIDGE,
    BRIDGE_USER,
    PARTITION,
    UID,
    GID,
    USER,
    LISTEN,
    ROOT_JOBS,
    MIN_UID,
    VERSION,
    HELP
};

static const struct option options[] = {
    { "run", required_argument, NULL, RUN },
    { "state", required_argument, NULL, STATE },
    { "supervisor", required_argument, NULL, SUPERVISOR },
    { "bridge", required_argument, NULL, BRIDGE },
    { "bridge-user", required_argument, NULL, BRIDGE_USER },
    { "partition", required_argument, NULL, PARTITION },
    { "uid", required_argument, NULL, UID },
    { "gid", required_argument, NULL, GID },
    { "user", required_argument, NULL, USER },
    { "listen", required_argument, NULL, LISTEN },
    { "root-jobs", no_argument, NULL, ROOT_JOBS },
    { "min-uid", required_argument, NULL, MIN_UID },
    { "version", no_argument, NULL, VERSION },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static bool find_user(const char *option, const char *name, uint32_t *ret_uid,
                      uint32_t *ret_gid)
{
    const struct passwd *user = getpwnam(name);
    if (!user) {
        fprintf(stderr, "berth-launch: %s: there is no user %s\n", option, name);
        return false;
    }
    *ret_uid = user->pw_uid;
    *ret_gid = user->pw_gid;
    return true;
}

static bool add_partition(struct launch_bridge_setup *bridge, const char *name)
{
    struct error err = { "" };
    int r = launch_bridge_check_partition(name, &err);
    if (r == 0 && bridge->partition_count == LAUNCH_BRIDGE_PARTITIONS_MAX)
        r = error_set(&err, -E2BIG, "more than %d partitions",
                      LAUNCH_BRIDGE_PARTITIONS_MAX);
    if (r < 0)
        fprintf(stderr, "berth-launch: --partition: %s\n", err.text);
    else
        bridge->partitions[bridge->partition_count++] = name;
    return r == 0;
}

/* UID_MIN of the system's users, as useradd has it. */
static uint32_t find_min_uid(void)
{
    unsigned long number = UID_MIN_USUAL;
    char line[256];
    FILE *file = fopen("/etc/login.defs", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, " UID_MIN %lu", &number) == 1)
            break;
    if (file)
        fclose(file);
    return number > 0 && number < UINT32_MAX ? (uint32_t)number : UID_MIN_USUAL;
}

static bool read_uid(const char *text, uint32_t *ret_uid)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    *ret_uid = (uint32_t)number;
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && number < UINT32_MAX)
        return true;
    fprintf(stderr, "berth-launch: --min-uid: want a user number, not %s\n", text);
    return false;
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
            setup->users.service_uid = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case GID:
            setup->service_gid = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case USER:
            if (!find_user("--user", optarg, &setup->users.service_uid,
                           &setup->service_gid))
                return 3;
            break;
        case BRIDGE:
            setup->bridge.program = optarg;
            break;
        case BRIDGE_USER:
            setup->bridge.user = optarg;
            if (!find_user("--bridge-user", optarg, &setup->bridge.uid,
                           &setup->bridge.gid))
                return 3;
            break;
        case PARTITION:
            if (!add_partition(&setup->bridge, optarg))
                return 3;
            break;
        case LISTEN:
            setup->listen = optarg;
            break;
        case ROOT_JOBS:
            setup->users.root_jobs = 1;
            break;
        case MIN_UID:
            if (!read_uid(optarg, &setup->users.min_uid))
                return 3;
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
    bool runs_jobs = setup->run_dir && setup->state_dir && setup->run_program;
    if (setup->users.service_uid == 0 || runs_jobs == (setup->bridge.program != NULL))
        return error_set(err, -EINVAL,
                         "--uid is needed, and --run, --state and --supervisor or "
                         "--bridge");
    if (geteuid() != 0)
        return error_set(err, -EPERM, "needs root");
    if (!setup->listen && (fstat(ORDERS_FD, &socket) < 0 || !S_ISSOCK(socket.st_mode)))
        return error_set(err, -EINVAL,
                         "is started by berthd --system, or needs --listen");
    return 0;
}

int main(int argc, char **argv)
{
    struct launcher_setup setup = { .bridge.user = "root",
                                    .orders = ORDERS_FD,
                                    .openings = OPENINGS_FD,
                                    .users.min_uid = find_min_uid() };
    struct error err = { "" };
    int status = read_options(argc, argv, &setup);
    if (status)
        return status - 1;
    umask(022);
    int r = check_setup(&setup, &err);
    int wrong = r < 0;
    if (r == 0)
        r = launcher_run(&setup, &err);
    if (err.text[0])
        fprintf(stderr, "berth-launch: %s\n", err.text);
    return wrong ? 2 : r < 0;
}
