/* output.h - a file that appears only when it is complete. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;

struct output {
    FILE *file;       /* to write to                              */
    const char *path; /* borrowed; NULL or "-": standard output   */
    char *temporary;  /* its name until then; NULL: it has none   */
    bool copies;      /* at the end, to 'through' or standard output */
    FILE *through;    /* a device, a pipe, what a link points to  */
};

/* Whether this path (NULL, "-", /dev/stdout and the like) means standard output. */
bool output_is_stdout(const char *path);

/*
 * A temporary file in the same folder, or one without a name for what is only written
 * through: standard output, a device, a pipe, a link.
 */
int output_open(struct output *output, const char *path, struct error *err);

/* Put it in its place: rename it, or copy it. */
int output_commit(struct output *output, struct error *err);

/* Throw it away, unless it was committed. */
void output_release(struct output *output);
