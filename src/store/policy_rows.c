/* policy_rows.c - the table of policies. */
#include "store/policy_rows.h"

#include "store/db.h"
#include "store/store.h"

#define ROWS_MAX "10000" /* the newest */

int policy_rows_note(struct store *store, int64_t at_ns, const char *policy,
                     struct error *err)
{
    struct db *db = store_writer(store);
    struct db_query *add = db_prepare(
        db, "INSERT INTO policy (at_ns, text) SELECT ?1, ?2 WHERE ?2 IS NOT (SELECT "
            "text FROM policy ORDER BY id DESC LIMIT 1)");
    struct db_query *trim = db_prepare(db, "DELETE FROM policy WHERE id <= (SELECT "
                                           "max(id) FROM policy) - " ROWS_MAX);
    db_int(add, 1, at_ns);
    db_text(add, 2, policy);
    int r = db_run(add, err);
    if (r == 0)
        r = db_run(trim, err);
    db_finish(add);
    db_finish(trim);
    return r;
}

void policy_rows_read(struct store *store, int64_t since_ns,
                      void (*take)(void *context, int64_t at_ns, const char *policy),
                      void *context)
{
    struct db_query *query = db_prepare(
        store_reader(store),
        "SELECT at_ns, text FROM policy WHERE id >= coalesce((SELECT max(id) "
        "FROM policy WHERE at_ns <= ?), 0) ORDER BY id");
    db_int(query, 1, since_ns);
    while (db_next(query, NULL) == 1)
        take(context, db_get_int(query, 0), db_get_text(query, 1));
    db_finish(query);
}
