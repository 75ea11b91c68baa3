/*
 * pattern.h - progress in a job's output: a regular expression with a step and a loss.
 *
 *     step (?<step>\d+).*loss (?<loss>[0-9.e-]+)
 *     iter ([0-9]+) .* ([0-9.]+)$            without names: first step, then loss
 *
 * POSIX extended expressions, with named groups and \d besides.
 */
#pragma once

#include <stdbool.h>

#include <regex.h>

struct error;

#define PATTERN_MAX 1024 /* bytes */
#define PATTERN_GROUPS 16

struct pattern {
    regex_t regex;
    int step, loss; /* groups; 0: none */
};

int pattern_init(struct pattern *pattern, const char *text, struct error *err);
void pattern_release(struct pattern *pattern);

/* What a line reports; a missing loss is NAN. False: nothing. */
bool pattern_match(const struct pattern *pattern, const char *line, double *ret_step,
                   double *ret_loss);
