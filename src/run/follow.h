/* follow.h - reading a job's output as it grows, for lines that tell of progress. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pattern.h"

#define FOLLOW_LINE_MAX 4096          /* longer lines are cut             */
#define FOLLOW_LOOK_MAX (1024 * 1024) /* bytes in one look: more is skipped */

struct follow {
    struct pattern pattern;
    int fd; /* -1: nothing is followed */
    int64_t offset;
    char line[FOLLOW_LINE_MAX];
    size_t count;
};

int follow_init(struct follow *follow, const char *pattern, struct error *err);

/* From 'offset' on; a file that cannot be read is not followed. */
void follow_open(struct follow *follow, const char *path, int64_t offset);
void follow_release(struct follow *follow);

/* Read what is new; true: something was said, and this is the last of it. */
bool follow_look(struct follow *follow, double *ret_step, double *ret_loss);
