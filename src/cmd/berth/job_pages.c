/* job_pages.c - lists of jobs of any length, read and printed page by page. */
#include "cmd/berth/job_pages.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/berth/connection.h"

#define PAGE_JOBS 10000

/* --- as json_print_fine() would print all of them ------------------------------------------ */

/* A value that stands 'depth' blanks to the right. */
static void print_value(const struct json *json, const char *indent)
{
    char *text = json_text_fine(json);
    for (const char *c = text; *c; c++) {
        putchar(*c);
        if (*c == '\n')
            fputs(indent, stdout);
    }
    free(text);
}

static void print_jobs(const struct job_pages *pages, const struct json *jobs)
{
    for (size_t i = 0; i < json_count(jobs); i++) {
        fputs(pages->count + i > 0 ? ",\n    " : "\n    ", stdout);
        print_value(json_item(jobs, i), "    ");
    }
}

/* What the last page says beside its jobs stands behind all of them. */
static void print_others(const struct json *page)
{
    const char *name;
    const struct json *value;
    for (void *at = NULL; (at = json_member(page, at, &name, &value));) {
        if (strcmp(name, "jobs") == 0)
            continue;
        printf(",\n  \"%s\": ", name);
        print_value(value, "  ");
    }
    fputs("\n}\n", stdout);
}

/* --- reading ------------------------------------------------------------------------------- */

static void write_path(const struct job_pages *pages, uint64_t last, struct buf *path)
{
    char text[24];
    uint64_t left = pages->max ? pages->max - pages->count : PAGE_JOBS;
    buf_reset(path);
    buf_text(path, pages->path);
    snprintf(text, sizeof text, "%" PRIu64, left < PAGE_JOBS ? left : PAGE_JOBS);
    connection_add_query(path, "limit", text);
    snprintf(text, sizeof text, "%" PRIu64, last);
    if (last)
        connection_add_query(path, pages->newest_first ? "before" : "after", text);
}

static void read_others(struct job_pages *pages, const struct json *page)
{
    const char *trouble = json_as_text(json_get(page, "trouble"));
    free(pages->trouble);
    pages->trouble = memory_text(trouble);
    pages->history_from = json_number_or(page, "history_from", 0);
}

static void print_page(struct job_pages *pages, const struct json *page, bool is_last)
{
    const struct json *jobs = json_get(page, "jobs");
    if (!pages->json) {
        pages->print(pages->context, jobs);
        return;
    }
    if (pages->count == 0)
        fputs("{\n  \"jobs\": [", stdout);
    print_jobs(pages, jobs);
    if (is_last) {
        fputs(pages->count + json_count(jobs) > 0 ? "\n  ]" : "]", stdout);
        print_others(page);
    }
}

int job_pages_read(struct job_pages *pages, struct call *call)
{
    struct buf path;
    struct error err;
    uint64_t last = 0;
    int r = 0;
    bool more = true;
    buf_init(&path, 1 << 16);
    while (more && r == 0) {
        struct json *page = NULL;
        write_path(pages, last, &path);
        r = call_json(call, "GET", path.bytes, NULL, &page, &err);
        if (r < 0)
            break;
        const struct json *jobs = json_get(page, "jobs");
        size_t count = json_count(jobs);
        pages->is_limited = pages->max && pages->count + count >= pages->max;
        more = count > 0 && json_flag_at(page, "limited") && !pages->is_limited;
        print_page(pages, page, !more);
        read_others(pages, page);
        pages->count += count;
        if (count > 0)
            last = (uint64_t)json_number_or(json_item(jobs, count - 1), "id", 0);
        json_free(page);
    }
    buf_release(&path);
    return command_status(pages->flags, r, &err);
}

void job_pages_release(struct job_pages *pages)
{
    free(pages->trouble);
}
