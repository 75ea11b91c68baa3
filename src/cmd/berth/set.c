/* set.c - berth set: change a waiting job's settings, or switch to another policy. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/flag_values.h"
#include "cmd/berth/format.h"

static const struct flag set_flags[] = {
    { "class", 0, "te|be", "trial, or best effort" },
    { "weight", 0, "W", "share relative to others" },
    { "deadline", 0, "WHEN", "wants to be done by then" },
    { "grace", 0, "T", "time to leave after the warning" },
    { "steps", 0, "N", "how many steps it makes" },
    { "policy", 'p', "P", "without a job: the policy in office from now on" },
    { "flow", 0, "F", "without a job: whose packets go first" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static int read_job_flags(const struct flags *flags, struct json *body)
{
    const char *class = flags_get(flags, "class"), *grace = flags_get(flags, "grace");
    const char *deadline = flags_get(flags, "deadline");
    struct error err;
    int64_t ns;
    double at;
    if (class && strcmp(class, "te") != 0 && strcmp(class, "be") != 0)
        return command_wrong(flags, "--class is \"%.60s\", want te or be", class);
    if (class)
        json_put_text(body, "class", class);
    if (flags_get(flags, "weight"))
        json_put_number(body, "weight", flags_number(flags, "weight", 1e-6, 1e6, 1));
    if (flags_get(flags, "steps"))
        json_put_number(body, "steps", flags_number(flags, "steps", 0, 1e15, 0));
    if (grace && !units_time(grace, &ns))
        return command_wrong(flags, "--grace is \"%.60s\", want a time like 90s",
                             grace);
    if (grace)
        json_put_number(body, "grace_s", (double)ns * 1e-9);
    if (deadline && flag_value_time(deadline, time(NULL), &at, &err) < 0)
        return command_wrong(flags, "--deadline: %s", err.text);
    if (deadline)
        json_put_number(body, "deadline", at);
    return 0;
}

static int send_change(const struct flags *flags, const char *path,
                       const struct json *body)
{
    struct json *answer = NULL;
    int status = connection_call(flags, "PATCH", path, body, &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return format_print_json(answer);
    json_free(answer);
    return 0;
}

static int set_server(const struct flags *flags, struct json *body)
{
    static const char *const only[] = { "policy", "flow" };
    for (uint32_t i = 0; i < flags->given_count; i++) {
        const char *name = flags->given[i].flag->name;
        if (strcmp(name, "json") != 0 && strcmp(name, "socket") != 0 &&
            strcmp(name, "policy") != 0 && strcmp(name, "flow") != 0)
            return command_wrong(flags, "--%s wants the number of a job", name);
    }
    for (size_t i = 0; i < 2; i++)
        if (flags_get(flags, only[i]))
            json_put_text(body, only[i], flags_get(flags, only[i]));
    return send_change(flags, "/v1/server", body);
}

static int set_job(const struct flags *flags, struct json *body)
{
    uint64_t id;
    char path[64];
    int status = connection_job_id(flags, &id);
    if (status == 0 && (flags_get(flags, "policy") || flags_get(flags, "flow")))
        status = command_wrong(flags, "--policy and --flow are not a job's");
    if (status == 0)
        status = read_job_flags(flags, body);
    if (status == 0 && !json_member(body, NULL, &(const char *){ NULL },
                                    &(const struct json *){ NULL }))
        status = command_wrong(flags, "nothing to set; see 'berth set --help'");
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
    return status ? status : send_change(flags, path, body);
}

static int set_run(const struct flags *flags)
{
    bool server = flags->word_count == 0 &&
                  (flags_get(flags, "policy") || flags_get(flags, "flow"));
    struct json *body = json_new_object();
    int status = server ? set_server(flags, body) : set_job(flags, body);
    json_free(body);
    return status;
}

const struct command command_set = {
    .name = "set",
    .group = "Use",
    .brief = "say something else of a job; put another policy into office",
    .usage = "ID [flags] | [--policy P] [--flow F]",
    .flags = set_flags,
    .run = set_run,
};
