/* berth-slurm.c - the program between berthd and Slurm: berthd starts and ends it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "slurm/bridge.h"
#include "slurm/site_check.h"
#include "slurm/slurm_driver.h"
#include "version.h"

static const char usage[] =
    "berth-slurm [--driver DRIVER] [--partition NAME]... [--bell PATH] [--check]\n"
    "\n"
    "Speaks with berthd in lines of JSON on its standard input and output, and with\n"
    "Slurm.  berthd or berth-launch starts it; there is no need to do so by hand, but "
    "for\n"
    "--check.  Requests about jobs of other partitions are refused.\n"
    "\n"
    "  --driver DRIVER   libslurm, commands (scontrol and the like) or auto\n"
    "  --partition NAME  look after this partition; without it, after all of them\n"
    "  --bell PATH       a named pipe to make: what is written to it has us look at "
    "once\n"
    "  --bell-fd N       the same as an open descriptor\n"
    "  --check           say whether Slurm is set up for Berth, and end\n"
    "  --help, --version\n";

static int print_error(const char *why, const char *word)
{
    fprintf(stderr, "berth-slurm: %s%s\n", why, word);
    return 2;
}

/* NULL, with a message printed: there is no such driver in this build. */
static const struct slurm_driver *find_driver(const char *name)
{
    if (strcmp(name, "commands") == 0)
        return &slurm_driver_commands;
#ifdef HAVE_LIBSLURM
    if (strcmp(name, "auto") == 0 || strcmp(name, "libslurm") == 0)
        return &slurm_driver_libslurm;
#else
    if (strcmp(name, "auto") == 0)
        return &slurm_driver_commands;
    if (strcmp(name, "libslurm") == 0) {
        print_error("built without libslurm; take --driver commands", "");
        return NULL;
    }
#endif
    print_error("--driver: want auto, libslurm or commands, not ", name);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *partitions[BRIDGE_PARTITIONS_MAX];
    const char *name = "auto";
    bool check = false;
    struct bridge_setup setup = { .partitions = partitions,
                                  .bell_fd = -1,
                                  .in = STDIN_FILENO,
                                  .out = STDOUT_FILENO };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return fputs(usage, stdout) < 0;
        if (strcmp(argv[i], "--version") == 0)
            return puts("berth-slurm " BERTH_VERSION) < 0;
        if (strcmp(argv[i], "--check") == 0)
            check = true;
        else if (strcmp(argv[i], "--driver") == 0 && i + 1 < argc)
            name = argv[++i];
        else if (strcmp(argv[i], "--bell") == 0 && i + 1 < argc)
            setup.bell = argv[++i];
        else if (strcmp(argv[i], "--bell-fd") == 0 && i + 1 < argc)
            setup.bell_fd = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--partition") == 0 && i + 1 < argc) {
            if (setup.partition_count == BRIDGE_PARTITIONS_MAX)
                return print_error("too many partitions", "");
            partitions[setup.partition_count++] = argv[++i];
        } else
            return print_error("unknown word, or something is missing after it: ",
                               argv[i]);
    }
    setup.driver = find_driver(name);
    if (!setup.driver)
        return 2;
    if (check) {
        int status =
            site_check_run(setup.driver, partitions, setup.partition_count, stdout);
        fflush(stdout);
        _exit(status); /* as below */
    }
    signal(SIGPIPE, SIG_IGN);
    struct error err;
    int r = bridge_run(&setup, &err);
    fflush(stdout);
    /* A thread may be in a call to Slurm: skip exit handlers and destructors. */
    _exit(r < 0 ? print_error(err.text, "") / 2 : 0);
}
