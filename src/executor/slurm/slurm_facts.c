/* slurm_facts.c - what berth-slurm says, kept: jobs and nodes as they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"
#include "model/launch.h"

/* --- nodes -------------------------------------------------------------------------- */

/* A name that stands twice is now the later one: the node has other accelerators. */
void slurm_index_nodes(struct slurm *slurm)
{
    const struct cluster *cluster = slurm->setup.view->cluster;
    char text[32];
    for (node_id node = 0; node < cluster->node_count; node++)
        map_put(&slurm->host_by_name,
                hash_text(cluster_node_name(cluster, node, text, sizeof text)), node);
}

static node_id node_named(const struct slurm *slurm, const char *name)
{
    const struct cluster *cluster = slurm->setup.view->cluster;
    char text[32];
    uint32_t node = map_find(&slurm->host_by_name, hash_text(name));
    if (node == MAP_NONE ||
        strcmp(cluster_node_name(cluster, node, text, sizeof text), name) != 0)
        return NODE_NONE;
    return node;
}

static uint64_t bits_of(const struct json *list)
{
    uint64_t bits = 0;
    int64_t index;
    for (size_t i = 0; i < json_count(list); i++)
        if (json_as_count(json_item(list, i), &index) && index >= 0 && index < 64)
            bits |= (uint64_t)1 << index;
    return bits;
}

/* The same accelerators, and not more of them than we know of. */
static bool node_fits(const struct slurm *slurm, node_id node, const struct json *json)
{
    const struct cluster *cluster = slurm->setup.view->cluster;
    const struct node *known = &cluster->nodes[node];
    const char *type = json_text_at(json, "type");
    int64_t gpus = json_count_at(json, "gpus");
    if (known->type == TYPE_NONE)
        return gpus == 0;
    return gpus <= known->gpu_count &&
           (gpus == 0 ||
            strcmp(cluster->types[known->type].name, *type ? type : "gpu") == 0);
}

static void hear_node(struct slurm *slurm, const struct json *json)
{
    node_id node = node_named(slurm, json_text_at(json, "name"));
    if (node == NODE_NONE || !node_fits(slurm, node, json)) {
        slurm->outgrown = true;
        return;
    }
    struct slurm_host *host = &slurm->hosts[node];
    uint32_t known = slurm->setup.view->cluster->nodes[node].gpu_count;
    int64_t there = json_count_at(json, "gpus");
    host->seen = true;
    host->up = json_flag_at(json, "up");
    host->drain = json_flag_at(json, "drain");
    snprintf(host->reason, sizeof host->reason, "%s", json_text_at(json, "reason"));
    host->used = bits_of(json_get(json, "used"));
    host->shards = (uint32_t)json_count_at(json, "shards");
    free(host->features);
    host->features = memory_text(json_text_at(json, "features"));
    /* What it had once and has no longer is as good as taken. */
    for (int64_t gone = there; gone < known; gone++)
        host->used |= (uint64_t)1 << gone;
    slurm->nodes_changed = true;
}

/* --- jobs --------------------------------------------------------------------------- */

struct slurm_entry *slurm_find(const struct slurm *slurm, uint64_t id)
{
    uint32_t at = map_find(&slurm->by_id, id);
    return at == MAP_NONE ? NULL : slurm->entries[at];
}

struct slurm_entry *slurm_add(struct slurm *slurm, uint64_t id)
{
    struct slurm_entry *entry = memory_checked(calloc(1, sizeof *entry));
    entry->slurm = slurm;
    entry->id = id;
    entry->slot = JOB_NONE;
    entry->task = -1;
    entry->loss = NAN;
    entry->due_ns = INT64_MAX;
    slurm->entries = grow_array(slurm->entries, &slurm->entry_room,
                                slurm->entry_count + 1, sizeof(struct slurm_entry *));
    slurm->entries[slurm->entry_count] = entry;
    map_put(&slurm->by_id, id, slurm->entry_count++);
    return entry;
}

void slurm_forget(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    uint32_t at = map_find(&slurm->by_id, entry->id);
    struct slurm_entry *last = slurm->entries[--slurm->entry_count];
    slurm_set_active(entry, false);
    slurm->entries[at] = last;
    map_put(&slurm->by_id, last->id, at);
    map_remove(&slurm->by_id, entry->id);
    if (entry->slot != JOB_NONE && slurm->slots[entry->slot] == entry)
        slurm->slots[entry->slot] = NULL;
    slurm_free_hold(&entry->now);
    slurm_free_hold(&entry->then);
    json_free(entry->news);
    json_free(entry->heir);
    free(entry->script);
    free(entry->tasks);
    free(entry->nodes);
    free(entry->gpus);
    free(entry->left);
    free(entry);
}

static enum stands stands_by(const char *state)
{
    if (strcmp(state, "PENDING") == 0)
        return STANDS_PENDING;
    /* COMPLETING: what it will be is not to be seen yet. */
    if (strcmp(state, "RUNNING") == 0 || strcmp(state, "SUSPENDED") == 0 ||
        strcmp(state, "COMPLETING") == 0)
        return STANDS_RUNNING;
    return STANDS_ENDED;
}

static void read_nodes(struct slurm_entry *entry, const struct json *json)
{
    const struct json *names = json_get(json, "nodes");
    const struct json *gpus = json_get(json, "gpu_index");
    size_t count = json_count(names);
    free(entry->nodes);
    free(entry->gpus);
    entry->nodes = memory_checked(calloc(count + 1, sizeof *entry->nodes));
    entry->gpus = memory_checked(calloc(count + 1, sizeof *entry->gpus));
    entry->node_count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_as_text(json_item(names, i));
        node_id node = name ? node_named(entry->slurm, name) : NODE_NONE;
        if (node == NODE_NONE)
            continue;
        entry->nodes[entry->node_count] = node;
        entry->gpus[entry->node_count++] = bits_of(json_get(gpus, name));
    }
    entry->slurm->nodes_changed = true;
}

const char *slurm_waits_for(const struct json *job)
{
    const char *dependency = json_text_at(job, "dependency");
    const char *comment = strstr(json_text_at(job, "comment"), SLURM_WISHES);
    const char *mark = comment ? strstr(comment, SLURM_HELD) : NULL;
    bool held = mark && (mark[-1] == ':' || mark[-1] == ';') &&
                strchr(";", mark[strlen(SLURM_HELD)]);
    if (*dependency)
        return dependency;
    return held ? "its owner, who holds it (scontrol release)" : NULL;
}

static void read_facts(struct slurm_entry *entry, const struct json *json)
{
    const char *state = json_text_at(json, "state");
    enum stands stands = stands_by(state);
    bool held = json_flag_at(json, "held");
    bool completing =
        json_flag_at(json, "completing") || strcmp(state, "COMPLETING") == 0;
    /* What was refused may be granted now, or need no longer be asked for. */
    if (stands != entry->stands || held != entry->held ||
        completing != entry->completing) {
        entry->changed = true;
        entry->not_before_ns = 0;
    }
    entry->seen = true;
    snprintf(entry->state, sizeof entry->state, "%s", state);
    snprintf(entry->reason, sizeof entry->reason, "%s", json_text_at(json, "reason"));
    entry->stands = stands;
    entry->held = held;
    entry->completing = completing;
    entry->requeue = json_flag_at(json, "requeue");
    entry->batch = json_flag_at(json, "batch");
    entry->task = json_count_at(json, "array_id") == (int64_t)entry->id &&
                          json_get(json, "array_task")
                      ? json_count_at(json, "array_task")
                      : -1;
    entry->restarts = (uint32_t)json_count_at(json, "restarts");
    entry->exit_code = (int)json_count_at(json, "exit_code");
    entry->signal = (int)json_count_at(json, "signal");
    const char *dependency = json_text_at(json, "dependency");
    const char *outside = slurm_waits_for(json);
    /* One that runs and is not in the books yet waits for that, and for nothing else. */
    bool comes = entry->wish == WISH_WAIT && stands == STANDS_RUNNING;
    if (entry->slot != JOB_NONE && !comes &&
        (outside || entry->outside || !entry->gate_told)) {
        entry->slurm->setup.gate(entry->slurm->setup.context, entry->id, outside);
        entry->gate_told = true;
    }
    entry->outside = outside != NULL;
    entry->dependent = *dependency != '\0';
    if (json_get(json, "nodes") || entry->node_count > 0)
        read_nodes(entry, json);
}

/* Who it was when it came; after a restart that is in the books. */
static void recall_identity(struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct launch *launch;
    struct error err;
    entry->identified = true;
    if (setup->launch(setup->context, entry->id, &launch, &err) < 0)
        return;
    entry->uid = launch->uid;
    entry->submit_s = launch->submitted_ns / NS_PER_S;
}

/*
 * A crash of slurmctld can make it forget a job and give its number to another.  The time of
 * submission changes with every requeue, so it says something of those without one.
 */
static bool is_another(struct slurm_entry *entry, const struct json *json)
{
    if (entry->slot == JOB_NONE)
        return false;
    if (!entry->identified)
        recall_identity(entry);
    if (entry->uid != (uint32_t)json_count_at(json, "uid"))
        return true;
    return entry->submit_s > 0 && json_count_at(json, "restarts") == 0 &&
           json_count_at(json, "submit") != entry->submit_s;
}

/* Once the books are closed on the one that had the number before, this one arrives. */
static void wait_for_number(struct slurm_entry *entry, const struct json *json)
{
    json_free(entry->heir);
    entry->heir = json_copy_of(json);
    entry->seen = true;
    entry->completing = false;
    entry->node_count = 0;
    entry->stands = STANDS_ENDED;
    snprintf(entry->state, sizeof entry->state, "GONE");
    entry->not_before_ns = 0;
    entry->slurm->nodes_changed = true;
    slurm_drive(entry);
}

static void take_news(struct slurm_entry *entry, const struct json *json)
{
    const char *tasks = json_text_at(json, "array_tasks");
    json_free(entry->news);
    free(entry->tasks);
    entry->news = json_copy_of(json);
    entry->tasks = *tasks ? memory_text(tasks) : NULL;
    entry->tasks_split = 0;
    entry->identified = true;
    entry->uid = (uint32_t)json_count_at(json, "uid");
    entry->submit_s = entry->restarts == 0 ? json_count_at(json, "submit") : 0;
    if (json_get(json, "het"))
        entry->left_alone = true;
}

void slurm_take_over(struct slurm_entry *entry)
{
    struct json *heir = entry->heir;
    entry->heir = NULL;
    free(entry->left);
    entry->left = NULL;
    free(entry->script);
    entry->script = NULL;
    entry->left_count = 0;
    entry->fence_ns = 0;
    entry->fruitless = 0;
    entry->wish = WISH_NONE;
    entry->left_alone = entry->asked_script = entry->unsaid = entry->parked = false;
    entry->own_steps = false;
    entry->steps = entry->steps_kept = entry->saved = 0;
    entry->reused = true;
    read_facts(entry, heir);
    take_news(entry, heir);
    json_free(heir);
}

static void hear_job(struct slurm *slurm, const struct json *json)
{
    int64_t id = json_count_at(json, "id");
    if (id <= 0)
        return;
    struct slurm_entry *entry = slurm_find(slurm, (uint64_t)id);
    if (!entry && stands_by(json_text_at(json, "state")) == STANDS_ENDED)
        return; /* no caller waits for it */
    if (!entry)
        entry = slurm_add(slurm, (uint64_t)id);
    bool gone = strcmp(entry->state, "GONE") == 0;
    if (entry->heir || gone || is_another(entry, json)) {
        wait_for_number(entry, json);
        return;
    }
    bool new = entry->slot == JOB_NONE && !entry->left_alone && !entry->arriving;
    read_facts(entry, json);
    if (new)
        take_news(entry, json);
    if (entry->stands == STANDS_RUNNING)
        slurm_set_active(entry, true); /* the owner of its GPUs is determined there */
    slurm_drive(entry);
}

static void hear_gone(struct slurm *slurm, uint64_t id)
{
    struct slurm_entry *entry = slurm_find(slurm, id);
    if (!entry)
        return;
    json_free(entry->heir);
    entry->heir = NULL;
    entry->seen = entry->changed = true;
    entry->not_before_ns = 0;
    entry->completing = false;
    entry->node_count = 0;
    slurm->nodes_changed = true;
    if (entry->stands != STANDS_ENDED) {
        entry->stands = STANDS_ENDED;
        snprintf(entry->state, sizeof entry->state, "GONE");
    }
    if (entry->slot != JOB_NONE)
        slurm_drive(entry);
    else if (!entry->seq && !entry->arriving)
        slurm_forget(entry);
}

/* --- all of it ------------------------------------------------------------------------ */

static void hear_done(struct slurm *slurm, const struct json *done)
{
    int64_t seq = json_count_at(done, "seq");
    uint32_t id = map_find(&slurm->by_seq, (uint64_t)seq);
    struct slurm_entry *entry = id == MAP_NONE ? NULL : slurm_find(slurm, id);
    map_remove(&slurm->by_seq, (uint64_t)seq);
    if (entry && entry->seq == seq)
        slurm_done(entry, done);
}

/*
 * Which jobs were fenced when we were here the last time is not known.  While a node is
 * down, any that has run before may be one of them.
 */
static void fence_again(struct slurm *slurm)
{
    bool lost = false;
    for (node_id node = 0; node < slurm->setup.view->cluster->node_count; node++)
        lost = lost || (slurm->hosts[node].seen && !slurm->hosts[node].up);
    for (uint32_t i = 0; lost && i < slurm->entry_count; i++)
        if (slurm->entries[i]->restarts > 0 &&
            slurm->entries[i]->stands == STANDS_PENDING)
            slurm->entries[i]->fence_ns = slurm_now(slurm) + slurm->setup.fence_ns;
}

/* What was not named is not there. */
static void hear_synced(struct slurm *slurm)
{
    slurm->synced = true;
    for (node_id node = 0; node < slurm->setup.view->cluster->node_count; node++)
        if (!slurm->hosts[node].seen)
            slurm->hosts[node].up = false;
    if (slurm->born_ns == 0) {
        slurm->born_ns = slurm_now(slurm);
        fence_again(slurm);
    }
    slurm->trouble[0] = '\0';
    for (uint32_t i = slurm->entry_count; i-- > 0;)
        if (!slurm->entries[i]->seen)
            hear_gone(slurm, slurm->entries[i]->id);
    slurm_look_at_nodes(slurm, true); /* before anybody is given room */
    for (uint32_t i = 0; i < slurm->entry_count; i++)
        slurm_drive(slurm->entries[i]);
}

static void be_away(struct slurm *slurm, const char *why)
{
    slurm->synced = false;
    snprintf(slurm->trouble, sizeof slurm->trouble, "%s", why);
    for (uint32_t i = 0; i < slurm->entry_count; i++)
        slurm->entries[i]->seen = false;
    for (node_id node = 0; node < slurm->setup.view->cluster->node_count; node++)
        slurm->hosts[node].seen = false;
}

void slurm_deaf(void *context)
{
    struct slurm *slurm = context;
    be_away(slurm, "berth-slurm has ended");
    for (uint32_t i = 0; i < slurm->entry_count; i++)
        slurm_unasked(slurm->entries[i]);
    map_release(&slurm->by_seq);
    slurm->by_seq = (struct map){ 0 };
}

void slurm_hear(void *context, const struct json *word)
{
    struct slurm *slurm = context;
    if (json_get(word, "job"))
        hear_job(slurm, json_get(word, "job"));
    else if (json_get(word, "done"))
        hear_done(slurm, json_get(word, "done"));
    else if (json_get(word, "node"))
        hear_node(slurm, json_get(word, "node"));
    else if (json_get(word, "gone"))
        hear_gone(slurm, (uint64_t)json_count_at(word, "gone"));
    else if (json_get(word, "synced"))
        hear_synced(slurm);
    else if (json_get(word, "away"))
        be_away(slurm, json_text_at(word, "away"));
    else if (json_get(word, "wrong"))
        fprintf(stderr, "berthd: berth-slurm: %s\n", json_text_at(word, "wrong"));
    if (slurm->outgrown && slurm->synced) {
        slurm->outgrown = false;
        slurm->setup.outgrown(slurm->setup.context);
        return;
    }
    if (slurm->nodes_changed && slurm->synced)
        slurm_look_at_nodes(slurm, false);
}
