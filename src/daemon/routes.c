/*
 * routes.c - requests to berthd, answered: the table of routes, and events on their way
 * to those who watch.
 */
#include "daemon/routes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/records.h"
#include "daemon/routes_internal.h"
#include "daemon/users.h"
#include "daemon/watch.h"
#include "engine/engine.h"
#include "http/stream.h"
#include "http/tail.h"
#include "http/target.h"
#include "store/store.h"

#define UNCOMMITTED_MAX \
    (64u << 20) /* bytes of events in one pass that the stream can tell */

static void show_events(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    stream_reply(routes->stream, request, reply);
}

static const struct route event_routes[] = {
    { "GET", "/v1/events", "since", show_events },
    { 0 },
};

static const struct route *const tables[] = {
    job_routes,   server_routes, page_routes,     snapshot_routes,
    story_routes, flow_routes,   progress_routes, event_routes,
};

#define TABLES (sizeof tables / sizeof tables[0])

/* ---- finding the row ---- */

enum match { MATCH_NOT, MATCH_BAD_ID, MATCH_YES };

/* "12", or "12_3"; 0: there is no such task. */
static bool read_id(const struct routes *routes, const char *text, size_t count,
                    uint64_t *ret_id)
{
    uint64_t array_id;
    uint32_t index;
    if (target_id(text, count, ret_id))
        return true;
    if (!target_task(text, count, &array_id, &index))
        return false;
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    *ret_id = records_task(store_reader(facts.store), array_id, index);
    return true;
}

static enum match match_path(const struct routes *routes, const char *pattern,
                             const char *path, uint64_t *ret_id)
{
    static const char hole[] = "{id}";
    const char *at = strstr(pattern, hole);
    *ret_id = 0;
    if (!at)
        return strcmp(pattern, path) == 0 ? MATCH_YES : MATCH_NOT;
    size_t before = (size_t)(at - pattern);
    if (strncmp(pattern, path, before) != 0)
        return MATCH_NOT;
    size_t count = strcspn(path + before, "/");
    if (count == 0 || strcmp(path + before + count, at + strlen(hole)) != 0)
        return MATCH_NOT;
    return read_id(routes, path + before, count, ret_id) ? MATCH_YES : MATCH_BAD_ID;
}

/* Is 'word' one of the words in 'words'? */
static bool among(const char *words, const char *word)
{
    size_t count = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += count)
        if ((at == words || at[-1] == ' ') && (at[count] == ' ' || !at[count]))
            return count > 0;
    return false;
}

static bool query_is_known(const struct route *route,
                           const struct http_request *request, struct http_reply *reply)
{
    for (uint32_t i = 0; i < request->target->count; i++) {
        const char *key = request->target->keys[i];
        if (among(route->keys, key) && !strchr(key, ' '))
            continue;
        struct error err;
        error_set(&err, 0, "%.60s: there is no such key here", key);
        http_reply_error(reply, 400, NULL, err.text);
        return false;
    }
    return true;
}

static void refuse_method(const struct routes *routes, const char *path,
                          struct http_reply *reply)
{
    char allowed[64] = "";
    for (size_t i = 0; i < TABLES; i++)
        for (const struct route *route = tables[i]; route->path; route++) {
            uint64_t id;
            size_t used = strlen(allowed);
            if (match_path(routes, route->path, path, &id) == MATCH_YES)
                snprintf(allowed + used, sizeof allowed - used, "%s%s",
                         used ? ", " : "", route->method);
        }
    http_reply_error(reply, 405, NULL, "this cannot be done here");
    http_reply_header(reply, "Allow", allowed);
}

static void refuse_task(const char *path, struct http_reply *reply)
{
    struct error err;
    const char *name = path + strlen("/v1/jobs/");
    int r =
        error_set(&err, -ENOENT, "there is no job %.*s", (int)strcspn(name, "/"), name);
    reply_failure(reply, r, &err);
}

/* The row for a request, or NULL; '*ret_best' says how near one came. */
static const struct route *find_route(const struct routes *routes,
                                      const struct http_request *request,
                                      uint64_t *ret_id, enum match *ret_best)
{
    *ret_best = MATCH_NOT;
    for (size_t i = 0; i < TABLES; i++)
        for (const struct route *route = tables[i]; route->path; route++) {
            enum match match = match_path(routes, route->path, request->path, ret_id);
            *ret_best = match > *ret_best ? match : *ret_best;
            if (match == MATCH_YES && strcmp(route->method, request->method) == 0)
                return route;
        }
    return NULL;
}

void routes_handle(void *context, const struct http_request *request,
                   struct http_reply *reply)
{
    enum match best;
    uint64_t id;
    if (show_page(request, reply))
        return;
    const struct route *route = find_route(context, request, &id, &best);
    if (route && id == 0 && strchr(route->path, '{'))
        refuse_task(request->path, reply);
    else if (route) {
        if (query_is_known(route, request, reply))
            route->answer(context, request, id, reply);
    } else if (best == MATCH_YES)
        refuse_method(context, request->path, reply);
    else if (best == MATCH_BAD_ID)
        http_reply_error(reply, 400, "id", "id: want a job's number");
    else
        http_reply_error(reply, 404, NULL, "there is nothing of that name");
}

/* ---- what routes share ---- */

void reply_failure(struct http_reply *reply, int code, const struct error *err)
{
    static const struct {
        int code, status;
    } statuses[] = {
        { -EINVAL, 400 },   { -ERANGE, 400 }, { -ENOENT, 404 },
        { -EPERM, 403 },    { -EACCES, 403 }, { -ELOOP, 403 },
        { -EALREADY, 409 }, { -EAGAIN, 503 }, { -ENOBUFS, 503 },
    };
    int status = 500;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].code == code)
            status = statuses[i].status;

    /* "gpus: want a number": the word before the colon is the field. */
    char field[64] = "";
    size_t count = strspn(err->text, "abcdefghijklmnopqrstuvwxyz_0123456789[].");
    if (status == 400 && count > 0 && count < sizeof field && err->text[count] == ':')
        snprintf(field, sizeof field, "%.*s", (int)count, err->text);
    http_reply_error(reply, status, *field ? field : NULL, err->text);
    if (status == 503)
        http_reply_header(reply, "Retry-After", "1");
}

static bool refuse_key(const char *key, const char *want, struct http_reply *reply)
{
    struct error err;
    error_set(&err, 0, "%s: want %s", key, want);
    http_reply_error(reply, 400, key, err.text);
    return false;
}

bool read_flag(const struct http_request *request, const char *key, bool *ret_flag,
               struct http_reply *reply)
{
    const char *text = http_query(request, key);
    if (!text)
        return true;
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return refuse_key(key, "true or false", reply);
    *ret_flag = yes;
    return true;
}

bool read_count(const struct http_request *request, const char *key, int64_t min,
                int64_t max, int64_t *ret_count, struct http_reply *reply)
{
    const char *text = http_query(request, key);
    if (!text)
        return true;
    const char *digits = text + (*text == '-');
    char *end;
    errno = 0;
    int64_t count = strtoll(text, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || errno || count < min || count > max) {
        char want[80];
        snprintf(want, sizeof want, "a whole number, %" PRId64 " to %" PRId64, min,
                 max);
        return refuse_key(key, want, reply);
    }
    *ret_count = count;
    return true;
}

bool read_time(const struct http_request *request, const char *key, int64_t *ret_ns,
               struct http_reply *reply)
{
    const char *text = http_query(request, key);
    double seconds;
    if (!text)
        return true;
    if (!units_number(text, &seconds) || seconds < 0 || seconds > 9e9)
        return refuse_key(key, "seconds since 1970", reply);
    *ret_ns = units_ns(seconds);
    return true;
}

/* ---- events on their way to those who watch ---- */

/* Whose job it is; nobody's but root's if that cannot be known any more. */
static uint32_t owner_of(struct routes *routes, uint64_t id)
{
    if (id == 0)
        return STREAM_EVERYONE;
    job_id job = daemon_find(routes->daemon, id);
    if (job != JOB_NONE)
        return daemon_owner(routes->daemon, job);
    uint32_t owner = map_find(&routes->owners, id); /* it has ended just now */
    if (owner != MAP_NONE) {
        map_remove(&routes->owners, id);
        return owner;
    }
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    return records_owner(store_reader(facts.store), id);
}

/* A copy of the seats an event brings: the event's own are gone after the call. */
static uint32_t copy_seats(struct routes *routes, const struct event *event)
{
    uint32_t first = routes->seat_count;
    if (event->kind != EVENT_PLACED && event->kind != EVENT_RESIZING)
        return first;
    routes->uncommitted_seats =
        grow_array(routes->uncommitted_seats, &routes->seat_room,
                   first + event->seat_count, sizeof *routes->uncommitted_seats);
    memcpy(routes->uncommitted_seats + first, event->seats,
           event->seat_count * sizeof *event->seats);
    routes->seat_count += event->seat_count;
    return first;
}

static void on_event(void *context, const struct event_record *record, const char *line,
                     size_t count)
{
    struct routes *routes = context;
    uint32_t owner = owner_of(routes, record->job);
    size_t at = routes->uncommitted_lines.count;
    buf_add(&routes->uncommitted_lines, line, count);
    if (count > STREAM_LINE_MAX || routes->uncommitted_lines.count != at + count)
        return; /* clients miss it; the store has it */
    routes->uncommitted =
        grow_array(routes->uncommitted, &routes->uncommitted_room,
                   routes->uncommitted_count + 1, sizeof *routes->uncommitted);
    routes->uncommitted[routes->uncommitted_count++] = (struct uncommitted_event){
        .record = *record,
        .first_seat = copy_seats(routes, &record->event),
        .owner = owner,
        .at = at,
        .count = count,
    };
}

static void publish_event(struct routes *routes, struct uncommitted_event *event)
{
    struct event_record *record = &event->record;
    if (record->event.kind == EVENT_PLACED || record->event.kind == EVENT_RESIZING)
        record->event.seats = routes->uncommitted_seats + event->first_seat;
    stream_add(routes->stream, record->seq, event->owner,
               routes->uncommitted_lines.bytes + event->at, event->count);
    routes->kinds[record->event.kind]++;
    watch_event(routes->watch, record);
    if (record->job && tails_count(routes->tails) > 0)
        tails_wake(routes->tails, record->job);
}

void routes_flush(struct routes *routes, bool durable)
{
    for (uint32_t i = 0; durable && i < routes->uncommitted_count; i++)
        publish_event(routes, &routes->uncommitted[i]);
    routes->uncommitted_count = 0;
    routes->seat_count = 0;
    if (routes->uncommitted_lines.room > 1u << 20)
        buf_release(&routes->uncommitted_lines); /* do not keep unusually much memory */
    else
        buf_reset(&routes->uncommitted_lines);
}

static int read_older(void *context, uint64_t seq, uint32_t max, stream_put *put,
                      void *sink)
{
    struct routes *routes = context;
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    return records_events(store_reader(facts.store), seq, max, put, sink);
}

static bool may_see(void *context, uint32_t uid, uint32_t owner)
{
    (void)context;
    const struct caller caller = { .uid = uid };
    return caller_may(&caller, owner);
}

/* Will this job write no more? */
static bool has_ended(void *context, uint64_t job)
{
    const struct routes *routes = context;
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    return facts.engine && daemon_find(routes->daemon, job) == JOB_NONE;
}

/* ---- beginning and end ---- */

int routes_new(struct routes **ret_routes, struct daemon *daemon,
               struct uv_loop_s *loop, struct error *err)
{
    struct routes *routes = memory_checked(calloc(1, sizeof *routes));
    routes->daemon = daemon;
    struct daemon_facts facts;
    daemon_look(daemon, &facts);
    int r = token_load(facts.setup->state_dir, routes->token, err);
    if (r < 0) {
        free(routes);
        return r;
    }
    sessions_open(&routes->sessions, facts.setup->state_dir, facts.now_ns / NS_PER_S);
    buf_init(&routes->uncommitted_lines, UNCOMMITTED_MAX);
    struct stream_setup setup = { .loop = loop,
                                  .last_seq = store_seq(facts.store),
                                  .older = read_older,
                                  .may_see = may_see,
                                  .context = routes };
    stream_open(&routes->stream, &setup);
    tails_open(&routes->tails, loop, has_ended, routes);
    watch_open(&routes->watch, daemon, loop);
    store_observe(facts.store, on_event, routes);
    *ret_routes = routes;
    return 0;
}

void routes_free(struct routes *routes)
{
    if (!routes)
        return;
    stream_close(routes->stream);
    tails_close(routes->tails);
    watch_close(routes->watch);
    buf_release(&routes->uncommitted_lines);
    free(routes->uncommitted);
    free(routes->uncommitted_seats);
    map_release(&routes->owners);
    free(routes);
}

const char *routes_token(const struct routes *routes)
{
    return routes->token;
}

bool routes_user_ready(void *context, uint32_t uid)
{
    const struct routes *routes = context;
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    return users_ready(facts.users, uid);
}
