/*
 * pair_figures.h - what jobs gained and lost by sharing GPUs (metrics/pair_ledger.h), for users.
 */
#pragma once

#include <stdint.h>

#include "model/job.h"

struct api_job;
struct buf;
struct daemon_view;
struct prometheus;

/* The partner of a live job, and what it has kept of its speed beside it so far. */
void pair_figures_set_partner(const struct daemon_view *facts, job_id job,
                              struct api_job *words);

/* An array "sharing": each time that the job shared GPUs, newest first; nothing if it never did. */
void pair_figures_write_job(const struct daemon_view *facts, uint64_t id,
                            struct buf *body);

/* An object "sharing" of all pairs that are remembered; nothing if there are none. */
void pair_figures_write_totals(const struct daemon_view *facts, struct buf *body);
void pair_figures_write_metrics(const struct daemon_view *facts,
                                struct prometheus *out);
