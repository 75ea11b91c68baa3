/* Links, what jobs send over them, and rates that can be worked out by hand. */
#include "support/cases.h"

#include <math.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "net/rates.h"
#include "net/topology.h"
#include "net/traffic.h"
#include "support/rates_check.h"

ARENA_FIXTURE(arena);
static struct cluster cluster;
static struct topology topology;

/* Hosts of 8 Mb/s of payload, that is 1 MB/s, in racks of 'per_rack'. */
#define MB 1e6

static void build(uint32_t hosts, uint32_t per_rack, double oversubscription)
{
    arena_reset(&arena);
    cluster_begin(&cluster, &arena, "test", hosts);
    cluster_type(&cluster, &arena, "v100");
    for (uint32_t i = 0; i < hosts; i++)
        cluster_add(&cluster, &(struct node){ .gpu_count = 1,
                                              .rack = i / per_rack,
                                              .link_bps = 8000000 });
    cluster_end(&cluster, &arena);
    cluster.oversubscription = oversubscription;
    topology_init(&topology, &arena, &cluster);
    for (uint32_t i = 0; i < topology.link_count; i++)
        topology.capacities[i] /= PAYLOAD_SHARE;
}

/* --- topology -------------------------------------------------------------------------- */

static void every_host_has_a_link_each_way(void **state)
{
    build(3, 3, 1);
    assert_int_equal(topology.link_count, 6);
    assert_false(topology.has_uplinks);
    assert_near(topology.capacities[topology_out(&topology, 2)], MB, 1e-6);
    assert_near(topology.capacities[topology_in(&topology, 2)], MB, 1e-6);
}

static void an_uplink_has_its_hosts_rates_over_the_oversubscription(void **state)
{
    build(6, 3, 2);
    assert_true(topology.has_uplinks);
    assert_near(topology.capacities[topology_up(&topology, 1)], 1.5 * MB, 1e-6);
    assert_near(topology.capacities[topology_down(&topology, 0)], 1.5 * MB, 1e-6);
}

static void uplinks_that_never_limit_a_flow_are_left_out(void **state)
{
    build(6, 3, 1);
    assert_false(topology.has_uplinks);
    assert_int_equal(topology.link_count, 12);
}

/* --- traffic --------------------------------------------------------------------------- */

static struct link_use uses[64];

static double flows_on(const struct traffic *traffic, uint32_t phase, uint32_t link)
{
    double flows = 0;
    for (uint32_t i = 0; i < traffic->use_counts[phase]; i++)
        if (traffic->uses[phase][i].link == link)
            flows += traffic->uses[phase][i].flows;
    return flows;
}

static void a_ring_sends_from_every_host_to_the_next(void **state)
{
    build(4, 4, 1);
    struct traffic traffic;
    const uint32_t hosts[] = { 0, 2, 3 };
    traffic_make(&traffic, uses, &topology, SYNC_RING, 3 * MB, hosts, 3, 0);
    assert_int_equal(traffic.phase_count, 1);
    assert_near(traffic.volume, 4 * MB, 1e-6); /* 2 x 2/3 x 3 MB */
    assert_int_equal(traffic.use_counts[0], 6);
    assert_near(flows_on(&traffic, 0, topology_out(&topology, 3)), 1, 0);
    assert_near(flows_on(&traffic, 0, topology_out(&topology, 1)), 0, 0);
    assert_near(traffic_alone_s(&traffic, &topology), 4, 1e-9);
}

static void a_ring_enters_and_leaves_each_rack_once(void **state)
{
    build(6, 3, 3); /* uplinks of 1 MB/s */
    struct traffic traffic;
    const uint32_t hosts[] = { 0, 4, 1, 5 };
    traffic_make(&traffic, uses, &topology, SYNC_RING, 2 * MB, hosts, 4, 0);
    for (uint32_t rack = 0; rack < 2; rack++) {
        assert_near(flows_on(&traffic, 0, topology_up(&topology, rack)), 1, 0);
        assert_near(flows_on(&traffic, 0, topology_down(&topology, rack)), 1, 0);
    }
    const uint32_t near_hosts[] = { 3, 4, 5 };
    traffic_make(&traffic, uses, &topology, SYNC_RING, 2 * MB, near_hosts, 3, 0);
    assert_int_equal(traffic.use_counts[0], 6); /* none crosses a rack */
}

static void workers_send_to_the_server_and_then_hear_from_it(void **state)
{
    build(6, 3, 3);
    struct traffic traffic;
    const uint32_t hosts[] = { 0, 1, 3, 4 };
    traffic_make(&traffic, uses, &topology, SYNC_SERVER, MB, hosts, 4, 1);
    assert_int_equal(traffic.phase_count, 2);
    assert_near(traffic.volume, MB, 0);
    assert_near(flows_on(&traffic, 0, topology_in(&topology, 1)), 3, 0);
    assert_near(flows_on(&traffic, 0, topology_out(&topology, 1)), 0, 0);
    assert_near(flows_on(&traffic, 0, topology_out(&topology, 4)), 1, 0);
    assert_near(flows_on(&traffic, 0, topology_up(&topology, 1)), 2, 0);
    assert_near(flows_on(&traffic, 0, topology_down(&topology, 0)), 2, 0);
    assert_near(flows_on(&traffic, 0, topology_up(&topology, 0)), 0, 0);
    assert_near(flows_on(&traffic, 1, topology_out(&topology, 1)), 3, 0);
    assert_near(flows_on(&traffic, 1, topology_down(&topology, 1)), 2, 0);
    assert_near(traffic_alone_s(&traffic, &topology), 6, 1e-9);
}

static void a_job_on_one_host_sends_nothing(void **state)
{
    build(2, 2, 1);
    struct traffic traffic;
    const uint32_t host = 1;
    traffic_make(&traffic, uses, &topology, SYNC_RING, MB, &host, 1, 0);
    assert_int_equal(traffic.phase_count, 0);
    assert_near(traffic_alone_s(&traffic, &topology), 0, 0);
}

/* --- rates ----------------------------------------------------------------------------- */

/* One switch; a bundle from host a to host b. */
static uint32_t flow(struct rates *rates, uint32_t a, uint32_t b, uint32_t level)
{
    struct link_use over[] = { { topology_out(&topology, a), 1 },
                               { topology_in(&topology, b), 1 } };
    uint32_t id = rates_add(rates, over, 2, level);
    rates_begin(rates, id);
    return id;
}

static double rate(const struct rates *rates, uint32_t bundle)
{
    return rates->bundles[bundle].rate / MB;
}

static void equals_share_and_the_rest_goes_to_the_others(void **state)
{
    build(4, 4, 1);
    struct rates rates;
    rates_init(&rates, &topology);
    uint32_t a = flow(&rates, 0, 1, 0);
    assert_near(rate(&rates, a), 1, 1e-12);
    uint32_t b = flow(&rates, 0, 2, 0);
    uint32_t c = flow(&rates, 3, 2, 0);
    /* a and b share the way out of 0, b and c the way into 2. */
    assert_near(rate(&rates, a), 0.5, 1e-12);
    assert_near(rate(&rates, b), 0.5, 1e-12);
    assert_near(rate(&rates, c), 0.5, 1e-12);
    uint32_t d = flow(&rates, 0, 3, 0);
    /* Three leave 0: a third each, and c gets what b does not use. */
    assert_near(rate(&rates, b), 1.0 / 3, 1e-12);
    assert_near(rate(&rates, c), 2.0 / 3, 1e-12);
    rates_end(&rates, b);
    assert_near(rate(&rates, a), 0.5, 1e-12);
    assert_near(rate(&rates, c), 1, 1e-12);
    assert_near(rate(&rates, d), 0.5, 1e-12);
    rates_release(&rates);
}

static void an_earlier_level_takes_all_it_can_use(void **state)
{
    build(4, 4, 1);
    struct rates rates;
    rates_init(&rates, &topology);
    uint32_t low = flow(&rates, 0, 1, 3);
    uint32_t high = flow(&rates, 0, 2, 1);
    assert_near(rate(&rates, high), 1, 1e-12);
    assert_near(rate(&rates, low), 0, 1e-12);
    uint32_t top =
        flow(&rates, 3, 2, 0); /* squeezes 'high', which leaves room to 'low' */
    assert_near(rate(&rates, top), 1, 1e-12);
    assert_near(rate(&rates, high), 0, 1e-12);
    assert_near(rate(&rates, low), 1, 1e-12);
    rates_set_level(&rates, top, 1);
    assert_near(rate(&rates, top), 0.5, 1e-12);
    assert_near(rate(&rates, high), 0.5, 1e-12);
    assert_near(rate(&rates, low), 0.5, 1e-12);
    rates_release(&rates);
}

static void a_change_touches_only_what_it_can_reach(void **state)
{
    build(8, 8, 1);
    struct rates rates;
    rates_init(&rates, &topology);
    flow(&rates, 0, 1, 0);
    flow(&rates, 4, 5, 0);
    flow(&rates, 0, 2, 1);
    uint32_t far = flow(&rates, 6, 7, 0);
    assert_int_equal(rates.touched_count, 1);
    assert_int_equal(rates.changed_count, 1);
    assert_int_equal(rates.changed[0], far);
    flow(&rates, 0, 3, 2); /* a later level: earlier ones are not visited */
    assert_int_equal(rates.touched_count, 1);
    rates_release(&rates);
}

static void a_link_without_bandwidth_carries_nothing(void **state)
{
    build(3, 3, 1);
    topology.capacities[topology_in(&topology, 1)] = 0;
    struct rates rates;
    rates_init(&rates, &topology);
    uint32_t stuck = flow(&rates, 0, 1, 0);
    uint32_t other = flow(&rates, 0, 2, 0);
    assert_near(rate(&rates, stuck), 0, 0);
    assert_near(rate(&rates, other), 1, 1e-12);
    rates_check(&rates);
    rates_release(&rates);
}

RUN_GROUP(setup, teardown, TEST(every_host_has_a_link_each_way),
          TEST(an_uplink_has_its_hosts_rates_over_the_oversubscription),
          TEST(uplinks_that_never_limit_a_flow_are_left_out),
          TEST(a_ring_sends_from_every_host_to_the_next),
          TEST(a_ring_enters_and_leaves_each_rack_once),
          TEST(workers_send_to_the_server_and_then_hear_from_it),
          TEST(a_job_on_one_host_sends_nothing),
          TEST(equals_share_and_the_rest_goes_to_the_others),
          TEST(an_earlier_level_takes_all_it_can_use),
          TEST(a_change_touches_only_what_it_can_reach),
          TEST(a_link_without_bandwidth_carries_nothing));
