/* cluster.c - nodes, GPUs, their types, racks: presets, short hand, YAML, building. */
#include "model/cluster.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/yaml.h"

#define FILE_BYTES_MAX (4 * 1024 * 1024)
#define ENTRIES_MAX 10000
#define CPUS_MAX 100000
#define MEM_GIB_MAX 1000000
#define RACKS_MAX 100000
#define CPUS_PER_GPU 64 /* where nothing is said: enough for anything */
#define MEM_GIB_PER_GPU 512
#define LINK_GBPS 25
#define NOT_SAID UINT32_MAX
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
    double oversubscription; /* of the racks' uplinks; 0: none */
};

#define V100(nodes, gpus, ...) \
    { \
        nodes, "v100", gpus, .usd_per_hour = 0.74, .speed = 1, __VA_ARGS__ \
    }
#define P100(nodes, gpus, ...) \
    { \
        nodes, "p100", gpus, .usd_per_hour = 0.43, .speed = 0.5, __VA_ARGS__ \
    }
#define K80(nodes, gpus, ...) \
    { \
        nodes, "k80", gpus, .usd_per_hour = 0.135, .speed = 0.2, __VA_ARGS__ \
    }

static const struct cluster_preset presets[] = {
    { "gavel-36",
      "36 V100, 36 P100 and 36 K80, one per node (Gavel's simulated cluster)",
      { V100(36, 1), P100(36, 1), K80(36, 1) } },
    { "mixed-112",
      "4 nodes of 8 V100, 4 of 8 P100 and 6 of 8 K80, 4 a rack (for workload mixed)",
      { V100(4, 8, .nodes_per_rack = 4), P100(4, 8, .nodes_per_rack = 4),
        K80(6, 8, .nodes_per_rack = 4) },
      .oversubscription = 2 },
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
    { "lab-44",
      "unequal nodes of 8 and 4 V100, 4 P100 and 2 K80 (for workload lab)",
      { V100(1, 8), V100(2, 4), P100(4, 4), K80(6, 2) } },
    { "industry-256",
      "16 nodes of 8 V100 and 16 of 8 P100, 8 a rack (for workload industry)",
      { V100(16, 8, .nodes_per_rack = 8, .link_gbps = 100),
        P100(16, 8, .nodes_per_rack = 8, .link_gbps = 100) },
      .oversubscription = 2 },
    { "sweeps-64",
      "4 nodes of 8 V100 and 4 of 8 P100 (for workload sweeps)",
      { V100(4, 8), P100(4, 8) } },
    { "box-8", "one node of 8 V100 (for workload box)", { V100(1, 8) } },
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
        .cpu_milli = (batch->cpus ? batch->cpus : gpus * CPUS_PER_GPU) * 1000,
        .mem_mib = (batch->mem_gib ? batch->mem_gib : gpus * MEM_GIB_PER_GPU) * 1024,
        .link_bps =
            (uint64_t)((batch->link_gbps > 0 ? batch->link_gbps : LINK_GBPS) * 1e9),
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
                         "cluster part \"%.*s\": want 1 to %d GPUs in a node",
                         (int)(bytes < 60 ? bytes : 60), part, NODE_GPUS_MAX);
    uint64_t count = counted ? nodes : gpus;
    if (count < 1 || count > NODES_MAX)
        return error_set(err, -EINVAL, "cluster part \"%.*s\": want 1 to %d nodes",
                         (int)(bytes < 60 ? bytes : 60), part, NODES_MAX);
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

/* --- a cluster described in YAML, by tables of fields -------------------------------- */

struct type_entry {
    const char *name;
    double usd_per_hour, speed;
};

static const struct field type_fields[] = {
    { "name", FIELD_TEXT, offsetof(struct type_entry, name), .max = 31 },
    { "usd_per_hour", FIELD_NUMBER, offsetof(struct type_entry, usd_per_hour),
      .max = 1e6 },
    { "speed", FIELD_NUMBER, offsetof(struct type_entry, speed), .max = 1e6 },
    { 0 },
};

struct nodes_entry {
    uint32_t count, gpus, cpus, mem_gib, rack; /* or NOT_SAID */
    uint32_t nodes_per_rack;
    double link_gbps;
    const char *type;
    const struct json *names; /* or NULL */
};

#define AT(member) offsetof(struct nodes_entry, member)

static const struct field nodes_fields[] = {
    { "count", FIELD_COUNT, AT(count), .min = 1, .max = NODES_MAX },
    { "type", FIELD_TEXT, AT(type), .max = 31 },
    { "gpus", FIELD_COUNT, AT(gpus), .max = NODE_GPUS_MAX },
    { "cpus", FIELD_COUNT, AT(cpus), .max = CPUS_MAX },
    { "mem_gib", FIELD_COUNT, AT(mem_gib), .max = MEM_GIB_MAX },
    { "rack", FIELD_COUNT, AT(rack), .max = RACKS_MAX },
    { "nodes_per_rack", FIELD_COUNT, AT(nodes_per_rack) },
    { "link_gbps", FIELD_NUMBER, AT(link_gbps), .min = 0.001, .max = 1e6 },
    { "names", FIELD_OTHER },
    { 0 },
};

struct entity_entry {
    const char *name, *user; /* a group's name, or a user's */
    double weight;
    uint32_t inside;
};

static const char *const inside_words[] = { "fairness", "fifo", NULL };

static const struct field entity_fields[] = {
    { "name", FIELD_TEXT, offsetof(struct entity_entry, name), .max = 200 },
    { "user", FIELD_TEXT, offsetof(struct entity_entry, user), .max = 200 },
    { "weight", FIELD_NUMBER, offsetof(struct entity_entry, weight), .min = 1e-9,
      .max = 1e6 },
    { "inside", FIELD_CHOICE, offsetof(struct entity_entry, inside),
      .choices = inside_words },
    { 0 },
};

/* The file, and what is made of it. */
struct cluster_file {
    struct yaml_file yaml;
    struct arena *arena;
    struct error *err;

    const char *name;
    double oversubscription;
    bool first_fit;
    struct nodes_entry *nodes;
    uint32_t nodes_count;
};

static const struct field file_fields[] = {
    { "name", FIELD_TEXT, offsetof(struct cluster_file, name), .max = 100 },
    { "oversubscription", FIELD_NUMBER, offsetof(struct cluster_file, oversubscription),
      .min = 1, .max = 1000 },
    { "first_fit", FIELD_FLAG, offsetof(struct cluster_file, first_fit) },
    { "types", FIELD_OTHER },
    { "nodes", FIELD_OTHER },
    { "entities", FIELD_OTHER },
    { 0 },
};

/* How many items a list has; -EINVAL if it is no list or has too many. */
static int count_items(const struct cluster_file *file, const char *key, uint32_t max,
                       uint32_t *ret_count)
{
    const struct json *list = json_get(file->yaml.json, key);
    *ret_count = (uint32_t)json_count(list);
    if (list && (!json_is_array(list) || json_count(list) > max))
        return yaml_wrong(&file->yaml, key, file->err,
                          "%s: want a list of at most %u items", key, max);
    return 0;
}

/* Read item 'index' of the list; 'path' is set to where it stands. */
static int read_item(const struct cluster_file *file, const char *key, uint32_t index,
                     const struct field *fields, void *self, char path[32])
{
    snprintf(path, 32, "%s.%u", key, index);
    return yaml_set(&file->yaml, path, json_item(json_get(file->yaml.json, key), index),
                    fields, self, /* fill= */ false, file->arena, file->err);
}

static int read_nodes_entry(struct cluster_file *file, uint32_t index,
                            struct nodes_entry *entry)
{
    char path[32];
    *entry = (struct nodes_entry){ .count = NOT_SAID,
                                   .gpus = NOT_SAID,
                                   .cpus = NOT_SAID,
                                   .mem_gib = NOT_SAID,
                                   .rack = NOT_SAID,
                                   .link_gbps = LINK_GBPS };
    int r = read_item(file, "nodes", index, nodes_fields, entry, path);
    if (r < 0)
        return r;
    entry->names =
        json_get(json_item(json_get(file->yaml.json, "nodes"), index), "names");
    if (entry->names && !json_is_array(entry->names))
        return yaml_wrong(&file->yaml, path, file->err, "names: want a list of texts");
    uint32_t names = (uint32_t)json_count(entry->names);
    if (entry->count == NOT_SAID)
        entry->count = entry->names ? names : 1;
    if (entry->count == 0 || (entry->names && names != entry->count))
        return yaml_wrong(&file->yaml, path, file->err,
                          "%u names, want %u as count says", names, entry->count);
    if (entry->gpus == NOT_SAID)
        return yaml_wrong(&file->yaml, path, file->err, "no gpus, want a number");
    if (entry->gpus > 0 && !entry->type)
        return yaml_wrong(&file->yaml, path, file->err,
                          "no type, want one as it has GPUs");
    return 0;
}

static int read_nodes(struct cluster_file *file, uint32_t *ret_node_count)
{
    uint64_t node_count = 0;
    int r = count_items(file, "nodes", ENTRIES_MAX, &file->nodes_count);
    if (r == 0 && file->nodes_count == 0)
        r = error_set(file->err, -EINVAL, "%s: no nodes, want a list of them",
                      file->yaml.name);
    if (r < 0)
        return r;
    file->nodes = arena_array(file->arena, struct nodes_entry, file->nodes_count);
    for (uint32_t i = 0; i < file->nodes_count && r == 0; i++) {
        r = read_nodes_entry(file, i, &file->nodes[i]);
        node_count += file->nodes[i].count;
    }
    if (r == 0 && node_count > NODES_MAX)
        r = error_set(file->err, -EINVAL, "%s: %llu nodes, want at most %d",
                      file->yaml.name, (unsigned long long)node_count, NODES_MAX);
    *ret_node_count = (uint32_t)node_count;
    return r;
}

static int read_types(struct cluster_file *file, struct cluster *cluster)
{
    uint32_t count;
    int r = count_items(file, "types", TYPES_MAX, &count);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        struct type_entry entry = { 0 };
        char path[32];
        r = read_item(file, "types", i, type_fields, &entry, path);
        if (r == 0 && !entry.name)
            r = yaml_wrong(&file->yaml, path, file->err, "no name");
        if (r < 0)
            return r;
        struct accelerator *type =
            &cluster->types[cluster_type(cluster, file->arena, entry.name)];
        type->usd_per_hour = entry.usd_per_hour;
        if (entry.speed > 0)
            type->speed = entry.speed;
    }
    return r;
}

static bool has_entity(const struct entity *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

static int check_entity(const struct cluster *cluster, const struct yaml_file *file,
                        const char *path, const struct entity_entry *entry,
                        struct error *err)
{
    if (!entry->name == !entry->user)
        return yaml_wrong(file, path, err, "want either name (of a group) or user");
    if (entry->user && entry->inside == 1)
        return yaml_wrong(file, path, err, "inside: is for groups, not for users");
    if (entry->name &&
        has_entity(cluster->entities, cluster->entity_count, entry->name))
        return yaml_wrong(file, path, err, "entity \"%.40s\" again", entry->name);
    if (entry->user && has_entity(cluster->users, cluster->user_count, entry->user))
        return yaml_wrong(file, path, err, "user \"%.40s\" again", entry->user);
    return 0;
}

int cluster_read_entities(struct cluster *cluster, struct arena *arena,
                          const struct yaml_file *file, struct error *err)
{
    const struct json *list = json_get(file->json, "entities");
    uint32_t count = (uint32_t)json_count(list);
    if (list && (!json_is_array(list) || json_count(list) > ENTITIES_MAX))
        return yaml_wrong(file, "entities", err,
                          "entities: want a list of at most %u items, "
                          "{name: GROUP, weight: W} or {user: USER, weight: W}",
                          ENTITIES_MAX);
    cluster->entities = arena_array(arena, struct entity, count);
    cluster->users = arena_array(arena, struct entity, count);
    for (uint32_t i = 0; i < count; i++) {
        struct entity_entry entry = { .weight = 1 };
        char path[32];
        snprintf(path, sizeof path, "entities.%u", i);
        int r = yaml_set(file, path, json_item(list, i), entity_fields, &entry,
                         /* fill= */ false, arena, err);
        if (r == 0)
            r = check_entity(cluster, file, path, &entry, err);
        if (r < 0)
            return r;
        struct entity entity = { .name = entry.user ? entry.user : entry.name,
                                 .weight = entry.weight,
                                 .fifo = entry.inside == 1 };
        if (entry.user)
            cluster->users[cluster->user_count++] = entity;
        else
            cluster->entities[cluster->entity_count++] = entity;
    }
    return 0;
}

/* Copy a name if it is fit for tables and logs. */
static int keep_name(struct cluster *cluster, const struct cluster_file *file,
                     const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; p && *p; p++)
        if (*p <= ' ' || *p == 0x7f || *p == ',' || *p == '"')
            return error_set(file->err, -EINVAL,
                             "%s: name \"%.40s\", want no blanks, commas or quotes",
                             file->yaml.name, text);
    if (!text || !*text || strlen(text) > 200)
        return error_set(file->err, -EINVAL,
                         "%s: a name of a node has no or too many bytes",
                         file->yaml.name);
    cluster->node_names[cluster->node_count] = arena_text(file->arena, text);
    return 0;
}

static int add_entry(struct cluster *cluster, const struct cluster_file *file,
                     const struct nodes_entry *e, uint32_t first_rack)
{
    uint32_t scale = e->gpus ? e->gpus : 1;
    struct node node = {
        .gpu_count = e->gpus,
        .type = TYPE_NONE,
        .cpu_milli = (e->cpus == NOT_SAID ? CPUS_PER_GPU * scale : e->cpus) * 1000,
        .mem_mib =
            (e->mem_gib == NOT_SAID ? MEM_GIB_PER_GPU * scale : e->mem_gib) * 1024,
        .link_bps = (uint64_t)llround(e->link_gbps * 1e9),
    };
    if (e->gpus > 0)
        node.type = cluster_type(cluster, file->arena, e->type);
    if (node.type == TYPES_MAX && e->gpus > 0)
        return error_set(file->err, -EINVAL, "%s: more than %d types of GPU",
                         file->yaml.name, TYPES_MAX);
    for (uint32_t i = 0; i < e->count; i++) {
        node.rack = first_rack + (e->nodes_per_rack ? i / e->nodes_per_rack : 0);
        int r = e->names
                    ? keep_name(cluster, file, json_as_text(json_item(e->names, i)))
                    : 0;
        if (r < 0)
            return r;
        cluster_add(cluster, &node);
    }
    return 0;
}

static int add_nodes(struct cluster *cluster, const struct cluster_file *file,
                     uint32_t node_count)
{
    int r = 0;
    for (uint32_t i = 0; i < file->nodes_count; i++)
        if (file->nodes[i].names && !cluster->node_names)
            cluster->node_names = arena_array(file->arena, const char *, node_count);
    uint32_t next_rack = 0; /* for entries that name none but fill racks */
    for (uint32_t i = 0; i < file->nodes_count && r == 0; i++) {
        const struct nodes_entry *e = &file->nodes[i];
        uint32_t rack = e->rack != NOT_SAID ? e->rack
                        : e->nodes_per_rack ? next_rack
                                            : 0;
        r = add_entry(cluster, file, e, rack);
        if (r == 0 && cluster->nodes[cluster->node_count - 1].rack >= next_rack)
            next_rack = cluster->nodes[cluster->node_count - 1].rack + 1;
    }
    return r;
}

static int build_file_cluster(struct cluster *cluster, struct cluster_file *file)
{
    uint32_t node_count = 0;
    int r = yaml_set(&file->yaml, "", file->yaml.json, file_fields, file,
                     /* fill= */ false, file->arena, file->err);
    if (r == 0)
        r = read_nodes(file, &node_count);
    if (r < 0)
        return r;
    cluster_begin(cluster, file->arena, file->name ? file->name : file->yaml.name,
                  node_count);
    cluster->oversubscription = file->oversubscription;
    cluster->first_fit = file->first_fit;
    r = read_types(file, cluster);
    if (r == 0)
        r = cluster_read_entities(cluster, file->arena, &file->yaml, file->err);
    if (r == 0)
        r = add_nodes(cluster, file, node_count);
    if (r == 0)
        cluster_end(cluster, file->arena);
    return r;
}

int cluster_parse(struct cluster *cluster, struct arena *arena, const char *name,
                  const void *bytes, size_t count, struct error *err)
{
    struct cluster_file file = { .arena = arena, .err = err, .oversubscription = 1 };
    struct cluster made;
    int r = yaml_parse(&file.yaml, name, bytes, count, err);
    if (r == 0)
        r = build_file_cluster(&made, &file);
    yaml_release(&file.yaml);
    if (r == 0)
        *cluster = made;
    return r;
}

/*
 * Read a file such as
 *
 *     name: lab
 *     oversubscription: 4            # of the racks' uplinks; 1
 *     first_fit: true                # fill nodes in this order; false: the tightest first
 *     types:                         # optional: what is known of each
 *       - { name: v100, usd_per_hour: 0.74, speed: 1 }
 *     nodes:
 *       - { count: 4, type: v100, gpus: 8, cpus: 32, mem_gib: 256, rack: 0, link_gbps: 25 }
 *       - { names: [big-1, big-2], type: a100, gpus: 8, nodes_per_rack: 1 }
 *
 * -EINVAL with file, line and field if it is not as it should be.
 */
static int load_yaml(struct cluster *cluster, struct arena *arena, const char *path,
                     struct error *err)
{
    struct buf bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    int r = buf_read(&bytes, path, err);
    if (r == 0)
        r = cluster_parse(cluster, arena, path, bytes.bytes, bytes.count, err);
    buf_release(&bytes);
    return r;
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
            if (p->oversubscription > 0)
                cluster->oversubscription = p->oversubscription;
            return r;
        }
    const char *dot = strrchr(text, '.');
    bool yaml = dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
    if (yaml || strchr(text, '/') || (!strchr(text, ':') && access(text, F_OK) == 0))
        return load_yaml(cluster, arena, text, err);
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

node_id cluster_find_node(const struct cluster *cluster, const char *name)
{
    char text[64];
    for (node_id id = 0; id < cluster->node_count; id++)
        if (strcmp(cluster_node_name(cluster, id, text, sizeof text), name) == 0)
            return id;
    return NODE_NONE;
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
