/* nodes.c - berth nodes: the nodes, what is free, and the jobs on them. */
#include <inttypes.h>
#include <math.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/text_table.h"

static const struct flag nodes_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct text_table_column columns[] = {
    { "NODE", .min = 8 },
    { "TYPE" },
    { "GPUS", .right = true },
    { "FREE", .right = true },
    { "CPUS", .right = true, .spare = 1 },
    { "MEM", .right = true, .spare = 2 },
    { "HELD", .min = 12 },
};

/* Write GPUs and their jobs as "0:12 1:12 3:foreign", and return how many are held. */
static uint32_t format_held_gpus(const struct json *held, struct buf *text)
{
    uint32_t count = 0;
    buf_reset(text);
    buf_text(text, "");
    for (size_t i = 0; i < json_count(held); i++) {
        const struct json *one = json_item(held, i), *jobs = json_get(one, "jobs");
        bool foreign = false;
        json_as_flag(json_get(one, "foreign"), &foreign);
        if (!foreign && json_count(jobs) == 0)
            continue;
        buf_print(text, "%s%.0f:", count++ ? " " : "", json_number_or(one, "gpu", 0));
        for (size_t j = 0; j < json_count(jobs); j++) {
            int64_t id = 0;
            json_as_count(json_item(jobs, j), &id);
            buf_print(text, "%s%" PRId64, j ? "+" : "", id);
        }
        if (foreign)
            buf_text(text, "foreign");
    }
    return count;
}

/* Free of all, as in "3/8". */
static void add_free(struct text_table *table, const struct json *node,
                     const char *free_key, const char *key, double unit,
                     const char *name)
{
    double all = json_number_or(node, key, NAN),
           left = json_number_or(node, free_key, NAN);
    if (isnan(all))
        text_table_add(table, "%s", "");
    else if (isnan(left))
        text_table_add(table, "%.4g%s", all / unit, name);
    else
        text_table_add(table, "%.4g/%.4g%s", left / unit, all / unit, name);
}

static void add_node(struct text_table *table, const struct json *node,
                     struct buf *text)
{
    bool up = true;
    double gpus = json_number_or(node, "gpus", 0);
    uint32_t held = format_held_gpus(json_get(node, "held"), text);
    json_as_flag(json_get(node, "up"), &up);
    text_table_add(table, "%s", json_text_or(node, "name", ""));
    text_table_add(table, "%s", json_text_or(node, "type", ""));
    text_table_add(table, "%.0f", gpus);
    if (up)
        text_table_add(table, "%.0f", gpus - held);
    else
        text_table_add(table, "down");
    if (!up)
        text_table_set_colour(table, "31");
    add_free(table, node, "cpus_free", "cpus", 1, "");
    add_free(table, node, "mem_free_bytes", "mem_bytes", 0x1p30, "G");
    const char *reason = json_text_or(node, "reason", "");
    text_table_add(table, "%s%s%s", text->bytes, text->count && *reason ? " " : "",
                   reason);
}

static void print_nodes(const struct json *answer)
{
    struct text_table table;
    struct buf text;
    const struct json *nodes = json_get(answer, "nodes");
    buf_init(&text, 1 << 16);
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(nodes); i++)
        add_node(&table, json_item(nodes, i), &text);
    text_table_show(&table, stdout);
    text_table_release(&table);
    buf_release(&text);
}

static int nodes_run(const struct flags *flags)
{
    if (command_refuse_words(flags))
        return 2;
    return connection_show(flags, "/v1/nodes", print_nodes);
}

const struct command command_nodes = {
    .name = "nodes",
    .group = "Use",
    .brief = "what there is, what is free, who holds what",
    .usage = "[--json]",
    .flags = nodes_flags,
    .run = nodes_run,
};
