/* The table of forecasts: as they were written, how they turned out, and no more than there may be. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "store/db.h"
#include "store/forecast_rows.h"
#include "store/store.h"
#include "support/store_file.h"

#define READ_MAX (FORECAST_ROWS_MAX + 1000)

static char path[200];
static struct store *store;
static struct forecast_rows *rows;
static struct error err;

static struct {
    struct forecast_row list[8]; /* the first */
    char policies[8][32];
    uint32_t count;
    int64_t last_ns;
} found;

static void works(int r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    store_file_path(path, sizeof path, "forecast-rows");
    store_file_remove(path);
    works(store_open(&store, path, &err));
    rows = forecast_rows_new(store);
    return 0;
}

static int teardown(void **state)
{
    forecast_rows_free(rows);
    store_close(store);
    store_file_remove(path);
    return 0;
}

static struct forecast_row row_of(uint64_t job, enum forecast_row_target target,
                                  int64_t made_ns)
{
    return (struct forecast_row){ .job = job,
                                  .target = target,
                                  .made_ns = made_ns,
                                  .policy = "las",
                                  .gpus = 3,
                                  .is_forward = true,
                                  .forward_s = { 1.5, 2.5, 3.5 },
                                  .shown_s = { 4.5, 5.5, 6.5 } };
}

static void add(struct forecast_row row)
{
    works(forecast_rows_add(rows, &row, &err));
}

static void take(void *context, const struct forecast_row *row)
{
    assert_true(row->made_ns >= found.last_ns);
    found.last_ns = row->made_ns;
    if (found.count < 8) {
        found.list[found.count] = *row;
        snprintf(found.policies[found.count], 32, "%s", row->policy);
    }
    found.count++;
}

static uint32_t read_since(int64_t since_ns)
{
    memset(&found, 0, sizeof found);
    works(store_commit(store, &err));
    forecast_rows_read(store, since_ns, UINT32_MAX, take, NULL);
    return found.count;
}

static void a_forecast_is_read_as_it_was_written(void **state)
{
    struct forecast_row plain = row_of(8, FORECAST_START, 50);
    plain.is_forward = false;
    plain.shown_baseline = true;
    add(row_of(7, FORECAST_END, 100));
    add(plain);
    assert_int_equal(read_since(0), 2);
    const struct forecast_row *row = &found.list[1];
    assert_true(row->job == 7 && row->target == FORECAST_END && row->made_ns == 100);
    assert_string_equal(found.policies[1], "las");
    assert_int_equal(row->gpus, 3);
    assert_true(row->is_forward && !row->shown_baseline && !row->dropped);
    assert_true(row->over_ns == -1);
    for (int q = 0; q < 3; q++) {
        assert_near(row->forward_s[q], q + 1.5, 0);
        assert_near(row->shown_s[q], q + 4.5, 0);
    }
    assert_true(found.list[0].job == 8 && !found.list[0].is_forward);
    assert_true(isnan(found.list[0].forward_s[0]) && found.list[0].shown_baseline);
    assert_int_equal(read_since(51), 1);
    assert_int_equal(read_since(101), 0);
}

static void the_first_forecast_of_a_job_stays(void **state)
{
    struct forecast_row other = row_of(7, FORECAST_START, 200);
    other.policy = "fifo";
    add(row_of(7, FORECAST_START, 100));
    add(other);
    add(row_of(7, FORECAST_END, 200));
    assert_int_equal(read_since(0), 2);
    assert_true(found.list[0].made_ns == 100);
    assert_string_equal(found.policies[0], "las");
}

static void only_the_first_outcome_counts(void **state)
{
    add(row_of(7, FORECAST_START, 100));
    add(row_of(7, FORECAST_END, 100));
    works(forecast_rows_end(rows, 7, FORECAST_START, 150, false, &err));
    works(forecast_rows_end(rows, 7, FORECAST_START, 170, true, &err));
    works(forecast_rows_end(rows, 9, FORECAST_START, 170, true,
                            &err)); /* there is none */
    assert_int_equal(read_since(0), 2);
    assert_true(found.list[0].over_ns == 150 && !found.list[0].dropped);
    assert_true(found.list[1].over_ns == -1);
    works(forecast_rows_end(rows, 7, FORECAST_END, 180, true, &err));
    read_since(0);
    assert_true(found.list[1].over_ns == 180 && found.list[1].dropped);
}

static void what_is_rolled_back_was_never_forecast(void **state)
{
    add(row_of(7, FORECAST_START, 100));
    works(store_commit(store, &err));
    add(row_of(8, FORECAST_START, 100));
    works(forecast_rows_end(rows, 7, FORECAST_START, 150, false, &err));
    store_rollback(store);
    assert_int_equal(read_since(0), 1);
    assert_true(found.list[0].job == 7 && found.list[0].over_ns == -1);
    add(row_of(8, FORECAST_START, 200)); /* the number is another job's now */
    assert_int_equal(read_since(150), 1);
}

/* SQLite may have rolled back all that was written before. */
static void a_commit_fails_when_a_row_could_not_be_written(void **state)
{
    struct error why = { "the disk is full" };
    store_fail(store, 0, &why);
    add(row_of(7, FORECAST_START, 100));
    works(store_commit(store, &err));
    add(row_of(8, FORECAST_START, 100));
    store_fail(store, -28, &why);
    assert_int_equal(store_commit(store, &err), -28);
    assert_string_equal(err.text, "the disk is full");
    store_rollback(store);
    assert_int_equal(read_since(0), 1);
}

static void of_more_than_are_asked_for_the_newest_are_read(void **state)
{
    for (uint32_t i = 1; i <= 20; i++)
        add(row_of(i, FORECAST_START, 10 * i));
    read_since(0);
    memset(&found, 0, sizeof found);
    forecast_rows_read(store, 0, 3, take, NULL);
    assert_int_equal(found.count, 3);
    assert_true(found.list[0].job == 18 && found.list[2].job == 20);
}

static void the_oldest_make_room(void **state)
{
    for (uint32_t i = 1; i <= READ_MAX; i++)
        add(row_of(i, FORECAST_START, i));
    uint32_t count = read_since(0);
    assert_in_range(count, FORECAST_ROWS_MAX, FORECAST_ROWS_MAX + 256);
    assert_true(found.last_ns == READ_MAX); /* the newest are there */
    assert_true(found.list[0].made_ns == READ_MAX - count + 1);
}

RUN_CASES(CASE(a_forecast_is_read_as_it_was_written),
          CASE(the_first_forecast_of_a_job_stays), CASE(only_the_first_outcome_counts),
          CASE(what_is_rolled_back_was_never_forecast),
          CASE(a_commit_fails_when_a_row_could_not_be_written),
          CASE(of_more_than_are_asked_for_the_newest_are_read),
          CASE(the_oldest_make_room));
