/*
 * slurm.c - jobs on a Slurm cluster, as the engine and berthd see it: what berth-slurm says
 * of jobs and nodes is kept, orders become wishes, and what was under way before a restart
 * is taken up again.
 *
 * What follows from a wish and from what Slurm says is slurm_drive.c; where jobs come from
 * slurm_newcomers.c.
 */
#include "executor/slurm/slurm.h"

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
#include "executor/slurm/slurm_link.h"
#include "model/cluster.h"
#include "model/launch.h"

#define POKE_SOON_NS (NS_PER_S / 2)
#define POKE_NS (10 * NS_PER_S)

/* --- what berth-slurm says: nodes -------------------------------------------------------------------------- */

/* A name that stands twice is now the later one: the node has other accelerators. */
static void slurm_index_nodes(struct slurm *slurm)
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

/* --- what berth-slurm says: jobs --------------------------------------------------------------------------- */

struct slurm_entry *slurm_find(const struct slurm *slurm, uint64_t id)
{
    uint32_t at = map_find(&slurm->by_id, id);
    return at == MAP_NONE ? NULL : slurm->entries[at];
}

static struct slurm_entry *slurm_add(struct slurm *slurm, uint64_t id)
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

static void slurm_free_hold(struct hold *hold)
{
    free(hold->seats);
    free(hold->after);
    free(hold->after_generation);
    *hold = (struct hold){ 0 };
}

static void slurm_forget(struct slurm_entry *entry)
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

static void slurm_deaf(void *context)
{
    struct slurm *slurm = context;
    be_away(slurm, "berth-slurm has ended");
    for (uint32_t i = 0; i < slurm->entry_count; i++)
        slurm_unasked(slurm->entries[i]);
    map_release(&slurm->by_seq);
    slurm->by_seq = (struct map){ 0 };
}

/* A line from berth-slurm. */
static void slurm_hear(void *context, const struct json *word)
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

/* --- time --------------------------------------------------------------------------- */

int64_t slurm_now(const struct slurm *slurm)
{
    return slurm->setup.now_ns(slurm->setup.context);
}

static void time_passed(uv_timer_t *timer);

void slurm_set_timer(struct slurm *slurm, int64_t at_ns)
{
    if (at_ns >= slurm->timer_ns || slurm->closing)
        return;
    slurm->timer_ns = at_ns;
    int64_t left_ns = at_ns - slurm_now(slurm);
    uv_update_time(slurm->setup.loop);
    uv_timer_start(&slurm->timer, time_passed,
                   left_ns <= 0 ? 0 : (uint64_t)(left_ns / 1000000 + 1), 0);
}

void slurm_due(struct slurm_entry *entry, int64_t at_ns)
{
    if (at_ns < entry->due_ns)
        entry->due_ns = at_ns;
    slurm_set_timer(entry->slurm, entry->due_ns);
}

void slurm_set_active(struct slurm_entry *entry, bool active)
{
    struct slurm *slurm = entry->slurm;
    if (entry->active == active)
        return;
    entry->active = active;
    slurm->active_count += active ? 1 : (uint32_t)-1;
    if (active) {
        entry->prev = NULL;
        entry->next = slurm->first;
        if (slurm->first)
            slurm->first->prev = entry;
        slurm->first = entry;
        return;
    }
    if (entry->prev)
        entry->prev->next = entry->next;
    else
        slurm->first = entry->next;
    if (entry->next)
        entry->next->prev = entry->prev;
}

/*
 * Slurm looks at dependencies when it schedules, and a job that has just ended may still be
 * completing then: it would look again within a minute.  To park one of those who wait once
 * more has it look at all of them now.
 */
static void poke_dependents(struct slurm *slurm, int64_t now_ns)
{
    slurm->poke_ns = INT64_MAX;
    for (uint32_t i = 0; i < slurm->entry_count; i++) {
        struct slurm_entry *entry = slurm->entries[i];
        if (!entry->dependent || entry->wish != WISH_WAIT || !entry->parked)
            continue;
        if (!entry->seq && slurm->synced)
            slurm_ask(entry, "park", NULL);
        slurm->poke_ns = now_ns + POKE_NS;
        return;
    }
}

void slurm_poke_soon(struct slurm *slurm)
{
    int64_t at_ns = slurm_now(slurm) + POKE_SOON_NS;
    if (at_ns < slurm->poke_ns)
        slurm->poke_ns = at_ns;
    slurm_set_timer(slurm, slurm->poke_ns);
}

static void time_passed(uv_timer_t *timer)
{
    struct slurm *slurm = timer->data;
    int64_t now_ns = slurm_now(slurm);
    slurm->timer_ns = INT64_MAX;
    if (slurm->poke_ns <= now_ns)
        poke_dependents(slurm, now_ns);
    struct slurm_entry *next;
    for (struct slurm_entry *entry = slurm->first; entry; entry = next) {
        next = entry->next;
        if (entry->due_ns > now_ns)
            continue;
        entry->due_ns = INT64_MAX;
        slurm_drive(entry);
    }
    if (slurm->synced && (slurm->nodes_changed || slurm->look_ns <= now_ns))
        slurm_look_at_nodes(slurm, false);
    for (struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        slurm_set_timer(slurm, entry->due_ns);
    slurm_set_timer(slurm, slurm->poke_ns);
    slurm_set_timer(slurm, slurm->look_ns);
}

/* --- orders ----------------------------------------------------------------------------- */

static struct hold copy_lease(const struct slurm *slurm, const struct lease *lease)
{
    struct hold hold = {
        .attempt = lease->attempt,
        .count = lease->seat_count,
        .after_count = lease->after_count,
        .steps_max = lease->steps_max,
        .seats = memory_checked(calloc(lease->seat_count + 1, sizeof(struct seat))),
        .after = memory_checked(calloc(lease->after_count + 1, sizeof(job_id))),
        .after_generation =
            memory_checked(calloc(lease->after_count + 1, sizeof(uint32_t)))
    };
    for (uint32_t i = 0; i < lease->seat_count; i++)
        hold.seats[i] = lease->seats[i];
    for (uint32_t i = 0; i < lease->after_count; i++) {
        hold.after[i] = lease->after[i];
        hold.after_generation[i] = slurm->setup.view->jobs[lease->after[i]].generation;
    }
    return hold;
}

/* A lease begins: its job is to run where it says. */
static void take_lease(struct slurm_entry *entry)
{
    const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
    entry->wish = WISH_RUN;
    entry->steps = entry->steps_kept = entry->saved = job->steps;
    entry->leased = entry->now.steps_max > 0;
    entry->lease_end = entry->steps_kept + (double)entry->now.steps_max;
    entry->restarts_then = entry->restarts;
    slurm_set_active(entry, true);
}

/* The entry of a job in the engine's books; Slurm may not have told of it yet. */
static struct slurm_entry *tie_entry(struct slurm *slurm, job_id slot)
{
    const struct job *job = &slurm->setup.view->jobs[slot];
    struct slurm_entry *entry = slurm_find(slurm, job->id);
    if (!entry)
        entry = slurm_add(slurm, job->id);
    entry->slot = slot;
    entry->arriving = false;
    entry->generation = job->generation;
    slurm->slots[slot] = entry;
    return entry;
}

static int slurm_start(void *self, const struct lease *lease, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, lease->job);
    if (!entry)
        return 0; /* it has ended, and that is on its way */
    bool moves = entry->wish == WISH_LEAVE || entry->now.count > 0;
    struct hold *hold = moves ? &entry->then : &entry->now;
    if (hold->count > 0 && hold->attempt == lease->attempt)
        return 0; /* told twice */
    slurm_free_hold(hold);
    *hold = copy_lease(slurm, lease);
    if (!moves) {
        take_lease(entry);
        slurm_due(entry, slurm_now(slurm));
    }
    return 0;
}

static int slurm_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->wish != WISH_RUN)
        return 0;
    entry->wish = WISH_LEAVE;
    entry->evict_ns = slurm_now(slurm) + (slurm_has_signal(entry) ? grace_ns : 0);
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    return 0;
}

static int slurm_cancel(void *self, job_id job, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->wish == WISH_NONE)
        return 0;
    slurm_free_hold(&entry->then);
    entry->evicting = false;
    entry->evict_ns = slurm_now(slurm);
    entry->wish = WISH_END;
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    return 0;
}

static int slurm_renew(void *self, job_id job, uint64_t steps_max, bool together,
                       struct error *err)
{
    struct slurm_entry *entry = slurm_at(self, job);
    if (!entry || entry->wish != WISH_RUN)
        return 0;
    entry->leased = steps_max > 0;
    entry->lease_end = slurm_steps_now(entry) + (double)steps_max;
    if (entry->told_started)
        slurm_check_lease(entry);
    return 0;
}

/* --- a restart ----------------------------------------------------------------------------- */

static int slurm_reattach(void *self, const struct lease *lease, bool stopping,
                          int64_t grace_left_ns, struct error *err)
{
    struct slurm *slurm = self;
    const struct job *job = &slurm->setup.view->jobs[lease->job];
    struct slurm_entry *entry = tie_entry(slurm, lease->job);
    entry->now = copy_lease(slurm, lease);
    take_lease(entry);
    entry->told_started = job_holds_seats(job);
    entry->loaded = job->state != JOB_LOADING;
    entry->started_ns = job->since_ns;
    entry->loaded_at_ns = slurm_now(slurm);
    entry->restarts_then = UINT32_MAX; /* not known; whether it has started is */
    if (stopping) {
        entry->wish = WISH_LEAVE;
        entry->evict_ns = slurm_now(slurm) + grace_left_ns;
    }
    return 0;
}

/* All jobs that the engine knows and that are not under way wait. */
static void slurm_settle(void *self)
{
    struct slurm *slurm = self;
    const struct view *view = slurm->setup.view;
    for (job_id slot = 0; slot < view->job_max; slot++)
        if (view->jobs[slot].state == JOB_WAITING || view->jobs[slot].state == JOB_HELD)
            tie_entry(slurm, slot)->wish = WISH_WAIT;
}

/* --- what the engine makes of it -------------------------------------------------------------- */

/* It stays held, and says why: its owner can change it or cancel it. */
void slurm_give_up(struct slurm_entry *entry, const char *why)
{
    if (!entry)
        return;
    entry->left_alone = entry->unsaid = true;
    entry->arriving = false;
    snprintf(entry->why, sizeof entry->why, "%s", why ? why : "given up");
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(entry->slurm));
}

/* It is out of the engine's books. */
static void untie_entry(struct slurm_entry *entry, const struct event *event)
{
    struct slurm *slurm = entry->slurm;
    slurm->slots[entry->slot] = NULL;
    entry->slot = JOB_NONE;
    entry->left_alone = true;
    slurm_free_hold(&entry->now);
    slurm_free_hold(&entry->then);
    if (entry->stands == STANDS_ENDED && entry->seen) {
        entry->wish = WISH_NONE;
        if (entry->heir) {
            slurm_set_active(entry, true);
            slurm_due(entry, slurm_now(slurm));
        }
        return;
    }
    bool unwanted = event->kind == EVENT_CANCELLED || event->kind == EVENT_DROPPED ||
                    entry->wish == WISH_END;
    entry->evicting = false;
    entry->evict_ns = slurm_now(slurm);
    entry->wish = unwanted ? WISH_END : WISH_NONE;
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    if (!unwanted)
        slurm_give_up(entry, event->why);
}

static void hear_event(void *self, const struct view *view, const struct event *event)
{
    struct slurm *slurm = self;
    if (event->kind == EVENT_REJECTED) {
        slurm_give_up(slurm_find(slurm, event->spec->id), event->why);
        return;
    }
    if (event->job == JOB_NONE)
        return;
    if (event->kind == EVENT_SUBMITTED) {
        struct slurm_entry *entry = tie_entry(slurm, event->job);
        entry->wish = WISH_WAIT;
        slurm_set_active(entry, true);
        /* Not now: what the engine is about to decide does not know of seats we take.  One
         * that runs already stands at a gate until then. */
        slurm_due(entry, slurm_now(slurm));
        return;
    }
    struct slurm_entry *entry = slurm_at(slurm, event->job);
    if (entry && event->kind == EVENT_PLACED)
        entry->adopting = false;
    if (entry && view->jobs[event->job].state == JOB_FREE)
        untie_entry(entry, event);
}

static int hear_commit(void *self, struct error *err)
{
    return 0;
}

static uint32_t slurm_count(const void *self)
{
    const struct slurm *slurm = self;
    uint32_t under_way = 0;
    for (const struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        under_way += entry->now.count > 0;
    return under_way;
}

/* --- progress --------------------------------------------------------------------------------- */

static void report_step(void *self, job_id job, double step, double loss, double total)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->wish != WISH_RUN || !entry->told_started)
        return;
    int64_t now_ns = slurm_now(slurm);
    if (entry->own_steps && entry->reported_ns > 0 && now_ns > entry->reported_ns &&
        step > entry->steps) {
        double rate =
            (step - entry->steps) / ((double)(now_ns - entry->reported_ns) * 1e-9);
        entry->rate_per_s =
            entry->rate_per_s > 0 ? 0.7 * entry->rate_per_s + 0.3 * rate : rate;
    }
    entry->own_steps = true;
    entry->reported_ns = now_ns;
    entry->steps = step;
    entry->loss = loss;
    entry->total = total > 0 ? total : entry->total;
    slurm_tell_loaded(entry);
    struct event *event = slurm_tell(entry, EVENT_PROGRESS);
    event->steps = event->steps_reached = step;
    event->rate_per_s = entry->rate_per_s;
    event->measured = slurm_is_as_booked(entry);
    event->loss = loss;
    event->steps_total = entry->total;
    event->steps_saved = entry->saved > entry->steps_kept ? entry->saved : 0;
    slurm_check_lease(entry);
}

static void note_saved(void *self, job_id job, double step)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (entry && entry->told_started)
        entry->saved = step;
}

static const char *trouble_of(const void *self)
{
    const struct slurm *slurm = self;
    return slurm->synced ? "" : slurm->trouble[0] ? slurm->trouble : "not heard yet";
}

static const char *node_reason(const void *self, node_id node)
{
    const struct slurm *slurm = self;
    return slurm->hosts[node].reason;
}

static const char *job_reason(const void *self, uint64_t id)
{
    const struct slurm_entry *entry = slurm_find(self, id);
    return entry ? entry->reason : "";
}

/* --- beginning and end -------------------------------------------------------------------------- */

int slurm_open(struct slurm **ret_slurm, const struct slurm_setup *setup,
               struct error *err)
{
    struct slurm *slurm = memory_checked(calloc(1, sizeof *slurm));
    slurm->setup = *setup;
    slurm->timer_ns = slurm->look_ns = slurm->poke_ns = INT64_MAX;
    slurm->slots =
        memory_checked(calloc(setup->view->job_max, sizeof(struct slurm_entry *)));
    slurm->hosts = memory_checked(
        calloc(setup->view->cluster->node_count + 1, sizeof(struct slurm_host)));
    slurm->host_count = setup->view->cluster->node_count;
    slurm_index_nodes(slurm);
    struct slurm_link_setup link = { .loop = setup->loop,
                                     .program = setup->program,
                                     .line = slurm_hear,
                                     .broken = slurm_deaf,
                                     .context = slurm };
    uv_timer_init(setup->loop, &slurm->timer);
    slurm->timer.data = slurm;
    *ret_slurm = slurm;
    return slurm_link_open(&slurm->link, &link, err);
}

static void timer_closed(uv_handle_t *handle)
{
    struct slurm *slurm = handle->data;
    while (slurm->entry_count > 0)
        slurm_forget(slurm->entries[slurm->entry_count - 1]);
    map_release(&slurm->by_id);
    map_release(&slurm->by_seq);
    map_release(&slurm->host_by_name);
    for (node_id node = 0; node < slurm->host_count; node++)
        free(slurm->hosts[node].features);
    free(slurm->entries);
    free(slurm->slots);
    free(slurm->hosts);
    free(slurm);
}

static void close_slurm(void *self)
{
    struct slurm *slurm = self;
    slurm->closing = true;
    slurm_link_close(slurm->link);
    uv_close((uv_handle_t *)&slurm->timer, timer_closed);
}

const struct executor executor_slurm = {
    .name = "slurm",
    .start = slurm_start,
    .stop = slurm_stop,
    .cancel = slurm_cancel,
    .renew = slurm_renew,
    .close = close_slurm,
    .reattach = slurm_reattach,
    .settle = slurm_settle,
    .event = hear_event,
    .commit = hear_commit,
    .count = slurm_count,
    .remote = true,
    .submit_command = "sbatch",
    .report = report_step,
    .saved = note_saved,
    .trouble = trouble_of,
    .job_reason = job_reason,
    .node_reason = node_reason,
};
