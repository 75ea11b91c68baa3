/* flowd_check.h - what marking works on this host, and whether berthd answers. */
#pragma once

#include <stdio.h>

struct flowd_setup;

/* Print it; 0 if some marking works, else 1. */
int flowd_check_host(const struct flowd_setup *setup, const char *backend, FILE *file);
