/* flows.c - berth flows: the network priority of each job. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/text_table.h"

#define HOSTS_SHOWN 3

static const struct flag flows_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct text_table_column columns[] = {
    { "JOB", .right = true },
    { "LEVEL", .right = true },
    { "HOSTS", .min = 8, .spare = 1 },
    { "SCORE", .right = true, .spare = 3 },
    { "SENDS", .right = true, .spare = 2 },
    { "WHY", .min = 20 },
};

/* "a, b and 3 more" */
static void add_hosts(struct text_table *table, const struct json *hosts)
{
    char text[160] = "";
    size_t count = json_count(hosts);
    for (size_t i = 0; i < count && i < HOSTS_SHOWN; i++) {
        size_t used = strlen(text);
        const char *host = json_as_text(json_item(hosts, i));
        snprintf(text + used, sizeof text - used, "%s%.40s", i ? "," : "",
                 host ? host : "?");
    }
    if (count > HOSTS_SHOWN)
        text_table_add(table, "%s and %zu more", text, count - HOSTS_SHOWN);
    else
        text_table_add(table, "%s", text);
}

/* "-" if no agent has counted bytes. */
static void add_rate(struct text_table *table, double bytes_per_s)
{
    static const char *const units[] = { "B/s", "kB/s", "MB/s", "GB/s" };
    uint32_t unit = 0;
    while (bytes_per_s >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes_per_s /= 1000;
        unit++;
    }
    if (isnan(bytes_per_s))
        text_table_add(table, "-");
    else
        text_table_add(table, bytes_per_s < 10 ? "%.1f %s" : "%.0f %s", bytes_per_s,
                       units[unit]);
}

static void add_flow(struct text_table *table, const struct json *one)
{
    double score = json_number_or(one, "score", NAN);
    text_table_add(table, "%.0f", json_number_or(one, "job", 0));
    text_table_add(table, "%.0f", json_number_or(one, "level", 0));
    add_hosts(table, json_get(one, "hosts"));
    if (isnan(score))
        text_table_add(table, "-");
    else
        text_table_add(table, "%.3g", score);
    add_rate(table, json_number_or(one, "bytes_per_s", NAN));
    text_table_add(table, "%s", json_text_or(one, "why", ""));
}

/* In order of priority: by level, then by job. */
static int compare_flows(const void *a, const void *b)
{
    const struct json *const *one = a, *const *other = b;
    double difference =
        json_number_or(*one, "level", 0) - json_number_or(*other, "level", 0);
    if (difference == 0)
        difference = json_number_or(*one, "job", 0) - json_number_or(*other, "job", 0);
    return difference < 0 ? -1 : difference > 0;
}

static void print_table(const struct json *list)
{
    size_t count = json_count(list);
    const struct json **sorted = memory_checked(calloc(count, sizeof *sorted));
    for (size_t i = 0; i < count; i++)
        sorted[i] = json_item(list, i);
    qsort(sorted, count, sizeof *sorted, compare_flows);
    struct text_table table;
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++)
        add_flow(&table, sorted[i]);
    text_table_show(&table, stdout);
    text_table_release(&table);
    free(sorted);
}

static void print_flows(const struct json *answer)
{
    const struct json *list = json_get(answer, "flows");
    bool levels = json_get(answer, "levels");
    if (!levels)
        puts("No job's packets go first: 'berth set --flow jpas' changes that.");
    else if (json_count(list) == 0)
        puts("No job runs.");
    else
        print_table(list);
    if (levels && json_count(json_get(answer, "agents")) == 0)
        puts("No berth-flowd follows: nothing is marked.");
}

static int flows_run(const struct flags *flags)
{
    if (command_refuse_words(flags))
        return 2;
    return connection_show(flags, "/v1/flows", print_flows);
}

const struct command command_flows = {
    .name = "flows",
    .group = "Use",
    .brief = "whose packets go first",
    .usage = "[--json]",
    .flags = flows_flags,
    .run = flows_run,
};
