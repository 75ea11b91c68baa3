/* rows.h - live jobs, ledger entries and pairs as rows, and back.  For store.c and recover.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"
#include "model/job.h"
#include "model/view.h"

struct arena;
struct buf;
struct cluster;
struct db;
struct db_query;
struct error;
struct ledger_entry;
struct pair_entry;
struct pair_totals;
struct state;

/* PENDING, RUNNING, …: what users see. */
const char *rows_state(const struct job *job);

/* Where a job is, in JSON: [{"node":"n0","type":"v100","gpus":[0,1]}]. */
void rows_placement(struct buf *buf, const struct view *view,
                    const struct seat_row *row);

struct db_query *rows_prepare_live(struct db *db);
struct db_query *rows_prepare_entry(struct db *db);

/* Set the parameters; the buffers keep texts until the query has run. */
void rows_write_live(struct db_query *query, const struct state *state, job_id job,
                     struct buf *seats, struct buf *next, struct buf *pending_shares,
                     struct buf *served);
void rows_write_entry(struct db_query *query, const struct ledger_entry *entry,
                      double wait_saved_s, bool open);

/* A part of a pending allocation, by the victim's public id. */
struct kept_pending {
    uint64_t victim;
    struct room_part part;
};

/* A live job as it was at the last commit.  Texts and rows live in an arena. */
struct stored_job {
    struct job job; /* times, steps and counts; no seats      */
    uint32_t uid;
    const char *user, *name, *entity;
    bool held;           /* by its owner                           */
    const char *request; /* JSON                                   */
    struct seat *seats, *next;
    uint32_t seat_count, next_count;
    struct kept_pending *pending_shares;
    uint32_t pending_count;
    int64_t served_ns[TYPES_MAX];
    uint64_t beside, next_beside; /* public ids; 0: no job            */
    uint64_t array_id;
    uint32_t array_index;
};

/*
 * All of them, in order of their ids: 1 for each, 0 at the end.  -EILSEQ: this row cannot be
 * read, only the job's id is known, and the next row may be asked for.
 */
struct db_query *rows_select_live(struct db *db);
int rows_read_live(struct db_query *query, const struct cluster *cluster,
                   struct arena *arena, struct stored_job *kept, struct error *err);

/* The newest loss reports of a job, newest first: at most 'max'; how many there are. */
struct db_query *rows_select_losses(struct db *db);
uint32_t rows_read_losses(struct db_query *query, uint64_t id, double *steps,
                          double *losses, uint32_t max);

struct db_query *rows_select_open(struct db *db); /* ledger entries, oldest first */
int rows_read_entry(struct db_query *query, struct ledger_entry *entry,
                    struct error *err);

/*
 * Jobs that shared GPUs: those that do, or all of one job (by its public id), newest first; and
 * what all of them come to.
 */
struct db_query *rows_prepare_pair(struct db *db);
void rows_write_pair(struct db_query *query, const struct pair_entry *entry);
struct db_query *rows_select_open_pairs(struct db *db);
struct db_query *rows_select_pairs_of(struct db *db, uint64_t job, int64_t max);
int rows_read_pair(struct db_query *query, struct pair_entry *entry, struct error *err);
int rows_read_pair_totals(struct db *db, struct pair_totals *totals, struct error *err);
