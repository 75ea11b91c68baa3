/* what_if_changes.c - a history on another cluster, or without some of its jobs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"
#include "cmd/berth/what_if_history.h"
#include "model/cluster_extend.h"

/* ---- nodes ---- */

/* What takes the place of a node that is gone. */
#define NODE_GONE NODE_NONE

struct node_changes {
    struct history *history;
    const struct history_changes *changes;
    struct cluster *made;
    struct cluster all; /* with new nodes, before any is removed */
    node_id *places;    /* of the old nodes among those that stay */
};

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
        node_id id = cluster_find_node(was, name);
        if (id == NODE_NONE)
            return no_such_node(nodes->history, name, err);
        left -= nodes->places[id] != NODE_GONE;
        nodes->places[id] = NODE_GONE;
    }
    if (left == 0 && nodes->changes->add_count == 0)
        return error_set(err, -EINVAL, "--remove leaves no node");
    return 0;
}

/* All that there will be: the new nodes come after the old ones. */
static int add_nodes(struct node_changes *nodes, struct error *err)
{
    const struct cluster *was = &nodes->history->cluster;
    struct error inner;
    struct buf text;
    nodes->all = *was;
    if (nodes->changes->add_count == 0)
        return 0;
    buf_init(&text, 1 << 16);
    for (uint32_t i = 0; i < nodes->changes->add_count; i++)
        buf_print(&text, "%s%s", i > 0 ? "," : "", nodes->changes->add[i]);
    int r =
        cluster_extend(&nodes->all, &nodes->history->arena, was, text.bytes, &inner);
    buf_release(&text);
    return r < 0 ? error_set(err, r, "--%.300s", inner.text) : 0;
}

static void keep_nodes(struct node_changes *nodes)
{
    struct cluster *made = nodes->made;
    char name[64];
    for (node_id id = 0; id < nodes->all.node_count; id++) {
        bool is_old = id < nodes->history->cluster.node_count;
        if (is_old && nodes->places[id] == NODE_GONE)
            continue;
        if (is_old)
            nodes->places[id] = made->node_count;
        made->node_names[made->node_count] =
            arena_text(&nodes->history->arena,
                       cluster_node_name(&nodes->all, id, name, sizeof name));
        cluster_add(made, &nodes->all.nodes[id]);
    }
}

static int make_cluster(struct node_changes *nodes, struct error *err)
{
    const struct cluster *was = &nodes->history->cluster;
    struct cluster *made = nodes->made;
    struct arena *arena = &nodes->history->arena;
    int r = mark_removed(nodes, err);
    if (r == 0)
        r = add_nodes(nodes, err);
    if (r < 0)
        return r;
    cluster_begin(made, arena, was->name, nodes->all.node_count);
    made->oversubscription = was->oversubscription;
    made->first_fit = was->first_fit;
    made->node_names = arena_array(arena, const char *, nodes->all.node_count + 1);
    made->type_count = was->type_count;
    for (uint32_t t = 0; t < was->type_count; t++) {
        made->types[t] = was->types[t];
        made->types[t].gpu_count = made->types[t].node_gpus_max = 0;
    }
    keep_nodes(nodes);
    cluster_end(made, arena);
    made->entities = was->entities;
    made->entity_count = was->entity_count;
    made->users = was->users;
    made->user_count = was->user_count;
    return 0;
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
