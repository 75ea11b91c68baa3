/*
 * bridge_messages.h - the messages to berthd, a line of JSON each (docs/internals/slurm.md),
 * and generic resources of Slurm: how many GPUs, of which type.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "slurm/slurm_record.h"

struct verb_result;
struct arena;
struct buf;

/* Each writes one whole object into an empty buffer, without the line end. */
void bridge_message_hello(struct buf *line, const struct slurm_site *site,
                          const char *driver, int64_t now_s);
void bridge_message_job(struct buf *line, const struct slurm_job *job,
                        struct arena *scratch);
void bridge_message_node(struct buf *line, const struct slurm_node *node);
void bridge_message_done(struct buf *line, int64_t seq,
                         const struct verb_result *result, const char *text);
void bridge_message_gone(struct buf *line, uint32_t id);
void bridge_message_text(struct buf *line, const char *key, const char *text);
void bridge_message_flag(struct buf *line, const char *key);

#define GRES_INDEX_MAX 64 /* GPUs of a node with an index that is kept */
#define GRES_TYPE_BYTES 48

/*
 * One resource ("gpu", "shard") of one text, summed over its items:
 *     gres:gpu:v100:2   gres/gpu:v100=2   gpu:2   gpu   gpu:v100:2(S:0)
 *     gpu:v100:2(IDX:0-1)   gpu:0(IDX:N/A)   gpu:v100:4(S:0-1),shard:v100:8(S:0-1)
 */
struct gres {
    uint64_t count;
    char type[GRES_TYPE_BYTES]; /* "": none is named                              */
    bool mixed;                 /* several types are named; the first is kept */
    uint64_t indexes;           /* of IDX, a bit each                            */
};

/* 'text' may be NULL.  What cannot be parsed counts as nothing. */
void gres_read(const char *text, const char *name, struct gres *ret_gres);

/* What a whole job requests, from all fields that can say so. */
struct job_gres {
    uint64_t gpus;
    uint64_t gpus_per_node; /* 0: not given */
    char type[GRES_TYPE_BYTES];
    bool mixed;
    uint64_t shards;
};

void gres_of_job(const struct slurm_job *job, struct job_gres *ret_gres);
