/* cluster_yaml.c - a cluster described in YAML, by tables of fields. */
#include "model/cluster_yaml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "base/json.h"
#include "base/yaml.h"
#include "model/cluster.h"

#define FILE_BYTES_MAX (4 * 1024 * 1024)
#define ENTRIES_MAX 10000
#define CPUS_MAX 100000
#define MEM_GIB_MAX 1000000
#define RACKS_MAX 100000
#define CPUS_PER_GPU 64 /* where the file says nothing: enough for anything */
#define MEM_GIB_PER_GPU 512
#define LINK_GBPS 25
#define NOT_SAID UINT32_MAX

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
    const char *name;
    double weight;
    uint32_t inside;
};

static const char *const inside_words[] = { "fairness", "fifo", NULL };

static const struct field entity_fields[] = {
    { "name", FIELD_TEXT, offsetof(struct entity_entry, name), .max = 200 },
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

static int read_entities(struct cluster_file *file, struct cluster *cluster)
{
    int r = count_items(file, "entities", ENTITIES_MAX, &cluster->entity_count);
    if (r < 0)
        return r;
    cluster->entities = arena_array(file->arena, struct entity, cluster->entity_count);
    for (uint32_t i = 0; i < cluster->entity_count; i++) {
        struct entity_entry entry = { .weight = 1 };
        char path[32];
        r = read_item(file, "entities", i, entity_fields, &entry, path);
        if (r == 0 && !entry.name)
            r = yaml_wrong(&file->yaml, path, file->err, "no name");
        for (uint32_t k = 0; k < i && r == 0; k++)
            if (strcmp(cluster->entities[k].name, entry.name) == 0)
                r = yaml_wrong(&file->yaml, path, file->err, "entity \"%.40s\" again",
                               entry.name);
        if (r < 0)
            return r;
        cluster->entities[i] = (struct entity){ .name = entry.name,
                                                .weight = entry.weight,
                                                .fifo = entry.inside == 1 };
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

static int build_cluster(struct cluster *cluster, struct cluster_file *file)
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
        r = read_entities(file, cluster);
    if (r == 0)
        r = add_nodes(cluster, file, node_count);
    if (r == 0)
        cluster_end(cluster, file->arena);
    return r;
}

int cluster_yaml_parse(struct cluster *cluster, struct arena *arena, const char *name,
                       const void *bytes, size_t count, struct error *err)
{
    struct cluster_file file = { .arena = arena, .err = err, .oversubscription = 1 };
    struct cluster made;
    int r = yaml_parse(&file.yaml, name, bytes, count, err);
    if (r == 0)
        r = build_cluster(&made, &file);
    yaml_release(&file.yaml);
    if (r == 0)
        *cluster = made;
    return r;
}

int cluster_yaml_load(struct cluster *cluster, struct arena *arena, const char *path,
                      struct error *err)
{
    struct buf bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    int r = buf_read(&bytes, path, err);
    if (r == 0)
        r = cluster_yaml_parse(cluster, arena, path, bytes.bytes, bytes.count, err);
    buf_release(&bytes);
    return r;
}
