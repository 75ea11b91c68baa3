/*
 * request_builder.h - builds the request of a submission from the lines of a script or a job
 * file, and then from flags, which take precedence.  The result is one request, or one per
 * index of an array and point of a grid.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/berth/command.h"
#include "cmd/berth/flag_values.h"

struct arena;
struct error;
struct json;

#define REQUEST_BUILDER_PARAMS_MAX 16

/* The flags themselves, for the commands' tables. */
#define REQUEST_BUILDER_FLAGS \
    { "job-name", 'J', "NAME", "what it is called" }, \
        { "gpus", 'G', "[TYPE:]N", "accelerators of the whole job; 0" }, \
        { "gpus-per-node", 0, "[TYPE:]N", "the same, on each of its nodes" }, \
        { "gres", 0, "gpu[:TYPE]:N", "the same, in another spelling" }, \
        { "constraint", 'C', "T|T", "types of accelerator it may use" }, \
        { "min-gpus", 0, "N", "may be shrunk to so many" }, \
        { "max-gpus", 0, "N", "may be grown to so many" }, \
        { "nodes", 'N', "N", "on exactly so many nodes" }, \
        { "ntasks", 'n', "N", "processes, for which it wants CPUs; 1" }, \
        { "ntasks-per-node", 0, "N", "ranks that Berth starts on each node" }, \
        { "cpus-per-task", 'c', "N", "CPUs for each of them; 1" }, \
        { "mem", 0, "SIZE", "memory on each node: 512M, 20G" }, \
        { "mem-per-cpu", 0, "SIZE", "memory for each CPU" }, \
        { "mem-per-gpu", 0, "SIZE", "memory for each accelerator" }, \
        { "time", 't', "T", "longest run: 30 (minutes), 1:00:00, 1-12:00:00, 2h" }, \
        { "array", 'a', "LIST", "one job per index: 0-9, 1,3,5, 0-20:5, 0-99%4" }, \
        { "param", 0, "K=V,V…", "one job per value; several: per combination" }, \
        { "dependency", 'd', "LIST", "afterok:ID[:ID…],afterany:ID, singleton" }, \
        { "begin", 'b', "WHEN", "not before: now+1hour, 16:30, 2031-02-28T16:30" }, \
        { "deadline", 0, "WHEN", "wants to be done by then" }, \
        { "hold", 'H', NULL, "waits until it is released" }, \
        { "chdir", 'D', "DIR", "runs in this folder; the present one" }, \
        { "output", 'o', "FILE", "its output; %j id, %x name, %u user, %A %a array" }, \
        { "error", 'e', "FILE", "its errors; with its output" }, \
        { "export", 0, "LIST", "variables it sees: ALL, NONE, or A,B=value; ALL" }, \
        { "wrap", 0, "LINE", "runs this line by a shell" }, \
        { "signal", 0, "[B:]S[@T]", "asks it to stop; T seconds before the limit" }, \
        { "requeue", 0, NULL, "goes back to the queue if its node fails" }, \
        { "no-requeue", 0, NULL, "does not" }, \
        { "retries", 0, "N", "starts again after its own failure; 0" }, \
        { "class", 0, "te|be", "trial: somebody waits for it; best effort: yields" }, \
        { "grace", 0, "T", "time to leave after the warning; 60s" }, \
        { "cost-pause", 0, "T", "how long it takes to save its state" }, \
        { "cost-load", 0, "T", "how long from its start to its first step" }, \
        { "ckpt-every", 0, "T", "saves by itself so often" }, \
        { "ckpt-dir", 0, "DIR", "where it saves; one of Berth's own" }, \
        { "steps", 0, "N", "how many steps it makes" }, \
        { "pattern", 0, "REGEX", "finds (step) and (loss) in its output" }, \
        { "kind", 0, "KIND", \
          "row of the throughput table, or a name for jobs alike" }, \
        { "step-time", 0, "T", "time of a step on the fastest GPU type" }, \
        { "shared", 0, NULL, "may share its GPUs with another job" }, \
        { "gpu-memory", 0, "SIZE", "memory that it needs of each GPU" }, \
        { "weight", 0, "W", "share relative to others; 1" }, \
        { "entity", 0, "NAME", "group for sharing" }, \
    { \
        "slurm-names", 0, NULL, "wants the usual SLURM_* variables" \
    }

struct request_builder {
    struct arena *arena;
    struct json *fields; /* of the request so far                              */
    struct json *lines;  /* their line numbers in a job file, or NULL          */
    const char *file;    /* the job file or script, or NULL                    */

    /* Kept until all flags are known, since fields depend on several of them. */
    bool gpus_given, gpus_per_node;
    uint32_t gpus;
    const char *type;
    uint32_t ntasks, cpus_per_task; /* 0: not given */
    uint64_t mem_bytes;             /* 0: not given */
    char mem_per;                   /* 'n'ode, 'c'pu or 'g'pu */
    const char *exports;            /* NULL: ALL   */
    const char *wrap;
    struct flag_value_array array;
    struct flag_value_param params[REQUEST_BUILDER_PARAMS_MAX];
    uint32_t param_count;
};

void request_builder_init(struct request_builder *builder, struct arena *arena);
void request_builder_release(struct request_builder *builder);

/* Apply a flag of REQUEST_BUILDER_FLAGS; the error is "--flag: …".  Others are ignored. */
int request_builder_set(struct request_builder *builder, const char *flag,
                        const char *value, struct error *err);

/* The body to send, checked: a request, or {"jobs": […]}.  The caller frees it. */
int request_builder_body(struct request_builder *builder, struct json **ret_body,
                         struct error *err);
