/* usage_rows.c - the table of what is kept of each user's jobs. */
#include "store/usage_rows.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "store/db.h"

#define REDUCE_AT_ONCE 1000

/* Requests of ended jobs of a user that are to be reduced next: up to ?2. */
#define TO_REDUCE \
    "uid = ?1 AND id > (SELECT reduced FROM usage WHERE uid = ?1) AND id <= ?2 AND " \
    "end_ns IS NOT NULL"

struct usage_change {
    uint32_t uid;
    int64_t bytes;
};

struct usage_rows {
    struct db *db;
    struct db_query *read, *add;
    struct usage_change *changes; /* not written yet; of few users at a time */
    uint32_t count, room;
};

struct usage_rows *usage_rows_new(struct db *db)
{
    struct usage_rows *usage = memory_checked(calloc(1, sizeof *usage));
    usage->db = db;
    usage->read = db_prepare(db, "SELECT bytes FROM usage WHERE uid = ?");
    usage->add = db_prepare(db, "INSERT INTO usage (uid, bytes) VALUES (?, ?) "
                                "ON CONFLICT (uid) DO UPDATE SET "
                                "bytes = bytes + excluded.bytes");
    return usage;
}

void usage_rows_free(struct usage_rows *usage)
{
    if (!usage)
        return;
    db_finish(usage->read);
    db_finish(usage->add);
    free(usage->changes);
    free(usage);
}

static struct usage_change *find_change(const struct usage_rows *usage, uint32_t uid)
{
    for (uint32_t i = usage->count; i-- > 0;)
        if (usage->changes[i].uid == uid)
            return &usage->changes[i];
    return NULL;
}

void usage_rows_count(struct usage_rows *usage, uint32_t uid, int64_t bytes)
{
    struct usage_change *change = find_change(usage, uid);
    if (!change) {
        usage->changes = grow_array(usage->changes, &usage->room, usage->count + 1,
                                    sizeof *usage->changes);
        change = &usage->changes[usage->count++];
        *change = (struct usage_change){ .uid = uid };
    }
    change->bytes += bytes;
}

int usage_rows_write(struct usage_rows *usage, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < usage->count && r == 0; i++) {
        if (usage->changes[i].bytes == 0)
            continue;
        db_int(usage->add, 1, usage->changes[i].uid);
        db_int(usage->add, 2, usage->changes[i].bytes);
        r = db_run(usage->add, err);
    }
    usage->count = 0;
    return r;
}

void usage_rows_forget(struct usage_rows *usage)
{
    usage->count = 0;
}

int64_t usage_rows_bytes(const struct usage_rows *usage, uint32_t uid)
{
    const struct usage_change *change = find_change(usage, uid);
    db_int(usage->read, 1, uid);
    int64_t bytes = db_next(usage->read, NULL) == 1 ? db_get_int(usage->read, 0) : 0;
    db_reset(usage->read);
    return bytes + (change ? change->bytes : 0);
}

/* Up to which job requests have to be reduced for so many bytes; 0: there are no more. */
static int64_t find_last(struct usage_rows *usage, uint32_t uid, int64_t bytes)
{
    struct db_query *query =
        db_prepare(usage->db, "SELECT id, length(CAST(request AS BLOB)) + "
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

static struct db_query *prepare_up_to(struct usage_rows *usage, const char *sql,
                                      uint32_t uid, int64_t last)
{
    struct db_query *query = db_prepare(usage->db, sql);
    db_int(query, 1, uid);
    db_int(query, 2, last);
    return query;
}

static int run_up_to(struct usage_rows *usage, const char *sql, uint32_t uid,
                     int64_t last, struct error *err)
{
    struct db_query *query = prepare_up_to(usage, sql, uid, last);
    int r = db_run(query, err);
    db_finish(query);
    return r;
}

/* What the requests that are to be reduced have now. */
static int64_t sum_bytes(struct usage_rows *usage, uint32_t uid, int64_t last)
{
    struct db_query *query =
        prepare_up_to(usage,
                      "SELECT sum(length(CAST(request AS BLOB)) + "
                      "coalesce(length(CAST(env AS BLOB)), 0) + "
                      "coalesce(length(CAST(script AS BLOB)), 0)) "
                      "FROM job LEFT JOIN launch USING (id) WHERE " TO_REDUCE,
                      uid, last);
    int64_t bytes = db_next(query, NULL) == 1 ? db_get_int(query, 0) : 0;
    db_finish(query);
    return bytes;
}

int usage_rows_reduce(struct usage_rows *usage, uint32_t uid, int64_t bytes,
                      struct error *err)
{
    int r = usage_rows_write(usage, err); /* the user has a row now */
    int64_t last = r == 0 ? find_last(usage, uid, bytes) : 0;
    if (last == 0)
        return r;
    int64_t before = sum_bytes(usage, uid, last);
    r = run_up_to(
        usage,
        "UPDATE job SET request = json_set(json_remove(request, '$.env', '$.script', "
        "'$.command'), '$.command', json('[\"…\"]')) WHERE " TO_REDUCE
        " AND json_valid(request)",
        uid, last, err);
    if (r == 0)
        r = run_up_to(usage,
                      "DELETE FROM launch WHERE id IN (SELECT id FROM job "
                      "WHERE " TO_REDUCE ")",
                      uid, last, err);
    if (r < 0)
        return r;
    usage_rows_count(usage, uid, sum_bytes(usage, uid, last) - before);
    return run_up_to(usage, "UPDATE usage SET reduced = ?2 WHERE uid = ?1", uid, last,
                     err);
}
