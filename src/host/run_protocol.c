/* run_protocol.c - lines between a supervisor and berthd. */
#include "host/run_protocol.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const hows[RUN_HOW_COUNT] = { "finished", "stopped", "failed",
                                                 "cancelled" };

size_t run_end_write(const struct run_end *end, char *text, size_t size)
{
    int length =
        snprintf(text, size, "ended %s %d %d %.17g %.17g %d %s\n", hows[end->how],
                 end->code, end->signal, end->steps, end->saved, end->clean, end->why);
    assert(length > 0 && (size_t)length < size);
    for (char *c = text; c < text + length - 1; c++)
        if (*c == '\n')
            *c = ' ';
    return (size_t)length;
}

char *run_word(char **rest)
{
    char *word = *rest + strspn(*rest, " ");
    if (*word == '\0')
        return NULL;
    char *end = word + strcspn(word, " ");
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

bool run_number(const char *text, double *ret)
{
    char *end;
    if (!text || (*text != '.' && (*text < '0' || *text > '9')))
        return false;
    double number = strtod(text, &end);
    if (*end != '\0' || !isfinite(number))
        return false;
    *ret = number;
    return true;
}

static bool word_number(char **rest, double *ret)
{
    char *word = run_word(rest);
    return word && run_number(word, ret);
}

bool run_report_read(struct run_report *report, char *rest)
{
    char *end;
    *report = (struct run_report){ .loss = (double)NAN };
    if (!word_number(&rest, &report->step))
        return false;
    const char *loss = run_word(&rest);
    if (!loss || !word_number(&rest, &report->rate_per_s))
        return false;
    double value = strtod(loss, &end);
    if (end != loss && *end == '\0' && isfinite(value))
        report->loss = value;
    word_number(&rest, &report->age_s); /* an older berth-run does not say it */
    return true;
}

bool run_end_read(struct run_end *end, const char *line)
{
    char text[RUN_LINE_MAX];
    int length = snprintf(text, sizeof text, "%s", line);
    if (length < 0 || (size_t)length >= sizeof text)
        return false;
    text[strcspn(text, "\n")] = '\0';

    char *rest = text;
    const char *word = run_word(&rest);
    const char *how = run_word(&rest);
    double code, ended_by, steps, saved, clean;
    if (!word || strcmp(word, "ended") != 0 || !how || !word_number(&rest, &code) ||
        !word_number(&rest, &ended_by) || !word_number(&rest, &steps) ||
        !word_number(&rest, &saved) || !word_number(&rest, &clean) || code > 255 ||
        ended_by > 255)
        return false;
    *end = (struct run_end){ .how = RUN_HOW_COUNT,
                             .code = (int)code,
                             .signal = (int)ended_by,
                             .steps = steps,
                             .saved = saved,
                             .clean = clean > 0 };
    for (int i = 0; i < RUN_HOW_COUNT; i++)
        if (strcmp(how, hows[i]) == 0)
            end->how = (enum run_how)i;
    snprintf(end->why, sizeof end->why, "%.*s", RUN_WHY_MAX - 1, rest);
    return end->how != RUN_HOW_COUNT;
}

bool run_lines_add(struct run_lines *lines, const char *bytes, size_t count,
                   size_t line_max, bool (*line)(void *context, char *text),
                   void *context)
{
    assert(line_max <= sizeof lines->bytes);
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n') {
            if (bytes[i] == '\0' || lines->count + 1 >= line_max)
                return false;
            lines->bytes[lines->count++] = bytes[i];
            continue;
        }
        lines->bytes[lines->count] = '\0';
        lines->count = 0;
        if (!line(context, lines->bytes))
            return false;
    }
    return true;
}
