/*
 * bulk_cancel.h - which jobs one request cancels, as POST /v1/jobs/cancel spells it:
 *
 *   {"ids": [5, "7-9"], "user": "ada", "name": "sweep-*", "state": "PENDING,HELD"}
 *
 * A job has to match every field that is given.  {"all": true} selects every job that the
 * caller may cancel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define CANCEL_IDS_MAX 100000

struct cancel_filter {
    uint64_t *ids; /* in order, each once; NULL: none were given */
    uint32_t id_count;
    const char *user, *name; /* 'name' is a pattern: *, ?, [a-z]; NULL: any */
    uint32_t states;         /* bits; 0: any */
    bool all;
};

/* Texts and ids live in 'arena'.  -EINVAL with "field: what is wrong". */
int cancel_filter_read(struct cancel_filter *filter, struct arena *arena,
                       const char *text, size_t size, struct error *err);

/* Whether it selects by more than ids. */
bool cancel_filter_selects(const struct cancel_filter *filter);
