/* queue.h - a list of jobs as 'berth queue' prints it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct json;

/* 'width' and 'colour' are as for text_table_print(). */
void queue_print(const struct json *jobs, FILE *file, unsigned width, bool colour);
