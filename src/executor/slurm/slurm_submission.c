/* slurm_submission.c - submit a job to berthd: its array split, the nodes it may run on found. */
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
void slurm_submission_split(struct slurm_entry *entry)
{
    uint32_t task;
    if (task_at(entry->tasks, entry->tasks_split, &task)) {
        entry->tasks_split++;
        slurm_request_task(entry, task);
    }
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

/* The nodes it may run on, by what it says of features and shards. */
static void list_nodes(const struct slurm_entry *entry, struct buf *names)
{
    const char *features = json_as_text(json_get(entry->record, "features"));
    int64_t shards = json_count_at(entry->record, "shards");
    if (features ? features_can_read(features) : shards > 0)
        find_within(entry->slurm, features, shards, names);
}

/* Its record with all that berthd has to know besides. */
static struct json *complete_record(const struct slurm_entry *entry)
{
    struct json *job = json_copy_of(entry->record);
    struct buf within;
    buf_init(&within, 1 << 16);
    list_nodes(entry, &within);
    if (within.count)
        json_put_text(job, "within", within.bytes);
    buf_release(&within);
    if (entry->script)
        json_put_text(job, "script", entry->script);
    json_put_count(job, "shards_per_gpu", shards_per_gpu(entry->slurm));
    json_put_flag(job, "runs", slurm_is_running(entry));
    json_put_flag(job, "reused", entry->reused);
    return job;
}

static int submit(const struct slurm_entry *entry, struct error *err)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    struct json *job = complete_record(entry);
    int r = json_as_text(json_get(job, "features")) && !json_get(job, "within")
                ? error_set(err, -ENOTSUP,
                            "it asks for features that no node has, or "
                            "in a way that only Slurm can read")
                : setup->arrive(setup->context, job, err);
    json_free(job);
    return r;
}

static void leave_to_slurm(struct slurm_entry *entry, const char *why)
{
    snprintf(entry->why, sizeof entry->why, "left to Slurm: %.120s", why);
    entry->stage = STAGE_UNMANAGED;
    slurm_due(entry, slurm_now(entry->slurm));
}

static void try_again_later(struct slurm_entry *entry)
{
    entry->not_before_ns = slurm_now(entry->slurm) + LATER_NS;
    slurm_set_active(entry, true);
    slurm_due(entry, entry->not_before_ns);
}

/*
 * It came while nobody held it.  One that runs by now runs on, one that waits is held from now
 * on, and its comment says so.
 */
static void note_return(struct slurm_entry *entry)
{
    bool runs = slurm_is_running(entry);
    if (strcmp(json_text_at(entry->record, "admin_comment"), SLURM_LEFT) != 0)
        return;
    fprintf(stderr, "berthd: job %" PRIu64 " came while berthd was away: it %s\n",
            entry->id, runs ? "runs on" : "waits for Berth now");
    if (runs)
        return;
    snprintf(entry->why, sizeof entry->why, "waits for Berth, which is back");
    entry->comment_due = true;
}

/* To berthd; the event 'submitted' brings it a slot in the engine's books. */
void slurm_submission_make(struct slurm_entry *entry)
{
    struct error err = { "" };
    int r = submit(entry, &err);
    if (r == -ENOTSUP)
        leave_to_slurm(entry, err.text);
    else if (r == -EBADMSG)
        slurm_give_up(entry, err.text);
    else if (r < 0 && r != -EALREADY) {
        try_again_later(entry);
        return;
    } else
        entry->stage = r < 0 ? STAGE_CLOSED : STAGE_SUBMITTED;
    if (r == 0)
        note_return(entry);
    json_free(entry->record);
    entry->record = NULL;
    free(entry->script);
    entry->script = NULL;
}
