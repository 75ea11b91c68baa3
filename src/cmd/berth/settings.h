/* settings.h - printing the settings of policies and of workload presets. */
#pragma once

#include <stdio.h>

struct field;

/* "name - brief", the line before the settings. */
void settings_print_headline(const char *name, const char *brief, FILE *file);

/* A line per setting: its name and default, its meaning, its bounds. */
void settings_print(const struct field *params, FILE *file);

/* All generators of workloads, each with its settings. */
void settings_print_presets(FILE *file);
