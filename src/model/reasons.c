/* reasons.c - why a job waits. */
#include "model/reasons.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void reasons_reset(struct reasons *reasons)
{
    reasons->count = reasons->ahead_count = reasons->ahead_more = 0;
    reasons->considered_count = 0;
}

void reasons_add_considered(struct reasons *reasons,
                            struct reasons_considered considered)
{
    if (reasons->considered_count < CONSIDERED_MAX)
        reasons->considered[reasons->considered_count++] = considered;
}

void reasons_add(struct reasons *reasons, const char *token, const char *fmt, ...)
{
    if (reasons->count == REASONS_MAX)
        return;
    struct reason *reason = &reasons->list[reasons->count++];
    va_list args;
    va_start(args, fmt);
    reason->token = token;
    vsnprintf(reason->text, sizeof reason->text, fmt, args);
    va_end(args);
}

static bool is_before(const struct reasons_ahead *a, int64_t key, uint64_t id)
{
    return a->key != key ? a->key < key : a->id < id;
}

void reasons_add_ahead(struct reasons *reasons, int64_t key, uint64_t id)
{
    uint32_t at = reasons->ahead_count;
    if (at == AHEAD_MAX) {
        reasons->ahead_more++;
        if (is_before(&reasons->ahead[AHEAD_MAX - 1], key, id))
            return;
        at--;
    } else {
        reasons->ahead_count++;
    }
    for (; at > 0 && !is_before(&reasons->ahead[at - 1], key, id); at--)
        reasons->ahead[at] = reasons->ahead[at - 1];
    reasons->ahead[at] = (struct reasons_ahead){ key, id };
}
