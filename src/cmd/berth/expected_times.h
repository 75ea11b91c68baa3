/*
 * expected_times.h - when a job is expected to start or to end, in words.
 *
 * Every command that tells of a forecast takes its words from here, and the dashboard has the same
 * ones (web/src/parts/expected.ts): tests/support/expected_times.json lists cases for both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;

#define EXPECTED_TIMES_LENGTH 192 /* bytes that a short text needs at most */

/*
 * The interval of 'expected' (expected_start or expected_end of the API) seen at 'now', in seconds
 * since 1970 and by the local time zone: "14:20-14:45", "Tue 09:00-Wed 02:00", "by 14:45",
 * "any moment", "later than 4 d", "from 14:20, perhaps later than 4 d".  'verb' stands before it
 * ("starts "), or is "".  "" where nothing is expected.
 */
const char *expected_times_format(char *text, size_t size, const char *verb,
                                  const struct json *expected, double now, bool utf8);

/* What is expected of a job next: "starts …" if it waits, "ends …" if it runs, or "". */
const char *expected_times_format_job(char *text, size_t size, const struct json *job,
                                      double now, bool utf8);

/*
 * The same in sentences, appended: the interval with its probabilities, what it was made from and
 * when, and how well such forecasts held.  'verb' is "start" or "end".
 */
void expected_times_explain(struct buf *buf, const char *verb,
                            const struct json *expected, double now);

/* What it was made from: "57 finished jobs of the same name and user"; "" if that is not said. */
const char *expected_times_basis(char *text, size_t size, const struct json *expected);
