/* hear.h - what another program says, within some seconds. */
#pragma once

#include <stddef.h>

/*
 * Run it (found by PATH; 'argv' is ended by NULL) and keep the beginning of what it prints
 * on stdout and stderr.  Its exit status, or negative: -ENOENT if there is none, -ETIMEDOUT
 * if it took too long and was killed, another errno if it could not be run or was killed by
 * a signal.
 */
int hear(const char *const *argv, int limit_ms, char *text, size_t size);
