/* output_path.h - where a job's output goes, from the pattern its owner gave. */
#pragma once

#include <stdint.h>

struct arena;

struct output_fields {
    uint32_t id, array_id, array_task; /* SLURM_NONE: it is no task */
    const char *name, *user;
    const char *nodes; /* it runs on; NULL or "": not known yet */
    const char *folder;
};

/*
 * "%x-%4j.out" to a path, as sbatch reads it; relative to the folder.  What the names do not
 * say stays as it is.  NULL: it has no end, or is too long.
 */
const char *output_path_expand(const char *pattern, const struct output_fields *names,
                               struct arena *scratch);
