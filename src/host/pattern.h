/*
 * pattern.h - progress in a job's output: a regular expression with a step and a loss.
 *
 *     step (?<step>\d+).*loss (?<loss>[0-9.e-]+)
 *     iter ([0-9]+) .* ([0-9.]+)$            without names: first step, then loss
 *
 * POSIX extended expressions, with named groups, groups that are not counted, (?:...), and
 * classes such as \d and \s besides; no back references.  Users write them, so compiling one
 * and matching a line take bounded time and memory, whatever it is (regex.h).
 */
#pragma once

#include <stdbool.h>

struct error;
struct regex;

#define PATTERN_MAX 512         /* bytes */
#define PATTERN_REPEATS_MAX 200 /* of all {n,m} together, by their larger number */
#define PATTERN_GROUPS 16       /* the whole match is one of them */
#define PATTERN_LINE_MAX 32768  /* bytes: of a longer line only these are looked at */

struct pattern {
    struct regex *regex;
    int step, loss; /* groups; 0: none */
};

/* Read one; the error does not say that it is about a pattern. */
int pattern_init(struct pattern *pattern, const char *text, struct error *err);
void pattern_release(struct pattern *pattern);

/* Whether pattern_init() would take it: 0, or its error. */
int pattern_check(const char *text, struct error *err);

/* What a line reports; a missing loss is NAN. False: nothing. */
bool pattern_match(const struct pattern *pattern, const char *line, double *ret_step,
                   double *ret_loss);
