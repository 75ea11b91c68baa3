/* call.c - HTTP through libcurl, over a UNIX socket or to a URL. */
#include "api/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/place.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define ANSWER_MAX (512u << 20) /* bytes of an answer that is kept */
#define CONNECT_MS 5000L
#define ANSWER_S 120L
#define IDLE_MS 100 /* how often a stream asks whether to go on */

struct call {
    CURL *curl;
    CURLM *multi;
    char *socket; /* path, or NULL: a URL */
    char *base;   /* what stands before the path */
    struct curl_slist *headers;
    struct buf answer;
    long answer_s; /* the longest a daemon may think about a call */
    bool standard;
};

static struct curl_slist *plain_headers(void)
{
    struct curl_slist *headers =
        curl_slist_append(NULL, "Content-Type: application/json");
    return curl_slist_append(headers, "Expect:"); /* no 100-continue */
}

void call_set_token(struct call *call, const char *token)
{
    char text[600];
    curl_slist_free_all(call->headers);
    call->headers = plain_headers();
    if (!token || !*token || strlen(token) > 512 || strpbrk(token, "\r\n"))
        return;
    snprintf(text, sizeof text, "Authorization: Bearer %s", token);
    call->headers = curl_slist_append(call->headers, text);
}

static int set_token(struct call *call, struct error *err)
{
    char text[600], token[513] = "", path[PLACE_MAX];
    const char *given = getenv("BERTH_TOKEN");
    const char *file_name = getenv("BERTH_TOKEN_FILE");
    if (!given && !file_name && place_state(path, sizeof path - 8, NULL) == 0) {
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
        return 0; /* it will answer 401, and say so */
    if (strlen(given) >= sizeof token || strpbrk(given, "\r\n"))
        return error_set(err, -EINVAL, "BERTH_TOKEN: is no token");
    snprintf(text, sizeof text, "Authorization: Bearer %s", given);
    call->headers = curl_slist_append(call->headers, text);
    return 0;
}

static int set_address(struct call *call, const char *address, struct error *err)
{
    struct sockaddr_un name;
    if (strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0) {
        call->base = strdup(address);
        for (size_t n = call->base ? strlen(call->base) : 0;
             n > 0 && call->base[n - 1] == '/'; n--)
            call->base[n - 1] = '\0';
        return call->base ? set_token(call, err)
                          : error_set(err, -ENOMEM, "out of memory");
    }
    if (strncmp(address, "unix:", 5) == 0)
        address += 5;
    if (!*address || strlen(address) >= sizeof name.sun_path)
        return error_set(err, -EINVAL, "%.150s: a socket's path has 1 to %zu bytes",
                         address, sizeof name.sun_path - 1);
    call->socket = strdup(address);
    call->base = strdup("http://localhost");
    return call->socket && call->base ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* This user's own daemon; the system's where there is no own but that one is there. */
static int set_standard(struct call *call, struct error *err)
{
    char path[PLACE_MAX];
    struct stat status;
    call->standard = true;
    int r = place_socket(path, sizeof path, err);
    if (r < 0)
        return r;
    if (stat(path, &status) < 0 && stat(PLACE_SYSTEM_SOCKET, &status) == 0) {
        call->standard = false;
        return set_address(call, PLACE_SYSTEM_SOCKET, err);
    }
    return set_address(call, path, err);
}

int call_open(struct call **ret_call, const char *address, struct error *err)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        return error_set(err, -ENOMEM, "out of memory");
    buf_init(&call->answer, ANSWER_MAX);
    call->answer_s = ANSWER_S;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    call->curl = curl_easy_init();
    call->multi = curl_multi_init();
    call->headers = plain_headers();
    const char *said = address ? address : getenv("BERTH_ADDR");
    int r = !call->curl || !call->multi || !call->headers
                ? error_set(err, -ENOMEM, "out of memory")
            : said && *said ? set_address(call, said, err)
                            : set_standard(call, err);
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
    curl_easy_cleanup(call->curl);
    curl_multi_cleanup(call->multi);
    curl_slist_free_all(call->headers);
    buf_release(&call->answer);
    free(call->socket);
    free(call->base);
    free(call);
    curl_global_cleanup();
}

const char *call_address(const struct call *call)
{
    return call->socket ? call->socket : call->base;
}

bool call_is_standard(const struct call *call)
{
    return call->standard;
}

void call_hurry(struct call *call, long seconds)
{
    call->answer_s = seconds;
}

static int prepare(struct call *call, const char *path, struct error *err)
{
    size_t size = strlen(call->base) + strlen(path) + 1;
    char *url = malloc(size);
    if (!url)
        return error_set(err, -ENOMEM, "out of memory");
    snprintf(url, size, "%s%s", call->base, path);
    CURL *curl = call->curl;
    curl_easy_reset(curl); /* the connection is kept */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    free(url);
    if (call->socket)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->socket);
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* never by way of somebody else */
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    buf_reset(&call->answer);
    return 0;
}

static size_t keep(char *bytes, size_t size, size_t count, void *context)
{
    struct call *call = context;
    buf_add(&call->answer, bytes, size * count);
    return call->answer.full ? 0 : size * count;
}

static int not_there(const struct call *call, CURLcode code, struct error *err)
{
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        return error_set(err, -ECONNREFUSED, "no berthd answers at %.200s",
                         call_address(call));
    if (code == CURLE_WRITE_ERROR)
        return error_set(err, -EIO, "the answer is larger than %u bytes", ANSWER_MAX);
    return error_set(err, -EIO, "%.200s: %s", call_address(call),
                     curl_easy_strerror(code));
}

/* The sentence of a refusal; with the field it is about where that is not in it. */
static int refused(struct call *call, long status, struct error *err)
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
    int r = prepare(call, path, err);
    if (r < 0)
        return r;
    char *text = body ? json_text_exact(body) : NULL;
    CURL *curl = call->curl;
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, call->answer_s);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
    if (text) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
    }
    CURLcode code = curl_easy_perform(curl);
    free(text);
    if (code != CURLE_OK)
        return not_there(call, code, err);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status >= 300)
        return refused(call, status, err);
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

/* A stream on its way. */
struct flow {
    struct call *call;
    const struct call_stream *stream;
    bool left; /* we do not want more */
};

static size_t hand_on(char *bytes, size_t size, size_t count, void *context)
{
    struct flow *flow = context;
    long status = 0;
    curl_easy_getinfo(flow->call->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 400)
        return keep(bytes, size, count, flow->call);
    if (flow->stream->take(flow->stream->context, bytes, size * count))
        return size * count;
    flow->left = true;
    return 0;
}

/* Move bytes until it is over; the result of the transfer. */
static CURLcode pump(struct flow *flow)
{
    struct call *call = flow->call;
    int running = 1;
    while (running > 0 && !flow->left) {
        curl_multi_perform(call->multi, &running);
        if (running > 0)
            curl_multi_poll(call->multi, NULL, 0, IDLE_MS, NULL);
        if (flow->stream->idle && !flow->stream->idle(flow->stream->context))
            flow->left = true;
    }
    int left;
    CURLcode code = CURLE_OK;
    for (CURLMsg *message; (message = curl_multi_info_read(call->multi, &left));)
        code = message->data.result;
    return code;
}

int call_stream(struct call *call, const char *path, const struct call_stream *stream,
                struct error *err)
{
    int r = prepare(call, path, err);
    if (r < 0)
        return r;
    struct flow flow = { .call = call, .stream = stream };
    curl_easy_setopt(call->curl, CURLOPT_WRITEFUNCTION, hand_on);
    curl_easy_setopt(call->curl, CURLOPT_WRITEDATA, &flow);
    curl_multi_add_handle(call->multi, call->curl);
    CURLcode code = pump(&flow);
    long status = 0;
    curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(call->multi, call->curl);
    if (flow.left)
        return 0;
    if (code != CURLE_OK && code != CURLE_PARTIAL_FILE && code != CURLE_RECV_ERROR)
        return not_there(call, code, err);
    if (code != CURLE_OK && status == 0)
        return not_there(call, code, err);
    if (status >= 400)
        return refused(call, status, err);
    return code == CURLE_OK ? 0 : error_set(err, -EIO, "berthd has gone away");
}
