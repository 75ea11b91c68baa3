/* flowd_check.h - report which markers work on this host, and whether berthd answers. */
#pragma once

#include <stdio.h>

struct flowd_setup;

/* Print a line per marker and one for berthd; 0: packets can be marked here, else 1. */
int flowd_check_host(const struct flowd_setup *setup, const char *backend, FILE *file);
