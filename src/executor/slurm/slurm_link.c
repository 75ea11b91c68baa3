/* slurm_link.c - berth-slurm as a process beside us. */
#include "executor/slurm/slurm_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

#define LINE_BYTES_MAX (1u << 20)
#define UNSAID_MAX (64u << 20) /* bytes it has not read: then it hangs */
#define AGAIN_MIN_MS 200
#define AGAIN_MAX_MS 10000

/* One run of the program; outlives the link until the loop has let go of it. */
struct peer {
    struct slurm_link *link; /* NULL: closed meanwhile */
    uv_process_t process;
    uv_pipe_t in, out;
    uint32_t open; /* handles */
    char bytes[65536];
};

struct slurm_link {
    struct slurm_link_setup setup;
    struct peer *peer; /* NULL: it is to be started again */
    uv_timer_t again;
    uint64_t wait_ms;
    struct buf line;
    bool skip; /* the rest of a line that is too long */
    bool closing;
};

/* --- a run ------------------------------------------------------------------------- */

static void handle_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    if (--peer->open == 0)
        free(peer);
}

/* The process itself is let go of when it has ended: that is when its input has. */
static void close_peer(struct peer *peer)
{
    peer->link = NULL;
    uv_close((uv_handle_t *)&peer->in, handle_closed);
    uv_close((uv_handle_t *)&peer->out, handle_closed);
}

static void start_bridge(struct slurm_link *link);

static void on_again(uv_timer_t *timer)
{
    start_bridge(timer->data);
}

static void lose_peer(struct slurm_link *link)
{
    if (!link || !link->peer)
        return;
    close_peer(link->peer);
    link->peer = NULL;
    buf_reset(&link->line);
    link->skip = false;
    link->setup.broken(link->setup.context);
    uv_timer_start(&link->again, on_again, link->wait_ms, 0);
    link->wait_ms = link->wait_ms * 2 < AGAIN_MAX_MS ? link->wait_ms * 2 : AGAIN_MAX_MS;
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
    struct peer *peer = process->data;
    if (peer->link)
        fprintf(stderr, "berthd: berth-slurm has ended (%s %d)\n",
                number ? "signal" : "status", number ? number : (int)status);
    lose_peer(peer->link);
    uv_close((uv_handle_t *)process, handle_closed);
}

static void on_room(uv_handle_t *handle, size_t wish, uv_buf_t *buf)
{
    struct peer *peer = handle->data;
    *buf = uv_buf_init(peer->bytes, sizeof peer->bytes);
}

static void take_line(struct slurm_link *link)
{
    struct json *word = NULL;
    struct error err;
    if (link->skip || link->line.count == 0)
        return;
    if (json_parse(link->line.bytes, link->line.count, &word, &err) < 0) {
        fprintf(stderr, "berthd: berth-slurm said something unreadable: %s\n",
                err.text);
        return;
    }
    link->wait_ms = AGAIN_MIN_MS;
    link->setup.line(link->setup.context, word);
    json_free(word);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct peer *peer = stream->data;
    if (count < 0) {
        lose_peer(peer->link);
        return;
    }
    const char *at = buf->base;
    const char *end = at + count;
    while (at < end && peer->link && peer->link->peer == peer) {
        struct slurm_link *link = peer->link;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        buf_add(&link->line, at, length);
        link->skip = link->skip || link->line.full;
        at += length + (stop ? 1 : 0);
        if (!stop)
            break;
        take_line(link);
        if (peer->link) { /* not closed meanwhile */
            buf_reset(&link->line);
            link->skip = false;
        }
    }
}

static void init_pipe(struct slurm_link *link, struct peer *peer, uv_pipe_t *pipe)
{
    uv_pipe_init(link->setup.loop, pipe, 0);
    pipe->data = peer;
    peer->open++;
}

static void start_bridge(struct slurm_link *link)
{
    struct peer *peer = memory_checked(calloc(1, sizeof *peer));
    char *words[32] = { (char *)(uintptr_t)link->setup.program };
    for (int i = 0; i < 30 && link->setup.words[i]; i++)
        words[i + 1] = (char *)(uintptr_t)link->setup.words[i];
    init_pipe(link, peer, &peer->in);
    init_pipe(link, peer, &peer->out);
    uv_stdio_container_t pipes[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
          .data.stream = (uv_stream_t *)&peer->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&peer->out },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
    };
    uv_process_options_t options = { .file = link->setup.program,
                                     .args = words,
                                     .exit_cb = on_exit_of,
                                     .stdio = pipes,
                                     .stdio_count = 3 };
    link->peer = peer;
    peer->link = link;
    peer->process.data = peer;
    peer->open++;
    int r = uv_spawn(link->setup.loop, &peer->process, &options);
    if (r < 0) {
        fprintf(stderr, "berthd: %s: %s\n", link->setup.program, uv_strerror(r));
        uv_close((uv_handle_t *)&peer->process, handle_closed);
        lose_peer(link);
        return;
    }
    uv_read_start((uv_stream_t *)&peer->out, on_room, on_read);
}

/* --- saying ------------------------------------------------------------------------- */

struct saying {
    uv_write_t write;
    uv_buf_t buf;
};

static void free_written(uv_write_t *write, int status)
{
    struct saying *saying = write->data;
    free(saying->buf.base);
    free(saying);
}

void slurm_link_say(struct slurm_link *link, const struct buf *line)
{
    if (!link->peer)
        return;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&link->peer->in) > UNSAID_MAX) {
        fprintf(stderr, "berthd: berth-slurm does not listen\n");
        uv_process_kill(&link->peer->process, SIGKILL);
        return;
    }
    struct saying *saying = memory_checked(calloc(1, sizeof *saying));
    char *bytes = memory_checked(malloc(line->count + 1));
    memcpy(bytes, line->bytes, line->count);
    bytes[line->count] = '\n';
    saying->buf = uv_buf_init(bytes, (unsigned)line->count + 1);
    saying->write.data = saying;
    if (uv_write(&saying->write, (uv_stream_t *)&link->peer->in, &saying->buf, 1,
                 free_written) < 0)
        free_written(&saying->write, 0);
}

/* --- beginning and end ---------------------------------------------------------------- */

int slurm_link_open(struct slurm_link **ret_link, const struct slurm_link_setup *setup,
                    struct error *err)
{
    if (access(setup->program, X_OK) < 0)
        return error_set(err, -errno, "%s: %s", setup->program, strerror(errno));
    struct slurm_link *link = memory_checked(calloc(1, sizeof *link));
    link->setup = *setup;
    link->wait_ms = AGAIN_MIN_MS;
    buf_init(&link->line, LINE_BYTES_MAX);
    uv_timer_init(setup->loop, &link->again);
    link->again.data = link;
    start_bridge(link);
    *ret_link = link;
    return 0;
}

static void link_closed(uv_handle_t *handle)
{
    struct slurm_link *link = handle->data;
    buf_release(&link->line);
    free(link);
}

void slurm_link_close(struct slurm_link *link)
{
    if (!link)
        return;
    if (link->peer)
        close_peer(link->peer);
    link->peer = NULL;
    uv_close((uv_handle_t *)&link->again, link_closed);
}
