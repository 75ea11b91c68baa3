/* what_if_changes.c - a history on another cluster, or without some of its jobs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/suggest.h"
#include "cmd/berth/what_if_history.h"

/* ---- nodes ---- */

/* What takes the place of a node that is gone. */
#define NODE_GONE NODE_NONE

struct node_changes {
    struct history *history;
    const struct history_changes *changes;
    struct cluster *made;
    struct cluster added; /* of one --add after the other */
    node_id *places;      /* of the old nodes among the new ones */
    uint32_t new_count;   /* nodes added so far */
};

static node_id find_node(const struct cluster *cluster, const char *name)
{
    char text[64];
    for (node_id id = 0; id < cluster->node_count; id++)
        if (strcmp(cluster_node_name(cluster, id, text, sizeof text), name) == 0)
            return id;
    return NODE_NONE;
}

static int no_such_node(const struct history *history, const char *name,
                        struct error *err)
{
    const struct cluster *cluster = &history->cluster;
    char first[64];
    char last[64];
    return error_set(
        err, -EINVAL, "--remove is \"%.40s\", want a node's name, such as %s%s%s", name,
        cluster_node_name(cluster, 0, first, sizeof first),
        cluster->node_count > 1 ? " or " : "",
        cluster->node_count > 1
            ? cluster_node_name(cluster, cluster->node_count - 1, last, sizeof last)
            : "");
}

static int mark_removed(struct node_changes *nodes, struct error *err)
{
    const struct cluster *was = &nodes->history->cluster;
    uint32_t left = was->node_count;
    for (uint32_t i = 0; i < nodes->changes->remove_count; i++) {
        const char *name = nodes->changes->remove[i];
        node_id id = find_node(was, name);
        if (id == NODE_NONE)
            return no_such_node(nodes->history, name, err);
        left -= nodes->places[id] != NODE_GONE;
        nodes->places[id] = NODE_GONE;
    }
    if (left == 0 && nodes->changes->add_count == 0)
        return error_set(err, -EINVAL, "--remove leaves no node");
    return 0;
}

/* "v100:2" is a node with two GPUs, "4xv100:8" four nodes with eight. */
static int read_added(struct node_changes *nodes, const char *text, struct error *err)
{
    char full[64];
    size_t digits = strspn(text, "0123456789");
    bool counted = digits > 0 && text[digits] == 'x';
    snprintf(full, sizeof full, "%s%s", counted ? "" : "1x", text);
    if (strlen(text) > 40 || strchr(text, ',') || !strchr(text, ':') ||
        cluster_load(&nodes->added, &nodes->history->arena, full, NULL) < 0 ||
        nodes->added.gpu_count == 0)
        return error_set(err, -EINVAL,
                         "--add is \"%.40s\", want TYPE:GPUS for a node, or "
                         "NODESxTYPE:GPUS",
                         text);
    return 0;
}

static int no_such_type(const struct history *history, const char *name,
                        struct error *err)
{
    const struct cluster *cluster = &history->cluster;
    const char *names[TYPES_MAX + 1] = { NULL };
    char hint[128];
    for (uint32_t t = 0; t < cluster->type_count; t++)
        names[t] = cluster->types[t].name;
    return error_set(
        err, -EINVAL,
        "--add: no GPU of type %.40s has been here, so nothing is known of "
        "its speed%s",
        name, suggest_names(hint, sizeof hint, name, names));
}

/* The largest node of that type; NULL: there is none with GPUs. */
static const struct node *largest_of(const struct cluster *cluster, uint32_t type)
{
    const struct node *largest = NULL;
    for (node_id id = 0; id < cluster->node_count; id++)
        if (cluster->nodes[id].type == type &&
            (!largest || cluster->nodes[id].gpu_count > largest->gpu_count))
            largest = &cluster->nodes[id];
    return largest;
}

static uint32_t scale(uint32_t value, uint32_t gpus, uint32_t of_gpus)
{
    return (uint32_t)((uint64_t)value * gpus / of_gpus);
}

/* It has CPUs and memory in proportion to those of the largest node of its type. */
static int add_nodes(struct node_changes *nodes, const char *text, struct error *err)
{
    const struct cluster *was = &nodes->history->cluster;
    int r = read_added(nodes, text, err);
    if (r < 0)
        return r;
    uint32_t type = 0;
    while (type < was->type_count &&
           strcmp(was->types[type].name, nodes->added.types[0].name) != 0)
        type++;
    const struct node *like = type < was->type_count ? largest_of(was, type) : NULL;
    if (!like)
        return no_such_type(nodes->history, nodes->added.types[0].name, err);
    for (node_id id = 0; id < nodes->added.node_count; id++) {
        struct node node = *like;
        char name[32];
        node.gpu_count = nodes->added.nodes[id].gpu_count;
        node.cpu_milli = scale(like->cpu_milli, node.gpu_count, like->gpu_count);
        node.mem_mib = scale(like->mem_mib, node.gpu_count, like->gpu_count);
        snprintf(name, sizeof name, "added%u", ++nodes->new_count);
        nodes->made->node_names[nodes->made->node_count] =
            arena_text(&nodes->history->arena, name);
        cluster_add(nodes->made, &node);
    }
    return 0;
}

/* How many nodes there will be at most. */
static int count_added(struct node_changes *nodes, uint64_t *ret_count,
                       struct error *err)
{
    *ret_count = nodes->history->cluster.node_count;
    for (uint32_t i = 0; i < nodes->changes->add_count; i++) {
        int r = read_added(nodes, nodes->changes->add[i], err);
        if (r < 0)
            return r;
        *ret_count += nodes->added.node_count;
    }
    if (*ret_count > NODES_MAX)
        return error_set(err, -EINVAL, "--add: more than %d nodes", NODES_MAX);
    return 0;
}

static void keep_nodes(struct node_changes *nodes)
{
    const struct cluster *was = &nodes->history->cluster;
    struct cluster *made = nodes->made;
    char name[64];
    for (node_id id = 0; id < was->node_count; id++) {
        if (nodes->places[id] == NODE_GONE)
            continue;
        nodes->places[id] = made->node_count;
        made->node_names[made->node_count] = arena_text(
            &nodes->history->arena, cluster_node_name(was, id, name, sizeof name));
        cluster_add(made, &was->nodes[id]);
    }
}

static int make_cluster(struct node_changes *nodes, struct error *err)
{
    const struct cluster *was = &nodes->history->cluster;
    struct cluster *made = nodes->made;
    struct arena *arena = &nodes->history->arena;
    uint64_t count = 0;
    int r = mark_removed(nodes, err);
    if (r == 0)
        r = count_added(nodes, &count, err);
    if (r < 0)
        return r;
    cluster_begin(made, arena, was->name, (uint32_t)count);
    made->oversubscription = was->oversubscription;
    made->first_fit = was->first_fit;
    made->node_names = arena_array(arena, const char *, count + 1);
    for (uint32_t t = 0; t < was->type_count; t++) {
        uint32_t at = cluster_type(made, arena, was->types[t].name);
        made->types[at] = was->types[t];
        made->types[at].gpu_count = made->types[at].node_gpus_max = 0;
    }
    keep_nodes(nodes);
    for (uint32_t i = 0; r == 0 && i < nodes->changes->add_count; i++)
        r = add_nodes(nodes, nodes->changes->add[i], err);
    cluster_end(made, arena);
    made->entities = was->entities;
    made->entity_count = was->entity_count;
    made->users = was->users;
    made->user_count = was->user_count;
    return r;
}

/* What happened to nodes that are still there. */
static void keep_changes(const struct node_changes *nodes, struct history *ret)
{
    const struct history *history = nodes->history;
    ret->change_count = 0;
    ret->changes = arena_array(&nodes->history->arena, struct sim_node_change,
                               history->change_count + 1);
    for (uint32_t i = 0; i < history->change_count; i++) {
        struct sim_node_change change = history->changes[i];
        change.node = nodes->places[change.node];
        if (change.node != NODE_GONE)
            ret->changes[ret->change_count++] = change;
    }
}

/* ---- jobs ---- */

static int check_without(const struct history *history, const char *text,
                         uint64_t *ret_id, struct error *err)
{
    const char *user = strncmp(text, "user=", 5) == 0 ? text + 5 : NULL;
    if (!user && (!number_count(text, strlen(text), ret_id) || *ret_id == 0))
        return error_set(err, -EINVAL,
                         "--without is \"%.40s\", want a job's number, or user=NAME",
                         text);
    for (uint64_t i = 0; i < history->job_count; i++) {
        const struct job_spec *job = &history->jobs[i];
        if (user ? job->user && strcmp(job->user, user) == 0 : job->id == *ret_id)
            return 0;
    }
    return error_set(err, -EINVAL,
                     "--without is \"%.40s\": no job that is played is %s", text,
                     user ? "that user's" : "that one");
}

static bool is_without(const struct history_changes *changes, const uint64_t *ids,
                       const struct job_spec *job)
{
    for (uint32_t i = 0; i < changes->without_count; i++)
        if (ids[i] ? job->id == ids[i]
                   : job->user && strcmp(job->user, changes->without[i] + 5) == 0)
            return true;
    return false;
}

static int keep_jobs(struct history *history, const struct history_changes *changes,
                     struct history *ret, struct error *err)
{
    uint64_t ids[HISTORY_CHANGES_MAX] = { 0 };
    if (changes->without_count == 0)
        return 0;
    for (uint32_t i = 0; i < changes->without_count; i++) {
        int r = check_without(history, changes->without[i], &ids[i], err);
        if (r < 0)
            return r;
    }
    ret->jobs =
        arena_array(&history->arena, struct job_spec, (size_t)history->job_count + 1);
    ret->job_count = 0;
    for (uint64_t i = 0; i < history->job_count; i++)
        if (!is_without(changes, ids, &history->jobs[i]))
            ret->jobs[ret->job_count++] = history->jobs[i];
    if (ret->job_count == 0)
        return error_set(err, -EINVAL, "--without leaves no job");
    return 0;
}

int history_change(struct history *history, const struct history_changes *changes,
                   struct history *ret, struct error *err)
{
    *ret = *history;
    int r = keep_jobs(history, changes, ret, err);
    if (r < 0 || changes->add_count + changes->remove_count == 0)
        return r;
    struct node_changes nodes = { .history = history,
                                  .changes = changes,
                                  .made = &ret->cluster };
    nodes.places =
        memory_checked(calloc(history->cluster.node_count + 1, sizeof *nodes.places));
    r = make_cluster(&nodes, err);
    if (r == 0)
        keep_changes(&nodes, ret);
    free(nodes.places);
    return r;
}
