/* rows.c - live jobs and ledger entries as rows, and back. */
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
#include "base/json_write.h"
#include "metrics/ledger.h"
#include "model/cluster.h"
#include "model/state.h"
#include "store/db.h"

static const char *const phases[] = {
    [JOB_FREE] = NULL,       [JOB_HELD] = "held",         [JOB_WAITING] = "waiting",
    [JOB_PLACED] = "placed", [JOB_LOADING] = "loading",   [JOB_RUNNING] = "running",
    [JOB_IDLE] = "idle",     [JOB_STOPPING] = "stopping",
};

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
    return db_prepare(
        db,
        "INSERT OR REPLACE INTO live (id, phase, class, attempt, leaving, steps, "
        "steps_total, step_s, rate_per_s, anchor_ns, loss, since_ns, first_start_ns, "
        "waited_ns, served_ns, recalled_ns, preemptions, failures, pause_ns, "
        "load_ns, grace_ns, weight, deadline_ns, level, steps_max, spread, beside, "
        "next_beside, seats, next, promises, served) VALUES (?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
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

static void write_promises(struct buf *buf, const struct state *state,
                           const struct job *job)
{
    buf_reset(buf);
    const char *space = "";
    for (uint32_t p = job->promised_by; p != UINT32_MAX;
         p = state->promises[p].next_of_successor) {
        const struct promise *promise = &state->promises[p];
        buf_print(buf, "%s%" PRIu64 ":%u:%" PRIx64 ":%u:%u", space,
                  state->jobs[promise->victim].id, promise->part.node,
                  promise->part.gpus, promise->part.cpu_milli, promise->part.mem_mib);
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

static void id_or_null(struct db_query *query, int parameter, const struct state *state,
                       job_id job)
{
    if (job == JOB_NONE)
        db_null(query, parameter);
    else
        db_int(query, parameter, (int64_t)state->jobs[job].id);
}

void rows_write_live(struct db_query *query, const struct state *state, job_id id,
                     struct buf *seats, struct buf *next, struct buf *promises,
                     struct buf *served)
{
    const struct job *job = &state->jobs[id];
    write_seats(seats, state, &job->seats);
    write_seats(next, state, &job->next);
    write_promises(promises, state, job);
    write_served(served, state, id);
    bool placed = job->state == JOB_PLACED;
    int n = 0;
    db_int(query, ++n, (int64_t)job->id);
    db_text(query, ++n, phases[job->state]);
    db_text(query, ++n, job->class == CLASS_TE ? "te" : "be");
    db_int(query, ++n, job->attempt == UINT32_MAX ? -1 : (int64_t)job->attempt);
    db_int(query, ++n, job->leaving);
    db_real(query, ++n, job->steps);
    db_real(query, ++n, job->steps_total);
    db_real(query, ++n, job->step_s);
    db_real(query, ++n, job->rate_per_s);
    db_int(query, ++n, job->anchor_ns);
    db_real(query, ++n, job->loss);
    db_int(query, ++n, job->since_ns);
    db_int(query, ++n, job->first_start_ns);
    db_int(query, ++n, job->waited_ns);
    db_int(query, ++n, job->served_ns);
    db_int(query, ++n, job->recalled_ns);
    db_int(query, ++n, job->preemptions);
    db_int(query, ++n, job->failures);
    db_int(query, ++n, job->pause_ns);
    db_int(query, ++n, job->load_ns);
    db_int(query, ++n, job->grace_ns);
    db_real(query, ++n, job->weight);
    db_int(query, ++n, job->deadline_ns);
    db_int(query, ++n, job->level);
    db_int(query, ++n, (int64_t)job->steps_max);
    db_int(query, ++n, job->spread_now);
    id_or_null(query, ++n, state, placed ? JOB_NONE : job->partner);
    id_or_null(query, ++n, state, placed ? job->partner : job->next_partner);
    text_or_null(query, ++n, seats);
    text_or_null(query, ++n, next);
    text_or_null(query, ++n, promises);
    text_or_null(query, ++n, served);
}

/* --- live jobs, read ---------------------------------------------------------------- */

struct db_query *rows_select_live(struct db *db)
{
    return db_prepare(
        db, "SELECT id, phase, l.class, l.attempt, leaving, l.steps, steps_total, "
            "step_s, "
            "l.rate_per_s, anchor_ns, l.loss, since_ns, first_start_ns, l.waited_ns, "
            "l.served_ns, recalled_ns, l.preemptions, l.failures, pause_ns, load_ns, "
            "grace_ns, weight, deadline_ns, level, steps_max, spread, beside, "
            "next_beside, seats, next, promises, uid, user, name, held, request, "
            "submit_ns, array_id, array_index, served "
            "FROM live l JOIN job USING (id) ORDER BY id");
}

static uint32_t words_in(const char *text)
{
    uint32_t count = text && *text ? 1 : 0;
    for (const char *c = text; c && *c; c++)
        count += *c == ' ';
    return count;
}

static int read_seats(const char *text, struct arena *arena, struct seat **ret_seats,
                      uint32_t *ret_count)
{
    uint32_t count = words_in(text);
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

static int read_promises(const char *text, struct arena *arena, struct kept_job *kept)
{
    kept->promise_count = words_in(text);
    kept->promises = arena_array(arena, struct kept_promise, kept->promise_count + 1);
    for (uint32_t i = 0; i < kept->promise_count; i++) {
        struct kept_promise *promise = &kept->promises[i];
        struct room_part *part = &promise->part;
        if (sscanf(text, "%" SCNu64 ":%u:%" SCNx64 ":%u:%u", &promise->victim,
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

/* JOB_FREE: no phase that a live job has. */
static enum job_state phase_of(const char *text)
{
    uint32_t phase = sizeof phases / sizeof *phases - 1;
    while (phase != JOB_FREE && strcmp(text, phases[phase]) != 0)
        phase--;
    return (enum job_state)phase;
}

static char *text_of(struct db_query *query, int column, struct arena *arena)
{
    const char *text = db_get_text(query, column);
    return text ? arena_text(arena, text) : NULL;
}

int rows_read_live(struct db_query *query, const struct cluster *cluster,
                   struct arena *arena, struct kept_job *kept, struct error *err)
{
    int r = db_next(query, err);
    if (r <= 0)
        return r;
    *kept = (struct kept_job){ 0 };
    struct job *job = &kept->job;
    int n = 0;
    job->id = (uint64_t)db_get_int(query, n++);
    job->state = phase_of(db_get_text(query, n++));
    const char *class = db_get_text(query, n++);
    job->class = strcmp(class, "te") == 0 ? CLASS_TE : CLASS_BE;
    job->attempt = (uint32_t)db_get_int(query, n++);
    job->leaving = db_get_int(query, n++);
    job->steps = db_get_real(query, n++);
    job->steps_total = db_get_real(query, n++);
    job->step_s = db_get_real(query, n++);
    job->rate_per_s = db_get_real(query, n++);
    job->anchor_ns = db_get_int(query, n++);
    job->loss = db_get_real(query, n++);
    job->since_ns = db_get_int(query, n++);
    job->first_start_ns = db_get_int(query, n++);
    job->waited_ns = db_get_int(query, n++);
    job->served_ns = db_get_int(query, n++);
    job->recalled_ns = db_get_int(query, n++);
    job->preemptions = (uint32_t)db_get_int(query, n++);
    job->failures = (uint32_t)db_get_int(query, n++);
    job->pause_ns = db_get_int(query, n++);
    job->load_ns = db_get_int(query, n++);
    job->grace_ns = db_get_int(query, n++);
    job->weight = db_get_real(query, n++);
    job->deadline_ns = db_get_int(query, n++);
    job->level = (uint32_t)db_get_int(query, n++);
    job->steps_max = (uint64_t)db_get_int(query, n++);
    job->spread_now = db_get_int(query, n++);
    kept->beside = (uint64_t)db_get_int(query, n++);
    kept->next_beside = (uint64_t)db_get_int(query, n++);
    r = read_seats(db_get_text(query, n++), arena, &kept->seats, &kept->seat_count);
    if (r == 0)
        r = read_seats(db_get_text(query, n++), arena, &kept->next, &kept->next_count);
    if (r == 0)
        r = read_promises(db_get_text(query, n++), arena, kept);
    if (r < 0)
        return error_set(err, r, "the store: job %" PRIu64 " has unreadable seats",
                         job->id);
    if (job->state == JOB_FREE)
        return error_set(err, -EBADMSG,
                         "the store: job %" PRIu64 " is in no known phase", job->id);
    kept->uid = (uint32_t)db_get_int(query, n++);
    kept->user = text_of(query, n++, arena);
    kept->name = text_of(query, n++, arena);
    kept->held = db_get_int(query, n++);
    kept->request = text_of(query, n++, arena);
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
    return db_prepare(
        db,
        "INSERT OR REPLACE INTO ledger (at_ns, victim, number, newcomer, rule, gpus, "
        "predicted_cost_ns, predicted_wait_ns, pause_ns, load_ns, redo_ns, steps, "
        "rate_per_s, started_ns, shared_by, wait_saved_s, open) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
}

void rows_write_entry(struct db_query *query, const struct ledger_entry *entry,
                      double wait_saved_s, bool open)
{
    int n = 0;
    db_int(query, ++n, entry->at_ns);
    db_int(query, ++n, (int64_t)entry->victim);
    db_int(query, ++n, entry->number);
    if (entry->newcomer)
        db_int(query, ++n, (int64_t)entry->newcomer);
    else
        db_null(query, ++n);
    db_text(query, ++n, rule_name(entry->rule));
    db_int(query, ++n, entry->gpus);
    db_int(query, ++n, entry->predicted_cost_ns);
    db_int(query, ++n, entry->predicted_wait_ns);
    db_int(query, ++n, entry->pause_ns);
    db_int(query, ++n, entry->load_ns);
    db_int(query, ++n, entry->redo_ns);
    db_real(query, ++n, entry->steps);
    db_real(query, ++n, entry->rate_per_s);
    if (entry->started_ns >= 0)
        db_int(query, ++n, entry->started_ns);
    else
        db_null(query, ++n);
    db_int(query, ++n, entry->with);
    db_real(query, ++n, open ? (double)NAN : wait_saved_s);
    db_int(query, ++n, open ? 1 + entry->due : 0);
}

struct db_query *rows_select_open(struct db *db)
{
    return db_prepare(db,
                      "SELECT at_ns, victim, newcomer, rule, gpus, predicted_cost_ns, "
                      "predicted_wait_ns, pause_ns, load_ns, redo_ns, steps, "
                      "rate_per_s, started_ns, shared_by, number, open FROM ledger "
                      "WHERE open ORDER BY victim, number");
}

static enum rule rule_of(const char *text)
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
    *entry = (struct ledger_entry){
        .at_ns = db_get_int(query, 0),
        .victim = (uint64_t)db_get_int(query, 1),
        .newcomer = (uint64_t)db_get_int(query, 2),
        .rule = rule_of(db_get_text(query, 3)),
        .gpus = (uint32_t)db_get_int(query, 4),
        .predicted_cost_ns = db_get_int(query, 5),
        .predicted_wait_ns = db_get_int(query, 6),
        .pause_ns = db_get_int(query, 7),
        .load_ns = db_get_int(query, 8),
        .redo_ns = db_get_int(query, 9),
        .steps = db_get_real(query, 10),
        .rate_per_s = db_get_real(query, 11),
        .started_ns = db_is_null(query, 12) ? -1 : db_get_int(query, 12),
        .with = (uint32_t)db_get_int(query, 13),
        .number = (uint32_t)db_get_int(query, 14),
        .due = db_get_int(query, 15) > 1,
        .for_whom = JOB_NONE,
    };
    return 1;
}
