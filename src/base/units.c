/* units.c - times and sizes as people write them. */
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit times[] = {
    { "", 1 },   { "s", 1 },    { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 },
    { "m", 60 }, { "min", 60 }, { "h", 3600 },  { "d", 86400 }, { "w", 604800 },
};

static const struct unit sizes[] = {
    { "", 1 },         { "B", 1 },        { "K", 0x1p10 },   { "M", 0x1p20 },
    { "G", 0x1p30 },   { "T", 0x1p40 },   { "KB", 0x1p10 },  { "MB", 0x1p20 },
    { "GB", 0x1p30 },  { "TB", 0x1p40 },  { "KiB", 0x1p10 }, { "MiB", 0x1p20 },
    { "GiB", 0x1p30 }, { "TiB", 0x1p40 },
};

/* strtod would skip white space and read hexadecimal numbers; people mean neither. */
static bool is_decimal(const char *text)
{
    text += *text == '-' || *text == '+';
    if (*text == '.')
        return text[1] >= '0' && text[1] <= '9';
    return *text >= '0' && *text <= '9' && text[1] != 'x' && text[1] != 'X';
}

/* A number and one of 'units'; no sign, no white space, not infinite. */
static bool read_unit(const char *text, const struct unit *units, size_t count,
                      double *ret_value)
{
    if (!is_decimal(text) || *text == '-' || *text == '+')
        return false;
    char *end;
    double number = strtod(text, &end);
    if (!isfinite(number))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(end, units[i].name) == 0) {
            *ret_value = number * units[i].factor;
            return true;
        }
    return false;
}

bool units_time(const char *text, int64_t *ret_ns)
{
    double seconds;
    if (!read_unit(text, times, sizeof times / sizeof *times, &seconds))
        return false;
    if (seconds * 1e9 > (double)TIME_MAX_NS)
        return false;
    *ret_ns = units_ns(seconds);
    return true;
}

bool units_size(const char *text, uint64_t *ret_bytes)
{
    double bytes;
    if (!read_unit(text, sizes, sizeof sizes / sizeof *sizes, &bytes) || bytes > 0x1p60)
        return false;
    *ret_bytes = (uint64_t)bytes;
    return true;
}

bool units_number(const char *text, double *ret_number)
{
    char *end;
    if (!is_decimal(text))
        return false;
    double number = strtod(text, &end);
    if (*end != '\0' || !isfinite(number))
        return false;
    *ret_number = number;
    return true;
}

const char *units_show_time(char *text, unsigned size, double seconds)
{
    static const struct unit shown[] = {
        { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 }
    };
    for (size_t i = 0; i < 4; i++)
        if (seconds >= 2 * shown[i].factor || (i == 3 && seconds >= 1)) {
            double value = seconds / shown[i].factor;
            snprintf(text, size, value >= 100 ? "%.0f %s" : "%.1f %s", value,
                     shown[i].name);
            return text;
        }
    snprintf(text, size, "%.0f ms", seconds * 1e3);
    return text;
}
