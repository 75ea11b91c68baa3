/* named_pipe.h - a named pipe that any user may write to: a bell, which only wakes. */
#pragma once

struct error;

/*
 * Make it, in place of an older one, and open it; it does not end with its last writer.
 * Anything else of that name is left alone: -EEXIST.
 */
int named_pipe_make(const char *path, struct error *err);

/* Remove the name, unless it is another pipe's by now, and close the descriptor. */
void named_pipe_remove(const char *path, int fd);
