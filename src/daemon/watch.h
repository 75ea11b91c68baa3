/*
 * watch.h - what berthd keeps in mind for its dashboard: the last hours, in fixed room.
 *
 * It hears the lines of the event log once they are durable (chronicle.h), and some seconds
 * after something happened looks at the state (trends.h).  No decision waits for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chronicle;
struct daemon;
struct trends;
struct uv_loop_s;
struct watch;

void watch_open(struct watch **ret_watch, struct daemon *daemon,
                struct uv_loop_s *loop);
void watch_close(struct watch *watch); /* freed when the loop has run */

/* A line of the log is durable. */
void watch_hear(struct watch *watch, const char *line, size_t count, bool te);

const struct chronicle *watch_chronicle(const struct watch *watch);
const struct trends *watch_trends(const struct watch *watch);
