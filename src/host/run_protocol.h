/*
 * run_protocol.h - the protocol between berthd and a supervisor: lines over run.sock.
 *
 *     to berth-run:    stop GRACE_MS    cancel GRACE_MS    kill    collected
 *     from berth-run:  started PID SECONDS_AGO STEPS_KEPT    report STEP LOSS RATE AGE_S
 *                      saved STEP    total STEPS
 *                      ended HOW CODE SIGNAL STEPS SAVED CLEAN WHY…
 *
 * LOSS is '-' where there is none; AGE_S is how long ago the job said STEP.  A berthd that connects is sent all that is known,
 * and then what changes.  The line 'ended …' is also the content of JOBDIR/status.
 * Each side ignores words that it does not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define RUN_LINE_MAX 512 /* bytes, with the '\n' */
#define RUN_WHY_MAX 200

/* How an attempt ended; only its supervisor knows what happened first. */
enum run_how {
    RUN_FINISHED,  /* exit status 0 */
    RUN_STOPPED,   /* was preempted, or exited with "saved, requeue me" */
    RUN_FAILED,    /* failed by itself, or reached its time limit */
    RUN_CANCELLED, /* was cancelled by its owner */
    RUN_HOW_COUNT
};

struct run_end {
    enum run_how how;
    int code;              /* exit status of the job, or 128 + signal */
    int signal;            /* that ended it; 0: none */
    double steps;          /* reached */
    double saved;          /* from which the next attempt resumes */
    bool clean;            /* saved a checkpoint before it ended */
    char why[RUN_WHY_MAX]; /* in a few words; "": no reason */
};

/* With a '\n' at the end; 'size' is RUN_LINE_MAX.  Returns its length. */
size_t run_end_write(const struct run_end *end, char *text, size_t size);

/* 'line' begins with "ended".  False: it is no such line. */
bool run_end_read(struct run_end *end, const char *line);

/* A report of progress: the rest of the line after its word. */
struct run_report {
    double step, rate_per_s;
    double loss;  /* NAN: none */
    double age_s; /* how long ago the job said the step */
};

/* False: it is none. */
bool run_report_read(struct run_report *report, char *rest);

/* Splits a stream of bytes into lines. */
struct run_lines {
    char bytes[RUN_LINE_MAX];
    size_t count;
};

/*
 * Add 'count' bytes and call 'line' for every line that is complete now, without its
 * end.  False: a line is too long, or 'line' returned false.
 */
bool run_lines_add(struct run_lines *lines, const char *bytes, size_t count,
                   size_t line_max, bool (*line)(void *context, char *text),
                   void *context);

/* The next word of a line, ended by NUL; NULL: none.  Moves *rest past it. */
char *run_word(char **rest);

/* A finite number that is not negative. */
bool run_number(const char *text, double *ret);
