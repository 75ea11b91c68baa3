/*
 * slurm.h - jobs on a Slurm cluster, which berth-slurm speaks with.
 *
 * Slurm keeps the jobs, held; we say which of them starts where and who gives way.  What we
 * want of a job and what Slurm says of it are compared whenever either changes, and the next
 * thing to ask for follows from that alone.  So it does not matter who died in between: a
 * request can be repeated, and what is so is asked again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "executor/executor.h"

struct arena;
struct cluster;
struct error;
struct json;
struct launch;
struct launcher_client;
struct outbox;
struct slurm;
struct uv_loop_s;

/* berth-slurm, and what it is told when it starts.  All texts stay where they are. */
struct slurm_program {
    const char *path;
    struct launcher_client *launcher; /* what starts it; NULL: we do                 */
    const char *driver;               /* NULL: the default                           */
    const char *const *partitions;    /* up to a NULL; NULL: all                     */
    const char *bell;                 /* path of a named pipe to make                */
};

/*
 * A job that asks for shards (gres/shard) is one of one GPU that it may share.  Which of them
 * fit on a GPU together is compared as memory is: so much for each shard.
 */
#define SLURM_SHARD_MIB 1024
#define SLURM_SHARDS_MAX 4096 /* of a GPU */

struct slurm_setup {
    struct uv_loop_s *loop;
    struct slurm_program program;
    const struct view *view;
    struct outbox **outbox; /* who feeds the engine swaps them */
    int64_t fence_ns; /* after its node was lost, until a job may start elsewhere */
    const char *heartbeat; /* file to renew while jobs can be placed; NULL: none  */
    uint32_t fail_open_s;  /* after which others take us for away; 0: never       */
    void (*wake)(void *context);
    int64_t (*now_ns)(void *context);
    int (*launch)(void *context, uint64_t id, const struct launch **ret,
                  struct error *err);

    /*
     * Take in a job that is new: its record (docs/internals/slurm.md), and beside that
     *   script          the beginning of its batch script, if it could be read
     *   within          nodes with the features and shards it asks for, "a,b"; absent: any
     *   shards_per_gpu  at most, on any node; 0: none has shards
     *   runs            already: it is held until we have made room for it
     *   reused          its number was that of another job, which is gone
     * 'submitted' follows, or 'rejected'.  -ENOTSUP with the reason: it is left to Slurm;
     * -EBADMSG: it stays held, and its comment says why; -EALREADY: it stays as it is; any
     * other error: it is tried again.
     */
    int (*arrive)(void *context, const struct json *job, struct error *err);

    /* It waits for others as well, as Slurm says it; NULL: no longer. */
    void (*gate)(void *context, uint64_t id, const char *dependency);

    /* It cannot be started: it waits for its owner from now on. */
    void (*set_aside)(void *context, uint64_t id);

    /* There are nodes that the cluster does not have: close, find, open again. */
    void (*outgrown)(void *context);
    void *context;
};

int slurm_open(struct slurm **ret_slurm, const struct slurm_setup *setup,
               struct error *err);

/* Its self is the struct slurm. */
extern const struct executor executor_slurm;

/*
 * What in Slurm makes a job wait, for people: others that have to end, or its owner, who holds
 * it; NULL: nothing.  job_submit.lua writes the second into the comment, since in Slurm every
 * job that waits for us is held.
 */
#define SLURM_WISHES "berth:"
#define SLURM_HELD "held=owner"
const char *slurm_waits_for(const struct json *job);

/* How job_submit.lua marks a job that it has left to Slurm, as there was no heartbeat. */
#define SLURM_LEFT "berth: left to Slurm, as berthd was away"

/*
 * The cluster, as Slurm has it; waits until slurmctld has answered or '*stop'.  'known' is
 * what this brought the last time, or NULL: nodes keep their numbers, those that are gone
 * stay as nodes that are down.  If slurmctld does not answer for some seconds, what is known
 * has to do.  'ret_known' is a copy, to be freed.
 */
int slurm_nodes_find(struct cluster *cluster, struct arena *arena,
                     struct uv_loop_s *loop, const struct slurm_program *program,
                     const char *known, const bool *stop, char **ret_known,
                     struct error *err);
