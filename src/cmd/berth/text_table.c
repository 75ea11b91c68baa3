/* text_table.c - tables of text, with columns that fit the terminal. */
#include "cmd/berth/text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/memory.h"
#include "cmd/berth/terminal.h"

#define COLUMNS_MAX TEXT_TABLE_COLUMNS_MAX

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

void text_table_clear(struct text_table *table)
{
    for (uint32_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    table->cell_count = 0;
}

void text_table_add(struct text_table *table, const char *fmt, ...)
{
    va_list args;
    char *text;
    va_start(args, fmt);
    int r = vasprintf(&text, fmt, args);
    va_end(args);
    if (r < 0)
        memory_exhausted();
    terminal_make_safe(
        text); /* a job's name must not control another user's terminal */
    table->cells = grow_array(table->cells, &table->cell_room, table->cell_count + 1,
                              sizeof *table->cells);
    table->cells[table->cell_count++] = (struct text_table_cell){ .text = text };
}

void text_table_set_colour(struct text_table *table, const char *colour)
{
    table->cells[table->cell_count - 1].colour = colour;
}

/* The width of its widest cell; 0 for a column without text. */
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

/* Leave out columns that can be spared, until the others can be cut to fit. */
static void leave_out_columns(const struct text_table *table,
                              uint32_t widths[COLUMNS_MAX], uint32_t width)
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

/* Shrink the column that is furthest above its minimum, until the table fits. */
static void fit_widths(const struct text_table *table, uint32_t widths[COLUMNS_MAX],
                       uint32_t width)
{
    leave_out_columns(table, widths, width);
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

/* Print so many characters of a text, with "…" where it is cut. */
static void print_cut_text(const char *text, uint32_t width, FILE *file)
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

/* Blanks are printed only before the next text, so that no line ends in blanks. */
static void print_cell(const char *text, const char *colour, uint32_t width, bool right,
                       uint32_t *blanks, FILE *file)
{
    uint32_t length = terminal_text_length(text);
    uint32_t pad = length < width ? width - length : 0;
    if (length == 0) {
        *blanks += width + 2;
        return;
    }
    fprintf(file, "%*s", (int)(*blanks + (right ? pad : 0)), "");
    if (colour)
        fprintf(file, "\033[%sm", colour);
    print_cut_text(text, width, file);
    if (colour)
        fputs("\033[0m", file);
    *blanks = right ? 2 : pad + 2;
}

static void print_titles(const struct text_table *table, const uint32_t *widths,
                         bool colour, FILE *file)
{
    uint32_t blanks = 0;
    for (uint32_t c = 0; c < table->column_count; c++)
        if (widths[c])
            print_cell(table->columns[c].title, colour ? "2" : NULL, widths[c],
                       table->columns[c].right, &blanks, file);
    fputc('\n', file);
}

void text_table_print(struct text_table *table, FILE *file, uint32_t width, bool colour)
{
    uint32_t widths[COLUMNS_MAX];
    for (uint32_t c = 0; c < table->column_count; c++) {
        uint32_t natural = natural_width(table, c);
        if (natural > table->wanted[c])
            table->wanted[c] = natural;
        widths[c] = table->wanted[c];
    }
    if (width)
        fit_widths(table, widths, width);
    size_t bytes = table->column_count * sizeof *widths;
    bool same = table->is_begun && memcmp(widths, table->widths, bytes) == 0;
    memcpy(table->widths, widths, bytes);
    table->is_begun = true;
    if (table->columns[0].title[0] && !same) /* a table may have no titles */
        print_titles(table, widths, colour, file);
    uint32_t blanks = 0;
    for (uint32_t i = 0; i < table->cell_count; i++) {
        uint32_t c = i % table->column_count;
        if (widths[c])
            print_cell(table->cells[i].text, colour ? table->cells[i].colour : NULL,
                       widths[c], table->columns[c].right, &blanks, file);
        if (c + 1 == table->column_count) {
            fputc('\n', file);
            blanks = 0;
        }
    }
}

void text_table_show(struct text_table *table, FILE *file)
{
    text_table_print(table, file, terminal_width(file), terminal_has_colours(file));
}
