/* connection.c - finding berthd, starting it, and asking it. */
#include "cmd/berth/connection.h"

#include <stdlib.h>
#include <string.h>

#include "api/paths.h"
#include "api/patience.h"
#include "api/programs.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cmd/berth/flag_values.h"
#include "cmd/berth/format.h"

#define SYSTEM_AWAY_S 10 /* as long as the system's daemon may take to restart */
#define SAY_AFTER_NS INT64_C(2000000000) /* shorter waits are not worth a word */

/* Say once, after a while, what a command waits for. */
static bool report_waiting(void *context, const char *sentence)
{
    static int64_t since_ns;
    static bool is_said;
    const struct flags *flags = context;
    if (since_ns == 0)
        since_ns = clock_now_ns();
    if (!is_said && clock_now_ns() - since_ns > SAY_AFTER_NS) {
        fprintf(stderr, "berth %s: %s; waiting\n", flags->command->name, sentence);
        is_said = true;
    }
    return true;
}

void connection_wait(struct call *call, const struct flags *flags, double seconds)
{
    struct patience *patience = call_patience(call);
    *patience = (struct patience){ .seconds = seconds,
                                   .wait = report_waiting,
                                   .context = (void *)(uintptr_t)flags };
}

bool connection_find_system(struct call *call, const struct flags *flags)
{
    struct patience patience = { .seconds = SYSTEM_AWAY_S,
                                 .wait = report_waiting,
                                 .context = (void *)(uintptr_t)flags };
    while (!call_answers(call))
        if (!patience_wait(&patience, "this machine's berthd does not answer"))
            return false;
    return true;
}

int connection_open(struct call **ret_call, const struct flags *flags)
{
    struct error err;
    struct call *call = NULL;
    int r = call_open(&call, flags_get(flags, "socket"), &err);
    if (r < 0)
        return command_status(flags, r, &err);
    if (call_is_systems(call) && !connection_find_system(call, flags)) {
        call_close(call);
        return command_failed(flags,
                              "this machine's berthd does not answer at %s; "
                              "'berth up' starts one of your own",
                              PATHS_SYSTEM_SOCKET);
    }
    connection_wait(call, flags, PATIENCE_S);
    const char *no = getenv("BERTH_NO_START");
    if (call_is_standard(call) && !(no && *no) && !call_answers(call)) {
        r = programs_start_berthd(call, NULL, NULL, &err);
        if (r < 0) {
            call_close(call);
            return command_failed(flags, "%s", err.text);
        }
    }
    *ret_call = call;
    return 0;
}

int connection_call(const struct flags *flags, const char *method, const char *path,
                    const struct json *body, struct json **ret)
{
    struct call *call = NULL;
    struct error err;
    int status = connection_open(&call, flags);
    if (status)
        return status;
    int r = call_json(call, method, path, body, ret, &err);
    call_close(call);
    return command_status(flags, r, &err);
}

int connection_get(const struct flags *flags, const char *path, struct json **ret)
{
    return connection_call(flags, "GET", path, NULL, ret);
}

int connection_show(const struct flags *flags, const char *path,
                    void (*print)(const struct json *answer))
{
    struct json *answer = NULL;
    int status = connection_get(flags, path, &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return format_print_json(answer);
    print(answer);
    json_free(answer);
    return 0;
}

/* "5" or "5-9", appended. */
static bool add_ids(const char *word, uint64_t *ids, uint32_t *count)
{
    char first[24];
    uint64_t from, to;
    size_t length = strcspn(word, "-");
    snprintf(first, sizeof first, "%.*s", (int)length, word);
    if (length >= sizeof first || !flag_value_count(first, INT64_MAX, &from) ||
        from == 0)
        return false;
    to = from;
    if (word[length] && !flag_value_count(word + length + 1, INT64_MAX, &to))
        return false;
    if (to < from || to - from >= CONNECTION_IDS_MAX - *count)
        return false;
    for (uint64_t id = from; id <= to; id++)
        ids[(*count)++] = id;
    return true;
}

/* "12_3", a task of an array: berthd knows its number.  0, or an exit status. */
static int find_task(const struct flags *flags, const char *word, uint64_t *ret_id)
{
    char path[80];
    struct json *job = NULL;
    int64_t id = 0;
    snprintf(path, sizeof path, "/v1/jobs/%.40s", word);
    int status = connection_get(flags, path, &job);
    json_as_count(json_get(job, "id"), &id);
    *ret_id = (uint64_t)id;
    json_free(job);
    return status;
}

static bool is_task(const char *word)
{
    size_t array = strspn(word, "0123456789");
    size_t index = word[array] == '_' ? strspn(word + array + 1, "0123456789") : 0;
    return array > 0 && array < 20 && index > 0 && index < 12 &&
           word[array + 1 + index] == '\0';
}

int connection_job_ids(const struct flags *flags, uint64_t **ret_ids,
                       uint32_t *ret_count)
{
    if (flags->word_count == 0)
        return command_wrong(flags, "want the number of a job, or several");
    uint64_t *ids = memory_checked(calloc(CONNECTION_IDS_MAX, sizeof *ids));
    uint32_t count = 0;
    for (uint32_t i = 0; i < flags->word_count; i++) {
        if (add_ids(flags->words[i], ids, &count))
            continue;
        if (is_task(flags->words[i]) && count < CONNECTION_IDS_MAX) {
            int status = find_task(flags, flags->words[i], &ids[count++]);
            if (status == 0)
                continue;
            free(ids);
            return status;
        }
        free(ids);
        return command_wrong(flags, "\"%.60s\" is no job: want a number, or 5-9",
                             flags->words[i]);
    }
    *ret_ids = ids;
    *ret_count = count;
    return 0;
}

int connection_job_id(const struct flags *flags, uint64_t *ret_id)
{
    if (flags->word_count != 1)
        return command_wrong(flags, "want the number of one job");
    if (is_task(flags->words[0]))
        return find_task(flags, flags->words[0], ret_id);
    if (!flag_value_count(flags->words[0], INT64_MAX, ret_id) || *ret_id == 0)
        return command_wrong(flags, "\"%.60s\" is no job: want a number",
                             flags->words[0]);
    return 0;
}

void connection_add_query(struct buf *path, const char *name, const char *value)
{
    buf_print(path, "%c%s=", strchr(path->bytes, '?') ? '&' : '?', name);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
            (*c >= 'A' && *c <= 'Z') || strchr("-_.~,", *c))
            buf_print(path, "%c", *c);
        else
            buf_print(path, "%%%02X", *c);
}
