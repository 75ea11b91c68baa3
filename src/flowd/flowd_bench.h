/* flowd_bench.h - measure how long an update of the marks takes on this host. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct error;
struct dscp_levels;

/*
 * Time every marker with jobs of our own in a network namespace of our own, so that
 * nothing of the host is touched.  Needs root.  Prints a line per figure.
 */
int flowd_bench_markers(uint32_t jobs, const struct dscp_levels *levels, FILE *file,
                        struct error *err);
