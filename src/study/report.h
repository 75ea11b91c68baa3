/* report.h - the page of a comparison: one HTML file that needs nothing else. */
#pragma once

struct error;
struct json;
struct output;

/*
 * Begin to write a page to 'path', before the work that is to stand in it: whoever may
 * not write there hears it now.  -ENOTSUP where berth was built without its page
 * (-Dweb=disabled, or no Node).
 */
int report_open(struct output *output, const char *path, struct error *err);

/*
 * The page with 'data' in it; web/src/data.ts says what data it reads.  It appears whole
 * or not at all: what stood there before stays until then.  output_release() is the
 * caller's.
 */
int report_write(struct output *output, const struct json *data, struct error *err);
