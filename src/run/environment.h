/* environment.h - the environment that a job is given. */
#pragma once

#include <stdint.h>

struct order;

/* The rank that the environment is for. */
struct rank_place {
    uint32_t rank, rank_count;
    uint16_t port; /* for rank 0 to listen on; 0: the job is not a gang */
};

/* The owner's and our variables, ended by NULL; release it with one free(). */
char **environment_make(const struct order *order, const char *dir,
                        const struct rank_place *place);
