/* call.c - a request to berthd: its address, the token, and what the answer means. */
#include "api/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "api/paths.h"
#include "api/transport.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

#define ANSWER_MAX (512u << 20) /* bytes of an answer that is kept */
#define ANSWER_S 120L
#define TOKEN_MAX 512

struct call {
    struct transport *transport;
    char *address;             /* a socket's path, or a URL */
    char token[TOKEN_MAX + 1]; /* "": none                  */
    struct buf answer;
    long answer_s; /* the longest time to wait for an answer */
    bool standard;
};

static bool is_token(const char *text)
{
    return strlen(text) <= TOKEN_MAX && !strpbrk(text, "\r\n");
}

void call_set_token(struct call *call, const char *token)
{
    snprintf(call->token, sizeof call->token, "%s",
             token && is_token(token) ? token : "");
}

static int set_token(struct call *call, struct error *err)
{
    char token[TOKEN_MAX + 2] = "", path[PATHS_MAX];
    const char *given = getenv("BERTH_TOKEN");
    const char *file_name = getenv("BERTH_TOKEN_FILE");
    if (!given && !file_name && paths_state(path, sizeof path - 8, NULL) == 0) {
        size_t count = strlen(path); /* where this user's own daemon puts it */
        snprintf(path + count, sizeof path - count, "/token");
        file_name = path;
    }
    FILE *file = given || !file_name ? NULL : fopen(file_name, "re");
    if (file) {
        if (!fgets(token, sizeof token, file))
            token[0] = '\0';
        fclose(file);
        token[strcspn(token, "\r\n")] = '\0';
        given = token;
    }
    if (!given || !*given)
        return 0; /* berthd answers 401 and says so */
    if (!is_token(given))
        return error_set(err, -EINVAL, "BERTH_TOKEN: is no token");
    call_set_token(call, given);
    return 0;
}

static int set_url(struct call *call, const char *url, struct error *err)
{
    call->address = memory_text(url);
    for (size_t n = strlen(url); n > 0 && call->address[n - 1] == '/'; n--)
        call->address[n - 1] = '\0';
    int r = set_token(call, err);
    return r < 0 ? r : transport_url(&call->transport, call->address, err);
}

static int set_address(struct call *call, const char *address, struct error *err)
{
    struct sockaddr_un name;
    if (strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0)
        return set_url(call, address, err);
    if (strncmp(address, "unix:", 5) == 0)
        address += 5;
    if (!*address || strlen(address) >= sizeof name.sun_path)
        return error_set(err, -EINVAL, "%.150s: a socket's path has 1 to %zu bytes",
                         address, sizeof name.sun_path - 1);
    call->address = memory_text(address);
    call->transport = transport_socket(address);
    return 0;
}

/* The daemon of this user, or the system's where only that one exists. */
static int set_standard(struct call *call, struct error *err)
{
    char path[PATHS_MAX];
    struct stat status;
    call->standard = true;
    int r = paths_socket(path, sizeof path, err);
    if (r < 0)
        return r;
    if (stat(path, &status) < 0 && stat(PATHS_SYSTEM_SOCKET, &status) == 0) {
        call->standard = false;
        return set_address(call, PATHS_SYSTEM_SOCKET, err);
    }
    return set_address(call, path, err);
}

int call_open(struct call **ret_call, const char *address, struct error *err)
{
    struct call *call = memory_checked(calloc(1, sizeof *call));
    buf_init(&call->answer, ANSWER_MAX);
    call->answer_s = ANSWER_S;
    const char *said = address ? address : getenv("BERTH_ADDR");
    int r = said && *said ? set_address(call, said, err) : set_standard(call, err);
    if (r < 0)
        call_close(call);
    else
        *ret_call = call;
    return r;
}

void call_close(struct call *call)
{
    if (!call)
        return;
    if (call->transport)
        call->transport->close(call->transport);
    buf_release(&call->answer);
    free(call->address);
    free(call);
}

const char *call_address(const struct call *call)
{
    return call->address;
}

bool call_is_standard(const struct call *call)
{
    return call->standard;
}

void call_hurry(struct call *call, long seconds)
{
    call->answer_s = seconds;
}

static bool keep_answer(void *context, long status, const char *bytes, size_t count)
{
    struct call *call = context;
    buf_add(&call->answer, bytes, count);
    return !call->answer.full;
}

static int send_request(struct call *call, const struct transport_request *request,
                        long *ret_status, struct error *err)
{
    struct transport_request q = *request;
    q.token = call->token[0] ? call->token : NULL;
    buf_reset(&call->answer);
    int r = call->transport->ask(call->transport, &q, ret_status, err);
    if (r < 0 && call->answer.full)
        return error_set(err, -EIO, "the answer is larger than %u bytes", ANSWER_MAX);
    return r;
}

/* The sentence of a refusal; with the field it is about where that is not in it. */
static int explain_refusal(struct call *call, long status, struct error *err)
{
    static const struct {
        long status;
        int code;
    } codes[] = {
        { 400, -EINVAL }, { 401, -EACCES }, { 403, -EACCES }, { 404, -ESRCH },
        { 405, -EINVAL }, { 409, -EBUSY },  { 413, -E2BIG },  { 422, -EINVAL }
    };
    int code = -EIO;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    struct json *json = NULL;
    if (call->answer.count > 0)
        json_parse(call->answer.bytes, call->answer.count, &json, NULL);
    const char *text = json_as_text(json_get(json, "error"));
    const char *field = json_as_text(json_get(json, "field"));
    if (text && field && strncmp(text, field, strlen(field)) != 0)
        error_set(err, code, "%.60s: %s", field, text);
    else if (text)
        error_set(err, code, "%s", text);
    else
        error_set(err, code, "berthd answered with status %ld", status);
    json_free(json);
    return code;
}

int call_json(struct call *call, const char *method, const char *path,
              const struct json *body, struct json **ret, struct error *err)
{
    char *text = body ? json_text_exact(body) : NULL;
    long status;
    int r = send_request(call,
                         &(struct transport_request){ .method = method,
                                                      .path = path,
                                                      .body = text,
                                                      .answer_s = call->answer_s,
                                                      .take = keep_answer,
                                                      .context = call },
                         &status, err);
    free(text);
    if (r == -EPIPE || r == -ETIMEDOUT)
        r = -EIO;
    if (r < 0)
        return r;
    if (status < 200 || status >= 300)
        return explain_refusal(call, status, err);
    if (!ret)
        return 0;
    struct error inner;
    if (json_parse(call->answer.bytes ? call->answer.bytes : "", call->answer.count,
                   ret, &inner) < 0)
        return error_set(err, -EIO, "what berthd answered is no JSON: %s", inner.text);
    return 0;
}

bool call_answers(struct call *call)
{
    return call_json(call, "GET", "/v1/server", NULL, NULL, NULL) != -ECONNREFUSED;
}

/* A stream that is being read. */
struct call_reader {
    struct call *call;
    const struct call_stream *stream;
};

static bool pass_stream(void *context, long status, const char *bytes, size_t count)
{
    struct call_reader *reader = context;
    if (status >= 400)
        return keep_answer(reader->call, status, bytes, count);
    return reader->stream->take(reader->stream->context, bytes, count);
}

static bool continue_stream(void *context)
{
    struct call_reader *reader = context;
    return reader->stream->idle(reader->stream->context);
}

int call_stream(struct call *call, const char *path, const struct call_stream *stream,
                struct error *err)
{
    struct call_reader reader = { .call = call, .stream = stream };
    long status;
    int r = send_request(
        call,
        &(struct transport_request){ .method = "GET",
                                     .path = path,
                                     .take = pass_stream,
                                     .idle = stream->idle ? continue_stream : NULL,
                                     .context = &reader },
        &status, err);
    if (r == -ECANCELED)
        return 0;
    if (r < 0 && (r != -EPIPE || status == 0))
        return r;
    if (status >= 400)
        return explain_refusal(call, status, err);
    return r == 0 ? 0 : error_set(err, -EIO, "berthd has gone away");
}
