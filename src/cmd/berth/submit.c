/* submit.c - berth submit: put one or several jobs into the queue. */
#include <inttypes.h>

#include "base/arena.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/request_builder.h"
#include "cmd/berth/request_source.h"

static const struct flag submit_flags[] = {
    REQUEST_BUILDER_FLAGS, { "parsable", 0, NULL, "print the number and nothing else" },
    CONNECTION_KEY_FLAG,   FLAG_JSON,
    CONNECTION_FLAGS,      { 0 },
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
        status = send_request(flags, body);
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
