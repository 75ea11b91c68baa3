/* forecast_rows.c - the table of forecasts. */
#include "store/forecast_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/db.h"
#include "store/store.h"

#define TRIM_EVERY 256

struct forecast_rows {
    struct db_query *add, *end, *trim;
    uint32_t added; /* since the last trim */
};

struct forecast_rows *forecast_rows_new(struct store *store)
{
    struct db *db = store_writer(store);
    struct forecast_rows *rows = memory_checked(calloc(1, sizeof *rows));
    rows->add = db_prepare(
        db, "INSERT OR IGNORE INTO forecast (job, target, made_ns, policy, gpus, "
            "forward_10_s, forward_50_s, forward_90_s, shown_10_s, shown_50_s, "
            "shown_90_s, baseline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    rows->end =
        db_prepare(db, "UPDATE forecast SET over_ns = ?, dropped = ? WHERE job = ? AND "
                       "target = ? AND over_ns IS NULL");
    rows->trim = db_prepare(
        db, "DELETE FROM forecast WHERE made_ns < (SELECT made_ns FROM forecast "
            "ORDER BY made_ns DESC LIMIT 1 OFFSET ?)");
    return rows;
}

void forecast_rows_free(struct forecast_rows *rows)
{
    if (!rows)
        return;
    db_finish(rows->add);
    db_finish(rows->end);
    db_finish(rows->trim);
    free(rows);
}

int forecast_rows_add(struct forecast_rows *rows, const struct forecast_row *row,
                      struct error *err)
{
    int n = 1;
    db_int(rows->add, n++, (int64_t)row->job);
    db_int(rows->add, n++, row->target);
    db_int(rows->add, n++, row->made_ns);
    db_text(rows->add, n++, row->policy);
    db_int(rows->add, n++, row->gpus);
    for (int q = 0; q < 3; q++)
        db_real(rows->add, n++, row->is_forward ? row->forward_s[q] : (double)NAN);
    for (int q = 0; q < 3; q++)
        db_real(rows->add, n++, row->shown_s[q]);
    db_int(rows->add, n++, row->shown_baseline);
    int r = db_run(rows->add, err);
    if (r < 0 || ++rows->added < TRIM_EVERY)
        return r;
    rows->added = 0;
    db_int(rows->trim, 1, FORECAST_ROWS_MAX);
    return db_run(rows->trim, err);
}

int forecast_rows_end(struct forecast_rows *rows, uint64_t job,
                      enum forecast_row_target target, int64_t at_ns, bool dropped,
                      struct error *err)
{
    db_int(rows->end, 1, at_ns);
    db_int(rows->end, 2, dropped);
    db_int(rows->end, 3, (int64_t)job);
    db_int(rows->end, 4, target);
    return db_run(rows->end, err);
}

static void read_row(struct db_query *query, struct forecast_row *row)
{
    int n = 0;
    row->job = (uint64_t)db_get_int(query, n++);
    row->target =
        db_get_int(query, n++) == FORECAST_END ? FORECAST_END : FORECAST_START;
    row->made_ns = db_get_int(query, n++);
    row->policy = db_get_text(query, n++);
    row->gpus = (uint32_t)db_get_int(query, n++);
    row->is_forward = !db_is_null(query, n);
    for (int q = 0; q < 3; q++)
        row->forward_s[q] = db_get_real(query, n++);
    for (int q = 0; q < 3; q++)
        row->shown_s[q] = db_get_real(query, n++);
    row->shown_baseline = db_get_int(query, n++) != 0;
    row->over_ns = db_is_null(query, n) ? -1 : db_get_int(query, n);
    row->dropped = db_get_int(query, n + 1) != 0;
}

void forecast_rows_read(struct store *store, int64_t since_ns, uint32_t most,
                        void (*take)(void *context, const struct forecast_row *row),
                        void *context)
{
    struct db_query *query = db_prepare(
        store_reader(store),
        "SELECT job, target, made_ns, policy, gpus, forward_10_s, forward_50_s, "
        "forward_90_s, shown_10_s, shown_50_s, shown_90_s, baseline, over_ns, dropped "
        "FROM (SELECT * FROM forecast WHERE made_ns >= ? ORDER BY made_ns DESC, job "
        "DESC, "
        "target DESC LIMIT ?) ORDER BY made_ns, job, target");
    struct forecast_row row;
    db_int(query, 1, since_ns);
    db_int(query, 2, most);
    while (db_next(query, NULL) == 1) {
        read_row(query, &row);
        take(context, &row);
    }
    db_finish(query);
}
