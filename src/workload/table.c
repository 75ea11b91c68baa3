/* table.c - rows of fields, columns found by the names in the header. */
#include "workload/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/units.h"

void table_init(struct table *table, struct reader *reader, char separator, bool quoted)
{
    table->reader = reader;
    table->separator = separator;
    table->quoted = quoted;
    table->header = NULL;
    table->name_count = 0;
    table->field_count = 0;
}

void table_release(struct table *table)
{
    free(table->header);
    table->header = NULL;
}

/* Remove the quotes of the cell at 'text'; returns what follows it. */
static char *unquote_field(char *text, struct table_cell *field)
{
    char *to = text;
    char *from = text + 1;
    while (*from && !(*from == '"' && from[1] != '"')) {
        from += *from == '"';
        *to++ = *from++;
    }
    if (*from == '"')
        from++;
    field->text = text;
    field->bytes = (uint32_t)(to - text);
    return from;
}

static void trim_field(struct table_cell *field)
{
    while (field->bytes > 0 && field->text[field->bytes - 1] == ' ')
        field->bytes--;
    while (field->bytes > 0 && *field->text == ' ') {
        field->text++;
        field->bytes--;
    }
}

static uint32_t split_blanks(char *line, struct table_cell *fields, uint32_t max)
{
    uint32_t count = 0;
    for (char *p = line;;) {
        p += strspn(p, " \t");
        if (*p == '\0')
            return count;
        size_t bytes = strcspn(p, " \t");
        if (count < max)
            fields[count] = (struct table_cell){ p, (uint32_t)bytes };
        count++;
        p += bytes;
        if (*p)
            *p++ = '\0';
    }
}

/* End the cell at 'end', before a separator or at the end of the line. */
static inline void end_field(struct table_cell *field, char *end)
{
    field->bytes = (uint32_t)(end - field->text);
    *end = '\0';
    if (field->bytes > 0 && (*field->text == ' ' || end[-1] == ' ')) {
        trim_field(field);
        field->text[field->bytes] = '\0';
    }
}

static uint32_t split_quoted(char *line, char separator, struct table_cell *fields,
                             uint32_t max)
{
    uint32_t count = 0;
    for (char *p = line;; p++) {
        struct table_cell field = { p, 0 };
        bool quotes = *p == '"';
        if (quotes)
            p = unquote_field(p, &field);
        while (*p && *p != separator)
            p++;
        bool last = *p == '\0';
        if (quotes)
            field.text[field.bytes] = '\0';
        else
            end_field(&field, p);
        if (count < max)
            fields[count] = field;
        count++;
        if (last)
            return count;
    }
}

/* Bits of the bytes at 'text' (16 of them) that are 'separator'. */
static inline uint32_t find_separators(const char *text, char separator)
{
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)text);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(separator)));
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 16; i++)
        bits |= (uint32_t)(text[i] == separator) << i;
    return bits;
#endif
}

uint32_t table_split(char *line, size_t bytes, char separator, bool quoted,
                     struct table_cell *fields, uint32_t max)
{
    if (separator == ' ')
        return split_blanks(line, fields, max);
    if (quoted && memchr(line, '"', bytes))
        return split_quoted(line, separator, fields, max);

    /* Sixteen bytes at a time: fields are short, and a loop that guesses where each one
     * ends guesses wrong at every one of them. */
    uint32_t count = 0;
    struct table_cell field = { line, 0 };
    size_t at = 0;
    while (at < bytes) {
        uint32_t bits = 0;
        if (at + 16 <= bytes) {
            bits = find_separators(line + at, separator);
        } else if (bytes >= 16) { /* the last sixteen, less those that were seen */
            bits = find_separators(line + bytes - 16, separator) >> (16 - (bytes - at));
        } else {
            for (size_t i = 0; i < bytes; i++)
                bits |= (uint32_t)(line[i] == separator) << i;
        }
        for (; bits; bits &= bits - 1) {
            char *end = line + at + __builtin_ctz(bits);
            end_field(&field, end);
            if (count < max)
                fields[count] = field;
            count++;
            field.text = end + 1;
        }
        at += 16;
    }
    end_field(&field, line + bytes);
    if (count < max)
        fields[count] = field;
    return count + 1;
}

static int too_many(const struct table *table, uint32_t count, struct error *err)
{
    return error_set(err, -EINVAL, "%s:%llu: %u fields, want at most %u",
                     table->reader->name, (unsigned long long)table->reader->line,
                     count, TABLE_COLUMNS_MAX);
}

int table_header(struct table *table, struct error *err)
{
    char *line;
    size_t bytes;
    int r = reader_line(table->reader, &line, &bytes, err);
    if (r < 0)
        return r;
    if (r == 0)
        return error_set(err, -EINVAL, "%s: ends before its header line",
                         table->reader->name);
    table->header = memory_checked(malloc(bytes + 1));
    memcpy(table->header, line, bytes + 1);
    uint32_t count = table_split(table->header, bytes, table->separator, table->quoted,
                                 table->names, TABLE_COLUMNS_MAX);
    if (count > TABLE_COLUMNS_MAX)
        return too_many(table, count, err);
    table->name_count = count;
    return 0;
}

int table_row(struct table *table, struct error *err)
{
    char *line;
    size_t bytes;
    do {
        int r = reader_line(table->reader, &line, &bytes, err);
        if (r <= 0)
            return r;
    } while (bytes == 0);
    bool quoted = table->quoted && table->reader->quotes;
    uint32_t count = table_split(line, bytes, table->separator, quoted, table->fields,
                                 TABLE_COLUMNS_MAX);
    if (count > TABLE_COLUMNS_MAX)
        return too_many(table, count, err);
    if (table->name_count > 0 && count != table->name_count)
        return error_set(err, -EINVAL, "%s:%llu: %u fields, want %u as in the header",
                         table->reader->name, (unsigned long long)table->reader->line,
                         count, table->name_count);
    table->field_count = count;
    return 1;
}

uint32_t table_find(const struct table *table, const char *name)
{
    for (uint32_t i = 0; i < table->name_count; i++)
        if (strcasecmp(table->names[i].text, name) == 0)
            return i;
    return TABLE_NONE;
}

int table_columns(struct table *table, const char *const *names, uint32_t name_count,
                  uint32_t *ret_columns, struct error *err)
{
    int r = table_header(table, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < name_count; i++) {
        ret_columns[i] = table_find(table, names[i]);
        if (ret_columns[i] == TABLE_NONE)
            return error_set(err, -EINVAL, "%s:%llu: no column %s in the header",
                             table->reader->name,
                             (unsigned long long)table->reader->line, names[i]);
    }
    return 0;
}

/* Kept out of those that call it, which need no place for its texts then. */
__attribute__((cold, noinline)) int table_wrong(const struct table *table,
                                                uint32_t column, const char *want,
                                                struct error *err)
{
    char number[24];
    const char *name = number;
    if (column < table->name_count)
        name = table->names[column].text;
    else
        snprintf(number, sizeof number, "field %u", column + 1);
    const struct table_cell *field = &table->fields[column];
    return reader_wrong(table->reader, name, field->text, field->bytes, want, err);
}

static const char *number_of_unit(int64_t unit_ns)
{
    return unit_ns == NS_PER_S          ? "a number of seconds"
           : unit_ns == NS_PER_S / 1000 ? "a number of milliseconds"
           : unit_ns == NS_PER_S * 60   ? "a number of minutes"
           : unit_ns == NS_PER_S * 3600 ? "a number of hours"
                                        : "a number";
}

int table_time(const struct table *table, uint32_t column, int64_t unit_ns,
               int64_t *ret_ns, struct error *err)
{
    const struct table_cell *field = &table->fields[column];
    int64_t ns;
    double number;
    if (!number_scaled_padded(field->text, field->bytes, unit_ns, &ns)) {
        if (!number_real(field->text, field->bytes, &number))
            return table_wrong(table, column, number_of_unit(unit_ns), err);
        ns = INT64_MAX; /* more than that can hold */
    }
    if (ns < 0 || *field->text == '-')
        return table_wrong(table, column, "a time that is not negative", err);
    if (ns > TIME_MAX_NS)
        return table_wrong(table, column, "a time of at most 100 years", err);
    *ret_ns = ns;
    return 0;
}

int table_stamp(const struct table *table, uint32_t column, int64_t *ret_ns,
                struct error *err)
{
    const struct table_cell *field = &table->fields[column];
    if (!number_stamp(field->text, field->bytes, ret_ns))
        return table_wrong(table, column, "a time such as 2020-06-09 18:41:01", err);
    return 0;
}

__attribute__((cold, noinline)) static int
count_wrong(const struct table *table, uint32_t column, uint64_t max, struct error *err)
{
    char want[64];
    snprintf(want, sizeof want, "a whole number from 0 to %llu",
             (unsigned long long)max);
    return table_wrong(table, column, want, err);
}

int table_count(const struct table *table, uint32_t column, uint64_t max,
                uint64_t *ret_count, struct error *err)
{
    const struct table_cell *field = &table->fields[column];
    uint64_t count;
    bool good = number_count(field->text, field->bytes, &count);
    if (!good) {
        size_t whole = strcspn(field->text, ".");
        size_t zeros = whole < field->bytes ? strspn(field->text + whole + 1, "0") : 0;
        good = whole + 1 + zeros == field->bytes &&
               number_count(field->text, whole, &count);
    }
    if (!good || count > max)
        return count_wrong(table, column, max, err);
    *ret_count = count;
    return 0;
}

/* Length of the UTF-8 sequence at 'text', or 0 if it is none. */
static size_t sequence_bytes(const unsigned char *text, size_t bytes)
{
    size_t count = *text < 0x80 ? 1 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
    if (count > bytes || (*text >= 0x80 && *text < 0xc2) || *text > 0xf4)
        return 0;
    for (size_t i = 1; i < count; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    /* Over-long forms, surrogates, and what lies beyond Unicode. */
    if ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] > 0x9f) ||
        (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f))
        return 0;
    return count;
}

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Whether eight bytes may hold more than plain letters, digits and marks. */
static inline bool is_special(uint64_t bytes)
{
    return ((bytes - EACH_BYTE * 0x20) | bytes | (bytes + EACH_BYTE)) &
           EACH_BYTE * 0x80;
}

static inline uint64_t load_eight(const void *text)
{
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    return bytes;
}

/* The same of a field of less than eight bytes; others may be.  What follows it is read. */
static inline bool is_short_special(const struct table_cell *field)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t blanks = EACH_BYTE * ' ';
    if (field->bytes < 8) {
        uint64_t inside = ((uint64_t)1 << 8 * field->bytes) - 1;
        return is_special((load_eight(field->text) & inside) | (blanks & ~inside));
    }
#endif
    return true;
}

bool table_clean(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    const unsigned char *end = p + bytes;
    while (end - p >= 8 && !is_special(load_eight(p)))
        p += 8;
    while (p < end) {
        if (*p >= 0x20 && *p < 0x7f) {
            p++;
            continue;
        }
        size_t count = sequence_bytes(p, (size_t)(end - p));
        bool control = *p < 0x20 || *p == 0x7f || (*p == 0xc2 && count && p[1] < 0xa0);
        if (count == 0 || control)
            return false;
        p += count;
    }
    return true;
}

int table_text(const struct table *table, uint32_t column, const char **ret_text,
               struct error *err)
{
    const struct table_cell *field = &table->fields[column];
    if (is_short_special(field) && !table_clean(field->text, field->bytes))
        return table_wrong(table, column, "UTF-8 without control characters", err);
    *ret_text = field->bytes ? field->text : NULL;
    return 0;
}

bool table_empty(const struct table *table, uint32_t column)
{
    return table->fields[column].bytes == 0;
}

bool table_is(const struct table *table, uint32_t column, const char *text)
{
    return strcmp(table->fields[column].text, text) == 0;
}
