/*
 * store.h - what berthd remembers: the event log, every job, a snapshot of the live ones
 * and the ledger, in one SQLite file.
 *
 * It listens to the engine like metrics do.  Everything told since the last commit goes to
 * disk in one transaction, and engine_step() carries no order out before that.  The
 * snapshot is kept row by row as jobs change, so a restart reads the live jobs and need
 * not replay the log; the log can rebuild the same.
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
struct state;
struct store;

/* The file is made where there is none.  'state' is the engine's, and outlives this. */
int store_open(struct store **ret_store, const char *path, struct error *err);
void store_close(struct store *store);
void store_attach(struct store *store, const struct state *state);

/* A job as it was asked for, before its first event; texts are copied. */
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
    bool held;            /* by its owner */
    const char *rejected; /* why it can never run; or NULL */
    const char *request;  /* JSON */
};
int store_add_job(struct store *store, const struct store_job *job, struct error *err);

/* The number of a job that has ended is given out again: the old one gets another. */
int store_retire(struct store *store, uint64_t id, struct error *err);

/* For engine_add_observer().  What goes wrong is kept and told by the next commit. */
void store_event(void *self, const struct view *view, const struct event *event);
int store_commit(void *self, struct error *err);

/* Throw away what was not committed. */
void store_rollback(struct store *store);

/* Ledger entries as they open, change and close; for ledger_init(). */
void store_write_entry(void *self, const struct ledger_entry *entry,
                       double wait_saved_s, bool open);

/* A live job is held or released by its owner, not by what it waits for. */
int store_hold(struct store *store, uint64_t id, bool held, struct error *err);

/* A live job can never run here any more: it has failed. */
void store_fail_job(struct store *store, uint64_t id, int64_t at_ns, const char *why);

/*
 * Forget what ended jobs reported of their progress before that time, a piece at a call;
 * the rest of their events stays.  Returns how many went; 0: there is no more.
 */
int64_t store_prune(struct store *store, int64_t before_ns, struct error *err);

int store_set_fact(struct store *store, const char *name, const char *value,
                   struct error *err);
/* A copy, to be freed; NULL where there is none. */
char *store_fact(struct store *store, const char *name);

/* Number of the newest event. */
uint64_t store_last_seq(const struct store *store);
/* The largest id that was ever given away; 0: none. */
uint64_t store_last_id(struct store *store);

/* Call 'observe' with each event and its line as it is written, before it is durable. */
void store_observe(struct store *store,
                   void (*observe)(void *context, const struct event_record *record,
                                   const char *line, size_t count),
                   void *context);

/* For whoever asks questions of their own: sees what is committed. */
struct db *store_reader(struct store *store);

/* The request of a job as it was accepted; a copy, to be freed.  NULL: no such job. */
char *store_request(struct store *store, uint64_t id);
