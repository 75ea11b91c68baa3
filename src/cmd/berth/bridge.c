/* bridge.c - a berth-slurm of one's own. */
#include "cmd/berth/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "api/programs.h"

#define WORDS_MAX 100
#define LINE_BYTES_MAX (2u << 20)

void bridge_patience(struct bridge *bridge, int patience_ms)
{
    bridge->end_ms = clock_now_ms() + patience_ms;
}

int bridge_open(struct bridge *bridge, const char *const *words, int patience_ms,
                struct error *err)
{
    const char *program = programs_find("berth-slurm");
    const char *argv[WORDS_MAX + 2] = { program ? program : "berth-slurm" };
    int in[2] = { -1, -1 }, out[2] = { -1, -1 };
    *bridge = (struct bridge){ .pid = -1 };
    for (int i = 0; i < WORDS_MAX && words[i]; i++)
        argv[i + 1] = words[i];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    bridge->pid = fork();
    if (bridge->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        dprintf(STDERR_FILENO, "berth: berth-slurm: %s\n", strerror(errno));
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    bridge->in = in[1];
    bridge->out = out[0];
    bridge_patience(bridge, patience_ms);
    return bridge->pid < 0 ? error_set(err, -errno, "fork: %s", strerror(errno)) : 0;
}

void bridge_close(struct bridge *bridge)
{
    if (bridge->pid <= 0)
        return;
    close(bridge->in); /* it ends with its input, within seconds */
    close(bridge->out);
    waitpid(bridge->pid, NULL, 0);
    free(bridge->line);
    *bridge = (struct bridge){ .pid = -1 };
}

int bridge_say(struct bridge *bridge, const struct json *word, struct error *err)
{
    char *text = json_text(word);
    size_t count = text ? strlen(text) : 0;
    bool whole = text != NULL;
    if (text) {
        text[count] = '\n'; /* in the place of its end */
        for (size_t at = 0; whole && at <= count;) {
            ssize_t some = write(bridge->in, text + at, count + 1 - at);
            whole = some > 0 || errno == EINTR;
            at += some > 0 ? (size_t)some : 0;
        }
    }
    free(text);
    return whole ? 0 : error_set(err, -EPIPE, "berth-slurm has ended");
}

/* Some more bytes, as long as patience lasts. */
static int fill(struct bridge *bridge, struct error *err)
{
    struct pollfd poller = { .fd = bridge->out, .events = POLLIN };
    int64_t left = bridge->end_ms - clock_now_ms();
    int r = poll(&poller, 1, left > 0 ? (int)left : 0);
    if (r == 0)
        return error_set(err, -ETIMEDOUT, "Slurm does not answer");
    if (bridge->count > LINE_BYTES_MAX)
        return error_set(err, -EPROTO, "berth-slurm says too much at once");
    bridge->line = grow(bridge->line, &bridge->room, bridge->count + 65536, 1);
    ssize_t count = read(bridge->out, bridge->line + bridge->count, 65536);
    if (count < 0 && errno == EINTR)
        return 0;
    if (count <= 0)
        return error_set(err, -EPIPE, "berth-slurm has ended");
    bridge->count += (uint32_t)count;
    return 0;
}

int bridge_hear(struct bridge *bridge, struct json **ret_word, struct error *err)
{
    char *end;
    while (!(end = bridge->count ? memchr(bridge->line, '\n', bridge->count) : NULL)) {
        int r = fill(bridge, err);
        if (r < 0)
            return r;
    }
    uint32_t length = (uint32_t)(end - bridge->line);
    int r = json_parse(bridge->line, length, ret_word, err);
    bridge->count -= length + 1;
    memmove(bridge->line, end + 1, bridge->count);
    return r;
}
