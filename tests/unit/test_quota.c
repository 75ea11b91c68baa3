/* Connections and bytes of bodies by user: limits, what is left for others, the reserve. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "http/quota.h"

#define OWN 100 /* the server's own user */

static struct quota quota;
static struct error err;
static uint32_t strict; /* a user with a small limit */

static struct quota_limit limit_of(void *context, uint32_t uid)
{
    if (uid == strict)
        return (struct quota_limit){ .connections = 2, .bytes = 10 };
    return (struct quota_limit){ .connections = 30, .bytes = 600 };
}

static const struct quota_setup standard = {
    .all = { .connections = 68, .bytes = 1100 },
    .root = { .connections = 4, .bytes = 100 },
    .anonymous = { .connections = 3, .bytes = 50 },
    .is_shared = true,
    .own_uid = OWN,
    .limit_of = limit_of,
};

static int setup(void **state)
{
    strict = 99;
    quota_init(&quota, &standard);
    return 0;
}

static int teardown(void **state)
{
    quota_release(&quota);
    return 0;
}

/* How many connections a user gets before it is refused. */
static uint32_t fill_connections(uint32_t uid)
{
    uint32_t count = 0;
    while (quota_add_connection(&quota, uid, &err) == 0)
        count++;
    return count;
}

static uint64_t fill_bytes(uint32_t uid)
{
    uint64_t count = 0;
    while (quota_add_bytes(&quota, uid, 1, &err) == 0)
        count++;
    return count;
}

static void a_user_is_refused_at_its_own_limit(void **state)
{
    strict = 7;
    assert_int_equal(fill_connections(7), 2);
    assert_int_equal(quota_add_connection(&quota, 7, &err), -EDQUOT);
    assert_string_equal(err.text, "you have 2 connections, your limit is 2");
    assert_int_equal(quota_add_bytes(&quota, 7, 11, &err), -EDQUOT);
    assert_string_equal(err.text,
                        "your requests in flight have 11 bytes, your limit is 10");
    assert_int_equal(quota_add_bytes(&quota, 7, 10, &err), 0);
    quota_drop_connection(&quota, 7);
    assert_int_equal(quota_add_connection(&quota, 7, &err), 0);
}

static void no_user_takes_more_than_it_leaves_for_others(void **state)
{
    assert_int_equal(fill_bytes(1), 500); /* half of 1000; 100 are kept for root */
    assert_int_equal(fill_bytes(2), 250);
    assert_int_equal(fill_bytes(3), 125);
    for (uint32_t uid = 4; uid < 9; uid++)
        assert_true(fill_bytes(uid) > 0);
    assert_int_equal(quota_add_bytes(&quota, 1, 1, &err), -EBUSY);
    assert_string_equal(err.text, "too much is arriving at once");
}

static void users_that_fill_everything_leave_the_reserve_to_root(void **state)
{
    for (uint32_t uid = 1; uid < 90; uid++) {
        fill_connections(uid);
        fill_bytes(uid);
    }
    assert_int_equal(quota.used.connections, 64);
    assert_int_equal(quota_add_connection(&quota, 95, &err), -EBUSY);
    assert_string_equal(err.text, "there are too many connections");
    assert_int_equal(fill_connections(0), 4);
    assert_true(fill_bytes(OWN) >= 100);
}

static void anonymous_clients_have_a_pool_of_their_own(void **state)
{
    assert_int_equal(fill_connections(QUOTA_ANONYMOUS), 3);
    assert_int_equal(fill_bytes(QUOTA_ANONYMOUS), 50);
    assert_int_equal(fill_connections(1), 30); /* nothing of it is missing */
    quota_drop_bytes(&quota, QUOTA_ANONYMOUS, 50);
    for (uint32_t uid = 1; uid < 90; uid++)
        fill_bytes(uid);
    assert_int_equal(fill_bytes(QUOTA_ANONYMOUS), 50);
}

static void the_only_user_may_use_all_but_the_reserve(void **state)
{
    struct quota_setup alone = standard;
    alone.is_shared = false;
    alone.limit_of = NULL;
    alone.user = (struct quota_limit){ UINT32_MAX, UINT64_MAX };
    quota_init(&quota, &alone);
    assert_int_equal(fill_connections(OWN), 64);
    assert_int_equal(fill_connections(0), 4);
    alone.own_uid = 0; /* root is the only user, and has what there is */
    alone.root = (struct quota_limit){ 0 };
    quota_release(&quota);
    quota_init(&quota, &alone);
    assert_int_equal(fill_connections(0), 68);
}

static void what_is_returned_can_be_taken_again(void **state)
{
    for (int round = 0; round < 3; round++) {
        uint64_t count = fill_bytes(1);
        assert_int_equal(count, 500);
        assert_int_equal(quota_used(&quota, 1).bytes, 500);
        quota_drop_bytes(&quota, 1, count);
        assert_int_equal(quota_used(&quota, 1).bytes, 0);
        assert_int_equal(quota.count, 0);
    }
}

static void huge_sizes_do_not_overflow(void **state)
{
    assert_int_equal(quota_add_bytes(&quota, 1, UINT64_MAX, &err), -EDQUOT);
    assert_int_equal(quota_add_bytes(&quota, 1, 400, &err), 0);
    assert_int_equal(quota_add_bytes(&quota, 1, UINT64_MAX - 100, &err), -EDQUOT);
    assert_int_equal(quota_check_bytes(&quota, QUOTA_ANONYMOUS, UINT64_MAX, &err),
                     -EBUSY);
    assert_int_equal(quota_used(&quota, 1).bytes, 400);
}

RUN_CASES(CASE(a_user_is_refused_at_its_own_limit),
          CASE(no_user_takes_more_than_it_leaves_for_others),
          CASE(users_that_fill_everything_leave_the_reserve_to_root),
          CASE(anonymous_clients_have_a_pool_of_their_own),
          CASE(the_only_user_may_use_all_but_the_reserve),
          CASE(what_is_returned_can_be_taken_again), CASE(huge_sizes_do_not_overflow));
