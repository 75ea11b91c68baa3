/* chronicle.c - who has held which accelerators lately. */
#include "daemon/chronicle.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "base/json.h"
#include "base/units.h"
#include "store/db.h"

void chronicle_init(struct chronicle *chronicle)
{
    *chronicle = (struct chronicle){ 0 };
    chronicle->rows = calloc(CHRONICLE_ROWS, sizeof *chronicle->rows);
    assert(chronicle->rows);
}

void chronicle_release(struct chronicle *chronicle)
{
    free(chronicle->rows);
    map_release(&chronicle->now);
    map_release(&chronicle->soon);
    map_release(&chronicle->leaving);
}

/* ---- rows ---- */

static struct tenure *row_at(const struct chronicle *chronicle, uint32_t number)
{
    return &chronicle->rows[number % CHRONICLE_ROWS];
}

static uint32_t first_kept(const struct chronicle *chronicle)
{
    return chronicle->count > CHRONICLE_ROWS ? chronicle->count - CHRONICLE_ROWS : 0;
}

/* The row of that number if it is this job's and not yet written over. */
static struct tenure *kept(const struct chronicle *chronicle, uint32_t number,
                           uint64_t job)
{
    if (number == MAP_NONE || number < first_kept(chronicle))
        return NULL;
    struct tenure *row = row_at(chronicle, number);
    return row->job == job ? row : NULL;
}

/* Numbers have 32 bits; long before they are used up, the past is forgotten instead. */
static void make_room(struct chronicle *chronicle)
{
    if (chronicle->count < UINT32_MAX - 1)
        return;
    chronicle_release(chronicle);
    chronicle_init(chronicle);
}

static uint64_t gpu_bits(const struct json *list)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < json_count(list); i++) {
        int64_t gpu;
        if (json_as_count(json_item(list, i), &gpu) && gpu >= 0 && gpu < 64)
            bits |= UINT64_C(1) << gpu;
    }
    return bits;
}

/* ---- what happened ---- */

struct news {
    const struct json *json;
    uint64_t job;
    int64_t at_ns;
    bool te;
};

/* One chain of rows, its last seat first. */
static void promise(struct chronicle *chronicle, const struct news *news)
{
    const struct json *seats = json_get(news->json, "seats");
    int64_t attempt = 0;
    uint32_t next = MAP_NONE;
    json_as_count(json_get(news->json, "attempt"), &attempt);
    for (size_t i = 0; i < json_count(seats); i++) {
        const struct json *seat = json_item(seats, i);
        int64_t node = 0;
        json_as_count(json_get(seat, "node"), &node);
        make_room(chronicle);
        *row_at(chronicle, chronicle->count) =
            (struct tenure){ .job = news->job,
                             .start_ns = -1,
                             .end_ns = -1,
                             .gpus = gpu_bits(json_get(seat, "gpus")),
                             .node = (uint32_t)node,
                             .attempt = (uint32_t)attempt,
                             .next = next,
                             .te = news->te };
        next = chronicle->count++;
    }
    if (next != MAP_NONE)
        map_put(&chronicle->soon, news->job, next);
}

static void leave(struct chronicle *chronicle, const struct news *news,
                  enum tenure_end end)
{
    struct tenure *row;
    uint32_t at = map_find(&chronicle->now, news->job);
    for (; (row = kept(chronicle, at, news->job)); at = row->next) {
        row->end_ns = news->at_ns;
        row->end = end;
    }
    map_remove(&chronicle->now, news->job);
}

static void begin(struct chronicle *chronicle, const struct news *news)
{
    struct tenure *row;
    uint32_t first = map_find(&chronicle->soon, news->job);
    leave(chronicle, news, TENURE_RESIZED);
    if (first == MAP_NONE)
        return;
    for (uint32_t at = first; (row = kept(chronicle, at, news->job)); at = row->next)
        row->start_ns = news->at_ns;
    map_remove(&chronicle->soon, news->job);
    map_put(&chronicle->now, news->job, first);
}

/* Nothing comes of what it was promised: such rows are not shown any more. */
static void give_up(struct chronicle *chronicle, const struct news *news)
{
    struct tenure *row;
    uint32_t at = map_find(&chronicle->soon, news->job);
    for (; (row = kept(chronicle, at, news->job)); at = row->next)
        row->end_ns = news->at_ns;
    map_remove(&chronicle->soon, news->job);
}

static void stop(struct chronicle *chronicle, const struct news *news)
{
    bool wanted = map_find(&chronicle->leaving, news->job) != MAP_NONE;
    leave(chronicle, news, wanted ? TENURE_CANCELLED : TENURE_PREEMPTED);
    map_remove(&chronicle->leaving, news->job);
}

static void finish(struct chronicle *chronicle, const struct news *news)
{
    leave(chronicle, news, TENURE_FINISHED);
    map_remove(&chronicle->leaving, news->job);
}

static void fail(struct chronicle *chronicle, const struct news *news)
{
    leave(chronicle, news, TENURE_FAILED);
    map_remove(&chronicle->leaving, news->job);
}

static void lose(struct chronicle *chronicle, const struct news *news)
{
    leave(chronicle, news, TENURE_LOST);
    give_up(chronicle, news);
    map_remove(&chronicle->leaving, news->job);
}

static void cancel(struct chronicle *chronicle, const struct news *news)
{
    give_up(chronicle, news);
    if (map_find(&chronicle->now, news->job) != MAP_NONE)
        map_put(&chronicle->leaving, news->job, 1);
}

static const struct deed {
    const char *kind;
    void (*note)(struct chronicle *chronicle, const struct news *news);
} deeds[] = {
    { "placed", promise }, { "resizing", promise }, { "started", begin },
    { "resized", begin },  { "stopped", stop },     { "finished", finish },
    { "failed", fail },    { "lost", lose },        { "cancelled", cancel },
    { "dropped", lose },
};

/* What is to be noted of a line, by its kind; without reading all of it. */
static const struct deed *deed_of(const char *line)
{
    static const char key[] = "\"kind\":\"";
    const char *at = strstr(line, key);
    if (!at)
        return NULL;
    at += strlen(key);
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        size_t length = strlen(deeds[i].kind);
        if (strncmp(at, deeds[i].kind, length) == 0 && at[length] == '"')
            return &deeds[i];
    }
    return NULL;
}

void chronicle_take(struct chronicle *chronicle, const char *line, size_t count,
                    bool te)
{
    const struct deed *deed = deed_of(line);
    struct json *json = NULL;
    int64_t job = 0;
    double at_s = NAN;
    if (!deed || json_parse(line, count, &json, NULL) < 0)
        return;
    if (json_as_count(json_get(json, "job"), &job) && job > 0 &&
        json_as_number(json_get(json, "at"), &at_s) && at_s >= 0 && at_s < 9e9) {
        struct news news = {
            .json = json, .job = (uint64_t)job, .at_ns = units_ns(at_s), .te = te
        };
        deed->note(chronicle, &news);
    }
    json_free(json);
}

void chronicle_recall(struct chronicle *chronicle, struct db *db)
{
    struct db_query *query = db_prepare_once(
        db, "SELECT text, (SELECT class FROM job WHERE job.id = event.job) FROM event "
            "WHERE seq > (SELECT max(seq) FROM event) - ? AND kind != 'progress' "
            "ORDER BY seq");
    if (!query)
        return;
    db_int(query, 1, CHRONICLE_EVENTS);
    while (db_next(query, NULL) == 1) {
        const char *text = db_get_text(query, 0), *class = db_get_text(query, 1);
        chronicle_take(chronicle, text, strlen(text),
                       class && strcmp(class, "te") == 0);
    }
    db_finish(query);
}

/* ---- telling ---- */

static const char *end_name(enum tenure_end end)
{
    static const char *const names[] = {
        [TENURE_FINISHED] = "finished",   [TENURE_PREEMPTED] = "preempted",
        [TENURE_FAILED] = "failed",       [TENURE_LOST] = "lost",
        [TENURE_CANCELLED] = "cancelled", [TENURE_RESIZED] = "resized",
    };
    return names[end];
}

static bool is_shown(const struct tenure *row, int64_t since_ns)
{
    if (row->start_ns < 0)
        return row->end_ns < 0; /* promised, and still to come */
    return row->end_ns < 0 || row->end_ns >= since_ns;
}

static void write_row(struct buf *buf, const struct tenure *row)
{
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "job", (int64_t)row->job);
    json_write_count(buf, "attempt", row->attempt);
    json_write_text(buf, "class", row->te ? "te" : "be");
    json_write_count(buf, "node", row->node);
    json_write_open(buf, "gpus", '[');
    for (uint64_t gpus = row->gpus; gpus; gpus &= gpus - 1)
        json_write_count(buf, NULL, __builtin_ctzll(gpus));
    json_write_close(buf, ']');
    if (row->start_ns >= 0)
        json_write_time(buf, "start", row->start_ns);
    if (row->end_ns >= 0)
        json_write_time(buf, "end", row->end_ns);
    if (row->end != TENURE_GOES_ON)
        json_write_text(buf, "how", end_name(row->end));
    json_write_close(buf, '}');
}

void chronicle_write(const struct chronicle *chronicle, struct buf *buf,
                     int64_t since_ns, uint32_t max)
{
    uint32_t at = chronicle->count, shown = 0;
    for (; at > first_kept(chronicle) && shown < max; at--)
        shown += is_shown(row_at(chronicle, at - 1), since_ns);
    for (; at < chronicle->count; at++)
        if (is_shown(row_at(chronicle, at), since_ns))
            write_row(buf, row_at(chronicle, at));
}
