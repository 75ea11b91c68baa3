/* bridge_request.h - a request of berthd: a verb and its job, from a line of JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/bridge_protocol.h"

struct arena;
struct error;

#define BRIDGE_LINE_MAX \
    (1u << 20) /* bytes of a line of the protocol, in both directions */
#define BRIDGE_NODES_MAX 16384
#define BRIDGE_COMMENT_MAX 4000

enum signal_target {
    SIGNAL_BATCH, /* the batch shell alone                */
    SIGNAL_STEPS, /* what srun has started                */
    SIGNAL_ALL,   /* both, and the children of the shell  */
};

struct bridge_request {
    int64_t seq; /* -1: none was given */
    enum bridge_verb verb;
    char job[24];      /* "123", or "123_4" for a task of an array */
    const char *nodes; /* "n2,n4"; NULL: none                      */
    uint32_t node_count;
    uint32_t gpus_per_node; /* another number; 0: as submitted */
    uint32_t tasks;
    uint32_t cpus;
    bool unpin;    /* release, hold: clear the nodes it was started on */
    int64_t begin; /* release: not before; 0: now */
    bool theirs;   /* hold: as a user hold, which the owner can release */
    int signal;
    enum signal_target to;
    const char *text;
};

/* The number of the job: 123 of "123_4". */
uint32_t bridge_request_job_id(const struct bridge_request *request);

/*
 * Parse a line.  -EINVAL with the reason; seq is set then too, if it was found.  Text is
 * allocated in the arena.
 */
int bridge_request_read(const char *line, size_t count, struct arena *arena,
                        struct bridge_request *ret_request, struct error *err);
