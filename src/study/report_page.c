/*
 * report_page.c - writing data into the page, and the page into a file.
 *
 * The data stand in a script element of type application/json.  A "</script>" in a job's
 * name would end that element and what follows would be markup, so every '<' is written
 * as \u003c: the same text to a JSON reader, and no text to an HTML reader.
 */
#include "study/report_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "study/page.h"

static const char marker[] = "@DATA@";

static void put_escaped(const char *text, FILE *file)
{
    for (;;) {
        size_t plain = strcspn(text, "<");
        fwrite(text, 1, plain, file);
        text += plain;
        if (!*text)
            return;
        fputs("\\u003c", file);
        text++;
    }
}

/* Write the page, with the data in place of its marker. */
static void put_page(const char *page, size_t page_count, const struct json *data,
                     FILE *file)
{
    const char *at = memmem(page, page_count, marker, strlen(marker));
    size_t before = at ? (size_t)(at - page) : page_count;
    fwrite(page, 1, before, file);
    if (!at)
        return;

    char *text = json_text(data);
    put_escaped(text, file);
    free(text);
    size_t after = before + strlen(marker);
    fwrite(page + after, 1, page_count - after, file);
}

int report_page_open(struct output *output, const char *path, struct error *err)
{
    size_t page_count;
    *output = (struct output){ 0 };
    if (!page_get(&page_count))
        return error_set(err, -ENOTSUP,
                         "%s: this berth was built without its report page; install "
                         "nodejs and npm, run 'npm ci' in web/ and build again",
                         path);
    return output_open(output, path, err);
}

int report_page_write(struct output *output, const struct json *data, struct error *err)
{
    size_t page_count;
    const char *page = page_get(&page_count);
    put_page(page, page_count, data, output->file);
    return output_commit(output, err);
}
