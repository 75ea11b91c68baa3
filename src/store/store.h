/*
 * store.h - what survives a restart of berthd: the event log, every job, a snapshot of the
 * live ones and the ledger, in one SQLite file.
 *
 * The store observes the engine like metrics do.  All changes since the last commit go to disk
 * in one transaction, and engine_step() carries no order out before that.  The snapshot is
 * written row by row as jobs change, so a restart reads the live jobs and does not replay the
 * log, which could rebuild the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/view.h"

struct db;
struct event_record;
struct error;
struct ledger_entry;
struct pair_entry;
struct state;
struct store;
struct usage_rows;

/* The file is made where there is none.  'state' is the engine's, and outlives this. */
int store_open(struct store **ret_store, const char *path, struct error *err);
void store_close(struct store *store);
void store_attach(struct store *store, const struct state *state);

/* A job as it was submitted, before its first event; texts are copied. */
struct store_job {
    uint64_t id;
    uint32_t uid;
    const char *user, *name, *types, *entity;
    enum job_class class;
    uint32_t gpus;
    uint64_t array_id; /* 0: none */
    uint32_t array_index;
    double steps; /* 0: not known */
    int64_t submit_ns;
    bool held;  /* by its owner */
    bool waits; /* is HELD until a condition is met: its owner's, or another */
    const char *rejected; /* why it can never run; or NULL */
    const char *request;  /* JSON, all but the next two                  */
    const char *env;      /* JSON: an object, or NULL; kept until its end */
    const char *script;   /* JSON: a text with quotes, or NULL            */
};
int store_add_job(struct store *store, const struct store_job *job, struct error *err);

/* Move an ended job to another id, as its own is used again. */
int store_retire(struct store *store, uint64_t id, struct error *err);

/* For engine_add_observer().  A failure is kept and returned by the next commit. */
void store_event(void *self, const struct view *view, const struct event *event);
int store_commit(void *self, struct error *err);

/* Something else that belongs to the next commit could not be written: it fails as well.  Nothing if 'code' is 0. */
void store_fail(struct store *store, int code, const struct error *err);

/*
 * Whether the database is still at its path: -ENOENT if it is gone, -ESTALE if another file is
 * there.  A commit checks it too: what goes into a deleted file is not kept.
 */
int store_check_file(const struct store *store, struct error *err);

/* Discard what was not committed. */
void store_rollback(struct store *store);

/* Ledger entries as they open, change and close; for ledger_init(). */
void store_write_entry(void *self, const struct ledger_entry *entry,
                       double wait_saved_s, bool open);

/* Pairs of jobs that share GPUs as they begin, are booked and end; for ledger_init(). */
void store_write_pair(void *self, const struct pair_entry *entry);

/* Whether a live job is held by its owner, not by a start condition. */
int store_hold(struct store *store, uint64_t id, bool held, struct error *err);

/* End a live job that can never run here any more: it has failed. */
void store_fail_job(struct store *store, uint64_t id, int64_t at_ns, const char *why);

/*
 * Since the last checkpoint an environment or something else was deleted, which the write-ahead
 * log still has; true after an opening, as it is not known what an earlier berthd left there.
 */
bool store_has_remains(const struct store *store);
void store_note_remains(struct store *store);

/* Bring the log into the database and empty it.  -EBUSY: not now (db_checkpoint()). */
int store_checkpoint(struct store *store, struct error *err);

int store_set_fact(struct store *store, const char *name, const char *value,
                   struct error *err);
/* A copy, to be freed; NULL where there is none. */
char *store_fact(struct store *store, const char *name);

/* Number of the newest event, and the largest id that any job has had; 0: none.  Both hold
 * when the rows have been pruned: no number is used twice. */
uint64_t store_last_seq(const struct store *store);
uint64_t store_last_id(struct store *store);

/* Call 'observe' with each event and its line as it is written, before it is durable. */
void store_observe(struct store *store,
                   void (*observe)(void *context, const struct event_record *record,
                                   const char *line, size_t count),
                   void *context);

/* The connection for queries: it sees what is committed. */
struct db *store_reader(struct store *store);

/* The connection for tables with files of their own (submission_keys.c): what they write belongs
 * to the next commit, and is discarded by a rollback. */
struct db *store_writer(struct store *store);

/* What is kept of each user's jobs. */
struct usage_rows *store_usage(struct store *store);

/*
 * The request of a job as it was accepted; a copy, to be freed.  NULL: no such job.  That of a
 * job that has ended has no environment any more.
 */
char *store_request(struct store *store, uint64_t id);
