/* show.h - figures as a table for people, and a progress bar. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "metrics/summary.h"

struct comparison;
struct field;

/* The figures of all policies side by side, over seeds; the best of each row marked. */
void show_comparison(const struct comparison *comparison, FILE *file);

/* Settings, a line each: name and value unless set, what it is, bounds. */
void show_params(const struct field *params, FILE *file);

/* Text, broken between words where the terminal ends; 'used' columns are behind it. */
void show_wrapped(const char *text, uint32_t used, FILE *file);

/* "name - brief", as what comes before settings. */
void show_headline(const char *name, const char *brief, FILE *file);

/* The generators of workloads, each with its settings. */
void show_presets(FILE *file);

/* A bar on stderr, where that is a terminal; 'context' is ignored. */
void show_progress(void *context, double share);
void show_progress_end(void);
