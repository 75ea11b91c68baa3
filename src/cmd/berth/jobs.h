/* jobs.h - a list of jobs as a table. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct json;

/* Those that are there; 'width' as for sheet_print(). */
void jobs_print(const struct json *jobs, FILE *file, unsigned width, bool colour);
