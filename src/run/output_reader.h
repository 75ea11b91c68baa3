/*
 * output_reader.h - reading a job's output as it grows, for lines that report
 * progress.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pattern.h"

#define OUTPUT_READER_LINE_MAX 4096           /* longer lines are cut */
#define OUTPUT_READER_BYTES_MAX (1024 * 1024) /* per read: more is skipped */

struct output_reader {
    struct pattern pattern;
    int fd; /* -1: nothing is read */
    int64_t offset;
    char line[OUTPUT_READER_LINE_MAX];
    size_t count;
};

int output_reader_init(struct output_reader *reader, const char *pattern,
                       struct error *err);

/* From 'offset' on; a file that cannot be read is ignored. */
void output_reader_open(struct output_reader *reader, const char *path, int64_t offset);
void output_reader_release(struct output_reader *reader);

/* Read new output; true: it reports progress, of which this is the last. */
bool output_reader_read(struct output_reader *reader, double *ret_step,
                        double *ret_loss);
