/* why.c - berth why: why a job waits, which jobs are ahead, and what would start it. */
#include <inttypes.h>
#include <time.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/expected_times.h"
#include "cmd/berth/terminal.h"

#define AHEAD_SHOWN 12

static const struct flag why_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* Beyond a hundred the jobs ahead are counted and not listed. */
static void print_ahead(const struct json *why)
{
    const struct json *ahead = json_get(why, "ahead");
    size_t count = json_count(ahead) + (size_t)json_count_at(why, "ahead_more");
    if (count == 0)
        return;
    printf("Ahead of it:");
    for (size_t i = 0; i < count && i < AHEAD_SHOWN; i++) {
        int64_t id = 0;
        json_as_count(json_item(ahead, i), &id);
        printf("%s %" PRId64, i ? "," : "", id);
    }
    if (count > AHEAD_SHOWN)
        printf(" and %zu more", count - AHEAD_SHOWN);
    putchar('\n');
}

/* Jobs that could have been preempted for it, by what the cost test said. */
static void print_considered(const struct json *why)
{
    const struct json *considered = json_get(why, "considered");
    if (json_count(considered) > 0)
        printf("Considered for preemption:\n");
    for (size_t i = 0; i < json_count(considered); i++) {
        const struct json *item = json_item(considered, i);
        printf("  job %.0f: wastes %.3g GPU-s, saves %.3g s in all: ",
               json_number_or(item, "job", 0), json_number_or(item, "price_gpu_s", 0),
               json_number_or(item, "benefit_s", 0));
        terminal_print_safely(json_text_or(item, "verdict", ""));
        putchar('\n');
    }
}

static void print_expected(const struct json *why)
{
    const struct json *start = json_get(why, "expected_start");
    struct buf text;
    buf_init(&text, 4096);
    expected_times_explain(&text, start ? "start" : "end",
                           start ? start : json_get(why, "expected_end"),
                           (double)time(NULL));
    if (text.count > 0) {
        terminal_make_safe(text.bytes);
        terminal_print_wrapped(text.bytes, 0, stdout);
    }
    buf_release(&text);
}

static void print_why(const struct json *why)
{
    const struct json *reasons = json_get(why, "reasons");
    const char *change = json_as_text(json_get(why, "smallest_change"));
    bool ever = true;
    json_as_flag(json_get(why, "can_ever_run"), &ever);
    printf("Job %.0f is %s%s\n", json_number_or(why, "id", 0),
           json_text_or(why, "state", ""), ever ? "." : " and can never run here.");
    for (size_t i = 0; i < json_count(reasons); i++) {
        fputs("  - ", stdout);
        terminal_print_safely(json_text_or(json_item(reasons, i), "text", ""));
        putchar('\n');
    }
    print_expected(why);
    print_ahead(why);
    print_considered(why);
    if (change && *change) {
        fputs("What would help: ", stdout);
        terminal_print_safely(change);
        putchar('\n');
    }
}

static int why_run(const struct flags *flags)
{
    uint64_t id;
    char path[64];
    int status = connection_job_id(flags, &id);
    if (status)
        return status;
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/why", id);
    return connection_show(flags, path, print_why);
}

const struct command command_why = {
    .name = "why",
    .group = "Use",
    .brief = "what holds a job back, who is ahead, what would start it and when",
    .usage = "ID [--json]",
    .flags = why_flags,
    .run = why_run,
};
