/* berthd.c - the daemon: reads its options, finds its folders, takes its lock, runs. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/places.h"
#include "daemon/privileges.h"
#include "host/heartbeat.h"
#include "host/launcher_client.h"
#include "version.h"

#define LOCK_TRIES 500 /* 10 ms each */
#define JOBS_MAX 200000
#define FENCE_S 60
#define DAY_NS (86400 * INT64_C(1000000000))
#define KEEP_REPORTS_DAYS 30
#define KEEP_JOBS_DAYS 90

static const char help[] =
    "Usage: berthd [--state DIR] [--socket PATH] [--executor local|slurm]\n"
    "              [--fake-gpus TYPE:N,…] [--policy P] [--flow F]\n"
    "              [--listen HOST:PORT] [--config FILE] [--system [--user NAME]]\n"
    "\n"
    "Decides who runs on this machine's accelerators, and runs them. Needs no rights "
    "and no\n"
    "configuration; 'berth up' starts it, and so does the first 'berth' that needs "
    "it.\n"
    "\n"
    "      --state DIR            where jobs, logs and checkpoints are kept\n"
    "      --socket PATH          of the API\n"
    "      --executor NAME        what carries orders out: local,\n"
    "                             slurm, slurm:partition=NAME,…\n"
    "      --fake-gpus TYPE:N,…   slots that stand in for accelerators, or none;\n"
    "                             TYPE:N@cpu: each is a processor of its own\n"
    "      --policy P             NAME[,setting=value…]; see 'berth policies'\n"
    "      --flow F               whose packets go first\n"
    "      --listen HOST:PORT     HTTP over TCP, with tokens; TLS beyond loopback\n"
    "      --config FILE          all of this in a file; see berthd.yaml(5)\n"
    "      --system               started as root: jobs of all users, each as its "
    "user\n"
    "      --user NAME            with --system: user that berthd itself runs as\n"
    "                             (default: berth)\n"
    "      --root-jobs            with --system: run jobs of root as well\n"
    "      --min-uid N            with --system: smallest user number whose jobs are "
    "run\n"
    "                             (default: UID_MIN in /etc/login.defs, or 1000)\n"
    "      --launcher PATH        with --system: socket of a berth-launch that runs "
    "already;\n"
    "                             berthd needs no root then\n"
    "      --version\n"
    "      --help                 show this\n"
    "\n"
    "Prints one line when it is ready. SIGTERM stops it; jobs go on, and the next "
    "berthd\n"
    "takes them up again.\n";

enum {
    OPTION_STATE = 256,
    OPTION_SOCKET,
    OPTION_EXECUTOR,
    OPTION_FAKE,
    OPTION_POLICY,
    OPTION_FLOW,
    OPTION_LISTEN,
    OPTION_CONFIG,
    OPTION_SYSTEM,
    OPTION_USER,
    OPTION_ROOT_JOBS,
    OPTION_MIN_UID,
    OPTION_LAUNCHER,
    OPTION_VERSION,
    OPTION_HELP
};

static const struct option options[] = {
    { "state", required_argument, NULL, OPTION_STATE },
    { "socket", required_argument, NULL, OPTION_SOCKET },
    { "executor", required_argument, NULL, OPTION_EXECUTOR },
    { "fake-gpus", required_argument, NULL, OPTION_FAKE },
    { "policy", required_argument, NULL, OPTION_POLICY },
    { "flow", required_argument, NULL, OPTION_FLOW },
    { "listen", required_argument, NULL, OPTION_LISTEN },
    { "config", required_argument, NULL, OPTION_CONFIG },
    { "system", no_argument, NULL, OPTION_SYSTEM },
    { "user", required_argument, NULL, OPTION_USER },
    { "root-jobs", no_argument, NULL, OPTION_ROOT_JOBS },
    { "min-uid", required_argument, NULL, OPTION_MIN_UID },
    { "launcher", required_argument, NULL, OPTION_LAUNCHER },
    { "version", no_argument, NULL, OPTION_VERSION },
    { "help", no_argument, NULL, OPTION_HELP },
    { NULL, 0, NULL, 0 },
};

static bool read_min_uid(const char *text, uint32_t *ret_uid)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    *ret_uid = (uint32_t)number;
    if (text[0] >= '1' && text[0] <= '9' && *end == '\0' && number < UINT32_MAX)
        return true;
    fprintf(stderr, "berthd: --min-uid is \"%.40s\", want a user number from 1 on\n",
            text);
    return false;
}

/* 0: go on; else the exit status plus 1. */
static int read_options(int argc, char **argv, struct daemon_setup *setup,
                        const char **ret_config)
{
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case OPTION_STATE:
            setup->state_dir = optarg;
            break;
        case OPTION_SOCKET:
            setup->socket = optarg;
            break;
        case OPTION_EXECUTOR:
            setup->executor = optarg;
            break;
        case OPTION_FAKE:
            setup->fake_gpus = optarg;
            break;
        case OPTION_POLICY:
            setup->policy = optarg;
            break;
        case OPTION_FLOW:
            setup->flow = optarg;
            break;
        case OPTION_LISTEN:
            setup->listen = optarg;
            break;
        case OPTION_CONFIG:
            *ret_config = optarg;
            break;
        case OPTION_SYSTEM:
            setup->system = true;
            break;
        case OPTION_USER:
            setup->user = optarg;
            break;
        case OPTION_ROOT_JOBS:
            setup->root_jobs = true;
            break;
        case OPTION_MIN_UID:
            if (!read_min_uid(optarg, &setup->min_uid))
                return 3;
            break;
        case OPTION_LAUNCHER:
            setup->launch_socket = optarg;
            break;
        case OPTION_VERSION:
            printf("berthd %s\n", BERTH_VERSION);
            return 1;
        case OPTION_HELP:
            fputs(help, stdout);
            return 1;
        default:
            return 3;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "berthd: unexpected \"%s\"; see --help\n", argv[optind]);
        return 3;
    }
    return 0;
}

#define PARTITIONS_MAX 30

/* "local", or "slurm:partition=a,b". */
static int check_executor(struct daemon_setup *setup, struct error *err)
{
    static const char *partitions[PARTITIONS_MAX + 1];
    static char names[1024];
    const char *text = setup->executor ? setup->executor : "local";
    const char *of = "slurm:partition=";
    if (strcmp(text, "local") == 0)
        return 0;
    setup->slurm = true;
    if (strcmp(text, "slurm") == 0)
        return 0;
    if (strncmp(text, of, strlen(of)) != 0 || strlen(text) >= sizeof names)
        return error_set(err, -EINVAL,
                         "--executor is \"%.40s\", want local, slurm or "
                         "slurm:partition=NAME",
                         text);
    snprintf(names, sizeof names, "%s", text + strlen(of));
    char *rest = names;
    uint32_t count = 0;
    for (char *name; (name = strsep(&rest, ","));) {
        if (*name == '\0' || *name == '-' || count == PARTITIONS_MAX)
            return error_set(err, -EINVAL, "--executor: want 1 to %d partitions",
                             PARTITIONS_MAX);
        partitions[count++] = name;
    }
    setup->partitions = partitions;
    return 0;
}

/* Check the options and the configuration together, and fill in defaults. */
static int check_setup(struct daemon_setup *setup, struct error *err)
{
    int r = check_executor(setup, err);
    if (r < 0)
        return r;
    if (setup->system && geteuid() != 0 && !setup->launch_socket)
        return error_set(err, -EINVAL, "--system needs root, or --launcher");
    bool launches =
        setup->user || setup->root_jobs || setup->min_uid || setup->slurm_user;
    if (!setup->system && (launches || setup->launch_socket))
        return error_set(err, -EINVAL,
                         "--user, --root-jobs, --min-uid, --launcher and slurm_user go "
                         "with --system");
    if (setup->launch_socket && (geteuid() == 0 || launches))
        return error_set(err, -EINVAL,
                         "--launcher is for a berthd that is not root; --user, "
                         "--root-jobs, --min-uid and slurm_user are options of "
                         "berth-launch then");
    if (setup->job_max == 0)
        setup->job_max = JOBS_MAX;
    if (setup->keep_days == 0)
        setup->keep_days = KEEP_REPORTS_DAYS;
    if (setup->keep_reports_ns == 0)
        setup->keep_reports_ns = setup->keep_days * DAY_NS;
    if (setup->keep_jobs_ns == 0)
        setup->keep_jobs_ns = KEEP_JOBS_DAYS * DAY_NS;
    if (setup->fence_s == 0)
        setup->fence_s = FENCE_S;
    return 0;
}

/* A process that a killed berthd was about to start holds its lock until it executes. */
static bool is_holder_gone(int lock)
{
    char text[32] = "";
    ssize_t count = pread(lock, text, sizeof text - 1, 0);
    int pid = count > 0 ? atoi(text) : 0;
    return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

/*
 * One berthd per state folder.  A holder of the lock that has no socket is starting or
 * stopping, and one that is gone leaves its socket: wait until the lock is free.
 */
static int take_lock(const char *state_dir, const char *socket, struct error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/berthd.lock", state_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    struct stat file;
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode) || file.st_nlink != 1)
        return error_set(err, -EPERM, "%s is not a plain file of its own", path);
    int r = flock(fd, LOCK_EX | LOCK_NB);
    for (int i = 0;
         r < 0 && i < LOCK_TRIES && (access(socket, F_OK) < 0 || is_holder_gone(fd));
         i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        r = flock(fd, LOCK_EX | LOCK_NB);
    }
    if (r < 0)
        return error_set(err, -EBUSY, "another berthd uses %s", state_dir);
    if (ftruncate(fd, 0) == 0)
        dprintf(
            fd, "%d\n",
            (int)getpid()); /* for people to read; failing to write it is no error */
    return 0;               /* held until the end */
}

/* Keep which executor was used, for 'berth slurm release-all' when berthd is gone. */
static void write_executor_file(const struct daemon_setup *setup)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/executor", setup->state_dir);
    FILE *file = fopen(path, "we");
    if (!file)
        return;
    fprintf(file, "%s\n", setup->executor ? setup->executor : "local");
    fclose(file);
}

/* The program of that name beside this one, or in BERTH_LIBEXECDIR. */
static const char *find_program(const char *name, char *path, size_t size)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = '\0';
        snprintf(path, size, "%s/%s", self, name);
        if (access(path, X_OK) == 0)
            return path;
    }
    snprintf(path, size, "%s/%s", BERTH_LIBEXECDIR, name);
    return path;
}

struct programs {
    char run[4200], slurm[4200], launch[4200];
};

/* By the rights that are left: before anything fails there with less of a reason. */
static int check_folder(const char *folder, const struct service_user *service,
                        struct error *err)
{
    if (access(folder, R_OK | W_OK | X_OK) == 0)
        return 0;
    return error_set(err, -errno,
                     "%s: user %s, as whom berthd runs, cannot write in it: %s", folder,
                     service->name, strerror(errno));
}

/*
 * With jobs of several users, root's part is berth-launch's from here on.  On a Slurm cluster
 * that is berth-slurm, since Slurm starts the jobs.
 */
static int give_up_root(struct daemon_setup *setup, const struct programs *programs,
                        const struct service_user *service, struct error *err)
{
    struct launcher_client_setup launch = { .program = programs->launch,
                                            .run_dir = setup->run_dir,
                                            .state_dir = setup->state_dir,
                                            .service_uid = service->uid,
                                            .service_gid = service->gid,
                                            .root_jobs = setup->root_jobs,
                                            .min_uid = setup->min_uid };
    if (setup->slurm) {
        launch.bridge_program = programs->slurm;
        launch.bridge_user = setup->slurm_user;
        launch.partitions = setup->partitions;
    } else
        launch.run_program = programs->run;
    int r = launcher_client_open(&setup->launcher, &launch, err);
    if (r < 0)
        return r;
    privileges_hand_over(setup->state_dir, service);
    r = privileges_drop(service, err);
    if (r == 0)
        r = check_folder(setup->state_dir, service, err);
    if (r < 0)
        return r;
    char folder[4200];
    snprintf(folder, sizeof folder, "%s", setup->socket);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return slash ? check_folder(folder, service, err) : 0;
}

/* Folders, lock, rights. */
static int prepare(struct daemon_setup *setup, struct places *places,
                   const struct programs *programs, struct error *err)
{
    struct service_user user, *service = NULL;
    int r = 0;
    if (setup->system && !setup->launch_socket) {
        service = &user;
        r = privileges_find_user(service, setup->user, err);
    }
    if (r == 0)
        r = places_make(places, setup->state_dir, setup->socket, setup->system, service,
                        err);
    if (r < 0)
        return r;
    setup->state_dir = places->state_dir;
    setup->run_dir = places->run_dir;
    setup->socket = places->socket;
    r = take_lock(setup->state_dir, setup->socket, err);
    if (r == 0 && service)
        r = give_up_root(setup, programs, service, err);
    else if (r == 0 && setup->launch_socket)
        r = launcher_client_connect(&setup->launcher, setup->launch_socket, err);
    if (r == 0)
        write_executor_file(setup);
    return r;
}

int main(int argc, char **argv)
{
    struct daemon_setup setup = { .fail_open_s = HEARTBEAT_LIMIT_S };
    const char *config = NULL;
    int status = read_options(argc, argv, &setup, &config);
    if (status)
        return status - 1;
    signal(SIGPIPE, SIG_IGN);
    umask(077);

    struct error err = { "" };
    struct places places;
    static struct programs programs;
    setup.run_program = find_program("berth-run", programs.run, sizeof programs.run);
    setup.slurm_program =
        find_program("berth-slurm", programs.slurm, sizeof programs.slurm);
    find_program("berth-launch", programs.launch, sizeof programs.launch);
    struct daemon *daemon = NULL;
    struct arena texts;
    arena_init(&texts, 0);
    int r = config ? config_load(&setup, &texts, config, &err) : 0;
    if (r == 0)
        r = check_setup(&setup, &err);
    if (r == 0)
        r = prepare(&setup, &places, &programs, &err);
    if (r == 0)
        r = daemon_new(&daemon, &setup, &err);
    if (r < 0) {
        fprintf(stderr, "berthd: %s\n", err.text);
        return r == -EINVAL || r == -ERANGE ? 2 : 1;
    }
    printf("berthd %s ready on %s\n", BERTH_VERSION, setup.socket);
    fflush(stdout);
    r = daemon_run(daemon, &err);
    daemon_free(daemon);
    launcher_client_close(setup.launcher);
    arena_release(&texts);
    return r < 0;
}
