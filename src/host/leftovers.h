/*
 * leftovers.h - the remaining processes of a job after its supervisor was killed.
 *
 * A supervisor ends all processes of its job.  If it was itself killed, they are found
 * by their cgroup, or else by the environment that they were given and have not
 * cleared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEFTOVERS_ANY_USER UINT32_MAX

/*
 * Send SIGKILL once to all processes of a user that have 'mark', "NAME=value", in their
 * environment.  Returns how many were found; 0: none is left.  A user can make this wait, but
 * only for processes of the same user.
 */
uint32_t leftovers_kill(const char *mark, uint32_t uid);

/*
 * The rest of an environment variable that begins like this, of those that a process was
 * started with; false: it has none.
 */
bool leftovers_read(int pid, const char *beginning, char *rest, size_t size);
