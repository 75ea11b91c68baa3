/* sheet.h - rows for people: columns as wide as they need to be, cut to the terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sheet_column {
    const char *title;
    bool right;   /* numbers                                      */
    uint32_t min; /* may be cut down to so many characters; 0: never */
    uint32_t
        spare; /* left out where cutting does not help, the highest first; 0: never */
};

struct sheet_cell {
    char *text;
    const char *colour; /* as in "31", or NULL */
};

struct sheet {
    const struct sheet_column *columns;
    uint32_t column_count;
    struct sheet_cell *cells;
    uint32_t cell_count, cell_room;
};

void sheet_init(struct sheet *sheet, const struct sheet_column *columns,
                uint32_t count);
void sheet_release(struct sheet *sheet);

/* The next cell, row by row.  Control characters in it are shown as '?'. */
void sheet_add(struct sheet *sheet, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The colour of the cell that was added last. */
void sheet_colour(struct sheet *sheet, const char *colour);

/* Title and rows; not wider than 'width' characters where cutting and leaving out help (0: any width).
 * Columns in which no cell says anything are left out. */
void sheet_print(const struct sheet *sheet, FILE *file, uint32_t width, bool colour);

/* Columns of the terminal that 'file' is, or 0. */
uint32_t sheet_width(FILE *file);

/* Whether it wants colours: a terminal, and NO_COLOR is not set. */
bool sheet_coloured(FILE *file);

/* Characters of a text in UTF-8. */
uint32_t sheet_length(const char *text);
