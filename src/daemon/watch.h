/*
 * watch.h - the last hours for the dashboard, in memory of a fixed size.
 *
 * It gets events once they are durable and keeps which job held which GPUs (occupancy.h).
 * Some seconds after an event it takes a sample of the state (trends.h).  No decision waits
 * for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct event_record;
struct occupancy;
struct trends;
struct uv_loop_s;
struct watch;

void watch_open(struct watch **ret_watch, struct daemon *daemon,
                struct uv_loop_s *loop);
void watch_close(struct watch *watch); /* freed when the loop has run */

/* An event is durable. */
void watch_event(struct watch *watch, const struct event_record *record);

const struct occupancy *watch_occupancy(const struct watch *watch);
const struct trends *watch_trends(const struct watch *watch);
