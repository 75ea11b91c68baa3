/* trends.c - samples of the cluster over the last hours. */
#include "daemon/routes/trends.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"

/* Drop every second sample of the older three quarters; the newest stay as they are. */
static void thin_out_samples(struct trends *trends)
{
    uint32_t old = trends->count / 4 * 3, kept = 0;
    for (uint32_t i = 0; i < trends->count; i++)
        if (i >= old || i % 2 == 0)
            trends->samples[kept++] = trends->samples[i];
    trends->count = kept;
}

struct trends_sample *trends_add(struct trends *trends, int64_t at_ns)
{
    if (trends->count == TRENDS_SAMPLES)
        thin_out_samples(trends);
    struct trends_sample *sample = &trends->samples[trends->count++];
    *sample = (struct trends_sample){ .at_ns = at_ns };
    return sample;
}

uint32_t trends_find_reason(struct trends *trends, const char *token)
{
    for (uint32_t i = 0; i < trends->token_count; i++)
        if (strcmp(trends->tokens[i], token) == 0)
            return i;
    if (trends->token_count == TRENDS_REASONS)
        return TRENDS_REASONS - 1;
    trends->tokens[trends->token_count] = token;
    return trends->token_count++;
}

uint32_t trends_find_group(struct trends *trends, uint64_t key, bool *ret_new)
{
    *ret_new = false;
    for (uint32_t i = 0; i < trends->group_count; i++)
        if (trends->groups[i].key == key)
            return i;
    if (trends->group_count == TRENDS_GROUPS) {
        struct trends_group *last = &trends->groups[TRENDS_GROUPS - 1];
        snprintf(last->name, sizeof last->name, "all others");
        return TRENDS_GROUPS - 1;
    }
    *ret_new = true;
    trends->groups[trends->group_count] = (struct trends_group){ .key = key };
    return trends->group_count++;
}

void trends_fair_shares(const double *wanted, const double *weight, uint32_t count,
                        double gpus, double *due)
{
    bool full[TRENDS_GROUPS] = { false };
    assert(count <= TRENDS_GROUPS);
    for (uint32_t i = 0; i < count; i++)
        due[i] = 0;
    /* Each round satisfies a group, or divides all that is left. */
    for (uint32_t round = 0; round < count && gpus > 0; round++) {
        double weights = 0, given = 0;
        bool enough = false;
        for (uint32_t i = 0; i < count; i++)
            weights += full[i] || !(wanted[i] > 0) ? 0 : weight[i];
        if (!(weights > 0))
            return;
        for (uint32_t i = 0; i < count; i++) {
            if (full[i] || !(wanted[i] > 0) || wanted[i] > gpus * weight[i] / weights)
                continue;
            full[i] = enough = true;
            due[i] = wanted[i];
            given += wanted[i];
        }
        for (uint32_t i = 0; !enough && i < count; i++)
            if (!full[i] && wanted[i] > 0)
                due[i] = gpus * weight[i] / weights;
        if (!enough)
            return;
        gpus -= given;
    }
}

/* ---- writing ---- */

struct trends_column {
    struct buf *buf;
    const struct trends *trends;
    uint32_t from;
};

static void write_counts(const struct trends_column *c, const char *key, size_t offset)
{
    json_write_open(c->buf, key, '[');
    for (uint32_t i = c->from; i < c->trends->count; i++) {
        uint32_t count;
        memcpy(&count, (const char *)&c->trends->samples[i] + offset, sizeof count);
        json_write_count(c->buf, NULL, count);
    }
    json_write_close(c->buf, ']');
}

static void write_shares(const struct trends_column *c, const char *key, uint32_t group,
                         bool due)
{
    json_write_open(c->buf, key, '[');
    for (uint32_t i = c->from; i < c->trends->count; i++) {
        const struct trends_sample *sample = &c->trends->samples[i];
        json_write_number(c->buf, NULL, due ? sample->due[group] : sample->got[group]);
    }
    json_write_close(c->buf, ']');
}

static void write_reasons(const struct trends_column *c)
{
    json_write_open(c->buf, "reasons", '[');
    for (uint32_t i = 0; i < c->trends->token_count; i++) {
        json_write_open(c->buf, NULL, '{');
        json_write_text(c->buf, "token", c->trends->tokens[i]);
        write_counts(c, "jobs",
                     offsetof(struct trends_sample, reasons) + i * sizeof(uint32_t));
        json_write_close(c->buf, '}');
    }
    json_write_close(c->buf, ']');
}

static void write_groups(const struct trends_column *c)
{
    json_write_open(c->buf, "entities", '[');
    for (uint32_t i = 0; i < c->trends->group_count; i++) {
        json_write_open(c->buf, NULL, '{');
        json_write_text(c->buf, "name", c->trends->groups[i].name);
        write_shares(c, "due", i, true);
        write_shares(c, "got", i, false);
        json_write_close(c->buf, '}');
    }
    json_write_close(c->buf, ']');
}

void trends_write(const struct trends *trends, struct buf *buf, int64_t since_ns)
{
    struct trends_column c = { .buf = buf, .trends = trends };
    while (c.from < trends->count && trends->samples[c.from].at_ns <= since_ns)
        c.from++;
    json_write_open(buf, "t", '[');
    for (uint32_t i = c.from; i < trends->count; i++)
        json_write_time(buf, NULL, trends->samples[i].at_ns);
    json_write_close(buf, ']');
    write_counts(&c, "gpus", offsetof(struct trends_sample, gpus));
    write_counts(&c, "held", offsetof(struct trends_sample, held));
    write_counts(&c, "foreign", offsetof(struct trends_sample, foreign));
    write_counts(&c, "running", offsetof(struct trends_sample, running));
    write_counts(&c, "waiting", offsetof(struct trends_sample, waiting));
    write_reasons(&c);
    write_groups(&c);
}
