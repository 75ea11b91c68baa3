/*
 * submission_keys.h - submissions by the key that the client gave them, for a day.
 *
 * A client whose reply was lost sends the same again, and gets the ids of the first time.  The
 * key is written in the transaction of its jobs: both are on disk, or neither is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct db;
struct error;
struct submission_keys;

#define SUBMISSION_KEY_MAX 128
#define SUBMISSION_KEYS_KEEP_NS (INT64_C(86400) * 1000000000)

/* What was submitted under a key: 'count' jobs with consecutive ids. */
struct keyed_submission {
    uint32_t uid;
    const char *key;
    int64_t at_ns;
    uint64_t hash; /* of the request's body */
    uint64_t first_id;
    uint32_t count;
    bool several; /* they came as a list */
};

/* 'db' is the connection that writes, and outlives this. */
struct submission_keys *submission_keys_new(struct db *db);
void submission_keys_free(struct submission_keys *keys);

/* Fill in the rest of what was submitted by this user under this key since 'since_ns', also if
 * it is not committed yet.  1: found; 0: there is none. */
int submission_keys_find(struct submission_keys *keys, struct keyed_submission *keyed,
                         int64_t since_ns, struct error *err);

/* Remember it, unless there is one of this user and key since 'since_ns': then 1. */
int submission_keys_add(struct submission_keys *keys,
                        const struct keyed_submission *keyed, int64_t since_ns,
                        struct error *err);

/* Forget those before that time, so many at most: how many there were, or an error. */
int64_t submission_keys_prune(struct submission_keys *keys, int64_t before_ns,
                              uint32_t max, struct error *err);
