/* bench.c - berth bench: how fast, as figures. */
#include "cmd/berth/command.h"

static const struct flag bench_flags[] = {
    { "json", 0, NULL, "for programs: one object" },
    { 0 },
};

static int bench_run(const struct flags *flags)
{
    return command_wrong(flags, "want one of: sim, all");
}

const struct command command_bench = {
    .name = "bench",
    .group = "Study",
    .brief = "measure how fast it is",
    .usage = "sim|all [--json]",
    .flags = bench_flags,
    .run = bench_run,
};
