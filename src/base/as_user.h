/* as_user.h - open files with a user's rights. */
#pragma once

#include <stdint.h>

struct error;

/*
 * Open a regular file to read, with the rights of 'uid' and its groups if we are root,
 * else with our own.  Its last part must not be a link; a pipe or a device is refused
 * and never waited for.  A descriptor, or a negative errno.
 */
int as_user_open(const char *path, uint32_t uid, uint32_t gid, struct error *err);
