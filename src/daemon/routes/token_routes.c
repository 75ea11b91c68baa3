/*
 * token_routes.c - tokens over HTTP: made, listed, revoked; and requests that come with one.
 *
 * A user makes tokens for itself that read or submit.  Those of berth-flowd and of
 * administrators act as berthd's own user, and only administrators make them, as they may make
 * any for others.  No token makes another, but one of scope admin.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/token_text.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/units.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "daemon/tokens.h"
#include "daemon/users.h"

#define LIFE_MAX_S (100.0 * 365 * 86400)

static int64_t now_ns(struct routes *routes)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return facts.now_ns;
}

/* ---- requests with a token ---- */

bool token_routes_identify(struct routes *routes, const char *bearer,
                           struct http_identity *ret_identity)
{
    struct token_text text;
    struct daemon_view facts;
    if (!token_text_parse(&text, bearer))
        return false;
    daemon_view_of(routes->daemon, &facts);
    const struct token *token = tokens_check(routes->tokens, &text, facts.now_ns);
    if (!token)
        return false;
    *ret_identity =
        (struct http_identity){ .uid = token->row.uid,
                                .gid = users_find(facts.users, token->row.uid).gid,
                                .scope = token->scope,
                                .credential = token->row.id };
    if (facts.engine && tokens_note_use(routes->tokens, text.id, facts.now_ns))
        scheduler_want_pass(facts.scheduler);
    return true;
}

bool token_routes_is_valid(void *context, uint64_t id)
{
    struct routes *routes = context;
    return tokens_is_valid(routes->tokens, id, now_ns(routes));
}

/* ---- making one ---- */

struct token_order {
    uint32_t scope, uid;
    int64_t expires_ns; /* 0: never */
};

/* A number of the body within bounds; left as it is where it is absent. */
static int read_number(const struct json *json, const char *key, double min, double max,
                       double *ret_number, struct error *err)
{
    const struct json *value = json_get(json, key);
    double number;
    if (!value)
        return 0;
    if (!json_as_number(value, &number) || !(number >= min) || number > max)
        return error_set(err, -EINVAL, "%s: want a number, %.0f to %.0f", key, min,
                         max);
    *ret_number = number;
    return 0;
}

static int read_order(const struct json *json, const struct caller *caller,
                      int64_t at_ns, struct token_order *ret, struct error *err)
{
    static const char *const known[] = { "scope", "uid", "expires_s" };
    const char *scope = json_as_text(json_get(json, "scope"));
    double uid = caller->uid, life_s = 0;
    const char *key;
    const struct json *value;
    if (!json_is_object(json))
        return error_set(err, -EINVAL, "want an object");
    for (void *at = NULL; (at = json_member(json, at, &key, &value));) {
        size_t i = 0;
        while (i < 3 && strcmp(known[i], key) != 0)
            i++;
        if (i == 3)
            return error_set(err, -EINVAL, "%.60s: there is no such field", key);
    }
    if (!scope || !scopes_find(scope))
        return error_set(err, -EINVAL, "scope: want flow, read, submit or admin");
    int r = read_number(json, "uid", 0, UINT32_MAX - 1, &uid, err);
    if (r == 0)
        r = read_number(json, "expires_s", 1, LIFE_MAX_S, &life_s, err);
    *ret = (struct token_order){ .scope = scopes_find(scope), .uid = (uint32_t)uid };
    if (r == 0 && life_s > 0)
        ret->expires_ns = at_ns + units_ns(life_s);
    return r;
}

/* May the caller have this made?  Tokens of agents and administrators act as berthd's user. */
static int check_order(const struct caller *caller, struct token_order *order,
                       bool names_user, struct error *err)
{
    bool is_admin = caller_check_admin(caller, NULL) == 0;
    bool is_own = order->scope == SCOPE_FLOW || order->scope == SCOPE_ADMIN;
    if (is_own && !is_admin)
        return error_set(err, -EPERM,
                         "only an administrator may make a token of scope %s; read and "
                         "submit are yours to make",
                         scopes_name(order->scope));
    if (is_own && names_user && order->uid != geteuid())
        return error_set(err, -EINVAL,
                         "uid: a token of scope %s acts as berthd's own user",
                         scopes_name(order->scope));
    if (!is_admin && order->uid != caller->uid)
        return error_set(err, -EPERM,
                         "only an administrator may make a token for another user");
    if (is_own)
        order->uid = geteuid();
    return 0;
}

static void write_token_reply(const struct token_text *text,
                              const struct token_order *order, struct buf *body)
{
    char whole[TOKEN_TEXT_MAX];
    token_text_print(text, whole);
    json_write_open(body, NULL, '{');
    json_write_count(body, "id", text->id);
    json_write_text(body, "token", whole);
    json_write_text(body, "scope", scopes_name(order->scope));
    json_write_count(body, "uid", order->uid);
    if (order->expires_ns)
        json_write_time(body, "expires", order->expires_ns);
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void create_token(struct routes *routes, const struct http_request *request,
                         uint64_t id, struct http_reply *reply)
{
    struct caller caller = routes_caller(request);
    struct token_order order = { 0 };
    struct token_text text;
    struct json *json = NULL;
    struct error err = { "" };
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    int r = scheduler_check_open(facts.scheduler, &err);
    if (r == 0)
        r = json_parse(request->body, request->body_size, &json, &err);
    if (r == 0)
        r = read_order(json, &caller, facts.now_ns, &order, &err);
    if (r == 0)
        r = check_order(&caller, &order, json_get(json, "uid") != NULL, &err);
    if (r == 0)
        r = routes_load_identity(routes, &err);
    if (r == 0)
        r = tokens_create(routes->tokens, order.uid, order.scope, order.expires_ns,
                          facts.now_ns, &text, &err);
    json_free(json);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    memcpy(text.fingerprint, routes->identity.fingerprint, sizeof text.fingerprint);
    write_token_reply(&text, &order, &reply->body);
    explicit_bzero(&text, sizeof text);
    reply->status = 201;
    reply->after_commit = true;
    scheduler_want_pass(facts.scheduler);
}

/* ---- listing and revoking ---- */

static void write_token(const struct token *token, const struct daemon_view *facts,
                        struct buf *body)
{
    const struct token_row *row = &token->row;
    bool has_expired = row->expires_ns && facts->now_ns >= row->expires_ns;
    users_ready(facts->users, row->uid); /* looked up for the next time */
    json_write_open(body, NULL, '{');
    json_write_count(body, "id", row->id);
    json_write_text(body, "scope", row->scope);
    json_write_count(body, "uid", row->uid);
    json_write_text(body, "user", users_find(facts->users, row->uid).name);
    json_write_text(body, "state",
                    row->revoked_ns ? "revoked"
                    : has_expired   ? "expired"
                                    : "valid");
    json_write_time(body, "created", row->created_ns);
    if (row->expires_ns)
        json_write_time(body, "expires", row->expires_ns);
    if (row->used_ns)
        json_write_time(body, "used", row->used_ns);
    if (row->revoked_ns)
        json_write_time(body, "revoked", row->revoked_ns);
    json_write_close(body, '}');
}

static void list_tokens(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    struct caller caller = routes_caller(request);
    struct daemon_view facts;
    uint32_t count;
    const struct token *list = tokens_list(routes->tokens, &count);
    struct error err = { "" };
    int r = routes_load_identity(routes, &err);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    daemon_view_of(routes->daemon, &facts);
    json_write_open(&reply->body, NULL, '{');
    json_write_text(&reply->body, "fingerprint", routes->identity.fingerprint);
    json_write_open(&reply->body, "tokens", '[');
    for (uint32_t i = 0; i < count; i++)
        if (caller_may(&caller, list[i].row.uid))
            write_token(&list[i], &facts, &reply->body);
    json_write_close(&reply->body, ']');
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
}

static void revoke_token(struct routes *routes, const struct http_request *request,
                         uint64_t id, struct http_reply *reply)
{
    struct caller caller = routes_caller(request);
    struct error err = { "" };
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    const struct token *token = tokens_find(routes->tokens, id);
    int r = scheduler_check_open(facts.scheduler, &err);
    if (r == 0 && (!token || !caller_may(&caller, token->row.uid)))
        r = error_set(&err, -ENOENT, "you have no token %" PRIu64, id);
    if (r == 0)
        r = tokens_revoke(routes->tokens, id, facts.now_ns, &err);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    http_check_credentials(routes->http);
    buf_text(&reply->body, "{}\n");
    reply->after_commit = true;
    scheduler_want_pass(facts.scheduler);
}

const struct route token_routes[] = {
    { "GET", "/v1/tokens", SCOPES_OWNER, "", list_tokens },
    { "POST", "/v1/tokens", SCOPES_OWNER, "", create_token },
    { "DELETE", "/v1/tokens/{id}", SCOPES_OWNER, "", revoke_token },
    { 0 },
};
