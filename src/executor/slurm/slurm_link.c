/* slurm_link.c - berth-slurm as a process beside us. */
#include "executor/slurm/slurm_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/named_pipe.h"
#include "host/launcher_client.h"

#define LINE_BYTES_MAX (1u << 20)
#define UNSAID_MAX (64u << 20) /* bytes it has not read: then it hangs */
#define AGAIN_MIN_MS 200
#define AGAIN_MAX_MS 10000
#define WORDS_MAX 80

/* One run of the program; outlives the link until the loop has let go of it. */
struct peer {
    struct slurm_link *link; /* NULL: closed meanwhile */
    uv_process_t process;    /* unless berth-launch has started it */
    uv_pipe_t in, out;       /* one socket, if berth-launch has */
    uint32_t open;           /* handles */
    char bytes[65536];
};

struct slurm_link {
    struct slurm_link_setup setup;
    struct peer *peer; /* NULL: it is to be started again */
    uv_timer_t again;
    uint64_t wait_ms;
    int bell; /* that berth-slurm gets from us; -1: it makes its own */
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

static int start_bridge(struct slurm_link *link, struct error *err);

static void on_again(uv_timer_t *timer)
{
    struct error err = { "" };
    if (start_bridge(timer->data, &err) < 0)
        fprintf(stderr, "berthd: %s\n", err.text);
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
        if (peer->link && peer->link->setup.program.launcher)
            fprintf(stderr, "berthd: berth-slurm has ended\n");
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

static void make_words(const struct slurm_program *program,
                       const char *words[WORDS_MAX])
{
    uint32_t count = 0;
    words[count++] = program->path;
    words[count++] = "--bell";
    words[count++] = program->bell;
    if (program->driver) {
        words[count++] = "--driver";
        words[count++] = program->driver;
    }
    for (uint32_t i = 0; program->partitions && program->partitions[i]; i++) {
        if (count + 3 > WORDS_MAX)
            break;
        words[count++] = "--partition";
        words[count++] = program->partitions[i];
    }
    words[count] = NULL;
}

/* As our own child, with our rights. */
static int spawn_bridge(struct slurm_link *link, struct peer *peer, struct error *err)
{
    const struct slurm_program *program = &link->setup.program;
    const char *words[WORDS_MAX];
    make_words(program, words);
    uv_stdio_container_t pipes[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
          .data.stream = (uv_stream_t *)&peer->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&peer->out },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
    };
    uv_process_options_t options = { .file = program->path,
                                     .args = (char **)(uintptr_t)words,
                                     .exit_cb = on_exit_of,
                                     .stdio = pipes,
                                     .stdio_count = 3 };
    peer->process.data = peer;
    peer->open++;
    int r = uv_spawn(link->setup.loop, &peer->process, &options);
    if (r < 0) {
        uv_close((uv_handle_t *)&peer->process, handle_closed);
        return error_set(err, r, "%s: %s", program->path, uv_strerror(r));
    }
    return 0;
}

/* The descriptor is the pipe's from now on, or closed. */
static int open_pipe(uv_pipe_t *pipe, int fd, struct error *err)
{
    int r = uv_pipe_open(pipe, fd);
    if (r < 0)
        close(fd);
    return r < 0 ? error_set(err, r, "cannot use a socket: %s", uv_strerror(r)) : 0;
}

/* By berth-launch, with rights that we do not have; it ends when the socket is closed. */
static int ask_for_bridge(struct slurm_link *link, struct peer *peer, struct error *err)
{
    const struct slurm_program *program = &link->setup.program;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    int other = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    int r = open_pipe(&peer->in, ends[0], err);
    if (r == 0)
        r = open_pipe(&peer->out, other, err);
    if (r == 0)
        r = launcher_client_start_bridge(program->launcher, program->driver,
                                         program->partitions, ends[1], link->bell, err);
    close(ends[1]);
    return r;
}

static int start_bridge(struct slurm_link *link, struct error *err)
{
    struct peer *peer = memory_checked(calloc(1, sizeof *peer));
    init_pipe(link, peer, &peer->in);
    init_pipe(link, peer, &peer->out);
    link->peer = peer;
    peer->link = link;
    int r = link->setup.program.launcher ? ask_for_bridge(link, peer, err)
                                         : spawn_bridge(link, peer, err);
    if (r < 0)
        lose_peer(link);
    else
        uv_read_start((uv_stream_t *)&peer->out, on_room, on_read);
    return r;
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

/* It is lost when the loop sees the end; berth-launch kills it for the next one. */
static void end_bridge(struct slurm_link *link)
{
    uv_os_fd_t fd;
    if (!link->setup.program.launcher)
        uv_process_kill(&link->peer->process, SIGKILL);
    else if (uv_fileno((uv_handle_t *)&link->peer->in, &fd) == 0)
        shutdown(fd, SHUT_RDWR);
}

void slurm_link_say(struct slurm_link *link, const struct buf *line)
{
    if (!link->peer)
        return;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&link->peer->in) > UNSAID_MAX) {
        fprintf(stderr, "berthd: berth-slurm does not listen\n");
        end_bridge(link);
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

static int open_bell(struct slurm_link *link, struct error *err)
{
    const struct slurm_program *program = &link->setup.program;
    link->bell = program->launcher ? named_pipe_make(program->bell, err) : -1;
    return program->launcher && link->bell < 0 ? link->bell : 0;
}

int slurm_link_open(struct slurm_link **ret_link, const struct slurm_link_setup *setup,
                    struct error *err)
{
    const struct slurm_program *program = &setup->program;
    if (!program->launcher && access(program->path, X_OK) < 0)
        return error_set(err, -errno, "%s: %s", program->path, strerror(errno));
    struct slurm_link *link = memory_checked(calloc(1, sizeof *link));
    link->setup = *setup;
    link->wait_ms = AGAIN_MIN_MS;
    buf_init(&link->line, LINE_BYTES_MAX);
    uv_timer_init(setup->loop, &link->again);
    link->again.data = link;
    int r = open_bell(link, err);
    if (r == 0)
        r = start_bridge(link, err);
    if (r < 0) {
        slurm_link_close(link);
        return r;
    }
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
    named_pipe_remove(link->setup.program.bell, link->bell);
    uv_close((uv_handle_t *)&link->again, link_closed);
}
