/* bench.h - how long an update takes on this host. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct error;
struct levels;

/*
 * With jobs of our own in a network namespace of our own: nothing of the host's is
 * touched.  Needs root.  Prints a line per figure.
 */
int bench_markers(uint32_t jobs, const struct levels *levels, FILE *file,
                  struct error *err);
