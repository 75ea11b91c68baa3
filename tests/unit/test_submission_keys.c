/* Submissions by key: found again by the same user, durable with the commit, forgotten. */
#include "support/cases.h"

#include <unistd.h>

#include "base/error.h"
#include "store/db.h"
#include "store/store.h"
#include "store/submission_keys.h"

static char folder[64], path[80];
static struct store *store;
static struct submission_keys *keys;
static struct error err;

static void open_store(void)
{
    assert_int_equal(store_open(&store, path, &err), 0);
    keys = submission_keys_new(store_writer(store));
}

static void close_store(void)
{
    submission_keys_free(keys);
    store_close(store);
}

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-keys-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/x.db", folder);
    open_store();
    return 0;
}

static int teardown(void **state)
{
    close_store();
    unlink(path);
    return rmdir(folder);
}

static struct keyed_submission make_keyed(uint32_t uid, const char *key, int64_t at_ns)
{
    return (struct keyed_submission){ .uid = uid, .key = key, .at_ns = at_ns };
}

/* 1: the key was used in the 50 ns before. */
static int add(uint32_t uid, const char *key, int64_t at_ns, uint64_t first_id)
{
    struct keyed_submission keyed = make_keyed(uid, key, at_ns);
    keyed.hash = UINT64_MAX - first_id;
    keyed.first_id = first_id;
    keyed.count = 3;
    keyed.several = true;
    int r = submission_keys_add(keys, &keyed, at_ns - 50, &err);
    assert_true(r >= 0);
    return r;
}

/* The first id that was given out under the key; 0: it is not known. */
static uint64_t find(uint32_t uid, const char *key, int64_t since_ns)
{
    struct keyed_submission keyed = make_keyed(uid, key, 0);
    int r = submission_keys_find(keys, &keyed, since_ns, &err);
    assert_true(r >= 0);
    if (r == 1) {
        assert_true(keyed.hash == UINT64_MAX - keyed.first_id);
        assert_int_equal(keyed.count, 3);
        assert_true(keyed.several);
    }
    return r == 1 ? keyed.first_id : 0;
}

static void a_key_is_found_by_its_user_before_and_after_the_commit(void **state)
{
    add(7, "k", 100, 5);
    assert_int_equal(find(7, "k", 0), 5);
    assert_int_equal(find(8, "k", 0), 0);
    assert_int_equal(find(7, "K", 0), 0);
    assert_int_equal(db_commit(store_writer(store), &err), 0);
    close_store();
    open_store();
    assert_int_equal(find(7, "k", 0), 5);
}

static void what_is_rolled_back_was_never_submitted(void **state)
{
    add(7, "k", 100, 5);
    store_rollback(store);
    assert_int_equal(find(7, "k", 0), 0);
}

static void an_old_key_may_be_used_again(void **state)
{
    add(7, "k", 100, 5);
    assert_int_equal(find(7, "k", 101), 0);
    assert_int_equal(add(7, "k", 200, 9), 0);
    assert_int_equal(find(7, "k", 101), 9);
}

static void a_key_that_is_in_use_stays_as_it_is(void **state)
{
    assert_int_equal(add(7, "k", 100, 5), 0);
    assert_int_equal(add(7, "k", 140, 9), 1);
    assert_int_equal(find(7, "k", 0), 5);
    assert_int_equal(add(8, "k", 140, 9), 0);
}

static void old_keys_are_forgotten(void **state)
{
    add(7, "a", 100, 5);
    add(7, "b", 200, 8);
    add(8, "a", 90, 6);
    assert_int_equal(submission_keys_prune(keys, 150, 1, &err), 1); /* the oldest */
    assert_int_equal(find(7, "a", 0), 5);
    assert_int_equal(submission_keys_prune(keys, 150, 10, &err), 1);
    assert_int_equal(find(7, "a", 0), 0);
    assert_int_equal(find(8, "a", 0), 0);
    assert_int_equal(find(7, "b", 0), 8);
}

RUN_CASES(CASE(a_key_is_found_by_its_user_before_and_after_the_commit),
          CASE(what_is_rolled_back_was_never_submitted),
          CASE(an_old_key_may_be_used_again), CASE(a_key_that_is_in_use_stays_as_it_is),
          CASE(old_keys_are_forgotten));
