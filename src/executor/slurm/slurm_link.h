/*
 * slurm_link.h - berth-slurm as a process beside us: lines of JSON to it and from it.
 *
 * It is started again whenever it ends, after a while that grows.  What the lines mean is
 * in docs/internals/slurm.md.
 */
#pragma once

#include <stdint.h>

#include "executor/slurm/slurm.h"

struct buf;
struct error;
struct json;
struct slurm_link;
struct uv_loop_s;

struct slurm_link_setup {
    struct uv_loop_s *loop;
    struct slurm_program program;

    /* It said something. */
    void (*line)(void *context, const struct json *word);

    /* It has ended; what it knew and what it was asked for is gone. */
    void (*broken)(void *context);
    void *context;
};

int slurm_link_open(struct slurm_link **ret_link, const struct slurm_link_setup *setup,
                    struct error *err);

/* It ends by itself when it has done what it was asked for.  The loop has to run on. */
void slurm_link_close(struct slurm_link *link);

/* Send a request; lost while there is no connection. */
void slurm_link_say(struct slurm_link *link, const struct buf *line);
