/* cluster.c - nodes, GPUs, their types, racks: presets, short hand, building. */
#include "model/cluster.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/suggest.h"
#include "model/cluster_yaml.h"

#define LINK_BPS UINT64_C(25000000000)

/* Nodes named by short hand have CPUs and memory for anything. */
#define CPU_MILLI_PER_GPU 64000
#define MEM_MIB_PER_GPU (512 * 1024)

#define SHORT_PARTS_MAX 64

/* Nodes that are alike. */
struct node_group {
    uint32_t count;
    const char *type;
    uint32_t gpus;
    uint32_t cpus; /* 0: as by short hand */
    uint32_t mem_gib;
    uint32_t nodes_per_rack; /* 0: all in one */
    double usd_per_hour;
    double speed;
    double link_gbps; /* 0: as by short hand */
};

struct cluster_preset {
    const char *name;
    const char *brief;
    struct node_group batches[4]; /* ended by a count of 0 */
    bool first_fit;
};

static const struct cluster_preset presets[] = {
    { "gavel-36",
      "36 V100, 36 P100 and 36 K80, one per node (Gavel's simulated cluster)",
      { { 36, "v100", 1, .usd_per_hour = 0.74, .speed = 1 },
        { 36, "p100", 1, .usd_per_hour = 0.43, .speed = 0.5 },
        { 36, "k80", 1, .usd_per_hour = 0.135, .speed = 0.2 } } },
    { "fitgpp-84",
      "84 nodes of 8 GPUs, 32 CPUs and 256 GiB, filled first fit (FitGpp's simulation)",
      { { 84, "v100", 8, .cpus = 32, .mem_gib = 256 } },
      .first_fit = true },
    { "jpas-13",
      "13 nodes of 16 GPUs on one switch at 10 Gb/s (JPAS' hosts; GPUs are not short)",
      { { 13, "v100", 16, .link_gbps = 10 } } },
    { "slaq-20", "20 nodes of 32 units (SLAQ's cores)", { { 20, "core", 32 } } },
    { "philly-like",
      "321 nodes of 2 GPUs and 231 of 8, 24 nodes a rack (Philly's mix of servers)",
      { { 321, "p12", 2, .cpus = 32, .mem_gib = 256, .nodes_per_rack = 24,
          .link_gbps = 100 },
        { 231, "p24", 8, .cpus = 64, .mem_gib = 512, .nodes_per_rack = 24,
          .link_gbps = 100 } } },
    { "helios-venus",
      "133 nodes of 8 V100, 48 CPUs and 376 GiB (Helios' cluster Venus)",
      { { 133, "v100", 8, .cpus = 48, .mem_gib = 376, .link_gbps = 100 } } },
    { "testbed-64",
      "8 nodes of 8 V100 (a common size of test beds)",
      { { 8, "v100", 8, .link_gbps = 100 } } },
    { "lab-4", "one node of 4 GPUs", { { 1, "gpu", 4 } } },
    { 0 },
};

void cluster_begin(struct cluster *cluster, struct arena *arena, const char *name,
                   uint32_t node_max)
{
    assert(node_max <= NODES_MAX);
    *cluster = (struct cluster){ .name = arena_text(arena, name),
                                 .nodes = arena_array(arena, struct node, node_max),
                                 .oversubscription = 1 };
}

uint32_t cluster_type(struct cluster *cluster, struct arena *arena, const char *name)
{
    uint32_t type = 0;
    while (type < cluster->type_count && strcmp(cluster->types[type].name, name) != 0)
        type++;
    if (type == cluster->type_count && type < TYPES_MAX) {
        cluster->types[type] =
            (struct accelerator){ .name = arena_text(arena, name), .speed = 1 };
        cluster->type_count++;
    }
    return type;
}

void cluster_add(struct cluster *cluster, const struct node *node)
{
    assert(node->gpu_count <= NODE_GPUS_MAX);
    assert(node->type < cluster->type_count || node->gpu_count == 0);
    cluster->nodes[cluster->node_count] = *node;
    if (node->gpu_count == 0)
        cluster->nodes[cluster->node_count].type = TYPE_NONE;
    cluster->node_count++;
}

static bool are_alike(const struct node *a, const struct node *b)
{
    return a->type == b->type && a->gpu_count == b->gpu_count &&
           a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib;
}

void cluster_end(struct cluster *cluster, struct arena *arena)
{
    /* Few shapes are usual; room for more is found as they turn up. */
    uint32_t room = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct node *node = &cluster->nodes[i];
        cluster->gpu_count += node->gpu_count;
        if (node->rack >= cluster->rack_count)
            cluster->rack_count = node->rack + 1;
        if (node->gpu_count > 0) {
            struct accelerator *type = &cluster->types[node->type];
            type->gpu_count += node->gpu_count;
            if (node->gpu_count > type->node_gpus_max)
                type->node_gpus_max = node->gpu_count;
        }
        uint32_t s = cluster->shape_count; /* neighbours are mostly alike: look back */
        while (s > 0 && !are_alike(&cluster->shapes[s - 1].node, node))
            s--;
        if (s > 0) {
            cluster->shapes[s - 1].count++;
            continue;
        }
        if (cluster->shape_count == room) {
            room = room ? room * 2 : 16;
            struct shape *shapes = arena_array(arena, struct shape, room);
            if (cluster->shape_count > 0)
                memcpy(shapes, cluster->shapes, cluster->shape_count * sizeof *shapes);
            cluster->shapes = shapes;
        }
        cluster->shapes[cluster->shape_count++] = (struct shape){ *node, 1 };
    }
}

static int add_batch(struct cluster *cluster, struct arena *arena,
                     const struct node_group *batch, uint32_t first_rack,
                     struct error *err)
{
    uint32_t type = cluster_type(cluster, arena, batch->type);
    if (type == TYPES_MAX)
        return error_set(err, -EINVAL, "%s: more than %d types of GPU", cluster->name,
                         TYPES_MAX);
    if (batch->usd_per_hour > 0)
        cluster->types[type].usd_per_hour = batch->usd_per_hour;
    if (batch->speed > 0)
        cluster->types[type].speed = batch->speed;
    uint32_t gpus = batch->gpus ? batch->gpus : 1;
    struct node node = {
        .type = type,
        .gpu_count = batch->gpus,
        .cpu_milli = batch->cpus ? batch->cpus * 1000 : gpus * CPU_MILLI_PER_GPU,
        .mem_mib = batch->mem_gib ? batch->mem_gib * 1024 : gpus * MEM_MIB_PER_GPU,
        .link_bps =
            batch->link_gbps > 0 ? (uint64_t)(batch->link_gbps * 1e9) : LINK_BPS,
    };
    for (uint32_t i = 0; i < batch->count; i++) {
        node.rack =
            first_rack + (batch->nodes_per_rack ? i / batch->nodes_per_rack : 0);
        cluster_add(cluster, &node);
    }
    return 0;
}

static int build_cluster(struct cluster *cluster, struct arena *arena, const char *name,
                         const struct node_group *batches, uint32_t batch_count,
                         struct error *err)
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < batch_count; i++)
        nodes += batches[i].count;
    if (nodes == 0 || nodes > NODES_MAX)
        return error_set(err, -EINVAL, "cluster %.80s: %llu nodes, want 1 to %d", name,
                         (unsigned long long)nodes, NODES_MAX);
    cluster_begin(cluster, arena, name, (uint32_t)nodes);
    uint32_t rack = 0;
    for (uint32_t i = 0; i < batch_count; i++) {
        int r = add_batch(cluster, arena, &batches[i], rack, err);
        if (r < 0)
            return r;
        if (batches[i].nodes_per_rack)
            rack = cluster->nodes[cluster->node_count - 1].rack + 1;
    }
    cluster_end(cluster, arena);
    return 0;
}

/* A whole number of digits only; where it ends. */
static const char *read_count(const char *text, uint64_t *ret_count)
{
    uint64_t count = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (count <= NODES_MAX)
            count = count * 10 + (uint64_t)(*text - '0');
    *ret_count = count;
    return text;
}

/* "TYPE:GPUS" or "NODESxTYPE:GPUS"; 'type' is a buffer of 32 bytes. */
static int read_part(const char *part, size_t bytes, struct node_group *batch,
                     char *type, struct error *err)
{
    const char *end = part + bytes;
    uint64_t nodes = 0;
    uint64_t gpus = 0;
    const char *name = read_count(part, &nodes);
    bool counted = name > part && *name == 'x';
    name = counted ? name + 1 : part;
    size_t name_bytes = strcspn(name, ":,");
    const char *colon = name + name_bytes;
    const char *after = *colon == ':' ? read_count(colon + 1, &gpus) : colon;
    if (*colon != ':' || after == colon + 1 || after != end || name_bytes == 0 ||
        name_bytes > 31 || strcspn(name, "\t =|;/\"'") < name_bytes)
        return error_set(err, -EINVAL,
                         "cluster part \"%.*s\", want TYPE:GPUS or "
                         "NODESxTYPE:GPUS, such as v100:36 or 4xv100:8",
                         (int)(bytes < 60 ? bytes : 60), part);
    if (counted && (gpus < 1 || gpus > NODE_GPUS_MAX))
        return error_set(err, -EINVAL,
                         "cluster part \"%.*s\": %llu GPUs in a node, want 1 "
                         "to %d",
                         (int)(bytes < 60 ? bytes : 60), part, (unsigned long long)gpus,
                         NODE_GPUS_MAX);
    uint64_t count = counted ? nodes : gpus;
    if (count < 1 || count > NODES_MAX)
        return error_set(
            err, -EINVAL, "cluster part \"%.*s\": %llu nodes, want 1 to %d",
            (int)(bytes < 60 ? bytes : 60), part, (unsigned long long)count, NODES_MAX);
    memcpy(type, name, name_bytes);
    type[name_bytes] = '\0';
    *batch = (struct node_group){ .count = (uint32_t)count,
                                  .type = type,
                                  .gpus = counted ? (uint32_t)gpus : 1 };
    return 0;
}

static int read_short_hand(struct cluster *cluster, struct arena *arena,
                           const char *text, struct error *err)
{
    struct node_group batches[SHORT_PARTS_MAX] = { { 0 } };
    char types[SHORT_PARTS_MAX][32];
    uint32_t count = 0;
    for (const char *part = text;;) {
        size_t bytes = strcspn(part, ",");
        if (count == SHORT_PARTS_MAX)
            return error_set(err, -EINVAL, "cluster of more than %d parts",
                             SHORT_PARTS_MAX);
        int r = read_part(part, bytes, &batches[count], types[count], err);
        if (r < 0)
            return r;
        count++;
        if (part[bytes] == '\0')
            break;
        part += bytes + 1;
    }
    return build_cluster(cluster, arena, text, batches, count, err);
}

static int no_cluster(const char *text, struct error *err)
{
    const char *names[sizeof presets / sizeof *presets] = { NULL };
    for (uint32_t i = 0; presets[i].name; i++)
        names[i] = presets[i].name;
    char hint[128];
    return error_set(err, -EINVAL,
                     "no cluster '%.80s'%s: neither a preset, nor a file, nor "
                     "short hand such as 4xv100:8",
                     text, suggest_names(hint, sizeof hint, text, names));
}

int cluster_load(struct cluster *cluster, struct arena *arena, const char *text,
                 struct error *err)
{
    for (const struct cluster_preset *p = presets; p->name; p++)
        if (strcmp(p->name, text) == 0) {
            uint32_t count = 0;
            while (count < 4 && p->batches[count].count > 0)
                count++;
            int r = build_cluster(cluster, arena, p->name, p->batches, count, err);
            cluster->first_fit = p->first_fit;
            return r;
        }
    const char *dot = strrchr(text, '.');
    bool yaml = dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
    if (yaml || strchr(text, '/') || (!strchr(text, ':') && access(text, F_OK) == 0))
        return cluster_yaml_load(cluster, arena, text, err);
    if (strchr(text, ':'))
        return read_short_hand(cluster, arena, text, err);
    return no_cluster(text, err);
}

const char *cluster_node_name(const struct cluster *cluster, node_id node, char *text,
                              unsigned size)
{
    if (cluster->node_names && cluster->node_names[node])
        return cluster->node_names[node];
    snprintf(text, size, "n%u", node);
    return text;
}

uint32_t cluster_types_named(const struct cluster *cluster, const char *names)
{
    uint32_t bits = 0;
    while (names && *names) {
        size_t bytes = strcspn(names, "|");
        for (uint32_t t = 0; t < cluster->type_count; t++)
            if (strlen(cluster->types[t].name) == bytes &&
                strncmp(cluster->types[t].name, names, bytes) == 0)
                bits |= UINT32_C(1) << t;
        names += bytes;
        names += *names == '|';
    }
    return bits;
}

void cluster_list(FILE *file)
{
    for (const struct cluster_preset *p = presets; p->name; p++)
        fprintf(file, "%-14s %s\n", p->name, p->brief);
}
