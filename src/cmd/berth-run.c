/* berth-run.c - one job's supervisor: started by berthd, outlives it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/supervisor.h"
#include "version.h"

static const char usage[] =
    "berth-run --dir JOBDIR [--link FD]\n"
    "\n"
    "Runs the job that JOBDIR/launch describes and keeps its exit status until berthd\n"
    "has collected it.  berthd starts it; there is no need to do so by hand.\n"
    "\n"
    "  --dir JOBDIR   the folder of this attempt\n"
    "  --link FD      an open connection to berthd\n"
    "  --help, --version\n";

static int print_error(const char *why, const char *word)
{
    fprintf(stderr, "berth-run: %s%s\n", why, word);
    return 2;
}

int main(int argc, char **argv)
{
    const char *dir = NULL;
    long link = -1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return fputs(usage, stdout) < 0;
        if (strcmp(argv[i], "--version") == 0)
            return puts("berth-run " BERTH_VERSION) < 0;
        char *end;
        if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else if (strcmp(argv[i], "--link") == 0 && i + 1 < argc) {
            link = strtol(argv[++i], &end, 10);
            if (*end != '\0' || link < 3 || link > 1024)
                return print_error("--link: want a number of a descriptor, not ",
                                   argv[i]);
        } else
            return print_error("unknown word ", argv[i]);
    }
    if (!dir || dir[0] != '/')
        return print_error("--dir JOBDIR is missing, or not absolute", "");
    struct error err;
    int r = supervisor_run(dir, (int)link, &err);
    if (r == -EALREADY)
        return 3; /* a repeated order: the supervisor that began it goes on */
    return r < 0 ? print_error(err.text, "") / 2 : 0;
}
