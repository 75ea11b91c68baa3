/* bridge_request.c - read requests of berthd. */
#include "slurm/bridge_request.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

/* Signals that ask a job to checkpoint; others are refused. */
static const struct {
    const char *name;
    int number;
} signals[] = {
    { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM }, { "INT", SIGINT },
    { "HUP", SIGHUP },   { "CONT", SIGCONT }, { "ALRM", SIGALRM }, { "QUIT", SIGQUIT },
    { "KILL", SIGKILL }, { "URG", SIGURG },
};

uint32_t bridge_request_job_id(const struct bridge_request *request)
{
    return (uint32_t)strtoul(request->job, NULL, 10);
}

static bool read_digits(const char **at)
{
    const char *from = *at;
    while (isdigit((unsigned char)**at))
        (*at)++;
    return *at > from && *at - from <= 10;
}

/* Read a number, or text: "123" or "123_4". */
static int read_job(const struct json *json, struct bridge_request *request,
                    struct error *err)
{
    int64_t id;
    const char *text = json_as_text(json);
    if (json_as_count(json, &id) && id > 0 && id < UINT32_MAX) {
        snprintf(request->job, sizeof(request->job), "%" PRId64, id);
        return 0;
    }
    const char *at = text;
    bool good = text && *text != '0' && read_digits(&at);
    if (good && *at == '_') {
        at++;
        good = read_digits(&at);
    }
    if (!good || *at != '\0' || strtoull(text, NULL, 10) >= UINT32_MAX)
        return error_set(err, -EINVAL, "job: want a number, or \"NUMBER_TASK\"");
    snprintf(request->job, sizeof(request->job), "%s", text);
    return 0;
}

/* Names become parts of hostlists: a comma, bracket or blank would change their meaning. */
static bool is_node_name(const char *name)
{
    if (!name || *name == '\0' || *name == '-' || strlen(name) > 255)
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("-._", *name))
            return false;
    return true;
}

static int read_nodes(const struct json *json, struct arena *arena,
                      struct bridge_request *request, struct error *err)
{
    size_t count = json_count(json);
    if (!json_is_array(json) || count == 0 || count > BRIDGE_NODES_MAX)
        return error_set(err, -EINVAL, "nodes: want a list of 1 to %d names",
                         BRIDGE_NODES_MAX);
    struct buf list;
    buf_init(&list, BRIDGE_LINE_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_as_text(json_item(json, i));
        if (!is_node_name(name)) {
            buf_release(&list);
            return error_set(err, -EINVAL, "nodes: number %zu is no name of a node", i);
        }
        buf_print(&list, "%s%s", i > 0 ? "," : "", name);
    }
    request->nodes = arena_text(arena, list.bytes);
    request->node_count = (uint32_t)count;
    buf_release(&list);
    return 0;
}

/* Read a number that may be absent. */
static int read_number(const struct json *object, const char *key, uint32_t *number,
                       struct error *err)
{
    const struct json *json = json_get(object, key);
    int64_t count;
    if (!json)
        return 0;
    if (!json_as_count(json, &count) || count < 1 || count > 1000000)
        return error_set(err, -EINVAL, "%s: want a number from 1 to 1000000", key);
    *number = (uint32_t)count;
    return 0;
}

static int read_shape(const struct json *object, struct arena *arena,
                      struct bridge_request *request, struct error *err)
{
    int r = read_nodes(json_get(object, "nodes"), arena, request, err);
    if (r == 0)
        r = read_number(object, "gpus_per_node", &request->gpus_per_node, err);
    if (r == 0)
        r = read_number(object, "tasks", &request->tasks, err);
    if (r == 0)
        r = read_number(object, "cpus", &request->cpus, err);
    return r;
}

static int read_signal(const struct json *object, struct bridge_request *request,
                       struct error *err)
{
    const char *name = json_as_text(json_get(object, "signal"));
    const char *to = json_as_text(json_get(object, "to"));
    if (name && strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; name && i < sizeof(signals) / sizeof(signals[0]); i++)
        if (strcmp(name, signals[i].name) == 0)
            request->signal = signals[i].number;
    if (request->signal == 0)
        return error_set(err, -EINVAL, "signal: want a name like \"USR1\"");
    if (to && strcmp(to, "batch") == 0)
        request->to = SIGNAL_BATCH;
    else if (to && strcmp(to, "steps") == 0)
        request->to = SIGNAL_STEPS;
    else if (to && strcmp(to, "all") == 0)
        request->to = SIGNAL_ALL;
    else
        return error_set(err, -EINVAL, "to: want \"batch\", \"steps\" or \"all\"");
    return 0;
}

static int read_comment(const struct json *object, struct arena *arena,
                        struct bridge_request *request, struct error *err)
{
    const char *text = json_as_text(json_get(object, "text"));
    if (!text || strlen(text) > BRIDGE_COMMENT_MAX)
        return error_set(err, -EINVAL, "text: want at most %d bytes of text",
                         BRIDGE_COMMENT_MAX);
    for (const char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at))
            return error_set(err, -EINVAL, "text: has a control character");
    request->text = arena_text(arena, text);
    return 0;
}

static int read_verb_fields(const struct json *object, struct arena *arena,
                            struct bridge_request *request, struct error *err)
{
    if (request->verb == VERB_POLL)
        return 0;
    int r = read_job(json_get(object, "job"), request, err);
    if (r < 0)
        return r;
    switch (request->verb) {
    case VERB_START:
        return read_shape(object, arena, request, err);
    case VERB_SIGNAL:
        return read_signal(object, request, err);
    case VERB_COMMENT:
        return read_comment(object, arena, request, err);
    case VERB_HOLD:
        json_as_flag(json_get(object, "theirs"), &request->theirs);
        json_as_flag(json_get(object, "unpin"), &request->unpin);
        return 0;
    case VERB_RELEASE:
        json_as_flag(json_get(object, "unpin"), &request->unpin);
        if (json_get(object, "begin") &&
            (!json_as_count(json_get(object, "begin"), &request->begin) ||
             request->begin < 1 || request->begin > UINT32_MAX))
            return error_set(err, -EINVAL, "begin: want seconds since 1970");
        return json_get(object, "nodes") ? read_shape(object, arena, request, err) : 0;
    default:
        return 0;
    }
}

static int read_object(const struct json *object, struct arena *arena,
                       struct bridge_request *request, struct error *err)
{
    int64_t seq;
    if (!json_is_object(object))
        return error_set(err, -EINVAL, "want an object on each line");
    if (json_as_count(json_get(object, "seq"), &seq) && seq >= 0)
        request->seq = seq;
    else
        return error_set(err, -EINVAL, "seq: want a number");
    const char *name = json_as_text(json_get(object, "verb"));
    if (!name || !bridge_verb_find(name, &request->verb))
        return error_set(err, -EINVAL, "verb: there is no '%.20s'", name ? name : "");
    return read_verb_fields(object, arena, request, err);
}

int bridge_request_read(const char *line, size_t count, struct arena *arena,
                        struct bridge_request *ret_request, struct error *err)
{
    struct json *object = NULL;
    *ret_request = (struct bridge_request){ .seq = -1 };
    int r = json_parse(line, count, &object, err);
    if (r == 0)
        r = read_object(object, arena, ret_request, err);
    json_free(object);
    return r;
}
