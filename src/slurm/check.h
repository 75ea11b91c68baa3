/* check.h - is this Slurm set up for Berth? */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct driver;

/* A line per setting; the status of the program: 0, or 1 if something must be changed. */
int check_site(const struct driver *driver, const char *const *partitions,
               uint32_t count, FILE *file);
