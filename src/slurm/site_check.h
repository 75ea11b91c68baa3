/* site_check.h - check whether a Slurm is set up for Berth. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct slurm_driver;

struct slurm_site;

/* Whether a list with commas, or NULL, has this word. */
bool site_check_has_word(const char *list, const char *name);

/* slurmctld accepts libraries of its own release and of some before it, no newer ones. */
bool site_check_library_is_newer(const struct slurm_site *site);

/* Print a line per setting.  Returns the exit status: 1 if something must be changed. */
int site_check_run(const struct slurm_driver *driver, const char *const *partitions,
                   uint32_t count, FILE *file);
