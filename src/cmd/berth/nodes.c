/* nodes.c - berth nodes: what there is, and who holds what. */
#include <inttypes.h>
#include <math.h>

#include "base/buf.h"
#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

static const struct flag nodes_flags[] = {
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static const struct sheet_column columns[] = {
    { "NODE", .min = 8 },
    { "TYPE" },
    { "GPUS", .right = true },
    { "FREE", .right = true },
    { "CPUS", .right = true, .spare = 1 },
    { "MEM", .right = true, .spare = 2 },
    { "HELD", .min = 12 },
};

/* "0:12 1:12 3:foreign"; how many are held. */
static uint32_t held_text(const struct json *held, struct buf *text)
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
        buf_print(text, "%s%.0f:", count++ ? " " : "", live_number(one, "gpu", 0));
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

/* What is free of what is there. */
static void add_free(struct sheet *sheet, const struct json *node, const char *free_key,
                     const char *key, double unit, const char *name)
{
    double all = live_number(node, key, NAN), left = live_number(node, free_key, NAN);
    if (isnan(all))
        sheet_add(sheet, "%s", "");
    else if (isnan(left))
        sheet_add(sheet, "%.4g%s", all / unit, name);
    else
        sheet_add(sheet, "%.4g/%.4g%s", left / unit, all / unit, name);
}

static void add_node(struct sheet *sheet, const struct json *node, struct buf *text)
{
    bool up = true;
    double gpus = live_number(node, "gpus", 0);
    uint32_t held = held_text(json_get(node, "held"), text);
    json_as_flag(json_get(node, "up"), &up);
    sheet_add(sheet, "%s", live_text(node, "name", ""));
    sheet_add(sheet, "%s", live_text(node, "type", ""));
    sheet_add(sheet, "%.0f", gpus);
    if (up)
        sheet_add(sheet, "%.0f", gpus - held);
    else
        sheet_add(sheet, "down");
    if (!up)
        sheet_colour(sheet, "31");
    add_free(sheet, node, "cpus_free", "cpus", 1, "");
    add_free(sheet, node, "mem_free_bytes", "mem_bytes", 0x1p30, "G");
    const char *reason = live_text(node, "reason", "");
    sheet_add(sheet, "%s%s%s", text->bytes, text->count && *reason ? " " : "", reason);
}

static int nodes_run(const struct flags *flags)
{
    struct json *answer = NULL;
    if (flags->word_count > 0)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
    int status = live_get(flags, "/v1/nodes", &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return live_print_json(answer);
    struct sheet sheet;
    struct buf text;
    const struct json *nodes = json_get(answer, "nodes");
    buf_init(&text, 1 << 16);
    sheet_init(&sheet, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(nodes); i++)
        add_node(&sheet, json_item(nodes, i), &text);
    sheet_print(&sheet, stdout, sheet_width(stdout), sheet_coloured(stdout));
    sheet_release(&sheet);
    buf_release(&text);
    json_free(answer);
    return 0;
}

const struct command command_nodes = {
    .name = "nodes",
    .group = "Use",
    .brief = "what there is, what is free, who holds what",
    .usage = "[--json]",
    .flags = nodes_flags,
    .run = nodes_run,
};
