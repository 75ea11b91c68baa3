/* ledger.c - berth ledger: what each preemption cost and brought. */
#include <math.h>

#include "cmd/berth/live.h"
#include "cmd/berth/table.h"

static const struct flag ledger_flags[] = {
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static const struct table_column columns[] = {
    { "AT" },
    { "VICTIM", .right = true },
    { "FOR", .right = true },
    { "RULE", .min = 8 },
    { "GPUS", .right = true },
    { "BELIEVED", .right = true },
    { "COST", .right = true },
    { "PAUSE", .right = true },
    { "LOAD", .right = true },
    { "REDONE", .right = true },
    { "SAVED", .right = true },
    { "" },
};

static void add_number(struct table *table, const struct json *entry, const char *key,
                       const char *fmt)
{
    double number = live_number(entry, key, NAN);
    char text[32] = "";
    if (!isnan(number))
        snprintf(text, sizeof text, fmt[2] == '0' ? "%.0f" : "%.4g", number);
    table_add(table, "%s", text);
}

static void add_entry(struct table *table, const struct json *entry)
{
    char text[64];
    bool open = false;
    json_as_flag(json_get(entry, "open"), &open);
    table_add(table, "%s",
              live_moment(text, sizeof text, live_number(entry, "at", NAN)));
    add_number(table, entry, "victim", "%.0f");
    add_number(table, entry, "for", "%.0f");
    table_add(table, "%s", live_text(entry, "rule", ""));
    add_number(table, entry, "gpus", "%.0f");
    add_number(table, entry, "predicted_cost_gpu_s", "%.4g");
    add_number(table, entry, "actual_cost_gpu_s", "%.4g");
    add_number(table, entry, "pause_gpu_s", "%.4g");
    add_number(table, entry, "load_gpu_s", "%.4g");
    add_number(table, entry, "redo_gpu_s", "%.4g");
    table_add(table, "%s",
              live_span(text, sizeof text, live_number(entry, "wait_saved_s", NAN)));
    table_add(table, "%s", open ? "so far" : "");
}

static int ledger_run(const struct flags *flags)
{
    struct json *answer;
    if (flags->word_count > 0)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
    int status = live_get(flags, "/v1/ledger", &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return live_print_json(answer);
    const struct json *entries = json_get(answer, "entries");
    struct table table;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(entries); i++)
        add_entry(&table, json_item(entries, i));
    if (json_count(entries) == 0)
        puts("Nobody was preempted.");
    else
        table_print(&table, stdout, table_width(stdout), table_coloured(stdout));
    if (json_count(entries) > 0)
        puts("\nCosts are GPU-seconds; SAVED is what the newcomer did not have to "
             "wait.");
    table_release(&table);
    json_free(answer);
    return 0;
}

const struct command command_ledger = {
    .name = "ledger",
    .group = "Use",
    .brief = "what each preemption cost and brought",
    .usage = "[--json]",
    .flags = ledger_flags,
    .run = ledger_run,
};
