/* quota.c - connections and bytes of request bodies, counted by user. */
#include "http/quota.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"

void quota_release(struct quota *quota)
{
    free(quota->accounts);
    quota->accounts = NULL;
    quota->count = quota->room = 0;
}

/* ---- accounts ---- */

static struct quota_account *find_account(const struct quota *quota, uint32_t uid)
{
    for (uint32_t i = 0; i < quota->count; i++)
        if (quota->accounts[i].uid == uid)
            return &quota->accounts[i];
    return NULL;
}

static struct quota_account *find_or_add_account(struct quota *quota, uint32_t uid)
{
    struct quota_account *account = find_account(quota, uid);
    if (account)
        return account;
    quota->accounts = grow_array(quota->accounts, &quota->room, quota->count + 1,
                                 sizeof *quota->accounts);
    account = &quota->accounts[quota->count++];
    *account = (struct quota_account){ .uid = uid };
    return account;
}

/* Accounts of users that hold nothing are not kept: there are few, and they are searched. */
static void drop_if_empty(struct quota *quota, struct quota_account *account)
{
    if (account->used.connections == 0 && account->used.bytes == 0)
        *account = quota->accounts[--quota->count];
}

struct quota_limit quota_used(const struct quota *quota, uint32_t uid)
{
    if (uid == QUOTA_ANONYMOUS)
        return quota->anonymous;
    const struct quota_account *account = find_account(quota, uid);
    return account ? account->used : (struct quota_limit){ 0 };
}

/* ---- rules ---- */

/* Root, and the server's own user where it serves others: they may use the reserve. */
static bool is_privileged(const struct quota_setup *setup, uint32_t uid)
{
    if (uid == 0)
        return setup->is_shared || setup->own_uid != 0;
    return setup->is_shared && uid == setup->own_uid;
}

struct quota_limit quota_limit_of(const struct quota *quota, uint32_t uid)
{
    const struct quota_setup *setup = &quota->setup;
    if (uid == QUOTA_ANONYMOUS)
        return setup->anonymous;
    return setup->limit_of ? setup->limit_of(setup->context, uid) : setup->user;
}

/* One pool, as one user sees it. */
struct quota_pool {
    uint64_t own, own_max; /* of this user */
    uint64_t all, all_max; /* of all users that this pool is for */
    bool is_split;         /* no more for one than is left for others */
};

/* 0 if 'more' can be taken, -EDQUOT at the user's own limit, -EBUSY for want of room. */
static int check_pool(const struct quota_pool *pool, uint64_t more)
{
    if (more > pool->own_max || pool->own > pool->own_max - more)
        return -EDQUOT;
    if (more > pool->all_max || pool->all > pool->all_max - more)
        return -EBUSY;
    if (pool->is_split && pool->own + more > pool->all_max - pool->all)
        return -EBUSY;
    return 0;
}

static uint64_t subtract(uint64_t from, uint64_t less)
{
    return from > less ? from - less : 0;
}

static int check_connection(const struct quota *quota, uint32_t uid, struct error *err)
{
    const struct quota_setup *setup = &quota->setup;
    struct quota_limit used = quota_used(quota, uid),
                       limit = quota_limit_of(quota, uid);
    bool privileged = is_privileged(setup, uid);
    struct quota_pool pool = {
        .own = used.connections,
        .own_max = limit.connections,
        .all = quota->used.connections,
        .all_max =
            subtract(setup->all.connections, privileged ? 0 : setup->root.connections),
        .is_split = setup->is_shared && !privileged,
    };
    if (uid == QUOTA_ANONYMOUS)
        pool = (struct quota_pool){ .own = used.connections,
                                    .own_max = UINT32_MAX,
                                    .all = used.connections,
                                    .all_max = setup->anonymous.connections };
    int r = check_pool(&pool, 1);
    if (r == -EDQUOT)
        return error_set(err, r,
                         "you have %" PRIu64 " connections, your limit is %" PRIu64,
                         pool.own, pool.own_max);
    return r < 0 ? error_set(err, r, "there are too many connections") : 0;
}

int quota_check_bytes(const struct quota *quota, uint32_t uid, uint64_t bytes,
                      struct error *err)
{
    const struct quota_setup *setup = &quota->setup;
    struct quota_limit used = quota_used(quota, uid),
                       limit = quota_limit_of(quota, uid);
    bool privileged = is_privileged(setup, uid);
    struct quota_pool pool = {
        .own = used.bytes,
        .own_max = limit.bytes,
        .all = quota->used.bytes,
        .all_max = subtract(setup->all.bytes, privileged ? 0 : setup->root.bytes),
        .is_split = setup->is_shared && !privileged,
    };
    if (uid == QUOTA_ANONYMOUS)
        pool = (struct quota_pool){ .own = used.bytes,
                                    .own_max = UINT64_MAX,
                                    .all = used.bytes,
                                    .all_max = setup->anonymous.bytes };
    int r = check_pool(&pool, bytes);
    if (r == -EDQUOT)
        return error_set(err, r,
                         "your requests in flight have %" PRIu64
                         " bytes, your limit is %" PRIu64,
                         pool.own + bytes, pool.own_max);
    return r < 0 ? error_set(err, r, "too much is arriving at once") : 0;
}

/* ---- counting ---- */

int quota_add_connection(struct quota *quota, uint32_t uid, struct error *err)
{
    int r = check_connection(quota, uid, err);
    if (r < 0)
        return r;
    if (uid == QUOTA_ANONYMOUS) {
        quota->anonymous.connections++;
        return 0;
    }
    find_or_add_account(quota, uid)->used.connections++;
    quota->used.connections++;
    return 0;
}

void quota_drop_connection(struct quota *quota, uint32_t uid)
{
    if (uid == QUOTA_ANONYMOUS) {
        assert(quota->anonymous.connections > 0);
        quota->anonymous.connections--;
        return;
    }
    struct quota_account *account = find_account(quota, uid);
    assert(account && account->used.connections > 0);
    account->used.connections--;
    quota->used.connections--;
    drop_if_empty(quota, account);
}

int quota_add_bytes(struct quota *quota, uint32_t uid, uint64_t bytes,
                    struct error *err)
{
    int r = quota_check_bytes(quota, uid, bytes, err);
    if (r < 0 || bytes == 0)
        return r;
    if (uid == QUOTA_ANONYMOUS) {
        quota->anonymous.bytes += bytes;
        return 0;
    }
    find_or_add_account(quota, uid)->used.bytes += bytes;
    quota->used.bytes += bytes;
    return 0;
}

void quota_drop_bytes(struct quota *quota, uint32_t uid, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (uid == QUOTA_ANONYMOUS) {
        assert(quota->anonymous.bytes >= bytes);
        quota->anonymous.bytes -= bytes;
        return;
    }
    struct quota_account *account = find_account(quota, uid);
    assert(account && account->used.bytes >= bytes);
    account->used.bytes -= bytes;
    quota->used.bytes -= bytes;
    drop_if_empty(quota, account);
}
