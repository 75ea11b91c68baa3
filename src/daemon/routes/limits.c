/* limits.c - GET and PATCH /v1/limits: what users may have, and setting it. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "daemon/limits.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "daemon/users.h"

static const char *const scopes[] = {
    [LIMIT_DEFAULT] = "default", [LIMIT_GROUP] = "group", [LIMIT_USER] = "user"
};

/* Where a value was set, as members of an object; NULL: it is built in. */
static void write_origin(struct buf *body, const struct limits_row *row, enum limit key)
{
    json_write_text(body, "scope", row ? scopes[row->scope] : "default");
    json_write_text_if(body, "name", row ? row->name : NULL);
    json_write_text(body, "set",
                    !row                       ? "built-in"
                    : isnan(row->live.of[key]) ? "file"
                                               : "live");
}

/* What the caller has of this; -1: that is not counted. */
static int64_t count_used(const struct daemon_view *facts, uint32_t uid, enum limit key)
{
    struct limits_use use = limits_used(facts->limits, uid);
    switch (key) {
    case LIMIT_JOBS:
        return (int64_t)use.jobs + use.coming;
    case LIMIT_WAITING:
        return (int64_t)use.waiting + use.coming;
    case LIMIT_CONNECTIONS:
        return http_used(facts->http, uid).connections;
    case LIMIT_BYTES_IN_FLIGHT:
        return (int64_t)http_used(facts->http, uid).bytes;
    case LIMIT_BYTES_STORED:
        return limits_stored(facts->limits, uid);
    default:
        return -1;
    }
}

/* What applies to the caller. */
static void write_limits(struct buf *body, const struct daemon_view *facts,
                         uint32_t uid)
{
    json_write_open(body, "limits", '{');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        enum limit key = (enum limit)i;
        const struct limits_row *from;
        double limit = limits_find(facts->limits, uid, key, &from);
        int64_t used = count_used(facts, uid, key);
        json_write_open(body, limit_fields[i].name, '{');
        if (isfinite(limit))
            limit_write_value(body, "limit", key, limit);
        if (used >= 0)
            json_write_count(body, "used", used);
        if (!limits_is_exempt(facts->limits, uid))
            write_origin(body, from, key);
        json_write_close(body, '}');
    }
    json_write_close(body, '}');
}

static void write_setting(struct buf *body, const struct limits_row *row,
                          enum limit key, double value)
{
    json_write_open(body, NULL, '{');
    write_origin(body, row, key);
    json_write_text(body, "key", limit_fields[key].name);
    limit_write_value(body, "value", key, value);
    json_write_close(body, '}');
}

/* All that was said, and what is built in where nothing was; for administrators. */
static void write_settings(struct buf *body, const struct limits *limits)
{
    json_write_open(body, "settings", '[');
    for (uint32_t r = 0; r < limits->row_count; r++) {
        const struct limits_row *row = &limits->rows[r];
        for (int i = 0; i < LIMIT_COUNT; i++) {
            enum limit key = (enum limit)i;
            double live = row->live.of[i], file = row->file.of[i];
            if (!isnan(live) || !isnan(file))
                write_setting(body, row, key, isnan(live) ? file : live);
            else if (row->scope == LIMIT_DEFAULT)
                write_setting(body, NULL, key, limits->built_in.of[i]);
        }
    }
    json_write_close(body, ']');
}

static void write_answer(struct routes *routes, const struct caller *caller,
                         struct buf *body)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    struct user user = users_find(facts.users, caller->uid);
    json_write_open(body, NULL, '{');
    json_write_text(body, "user", user.name);
    json_write_flag(body, "exempt", limits_is_exempt(facts.limits, caller->uid));
    write_limits(body, &facts, caller->uid);
    if (caller_check_admin(caller, NULL) == 0)
        write_settings(body, facts.limits);
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void show_limits(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct caller caller = routes_caller(request);
    write_answer(routes, &caller, &reply->body);
}

/* {"reset": true}, or what to set. */
static int change_limits(struct limits *limits, const struct json *json,
                         struct error *err)
{
    const struct json *reset = json_get(json, "reset");
    bool yes = false;
    if (!reset)
        return limits_set(limits, json, err);
    if (!json_as_flag(reset, &yes) || !yes)
        return error_set(err, -EINVAL, "reset: want true");
    return limits_reset(limits, err);
}

static void set_limits(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct caller caller = routes_caller(request);
    struct daemon_view facts;
    struct error err = { "" };
    struct json *json = NULL;
    daemon_view_of(routes->daemon, &facts);
    int r = caller_check_admin(&caller, &err);
    if (r == 0)
        r = scheduler_check_open(facts.scheduler, &err);
    if (r == 0)
        r = json_parse(request->body, request->body_size, &json, &err);
    if (r == 0)
        r = change_limits(facts.limits, json, &err);
    json_free(json);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    scheduler_want_pass(facts.scheduler);
    write_answer(routes, &caller, &reply->body);
    reply->after_commit = true;
}

const struct route limit_routes[] = {
    { "GET", "/v1/limits", SCOPES_READ, "", show_limits },
    { "PATCH", "/v1/limits", SCOPES_USER, "", set_limits },
    { 0 },
};
