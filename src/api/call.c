/* call.c - a request to berthd: its address, the token, and what the answer means. */
#include "api/call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "api/paths.h"
#include "api/patience.h"
#include "api/token_text.h"
#include "api/transport.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/units.h"

#define ANSWER_MAX (512u << 20) /* bytes of an answer that is kept */
#define ANSWER_S 120L
#define TOKEN_MAX 512
#define KEY_BYTES 16 /* of a random one */
#define KEY_MAX 128
#define REPEAT_MAX 150 /* times, each after REPEAT_AFTER_NS */
#define REPEAT_AFTER_NS 200000000

/* --- patience ---------------------------------------------------------------------------- */

#define FIRST_S 0.02
#define LONGEST_S 2.0
#define SLICE_NS INT64_C(100000000) /* between two calls of 'wait' */

void patience_begin(struct patience *patience)
{
    patience->since_ns = 0;
    patience->delay_s = 0;
}

/* Between half of the delay and one and a half times as much. */
static int64_t choose_delay_ns(double delay_s)
{
    static struct rng rng;
    static bool is_seeded;
    if (!is_seeded)
        rng_init(&rng, (uint64_t)clock_now_ns() ^ ((uint64_t)getpid() << 40), "delay");
    is_seeded = true;
    return units_ns(delay_s * rng_between(&rng, 0.5, 1.5));
}

static bool sleep_until(const struct patience *patience, int64_t until_ns,
                        const char *sentence)
{
    for (int64_t left_ns; (left_ns = until_ns - clock_now_ns()) > 0;) {
        if (patience->wait && !patience->wait(patience->context, sentence))
            return false;
        int64_t slice_ns = left_ns < SLICE_NS ? left_ns : SLICE_NS;
        nanosleep(&(struct timespec){ .tv_nsec = slice_ns }, NULL);
    }
    return true;
}

bool patience_wait(struct patience *patience, const char *sentence)
{
    int64_t now_ns = clock_now_ns();
    if (patience->since_ns == 0)
        patience->since_ns = now_ns;
    if ((double)(now_ns - patience->since_ns) / NS_PER_S >= patience->seconds)
        return false;
    patience->delay_s = patience->delay_s == 0 ? FIRST_S : 2 * patience->delay_s;
    if (patience->delay_s > LONGEST_S)
        patience->delay_s = LONGEST_S;
    return sleep_until(patience, now_ns + choose_delay_ns(patience->delay_s), sentence);
}

struct call {
    struct transport *transport;
    char *address;             /* a socket's path, or a URL */
    char token[TOKEN_MAX + 1]; /* "": none                  */
    struct buf answer;
    long answer_s; /* the longest time to wait for an answer */
    bool standard, systems;
    struct patience patience;
    bool is_busy; /* the last request was refused for want of room */
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

/* Our own daemon's token is for our own daemon: it does not go to another machine. */
static int set_token(struct call *call, struct error *err)
{
    char token[TOKEN_MAX + 2] = "", path[PATHS_MAX];
    const char *given = getenv("BERTH_TOKEN");
    const char *file_name = getenv("BERTH_TOKEN_FILE");
    bool is_far = strncmp(call->address, "https://", 8) == 0;
    if (!given && !file_name && !is_far &&
        paths_state(path, sizeof path - 8, NULL) == 0) {
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

/* Is the host of an http:// URL this machine? */
static bool is_loopback(const char *url)
{
    const char *host = url + strlen("http://");
    size_t count = strcspn(host, ":/");
    char name[64];
    struct in_addr address;
    if (strchr(url, '@')) /* what stands before it would not be the host */
        return false;
    if (strncmp(host, "[::1]", 5) == 0)
        return host[5] == ':' || host[5] == '\0';
    if (count >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)count, host);
    return strcasecmp(name, "localhost") == 0 ||
           (inet_pton(AF_INET, name, &address) == 1 &&
            ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

/* A secret never goes to another machine in the clear. */
static int check_scheme(const char *url, struct error *err)
{
    if (strncmp(url, "https://", 8) == 0 || is_loopback(url))
        return 0;
    return error_set(err, -EINVAL,
                     "%.150s: http:// is for this machine only; use https:// for "
                     "another",
                     url);
}

/* Take "#FINGERPRINT" off the end of a URL; "" if there is none. */
static int take_fingerprint(char *url, char ret_fingerprint[TOKEN_TEXT_PART + 1],
                            struct error *err)
{
    char *mark = strchr(url, '#');
    ret_fingerprint[0] = '\0';
    if (!mark)
        return 0;
    if (!token_text_is_part(mark + 1))
        return error_set(err, -EINVAL,
                         "%.60s: want the fingerprint of berthd's key behind the #, "
                         "%d letters, digits, - and _",
                         url, TOKEN_TEXT_PART);
    memcpy(ret_fingerprint, mark + 1, TOKEN_TEXT_PART + 1);
    *mark = '\0';
    return 0;
}

static int set_url(struct call *call, const char *url, struct error *err)
{
    char fingerprint[TOKEN_TEXT_PART + 1];
    struct token_text token;
    call->address = memory_text(url);
    int r = take_fingerprint(call->address, fingerprint, err);
    for (size_t n = strlen(call->address); n > 0 && call->address[n - 1] == '/'; n--)
        call->address[n - 1] = '\0';
    if (r == 0)
        r = check_scheme(call->address, err);
    if (r == 0)
        r = set_token(call, err);
    if (r < 0)
        return r;
    if (!fingerprint[0] && token_text_parse(&token, call->token))
        memcpy(fingerprint, token.fingerprint, sizeof fingerprint);
    return transport_url(&call->transport, call->address,
                         fingerprint[0] ? fingerprint : NULL, err);
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

/*
 * The daemon of this user, or the system's where only that one exists, even if it is away:
 * another one, started meanwhile, would give out the same GPUs and hide the system's from then on.
 */
static int set_standard(struct call *call, struct error *err)
{
    char path[PATHS_MAX];
    struct stat status;
    int r = paths_socket(path, sizeof path, err);
    if (r < 0)
        return r;
    call->systems = stat(path, &status) < 0 && stat(PATHS_SYSTEM_RUN, &status) == 0;
    call->standard = !call->systems;
    return set_address(call, call->systems ? PATHS_SYSTEM_SOCKET : path, err);
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

bool call_is_systems(const struct call *call)
{
    return call->systems;
}

struct patience *call_patience(struct call *call)
{
    return &call->patience;
}

void call_rest(struct call *call)
{
    if (call->transport->rest)
        call->transport->rest(call->transport);
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
    call->is_busy = r == -EAGAIN;
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
    call->is_busy = json_get(json, "retry_after_s");
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

/* What came back, read: its JSON, or the refusal as an error. */
static int read_answer(struct call *call, long status, struct json **ret,
                       struct error *err)
{
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

static int ask_once(struct call *call, const char *method, const char *path,
                    const char *text, struct json **ret, struct error *err)
{
    long status;
    int r = send_request(call,
                         &(struct transport_request){ .method = method,
                                                      .path = path,
                                                      .body = text,
                                                      .answer_s = call->answer_s,
                                                      .take = keep_answer,
                                                      .context = call },
                         &status, err);
    if (r == -EPIPE || r == -ETIMEDOUT || r == -EAGAIN)
        r = -EIO;
    return r < 0 ? r : read_answer(call, status, ret, err);
}

/* --- submissions ------------------------------------------------------------------------ */

/* 32 random digits. */
static int make_key(char *key, size_t size, struct error *err)
{
    unsigned char bytes[KEY_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set(err, -EIO, "no random number for the submission's key: %s",
                         strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, size - 2 * i, "%02x", bytes[i]);
    return 0;
}

static int check_key(const char *key, struct error *err)
{
    size_t count = strlen(key);
    for (const char *c = key; *c; c++)
        if (*c <= ' ' || *c > '~')
            count = 0;
    return count > 0 && count <= KEY_MAX
               ? 0
               : error_set(err, -EINVAL,
                           "--idempotency-key: want 1 to %d visible ASCII characters",
                           KEY_MAX);
}

/* Send it until there is an answer; after a lost one also while no berthd answers. */
static int repeat_request(struct call *call, const struct transport_request *request,
                          long *ret_status, struct error *err)
{
    int r = send_request(call, request, ret_status, err);
    bool lost = r == -EPIPE;
    for (int i = 0; i < REPEAT_MAX && (r == -EPIPE || (lost && r == -ECONNREFUSED));
         i++) {
        nanosleep(&(struct timespec){ .tv_nsec = REPEAT_AFTER_NS }, NULL);
        r = send_request(call, request, ret_status, err);
    }
    if (lost && r < 0)
        return error_set(err, -EIO,
                         "the reply was lost, and berthd does not answer any more; to "
                         "submit it once, repeat with --idempotency-key %.40s",
                         request->key);
    return r == -ETIMEDOUT ? -EIO : r;
}

int call_submit(struct call *call, const struct json *body, const char *key,
                struct json **ret, struct error *err)
{
    char own[2 * KEY_BYTES + 1];
    long status;
    int r = key ? check_key(key, err) : make_key(own, sizeof own, err);
    if (r < 0)
        return r;
    char *text = json_text_exact(body);
    const struct transport_request request = { .method = "POST",
                                               .path = "/v1/jobs",
                                               .body = text,
                                               .key = key ? key : own,
                                               .answer_s = call->answer_s,
                                               .take = keep_answer,
                                               .context = call };
    struct error inner = { "" };
    patience_begin(&call->patience);
    do {
        r = repeat_request(call, &request, &status, &inner);
        if (r == 0)
            r = read_answer(call, status, ret, &inner);
    } while (r < 0 && call->is_busy && patience_wait(&call->patience, inner.text));
    free(text);
    if (r < 0 && err)
        *err = inner;
    return r;
}

int call_json(struct call *call, const char *method, const char *path,
              const struct json *body, struct json **ret, struct error *err)
{
    char *text = body ? json_text_exact(body) : NULL;
    struct error inner = { "" };
    int r;
    patience_begin(&call->patience);
    do
        r = ask_once(call, method, path, text, ret, &inner);
    while (r < 0 && call->is_busy && patience_wait(&call->patience, inner.text));
    free(text);
    if (r < 0 && err)
        *err = inner;
    return r;
}

/* --- streams ---------------------------------------------------------------------------- */

bool call_answers(struct call *call)
{
    return ask_once(call, "GET", "/v1/server", NULL, NULL, NULL) != -ECONNREFUSED;
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

static int stream_once(struct call *call, const char *path,
                       const struct call_stream *stream, struct error *err)
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

int call_stream(struct call *call, const char *path, const struct call_stream *stream,
                struct error *err)
{
    struct error inner = { "" };
    int r;
    patience_begin(&call->patience);
    do
        r = stream_once(call, path, stream, &inner);
    while (r < 0 && call->is_busy && patience_wait(&call->patience, inner.text));
    if (r < 0 && err)
        *err = inner;
    return r;
}
