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

/* Seconds to nanoseconds, rounded; the caller has checked the range. */
int64_t units_ns(double seconds);

/* A time for people: "850 ms", "12.3 s", "4.2 min", "1.6 h", "3.1 d". */
const char *units_show_time(char *text, unsigned size, double seconds);
