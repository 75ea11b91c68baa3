/* text_table.c - tables of text, with columns that fit the terminal. */
#include "cmd/berth/text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cmd/berth/terminal.h"

#define COLUMNS_MAX 32

void text_table_init(struct text_table *table, const struct text_table_column *columns,
                     uint32_t count)
{
    *table = (struct text_table){ .columns = columns, .column_count = count };
}

void text_table_release(struct text_table *table)
{
    for (uint32_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
}

void text_table_add(struct text_table *table, const char *fmt, ...)
{
    va_list args;
    char *text;
    va_start(args, fmt);
    int r = vasprintf(&text, fmt, args);
    va_end(args);
    if (r < 0)
        abort();
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?'; /* nobody's job name writes to somebody's terminal */
    table->cells = grow(table->cells, &table->cell_room, table->cell_count + 1,
                        sizeof *table->cells);
    table->cells[table->cell_count++] = (struct text_table_cell){ .text = text };
}

void text_table_set_colour(struct text_table *table, const char *colour)
{
    table->cells[table->cell_count - 1].colour = colour;
}

/* As wide as its widest cell; 0 for a column that says nothing. */
static uint32_t natural_width(const struct text_table *table, uint32_t column)
{
    uint32_t width = 0;
    for (uint32_t i = column; i < table->cell_count; i += table->column_count) {
        uint32_t length = terminal_text_length(table->cells[i].text);
        width = length > width ? length : width;
    }
    uint32_t title = terminal_text_length(table->columns[column].title);
    bool shown = width > 0 || table->cell_count == 0;
    return !shown ? 0 : width > title ? width : title;
}

static uint32_t total_width(const struct text_table *table, const uint32_t *widths,
                            bool least)
{
    uint32_t total = 0;
    for (uint32_t c = 0; c < table->column_count; c++) {
        uint32_t min = table->columns[c].min;
        uint32_t width = least && min && min < widths[c] ? min : widths[c];
        total += widths[c] ? width + 2 : 0;
    }
    return total ? total - 2 : 0;
}

/* Leave out what can be spared, until the rest can be cut to fit. */
static void leave_out(const struct text_table *table, uint32_t widths[COLUMNS_MAX],
                      uint32_t width)
{
    while (total_width(table, widths, true) > width) {
        uint32_t first = COLUMNS_MAX, most = 0;
        for (uint32_t c = 0; c < table->column_count; c++)
            if (widths[c] && table->columns[c].spare > most) {
                most = table->columns[c].spare;
                first = c;
            }
        if (first == COLUMNS_MAX)
            return;
        widths[first] = 0;
    }
}

/* Take from whoever has most above what it must have, until it fits. */
static void fit(const struct text_table *table, uint32_t widths[COLUMNS_MAX],
                uint32_t width)
{
    leave_out(table, widths, width);
    for (uint32_t total = total_width(table, widths, false); total > width; total--) {
        uint32_t most = COLUMNS_MAX, spare = 0;
        for (uint32_t c = 0; c < table->column_count; c++) {
            uint32_t min = table->columns[c].min;
            if (min && widths[c] > min && widths[c] - min > spare) {
                spare = widths[c] - min;
                most = c;
            }
        }
        if (most == COLUMNS_MAX)
            return;
        widths[most]--;
    }
}

/* So many characters of a text, with "…" where it is cut. */
static void print_cut(const char *text, uint32_t width, FILE *file)
{
    bool whole = terminal_text_length(text) <= width;
    uint32_t left = whole ? width : width - 1;
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80 && left-- == 0)
            break;
        fputc(*text, file);
    }
    if (!whole)
        fputs("…", file);
}

/* Blanks are owed until something follows them, so that no line ends in any. */
static void print_cell(const char *text, const char *colour, uint32_t width, bool right,
                       uint32_t *owed, FILE *file)
{
    uint32_t length = terminal_text_length(text);
    uint32_t pad = length < width ? width - length : 0;
    if (length == 0) {
        *owed += width + 2;
        return;
    }
    fprintf(file, "%*s", (int)(*owed + (right ? pad : 0)), "");
    if (colour)
        fprintf(file, "\033[%sm", colour);
    print_cut(text, width, file);
    if (colour)
        fputs("\033[0m", file);
    *owed = right ? 2 : pad + 2;
}

static void print_titles(const struct text_table *table, const uint32_t *widths,
                         bool colour, FILE *file)
{
    uint32_t owed = 0;
    for (uint32_t c = 0; c < table->column_count; c++)
        if (widths[c])
            print_cell(table->columns[c].title, colour ? "2" : NULL, widths[c],
                       table->columns[c].right, &owed, file);
    fputc('\n', file);
}

void text_table_print(const struct text_table *table, FILE *file, uint32_t width,
                      bool colour)
{
    uint32_t widths[COLUMNS_MAX];
    for (uint32_t c = 0; c < table->column_count; c++)
        widths[c] = natural_width(table, c);
    if (width)
        fit(table, widths, width);
    if (table->columns[0].title[0]) /* some have no titles */
        print_titles(table, widths, colour, file);
    uint32_t owed = 0;
    for (uint32_t i = 0; i < table->cell_count; i++) {
        uint32_t c = i % table->column_count;
        if (widths[c])
            print_cell(table->cells[i].text, colour ? table->cells[i].colour : NULL,
                       widths[c], table->columns[c].right, &owed, file);
        if (c + 1 == table->column_count) {
            fputc('\n', file);
            owed = 0;
        }
    }
}
