/* sheet.c - columns that fit. */
#include "cmd/berth/sheet.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/grow.h"

#define COLUMNS_MAX 32

void sheet_init(struct sheet *sheet, const struct sheet_column *columns, uint32_t count)
{
    *sheet = (struct sheet){ .columns = columns, .column_count = count };
}

void sheet_release(struct sheet *sheet)
{
    for (uint32_t i = 0; i < sheet->cell_count; i++)
        free(sheet->cells[i].text);
    free(sheet->cells);
}

void sheet_add(struct sheet *sheet, const char *fmt, ...)
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
    sheet->cells = grow(sheet->cells, &sheet->cell_room, sheet->cell_count + 1,
                        sizeof *sheet->cells);
    sheet->cells[sheet->cell_count++] = (struct sheet_cell){ .text = text };
}

void sheet_colour(struct sheet *sheet, const char *colour)
{
    sheet->cells[sheet->cell_count - 1].colour = colour;
}

uint32_t sheet_length(const char *text)
{
    uint32_t length = 0;
    for (; *text; text++)
        length += ((unsigned char)*text & 0xc0) != 0x80;
    return length;
}

uint32_t sheet_width(FILE *file)
{
    struct winsize size;
    if (!isatty(fileno(file)))
        return 0;
    if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    return width > 0 && width < 10000 ? (uint32_t)width : 80;
}

bool sheet_coloured(FILE *file)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(file)) && !(no && *no);
}

/* As wide as its widest cell; 0 for a column that says nothing. */
static uint32_t natural_width(const struct sheet *sheet, uint32_t column)
{
    uint32_t width = 0;
    for (uint32_t i = column; i < sheet->cell_count; i += sheet->column_count) {
        uint32_t length = sheet_length(sheet->cells[i].text);
        width = length > width ? length : width;
    }
    uint32_t title = sheet_length(sheet->columns[column].title);
    bool shown = width > 0 || sheet->cell_count == 0;
    return !shown ? 0 : width > title ? width : title;
}

static uint32_t total_width(const struct sheet *sheet, const uint32_t *widths,
                            bool least)
{
    uint32_t total = 0;
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        uint32_t min = sheet->columns[c].min;
        uint32_t width = least && min && min < widths[c] ? min : widths[c];
        total += widths[c] ? width + 2 : 0;
    }
    return total ? total - 2 : 0;
}

/* Leave out what can be spared, until the rest can be cut to fit. */
static void leave_out(const struct sheet *sheet, uint32_t widths[COLUMNS_MAX],
                      uint32_t width)
{
    while (total_width(sheet, widths, true) > width) {
        uint32_t first = COLUMNS_MAX, most = 0;
        for (uint32_t c = 0; c < sheet->column_count; c++)
            if (widths[c] && sheet->columns[c].spare > most) {
                most = sheet->columns[c].spare;
                first = c;
            }
        if (first == COLUMNS_MAX)
            return;
        widths[first] = 0;
    }
}

/* Take from whoever has most above what it must have, until it fits. */
static void fit(const struct sheet *sheet, uint32_t widths[COLUMNS_MAX], uint32_t width)
{
    leave_out(sheet, widths, width);
    for (uint32_t total = total_width(sheet, widths, false); total > width; total--) {
        uint32_t most = COLUMNS_MAX, spare = 0;
        for (uint32_t c = 0; c < sheet->column_count; c++) {
            uint32_t min = sheet->columns[c].min;
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
    bool whole = sheet_length(text) <= width;
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
    uint32_t length = sheet_length(text);
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

static void print_titles(const struct sheet *sheet, const uint32_t *widths, bool colour,
                         FILE *file)
{
    uint32_t owed = 0;
    for (uint32_t c = 0; c < sheet->column_count; c++)
        if (widths[c])
            print_cell(sheet->columns[c].title, colour ? "2" : NULL, widths[c],
                       sheet->columns[c].right, &owed, file);
    fputc('\n', file);
}

void sheet_print(const struct sheet *sheet, FILE *file, uint32_t width, bool colour)
{
    uint32_t widths[COLUMNS_MAX];
    for (uint32_t c = 0; c < sheet->column_count; c++)
        widths[c] = natural_width(sheet, c);
    if (width)
        fit(sheet, widths, width);
    if (sheet->columns[0].title[0]) /* some have no titles */
        print_titles(sheet, widths, colour, file);
    uint32_t owed = 0;
    for (uint32_t i = 0; i < sheet->cell_count; i++) {
        uint32_t c = i % sheet->column_count;
        if (widths[c])
            print_cell(sheet->cells[i].text, colour ? sheet->cells[i].colour : NULL,
                       widths[c], sheet->columns[c].right, &owed, file);
        if (c + 1 == sheet->column_count) {
            fputc('\n', file);
            owed = 0;
        }
    }
}
