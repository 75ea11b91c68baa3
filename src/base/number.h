/*
 * number.h - decimal numbers and times of day, to and from text.
 *
 * A trace is mostly numbers, so reading it costs what these functions cost.  They are
 * exact: a decimal becomes the nearest whole number of the unit asked for, or the same
 * double that strtod() gives.  None accepts white space, hexadecimal, infinity or NaN.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits only, below 2^64. */
bool number_count(const char *text, size_t bytes, uint64_t *ret_count);

/*
 * 'text' times 'unit', rounded to the nearest whole number, halves away from zero:
 * "1.5" with unit 1000000000 is 1500000000.  False beyond 2^63 or if it is no number.
 */
bool number_scaled(const char *text, size_t bytes, int64_t unit, int64_t *ret_value);

/* As strtod() reads it. */
bool number_real(const char *text, size_t bytes, double *ret_number);

/*
 * The same where NUMBER_PAD bytes from 'text' on may be read, whatever they are: a
 * number is then fetched in one go, whether it is short or long.
 */
#define NUMBER_PAD 16
bool number_scaled_padded(const char *text, size_t bytes, int64_t unit,
                          int64_t *ret_value);
bool number_real_padded(const char *text, size_t bytes, double *ret_number);

/*
 * "2017-10-07 01:12:09", with 'T' for the blank, decimals and a zone ("Z", "+08:00",
 * "+0800") where there are any, to nanoseconds since 1970-01-01 00:00:00.  Without a
 * zone it is taken as UTC.  Years 1970 to 2069.
 */
bool number_stamp(const char *text, size_t bytes, int64_t *ret_ns);

/*
 * Write the shortest decimal that reads back as the same double.  With fewer than 15
 * digits at least, large round numbers get an exponent: 1e+06 where 6 are asked for.
 */
#define NUMBER_TEXT_BYTES 40
void number_shortest(char text[static NUMBER_TEXT_BYTES], double number,
                     int digits_min);
