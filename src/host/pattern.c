/* pattern.c - progress in a job's output. */
#include "host/pattern.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define REPEATS_MAX 2
#define REPEAT_MAX 100

/* The POSIX expression made of what the user wrote. */
struct pattern_draft {
    char text[2 * PATTERN_MAX + 8];
    size_t count;
    int group_count, step, loss;
    int repeat_count;
    long repeat_max;
};

static void append_text(struct pattern_draft *draft, const char *text, size_t count)
{
    memcpy(draft->text + draft->count, text, count);
    draft->count += count;
    draft->text[draft->count] = '\0';
}

/* "(?<name>" or "(?P<name>": its length, or 0. */
static size_t named_group(const char *at, struct pattern_draft *draft)
{
    size_t skip = strncmp(at, "(?<", 3) == 0 ? 3 : strncmp(at, "(?P<", 4) == 0 ? 4 : 0;
    if (skip == 0)
        return 0;
    size_t length = strcspn(at + skip, ">");
    if (at[skip + length] != '>')
        return 0;
    if (length == 4 && strncmp(at + skip, "step", 4) == 0)
        draft->step = draft->group_count;
    if (length == 4 && strncmp(at + skip, "loss", 4) == 0)
        draft->loss = draft->group_count;
    return skip + length + 1;
}

/* Copy a set in brackets, except for \d in it; returns its length. */
static size_t copy_set(const char *at, struct pattern_draft *draft)
{
    size_t end = 1 + (at[1] == '^');
    end += at[end] == ']';
    while (at[end] && at[end] != ']')
        end++;
    for (size_t i = 0; i < end; i++) {
        if (at[i] == '\\' && at[i + 1] == 'd') {
            append_text(draft, "0-9", 3);
            i++;
        } else if (at[i] == '\\' && i + 1 < end) {
            append_text(draft, &at[++i], 1);
        } else {
            append_text(draft, &at[i], 1);
        }
    }
    if (at[end] == ']')
        append_text(draft, "]", 1);
    return at[end] == ']' ? end + 1 : end;
}

/* "{3,5}": limited, since a few large ones within each other take all memory. */
static void note_repeat(const char *at, struct pattern_draft *draft)
{
    draft->repeat_count++;
    for (const char *number = at + 1; *number && *number != '}'; number++) {
        long value = strtol(number, NULL, 10);
        draft->repeat_max = value > draft->repeat_max ? value : draft->repeat_max;
    }
}

static void translate_pattern(const char *text, struct pattern_draft *draft)
{
    for (const char *at = text; *at;) {
        if (at[0] == '{')
            note_repeat(at, draft);
        if (at[0] == '\\' && at[1] == 'd') {
            append_text(draft, "[0-9]", 5);
            at += 2;
        } else if (at[0] == '\\' && at[1]) {
            append_text(draft, at, 2);
            at += 2;
        } else if (at[0] == '[') {
            at += copy_set(at, draft);
        } else if (at[0] == '(') {
            draft->group_count++;
            size_t length = named_group(at, draft);
            append_text(draft, "(", 1);
            at += length ? length : strncmp(at, "(?:", 3) == 0 ? 3 : 1;
        } else {
            append_text(draft, at++, 1);
        }
    }
}

int pattern_init(struct pattern *pattern, const char *text, struct error *err)
{
    if (strlen(text) > PATTERN_MAX / 3) /* \d becomes five */
        return error_set(err, -EINVAL, "pattern: longer than %d bytes",
                         PATTERN_MAX / 3);
    struct pattern_draft draft = { 0 };
    translate_pattern(text, &draft);
    if (draft.repeat_count > REPEATS_MAX || draft.repeat_max > REPEAT_MAX)
        return error_set(err, -EINVAL, "pattern '%.80s': at most %d of {…}, up to %d",
                         text, REPEATS_MAX, REPEAT_MAX);
    int r = regcomp(&pattern->regex, draft.text, REG_EXTENDED);
    if (r != 0) {
        char why[128];
        regerror(r, &pattern->regex, why, sizeof why);
        return error_set(err, -EINVAL, "pattern '%.80s': %s", text, why);
    }
    bool named = draft.step || draft.loss;
    pattern->step = named ? draft.step : draft.group_count >= 1;
    pattern->loss = named ? draft.loss : draft.group_count >= 2 ? 2 : 0;
    if (pattern->step >= PATTERN_GROUPS || pattern->loss >= PATTERN_GROUPS ||
        (pattern->step == 0 && pattern->loss == 0)) {
        regfree(&pattern->regex);
        return error_set(err, -EINVAL,
                         "pattern '%.80s': no group for the step, as in (?<step>\\d+)",
                         text);
    }
    return 0;
}

void pattern_release(struct pattern *pattern)
{
    regfree(&pattern->regex);
}

/* The number that a group matched; NAN: none. */
static double group_number(const char *line, const regmatch_t *match)
{
    char text[64], *end;
    if (match->rm_so < 0 || match->rm_eo - match->rm_so >= (regoff_t)sizeof text)
        return NAN;
    size_t length = (size_t)(match->rm_eo - match->rm_so);
    memcpy(text, line + match->rm_so, length);
    text[length] = '\0';
    double number = strtod(text, &end);
    return end == text || !isfinite(number) ? NAN : number;
}

bool pattern_match(const struct pattern *pattern, const char *line, double *ret_step,
                   double *ret_loss)
{
    regmatch_t groups[PATTERN_GROUPS];
    if (regexec(&pattern->regex, line, PATTERN_GROUPS, groups, 0) != 0)
        return false;
    double step = pattern->step ? group_number(line, &groups[pattern->step]) : NAN;
    double loss = pattern->loss ? group_number(line, &groups[pattern->loss]) : NAN;
    if ((isnan(step) || step < 0) && isnan(loss))
        return false;
    *ret_step = step < 0 ? NAN : step;
    *ret_loss = loss;
    return true;
}
