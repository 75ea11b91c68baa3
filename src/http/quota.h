/*
 * quota.h - connections and bytes of request bodies, counted by user.
 *
 * All users share one pool of each.  A user may take as much of it as its limit says, and
 * where several users are served no more than others leave free: what a user holds never
 * exceeds what is free for others.  So one user gets at most half of a pool, two a third
 * each, and the next user always finds something.  A part of both pools is kept for root.
 *
 * Clients that have not said who they are have a small pool of their own.  They can fill
 * that one only, and users cannot take it from them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;

#define QUOTA_ANONYMOUS UINT32_MAX /* the account of clients that are not known yet */

/* What one user may have at once. */
struct quota_limit {
    uint32_t connections;
    uint64_t bytes; /* of bodies that have arrived and whose replies are not sent yet */
};

struct quota_setup {
    struct quota_limit all;  /* of all users together */
    struct quota_limit root; /* the part of that which is kept for privileged users */
    struct quota_limit anonymous; /* a pool of its own */
    struct quota_limit user;      /* of one user, where 'limit_of' is NULL */
    bool is_shared;               /* other users than the server's own are served */
    uint32_t own_uid;             /* of the server */

    /* Optional: what this user may have at once. */
    struct quota_limit (*limit_of)(void *context, uint32_t uid);
    void *context;
};

struct quota_account {
    uint32_t uid;
    struct quota_limit used;
};

struct quota {
    struct quota_setup setup;
    struct quota_account *accounts; /* of users that hold something now */
    uint32_t count, room;
    struct quota_limit used; /* by all but anonymous clients */
    struct quota_limit anonymous;
};

static inline void quota_init(struct quota *quota, const struct quota_setup *setup)
{
    *quota = (struct quota){ .setup = *setup };
}
void quota_release(struct quota *quota);

/* One more connection: -EDQUOT at the user's own limit, -EBUSY if there is no room. */
int quota_add_connection(struct quota *quota, uint32_t uid, struct error *err);
void quota_drop_connection(struct quota *quota, uint32_t uid);

/* So many more bytes of bodies; the same errors. */
int quota_add_bytes(struct quota *quota, uint32_t uid, uint64_t bytes,
                    struct error *err);
void quota_drop_bytes(struct quota *quota, uint32_t uid, uint64_t bytes);

/* Whether so many bytes could be added now; the same errors. */
int quota_check_bytes(const struct quota *quota, uint32_t uid, uint64_t bytes,
                      struct error *err);

/* What this user holds now. */
struct quota_limit quota_used(const struct quota *quota, uint32_t uid);

/* What this user may hold. */
struct quota_limit quota_limit_of(const struct quota *quota, uint32_t uid);
