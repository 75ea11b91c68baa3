/* hostlist.h - expand Slurm's lists of nodes: "n[1-3,07],login". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

#define HOSTLIST_MAX 65536 /* names in one list */

/* The names in the order of the text, allocated in the arena. */
struct hostlist {
    const char **names;
    uint32_t count;
};

/* -EINVAL: it is no such list; -E2BIG: it has too many names. */
int hostlist_expand(const char *text, struct arena *arena, struct hostlist *ret_list,
                    struct error *err);

/* Whether two lists have the same names, in any order; false: one is NULL or malformed. */
bool hostlist_same(const char *a, const char *b, struct arena *scratch);
