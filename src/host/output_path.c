/* output_path.c - where a job's output goes. */
#include "host/output_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/launch.h"

/* %j job id, %x name, %u user, %A and %a array and index in it, %n node. */
static void expand_one(struct buf *buf, char what, const struct launch *launch,
                       const char *user)
{
    switch (what) {
    case 'j':
        buf_print(buf, "%" PRIu64, launch->id);
        break;
    case 'A':
        buf_print(buf, "%" PRIu64, launch->array_id ? launch->array_id : launch->id);
        break;
    case 'a':
        buf_print(buf, "%" PRIu32, launch->array_index);
        break;
    case 'x':
        buf_text(buf, launch->name ? launch->name : "job");
        break;
    case 'u':
        buf_text(buf, user ? user : "");
        break;
    case 'n':
        buf_text(buf, "0");
        break;
    case '%':
        buf_text(buf, "%");
        break;
    default:
        buf_print(buf, "%%%c", what);
    }
}

int output_path(char path[static PATH_MAX], const char *pattern,
                const struct launch *launch, const char *user, struct error *err)
{
    struct buf buf;
    buf_init(&buf, PATH_MAX);
    if (pattern[0] != '/')
        buf_print(&buf, "%s/", launch->cwd);
    for (const char *at = pattern; *at; at++) {
        if (at[0] == '%' && at[1])
            expand_one(&buf, *++at, launch, user);
        else
            buf_add(&buf, at, 1);
    }
    bool fits = !buf.full && buf.count < PATH_MAX;
    snprintf(path, PATH_MAX, "%s", buf.bytes);
    buf_release(&buf);
    return fits ? 0
                : error_set(err, -ENAMETOOLONG, "output '%.80s': too long", pattern);
}
