/* slurm_nodes.c - the cluster, as Slurm has it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "executor/slurm/slurm.h"
#include "executor/slurm/slurm_link.h"
#include "model/cluster.h"

#define PATIENCE_MS 5000 /* then what is known has to do */

/* The number of GPUs never decreases here: missing ones count as foreign. */
struct found {
    char name[256];
    char type[64];
    int64_t gpus, cpus, mem_mib;
    int64_t shards; /* of all its GPUs, as it has them now */
};

struct slurm_search {
    struct found *found; /* what was known, then what is new */
    uint32_t count, room;
    const bool *stop;
    bool synced;
    bool patient; /* its time is not up */
    bool told;
};

static void raise_to(int64_t *number, const struct json *object, const char *key)
{
    int64_t count = 0;
    json_as_count(json_get(object, key), &count);
    if (count > *number)
        *number = count;
}

static void take_node(struct slurm_search *search, const struct json *node)
{
    const char *name = json_as_text(json_get(node, "name"));
    const char *type = json_as_text(json_get(node, "type"));
    type = type ? type : "";
    if (!name || !*name || strlen(name) >= 256 || strlen(type) >= 64)
        return;
    uint32_t i = 0;
    while (i < search->count && (strcmp(search->found[i].name, name) != 0 ||
                                 strcmp(search->found[i].type, type) != 0))
        i++;
    if (i == search->count) {
        search->found = grow_array(search->found, &search->room, search->count + 1,
                                   sizeof *search->found);
        struct found *found = &search->found[search->count++];
        *found = (struct found){ .gpus = 0 };
        snprintf(found->name, sizeof found->name, "%s", name);
        snprintf(found->type, sizeof found->type, "%s", type);
    }
    raise_to(&search->found[i].gpus, node, "gpus");
    raise_to(&search->found[i].cpus, node, "cpus");
    raise_to(&search->found[i].mem_mib, node, "mem_mib");
    search->found[i].shards = json_count_at(node, "shards");
}

static void take_known(struct slurm_search *search, const char *known)
{
    struct json *list = NULL;
    if (!known || json_parse(known, strlen(known), &list, NULL) < 0)
        return;
    for (size_t i = 0; i < json_count(list); i++)
        take_node(search, json_item(list, i));
    json_free(list);
}

static char *write_known(const struct slurm_search *search)
{
    struct json *list = json_new_array();
    for (uint32_t i = 0; i < search->count; i++) {
        const struct found *found = &search->found[i];
        struct json *node = json_new_object();
        json_put_text(node, "name", found->name);
        json_put_text(node, "type", found->type);
        json_put_count(node, "gpus", found->gpus);
        json_put_count(node, "cpus", found->cpus);
        json_put_count(node, "mem_mib", found->mem_mib);
        if (found->shards > 0)
            json_put_count(node, "shards", found->shards);
        json_add(list, node);
    }
    char *text = json_text(list);
    json_free(list);
    return text;
}

static void handle_message(void *context, const struct json *word)
{
    struct slurm_search *search = context;
    if (json_get(word, "node"))
        take_node(search, json_get(word, "node"));
    if (json_get(word, "synced"))
        search->synced = true;
    const char *away = json_as_text(json_get(word, "away"));
    if (away && !search->told)
        fprintf(stderr, "berthd: waiting for Slurm: %s\n", away);
    search->told = search->told || away;
}

static void ignore_break(void *context)
{
    (void)context; /* it is started again */
}

static void time_is_up(uv_timer_t *timer)
{
    struct slurm_search *search = timer->data;
    search->patient = false;
    uv_stop(timer->loop); /* the loop runs timers before it waits */
}

/* Where nodes of a type differ in that, pairs fit on all of them. */
static void count_shards(struct accelerator *type, const struct found *found)
{
    int64_t shards = found->shards / found->gpus;
    if (shards > 0 && (type->gpu_shards == 0 || shards < type->gpu_shards))
        type->gpu_shards =
            (uint32_t)(shards < SLURM_SHARDS_MAX ? shards : SLURM_SHARDS_MAX);
}

static int build_cluster(struct cluster *cluster, struct arena *arena,
                         const struct slurm_search *search, struct error *err)
{
    cluster_begin(cluster, arena, "slurm", search->count);
    cluster->node_names = arena_array(arena, const char *, search->count + 1);
    for (uint32_t i = 0; i < search->count; i++) {
        const struct found *found = &search->found[i];
        int64_t gpus = found->gpus < NODE_GPUS_MAX ? found->gpus : NODE_GPUS_MAX;
        struct node node = { .type = TYPE_NONE,
                             .gpu_count = (uint32_t)gpus,
                             .cpu_milli = (uint32_t)(found->cpus % 4000000 * 1000),
                             .mem_mib = (uint32_t)(found->mem_mib % UINT32_MAX) };
        if (gpus > 0)
            node.type =
                cluster_type(cluster, arena, found->type[0] ? found->type : "gpu");
        if (node.type == TYPES_MAX && gpus > 0)
            return error_set(err, -EINVAL, "more than %d types of accelerators",
                             TYPES_MAX);
        if (gpus > 0)
            count_shards(&cluster->types[node.type], found);
        cluster->node_names[i] = arena_text(arena, found->name);
        cluster_add(cluster, &node);
    }
    cluster_end(cluster, arena);
    return 0;
}

static void search_for(struct slurm_search *search, struct uv_loop_s *loop,
                       struct slurm_link *link)
{
    uv_timer_t timer;
    uv_timer_init(loop, &timer);
    timer.data = search;
    search->patient = true;
    uv_timer_start(&timer, time_is_up, PATIENCE_MS, 0);
    while (!search->synced && !*search->stop && (search->patient || search->count == 0))
        uv_run(loop, UV_RUN_ONCE);
    slurm_link_close(link);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_NOWAIT); /* the timer is on our stack */
}

int slurm_nodes_find(struct cluster *cluster, struct arena *arena,
                     struct uv_loop_s *loop, const struct slurm_program *program,
                     const char *known, const bool *stop, char **ret_known,
                     struct error *err)
{
    struct slurm_search search = { .stop = stop };
    struct slurm_link *link;
    struct slurm_link_setup setup = { .loop = loop,
                                      .program = *program,
                                      .line = handle_message,
                                      .broken = ignore_break,
                                      .context = &search };
    *ret_known = NULL;
    take_known(&search, known);
    int r = slurm_link_open(&link, &setup, err);
    if (r == 0)
        search_for(&search, loop, link);
    if (r == 0 && *stop)
        r = error_set(err, -EINTR, "told to stop before Slurm had answered");
    if (r == 0 && search.count == 0)
        r = error_set(err, -EINVAL, "the partitions have no nodes");
    if (r == 0)
        r = build_cluster(cluster, arena, &search, err);
    if (r == 0)
        *ret_known = write_known(&search);
    free(search.found);
    return r;
}
