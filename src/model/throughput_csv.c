/*
 * throughput_csv.c - throughput tables in our own form: a line per kind, type and size.
 *
 *     kind,type,gpus,rate,rate_spread,beside,rate_beside
 *     "LM, large",v100,4,12.5,9,,
 *     "LM, large",v100,4,8,,A3C,3.5       two rates, when both share four v100
 *
 * Columns are known by their names and may stand in any order; the first four must be
 * there.  Lines that begin with '#' are comments.  Read twice, as throughput_json.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "model/cluster.h"
#include "model/throughput_read.h"

#define LINE_BYTES_MAX 4096
#define NONE UINT32_MAX

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
static int read_alone(struct throughput *table, struct arena *arena,
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
            r = (pairs ? read_pair : read_alone)(table, arena, lines, err);
        if (r < 0)
            return r;
    }
    return r;
}

int throughput_read_csv(struct throughput *table, struct arena *arena, const char *name,
                        const char *bytes, size_t count, struct error *err)
{
    int r = 0;
    for (int pass = 0; pass < 2 && r == 0; pass++) {
        struct rates_lines lines = { .file = name, .bytes = bytes, .count = count };
        r = read_lines(table, arena, &lines, pass == 1, err);
    }
    return r;
}
