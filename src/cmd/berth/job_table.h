/* job_table.h - a list of jobs as a table. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct json;
struct text_table;

/* Of several lists one after the other: the table of all of them. */
void job_table_init(struct text_table *table);
void job_table_add(struct text_table *table, const struct json *jobs);

/* 'width' and 'colour' are as for text_table_print(). */
void job_table_print(const struct json *jobs, FILE *file, unsigned width, bool colour);
