/*
 * forecast_rows.h - the table of forecasts: what was said of the start and the end of a job when it
 * had been submitted, and what happened.
 *
 * Of each job there is at most one forecast of its first start and one of its end.  What is written
 * belongs to the next commit of the store.  The newest FORECAST_ROWS_MAX are kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct forecast_rows;
struct store;

#define FORECAST_ROWS_MAX 20000

enum forecast_row_target { FORECAST_START, FORECAST_END, FORECAST_TARGETS };

struct forecast_row {
    uint64_t job;
    enum forecast_row_target target;
    int64_t made_ns;
    const char *policy; /* its name */
    uint32_t gpus;
    bool is_forward;     /* 'forward_s' is known                                    */
    double forward_s[3]; /* by playing forward: seconds from then to p10, p50, p90  */
    double shown_s[3];   /* what users were told                                    */
    bool shown_baseline; /* it was the naive baseline                               */
    int64_t over_ns;     /* when it had turned out; -1: it has not                  */
    bool dropped;        /* the job ended before that                               */
};

struct forecast_rows *forecast_rows_new(struct store *store); /* which outlives it */
void forecast_rows_free(struct forecast_rows *rows);

int forecast_rows_add(struct forecast_rows *rows, const struct forecast_row *row,
                      struct error *err);

/* It has turned out, or never will. */
int forecast_rows_end(struct forecast_rows *rows, uint64_t job,
                      enum forecast_row_target target, int64_t at_ns, bool dropped,
                      struct error *err);

/*
 * Those made since then, at most so many and of more the newest, in the order in which they were
 * made; texts are valid for the call only.
 */
void forecast_rows_read(struct store *store, int64_t since_ns, uint32_t most,
                        void (*take)(void *context, const struct forecast_row *row),
                        void *context);
