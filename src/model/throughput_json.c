/*
 * throughput_json.c - throughput tables in the JSON layout that Gavel's are released in.
 *
 * Read twice: first every kind and its rates alone, then the pairs, when it is known how
 * many kinds there are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "model/cluster.h"
#include "model/throughput_read.h"

#define SPREAD_SUFFIX "_unconsolidated"

/* Where the reading stands, for messages. */
struct rates_position {
    const char *file;
    const char *type;
    const char *key;
    uint32_t bit; /* of the type in the cluster; 0: it has none of it */
    bool spread;
};

static int entry_error(const struct rates_position *at, const char *what,
                       struct error *err)
{
    return error_set(err, -EINVAL, "%s: %.40s%s%.100s: %s", at->file, at->type,
                     at->key ? ": " : "", at->key ? at->key : "", what);
}

/* "('ResNet-18 (batch size 16)', 4)" to kind and place of the size; 'kind' holds 201. */
static int read_key(const struct rates_position *at, char *kind, uint32_t *ret_size,
                    struct error *err)
{
    const char *text = at->key;
    const char *end = strrchr(text, ',');
    if (strncmp(text, "('", 2) != 0 || !end || end < text + 4 || end[-1] != '\'')
        return entry_error(at, "want \"('kind', gpus)\"", err);
    size_t bytes = (size_t)(end - 1 - (text + 2));
    if (bytes > KIND_BYTES_MAX)
        return entry_error(at, "want a kind of 1 to 200 bytes", err);
    char *rest;
    errno = 0;
    unsigned long gpus = strtoul(end + 1, &rest, 10);
    if (errno || rest == end + 1 || strcmp(rest, ")") != 0)
        return entry_error(at, "want a number of GPUs at its end", err);
    uint32_t size = throughput_size(gpus);
    if (size == RATE_SIZES)
        return entry_error(at, "want 1, 2, 4, 8, 16, 32, 64 or 128 GPUs", err);
    memcpy(kind, text + 2, bytes);
    kind[bytes] = '\0';
    *ret_size = size;
    return 0;
}

static int read_alone(struct throughput *table, struct arena *arena,
                      const struct rates_position *at, const struct json *entry,
                      struct error *err)
{
    char kind[KIND_BYTES_MAX + 1];
    uint32_t size = 0;
    int r = read_key(at, kind, &size, err);
    if (r < 0)
        return r;
    if (!json_is_object(entry))
        return entry_error(at, "want an object with a rate under \"null\"", err);
    double rate;
    if (!json_as_number(json_get(entry, "null"), &rate))
        return entry_error(at, "\"null\" is no number, want steps per second", err);
    if (!(rate >= 0 && rate <= RATE_MAX))
        return entry_error(at, "\"null\" is not a rate, want 0 to 1e9 steps per second",
                           err);
    uint32_t row = throughput_add(table, arena, kind);
    if (row == KIND_NONE)
        return entry_error(at, "too many kinds", err);
    if (at->bit)
        table->rows[row].rate[__builtin_ctz(at->bit)][size][at->spread] = rate;
    return 0;
}

/* [a, b], both rates. */
static bool read_two(const struct json *entry, double ret_rates[2])
{
    if (json_count(entry) != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!json_as_number(json_item(entry, i), &ret_rates[i]) ||
            !(ret_rates[i] >= 0 && ret_rates[i] <= RATE_MAX))
            return false;
    return true;
}

static int read_pairs(struct throughput *table, struct arena *arena,
                      const struct rates_position *at, const struct json *entry,
                      struct error *err)
{
    char kind[KIND_BYTES_MAX + 1];
    uint32_t size = 0;
    int r = read_key(at, kind, &size, err);
    if (r < 0)
        return r;
    uint32_t row = throughput_find(table, kind);
    struct rates_position inner = *at;
    void *walk = NULL;
    const struct json *two;
    while ((walk = json_member(entry, walk, &inner.key, &two))) {
        uint32_t other_size = 0;
        double rates[2];
        if (strcmp(inner.key, "null") == 0)
            continue;
        if ((r = read_key(&inner, kind, &other_size, err)) < 0)
            return r;
        if (other_size != size)
            return entry_error(&inner, "shares with a gang of another size", err);
        uint32_t other = throughput_find(table, kind);
        if (other == KIND_NONE)
            return entry_error(&inner, "shares, but has no rate alone", err);
        if (!read_two(two, rates))
            return entry_error(&inner, "want [a, b], each 0 to 1e9 steps per second",
                               err);
        if (at->bit && !throughput_add_pair(table, arena, row, other,
                                            (uint32_t)__builtin_ctz(at->bit), size,
                                            at->spread, rates))
            return entry_error(&inner, "pairs among more than 1024 kinds", err);
    }
    return 0;
}

/* "v100_unconsolidated" is the type v100, spread. */
static void find_type(const struct throughput *table, struct rates_position *at)
{
    char type[64];
    size_t bytes = strlen(at->type);
    at->spread = bytes > strlen(SPREAD_SUFFIX) &&
                 strcmp(at->type + bytes - strlen(SPREAD_SUFFIX), SPREAD_SUFFIX) == 0;
    if (at->spread)
        bytes -= strlen(SPREAD_SUFFIX);
    snprintf(type, sizeof type, "%.*s", (int)(bytes < 63 ? bytes : 63), at->type);
    at->bit = cluster_types_named(table->cluster, type);
}

typedef int read_entry(struct throughput *table, struct arena *arena,
                       const struct rates_position *at, const struct json *entry,
                       struct error *err);

/* Entries of all types; those of types the cluster has not are checked and left. */
static int read_all(struct throughput *table, struct arena *arena, const char *name,
                    const struct json *json, read_entry *read, struct error *err)
{
    struct rates_position at = { .file = name, .type = "the file" };
    if (!json_is_object(json))
        return entry_error(&at, "want an object with an entry per type of GPU", err);
    void *walk = NULL;
    const struct json *entries;
    while ((walk = json_member(json, walk, &at.type, &entries))) {
        at.key = NULL;
        if (!json_is_object(entries))
            return entry_error(&at, "want an object with an entry per kind and size",
                               err);
        find_type(table, &at);
        void *inner = NULL;
        const struct json *entry;
        while ((inner = json_member(entries, inner, &at.key, &entry))) {
            int r = read(table, arena, &at, entry, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int throughput_read_json(struct throughput *table, struct arena *arena,
                         const char *name, const char *bytes, size_t count,
                         struct error *err)
{
    struct json *json;
    int r = json_parse_piece(bytes, count, name, 1, &json, err);
    if (r < 0)
        return r;
    r = read_all(table, arena, name, json, read_alone, err);
    if (r == 0)
        r = read_all(table, arena, name, json, read_pairs, err);
    json_free(json);
    return r;
}
