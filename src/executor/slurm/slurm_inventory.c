/*
 * slurm_inventory.c - the owners of GPUs: our jobs, or jobs that Slurm has started without
 * us.
 *
 * Slurm numbers a job's GPUs as it likes, and so do we: only their number on a node is
 * the same on both sides.  Foreign GPUs are any that are free here, as many.
 *
 * The same goes for shards of GPUs (gres/shard): Slurm takes the first GPU that has room for
 * them.  Jobs that the books have on one GPU may be on two: the second counts as foreign.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"
#include "model/free_index.h"

#define SURE_NS (2 * NS_PER_S) /* jobs and nodes are not looked at in one moment */

static uint64_t all_of(const struct slurm *slurm, node_id node)
{
    uint32_t count = slurm->setup.view->cluster->nodes[node].gpu_count;
    return count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1;
}

static uint64_t lowest_bits(uint64_t bits, uint32_t count)
{
    uint64_t chosen = 0;
    for (; count > 0 && bits; count--) {
        chosen |= bits & -bits;
        bits &= bits - 1;
    }
    return chosen;
}

/* In the engine's books, or it will be in a moment, or was a moment ago. */
static bool is_ours(const struct slurm_entry *entry)
{
    return (entry->slot != JOB_NONE && entry->now.count > 0) || slurm_is_leaving(entry);
}

bool slurm_inventory_awaits(const struct slurm_entry *entry)
{
    for (const struct slurm_entry *other = entry->slurm->first; other;
         other = other->next)
        for (uint32_t i = 0; slurm_is_leaving(other) && i < other->node_count; i++)
            for (uint32_t k = 0; k < entry->now.count; k++)
                if (other->nodes[i] == entry->now.seats[k].node)
                    return true;
    return false;
}

/*
 * As many as are held by others: those that were so before, then what is free.  Not 'held' by
 * jobs of ours while there are others.
 */
static uint64_t foreign_bits(const struct slurm *slurm, node_id node, uint32_t count,
                             uint64_t held)
{
    const struct slurm_host *host = &slurm->hosts[node];
    if (host->drain)
        return all_of(slurm, node);
    uint64_t free = slurm->setup.view->free->rooms[node].gpus;
    uint64_t bits =
        lowest_bits(host->foreign_told & all_of(slurm, node) & ~held, count);
    bits |= lowest_bits(free & ~bits, count - bits_count(bits));
    bits |= lowest_bits(all_of(slurm, node) & ~bits, count - bits_count(bits));
    return bits;
}

static void tell_foreign(struct slurm *slurm, node_id node, uint64_t bits)
{
    struct slurm_host *host = &slurm->hosts[node];
    if (bits == host->foreign_told)
        return;
    struct event *event = slurm_report(slurm, EVENT_FOREIGN);
    event->node = node;
    event->gpus = bits;
    host->foreign_told = bits;
}

static void tell_up(struct slurm *slurm, node_id node)
{
    struct slurm_host *host = &slurm->hosts[node];
    if (host->up == !host->down_told)
        return;
    slurm_report(slurm, host->up ? EVENT_NODE_UP : EVENT_NODE_DOWN)->node = node;
    host->down_told = !host->up;
}

/* GPUs of a node. */
struct owners {
    /* by Slurm's numbers: of jobs of ours, of others, of ours with shards */
    uint64_t ours, theirs, shared;
    /* by the books' numbers: of those with shards, of all of ours */
    uint64_t seats, held;
};

static const struct job *job_of(const struct slurm_entry *entry)
{
    return &entry->slurm->setup.view->jobs[entry->slot];
}

/* It runs with shards of one GPU, and has seats; the books may still have others there. */
static bool runs_on_shards(const struct slurm_entry *entry)
{
    return entry->slot != JOB_NONE && entry->now.count == 1 && entry->node_count == 1 &&
           slurm_is_running(entry) && job_of(entry)->shares;
}

/* The same, and it runs in the books. */
static bool has_shards(const struct slurm_entry *entry)
{
    return slurm_has_begun(entry) && runs_on_shards(entry);
}

static void add_held(struct owners *owners, const struct seat *seats, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        owners[seats[i].node].held |= seats[i].gpus;
}

static void add_owner(struct owners *owners, const struct slurm_entry *entry)
{
    const struct view *view = entry->slurm->setup.view;
    if (entry->slot != JOB_NONE) {
        const struct job *job = job_of(entry);
        add_held(owners, &view->seats[job->seats.first], job->seats.count);
        add_held(owners, &view->seats[job->next.first], job->next.count);
        add_held(owners, entry->now.seats, entry->now.count);
    }
    for (uint32_t i = 0; i < entry->node_count; i++) {
        struct owners *here = &owners[entry->nodes[i]];
        *(is_ours(entry) ? &here->ours : &here->theirs) |= entry->gpus[i];
    }
    if (!runs_on_shards(entry))
        return;
    owners[entry->nodes[0]].shared |= entry->gpus[0];
    owners[entry->nodes[0]].seats |= entry->now.seats[0].gpus;
}

/* How many more GPUs our jobs with shards are on than the books say. */
static uint32_t count_unbooked(const struct owners *owners)
{
    uint32_t shared = bits_count(owners->shared), seats = bits_count(owners->seats);
    return shared > seats ? shared - seats : 0;
}

/*
 * More than before: perhaps their owner has not been reported yet.  Of 'theirs' it
 * has: a job that we did not start says that it has them.
 */
static int64_t look_at(struct slurm *slurm, node_id node, const struct owners *owners,
                       bool sure)
{
    struct slurm_host *host = &slurm->hosts[node];
    uint64_t ours = owners->ours, theirs = owners->theirs;
    uint32_t unbooked = count_unbooked(owners);
    uint32_t count = bits_count((host->used | theirs) & ~ours) + unbooked;
    uint32_t known = bits_count(theirs & ~ours) + unbooked;
    int64_t now_ns = slurm_now(slurm);
    tell_up(slurm, node);
    if (count != host->foreign_seen) {
        host->foreign_seen = count;
        host->foreign_ns = now_ns;
    }
    uint32_t told = bits_count(host->foreign_told);
    if (!sure && !host->drain && count > told && now_ns < host->foreign_ns + SURE_NS) {
        if (known > told)
            tell_foreign(slurm, node, foreign_bits(slurm, node, known, owners->held));
        return host->foreign_ns + SURE_NS;
    }
    tell_foreign(slurm, node, foreign_bits(slurm, node, count, owners->held));
    /* More than are free: as soon as one of ours has left, that one is theirs. */
    bool crowded = !host->drain && (host->foreign_told & owners->held);
    return crowded ? now_ns + SURE_NS : INT64_MAX;
}

void slurm_inventory_take(struct slurm *slurm, bool sure)
{
    uint32_t count = slurm->setup.view->cluster->node_count;
    struct owners *owners = memory_checked(calloc((size_t)count + 1, sizeof *owners));
    int64_t again_ns = INT64_MAX;
    for (const struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        add_owner(owners, entry);
    for (node_id node = 0; node < count; node++) {
        int64_t at_ns = look_at(slurm, node, &owners[node], sure);
        again_ns = at_ns < again_ns ? at_ns : again_ns;
    }
    free(owners);
    slurm->nodes_changed = false;
    slurm->look_ns = again_ns;
    slurm_set_timer(slurm, again_ns);
}

static bool is_on_its_gpu(const struct slurm_entry *entry,
                          const struct slurm_entry *other)
{
    for (uint32_t i = 0; i < other->node_count; i++)
        if (other->nodes[i] == entry->nodes[0] && (other->gpus[i] & entry->gpus[0]))
            return true;
    return false;
}

bool slurm_inventory_is_as_booked(const struct slurm_entry *entry)
{
    const struct slurm_entry *partner = slurm_partner(entry);
    if (!has_shards(entry))
        return true;
    if (partner && has_shards(partner) && !is_on_its_gpu(entry, partner))
        return false;
    for (const struct slurm_entry *other = entry->slurm->first; other;
         other = other->next)
        if (other != entry && other != partner && slurm_is_running(other) &&
            is_on_its_gpu(entry, other))
            return false;
    return true;
}

/* --- a job that runs already ------------------------------------------------------------ */

static uint64_t row_bits(const struct view *view, const struct seat_row *row,
                         node_id node)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < row->count; i++)
        if (view->seats[row->first + i].node == node)
            bits |= view->seats[row->first + i].gpus;
    return bits;
}

/*
 * Held by other jobs of ours, or promised to them.  A promise that we have dropped with its
 * job stands in the engine's books until that has heard of it.
 */
static uint64_t held_bits(const struct slurm_entry *own, node_id node)
{
    const struct slurm *slurm = own->slurm;
    uint64_t bits = 0;
    for (const struct slurm_entry *entry = slurm->first; entry; entry = entry->next) {
        if (entry != own && entry->slot != JOB_NONE)
            bits |= row_bits(slurm->setup.view, &job_of(entry)->seats, node) |
                    row_bits(slurm->setup.view, &job_of(entry)->next, node);
        const struct slurm_lease *holds[] = { &entry->now, &entry->then };
        for (int h = 0; h < 2; h++)
            for (uint32_t i = 0; i < holds[h]->count; i++)
                if (holds[h]->seats[i].node == node)
                    bits |= holds[h]->seats[i].gpus;
    }
    return bits;
}

/* Free on the node, less what jobs take that the engine will see in a moment. */
static struct room room_left(const struct slurm *slurm, node_id node)
{
    const struct view *view = slurm->setup.view;
    struct room room = view->free->rooms[node];
    for (const struct slurm_entry *entry = slurm->first; entry; entry = entry->next) {
        for (uint32_t i = 0; entry->now.unbooked && i < entry->now.count; i++) {
            const struct seat *seat = &entry->now.seats[i];
            if (seat->node != node)
                continue;
            room.cpu_milli -=
                seat->cpu_milli < room.cpu_milli ? seat->cpu_milli : room.cpu_milli;
            room.mem_mib -= seat->mem_mib < room.mem_mib ? seat->mem_mib : room.mem_mib;
        }
    }
    return room;
}

/*
 * The job of ours whose GPU it shares in Slurm, and can share in the books; NULL: none.  While
 * another is adopted there, wait until the books have that.
 */
static struct slurm_entry *find_host(const struct slurm_entry *entry)
{
    struct slurm_entry *host = NULL;
    if (!job_of(entry)->shares || entry->node_count != 1)
        return NULL;
    for (struct slurm_entry *other = entry->slurm->first; other; other = other->next) {
        if (other == entry || other->stage != STAGE_RUN || !has_shards(other) ||
            !is_on_its_gpu(entry, other))
            continue;
        const struct job *job = job_of(other);
        if (other->now.seats[0].node != entry->nodes[0])
            continue; /* Slurm has moved it, and the books do not have that yet */
        if (other->now.unbooked)
            return other;
        if (job_runs(job) && job->partner == JOB_NONE && job->coming == JOB_NONE &&
            job->next_partner == JOB_NONE)
            host = other;
    }
    return host;
}

/* Where the books have room for a job that runs; 'ret_host': beside that one. */
static bool find_seats(struct slurm_entry *entry, struct slurm_entry **ret_host)
{
    struct slurm *slurm = entry->slurm;
    const struct view *view = slurm->setup.view;
    const struct job *job = &view->jobs[entry->slot];
    struct slurm_lease *hold = &entry->now;
    uint32_t nodes = entry->node_count ? entry->node_count : 1;
    *ret_host = find_host(entry);
    free(hold->seats);
    *hold = (struct slurm_lease){ .seats = memory_checked(
                                      calloc(nodes, sizeof *hold->seats)) };
    for (uint32_t i = 0; i < entry->node_count; i++) {
        node_id node = entry->nodes[i];
        const struct slurm_host *host = &slurm->hosts[node];
        struct room room = room_left(slurm, node);
        uint32_t count = bits_count(entry->gpus[i]);
        uint64_t usable = all_of(slurm, node) & ~held_bits(entry, node);
        uint64_t bits = lowest_bits(usable & host->foreign_told, count);
        bits |= lowest_bits(usable & ~bits, count - bits_count(bits));
        if (*ret_host)
            bits = (*ret_host)->now.seats[0].gpus;
        if (bits_count(bits) < count || !host->up ||
            (*ret_host && (*ret_host)->now.unbooked) ||
            view->cluster->nodes[node].type !=
                view->cluster->nodes[entry->nodes[0]].type) {
            hold->count = 0;
            return false;
        }
        uint32_t cpu_milli = job->cpu_milli / nodes;
        uint32_t mem_mib = job->mem_mib / nodes;
        hold->seats[hold->count++] =
            (struct seat){ .node = node,
                           .cpu_milli =
                               cpu_milli < room.cpu_milli ? cpu_milli : room.cpu_milli,
                           .mem_mib = mem_mib < room.mem_mib ? mem_mib : room.mem_mib,
                           .gpus = bits };
    }
    return hold->count > 0;
}

static struct event *emit_for(struct slurm_entry *entry, enum event_kind kind)
{
    struct event *event = slurm_report(entry->slurm, kind);
    event->job = entry->slot;
    event->generation = entry->generation;
    return event;
}

bool slurm_inventory_adopt(struct slurm_entry *entry, uint32_t attempt)
{
    struct slurm *slurm = entry->slurm;
    struct slurm_entry *beside;
    if (!find_seats(entry, &beside))
        return false;
    for (uint32_t i = 0; !beside && i < entry->now.count; i++) {
        const struct seat *seat = &entry->now.seats[i];
        struct slurm_host *host = &slurm->hosts[seat->node];
        tell_foreign(slurm, seat->node, host->foreign_told & ~seat->gpus);
        host->foreign_seen = bits_count(host->foreign_told);
    }
    emit_for(entry, EVENT_RELEASED); /* if it is held */
    slurm->setup.gate(slurm->setup.context, entry->id, NULL);
    struct event *placed = emit_for(entry, EVENT_PLACED);
    placed->seats = entry->now.seats;
    placed->seat_count = entry->now.count;
    placed->beside = beside ? beside->slot : JOB_NONE;
    entry->now.attempt = attempt;
    entry->now.unbooked = true;
    slurm->nodes_changed = true; /* one that is drained has nothing to give */
    return true;
}

bool slurm_inventory_has_room(struct slurm_entry *entry)
{
    struct slurm_lease lease = entry->now;
    entry->now = (struct slurm_lease){ 0 };
    struct slurm_entry *beside;
    bool room = find_seats(entry, &beside);
    free(entry->now.seats);
    entry->now = lease;
    return room;
}
