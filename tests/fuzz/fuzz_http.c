/* Any bytes as what a client sends: each complete request is within its limits, or refused. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <uv.h>

#include "base/error.h"
#include "http/http.h"

#define TURNS_MAX 64 /* of the loop, until the server has closed the connection */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uv_loop_t loop;
static struct http *http;
static struct sockaddr_un address = { .sun_family = AF_UNIX };

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    (void)context;
    assert(request->path[0] == '/' && !strstr(request->path, "/../"));
    assert(request->body[request->body_size] == '\0');
    assert(request->local && request->uid == getuid());
    const char *header = http_header(request, "Content-Type");
    const char *value = http_query(request, "a");
    reply->status = 200;
    buf_print(&reply->body, "%zu %zu", header ? strlen(header) : 0,
              value ? strlen(value) : 0);
}

static void close_server(void)
{
    http_close(http);
    uv_run(&loop, UV_RUN_DEFAULT);
    unlink(address.sun_path);
}

static void open_server(void)
{
    struct error err = { "" };
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/berth-fuzz-http-%d.sock",
             (int)getpid());
    assert(uv_loop_init(&loop) == 0);
    struct http_setup setup = { .loop = &loop,
                                .socket = address.sun_path,
                                .handler = serve };
    assert(http_open(&http, &setup, &err) == 0);
    atexit(close_server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char reply[4096];
    if (!http)
        open_server();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    send(fd, data, size, MSG_NOSIGNAL); /* what does not fit at once is cut off */
    shutdown(fd, SHUT_WR);
    ssize_t got = -1;
    for (int turn = 0; got != 0 && turn < TURNS_MAX; turn++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        http_flush(http, true);
        got = recv(fd, reply, sizeof reply, 0);
        if (got < 0 && errno != EAGAIN)
            break;
    }
    close(fd);
    uv_run(&loop, UV_RUN_NOWAIT);
    return 0;
}
