/* submit.c - berth submit: put one or several jobs into the queue. */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/arena.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/expected_times.h"
#include "cmd/berth/request_builder.h"
#include "cmd/berth/request_source.h"
#include "cmd/berth/terminal.h"

static const struct flag submit_flags[] = {
    REQUEST_BUILDER_FLAGS,
    { "parsable", 0, NULL, "print the number and nothing else" },
    { "dry-run", 0, NULL, "submit nothing; print where and when it would start" },
    CONNECTION_KEY_FLAG,
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* Consecutive ids are printed as one range. */
static void print_ids(const struct json *ids)
{
    int64_t first = 0, last = 0, id;
    for (size_t i = 0; i <= json_count(ids); i++) {
        if (!json_as_count(json_item(ids, i), &id))
            id = 0; /* the end */
        if (last != 0 && id == last + 1) {
            last = id;
            continue;
        }
        if (last != 0 && first == last)
            printf("%" PRId64 "\n", first);
        else if (last != 0)
            printf("%" PRId64 "-%" PRId64 "\n", first, last);
        first = last = id;
    }
}

static int print_answer(const struct flags *flags, struct json *answer)
{
    const char *rejected = json_as_text(json_get(answer, "rejected"));
    const struct json *ids = json_get(answer, "ids");
    bool plain = flags_get(flags, "parsable") != NULL;
    int64_t id = 0;
    if (rejected && *rejected) { /* no number: nothing that the caller could wait for */
        int wrong = command_wrong(flags, "it can never run: %s", rejected);
        json_free(answer);
        return wrong;
    }
    if (flags_get(flags, "json"))
        json_print(answer, stdout, true);
    else if (ids && plain)
        for (size_t i = 0; i < json_count(ids); i++)
            printf("%" PRId64 "\n", json_as_count(json_item(ids, i), &id) ? id : 0);
    else if (ids)
        print_ids(ids);
    else if (json_as_count(json_get(answer, "id"), &id))
        printf("%" PRId64 "\n", id);
    json_free(answer);
    return 0;
}

static int send_request(const struct flags *flags, const struct json *body)
{
    struct json *answer = NULL;
    struct call *call = NULL;
    struct error err;
    int status = connection_open(&call, flags);
    if (status)
        return status;
    int r = call_submit(call, body, flags_get(flags, "idempotency-key"), &answer, &err);
    call_close(call);
    return r < 0 ? command_status(flags, r, &err) : print_answer(flags, answer);
}

/* --- without submitting: where and when it would start --- */

static void print_safe_line(const char *before, const char *text)
{
    fputs(before, stdout);
    terminal_print_safely(text);
    putchar('\n');
}

/* " on n1 (v100 0,1), n2 (v100 3)" */
static void print_placement(const struct json *placement)
{
    for (size_t i = 0; i < json_count(placement); i++) {
        const struct json *part = json_item(placement, i);
        const struct json *gpus = json_get(part, "gpus");
        printf("%s%s", i ? ", " : " on ", json_text_at(part, "node"));
        if (json_count(gpus) > 0)
            printf(" (%s", json_text_at(part, "type"));
        for (size_t g = 0; g < json_count(gpus); g++) {
            int64_t gpu = 0;
            json_as_count(json_item(gpus, g), &gpu);
            printf("%c%" PRId64, g ? ',' : ' ', gpu);
        }
        if (json_count(gpus) > 0)
            putchar(')');
    }
    putchar('\n');
}

static void print_start(const struct json *answer)
{
    char start[EXPECTED_TIMES_LENGTH];
    const char *reason = json_text_at(answer, "reason");
    if (json_flag_at(answer, "now")) {
        fputs("would start now", stdout);
        print_placement(json_get(answer, "placement"));
        return;
    }
    expected_times_format(start, sizeof start, "would start ",
                          json_get(answer, "start"), (double)time(NULL),
                          terminal_has_utf8(stdout));
    puts(*start ? start : "would wait; when it would start cannot be said");
    if (*reason)
        print_safe_line("reason: ", reason);
}

static void print_victims(const struct json *victims)
{
    for (size_t i = 0; i < json_count(victims); i++) {
        const struct json *victim = json_item(victims, i);
        double price = json_number_or(victim, "price_gpu_s", NAN);
        printf("would preempt job %.0f", json_number_or(victim, "job", 0));
        if (!isnan(price))
            printf(" (price %.3g GPU-s)", price);
        putchar('\n');
    }
}

/* It would be refused now: these limits of its user have been reached. */
static bool print_limits(const struct json *limits)
{
    for (size_t i = 0; i < json_count(limits); i++)
        print_safe_line("would be refused: ",
                        json_text_at(json_item(limits, i), "text"));
    return json_count(limits) > 0;
}

static int print_dry_run(const struct flags *flags, const struct json *answer)
{
    if (!json_flag_at(answer, "can_ever_run"))
        return command_wrong(flags, "it can never run: %s",
                             json_text_at(answer, "reason"));
    if (flags_get(flags, "json")) {
        json_print_fine(answer, stdout);
        return 0;
    }
    if (!print_limits(json_get(answer, "limits"))) {
        print_start(answer);
        print_victims(json_get(answer, "preempts"));
    }
    return 0;
}

static int ask_dry_run(const struct flags *flags, const struct json *body)
{
    struct json *answer = NULL;
    int status = connection_call(flags, "POST", "/v1/jobs?dry_run=true", body, &answer);
    if (status == 0)
        status = print_dry_run(flags, answer);
    json_free(answer);
    return status;
}

static int refuse_dry_run(const struct flags *flags, const struct json *body)
{
    if (flags_get(flags, "parsable"))
        return command_wrong(flags, "--dry-run submits nothing, so --parsable has no "
                                    "number to print");
    if (json_get(body, "jobs"))
        return command_wrong(flags,
                             "--dry-run tells of one job: leave out the array or "
                             "the grid");
    return 0;
}

/* --- the command --- */

static int submit_body(const struct flags *flags, const struct json *body)
{
    if (!flags_get(flags, "dry-run"))
        return send_request(flags, body);
    int status = refuse_dry_run(flags, body);
    return status ? status : ask_dry_run(flags, body);
}

static int submit_run(const struct flags *flags)
{
    struct arena arena;
    struct request_builder builder;
    struct json *body = NULL;
    struct error err;
    if (flags->word_count == 0 && !flags_get(flags, "wrap"))
        return command_wrong(flags, "want a command, a script, a job file or -");
    arena_init(&arena, 0);
    request_builder_init(&builder, &arena);
    int r = request_source_read(&builder, flags, flags->command->name, &err);
    if (r == 0)
        r = request_builder_body(&builder, &body, &err);
    int status = command_status(flags, r, &err);
    if (status == 0) {
        status = submit_body(flags, body);
        json_free(body);
    }
    request_builder_release(&builder);
    arena_release(&arena);
    return status;
}

const struct command command_submit = {
    .name = "submit",
    .group = "Use",
    .brief = "put a job into the queue and print its number",
    .usage = "[flags] [--] CMD… | SCRIPT | FILE.yaml | -",
    .flags = submit_flags,
    .more = "Flags stand before the command; what follows is the command's own. "
            "#SBATCH and\n"
            "#BERTH lines in a script are read; flags win over them.",
    .flags_first = true,
    .run = submit_run,
};
