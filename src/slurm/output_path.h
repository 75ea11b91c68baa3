/* output_path.h - expand the pattern of a job's output file, as sbatch does. */
#pragma once

#include <stdint.h>

struct arena;

struct output_fields {
    uint32_t id, array_id, array_task; /* SLURM_NONE: no task */
    const char *name, *user;
    const char *nodes; /* of its allocation; NULL or "": not known yet */
    const char *folder;
};

/*
 * Expand "%x-%4j.out" to a path relative to the folder.  Unknown placeholders stay as they
 * are.  NULL: the path is too long.
 */
const char *output_path_expand(const char *pattern, const struct output_fields *names,
                               struct arena *scratch);
