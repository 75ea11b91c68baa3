/* throughput.c - how fast each kind of job runs on each kind of GPU. */
#include "model/throughput.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "model/cluster.h"
#include "model/published.h"
#include "model/throughput_read.h"

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

uint32_t throughput_add(struct throughput *table, struct arena *arena, const char *kind)
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

uint32_t throughput_size(uint64_t gpus)
{
    uint32_t size = 0;
    while (size < RATE_SIZES && UINT64_C(1) << size != gpus)
        size++;
    return size;
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

bool throughput_add_pair(struct throughput *table, struct arena *arena, uint32_t first,
                         uint32_t other, uint32_t type, uint32_t size, bool spread,
                         const double rates[2])
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
