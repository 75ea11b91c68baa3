/*
 * api_json.h - jobs, nodes and the ledger as JSON, with the keys of docs/api/openapi.yaml.
 *
 * A job comes from the store and, until it ends, from the engine's state as well.  What does
 * not apply is left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"

struct buf;
struct state;

/* Texts are borrowed; NULL, NAN, a time below 0: does not apply. */
struct api_job {
    uint64_t id;
    const char *name, *user, *class, *state, *reason, *types, *entity;
    uint32_t gpus;
    const char *placement; /* JSON */
    int64_t attempt;       /* -1: never started */
    uint32_t preemptions;
    bool has_exit_code;
    int exit_code;
    int64_t submit_ns, start_ns, end_ns, waited_ns, served_ns;
    uint64_t array_id; /* 0: none */
    uint32_t array_index;
    double step, steps, loss, rate_per_s;
    uint64_t beside; /* shares its GPUs with this job; 0: with none */
    double kept;     /* of its speed, beside that one               */

    const char *command; /* JSON; of one job that was asked for by its id */
    const char *cwd, *output;
    bool private; /* another user asks: only the owner sees name, command and progress */
};

/* One object without its closing brace, so that more can be added; then api_write_end(). */
void api_write_job(struct buf *buf, const char *key, const struct api_job *job);
void api_write_end(struct buf *buf);

/* What the state does not know of nodes: asked by callbacks. */
struct api_node_source {
    /* Why a node is down or drained; "": not known. */
    const char *(*reason)(const void *context, node_id node);
    /* How busy a GPU of the node is, in percent; -1: not known. */
    int (*busy)(const void *context, node_id node, uint32_t gpu);
    const void *context;
};

/* An array of nodes, with the jobs on each of their GPUs and what is free. */
void api_write_nodes(struct buf *buf, const char *key, const struct state *state,
                     const struct api_node_source *asked);

/* What one preemption cost and brought. */
struct api_entry {
    int64_t at_ns;
    uint64_t victim, beneficiary; /* beneficiary 0: none in particular */
    const char *rule;
    uint32_t gpus;
    int64_t predicted_cost_ns, pause_ns, load_ns, redo_ns;
    double wait_saved_s; /* NAN: not known yet */
    bool open;
};

void api_write_entry(struct buf *buf, const struct api_entry *entry);

/* The same, seen by its victim. */
void api_write_preempted(struct buf *buf, const struct api_entry *entry);
