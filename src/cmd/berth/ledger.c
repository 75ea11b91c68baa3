/* ledger.c - berth ledger: what each preemption cost and saved, and what sharing GPUs did. */
#include <math.h>

#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "cmd/berth/text_table.h"

static const struct flag ledger_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct text_table_column columns[] = {
    { "AT", .spare = 1 },
    { "VICTIM", .right = true },
    { "FOR", .right = true },
    { "RULE", .min = 8 },
    { "GPUS", .right = true, .spare = 2 },
    { "BELIEVED", .right = true },
    { "COST", .right = true },
    { "PAUSE", .right = true, .spare = 5 },
    { "LOAD", .right = true, .spare = 4 },
    { "REDONE", .right = true, .spare = 3 },
    { "SAVED", .right = true },
    { "" },
};

static void add_number(struct text_table *table, const struct json *entry,
                       const char *key, const char *fmt)
{
    double number = json_number_or(entry, key, NAN);
    char text[32] = "";
    if (!isnan(number))
        snprintf(text, sizeof text, fmt[2] == '0' ? "%.0f" : "%.4g", number);
    text_table_add(table, "%s", text);
}

static void add_entry(struct text_table *table, const struct json *entry)
{
    char text[64];
    bool open = false;
    json_as_flag(json_get(entry, "open"), &open);
    text_table_add(table, "%s",
                   format_time(text, sizeof text, json_number_or(entry, "at", NAN)));
    add_number(table, entry, "victim", "%.0f");
    add_number(table, entry, "for", "%.0f");
    text_table_add(table, "%s", json_text_or(entry, "rule", ""));
    add_number(table, entry, "gpus", "%.0f");
    add_number(table, entry, "predicted_cost_gpu_s", "%.4g");
    add_number(table, entry, "actual_cost_gpu_s", "%.4g");
    add_number(table, entry, "pause_gpu_s", "%.4g");
    add_number(table, entry, "load_gpu_s", "%.4g");
    add_number(table, entry, "redo_gpu_s", "%.4g");
    text_table_add(
        table, "%s",
        format_duration(text, sizeof text, json_number_or(entry, "wait_saved_s", NAN)));
    text_table_add(table, "%s", open ? "so far" : "");
}

/* What jobs that shared GPUs gained and lost by it. */
static void print_sharing(const struct json *sharing)
{
    double pairs = json_number_or(sharing, "pairs", 0);
    if (!sharing)
        return;
    printf("Sharing: %.0f pair%s, %.4g GPU-seconds shared, %.4g gained, %.4g lost by "
           "stops.\n",
           pairs, pairs == 1 ? "" : "s", json_number_or(sharing, "shared_gpu_s", 0),
           json_number_or(sharing, "gained_gpu_s", 0),
           json_number_or(sharing, "lost_gpu_s", 0));
}

static void print_ledger(const struct json *answer)
{
    const struct json *entries = json_get(answer, "entries");
    struct text_table table;
    if (json_count(entries) == 0) {
        puts("Nobody was preempted.");
        print_sharing(json_get(answer, "sharing"));
        return;
    }
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(entries); i++)
        add_entry(&table, json_item(entries, i));
    text_table_show(&table, stdout);
    text_table_release(&table);
    puts("\nCosts are GPU-seconds; SAVED is what the newcomer did not have to wait.");
    print_sharing(json_get(answer, "sharing"));
}

static int ledger_run(const struct flags *flags)
{
    if (command_refuse_words(flags))
        return 2;
    return connection_show(flags, "/v1/ledger", print_ledger);
}

const struct command command_ledger = {
    .name = "ledger",
    .group = "Use",
    .brief = "what each preemption cost and brought, and what sharing did",
    .usage = "[--json]",
    .flags = ledger_flags,
    .run = ledger_run,
};
