/* records.c - what the store keeps, read for those who ask. */
#include "daemon/records.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "daemon/daemon.h"
#include "engine/engine.h"
#include "store/db.h"
#include "store/rows.h"

static const char *const states[] = { "PENDING",   "RUNNING", "STOPPING",  "HELD",
                                      "COMPLETED", "FAILED",  "CANCELLED", "REJECTED" };

#define STATES (sizeof states / sizeof states[0])
#define LIVE_STATES 4 /* the first so many */

static_assert(RECORDS_ENDED == ((1u << STATES) - 1) >> LIVE_STATES << LIVE_STATES,
              "the states that have ended are the rest");

uint32_t records_state(const char *name, size_t count)
{
    for (uint32_t i = 0; i < STATES; i++)
        if (strlen(states[i]) == count && strncmp(states[i], name, count) == 0)
            return 1u << i;
    return 0;
}

/* ---- jobs ---- */

#define COLUMNS \
    "id, uid, user, name, class, state, reason, gpus, types, entity, array_id, " \
    "array_index, placement, attempt, preemptions, exit_code, submit_ns, start_ns, " \
    "end_ns, waited_ns, served_ns, step, steps, rate_per_s, loss"

/* In the order of COLUMNS. */
enum {
    ID,
    UID,
    USER,
    NAME,
    CLASS,
    STATE,
    REASON,
    GPUS,
    TYPES,
    ENTITY,
    ARRAY_ID,
    ARRAY_INDEX,
    PLACEMENT,
    ATTEMPT,
    PREEMPTIONS,
    EXIT_CODE,
    SUBMIT,
    START,
    END,
    WAITED,
    SERVED,
    STEP,
    STEPS,
    RATE,
    LOSS,
    REQUEST
};

static void add_states(struct buf *sql, uint32_t set)
{
    buf_text(sql, " AND state IN (");
    const char *comma = "";
    for (uint32_t i = 0; i < STATES; i++) {
        if (!(set >> i & 1))
            continue;
        buf_print(sql, "%s'%s'", comma, states[i]);
        comma = ",";
    }
    buf_text(sql, ")");
}

static void write_sql(struct buf *sql, const struct record_filter *filter)
{
    bool live = !filter->ended || (filter->states && !(filter->states >> LIVE_STATES));
    buf_text(sql, "SELECT " COLUMNS ", NULL FROM job WHERE ");
    buf_text(sql, live ? "end_ns IS NULL" : "1");
    if (filter->states)
        add_states(sql, filter->states);
    if (filter->user)
        buf_text(sql, " AND user = ?1");
    if (filter->name)
        buf_text(sql, " AND name = ?2");
    if (filter->since_ns >= 0)
        buf_text(sql, " AND submit_ns >= ?3");
    if (filter->until_ns >= 0)
        buf_text(sql, " AND submit_ns <= ?4");
    if (filter->before)
        buf_text(sql, " AND id < ?5");
    if (filter->ids)
        buf_print(sql, " AND id IN (%s)", filter->ids);
    buf_print(sql, " ORDER BY id %s LIMIT ?6", filter->newest_first ? "DESC" : "ASC");
}

struct db_query *records_list(struct db *db, const struct record_filter *filter)
{
    struct buf sql;
    buf_init(&sql, 4096 + (filter->ids ? strlen(filter->ids) : 0));
    write_sql(&sql, filter);
    struct db_query *query = db_prepare_once(db, sql.bytes);
    buf_release(&sql);
    if (!query)
        return NULL;
    if (filter->user)
        db_text(query, 1, filter->user);
    if (filter->name)
        db_text(query, 2, filter->name);
    if (filter->since_ns >= 0)
        db_int(query, 3, filter->since_ns);
    if (filter->until_ns >= 0)
        db_int(query, 4, filter->until_ns);
    if (filter->before)
        db_int(query, 5, (int64_t)filter->before);
    db_int(query, 6, filter->limit);
    return query;
}

struct db_query *records_one(struct db *db, uint64_t id)
{
    struct db_query *query =
        db_prepare_once(db, "SELECT " COLUMNS ", request FROM job WHERE id = ?");
    if (query)
        db_int(query, 1, (int64_t)id);
    return query;
}

static int64_t int_or(struct db_query *query, int column, int64_t otherwise)
{
    return db_is_null(query, column) ? otherwise : db_get_int(query, column);
}

bool records_next(struct db_query *query, struct record *record)
{
    if (!query || db_next(query, NULL) != 1)
        return false;
    *record = (struct record){
        .uid = (uint32_t)db_get_int(query, UID),
        .request = db_get_text(query, REQUEST),
        .words = { .id = (uint64_t)db_get_int(query, ID),
                   .name = db_get_text(query, NAME),
                   .user = db_get_text(query, USER),
                   .class = db_get_text(query, CLASS),
                   .state = db_get_text(query, STATE),
                   .reason = db_get_text(query, REASON),
                   .types = db_get_text(query, TYPES),
                   .entity = db_get_text(query, ENTITY),
                   .gpus = (uint32_t)db_get_int(query, GPUS),
                   .placement = db_get_text(query, PLACEMENT),
                   .attempt = int_or(query, ATTEMPT, -1),
                   .preemptions = (uint32_t)db_get_int(query, PREEMPTIONS),
                   .has_exit_code = !db_is_null(query, EXIT_CODE),
                   .exit_code = (int)int_or(query, EXIT_CODE, 0),
                   .submit_ns = db_get_int(query, SUBMIT),
                   .start_ns = int_or(query, START, -1),
                   .end_ns = int_or(query, END, -1),
                   .waited_ns = db_get_int(query, WAITED),
                   .served_ns = db_get_int(query, SERVED),
                   .array_id = (uint64_t)int_or(query, ARRAY_ID, 0),
                   .array_index = (uint32_t)int_or(query, ARRAY_INDEX, 0),
                   .step = db_get_real(query, STEP),
                   .steps = db_get_real(query, STEPS),
                   .rate_per_s = db_get_real(query, RATE),
                   .loss = db_get_real(query, LOSS) },
    };
    return true;
}

void record_enliven(struct record *record, const struct daemon_facts *facts, job_id id,
                    struct buf *placement)
{
    const struct view *view = &facts->engine->state.view;
    const struct job *job = &view->jobs[id];
    struct words_job *words = &record->words;
    int64_t now_ns = facts->now_ns > job->since_ns ? facts->now_ns : job->since_ns;

    words->state = rows_state(job);
    words->class = job->class == CLASS_TE ? "te" : "be";
    words->attempt = job->attempt == UINT32_MAX ? -1 : (int64_t)job->attempt;
    words->preemptions = job->preemptions;
    words->start_ns = job->first_start_ns;
    words->waited_ns =
        job->waited_ns + (job_holds_seats(job) ? 0 : now_ns - job->since_ns);
    words->served_ns = job_served_ns(job, now_ns);
    words->step = job_steps(job, now_ns);
    words->steps = job->steps_total;
    words->rate_per_s = job_runs(job) ? job->rate_per_s : NAN;
    words->loss = job->loss;
    words->placement = NULL;
    if (job->seats.count > 0) {
        buf_reset(placement);
        rows_placement(placement, view, &job->seats);
        words->placement = placement->bytes;
    }
}

uint64_t records_task(struct db *db, uint64_t array_id, uint32_t index)
{
    struct db_query *query =
        db_prepare_once(db, "SELECT id FROM job WHERE array_id = ? AND "
                            "array_index = ? ORDER BY id DESC LIMIT 1");
    if (!query)
        return 0;
    db_int(query, 1, (int64_t)array_id);
    db_int(query, 2, index);
    uint64_t id = db_next(query, NULL) == 1 ? (uint64_t)db_get_int(query, 0) : 0;
    db_finish(query);
    return id;
}

uint32_t records_owner(struct db *db, uint64_t id)
{
    struct db_query *query = db_prepare_once(db, "SELECT uid FROM job WHERE id = ?");
    if (!query)
        return 0;
    db_int(query, 1, (int64_t)id);
    uint32_t owner = db_next(query, NULL) == 1 ? (uint32_t)db_get_int(query, 0) : 0;
    db_finish(query);
    return owner;
}

/* ---- the ledger ---- */

struct db_query *records_ledger(struct db *db, int64_t victim, int64_t since_ns,
                                int64_t limit)
{
    struct db_query *query = db_prepare_once(
        db, victim ? "SELECT at_ns, victim, newcomer, rule, gpus, predicted_cost_ns, "
                     "pause_ns, load_ns, redo_ns, wait_saved_s, open FROM ledger "
                     "WHERE at_ns >= ?1 AND victim = ?3 ORDER BY at_ns DESC LIMIT ?2"
                   : "SELECT at_ns, victim, newcomer, rule, gpus, predicted_cost_ns, "
                     "pause_ns, load_ns, redo_ns, wait_saved_s, open FROM ledger "
                     "WHERE at_ns >= ?1 ORDER BY at_ns DESC, victim DESC LIMIT ?2");
    if (!query)
        return NULL;
    db_int(query, 1, since_ns);
    db_int(query, 2, limit);
    if (victim)
        db_int(query, 3, victim);
    return query;
}

bool records_next_entry(struct db_query *query, struct words_entry *entry)
{
    if (!query || db_next(query, NULL) != 1)
        return false;
    *entry = (struct words_entry){
        .at_ns = db_get_int(query, 0),
        .victim = (uint64_t)db_get_int(query, 1),
        .beneficiary = (uint64_t)int_or(query, 2, 0),
        .rule = db_get_text(query, 3),
        .gpus = (uint32_t)db_get_int(query, 4),
        .predicted_cost_ns = db_get_int(query, 5),
        .pause_ns = db_get_int(query, 6),
        .load_ns = db_get_int(query, 7),
        .redo_ns = db_get_int(query, 8),
        .wait_saved_s = db_get_real(query, 9),
        .open = db_get_int(query, 10) != 0,
    };
    return true;
}

/* ---- events ---- */

struct db_query *records_story(struct db *db, uint64_t id, int64_t max)
{
    struct db_query *query = db_prepare_once(
        db, "SELECT text FROM (SELECT seq, text FROM event WHERE job = ?1 "
            "ORDER BY seq DESC LIMIT ?2) ORDER BY seq");
    if (!query)
        return NULL;
    db_int(query, 1, (int64_t)id);
    db_int(query, 2, max);
    return query;
}

int records_events(struct db *db, uint64_t seq, uint32_t max, stream_put *put,
                   void *sink)
{
    struct db_query *query = db_prepare_once(
        db, "SELECT seq, text, job, (SELECT uid FROM job WHERE job.id = event.job) "
            "FROM event WHERE seq > ? ORDER BY seq LIMIT ?");
    if (!query)
        return -EIO;
    db_int(query, 1, (int64_t)seq);
    db_int(query, 2, max);
    int count = 0, r;
    while ((r = db_next(query, NULL)) == 1) {
        const char *text = db_get_text(query, 1);
        uint32_t owner =
            db_is_null(query, 2) ? STREAM_EVERYONE : (uint32_t)int_or(query, 3, 0);
        put(sink, (uint64_t)db_get_int(query, 0), owner, text, strlen(text));
        count++;
    }
    db_finish(query);
    return r < 0 ? r : count;
}
