/* throughput.c - how fast each kind of job runs on each kind of GPU. */
#include "model/throughput.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/units.h"
#include "model/cluster.h"
#include "model/published.h"
#include "model/rate_table.h"

#define RATE_MAX 1e9          /* steps per second */
#define KIND_BYTES_MAX 200    /* of a kind's name  */
#define PAIRED_KINDS_MAX 1024 /* kinds in a table with pairs: it has squares of them */
#define LINE_BYTES_MAX 4096
#define NONE UINT32_MAX
#define SPREAD_SUFFIX "_unconsolidated"
#define FILE_BYTES_MAX (64 * 1024 * 1024)
#define ROWS_MAX 100000
#define INDEX_ROOM (1u << 18)
#define MUST_NOT -1.0 /* in a square of pairs, where 0 is what was not measured */

void throughput_init(struct throughput *table, const struct cluster *cluster)
{
    *table = (struct throughput){ .cluster = cluster };
}

/* --- rows ------------------------------------------------------------------------ */

/* Make room for rows; 'table' has a cluster and nothing else. */
static void throughput_begin(struct throughput *table, struct arena *arena)
{
    table->rows = arena_array(arena, struct throughput_row, ROWS_MAX);
    table->index = arena_array(arena, uint32_t, INDEX_ROOM);
    table->index_room = INDEX_ROOM;
}

/* Where a name is in the index, or is to be put. */
static uint32_t *index_of(const struct throughput *table, const char *name)
{
    uint64_t hash = hash_text(name);
    uint32_t at = (uint32_t)(hash ^ hash >> 32) & (table->index_room - 1);
    while (table->index[at] &&
           strcmp(table->rows[table->index[at] - 1].name, name) != 0)
        at = (at + 1) & (table->index_room - 1);
    return &table->index[at];
}

uint32_t throughput_find(const struct throughput *table, const char *name)
{
    if (!table->index)
        return KIND_NONE;
    uint32_t at = *index_of(table, name);
    return at ? at - 1 : KIND_NONE;
}

static const char *const published_names[PUBLISHED_TYPES] = { "v100", "p100", "k80" };

/* Kinds that were measured for Gavel share as they did there, whatever their rates. */
static void add_sharing(const struct throughput *table, struct throughput_row *row)
{
    uint32_t k = 0;
    while (k < PUBLISHED_KINDS && strcmp(published_kinds[k].name, row->name) != 0)
        k++;
    for (uint32_t t = 0; k < PUBLISHED_KINDS && t < PUBLISHED_TYPES; t++) {
        uint32_t bit = cluster_types_named(table->cluster, published_names[t]);
        if (bit)
            row->sharing[__builtin_ctz(bit)] = published_kinds[k].sharing[t];
    }
}

/* Row of a kind, added if it is new; KIND_NONE when there are too many. */
static uint32_t throughput_add(struct throughput *table, struct arena *arena,
                               const char *kind)
{
    uint32_t *at = index_of(table, kind);
    if (*at)
        return *at - 1;
    if (table->row_count == ROWS_MAX)
        return KIND_NONE;
    struct throughput_row *row = &table->rows[table->row_count++];
    *at = table->row_count;
    row->name = arena_text(arena, kind);
    double *rates = &row->rate[0][0][0];
    for (uint32_t i = 0; i < TYPES_MAX * RATE_SIZES * 2; i++)
        rates[i] = -1;
    add_sharing(table, row);
    return table->row_count - 1;
}

/* Place of a gang size in a row, or RATE_SIZES. */
static uint32_t throughput_size(uint64_t gpus)
{
    uint32_t size = 0;
    while (size < RATE_SIZES && UINT64_C(1) << size != gpus)
        size++;
    return size;
}

/*
 * Note the rates of two kinds that share, as the entry of the first gives them.  All
 * rows have been added; false when they are more than PAIRED_KINDS_MAX.
 */
static bool throughput_add_pair(struct throughput *table, struct arena *arena,
                                uint32_t first, uint32_t other, uint32_t type,
                                uint32_t size, bool spread, const double rates[2])
{
    uint32_t n = table->row_count;
    if (n > PAIRED_KINDS_MAX)
        return false;
    double **square = &table->pairs[type][size][spread];
    if (!*square)
        *square = arena_array(arena, double, (size_t)n *n);
    double *own = &(*square)[(size_t)first * n + other];
    double *others = &(*square)[(size_t)other * n + first];
    *own = rates[0] > 0 ? rates[0] : MUST_NOT;
    if (*others == 0) /* unless it has, or will have, an entry of its own */
        *others = rates[1] > 0 ? rates[1] : MUST_NOT;
    table->paired = true;
    return true;
}

void throughput_published(struct throughput *table, struct arena *arena)
{
    struct throughput made = { .cluster = table->cluster };
    throughput_begin(&made, arena);
    for (uint32_t k = 0; k < PUBLISHED_KINDS; k++) {
        const struct published_kind *kind = &published_kinds[k];
        uint32_t at = throughput_add(&made, arena, kind->name);
        struct throughput_row *row = &made.rows[at];
        for (uint32_t t = 0; t < PUBLISHED_TYPES; t++) {
            uint32_t bit = cluster_types_named(table->cluster, published_names[t]);
            if (bit)
                memcpy(row->rate[__builtin_ctz(bit)], kind->rate[t],
                       sizeof kind->rate[t]);
        }
    }
    *table = made;
}

/* --- the JSON layout that Gavel's tables are released in ---------------------------- */

/*
 * Read twice: first every kind and its rates alone, then the pairs, when it is known how
 * many kinds there are.
 */

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

static int read_json_alone(struct throughput *table, struct arena *arena,
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

static int throughput_read_json(struct throughput *table, struct arena *arena,
                                const char *name, const char *bytes, size_t count,
                                struct error *err)
{
    struct json *json;
    int r = json_parse_piece(bytes, count, name, 1, &json, err);
    if (r < 0)
        return r;
    r = read_all(table, arena, name, json, read_json_alone, err);
    if (r == 0)
        r = read_all(table, arena, name, json, read_pairs, err);
    json_free(json);
    return r;
}

/* --- our own layout ---------------------------------------------------------------- */

/*
 * A line per kind, type and size.
 *
 *     kind,type,gpus,rate,rate_spread,beside,rate_beside
 *     "LM, large",v100,4,12.5,9,,
 *     "LM, large",v100,4,8,,A3C,3.5       two rates, when both share four v100
 *
 * Columns are known by their names and may stand in any order; the first four must be
 * there.  Lines that begin with '#' are comments.  Read twice, as JSON is.
 */

enum throughput_column {
    KIND,
    TYPE,
    GPUS,
    RATE,
    RATE_SPREAD,
    BESIDE,
    RATE_BESIDE,
    COLUMN_COUNT
};

static const char *const column_names[COLUMN_COUNT] = {
    "kind", "type", "gpus", "rate", "rate_spread", "beside", "rate_beside",
};

struct rates_lines {
    const char *file;
    const char *bytes; /* not read yet */
    size_t count;
    uint64_t number;
    char text[LINE_BYTES_MAX + 1];
    uint32_t place[COLUMN_COUNT]; /* of each column, or NONE          */
    uint32_t field_count;         /* in the first line                */
    char *field[COLUMN_COUNT];    /* of this line; "" where there is none */
};

static int line_error(const struct rates_lines *lines, const char *field,
                      const char *what, struct error *err)
{
    return error_set(err, -EINVAL, "%.120s:%llu: %.60s%s%s", lines->file,
                     (unsigned long long)lines->number, field, *field ? ": " : "",
                     what);
}

/* The next line that is neither empty nor a comment: 1, 0 at the end, or wrong. */
static int next_line(struct rates_lines *lines, struct error *err)
{
    while (lines->count > 0) {
        const char *end = memchr(lines->bytes, '\n', lines->count);
        size_t bytes = end ? (size_t)(end - lines->bytes) : lines->count;
        const char *line = lines->bytes;
        lines->bytes += bytes + (end != NULL);
        lines->count -= bytes + (end != NULL);
        lines->number++;
        if (bytes > 0 && line[bytes - 1] == '\r')
            bytes--;
        if (bytes == 0 || line[0] == '#')
            continue;
        if (bytes > LINE_BYTES_MAX || memchr(line, '\0', bytes))
            return line_error(lines, "", "is no line of text of at most 4096 bytes",
                              err);
        memcpy(lines->text, line, bytes);
        lines->text[bytes] = '\0';
        return 1;
    }
    return 0;
}

/* Cut the field at 'at' off, quotes removed; where the next begins, NULL: no more. */
static char *cut_field(char *at, char **ret_field)
{
    if (*at != '"') {
        *ret_field = at;
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        return comma;
    }
    char *to = ++at;
    *ret_field = at;
    while (*at && (*at != '"' || at[1] == '"')) {
        at += *at == '"';
        *to++ = *at++;
    }
    char *next = *at == '"' ? at + 1 : at;
    bool more = *next == ',';
    *to = '\0';
    return more ? next + 1 : NULL;
}

static int read_header(struct rates_lines *lines, struct error *err)
{
    for (uint32_t c = 0; c < COLUMN_COUNT; c++)
        lines->place[c] = NONE;
    lines->field_count = 0;
    int r = next_line(lines, err);
    if (r < 0)
        return r;
    for (char *at = r ? lines->text : NULL; at; lines->field_count++) {
        char *name;
        uint32_t c = 0;
        at = cut_field(at, &name);
        while (c < COLUMN_COUNT && strcmp(column_names[c], name) != 0)
            c++;
        if (c == COLUMN_COUNT)
            return line_error(lines, name, "no such column", err);
        if (lines->place[c] != NONE)
            return line_error(lines, name, "the column is there twice", err);
        lines->place[c] = lines->field_count;
    }
    for (uint32_t c = KIND; c <= RATE; c++)
        if (lines->place[c] == NONE)
            return line_error(
                lines, column_names[c],
                "no such column; want kind,type,gpus,rate and a line each", err);
    return 0;
}

static int read_fields(struct rates_lines *lines, struct error *err)
{
    static char nothing[1];
    char *fields[COLUMN_COUNT];
    uint32_t count = 0;
    char *at = lines->text;
    while (at && count < lines->field_count)
        at = cut_field(at, &fields[count++]);
    if (at || count < lines->field_count)
        return line_error(lines, "", "more or fewer fields than the first line has",
                          err);
    for (uint32_t c = 0; c < COLUMN_COUNT; c++)
        lines->field[c] = lines->place[c] == NONE ? nothing : fields[lines->place[c]];
    return 0;
}

static int read_rate(const struct rates_lines *lines, enum throughput_column column,
                     double *ret_rate, struct error *err)
{
    if (units_number(lines->field[column], ret_rate) && *ret_rate >= 0 &&
        *ret_rate <= RATE_MAX)
        return 0;
    return line_error(lines, column_names[column], "want 0 to 1e9 steps per second",
                      err);
}

static int read_size(const struct rates_lines *lines, uint32_t *ret_size,
                     struct error *err)
{
    double gpus;
    *ret_size = RATE_SIZES;
    if (units_number(lines->field[GPUS], &gpus) && gpus >= 1 && gpus <= 128)
        *ret_size = throughput_size((uint64_t)gpus);
    if (*ret_size == RATE_SIZES || (double)(1u << *ret_size) != gpus)
        return line_error(lines, "gpus", "want 1, 2, 4, 8, 16, 32, 64 or 128", err);
    return 0;
}

static int read_kind(const struct rates_lines *lines, enum throughput_column column,
                     struct error *err)
{
    size_t bytes = strlen(lines->field[column]);
    if (bytes == 0 || bytes > KIND_BYTES_MAX)
        return line_error(lines, column_names[column], "want a kind of 1 to 200 bytes",
                          err);
    return 0;
}

/* The bit of the line's type in the cluster; 0: it has none of it. */
static uint32_t type_bit(const struct throughput *table,
                         const struct rates_lines *lines)
{
    uint32_t bits = cluster_types_named(table->cluster, lines->field[TYPE]);
    return bits & -bits;
}

/* A line with the rates of one kind alone. */
static int read_csv_alone(struct throughput *table, struct arena *arena,
                          struct rates_lines *lines, struct error *err)
{
    uint32_t size = 0;
    double rate = 0;
    double spread = -1;
    int r = read_size(lines, &size, err);
    if (r == 0)
        r = read_rate(lines, RATE, &rate, err);
    if (r == 0 && *lines->field[RATE_SPREAD])
        r = read_rate(lines, RATE_SPREAD, &spread, err);
    if (r < 0)
        return r;
    if (*lines->field[RATE_BESIDE])
        return line_error(lines, "rate_beside", "a rate beside nobody", err);
    uint32_t row = throughput_add(table, arena, lines->field[KIND]);
    if (row == KIND_NONE)
        return line_error(lines, "kind", "too many kinds", err);
    uint32_t bit = type_bit(table, lines);
    if (!bit)
        return 0;
    double *rates = table->rows[row].rate[__builtin_ctz(bit)][size];
    if (rates[0] >= 0)
        return line_error(lines, "rate", "a second rate of this kind, type and size",
                          err);
    rates[0] = rate;
    rates[1] = spread;
    return 0;
}

/* A line with the rates of two that share. */
static int read_pair(struct throughput *table, struct arena *arena,
                     struct rates_lines *lines, struct error *err)
{
    uint32_t size = 0;
    double rates[2] = { 0, 0 };
    int r = read_kind(lines, BESIDE, err);
    if (r == 0)
        r = read_size(lines, &size, err);
    if (r == 0)
        r = read_rate(lines, RATE, &rates[0], err);
    if (r == 0)
        r = read_rate(lines, RATE_BESIDE, &rates[1], err);
    if (r < 0)
        return r;
    if (*lines->field[RATE_SPREAD])
        return line_error(lines, "rate_spread", "is of a gang alone, not of a pair",
                          err);
    uint32_t row = throughput_find(table, lines->field[KIND]);
    uint32_t other = throughput_find(table, lines->field[BESIDE]);
    if (row == KIND_NONE || other == KIND_NONE)
        return line_error(lines, row == KIND_NONE ? "kind" : "beside",
                          "shares, but has no rate alone", err);
    uint32_t bit = type_bit(table, lines);
    if (bit && !throughput_add_pair(table, arena, row, other,
                                    (uint32_t)__builtin_ctz(bit), size, false, rates))
        return line_error(lines, "beside", "pairs among more than 1024 kinds", err);
    return 0;
}

static int read_lines(struct throughput *table, struct arena *arena,
                      struct rates_lines *lines, bool pairs, struct error *err)
{
    int r = read_header(lines, err);
    while (r == 0 && (r = next_line(lines, err)) > 0) {
        r = read_fields(lines, err);
        if (r == 0)
            r = read_kind(lines, KIND, err);
        if (r == 0 && !*lines->field[TYPE])
            r = line_error(lines, "type", "want the name of a type of accelerator",
                           err);
        bool paired = r == 0 && *lines->field[BESIDE];
        if (r == 0 && paired == pairs)
            r = (pairs ? read_pair : read_csv_alone)(table, arena, lines, err);
        if (r < 0)
            return r;
    }
    return r;
}

static int throughput_read_csv(struct throughput *table, struct arena *arena,
                               const char *name, const char *bytes, size_t count,
                               struct error *err)
{
    int r = 0;
    for (int pass = 0; pass < 2 && r == 0; pass++) {
        struct rates_lines lines = { .file = name, .bytes = bytes, .count = count };
        r = read_lines(table, arena, &lines, pass == 1, err);
    }
    return r;
}

/* --- reading ------------------------------------------------------------------------ */

int throughput_parse(struct throughput *table, struct arena *arena, const char *name,
                     const char *bytes, size_t count, struct error *err)
{
    struct throughput made = { .cluster = table->cluster };
    throughput_begin(&made, arena);
    size_t at = 0;
    while (at < count && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    bool json = at == count || bytes[at] == '{' || bytes[at] == '[';
    int r = json ? throughput_read_json(&made, arena, name, bytes, count, err)
                 : throughput_read_csv(&made, arena, name, bytes, count, err);
    if (r == 0)
        *table = made;
    return r;
}

int throughput_load(struct throughput *table, struct arena *arena, const char *path,
                    struct error *err)
{
    struct buf bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    int r = buf_read(&bytes, path, err);
    if (r == 0)
        r = throughput_parse(table, arena, path, bytes.bytes, bytes.count, err);
    buf_release(&bytes);
    return r;
}

/* --- rates --------------------------------------------------------------------------- */

/* What was measured: spread gangs without a figure of their own go as the others do. */
static double find_measured(const struct throughput_row *row, uint32_t type,
                            uint32_t size, bool spread)
{
    double rate = row->rate[type][size][spread];
    return rate < 0 && spread ? row->rate[type][size][0] : rate;
}

static double row_rate(const struct throughput_row *row, uint32_t type, uint32_t gpus,
                       bool spread)
{
    uint32_t below = RATE_SIZES; /* largest size measured that is not above 'gpus' */
    for (uint32_t s = 0; s < RATE_SIZES; s++) {
        double rate = find_measured(row, type, s, spread);
        if (rate < 0)
            continue;
        uint32_t size = UINT32_C(1) << s;
        if (size == gpus)
            return rate;
        if (size < gpus) {
            below = s;
            continue;
        }
        if (below == RATE_SIZES)
            return rate * gpus / size; /* smaller than any measured */
        double low = find_measured(row, type, below, spread);
        double low_size = (double)(UINT32_C(1) << below);
        return low + (rate - low) * (gpus - low_size) / (size - low_size);
    }
    if (below == RATE_SIZES)
        return 0;
    return find_measured(row, type, below, spread) * gpus / (UINT32_C(1) << below);
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
    if (type < table->cluster->type_count)
        speed = table->cluster->types[type].speed;
    if (job->learned && table->learned) {
        double rate = rate_table_per_s(table->learned, job->learned - 1,
                                       (struct rate_place){ type, gpus, spread });
        if (rate > 0)
            return rate * job->pace;
        if (type < table->cluster->type_count)
            speed = rate_table_speed(table->learned, job->learned - 1, type);
    }
    double step_s = job->step_s > 0 ? job->step_s : 1;
    if (job->fixed_s > 0)
        return speed / ((step_s - job->fixed_s) * job->gpus / gpus + job->fixed_s);
    return speed * gpus / job->gpus / step_s;
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

/* --- pairs ------------------------------------------------------------------------- */

/* What was measured of consolidated or of spread gangs. */
static bool pair_measured(const struct throughput *table, uint32_t a, uint32_t b,
                          uint32_t type, uint32_t size, bool spread,
                          double ret_rates[2])
{
    const double *square = table->pairs[type][size][spread];
    if (!square)
        return false;
    double rate_a = square[(size_t)a * table->row_count + b];
    double rate_b = square[(size_t)b * table->row_count + a];
    if (rate_a == 0)
        return false;
    bool both = rate_a > 0 && rate_b > 0;
    ret_rates[0] = both ? rate_a : 0;
    ret_rates[1] = both ? rate_b : 0;
    return true;
}

bool throughput_pair(const struct throughput *table, uint32_t kind_a, uint32_t kind_b,
                     uint32_t type, uint32_t gpus, bool spread, double ret_rates[2])
{
    uint32_t size = throughput_size(gpus);
    if (!table->paired || kind_a == KIND_NONE || kind_b == KIND_NONE ||
        type >= TYPES_MAX || size == RATE_SIZES)
        return false;
    if (pair_measured(table, kind_a, kind_b, type, size, spread, ret_rates))
        return true;
    if (!spread || !pair_measured(table, kind_a, kind_b, type, size, false, ret_rates))
        return false;
    const uint32_t kinds[2] = { kind_a, kind_b };
    for (uint32_t i = 0; i < 2; i++) {
        const struct throughput_row *row = &table->rows[kinds[i]];
        double near = row_rate(row, type, gpus, false);
        ret_rates[i] =
            near > 0 ? ret_rates[i] * row_rate(row, type, gpus, true) / near : 0;
    }
    if (ret_rates[0] <= 0 || ret_rates[1] <= 0)
        ret_rates[0] = ret_rates[1] = 0;
    return true;
}
