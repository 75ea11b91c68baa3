/* table.h - rows of fields, columns found by the names in the header. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/reader.h"

#define TABLE_COLUMNS_MAX 128
#define TABLE_NONE UINT32_MAX

struct table_cell {
    char *text; /* with a NUL after it */
    uint32_t bytes;
};

/*
 * One line at a time, split in place.  A field in double quotes may hold the separator,
 * and a doubled quote stands for one.  Blanks around a field do not count.  With ' ' as
 * separator any run of blanks or tabs separates.
 */
struct table {
    struct reader *reader; /* borrowed                          */
    char separator;
    bool quoted;  /* whether quotes mean anything      */
    char *header; /* what 'names' points into          */
    struct table_cell names[TABLE_COLUMNS_MAX];
    uint32_t name_count; /* 0: no header, any number of fields */
    struct table_cell fields[TABLE_COLUMNS_MAX];
    uint32_t field_count;
};

void table_init(struct table *table, struct reader *reader, char separator,
                bool quoted);
void table_release(struct table *table);

/* Read the header line. */
int table_header(struct table *table, struct error *err);

/*
 * Read the next row that is not empty: 1, 0 at the end, or a negative errno.  With a
 * header it must have as many fields.
 */
int table_row(struct table *table, struct error *err);

/*
 * Split a line, which has a NUL after its 'bytes', into at most 'max' fields; how many
 * there are.
 */
uint32_t table_split(char *line, size_t bytes, char separator, bool quoted,
                     struct table_cell *fields, uint32_t max);

/* Read the header and find all of 'names' in it; -EINVAL if one is missing. */
int table_columns(struct table *table, const char *const *names, uint32_t name_count,
                  uint32_t *ret_columns, struct error *err);

/* Column of that name, whatever its case, or TABLE_NONE. */
uint32_t table_find(const struct table *table, const char *name);

/* Fields of the row by column; the sentence names the column if it is wrong. */
int table_time(const struct table *table, uint32_t column, int64_t unit_ns,
               int64_t *ret_ns, struct error *err);
int table_stamp(const struct table *table, uint32_t column, int64_t *ret_ns,
                struct error *err);
/* A whole number up to 'max', "8.0" included. */
int table_count(const struct table *table, uint32_t column, uint64_t max,
                uint64_t *ret_count, struct error *err);
/* NULL where it is empty; -EINVAL unless it is UTF-8 without control characters. */
int table_text(const struct table *table, uint32_t column, const char **ret_text,
               struct error *err);

/* The sentence for a field that is not as it should be. */
int table_wrong(const struct table *table, uint32_t column, const char *want,
                struct error *err);

bool table_empty(const struct table *table, uint32_t column);
bool table_is(const struct table *table, uint32_t column, const char *text);

/* UTF-8 without control characters. */
bool table_clean(const char *text, size_t bytes);
