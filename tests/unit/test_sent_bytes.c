/* What jobs have sent, as their hosts count it, and when that is worth telling. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "flow/sent_bytes.h"

#define S INT64_C(1000000000)

static int setup(void **state)
{
    *state = sent_bytes_new();
    return 0;
}

static int teardown(void **state)
{
    sent_bytes_free(*state);
    return 0;
}

static void count(struct sent_bytes *sent, uint64_t job, const char *host,
                  int64_t bytes, int64_t at_ns)
{
    struct error err;
    assert_int_equal(sent_bytes_count(sent, job, host, bytes, at_ns, &err), 0);
}

static bool news(struct sent_bytes *sent, uint64_t job, int64_t at_ns,
                 double *ret_per_s)
{
    struct sent_bytes_total facts;
    bool is = sent_bytes_changed(sent, job, at_ns, &facts);
    *ret_per_s = is ? facts.bytes_per_s : -1;
    return is;
}

static void a_rate_takes_two_counts(void **state)
{
    struct sent_bytes *sent = *state;
    double per_s;
    assert_false(sent_bytes_find(sent, 7, 0).counted);
    count(sent, 7, "a", 5000000, 10 * S);
    assert_true(sent_bytes_find(sent, 7, 10 * S).counted);
    assert_true(isnan(sent_bytes_find(sent, 7, 10 * S).bytes_per_s));
    assert_false(news(sent, 7, 10 * S, &per_s));
    count(sent, 7, "a", 25000000, 12 * S);
    assert_near(sent_bytes_find(sent, 7, 12 * S).bytes_per_s, 10e6, 1);
    assert_near(sent_bytes_find(sent, 7, 12 * S).bytes, 25e6, 0);
    assert_true(news(sent, 7, 12 * S, &per_s));
    assert_near(per_s, 10e6, 1);
}

static void hosts_add_up_and_a_count_that_goes_back_began_anew(void **state)
{
    struct sent_bytes *sent = *state;
    for (int i = 0; i < 3; i++) {
        count(sent, 7, "a", i * 2000000, i * 2 * S);
        count(sent, 7, "b", i * 4000000, i * 2 * S);
    }
    assert_near(sent_bytes_find(sent, 7, 4 * S).bytes_per_s, 3e6, 1);
    assert_near(sent_bytes_find(sent, 7, 4 * S).bytes, 12e6, 0);
    count(sent, 7, "b", 1000000, 6 * S); /* its agent was started again */
    assert_near(sent_bytes_find(sent, 7, 6 * S).bytes, 13e6, 0);
    assert_near(sent_bytes_find(sent, 7, 6 * S).bytes_per_s, 3e6, 1);
    count(sent, 7, "b", 5000000, 8 * S);
    assert_near(sent_bytes_find(sent, 7, 8 * S).bytes, 17e6, 0);
    assert_near(sent_bytes_find(sent, 7, 8 * S).bytes_per_s, 3e6, 1);
}

static void what_is_little_is_told_as_nothing(void **state)
{
    struct sent_bytes *sent = *state;
    double per_s;
    count(sent, 7, "a", 0, 0);
    count(sent, 7, "a", 20000, 2 * S);
    assert_true(news(sent, 7, 2 * S, &per_s));
    assert_near(per_s, 0, 0);
    count(sent, 7, "a", 40000, 4 * S);
    assert_false(news(sent, 7, 4 * S, &per_s)); /* that is known */
    assert_false(news(sent, 7, 60 * S, &per_s));
    count(sent, 7, "a", 500000000, 62 * S);
    assert_true(news(sent, 7, 62 * S, &per_s));
    assert_true(per_s > SENT_BYTES_LEAST_PER_S);
}

static void who_has_sent_is_never_said_to_have_stopped(void **state)
{
    struct sent_bytes *sent = *state;
    double per_s;
    count(sent, 7, "a", 0, 0);
    count(sent, 7, "a", 100000000, 2 * S);
    assert_true(news(sent, 7, 2 * S, &per_s));
    assert_false(news(sent, 7, 2 * S, &per_s));
    assert_true(news(sent, 7, 300 * S, &per_s));
    assert_true(per_s > 0 && per_s <= 1);
    assert_false(news(sent, 7, 600 * S, &per_s));
}

static void told_when_it_changes_and_now_and_then(void **state)
{
    struct sent_bytes *sent = *state;
    double per_s;
    uint32_t told = 0;
    for (int i = 0; i <= 30; i++) { /* a minute at one rate */
        count(sent, 7, "a", i * 2000000, i * 2 * S);
        told += news(sent, 7, i * 2 * S, &per_s);
    }
    assert_in_range(told, 29, 30);
    for (int i = 1; i <= 10; i++) /* somebody who counts more often */
        count(sent, 7, "a", 30 * 2000000 + i, 60 * S + i * S / 10);
    assert_false(news(sent, 7, 61 * S, &per_s));
    count(sent, 7, "a", 30 * 2000000 + 20000000, 62 * S);
    assert_true(news(sent, 7, 62 * S, &per_s));
}

static void bursts_are_smoothed(void **state)
{
    struct sent_bytes *sent = *state;
    int64_t bytes = 0;
    double least = INFINITY, most = 0;
    for (int i = 0; i < 60; i++) { /* 4 s of nothing, then 2 s of 30 MB/s */
        bytes += i % 3 == 2 ? 60000000 : 0;
        if (i % 3 == 2 || i == 0)
            count(sent, 7, "a", bytes, i * 2 * S);
        if (i < 30)
            continue;
        double per_s = sent_bytes_find(sent, 7, i * 2 * S).bytes_per_s;
        least = fmin(least, per_s);
        most = fmax(most, per_s);
    }
    assert_true(least > 7e6);
    assert_true(most < 13e6);
}

static void what_has_ended_takes_no_room(void **state)
{
    struct sent_bytes *sent = *state;
    char host[16];
    for (uint64_t job = 1; job <= 2000; job++) {
        for (int h = 0; h < 4; h++) {
            snprintf(host, sizeof host, "h%d", h);
            count(sent, job, host, 100, (int64_t)job);
        }
        if (job > 10)
            sent_bytes_drop(sent, job - 10);
    }
    assert_int_equal(sent_bytes_size(sent), 40);
    sent_bytes_drop(sent, 1); /* gone already */
    sent_bytes_drop(sent, 5000);
    sent_bytes_clear(sent);
    assert_int_equal(sent_bytes_size(sent), 0);
    assert_true(sent_bytes_since_ns(sent, "h1") == INT64_MAX);
}

static void there_is_a_limit(void **state)
{
    struct sent_bytes *sent = *state;
    struct error err = { "" };
    for (uint64_t job = 1; job <= SENT_BYTES_COUNTS_MAX; job++)
        count(sent, job, "a", 1, 0);
    assert_int_equal(sent_bytes_count(sent, 1 << 30, "a", 1, 0, &err), -ENOBUFS);
    assert_non_null(strstr(err.text, "counts"));
    sent_bytes_drop(sent, 17);
    count(sent, 1 << 30, "a", 1, 0);
}

static void it_is_known_since_when_a_host_counts(void **state)
{
    struct sent_bytes *sent = *state;
    struct error err;
    assert_true(sent_bytes_since_ns(sent, "a") == INT64_MAX);
    assert_int_equal(sent_bytes_host(sent, "a", 5, &err), 0);
    assert_int_equal(sent_bytes_host(sent, "a", 9, &err), 0);
    assert_true(sent_bytes_since_ns(sent, "a") == 5);
}

RUN_CASES(CASE(a_rate_takes_two_counts),
          CASE(hosts_add_up_and_a_count_that_goes_back_began_anew),
          CASE(what_is_little_is_told_as_nothing),
          CASE(who_has_sent_is_never_said_to_have_stopped),
          CASE(told_when_it_changes_and_now_and_then), CASE(bursts_are_smoothed),
          CASE(what_has_ended_takes_no_room), CASE(there_is_a_limit),
          CASE(it_is_known_since_when_a_host_counts));
