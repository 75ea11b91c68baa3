/*
 * export.c - GET /v1/export: jobs that have ended, as a workload needs them: what was asked,
 * what was declared, what it truly took.
 *
 * Jobs come in order of submission, page by page.  A page ends after some milliseconds, so that
 * decisions do not wait for a long history.
 */
#include "daemon/routes/routes_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/units.h"
#include "daemon/measured.h"
#include "daemon/start_conditions.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "model/event_record.h"
#include "store/db.h"
#include "store/policy_rows.h"
#include "store/prune.h"
#include "store/store.h"

#define PAGE_ROWS 1000
#define PAGE_NS (2 * NS_PER_S / 1000) /* after so long no further job is begun */
#define EVENTS_MAX "20000"            /* of one job, the newest */

/* A page, and where it has got to. */
struct export_page {
    const struct daemon_view *facts;
    const struct keyed_hash *commands;
    struct caller caller;
    struct db_query *events;
    struct buf *body;
    struct arena arena; /* emptied after each job */
    int64_t since_ns, after_ns, now_ns;
    int64_t after_id;
    bool with_live; /* jobs that have not ended are written as well */
    uint32_t rows, live, rejected;
};

/* A row of the table of jobs.  Texts are borrowed until the next one. */
struct export_row {
    uint64_t id;
    uint32_t uid, gpus, preemptions;
    const char *user, *name, *class, *state, *types, *entity, *placement, *request;
    int64_t attempt, submit_ns, start_ns, end_ns, waited_ns, served_ns;
    double steps; /* declared by the request or by the job; NAN: not */
};

#define EXPORT_SQL \
    "SELECT id, uid, user, name, class, state, gpus, types, entity, placement ->> " \
    "'$[0].type', attempt, preemptions, submit_ns, start_ns, end_ns, waited_ns, " \
    "served_ns, steps, request FROM job WHERE submit_ns >= ?1 AND (submit_ns > ?1 OR " \
    "id > ?2) " \
    "ORDER BY submit_ns, id LIMIT ?3"

static int64_t time_or_none(struct db_query *query, int column)
{
    return db_is_null(query, column) ? -1 : db_get_int(query, column);
}

static struct export_row read_row(struct db_query *query)
{
    int n = 0;
    struct export_row row = { .id = (uint64_t)db_get_int(query, n++) };
    row.uid = (uint32_t)db_get_int(query, n++);
    row.user = db_get_text(query, n++);
    row.name = db_get_text(query, n++);
    row.class = db_get_text(query, n++);
    row.state = db_get_text(query, n++);
    row.gpus = (uint32_t)db_get_int(query, n++);
    row.types = db_get_text(query, n++);
    row.entity = db_get_text(query, n++);
    row.placement = db_get_text(query, n++);
    row.attempt = time_or_none(query, n++);
    row.preemptions = (uint32_t)db_get_int(query, n++);
    row.submit_ns = db_get_int(query, n++);
    row.start_ns = time_or_none(query, n++);
    row.end_ns = time_or_none(query, n++);
    row.waited_ns = db_get_int(query, n++);
    row.served_ns = db_get_int(query, n++);
    row.steps = db_get_real(query, n++);
    row.request = db_get_text(query, n++);
    return row;
}

/* ---- what every user sees ---- */

static bool is_live(const struct export_row *row)
{
    return row->end_ns < 0;
}

static enum job_end end_of(const struct export_row *row)
{
    if (is_live(row))
        return ENDED_UNKNOWN;
    return strcmp(row->state, "COMPLETED") == 0 ? ENDED_COMPLETED
           : strcmp(row->state, "FAILED") == 0  ? ENDED_FAILED
                                                : ENDED_CANCELLED;
}

static void write_common(struct buf *body, const struct export_row *row)
{
    json_write_count(body, "id", (int64_t)row->id);
    json_write_text(body, "user", row->user);
    json_write_text(body, "class", row->class);
    if (is_live(row))
        json_write_flag(body, "live", true);
    else
        json_write_text(body, "state", job_ends[end_of(row)]);
    json_write_count(body, "gpus", row->gpus);
    json_write_text_if(body, "types", row->types);
    json_write_count(body, "attempts", row->attempt + 1);
    json_write_count(body, "preemptions", row->preemptions);
    json_write_time_ns(body, "submit", row->submit_ns);
    if (row->start_ns >= 0)
        json_write_time_ns(body, "start", row->start_ns);
    if (is_live(row))
        return;
    json_write_time_ns(body, "end", row->end_ns);
    json_write_time_ns(body, "wait_s", row->waited_ns);
}

/* When it ended, or now. */
static int64_t seen_until_ns(const struct export_page *page,
                             const struct export_row *row)
{
    return is_live(row) ? page->now_ns : row->end_ns;
}

/* Its time in seats, as work on a type of speed 1; 0: it never ran. */
static double seated_work(const struct export_page *page, const struct export_row *row)
{
    const struct cluster *cluster = page->facts->engine->state.view.cluster;
    double speed = 1;
    for (uint32_t t = 0; t < cluster->type_count; t++)
        if (row->placement && strcmp(row->placement, cluster->types[t].name) == 0)
            speed = cluster->types[t].speed;
    if (row->start_ns < 0)
        return 0;
    if (row->gpus == 0 || is_live(row))
        return (double)(seen_until_ns(page, row) - row->start_ns) * 1e-9;
    return (double)row->served_ns / row->gpus * 1e-9 * speed;
}

/*
 * A job that was cancelled might have gone on: at the longest, no less than from when it could
 * start until it was cancelled.
 */
static double longest_work(const struct export_row *row)
{
    return fmax((double)(row->end_ns - row->submit_ns) * 1e-9, 1e-3);
}

/* Another user's: what lists of jobs tell of it.  Nothing is said of what it declared. */
static void write_others(const struct export_page *page, const struct export_row *row)
{
    double work_s = seated_work(page, row);
    if (end_of(row) == ENDED_CANCELLED) {
        json_write_time_ns(page->body, "cancel", row->end_ns);
        work_s = fmax(work_s, longest_work(row));
    }
    if (work_s > 0)
        json_write_exact(page->body, is_live(row) ? "made_s" : "work_s", work_s);
    json_write_flag(page->body, "declared", false);
}

/* ---- for the owner ---- */

static bool read_request(struct export_page *page, const struct export_row *row,
                         struct request *request)
{
    struct json *json;
    struct error err;
    if (json_parse(row->request, strlen(row->request), &json, &err) < 0)
        return false;
    int r = request_read_kept(request, &page->arena, json, &err);
    json_free(json);
    return r == 0;
}

static void measure(struct export_page *page, const struct export_row *row,
                    struct measured *measured)
{
    struct db_query *query = page->events;
    db_int(query, 1, (int64_t)row->id);
    while (db_next(query, NULL) == 1) {
        struct event_record record;
        const char *line = db_get_text(query, 0);
        if (event_record_read(line, strlen(line), &page->arena, &record) == 0)
            measured_add(measured, &record, line);
    }
}

static void write_count_if(struct buf *body, const char *key, uint32_t count)
{
    if (count > 0)
        json_write_count(body, key, count);
}

static void write_time_if(struct buf *body, const char *key, int64_t ns)
{
    if (ns > 0)
        json_write_time_ns(body, key, ns);
}

/*
 * Jobs whose end it waits for: "12|15".  Not if it waits for a start or its turn as well, which
 * only 'eligible' tells.
 */
static void write_after(struct buf *body, const struct request *request)
{
    struct buf ids;
    buf_init(&ids, 64);
    for (uint32_t i = 0; i < request->dependency_count; i++) {
        const struct dependency *one = &request->dependencies[i];
        if (one->kind == DEPENDS_AFTER || one->kind == DEPENDS_SINGLETON)
            break;
        buf_print(&ids, "%s%" PRIu64, i > 0 ? "|" : "", one->id);
        if (i + 1 == request->dependency_count && request->array_limit == 0)
            json_write_text(body, "after", ids.bytes);
    }
    buf_release(&ids);
}

/* Jobs of one user with the same command have the same text, which says nothing else. */
static void write_command(struct export_page *page, const struct export_row *row,
                          const struct request *request)
{
    struct buf words;
    char text[24];
    buf_init(&words, 256);
    buf_print(&words, "%" PRIu32, row->uid);
    for (const char *const *word = request->launch.argv; word && *word; word++)
        buf_print(&words, "\n%s", *word);
    uint64_t hash = keyed_hash_bytes(page->commands, words.bytes, words.count);
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    json_write_text(page->body, "command", text);
    buf_release(&words);
}

static void write_asked(struct buf *body, const struct request *request)
{
    const struct job_spec *spec = &request->spec;
    json_write_text_if(body, "kind", spec->kind);
    json_write_text_if(body, "nodelist", spec->nodelist);
    json_write_text_if(body, "exclude", spec->exclude);
    write_count_if(body, "gpus_min", spec->gpus_min);
    write_count_if(body, "gpus_max", spec->gpus_max);
    write_count_if(body, "nodes", spec->nodes);
    if (spec->spread)
        json_write_flag(body, "spread", true);
    if (spec->shares)
        json_write_flag(body, "shared", true);
    if (spec->cpu_milli > 0)
        json_write_number(body, "cpus", spec->cpu_milli / 1000.0);
    if (spec->mem_mib > 0)
        json_write_count(body, "mem_bytes", (int64_t)spec->mem_mib << 20);
    if (spec->weight > 0)
        json_write_exact(body, "weight", spec->weight);
    write_time_if(body, "deadline", spec->deadline_ns);
    write_time_if(body, "ckpt_s", spec->ckpt_ns);
    write_time_if(body, "time_limit_s", request->launch.limit_ns);
}

/*
 * What stopping and starting took, as it was measured, else as it was declared; and what policies
 * knew of that, which is what was declared.  A job that was never stopped and does not say that it
 * saves is taken to end at once, as programs do that get a signal.
 */
static void write_costs(struct buf *body, const struct job_spec *spec,
                        const struct measured *measured)
{
    const struct measured_mean *pause = &measured->pause, *kill = &measured->kill;
    bool stopped = pause->count + kill->count > 0;
    bool keeps = stopped ? pause->count >= kill->count : !spec->loses_work;
    int64_t load_ns = measured_mean_ns(&measured->load);
    int64_t pause_ns = stopped            ? measured_mean_ns(keeps ? pause : kill)
                       : spec->loses_work ? 0
                                          : spec->pause_ns;
    json_write_time_ns(body, "grace_s", spec->grace_ns);
    json_write_time_ns(body, "pause_s", pause_ns);
    json_write_time_ns(body, "load_s", load_ns >= 0 ? load_ns : spec->load_ns);
    json_write_flag(body, "keeps", keeps);
    json_write_flag(body, "saves", !spec->loses_work);
    json_write_count(body, "stops", pause->count + kill->count);
    if (measured->redone_s > 0)
        json_write_exact(body, "redone_s", measured->redone_s);
    json_write_time_ns(body, "declared_pause_s", spec->pause_ns);
    json_write_time_ns(body, "declared_load_s", spec->load_ns);
}

/*
 * The true work; in steps where the job reported some, else in seconds.  One that was cancelled
 * had as much to do as it declared, or no end that is known.
 */
static void write_work(struct buf *body, const struct export_row *row,
                       const struct request *request, const struct measured *measured)
{
    double declared_step_s = request->spec.step_s > 0 ? request->spec.step_s : 1;
    double work_s = measured->work_s, steps = is_live(row) ? 0 : measured->steps;
    double step_s = steps > 0 && work_s > 0 ? work_s / steps : 0;
    if (is_live(row)) {
        json_write_exact(body, "made_s", work_s);
    } else if (end_of(row) == ENDED_CANCELLED) {
        double all_s = row->steps > 0
                           ? row->steps * (step_s > 0 ? step_s : declared_step_s)
                           : longest_work(row);
        work_s = fmax(work_s, all_s);
        steps = step_s > 0 ? work_s / step_s : 0;
    } else if (!(work_s > 0)) {
        work_s = 1e-6; /* it ended as soon as it started, or without a start */
    }
    if (!is_live(row))
        json_write_exact(body, "work_s", work_s);
    if (step_s > 0) {
        json_write_exact(body, "steps", steps);
        json_write_exact(body, "step_s", step_s);
    }
    json_write_flag(body, "declared", row->steps > 0);
    if (row->steps > 0)
        json_write_exact(body, "declared_work",
                         step_s > 0 ? row->steps : row->steps * declared_step_s);
}

static void write_own(struct export_page *page, const struct export_row *row)
{
    const struct cluster *cluster = page->facts->engine->state.view.cluster;
    struct buf *body = page->body;
    struct measured measured;
    struct request request = { .spec.grace_ns = 0 };
    bool known = read_request(page, row, &request);
    measured_init(&measured, cluster, row->gpus,
                  known && conditions_needed(&request, row->submit_ns));
    measure(page, row, &measured);
    if (is_live(row))
        measured_stop(&measured, page->now_ns);
    measured_end(&measured, request.spec.load_ns > 0);
    if (!measured.has_ended && !is_live(row))
        measured.work_s = seated_work(page, row); /* its events are gone */
    json_write_text_if(body, "name", row->name);
    json_write_text_if(body, "entity", row->entity);
    if (known) {
        write_asked(body, &request);
        write_after(body, &request);
        write_command(page, row, &request);
    }
    if (end_of(row) == ENDED_CANCELLED) {
        int64_t at_ns = measured.cancelled_ns;
        json_write_time_ns(body, "cancel", at_ns >= 0 ? at_ns : row->end_ns);
        if (at_ns >= 0)
            json_write_text(body, "cancelled_by",
                            job_cancellers[measured.cancelled_by]);
    }
    if (measured.is_held)
        json_write_time_ns(body, "eligible", seen_until_ns(page, row));
    else
        write_time_if(body, "eligible", measured.eligible_ns);
    write_work(body, row, &request, &measured);
    write_costs(body, &request.spec, &measured);
}

/* ---- the reply ---- */

static void write_job(struct export_page *page, const struct export_row *row)
{
    if (strcmp(row->state, "REJECTED") == 0) {
        page->rejected++;
        return;
    }
    if (is_live(row) && !page->with_live) {
        page->live++;
        return;
    }
    json_write_open(page->body, NULL, '{');
    write_common(page->body, row);
    if (caller_may(&page->caller, row->uid))
        write_own(page, row);
    else
        write_others(page, row);
    json_write_close(page->body, '}');
    arena_reset(&page->arena);
}

/* "1700000000123456789-17": the job after which the page begins, as 'next' has told it. */
static bool read_position(const struct http_request *request, struct export_page *page,
                          struct http_reply *reply)
{
    const char *text = http_query(request, "page");
    int end = 0;
    page->after_ns = page->since_ns;
    page->after_id = -1;
    if (!text)
        return true;
    if (strlen(text) < 40 &&
        sscanf(text, "%" SCNd64 "-%" SCNd64 "%n", &page->after_ns, &page->after_id,
               &end) == 2 &&
        text[end] == '\0' && page->after_ns >= 0 && page->after_id >= 0)
        return true;
    http_reply_error(reply, 400, "page", "page: want what 'next' of a page has told");
    return false;
}

/* Whether there may be more. */
static bool write_jobs(struct export_page *page)
{
    struct db *reader = store_reader(page->facts->store);
    struct db_query *query = db_prepare(reader, EXPORT_SQL);
    int64_t begin_ns = clock_now_ns();
    bool more = false;
    db_int(query, 1, page->after_ns);
    db_int(query, 2, page->after_id);
    db_int(query, 3, PAGE_ROWS);
    while (!more && db_next(query, NULL) == 1) {
        struct export_row row = read_row(query);
        page->after_ns = row.submit_ns;
        page->after_id = (int64_t)row.id;
        write_job(page, &row);
        more = ++page->rows == PAGE_ROWS || clock_now_ns() - begin_ns > PAGE_NS;
    }
    db_finish(query);
    return more;
}

static void write_policy(void *context, int64_t at_ns, const char *policy)
{
    struct buf *body = context;
    json_write_open(body, NULL, '{');
    json_write_time(body, "since", at_ns);
    json_write_text(body, "policy", policy);
    json_write_close(body, '}');
}

static void export_jobs(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct export_page page = { .facts = &facts,
                                .commands = &routes->commands,
                                .caller = routes_caller(request),
                                .body = &reply->body };
    if (!routes_need_engine(routes, &facts, reply) ||
        !routes_read_time(request, "since", &page.since_ns, reply) ||
        !routes_read_flag(request, "live", &page.with_live, reply) ||
        !read_position(request, &page, reply))
        return;
    struct buf *body = &reply->body;
    page.now_ns = clock_read_ns(CLOCK_REALTIME);
    page.events =
        db_prepare(store_reader(facts.store),
                   "SELECT text FROM (SELECT seq, text FROM event WHERE job = ?1 AND "
                   "job IS NOT NULL AND kind <> "
                   "'progress' ORDER BY seq DESC LIMIT " EVENTS_MAX ") ORDER BY seq");
    arena_init(&page.arena, 0);
    json_write_open(body, NULL, '{');
    json_write_open(body, "jobs", '[');
    bool more = write_jobs(&page);
    json_write_close(body, ']');
    json_write_count(body, "live", page.live);
    json_write_count(body, "rejected", page.rejected);
    json_write_open(body, "policies", '[');
    if (!http_query(request, "page"))
        policy_rows_read(facts.store, page.since_ns, write_policy, body);
    json_write_close(body, ']');
    if (prune_history_from(facts.store) >= 0)
        json_write_time(body, "history_from", prune_history_from(facts.store));
    if (more) {
        char next[48];
        snprintf(next, sizeof next, "%" PRId64 "-%" PRId64, page.after_ns,
                 page.after_id);
        json_write_text(body, "next", next);
    }
    buf_text(body, "}\n");
    arena_release(&page.arena);
    db_finish(page.events);
}

const struct route export_routes[] = {
    { "GET", "/v1/export", SCOPES_READ, "since page live", export_jobs },
    { 0 },
};
