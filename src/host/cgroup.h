/*
 * cgroup.h - a cgroup per job, where the kernel allows it.
 *
 * A process cannot leave its cgroup by itself, whatever it does with sessions, parents
 * and its environment, so all processes of a job are found and killed even when its
 * supervisor is gone.  Only membership is used, no controllers: that works in any
 * delegated part of the tree, and in a bare cgroup2 mount.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The cgroup of this process.  False: there is none, or we may not create children in
 * it.
 */
bool cgroup_find(char *path, size_t size);

/* True if it exists afterwards. */
bool cgroup_make(const char *path);

/* Send SIGKILL to all its processes; true: there were some. */
bool cgroup_kill(const char *path);

/* Remove it if it is empty; false: it is not yet. */
bool cgroup_remove(const char *path);
