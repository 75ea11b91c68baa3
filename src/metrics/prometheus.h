/*
 * prometheus.h - text for /metrics.
 *
 * Two formats of the same figures: OpenMetrics for clients that accept it, and the older
 * text format for all others.  They differ in where "_total" stands, in units, and in the
 * last line.
 *
 *   # TYPE berth_gpu_seconds counter
 *   # UNIT berth_gpu_seconds seconds
 *   # HELP berth_gpu_seconds GPU-time held by jobs.
 *   berth_gpu_seconds_total{class="te"} 12.5
 *   # EOF
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;

struct prometheus {
    struct buf *text;
    bool open;        /* OpenMetrics */
    const char *name; /* of the family that was begun last */
    bool counter;
};

#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define PROMETHEUS_OPEN_TYPE \
    "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Does this Accept header (or NULL) ask for OpenMetrics? */
bool prometheus_accepts_open(const char *accept);

struct prometheus_label {
    const char *name;
    const char *value; /* any text; escaped */
};

void prometheus_begin(struct prometheus *out, struct buf *text, bool open);
void prometheus_end(struct prometheus *out);

/*
 * Begin a family; its samples follow.  'unit' ("seconds", "bytes") is the last word of
 * the name, or NULL.  A counter's name is given without "_total".  Names are constants, so
 * a malformed one is a failed assertion.
 */
void prometheus_counter(struct prometheus *out, const char *name, const char *unit,
                        const char *help);
void prometheus_gauge(struct prometheus *out, const char *name, const char *unit,
                      const char *help);

/* One sample of the family; labels end with a NULL name, or are NULL. */
void prometheus_value(struct prometheus *out, const struct prometheus_label *labels,
                      double value);
void prometheus_count(struct prometheus *out, const struct prometheus_label *labels,
                      uint64_t value);
