/* number.c - decimal numbers and times of day, to and from text. */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define DIGITS_MAX 24 /* so many, times a day in nanoseconds, fit into 128 bits */
#define TEXT_MAX 400  /* longer than any double needs */

typedef unsigned __int128 wide;

/* A decimal taken apart: sign, digits as a whole number, power of ten. */
struct decimal {
    bool negative;
    bool cut;    /* there are more digits than these */
    wide digits; /* the first DIGITS_MAX             */
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

    uint32_t digit_count = 0; /* after leading zeros */
    bool any = false;
    bool fraction = false;
    for (; text < end; text++) {
        if (*text == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!is_digit(*text))
            break;
        any = true;
        digit_count += digit_count > 0 || *text != '0';
        if (digit_count <= DIGITS_MAX) {
            d->digits = d->digits * 10 + (unsigned)(*text - '0');
            d->power -= fraction;
        } else {
            d->cut = true;
            d->power += !fraction;
        }
    }
    if (!any)
        return false;
    return text == end || read_power(text, end, &d->power);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* One to eight bytes, the first lowest; what follows them is touched only if padded. */
static inline uint64_t load_bytes(const char *text, size_t bytes, bool padded)
{
    if (padded || bytes >= 8) {
        uint64_t all;
        memcpy(&all, text, 8);
        return all & UINT64_MAX >> 8 * (8 - bytes);
    }
    if (bytes >= 4) {
        uint32_t first, last; /* they may overlap: there they agree */
        memcpy(&first, text, 4);
        memcpy(&last, text + bytes - 4, 4);
        return first | (uint64_t)last << 8 * (bytes - 4);
    }
    return (uint64_t)(unsigned char)text[0] |
           (uint64_t)(unsigned char)text[bytes / 2] << 8 * (bytes / 2) |
           (uint64_t)(unsigned char)text[bytes - 1] << 8 * (bytes - 1);
}

/* Bits at the bytes that are a point; the lowest is exact. */
static inline uint64_t find_points(uint64_t text)
{
    uint64_t x = text ^ EACH('.');
    return (x - EACH(0x01)) & ~x & EACH(0x80);
}

static inline bool all_digits(uint64_t text)
{
    return ((text & EACH(0xf0)) == EACH(0x30)) &
           (((text + EACH(0x06)) & EACH(0xf0)) == EACH(0x30));
}

/* Eight digits, the first lowest: pairs, then fours, then all, in three multiplications. */
static inline uint64_t eight_digits(uint64_t text)
{
    text = (text & EACH(0x0f)) * 2561 >> 8;
    text = (text & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
    return (text & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32;
}

/*
 * Digits with at most one point among them, up to sixteen bytes: nearly every number in
 * a trace.  The bytes are worked on together, because a loop that ends where a short
 * number ends is mispredicted every time.  False sends the others the long way.
 */
static inline bool read_plain(const char *text, size_t bytes, bool padded,
                              uint64_t *ret_digits, uint32_t *ret_decimals)
{
    if (bytes - 1 >= 16)
        return false;
    *ret_decimals = 0;
    if (bytes <= 8) {
        uint64_t w = load_bytes(text, bytes, padded);
        uint64_t point = find_points(w);
        if (point) {
            int at = __builtin_ctzll(point) & ~7; /* bits before it */
            *ret_decimals = (uint32_t)bytes - 1 - (uint32_t)at / 8;
            w = (w & ((UINT64_C(1) << at) - 1)) | w >> at >> 8 << at;
            if (--bytes == 0)
                return false;
        }
        w = w << 8 * (8 - bytes) | EACH('0') >> 4 * bytes >> 4 * bytes;
        *ret_digits = eight_digits(w);
        return all_digits(w);
    }
    uint64_t low = load_bytes(text, 8, padded);
    uint64_t high = load_bytes(text + 8, bytes - 8, padded);
    wide w = low | (wide)high << 64;
    uint64_t in_low = find_points(low);
    uint64_t in_high = find_points(high);
    if (in_low | in_high) {
        int at = in_low ? __builtin_ctzll(in_low) & ~7
                        : 64 + (__builtin_ctzll(in_high) & ~7);
        *ret_decimals = (uint32_t)bytes - 1 - (uint32_t)at / 8;
        w = (w & (((wide)1 << at) - 1)) | w >> at >> 8 << at;
        bytes--;
    }
    wide zeros = (wide)EACH('0') << 64 | EACH('0');
    w = w << 8 * (16 - bytes) | zeros >> 4 * bytes >> 4 * bytes;
    *ret_digits =
        eight_digits((uint64_t)w) * 100000000 + eight_digits((uint64_t)(w >> 64));
    return all_digits((uint64_t)w) && all_digits((uint64_t)(w >> 64));
}
#else
static inline bool read_plain(const char *text, size_t bytes, bool padded,
                              uint64_t *ret_digits, uint32_t *ret_decimals)
{
    return false;
}
#endif

bool number_count(const char *text, size_t bytes, uint64_t *ret_count)
{
    if (bytes == 0 || bytes > 20)
        return false;
    uint64_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_digit(text[i]))
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (i >= 18 && count > (UINT64_MAX - digit) / 10)
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

static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

static bool real_slowly(const char *text, size_t bytes, double *ret_number)
{
    struct decimal d;
    if (!take_apart(text, bytes, &d))
        return false;
    if (!d.cut && d.digits <= (UINT64_C(1) << 53) && d.power >= -22 && d.power <= 22) {
        double number = (double)d.digits;
        number = d.power < 0 ? number / tens[-d.power] : number * tens[d.power];
        *ret_number = d.negative ? -number : number;
        return true;
    }
    return read_slowly(text, bytes, ret_number);
}

static inline bool read_real(const char *text, size_t bytes, bool padded,
                             double *ret_number)
{
    uint64_t digits;
    uint32_t decimals;
    /* Both parts are exact doubles, so one operation rounds once: strtod's result. */
    if (read_plain(text, bytes, padded, &digits, &decimals) && digits <= UINT64_C(1)
                                                                             << 53) {
        *ret_number = (double)digits / tens[decimals];
        return true;
    }
    return real_slowly(text, bytes, ret_number);
}

bool number_real(const char *text, size_t bytes, double *ret_number)
{
    return read_real(text, bytes, false, ret_number);
}

bool number_real_padded(const char *text, size_t bytes, double *ret_number)
{
    return read_real(text, bytes, true, ret_number);
}

/* The same as below, for what is no plain number. */
static bool scale_slowly(const char *text, size_t bytes, int64_t unit,
                         int64_t *ret_value)
{
    struct decimal d;
    if (!take_apart(text, bytes, &d))
        return false;
    if (d.power < -36 || d.power > 0) {
        double number;
        if (!read_slowly(text, bytes, &number))
            return false;
        number = round(number * (double)unit);
        if (!(fabs(number) < 0x1p63))
            return false;
        *ret_value = (int64_t)number;
        return true;
    }
    wide value = d.digits * (wide)unit;
    wide divisor = 1;
    for (int i = 0; i < -d.power; i++)
        divisor *= 10;
    value = (value + divisor / 2) / divisor;
    if (value > INT64_MAX)
        return false;
    *ret_value = d.negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static inline bool read_scaled(const char *text, size_t bytes, bool padded,
                               int64_t unit, int64_t *ret_value)
{
    static const int64_t parts[] = { 1000000000, 100000000, 10000000, 1000000, 100000,
                                     10000,      1000,      100,      10,      1 };
    uint64_t digits;
    uint32_t decimals;
    /* Seconds to nanoseconds with up to nine decimals needs no division. */
    if (unit == NS_PER_S && read_plain(text, bytes, padded, &digits, &decimals) &&
        decimals <= 9)
        return !__builtin_mul_overflow(digits, parts[decimals], ret_value);
    return scale_slowly(text, bytes, unit, ret_value);
}

bool number_scaled(const char *text, size_t bytes, int64_t unit, int64_t *ret_value)
{
    return read_scaled(text, bytes, false, unit, ret_value);
}

bool number_scaled_padded(const char *text, size_t bytes, int64_t unit,
                          int64_t *ret_value)
{
    return read_scaled(text, bytes, true, unit, ret_value);
}

/* Two digits, or -1. */
static int read_two_digits(const char *text)
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
    int hours = read_two_digits(text + 1);
    int minutes = bytes == 3 ? 0 : read_two_digits(text + bytes - 2);
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
    int century = read_two_digits(text);
    int year = read_two_digits(text + 2);
    int month = read_two_digits(text + 5);
    int day = read_two_digits(text + 8);
    int hour = read_two_digits(text + 11);
    int minute = read_two_digits(text + 14);
    int second = read_two_digits(text + 17);
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

void number_shortest(char text[static NUMBER_TEXT_BYTES], double number, int digits_min)
{
    for (int digits = digits_min; digits <= 17; digits++) {
        int bytes = snprintf(text, NUMBER_TEXT_BYTES, "%.*g", digits, number);
        double again;
        if (number_real(text, (size_t)bytes, &again) && again == number)
            return;
    }
}
