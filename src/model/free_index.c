/* free_index.c - nodes on shelves by what is free on them. */
#include "base/bits.h"
#include "model/free_index.h"

#include "base/arena.h"

void free_index_init(struct free_index *free, struct arena *arena,
                     const struct cluster *cluster)
{
    *free = (struct free_index){ .cluster = cluster };
    free->rooms = arena_array(arena, struct room, cluster->node_count);
    free->listed = arena_array(arena, bool, cluster->node_count);
    free->shelves = arena_array(arena, struct free_shelf, TYPES_MAX + 1);
    for (uint32_t type = 0; type <= TYPES_MAX; type++) {
        if (type >= cluster->type_count && type != TYPE_NONE)
            continue;
        uint32_t most = type == TYPE_NONE ? 0 : cluster->types[type].node_gpus_max;
        for (uint32_t count = 0; count <= most; count++)
            bits_init(&free->shelves[type].by_count[count], arena, cluster->node_count);
    }
}

static uint32_t count_of(const struct room *room)
{
    return bits_count(room->gpus);
}

static void raise_most(struct shelf_most *most, const struct room *room)
{
    if (room->cpu_milli > most->cpu_milli)
        most->cpu_milli = room->cpu_milli;
    if (room->mem_mib > most->mem_mib)
        most->mem_mib = room->mem_mib;
}

static void add_to_shelf(struct free_index *free, node_id node, uint32_t count)
{
    struct free_shelf *shelf = &free->shelves[free->cluster->nodes[node].type];
    bits_set(&shelf->by_count[count], node);
    raise_most(&shelf->most[count], &free->rooms[node]);
    if (count)
        shelf->counts |= (uint64_t)1 << (count - 1);
    shelf->gpu_count += count;
    free->gpu_count += count;
}

static void remove_from_shelf(struct free_index *free, node_id node, uint32_t count)
{
    struct free_shelf *shelf = &free->shelves[free->cluster->nodes[node].type];
    bits_clear(&shelf->by_count[count], node);
    if (count && shelf->by_count[count].count == 0)
        shelf->counts &= ~((uint64_t)1 << (count - 1));
    shelf->gpu_count -= count;
    free->gpu_count -= count;
}

void free_index_put(struct free_index *free, node_id node, const struct room *room)
{
    struct room *now = &free->rooms[node];
    uint32_t before = count_of(now);
    uint32_t count = count_of(room);
    *now = *room;
    if (free->listed[node]) {
        if (before == count) { /* the same shelf */
            raise_most(&free->shelves[free->cluster->nodes[node].type].most[count],
                       room);
            return;
        }
        remove_from_shelf(free, node, before);
    }
    free->listed[node] = true;
    add_to_shelf(free, node, count);
}

void free_index_drop(struct free_index *free, node_id node)
{
    if (!free->listed[node])
        return;
    remove_from_shelf(free, node, count_of(&free->rooms[node]));
    free->listed[node] = false;
}

/* The shelves that hold at least 'count', as bits like free_shelf.counts. */
static uint64_t at_least(const struct free_shelf *shelf, uint32_t count)
{
    return count <= 1 ? shelf->counts : shelf->counts & ~(uint64_t)0 << (count - 1);
}

static bool may_hold(const struct shelf_most *most, uint32_t cpu_milli,
                     uint32_t mem_mib)
{
    return most->cpu_milli >= cpu_milli && most->mem_mib >= mem_mib;
}

static node_id first_that_fits(const struct free_index *free, struct free_shelf *shelf,
                               uint32_t count, uint32_t cpu_milli, uint32_t mem_mib,
                               const struct bits *avoid)
{
    const struct bits *nodes = &shelf->by_count[count];
    struct room most = { 0 };
    for (node_id node = bits_next(nodes, 0); node != BITS_NONE;
         node = bits_next(nodes, node + 1)) {
        const struct room *room = &free->rooms[node];
        if (room->cpu_milli >= cpu_milli && room->mem_mib >= mem_mib &&
            !(avoid && bits_test(avoid, node)))
            return node;
        most.cpu_milli =
            room->cpu_milli > most.cpu_milli ? room->cpu_milli : most.cpu_milli;
        most.mem_mib = room->mem_mib > most.mem_mib ? room->mem_mib : most.mem_mib;
    }
    shelf->most[count] = (struct shelf_most){ most.cpu_milli, most.mem_mib };
    return NODE_NONE;
}

static bool is_enough(const struct free_index *free, node_id node, uint32_t cpu_milli,
                      uint32_t mem_mib, const struct bits *avoid)
{
    const struct room *room = &free->rooms[node];
    return room->cpu_milli >= cpu_milli && room->mem_mib >= mem_mib &&
           !(avoid && bits_test(avoid, node));
}

/* The same where only the nodes 'within' count. */
static node_id first_common(const struct free_index *free, const struct bits *nodes,
                            uint32_t cpu_milli, uint32_t mem_mib,
                            const struct bits *avoid, const struct bits *within)
{
    node_id node = bits_next_common(nodes, within, 0);
    while (node != BITS_NONE && !is_enough(free, node, cpu_milli, mem_mib, avoid))
        node = bits_next_common(nodes, within, node + 1);
    return node == BITS_NONE ? NODE_NONE : node;
}

static node_id first_on_shelf(const struct free_index *free, uint32_t type,
                              uint32_t count, uint32_t cpu_milli, uint32_t mem_mib,
                              const struct bits *avoid, const struct bits *within)
{
    struct free_shelf *shelf = &free->shelves[type];
    if (!may_hold(&shelf->most[count], cpu_milli, mem_mib))
        return NODE_NONE;
    return within ? first_common(free, &shelf->by_count[count], cpu_milli, mem_mib,
                                 avoid, within)
                  : first_that_fits(free, shelf, count, cpu_milli, mem_mib, avoid);
}

/* Shelf by shelf; in a cluster that is filled first fit the least of what they have. */
node_id free_index_tightest(const struct free_index *free, uint32_t type, uint32_t gpus,
                            uint32_t cpu_milli, uint32_t mem_mib,
                            const struct bits *avoid, const struct bits *within)
{
    const struct free_shelf *shelf = &free->shelves[type];
    node_id best = NODE_NONE;
    if (gpus > NODE_GPUS_MAX)
        return NODE_NONE;
    if (gpus == 0)
        best = first_on_shelf(free, type, 0, cpu_milli, mem_mib, avoid, within);
    for (uint64_t left = at_least(shelf, gpus); left; left &= left - 1) {
        uint32_t count = (uint32_t)__builtin_ctzll(left) + 1;
        if (best != NODE_NONE && !free->cluster->first_fit)
            break;
        node_id node =
            first_on_shelf(free, type, count, cpu_milli, mem_mib, avoid, within);
        best = node < best ? node : best;
    }
    return best;
}

static node_id next_of(const struct bits *nodes, const struct bits *within,
                       node_id from)
{
    return within ? bits_next_common(nodes, within, from) : bits_next(nodes, from);
}

node_id free_index_most(const struct free_index *free, uint32_t type, node_id after,
                        const struct bits *within)
{
    const struct free_shelf *shelf = &free->shelves[type];
    uint64_t left = shelf->counts;
    if (after != NODE_NONE) {
        uint32_t count = count_of(&free->rooms[after]);
        node_id node = next_of(&shelf->by_count[count], within, after + 1);
        if (node != BITS_NONE)
            return node;
        left = count > 1 ? left & (((uint64_t)1 << (count - 1)) - 1) : 0;
    }
    while (left) {
        uint32_t count = 64 - (uint32_t)__builtin_clzll(left);
        node_id node = next_of(&shelf->by_count[count], within, 0);
        if (node != BITS_NONE)
            return node;
        left &= ~((uint64_t)1 << (count - 1));
    }
    return NODE_NONE;
}
