/*
 * cluster_yaml.c - a cluster described in YAML, through libcyaml.
 *
 * The schema below is the format: what is not in it is refused.  The library says what
 * is wrong in its log and where in a trace of fields that follows; both are kept and
 * made into one sentence.
 */
#include "model/cluster_yaml.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cyaml/cyaml.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "model/cluster.h"

#define FILE_BYTES_MAX (4 * 1024 * 1024)
#define ENTRIES_MAX 10000
#define CPUS_MAX 100000
#define MEM_GIB_MAX 1000000
#define RACKS_MAX 100000
#define CPUS_PER_GPU 64 /* where the file says nothing: enough for anything */
#define MEM_GIB_PER_GPU 512
#define LINK_GBPS 25

struct type_entry {
    char *name;
    double usd_per_hour;
    double speed;
};

struct nodes_entry {
    uint32_t *count;
    char *type;
    uint32_t gpus;
    uint32_t *cpus;
    uint32_t *mem_gib;
    uint32_t *rack;
    uint32_t nodes_per_rack;
    double *link_gbps;
    char **names;
    unsigned names_count;
};

struct entity_entry {
    char *name;
    double *weight;
    enum { INSIDE_FAIRNESS, INSIDE_FIFO } inside;
};

struct cluster_file {
    char *name;
    double *oversubscription;
    bool first_fit;
    struct type_entry *types;
    unsigned types_count;
    struct nodes_entry *nodes;
    unsigned nodes_count;
    struct entity_entry *entities;
    unsigned entities_count;
};

static const cyaml_schema_value_t text_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 200),
};

static const cyaml_schema_field_t type_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct type_entry, name, 1, 31),
    CYAML_FIELD_FLOAT("usd_per_hour", CYAML_FLAG_OPTIONAL, struct type_entry,
                      usd_per_hour),
    CYAML_FIELD_FLOAT("speed", CYAML_FLAG_OPTIONAL, struct type_entry, speed),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t type_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct type_entry, type_fields),
};

static const cyaml_schema_field_t nodes_fields[] = {
    CYAML_FIELD_UINT_PTR("count", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct nodes_entry, count),
    CYAML_FIELD_STRING_PTR("type", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                           struct nodes_entry, type, 1, 31),
    CYAML_FIELD_UINT("gpus", CYAML_FLAG_DEFAULT, struct nodes_entry, gpus),
    CYAML_FIELD_UINT_PTR("cpus", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct nodes_entry, cpus),
    CYAML_FIELD_UINT_PTR("mem_gib", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct nodes_entry, mem_gib),
    CYAML_FIELD_UINT_PTR("rack", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct nodes_entry, rack),
    CYAML_FIELD_UINT("nodes_per_rack", CYAML_FLAG_OPTIONAL, struct nodes_entry,
                     nodes_per_rack),
    CYAML_FIELD_FLOAT_PTR("link_gbps", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                          struct nodes_entry, link_gbps),
    CYAML_FIELD_SEQUENCE("names", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct nodes_entry, names, &text_schema, 0, NODES_MAX),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t nodes_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct nodes_entry, nodes_fields),
};

static const cyaml_strval_t inside_words[] = {
    { "fairness", INSIDE_FAIRNESS },
    { "fifo", INSIDE_FIFO },
};

static const cyaml_schema_field_t entity_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct entity_entry, name, 1,
                           200),
    CYAML_FIELD_FLOAT_PTR("weight", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                          struct entity_entry, weight),
    CYAML_FIELD_ENUM("inside", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT,
                     struct entity_entry, inside, inside_words, 2),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t entity_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct entity_entry, entity_fields),
};

static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                           struct cluster_file, name, 1, 100),
    CYAML_FIELD_FLOAT_PTR("oversubscription", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                          struct cluster_file, oversubscription),
    CYAML_FIELD_BOOL("first_fit", CYAML_FLAG_OPTIONAL, struct cluster_file, first_fit),
    CYAML_FIELD_SEQUENCE("types", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct cluster_file, types, &type_schema, 0, TYPES_MAX),
    CYAML_FIELD_SEQUENCE("nodes", CYAML_FLAG_POINTER, struct cluster_file, nodes,
                         &nodes_schema, 1, ENTRIES_MAX),
    CYAML_FIELD_SEQUENCE("entities", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct cluster_file, entities, &entity_schema, 0,
                         ENTITIES_MAX),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct cluster_file, file_fields),
};

/* What the library logged: its first complaint, and the first place named after it. */
struct complaint {
    char what[160];
    char where[160];
};

static void note(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
    struct complaint *complaint = ctx;
    char line[160];
    vsnprintf(line, sizeof line, fmt, args);
    line[strcspn(line, "\n")] = '\0';
    const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;
    if (strncmp(text, "  in ", 5) == 0) {
        if (!complaint->where[0])
            snprintf(complaint->where, sizeof complaint->where, "%s", text + 5);
    } else if (!complaint->what[0] && strcmp(text, "Backtrace:") != 0) {
        snprintf(complaint->what, sizeof complaint->what, "%s", text);
    }
}

/* The number after "line: " in either text; 0 if there is none. */
static unsigned find_line(const struct complaint *complaint)
{
    const char *const texts[] = { complaint->where, complaint->what };
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(texts[i], "line");
        at = at ? strpbrk(at, "0123456789") : NULL;
        if (at)
            return (unsigned)strtoul(at, NULL, 10);
    }
    return 0;
}

static int explain(const char *name, cyaml_err_t status, struct complaint *complaint,
                   struct error *err)
{
    unsigned line = find_line(complaint);
    char *place = strstr(complaint->where, " (line");
    if (place)
        *place = '\0';
    for (unsigned char *p = (unsigned char *)complaint->what; *p; p++)
        if (*p < ' ' || *p == 0x7f)
            *p = '?';
    const char *what = complaint->what[0] ? complaint->what : cyaml_strerror(status);
    if (line == 0)
        return error_set(err, -EINVAL, "%s: %s%s%s", name, what,
                         complaint->where[0] ? ", in " : "", complaint->where);
    return error_set(err, -EINVAL, "%s:%u: %s%s%s", name, line, what,
                     complaint->where[0] ? ", in " : "", complaint->where);
}

/* What the checks after loading need to say where they are. */
struct place {
    const char *file;
    const char *bytes;
    size_t count;
};

/* Where the line after 'line' begins, or 'end'. */
static const char *next_line(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline + 1 : end;
}

/*
 * The line of item 'index' of the list under 'key'.  The library forgets lines once it
 * has loaded, so look for the dashes again; a list in brackets is where its key is.
 */
static unsigned line_of(const struct place *at, const char *key, unsigned index)
{
    const char *end = at->bytes + at->count;
    unsigned line = 0;
    unsigned key_line = 0;
    size_t dash = SIZE_MAX; /* how far in the items of this list stand */
    for (const char *p = at->bytes; p < end; p = next_line(p, end)) {
        line++;
        size_t bytes = (size_t)(next_line(p, end) - p);
        if (bytes > strlen(key) && strncmp(p, key, strlen(key)) == 0 &&
            p[strlen(key)] == ':')
            key_line = line;
        size_t in = 0;
        while (in < bytes && p[in] == ' ')
            in++;
        if (!key_line || in == bytes || p[in] != '-')
            continue;
        if (dash == SIZE_MAX)
            dash = in;
        if (in == dash && index-- == 0)
            return line;
    }
    return key_line;
}

/* Check a number of one entry of 'nodes'. */
static int check(const struct place *at, unsigned entry, const char *field,
                 double value, double min, double max, struct error *err)
{
    if (value >= min && value <= max)
        return 0;
    return error_set(err, -EINVAL, "%s:%u: %s is %.7g, want %.7g to %.7g", at->file,
                     line_of(at, "nodes", entry), field, value, min, max);
}

static uint32_t count_of(const struct nodes_entry *entry)
{
    return entry->count ? *entry->count : entry->names ? entry->names_count : 1;
}

static int check_entry(const struct place *at, unsigned i, const struct nodes_entry *e,
                       struct error *err)
{
    int r;
    if ((r = check(at, i, "count", count_of(e), 1, NODES_MAX, err)) < 0 ||
        (r = check(at, i, "gpus", e->gpus, 0, NODE_GPUS_MAX, err)) < 0 ||
        (r = check(at, i, "cpus", e->cpus ? *e->cpus : 1, 0, CPUS_MAX, err)) < 0 ||
        (r = check(at, i, "mem_gib", e->mem_gib ? *e->mem_gib : 1, 0, MEM_GIB_MAX,
                   err)) < 0 ||
        (r = check(at, i, "rack", e->rack ? *e->rack : 0, 0, RACKS_MAX, err)) < 0 ||
        (r = check(at, i, "link_gbps", e->link_gbps ? *e->link_gbps : 1, 0.001, 1e6,
                   err)) < 0)
        return r;
    if (e->names && e->names_count != count_of(e))
        return error_set(err, -EINVAL, "%s:%u: %u names, want %u as count says",
                         at->file, line_of(at, "nodes", i), e->names_count,
                         count_of(e));
    if (e->gpus > 0 && !e->type)
        return error_set(err, -EINVAL, "%s:%u: no type, want one as it has GPUs",
                         at->file, line_of(at, "nodes", i));
    return 0;
}

static int check_entities(const struct place *at, const struct cluster_file *file,
                          struct error *err)
{
    for (unsigned i = 0; i < file->entities_count; i++) {
        const struct entity_entry *entity = &file->entities[i];
        double weight = entity->weight ? *entity->weight : 1;
        if (!(weight > 0 && weight <= 1e6))
            return error_set(err, -EINVAL,
                             "%s:%u: weight is %g, want more than 0 and up to 1000000",
                             at->file, line_of(at, "entities", i), weight);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(file->entities[k].name, entity->name) == 0)
                return error_set(err, -EINVAL, "%s:%u: entity \"%.40s\" again",
                                 at->file, line_of(at, "entities", i), entity->name);
    }
    return 0;
}

static int check_file(const struct place *at, const struct cluster_file *file,
                      uint32_t *ret_node_count, struct error *err)
{
    uint64_t nodes = 0;
    for (unsigned i = 0; i < file->nodes_count; i++) {
        int r = check_entry(at, i, &file->nodes[i], err);
        if (r < 0)
            return r;
        nodes += count_of(&file->nodes[i]);
    }
    if (nodes > NODES_MAX)
        return error_set(err, -EINVAL, "%s: %llu nodes, want at most %d", at->file,
                         (unsigned long long)nodes, NODES_MAX);
    double times = file->oversubscription ? *file->oversubscription : 1;
    if (!(times >= 1 && times <= 1000))
        return error_set(err, -EINVAL, "%s: oversubscription is %g, want 1 to 1000",
                         at->file, times);
    for (unsigned i = 0; i < file->types_count; i++) {
        const struct type_entry *type = &file->types[i];
        if (!(type->usd_per_hour >= 0 && type->usd_per_hour <= 1e6))
            return error_set(err, -EINVAL,
                             "%s:%u: usd_per_hour is %g, want 0 to "
                             "1000000",
                             at->file, line_of(at, "types", i), type->usd_per_hour);
        if (!(type->speed >= 0 && type->speed <= 1e6))
            return error_set(err, -EINVAL, "%s:%u: speed is %g, want 0 to 1000000",
                             at->file, line_of(at, "types", i), type->speed);
    }
    *ret_node_count = (uint32_t)nodes;
    return check_entities(at, file, err);
}

/* Copy a name if it is fit for tables and logs. */
static int keep_name(struct cluster *cluster, struct arena *arena, const char *file,
                     const char *text, struct error *err)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p <= ' ' || *p == 0x7f || *p == ',' || *p == '"')
            return error_set(err, -EINVAL,
                             "%s: name \"%.40s\", want no blanks, commas or "
                             "quotes",
                             file, text);
    cluster->node_names[cluster->node_count] = arena_text(arena, text);
    return 0;
}

static int add_entry(struct cluster *cluster, struct arena *arena, const char *name,
                     const struct nodes_entry *e, uint32_t first_rack,
                     struct error *err)
{
    uint32_t scale = e->gpus ? e->gpus : 1;
    struct node node = {
        .gpu_count = e->gpus,
        .type = TYPE_NONE,
        .cpu_milli = (e->cpus ? *e->cpus : CPUS_PER_GPU * scale) * 1000,
        .mem_mib = (e->mem_gib ? *e->mem_gib : MEM_GIB_PER_GPU * scale) * 1024,
        .link_bps = (uint64_t)llround((e->link_gbps ? *e->link_gbps : LINK_GBPS) * 1e9),
    };
    if (e->gpus > 0)
        node.type = cluster_type(cluster, arena, e->type);
    if (node.type == TYPES_MAX && e->gpus > 0)
        return error_set(err, -EINVAL, "%s: more than %d types of GPU", name,
                         TYPES_MAX);
    for (uint32_t i = 0; i < count_of(e); i++) {
        node.rack = first_rack + (e->nodes_per_rack ? i / e->nodes_per_rack : 0);
        int r = e->names ? keep_name(cluster, arena, name, e->names[i], err) : 0;
        if (r < 0)
            return r;
        cluster_add(cluster, &node);
    }
    return 0;
}

static int build(struct cluster *cluster, struct arena *arena, const struct place *at,
                 const struct cluster_file *file, struct error *err)
{
    const char *name = at->file;
    uint32_t node_count = 0;
    int r = check_file(at, file, &node_count, err);
    if (r < 0)
        return r;
    cluster_begin(cluster, arena, file->name ? file->name : name, node_count);
    cluster->oversubscription = file->oversubscription ? *file->oversubscription : 1;
    cluster->first_fit = file->first_fit;
    for (unsigned i = 0; i < file->types_count; i++) {
        uint32_t type = cluster_type(cluster, arena, file->types[i].name);
        cluster->types[type].usd_per_hour = file->types[i].usd_per_hour;
        if (file->types[i].speed > 0)
            cluster->types[type].speed = file->types[i].speed;
    }
    for (unsigned i = 0; i < file->nodes_count; i++)
        if (file->nodes[i].names && !cluster->node_names)
            cluster->node_names = arena_array(arena, const char *, node_count);
    uint32_t next_rack = 0; /* for entries that name none but fill racks */
    for (unsigned i = 0; i < file->nodes_count && r == 0; i++) {
        const struct nodes_entry *e = &file->nodes[i];
        uint32_t rack = e->rack ? *e->rack : e->nodes_per_rack ? next_rack : 0;
        r = add_entry(cluster, arena, name, e, rack, err);
        if (r == 0 && cluster->nodes[cluster->node_count - 1].rack >= next_rack)
            next_rack = cluster->nodes[cluster->node_count - 1].rack + 1;
    }
    cluster->entities = arena_array(arena, struct entity, file->entities_count);
    cluster->entity_count = file->entities_count;
    for (unsigned i = 0; i < file->entities_count; i++) {
        const struct entity_entry *entity = &file->entities[i];
        cluster->entities[i] =
            (struct entity){ .name = arena_text(arena, entity->name),
                             .weight = entity->weight ? *entity->weight : 1,
                             .fifo = entity->inside == INSIDE_FIFO };
    }
    if (r == 0)
        cluster_end(cluster, arena);
    return r;
}

int cluster_yaml_parse(struct cluster *cluster, struct arena *arena, const char *name,
                       const void *bytes, size_t count, struct error *err)
{
    struct complaint complaint = { 0 };
    const cyaml_config_t config = {
        .log_fn = note,
        .log_ctx = &complaint,
        .mem_fn = cyaml_mem,
        .log_level = CYAML_LOG_ERROR,
        .flags = CYAML_CFG_NO_ALIAS, /* a few bytes must not unfold into gigabytes */
    };
    struct cluster_file *file = NULL;
    cyaml_err_t status = cyaml_load_data(bytes, count, &config, &file_schema,
                                         (cyaml_data_t **)&file, NULL);
    if (status != CYAML_OK)
        return explain(name, status, &complaint, err);
    if (!file)
        return error_set(err, -EINVAL, "%s: the file is empty", name);
    struct place at = { name, bytes, count };
    struct cluster made;
    int r = build(&made, arena, &at, file, err);
    cyaml_free(&config, &file_schema, file, 0);
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
