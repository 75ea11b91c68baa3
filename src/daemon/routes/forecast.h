/* forecast.h - when jobs are expected to start and end, as members of replies. */
#pragma once

#include "model/job.h"

struct buf;
struct daemon_view;
struct expected_time;
struct routes;

/* {"p10": …, "p50": …, "p90": …, …}; nothing where nothing can be said. */
void forecast_write_time(struct buf *body, const char *key,
                         const struct expected_time *expected);

/* "expected_start" and "expected_end" of a live job. */
void forecast_write_job(const struct daemon_view *facts, job_id job, struct buf *body);

/* Tell clients of the event stream when there is a new forecast. */
void forecast_announce(struct routes *routes);
