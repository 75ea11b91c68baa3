/* trends.c - the cluster over the last hours. */
#include "daemon/trends.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"

/* Every second one of the older three quarters goes: what is new stays fine. */
static void thin_out(struct trends *trends)
{
    uint32_t old = trends->count / 4 * 3, kept = 0;
    for (uint32_t i = 0; i < trends->count; i++)
        if (i >= old || i % 2 == 0)
            trends->samples[kept++] = trends->samples[i];
    trends->count = kept;
}

struct trend_sample *trends_add(struct trends *trends, int64_t at_ns)
{
    if (trends->count == TREND_SAMPLES)
        thin_out(trends);
    struct trend_sample *sample = &trends->samples[trends->count++];
    *sample = (struct trend_sample){ .at_ns = at_ns };
    return sample;
}

uint32_t trends_reason(struct trends *trends, const char *token)
{
    for (uint32_t i = 0; i < trends->token_count; i++)
        if (strcmp(trends->tokens[i], token) == 0)
            return i;
    if (trends->token_count == TREND_REASONS)
        return TREND_REASONS - 1;
    trends->tokens[trends->token_count] = token;
    return trends->token_count++;
}

uint32_t trends_group(struct trends *trends, uint64_t key, bool *ret_new)
{
    *ret_new = false;
    for (uint32_t i = 0; i < trends->group_count; i++)
        if (trends->groups[i].key == key)
            return i;
    if (trends->group_count == TREND_GROUPS) {
        struct trend_group *last = &trends->groups[TREND_GROUPS - 1];
        snprintf(last->name, sizeof last->name, "all others");
        return TREND_GROUPS - 1;
    }
    *ret_new = true;
    trends->groups[trends->group_count] = (struct trend_group){ .key = key };
    return trends->group_count++;
}

void trends_share_out(const double *wanted, const double *weight, uint32_t count,
                      double gpus, double *due)
{
    bool full[TREND_GROUPS] = { false };
    assert(count <= TREND_GROUPS);
    for (uint32_t i = 0; i < count; i++)
        due[i] = 0;
    /* Each round somebody has enough, or all that is left is shared out. */
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

/* ---- telling ---- */

struct column {
    struct buf *buf;
    const struct trends *trends;
    uint32_t from;
};

static void put_counts(const struct column *c, const char *key, size_t offset)
{
    json_write_open(c->buf, key, '[');
    for (uint32_t i = c->from; i < c->trends->count; i++) {
        uint32_t count;
        memcpy(&count, (const char *)&c->trends->samples[i] + offset, sizeof count);
        json_write_count(c->buf, NULL, count);
    }
    json_write_close(c->buf, ']');
}

static void put_shares(const struct column *c, const char *key, uint32_t group,
                       bool due)
{
    json_write_open(c->buf, key, '[');
    for (uint32_t i = c->from; i < c->trends->count; i++) {
        const struct trend_sample *sample = &c->trends->samples[i];
        json_write_number(c->buf, NULL, due ? sample->due[group] : sample->got[group]);
    }
    json_write_close(c->buf, ']');
}

static void put_reasons(const struct column *c)
{
    json_write_open(c->buf, "reasons", '[');
    for (uint32_t i = 0; i < c->trends->token_count; i++) {
        json_write_open(c->buf, NULL, '{');
        json_write_text(c->buf, "token", c->trends->tokens[i]);
        put_counts(c, "jobs",
                   offsetof(struct trend_sample, reasons) + i * sizeof(uint32_t));
        json_write_close(c->buf, '}');
    }
    json_write_close(c->buf, ']');
}

static void put_groups(const struct column *c)
{
    json_write_open(c->buf, "entities", '[');
    for (uint32_t i = 0; i < c->trends->group_count; i++) {
        json_write_open(c->buf, NULL, '{');
        json_write_text(c->buf, "name", c->trends->groups[i].name);
        put_shares(c, "due", i, true);
        put_shares(c, "got", i, false);
        json_write_close(c->buf, '}');
    }
    json_write_close(c->buf, ']');
}

void trends_write(const struct trends *trends, struct buf *buf, int64_t since_ns)
{
    struct column c = { .buf = buf, .trends = trends };
    while (c.from < trends->count && trends->samples[c.from].at_ns <= since_ns)
        c.from++;
    json_write_open(buf, "t", '[');
    for (uint32_t i = c.from; i < trends->count; i++)
        json_write_time(buf, NULL, trends->samples[i].at_ns);
    json_write_close(buf, ']');
    put_counts(&c, "gpus", offsetof(struct trend_sample, gpus));
    put_counts(&c, "held", offsetof(struct trend_sample, held));
    put_counts(&c, "foreign", offsetof(struct trend_sample, foreign));
    put_counts(&c, "running", offsetof(struct trend_sample, running));
    put_counts(&c, "waiting", offsetof(struct trend_sample, waiting));
    put_reasons(&c);
    put_groups(&c);
}
