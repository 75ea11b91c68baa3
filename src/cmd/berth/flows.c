/* flows.c - berth flows: whose packets go first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

#define HOSTS_SHOWN 3

static const struct flag flows_flags[] = {
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static const struct sheet_column columns[] = {
    { "JOB", .right = true },
    { "LEVEL", .right = true },
    { "HOSTS", .min = 8, .spare = 1 },
    { "SCORE", .right = true, .spare = 3 },
    { "SENDS", .right = true, .spare = 2 },
    { "WHY", .min = 20 },
};

/* "a, b and 3 more" */
static void add_hosts(struct sheet *sheet, const struct json *hosts)
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
        sheet_add(sheet, "%s and %zu more", text, count - HOSTS_SHOWN);
    else
        sheet_add(sheet, "%s", text);
}

/* "-": nobody has counted. */
static void add_rate(struct sheet *sheet, double bytes_per_s)
{
    static const char *const units[] = { "B/s", "kB/s", "MB/s", "GB/s" };
    uint32_t unit = 0;
    while (bytes_per_s >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes_per_s /= 1000;
        unit++;
    }
    if (isnan(bytes_per_s))
        sheet_add(sheet, "-");
    else
        sheet_add(sheet, bytes_per_s < 10 ? "%.1f %s" : "%.0f %s", bytes_per_s,
                  units[unit]);
}

static void add_flow(struct sheet *sheet, const struct json *one)
{
    double score = live_number(one, "score", NAN);
    sheet_add(sheet, "%.0f", live_number(one, "job", 0));
    sheet_add(sheet, "%.0f", live_number(one, "level", 0));
    add_hosts(sheet, json_get(one, "hosts"));
    if (isnan(score))
        sheet_add(sheet, "-");
    else
        sheet_add(sheet, "%.3g", score);
    add_rate(sheet, live_number(one, "bytes_per_s", NAN));
    sheet_add(sheet, "%s", live_text(one, "why", ""));
}

/* In the order in which they go: by level, then by number. */
static int by_level(const void *a, const void *b)
{
    const struct json *const *one = a, *const *other = b;
    double difference = live_number(*one, "level", 0) - live_number(*other, "level", 0);
    if (difference == 0)
        difference = live_number(*one, "job", 0) - live_number(*other, "job", 0);
    return difference < 0 ? -1 : difference > 0;
}

static void print_flows(const struct json *list)
{
    size_t count = json_count(list);
    const struct json **sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        abort();
    for (size_t i = 0; i < count; i++)
        sorted[i] = json_item(list, i);
    qsort(sorted, count, sizeof *sorted, by_level);
    struct sheet sheet;
    sheet_init(&sheet, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++)
        add_flow(&sheet, sorted[i]);
    sheet_print(&sheet, stdout, sheet_width(stdout), sheet_coloured(stdout));
    sheet_release(&sheet);
    free(sorted);
}

static int flows_run(const struct flags *flags)
{
    struct json *answer = NULL;
    if (flags->word_count > 0)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
    int status = live_get(flags, "/v1/flows", &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return live_print_json(answer);
    const struct json *list = json_get(answer, "flows");
    bool levels = json_get(answer, "levels");
    if (!levels)
        puts("No job's packets go first: 'berth set --flow jpas' changes that.");
    else if (json_count(list) == 0)
        puts("No job runs.");
    else
        print_flows(list);
    if (levels && json_count(json_get(answer, "agents")) == 0)
        puts("No berth-flowd follows: nothing is marked.");
    json_free(answer);
    return 0;
}

const struct command command_flows = {
    .name = "flows",
    .group = "Use",
    .brief = "whose packets go first",
    .usage = "[--json]",
    .flags = flows_flags,
    .run = flows_run,
};
