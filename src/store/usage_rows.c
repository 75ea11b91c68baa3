/* usage_rows.c - the table of what is kept of each user's jobs. */
#include "store/usage_rows.h"

#include "base/error.h"
#include "store/db.h"
#include "store/store.h"

#define REDUCE_AT_ONCE 1000

/* Requests of ended jobs up to 'reduced' have been reduced. */
struct db_query *usage_rows_prepare(struct store *store)
{
    return db_prepare(store_writer(store), "SELECT bytes FROM usage WHERE uid = ?");
}

int64_t usage_rows_bytes(struct db_query *query, uint32_t uid)
{
    db_int(query, 1, uid);
    int64_t bytes = db_next(query, NULL) == 1 ? db_get_int(query, 0) : 0;
    db_reset(query);
    return bytes;
}

/* Up to which job requests have to be reduced for so many bytes; 0: there are no more. */
static int64_t find_last(struct store *store, uint32_t uid, int64_t bytes)
{
    struct db_query *query =
        db_prepare(store_writer(store), "SELECT id, length(CAST(request AS BLOB)) + "
                                        "coalesce(length(CAST(script AS BLOB)), 0) "
                                        "FROM job LEFT JOIN launch USING (id) "
                                        "WHERE uid = ?1 AND id > (SELECT reduced FROM "
                                        "usage WHERE uid = ?1) AND end_ns IS NOT NULL "
                                        "ORDER BY id LIMIT ?2");
    int64_t last = 0;
    db_int(query, 1, uid);
    db_int(query, 2, REDUCE_AT_ONCE);
    while (bytes > 0 && db_next(query, NULL) == 1) {
        last = db_get_int(query, 0);
        bytes -= db_get_int(query, 1);
    }
    db_finish(query);
    return last;
}

static int run_up_to(struct store *store, const char *sql, uint32_t uid, int64_t last,
                     struct error *err)
{
    struct db_query *query = db_prepare(store_writer(store), sql);
    db_int(query, 1, uid);
    db_int(query, 2, last);
    int r = db_run(query, err);
    db_finish(query);
    return r;
}

int usage_rows_reduce(struct store *store, uint32_t uid, int64_t bytes,
                      struct error *err)
{
    int64_t last = find_last(store, uid, bytes);
    if (last == 0)
        return 0;
    int r = run_up_to(
        store,
        "UPDATE job SET request = json_set(json_remove(request, '$.env', '$.script', "
        "'$.command'), '$.command', json('[\"…\"]')) WHERE uid = ?1 AND "
        "id > (SELECT reduced FROM usage WHERE uid = ?1) AND id <= ?2 AND "
        "end_ns IS NOT NULL AND json_valid(request)",
        uid, last, err);
    if (r == 0)
        r = run_up_to(
            store,
            "DELETE FROM launch WHERE id IN (SELECT id FROM job WHERE uid = ?1 "
            "AND id > (SELECT reduced FROM usage WHERE uid = ?1) AND id <= ?2 "
            "AND end_ns IS NOT NULL)",
            uid, last, err);
    if (r < 0)
        return r;
    return run_up_to(store, "UPDATE usage SET reduced = ?2 WHERE uid = ?1", uid, last,
                     err);
}
