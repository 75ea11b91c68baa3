/* output_path.h - where a job's output goes, its place holders filled in. */
#pragma once

#include <limits.h>

struct error;
struct launch;

/* %j its number, %x name, %u user, %A and %a array and index in it, %n node. */
int output_path(char path[static PATH_MAX], const char *pattern,
                const struct launch *launch, const char *user, struct error *err);
