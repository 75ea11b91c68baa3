/* logs.c - berth logs: a job's output so far, or until it ends. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"

#define TAIL_MAX (64u << 20) /* bytes kept to find the last lines in */

static const struct flag logs_flags[] = {
    { "follow", 'f', NULL, "stay until the job has ended" },
    { "lines", 'n', "N", "only the last N lines" },
    { "error", 'e', NULL, "its errors, where they have a file of their own" },
    CONNECTION_FLAGS,
    { 0 },
};

struct log_tail {
    struct buf tail; /* the end of the output so far */
    uint64_t bytes;
};

static bool print_bytes(void *context, const char *bytes, size_t count)
{
    return fwrite(bytes, 1, count, stdout) == count && fflush(stdout) == 0;
}

static bool keep_tail(void *context, const char *bytes, size_t count)
{
    struct log_tail *reading = context;
    reading->bytes += count;
    struct buf *tail = &reading->tail;
    if (tail->count + count > tail->count_max) { /* drop the older half */
        size_t half = tail->count / 2;
        memmove(tail->bytes, tail->bytes + half, tail->count - half);
        tail->count -= half;
    }
    buf_add(tail, bytes, count);
    return true;
}

static void print_last(const struct buf *tail, uint64_t lines)
{
    size_t at = tail->count;
    if (at > 0 && tail->bytes[at - 1] == '\n')
        at--;
    for (; at > 0; at--)
        if (tail->bytes[at - 1] == '\n' && --lines == 0)
            break;
    if (tail->count > 0)
        fwrite(tail->bytes + at, 1, tail->count - at, stdout);
    fflush(stdout);
}

static int stream_log(struct call *call, uint64_t id, const struct flags *flags,
                      uint64_t offset, bool follow,
                      bool (*take)(void *, const char *, size_t), void *context,
                      struct error *err)
{
    char path[128];
    snprintf(path, sizeof path,
             "/v1/jobs/%" PRIu64 "/log?stream=%s&offset=%" PRIu64 "%s", id,
             flags_get(flags, "error") ? "err" : "out", offset,
             follow ? "&follow=true" : "");
    struct call_stream through = { .take = take, .context = context };
    return call_stream(call, path, &through, err);
}

static int logs_run(const struct flags *flags)
{
    uint64_t id;
    struct call *call = NULL;
    struct error err;
    struct log_tail reading = { .bytes = 0 };
    int status = connection_job_id(flags, &id);
    uint64_t lines = flags_count(flags, "lines", 1, 1000000, 0);
    bool follow = flags_get(flags, "follow") != NULL;
    if (status == 0)
        status = connection_open(&call, flags);
    if (status)
        return status;
    int r = 0;
    buf_init(&reading.tail, TAIL_MAX);
    if (lines) {
        r = stream_log(call, id, flags, 0, false, keep_tail, &reading, &err);
        print_last(&reading.tail, lines);
    }
    if (r == 0 && (follow || !lines))
        r = stream_log(call, id, flags, reading.bytes, follow, print_bytes, NULL, &err);
    buf_release(&reading.tail);
    call_close(call);
    return command_status(flags, r, &err);
}

const struct command command_logs = {
    .name = "logs",
    .group = "Use",
    .brief = "a job's output, as it is or as it comes",
    .usage = "[-f] ID",
    .flags = logs_flags,
    .run = logs_run,
};
