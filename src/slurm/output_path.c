/* output_path.c - expand the pattern of a job's output file, as sbatch does. */
#include "slurm/output_path.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "slurm/hostlist.h"
#include "slurm/slurm_record.h"

#define WIDTH_MAX 10 /* Slurm's limit */

static void add_number(struct buf *path, uint32_t number, int width)
{
    buf_print(path, "%0*" PRIu32, width, number);
}

/* Add the first node, where the batch script runs. */
static bool add_node(struct buf *path, const char *nodes, struct arena *scratch)
{
    struct hostlist list;
    if (!nodes || !*nodes || hostlist_expand(nodes, scratch, &list, NULL) < 0 ||
        list.count == 0)
        return false;
    buf_text(path, list.names[0]);
    return true;
}

/* Add the value of one placeholder; false: it is not known. */
static bool add_placeholder(struct buf *path, char what, int width,
                            const struct output_fields *names, struct arena *scratch)
{
    switch (what) {
    case 'j':
    case 'J':
        add_number(path, names->id, width);
        return true;
    case 'A':
        add_number(path, names->array_id ? names->array_id : names->id, width);
        return true;
    case 'a':
        if (names->array_task == SLURM_NONE)
            return false;
        add_number(path, names->array_task, width);
        return true;
    case 'x':
        buf_text(path, names->name ? names->name : "");
        return true;
    case 'u':
        buf_text(path, names->user ? names->user : "");
        return true;
    case 'N':
        return add_node(path, names->nodes, scratch);
    case 'n':
    case 't': /* of the batch script: always 0 */
        add_number(path, 0, width);
        return true;
    case '%':
        buf_text(path, "%");
        return true;
    default:
        return false;
    }
}

const char *output_path_expand(const char *pattern, const struct output_fields *names,
                               struct arena *scratch)
{
    struct buf path;
    buf_init(&path, PATH_MAX);
    buf_text(&path, "");
    if (pattern[0] != '/' && names->folder)
        buf_print(&path, "%s/", names->folder);
    bool plain = strchr(pattern, '\\') != NULL; /* then sbatch expands nothing */
    for (const char *at = pattern; *at; at++) {
        char *end = NULL;
        long width = at[0] == '%' && isdigit((unsigned char)at[1])
                         ? strtol(at + 1, &end, 10)
                         : 0;
        const char *what = end ? end : at + 1;
        if (at[0] == '%' && *what && !plain &&
            add_placeholder(&path, *what, (int)(width < WIDTH_MAX ? width : WIDTH_MAX),
                            names, scratch))
            at = what;
        else if (!plain || at[0] != '\\')
            buf_add(&path, at, 1);
    }
    const char *name = path.full ? NULL : arena_text(scratch, path.bytes);
    buf_release(&path);
    return name;
}
