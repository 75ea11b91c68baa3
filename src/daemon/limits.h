/*
 * limits.h - what each user may have: jobs, bytes, connections, submissions a second, and what
 * a job may claim.
 *
 * A key is looked for in this order; the first that says something counts:
 *
 *     the user            set live, else in the file
 *     the user's groups   likewise; of several groups the most generous value counts
 *     the default         likewise
 *     what is built in    for a berthd of all users; none for a berthd of one user
 *
 * Root and the user that berthd runs as have no limits, and a part of the job slots is kept for
 * them.  What is set live is stored and survives a restart.  What users have is counted as jobs
 * come and go; what is stored of their jobs is counted by the store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "daemon/limit_settings.h"
#include "model/job.h"

struct db_query;
struct error;
struct json;
struct quota_limit;
struct request;
struct request_texts;
struct store;

/* Whose user a number is: whether it has this name, and whether it is in this group. */
struct limits_names {
    bool (*is_named)(void *context, uint32_t uid, const char *name);
    bool (*in_group)(void *context, uint32_t uid, const char *group);
    void *context;
};

/* Settings for a user, for a group, or the default. */
struct limits_row {
    enum limit_scope scope;
    char *name; /* NULL: the default */
    struct limit_values file, live;
};

/* What may be done at once, and comes again with time. */
struct limits_bucket {
    double tokens; /* what is free now; below 0: debts  */
    int64_t at_ns; /* when 'tokens' was right; 0: never */
};

/* What a user has now. */
struct limits_use {
    uint32_t jobs;    /* live                                      */
    uint32_t waiting; /* of these                                  */
    uint32_t coming;  /* accepted and not yet live; they will wait */
    struct limits_bucket submissions, changes;
};

/* What was counted of a live job; kept with it, zero at first. */
struct limits_mark {
    bool is_counted, waits;
};

struct limits {
    struct store *store;
    struct limits_names names;
    uint32_t own_uid; /* that berthd runs as */
    uint32_t job_max; /* slots                */
    uint32_t kept;    /* of these for root    */
    struct limit_values built_in;

    struct limits_row *rows; /* the first is the default */
    uint32_t row_count, row_room;
    struct limits_use *uses;
    uint32_t use_count, use_room;
    struct map by_uid;
};

struct limits_setup {
    struct store *store;
    struct limits_names names;
    bool system;      /* berthd serves all users */
    uint32_t own_uid; /* that berthd runs as     */
    uint32_t job_max;
    const struct limit_setting *settings; /* of the file */
    uint32_t setting_count;
};

void limits_init(struct limits *limits, const struct limits_setup *setup);
void limits_release(struct limits *limits);

/*
 * Before jobs are read back from the store: nobody has any, and what was set live is what the
 * store says.
 */
void limits_restart(struct limits *limits);

/* ---- settings ---- */

bool limits_is_exempt(const struct limits *limits, uint32_t uid);

/* The limit of a user; 'ret_from', unless NULL, is the row it is from, or NULL: built in. */
double limits_find(const struct limits *limits, uint32_t uid, enum limit key,
                   const struct limits_row **ret_from);

/* Set what this object says, as limit_settings.h describes; durable with the next commit. */
int limits_set(struct limits *limits, const struct json *json, struct error *err);

/* Forget what was set live. */
int limits_reset(struct limits *limits, struct error *err);

/* ---- checks ---- */

/*
 * May this user submit these jobs now?  'texts' are kept of them.  -EINVAL if a job asks for
 * what the user may not have, -EDQUOT if there is too much already, -EBUSY if it is too fast.
 */
int limits_admit(struct limits *limits, uint32_t uid, const struct request *requests,
                 const struct request_texts *texts, uint32_t count, struct error *err);

/* Slots for jobs that this user can use: all, or all but those kept for root. */
uint32_t limits_slots(const struct limits *limits, uint32_t uid);

/* May this user hold, release or change a job now?  -EBUSY: too many were a moment ago. */
int limits_admit_change(struct limits *limits, uint32_t uid, struct error *err);

/* What is claimed for a job; NULL or NAN: nothing. */
struct limits_claims {
    const enum job_class *class;
    double weight, grace_s;
};

/* May this user claim that for a job?  -EINVAL with a sentence that begins with the field. */
int limits_check_claims(const struct limits *limits, uint32_t uid,
                        const struct limits_claims *claims, struct error *err);

/* For the HTTP server. */
struct quota_limit limits_connections(const struct limits *limits, uint32_t uid);

/* ---- counting ---- */

/* A job was accepted; it will be live soon. */
void limits_expect_job(struct limits *limits, uint32_t uid);

/* A job that was accepted has become live. */
void limits_begin_job(struct limits *limits, uint32_t uid);

/* A live job has changed its state, is new (a zero mark) or has ended (JOB_FREE). */
void limits_count_job(struct limits *limits, uint32_t uid, struct limits_mark *mark,
                      enum job_state state);

/* What a user has now; all 0 where it has nothing. */
struct limits_use limits_used(const struct limits *limits, uint32_t uid);

/* Bytes that are stored of a user's jobs. */
int64_t limits_stored(const struct limits *limits, uint32_t uid);
