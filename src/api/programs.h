/* programs.h - finding Berth's other programs, and starting berthd in the background. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct call;
struct error;

/*
 * Start berthd with these arguments (ended by NULL; or NULL: none), detached from this
 * terminal, and wait until it answers 'call'.  Its messages go to berthd.log in 'state'
 * (NULL: the usual state folder).
 */
int programs_start_berthd(struct call *call, const char *state, const char *const *args,
                          struct error *err);

/* The path of a program in the folder of this one, in static memory; NULL: search PATH. */
const char *programs_find(const char *name);

/*
 * In a child: detach from this terminal and become berthd.  Its one line goes to 'ready', its
 * messages to 'log'.  'argv' is ended by NULL.
 */
_Noreturn void programs_exec_berthd(const char *const *argv, int ready, int log);

/* Wait until berthd has written its one line, which it does when it listens. */
bool programs_wait_ready(int fd, int timeout_ms);

/* The last line of a log from offset 'from' on; "" if there is none. */
void programs_last_line(const char *path, long from, char *line, size_t size);
