/* units.h - times and sizes as people write them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_S INT64_C(1000000000)

/* 100 years: no time in Berth is longer. */
#define TIME_MAX_NS (INT64_C(3155760000) * NS_PER_S)

/* "90s", "10m", "2h", "1d", "250ms", "1.5h"; without a unit seconds.  Not negative. */
bool units_time(const char *text, int64_t *ret_ns);

/* "20G", "512M", "1T", "64K"; without a unit bytes; powers of 1024. */
bool units_size(const char *text, uint64_t *ret_bytes);

/* The whole of 'text' as a finite number, or false. */
bool units_number(const char *text, double *ret_number);

/* As llround(), in place: the nearest whole number, in the middle away from 0; below 2^63. */
static inline int64_t units_round(double number)
{
    int64_t whole = (int64_t)number;
    double rest = number - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

/* Seconds to nanoseconds, rounded; the caller has checked the range. */
static inline int64_t units_ns(double seconds)
{
    return units_round(seconds * 1e9);
}

/* A time for people: "850 ms", "12.3 s", "4.2 min", "1.6 h", "3.1 d". */
const char *units_show_time(char *text, unsigned size, double seconds);
