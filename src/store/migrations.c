/* migrations.c - SQL that changes the tables from one version to the next. */
#include "store/migrations.h"

const char *const migrations[MIGRATIONS_COUNT] = {
    /*
     * To version 2: what starts a job is kept apart from what schedules it.  A restart does
     * not read it, an update of the job's row does not write it again, and the environment,
     * which may hold secrets, ends with the job.  'script' is JSON as well: a text in quotes.
     */
    "CREATE TABLE launch (id INTEGER PRIMARY KEY, env TEXT, script TEXT);"
    "INSERT INTO launch SELECT id, request -> '$.env', request -> '$.script' FROM job "
    "WHERE end_ns IS NULL AND json_valid(request);"
    "INSERT INTO launch SELECT id, NULL, request -> '$.script' FROM job "
    "WHERE end_ns IS NOT NULL AND json_valid(request) AND "
    "request -> '$.script' IS NOT NULL;"
    "UPDATE job SET request = json_remove(request, '$.env', '$.script') "
    "WHERE json_valid(request);",

    /*
     * To version 3: the bytes that are kept of each user's jobs, counted by the database
     * itself; 1024 is USAGE_RECORD_BYTES.
     */
    "CREATE TABLE usage (uid INTEGER PRIMARY KEY, bytes INTEGER NOT NULL,"
    " reduced INTEGER NOT NULL DEFAULT 0);"
    "INSERT INTO usage (uid, bytes) SELECT uid, sum(1024 + length(CAST(request AS "
    "BLOB))"
    " + coalesce(length(CAST(env AS BLOB)), 0) + coalesce(length(CAST(script AS "
    "BLOB)), 0))"
    " FROM job LEFT JOIN launch USING (id) GROUP BY uid;"
    "CREATE INDEX job_ended ON job (uid, id) WHERE end_ns IS NOT NULL;"
    "CREATE TRIGGER usage_add AFTER INSERT ON job BEGIN"
    " INSERT INTO usage (uid, bytes)"
    " VALUES (NEW.uid, 1024 + length(CAST(NEW.request AS BLOB)))"
    " ON CONFLICT (uid) DO UPDATE SET bytes = bytes + excluded.bytes; END;"
    "CREATE TRIGGER usage_change AFTER UPDATE OF request ON job BEGIN"
    " UPDATE usage SET bytes = bytes + length(CAST(NEW.request AS BLOB))"
    " - length(CAST(OLD.request AS BLOB)) WHERE uid = NEW.uid; END;"
    "CREATE TRIGGER usage_drop AFTER DELETE ON job BEGIN"
    " UPDATE usage SET bytes = bytes - 1024 - length(CAST(OLD.request AS BLOB))"
    " WHERE uid = OLD.uid; END;"
    "CREATE TRIGGER usage_launch_add AFTER INSERT ON launch BEGIN"
    " UPDATE usage SET bytes = bytes + coalesce(length(CAST(NEW.env AS BLOB)), 0)"
    " + coalesce(length(CAST(NEW.script AS BLOB)), 0)"
    " WHERE uid = (SELECT uid FROM job WHERE id = NEW.id); END;"
    "CREATE TRIGGER usage_launch_change AFTER UPDATE ON launch BEGIN"
    " UPDATE usage SET bytes = bytes + coalesce(length(CAST(NEW.env AS BLOB)), 0)"
    " + coalesce(length(CAST(NEW.script AS BLOB)), 0)"
    " - coalesce(length(CAST(OLD.env AS BLOB)), 0)"
    " - coalesce(length(CAST(OLD.script AS BLOB)), 0)"
    " WHERE uid = (SELECT uid FROM job WHERE id = NEW.id); END;"
    "CREATE TRIGGER usage_launch_drop AFTER DELETE ON launch BEGIN"
    " UPDATE usage SET bytes = bytes - coalesce(length(CAST(OLD.env AS BLOB)), 0)"
    " - coalesce(length(CAST(OLD.script AS BLOB)), 0)"
    " WHERE uid = (SELECT uid FROM job WHERE id = OLD.id); END;",

    /* To version 4: submissions by the keys that clients gave them. */
    "CREATE TABLE submission (uid INTEGER NOT NULL, key TEXT NOT NULL, "
    "at_ns INTEGER NOT NULL, hash INTEGER NOT NULL, first_id INTEGER NOT NULL, "
    "count INTEGER NOT NULL, several INTEGER NOT NULL, PRIMARY KEY (uid, key)) "
    "WITHOUT ROWID;",

    /* To version 5: tokens (token_rows.c).  'digest' is the SHA-256 of the secret; of the
     * times, 0 is never, not yet and not. */
    "CREATE TABLE token (id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, "
    "scope TEXT NOT NULL, digest TEXT NOT NULL, created_ns INTEGER NOT NULL, "
    "expires_ns INTEGER NOT NULL, used_ns INTEGER NOT NULL, "
    "revoked_ns INTEGER NOT NULL);",

    /*
     * To version 6: bytes are counted by usage_rows.c, once for each commit, and not by a
     * trigger for each row; and jobs that have not ended are those in 'live', without an
     * index of their own.
     */
    "DROP TRIGGER usage_add; DROP TRIGGER usage_change; DROP TRIGGER usage_drop;"
    "DROP TRIGGER usage_launch_add; DROP TRIGGER usage_launch_change;"
    "DROP TRIGGER usage_launch_drop; DROP INDEX job_live;",

    /*
     * To version 7: what is old is found by an index and deleted (prune.c).  Reports are found
     * by their job, so that those of live jobs are not looked at again and again.
     */
    "CREATE INDEX job_by_end ON job (end_ns) WHERE end_ns IS NOT NULL;"
    "CREATE INDEX job_live_array ON job (array_id) "
    "WHERE array_id IS NOT NULL AND end_ns IS NULL;"
    "CREATE INDEX event_no_job ON event (at_ns) WHERE job IS NULL;"
    "CREATE INDEX submission_by_time ON submission (at_ns);"
    "DROP INDEX event_progress;",

    /* To version 8: rates that were measured (rate_rows.c); 'mean' and 'variance' are of
     * ln(steps per second). */
    "CREATE TABLE rate (kind TEXT NOT NULL, type TEXT NOT NULL, gpus INTEGER NOT NULL, "
    "spread INTEGER NOT NULL, mean REAL NOT NULL, variance REAL NOT NULL, "
    "count INTEGER NOT NULL, at_ns INTEGER NOT NULL, "
    "PRIMARY KEY (kind, type, gpus, spread)) WITHOUT ROWID;"
    "CREATE INDEX rate_by_time ON rate (at_ns);",

    /* To version 9: what jobs were measured to keep of their rates beside others. */
    "CREATE TABLE pair (kind TEXT NOT NULL, beside TEXT NOT NULL, type TEXT NOT NULL, "
    "kept REAL NOT NULL, count INTEGER NOT NULL, at_ns INTEGER NOT NULL, "
    "PRIMARY KEY (kind, beside, type)) WITHOUT ROWID;"
    "CREATE INDEX pair_by_time ON pair (at_ns);",

    /* To version 10: jobs that shared GPUs (struct pair_entry); of the times, -1 is not yet
     * and not now. */
    "CREATE TABLE shared (job INTEGER NOT NULL, beside INTEGER NOT NULL, "
    "from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL, gpus INTEGER NOT NULL, "
    "shared_ns INTEGER NOT NULL, alone_s REAL NOT NULL, beside_alone_s REAL NOT NULL, "
    "lost_ns INTEGER NOT NULL, since_ns INTEGER NOT NULL, steps REAL NOT NULL, "
    "beside_steps REAL NOT NULL, rate_per_s REAL NOT NULL, "
    "beside_rate_per_s REAL NOT NULL, PRIMARY KEY (job, beside, from_ns)) "
    "WITHOUT ROWID;"
    "CREATE INDEX shared_by_other ON shared (beside);"
    "CREATE INDEX shared_open ON shared (job) WHERE to_ns < 0;",

    /* To version 11: the most memory of a GPU that a job had, and what kinds do with one:
     * 'busy' is the part of the time that it computes, 0 if that is not known; 'sent' is the
     * mean of ln(bytes per second) of silent gangs of 'gpus', 0 if there were none. */
    "ALTER TABLE job ADD COLUMN gpu_mib INTEGER;"
    "CREATE TABLE kind_use (kind TEXT NOT NULL, type TEXT NOT NULL, "
    "gpu_mib INTEGER NOT NULL, busy REAL NOT NULL, gpus INTEGER NOT NULL, "
    "sent REAL NOT NULL, sent_count INTEGER NOT NULL, at_ns INTEGER NOT NULL, "
    "PRIMARY KEY (kind, type)) WITHOUT ROWID;"
    "CREATE INDEX kind_use_by_time ON kind_use (at_ns);",

    /*
     * To version 12: what happened to a job without its reports, of which there may be a
     * hundred thousand; and from when on each policy decided (policy_rows.c).
     */
    "CREATE INDEX event_of_job ON event (job, seq) "
    "WHERE job IS NOT NULL AND kind <> 'progress';"
    "CREATE TABLE policy (id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, "
    "text TEXT NOT NULL);",

    /* To version 13: forecasts and how they turned out (forecast_rows.c). */
    "CREATE TABLE forecast (job INTEGER NOT NULL, target INTEGER NOT NULL, "
    "made_ns INTEGER NOT NULL, policy TEXT NOT NULL, gpus INTEGER NOT NULL, "
    "forward_10_s REAL, forward_50_s REAL, forward_90_s REAL, "
    "shown_10_s REAL NOT NULL, shown_50_s REAL NOT NULL, shown_90_s REAL NOT NULL, "
    "baseline INTEGER NOT NULL, over_ns INTEGER, dropped INTEGER NOT NULL DEFAULT 0, "
    "PRIMARY KEY (job, target)) WITHOUT ROWID;"
    "CREATE INDEX forecast_by_time ON forecast (made_ns);",
};
