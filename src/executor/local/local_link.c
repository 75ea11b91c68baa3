/* local_link.c - the wire to a supervisor. */
#include "executor/local/local_run.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void handle_closed(uv_handle_t *handle)
{
    struct local_run *run = handle->data;
    run->closing = false;
    run->polled = false;
    if (!run->local)
        free(run); /* it was forgotten meanwhile */
}

void local_link_close(struct local_run *run)
{
    if (run->polled && !run->closing) {
        run->closing = true;
        uv_close((uv_handle_t *)&run->link, handle_closed);
    }
    if (run->fd >= 0)
        close(run->fd);
    run->fd = -1;
    run->lines.count = 0;
}

void local_say(struct local_run *run, const char *fmt, ...)
{
    char line[RUN_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert(length > 0 && length < (int)sizeof line);
    if (run->fd >= 0) /* one that does not take it will be seen to be gone */
        (void)!send(run->fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void heard_report(struct local_run *run, char *rest)
{
    const char *steps = run_word(&rest), *loss = run_word(&rest);
    const char *rate = run_word(&rest);
    if (!run_number(steps, &run->steps) || !loss || !run_number(rate, &run->rate_per_s))
        return;
    char *end;
    double value = strtod(loss, &end);
    run->loss = end != loss && *end == '\0' && isfinite(value) ? value : NAN;
    local_reported(run);
}

static bool heard(void *context, char *line)
{
    struct local_run *run = context;
    struct run_end end;
    double number;
    if (run_end_read(&end, line)) {
        local_ended(run, &end);
        return true;
    }
    char *rest = line;
    const char *word = run_word(&rest);
    if (!word)
        return true;
    if (strcmp(word, "started") == 0) {
        double ago_s = 0;
        run_word(&rest); /* its process: for people who look */
        run_number(run_word(&rest), &ago_s);
        if (run_number(run_word(&rest), &number))
            run->steps_kept = number;
        local_started(run, ago_s);
    } else if (strcmp(word, "report") == 0) {
        heard_report(run, rest);
    } else if (strcmp(word, "saved") == 0 && run_number(run_word(&rest), &number)) {
        run->saved = number;
    } else if (strcmp(word, "total") == 0 && run_number(run_word(&rest), &number)) {
        run->own_steps = true;
        const struct local_setup *setup = &run->local->setup;
        if (setup->total)
            setup->total(setup->context, run->job, number);
    }
    return true;
}

/* Nobody at the other end, or nobody who makes sense: look for it anew. */
static void lost_touch(struct local_run *run)
{
    local_link_close(run);
    if (run->phase < PHASE_CLEARING)
        local_due(run, local_now(run->local));
}

static void readable(uv_poll_t *handle, int status, int events)
{
    struct local_run *run = handle->data;
    char bytes[4096];
    if (run->fd < 0)
        return;
    ssize_t count = recv(run->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 || status < 0 ||
        !run_lines_add(&run->lines, bytes, (size_t)count, RUN_LINE_MAX, heard, run))
        lost_touch(run);
}

void local_link_open(struct local_run *run, int fd)
{
    assert(!run->polled);
    run->fd = fd;
    uv_poll_init(run->local->setup.loop, &run->link, fd);
    run->link.data = run;
    run->polled = true;
    uv_poll_start(&run->link, UV_READABLE | UV_DISCONNECT, readable);
}

bool local_link_connect(struct local_run *run)
{
    if (run->polled)
        return false; /* the old one is still being closed */
    char dir[JOB_DIR_MAX];
    local_dir(run, dir);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int length = snprintf(at.sun_path, sizeof at.sun_path, "%s/run.sock", dir);
    if (length < 0 || (size_t)length >= sizeof at.sun_path)
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        close(fd);
        return false;
    }
    local_link_open(run, fd);
    return true;
}
