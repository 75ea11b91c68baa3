/* transport_url.c - HTTP to a URL, by libcurl, which is loaded when it is first used. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/token_text.h"
#include "api/transport.h"
#include "base/error.h"
#include "base/memory.h"

#define CONNECT_MS 5000L

/* --- the library ------------------------------------------------------------------------ */

/* clang-format off */
#define EACH_FUNCTION(X)                                                                \
    X(easy_cleanup) X(easy_getinfo) X(easy_init) X(easy_reset) X(easy_setopt)           \
    X(easy_strerror) X(global_cleanup) X(global_init) X(multi_add_handle)               \
    X(multi_cleanup) X(multi_info_read) X(multi_init) X(multi_perform) X(multi_poll)    \
    X(multi_remove_handle) X(slist_append) X(slist_free_all)
/* clang-format on */

/* Its functions, by their names without "curl_". */
static struct {
#define POINTER(name) __typeof__(curl_##name) *name;
    EACH_FUNCTION(POINTER)
} curl;

static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static char *why_not; /* why it cannot be loaded; NULL: it is loaded */

static void load_library(void)
{
    void *library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
    /* C has no way to turn an object pointer into one to a function but through memory. */
#define FIND(name) \
    whole = whole && (*(void **)(void *)&curl.name = dlsym(library, "curl_" #name));
    EACH_FUNCTION(FIND)
    if (whole)
        return;
    const char *said = dlerror();
    why_not = memory_text(said ? said : "libcurl");
}

/* --- asking ----------------------------------------------------------------------------- */

struct url_transport {
    struct transport transport;   /* first */
    char *base;                   /* what stands before the path */
    char pin[TOKEN_TEXT_PIN_MAX]; /* of the server's public key; "": none */
    CURL *easy;
    CURLM *multi;
    const struct transport_request *request;
    bool left; /* the caller ended it */
};

static size_t pass_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct url_transport *u = context;
    long status = 0;
    curl.easy_getinfo(u->easy, CURLINFO_RESPONSE_CODE, &status);
    if (u->request->take(u->request->context, status, bytes, size * count))
        return size * count;
    u->left = true;
    return 0;
}

/* Run the transfer to its end: its result. */
static CURLcode run_transfer(struct url_transport *u)
{
    const struct transport_request *q = u->request;
    int running = 1;
    while (running > 0 && !u->left) {
        curl.multi_perform(u->multi, &running);
        if (running > 0)
            curl.multi_poll(u->multi, NULL, 0, TRANSPORT_IDLE_MS, NULL);
        if (q->idle && !q->idle(q->context))
            u->left = true;
    }
    int left;
    CURLcode code = CURLE_OK;
    for (CURLMsg *message; (message = curl.multi_info_read(u->multi, &left));)
        code = message->data.result;
    return code;
}

static struct curl_slist *headers_of(const struct transport_request *q)
{
    char text[600];
    struct curl_slist *headers =
        curl.slist_append(NULL, "Content-Type: application/json");
    headers = curl.slist_append(headers, "Expect:"); /* no 100-continue */
    snprintf(text, sizeof text, "Idempotency-Key: %s", q->key ? q->key : "");
    if (q->key)
        headers = curl.slist_append(headers, text);
    snprintf(text, sizeof text, "Authorization: Bearer %s", q->token ? q->token : "");
    return q->token ? curl.slist_append(headers, text) : headers;
}

static void set_options(struct url_transport *u, const char *url,
                        struct curl_slist *headers)
{
    const struct transport_request *q = u->request;
    curl.easy_reset(u->easy); /* the connection is kept */
    curl.easy_setopt(u->easy, CURLOPT_URL, url);
    curl.easy_setopt(u->easy, CURLOPT_PROXY, ""); /* berthd is never behind one */
    curl.easy_setopt(u->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(u->easy, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(u->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl.easy_setopt(u->easy, CURLOPT_TIMEOUT, q->answer_s);
    curl.easy_setopt(u->easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(u->easy, CURLOPT_CUSTOMREQUEST, q->method);
    curl.easy_setopt(u->easy, CURLOPT_WRITEFUNCTION, pass_bytes);
    curl.easy_setopt(u->easy, CURLOPT_WRITEDATA, u);
    if (u->pin[0]) { /* the key says who it is: no chain and no name has to */
        curl.easy_setopt(u->easy, CURLOPT_PINNEDPUBLICKEY, u->pin);
        curl.easy_setopt(u->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl.easy_setopt(u->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!q->body)
        return;
    curl.easy_setopt(u->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(q->body));
    curl.easy_setopt(u->easy, CURLOPT_POSTFIELDS, q->body);
}

static int result_of(const struct url_transport *u, CURLcode code, struct error *err)
{
    if (u->left)
        return -ECANCELED;
    if (code == CURLE_OK)
        return 0;
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        return error_set(err, -ECONNREFUSED, "no berthd answers at %.200s", u->base);
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
        return error_set(err, -EACCES,
                         "%.100s: the key of its certificate has another fingerprint "
                         "than the token or the address says; nothing was sent",
                         u->base);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return error_set(err, -EACCES,
                         "%.60s: its certificate is not trusted here; use a token that "
                         "has its fingerprint, or write it behind the address: "
                         "https://HOST:PORT#FINGERPRINT",
                         u->base);
    int r = code == CURLE_OPERATION_TIMEDOUT                         ? -ETIMEDOUT
            : code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR ? -EPIPE
                                                                     : -EIO;
    return error_set(err, r, "%.200s: %s", u->base, curl.easy_strerror(code));
}

static int url_ask(struct transport *transport, const struct transport_request *request,
                   long *ret_status, struct error *err)
{
    struct url_transport *u = (struct url_transport *)transport;
    size_t size = strlen(u->base) + strlen(request->path) + 1;
    char *url = memory_checked(malloc(size));
    *ret_status = 0;
    snprintf(url, size, "%s%s", u->base, request->path);
    struct curl_slist *headers = headers_of(request);
    u->request = request;
    u->left = false;
    set_options(u, url, headers);
    curl.multi_add_handle(u->multi, u->easy);
    CURLcode code = run_transfer(u);
    curl.easy_getinfo(u->easy, CURLINFO_RESPONSE_CODE, ret_status);
    curl.multi_remove_handle(u->multi, u->easy);
    curl.slist_free_all(headers);
    free(url);
    return result_of(u, code, err);
}

static void url_close(struct transport *transport)
{
    struct url_transport *u = (struct url_transport *)transport;
    curl.easy_cleanup(u->easy);
    curl.multi_cleanup(u->multi);
    curl.global_cleanup();
    free(u->base);
    free(u);
}

int transport_url(struct transport **ret_transport, const char *base,
                  const char *fingerprint, struct error *err)
{
    pthread_once(&loaded, load_library);
    if (why_not)
        return error_set(
            err, -ELIBACC,
            "a URL needs libcurl (package libcurl3-gnutls), which cannot be "
            "loaded: %.300s",
            why_not);
    struct url_transport *u = memory_checked(calloc(1, sizeof *u));
    u->transport = (struct transport){ .ask = url_ask, .close = url_close };
    curl.global_init(CURL_GLOBAL_DEFAULT);
    u->easy = curl.easy_init();
    u->multi = curl.multi_init();
    u->base = memory_text(base);
    if (fingerprint)
        token_text_pin(fingerprint, u->pin);
    if (!u->easy || !u->multi)
        memory_exhausted();
    *ret_transport = &u->transport;
    return 0;
}
