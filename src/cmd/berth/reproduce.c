/* reproduce.c - berth reproduce: measure the figures of a paper again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/suggest.h"
#include "cmd/berth/command.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"
#include "study/report_page.h"
#include "study/reproduction.h"

#define STUDIES_MAX 16

static const struct flag reproduce_flags[] = {
    { "quick", 0, NULL, "a smaller study, within a minute" },
    { "seeds", 0, "N", "workloads per setting; as many as the study wants" },
    { "json", 0, NULL, "for programs: one object per paper" },
    { "report", 0, "F.html", "write a page with plots; one paper only" },
    { 0 },
};

/* "-96.6 %" or "1.64", depending on the unit. */
static const char *format_value(char *text, size_t size, const char *unit, double value)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else if (strcmp(unit, "change") == 0)
        snprintf(text, size, "%+.1f %%", value * 100);
    else if (strcmp(unit, "share") == 0)
        snprintf(text, size, "%.2f %%", value * 100);
    else
        snprintf(text, size, "%.3g", value);
    return text;
}

static void print_table(const struct reproduction *r, FILE *file)
{
    const struct text_table_column columns[] = {
        { "figure", false, 0 },
        { r->study->apart ? "at most" : "published", true, 0 },
        { "measured", true, 0 },
        { "over seeds", true, 0 },
        { "seeds", true, 0 },
        { "verdict", false, 0 },
        { "fidelity", false, 0 },
        { "price", true, 0 },
    };
    struct text_table table;
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < r->finding_count; i++) {
        const struct finding *f = &r->findings[i];
        char text[32];
        char high[32];
        text_table_add(&table, "%s", f->id);
        text_table_add(&table, "%s",
                       format_value(text, sizeof text, f->unit,
                                    isnan(f->target) ? f->published : f->target));
        text_table_add(&table, "%s",
                       format_value(text, sizeof text, f->unit, f->measured));
        if (f->seeds > 1)
            text_table_add(&table, "%s..%s",
                           format_value(text, sizeof text, f->unit, f->low),
                           format_value(high, sizeof high, f->unit, f->high));
        else
            text_table_add(&table, "%s", "");
        text_table_add(&table, "%u", f->seeds);
        text_table_add(
            &table, "%s",
            isnan(f->published) && isnan(f->target) ? "" : reproduction_verdict(f));
        text_table_add(&table, "%s",
                       r->study->apart ? "" : reproduction_fidelity(f->fidelity));
        const struct finding *price = reproduction_find(r, f->price);
        if (price)
            text_table_add(
                &table, "%s %s",
                format_value(text, sizeof text, price->unit, price->measured),
                price->id);
        else
            text_table_add(&table, "%s", "");
    }
    terminal_print_wrapped(r->study->title, 0, file);
    terminal_print_wrapped(r->study->paper, 0, file);
    fputc('\n', file);
    text_table_show(&table, file);
    text_table_release(&table);
}

static int write_page(struct output *output, const struct reproduction *reproduction,
                      struct error *err)
{
    char command[256];
    snprintf(command, sizeof command, "berth reproduce %s%s", reproduction->study->name,
             reproduction->quick ? " --quick" : "");
    struct json *page = reproduction_page(reproduction, command);
    int r = report_page_write(output, page, err);
    json_free(page);
    return r;
}

static void print_result(const struct flags *flags,
                         const struct reproduction *reproduction)
{
    const char *report = flags_get(flags, "report");
    FILE *file = report && output_is_stdout(report) ? stderr : stdout;
    if (flags_get(flags, "json")) {
        struct json *json = reproduction_json(reproduction);
        json_print(json, stdout, false);
        json_free(json);
        return;
    }
    print_table(reproduction, file);
    if (report && file == stdout)
        printf("\n%s has the plots.\n", report);
}

static int run_study(const struct flags *flags, const struct study *study)
{
    static struct reproduction reproduction;
    const char *report = flags_get(flags, "report");
    uint32_t seeds = (uint32_t)flags_count(flags, "seeds", 1, SEEDS_MAX, 0);
    struct output page = { 0 };
    struct error err;
    reproduction = (struct reproduction){ .progress = terminal_progress };
    int r = report ? report_page_open(&page, report, &err) : 0;
    if (r == 0)
        r = reproduction_run(&reproduction, study, flags_get(flags, "quick") != NULL,
                             seeds, &err);
    terminal_progress_end();
    if (r == 0 && report)
        r = write_page(&page, &reproduction, &err);
    if (r == 0)
        print_result(flags, &reproduction);
    output_release(&page);
    reproduction_release(&reproduction);
    return command_status(flags, r, &err);
}

static int reproduce_run(const struct flags *flags)
{
    if (flags->word_count != 1)
        return command_wrong(
            flags, "want one study: fitgpp, xion, gavel, slaq, jpas, one, or all");
    const char *name = flags->words[0];
    const char *names[STUDIES_MAX + 2] = { "all" };
    bool all = strcmp(name, "all") == 0;
    bool found = false;
    if (all && flags_get(flags, "report"))
        return command_wrong(flags, "--report goes with one paper");
    const char *report = flags_get(flags, "report");
    if (report && flags_get(flags, "json") && output_is_stdout(report))
        return command_wrong(flags, "--json and --report both want standard output");
    for (uint32_t i = 0; study_list[i]; i++) {
        names[i + 1] = study_list[i]->name;
        if (all ? study_list[i]->apart : strcmp(name, study_list[i]->name) != 0)
            continue;
        if (found && !flags_get(flags, "json"))
            putchar('\n');
        found = true;
        int status = run_study(flags, study_list[i]);
        if (status != 0)
            return status;
    }
    if (found)
        return 0;
    char hint[128];
    return command_wrong(flags, "no paper '%.40s'%s; see 'berth reproduce --help'",
                         name, suggest_names(hint, sizeof hint, name, names));
}

const struct command command_reproduce = {
    .name = "reproduce",
    .group = "Study",
    .brief = "measure a paper's figures again and compare",
    .usage = "fitgpp|xion|gavel|slaq|jpas|one|all [flags]",
    .flags = reproduce_flags,
    .more =
        "fitgpp   slowdown of trial and best-effort jobs (OpML 2019)\n"
        "xion     completion time over what a swap costs (IEEE CLOUD 2023)\n"
        "gavel    completion time over load, makespan, fairness, money (OSDI 2020)\n"
        "slaq     quality of models when GPUs go to those that learn (SoCC 2017)\n"
        "jpas     time to a good model when early jobs' packets go first (JNCA 2020)\n"
        "one      what one policy loses in all of these studies and in mixed ones\n"
        "all      every paper there is",
    .run = reproduce_run,
};
