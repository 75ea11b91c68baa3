/*
 * dashboard.h - the last hours for the dashboard, in memory of a fixed size.
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
struct dashboard;

void dashboard_open(struct dashboard **ret_dashboard, struct daemon *daemon,
                    struct uv_loop_s *loop);
void dashboard_close(struct dashboard *dashboard); /* freed when the loop has run */

/* An event is durable. */
void dashboard_event(struct dashboard *dashboard, const struct event_record *record);

const struct occupancy *dashboard_occupancy(const struct dashboard *dashboard);
const struct trends *dashboard_trends(const struct dashboard *dashboard);
