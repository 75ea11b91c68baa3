/* topology.c - hosts, racks, and the links between them. */
#include "net/topology.h"

#include "base/arena.h"
#include "model/cluster.h"

void topology_init(struct topology *topology, struct arena *arena,
                   const struct cluster *cluster)
{
    uint32_t hosts = cluster->node_count;
    uint32_t rack_count = cluster->rack_count;
    *topology = (struct topology){ .host_count = hosts,
                                   .rack_count = rack_count,
                                   .has_uplinks = rack_count > 1 &&
                                                  cluster->oversubscription > 1 };
    topology->link_count = 2 * (hosts + (topology->has_uplinks ? rack_count : 0));
    topology->capacities = arena_array(arena, double, topology->link_count);
    uint32_t *racks = arena_array(arena, uint32_t, hosts);
    topology->racks = racks;
    for (uint32_t host = 0; host < hosts; host++) {
        const struct node *node = &cluster->nodes[host];
        double bytes_per_s = (double)node->link_bps / 8 * PAYLOAD_SHARE;
        topology->capacities[topology_out(topology, host)] = bytes_per_s;
        topology->capacities[topology_in(topology, host)] = bytes_per_s;
        racks[host] = node->rack;
        if (!topology->has_uplinks)
            continue;
        double part = bytes_per_s / cluster->oversubscription;
        topology->capacities[topology_up(topology, node->rack)] += part;
        topology->capacities[topology_down(topology, node->rack)] += part;
    }
}
