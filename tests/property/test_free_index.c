/* The index of what is free against a look at every node. */
#include "support/world.h"

#include "base/rng.h"
#include "model/free_index.h"

#define NODES 24
#define STEPS 4000

static bool is_in(const struct bits *nodes, node_id node)
{
    return nodes && bits_test(nodes, node);
}

/* Few GPUs on the node, or where nodes are filled first fit a low number, comes first. */
static node_id find_plainly(const struct free_index *free, uint32_t type, uint32_t gpus,
                            uint32_t cpu_milli, uint32_t mem_mib,
                            const struct bits *avoid, const struct bits *within)
{
    node_id best = NODE_NONE;
    for (node_id node = 0; node < free->cluster->node_count; node++) {
        const struct room *room = &free->rooms[node];
        if (!free->listed[node] || free->cluster->nodes[node].type != type ||
            bits_count(room->gpus) < gpus || room->cpu_milli < cpu_milli ||
            room->mem_mib < mem_mib || is_in(avoid, node) ||
            (within && !is_in(within, node)))
            continue;
        if (best == NODE_NONE ||
            (!free->cluster->first_fit &&
             bits_count(room->gpus) < bits_count(free->rooms[best].gpus)))
            best = node;
    }
    return best;
}

/* Amounts are few, so that nodes often have exactly what is asked for, or just less. */
static struct room draw_room(struct rng *rng)
{
    return (struct room){ .gpus = rng_below(rng, 16),
                          .cpu_milli = rng_below(rng, 6),
                          .mem_mib = rng_below(rng, 6) };
}

static void compare(struct world *w, uint64_t seed)
{
    struct free_index free;
    struct bits some;
    struct rng rng;
    rng_init(&rng, seed, "free");
    w->cluster.first_fit = seed % 2;
    free_index_init(&free, &w->arena, &w->cluster);
    bits_init(&some, &w->arena, NODES);
    for (uint32_t i = 0; i < STEPS; i++) {
        node_id node = rng_below(&rng, NODES);
        struct room room = draw_room(&rng);
        if (rng_below(&rng, 10) == 0)
            free_index_drop(&free, node);
        else
            free_index_put(&free, node, &room);
        if (rng_below(&rng, 4) == 0)
            bits_test(&some, node) ? bits_clear(&some, node) : bits_set(&some, node);
        for (uint32_t tries = rng_below(&rng, 4); tries > 0; tries--) {
            struct room need = draw_room(&rng);
            uint32_t gpus = rng_below(&rng, 5);
            uint32_t type = rng_below(&rng, 2);
            const struct bits *avoid = rng_below(&rng, 3) ? NULL : &some;
            const struct bits *within = rng_below(&rng, 3) ? NULL : &some;
            assert_int_equal(free_index_tightest(&free, type, gpus, need.cpu_milli,
                                                 need.mem_mib, avoid, within),
                             find_plainly(&free, type, gpus, need.cpu_milli,
                                          need.mem_mib, avoid, within));
        }
    }
}

static void the_tightest_node_is_that_of_a_look_at_all(void **state)
{
    FOR_EACH_SEED(seed, 40)
    {
        struct world w;
        world_init_as(&w, "16xv100:4,8xp100:4");
        compare(&w, seed.now);
        world_release(&w);
    }
}

RUN_CASES(TEST(the_tightest_node_is_that_of_a_look_at_all));
