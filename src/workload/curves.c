/* curves.c - learning curves in a CSV file, one after another. */
#include "workload/curves.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"

static int wrong_line(const struct curves *curves, const char *what, struct error *err)
{
    return error_set(err, -EINVAL, "%s:%llu: %s", curves->reader.name,
                     (unsigned long long)curves->reader.line, what);
}

/* --- the header --------------------------------------------------------------------- */

/* Whether the first line is a point already: two numbers. */
static bool is_point(const struct table *table)
{
    double number;
    return table->name_count == 2 &&
           number_real(table->names[0].text, table->names[0].bytes, &number) &&
           number_real(table->names[1].text, table->names[1].bytes, &number);
}

/* Take the header for the first row, and go on without one. */
static void first_row(struct curves *curves)
{
    struct table *table = &curves->table;
    memcpy(table->fields, table->names, sizeof table->fields);
    table->field_count = 2;
    static char names[2][6] = { "step", "loss" }; /* for sentences */
    for (uint32_t i = 0; i < 2; i++)
        table->names[i] = (struct table_cell){ names[i], 4 };
    curves->step_column = 0;
    curves->value_column = 1;
    curves->pending = true;
}

static int find_columns(struct curves *curves, struct error *err)
{
    struct table *table = &curves->table;
    int r = table_header(table, err);
    if (r < 0)
        return r;
    curves->run_column = table_find(table, "run_id");
    curves->metric_column = table_find(table, "metric");
    curves->algo_column = table_find(table, "algo");
    if (is_point(table)) {
        first_row(curves);
        return 0;
    }
    curves->step_column = table_find(table, "step");
    curves->value_column = table_find(table, "loss");
    if (curves->value_column == TABLE_NONE)
        curves->value_column = table_find(table, "value");
    if (curves->step_column == TABLE_NONE)
        return wrong_line(curves, "no column step in the header", err);
    if (curves->value_column == TABLE_NONE)
        return wrong_line(curves, "no column loss or value in the header", err);
    return 0;
}

static int open_table(struct curves *curves, struct error *err)
{
    table_init(&curves->table, &curves->reader, ',', /* quoted= */ true);
    int r = find_columns(curves, err);
    if (r < 0)
        curves_release(curves);
    return r;
}

int curves_open(struct curves *curves, const char *path, struct error *err)
{
    memset(curves, 0, sizeof *curves);
    int r = reader_open(&curves->reader, path, err);
    return r < 0 ? r : open_table(curves, err);
}

int curves_open_memory(struct curves *curves, const char *name, const void *bytes,
                       size_t count, struct error *err)
{
    memset(curves, 0, sizeof *curves);
    int r = reader_open_memory(&curves->reader, name, bytes, count, err);
    return r < 0 ? r : open_table(curves, err);
}

void curves_release(struct curves *curves)
{
    table_release(&curves->table);
    reader_release(&curves->reader);
    map_release(&curves->seen);
    free(curves->step);
    free(curves->value);
    curves->step = curves->value = NULL;
}

/* --- names -------------------------------------------------------------------------- */

/* Copy a name of the row; it must fit. */
static int take_name(struct curves *curves, uint32_t column, char *name,
                     struct error *err)
{
    name[0] = '\0';
    if (column == TABLE_NONE)
        return 0;
    const char *text;
    int r = table_text(&curves->table, column, &text, err);
    if (r < 0)
        return r;
    if (text && strlen(text) >= CURVES_NAME_MAX)
        return table_wrong(&curves->table, column, "less than 256 bytes", err);
    snprintf(name, CURVES_NAME_MAX, "%s", text ? text : "");
    return 0;
}

/* The file's name without folder and endings. */
static void name_by_file(struct curves *curves)
{
    const char *base = strrchr(curves->reader.name, '/');
    base = base ? base + 1 : curves->reader.name;
    snprintf(curves->id, sizeof curves->id, "%.*s", CURVES_NAME_MAX - 1, base);
    static const char *const endings[] = { ".gz", ".zst", ".csv" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t bytes = strlen(curves->id);
        size_t ending = strlen(endings[i]);
        if (bytes > ending && strcmp(curves->id + bytes - ending, endings[i]) == 0)
            curves->id[bytes - ending] = '\0';
    }
    if (!table_clean(curves->id, strlen(curves->id)))
        snprintf(curves->id, sizeof curves->id, "curve");
}

/* Begin the curve of this row; its rows must not have ended before. */
static int begin_curve(struct curves *curves, struct error *err)
{
    if (curves->curve_count++ == CURVES_MAX)
        return wrong_line(curves, "more than 100000 curves in one file", err);
    int r = take_name(curves, curves->run_column, curves->run_id, err);
    if (r == 0)
        r = take_name(curves, curves->metric_column, curves->metric, err);
    if (r == 0)
        r = take_name(curves, curves->algo_column, curves->algo, err);
    if (r < 0)
        return r;
    if (curves->run_column == TABLE_NONE) {
        name_by_file(curves);
        return 0;
    }
    if (curves->run_id[0] == '\0')
        return table_wrong(&curves->table, curves->run_column, "a name", err);
    snprintf(curves->id, sizeof curves->id, "%s%s%s", curves->run_id,
             curves->metric[0] ? "/" : "", curves->metric);
    uint64_t key = hash_text(curves->id);
    if (map_find(&curves->seen, key) != MAP_NONE)
        return table_wrong(&curves->table, curves->run_column,
                           "the rows of a curve together", err);
    map_put(&curves->seen, key, 0);
    return 0;
}

/* Whether the row belongs to the curve that has begun. */
static bool same_curve(const struct curves *curves)
{
    return (curves->run_column == TABLE_NONE ||
            table_is(&curves->table, curves->run_column, curves->run_id)) &&
           (curves->run_column == TABLE_NONE || curves->metric_column == TABLE_NONE ||
            table_is(&curves->table, curves->metric_column, curves->metric));
}

/* --- points ------------------------------------------------------------------------- */

static int add_point(struct curves *curves, struct error *err)
{
    struct table *table = &curves->table;
    const struct table_cell *at = &table->fields[curves->step_column];
    const struct table_cell *is = &table->fields[curves->value_column];
    double step;
    double value;
    if (!number_real(at->text, at->bytes, &step) || step < 0 || step > CURVES_STEP_MAX)
        return table_wrong(table, curves->step_column, "a number from 0 to 1e15", err);
    if (curves->count > 0 && step <= curves->step[curves->count - 1])
        return table_wrong(table, curves->step_column, "more than in the row before",
                           err);
    if (!number_real(is->text, is->bytes, &value) || fabs(value) > CURVES_VALUE_MAX)
        return table_wrong(table, curves->value_column, "a number from -1e100 to 1e100",
                           err);
    if (curves->count == CURVES_POINTS_MAX)
        return wrong_line(curves, "more than 10000000 points in one curve", err);
    if (curves->count == curves->room) {
        curves->room = grow_room(curves->room, curves->count + 1);
        curves->step = memory_resize(curves->step, curves->room, sizeof *curves->step);
        curves->value =
            memory_resize(curves->value, curves->room, sizeof *curves->value);
    }
    curves->step[curves->count] = step;
    curves->value[curves->count++] = value;
    return 0;
}

/* The next row, or the one that was read too far. */
static int next_row(struct curves *curves, struct error *err)
{
    if (curves->pending) {
        curves->pending = false;
        return 1;
    }
    return table_row(&curves->table, err);
}

int curves_next(struct curves *curves, struct curves_one *ret_one, struct error *err)
{
    curves->count = 0;
    int r;
    while ((r = next_row(curves, err)) > 0) {
        if (curves->count > 0 && !same_curve(curves)) {
            curves->pending = true;
            break;
        }
        if (curves->count == 0)
            r = begin_curve(curves, err);
        if (r >= 0)
            r = add_point(curves, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    if (curves->count == 0)
        return curves->curve_count > 0
                   ? 0
                   : error_set(err, -EINVAL, "%s: no point in it", curves->reader.name);
    *ret_one = (struct curves_one){ .id = curves->id,
                                    .run_id = curves->run_id,
                                    .metric = curves->metric,
                                    .algo = curves->algo,
                                    .step = curves->step,
                                    .value = curves->value,
                                    .count = curves->count };
    return 1;
}
