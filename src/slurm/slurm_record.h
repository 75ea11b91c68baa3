/* slurm_record.h - a job and a node as a driver saw them, in Slurm's own spelling. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SLURM_NONE UINT32_MAX
#define SLURM_PARKED_FROM \
    2114200000 /* the end of 2036: nobody but us has a job wait for so long */

/* What a job holds on some nodes: "n[1-2]" and "gpu:v100:2(IDX:0-1)". */
struct slurm_held {
    const char *nodes;
    const char *gres;
};

/*
 * All text is borrowed until the driver's call is over; NULL: there is none.  Lists of
 * nodes are Slurm's hostlists, times are seconds since 1970 with 0 for none.
 */
struct slurm_job {
    uint32_t id;
    uint32_t array_id;       /* 0: not of an array                                 */
    uint32_t array_task;     /* SLURM_NONE: none, or this record stands for many   */
    uint32_t array_limit;    /* how many tasks may run at once; 0: all             */
    const char *array_tasks; /* those that have no record of their own: "3-9"      */
    uint32_t het_id;         /* the leader of a heterogeneous job; 0: it is none   */
    const char *name;
    const char *user;
    uint32_t uid;
    const char *partition;
    const char *state;
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
    uint32_t max_nodes; /* 0: as many as it needs at least */
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
    const char *folder;  /* its script starts in */
    const char *output;  /* where its batch script writes; place holders filled in */
    const char *errors;  /* NULL: there as well                                   */
    const struct slurm_held *held;
    uint32_t held_count;
};

struct slurm_node {
    const char *name;
    const char *partitions; /* "a,b" */
    const char *gres;
    const char *gres_used;
    uint32_t cpus;
    uint64_t mem_mib;
    bool up;    /* it answers and may run jobs                        */
    bool drain; /* those that run may go on, but nothing is to start  */
    const char *reason;
    const char *features; /* "fast,ib"; those it has now */
};

/* What a site has set, as far as we care; "": nothing. */
struct slurm_site {
    char version[32]; /* of slurmctld, "22.05.8"                              */
    char built[32];   /* of the library we were built with; "": there is none */
    char cluster[64];
    char priority_type[64];
    char scheduler[256];
    char submit_plugins[128];
    int64_t kill_wait_s;
    int64_t min_job_age_s;
    bool requeue;
    bool file_append;
};
