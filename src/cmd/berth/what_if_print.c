/* what_if_print.c - the figures of 'berth what-if' as tables. */
#include "cmd/berth/what_if_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "cmd/berth/format.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"
#include "study/what_if.h"

#define CELL 48
#define LABEL 22 /* as long as the longest name of a figure */

/* A value with its unit, as people read it. */
static const char *show_value(char text[CELL], const char *unit, double value)
{
    if (isnan(value))
        snprintf(text, CELL, "-");
    else if (strcmp(unit, "s") == 0)
        units_show_time(text, CELL, value);
    else if (strcmp(unit, "GPU-s") == 0 && value < 360)
        snprintf(text, CELL, "%.1f GPU-s", value);
    else if (strcmp(unit, "GPU-s") == 0)
        snprintf(text, CELL, "%.1f GPU-h", value / 3600);
    else if (strcmp(unit, "share") == 0)
        snprintf(text, CELL, "%.1f %%", value * 100);
    else if (value == floor(value) || value >= 100)
        snprintf(text, CELL, "%.0f", value);
    else
        snprintf(text, CELL, "%.2f", value);
    return text;
}

/* "+12.3 %", "-0.04 %", "×12"; small changes with another digit. */
static const char *show_change(char text[CELL], double change)
{
    double percent = 100 * change;
    if (isnan(change))
        snprintf(text, CELL, "-");
    else if (change >= 9)
        snprintf(text, CELL, "×%.0f", change + 1);
    else
        snprintf(text, CELL, "%+.*f %%", fabs(percent) < 1 ? 2 : 1, percent);
    return text;
}

/* "-18 to -7 %", "×8 to ×13" */
static const char *show_interval(char text[CELL],
                                 const struct what_if_difference *difference)
{
    if (isnan(difference->change_low))
        return "";
    double low = 100 * difference->change_low, high = 100 * difference->change_high;
    if (difference->change >= 9) {
        snprintf(text, CELL, "×%.0f to ×%.0f", low / 100 + 1, high / 100 + 1);
        return text;
    }
    int digits = fabs(low) < 10 && fabs(high) < 10;
    snprintf(text, CELL, "%+.*f to %+.*f %%", digits, low, digits, high);
    return text;
}

static void print_trust_row(struct text_table *table, const char *label,
                            double happened, double replayed, double change)
{
    char text[CELL];
    text_table_add(table, "%s", label);
    text_table_add(table, "%s", show_value(text, "s", happened));
    text_table_add(table, "%s", show_value(text, "s", replayed));
    text_table_add(table, "%s", show_change(text, change));
}

static void print_trust(const struct what_if *what, FILE *file)
{
    static const struct text_table_column columns[] = {
        { "HOW FAR TO TRUST IT", .min = LABEL },
        { "HAPPENED", .right = true },
        { "REPLAYED", .right = true },
        { "CHANGE", .right = true },
    };
    struct what_if_trust trust = what_if_trust(what);
    struct text_table table;
    if (trust.job_count == 0) {
        terminal_print_wrapped("How far to trust it is not known: the history does not "
                               "tell when its jobs ended.",
                               0, file);
        return;
    }
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    print_trust_row(&table, "completion time, mean", trust.jct.happened,
                    trust.jct.replayed, trust.jct.change);
    print_trust_row(&table, "waiting, mean", trust.wait.happened, trust.wait.replayed,
                    trust.wait.change);
    print_trust_row(&table, "completion time, 95 %", trust.jct_p95.happened,
                    trust.jct_p95.replayed, trust.jct_p95.change);
    text_table_show(&table, file);
    text_table_release(&table);
    fprintf(file, "%u job%s, replayed under %s", trust.job_count,
            trust.job_count == 1 ? "" : "s", what->policy);
    double rejected = summary_value(&what->runs[0].result.summary, "jobs.rejected");
    if (rejected > 0) /* there were other nodes then */
        fprintf(file, "; %.0f can never run on these nodes", rejected);
    fputc('\n', file);
}

static bool is_all_zero(const struct what_if_difference *difference)
{
    return isnan(difference->difference) ||
           (difference->was == 0 && difference->value == 0);
}

static void print_variant(const struct what_if *what, uint32_t at, FILE *file)
{
    const struct text_table_column columns[] = {
        { what->cases[at].name, .min = LABEL },
        { "AS IT WAS", .right = true, .spare = 1 },
        { "THEN", .right = true },
        { "CHANGE", .right = true },
        { "95 % OF CHANGES", .right = true, .spare = 2 },
    };
    struct what_if_difference differences[WHAT_IF_FIGURES];
    struct text_table table;
    uint32_t jobs;
    char text[CELL];
    what_if_compare(what, at, differences, &jobs);
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (uint32_t f = 0; f < WHAT_IF_FIGURES; f++) {
        const struct what_if_difference *one = &differences[f];
        const char *unit = what_if_figures[f].unit;
        if (is_all_zero(one))
            continue;
        text_table_add(&table, "%s", what_if_figures[f].label);
        text_table_add(&table, "%s", show_value(text, unit, one->was));
        text_table_add(&table, "%s", show_value(text, unit, one->value));
        text_table_add(&table, "%s", show_change(text, one->change));
        text_table_add(&table, "%s", show_interval(text, one));
    }
    text_table_show(&table, file);
    text_table_release(&table);
    fprintf(file, "%u job%s that end%s well in both", jobs, jobs == 1 ? "" : "s",
            jobs == 1 ? "s" : "");
    double rejected = summary_value(&what->runs[at].result.summary, "jobs.rejected") -
                      summary_value(&what->runs[0].result.summary, "jobs.rejected");
    double unfinished =
        summary_value(&what->runs[at].result.summary, "jobs.unfinished");
    if (rejected > 0)
        fprintf(file, "; %.0f could never run", rejected);
    if (unfinished > 0)
        fprintf(file, "; %.0f never end", unfinished);
    fputs("\n", file);
}

static void print_intervals(const struct what_if *what, FILE *file)
{
    char text[256];
    if (what->block_ns == 0)
        snprintf(
            text, sizeof text,
            "No intervals: jobs were submitted on fewer than %d days, and in fewer "
            "than %d hours.",
            WHAT_IF_BLOCKS_MIN, WHAT_IF_BLOCKS_MIN);
    else
        snprintf(text, sizeof text,
                 "Intervals: %d draws of the %u %s in which jobs were submitted (block "
                 "bootstrap).",
                 WHAT_IF_DRAWS, what->block_count,
                 what->block_ns > 3600 * NS_PER_S ? "days" : "hours");
    terminal_print_wrapped(text, 0, file);
}

static void print_head(const struct what_if *what, FILE *file)
{
    char from[64];
    char to[64];
    char text[512];
    uint64_t counted = 0;
    for (uint64_t i = 0; i < what->cases[0].job_count; i++)
        counted += what->counted[i];
    if (isnan(what->zero_s))
        snprintf(text, sizeof text, "%" PRIu64 " job%s of %.200s, on %.80s.", counted,
                 counted == 1 ? "" : "s", what->history_text, what->cluster_text);
    else
        snprintf(
            text, sizeof text, "%" PRIu64 " job%s from %s to %s, on %.80s.", counted,
            counted == 1 ? "" : "s",
            format_time(from, sizeof from, what->zero_s + (double)what->from_ns * 1e-9),
            format_time(to, sizeof to, what->zero_s + (double)what->to_ns * 1e-9),
            what->cluster_text);
    terminal_print_wrapped(text, 0, file);
    if (what->changed) {
        snprintf(text, sizeof text, "What if: %.400s.", what->changed);
        terminal_print_wrapped(text, 0, file);
    }
}

void what_if_print(const struct what_if *what, FILE *file)
{
    print_head(what, file);
    for (uint32_t i = 0; i < what->note_count; i++)
        terminal_print_wrapped(what->notes[i], 0, file);
    fputc('\n', file);
    print_trust(what, file);
    for (uint32_t at = 1; at < what->case_count; at++) {
        fputc('\n', file);
        print_variant(what, at, file);
    }
    if (what->case_count == 1)
        return;
    fputc('\n', file);
    print_intervals(what, file);
}
