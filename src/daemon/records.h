/*
 * records.h - what the store keeps, read for those who ask.
 *
 * Reading sees what is committed.  A query that cannot be made or read on gives no rows:
 * whoever asks for a list gets what there is, and the daemon goes on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/words.h"
#include "http/stream.h"

struct buf;
struct daemon_facts;
struct db;
struct db_query;

/* States by name, as bits of a set; 0: there is no such state. */
uint32_t records_state(const char *name, size_t count);

#define RECORDS_ENDED 0xf0u /* the states of jobs that have ended */

struct record_filter {
    uint32_t states; /* bits; 0: all                         */
    bool ended;      /* those that have ended too            */
    const char *user, *name;
    const char *ids; /* "3,17,4", and nothing but digits and commas; NULL: all */
    int64_t since_ns, until_ns; /* by submission; -1: any    */
    uint64_t before;            /* ids below this; 0: any    */
    bool newest_first;
    int64_t limit;
};

/* One job.  Texts are borrowed until the next row. */
struct record {
    struct words_job words;
    uint32_t uid;
    const char *request; /* JSON; only of records_one() */
};

/* Rows come by records_next(); then db_finish().  NULL is a query without rows. */
struct db_query *records_list(struct db *db, const struct record_filter *filter);
struct db_query *records_one(struct db *db, uint64_t id);
bool records_next(struct db_query *query, struct record *record);

/* While it lives: how it stands right now.  'placement' is written and pointed to. */
void record_enliven(struct record *record, const struct daemon_facts *facts, job_id job,
                    struct buf *placement);

/* Whose job it was; 0, root's, if nobody knows. */
/* The newest job that is this task of an array; 0: there is none. */
uint64_t records_task(struct db *db, uint64_t array_id, uint32_t index);

uint32_t records_owner(struct db *db, uint64_t id);

/* Preemptions, newest first; of one victim unless 0. */
struct db_query *records_ledger(struct db *db, int64_t victim, int64_t since_ns,
                                int64_t limit);
bool records_next_entry(struct db_query *query, struct words_entry *entry);

/* What happened to one job, in order: the text of each event; the newest 'max'. */
struct db_query *records_story(struct db *db, uint64_t id, int64_t max);

/* For stream_setup.older. */
int records_events(struct db *db, uint64_t seq, uint32_t max, stream_put *put,
                   void *sink);
