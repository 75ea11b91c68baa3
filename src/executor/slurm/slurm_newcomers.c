/* slurm_newcomers.c - jobs that are new to us, from the first sight to the engine's books. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"

/* What sbatch -C asks of a node: names of features with '&' (or a comma) and '|' between. */
#define BETWEEN "&,|"

/* Whether it is of that kind; brackets, counts and the like are not. */
static bool features_can_read(const char *wanted)
{
    return *wanted && !strpbrk(wanted, "[]()*!") && !strchr(BETWEEN, *wanted);
}

static bool is_listed(const char *has, const char *name, size_t length)
{
    while (*has) {
        size_t this = strcspn(has, ",");
        if (this == length && strncmp(has, name, length) == 0)
            return true;
        has += this + (has[this] == ',');
    }
    return false;
}

/* Whether a node with these features, "a,b", will do; read from left to right, as Slurm
 * reads it. */
static bool features_match(const char *wanted, const char *has)
{
    bool match = true;
    char before = '&';
    while (*wanted) {
        size_t length = strcspn(wanted, BETWEEN);
        bool listed = is_listed(has, wanted, length);
        match = before == '|' ? match || listed : match && listed;
        before = wanted[length];
        wanted += length + (before != '\0');
    }
    return match;
}

/* "1-3,7,10-20:2": the one at this place; false: there are not so many. */
static bool task_at(const char *tasks, uint32_t place, uint32_t *ret_task)
{
    while (*tasks) {
        unsigned first, last, step = 1;
        int read = 0;
        if (sscanf(tasks, "%u%n", &first, &read) != 1)
            return false;
        tasks += read;
        last = first;
        if (sscanf(tasks, "-%u%n", &last, &read) == 1)
            tasks += read;
        if (sscanf(tasks, ":%u%n", &step, &read) == 1)
            tasks += read;
        if (last < first || step == 0)
            return false;
        uint32_t count = (last - first) / step + 1;
        *ret_task = first + place * step;
        if (place < count)
            return true;
        place -= count;
        tasks += *tasks == ',';
    }
    return false;
}

/* Each task becomes a job of its own: to hold one does that, and nothing else. */
static void split_array(struct slurm_entry *entry)
{
    char job[48];
    uint32_t task;
    if (!task_at(entry->tasks, entry->tasks_split, &task))
        return;
    entry->tasks_split++;
    snprintf(job, sizeof job, "%" PRIu64 "_%u", entry->id, task);
    slurm_ask_as(entry, "hold", job, NULL);
}

static uint32_t shards_of_gpu(const struct slurm *slurm, node_id node)
{
    uint32_t gpus = slurm->setup.view->cluster->nodes[node].gpu_count;
    return gpus > 0 ? slurm->hosts[node].shards / gpus : 0;
}

/* Nodes that have what -C asks for (NULL: nothing), and so many shards on a GPU. */
static void find_within(const struct slurm *slurm, const char *features, int64_t shards,
                        struct buf *names)
{
    const struct cluster *cluster = slurm->setup.view->cluster;
    char text[32];
    for (node_id node = 0; node < cluster->node_count; node++) {
        const char *has = slurm->hosts[node].features;
        if ((!features || (has && features_match(features, has))) &&
            shards_of_gpu(slurm, node) >= shards)
            buf_print(names, "%s%s", names->count ? "," : "",
                      cluster_node_name(cluster, node, text, sizeof text));
    }
}

/* On the nodes where there are the most of them. */
static uint32_t shards_per_gpu(const struct slurm *slurm)
{
    const struct cluster *cluster = slurm->setup.view->cluster;
    uint32_t most = 0;
    for (node_id node = 0; node < cluster->node_count; node++)
        if (shards_of_gpu(slurm, node) > most)
            most = shards_of_gpu(slurm, node);
    return most;
}

/* Into the engine's books; 'submitted' brings it a slot. */
static void admit_entry(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    struct error err = { "" };
    if (entry->batch && !entry->asked_script) {
        entry->asked_script = true;
        slurm_ask(entry, "script", NULL);
        return;
    }
    const char *features = json_as_text(json_get(entry->news, "features"));
    int64_t shards = json_count_at(entry->news, "shards");
    struct buf within;
    buf_init(&within, 1 << 16);
    if (features ? features_can_read(features) : shards > 0)
        find_within(slurm, features, shards, &within);
    struct slurm_newcomer newcomer = { .job = entry->news,
                                       .script = entry->script,
                                       .within = within.count ? within.bytes : NULL,
                                       .shards_per_gpu = shards_per_gpu(slurm),
                                       .runs = entry->stands == STANDS_RUNNING,
                                       .reused = entry->reused };
    int r = features && !newcomer.within
                ? error_set(&err, -ENOTSUP,
                            "it asks for features that no node has, or "
                            "in a way that only Slurm can read")
                : slurm->setup.arrive(slurm->setup.context, &newcomer, &err);
    buf_release(&within);
    if (r == -ENOTSUP) {
        snprintf(entry->why, sizeof entry->why, "left to Slurm: %.120s", err.text);
        entry->left_alone = entry->let_go = true;
        slurm_due(entry, slurm_now(slurm));
    } else if (r == -EBADMSG) {
        slurm_give_up(entry, err.text);
    } else if (r == -EALREADY) {
        entry->left_alone = true;
    } else if (r < 0) {
        entry->not_before_ns = slurm_now(slurm) + LATER_NS;
        slurm_set_active(entry, true);
        slurm_due(entry, entry->not_before_ns);
        return;
    } else
        entry->arriving = true;
    json_free(entry->news);
    entry->news = NULL;
    free(entry->script);
    entry->script = NULL;
}

void slurm_meet(struct slurm_entry *entry)
{
    if (entry->let_go && entry->stands == STANDS_PENDING && entry->held)
        slurm_ask(entry, "release", NULL);
    if (entry->left_alone || entry->stands == STANDS_ENDED || !entry->news ||
        entry->completing)
        return;
    if (slurm_now(entry->slurm) < entry->not_before_ns)
        slurm_due(entry, entry->not_before_ns);
    else if (entry->tasks)
        split_array(entry);
    else
        admit_entry(entry);
}
