/*
 * heir.h - who clears up if we are killed.
 *
 * Marks on sockets have no timeout.  A child that does nothing but wait learns of our end
 * by the end of a pipe, whatever brought it about, and takes the marks off the jobs in
 * the will, which lies in memory that both see.
 */
#pragma once

#include <stdint.h>

#include "flowd/mark_target.h"
#include "flowd/desired.h"

struct error;
struct heir;

/* A job in the will; the name of its cgroup lies beside it. */
struct bequest {
    struct mark_target target;
    uint64_t start; /* of its first process */
    char name[DESIRED_CGROUP_MAX];
};

/* 'inherit' is called in the child, if at all, and is the last thing it does. */
int heir_new(struct heir **ret_heir,
             void (*inherit)(void *context, struct bequest *list, uint32_t count),
             void *context, struct error *err);

/*
 * Write the will: begin, all jobs, end.  Between begin and end the list is empty.  A
 * child that was killed itself is replaced.
 */
void heir_begin(struct heir *heir);
void heir_add(struct heir *heir, const struct mark_target *target, uint64_t start);
void heir_end(struct heir *heir);

/* Nothing is left to clear up: it just goes. */
void heir_free(struct heir *heir);
