/*
 * traffic.h - what a job sends in one step, and over which links.
 *
 * The gradients of a step, S bytes, on n hosts (workers on one host count once):
 *
 *     ring all-reduce    every host sends 2(n-1)/n S to the next one
 *     parameter server   every worker sends S to the server, then gets S from it
 *
 * All flows that a job sends at a time have equal volume and go at one rate, the
 * slowest one's; so a phase is a volume and, for every link, how many of the flows
 * cross it.
 */
#pragma once

#include <stdint.h>

#include "model/job.h"

struct topology;

#define TRAFFIC_PHASES_MAX 2

/* How many flows of a phase cross a link. */
struct link_use {
    uint32_t link;
    double flows;
};

struct traffic {
    double volume; /* bytes of each flow, in each phase */
    uint32_t phase_count;
    struct link_use *uses[TRAFFIC_PHASES_MAX];
    uint32_t use_counts[TRAFFIC_PHASES_MAX];
};

/* Room for the uses of all phases of a job on so many hosts. */
static inline uint32_t traffic_uses_max(uint32_t host_count)
{
    return 4 * host_count + 4;
}

/*
 * Fill in 'ret_traffic', with its uses in 'uses' (room for traffic_uses_max()).  Hosts
 * differ; 'server' is the place of the parameter server among them.  On one host there
 * are no phases.
 */
void traffic_make(struct traffic *ret_traffic, struct link_use *uses,
                  const struct topology *topology, enum sync sync, double bytes,
                  const uint32_t *hosts, uint32_t host_count, uint32_t server);

/* Time a step's communication takes with the network to itself; INFINITY: for ever. */
double traffic_alone_s(const struct traffic *traffic, const struct topology *topology);
