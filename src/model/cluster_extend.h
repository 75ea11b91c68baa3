/* cluster_extend.h - a cluster with more nodes of types that it has. */
#pragma once

struct arena;
struct cluster;
struct error;

/*
 * Make 'ret_cluster' the same as 'cluster' with the nodes that 'text' names, after the others and
 * called added1, added2, …: "v100:2" is a node of two GPUs, "4xv100:8" are four of eight, and both
 * together are "v100:2,4xv100:8".  They have
 * the link of the largest node of their type, and CPUs and memory in proportion.  What the cluster's
 * texts point to has to outlive the copy.  -EINVAL with the reason otherwise.
 */
int cluster_extend(struct cluster *ret_cluster, struct arena *arena,
                   const struct cluster *cluster, const char *text, struct error *err);
