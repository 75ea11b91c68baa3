/* reply.c - what handlers put into replies besides their bodies. */
#include "http/http.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

void http_reply_header(struct http_reply *reply, const char *name, const char *value)
{
    assert(reply->header_count < HTTP_HEADERS_MAX);
    reply->headers[reply->header_count].name = name;
    snprintf(reply->headers[reply->header_count].value, sizeof reply->headers[0].value,
             "%s", value);
    reply->header_count++;
}

static void set_error(struct http_reply *reply, int status, const struct json *json)
{
    char *text = json_text(json);
    buf_reset(&reply->body);
    buf_text(&reply->body, text);
    buf_text(&reply->body, "\n");
    free(text);
    reply->status = status;
    reply->type = "application/json";
    reply->stream = NULL;
    reply->delayed = NULL;
    reply->after_commit = false;
}

void http_reply_error(struct http_reply *reply, int status, const char *field,
                      const char *sentence)
{
    struct json *json = json_new_object();
    json_put_text(json, "error", sentence);
    if (field)
        json_put_text(json, "field", field);
    set_error(reply, status, json);
    json_free(json);
}

void http_reply_retry(struct http_reply *reply, int status, const char *sentence)
{
    struct json *json = json_new_object();
    json_put_text(json, "error", sentence);
    json_put_count(json, "retry_after_s", 1);
    set_error(reply, status, json);
    json_free(json);
    http_reply_header(reply, "Retry-After", "1");
}
