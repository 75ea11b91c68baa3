/* cancel.c - berth cancel: end jobs, by number or by what they have in common. */
#include <inttypes.h>
#include <stdlib.h>

#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"

static const struct flag cancel_flags[] = {
    { "user", 'u', "NAME", "all jobs of this user" },
    { "name", 'n', "GLOB", "jobs whose name matches: *, ?, [a-z]" },
    { "state", 't', "LIST", "jobs in these states: PENDING, RUNNING, STOPPING, HELD" },
    { "all", 0, NULL, "all jobs that the caller may cancel" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* The fields that flags give; false if there are none. */
static bool put_filters(const struct flags *flags, struct json *body)
{
    static const char *const names[] = { "user", "name", "state" };
    bool any = flags_get(flags, "all") != NULL;
    if (any)
        json_put_flag(body, "all", true);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = flags_get(flags, names[i]);
        if (value)
            json_put_text(body, names[i], value);
        any = any || value;
    }
    return any;
}

/* The request of the words and flags.  0, or an exit status after a message. */
static int build_body(const struct flags *flags, struct json *body)
{
    uint64_t *ids = NULL;
    uint32_t count = 0;
    bool filtered = put_filters(flags, body);
    if (flags->word_count == 0)
        return filtered ? 0
                        : command_wrong(flags, "want the number of a job, or several; "
                                               "or --user, --name, --state, --all");
    if (flags_get(flags, "all"))
        return command_wrong(flags, "--all goes without numbers of jobs");
    int status = connection_job_ids(flags, &ids, &count);
    if (status)
        return status;
    struct json *list = json_new_array();
    for (uint32_t i = 0; i < count; i++)
        json_add_count(list, (int64_t)ids[i]);
    json_put(body, "ids", list);
    free(ids);
    return 0;
}

static void print_jobs(const struct flags *flags, const struct json *answer)
{
    const struct json *jobs = json_get(answer, "jobs");
    for (size_t i = 0; i < json_count(jobs); i++)
        printf("%.0f %s\n", json_number_or(json_item(jobs, i), "id", 0),
               json_text_or(json_item(jobs, i), "state", ""));
    if (json_count(jobs) == 0 && flags->word_count == 0)
        fputs("berth cancel: no job matches\n", stderr);
}

/* Each refused job on a line of its own; 1 if there is one. */
static int report_refused(const struct flags *flags, const struct json *answer)
{
    const struct json *refused = json_get(answer, "refused");
    int status = 0;
    for (size_t i = 0; i < json_count(refused); i++)
        status = command_failed(flags, "%s",
                                json_text_or(json_item(refused, i), "error", ""));
    return status;
}

static int cancel_run(const struct flags *flags)
{
    struct json *answer = NULL;
    struct json *body = json_new_object();
    int status = build_body(flags, body);
    if (status == 0)
        status = connection_call(flags, "POST", "/v1/jobs/cancel", body, &answer);
    json_free(body);
    if (status)
        return status;
    status = report_refused(flags, answer);
    if (flags_get(flags, "json")) {
        format_print_json(answer);
        return status;
    }
    print_jobs(flags, answer);
    json_free(answer);
    return status;
}

const struct command command_cancel = {
    .name = "cancel",
    .group = "Use",
    .brief = "end jobs, or take them out of the queue",
    .usage = "[ID…] [--user U] [--name GLOB] [--state S] [--all] [--json]",
    .flags = cancel_flags,
    .more = "Several numbers may be given, and ranges: 5 7-9. A job has to match every "
            "flag. All\n"
            "are cancelled together, by one request.",
    .run = cancel_run,
};
