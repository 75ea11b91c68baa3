/* text_table.h - tables of text: columns as wide as needed, cut to fit the terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct text_table_column {
    const char *title;
    bool right;     /* numbers                                      */
    uint32_t min;   /* may be cut down to so many characters; 0: never           */
    uint32_t spare; /* left out if cutting is not enough, highest first; 0: never */
};

struct text_table_cell {
    char *text;
    const char *colour; /* as in "31", or NULL */
};

#define TEXT_TABLE_COLUMNS_MAX 32

struct text_table {
    const struct text_table_column *columns;
    uint32_t column_count;
    struct text_table_cell *cells;
    uint32_t cell_count, cell_room;
    uint32_t wanted[TEXT_TABLE_COLUMNS_MAX]; /* widths of all texts so far */
    uint32_t widths[TEXT_TABLE_COLUMNS_MAX]; /* as they were printed last  */
    bool is_begun;
};

void text_table_init(struct text_table *table, const struct text_table_column *columns,
                     uint32_t count);
void text_table_release(struct text_table *table);

/* Drop the rows, for the next ones of a long table: columns do not become narrower, and
 * titles are printed again only if a width has changed. */
void text_table_clear(struct text_table *table);

/* The next cell, row by row.  Control characters in it are shown as '?'. */
void text_table_add(struct text_table *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The colour of the cell that was added last. */
void text_table_set_colour(struct text_table *table, const char *colour);

/*
 * Print titles and rows.  To fit 'width' characters (0: any width) columns are cut and left
 * out as far as they allow it.  Columns with empty cells only are left out.
 */
void text_table_print(struct text_table *table, FILE *file, uint32_t width,
                      bool colour);

/* The same for a terminal, with its width and colours. */
void text_table_show(struct text_table *table, FILE *file);
