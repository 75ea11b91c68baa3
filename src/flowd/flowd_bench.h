/* flowd_bench.h - how long an update takes on this host. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct error;
struct dscp_levels;

/*
 * With jobs of our own in a network namespace of our own: nothing of the host's is
 * touched.  Needs root.  Prints a line per figure.
 */
int flowd_bench_markers(uint32_t jobs, const struct dscp_levels *levels, FILE *file,
                        struct error *err);
