/* spawn.h - run a command of Slurm's and keep what it said. */
#pragma once

#include <stddef.h>

struct buf;
struct error;

/*
 * Its status, with all of its output and the last line of its errors (what it is called
 * is cut off); -ETIMEDOUT after 'seconds', when it is killed; -ENOENT: there is none.
 */
int spawn_wait(const char *const *words, int seconds, struct buf *output, char *said,
               size_t size, struct error *err);
