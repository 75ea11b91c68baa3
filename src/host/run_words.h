/*
 * run_words.h - what a supervisor tells berthd, and is told: lines over run.sock.
 *
 *     to berth-run:    stop GRACE_MS    cancel GRACE_MS    kill    collected
 *     from berth-run:  started PID SECONDS_AGO STEPS_KEPT    report STEP LOSS RATE
 *                      saved STEP    total STEPS
 *                      ended HOW CODE SIGNAL STEPS SAVED CLEAN WHY…
 *
 * LOSS is '-' where there is none.  Whoever connects is told all that is known, and then
 * what changes.  The line 'ended …' is also what stands in JOBDIR/status.  Words that a
 * side does not know are ignored by it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define RUN_LINE_MAX 512 /* bytes, with the '\n' */
#define RUN_WHY_MAX 200

/* How an attempt ended, in the supervisor's judgement: only it knows what came first. */
enum run_how {
    RUN_FINISHED,  /* exit status 0                                          */
    RUN_STOPPED,   /* was told to leave, or said itself "saved, put me back" */
    RUN_FAILED,    /* ended by itself, or its time limit was over            */
    RUN_CANCELLED, /* its owner wanted it gone                               */
    RUN_HOW_COUNT
};

struct run_end {
    enum run_how how;
    int code;              /* exit status of the job, or 128 + signal        */
    int signal;            /* that ended it; 0: none                         */
    double steps;          /* reached                                        */
    double saved;          /* kept: what the next attempt goes on from       */
    bool clean;            /* saved its state before it left                 */
    char why[RUN_WHY_MAX]; /* in a few words; "": nothing to say        */
};

/* With a '\n' at the end; 'size' is RUN_LINE_MAX.  Returns its length. */
size_t run_end_write(const struct run_end *end, char *text, size_t size);

/* 'line' begins with "ended".  False: it is no such line. */
bool run_end_read(struct run_end *end, const char *line);

/* Lines out of a stream: bytes in, whole lines out. */
struct run_lines {
    char bytes[RUN_LINE_MAX];
    size_t count;
};

/*
 * Take 'count' bytes and call 'line' for every line that is now whole, without its end.
 * False: one is too long.  A 'line' that returns false ends it there, too.
 */
bool run_lines_add(struct run_lines *lines, const char *bytes, size_t count,
                   size_t line_max, bool (*line)(void *context, char *text),
                   void *context);

/* The next word of a line, ended by NUL; NULL: there is none.  Moves *rest past it. */
char *run_word(char **rest);

/* A finite number that is not negative. */
bool run_number(const char *text, double *ret);
