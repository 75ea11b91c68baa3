/* job_table.h - a list of jobs as a table. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct json;

/* 'width' and 'colour' are as for text_table_print(). */
void job_table_print(const struct json *jobs, FILE *file, unsigned width, bool colour);
