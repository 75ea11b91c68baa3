/* report_page.h - the page of a comparison: one HTML file that needs nothing else. */
#pragma once

struct error;
struct json;
struct output;

/*
 * Open the page's file before the runs begin, so that a file that cannot be written is
 * reported at once.  -ENOTSUP if berth was built without its page (-Dweb=disabled, or no
 * Node).
 */
int report_page_open(struct output *output, const char *path, struct error *err);

/*
 * Write the page with 'data' in it; web/src/data.ts says what data it reads.  The file is
 * replaced as a whole or not at all.  The caller calls output_release().
 */
int report_page_write(struct output *output, const struct json *data,
                      struct error *err);
