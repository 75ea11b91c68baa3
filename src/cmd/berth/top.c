/* top.c - berth top: jobs and GPUs on the whole screen, as they change. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "api/sse.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/gantt.h"
#include "cmd/berth/queue.h"
#include "cmd/berth/terminal.h"
#include "model/event_record.h"

#define SLOT_S 2.0     /* of the chart */
#define SOONEST_S 0.25 /* shortest time between two updates */
#define LATEST_S 2.0   /* longest: times and progress change without events */
#define JOBS_ASKED 200

static const struct flag top_flags[] = {
    CONNECTION_FLAGS,
    { 0 },
};

struct top {
    struct call *call; /* for requests while the other connection streams */
    struct sse_parser stream;
    struct arena arena; /* of one event */
    struct gantt gantt;
    double drawn_s;
    bool has_changed; /* an event arrived since */
    bool done;
    bool away;
};

static struct termios before;
static volatile sig_atomic_t ended;

static void on_end(int number)
{
    ended = 1;
}

static void restore_terminal(void)
{
    fputs("\033[?7h\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Switch to the alternate screen, without cursor; keys are read as they are pressed. */
static int set_up_terminal(const struct flags *flags)
{
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return command_failed(flags, "this terminal cannot be set up");
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    atexit(restore_terminal);
    struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_RESTART };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    fputs("\033[?1049h\033[?25l\033[?7l", stdout); /* without wrapping */
    return 0;
}

static struct json *fetch_json(struct top *top, const char *path)
{
    struct json *json = NULL;
    if (call_json(top->call, "GET", path, NULL, &json, NULL) < 0)
        top->away = true;
    return json;
}

static void print_head(FILE *file, const struct json *server, bool away)
{
    const struct json *jobs = json_get(server, "jobs"),
                      *gpus = json_get(server, "gpus");
    char now[32];
    time_t at = time(NULL);
    struct tm tm;
    strftime(now, sizeof now, "%H:%M:%S", localtime_r(&at, &tm));
    if (away)
        fprintf(file, "berth top  %s  berthd is away; jobs go on  (q quits)\n\n", now);
    else
        fprintf(file,
                "berth top  %s  %s  %.0f run, %.0f wait, %.0f held  "
                "accelerators %.0f/%.0f  (q quits)\n\n",
                now, json_text_or(server, "policy", ""),
                json_number_or(jobs, "running", 0), json_number_or(jobs, "pending", 0),
                json_number_or(jobs, "held", 0), json_number_or(gpus, "held", 0),
                json_number_or(gpus, "total", 0));
}

/* Print a text on the screen: as many lines as fit, each cleared to its end. */
static void print_screen(const char *page, uint32_t rows)
{
    fputs("\033[H", stdout);
    for (uint32_t row = 0; *page && row + 1 < rows; row++) {
        size_t length = strcspn(page, "\n");
        fwrite(page, 1, length, stdout);
        fputs("\033[K\n", stdout);
        page += length + (page[length] == '\n');
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

static void draw_screen(struct top *top)
{
    struct winsize size = { 0 };
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
        size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
    char path[64], *page = NULL;
    size_t count;
    FILE *file = open_memstream(&page, &count);
    if (!file)
        return;
    top->away = false;
    snprintf(path, sizeof path, "/v1/jobs?limit=%d", JOBS_ASKED);
    struct json *server = fetch_json(top, "/v1/server");
    struct json *nodes = top->away ? NULL : fetch_json(top, "/v1/nodes");
    struct json *jobs = top->away ? NULL : fetch_json(top, path);
    bool colour = terminal_has_colours(stdout);
    print_head(file, server, top->away);
    if (!top->away)
        gantt_update(&top->gantt, json_get(nodes, "nodes"), json_get(jobs, "jobs"),
                     clock_read_s(CLOCK_REALTIME));
    gantt_print(&top->gantt, file, size.ws_col, size.ws_row / 2, colour);
    fputc('\n', file);
    queue_print(json_get(jobs, "jobs"), file, size.ws_col, colour);
    fclose(file);
    print_screen(page, size.ws_row);
    free(page);
    json_free(server);
    json_free(nodes);
    json_free(jobs);
}

/* Read keys, and update the screen if it is time. */
static bool on_idle(void *context)
{
    struct top *top = context;
    char key;
    while (read(STDIN_FILENO, &key, 1) == 1)
        top->done |= key == 'q' || key == 'Q';
    top->done |= ended;
    double now = clock_read_s(CLOCK_REALTIME), since = now - top->drawn_s;
    if (!top->done &&
        (since >= LATEST_S || since < 0 || (top->has_changed && since >= SOONEST_S))) {
        top->drawn_s = now;
        top->has_changed = false;
        draw_screen(top);
    }
    return !top->done;
}

/* Times are by our clock, like those of the updates: berthd's may differ. */
static void on_event(void *context, const char *name, const char *data, size_t count)
{
    struct top *top = context;
    struct event_record record;
    arena_reset(&top->arena);
    if (event_record_read(data, count, &top->arena, &record) < 0)
        return;
    record.event.at_ns = units_ns(clock_read_s(CLOCK_REALTIME));
    gantt_event(&top->gantt, &record);
}

static void ignore_event(void *context, const char *why)
{
}

static bool on_bytes(void *context, const char *bytes, size_t count)
{
    struct top *top = context;
    struct sse_handler handler = { on_event, ignore_event, top };
    sse_add(&top->stream, bytes, count, &handler);
    top->has_changed = true;
    return true;
}

static int top_run(const struct flags *flags)
{
    struct top top = { .call = NULL };
    struct call *events = NULL;
    struct error err;
    if (command_refuse_words(flags))
        return 2;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return command_wrong(flags, "wants a terminal; 'berth queue' does not");
    int status = connection_open(&top.call, flags);
    if (status)
        return status;
    int r = call_open(&events, flags_get(flags, "socket"), &err);
    if (r < 0) {
        call_close(top.call);
        return command_status(flags, r, &err);
    }
    gantt_init(&top.gantt, SLOT_S);
    sse_init(&top.stream);
    arena_init(&top.arena, 0);
    status = set_up_terminal(flags);
    struct call_stream stream = { on_bytes, on_idle, &top };
    while (status == 0 && on_idle(&top)) {
        sse_reset(&top.stream);
        call_stream(events, "/v1/events", &stream, NULL);
        if (!top.done) /* the connection was lost: try again, not too often */
            nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    }
    gantt_release(&top.gantt);
    sse_release(&top.stream);
    arena_release(&top.arena);
    call_close(events);
    call_close(top.call);
    return status;
}

const struct command command_top = {
    .name = "top",
    .group = "Use",
    .brief = "jobs and accelerators on the whole screen, as they change",
    .usage = "[flags]",
    .flags = top_flags,
    .run = top_run,
};
