/*
 * leftovers.h - what is left of a job whose supervisor is gone.
 *
 * A supervisor ends all of its job.  When it was killed itself, nobody is left who knows
 * the processes; they are found by their control group, or else by the environment that
 * they were given and have not thrown away.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * One go: SIGKILL to all there is in 'cgroup' (or NULL) and to all whose environment
 * holds 'mark', "NAME=value".  Returns how many were found; 0: nothing is left.
 */
uint32_t leftovers_kill(const char *cgroup, const char *mark);

/* Whether a process was started with an environment variable that begins so. */
bool leftovers_marked(int pid, const char *beginning);
