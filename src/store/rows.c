/* rows.c - live jobs, ledger entries and pairs as rows, and back. */
#include "store/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "base/json_write.h"
#include "metrics/ledger.h"
#include "model/cluster.h"
#include "model/state.h"
#include "store/db.h"

#define SQL_MAX 4096
#define AT(member) offsetof(struct job, member)

static const char *const phases[] = {
    [JOB_FREE] = "free",     [JOB_HELD] = "held",         [JOB_WAITING] = "waiting",
    [JOB_PLACED] = "placed", [JOB_LOADING] = "loading",   [JOB_RUNNING] = "running",
    [JOB_IDLE] = "idle",     [JOB_STOPPING] = "stopping", NULL,
};

/* Columns of 'live' that are members of a job; the others depend on the state around it. */
static const struct field live_fields[] = {
    { "id", FIELD_ID, AT(id) },
    { "phase", FIELD_CHOICE, AT(state), .choices = phases },
    { "class", FIELD_CHOICE, AT(class), .choices = job_classes },
    { "attempt", FIELD_INT, AT(attempt) }, /* UINT32_MAX is -1 there */
    { "leaving", FIELD_FLAG, AT(leaving) },
    { "steps", FIELD_NUMBER, AT(steps) },
    { "steps_total", FIELD_NUMBER, AT(steps_total) },
    { "step_s", FIELD_NUMBER, AT(step_s) },
    { "rate_per_s", FIELD_NUMBER, AT(rate_per_s) },
    { "anchor_ns", FIELD_TIME, AT(anchor_ns) },
    { "loss", FIELD_NUMBER, AT(loss) },
    { "since_ns", FIELD_TIME, AT(since_ns) },
    { "first_start_ns", FIELD_TIME, AT(first_start_ns) },
    { "waited_ns", FIELD_TIME, AT(waited_ns) },
    { "served_ns", FIELD_TIME, AT(served_ns) },
    { "recalled_ns", FIELD_TIME, AT(recalled_ns) },
    { "preemptions", FIELD_COUNT, AT(preemptions) },
    { "failures", FIELD_COUNT, AT(failures) },
    { "pause_ns", FIELD_TIME, AT(pause_ns) },
    { "load_ns", FIELD_TIME, AT(load_ns) },
    { "grace_ns", FIELD_TIME, AT(grace_ns) },
    { "weight", FIELD_NUMBER, AT(weight) },
    { "deadline_ns", FIELD_TIME, AT(deadline_ns) },
    { "level", FIELD_COUNT, AT(level) },
    { "steps_max", FIELD_ID, AT(steps_max) },
    { "spread", FIELD_FLAG, AT(spread_now) },
};
#define LIVE_FIELDS (int)(sizeof live_fields / sizeof *live_fields)

#undef AT
#define AT(member) offsetof(struct ledger_entry, member)

static const struct field entry_fields[] = {
    { "at_ns", FIELD_TIME, AT(at_ns) },
    { "victim", FIELD_ID, AT(victim) },
    { "number", FIELD_COUNT, AT(number) },
    { "gpus", FIELD_COUNT, AT(gpus) },
    { "predicted_cost_ns", FIELD_TIME, AT(predicted_cost_ns) },
    { "predicted_wait_ns", FIELD_TIME, AT(predicted_wait_ns) },
    { "pause_ns", FIELD_TIME, AT(pause_ns) },
    { "load_ns", FIELD_TIME, AT(load_ns) },
    { "redo_ns", FIELD_TIME, AT(redo_ns) },
    { "steps", FIELD_NUMBER, AT(steps) },
    { "rate_per_s", FIELD_NUMBER, AT(rate_per_s) },
    { "shared_by", FIELD_COUNT, AT(shared_by) },
};
#define ENTRY_FIELDS (int)(sizeof entry_fields / sizeof *entry_fields)

#undef AT
#define AT(member) offsetof(struct pair_entry, member)

static const struct field pair_fields[] = {
    { "job", FIELD_ID, AT(jobs[0]) },
    { "beside", FIELD_ID, AT(jobs[1]) },
    { "from_ns", FIELD_TIME, AT(from_ns) },
    { "to_ns", FIELD_TIME, AT(to_ns) },
    { "gpus", FIELD_COUNT, AT(gpus) },
    { "shared_ns", FIELD_TIME, AT(shared_ns) },
    { "alone_s", FIELD_NUMBER, AT(alone_s[0]) },
    { "beside_alone_s", FIELD_NUMBER, AT(alone_s[1]) },
    { "lost_ns", FIELD_TIME, AT(lost_ns) },
    { "since_ns", FIELD_TIME, AT(since_ns) },
    { "steps", FIELD_NUMBER, AT(steps[0]) },
    { "beside_steps", FIELD_NUMBER, AT(steps[1]) },
    { "rate_per_s", FIELD_NUMBER, AT(rates[0]) },
    { "beside_rate_per_s", FIELD_NUMBER, AT(rates[1]) },
};
#define PAIR_FIELDS (int)(sizeof pair_fields / sizeof *pair_fields)
#define PAIR_LAST "1 " /* a column after all of them, for prepare_fields() */

/* --- members as columns ------------------------------------------------------------ */

/* SQL with the names of the fields in it; a write has so many parameters at its end. */
static struct db_query *prepare_fields(struct db *db, const char *before,
                                       const char *prefix, const struct field *fields,
                                       int count, const char *after, int parameters)
{
    struct buf sql;
    buf_init(&sql, SQL_MAX);
    buf_text(&sql, before);
    for (int i = 0; i < count; i++)
        buf_print(&sql, "%s%s, ", prefix, fields[i].name);
    buf_text(&sql, after);
    for (int i = 0; i < parameters; i++)
        buf_text(&sql, i + 1 < parameters ? "?, " : "?)");
    buf_add(&sql, "", 1);
    struct db_query *query = db_prepare(db, sql.bytes);
    buf_release(&sql);
    return query;
}

static void write_fields(struct db_query *query, const struct field *fields, int count,
                         const void *self)
{
    for (int i = 0; i < count; i++) {
        const struct field *field = &fields[i];
        if (field->type == FIELD_NUMBER)
            db_real(query, i + 1,
                    *(const double *)((const char *)self + field->offset));
        else if (field->type == FIELD_CHOICE)
            db_text(query, i + 1, field->choices[field_get_whole(field, self)]);
        else
            db_int(query, i + 1, field_get_whole(field, self));
    }
}

/* A choice that is not known is the first one. */
static void read_fields(struct db_query *query, const struct field *fields, int count,
                        void *self)
{
    for (int i = 0; i < count; i++) {
        const struct field *field = &fields[i];
        if (field->type == FIELD_NUMBER) {
            *(double *)((char *)self + field->offset) = db_get_real(query, i);
        } else if (field->type == FIELD_CHOICE) {
            const char *text = db_get_text(query, i);
            field_set_whole(field, self, 0);
            field_read(field, self, text ? text : "", "", NULL, NULL);
        } else {
            field_set_whole(field, self, db_get_int(query, i));
        }
    }
}

/* --- jobs as users see them ---------------------------------------------------------- */

const char *rows_state(const struct job *job)
{
    switch (job->state) {
    case JOB_HELD:
        return "HELD";
    case JOB_WAITING:
    case JOB_PLACED:
        return "PENDING";
    case JOB_STOPPING:
        return "STOPPING";
    default:
        return "RUNNING";
    }
}

void rows_placement(struct buf *buf, const struct view *view,
                    const struct seat_row *row)
{
    const struct cluster *cluster = view->cluster;
    json_write_open(buf, NULL, '[');
    for (uint32_t i = 0; i < row->count; i++) {
        const struct seat *seat = &view->seats[row->first + i];
        uint32_t type = cluster->nodes[seat->node].type;
        char name[64];
        json_write_open(buf, NULL, '{');
        json_write_text(buf, "node",
                        cluster_node_name(cluster, seat->node, name, sizeof name));
        if (type != TYPE_NONE)
            json_write_text(buf, "type", cluster->types[type].name);
        json_write_bits(buf, "gpus", seat->gpus);
        json_write_close(buf, '}');
    }
    json_write_close(buf, ']');
}

/* --- live jobs, written ------------------------------------------------------------ */

struct db_query *rows_prepare_live(struct db *db)
{
    return prepare_fields(
        db, "INSERT OR REPLACE INTO live (", "", live_fields, LIVE_FIELDS,
        "beside, next_beside, seats, next, promises, served) VALUES (",
        LIVE_FIELDS + 6);
}

static void write_seats(struct buf *buf, const struct state *state,
                        const struct seat_row *row)
{
    buf_reset(buf);
    for (uint32_t i = 0; i < row->count; i++) {
        const struct seat *seat = &state->seats[row->first + i];
        buf_print(buf, "%s%u:%" PRIx64 ":%u:%u", i ? " " : "", seat->node, seat->gpus,
                  seat->cpu_milli, seat->mem_mib);
    }
}

static void write_pending_shares(struct buf *buf, const struct state *state,
                                 const struct job *job)
{
    buf_reset(buf);
    const char *space = "";
    for (uint32_t p = job->pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor) {
        const struct pending_share *pending_share = &state->pending_shares[p];
        buf_print(buf, "%s%" PRIu64 ":%u:%" PRIx64 ":%u:%u", space,
                  state->jobs[pending_share->victim].id, pending_share->part.node,
                  pending_share->part.gpus, pending_share->part.cpu_milli,
                  pending_share->part.mem_mib);
        space = " ";
    }
}

static void write_served(struct buf *buf, const struct state *state, job_id id)
{
    const struct cluster *cluster = state->view.cluster;
    const int64_t *served_ns = &state->served_ns[(size_t)id * cluster->type_count];
    buf_reset(buf);
    for (uint32_t t = 0; t < cluster->type_count; t++)
        if (served_ns[t] > 0)
            buf_print(buf, "%s%s:%" PRId64, buf->count ? " " : "",
                      cluster->types[t].name, served_ns[t]);
}

static void text_or_null(struct db_query *query, int parameter, const struct buf *buf)
{
    if (buf->count)
        db_bytes(query, parameter, buf->bytes, (int64_t)buf->count);
    else
        db_null(query, parameter);
}

static void int_or_null(struct db_query *query, int parameter, int64_t value,
                        bool known)
{
    if (known)
        db_int(query, parameter, value);
    else
        db_null(query, parameter);
}

static void id_or_null(struct db_query *query, int parameter, const struct state *state,
                       job_id job)
{
    bool known = job != JOB_NONE;
    int_or_null(query, parameter, known ? (int64_t)state->jobs[job].id : 0, known);
}

void rows_write_live(struct db_query *query, const struct state *state, job_id id,
                     struct buf *seats, struct buf *next, struct buf *pending_shares,
                     struct buf *served)
{
    const struct job *job = &state->jobs[id];
    write_seats(seats, state, &job->seats);
    write_seats(next, state, &job->next);
    write_pending_shares(pending_shares, state, job);
    write_served(served, state, id);
    bool placed = job->state == JOB_PLACED;
    int n = LIVE_FIELDS;
    write_fields(query, live_fields, LIVE_FIELDS, job);
    id_or_null(query, ++n, state, placed ? JOB_NONE : job->partner);
    id_or_null(query, ++n, state, placed ? job->partner : job->next_partner);
    text_or_null(query, ++n, seats);
    text_or_null(query, ++n, next);
    text_or_null(query, ++n, pending_shares);
    text_or_null(query, ++n, served);
}

/* --- live jobs, read ---------------------------------------------------------------- */

struct db_query *rows_select_live(struct db *db)
{
    return prepare_fields(
        db, "SELECT ", "l.", live_fields, LIVE_FIELDS,
        "beside, next_beside, seats, next, promises, uid, user, name, entity, "
        "held, request, submit_ns, array_id, array_index, served "
        "FROM live l JOIN job USING (id) ORDER BY id",
        0);
}

static uint32_t count_words(const char *text)
{
    uint32_t count = text && *text ? 1 : 0;
    for (const char *c = text; c && *c; c++)
        count += *c == ' ';
    return count;
}

static int read_seats(const char *text, struct arena *arena, struct seat **ret_seats,
                      uint32_t *ret_count)
{
    uint32_t count = count_words(text);
    struct seat *seats = arena_array(arena, struct seat, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        struct seat *seat = &seats[i];
        if (sscanf(text, "%u:%" SCNx64 ":%u:%u", &seat->node, &seat->gpus,
                   &seat->cpu_milli, &seat->mem_mib) != 4)
            return -EBADMSG;
        text = strchr(text, ' ');
        text += text != NULL;
    }
    *ret_seats = seats;
    *ret_count = count;
    return 0;
}

static int read_pending_shares(const char *text, struct arena *arena,
                               struct stored_job *kept)
{
    kept->pending_count = count_words(text);
    kept->pending_shares =
        arena_array(arena, struct kept_pending, kept->pending_count + 1);
    for (uint32_t i = 0; i < kept->pending_count; i++) {
        struct kept_pending *pending_share = &kept->pending_shares[i];
        struct room_part *part = &pending_share->part;
        if (sscanf(text, "%" SCNu64 ":%u:%" SCNx64 ":%u:%u", &pending_share->victim,
                   &part->node, &part->gpus, &part->cpu_milli, &part->mem_mib) != 5)
            return -EBADMSG;
        text = strchr(text, ' ');
        text += text != NULL;
    }
    return 0;
}

static void read_served(const char *text, const struct cluster *cluster,
                        int64_t *served_ns)
{
    while (text && *text) {
        const char *end = strchrnul(text, ' ');
        const char *colon = memrchr(text, ':', (size_t)(end - text));
        for (uint32_t t = 0; colon && t < cluster->type_count; t++)
            if (strlen(cluster->types[t].name) == (size_t)(colon - text) &&
                memcmp(cluster->types[t].name, text, (size_t)(colon - text)) == 0)
                served_ns[t] = strtoll(colon + 1, NULL, 10);
        text = *end ? end + 1 : NULL;
    }
}

static char *copy_text(struct db_query *query, int column, struct arena *arena)
{
    const char *text = db_get_text(query, column);
    return text ? arena_text(arena, text) : NULL;
}

int rows_read_live(struct db_query *query, const struct cluster *cluster,
                   struct arena *arena, struct stored_job *kept, struct error *err)
{
    int r = db_next(query, err);
    if (r <= 0)
        return r;
    *kept = (struct stored_job){ 0 };
    struct job *job = &kept->job;
    int n = LIVE_FIELDS;
    read_fields(query, live_fields, LIVE_FIELDS, job);
    kept->beside = (uint64_t)db_get_int(query, n++);
    kept->next_beside = (uint64_t)db_get_int(query, n++);
    r = read_seats(db_get_text(query, n++), arena, &kept->seats, &kept->seat_count);
    if (r == 0)
        r = read_seats(db_get_text(query, n++), arena, &kept->next, &kept->next_count);
    if (r == 0)
        r = read_pending_shares(db_get_text(query, n++), arena, kept);
    if (r < 0)
        return error_set(err, -EILSEQ, "its seats in the store are unreadable");
    if (job->state == JOB_FREE)
        return error_set(err, -EILSEQ, "its phase in the store is unknown");
    kept->uid = (uint32_t)db_get_int(query, n++);
    kept->user = copy_text(query, n++, arena);
    kept->name = copy_text(query, n++, arena);
    kept->entity = copy_text(query, n++, arena);
    kept->held = db_get_int(query, n++);
    kept->request = copy_text(query, n++, arena);
    job->submit_ns = db_get_int(query, n++);
    kept->array_id = (uint64_t)db_get_int(query, n++);
    kept->array_index = (uint32_t)db_get_int(query, n++);
    read_served(db_get_text(query, n++), cluster, kept->served_ns);
    return 1;
}

struct db_query *rows_select_losses(struct db *db)
{
    return db_prepare(db, "SELECT text ->> 'step', text ->> 'loss' FROM event "
                          "WHERE job = ? AND kind = 'progress' AND "
                          "text ->> 'loss' IS NOT NULL ORDER BY seq DESC LIMIT ?");
}

uint32_t rows_read_losses(struct db_query *query, uint64_t id, double *steps,
                          double *losses, uint32_t max)
{
    uint32_t count = 0;
    db_int(query, 1, (int64_t)id);
    db_int(query, 2, max);
    while (db_next(query, NULL) == 1) {
        steps[count] = db_get_real(query, 0);
        losses[count++] = db_get_real(query, 1);
    }
    return count;
}

/* --- the ledger ----------------------------------------------------------------------- */

struct db_query *rows_prepare_entry(struct db *db)
{
    return prepare_fields(
        db, "INSERT OR REPLACE INTO ledger (", "", entry_fields, ENTRY_FIELDS,
        "newcomer, rule, started_ns, wait_saved_s, open) VALUES (", ENTRY_FIELDS + 5);
}

void rows_write_entry(struct db_query *query, const struct ledger_entry *entry,
                      double wait_saved_s, bool open)
{
    int n = ENTRY_FIELDS;
    write_fields(query, entry_fields, ENTRY_FIELDS, entry);
    int_or_null(query, ++n, (int64_t)entry->beneficiary_id, entry->beneficiary_id > 0);
    db_text(query, ++n, rule_name(entry->rule));
    int_or_null(query, ++n, entry->started_ns, entry->started_ns >= 0);
    db_real(query, ++n, open ? (double)NAN : wait_saved_s);
    db_int(query, ++n, open ? 1 + entry->owes_load : 0);
}

struct db_query *rows_select_open(struct db *db)
{
    return prepare_fields(db, "SELECT ", "", entry_fields, ENTRY_FIELDS,
                          "newcomer, rule, started_ns, open FROM ledger WHERE open "
                          "ORDER BY victim, number",
                          0);
}

static enum rule find_rule(const char *text)
{
    for (uint32_t i = 0; i < RULE_COUNT; i++)
        if (text && strcmp(text, rule_name((enum rule)i)) == 0)
            return (enum rule)i;
    return RULE_NONE;
}

int rows_read_entry(struct db_query *query, struct ledger_entry *entry,
                    struct error *err)
{
    int r = db_next(query, err);
    if (r <= 0)
        return r;
    int n = ENTRY_FIELDS;
    *entry = (struct ledger_entry){
        .beneficiary_id = (uint64_t)db_get_int(query, n),
        .rule = find_rule(db_get_text(query, n + 1)),
        .started_ns = db_is_null(query, n + 2) ? -1 : db_get_int(query, n + 2),
        .owes_load = db_get_int(query, n + 3) > 1,
        .beneficiary = JOB_NONE,
    };
    read_fields(query, entry_fields, ENTRY_FIELDS, entry);
    return 1;
}

/* --- pairs --------------------------------------------------------------------------- */

struct db_query *rows_prepare_pair(struct db *db)
{
    struct buf sql;
    buf_init(&sql, SQL_MAX);
    buf_text(&sql, "INSERT OR REPLACE INTO shared (");
    for (int i = 0; i < PAIR_FIELDS; i++)
        buf_print(&sql, "%s%s", i > 0 ? ", " : "", pair_fields[i].name);
    buf_text(&sql, ") VALUES (");
    for (int i = 0; i < PAIR_FIELDS; i++)
        buf_text(&sql, i > 0 ? ", ?" : "?");
    buf_add(&sql, ")", 2);
    struct db_query *query = db_prepare(db, sql.bytes);
    buf_release(&sql);
    return query;
}

void rows_write_pair(struct db_query *query, const struct pair_entry *entry)
{
    write_fields(query, pair_fields, PAIR_FIELDS, entry);
}

struct db_query *rows_select_open_pairs(struct db *db)
{
    return prepare_fields(db, "SELECT ", "", pair_fields, PAIR_FIELDS,
                          PAIR_LAST "FROM shared WHERE to_ns < 0 ORDER BY job, from_ns",
                          0);
}

struct db_query *rows_select_pairs_of(struct db *db, uint64_t job, int64_t max)
{
    struct db_query *query = prepare_fields(
        db, "SELECT ", "", pair_fields, PAIR_FIELDS,
        PAIR_LAST "FROM shared WHERE job = ?1 OR beside = ?1 ORDER BY from_ns DESC "
                  "LIMIT ?2",
        0);
    db_int(query, 1, (int64_t)job);
    db_int(query, 2, max);
    return query;
}

int rows_read_pair(struct db_query *query, struct pair_entry *entry, struct error *err)
{
    int r = db_next(query, err);
    if (r <= 0)
        return r;
    *entry = (struct pair_entry){ .slots = { JOB_NONE, JOB_NONE } };
    read_fields(query, pair_fields, PAIR_FIELDS, entry);
    return 1;
}

int rows_read_pair_totals(struct db *db, struct pair_totals *totals, struct error *err)
{
    struct db_query *query =
        db_prepare(db, "SELECT count(*), total(shared_ns * 1e-9 * gpus), "
                       "total((alone_s + beside_alone_s - shared_ns * 1e-9) * gpus), "
                       "total(lost_ns * 1e-9) FROM shared");
    *totals = (struct pair_totals){ 0 };
    int r = db_next(query, err);
    if (r == 1) {
        totals->pairs = (uint64_t)db_get_int(query, 0);
        totals->shared_gpu_s = db_get_real(query, 1);
        totals->gained_gpu_s = db_get_real(query, 2);
        totals->lost_gpu_s = db_get_real(query, 3);
    }
    db_finish(query);
    return r < 0 ? r : 0;
}
