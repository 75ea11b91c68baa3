/* ui.c - berth ui: where the page is. */
#include "cmd/berth/live.h"

static const struct flag ui_flags[] = {
    { "print-url", 0, NULL, "print the address and open nothing" },
    LIVE_FLAGS,
    { 0 },
};

static int ui_run(const struct flags *flags)
{
    if (flags->word_count > 0)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
    return command_failed(flags,
                          "berthd has no page yet; 'berth top' shows the same in "
                          "a terminal");
}

const struct command command_ui = {
    .name = "ui",
    .group = "Use",
    .brief = "the page in a browser (there is none yet)",
    .usage = "[--print-url]",
    .flags = ui_flags,
    .run = ui_run,
};
