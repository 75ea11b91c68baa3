/*
 * rate_rows.h - the tables of rates that were measured, alone (model/rate_table.h) and beside
 * others (model/pair_table.h), and of what jobs of a kind do with a GPU and send.
 *
 * A row is written with the report that changed it, in the same transaction.  Of more rows than
 * the state has room for, those with the oldest reports are deleted.
 */
#pragma once

#include "model/event.h"

struct db;
struct db_query;
struct error;
struct state;

/* The queries that write; 'count' is of rows since the last deletion. */
struct rate_rows {
    struct db_query *set, *trim, *set_pair, *trim_pairs, *set_use, *trim_uses;
    uint32_t count, pair_count, use_count;
};

#define RATE_ROWS_SET \
    "INSERT OR REPLACE INTO rate (kind, type, gpus, spread, mean, variance, count, " \
    "at_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
#define RATE_ROWS_TRIM \
    "DELETE FROM rate WHERE at_ns < (SELECT at_ns FROM rate ORDER BY at_ns DESC " \
    "LIMIT 1 OFFSET ?)"
#define RATE_ROWS_SET_PAIR \
    "INSERT OR REPLACE INTO pair (kind, beside, type, kept, count, at_ns) " \
    "VALUES (?, ?, ?, ?, ?, ?)"
#define RATE_ROWS_TRIM_PAIRS \
    "DELETE FROM pair WHERE at_ns < (SELECT at_ns FROM pair ORDER BY at_ns DESC " \
    "LIMIT 1 OFFSET ?)"

#define RATE_ROWS_SET_USE \
    "INSERT OR REPLACE INTO kind_use (kind, type, gpu_mib, busy, gpus, sent, " \
    "sent_count, at_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
#define RATE_ROWS_TRIM_USES \
    "DELETE FROM kind_use WHERE at_ns < (SELECT at_ns FROM kind_use ORDER BY at_ns " \
    "DESC LIMIT 1 OFFSET ?)"

/* Write what the event has taught, if it did. */
int rate_rows_note(struct rate_rows *rows, const struct state *state,
                   const struct event *event, struct error *err);

/* Put all rows back, those with the newest reports first. */
int rate_rows_read(struct db *db, struct state *state, struct error *err);
