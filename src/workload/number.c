/* number.c - decimal numbers and times of day, as traces write them. */
#include "workload/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define DIGITS_MAX 18 /* so many always fit into 64 bits */
#define TEXT_MAX 400  /* longer than any double needs    */

/* A decimal taken apart: sign, digits as a whole number, power of ten. */
struct decimal {
    bool negative;
    bool cut; /* more digits than fit: 'digits' is not the whole truth */
    uint64_t digits;
    int power;
};

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Read "e-7" at 'text' into 'power'; false if it is not an exponent to the end. */
static bool read_power(const char *text, const char *end, int *power)
{
    if (text == end || (*text != 'e' && *text != 'E'))
        return false;
    text++;
    bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    if (text == end)
        return false;
    int value = 0;
    for (; text < end; text++) {
        if (!is_digit(*text))
            return false;
        if (value < 10000)
            value = value * 10 + (*text - '0');
    }
    *power += negative ? -value : value;
    return true;
}

static bool take_apart(const char *text, size_t bytes, struct decimal *d)
{
    const char *end = text + bytes;
    *d = (struct decimal){ 0 };
    if (text < end && (*text == '-' || *text == '+'))
        d->negative = *text++ == '-';

    const char *first = text;
    uint64_t digits = 0;
    while (text < end && is_digit(*text))
        digits = digits * 10 + (uint64_t)(*text++ - '0');
    ptrdiff_t digit_count = text - first;
    if (text < end && *text == '.') {
        const char *point = ++text;
        while (text < end && is_digit(*text))
            digits = digits * 10 + (uint64_t)(*text++ - '0');
        d->power = (int)-(text - point);
        digit_count += text - point;
    }
    if (digit_count == 0)
        return false;
    if (digit_count > DIGITS_MAX) {
        /* Leading zeros take no room; only what follows them counts. */
        for (const char *p = first; p < text && (*p == '0' || *p == '.'); p++)
            digit_count -= *p == '0';
        d->cut = digit_count > DIGITS_MAX;
    }
    d->digits = digits;
    return text == end || read_power(text, end, &d->power);
}

bool number_count(const char *text, size_t bytes, uint64_t *ret_count)
{
    if (bytes == 0 || bytes > 20)
        return false;
    uint64_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_digit(text[i]))
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (count > (UINT64_MAX - digit) / 10)
            return false;
        count = count * 10 + digit;
    }
    *ret_count = count;
    return true;
}

/* strtod() on a copy that ends where the field ends. */
static bool read_slowly(const char *text, size_t bytes, double *ret_number)
{
    char copy[TEXT_MAX + 1];
    if (bytes > TEXT_MAX)
        return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    char *end;
    double number = strtod(copy, &end);
    if (*end != '\0' || !isfinite(number))
        return false;
    *ret_number = number;
    return true;
}

bool number_real(const char *text, size_t bytes, double *ret_number)
{
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    struct decimal d;
    if (!take_apart(text, bytes, &d))
        return false;

    /* Both parts are exact doubles, so one operation rounds once: strtod's result. */
    if (!d.cut && d.digits <= (UINT64_C(1) << 53) && d.power >= -22 && d.power <= 22) {
        double number = (double)d.digits;
        number = d.power < 0 ? number / tens[-d.power] : number * tens[d.power];
        *ret_number = d.negative ? -number : number;
        return true;
    }
    return read_slowly(text, bytes, ret_number);
}

bool number_scaled(const char *text, size_t bytes, int64_t unit, int64_t *ret_value)
{
    static const int64_t small[] = { 1,      10,      100,      1000,      10000,
                                     100000, 1000000, 10000000, 100000000, 1000000000 };
    struct decimal d;
    if (!take_apart(text, bytes, &d))
        return false;
    if (d.cut || d.power < -22 || d.power > 0) {
        double number;
        if (!read_slowly(text, bytes, &number))
            return false;
        number = round(number * (double)unit);
        if (!(fabs(number) < 0x1p63))
            return false;
        *ret_value = (int64_t)number;
        return true;
    }
    __int128 value = (__int128)d.digits * unit;
    if (d.power >= -9 && unit % small[-d.power] == 0) {
        value =
            (__int128)d.digits * (unit / small[-d.power]); /* spares a long division */
    } else {
        __int128 divisor = 1;
        for (int i = 0; i < -d.power; i++)
            divisor *= 10;
        value = (value + divisor / 2) / divisor;
    }
    if (value > INT64_MAX)
        return false;
    *ret_value = d.negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* Two digits, or -1. */
static int two(const char *text)
{
    if (!is_digit(text[0]) || !is_digit(text[1]))
        return -1;
    return (text[0] - '0') * 10 + (text[1] - '0');
}

/* Days from 1970-01-01, by the usual trick of starting years in March. */
static int64_t days_since_1970(int year, int month, int day)
{
    year -= month <= 2;
    int era = year / 400;
    int year_of_era = year - era * 400;
    int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

static bool day_exists(int year, int month, int day)
{
    static const char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (year < 1970 || year > 2069 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (month == 2 && leap);
}

/* "Z", "+08:00", "+0800" or "+08" to seconds; false for anything else. */
static bool read_zone(const char *text, size_t bytes, int64_t *ret_seconds)
{
    *ret_seconds = 0;
    if (bytes == 0 || (bytes == 1 && *text == 'Z'))
        return true;
    if (*text != '+' && *text != '-')
        return false;
    if (bytes != 3 && bytes != 5 && !(bytes == 6 && text[3] == ':'))
        return false;
    int hours = two(text + 1);
    int minutes = bytes == 3 ? 0 : two(text + bytes - 2);
    if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59)
        return false;
    int64_t seconds = hours * 3600 + minutes * 60;
    *ret_seconds = *text == '-' ? -seconds : seconds;
    return true;
}

bool number_stamp(const char *text, size_t bytes, int64_t *ret_ns)
{
    if (bytes < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' ||
        text[16] != ':' || (text[10] != ' ' && text[10] != 'T'))
        return false;
    int century = two(text);
    int year = two(text + 2);
    int month = two(text + 5);
    int day = two(text + 8);
    int hour = two(text + 11);
    int minute = two(text + 14);
    int second = two(text + 17);
    if (century < 0 || year < 0 || !day_exists(century * 100 + year, month, day) ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;

    size_t at = 19;
    int64_t fraction_ns = 0;
    if (at < bytes && text[at] == '.') {
        size_t point = at++;
        while (at < bytes && is_digit(text[at]))
            at++;
        if (at == point + 1 ||
            !number_scaled(text + point, at - point, NS_PER_S, &fraction_ns))
            return false;
    }
    int64_t zone;
    if (!read_zone(text + at, bytes - at, &zone))
        return false;
    int64_t seconds = days_since_1970(century * 100 + year, month, day) * 86400 +
                      hour * 3600 + minute * 60 + second - zone;
    if (seconds < 0)
        return false;
    *ret_ns = seconds * NS_PER_S + fraction_ns;
    return true;
}
