/*
 * flowd.c - the agent's one loop.
 *
 *     berthd ── event ──► desired ──► targets ──► markers ──► kernel
 *        ▲                               ▲ every second: cgroups that were missing
 *        └──────── bytes per job ◄───────┴── every two seconds
 *
 * There is one thread.  call_stream() passes bytes on as they arrive and asks several
 * times a second whether to continue, which is when the timers run.
 */
#include "flowd/flowd.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "api/sse.h"
#include "flowd/marker.h"
#include "host/capabilities.h"
#include "flowd/desired.h"
#include "version.h"

#define MS INT64_C(1000000)
#define REFRESH_NS NS_PER_S /* between two searches for new sockets and cgroups */
#define NAMESPACES_NS (5 * NS_PER_S)    /* between two searches for containers */
#define REPORT_NS (2 * NS_PER_S)        /* between two reports of bytes */
#define REPORT_RETRY_NS (30 * NS_PER_S) /* after one that berthd did not accept */
#define REPORT_TIMEOUT_S 2              /* timeout of a report */
#define SILENT_NS (35 * NS_PER_S) /* berthd sends every 15 s: the connection is dead */
#define RETRY_MIN_NS (200 * MS)
#define RETRY_MAX_NS (10 * NS_PER_S)
#define UNREACHED_NS (2 * NS_PER_S) /* a job may start after its level arrives */

/* How much a job has sent, and how much of it berthd was told. */
struct flowd_bytes {
    uint64_t id, bytes, reported;
    bool ended; /* the job has left, and its last count is not reported yet */
};

/* A marker in use, and the jobs that are assigned to it. */
struct flowd_marker {
    const struct marker *table;
    void *self;
    struct mark_target *targets;
    uint32_t count, room;
};

struct flowd {
    const struct flowd_setup *setup;
    struct call *stream, *report;
    char path[400];
    struct sse_parser parser;
    struct desired_marks desired[2]; /* the current ones, and room for the next */
    uint32_t current;
    struct mark_targets targets;
    struct flowd_marker markers[FLOWD_MARKERS_MAX];
    uint32_t marker_count;
    struct flowd_bytes *counts; /* by id */
    uint32_t count_count;

    int64_t heard_ns;   /* when berthd last sent something                 */
    int64_t expires_ns; /* when the desired marks expire; 0: there are none */
    int64_t refreshed_ns, namespaces_ns, report_due_ns, retry_ns;
    int64_t unreached_ns;      /* since when so many jobs cannot be marked */
    uint32_t unreached;        /* jobs that no marker reaches              */
    uint32_t unreached_logged; /* what was logged of that                  */
    bool failing;              /* the last change of the kernel failed     */
    bool away;                 /* berthd does not answer, and that is logged */
    char last_failure[320];    /* the failure logged last                  */
};

static volatile sig_atomic_t stopping;

static void handle_signal(int number)
{
    stopping = 1;
}

static void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void log_line(const char *fmt, ...)
{
    va_list words;
    va_start(words, fmt);
    fputs("berth-flowd: ", stderr);
    vfprintf(stderr, fmt, words);
    fputc('\n', stderr);
    va_end(words);
}

/* Log a failure once, until there is another one or it is over. */
static void log_failure(struct flowd *flowd, const char *text)
{
    if (strcmp(flowd->last_failure, text) == 0)
        return;
    snprintf(flowd->last_failure, sizeof flowd->last_failure, "%s", text);
    log_line("%s", text);
}

/* --- applying marks ----------------------------------------------------------------- */

/* Give each job to the first marker that reaches it. */
static void assign_targets(struct flowd *flowd)
{
    uint32_t unreached = 0;
    for (uint32_t i = 0; i < flowd->marker_count; i++)
        flowd->markers[i].count = 0;
    for (uint32_t i = 0; i < flowd->targets.count; i++) {
        const struct mark_target *target = &flowd->targets.list[i];
        struct flowd_marker *marker = flowd->markers,
                            *end = marker + flowd->marker_count;
        while (marker < end && !marker->table->reaches(target))
            marker++;
        if (marker == end) {
            unreached++;
            continue;
        }
        marker->targets = grow_array(marker->targets, &marker->room, marker->count + 1,
                                     sizeof *marker->targets);
        marker->targets[marker->count++] = *target;
    }
    if (unreached != flowd->unreached)
        flowd->unreached_ns = clock_now_ns();
    flowd->unreached = unreached;
}

static int apply_markers(struct flowd *flowd, bool rebuild, struct error *err)
{
    int64_t now = clock_now_ns();
    int r = 0;
    for (uint32_t i = 0; i < flowd->marker_count; i++) {
        struct flowd_marker *marker = &flowd->markers[i];
        struct marking marking = {
            .targets = marker->targets,
            .count = marker->count,
            .now_ns = now,
            .until_ns = flowd->expires_ns > now ? flowd->expires_ns : now,
            .rebuild = rebuild,
        };
        int one = marker->table->apply(marker->self, &marking, err);
        r = one < 0 ? one : r;
    }
    return r;
}

static void refill_targets(struct flowd *flowd)
{
    mark_targets_fill(&flowd->targets, &flowd->desired[flowd->current],
                      &flowd->setup->levels, &flowd->setup->patterns);
    assign_targets(flowd);
}

static void apply_marks(struct flowd *flowd)
{
    struct error err;
    int r = apply_markers(flowd, flowd->failing, &err);
    if (r < 0) { /* a cgroup may have gone since it was looked up */
        refill_targets(flowd);
        r = apply_markers(flowd, true, &err);
    }
    if (r < 0)
        log_failure(flowd, err.text);
    else if (flowd->failing)
        flowd->last_failure[0] = '\0';
    flowd->failing = r < 0;
}

/* --- bytes -------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const struct flowd_bytes *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static void store_bytes(void *context, uint64_t id, uint64_t bytes)
{
    struct flowd *flowd = context;
    struct flowd_bytes key = { .id = id };
    struct flowd_bytes *count =
        flowd->count_count
            ? bsearch(&key, flowd->counts, flowd->count_count, sizeof key, compare_ids)
            : NULL;
    if (count)
        count->bytes = bytes;
}

static void read_bytes(struct flowd *flowd)
{
    for (uint32_t i = 0; i < flowd->marker_count; i++)
        if (flowd->markers[i].table->bytes)
            flowd->markers[i].table->bytes(flowd->markers[i].self, store_bytes, flowd);
}

/*
 * Keep a count for each job there is now, and for those that left with bytes to report.
 * Both lists are sorted by id.
 */
static void update_counts(struct flowd *flowd)
{
    const struct mark_targets *targets = &flowd->targets;
    uint32_t room = 0, count = 0, a = 0, b = 0, old_count = flowd->count_count;
    struct flowd_bytes *counts =
        grow_array(NULL, &room, targets->count + old_count + 1, sizeof *counts);
    while (a < old_count || b < targets->count) {
        uint64_t old = a < old_count ? flowd->counts[a].id : UINT64_MAX;
        uint64_t new = b < targets->count ? targets->list[b].id : UINT64_MAX;
        struct flowd_bytes one = { .id = new };
        if (old <= new)
            one = flowd->counts[a++];
        one.ended = old < new;
        b += new <= old;
        if (!one.ended || one.bytes != one.reported)
            counts[count++] = one;
    }
    free(flowd->counts);
    flowd->counts = counts;
    flowd->count_count = count;
}

/* The counts that changed since the last report; NULL: none did. */
static struct json *encode_changed_counts(struct flowd *flowd)
{
    struct json *list = json_new_array();
    for (uint32_t i = 0; i < flowd->count_count; i++) {
        const struct flowd_bytes *count = &flowd->counts[i];
        if (count->bytes == count->reported)
            continue;
        struct json *row = json_new_object();
        json_put_count(row, "id", (int64_t)count->id);
        json_put_count(row, "bytes", (int64_t)count->bytes);
        json_add(list, row);
    }
    if (json_count(list) == 0) {
        json_free(list);
        return NULL;
    }
    struct json *body = json_new_object();
    json_put_text(body, "host", flowd->desired[flowd->current].host);
    json_put(body, "jobs", list);
    return body;
}

static void drop_ended_jobs(struct flowd *flowd)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < flowd->count_count; i++)
        if (!flowd->counts[i].ended)
            flowd->counts[kept++] = flowd->counts[i];
    flowd->count_count = kept;
}

/* Marks do not depend on reports: one that fails is repeated later and not logged. */
static void report_bytes(struct flowd *flowd)
{
    struct json *body = encode_changed_counts(flowd);
    flowd->report_due_ns = clock_now_ns() + REPORT_NS;
    if (!body)
        return;
    if (call_json(flowd->report, "POST", "/v1/flows", body, NULL, NULL) < 0)
        flowd->report_due_ns = clock_now_ns() + REPORT_RETRY_NS;
    else
        for (uint32_t i = 0; i < flowd->count_count; i++)
            flowd->counts[i].reported = flowd->counts[i].bytes;
    json_free(body);
    drop_ended_jobs(flowd);
}

/* --- events from berthd ------------------------------------------------------------- */

static void log_refused(void *context, const char *why)
{
    log_line("refused what berthd said, nothing has changed: %s", why);
}

/* Whether the next desired marks are of other jobs than the current ones. */
static bool has_other_jobs(const struct flowd *flowd)
{
    const struct desired_marks *now = &flowd->desired[flowd->current];
    const struct desired_marks *next = &flowd->desired[!flowd->current];
    if (now->count != next->count)
        return true;
    for (uint32_t i = 0; i < now->count; i++)
        if (now->jobs[i].id != next->jobs[i].id)
            return true;
    return false;
}

static void handle_event(void *context, const char *name, const char *data,
                         size_t count)
{
    struct flowd *flowd = context;
    struct error err;
    if (strcmp(name, "flows") != 0)
        return;
    flowd->heard_ns = clock_now_ns();
    flowd->retry_ns = RETRY_MIN_NS;
    struct desired_marks *next = &flowd->desired[!flowd->current];
    if (desired_parse(next, data, count, &err) < 0) {
        log_refused(flowd, err.text);
        return;
    }
    if (has_other_jobs(flowd)) {
        read_bytes(flowd);        /* the counters go when their jobs do */
        flowd->namespaces_ns = 0; /* check those of the new jobs now */
    }
    if (flowd->away) {
        log_line("berthd answers again");
        flowd->last_failure[0] = '\0';
    }
    flowd->away = false;
    flowd->current = !flowd->current;
    flowd->expires_ns = clock_now_ns() + next->valid_ns;
    refill_targets(flowd);
    apply_marks(flowd);
    update_counts(flowd);
    flowd->refreshed_ns = clock_now_ns();
}

static bool handle_stream(void *context, const char *bytes, size_t count)
{
    struct flowd *flowd = context;
    const struct sse_handler handler = { handle_event, log_refused, flowd };
    sse_add(&flowd->parser, bytes, count, &handler);
    return !stopping;
}

/* --- timers ------------------------------------------------------------------------- */

/* berthd has not confirmed the marks in time: mark nothing, which is fair. */
static void expire_marks(struct flowd *flowd)
{
    struct desired_marks *desired = &flowd->desired[flowd->current];
    log_line("berthd has been silent for %.0f s: no job is marked",
             (double)desired->valid_ns / (double)NS_PER_S);
    flowd->away = true;
    flowd->expires_ns = 0;
    desired->count = 0;
    refill_targets(flowd);
    apply_marks(flowd);
}

static void log_unreached(struct flowd *flowd, int64_t now)
{
    if (flowd->unreached == flowd->unreached_logged ||
        now - flowd->unreached_ns < UNREACHED_NS)
        return;
    flowd->unreached_logged = flowd->unreached;
    if (flowd->unreached > 0)
        log_line("%u of %u jobs cannot be marked: no cgroup of theirs is here%s",
                 flowd->unreached, flowd->targets.count,
                 flowd->marker_count == 1 &&
                         !strcmp(flowd->markers[0].table->name, "nft")
                     ? "; the backend sockets may reach them"
                     : ", and no process");
}

static void refresh_marks(struct flowd *flowd, int64_t now)
{
    flowd->refreshed_ns = now;
    if (flowd->expires_ns && now >= flowd->expires_ns) {
        expire_marks(flowd);
        return;
    }
    bool found = mark_targets_find_missing(&flowd->targets, &flowd->setup->patterns);
    if (flowd->marker_count > 1 && now - flowd->namespaces_ns >= NAMESPACES_NS) {
        flowd->namespaces_ns = now;
        found = mark_targets_check_namespaces(&flowd->targets) || found;
    }
    if (found)
        assign_targets(flowd);
    apply_marks(flowd);
    log_unreached(flowd, now);
}

/* Do what is due; false: stop following the stream. */
static bool run_timers(void *context)
{
    struct flowd *flowd = context;
    int64_t now = clock_now_ns();
    if (now - flowd->refreshed_ns >= REFRESH_NS ||
        (flowd->expires_ns && now >= flowd->expires_ns))
        refresh_marks(flowd, now);
    if (now >= flowd->report_due_ns && !flowd->away) {
        read_bytes(flowd);
        report_bytes(flowd);
    }
    return !stopping && clock_now_ns() - flowd->heard_ns < SILENT_NS;
}

static void wait_with_timers(struct flowd *flowd, int64_t ns)
{
    for (int64_t end = clock_now_ns() + ns; !stopping && clock_now_ns() < end;) {
        nanosleep(&(struct timespec){ .tv_nsec = 50 * MS }, NULL);
        run_timers(flowd);
    }
}

static void follow_stream(struct flowd *flowd)
{
    struct error err = { "berthd ended the stream" };
    const struct call_stream stream = { handle_stream, run_timers, flowd };
    sse_reset(&flowd->parser);
    flowd->heard_ns = clock_now_ns();
    int r = call_stream(flowd->stream, flowd->path, &stream, &err);
    if (stopping)
        return;
    if (r < 0)
        log_failure(flowd, err.text);
    flowd->away = flowd->away || r < 0;
    wait_with_timers(flowd, flowd->retry_ns);
    flowd->retry_ns *= 2;
    if (flowd->retry_ns > RETRY_MAX_NS)
        flowd->retry_ns = RETRY_MAX_NS;
}

/* --- start and end ------------------------------------------------------------------ */

int flowd_choose(const char *backend, const struct marker *chosen[FLOWD_MARKERS_MAX],
                 struct error *err)
{
    struct error why;
    if (strcmp(backend, "auto") != 0) {
        chosen[0] = marker_find(backend);
        if (!chosen[0])
            return error_set(err, -EINVAL, "there is no backend \"%.40s\" here",
                             backend);
        if (chosen[0]->probe(&why) < 0)
            return error_set(err, -ENOTSUP, "%s: %s", backend, why.text);
        return 1;
    }
    int count = 0;
    for (size_t i = 0; marker_list[i] && count < FLOWD_MARKERS_MAX; i++) {
        bool last =
            !marker_list[i + 1]; /* advice is used only where no other marker works */
        if (!(last && count > 0) && marker_list[i]->probe(&why) == 0)
            chosen[count++] = marker_list[i];
    }
    return count;
}

static int open_markers(struct flowd *flowd, const struct marker *const *markers,
                        uint32_t count, struct error *err)
{
    const int *capabilities[FLOWD_MARKERS_MAX];
    for (uint32_t i = 0; i < count; i++)
        capabilities[i] = markers[i]->capabilities;
    int r = capabilities_keep(capabilities, count, err);
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        struct flowd_marker *marker = &flowd->markers[i];
        *marker = (struct flowd_marker){ .table = markers[i],
                                         .self = memory_checked(
                                             calloc(1, markers[i]->self_size)) };
        r = markers[i]->open(marker->self, &flowd->setup->levels, err);
        if (r < 0)
            free(marker->self);
        else
            flowd->marker_count++;
    }
    return r;
}

static void close_markers(struct flowd *flowd)
{
    for (uint32_t i = 0; i < flowd->marker_count; i++) {
        struct flowd_marker *marker = &flowd->markers[i];
        marker->table->close(marker->self);
        free(marker->self);
        free(marker->targets);
    }
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = handle_signal };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void print_ready(const struct flowd *flowd)
{
    char rights[200];
    capabilities_describe(rights, sizeof rights);
    printf("berth-flowd %s ready: %s%s%s, berthd at %s, capabilities: %s\n",
           BERTH_VERSION, flowd->markers[0].table->name,
           flowd->marker_count > 1 ? " and " : "",
           flowd->marker_count > 1 ? flowd->markers[1].table->name : "",
           call_address(flowd->stream), rights);
    fflush(stdout);
}

static int open_all(struct flowd *flowd, const struct marker *const *markers,
                    uint32_t count, struct error *err)
{
    const struct flowd_setup *setup = flowd->setup;
    /* The token file is read here, before capabilities are given up. */
    int r = call_open(&flowd->stream, setup->address, err);
    if (r == 0)
        r = call_open(&flowd->report, setup->address, err);
    if (r == 0)
        r = open_markers(flowd, markers, count, err);
    if (r < 0)
        return r;
    call_hurry(flowd->report, REPORT_TIMEOUT_S);
    snprintf(flowd->path, sizeof flowd->path, "/v1/flows?follow=true%s%s",
             setup->host ? "&host=" : "", setup->host ? setup->host : "");
    return 0;
}

int flowd_run(const struct flowd_setup *setup, const struct marker *const *markers,
              uint32_t count, struct error *err)
{
    struct flowd flowd = { .setup = setup, .retry_ns = RETRY_MIN_NS };
    catch_signals();
    sse_init(&flowd.parser);
    desired_init(&flowd.desired[0]);
    desired_init(&flowd.desired[1]);
    mark_targets_init(&flowd.targets);
    int r = open_all(&flowd, markers, count, err);
    if (r == 0) {
        print_ready(&flowd);
        while (!stopping)
            follow_stream(&flowd);
    }
    close_markers(&flowd);
    mark_targets_release(&flowd.targets);
    desired_release(&flowd.desired[0]);
    desired_release(&flowd.desired[1]);
    sse_release(&flowd.parser);
    free(flowd.counts);
    call_close(flowd.report);
    call_close(flowd.stream);
    return r;
}
