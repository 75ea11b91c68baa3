/* pattern.c - progress in a job's output. */
#include "host/pattern.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "host/regex.h"

/* The expression made of what the user wrote. */
struct pattern_draft {
    char text[2 * PATTERN_MAX];
    size_t count;
};

static void append_text(struct pattern_draft *draft, const char *text, size_t count)
{
    memcpy(draft->text + draft->count, text, count);
    draft->count += count;
    draft->text[draft->count] = '\0';
}

/* Bytes from 'at' to the first 'end' at or after 'from', which is included. */
static size_t length_until(const char *at, size_t from, const char *end)
{
    const char *found = strstr(at + from, end);
    return found ? (size_t)(found - at) + strlen(end) : strlen(at);
}

/* The length of a set in brackets, in which "(?<" is nothing special. */
static size_t set_length(const char *at)
{
    size_t i = 1 + (at[1] == '^');
    i += at[i] == ']';
    while (at[i] && at[i] != ']') {
        if (at[i] == '\\' && at[i + 1])
            i += 2;
        else if (strncmp(at + i, "[:", 2) == 0)
            i += length_until(at + i, 2, ":]");
        else
            i++;
    }
    return at[i] ? i + 1 : i;
}

/* A set, an escaped byte, or one byte. */
static size_t unit_length(const char *at)
{
    if (*at == '[')
        return set_length(at);
    return *at == '\\' && at[1] ? 2 : 1;
}

/* "{3,5}" is five times what is before it, in a program that has to stay small. */
static long repeat_count(const char *at)
{
    char *end;
    long from = strtol(at + 1, &end, 10);
    long to = *end == ',' ? strtol(end + 1, NULL, 10) : from;
    long most = from > to ? from : to;
    return most > PATTERN_REPEATS_MAX ? PATTERN_REPEATS_MAX + 1 : most;
}

/* The library knows more than is promised; some of it is expensive. */
static int check_syntax(const char *at, struct error *err)
{
    if (at[0] == '\\' && at[1] && strchr("pPQ", at[1]))
        return error_set(err, -EINVAL, "\\%c: want a class like \\d or [[:alpha:]]",
                         at[1]);
    if (strncmp(at, "(?", 2) == 0 && at[2] != ':' && at[2] != '<' &&
        strncmp(at + 2, "P<", 2) != 0)
        return error_set(err, -EINVAL, "%.3s: want (?<name>...) or (?:...)", at);
    return 0;
}

/* Copy it, with "(?P<name>" for "(?<name>", as the library has it. */
static int translate_pattern(const char *text, struct pattern_draft *draft,
                             struct error *err)
{
    long repeats = 0;
    for (const char *at = text; *at;) {
        int r = check_syntax(at, err);
        if (r < 0)
            return r;
        repeats += *at == '{' ? repeat_count(at) : 0;
        if (repeats > PATTERN_REPEATS_MAX)
            return error_set(err, -EINVAL, "repeats by {...} more than %d times in all",
                             PATTERN_REPEATS_MAX);
        bool named = strncmp(at, "(?<", 3) == 0;
        size_t length = named ? 3 : unit_length(at);
        append_text(draft, named ? "(?P<" : at, named ? 4 : length);
        at += length;
    }
    return 0;
}

static int find_groups(struct pattern *pattern, struct error *err)
{
    int count = regex_group_count(pattern->regex);
    pattern->step = regex_group_named(pattern->regex, "step");
    pattern->loss = regex_group_named(pattern->regex, "loss");
    if (!pattern->step && !pattern->loss) {
        pattern->step = count >= 1;
        pattern->loss = count >= 2 ? 2 : 0;
    }
    if (count >= PATTERN_GROUPS)
        return error_set(err, -EINVAL, "%d groups: at most %d", count,
                         PATTERN_GROUPS - 1);
    if (!pattern->step && !pattern->loss)
        return error_set(err, -EINVAL, "no group for the step, as in (?<step>\\d+)");
    return 0;
}

static int compile_pattern(struct pattern *pattern, const char *text, struct error *err)
{
    struct pattern_draft draft = { .count = 0 };
    int r = translate_pattern(text, &draft, err);
    if (r == 0)
        r = regex_compile(&pattern->regex, draft.text, err);
    if (r < 0)
        return r;
    r = find_groups(pattern, err);
    if (r < 0)
        pattern_release(pattern);
    return r;
}

int pattern_init(struct pattern *pattern, const char *text, struct error *err)
{
    if (strlen(text) > PATTERN_MAX)
        return error_set(err, -EINVAL, "longer than %d bytes", PATTERN_MAX);
    struct error why = { "" };
    int r = compile_pattern(pattern, text, &why);
    if (r < 0)
        return error_set(err, r, "'%.80s': %.200s", text, why.text);
    return 0;
}

void pattern_release(struct pattern *pattern)
{
    regex_free(pattern->regex);
    pattern->regex = NULL;
}

int pattern_check(const char *text, struct error *err)
{
    struct pattern pattern;
    int r = pattern_init(&pattern, text, err);
    if (r == 0)
        pattern_release(&pattern);
    return r;
}

/* The number that a group matched; NAN: none. */
static double group_number(const char *line, const struct regex_span *span)
{
    char text[64], *end;
    if (span->start < 0 || span->end - span->start >= (int)sizeof text)
        return NAN;
    size_t length = (size_t)(span->end - span->start);
    memcpy(text, line + span->start, length);
    text[length] = '\0';
    double number = strtod(text, &end);
    return end == text || !isfinite(number) ? NAN : number;
}

bool pattern_match(const struct pattern *pattern, const char *line, double *ret_step,
                   double *ret_loss)
{
    struct regex_span groups[PATTERN_GROUPS];
    int last = pattern->step > pattern->loss ? pattern->step : pattern->loss;
    size_t length = strnlen(line, PATTERN_LINE_MAX);
    if (!regex_search(pattern->regex, line, length, groups, last + 1))
        return false;
    double step = pattern->step ? group_number(line, &groups[pattern->step]) : NAN;
    double loss = pattern->loss ? group_number(line, &groups[pattern->loss]) : NAN;
    if ((isnan(step) || step < 0) && isnan(loss))
        return false;
    *ret_step = step < 0 ? NAN : step;
    *ret_loss = loss;
    return true;
}
