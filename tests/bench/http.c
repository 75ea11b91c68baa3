/*
 * http.c - how many requests a second: a server with a trivial route, and clients in
 * threads that ask one thing at a time over connections they keep.
 *
 *   bench_http [CLIENTS [SECONDS]]
 *
 * The server commits, so to speak, once per turn of the loop, as berthd does.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <uv.h>

#include "base/error.h"
#include "http/http.h"

static const char path[] = "/tmp/berth-bench-http.sock";
static atomic_bool over;
static atomic_ulong answered;
static bool promise;

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    buf_text(&reply->body, "{\"ok\":true}\n");
    reply->after_commit = promise;
}

static void *ask(void *unused)
{
    static const char request[] = "GET /v1/x HTTP/1.1\r\nHost: berth\r\n\r\n";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return NULL;
    while (!over) {
        char room[4096];
        if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0)
            break;
        ssize_t got = recv(fd, room, sizeof room - 1, 0);
        if (got <= 0)
            break;
        room[got] = '\0';
        assert(strstr(room, "200 OK"));
        atomic_fetch_add(&answered, strstr(room, "{\"ok\":true}\n") != NULL);
    }
    close(fd);
    return NULL;
}

static void on_turn(uv_prepare_t *prepare)
{
    http_flush(prepare->data, true);
}

static void on_end(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void measure(int clients, int seconds)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct http *http;
    struct error err;
    struct http_setup setup = { .loop = &loop, .socket = path, .handler = serve };
    if (http_open(&http, &setup, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    uv_prepare_t prepare;
    uv_prepare_init(&loop, &prepare);
    prepare.data = http;
    uv_prepare_start(&prepare, on_turn);
    uv_timer_t end;
    uv_timer_init(&loop, &end);
    uv_timer_start(&end, on_end, (uint64_t)seconds * 1000, 0);

    over = false;
    answered = 0;
    pthread_t threads[64];
    for (int i = 0; i < clients; i++)
        pthread_create(&threads[i], NULL, ask, NULL);
    uint64_t start = uv_hrtime();
    uv_run(&loop, UV_RUN_DEFAULT);
    double elapsed = (double)(uv_hrtime() - start) / 1e9;
    unsigned long count = answered;
    over = true;
    http_close(http);
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_close((uv_handle_t *)&end, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    for (int i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    printf("%-13s %2d clients: %.0f requests/s\n", promise ? "after commit" : "at once",
           clients, (double)count / elapsed);
}

int main(int argc, char **argv)
{
    int clients = argc > 1 ? atoi(argv[1]) : 8;
    int seconds = argc > 2 ? atoi(argv[2]) : 2;
    if (clients < 1 || clients > 64 || seconds < 1)
        return 2;
    measure(1, seconds);
    measure(clients, seconds);
    promise = true;
    measure(1, seconds);
    measure(clients, seconds);
    return 0;
}
