/* submission_keys.c - submissions by the key that the client gave them, for a day. */
#include "store/submission_keys.h"

#include <stdlib.h>

#include "base/memory.h"
#include "store/db.h"

struct submission_keys {
    struct db *db;
    struct db_query *find, *add, *prune;
};

struct submission_keys *submission_keys_new(struct db *db)
{
    struct submission_keys *keys = memory_checked(calloc(1, sizeof *keys));
    keys->db = db;
    keys->find = db_prepare(db, "SELECT at_ns, hash, first_id, count, several FROM "
                                "submission WHERE uid = ? AND key = ? AND at_ns >= ?");
    keys->add = db_prepare(
        db, "INSERT INTO submission (uid, key, at_ns, hash, first_id, count, several) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (uid, key) DO UPDATE SET "
            "at_ns = ?3, hash = ?4, first_id = ?5, count = ?6, several = ?7 "
            "WHERE at_ns < ?8");
    keys->prune = db_prepare(db, "DELETE FROM submission WHERE (uid, key) IN (SELECT "
                                 "uid, key FROM submission WHERE at_ns < ? "
                                 "ORDER BY at_ns LIMIT ?)");
    return keys;
}

void submission_keys_free(struct submission_keys *keys)
{
    if (!keys)
        return;
    db_finish(keys->find);
    db_finish(keys->add);
    db_finish(keys->prune);
    free(keys);
}

int submission_keys_find(struct submission_keys *keys, struct keyed_submission *keyed,
                         int64_t since_ns, struct error *err)
{
    struct db_query *query = keys->find;
    db_int(query, 1, keyed->uid);
    db_text(query, 2, keyed->key);
    db_int(query, 3, since_ns);
    int r = db_next(query, err);
    if (r != 1)
        return r;
    keyed->at_ns = db_get_int(query, 0);
    keyed->hash = (uint64_t)db_get_int(query, 1);
    keyed->first_id = (uint64_t)db_get_int(query, 2);
    keyed->count = (uint32_t)db_get_int(query, 3);
    keyed->several = db_get_int(query, 4);
    db_reset(query);
    return 1;
}

int submission_keys_add(struct submission_keys *keys,
                        const struct keyed_submission *keyed, int64_t since_ns,
                        struct error *err)
{
    db_int(keys->add, 1, keyed->uid);
    db_text(keys->add, 2, keyed->key);
    db_int(keys->add, 3, keyed->at_ns);
    db_int(keys->add, 4, (int64_t)keyed->hash);
    db_int(keys->add, 5, (int64_t)keyed->first_id);
    db_int(keys->add, 6, keyed->count);
    db_int(keys->add, 7, keyed->several);
    db_int(keys->add, 8, since_ns);
    int r = db_run(keys->add, err);
    return r < 0 ? r : db_changes(keys->db) == 0;
}

int64_t submission_keys_prune(struct submission_keys *keys, int64_t before_ns,
                              uint32_t max, struct error *err)
{
    db_int(keys->prune, 1, before_ns);
    db_int(keys->prune, 2, max);
    int r = db_run(keys->prune, err);
    return r < 0 ? r : db_changes(keys->db);
}
