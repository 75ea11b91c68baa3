/* hostlist.h - Slurm's short way to write many nodes: "n[1-3,07],login". */
#pragma once

#include <stdint.h>

struct arena;
struct error;

#define HOSTLIST_MAX 65536 /* names in one list */

/* The names in the order in which they are written; they live in the arena. */
struct hostlist {
    const char **names;
    uint32_t count;
};

/* -EINVAL where it is no such list, -E2BIG where it stands for too many. */
int hostlist_expand(const char *text, struct arena *arena, struct hostlist *ret_list,
                    struct error *err);
