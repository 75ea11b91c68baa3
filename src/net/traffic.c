/* traffic.c - what a job sends in one step, and over which links. */
#include "net/traffic.h"

#include <math.h>

#include "net/topology.h"

/* Add flows over a link. */
static void add_use(struct traffic *traffic, uint32_t phase, uint32_t link,
                    double flows)
{
    traffic->uses[phase][traffic->use_counts[phase]++] =
        (struct link_use){ link, flows };
}

static void add_rack_use(struct traffic *traffic, uint32_t phase, uint32_t first,
                         uint32_t link)
{
    for (uint32_t i = first; i < traffic->use_counts[phase]; i++)
        if (traffic->uses[phase][i].link == link) {
            traffic->uses[phase][i].flows++;
            return;
        }
    add_use(traffic, phase, link, 1);
}

/* The ring visits one rack after the other: one flow leaves each, one enters. */
static void make_ring(struct traffic *traffic, const struct topology *topology,
                      const uint32_t *hosts, uint32_t host_count)
{
    bool racks_differ = false;
    for (uint32_t i = 0; i < host_count; i++) {
        add_use(traffic, 0, topology_out(topology, hosts[i]), 1);
        add_use(traffic, 0, topology_in(topology, hosts[i]), 1);
        racks_differ =
            racks_differ || topology->racks[hosts[i]] != topology->racks[hosts[0]];
    }
    if (!topology->has_uplinks || !racks_differ)
        return;
    uint32_t first = traffic->use_counts[0];
    for (uint32_t i = 0; i < host_count; i++) {
        uint32_t rack = topology->racks[hosts[i]];
        uint32_t seen = first;
        while (seen < traffic->use_counts[0] &&
               traffic->uses[0][seen].link != topology_up(topology, rack))
            seen++;
        if (seen < traffic->use_counts[0])
            continue;
        add_use(traffic, 0, topology_up(topology, rack), 1);
        add_use(traffic, 0, topology_down(topology, rack), 1);
    }
}

/* One direction between the server and its workers: 0 to it, 1 from it. */
static void make_server_phase(struct traffic *traffic, uint32_t phase,
                              const struct topology *topology, const uint32_t *hosts,
                              uint32_t host_count, uint32_t server)
{
    uint32_t at = hosts[server];
    add_use(traffic, phase,
            phase == 0 ? topology_in(topology, at) : topology_out(topology, at),
            host_count - 1);
    for (uint32_t i = 0; i < host_count; i++)
        if (i != server)
            add_use(traffic, phase,
                    phase == 0 ? topology_out(topology, hosts[i])
                               : topology_in(topology, hosts[i]),
                    1);
    uint32_t first = traffic->use_counts[phase];
    uint32_t home = topology->racks[at];
    for (uint32_t i = 0; topology->has_uplinks && i < host_count; i++) {
        uint32_t rack = topology->racks[hosts[i]];
        if (rack == home)
            continue;
        uint32_t from = phase == 0 ? rack : home;
        uint32_t to = phase == 0 ? home : rack;
        add_rack_use(traffic, phase, first, topology_up(topology, from));
        add_rack_use(traffic, phase, first, topology_down(topology, to));
    }
}

void traffic_make(struct traffic *traffic, struct link_use *uses,
                  const struct topology *topology, enum sync sync, double bytes,
                  const uint32_t *hosts, uint32_t host_count, uint32_t server)
{
    *traffic = (struct traffic){ .uses = { uses, uses } };
    if (host_count < 2 || !(bytes > 0))
        return;
    if (sync == SYNC_RING) {
        traffic->phase_count = 1;
        traffic->volume = 2.0 * (host_count - 1) / host_count * bytes;
        make_ring(traffic, topology, hosts, host_count);
        return;
    }
    traffic->phase_count = 2;
    traffic->volume = bytes;
    make_server_phase(traffic, 0, topology, hosts, host_count, server);
    traffic->uses[1] = uses + traffic->use_counts[0];
    make_server_phase(traffic, 1, topology, hosts, host_count, server);
}

double traffic_alone_s(const struct traffic *traffic, const struct topology *topology)
{
    double s = 0;
    for (uint32_t p = 0; p < traffic->phase_count; p++) {
        double slowest = 0; /* seconds per byte of a flow */
        for (uint32_t i = 0; i < traffic->use_counts[p]; i++) {
            const struct link_use *use = &traffic->uses[p][i];
            slowest = fmax(slowest, use->flows / topology->capacities[use->link]);
        }
        s += traffic->volume * slowest;
    }
    return s;
}
