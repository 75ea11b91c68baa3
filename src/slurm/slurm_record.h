/* slurm_record.h - jobs, nodes and settings of Slurm, in Slurm's spelling. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/bridge_protocol.h"

#define SLURM_NONE UINT32_MAX
/* The end of 2036: only Berth makes a job wait for so long. */
#define SLURM_PARKED_FROM 2114200000

/* A job's share of some nodes: "n[1-2]" and "gpu:v100:2(IDX:0-1)". */
struct slurm_share {
    const char *nodes;
    const char *gres;
};

/*
 * All text is borrowed until the driver's call returns; NULL: none.  Lists of nodes are
 * Slurm's hostlists, times are seconds since 1970 with 0 for none.
 */
struct slurm_job {
    uint32_t id;
    uint32_t array_id;       /* 0: not in an array                                 */
    uint32_t array_task;     /* SLURM_NONE: none, or the record is of many tasks   */
    uint32_t array_limit;    /* how many tasks may run at once; 0: all             */
    const char *array_tasks; /* tasks without a record of their own: "3-9"         */
    uint32_t het_id;         /* the leader of a heterogeneous job; 0: none         */
    const char *name;
    const char *user;
    uint32_t uid;
    const char *partition;
    enum bridge_state state;
    const char *reason;
    uint32_t priority;
    bool completing;
    bool requeue;
    bool batch;
    uint32_t restarts;
    uint32_t exit_code;
    uint32_t signal;
    int64_t submit;
    int64_t start;
    int64_t end;
    int64_t time_limit_s; /* 0: none */
    const char *nodes;
    uint32_t min_nodes;
    uint32_t max_nodes; /* 0: min_nodes */
    uint32_t tasks;
    uint32_t tasks_per_node;
    uint32_t sockets_per_node;
    uint32_t cpus;
    uint64_t mem_mib; /* of a node, or of each CPU */
    bool mem_per_cpu;
    const char
        *tres_per_job; /* "gres:gpu:v100:2,gres:shard:1" and its other spellings */
    const char *tres_per_node;
    const char *tres_per_socket;
    const char *tres_per_task;
    const char *req_nodes;
    const char *exc_nodes;
    const char *features;
    const char *dependency;
    const char *comment;
    const char *admin_comment;
    const char *command; /* the path of its script, as it was submitted */
    const char *folder;  /* where its script starts */
    const char *output;  /* where its batch script writes, expanded */
    const char *errors;  /* NULL: the same                          */
    const struct slurm_share *allocation;
    uint32_t allocation_count;
};

struct slurm_node {
    const char *name;
    const char *partitions; /* "a,b" */
    const char *gres;
    const char *gres_used;
    uint32_t cpus;
    uint64_t mem_mib;
    bool up;    /* it responds and may run jobs      */
    bool drain; /* jobs continue, but none may start */
    const char *reason;
    const char *features; /* active ones: "fast,ib" */
};

/* The settings of a site that matter here; "": not set. */
struct slurm_site {
    char version[32]; /* of slurmctld, "22.05.8"                              */
    char built[32];   /* of the library used to build; "": none */
    char cluster[64];
    char priority_type[64];
    char scheduler[256];
    char submit_plugins[128];
    int64_t kill_wait_s;
    int64_t min_job_age_s;
    bool requeue;
    bool file_append;
};
