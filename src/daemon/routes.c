/* routes.c - stand-in */
#include "daemon/routes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include "api/request.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "daemon/daemon.h"
#include "store/db.h"
#include "store/store.h"
struct routes {
    struct daemon *daemon;
};
int routes_new(struct routes **ret_routes, struct daemon *daemon,
               struct uv_loop_s *loop, struct error *err)
{
    struct routes *r = calloc(1, sizeof *r);
    r->daemon = daemon;
    *ret_routes = r;
    return 0;
}
void routes_free(struct routes *routes)
{
    free(routes);
}
const char *routes_token(const struct routes *routes)
{
    return "x";
}
void routes_flush(struct routes *routes, bool durable)
{
}
void routes_handle(void *context, const struct http_request *req,
                   struct http_reply *reply)
{
    struct routes *routes = context;
    struct caller caller = { req->uid, req->gid };
    struct error err = { "" }, rejected = { "" };
    if (strcmp(req->method, "POST") == 0) {
        struct json *json;
        struct request request;
        if (json_parse(req->body, req->body_size, &json, &err) < 0 ||
            request_read(&request, req->arena, json, &err) < 0) {
            http_reply_error(reply, 400, NULL, err.text);
            return;
        }
        uint64_t id;
        const char *text = req->body;
        int r = daemon_submit(routes->daemon, &caller, &request, &text, 1, &id,
                              &rejected, &err);
        if (r < 0) {
            http_reply_error(reply, 503, NULL, err.text);
            return;
        }
        reply->status = 201;
        reply->after_commit = true;
        buf_print(&reply->body, "{\"id\":%llu,\"rejected\":\"%s\"}\n",
                  (unsigned long long)id, rejected.text);
        return;
    }
    if (strcmp(req->method, "DELETE") == 0 && strstr(req->path, "server")) {
        daemon_stop(routes->daemon, &caller, true, &err); reply->after_commit = true; buf_print(&reply->body, "{}"); return; }
    if (strcmp(req->method, "DELETE") == 0) {
        int r = daemon_cancel(routes->daemon, &caller,
                              strtoull(strrchr(req->path, '/') + 1, NULL, 10), &err);
        if (r < 0) {
            http_reply_error(reply, 409, NULL, err.text);
            return;
        }
        reply->after_commit = true;
        buf_print(&reply->body, "{}\n");
        return;
    }
    uint64_t id = strtoull(strrchr(req->path, '/') + 1, NULL, 10);
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    struct db_query *q = db_prepare(store_reader(facts.store), "SELECT state, exit_code, preemptions, attempt FROM job WHERE id = ?");
    db_int(q, 1, (int64_t)id);
    if (db_next(q, NULL) == 1)
        buf_print(&reply->body, "{\"id\":%llu,\"state\":\"%s\",\"exit_code\":%lld,\"preemptions\":%lld}\n", (unsigned long long)id, db_get_text(q, 0), (long long)db_get_int(q, 1), (long long)db_get_int(q, 2));
    else
    http_reply_error(reply, 404, NULL, "nothing here");
    db_finish(q);
}
