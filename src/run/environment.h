/* environment.h - the variables of a job's processes. */
#pragma once

#include <stdint.h>

struct launch_order;

/* The rank that the environment is for. */
struct rank_place {
    uint32_t rank, rank_count;
    uint16_t port; /* for rank 0 to listen on; 0: the job is not a gang */
};

/*
 * Make the environment, ended by NULL; release it with one free().  The owner's variables come
 * first, ours last and instead of theirs: a job that was submitted from within another
 * must not connect to the other's supervisor.  'dir' is the attempt's folder.
 */
char **environment_make(const struct launch_order *order, const char *dir,
                        const char *ckpt_dir, const struct rank_place *place);
