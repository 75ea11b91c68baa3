/* bridge.h - a berth-slurm of one's own, for a few questions (docs/internals/slurm.md). */
#pragma once

#include <stdint.h>

struct error;
struct json;

struct bridge {
    int pid;
    int in, out;
    char *line; /* what has come and is not taken yet */
    uint32_t count, room;
    int64_t end_ms; /* patience */
};

/* 'words' are its arguments, up to a NULL. */
int bridge_open(struct bridge *bridge, const char *const *words, int patience_ms,
                struct error *err);
void bridge_close(struct bridge *bridge);

int bridge_say(struct bridge *bridge, const struct json *word, struct error *err);

/* The next line; the caller frees it.  -ETIMEDOUT, -EPIPE: it has ended. */
int bridge_hear(struct bridge *bridge, struct json **ret_word, struct error *err);

/* From now on wait so long. */
void bridge_patience(struct bridge *bridge, int patience_ms);
