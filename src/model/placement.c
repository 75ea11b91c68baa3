/* placement.c - which nodes a gang goes to. */
#include "model/placement.h"

#include <assert.h>

#include "base/bits.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/throughput.h"

#define NONE UINT32_MAX

/* A node's part of the gang's CPU or memory: as large as its part of the accelerators. */
static uint32_t share_of(uint32_t all, uint32_t part, uint32_t whole)
{
    if (whole == 0 || part == whole)
        return all;
    return (uint32_t)(((uint64_t)all * part + whole - 1) / whole);
}

struct room_part placement_need(const struct job *job, uint32_t gpus)
{
    return (struct room_part){ .cpu_milli = share_of(job->cpu_milli, gpus, job->gpus),
                               .mem_mib = share_of(job->mem_mib, gpus, job->gpus) };
}

/* The nodes it may use; NULL: any. */
static const struct bits *allowed_for(const struct placement_request *want)
{
    return want->job->set ? &want->job->set->allowed : NULL;
}

/* How many of the gang a node can hold. */
static uint32_t count_usable(const struct job *job, const struct room *room,
                             uint32_t gpus_max)
{
    uint32_t gpus = bits_count(room->gpus);
    if (gpus > gpus_max)
        gpus = gpus_max;
    for (; gpus > 0; gpus--) {
        struct room_part need = placement_need(job, gpus);
        if (need.cpu_milli <= room->cpu_milli && need.mem_mib <= room->mem_mib)
            break;
    }
    return gpus;
}

static bool is_chosen(const struct placement_search *search, uint32_t first,
                      node_id node)
{
    for (uint32_t i = first; i < search->seat_count; i++)
        if (search->seats[i].node == node)
            return true;
    return false;
}

static bool is_in(const struct placement_search *search, node_id node, uint32_t rack)
{
    return rack == NONE || search->cluster->nodes[node].rack == rack;
}

static void add_node(struct placement_search *search, const struct job *job,
                     node_id node, uint32_t gpus)
{
    struct room_part need = placement_need(job, gpus);
    assert(search->seat_count < search->seat_max);
    search->seats[search->seat_count++] = (struct seat){ .node = node,
                                                         .cpu_milli = need.cpu_milli,
                                                         .mem_mib = need.mem_mib,
                                                         .reserved = gpus };
}

static bool choose_tightest(struct placement_search *search,
                            const struct free_index *index,
                            const struct placement_request *want, uint32_t type,
                            uint32_t gpus, const struct bits *avoid)
{
    struct room_part need = placement_need(want->job, gpus);
    node_id node = free_index_tightest(index, type, gpus, need.cpu_milli, need.mem_mib,
                                       avoid, allowed_for(want));
    if (node == NODE_NONE)
        return false;
    add_node(search, want->job, node, gpus);
    return true;
}

/*
 * The tightest node of a rack (NONE: of all) that is not chosen yet; few are, so it is looked for
 * from the top.
 */
static bool choose_another(struct placement_search *search,
                           const struct free_index *index,
                           const struct placement_request *want, uint32_t type,
                           uint32_t rack, uint32_t gpus, uint32_t first)
{
    const struct bits *within = allowed_for(want);
    node_id best = NODE_NONE;
    uint32_t best_count = NONE;
    for (node_id node = free_index_most(index, type, NODE_NONE, within);
         node != NODE_NONE; node = free_index_most(index, type, node, within)) {
        const struct room *room = &index->rooms[node];
        uint32_t count = bits_count(room->gpus);
        if (count < gpus)
            break;
        if (count < best_count && count_usable(want->job, room, gpus) == gpus &&
            !is_chosen(search, first, node) && is_in(search, node, rack) &&
            !(want->avoid && bits_test(want->avoid, node))) {
            best = node;
            best_count = count;
        }
    }
    if (best == NODE_NONE)
        return false;
    add_node(search, want->job, best, gpus);
    return true;
}

/* Add nodes of an index, most free first, that hold at least 'gpus_min' of the gang. */
static uint32_t choose_many(struct placement_search *search,
                            const struct free_index *index,
                            const struct placement_request *want, uint32_t type,
                            uint32_t rack, uint32_t gpus_min, uint32_t gpus_max,
                            uint32_t left, uint32_t first)
{
    const struct bits *within = allowed_for(want);
    for (node_id node = free_index_most(index, type, NODE_NONE, within);
         node != NODE_NONE && left > 0;
         node = free_index_most(index, type, node, within)) {
        if (bits_count(index->rooms[node].gpus) < gpus_min)
            break;
        if ((want->avoid && bits_test(want->avoid, node)) || !is_in(search, node, rack))
            continue;
        uint32_t most = left < gpus_max ? left : gpus_max;
        uint32_t gpus = count_usable(want->job, &index->rooms[node], most);
        if (gpus < gpus_min || gpus == 0 || is_chosen(search, first, node))
            continue;
        add_node(search, want->job, node, gpus);
        left -= gpus;
    }
    return left;
}

struct placement_parts placement_parts(uint32_t gpus, uint32_t nodes, uint32_t node_max)
{
    uint32_t each = nodes ? gpus / nodes : node_max;
    if (!nodes)
        return (struct placement_parts){ each, gpus / each, gpus % each,
                                         gpus % each > 0 };
    uint32_t more = gpus % nodes;
    if (more == 0)
        return (struct placement_parts){ .large = each, .large_count = nodes };
    return (struct placement_parts){ each + 1, more, each, nodes - more };
}

bool placement_has_nodes(const struct free_index *free, const struct job *job,
                         uint32_t type)
{
    const struct free_shelf *shelf = &free->shelves[type];
    uint32_t node_max = free->cluster->types[type].node_gpus_max;
    uint32_t fill_max = node_set_gpus_max(job->set, free->cluster, type);
    uint32_t large = 0;
    uint32_t all = 0;
    if (shelf->gpu_count < job->gpus || fill_max == 0 || job->nodes > job->gpus)
        return false;
    if (job->spread && !job->nodes)
        return true;
    struct placement_parts parts = placement_parts(job->gpus, job->nodes, fill_max);
    uint32_t count = parts.small_count > 0 ? parts.small : parts.large;
    for (; count <= node_max; count++) {
        all += shelf->by_count[count].count;
        large += count >= parts.large ? shelf->by_count[count].count : 0;
    }
    return large >= parts.large_count && all >= parts.large_count + parts.small_count;
}

/* What there is on a node that is not down; NULL if it is. */
static const struct room *room_on(const struct placement_search *search, node_id node,
                                  bool with_vacated)
{
    if (with_vacated && search->vacated->listed[node])
        return &search->vacated->rooms[node];
    return search->free->listed[node] ? &search->free->rooms[node] : NULL;
}

/*
 * The nodes that must be among them come first.  Those that can hold a large part do: what
 * is left for others is then the easiest there is.  Takes out of 'parts' what they get.
 */
static bool choose_must(struct placement_search *search,
                        const struct placement_request *want, uint32_t type,
                        bool with_vacated, struct placement_parts *parts)
{
    const struct bits *must = &want->job->set->must;
    for (node_id node = bits_next(must, 0); node != BITS_NONE;
         node = bits_next(must, node + 1)) {
        const struct room *room = room_on(search, node, with_vacated);
        if (!room || search->cluster->nodes[node].type != type ||
            (want->avoid && bits_test(want->avoid, node)))
            return false;
        uint32_t gpus = count_usable(want->job, room, parts->large);
        bool large = gpus == parts->large && parts->large_count > 0;
        if (!large && (gpus < parts->small || parts->small_count == 0))
            return false;
        parts->large_count -= large;
        parts->small_count -= !large;
        add_node(search, want->job, node, large ? parts->large : parts->small);
    }
    return true;
}

static bool choose_parts(struct placement_search *search,
                         const struct placement_request *want, uint32_t type,
                         bool with_vacated, struct placement_parts *parts)
{
    uint32_t first = search->seat_count;
    if (want->job->set && want->job->set->must.count > 0 &&
        !choose_must(search, want, type, with_vacated, parts)) {
        search->seat_count = first;
        return false;
    }
    uint32_t left = parts->large * parts->large_count;
    left = choose_many(search, search->free, want, type, NONE, parts->large,
                       parts->large, left, first);
    if (left > 0 && with_vacated)
        left = choose_many(search, search->vacated, want, type, NONE, parts->large,
                           parts->large, left, first);
    bool found = left == 0;
    for (uint32_t i = 0; i < parts->small_count && found; i++)
        found = choose_another(search, search->free, want, type, NONE, parts->small,
                               first) ||
                (with_vacated && choose_another(search, search->vacated, want, type,
                                                NONE, parts->small, first));
    if (!found)
        search->seat_count = first;
    return found;
}

/* Count, by rack, free nodes for the parts of a gang; those for all of them together. */
static struct rack_room count_racks(struct placement_search *search,
                                    const struct placement_request *want, uint32_t type,
                                    const struct placement_parts *parts)
{
    const struct bits *within = allowed_for(want);
    uint32_t least = parts->small_count > 0 ? parts->small : parts->large;
    struct rack_room all = { 0, 0 };
    for (uint32_t r = 0; r < search->cluster->rack_count; r++)
        search->racks[r] = (struct rack_room){ 0, 0 };
    for (node_id node = free_index_most(search->free, type, NODE_NONE, within);
         node != NODE_NONE; node = free_index_most(search->free, type, node, within)) {
        const struct room *room = &search->free->rooms[node];
        if (bits_count(room->gpus) < least)
            break;
        if (want->avoid && bits_test(want->avoid, node))
            continue;
        uint32_t gpus = count_usable(want->job, room, parts->large);
        struct rack_room *rack = &search->racks[search->cluster->nodes[node].rack];
        rack->large += gpus == parts->large;
        rack->any += gpus >= least;
        all.large += gpus == parts->large;
        all.any += gpus >= least;
    }
    return all;
}

/*
 * The rack with the fewest nodes that has enough for what is left of the gang; if none has, the
 * one with the most.
 */
static uint32_t choose_rack(const struct placement_search *search,
                            const struct placement_parts *left)
{
    uint32_t count = left->large_count + left->small_count;
    uint32_t best = 0;
    bool best_enough = false;
    for (uint32_t r = 0; r < search->cluster->rack_count; r++) {
        const struct rack_room *rack = &search->racks[r];
        const struct rack_room *than = &search->racks[best];
        bool enough = rack->large >= left->large_count && rack->any >= count;
        bool more = rack->large > than->large ||
                    (rack->large == than->large && rack->any > than->any);
        if (enough != best_enough ? enough : enough ? rack->any < than->any : more) {
            best = r;
            best_enough = enough;
        }
    }
    return best;
}

/* Take nodes of a rack for a gang, those for large parts first. */
static void choose_in_rack(struct placement_search *search,
                           const struct placement_request *want, uint32_t type,
                           uint32_t rack, uint32_t first, struct placement_parts *left)
{
    uint32_t gpus = left->large * left->large_count;
    gpus = choose_many(search, search->free, want, type, rack, left->large, left->large,
                       gpus, first);
    left->large_count = gpus / left->large;
    while (left->small_count > 0 &&
           choose_another(search, search->free, want, type, rack, left->small, first))
        left->small_count--;
}

/* All parts of a gang on free nodes, in as few racks as this finds. */
static bool choose_near(struct placement_search *search,
                        const struct placement_request *want, uint32_t type,
                        struct placement_parts left)
{
    uint32_t first = search->seat_count;
    struct rack_room all = count_racks(search, want, type, &left);
    if (all.large < left.large_count || all.any < left.large_count + left.small_count)
        return false;
    for (uint32_t r = 0;
         r < search->cluster->rack_count && left.large_count + left.small_count > 0;
         r++) {
        uint32_t rack = choose_rack(search, &left);
        choose_in_rack(search, want, type, rack, first, &left);
        search->racks[rack] = (struct rack_room){ 0, 0 };
    }
    if (left.large_count + left.small_count == 0)
        return true;
    search->seat_count = first;
    return false;
}

/*
 * It exchanges gradients between its nodes, or may (that is counted once it runs), and what goes
 * from rack to rack is slower.  Nodes that it names are where they are.
 */
static bool wants_near(const struct placement_search *search, const struct job *job)
{
    return search->racks && search->cluster->rack_count > 1 &&
           search->cluster->oversubscription > 1 &&
           (job->bytes_per_step > 0 || job->sends_per_s != 0) &&
           !(job->set && job->set->must.count > 0);
}

/*
 * Several nodes of one type.  As few as can be: full nodes and the tightest for the
 * rest; or, where the job may be spread, whatever there is, most free first.
 */
static bool choose_gang(struct placement_search *search,
                        const struct placement_request *want, uint32_t type,
                        bool with_vacated)
{
    uint32_t first = search->seat_count;
    uint32_t node_max = node_set_gpus_max(want->job->set, search->cluster, type);
    uint32_t in_all = search->free->shelves[type].gpu_count +
                      (with_vacated ? search->vacated_gpu_count : 0);
    if (node_max == 0 || in_all < want->gpus || want->nodes > want->gpus)
        return false;

    struct placement_parts parts = placement_parts(want->gpus, want->nodes, node_max);
    if (!with_vacated && parts.large <= node_max && wants_near(search, want->job) &&
        choose_near(search, want, type, parts))
        return true;
    if (parts.large <= node_max &&
        choose_parts(search, want, type, with_vacated, &parts))
        return true;
    if (!want->spread || want->nodes)
        return false;
    uint32_t left = want->gpus;
    if (with_vacated) /* nodes with vacancies, with all they have, first */
        left = choose_many(search, search->vacated, want, type, NONE, 1, node_max, left,
                           first);
    left =
        choose_many(search, search->free, want, type, NONE, 1, node_max, left, first);
    if (left == 0)
        return true;
    search->seat_count = first;
    return false;
}

static bool choose_of_type(struct placement_search *search,
                           const struct placement_request *want, uint32_t type,
                           bool with_vacated)
{
    uint32_t node_max = type == TYPE_NONE
                            ? 0
                            : node_set_gpus_max(want->job->set, search->cluster, type);
    const struct free_index *index = with_vacated ? search->vacated : search->free;
    if (want->gpus <= node_max && want->nodes <= 1 &&
        choose_tightest(search, index, want, type, want->gpus, want->avoid))
        return true;
    if (want->gpus <= node_max && want->nodes <= 1 && !want->spread)
        return false;
    return want->gpus > 1 && choose_gang(search, want, type, with_vacated);
}

/* Types in the order in which the job runs fastest; equal ones as the cluster has them. */
static uint32_t order_types(const struct placement_search *search,
                            const struct placement_request *want,
                            uint32_t types[TYPES_MAX + 1])
{
    double rates[TYPES_MAX];
    uint32_t count = 0;
    if (want->gpus == 0)
        types[count++] = TYPE_NONE;
    if (want->types && (want->types & (want->types - 1)) == 0 && want->gpus > 0) {
        types[0] = (uint32_t)__builtin_ctz(want->types);
        return 1;
    }
    uint32_t fixed = count;
    for (uint32_t type = 0; type < search->cluster->type_count; type++) {
        if (!(want->types >> type & 1))
            continue;
        double rate =
            throughput_rate(search->rates, want->job, type, want->gpus, false);
        uint32_t at = count++;
        for (; at > fixed && rates[at - fixed - 1] < rate; at--) {
            rates[at - fixed] = rates[at - fixed - 1];
            types[at] = types[at - 1];
        }
        rates[at - fixed] = rate;
        types[at] = type;
    }
    return count;
}

bool placement_find(struct placement_search *search,
                    const struct placement_request *want)
{
    uint32_t types[TYPES_MAX + 1];
    uint32_t count = order_types(search, want, types);
    for (uint32_t i = 0; i < count; i++)
        if (choose_of_type(search, want, types[i], false))
            return true;
    if (!search->vacated)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (choose_of_type(search, want, types[i], true))
            return true;
    return false;
}
