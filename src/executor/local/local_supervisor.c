/*
 * local_supervisor.c - the connection to a job's supervisor: orders go out as messages,
 * and what the supervisor reports becomes events.
 */
#include "executor/local/local_internal.h"

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

#include "base/units.h"
#include "model/outbox.h"

#define LOAD_MAX_NS (10 * NS_PER_S) /* then it is assumed to make steps */

/* --- events -------------------------------------------------------------------------- */

static struct event *emit_event(struct local_run *run, enum event_kind kind)
{
    const struct local_setup *setup = &run->local->setup;
    struct event *event = outbox_add(*setup->outbox);
    event->at_ns = local_now(run->local);
    event->kind = kind;
    event->job = run->job;
    event->generation = run->generation;
    event->attempt = run->attempt;
    event->loss = NAN;
    if (setup->wake)
        setup->wake(setup->context);
    return event;
}

/* Steps reached: as reported, or the seconds it has run. */
double local_steps_now(const struct local_run *run)
{
    if (run->own_steps || !run->started)
        return run->steps;
    return run->steps_kept + (double)(local_now(run->local) - run->started_ns) * 1e-9;
}

void local_report_loaded(struct local_run *run)
{
    if (run->loaded)
        return;
    run->loaded = true;
    emit_event(run, EVENT_LOADED);
}

/* The partner on the same GPUs, if both leases have to end together and its has not. */
static struct local_run *partner_to_wait_for(const struct local_run *run)
{
    struct local_run *partner =
        run->together ? local_active_run(run->local, run->beside) : NULL;
    bool waits =
        partner && partner->together && partner->leased && !partner->lease_done;
    return waits ? partner : NULL;
}

static void report_lease_done(struct local_run *run)
{
    if (!run->leased || !run->lease_done || partner_to_wait_for(run))
        return;
    run->leased = false;
    local_report_loaded(run);
    struct event *event = emit_event(run, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = local_steps_now(run);
    event->rate_per_s = run->own_steps ? run->rate_per_s : 1;
}

void local_check_lease(struct local_run *run)
{
    if (!run->leased || run->lease_done || local_steps_now(run) < run->lease_end)
        return;
    struct local_run *partner = local_active_run(run->local, run->beside);
    run->lease_done = true;
    report_lease_done(run);
    if (partner)
        report_lease_done(partner);
}

void local_schedule_check(struct local_run *run)
{
    int64_t at_ns = run->loaded ? INT64_MAX : run->loaded_at_ns;
    if (run->leased && !run->lease_done && !run->own_steps) {
        int64_t end_ns =
            run->started_ns + (int64_t)((run->lease_end - run->steps_kept) * 1e9);
        at_ns = end_ns < at_ns ? end_ns : at_ns;
    }
    local_set_due(run, at_ns);
}

/*
 * A job that reports nothing counts as loaded after its declared load time, or at
 * once.
 */
void local_handle_started(struct local_run *run, double ago_s)
{
    if (run->phase > LOCAL_RUNNING)
        return;
    run->phase = LOCAL_RUNNING;
    run->tries = 0;
    if (run->started)
        return;
    int64_t load_ns = run->local->setup.view->jobs[run->job].load_ns;
    if (load_ns == 0 && run->expects_reports)
        load_ns = LOAD_MAX_NS;
    run->started = true;
    run->started_ns = local_now(run->local) - (int64_t)(ago_s * 1e9);
    run->loaded = load_ns == 0;
    run->loaded_at_ns =
        run->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    emit_event(run, EVENT_STARTED)->loaded = run->loaded;
    local_schedule_check(run);
}

static void handle_progress(struct local_run *run)
{
    if (run->phase != LOCAL_RUNNING)
        return;
    local_report_loaded(run);
    struct event *event = emit_event(run, EVENT_PROGRESS);
    event->steps = event->steps_reached = run->steps;
    event->rate_per_s = run->own_steps ? run->rate_per_s : 1;
    event->loss = run->loss;
    local_check_lease(run);
    local_schedule_check(run);
}

struct event *local_report_end(struct local_run *run, enum event_kind kind)
{
    struct event *event = emit_event(run, kind);
    event->steps = run->saved;
    event->steps_reached = run->steps;
    event->rate_per_s = run->own_steps ? run->rate_per_s : 0;
    event->loss = run->loss;
    event->why = run->why[0] ? run->why : NULL;
    struct local_run *partner = local_active_run(run->local, run->beside);
    run->phase = LOCAL_ENDED;
    local_set_due(run, local_now(run->local) + LOCAL_IGNORED_NS);
    if (partner)
        report_lease_done(partner);
    return event;
}

/* --- the connection ------------------------------------------------------------------ */

static void handle_closed(uv_handle_t *handle)
{
    struct local_run *run = handle->data;
    run->closing = false;
    run->polled = false;
    if (!run->local)
        free(run); /* the run was dropped meanwhile */
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

void local_send(struct local_run *run, const char *fmt, ...)
{
    char line[RUN_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert(length > 0 && length < (int)sizeof line);
    if (run->fd >= 0) /* a supervisor that does not read will be found dead */
        (void)!send(run->fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void handle_report(struct local_run *run, char *rest)
{
    const char *steps = run_word(&rest), *loss = run_word(&rest);
    const char *rate = run_word(&rest);
    if (!run_number(steps, &run->steps) || !loss || !run_number(rate, &run->rate_per_s))
        return;
    char *end;
    double value = strtod(loss, &end);
    run->loss = end != loss && *end == '\0' && isfinite(value) ? value : NAN;
    handle_progress(run);
}

static bool handle_message(void *context, char *line)
{
    struct local_run *run = context;
    struct run_end end;
    double number;
    if (run_end_read(&end, line)) {
        local_handle_end(run, &end);
        return true;
    }
    char *rest = line;
    const char *word = run_word(&rest);
    if (!word)
        return true;
    if (strcmp(word, "started") == 0) {
        double ago_s = 0;
        run_word(&rest); /* its process id, for people */
        run_number(run_word(&rest), &ago_s);
        if (run_number(run_word(&rest), &number))
            run->steps_kept = number;
        local_handle_started(run, ago_s);
    } else if (strcmp(word, "report") == 0) {
        handle_report(run, rest);
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

/* The connection was closed or sent nonsense: search for the supervisor again. */
static void handle_lost_link(struct local_run *run)
{
    local_link_close(run);
    if (run->phase < LOCAL_CLEARING)
        local_set_due(run, local_now(run->local));
}

static void read_link(uv_poll_t *handle, int status, int events)
{
    struct local_run *run = handle->data;
    char bytes[4096];
    if (run->fd < 0)
        return;
    ssize_t count = recv(run->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 || status < 0 ||
        !run_lines_add(&run->lines, bytes, (size_t)count, RUN_LINE_MAX, handle_message,
                       run))
        handle_lost_link(run);
}

void local_link_open(struct local_run *run, int fd)
{
    assert(!run->polled);
    run->fd = fd;
    uv_poll_init(run->local->setup.loop, &run->link, fd);
    run->link.data = run;
    run->polled = true;
    uv_poll_start(&run->link, UV_READABLE | UV_DISCONNECT, read_link);
}

bool local_link_connect(struct local_run *run)
{
    if (run->polled)
        return false; /* the old handle is still being closed */
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
