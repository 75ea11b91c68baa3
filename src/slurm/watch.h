/*
 * watch.h - what has changed since the last look.
 *
 * Slurm shows everything or nothing; berthd wants to hear what is new.  So each record
 * becomes its line, and a line goes out when it differs from the one before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "slurm/slurm_driver.h"

#define BRIDGE_PARTITIONS_MAX 256

/* A job or a node that was there at the last look. */
struct seen_record {
    uint64_t key;
    uint64_t line; /* a hash of what was said of it */
    uint64_t round;
    uint32_t id; /* of a job; 0: a node */
    char *name;  /* of a node           */
};

struct poll_diff {
    const char *const *partitions; /* those that count; none: all */
    uint32_t partition_count;
    void (*say)(void *self, const struct buf *line);
    void *self;

    struct map places; /* key to an index of 'known' */
    struct seen_record *known;
    uint32_t known_count;
    uint32_t known_room;
    uint64_t round;
    uint32_t said; /* lines since watch_begin() */
    bool synced;
    struct buf line;
    struct arena scratch;
};

void poll_diff_init(struct poll_diff *watch, const char *const *partitions,
                    uint32_t count, void (*say)(void *self, const struct buf *line),
                    void *self);

/* Hand these to the driver's look. */
struct slurm_observer poll_diff_begin(struct poll_diff *watch);

/* Say who is gone, and after the first whole list that it was whole. */
void poll_diff_end(struct poll_diff *watch, const struct slurm_poll *look);

/* Nothing that was said counts any more: the next list is said in full. */
void poll_diff_forget(struct poll_diff *watch);
