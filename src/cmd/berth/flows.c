/* flows.c - berth flows: whose packets go first. */
#include <math.h>

#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

static const struct flag flows_flags[] = {
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static const struct sheet_column columns[] = {
    { "HOST", .min = 8 },
    { "JOB", .right = true },
    { "LEVEL", .right = true },
};

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
    struct sheet sheet;
    sheet_init(&sheet, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *one = json_item(list, i);
        sheet_add(&sheet, "%s", live_text(one, "host", ""));
        sheet_add(&sheet, "%.0f", live_number(one, "job", 0));
        sheet_add(&sheet, "%.0f", live_number(one, "level", 0));
    }
    if (json_count(list) == 0)
        puts("No job's packets are marked.");
    else
        sheet_print(&sheet, stdout, sheet_width(stdout), sheet_coloured(stdout));
    sheet_release(&sheet);
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
