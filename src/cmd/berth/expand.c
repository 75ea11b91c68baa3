/* expand.c - arrays and grids. */
#include "cmd/berth/expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/request.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/draft.h"

#define TEXT_MAX (1u << 20)

/* One job of many: its index, and which value of each parameter it has. */
struct point {
    const struct draft *draft;
    bool in_array;
    uint32_t index;
    uint32_t values[DRAFT_PARAMS_MAX];
    bool too_long; /* a text was */
};

static const char *value_of(const struct point *point, uint32_t param)
{
    return point->draft->params[param].values[point->values[param]];
}

/* What "{name…" stands for, or NULL; and how long it is with its braces. */
static const char *replacement(const struct point *point, const char *text,
                               char number[16], size_t *ret_length)
{
    const char *end = strchr(text, '}');
    if (!end)
        return NULL;
    size_t length = (size_t)(end - text - 1);
    *ret_length = length + 2;
    for (uint32_t i = 0; i < point->draft->param_count; i++) {
        const char *name = point->draft->params[i].name;
        if (strlen(name) == length && strncmp(name, text + 1, length) == 0)
            return value_of(point, i);
    }
    if (!point->in_array || length != 5 || strncmp(text + 1, "index", 5) != 0)
        return NULL;
    snprintf(number, 16, "%u", point->index);
    return number;
}

static void fill_in(struct point *point, const char *text, struct buf *out)
{
    buf_reset(out);
    buf_text(out, ""); /* there, even if nothing follows */
    while (*text) {
        char number[16];
        size_t length;
        const char *value =
            *text == '{' ? replacement(point, text, number, &length) : NULL;
        if (value)
            buf_text(out, value);
        else
            buf_add(out, text, length = 1);
        text += length;
    }
    point->too_long |= out->full;
}

static void fill_in_field(struct point *point, struct json *job, const char *key,
                          struct buf *scratch)
{
    const char *text = json_as_text(json_get(job, key));
    if (!text || !strchr(text, '{'))
        return;
    fill_in(point, text, scratch);
    json_put_text(job, key, scratch->bytes);
}

static void fill_in_command(struct point *point, struct json *job, struct buf *scratch)
{
    const struct json *words = json_get(job, "command");
    if (!words)
        return;
    struct json *filled = json_new_array();
    for (size_t i = 0; i < json_count(words); i++) {
        const char *word = json_as_text(json_item(words, i));
        fill_in(point, word ? word : "", scratch);
        json_add_text(filled, scratch->bytes);
    }
    json_put(job, "command", filled);
}

/* BERTH_PARAM_LR for "lr": letters and digits in capitals, the rest '_'. */
static void put_variables(const struct point *point, struct json *job)
{
    struct json *env =
        json_get(job, "env") ? json_copy_of(json_get(job, "env")) : json_new_object();
    for (uint32_t i = 0; i < point->draft->param_count; i++) {
        char name[80] = "BERTH_PARAM_";
        size_t at = strlen(name);
        for (const char *c = point->draft->params[i].name; *c; c++)
            name[at++] =
                isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
        name[at] = '\0';
        json_put_text(env, name, value_of(point, i));
    }
    json_put(job, "env", env);
}

/* "train.py lr=1e-3 seed=2", so that a queue of them can be read. */
static void put_name(struct point *point, struct json *job, struct buf *scratch)
{
    const char *name = json_as_text(json_get(job, "name"));
    if (name && strchr(name, '{')) {
        fill_in_field(point, job, "name", scratch);
        return;
    }
    buf_reset(scratch);
    buf_text(scratch, name ? name : "job");
    for (uint32_t i = 0; i < point->draft->param_count; i++)
        buf_print(scratch, " %s=%s", point->draft->params[i].name, value_of(point, i));
    if (scratch->count <= REQUEST_NAME_MAX)
        json_put_text(job, "name", scratch->bytes);
}

static struct json *job_at(struct point *point, struct buf *scratch)
{
    struct json *job = json_copy_of(point->draft->fields);
    if (point->in_array)
        json_put_count(job, "array_index", point->index);
    if (point->draft->array.limit)
        json_put_count(job, "array_limit", point->draft->array.limit);
    fill_in_command(point, job, scratch);
    put_name(point, job, scratch);
    fill_in_field(point, job, "output", scratch);
    fill_in_field(point, job, "error", scratch);
    fill_in_field(point, job, "ckpt_dir", scratch);
    if (point->draft->param_count > 0)
        put_variables(point, job);
    return job;
}

/* To the next point of the grid; false after the last. */
static bool advance(struct point *point)
{
    for (uint32_t i = point->draft->param_count; i-- > 0;) {
        if (++point->values[i] < point->draft->params[i].count)
            return true;
        point->values[i] = 0;
    }
    return false;
}

int expand(const struct draft *draft, struct json **ret_body, struct error *err)
{
    const struct form_array *array = &draft->array;
    uint64_t count = array->count ? array->count : 1;
    for (uint32_t i = 0; i < draft->param_count; i++) {
        count *= draft->params[i].count;
        if (count > FORMS_JOBS_MAX)
            return error_set(err, -EINVAL, "makes more than %d jobs", FORMS_JOBS_MAX);
    }
    if (array->count == 0 && draft->param_count == 0) {
        *ret_body = json_copy_of(draft->fields);
        return 0;
    }
    struct buf scratch;
    buf_init(&scratch, TEXT_MAX);
    struct json *jobs = json_new_array();
    bool too_long = false;
    for (uint32_t a = 0; a < (array->count ? array->count : 1); a++) {
        struct point point = { .draft = draft, .in_array = array->count > 0 };
        point.index = point.in_array ? array->indices[a] : 0;
        do
            json_add(jobs, job_at(&point, &scratch));
        while (advance(&point));
        too_long |= point.too_long;
    }
    buf_release(&scratch);
    struct json *body = json_new_object();
    json_put(body, "jobs", jobs);
    if (too_long) {
        json_free(body);
        return error_set(err, -EINVAL, "a command is longer than %u bytes", TEXT_MAX);
    }
    *ret_body = body;
    return 0;
}
