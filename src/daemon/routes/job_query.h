/*
 * job_query.h - jobs and their ledger entries, as the store keeps them, for users.
 *
 * A query that cannot be made or read on gives no rows: a list has what there is, and the
 * daemon goes on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/api_json.h"

struct buf;
struct caller;
struct daemon_view;
struct db;
struct db_query;
struct http_reply;
struct http_request;
struct routes;

#define JOB_STATES_ENDED 0xf0u /* the states of jobs that have ended */

struct job_filter {
    uint32_t states; /* bits; 0: all                         */
    bool ended;      /* those that have ended too            */
    const char *user, *name;
    const char *ids; /* "3,17,4", and nothing but digits and commas; NULL: all */
    int64_t since_ns, until_ns; /* by submission; -1: any    */
    uint64_t before, after;     /* ids below, above this; 0: any */
    bool newest_first;
    int64_t limit;
};

/* One job.  Texts are borrowed until the next row. */
struct job_record {
    struct api_job words;
    uint32_t uid;
    const char *request; /* JSON; only of job_query_one() */
};

/* Rows come by job_query_next(); then db_finish().  NULL is a query without rows. */
struct db_query *job_query_one(struct db *db, uint64_t id);
bool job_query_next(struct db_query *query, struct job_record *record);

/* Jobs that the filter lets through, as the caller may see them: an array; how many. */
int64_t job_query_write_list(struct routes *routes, const struct http_request *request,
                             const struct job_filter *filter, const char *key,
                             struct buf *body);

/* Entries of the ledger, newest first: an array "entries"; of all victims for job 0.  And
 * what sharing brought, if anything was shared. */
void job_query_write_ledger(struct routes *routes, int64_t job, int64_t since_ns,
                            int64_t limit, struct buf *body);

/* One job, as the caller may see it: an object, or a refusal. */
void job_query_write(struct routes *routes, const struct caller *caller, uint64_t id,
                     struct http_reply *reply);

/* The record of 'id', to be ended by db_finish(); NULL with a reply if there is none, or the
 * caller may not see it. */
struct db_query *job_query_find(struct routes *routes, struct daemon_view *facts,
                                const struct caller *caller, uint64_t id,
                                struct job_record *record, struct http_reply *reply);
