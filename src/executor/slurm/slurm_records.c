/*
 * slurm_records.c - what berth-slurm reports of jobs and nodes, kept.
 *
 * Every change of a job is followed by a look at what to do about it (slurm_drive.c), every
 * change of a node by an inventory of GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "executor/slurm/slurm_heartbeat.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"
#include "model/launch.h"

/* --- nodes ---------------------------------------------------------------------------- */

/* A name that stands twice is now the later one: the node has other accelerators. */
void slurm_records_index_nodes(struct slurm *slurm)
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

static void handle_node(struct slurm *slurm, const struct json *json)
{
    node_id node = node_named(slurm, json_text_at(json, "name"));
    if (node == NODE_NONE || !node_fits(slurm, node, json)) {
        slurm->outgrown = true;
        return;
    }
    struct slurm_host *host = &slurm->hosts[node];
    uint32_t known = slurm->setup.view->cluster->nodes[node].gpu_count;
    int64_t there = json_count_at(json, "gpus");
    host->seen_in = slurm->connection;
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
    slurm->types_mixed |= json_flag_at(json, "gpu_types_mixed");
}

/* --- jobs ----------------------------------------------------------------------------- */

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

/* What was refused may be granted now, or need no longer be asked for. */
static void note_change(struct slurm_entry *entry)
{
    entry->not_before_ns = 0;
    if (entry->news != NEWS_POLLED)
        entry->news = NEWS_CHANGED;
}

/* A job waits, has its nodes, or has ended. */
static int phase_of(enum bridge_state state)
{
    return bridge_state_runs(state) ? 1 : bridge_state_has_ended(state) ? 2 : 0;
}

static void read_state(struct slurm_entry *entry, const struct json *json)
{
    enum bridge_state state = bridge_state_find(json_text_at(json, "state"));
    bool held = json_flag_at(json, "held");
    bool completing = json_flag_at(json, "completing") || state == BRIDGE_COMPLETING;
    if (phase_of(state) != phase_of(entry->state) || held != entry->held ||
        completing != entry->completing)
        note_change(entry);
    entry->seen_in = entry->slurm->connection;
    entry->state = state;
    entry->held = held;
    entry->completing = completing;
    snprintf(entry->reason, sizeof entry->reason, "%s", json_text_at(json, "reason"));
}

/* What it waits for in Slurm is known to the engine before it may start. */
static void report_gate(struct slurm_entry *entry, const struct json *json)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const char *waits_for = slurm_waits_for(json);
    /* One that runs and is not in the books yet waits for that, and for nothing else. */
    bool comes = entry->stage == STAGE_WAIT && slurm_is_running(entry);
    if (entry->slot == JOB_NONE || comes || (!waits_for && entry->gate == GATE_OPEN))
        return;
    setup->gate(setup->context, entry->id, waits_for);
    entry->gate = waits_for ? GATE_CLOSED : GATE_OPEN;
}

static void read_job(struct slurm_entry *entry, const struct json *json)
{
    bool in_array = json_count_at(json, "array_id") == (int64_t)entry->id;
    bool is_task = in_array && json_get(json, "array_task");
    read_state(entry, json);
    entry->requeue = json_flag_at(json, "requeue");
    entry->batch = json_flag_at(json, "batch");
    entry->task = is_task ? json_count_at(json, "array_task") : -1;
    entry->restarts = (uint32_t)json_count_at(json, "restarts");
    entry->exit_code = (int)json_count_at(json, "exit_code");
    entry->signal = (int)json_count_at(json, "signal");
    entry->dependent = *json_text_at(json, "dependency") != '\0';
    report_gate(entry, json);
    if (json_get(json, "nodes") || entry->node_count > 0)
        read_nodes(entry, json);
}

/* Who it was when it came; after a restart that is in the books. */
static void recall_identity(struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct launch *launch;
    struct error err;
    entry->submit_s = 0;
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
    if (entry->submit_s == SUBMIT_UNKNOWN)
        recall_identity(entry);
    if (entry->uid != (uint32_t)json_count_at(json, "uid"))
        return true;
    return entry->submit_s > 0 && json_count_at(json, "restarts") == 0 &&
           json_count_at(json, "submit") != entry->submit_s;
}

static void forget_place(struct slurm_entry *entry, enum bridge_state state)
{
    entry->seen_in = entry->slurm->connection;
    entry->completing = false;
    entry->node_count = 0;
    entry->state = state;
    entry->slurm->nodes_changed = true;
}

/* Once the books are closed on the one that had the number before, this one arrives. */
static void wait_for_number(struct slurm_entry *entry, const struct json *json)
{
    json_free(entry->reissued);
    entry->reissued = json_copy_of(json);
    forget_place(entry, BRIDGE_GONE);
    entry->not_before_ns = 0;
    slurm_drive(entry);
}

static void keep_record(struct slurm_entry *entry, const struct json *json)
{
    const char *tasks = json_text_at(json, "array_tasks");
    json_free(entry->record);
    free(entry->tasks);
    entry->record = json_copy_of(json);
    entry->tasks = *tasks ? memory_text(tasks) : NULL;
    entry->tasks_split = 0;
    entry->uid = (uint32_t)json_count_at(json, "uid");
    entry->submit_s = entry->restarts == 0 ? json_count_at(json, "submit") : 0;
    if (json_get(json, "het")) /* those are left to Slurm, which does not hold them */
        entry->stage = STAGE_CLOSED;
}

void slurm_records_take_over(struct slurm_entry *entry)
{
    struct json *reissued = entry->reissued;
    entry->reissued = NULL;
    free(entry->left);
    entry->left = NULL;
    free(entry->script);
    entry->script = NULL;
    entry->left_count = 0;
    entry->fence_ns = 0;
    entry->fruitless = 0;
    entry->stage = STAGE_NEW;
    entry->comment_due = entry->parked = false;
    entry->reported_ns = 0;
    entry->steps = entry->steps_kept = entry->saved = 0;
    entry->reused = true;
    read_job(entry, reissued);
    keep_record(entry, reissued);
    json_free(reissued);
}

static void handle_job(struct slurm *slurm, const struct json *json)
{
    int64_t id = json_count_at(json, "id");
    if (id <= 0)
        return;
    struct slurm_entry *entry = slurm_find(slurm, (uint64_t)id);
    enum bridge_state state = bridge_state_find(json_text_at(json, "state"));
    if (!entry && bridge_state_has_ended(state))
        return; /* no caller waits for it */
    if (!entry)
        entry = slurm_add(slurm, (uint64_t)id);
    if (entry->reissued || entry->state == BRIDGE_GONE || is_another(entry, json)) {
        wait_for_number(entry, json);
        return;
    }
    read_job(entry, json);
    if (entry->slot == JOB_NONE && entry->stage <= STAGE_READ)
        keep_record(entry, json);
    if (slurm_is_running(entry))
        slurm_set_active(entry, true); /* the owner of its GPUs is determined there */
    slurm_drive(entry);
}

static void handle_gone(struct slurm *slurm, uint64_t id)
{
    struct slurm_entry *entry = slurm_find(slurm, id);
    if (!entry)
        return;
    json_free(entry->reissued);
    entry->reissued = NULL;
    note_change(entry);
    forget_place(entry, slurm_has_ended(entry) ? entry->state : BRIDGE_GONE);
    if (entry->slot != JOB_NONE)
        slurm_drive(entry);
    else if (!entry->seq && entry->stage != STAGE_SUBMITTED)
        slurm_forget(entry);
}

/* --- the connection ------------------------------------------------------------------- */

static void handle_done(struct slurm *slurm, const struct json *done)
{
    int64_t seq = json_count_at(done, "seq");
    if (slurm_heartbeat_answer(slurm->heartbeat, seq, json_flag_at(done, "ok")))
        return;
    uint32_t id = map_find(&slurm->by_seq, (uint64_t)seq);
    struct slurm_entry *entry = id == MAP_NONE ? NULL : slurm_find(slurm, id);
    map_remove(&slurm->by_seq, (uint64_t)seq);
    if (entry && entry->seq == seq)
        slurm_request_done(entry, done);
}

static bool host_is_seen(const struct slurm *slurm, node_id node)
{
    return slurm->hosts[node].seen_in == slurm->connection;
}

/*
 * Which jobs were fenced when we were here the last time is not known.  While a node is
 * down, any that has run before may be one of them.
 */
static void fence_again(struct slurm *slurm)
{
    bool lost = false;
    for (node_id node = 0; node < slurm->setup.view->cluster->node_count; node++)
        lost = lost || (host_is_seen(slurm, node) && !slurm->hosts[node].up);
    for (uint32_t i = 0; lost && i < slurm->entry_count; i++)
        if (slurm->entries[i]->restarts > 0 &&
            slurm->entries[i]->state == BRIDGE_PENDING)
            slurm->entries[i]->fence_ns = slurm_now(slurm) + slurm->setup.fence_ns;
}

/* What was not named is not there. */
static void handle_synced(struct slurm *slurm)
{
    slurm->synced = true;
    for (node_id node = 0; node < slurm->setup.view->cluster->node_count; node++)
        if (!host_is_seen(slurm, node))
            slurm->hosts[node].up = false;
    if (slurm->born_ns == 0) {
        slurm->born_ns = slurm_now(slurm);
        fence_again(slurm);
    }
    slurm->trouble[0] = '\0';
    slurm_heartbeat_soon(slurm->heartbeat);
    for (uint32_t i = slurm->entry_count; i-- > 0;)
        if (!slurm_is_seen(slurm->entries[i]))
            handle_gone(slurm, slurm->entries[i]->id);
    slurm_inventory_take(slurm, true); /* before anybody is given room */
    for (uint32_t i = 0; i < slurm->entry_count; i++)
        slurm_drive(slurm->entries[i]);
}

/* What was reported no longer counts; all of it is reported again. */
static void handle_away(struct slurm *slurm, const char *why)
{
    slurm->synced = false;
    slurm->connection++;
    snprintf(slurm->trouble, sizeof slurm->trouble, "%s", why);
}

void slurm_records_broken(void *context)
{
    struct slurm *slurm = context;
    handle_away(slurm, "berth-slurm has ended");
    slurm_heartbeat_lost(slurm->heartbeat);
    for (uint32_t i = 0; i < slurm->entry_count; i++)
        slurm_request_lost(slurm->entries[i]);
    map_release(&slurm->by_seq);
    slurm->by_seq = (struct map){ 0 };
}

void slurm_records_line(void *context, const struct json *line)
{
    struct slurm *slurm = context;
    if (json_get(line, "job"))
        handle_job(slurm, json_get(line, "job"));
    else if (json_get(line, "done"))
        handle_done(slurm, json_get(line, "done"));
    else if (json_get(line, "node"))
        handle_node(slurm, json_get(line, "node"));
    else if (json_get(line, "gone"))
        handle_gone(slurm, (uint64_t)json_count_at(line, "gone"));
    else if (json_get(line, "synced"))
        handle_synced(slurm);
    else if (json_get(line, "away"))
        handle_away(slurm, json_text_at(line, "away"));
    else if (json_get(line, "wrong"))
        fprintf(stderr, "berthd: berth-slurm: %s\n", json_text_at(line, "wrong"));
    if (slurm->outgrown && slurm->synced) {
        slurm->outgrown = false;
        slurm->setup.outgrown(slurm->setup.context);
        return;
    }
    if (slurm->nodes_changed && slurm->synced)
        slurm_inventory_take(slurm, false);
}
