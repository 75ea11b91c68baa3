/* gres.h - parse generic resources of Slurm: how many GPUs, of which type. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

struct slurm_job;

/* What a whole job requests, from all fields that can say so. */
struct job_gres {
    uint64_t gpus;
    uint64_t gpus_per_node; /* 0: not given */
    char type[GRES_TYPE_BYTES];
    bool mixed;
    uint64_t shards;
};

void gres_of_job(const struct slurm_job *job, struct job_gres *ret_gres);
