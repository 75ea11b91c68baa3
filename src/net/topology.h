/*
 * topology.h - hosts, racks, and the links between them.
 *
 * Two tiers: every host has a full-duplex link to the switch of its rack, every rack
 * one to the core.  Each direction is a link of its own.  A rack's uplink has the sum
 * of its hosts' rates over the cluster's oversubscription; where that is 1 uplinks
 * never limit a flow, and are left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct cluster;

/* The part of a link's rate that is payload: TCP, full frames of 1514 bytes. */
#define PAYLOAD_SHARE (1448.0 / 1514.0)

struct topology {
    double *capacities;    /* bytes of payload per second, by link */
    const uint32_t *racks; /* by host                              */
    uint32_t host_count, rack_count;
    uint32_t link_count;
    bool has_uplinks; /* that can limit a flow */
};

void topology_init(struct topology *topology, struct arena *arena,
                   const struct cluster *cluster);

static inline uint32_t topology_out(const struct topology *topology, uint32_t host)
{
    return 2 * host;
}

static inline uint32_t topology_in(const struct topology *topology, uint32_t host)
{
    return 2 * host + 1;
}

static inline uint32_t topology_up(const struct topology *topology, uint32_t rack)
{
    return 2 * (topology->host_count + rack);
}

static inline uint32_t topology_down(const struct topology *topology, uint32_t rack)
{
    return 2 * (topology->host_count + rack) + 1;
}
