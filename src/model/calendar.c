/* calendar.c - when which nodes or GPUs are not for everybody. */
#include "model/calendar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "model/cluster.h"
#include "model/view.h"

#define HOUR_NS INT64_C(3600000000000)
#define UNKNOWN_RUN_NS HOUR_NS /* that a job is taken to run whose work is not known */
#define GRACE_MAX_NS HOUR_NS

static void set_entry(struct calendar *calendar, const struct calendar_entry *entry)
{
    uint32_t at = 0;
    while (at < calendar->count && calendar->entries[at].id != entry->id)
        at++;
    calendar->entries =
        grow_array(calendar->entries, &calendar->room, at + 1, sizeof *entry);
    calendar->entries[at] = *entry;
    calendar->count += at == calendar->count;
}

void calendar_update(struct calendar *calendar, const struct calendar_entry *entry,
                     int64_t now_ns)
{
    uint32_t kept = 0;
    if (entry)
        set_entry(calendar, entry);
    for (uint32_t i = 0; i < calendar->count; i++)
        if (calendar->entries[i].to_ns > now_ns)
            calendar->entries[kept++] = calendar->entries[i];
    calendar->count = kept;
}

void calendar_write(const struct calendar *calendar, const struct cluster *cluster,
                    struct buf *buf)
{
    char name[32];
    for (uint32_t i = 0; i < calendar->count; i++) {
        const struct calendar_entry *entry = &calendar->entries[i];
        buf_print(buf, "%" PRIu64 " %" PRIx64 " %" PRId64 " %" PRId64 " %s %s\n",
                  entry->id, entry->gpus, entry->from_ns, entry->to_ns,
                  cluster_node_name(cluster, entry->node, name, sizeof name),
                  entry->owner);
    }
}

bool calendar_read(const char *line, const struct cluster *cluster,
                   struct calendar_entry *ret_entry)
{
    struct calendar_entry entry = { 0 };
    char node[256];
    char name[32];
    if (sscanf(line,
               "%" SCNu64 " %" SCNx64 " %" SCNd64 " %" SCNd64 " %255s%*1[ ]%63[^\n]",
               &entry.id, &entry.gpus, &entry.from_ns, &entry.to_ns, node,
               entry.owner) < 5)
        return false;
    while (entry.node < cluster->node_count &&
           strcmp(cluster_node_name(cluster, entry.node, name, sizeof name), node) != 0)
        entry.node++;
    *ret_entry = entry;
    return entry.node < cluster->node_count;
}

int64_t calendar_next_ns(const struct calendar *calendar, int64_t after_ns)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < calendar->count; i++) {
        const struct calendar_entry *entry = &calendar->entries[i];
        if (entry->from_ns > after_ns && entry->from_ns < next_ns)
            next_ns = entry->from_ns;
        if (entry->to_ns > after_ns && entry->to_ns < next_ns)
            next_ns = entry->to_ns;
    }
    return next_ns;
}

bool calendar_is_whole(const struct cluster *cluster,
                       const struct calendar_entry *entry)
{
    return bits_count(entry->gpus) >= cluster->nodes[entry->node].gpu_count;
}

static int64_t sum_of(int64_t a_ns, int64_t b_ns)
{
    int64_t sum_ns;
    return __builtin_add_overflow(a_ns, b_ns, &sum_ns) ? INT64_MAX : sum_ns;
}

int64_t calendar_leaves_ns(const struct view *view, job_id id, int64_t wait_ns)
{
    const struct job *job = &view->jobs[id];
    int64_t work_ns = view_work_left_at_most_ns(view, id);
    if (work_ns == INT64_MAX && !job->stays)
        work_ns = UNKNOWN_RUN_NS;
    /* It is there for an instant even if it has nothing left to do. */
    return sum_of(sum_of(view->now_ns + 1 + wait_ns, work_ns),
                  sum_of(job->load_ns, job->grace_ns));
}

uint64_t calendar_barred(const struct view *view, job_id id, node_id node,
                         int64_t wait_ns)
{
    uint64_t gpus = 0;
    int64_t leaves_ns =
        view->calendar->count ? calendar_leaves_ns(view, id, wait_ns) : 0;
    for (uint32_t i = 0; i < view->calendar->count; i++) {
        const struct calendar_entry *entry = &view->calendar->entries[i];
        if (entry->node == node &&
            calendar_bars(entry, view->jobs[id].user, view->now_ns, leaves_ns))
            gpus |=
                calendar_is_whole(view->cluster, entry) ? ~(uint64_t)0 : entry->gpus;
    }
    return gpus;
}

int64_t calendar_stop_ns(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct seat *seats = view_seats(view, id);
    int64_t first_ns = INT64_MAX;
    for (uint32_t i = 0; i < view->calendar->count; i++) {
        const struct calendar_entry *entry = &view->calendar->entries[i];
        if (entry->from_ns >= first_ns ||
            !calendar_bars(entry, job->user, view->now_ns, INT64_MAX))
            continue;
        bool whole = calendar_is_whole(view->cluster, entry);
        for (uint32_t s = 0; s < job->seats.count; s++)
            if (seats[s].node == entry->node &&
                (whole || (seats[s].gpus & entry->gpus)))
                first_ns = entry->from_ns;
    }
    int64_t grace_ns = job->grace_ns < GRACE_MAX_NS ? job->grace_ns : GRACE_MAX_NS;
    return first_ns == INT64_MAX ? INT64_MAX : first_ns - grace_ns;
}
