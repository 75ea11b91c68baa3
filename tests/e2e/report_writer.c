/* report_writer.c - JSON from standard input into a report page: report_writer OUT.html */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "study/report_page.h"

#define DATA_MAX ((size_t)256 << 20)

/* 77: skip, this build has no page. */
int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct buf buf;
    buf_init(&buf, DATA_MAX);
    char chunk[65536];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, stdin)) > 0;)
        buf_add(&buf, chunk, got);

    struct error err;
    struct json *data = NULL;
    struct output output = { 0 };
    int r = json_parse(buf.bytes ? buf.bytes : "", buf.count, &data, &err);
    if (r == 0)
        r = report_page_open(&output, argv[1], &err);
    if (r == 0)
        r = report_page_write(&output, data, &err);
    output_release(&output);
    if (r < 0)
        fprintf(stderr, "report_writer: %s\n", err.text);
    json_free(data);
    buf_release(&buf);
    return r == 0 ? EXIT_SUCCESS : r == -ENOTSUP ? 77 : EXIT_FAILURE;
}
