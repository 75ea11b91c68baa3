/* report.h - what a job says of itself, on its way. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct call;
struct flags;

struct report {
    const struct flags *flags;
    double step, loss, total, saved; /* NAN: not said */
    uint64_t id;                     /* 0: not known  */
};

/* A connection that is kept; zero it, and close the call. */
struct report_line {
    struct call *call;
    bool known; /* berthd has taken the token that it has */
};

/* An exit status, after a message. */
int report_to_file(const struct report *report, const char *path);
int report_to_berthd(const struct report *report, struct report_line *line,
                     const char *address);

/*
 * relay.c: run a command whose client of Berth's speaks with us, and pass on what it says.  Its
 * exit status.
 */
int relay_run(const struct report *report, char **words);
