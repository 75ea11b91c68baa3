/* report.h - the page of a comparison: one HTML file that needs nothing else. */
#pragma once

#include <stdbool.h>

struct error;
struct json;

/* False where berth was built without its page (-Dweb=disabled, or no Node). */
bool report_available(void);

/*
 * Write the page with 'data' in it to 'path'; web/src/data.ts says what data it reads.
 * It appears whole or not at all: what stood there before stays until then.  -ENOTSUP
 * where there is no page to write.
 */
int report_write(const char *path, const struct json *data, struct error *err);
