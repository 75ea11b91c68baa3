/* throughput.c - how fast each kind of job runs on each kind of GPU. */
#include "model/throughput.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "model/cluster.h"
#include "model/published.h"

#define FILE_BYTES_MAX (64 * 1024 * 1024)
#define ROWS_MAX 100000
#define KIND_BYTES_MAX 200
#define SPREAD_SUFFIX "_unconsolidated"

void throughput_init(struct throughput *table, const struct cluster *cluster)
{
    *table = (struct throughput){ .cluster = cluster };
}

/* Where the reading stands, for messages. */
struct place {
    const char *file;
    const char *type;
    const char *key;
};

static int wrong(const struct place *at, const char *what, struct error *err)
{
    return error_set(err, -EINVAL, "%s: %.40s%s%.100s: %s", at->file, at->type,
                     at->key ? ": " : "", at->key ? at->key : "", what);
}

/* "('ResNet-18 (batch size 16)', 4)" to kind and place of the size; 'kind' holds 201. */
static int read_key(const struct place *at, char *kind, uint32_t *ret_size,
                    struct error *err)
{
    const char *text = at->key;
    const char *end = strrchr(text, ',');
    if (strncmp(text, "('", 2) != 0 || !end || end < text + 4 || end[-1] != '\'')
        return wrong(at, "want \"('kind', gpus)\"", err);
    size_t bytes = (size_t)(end - 1 - (text + 2));
    if (bytes == 0 || bytes > KIND_BYTES_MAX)
        return wrong(at, "want a kind of 1 to 200 bytes", err);
    char *rest;
    errno = 0;
    unsigned long gpus = strtoul(end + 1, &rest, 10);
    if (errno || rest == end + 1 || strcmp(rest, ")") != 0)
        return wrong(at, "want a number of GPUs at its end", err);
    uint32_t size = 0;
    while (size < RATE_SIZES && 1ul << size != gpus)
        size++;
    if (size == RATE_SIZES)
        return wrong(at, "want 1, 2, 4, 8, 16, 32, 64 or 128 GPUs", err);
    memcpy(kind, text + 2, bytes);
    kind[bytes] = '\0';
    *ret_size = size;
    return 0;
}

/* Row of a kind, added if it is new; there is room. */
static struct throughput_row *row_of(struct throughput *table, struct arena *arena,
                                     const char *kind)
{
    uint32_t row = throughput_find(table, kind);
    if (row == KIND_NONE) {
        row = table->row_count++;
        table->rows[row].name = arena_text(arena, kind);
        double *rates = &table->rows[row].rate[0][0][0];
        for (uint32_t i = 0; i < TYPES_MAX * RATE_SIZES * 2; i++)
            rates[i] = -1;
    }
    return &table->rows[row];
}

void throughput_published(struct throughput *table, struct arena *arena)
{
    static const char *const names[PUBLISHED_TYPES] = { "v100", "p100", "k80" };
    table->rows = arena_array(arena, struct throughput_row, PUBLISHED_KINDS);
    table->row_count = 0;
    for (uint32_t k = 0; k < PUBLISHED_KINDS; k++) {
        const struct published_kind *kind = &published_kinds[k];
        struct throughput_row *row = row_of(table, arena, kind->name);
        for (uint32_t t = 0; t < PUBLISHED_TYPES; t++) {
            uint32_t bit = cluster_types_named(table->cluster, names[t]);
            if (bit)
                memcpy(row->rate[__builtin_ctz(bit)], kind->rate[t],
                       sizeof kind->rate[t]);
        }
    }
}

static int read_rate(const struct place *at, const struct json *entry, double *ret_rate,
                     struct error *err)
{
    if (!json_is_object(entry))
        return wrong(at, "want an object with a rate under \"null\"", err);
    double rate;
    if (!json_as_number(json_get(entry, "null"), &rate))
        return wrong(at, "\"null\" is no number, want steps per second", err);
    if (!(rate >= 0 && rate <= 1e9))
        return wrong(at, "\"null\" is not a rate, want 0 to 1e9 steps per second", err);
    *ret_rate = (double)rate;
    return 0;
}

/* Rates of one type; those of types the cluster has not are checked and left. */
static int read_type(struct throughput *table, struct arena *arena, struct place *at,
                     const struct json *entries, struct error *err)
{
    at->key = NULL;
    if (!json_is_object(entries))
        return wrong(at, "want an object with an entry per kind and size", err);
    char type[64];
    size_t bytes = strlen(at->type);
    bool spread = bytes > strlen(SPREAD_SUFFIX) &&
                  strcmp(at->type + bytes - strlen(SPREAD_SUFFIX), SPREAD_SUFFIX) == 0;
    if (spread)
        bytes -= strlen(SPREAD_SUFFIX);
    snprintf(type, sizeof type, "%.*s", (int)(bytes < 63 ? bytes : 63), at->type);
    uint32_t bit = table->cluster ? cluster_types_named(table->cluster, type) : 0;

    void *walk = NULL;
    const struct json *entry;
    while ((walk = json_member(entries, walk, &at->key, &entry))) {
        char kind[KIND_BYTES_MAX + 1];
        uint32_t size = 0;
        double rate = 0;
        int r = read_key(at, kind, &size, err);
        if (r == 0)
            r = read_rate(at, entry, &rate, err);
        if (r < 0)
            return r;
        if (table->row_count == ROWS_MAX)
            return wrong(at, "too many kinds", err);
        struct throughput_row *row = row_of(table, arena, kind);
        if (bit)
            row->rate[__builtin_ctz(bit)][size][spread] = rate;
    }
    return 0;
}

int throughput_parse(struct throughput *table, struct arena *arena, const char *name,
                     const char *bytes, size_t count, struct error *err)
{
    struct json *json;
    int r = json_parse_piece(bytes, count, name, 1, &json, err);
    if (r < 0)
        return r;
    struct throughput made = { .cluster = table->cluster };
    made.rows = arena_array(arena, struct throughput_row, ROWS_MAX);
    struct place at = { .file = name, .type = "the file" };
    if (!json_is_object(json))
        r = wrong(&at, "want an object with an entry per type of GPU", err);
    void *walk = NULL;
    const struct json *entries;
    while (r == 0 && (walk = json_member(json, walk, &at.type, &entries)))
        r = read_type(&made, arena, &at, entries, err);
    json_free(json);
    if (r == 0)
        *table = made;
    return r;
}

int throughput_load(struct throughput *table, struct arena *arena, const char *path,
                    struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    char *bytes = NULL;
    size_t count = 0;
    size_t room = 0;
    int r = 0;
    do {
        if (count == room) {
            room = room ? room * 2 : 64 * 1024;
            char *more = room <= FILE_BYTES_MAX * 2 ? realloc(bytes, room) : NULL;
            if (!more) {
                r = error_set(err, -EINVAL, "%s: more than %d MiB", path,
                              FILE_BYTES_MAX >> 20);
                break;
            }
            bytes = more;
        }
        count += fread(bytes + count, 1, room - count, file);
    } while (!feof(file) && !ferror(file));
    if (r == 0 && ferror(file))
        r = error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (r == 0)
        r = throughput_parse(table, arena, path, bytes, count, err);
    free(bytes);
    fclose(file);
    return r;
}

uint32_t throughput_find(const struct throughput *table, const char *name)
{
    for (uint32_t i = 0; i < table->row_count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return i;
    return KIND_NONE;
}

/* What was measured: spread gangs without a figure of their own go as the others do. */
static double measured(const struct throughput_row *row, uint32_t type, uint32_t size,
                       bool spread)
{
    double rate = row->rate[type][size][spread];
    return rate < 0 && spread ? row->rate[type][size][0] : rate;
}

static double row_rate(const struct throughput_row *row, uint32_t type, uint32_t gpus,
                       bool spread)
{
    uint32_t below = RATE_SIZES; /* largest size measured that is not above 'gpus' */
    for (uint32_t s = 0; s < RATE_SIZES; s++) {
        double rate = measured(row, type, s, spread);
        if (rate < 0)
            continue;
        uint32_t size = UINT32_C(1) << s;
        if (size == gpus)
            return (double)rate;
        if (size < gpus) {
            below = s;
            continue;
        }
        if (below == RATE_SIZES)
            return (double)rate * gpus / size; /* smaller than any measured */
        double low = (double)measured(row, type, below, spread);
        double low_size = (double)(UINT32_C(1) << below);
        return low + ((double)rate - low) * (gpus - low_size) / (size - low_size);
    }
    if (below == RATE_SIZES)
        return 0;
    return (double)measured(row, type, below, spread) * gpus / (UINT32_C(1) << below);
}

double throughput_rate(const struct throughput *table, const struct job *job,
                       uint32_t type, uint32_t gpus, bool spread)
{
    if (job->gpus == 0)
        return 1;
    if (job->kind != KIND_NONE)
        return type < TYPES_MAX ? row_rate(&table->rows[job->kind], type, gpus, spread)
                                : 0;
    double speed = 1;
    if (table->cluster && type < TYPES_MAX && type < table->cluster->type_count)
        speed = table->cluster->types[type].speed;
    return speed * gpus / job->gpus;
}

double throughput_best(const struct throughput *table, const struct job *job,
                       uint32_t *ret_type)
{
    double best = 0;
    uint32_t best_type = TYPE_NONE;
    if (job->gpus == 0) {
        best = throughput_rate(table, job, TYPE_NONE, 0, false);
    } else {
        for (uint32_t t = 0; t < table->cluster->type_count; t++) {
            if (!(job->types >> t & 1))
                continue;
            double rate = throughput_rate(table, job, t, job->gpus, false);
            if (rate > best) {
                best = rate;
                best_type = t;
            }
        }
    }
    if (ret_type)
        *ret_type = best_type;
    return best;
}
