/* run.c - berth run: a job in the foreground, as if it ran in this terminal. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/patience.h"
#include "base/arena.h"
#include "base/clock.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/request_builder.h"
#include "cmd/berth/request_source.h"

#define ASK_AFTER_NS INT64_C(700000000)  /* no query about a job that starts at once */
#define ASK_AGAIN_NS INT64_C(3000000000) /* the reason for waiting may change */
#define AWAY_MAX 120 /* tries, half a second apart, while berthd is unreachable */

static const struct flag run_flags[] = {
    REQUEST_BUILDER_FLAGS,
    CONNECTION_KEY_FLAG,
    CONNECTION_FLAGS,
    { 0 },
};

static volatile sig_atomic_t asked_to_stop; /* times */

static void on_signal(int number)
{
    asked_to_stop++;
}

struct run_watch {
    const struct flags *flags;
    struct call *call; /* for requests while another call streams the output */
    uint64_t id;
    uint64_t bytes; /* of its output that were shown */
    bool cancelled;
    bool waited; /* and the user was told so */
    bool lost_output;
    int64_t ask_ns;
    char reason[320]; /* printed last */
};

static int call_job(struct run_watch *watch, const char *method, const char *more,
                    struct json **ret, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "%s", watch->id, more);
    return call_json(watch->call, method, path, NULL, ret, err);
}

/* Queries in between never wait: the output would stop meanwhile. */
static void set_patience(struct run_watch *watch, double seconds)
{
    call_patience(watch->call)->seconds = seconds;
}

static void cancel_job(struct run_watch *watch)
{
    struct error err;
    watch->cancelled = true;
    set_patience(watch, PATIENCE_S);
    int r = call_job(watch, "DELETE", "", NULL, &err);
    if (r == 0)
        fprintf(stderr,
                "berth run: cancelling job %" PRIu64 "; once more to leave it\n",
                watch->id);
    else if (r != -EBUSY && r != -ESRCH) /* it has ended meanwhile */
        fprintf(stderr, "berth run: %s\n", err.text);
}

/* Print why the job waits, if that has changed. */
static void print_why(struct run_watch *watch)
{
    struct json *why = NULL;
    if (call_job(watch, "GET", "/why", &why, NULL) < 0)
        return;
    const char *text =
        json_text_or(json_item(json_get(why, "reasons"), 0), "text", "waits");
    const char *change = json_as_text(json_get(why, "smallest_change"));
    if (strcmp(watch->reason, text) != 0) {
        snprintf(watch->reason, sizeof watch->reason, "%s", text);
        fprintf(stderr, "berth run: job %" PRIu64 " waits: %s%s%s\n", watch->id, text,
                change ? "; to start it now: " : "", change ? change : "");
    }
    watch->waited = true;
    json_free(why);
}

static void report_state(struct run_watch *watch)
{
    struct json *job = NULL;
    set_patience(watch, 0);
    if (call_job(watch, "GET", "", &job, NULL) < 0)
        return;
    const char *state = json_text_or(job, "state", "");
    if (strcmp(state, "PENDING") == 0 || strcmp(state, "HELD") == 0) {
        print_why(watch);
    } else if (watch->waited && strcmp(state, "RUNNING") == 0) {
        fprintf(stderr, "berth run: job %" PRIu64 " runs\n", watch->id);
        watch->waited = false;
        watch->reason[0] = '\0';
    }
    json_free(job);
}

static bool on_idle(void *context)
{
    struct run_watch *watch = context;
    if (asked_to_stop >= 2)
        return false;
    if (asked_to_stop == 1 && !watch->cancelled)
        cancel_job(watch);
    int64_t now = clock_now_ns();
    if (now >= watch->ask_ns && !watch->cancelled) {
        report_state(watch);
        call_rest(watch->call); /* one connection for each 'berth run' */
        watch->ask_ns = now + ASK_AGAIN_NS;
    }
    return true;
}

static bool on_output(void *context, const char *bytes, size_t count)
{
    struct run_watch *watch = context;
    watch->bytes += count;
    if (fwrite(bytes, 1, count, stdout) != count || fflush(stdout) != 0)
        watch->lost_output = true; /* the job goes on; its output is in its file */
    return !watch->lost_output && asked_to_stop < 2;
}

/* Of the output, for a connection; the job goes on. */
static bool keep_waiting(void *context, const char *sentence)
{
    (void)sentence;
    return on_idle(context);
}

/* Show the job's output until it has ended; berthd may be restarted meanwhile. */
static int follow_output(struct run_watch *watch, const char *address,
                         struct error *err)
{
    struct call_stream stream = { on_output, on_idle, watch };
    struct call *call = NULL;
    int r = call_open(&call, address, err);
    if (r == 0) {
        connection_wait(call, watch->flags, INFINITY);
        call_patience(call)->wait = keep_waiting;
        call_patience(call)->context = watch;
    }
    for (int away = 0; r == 0 && away < AWAY_MAX && asked_to_stop < 2;) {
        char path[96];
        uint64_t before = watch->bytes;
        snprintf(path, sizeof path,
                 "/v1/jobs/%" PRIu64 "/log?follow=true&offset=%" PRIu64, watch->id,
                 watch->bytes);
        r = call_stream(call, path, &stream, err);
        if (r != -EIO && r != -EPIPE && r != -ECONNREFUSED)
            break;
        away = watch->bytes > before ? 0 : away + 1;
        r = away == AWAY_MAX ? r : 0;
        nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
    }
    call_close(call);
    return r;
}

static bool has_ended(const char *state)
{
    static const char *const ended[] = { "COMPLETED", "FAILED", "CANCELLED",
                                         "REJECTED" };
    for (size_t i = 0; i < sizeof ended / sizeof *ended; i++)
        if (strcmp(state, ended[i]) == 0)
            return true;
    return false;
}

/* The exit status of the job: its own exit code, 128 + n for signals. */
static int exit_status(struct run_watch *watch)
{
    struct json *job = NULL;
    struct error err;
    set_patience(watch, INFINITY);
    int r = call_job(watch, "GET", "", &job, &err);
    for (int i = 0; r == 0 && i < 50 && !has_ended(json_text_or(job, "state", ""));
         i++) {
        json_free(job); /* its output has ended; berthd is about to record its end */
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        r = call_job(watch, "GET", "", &job, &err);
    }
    if (r < 0)
        return command_status(watch->flags, r, &err);
    const char *state = json_text_or(job, "state", "");
    const char *reason = json_text_or(job, "reason", "");
    int64_t code = -1;
    json_as_count(json_get(job, "exit_code"), &code);
    if (strcmp(state, "COMPLETED") == 0)
        code = 0;
    else if (strcmp(state, "CANCELLED") == 0)
        code = asked_to_stop ? 130 : code > 0 ? code : 1;
    else if (code <= 0 || code > 255)
        code = 1;
    bool own = strncmp(reason, "exit status", 11) == 0; /* the job printed why */
    if (code != 0 && !asked_to_stop && *reason && !own)
        fprintf(stderr, "berth run: job %" PRIu64 ": %s\n", watch->id, reason);
    json_free(job);
    return (int)code;
}

static int watch_job(struct run_watch *watch, const char *address)
{
    struct error err;
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    watch->ask_ns = clock_now_ns() + ASK_AFTER_NS;
    int r = follow_output(watch, address, &err);
    if (r < 0)
        return command_status(watch->flags, r, &err);
    if (watch->lost_output) { /* end as the job would if its output were closed */
        cancel_job(watch);
        return 128 + SIGPIPE;
    }
    if (asked_to_stop >= 2) {
        fprintf(stderr, "berth run: left job %" PRIu64 " to itself\n", watch->id);
        return 130;
    }
    return exit_status(watch);
}

static int submit_and_watch(const struct flags *flags, const struct json *body)
{
    struct run_watch watch = { .flags = flags };
    struct json *answer = NULL;
    struct error err;
    int64_t id = 0;
    int status = connection_open(&watch.call, flags);
    if (status)
        return status;
    connection_wait(watch.call, flags, INFINITY); /* as one waits for GPUs */
    int r = call_submit(watch.call, body, flags_get(flags, "idempotency-key"), &answer,
                        &err);
    call_rest(watch.call);
    if (r < 0) {
        call_close(watch.call);
        return command_status(flags, r, &err);
    }
    const char *rejected = json_text_or(answer, "rejected", "");
    json_as_count(json_get(answer, "id"), &id);
    watch.id = (uint64_t)id;
    status = *rejected ? command_wrong(flags, "it can never run: %s", rejected)
                       : watch_job(&watch, flags_get(flags, "socket"));
    json_free(answer);
    call_close(watch.call);
    return status;
}

static int run_run(const struct flags *flags)
{
    struct arena arena;
    struct request_builder builder;
    struct json *body = NULL;
    struct error err;
    if (flags->word_count == 0 && !flags_get(flags, "wrap"))
        return command_wrong(flags, "want a command, a script or a job file");
    arena_init(&arena, 0);
    request_builder_init(&builder, &arena);
    int r = request_source_read(&builder, flags, flags->command->name, &err);
    if (r == 0 && !json_get(builder.fields, "class"))
        json_put_text(builder.fields, "class", "te"); /* the user is waiting for it */
    if (r == 0)
        r = request_builder_body(&builder, &body, &err);
    int status = command_status(flags, r, &err);
    if (status == 0 && json_get(body, "jobs"))
        status = command_wrong(flags, "one job at a time; 'berth submit' takes many");
    else if (status == 0)
        status = submit_and_watch(flags, body);
    if (r == 0)
        json_free(body);
    request_builder_release(&builder);
    arena_release(&arena);
    return status;
}

const struct command command_run = {
    .name = "run",
    .group = "Use",
    .brief = "run a job, show its output, return its exit code",
    .usage = "[flags] [--] CMD…",
    .flags = run_flags,
    .more =
        "Flags stand before the command; what follows is the command's own. Ctrl-C\n"
        "cancels the job; a second one leaves it to itself.",
    .flags_first = true,
    .run = run_run,
};
