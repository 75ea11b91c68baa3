/* cluster_yaml.h - a cluster described in YAML. */
#pragma once

#include <stddef.h>

struct arena;
struct cluster;
struct error;

/*
 * Read a file such as
 *
 *     name: lab
 *     oversubscription: 4            # of the racks' uplinks; 1
 *     first_fit: true                # fill nodes in this order; false: the tightest first
 *     types:                         # optional: what is known of each
 *       - { name: v100, usd_per_hour: 0.74, speed: 1 }
 *     nodes:
 *       - { count: 4, type: v100, gpus: 8, cpus: 32, mem_gib: 256, rack: 0, link_gbps: 25 }
 *       - { names: [big-1, big-2], type: a100, gpus: 8, nodes_per_rack: 1 }
 *
 * -EINVAL with file, line and field if it is not as it should be.
 */
int cluster_yaml_load(struct cluster *cluster, struct arena *arena, const char *path,
                      struct error *err);

/* The same from memory, as if it were a file of that name. */
int cluster_yaml_parse(struct cluster *cluster, struct arena *arena, const char *name,
                       const void *bytes, size_t count, struct error *err);
