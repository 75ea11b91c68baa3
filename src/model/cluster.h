/* cluster.h - nodes, GPUs, their types, racks; from YAML, preset or short hand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/job.h"

struct arena;
struct error;
struct yaml_file;

#define NODE_GPUS_MAX 64
#define NODES_MAX 1000000
#define TYPE_NONE TYPES_MAX /* a node without accelerators */

struct accelerator {
    const char *name;
    double usd_per_hour;    /* 0: not known                          */
    double speed;           /* of jobs without a throughput row; 1   */
    uint32_t gpu_count;     /* in the whole cluster                  */
    uint32_t node_gpus_max; /* on the largest node                   */
    uint32_t
        gpu_shards; /* parts of one that jobs ask Slurm for (gres/shard); 0: none */
};

struct node {
    uint32_t type; /* index of its accelerators, or TYPE_NONE */
    uint32_t gpu_count;
    uint32_t cpu_milli;
    uint32_t mem_mib;
    uint32_t rack;
    uint64_t link_bps;
};

/* Nodes that are alike, counted once: "can this ever fit" asks these. */
struct shape {
    struct node node;
    uint32_t count;
};

/* A group of people, or a user, with a claim of its own. */
struct entity {
    const char *name;
    double weight; /* relative to other entities                               */
    bool fifo;     /* its first job gets its share; otherwise its jobs share it */
};

#define ENTITIES_MAX 1000 /* that a cluster may name */

struct cluster {
    const char *name;
    struct accelerator types[TYPES_MAX];
    uint32_t type_count;
    struct node *nodes;
    const char **node_names; /* NULL: n0, n1, … */
    uint32_t node_count;
    uint32_t gpu_count;
    uint32_t rack_count;
    double oversubscription; /* of the racks' uplinks; 1: none */
    bool first_fit;          /* fill the first node that fits, not the tightest */
    struct shape *shapes;
    uint32_t shape_count;
    struct entity
        *entities; /* those the file names: job.entity is a place here, plus 1;
                                further ones that jobs name have weight 1 */
    uint32_t entity_count;
    struct entity *users; /* the same of users: job.user is a place here, plus 1 */
    uint32_t user_count;
};

/*
 * 'text' is a preset's name, a YAML file, or short hand: "v100:36,p100:36" (GPUs, one
 * per node) or "4xv100:8" (four nodes of eight).  Lives in 'arena'.
 */
int cluster_load(struct cluster *cluster, struct arena *arena, const char *text,
                 struct error *err);

/* A YAML file that is in memory already, as if it were a file of that name. */
int cluster_parse(struct cluster *cluster, struct arena *arena, const char *name,
                  const void *bytes, size_t count, struct error *err);

/*
 * Read the list 'entities' of a file: groups by 'name' and users by 'user', with their weights.
 * Sets no other members.
 */
int cluster_read_entities(struct cluster *cluster, struct arena *arena,
                          const struct yaml_file *file, struct error *err);

/* Build one piece by piece: begin, add nodes, end. */
void cluster_begin(struct cluster *cluster, struct arena *arena, const char *name,
                   uint32_t node_max);
/* Index of the type of that name, added if it is new; TYPES_MAX when there are too many. */
uint32_t cluster_type(struct cluster *cluster, struct arena *arena, const char *name);
void cluster_add(struct cluster *cluster, const struct node *node);
void cluster_end(struct cluster *cluster, struct arena *arena);

/* "n3", or the name that the YAML file gives. */
const char *cluster_node_name(const struct cluster *cluster, node_id node, char *text,
                              unsigned size);

/* The node of that name, or NODE_NONE: each is looked at. */
node_id cluster_find_node(const struct cluster *cluster, const char *name);

/* Types named in "v100|p100", as bits; unknown names have none. */
uint32_t cluster_types_named(const struct cluster *cluster, const char *names);

/* Presets, a line each: name and what it is. */
void cluster_list(FILE *file);
