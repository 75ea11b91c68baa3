/* token_rows.c - the table of tokens. */
#include "store/token_rows.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "store/db.h"
#include "store/store.h"

int token_rows_read(struct store *store,
                    void (*take)(void *context, const struct token_row *row),
                    void *context, struct error *err)
{
    struct db_query *query =
        db_prepare(store_writer(store),
                   "SELECT id, uid, scope, digest, created_ns, expires_ns, used_ns, "
                   "revoked_ns FROM token ORDER BY id");
    int r;
    while ((r = db_next(query, err)) == 1) {
        struct token_row row = { .id = (uint64_t)db_get_int(query, 0),
                                 .uid = (uint32_t)db_get_int(query, 1),
                                 .created_ns = db_get_int(query, 4),
                                 .expires_ns = db_get_int(query, 5),
                                 .used_ns = db_get_int(query, 6),
                                 .revoked_ns = db_get_int(query, 7) };
        snprintf(row.scope, sizeof row.scope, "%s", db_get_text(query, 2));
        snprintf(row.digest, sizeof row.digest, "%s", db_get_text(query, 3));
        take(context, &row);
    }
    db_finish(query);
    return r;
}

int token_rows_add(struct store *store, const struct token_row *row, struct error *err)
{
    struct db_query *query = db_prepare(
        store_writer(store),
        "INSERT INTO token (id, uid, scope, digest, created_ns, expires_ns, used_ns, "
        "revoked_ns) VALUES (?, ?, ?, ?, ?, ?, 0, 0)");
    db_int(query, 1, (int64_t)row->id);
    db_int(query, 2, row->uid);
    db_text(query, 3, row->scope);
    db_text(query, 4, row->digest);
    db_int(query, 5, row->created_ns);
    db_int(query, 6, row->expires_ns);
    int r = db_run(query, err);
    db_finish(query);
    return r;
}

int token_rows_update(struct store *store, const struct token_row *row,
                      struct error *err)
{
    struct db_query *query =
        db_prepare(store_writer(store),
                   "UPDATE token SET used_ns = ?, revoked_ns = ? WHERE id = ?");
    db_int(query, 1, row->used_ns);
    db_int(query, 2, row->revoked_ns);
    db_int(query, 3, (int64_t)row->id);
    int r = db_run(query, err);
    db_finish(query);
    return r;
}

int token_rows_delete(struct store *store, uint64_t id, struct error *err)
{
    struct db_query *query =
        db_prepare(store_writer(store), "DELETE FROM token WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    int r = db_run(query, err);
    db_finish(query);
    return r;
}

int token_rows_prune(struct store *store, int64_t before_ns, struct error *err)
{
    struct db_query *query = db_prepare(
        store_writer(store),
        "DELETE FROM token WHERE id < (SELECT max(id) FROM token) AND "
        "((revoked_ns > 0 AND revoked_ns < ?1) OR (expires_ns > 0 AND expires_ns < "
        "?1))");
    db_int(query, 1, before_ns);
    int r = db_run(query, err);
    db_finish(query);
    return r;
}
