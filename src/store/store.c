/*
 * store.c - what berthd remembers.
 *
 * A job's rows are written once per commit, however often it changed meanwhile, except
 * when it ends: its slot may be taken by another before the commit.
 */
#include "store/store.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "model/event_record.h"
#include "model/state.h"
#include "store/db.h"
#include "store/migrations.h"
#include "store/rate_rows.h"
#include "store/rows.h"
#include "store/schema.h"
#include "store/usage_rows.h"

#define TEXT_MAX (16u << 20)
#define CALENDAR_BYTES_MAX (64u << 20)

/* The rows of a live job. */
#define ROW_JOB 1  /* which users see   */
#define ROW_LIVE 2 /* for the next start */

struct store {
    struct db *db, *reader;
    const struct state *state;
    struct db_query *add_event, *add_job, *set_job, *end_job, *set_live, *drop_live,
        *set_entry, *set_pair, *set_hold, *set_fact, *get_fact, *get_request,
        *add_launch, *get_launch, *drop_launch, *forget_env, *set_memory;
    struct usage_rows *usage;
    struct rate_rows rates;
    char *path;
    struct stat file; /* as it was opened */
    uint64_t seq;
    bool has_remains;
    bool calendar_changed; /* since the last commit */
    struct buf text, seats, next, pending_shares, served;

    job_id *dirty; /* slots whose rows are to be written */
    uint32_t dirty_count, dirty_room;
    uint8_t *dirty_rows; /* which, by slot */
    uint32_t slot_room;

    int failure; /* the first since the last commit */
    struct error failure_text;

    void (*observe)(void *context, const struct event_record *record, const char *line,
                    size_t count);
    void *context;
};

/* --- opening --------------------------------------------------------------------- */

static void prepare_queries(struct store *store)
{
    struct db *db = store->db;
    store->add_event = db_prepare(
        db, "INSERT INTO event (seq, at_ns, kind, job, text) VALUES (?, ?, ?, ?, ?)");
    store->add_job = db_prepare(
        db, "INSERT INTO job (id, uid, user, name, class, state, reason, gpus, types, "
            "entity, array_id, array_index, submit_ns, end_ns, steps, held, request, "
            "step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    store->set_job = db_prepare(
        db,
        "UPDATE job SET class = ?, state = ?, placement = coalesce(?, placement), "
        "attempt = ?, preemptions = ?, failures = ?, start_ns = ?, waited_ns = ?, "
        "served_ns = ?, step = ?, steps = ?, rate_per_s = ?, loss = ? WHERE id = ?");
    store->end_job = db_prepare(
        db, "UPDATE job SET state = ?, reason = ?, exit_code = ?, end_ns = ?, "
            "waited_ns = ?, served_ns = ?, step = coalesce(?, step), preemptions = ?, "
            "failures = ?, start_ns = coalesce(start_ns, ?), "
            "attempt = coalesce(?, attempt), rate_per_s = NULL WHERE id = ?");
    store->set_live = rows_prepare_live(db);
    store->drop_live = db_prepare(db, "DELETE FROM live WHERE id = ?");
    store->set_entry = rows_prepare_entry(db);
    store->set_pair = rows_prepare_pair(db);
    store->set_hold = db_prepare(db, "UPDATE job SET held = ? WHERE id = ?");
    store->set_fact =
        db_prepare(db, "INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)");
    store->get_fact = db_prepare(db, "SELECT value FROM fact WHERE name = ?");
    store->get_request = db_prepare(
        db, "SELECT request, env, script FROM job LEFT JOIN launch USING (id) "
            "WHERE id = ?");
    store->add_launch =
        db_prepare(db, "INSERT INTO launch (id, env, script) VALUES (?, ?, ?)");
    store->get_launch = db_prepare(
        db, "SELECT uid, length(CAST(env AS BLOB)), length(CAST(script AS BLOB)) FROM "
            "launch JOIN job USING (id) WHERE id = ?");
    store->drop_launch = db_prepare(db, "DELETE FROM launch WHERE id = ?");
    store->rates.set = db_prepare(db, RATE_ROWS_SET);
    store->rates.trim = db_prepare(db, RATE_ROWS_TRIM);
    store->rates.set_pair = db_prepare(db, RATE_ROWS_SET_PAIR);
    store->rates.trim_pairs = db_prepare(db, RATE_ROWS_TRIM_PAIRS);
    store->rates.set_use = db_prepare(db, RATE_ROWS_SET_USE);
    store->rates.trim_uses = db_prepare(db, RATE_ROWS_TRIM_USES);
    store->set_memory = db_prepare(
        db, "UPDATE job SET gpu_mib = max(coalesce(gpu_mib, 0), ?) WHERE id = ?");
    store->forget_env = db_prepare(db, "UPDATE launch SET env = NULL WHERE id = ?");
}

static uint64_t read_number(struct db *db, const char *sql)
{
    struct db_query *query = db_prepare(db, sql);
    uint64_t number = db_next(query, NULL) == 1 ? (uint64_t)db_get_int(query, 0) : 0;
    db_finish(query);
    return number;
}

/* The newest event may have been pruned. */
static uint64_t read_seq(struct store *store)
{
    return read_number(
        store->db,
        "SELECT max(coalesce((SELECT max(seq) FROM event), 0), coalesce((SELECT "
        "CAST(value AS INTEGER) FROM fact WHERE name = 'last_seq'), 0))");
}

static int open_connections(struct store *store, const char *path, struct error *err)
{
    size_t count;
    /* Version 1, then SQL for the change from each version to the next. */
    const char *steps[MIGRATIONS_VERSION] = { store_schema(&count) };
    for (int i = 0; i < MIGRATIONS_COUNT; i++)
        steps[i + 1] = migrations[i];
    int r = db_open(&store->db, path, steps, MIGRATIONS_VERSION, err);
    return r < 0 ? r : db_open_reader(&store->reader, path, err);
}

int store_open(struct store **ret_store, const char *path, struct error *err)
{
    struct store *store = memory_checked(calloc(1, sizeof *store));
    buf_init(&store->text, TEXT_MAX);
    buf_init(&store->seats, TEXT_MAX);
    buf_init(&store->next, TEXT_MAX);
    buf_init(&store->pending_shares, TEXT_MAX);
    buf_init(&store->served, TEXT_MAX);
    int r = open_connections(store, path, err);
    if (r < 0) {
        store_close(store);
        return r;
    }
    prepare_queries(store);
    store->usage = usage_rows_new(store->db);
    store->path = memory_text(path);
    stat(path, &store->file);
    store->seq = read_seq(store);
    store->has_remains = true;
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    struct db_query *all[] = {
        store->add_event,        store->add_job,       store->set_job,
        store->end_job,          store->set_live,      store->drop_live,
        store->set_entry,        store->set_hold,      store->set_fact,
        store->get_fact,         store->get_request,   store->add_launch,
        store->get_launch,       store->drop_launch,   store->forget_env,
        store->rates.set,        store->rates.trim,    store->rates.set_pair,
        store->rates.trim_pairs, store->rates.set_use, store->rates.trim_uses,
        store->set_memory,       store->set_pair
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        db_finish(all[i]);
    usage_rows_free(store->usage);
    db_close(store->reader);
    db_close(store->db);
    buf_release(&store->text);
    buf_release(&store->seats);
    buf_release(&store->next);
    buf_release(&store->pending_shares);
    buf_release(&store->served);
    free(store->dirty);
    free(store->dirty_rows);
    free(store->path);
    free(store);
}

void store_attach(struct store *store, const struct state *state)
{
    store->state = state;
}

void store_observe(struct store *store,
                   void (*observe)(void *context, const struct event_record *record,
                                   const char *line, size_t count),
                   void *context)
{
    store->observe = observe;
    store->context = context;
}

struct db *store_reader(struct store *store)
{
    return store->reader;
}

struct db *store_writer(struct store *store)
{
    return store->db;
}

struct usage_rows *store_usage(struct store *store)
{
    return store->usage;
}

uint64_t store_last_seq(const struct store *store)
{
    return store->seq;
}

uint64_t store_last_id(struct store *store)
{
    return read_number(
        store->db,
        "SELECT max(coalesce((SELECT max(id) FROM job), 0), coalesce((SELECT "
        "CAST(value AS INTEGER) FROM fact WHERE name = 'last_id'), 0))");
}

/* --- failures -------------------------------------------------------------------- */

/* The first failure is kept until the engine commits. */
static void keep_failure(struct store *store, int r, const struct error *err)
{
    if (r < 0 && store->failure == 0) {
        store->failure = r;
        store->failure_text = *err;
    }
}

void store_fail(struct store *store, int code, const struct error *err)
{
    keep_failure(store, code, err);
}

static void run_query(struct store *store, struct db_query *query)
{
    struct error err;
    if (store->failure == 0)
        keep_failure(store, db_run(query, &err), &err);
}

/* What is kept to start a job of this user, in bytes. */
struct launch_bytes {
    uint32_t uid;
    int64_t env, script;
};

/* --- a job's rows -------------------------------------------------------------------- */

static void text_or_null(struct db_query *query, int parameter, const struct buf *buf)
{
    if (buf->count)
        db_bytes(query, parameter, buf->bytes, (int64_t)buf->count);
    else
        db_null(query, parameter);
}

static void time_or_null(struct db_query *query, int parameter, int64_t ns)
{
    if (ns >= 0)
        db_int(query, parameter, ns);
    else
        db_null(query, parameter);
}

static void positive_or_null(struct db_query *query, int parameter, double number)
{
    db_real(query, parameter, number > 0 ? number : (double)NAN);
}

static void attempt_or_null(struct db_query *query, int parameter,
                            const struct job *job)
{
    if (job->attempt == UINT32_MAX)
        db_null(query, parameter);
    else
        db_int(query, parameter, job->attempt);
}

/* The row of 'job', which users see. */
static void write_job(struct store *store, job_id id)
{
    const struct view *view = &store->state->view;
    const struct job *job = &view->jobs[id];
    int64_t now_ns = view->now_ns;
    int64_t waited_ns = job->waited_ns;
    if (!job_holds_seats(job))
        waited_ns += now_ns - job->since_ns;
    buf_reset(&store->text);
    if (job->seats.count || job->next.count)
        rows_placement(&store->text, view, job->seats.count ? &job->seats : &job->next);
    struct db_query *query = store->set_job;
    db_text(query, 1, job->class == CLASS_TE ? "te" : "be");
    db_text(query, 2, rows_state(job));
    text_or_null(query, 3, &store->text);
    attempt_or_null(query, 4, job);
    db_int(query, 5, job->preemptions);
    db_int(query, 6, job->failures);
    time_or_null(query, 7, job->first_start_ns);
    db_int(query, 8, waited_ns);
    db_int(query, 9, job_served_ns(job, now_ns));
    db_real(query, 10, job_steps(job, now_ns));
    positive_or_null(query, 11, job->steps_total);
    positive_or_null(query, 12, job_runs(job) ? job->rate_per_s : 0);
    db_real(query, 13, job->loss);
    db_int(query, 14, (int64_t)job->id);
    run_query(store, query);
}

static void write_live(struct store *store, job_id id)
{
    rows_write_live(store->set_live, store->state, id, &store->seats, &store->next,
                    &store->pending_shares, &store->served);
    run_query(store, store->set_live);
}

/* What is kept to start a job.  1; 0: there is none. */
static int read_launch(struct store *store, uint64_t id, struct launch_bytes *bytes,
                       struct error *err)
{
    struct db_query *query = store->get_launch;
    db_int(query, 1, (int64_t)id);
    int r = db_next(query, err);
    if (r != 1)
        return r;
    *bytes = (struct launch_bytes){ .uid = (uint32_t)db_get_int(query, 0),
                                    .env = db_get_int(query, 1),
                                    .script = db_get_int(query, 2) };
    db_reset(query);
    return 1;
}

/* Environments hold secrets: they are not kept longer than they are needed. */
static void forget_launch(struct store *store, uint64_t id)
{
    struct launch_bytes bytes;
    struct error err;
    int r = read_launch(store, id, &bytes, &err);
    keep_failure(store, r, &err);
    if (r != 1)
        return;
    struct db_query *query = bytes.script ? store->forget_env : store->drop_launch;
    db_int(query, 1, (int64_t)id);
    run_query(store, query);
    usage_rows_count(store->usage, bytes.uid, -bytes.env);
    store->has_remains = true;
}

static const char *end_state(const struct job *job, const struct event *event)
{
    if (event->kind == EVENT_FINISHED)
        return "COMPLETED";
    return job->leaving ? "CANCELLED" : "FAILED";
}

/* The last row of a job that has ended, before its slot is used again. */
static void write_end(struct store *store, const struct view *view,
                      const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    bool has_code = event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED ||
                    event->kind == EVENT_STOPPED;
    struct db_query *query = store->end_job;
    db_text(query, 1, end_state(job, event));
    db_text(query, 2,
            event->why                     ? event->why
            : event->kind == EVENT_DROPPED ? "the policy gave up on it"
                                           : NULL);
    if (has_code)
        db_int(query, 3, event->exit_code);
    else
        db_null(query, 3);
    db_int(query, 4, event->at_ns);
    db_int(query, 5, job->waited_ns);
    db_int(query, 6, job->served_ns);
    db_real(query, 7, event->kind == EVENT_FINISHED ? event->steps : (double)NAN);
    db_int(query, 8, job->preemptions);
    db_int(query, 9, job->failures);
    time_or_null(query, 10, job->first_start_ns);
    attempt_or_null(query, 11, job);
    db_int(query, 12, (int64_t)job->id);
    run_query(store, query);
    db_int(store->drop_live, 1, (int64_t)job->id);
    run_query(store, store->drop_live);
    forget_launch(store, job->id);
}

static void grow_slots(struct store *store, job_id id)
{
    store->dirty_rows = grow_array(store->dirty_rows, &store->slot_room, id + 1,
                                   sizeof *store->dirty_rows);
}

static void mark_dirty(struct store *store, job_id id, uint8_t rows)
{
    grow_slots(store, id);
    if (!store->dirty_rows[id]) {
        store->dirty = grow_array(store->dirty, &store->dirty_room,
                                  store->dirty_count + 1, sizeof *store->dirty);
        store->dirty[store->dirty_count++] = id;
    }
    store->dirty_rows[id] |= rows;
}

/* --- events -------------------------------------------------------------------------- */

static void write_event(struct store *store, const struct view *view,
                        const struct event *event)
{
    struct event_record record = event_record_make(++store->seq, view, event);
    buf_reset(&store->text);
    event_record_write(&store->text, view, &record);
    struct db_query *query = store->add_event;
    db_int(query, 1, (int64_t)record.seq);
    db_int(query, 2, event->at_ns);
    db_text(query, 3, event_name(event->kind));
    if (record.job)
        db_int(query, 4, (int64_t)record.job);
    else
        db_null(query, 4);
    db_bytes(query, 5, store->text.bytes, (int64_t)store->text.count);
    run_query(store, query);
    if (store->observe)
        store->observe(store->context, &record, store->text.bytes, store->text.count);
}

/* Other jobs that an event changes: partners, and jobs with a pending allocation. */
static void mark_others(struct store *store)
{
    for (uint32_t i = 0; i < store->state->touched_count; i++)
        mark_dirty(store, store->state->touched[i], ROW_JOB | ROW_LIVE);
}

/* The most memory that the job has had, and what its kind is known by. */
static void note_use(struct store *store, const struct event *event)
{
    if (event->kind == EVENT_GPU_USE) {
        db_int(store->set_memory, 1, event->gpu_mib);
        db_int(store->set_memory, 2, (int64_t)store->state->jobs[event->job].id);
        run_query(store, store->set_memory);
    }
    if (store->failure == 0)
        store->failure =
            rate_rows_note(&store->rates, store->state, event, &store->failure_text);
}

void store_event(void *self, const struct view *view, const struct event *event)
{
    struct store *store = self;
    /* Traffic counts repeat every few seconds and are not kept. */
    if (event->kind == EVENT_WAKE || event->kind == EVENT_ADOPTED)
        return;
    if (event->kind == EVENT_SENT || event->kind == EVENT_GPU_USE) {
        note_use(store, event); /* what was learned is kept, but not in the log */
        return;
    }
    write_event(store, view, event);
    store->calendar_changed = store->calendar_changed ||
                              event->kind == EVENT_RESERVED ||
                              event->kind == EVENT_BOUNDARY;
    if (event->job == JOB_NONE || event->kind == EVENT_REJECTED ||
        event->kind == EVENT_NODE_DOWN || event->kind == EVENT_NODE_UP ||
        event->kind == EVENT_FOREIGN || event->kind == EVENT_RESERVED ||
        event->kind == EVENT_BOUNDARY)
        return;
    if (store->failure == 0)
        store->failure =
            rate_rows_note(&store->rates, store->state, event, &store->failure_text);
    mark_others(store);
    if (view->jobs[event->job].state != JOB_FREE) {
        /* store_add_job() has just written the other one. */
        mark_dirty(store, event->job,
                   event->kind == EVENT_SUBMITTED ? ROW_LIVE : ROW_JOB | ROW_LIVE);
        return;
    }
    grow_slots(store, event->job);
    write_end(store, view, event);
}

int store_check_file(const struct store *store, struct error *err)
{
    struct stat there;
    if (stat(store->path, &there) < 0)
        return error_set(err, -ENOENT, "the database %.100s cannot be found: %s",
                         store->path, strerror(errno));
    if (there.st_ino != store->file.st_ino || there.st_dev != store->file.st_dev)
        return error_set(err, -ESTALE, "the database %.100s was replaced by another",
                         store->path);
    return 0;
}

static void write_calendar(struct store *store)
{
    struct buf text;
    buf_init(&text, CALENDAR_BYTES_MAX);
    calendar_write(&store->state->calendar, store->state->view.cluster, &text);
    if (store->failure == 0)
        store->failure = store_set_fact(store, "calendar", text.bytes ? text.bytes : "",
                                        &store->failure_text);
    buf_release(&text);
    store->calendar_changed = false;
}

int store_commit(void *self, struct error *err)
{
    struct store *store = self;
    if (store->calendar_changed)
        write_calendar(store);
    for (uint32_t i = 0; i < store->dirty_count; i++) {
        job_id id = store->dirty[i];
        uint8_t rows = store->dirty_rows[id];
        store->dirty_rows[id] = 0;
        if (store->state->jobs[id].state == JOB_FREE)
            continue; /* it has ended since */
        if (rows & ROW_JOB)
            write_job(store, id);
        write_live(store, id);
    }
    store->dirty_count = 0;
    if (store->failure == 0)
        store->failure = usage_rows_write(store->usage, &store->failure_text);
    if (store->failure < 0) {
        if (err)
            *err = store->failure_text;
        return store->failure;
    }
    int r = store_check_file(store, err);
    return r < 0 ? r : db_commit(store->db, err);
}

bool store_has_remains(const struct store *store)
{
    return store->has_remains;
}

void store_note_remains(struct store *store)
{
    store->has_remains = true;
}

int store_checkpoint(struct store *store, struct error *err)
{
    int r = db_checkpoint(store->db, err);
    if (r == 0)
        store->has_remains = false;
    return r;
}

void store_rollback(struct store *store)
{
    db_rollback(store->db);
    usage_rows_forget(store->usage);
    store->failure = 0;
    for (uint32_t i = 0; i < store->dirty_count; i++)
        store->dirty_rows[store->dirty[i]] = 0;
    store->dirty_count = 0;
    store->seq = read_seq(store);
}

/* --- changes without an event ---------------------------------------------------------- */

static int64_t length_of(const char *text)
{
    return text ? (int64_t)strlen(text) : 0;
}

static int add_launch(struct store *store, const struct store_job *job,
                      struct error *err)
{
    db_int(store->add_launch, 1, (int64_t)job->id);
    db_text(store->add_launch, 2, job->env);
    db_text(store->add_launch, 3, job->script);
    return db_run(store->add_launch, err);
}

int store_add_job(struct store *store, const struct store_job *job, struct error *err)
{
    struct db_query *query = store->add_job;
    db_int(query, 1, (int64_t)job->id);
    db_int(query, 2, job->uid);
    db_text(query, 3, job->user);
    db_text(query, 4, job->name);
    db_text(query, 5, job->class == CLASS_TE ? "te" : "be");
    db_text(query, 6, job->rejected ? "REJECTED" : job->waits ? "HELD" : "PENDING");
    db_text(query, 7, job->rejected);
    db_int(query, 8, job->gpus);
    db_text(query, 9, job->types);
    db_text(query, 10, job->entity);
    if (job->array_id) {
        db_int(query, 11, (int64_t)job->array_id);
        db_int(query, 12, job->array_index);
    } else {
        db_null(query, 11);
        db_null(query, 12);
    }
    db_int(query, 13, job->submit_ns);
    time_or_null(query, 14, job->rejected ? job->submit_ns : -1);
    positive_or_null(query, 15, job->steps);
    db_int(query, 16, job->held);
    db_text(query, 17, job->request);
    db_real(query, 18, job->rejected ? (double)NAN : 0);
    int r = db_run(query, err);
    bool launches = !job->rejected && (job->env || job->script);
    if (r == 0 && launches)
        r = add_launch(store, job, err);
    if (r == 0)
        usage_rows_count(
            store->usage, job->uid,
            USAGE_RECORD_BYTES + length_of(job->request) +
                (launches ? length_of(job->env) + length_of(job->script) : 0));
    return r;
}

/* Returns how many were moved. */
static int64_t move_ended(struct store *store, uint64_t id, struct error *err)
{
    struct db_query *query = db_prepare(
        store->db,
        "UPDATE job SET id = id + 4294967296 * (1 + (SELECT max(id) FROM job "
        "WHERE id % 4294967296 = ?1) / 4294967296) "
        "WHERE id = ?1 AND end_ns IS NOT NULL");
    db_int(query, 1, (int64_t)id);
    int r = db_run(query, err);
    db_finish(query);
    return r < 0 ? r : db_changes(store->db);
}

int store_retire(struct store *store, uint64_t id, struct error *err)
{
    struct launch_bytes bytes = { 0 };
    int r = read_launch(store, id, &bytes, err);
    if (r < 0)
        return r;
    int64_t moved = move_ended(store, id, err);
    if (moved <= 0 || r == 0)
        return moved < 0 ? (int)moved : 0;
    usage_rows_count(store->usage, bytes.uid, -(bytes.env + bytes.script));
    db_int(store->drop_launch, 1, (int64_t)id);
    return db_run(store->drop_launch, err);
}

void store_write_entry(void *self, const struct ledger_entry *entry,
                       double wait_saved_s, bool open)
{
    struct store *store = self;
    rows_write_entry(store->set_entry, entry, wait_saved_s, open);
    run_query(store, store->set_entry);
}

void store_write_pair(void *self, const struct pair_entry *entry)
{
    struct store *store = self;
    rows_write_pair(store->set_pair, entry);
    run_query(store, store->set_pair);
}

void store_fail_job(struct store *store, uint64_t id, int64_t at_ns, const char *why)
{
    struct db_query *query = store->end_job;
    db_text(query, 1, "FAILED");
    db_text(query, 2, why);
    db_null(query, 3);
    db_int(query, 4, at_ns);
    db_int(query, 5, 0);
    db_int(query, 6, 0);
    db_null(query, 7);
    db_int(query, 8, 0);
    db_int(query, 9, 0);
    db_null(query, 10);
    db_null(query, 11);
    db_int(query, 12, (int64_t)id);
    run_query(store, query);
    db_int(store->drop_live, 1, (int64_t)id);
    run_query(store, store->drop_live);
    forget_launch(store, id);
}

int store_hold(struct store *store, uint64_t id, bool held, struct error *err)
{
    db_int(store->set_hold, 1, held);
    db_int(store->set_hold, 2, (int64_t)id);
    return db_run(store->set_hold, err);
}

int store_set_fact(struct store *store, const char *name, const char *value,
                   struct error *err)
{
    db_text(store->set_fact, 1, name);
    db_text(store->set_fact, 2, value);
    return db_run(store->set_fact, err);
}

static char *read_text(struct db_query *query)
{
    char *text = NULL;
    if (db_next(query, NULL) == 1) {
        const char *found = db_get_text(query, 0);
        text = memory_text(found);
        db_reset(query);
    }
    return text;
}

char *store_fact(struct store *store, const char *name)
{
    db_text(store->get_fact, 1, name);
    return read_text(store->get_fact);
}

/* Add a field to a JSON object that is not closed yet. */
static void add_field(struct buf *buf, const char *key, const char *json)
{
    if (json)
        buf_print(buf, "%s\"%s\":", buf->bytes[buf->count - 1] == '{' ? "" : ",", key);
    if (json)
        buf_text(buf, json);
}

char *store_request(struct store *store, uint64_t id)
{
    struct db_query *query = store->get_request;
    struct buf *buf = &store->text;
    db_int(query, 1, (int64_t)id);
    if (db_next(query, NULL) != 1)
        return NULL;
    const char *request = db_get_text(query, 0);
    const char *end = strrchr(request, '}');
    buf_reset(buf);
    buf_add(buf, request, end ? (size_t)(end - request) : strlen(request));
    if (end) {
        add_field(buf, "env", db_get_text(query, 1));
        add_field(buf, "script", db_get_text(query, 2));
        buf_text(buf, "}");
    }
    db_reset(query);
    return memory_text(buf->bytes);
}
