/* environment.h - the environment that a job is given. */
#pragma once

#include <stdint.h>

struct order;

/* Which of the processes that we start it is for. */
struct place {
    uint32_t rank, rank_count;
    uint16_t port; /* where rank 0 may listen; 0: the job is not a gang */
};

/* What the job asked for and what we add, ended by NULL; free it with one free(). */
char **environment_make(const struct order *order, const char *dir,
                        const struct place *place);
