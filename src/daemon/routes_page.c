/*
 * routes_page.c - the dashboard: its files, and how a browser comes in.
 *
 *   berth ui ── POST /v1/ui (UNIX socket) ──► a pass, and a port on loopback
 *   browser ─── GET /, its script and style     nothing secret in them, for everybody
 *           ─── POST /v1/session, the pass ──► a session, which goes with every request
 *
 * No port is open before the first "berth ui", unless berthd was told to listen.
 */
#include "daemon/routes_internal.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/json.h"
#include "base/units.h"
#include "daemon/assets.h"
#include "daemon/routes.h"

/* Only what comes from here runs or is loaded, and nobody puts it into a frame.  The
 * charts set styles by script, which this allows; style in markup is not. */
static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'";

static const struct asset {
    const char *path, *type;
    const char *(*get)(size_t *ret_count);
} assets[] = {
    { "/", "text/html; charset=utf-8", asset_html },
    { "/app.js", "text/javascript; charset=utf-8", asset_script },
    { "/app.css", "text/css; charset=utf-8", asset_style },
    { "/icon.svg", "image/svg+xml", asset_icon },
};

static const struct asset *find_asset(const char *path)
{
    for (size_t i = 0; i < sizeof assets / sizeof assets[0]; i++)
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    return NULL;
}

bool show_page(const struct http_request *request, struct http_reply *reply)
{
    const struct asset *asset = find_asset(request->path);
    if (!asset || strcmp(request->method, "GET") != 0)
        return false;
    size_t count;
    const char *bytes = asset->get(&count);
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

bool routes_is_public(void *context, const char *method, const char *target)
{
    (void)context;
    if (strcmp(method, "POST") == 0)
        return strcmp(target, "/v1/session") == 0;
    return (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) &&
           find_asset(target);
}

/* ---- coming in ---- */

static int64_t now_s(struct routes *routes)
{
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    return facts.now_ns / NS_PER_S;
}

bool routes_find_session(void *context, const char *bearer, uint32_t *ret_uid,
                         uint32_t *ret_gid)
{
    struct routes *routes = context;
    const struct session *session =
        sessions_find(&routes->sessions, bearer, now_s(routes));
    if (!session)
        return false;
    *ret_uid = session->uid;
    *ret_gid = session->gid;
    return true;
}

/* Pages that were open when berthd ended find it where it was. */
void routes_resume(struct routes *routes, struct http *http)
{
    const struct sessions *sessions = &routes->sessions;
    char where[32];
    if (http_port(http) || !sessions->port || !sessions_any(sessions))
        return;
    snprintf(where, sizeof where, "127.0.0.1:%u", sessions->port);
    struct error err = { "" };
    if (http_listen(http, where, &err) < 0)
        fprintf(stderr, "berthd: %s; open pages have lost their port\n", err.text);
}

/* The port for pages: opened now if there is none. */
static int need_port(struct routes *routes, struct http *http, struct error *err)
{
    int r = 0;
    if (!http_port(http))
        r = http_listen(http, "127.0.0.1:0", err);
    if (r == 0)
        sessions_set_port(&routes->sessions, http_port(http));
    return r;
}

/* How a browser on this machine says where we are. */
static const char *host_for_pages(const struct http *http)
{
    const char *host = http_host(http);
    bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0;
    return any ? "127.0.0.1" : host;
}

static void open_page(struct routes *routes, const struct http_request *request,
                      uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_facts facts;
    struct error err = { "" };
    char pass[TOKEN_CHARS + 1];
    size_t count;
    daemon_look(routes->daemon, &facts);
    if (!asset_html(&count)) {
        http_reply_error(reply, 404, NULL,
                         "this berthd was built without its page: it needs Node; "
                         "'npm ci' in web/, then 'make' again");
        return;
    }
    int r = need_port(routes, facts.http, &err);
    if (r == 0)
        r = sessions_make_pass(&routes->sessions, request->uid, request->gid,
                               facts.now_ns / NS_PER_S, pass, &err);
    if (r < 0) {
        reply_failure(reply, r == -EINVAL ? -EIO : r, &err);
        return;
    }
    char url[400];
    snprintf(url, sizeof url, "http://%s:%u/#token=%s", host_for_pages(facts.http),
             http_port(facts.http), pass);
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
    buf_text(&reply->body, "{}\n");
}

const struct route page_routes[] = {
    { "POST", "/v1/ui", "", open_page },
    { "POST", "/v1/session", "", begin_session },
    { "DELETE", "/v1/session", "", end_session },
    { 0 },
};
