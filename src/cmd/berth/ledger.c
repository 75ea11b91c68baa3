/* ledger.c - berth ledger: what each preemption cost and brought. */
#include <math.h>

#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

static const struct flag ledger_flags[] = {
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static const struct sheet_column columns[] = {
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

static void add_number(struct sheet *sheet, const struct json *entry, const char *key,
                       const char *fmt)
{
    double number = live_number(entry, key, NAN);
    char text[32] = "";
    if (!isnan(number))
        snprintf(text, sizeof text, fmt[2] == '0' ? "%.0f" : "%.4g", number);
    sheet_add(sheet, "%s", text);
}

static void add_entry(struct sheet *sheet, const struct json *entry)
{
    char text[64];
    bool open = false;
    json_as_flag(json_get(entry, "open"), &open);
    sheet_add(sheet, "%s",
              live_moment(text, sizeof text, live_number(entry, "at", NAN)));
    add_number(sheet, entry, "victim", "%.0f");
    add_number(sheet, entry, "for", "%.0f");
    sheet_add(sheet, "%s", live_text(entry, "rule", ""));
    add_number(sheet, entry, "gpus", "%.0f");
    add_number(sheet, entry, "predicted_cost_gpu_s", "%.4g");
    add_number(sheet, entry, "actual_cost_gpu_s", "%.4g");
    add_number(sheet, entry, "pause_gpu_s", "%.4g");
    add_number(sheet, entry, "load_gpu_s", "%.4g");
    add_number(sheet, entry, "redo_gpu_s", "%.4g");
    sheet_add(sheet, "%s",
              live_span(text, sizeof text, live_number(entry, "wait_saved_s", NAN)));
    sheet_add(sheet, "%s", open ? "so far" : "");
}

static int ledger_run(const struct flags *flags)
{
    struct json *answer = NULL;
    if (flags->word_count > 0)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
    int status = live_get(flags, "/v1/ledger", &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return live_print_json(answer);
    const struct json *entries = json_get(answer, "entries");
    struct sheet sheet;
    sheet_init(&sheet, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(entries); i++)
        add_entry(&sheet, json_item(entries, i));
    if (json_count(entries) == 0)
        puts("Nobody was preempted.");
    else
        sheet_print(&sheet, stdout, sheet_width(stdout), sheet_coloured(stdout));
    if (json_count(entries) > 0)
        puts("\nCosts are GPU-seconds; SAVED is what the newcomer did not have to "
             "wait.");
    sheet_release(&sheet);
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
