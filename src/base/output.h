/* output.h - a file that appears only when it is complete. */
#pragma once

#include <stdio.h>

struct error;

struct output {
    FILE *file;       /* to write to                              */
    const char *path; /* borrowed; NULL or "-": standard output   */
    char *temporary;  /* its name until then; NULL: it has none   */
};

/* A temporary file in the same folder, or one without a name for standard output. */
int output_open(struct output *output, const char *path, struct error *err);

/* Put it in its place: rename it, or copy it to standard output. */
int output_commit(struct output *output, struct error *err);

/* Throw it away, unless it was committed. */
void output_release(struct output *output);
