/* cluster_extend.c - a cluster with more nodes of types that it has. */
#include "model/cluster_extend.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/suggest.h"
#include "model/cluster.h"

#define TEXT_MAX 1024
#define ADDED_MAX 10000 /* nodes */

/* Each part is of one type: "v100:2" is read as "1xv100:2". */
static bool write_full(char *full, size_t size, const char *text)
{
    size_t used = 0;
    while (*text) {
        size_t digits = strspn(text, "0123456789");
        size_t count = strcspn(text, ",");
        bool counted = digits > 0 && text[digits] == 'x';
        int more = snprintf(full + used, size - used, "%s%.*s%s", counted ? "" : "1x",
                            (int)count, text, text[count] ? "," : "");
        if (more < 0 || (size_t)more >= size - used)
            return false;
        used += (size_t)more;
        text += count + (text[count] == ',');
    }
    return true;
}

static int read_added(struct cluster *ret_added, struct arena *arena, const char *text,
                      struct error *err)
{
    char full[TEXT_MAX];
    struct error inner;
    if (!write_full(full, sizeof full, text) || strpbrk(text, "/.") ||
        !strchr(text, ':') || cluster_load(ret_added, arena, full, &inner) < 0 ||
        ret_added->gpu_count == 0 || ret_added->node_count > ADDED_MAX)
        return error_set(err, -EINVAL,
                         "add: \"%.40s\": want TYPE:GPUS for a node, or "
                         "NODESxTYPE:GPUS, of up to %d nodes",
                         text, ADDED_MAX);
    return 0;
}

static uint32_t find_type(const struct cluster *cluster, const char *name)
{
    uint32_t type = 0;
    while (type < cluster->type_count && strcmp(cluster->types[type].name, name) != 0)
        type++;
    return type;
}

static const struct node *find_largest(const struct cluster *cluster, uint32_t type)
{
    const struct node *largest = NULL;
    for (node_id id = 0; id < cluster->node_count; id++) {
        const struct node *node = &cluster->nodes[id];
        if (node->type == type && (!largest || node->gpu_count > largest->gpu_count))
            largest = node;
    }
    return largest;
}

static void copy_nodes(struct cluster *copy, struct arena *arena,
                       const struct cluster *cluster)
{
    copy->oversubscription = cluster->oversubscription;
    copy->first_fit = cluster->first_fit;
    copy->entities = cluster->entities;
    copy->entity_count = cluster->entity_count;
    copy->users = cluster->users;
    copy->user_count = cluster->user_count;
    copy->type_count = cluster->type_count;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        copy->types[t] = cluster->types[t];
        copy->types[t].gpu_count = copy->types[t].node_gpus_max = 0; /* counted anew */
    }
    for (node_id id = 0; id < cluster->node_count; id++) {
        char name[64];
        cluster_add(copy, &cluster->nodes[id]);
        copy->node_names[id] =
            arena_text(arena, cluster_node_name(cluster, id, name, sizeof name));
    }
}

static int refuse_type(const struct cluster *cluster, const char *name,
                       struct error *err)
{
    const char *names[TYPES_MAX + 1] = { NULL };
    char hint[128];
    for (uint32_t t = 0; t < cluster->type_count; t++)
        names[t] = cluster->types[t].name;
    return error_set(err, -EINVAL,
                     "add: no GPU of type %.40s has been here, so nothing is known of "
                     "its speed%s",
                     name, suggest_names(hint, sizeof hint, name, names));
}

static int add_node(struct cluster *copy, struct arena *arena,
                    const struct cluster *cluster, const struct cluster *added,
                    node_id id, struct error *err)
{
    const struct node *wanted = &added->nodes[id];
    const char *type_name = added->types[wanted->type].name;
    uint32_t type = find_type(cluster, type_name);
    const struct node *like = find_largest(cluster, type);
    char name[32];
    if (!like)
        return refuse_type(cluster, type_name, err);
    struct node node = *like;
    node.gpu_count = wanted->gpu_count;
    node.cpu_milli =
        (uint32_t)((uint64_t)like->cpu_milli * node.gpu_count / like->gpu_count);
    node.mem_mib =
        (uint32_t)((uint64_t)like->mem_mib * node.gpu_count / like->gpu_count);
    snprintf(name, sizeof name, "added%u", id + 1);
    copy->node_names[copy->node_count] = arena_text(arena, name);
    cluster_add(copy, &node);
    return 0;
}

int cluster_extend(struct cluster *ret_cluster, struct arena *arena,
                   const struct cluster *cluster, const char *text, struct error *err)
{
    struct cluster added;
    int r = read_added(&added, arena, text, err);
    if (r < 0)
        return r;
    uint32_t count = cluster->node_count + added.node_count;
    if (count > NODES_MAX)
        return error_set(err, -EINVAL, "add: more than %d nodes", NODES_MAX);
    cluster_begin(ret_cluster, arena, cluster->name, count);
    ret_cluster->node_names = arena_array(arena, const char *, count);
    copy_nodes(ret_cluster, arena, cluster);
    for (node_id id = 0; id < added.node_count && r == 0; id++)
        r = add_node(ret_cluster, arena, cluster, &added, id, err);
    if (r == 0)
        cluster_end(ret_cluster, arena);
    return r;
}
