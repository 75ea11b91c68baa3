/*
 * routes.c - the HTTP server of berthd: the tables of routes, what handlers share, the
 * dashboard's page, and events on their way to clients.
 *
 *   berth ui ── POST /v1/ui (UNIX socket) ──► a pass, and a port on loopback
 *   browser ─── GET /, its script and style     nothing secret in them: open to all
 *           ─── POST /v1/session, the pass ──► a session, which goes with every request
 *
 * No port is open before the first "berth ui", unless berthd was told to listen.
 */
#include "daemon/routes/routes.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/units.h"
#include "daemon/routes/assets.h"
#include "daemon/limits.h"
#include "daemon/progress.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/tokens.h"
#include "daemon/users.h"
#include "daemon/routes/dashboard.h"
#include "daemon/routes/forecast.h"
#include "engine/engine.h"
#include "host/launcher_client.h"
#include "http/guard.h"
#include "http/stream.h"
#include "http/tail.h"
#include "http/target.h"
#include "store/db.h"
#include "store/store.h"

#define UNCOMMITTED_MAX \
    (64u << 20) /* bytes of events in one pass that the stream can tell */

static void show_events(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    stream_reply(routes->stream, request, reply);
}

/* ---- the dashboard's files ---- */

/* Only what comes from here runs or is loaded, and no page puts it into a frame.  The
 * charts set styles by script, which this allows; style in markup is not. */
static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'";

static const struct asset {
    const char *path, *file, *type;
} assets[] = {
    { "/", "app.html", "text/html; charset=utf-8" },
    { "/app.js", "app.js", "text/javascript; charset=utf-8" },
    { "/app.css", "app.css", "text/css; charset=utf-8" },
    { "/icon.svg", "icon.svg", "image/svg+xml" },
};

static const struct asset *find_asset(const char *path)
{
    for (size_t i = 0; i < sizeof assets / sizeof assets[0]; i++)
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    return NULL;
}

static bool show_page(const struct http_request *request, struct http_reply *reply)
{
    const struct asset *asset = find_asset(request->path);
    if (!asset || strcmp(request->method, "GET") != 0)
        return false;
    size_t count;
    const char *bytes = assets_find(asset->file, &count);
    if (!bytes) {
        http_reply_error(reply, 404, NULL,
                         "this berthd was built without its page; 'berth top' shows "
                         "the same in a terminal");
        return true;
    }
    buf_add(&reply->body, bytes, count);
    reply->type = asset->type;
    reply->policy = page_policy;
    return true;
}

static bool is_public(void *context, const char *method, const char *target)
{
    (void)context;
    if (strcmp(method, "POST") == 0)
        return strcmp(target, "/v1/session") == 0;
    return (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) &&
           find_asset(target);
}

/* ---- sessions ---- */

static int64_t now_s(struct routes *routes)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return facts.now_ns / NS_PER_S;
}

/* Credentials of sessions are their numbers with this bit, which no token's number has. */
#define SESSION_BIT (UINT64_C(1) << 63)

/* For http_setup: does that token or session still hold? */
static bool is_valid(void *context, uint64_t credential)
{
    struct routes *routes = context;
    return credential & SESSION_BIT
               ? sessions_holds(&routes->sessions, credential & ~SESSION_BIT,
                                now_s(routes))
               : token_routes_is_valid(routes, credential);
}

static bool find_session(struct routes *routes, const char *bearer,
                         struct http_identity *ret_identity)
{
    const struct session *session =
        sessions_find(&routes->sessions, bearer, now_s(routes));
    if (!session)
        return false;
    *ret_identity =
        (struct http_identity){ .uid = session->uid,
                                .gid = session->gid,
                                .scope = SCOPE_SESSION,
                                .credential = SESSION_BIT | session->number };
    return true;
}

/* For http_setup: 0.1's token, one of the table, or a session. */
static bool identify(void *context, const char *bearer,
                     struct http_identity *ret_identity)
{
    struct routes *routes = context;
    if (token_equals(bearer, routes->token)) {
        *ret_identity = (struct http_identity){ .uid = geteuid(),
                                                .gid = getegid(),
                                                .scope = SCOPE_ADMIN };
        return true;
    }
    return token_routes_identify(routes, bearer, ret_identity) ||
           find_session(routes, bearer, ret_identity);
}

/* Pages that were open when berthd ended find it at the same port. */
static void reopen_page_port(struct routes *routes)
{
    struct http *http = routes->http;
    const struct sessions *sessions = &routes->sessions;
    char where[32];
    if (http_address(http, /* tls= */ false) || !sessions->port ||
        !sessions_any(sessions))
        return;
    snprintf(where, sizeof where, "127.0.0.1:%u", sessions->port);
    struct error err = { "" };
    if (http_listen(http, where, &err) < 0)
        fprintf(stderr, "berthd: %s; open pages have lost their port\n", err.text);
}

/* The port for pages, which is on loopback: opened now if there is none. */
static int need_port(struct routes *routes, struct http *http, struct error *err)
{
    int r = 0;
    if (!http_address(http, /* tls= */ false))
        r = http_listen(http, "127.0.0.1:0", err);
    if (r == 0)
        sessions_set_port(&routes->sessions, http_address(http, false)->port);
    return r;
}

static void open_page(struct routes *routes, const struct http_request *request,
                      uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct error err = { "" };
    char pass[TOKEN_CHARS + 1];
    size_t count;
    daemon_view_of(routes->daemon, &facts);
    if (!assets_find("app.html", &count)) {
        http_reply_error(reply, 404, NULL,
                         "this berthd was built without its page: it needs Node; "
                         "'npm ci' in web/, then 'make' again");
        return;
    }
    int r = need_port(routes, routes->http, &err);
    if (r == 0)
        r = sessions_make_pass(&routes->sessions, request->uid, request->gid,
                               facts.now_ns / NS_PER_S, pass, &err);
    if (r < 0) {
        routes_fail(reply, r == -EINVAL ? -EIO : r, &err);
        return;
    }
    char url[400];
    const struct guard *address = http_address(routes->http, /* tls= */ false);
    snprintf(url, sizeof url, "http://%s:%u/#token=%s", address->host, address->port,
             pass);
    json_write_open(&reply->body, NULL, '{');
    json_write_text(&reply->body, "url", url);
    json_write_count(&reply->body, "valid_s", PASS_S);
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
    reply->status = 201;
}

static void begin_session(struct routes *routes, const struct http_request *request,
                          uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct json *json = NULL;
    struct error err = { "" };
    int r = json_parse(request->body, request->body_size, &json, &err);
    const char *pass = r == 0 ? json_as_text(json_get(json, "token")) : NULL;
    const struct session *session =
        pass ? sessions_redeem_pass(&routes->sessions, pass, now_s(routes)) : NULL;
    json_free(json);
    if (!session) {
        http_reply_error(reply, 401, NULL,
                         "this address was used already, or is too old; 'berth ui' "
                         "makes a new one");
        return;
    }
    json_write_open(&reply->body, NULL, '{');
    json_write_text(&reply->body, "session", session->secret);
    json_write_time(&reply->body, "until", session->until_s * NS_PER_S);
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
    reply->status = 201;
}

static void end_session(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    static const char scheme[] = "Bearer ";
    const char *bearer = http_header(request, "Authorization");
    if (bearer && strlen(bearer) > strlen(scheme))
        sessions_end(&routes->sessions, bearer + strlen(scheme));
    http_check_credentials(routes->http);
    buf_text(&reply->body, "{}\n");
}

/* ---- finding the row ---- */

static const struct route own_routes[] = {
    { "GET", "/v1/events", SCOPES_READ, "since", show_events },
    { "POST", "/v1/ui", SCOPES_OWNER, "", open_page },
    { "POST", "/v1/session", SCOPES_READ | SCOPE_FLOW | SCOPE_PUBLIC, "",
      begin_session },
    { "DELETE", "/v1/session", SCOPES_USER, "", end_session },
    { 0 },
};

static const struct route *const tables[] = {
    submission_routes,     query_routes,       server_routes,  own_routes,
    job_history_routes,    dashboard_routes,   flow_routes,    progress_routes,
    limit_routes,          bulk_cancel_routes, token_routes,   rate_routes,
    export_routes,         forecast_routes,    explain_routes, ahead_routes,
    export_cluster_routes,
};

#define TABLES (sizeof tables / sizeof tables[0])

enum match { MATCH_NOT, MATCH_BAD_ID, MATCH_YES };

static const char jobs_path[] = "/v1/jobs/";

/* The newest job that is this task of an array; 0: there is none. */
static uint64_t find_task(struct db *db, uint64_t array_id, uint32_t index)
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

/* "12", or of jobs "12_3"; 0: there is no such task. */
static bool read_id(const struct routes *routes, bool of_job, const char *text,
                    size_t count, uint64_t *ret_id)
{
    uint64_t array_id;
    uint32_t index;
    if (target_id(text, count, ret_id))
        return true;
    if (!of_job || !target_task(text, count, &array_id, &index))
        return false;
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    *ret_id = find_task(store_reader(facts.store), array_id, index);
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
    bool of_job = strncmp(pattern, jobs_path, strlen(jobs_path)) == 0;
    return read_id(routes, of_job, path + before, count, ret_id) ? MATCH_YES
                                                                 : MATCH_BAD_ID;
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
    const char *name = path + strlen(jobs_path);
    int r =
        error_set(&err, -ENOENT, "there is no job %.*s", (int)strcspn(name, "/"), name);
    routes_fail(reply, r, &err);
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

/* What the caller has shown. */
static uint32_t scope_of(const struct http_request *request)
{
    return request->local               ? SCOPE_LOCAL
           : request->is_anonymous      ? SCOPE_JOB
           : !request->is_authenticated ? SCOPE_PUBLIC
                                        : request->scope;
}

/* The one place where scopes are enforced; false with a reply. */
static bool is_in_scope(const struct route *route, const struct http_request *request,
                        struct http_reply *reply)
{
    uint32_t scope = scope_of(request);
    if (route->scopes & scope)
        return true;
    struct error err;
    error_set(&err, 0, "%s %s cannot be done with a credential of scope %s",
              route->method, route->path, scopes_name(scope));
    http_reply_error(reply, 403, NULL, err.text);
    return false;
}

/* A route that names no scope would be closed to all, and is a mistake. */
static void check_routes(void)
{
    for (size_t i = 0; i < TABLES; i++)
        for (const struct route *route = tables[i]; route->path; route++)
            assert(route->scopes & SCOPE_LOCAL);
}

static void handle_request(void *context, const struct http_request *request,
                           struct http_reply *reply)
{
    enum match best;
    uint64_t id;
    if (show_page(request, reply))
        return;
    const struct route *route = find_route(context, request, &id, &best);
    if (route && !is_in_scope(route, request, reply))
        return;
    if (route && id == 0 && strchr(route->path, '{'))
        refuse_task(request->path, reply);
    else if (route) {
        if (query_is_known(route, request, reply))
            route->answer(context, request, id, reply);
    } else if (best == MATCH_YES)
        refuse_method(context, request->path, reply);
    else if (best == MATCH_BAD_ID)
        http_reply_error(reply, 400, "id", "id: want a number");
    else
        http_reply_error(reply, 404, NULL, "there is nothing of that name");
}

/* ---- what routes share ---- */

void routes_fail(struct http_reply *reply, int code, const struct error *err)
{
    static const struct {
        int code, status;
    } statuses[] = {
        { -EINVAL, 400 },  { -ERANGE, 400 }, { -ENOENT, 404 },   { -EPERM, 403 },
        { -EACCES, 403 },  { -ELOOP, 403 },  { -EALREADY, 409 }, { -EAGAIN, 503 },
        { -ENOBUFS, 503 }, { -EDQUOT, 429 },
    };
    int status = 500;
    if (code == -EBUSY) { /* too fast: it will be accepted a little later */
        http_reply_retry(reply, 429, err->text);
        return;
    }
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

const struct state *routes_need_engine(struct routes *routes, struct daemon_view *facts,
                                       struct http_reply *reply)
{
    daemon_view_of(routes->daemon, facts);
    if (facts->engine)
        return &facts->engine->state;
    struct error err;
    int r = error_set(&err, -EAGAIN, "the store cannot be written just now");
    routes_fail(reply, r, &err);
    return NULL;
}

static bool refuse_key(const char *key, const char *want, struct http_reply *reply)
{
    struct error err;
    error_set(&err, 0, "%s: want %s", key, want);
    http_reply_error(reply, 400, key, err.text);
    return false;
}

bool routes_read_flag(const struct http_request *request, const char *key,
                      bool *ret_flag, struct http_reply *reply)
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

bool routes_read_count(const struct http_request *request, const char *key, int64_t min,
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

bool routes_read_time(const struct http_request *request, const char *key,
                      int64_t *ret_ns, struct http_reply *reply)
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

/* ---- events on their way to clients ---- */

/* The owner of a job in the store; 0, root, if it is not known. */
static uint32_t read_owner(struct db *db, uint64_t id)
{
    struct db_query *query = db_prepare_once(db, "SELECT uid FROM job WHERE id = ?");
    if (!query)
        return 0;
    db_int(query, 1, (int64_t)id);
    uint32_t owner = db_next(query, NULL) == 1 ? (uint32_t)db_get_int(query, 0) : 0;
    db_finish(query);
    return owner;
}

/* The owner of a job; root if it is not known any more. */
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
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return read_owner(store_reader(facts.store), id);
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
    dashboard_event(routes->dashboard, record);
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
    if (!durable)
        tokens_load(routes->tokens, NULL);
    if (routes->http)
        http_flush(routes->http, durable);
}

/* For stream_setup.older. */
static int read_older(void *context, uint64_t seq, uint32_t max, stream_put *put,
                      void *sink)
{
    struct routes *routes = context;
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    struct db_query *query = db_prepare_once(
        store_reader(facts.store),
        "SELECT seq, text, job, (SELECT uid FROM job WHERE job.id = event.job) "
        "FROM event WHERE seq > ? ORDER BY seq LIMIT ?");
    if (!query)
        return -EIO;
    db_int(query, 1, (int64_t)seq);
    db_int(query, 2, max);
    int count = 0, r;
    while ((r = db_next(query, NULL)) == 1) {
        const char *text = db_get_text(query, 1);
        uint32_t owner = db_is_null(query, 2)   ? STREAM_EVERYONE
                         : db_is_null(query, 3) ? 0
                                                : (uint32_t)db_get_int(query, 3);
        put(sink, (uint64_t)db_get_int(query, 0), owner, text, strlen(text));
        count++;
    }
    db_finish(query);
    return r < 0 ? r : count;
}

static bool may_see(void *context, uint32_t uid, uint32_t owner)
{
    (void)context;
    const struct caller caller = { .uid = uid };
    return caller_may(&caller, owner);
}

/* Has this job written all its output? */
static bool has_ended(void *context, uint64_t job)
{
    const struct routes *routes = context;
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return facts.engine && daemon_find(routes->daemon, job) == JOB_NONE;
}

struct http *routes_http(const struct routes *routes)
{
    return routes ? routes->http : NULL;
}

/* ---- beginning and end ---- */

static bool is_user_ready(void *context, uint32_t uid)
{
    const struct routes *routes = context;
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return users_ready(facts.users, uid);
}

/* A user's group may have a limit of its own: its groups are looked up from now on. */
static struct quota_limit find_quota(void *context, uint32_t uid)
{
    const struct routes *routes = context;
    users_ready(routes->users, uid);
    return limits_connections(routes->limits, uid);
}

static int open_http(struct routes *routes, const struct daemon_setup *setup,
                     struct uv_loop_s *loop, struct error *err)
{
    struct http_setup http = { .loop = loop,
                               .socket = setup->socket,
                               .any_user = setup->system,
                               .listen = setup->listen,
                               .tls_certificate = routes->identity.certificate,
                               .tls_key = routes->identity.key,
                               .handler = handle_request,
                               .allows_anonymous = progress_allows_anonymous,
                               .identify = identify,
                               .is_public = is_public,
                               .is_valid = is_valid,
                               .ready = is_user_ready,
                               .limit_of = find_quota,
                               .context = routes };
    int r = http_open(&routes->http, &http, err);
    if (r == 0)
        reopen_page_port(routes);
    return r;
}

/* The key that berthd proves itself by: the site's, or its own. */
static int load_identity(struct crypto_identity *identity,
                         const struct daemon_setup *setup, struct error *err)
{
    if (identity->key)
        return 0;
    const char *certificate = setup->tls_certificate, *key = setup->tls_key;
    if (!certificate != !key)
        return error_set(err, -EINVAL,
                         "%s: is missing: tls_certificate and tls_key "
                         "go together",
                         key ? "tls_certificate" : "tls_key");
    return certificate ? crypto_identity_read(identity, certificate, key, err)
                       : crypto_identity_load(identity, setup->state_dir, err);
}

int routes_load_identity(struct routes *routes, struct error *err)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return load_identity(&routes->identity, facts.setup, err);
}

/* Everything that callers are known by.  Without a port nobody may ever ask for the key. */
static int load_credentials(struct routes *routes, const struct daemon_view *facts,
                            struct error *err)
{
    int r = token_load(facts->setup->state_dir, routes->token, err);
    const struct daemon_setup *setup = facts->setup;
    if (r == 0 && (setup->listen || setup->tls_certificate || setup->tls_key))
        r = load_identity(&routes->identity, setup, err);
    if (r == 0)
        r = tokens_new(&routes->tokens, facts->store, err);
    if (r == 0)
        sessions_open(&routes->sessions, facts->setup->state_dir,
                      facts->now_ns / NS_PER_S);
    return r;
}

int routes_new(struct routes **ret_routes, struct daemon *daemon,
               struct uv_loop_s *loop, struct error *err)
{
    struct routes *routes = memory_checked(calloc(1, sizeof *routes));
    keyed_hash_init(&routes->commands);
    routes->daemon = daemon;
    struct daemon_view facts;
    check_routes();
    daemon_view_of(daemon, &facts);
    routes->limits = facts.limits;
    routes->users = facts.users;
    int r = load_credentials(routes, &facts, err);
    if (r < 0) {
        crypto_identity_release(&routes->identity);
        free(routes);
        return r;
    }
    buf_init(&routes->uncommitted_lines, UNCOMMITTED_MAX);
    struct stream_setup setup = { .loop = loop,
                                  .last_seq = store_last_seq(facts.store),
                                  .older = read_older,
                                  .may_see = may_see,
                                  .context = routes };
    stream_open(&routes->stream, &setup);
    tails_open(&routes->tails, loop, has_ended, routes);
    if (facts.setup->launcher)
        tails_set_opener(routes->tails,
                         &(struct tail_opener){ .open = launcher_client_open_file,
                                                .self = facts.setup->launcher });
    dashboard_open(&routes->dashboard, daemon, loop);
    store_observe(facts.store, on_event, routes);
    forecast_announce(routes);
    *ret_routes = routes;
    return open_http(routes, facts.setup, loop, err);
}

void routes_free(struct routes *routes)
{
    if (!routes)
        return;
    if (routes->http)
        http_close(routes->http);
    stream_close(routes->stream);
    tails_close(routes->tails);
    dashboard_close(routes->dashboard);
    buf_release(&routes->uncommitted_lines);
    free(routes->uncommitted);
    free(routes->uncommitted_seats);
    map_release(&routes->owners);
    tokens_free(routes->tokens);
    crypto_identity_release(&routes->identity);
    free(routes);
}
