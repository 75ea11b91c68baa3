/*
 * cgroup.h - a control group per job, where the kernel lets us make one.
 *
 * A process cannot leave its group by itself, whatever it does with sessions, parents and
 * its environment, so that all of a job is found and ended even when its supervisor is
 * gone.  Only membership is used, no controllers: that works in any delegated corner of
 * the tree, and in a bare cgroup2 mount.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The group that this process is in.  False: there is none, or we may not add to it. */
bool cgroup_find(char *path, size_t size);

/* Whether it is there afterwards. */
bool cgroup_make(const char *path);

/* SIGKILL to all that is in it; true: there was somebody. */
bool cgroup_kill(const char *path);

/* It goes as soon as it is empty; false: it is not yet. */
bool cgroup_remove(const char *path);
