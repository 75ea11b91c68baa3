/*
 * progress_reader.h - a process of its own that reads what a job's user can write: lines on
 * the job's socket, lines of output that match a pattern, files in the checkpoint folder.
 *
 * It has the user's rights and no others, so whoever takes it over by what it reads gains
 * nothing.  The supervisor, which has more, sees only records of a fixed size and checks
 * their numbers.  The user may kill, halt or replace this process: then reports of progress
 * are missing or false, which the user could have had more simply.
 *
 * Most short jobs need none: it is started when a rank connects, when the job has run for a
 * second, when it is preempted, or at its end if it has a pattern.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct progress_reader_setup {
    const char *pattern; /* NULL: the output is not read                             */
    const char *output_path;
    int64_t output_bytes; /* in the output before the start                          */
    const char *ckpt_dir;
    int64_t since_ns; /* wall clock: older checkpoints do not count                   */
    int listener;     /* job/sock                                                     */
};

/* What the supervisor holds of it. */
struct progress_reader {
    pid_t pid; /* 0: there is none */
    int fd;    /* -1: there is none */
    uint32_t asked;
};

/* What has been read since the last record. */
enum progress_flag {
    PROGRESS_REPORTED = 1, /* 'step' and 'loss'; NAN: not said              */
    PROGRESS_TOTAL = 2,    /* 'total'                                       */
    PROGRESS_RATE = 4,     /* 'rate'                                        */
    PROGRESS_SAVED = 8,    /* 'saved': the job says that it has saved       */
    PROGRESS_WRITTEN = 16, /* a file was written in the checkpoint folder   */
    PROGRESS_WARNED = 32   /* one of the last two, after the warning        */
};

struct progress_record {
    uint32_t flags;
    uint32_t answers; /* number of the request that is carried out; 0: none */
    double step, loss, total, rate, saved;
};

/* Start one; false: it cannot be had now. */
bool progress_reader_start(struct progress_reader *reader,
                           const struct progress_reader_setup *setup);
void progress_reader_stop(struct progress_reader *reader);

/* The warning before a job is killed. */
struct progress_warning {
    int64_t kill_ns;  /* when; 0: there is none           */
    int64_t grace_ns; /* what ranks that are connected are told */
};

/*
 * Ask it to read all that is there by now, and then to warn the ranks.  Returns the number
 * of the request; 0: it cannot be asked.
 */
uint32_t progress_reader_ask(struct progress_reader *reader,
                             struct progress_warning warning);

/* 1: a record came; 0: none; -1: the process has gone, or sends nonsense. */
int progress_reader_receive(struct progress_reader *reader,
                            struct progress_record *record);
