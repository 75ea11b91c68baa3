/* change.c - berth hold and release: one change for several jobs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"

static const struct flag change_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* A job that cannot be changed does not keep the others from being changed. */
static int change_each(const struct flags *flags, struct call *call,
                       const uint64_t *ids, uint32_t count, struct json *done)
{
    struct json *body = json_new_object();
    int status = 0;
    json_put_flag(body, "hold", strcmp(flags->command->name, "hold") == 0);
    for (uint32_t i = 0; i < count; i++) {
        char path[64];
        struct json *answer;
        struct error err;
        snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, ids[i]);
        int r = call_json(call, "PATCH", path, body, &answer, &err);
        if (r < 0) {
            status = command_status(flags, r, &err);
            continue;
        }
        struct json *row = json_new_object();
        json_put_count(row, "id", (int64_t)ids[i]);
        json_put_text(row, "state", json_text_or(answer, "state", ""));
        json_add(done, row);
        json_free(answer);
    }
    json_free(body);
    return status;
}

static int change_run(const struct flags *flags)
{
    uint64_t *ids;
    uint32_t count;
    struct call *call = NULL;
    int status = connection_job_ids(flags, &ids, &count);
    if (status)
        return status;
    status = connection_open(&call, flags);
    if (status == 0) {
        struct json *done = json_new_array();
        status = change_each(flags, call, ids, count, done);
        call_close(call);
        if (flags_get(flags, "json")) {
            struct json *root = json_new_object();
            json_put(root, "jobs", done);
            format_print_json(root);
        } else {
            for (size_t i = 0; i < json_count(done); i++)
                printf("%.0f %s\n", json_number_or(json_item(done, i), "id", 0),
                       json_text_or(json_item(done, i), "state", ""));
            json_free(done);
        }
    }
    free(ids);
    return status;
}

const struct command command_hold = {
    .name = "hold",
    .group = "Use",
    .brief = "keep waiting jobs from starting",
    .usage = "ID… [--json]",
    .flags = change_flags,
    .more = "Several numbers may be given, and ranges: 5 7-9.",
    .run = change_run,
};

const struct command command_release = {
    .name = "release",
    .group = "Use",
    .brief = "let held jobs start",
    .usage = "ID… [--json]",
    .flags = change_flags,
    .more = "Several numbers may be given, and ranges: 5 7-9.",
    .run = change_run,
};
