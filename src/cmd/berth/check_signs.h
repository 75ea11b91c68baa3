/*
 * check_signs.h - signs of a job's progress that need no word from it: files that it reads
 * and writes in its checkpoint folder, and steps in its output.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

#define SIGNS_NAME_MAX 64

struct signs {
    int watch; /* inotify, or -1 */
    char folder[4096];
    char output[4096];
    regex_t pattern;
    bool compiled;

    uint32_t written, read; /* files, since signs_begin() */
    char written_name[SIGNS_NAME_MAX], read_name[SIGNS_NAME_MAX];
};

/* 'pattern' finds a step; NULL: lines with "step 123". */
int signs_open(struct signs *signs, const char *folder, const char *output,
               const char *pattern, struct error *err);
void signs_close(struct signs *signs);

/* Begin to watch the folder, which is there by now. */
void signs_watch(struct signs *signs);

/* Count anew. */
void signs_begin(struct signs *signs);

/* Take note of what happened since. */
void signs_look(struct signs *signs);

/* Bytes of output so far. */
int64_t signs_output_bytes(const struct signs *signs);

/* The first and the last step in a part of the output; false if there is none. */
bool signs_steps(const struct signs *signs, int64_t from, int64_t to, double *ret_first,
                 double *ret_last);

/* The last line of the output; "" if there is none. */
void signs_last_line(const struct signs *signs, char *line, size_t size);
