/*
 * output_path.h - the file that a job's output goes to, with its placeholders
 * expanded.
 */
#pragma once

#include <limits.h>

struct error;
struct launch;

/* %j job id, %x name, %u user, %A and %a array and index in it, %n node. */
int output_path(char path[static PATH_MAX], const char *pattern,
                const struct launch *launch, const char *user, struct error *err);
